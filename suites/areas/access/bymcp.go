package access

import (
	. "github.com/onsi/gomega"

	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// sendRefusalsByMCP sends what MCP must refuse as the agent: a wrong tool, cursor and arguments, and calls that fail. It
// sends nothing if the bridge does not claim MCP.
func sendRefusalsByMCP(ctx context.Context, t *check.T) []*check.Response {
	if !t.Claims("mcp") {
		return nil
	}
	s, opened := t.As(check.Agent).AnyMCP(ctx)
	if !opened {
		return nil
	}
	responses := []*check.Response{s.Opened, s.ListTools(ctx, ""), s.ListTools(ctx, "!no-cursor!"), s.CallTool(ctx, scenario.NoSuchTool, check.Args{})}
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Fail) {
		responses = append(responses, s.CallTool(ctx, tool.Name, tool.Arguments))
	}
	if echo, ok := scenario.FindEcho(t); ok {
		responses = append(responses, s.CallTool(ctx, t.ToolName(echo.ID), echo.Arguments(5)))
	}
	return responses
}

// testNamesByMCP compares tools/call of tools that are hidden from the caller with tools/call of unknown names.
func testNamesByMCP(ctx context.Context, t *check.T, who check.Identity, names []string) {
	s, opened := t.As(who).AnyMCP(ctx)
	if !opened {
		return
	}
	send := func(ctx context.Context, name string) *check.Response {
		params := map[string]any{"name": name, "arguments": check.Args{}}
		return s.Send(ctx, s.Message(5, "tools/call", params), s.Headers("tools/call", params))
	}
	for _, name := range slices.Compact(names) {
		t.For(who, name, func() { t.Expect(send(ctx, name)).To(equalUnknown(send, ctx, name), "tools/call") })
	}
}

// callsAsCaller compares the account of every call with the credentials of the caller, as far as a recording proxy can
// read them.
func callsAsCaller(ctx context.Context, t *check.T) {
	listsAsCaller(ctx, t)
	scenario.MustSeeCalls(t)
	calls := scenario.Allowed(t)
	if !slices.ContainsFunc(calls, func(i check.Invocation) bool { return i.Identity != calls[0].Identity }) {
		check.NotTestable("it needs two callers: allow a call of a second identity under `invocations`")
	}
	allowed := len(calls)
	if t.Site != nil && t.Site.Unknown(check.Discoverer) == "" { // and one that the site denies
		for _, call := range calls {
			if m := scenario.MethodOf(t, call.Tool); m != nil && !t.Site.MayRun(check.Discoverer, m) {
				call.Identity = check.Discoverer
				calls = append(calls, call)
				break
			}
		}
	}
	for range 2 { // each one before and after the others
		for i, call := range calls {
			if i < allowed {
				scenario.MustReach(ctx, t, call)
			} else {
				t.Upstream.Mark()
				t.Call(ctx, call)
			}
			who := scenario.CallerAtSite(t, call.Identity)
			for _, entry := range t.Upstream.Journal() {
				if len(entry.Calls) == 0 {
					continue
				}
				t.For(call.Identity, call.Tool, func() {
					t.Expect(entry.User).To(Equal(who), check.Mismatch(fmt.Sprintf("the call of %s for %s", call.Tool, call.Identity), "the caller's own credentials at the site", fmt.Sprintf("those of %q", entry.User)))
				})
			}
		}
	}
}

// listsAsCaller looks, where the bridge refuses its list to a caller whom the site knows, at what it asked the site for that: it needs no
// tool that may be called.
func listsAsCaller(ctx context.Context, t *check.T) {
	if t.Upstream == nil {
		return
	}
	list := t.As(check.Agent).List(ctx)
	if !scenario.RefusesKnown(ctx, t, list, check.Agent) {
		return
	}
	var asked []journal.Entry
	check.Within(ctx, scenario.RefusalsLast, func() bool {
		t.Upstream.Mark()
		list = t.As(check.Agent).List(ctx)
		asked = scenario.ForCallers(t, t.Upstream.Journal())
		return len(asked) > 0
	})
	own := scenario.CallerAtSite(t, check.Agent)
	if !slices.ContainsFunc(asked, func(e journal.Entry) bool { return e.User == own }) {
		t.For(check.Agent, "", func() {
			for _, e := range asked {
				t.Expect(e.User).To(Equal(own), asAnother(list, e))
			}
		})
	}
}

// asAnother is the finding that the bridge asked the site for the agent as another.
func asAnother(r *check.Response, e journal.Entry) check.Finding {
	return check.Mismatch(r.Subject(), "a request to the site as "+check.Agent.String(), "one as "+check.Identity(e.User).String()+", to which the site responds "+strconv.Itoa(e.Status))
}
