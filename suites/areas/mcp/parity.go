package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func parity(ctx context.Context, t *check.T) {
	if !t.Claims("tools") {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge has MCP only: there is no other interface to compare it with"}})
	}
	known := scenario.KnownTool(ctx, t)
	list, described := t.As(check.Agent).List(ctx), t.As(check.Agent).Describe(ctx, known)
	spoken := revisions(ctx, t)
	for _, revision := range spoken {
		for _, who := range t.Callers(check.Agent, check.Discoverer) {
			sameTools(ctx, t, revision, who)
		}
		for _, who := range t.Callers(check.Outsider) {
			noTools(ctx, t, revision, who)
		}
		sameCalls(ctx, t, spoken, revision)
		sameArguments(ctx, t, revision)
	}
	if t.Drupal != nil && len(spoken) > 0 {
		callsAtOnce(ctx, t, spoken[0])
		longText(ctx, t, spoken[0])
		// Who sees the methods that the area mapping adds.
		sameCallsOfOutsiders(ctx, t, spoken[0])
		sameTools(ctx, t, spoken[0], t.Drupal.NewUser(append(t.Permissions(check.Agent), fixtures.AdministerSite)...))
	}
	// What MCP does with a tool that it shows is not seen elsewhere.
	t.Row(check.Agent, "", "list after MCP was used", func() { t.Expect(t.As(check.Agent).List(ctx)).To(match.EqualResponse(list)) })
	t.Row(check.Agent, known, "describe after MCP was used", func() { t.Expect(t.As(check.Agent).Describe(ctx, known)).To(match.EqualResponse(described)) })
	sameAfterChange(ctx, t, spoken)
}

// sameTools compares the tools that MCP shows a caller with those of the three endpoints.
func sameTools(ctx context.Context, t *check.T, revision check.Revision, who check.Identity) {
	listed := t.As(who).MustListAll(ctx)
	shown := MustListTools(ctx, MustMCP(ctx, t.As(who), revision))
	t.For(who, "", func() {
		t.Expect(shown.Names()).To(Equal(listed.Names()), check.Mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), fmt.Sprintf("the tools of %s in the same order", check.ListPath), match.OtherNames(listed.Names(), shown.Names())))
	})
	for _, tool := range shown.Tools {
		other, there := listed.Find(tool.Name())
		if !there {
			continue // the lists differ, which the expectation above reports
		}
		t.For(who, tool.Name(), func() {
			difference := jsonschema.Difference(other["inputSchema"], tool["inputSchema"], "")
			t.Expect(difference).To(BeEmpty(), check.Mismatch(fmt.Sprintf("%s in %s", tool.Name(), revision), fmt.Sprintf("the inputSchema of %s", check.ListPath), fmt.Sprintf("a different one: %s", difference)))
			if output, ok := other["outputSchema"].(map[string]any); ok && output["type"] == "object" && tool["outputSchema"] != nil { // no other is wrapped
				difference := jsonschema.Difference(output, tool["outputSchema"], "")
				t.Expect(difference).To(BeEmpty(),
					check.Mismatch(fmt.Sprintf("%s in %s", tool.Name(), revision), fmt.Sprintf("the outputSchema of %s", check.ListPath), fmt.Sprintf("a different one: %s", difference)))
			}
			otherwise := describedOtherwise(other, tool)
			t.Expect(otherwise).To(BeEmpty(), check.Mismatch(fmt.Sprintf("%s in %s", tool.Name(), revision), fmt.Sprintf("the description, title and hints of %s", check.ListPath), otherwise))
		})
	}
}

// noTools tests that tools/list shows none to a caller whom list refuses.
func noTools(ctx context.Context, t *check.T, revision check.Revision, who check.Identity) {
	if refused := t.As(who).List(ctx); refused.Status != http.StatusForbidden {
		return // access/list-403 tests that
	}
	s := t.As(who).MCP(ctx, revision)
	if s.Opened.RPCResult() == nil {
		return // refused as well
	}
	t.For(who, "", func() {
		shown := len(check.ListAllTools(ctx, s).Names())
		if cursor, more := MustMCP(ctx, t.As(check.Agent), revision).ListTools(ctx, "").RPCResult()["nextCursor"].(string); more {
			further, _ := s.ListTools(ctx, cursor).RPCResult()["tools"].([]any)
			shown += len(further)
		}
		t.Expect(shown).To(BeZero(), check.Mismatch(fmt.Sprintf("tools/list in %s as %s, whom %s refuses", revision, who, check.ListPath),
			"no tools, on no page", fmt.Sprintf("%d tools", shown)))
	})
}

// sameCallsOfOutsiders tests that who may run a tool and may not discover it runs it by tools/call as by invoke.
func sameCallsOfOutsiders(ctx context.Context, t *check.T, revision check.Revision) {
	s := t.As(check.Outsider).MCP(ctx, revision)
	for _, tool := range scenario.Samples(t, check.Outsider, fixtures.WhoAmI) {
		want, ok := t.As(check.Outsider).Invoke(ctx, tool.Name, tool.Arguments).Member("result")
		if !ok || s.Opened.RPCResult() == nil {
			return // access/discovery-not-execution tests the first; who may open a session is open
		}
		t.For(check.Outsider, tool.Name, func() { t.Expect(s.CallTool(ctx, tool.Name, tool.Arguments)).To(haveResultOf(want)) })
	}
}

// hints are the annotations that clients act on, each with its default.
var hints = map[string]bool{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}

// describedOtherwise says in which text or hint a tool of MCP differs from the same tool of list; "" when in none. What
// list leaves empty, MCP may fill; mcp/client-tolerance tests members of a wrong type.
func describedOtherwise(listed, shown check.Tool) string {
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
	for hint, otherwise := range check.InOrder(hints) {
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

// longDocument is traps.Document with a text that is longer than what is put into a model's context as a rule.
var longDocument = strings.TrimSuffix(traps.Document, "}") + `,"longer":"` + strings.Repeat("longer ", 20_000) + `"}`

// sameArguments compares the arguments that the site receives from tools/call and from invoke, for the agent.
func sameArguments(ctx context.Context, t *check.T, revision check.Revision) {
	if t.Drupal == nil {
		return
	}
	listed := t.As(check.Agent).MustListAll(ctx)
	if tool, parameter, ok := scenario.ToolTaking(t, listed, `null`); ok {
		arguments := check.Args{parameter: nil}
		t.For(check.Agent, tool.Name, func() {
			t.Drupal.Mark()
			called := MustMCP(ctx, t.As(check.Agent), revision).CallTool(ctx, tool.Name, arguments)
			t.Expect(called).To(match.HaveForwarded(t.Upstream, tool.ID, client.Encode(arguments)), "null as an argument of tools/call, in %s", revision)
		})
	}
	tool, parameter, ok := scenario.ToolTaking(t, listed, traps.Document)
	if !ok {
		return
	}
	var arguments check.Args
	var invoked *check.Response
	for _, document := range []string{longDocument, traps.Document} {
		arguments = check.Args{parameter: json.RawMessage(document)}
		t.Drupal.Mark()
		if invoked = t.As(check.Agent).Invoke(ctx, tool.Name, arguments); invoked.Status != http.StatusRequestEntityTooLarge {
			break
		}
	}
	before := t.Drupal.Runs(tool.ID)
	if len(before) == 0 {
		return // invoke/arguments-forwarded tests that
	}
	if _, err := exact.Parse(before[len(before)-1].Params); err != nil {
		return // and that
	}
	t.Drupal.Mark()
	t.For(check.Agent, tool.Name, func() {
		called := MustMCP(ctx, t.As(check.Agent), revision).CallTool(ctx, tool.Name, arguments)
		t.Expect(called).To(match.HaveForwarded(t.Upstream, tool.ID, before[len(before)-1].Params), "the same arguments by invoke and by tools/call, in %s", revision)
		if want, ok := invoked.Member("result"); ok { // else invoke/result-exact fails
			t.Expect(called).To(haveResultOf(want), "in %s", revision)
			if tool.Output != nil {
				t.Expect(called).To(repeatAsText(want), "in %s", revision)
			}
		}
	})
}

// longText compares the result of tools/call and of invoke where it is a long document that no outputSchema describes.
func longText(ctx context.Context, t *check.T, revision check.Revision) {
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Value) {
		if tool.Output != nil {
			continue
		}
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, Route: route.JSONRPC, Body: longDocument})()
		t.For(check.Agent, tool.Name, func() {
			want, there := t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments).Member("result")
			if there { // else invoke/result-exact fails
				t.Expect(MustMCP(ctx, t.As(check.Agent), revision).CallTool(ctx, tool.Name, tool.Arguments)).To(haveResultOf(want), "a long result, in %s", revision)
			}
		})
		return
	}
}

// repeatAsText matches a result of tools/call whose text, which models read, says what its structuredContent says.
func repeatAsText(want any) OmegaMatcher {
	return match.Conform("a text block with the JSON of structuredContent", func(a *check.Response) string {
		r := toolResultOf(a)
		if !r.has || r.isError {
			return "" // haveResultOf and mcp/structured-content test that
		}
		for _, text := range r.text {
			if v, err := exact.Parse([]byte(text)); err == nil && (exact.Equal(v, want) || exact.Equal(v, r.structured)) {
				return ""
			}
		}
		return otherText(r)
	})
}

// otherText says how the first text block differs from structuredContent.
func otherText(r toolResult) string {
	if len(r.text) == 0 {
		return "no text block"
	}
	v, err := exact.Parse([]byte(r.text[0]))
	if err != nil {
		return fmt.Sprintf("a text block of %d bytes that is no JSON: %s", len(r.text[0]), exact.Short(r.text[0]))
	}
	return "a text block that differs " + exact.Diff(r.structured, v)
}

// callsAtOnce tests that each of many tools/call in one session gets its own result, under its own id.
func callsAtOnce(ctx context.Context, t *check.T, revision check.Revision) {
	const atATime = 32
	echo, s := scenario.EchoTool(t), MustMCP(ctx, t.As(check.Agent), revision)
	name, responses := t.ToolName(echo.ID), make([]*check.Response, atATime)
	arguments := func(i int) check.Args { return echo.Arguments(fmt.Sprintf("call %d", i)) }
	if alone, _ := haveResultOf(exact.MustParse(client.Encode(arguments(0)))).Match(s.CallTool(ctx, name, arguments(0))); !alone {
		return // invoke/arguments-forwarded and mcp/structured-content test that
	}
	check.AtOnce(atATime, func(i int) {
		params := map[string]any{"name": name, "arguments": arguments(i)}
		responses[i] = scenario.Delivered(ctx, t, func() *check.Response {
			return s.Send(ctx, s.Message(1000+i, "tools/call", params), s.Headers("tools/call", params))
		})
	})
	for i, r := range responses {
		// Whether each is served, load/concurrent-exact tests at the three endpoints; MCP may refuse some as too many, in words of its own.
		if r.Status == http.StatusOK && r.RPCCode() == "" && !toolResultOf(r).isError {
			t.Row(check.Agent, name, fmt.Sprintf("%d at once in %s", atATime, revision), func() {
				t.Expect(r).To(haveResultOf(exact.MustParse(client.Encode(arguments(i)))))
			})
		}
	}
}

// sameAfterChange tests that MCP shows a new tool of the site once list shows it.
func sameAfterChange(ctx context.Context, t *check.T, spoken []check.Revision) {
	if t.Drupal == nil || !t.ShowsSoon() || len(spoken) == 0 {
		return
	}
	open := MustMCP(ctx, t.As(check.Agent), spoken[0]) // when the site changes
	MustListTools(ctx, open)
	removed := scenario.WithoutMethod(t)
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, removed))
	name := t.ToolName(scenario.Arrival)
	if !t.Await(ctx, func() bool { return slices.Contains(t.ListedNames(ctx), name) }) {
		return // fresh/ttl-expiry tests that
	}
	t.For(check.Agent, name, func() {
		t.Expect(t.Await(ctx, func() bool { return slices.Contains(t.As(check.Agent).ListedByMCP(ctx), name) })).
			To(BeTrue(), check.Mismatch(fmt.Sprintf("the site has a new tool, and %s shows it", check.ListPath), fmt.Sprintf("the tool in tools/list as well within %v", t.ChangeLimit()), "the old tools"))
	})
	t.Row(check.Agent, name, "in a session that was open before", func() {
		names := MustListTools(ctx, open).Names()
		t.Expect(names).To(ContainElement(name),
			check.Mismatch("the site has a new tool, and other sessions show it", "the tool in tools/list of a session that was open before", "the old tools"))
		if !slices.Contains(t.ListedNames(ctx), t.ToolName(removed)) {
			t.Expect(names).NotTo(ContainElement(t.ToolName(removed)),
				check.Mismatch("the site has lost a tool, and "+check.ListPath+" does not show it", "no such tool in tools/list", t.ToolName(removed)))
		}
	})
	called := func(kind string) *check.Response {
		return open.CallTool(ctx, name, check.Args{scenario.ArrivalParam: kind})
	}
	if ok, _ := match.BeToolResult().Match(called("old")); !ok {
		return
	}
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, scenario.ArrivalNew, removed))
	if !t.Await(ctx, func() bool { return scenario.Shows(ctx, t, check.Agent, scenario.ArrivalNew) }) {
		return // fresh/schema-change tests that
	}
	t.Row(check.Agent, name, "a schema that has changed", func() {
		t.Expect(called("new")).To(match.BeToolResult(), "arguments that fit the schema that list shows")
		t.Expect(called("old")).NotTo(match.BeToolResult(), "arguments that fit the schema before it")
	})
}

// haveResultOf matches a response to tools/call with the result of invoke.
func haveResultOf(want any) OmegaMatcher {
	return match.Conform("the result of invoke: "+exact.Short(want), func(a *check.Response) string {
		r := toolResultOf(a)
		text, isText := want.(string)
		switch got := r.value(); {
		case r.isError:
		case exact.Equal(want, got), exact.Equal(want, r.structured), want == nil && len(r.text) > 0, isText && slices.Contains(r.text, text):
			return ""
		}
		return exact.Apart(want, r.value()) + a.RPCOutcome()
	})
}

// sameCalls compares the responses of tools/call with those of invoke, for the agent.
func sameCalls(ctx context.Context, t *check.T, spoken []check.Revision, revision check.Revision) {
	if t.Drupal == nil {
		return // no tool may be run
	}
	s := MustMCP(ctx, t.As(check.Agent), revision)
	known := scenario.KnownTool(ctx, t)
	call := map[string]any{"name": known, "arguments": check.Args{}, "_meta": map[string]any{"progressToken": "a token", "example.com/note": 1}}
	if plain := s.CallTool(ctx, known, check.Args{}); !revision.Stateless() && plain.RPCResult() != nil { // stateless, every call has _meta
		t.Row(check.Agent, known, "with _meta in "+string(revision), func() { t.Expect(s.Call(ctx, "tools/call", call)).To(match.BeToolResult()) })
	}
	for _, m := range scenario.AgentTools(t) {
		switch m.Behaviour.Kind {
		case fixtures.WhoAmI:
		case fixtures.Value:
			if !conforms(m) {
				continue
			}
		default:
			continue
		}
		if len(m.Params) > 0 || m.Behaviour.Sleep > 0 {
			continue
		}
		invoked := t.As(check.Agent).Invoke(ctx, t.ToolName(m.ID), check.Args{})
		want, ok := invoked.Member("result")
		if !ok {
			continue // invoke/result-exact tests that
		}
		t.For(check.Agent, t.ToolName(m.ID), func() {
			t.Expect(s.CallTool(ctx, t.ToolName(m.ID), check.Args{})).To(haveResultOf(want))
		})
	}
	t.For(check.Agent, scenario.KnownTool(ctx, t), func() {
		t.Expect(s.Call(ctx, "tools/call", map[string]any{"name": scenario.KnownTool(ctx, t)})).To(match.BeToolResult(), "without `arguments`, which is optional")
	})
	for _, arguments := range []any{"all", 5, []string{"all"}, nil} {
		t.Row(check.Agent, known, "the arguments "+exact.Short(arguments)+", which are no object", func() {
			t.Drupal.Mark()
			r := s.Call(ctx, "tools/call", map[string]any{"name": known, "arguments": arguments})
			t.Expect(r).NotTo(match.BeToolResult())
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
	for _, c := range spot(spoken, revision, refusedCalls(t)) {
		if invoked := t.As(check.Agent).Invoke(ctx, c.tool, c.arguments); !invoked.IsError() {
			continue // invoke/invalid-arguments-400 tests that
		}
		t.Row(check.Agent, c.tool, c.what, func() {
			t.Expect(s.CallTool(ctx, c.tool, c.arguments)).To(match.Conform("a refusal, as invoke gives", func(a *check.Response) string {
				if a.RPCCode() != "" || toolResultOf(a).isError {
					return ""
				}
				return a.RPCOutcome()
			}))
		})
	}
}

// refusedCall is a call that invoke refuses for its arguments.
type refusedCall struct {
	what, tool string
	arguments  any
}

func refusedCalls(t *check.T) []refusedCall {
	echo := scenario.EchoTool(t)
	name := t.ToolName(echo.ID)
	calls := []refusedCall{
		{"a wrong type", name, echo.Arguments(5)},
		{"a required parameter missing", name, check.Args{}},
		{"arguments as JSON in a text", name, string(client.Encode(echo.Arguments("a text")))},
	}
	for _, s := range scenario.Samples(t, check.Agent, fixtures.Get) {
		for _, p := range s.Params {
			if schema, _ := exact.MustParse(p.Resolved()).(map[string]any); p.Required && schema["type"] == "integer" {
				arguments := maps.Clone(s.Arguments)
				arguments[p.Name] = fmt.Sprint(arguments[p.Name])
				return append(calls, refusedCall{"a numeral in a text for an integer", s.Name, arguments})
			}
		}
	}
	return calls
}
