package mapping

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// alike are the numbers of characters in which the ids of two methods agree: what clients, and the specification, allow.
var alike = []int{60, 64, 120}

// longNames adds pairs of methods whose ids agree at their beginning, with another usage and result each, and one with a
// short id, the positive control.
func longNames(ctx context.Context, t *check.T) {
	site := t.Drupal.Site().Clone()
	add := func(id, title, usage string) {
		site.Methods = append(site.Methods, fixtures.Method{ID: id, Usage: usage, Access: []string{fixtures.AccessContent}, MCP: &fixtures.Tool{Title: title},
			Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(fmt.Sprintf("%q", usage))}})
	}
	usage := func(n int, half string) string { return fmt.Sprintf("Long name %d, %s", n, half) }
	halves := []string{"first", "second"}
	odd := scenario.OddID(t)
	for _, n := range alike {
		for _, half := range halves {
			add(odd+strings.Repeat("x", n-len(odd))+half+".", half, usage(n, half))
		}
	}
	const short, shortUsage = "content.short", "Short name"
	add(short, "Short", shortUsage)
	t.ReplaceForNewcomers(ctx, site)
	agent := t.Viewer()
	var listed check.Listing
	with := func(usage string) []check.Tool {
		return slices.DeleteFunc(listed.Tools(), func(tool check.Tool) bool { return tool["description"] != usage })
	}
	shown := func() bool {
		listed = agent.ListAll(ctx)
		return len(with(shortUsage)) > 0
	}
	if !t.Await(ctx, shown) {
		check.BlockedBy(check.Mismatch("the list after methods came", fmt.Sprintf("a tool with the description %q", shortUsage), "none"),
			"fresh/ttl-expiry", "mapping/description-is-usage", "list/pages-cover-all-once", "list/tool-required-members")
	}
	if !listed.Fault.IsZero() { // they came between two pages
		listed = agent.MustListAll(ctx)
	}
	agent.Describe(ctx, t.ToolName(short)).MustMeet(match.BeTool(t.ToolName(short)), "describe/answers-tool")
	agent.Invoke(ctx, t.ToolName(short), check.Args{}).MustMeet(match.GiveResult(fmt.Sprintf("%q", shortUsage)),
		"invoke/answers-result", "invoke/result-exact", "invoke/empty-arguments", "upstream/down-and-up", "upstream/valid-jsonrpc")
	run := func(name, want string) {
		t.Expect(agent.Invoke(ctx, name, check.Args{})).To(match.GiveResult(fmt.Sprintf("%q", want)))
	}
	if session := anySession(ctx, t, agent); session != nil { // half of them by MCP
		overHTTP := run
		run = func(name, want string) {
			if strings.HasSuffix(want, halves[0]) {
				overHTTP(name, want)
				return
			}
			t.Expect(session.CallTool(ctx, name, check.Args{})).To(match.MatchRPCWhere(fmt.Sprintf("the result %q", want), func(a *check.Response) bool {
				return a.RPCResult() != nil && strings.Contains(string(client.Encode(a.RPCResult())), want)
			}))
		}
	}
	for _, n := range alike {
		var names []string
		for _, half := range halves {
			want := usage(n, half)
			for _, tool := range with(want) {
				names = append(names, tool.Name())
				t.For(check.Agent, tool.Name(), func() {
					described := agent.Describe(ctx, tool.Name())
					t.Expect(described).To(match.BeTool(tool.Name()))
					t.Expect(described.Tool()["description"]).To(Equal(want), check.Mismatch("describe of "+tool.Name(), want, fmt.Sprint(described.Tool()["description"])))
					run(tool.Name(), want)
				})
			}
		}
		t.Row(check.Agent, "", fmt.Sprintf("two methods whose ids agree in %d characters", n), func() {
			t.Expect(len(names) == 2 && names[0] != names[1]).To(BeTrue(), check.Mismatch("the list", "two tools with different names", fmt.Sprintf("the names %q", names)))
		})
	}
}

// anySession is a session of MCP in any revision; nil where the bridge claims none, or none opens.
func anySession(ctx context.Context, t *check.T, caller check.Client) *check.Session {
	if !t.Claims("mcp") {
		return nil
	}
	if session, opened := caller.AnyMCP(ctx); opened {
		return session
	}
	return nil
}
