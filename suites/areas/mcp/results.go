package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func undeclaredArgument(ctx context.Context, t *check.T) {
	accepted := 0
	for _, revision := range revisions(ctx, t) {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		if echo, ok := scenario.FindEcho(t); ok {
			wrong := s.CallTool(ctx, t.ToolName(echo.ID), echo.Arguments(map[string]any{"no": "string"}))
			wrong.MustMeet(beInvalid(), "mcp/invalid-arguments")
		}
		for _, call := range scenario.UndeclaredArguments(t, MustListTools(ctx, s).Tools) {
			if r := toolResultOf(s.CallTool(ctx, call.Tool, call.Valid)); r.isError || r.whole == nil {
				continue // mcp/parity and others test that
			}
			accepted++
			t.Row(check.Agent, call.Tool, fmt.Sprintf("an argument that is not declared in %s, in %s", call.Where, revision), func() {
				t.Drupal.Mark()
				r := s.CallTool(ctx, call.Tool, call.Extra)
				t.Expect(r).To(beInvalid())
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
			})
		}
	}
	if accepted == 0 {
		check.BlockedBy(check.Finding{Subject: "no tool with a closed inputSchema accepts arguments that fit it"}, "mcp/parity", "invoke/arguments-forwarded")
	}
}

// beInvalid matches a refusal of arguments.
func beInvalid() OmegaMatcher {
	return match.MatchRPCWhere("a result with isError true, or the error -32602", func(a *check.Response) bool {
		return toolResultOf(a).isError || a.RPCCode() == "-32602"
	})
}

// The methods that structuredMismatch adds to the site.
const (
	countKept  = "content.count_kept"
	countWrong = "content.count_wrong"
	countFails = "content.count_fails"
	listWrong  = "content.list_wrong"    // whose structuredContent is wrapped
	plainFails = "content.fails_plainly" // the positive control of countFails

	listOutput   = `{"type":"array","items":{"type":"integer"}}`
	countOutput  = `{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}`
	countFailure = "The counter is out of order"
)

func structuredMismatch(ctx context.Context, t *check.T) {
	t.Drupal.LetResultsBreakOutput()
	agent, spoken := t.As(check.Agent), revisions(ctx, t)
	for _, revision := range spoken {
		MustListTools(ctx, MustMCP(ctx, agent, revision))
	}
	failure := fixtures.Behaviour{Kind: fixtures.Fail, Error: &fixtures.RPCError{Code: -32050, Message: countFailure}}
	site := t.Drupal.Site().Clone()
	site.Methods = append(site.Methods, fixtures.Method{ID: plainFails, Usage: "Fails", Access: []string{fixtures.AccessContent}, MCP: &fixtures.Tool{Title: "Fail"}, Behaviour: failure})
	names := []string{t.ToolName(plainFails)}
	for _, m := range []fixtures.Method{
		{ID: countFails, Output: fixtures.Raw(countOutput), Behaviour: failure},
		{ID: countKept, Output: fixtures.Raw(countOutput), Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`{"count":3}`)}},
		{ID: countWrong, Output: fixtures.Raw(countOutput), Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`{"count":"three"}`)}},
		{ID: listWrong, Output: fixtures.Raw(listOutput), Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`["three"]`)}},
	} {
		m.Usage, m.Access, m.MCP = "Counts", []string{fixtures.AccessContent}, &fixtures.Tool{Title: "Count"}
		names = append(names, t.ToolName(m.ID))
		site.Methods = append(site.Methods, m)
	}
	t.Replace(ctx, site)
	missing := func() []string {
		listed := agent.ListedByMCP(ctx)
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(listed, name) })
	}
	if !t.Await(ctx, func() bool { return len(missing()) == 0 }) {
		check.BlockedBy(check.Mismatch("tools/list after methods came", fmt.Sprint(names), fmt.Sprintf("a list without %v", missing())), "fresh/ttl-expiry", "mcp/tools-list", "mcp/parity")
	}
	for _, revision := range spoken {
		s := MustMCP(ctx, agent, revision)
		var tool, listing check.Tool
		t.Poll(ctx, func() (listed bool) { // a bridge on stdio is a process for each client, with a cache of its own
			all := MustListTools(ctx, s)
			listing, _ = find(all, t.ToolName(listWrong))
			tool, listed = find(all, t.ToolName(countWrong))
			return listed
		})
		s.CallTool(ctx, t.ToolName(countKept), check.Args{}).MustMeet(match.BeToolResult(), "mcp/*", "invoke/*")
		t.Row(check.Agent, t.ToolName(countWrong), "a result that breaks the outputSchema, in "+string(revision), func() {
			t.Expect(s.CallTool(ctx, t.ToolName(countWrong), check.Args{})).To(keepItsPromise(tool["outputSchema"]))
			t.Expect(s.CallTool(ctx, t.ToolName(listWrong), check.Args{})).To(keepItsPromise(listing["outputSchema"]))
		})
		s.CallTool(ctx, t.ToolName(plainFails), check.Args{}).MustMeet(BeToolError(countFailure), "mcp/execution-error")
		t.Row(check.Agent, t.ToolName(countFails), "a failure of a tool with an outputSchema, in "+string(revision), func() {
			r := s.CallTool(ctx, t.ToolName(countFails), check.Args{})
			t.Expect(r).To(BeToolError(countFailure))
			t.Expect(r).To(keepItsPromise(tool["outputSchema"])) // of the same schema
		})
	}
}

// keepItsPromise matches an error, and a result with structuredContent. Where an error has structuredContent, that has to conform to the
// outputSchema with which the tool is listed, too.
func keepItsPromise(outputSchema any) OmegaMatcher {
	return match.Conform("a result with isError true, or structuredContent that conforms to the outputSchema", func(a *check.Response) string {
		r := toolResultOf(a)
		if outputSchema == nil || r.isError && !r.has || a.RPCCode() != "" {
			return ""
		}
		schema, err := jsonschema.Compile(outputSchema, jsonschema.Draft2020_12)
		switch {
		case err != nil:
			return "the outputSchema " + exact.Short(outputSchema) + ", which " + err.Error()
		case !r.has:
			return "a result without structuredContent: " + a.RPCOutcome()
		}
		if fault := schema.Fault(r.structured); fault != "" {
			return "structuredContent " + exact.Short(r.structured) + ", which breaks the outputSchema " + fault
		}
		return ""
	})
}

// A trace as a client names it: version, trace, the client's own span, flags.
const (
	traceID    = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceState = "bridgecheck=1"
)

func traceContext(ctx context.Context, t *check.T) {
	tool := scenario.KnownTool(ctx, t)
	s := MustMCP(ctx, t.As(check.Agent), check.MCP2026July)
	message := s.Message(1, "tools/call", map[string]any{"name": tool, "arguments": check.Args{}})
	params := message["params"].(map[string]any)
	headers := s.Headers("tools/call", params)
	s.Send(ctx, message, headers).MustMeet(match.BeToolResult(), "mcp/*", "invoke/*")
	meta := params["_meta"].(map[string]any)
	// The flags say that the trace is not sampled: some forward only those that are.
	meta["traceparent"], meta["tracestate"] = "00-"+traceID+"-00f067aa0ba902b7-00", traceState
	traced := func(where string) {
		t.Drupal.Mark()
		r := s.Send(ctx, message, headers)
		t.Expect(r).To(match.BeToolResult(), where)
		t.Expect(r).To(haveTraced(t), where)
	}
	traced("with a trace")
	headers.Set("Traceparent", "00-"+strings.Repeat("5", 32)+"-00f067aa0ba902b7-01")
	traced("with a trace, and another in the HTTP header")
}

// haveTraced matches a tools/call whose call of the site is of the same trace.
func haveTraced(t *check.T) OmegaMatcher {
	return match.Conform("a call of the site with the header traceparent of the same trace", func(*check.Response) string {
		for _, entry := range t.Upstream.Journal() {
			if len(entry.Calls) == 0 {
				continue
			}
			if parent := entry.Header.Get("Traceparent"); !strings.HasPrefix(parent, "00-"+traceID+"-") {
				return fmt.Sprintf("traceparent %q", parent)
			}
			return ""
		}
		return "no call"
	})
}

func orderStable(ctx context.Context, t *check.T) {
	first := MustListTools(ctx, MustMCP(ctx, t.As(check.Agent), check.MCP2026July)).Names()
	for range 3 {
		again := MustListTools(ctx, MustMCP(ctx, t.As(check.Agent), check.MCP2026July)).Names()
		t.Expect(again).To(Equal(first), check.Mismatch("tools/list once more", "the same tools in the same order", match.OtherNames(first, again)))
	}
}
