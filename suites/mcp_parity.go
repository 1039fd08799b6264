package suites

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"bridgecheck/fixtures"
	"bridgecheck/suites/exact"
	"bridgecheck/suites/jsonschema"
)

var _ = Area("mcp", func(b *Bridge) {
	b.Check("mcp/parity", func(ctx SpecContext) {
		if !b.Claims("tools") {
			skip(notApplicable, "the bridge has MCP only: there is nothing to compare it with")
		}
		for _, revision := range b.revisions(ctx) {
			for _, who := range b.callers(Agent, Discoverer) {
				b.sameTools(ctx, revision, who)
			}
			b.sameCalls(ctx, revision)
		}
	})
})

// sameTools holds what MCP shows a caller against what the three endpoints show.
func (b *Bridge) sameTools(ctx context.Context, revision Revision, who Identity) {
	listed := b.As(who).MustListAll(ctx)
	shown := b.As(who).MustMCP(ctx, revision).MustListTools(ctx)
	b.For(who, "", func() {
		Expect(shown.names()).To(Equal(listed.Names()), "tools/list in %s as %s: expected the tools of %s in the same order, got another list", revision, who, ListPath)
	})
	for _, tool := range shown.Tools {
		other, there := listed.Find(tool.Name())
		if !there {
			continue // the lists differ, which is told above
		}
		b.For(who, tool.Name(), func() {
			Expect(jsonschema.Difference(other["inputSchema"], tool["inputSchema"], "")).To(BeEmpty(), "%s in %s: expected the inputSchema of %s, got another", tool.Name(), revision, ListPath)
		})
	}
}

// sameCalls holds the answers of tools/call against those of invoke, for the agent.
func (b *Bridge) sameCalls(ctx context.Context, revision Revision) {
	if b.Drupal == nil {
		return // no tool may be run
	}
	s := b.As(Agent).MustMCP(ctx, revision)
	for _, m := range b.agentTools() {
		if m.Behaviour.Kind != fixtures.Value || len(m.Params) > 0 || m.Output != nil && !conforms(m) {
			continue
		}
		invoked := b.As(Agent).Invoke(ctx, b.ToolName(m.ID), Args{})
		want, ok := invoked.Member("result")
		if !ok {
			continue // invoke/result-exact judges that
		}
		b.For(Agent, b.ToolName(m.ID), func() {
			Expect(s.CallTool(ctx, b.ToolName(m.ID), Args{})).To(Meet("the result of invoke: "+exact.Short(want), func(a *Answer) string {
				r := a.toolResult()
				text, isText := want.(string)
				switch got := r.value(); {
				case r.isError:
				case exact.Equal(want, got), exact.Equal(want, r.structured), want == nil && len(r.text) > 0, isText && contains(r.text, text):
					return ""
				}
				return a.rpcOutcome()
			}))
		})
	}
	echo := b.echoTool()
	for what, arguments := range inOrder(map[string]any{"a required parameter missing": Args{}, "a wrong type": echo.arguments(5)}) {
		if invoked := b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), arguments); !invoked.IsError() {
			continue // invoke/invalid-arguments-400 judges that
		}
		Expect(s.CallTool(ctx, b.ToolName(echo.ID), arguments)).To(Meet("a refusal, as invoke gives", func(a *Answer) string {
			if a.RPCCode() != "" || a.toolResult().isError {
				return ""
			}
			return a.rpcOutcome()
		}), what)
	}
}
