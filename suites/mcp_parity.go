package suites

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
)

// checks__mcp__mcp_parity are the checks of this file.
var checks__mcp__mcp_parity = []Check{
	{ID: "mcp/parity", Sees: Front, Run: chk__mcp__parity},
}

func chk__mcp__parity(ctx context.Context, t *T) {
	if !t.Claims("tools") {
		skip(notApplicable, Finding{Subject: "the bridge has MCP only: there is nothing to compare it with"})
	}
	for _, revision := range t.revisions(ctx) {
		for _, who := range t.callers(Agent, Discoverer) {
			t.sameTools(ctx, revision, who)
		}
		t.sameCalls(ctx, revision)
		t.sameArguments(ctx, revision)
	}
	t.sameAfterChange(ctx)
}

// sameTools holds what MCP shows a caller against what the three endpoints show.
func (t *T) sameTools(ctx context.Context, revision Revision, who Identity) {
	listed := t.As(who).MustListAll(ctx)
	shown := t.As(who).MustMCP(ctx, revision).MustListTools(ctx)
	t.For(who, "", func() {
		t.Expect(shown.names()).To(Equal(listed.Names()), mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), fmt.Sprintf("the tools of %s in the same order", ListPath), otherNames(listed.Names(), shown.names())))
	})
	for _, tool := range shown.Tools {
		other, there := listed.Find(tool.Name())
		if !there {
			continue // the lists differ, which is told above
		}
		t.For(who, tool.Name(), func() {
			difference := jsonschema.Difference(other["inputSchema"], tool["inputSchema"], "")
			t.Expect(difference).To(BeEmpty(), mismatch(fmt.Sprintf("%s in %s", tool.Name(), revision), fmt.Sprintf("the inputSchema of %s", ListPath), fmt.Sprintf("another: %s", difference)))
			otherwise := toldOtherwise(other, tool)
			t.Expect(otherwise).To(BeEmpty(), mismatch(fmt.Sprintf("%s in %s", tool.Name(), revision), fmt.Sprintf("what %s tells of it", ListPath), otherwise))
		})
	}
}

// hints are the annotations that clients act on, with what their absence means.
var hints = map[string]bool{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}

// toldOtherwise says what a tool of MCP tells people otherwise than the same tool of list; "" when nothing. What list
// leaves empty is MCP's own; members of a wrong type are judged by mcp/client-tolerance.
func toldOtherwise(listed, shown Tool) string {
	notes, _ := listed["annotations"].(map[string]any)
	mcpNotes, areNotes := shown["annotations"].(map[string]any)
	title, there := shown["title"]
	if !there {
		title, there = mcpNotes["title"]
	}
	_, described := shown["description"]
	for _, member := range []struct {
		name       string
		want, have any
		there      bool
	}{{"description", listed["description"], shown["description"], described}, {"title", listed["title"], title, there}} {
		_, isText := member.have.(string)
		if want, ok := member.want.(string); ok && want != "" && (isText || !member.there) && member.have != want {
			return fmt.Sprintf("the %s %s, not %s", member.name, exact.Short(member.have), exact.Short(want))
		}
	}
	if _, there = shown["annotations"]; there && !areNotes {
		return ""
	}
	for hint, otherwise := range inOrder(hints) {
		want, isHint := notes[hint].(bool)
		if _, there := notes[hint]; !there {
			want, isHint = otherwise, true
		}
		have, ok := mcpNotes[hint].(bool)
		if mcpNotes[hint] == nil {
			have, ok = otherwise, true
		}
		if isHint && ok && want != have {
			return fmt.Sprintf("%s %t, not %t", hint, have, want)
		}
	}
	return ""
}

// manySided is an argument with all that is lost on the way through another language's types.
const manySided = `{"object":{},"list":[],"null":null,"big":9007199254740993,"decimal":0.1,"zero":0,"false":false,"text":"é 🚀 </b> \u2028","digits":"007","lists":[[1,{}]]}`

// sameArguments holds what tools/call sends the site against what invoke sends, for the agent.
func (t *T) sameArguments(ctx context.Context, revision Revision) {
	if t.Drupal == nil {
		return
	}
	tool, parameter, ok := t.takerOf(t.As(Agent).MustListAll(ctx), manySided)
	if !ok {
		return
	}
	arguments := Args{parameter: json.RawMessage(manySided)}
	t.Drupal.Mark()
	t.As(Agent).Invoke(ctx, tool.Name, arguments)
	before := t.Drupal.Runs(tool.ID)
	if len(before) == 0 {
		return // invoke/arguments-forwarded judges that
	}
	t.Drupal.Mark()
	t.For(Agent, tool.Name, func() {
		t.Expect(t.As(Agent).MustMCP(ctx, revision).CallTool(ctx, tool.Name, arguments)).
			To(HaveForwarded(tool.ID, before[len(before)-1].Params), "the same arguments by invoke and by tools/call, in %s", revision)
	})
}

// sameAfterChange holds what MCP shows of a changed site against what list shows.
func (t *T) sameAfterChange(ctx context.Context) {
	if t.Drupal == nil || t.DiscoveryTTL == 0 {
		return
	}
	t.Replace(ctx, t.Drupal.with(arrivalOld, ""))
	name := t.ToolName(arrival)
	if !t.Await(ctx, func() bool { return slices.Contains(t.listed(ctx), name) }) {
		return // fresh/ttl-expiry judges that
	}
	t.For(Agent, name, func() {
		t.Expect(t.Await(ctx, func() bool { return slices.Contains(t.As(Agent).listedByMCP(ctx), name) })).
			To(BeTrue(), mismatch(fmt.Sprintf("the site has a new tool, and %s shows it", ListPath), fmt.Sprintf("it in tools/list as well within %v", t.patience()), "the old tools"))
	})
}

// sameCalls holds the answers of tools/call against those of invoke, for the agent.
func (t *T) sameCalls(ctx context.Context, revision Revision) {
	if t.Drupal == nil {
		return // no tool may be run
	}
	s := t.As(Agent).MustMCP(ctx, revision)
	for _, m := range t.agentTools() {
		switch m.Behaviour.Kind {
		case fixtures.WhoAmI:
		case fixtures.Value:
			if m.Output != nil && !conforms(m) {
				continue
			}
		default:
			continue
		}
		if len(m.Params) > 0 || m.Behaviour.Sleep > 0 {
			continue
		}
		invoked := t.As(Agent).Invoke(ctx, t.ToolName(m.ID), Args{})
		want, ok := invoked.Member("result")
		if !ok {
			continue // invoke/result-exact judges that
		}
		t.For(Agent, t.ToolName(m.ID), func() {
			t.Expect(s.CallTool(ctx, t.ToolName(m.ID), Args{})).To(Meet("the result of invoke: "+exact.Short(want), func(a *Response) string {
				r := a.toolResult()
				text, isText := want.(string)
				switch got := r.value(); {
				case r.isError:
				case exact.Equal(want, got), exact.Equal(want, r.structured), want == nil && len(r.text) > 0, isText && slices.Contains(r.text, text):
					return ""
				}
				return a.rpcOutcome()
			}))
		})
	}
	t.For(Agent, t.KnownTool(ctx), func() {
		bare := map[string]any{"name": t.KnownTool(ctx)}
		t.Expect(s.send(ctx, s.message(15, "tools/call", bare), s.headers("tools/call", bare))).To(Meet("a result or an error to the request", func(a *Response) string {
			if a.RPC() == nil && (a.Status < 400 || a.Status >= 500) {
				return a.rpcOutcome()
			}
			return ""
		}), "without `arguments`, which may be left out")
	})
	echo := t.echoTool()
	for what, arguments := range inOrder(map[string]any{"a required parameter missing": Args{}, "a wrong type": echo.arguments(5)}) {
		if invoked := t.As(Agent).Invoke(ctx, t.ToolName(echo.ID), arguments); !invoked.IsError() {
			continue // invoke/invalid-arguments-400 judges that
		}
		t.Row(Agent, t.ToolName(echo.ID), what, func() {
			t.Expect(s.CallTool(ctx, t.ToolName(echo.ID), arguments)).To(Meet("a refusal, as invoke gives", func(a *Response) string {
				if a.RPCCode() != "" || a.toolResult().isError {
					return ""
				}
				return a.rpcOutcome()
			}))
		})
	}
}
