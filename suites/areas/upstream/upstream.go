// Package upstream checks how a bridge talks to its site: that its calls are valid, and how it handles a site that fails,
// hangs, is down or sends responses that are not JSON-RPC. The faults are armed at the mock or at the recording proxy.
package upstream

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area upstream.
var Checks = []check.Check{
	{ID: "upstream/valid-jsonrpc", Sees: check.Site, ByMCP: true, Run: validJSONRPC, WithoutSite: allowedCallsAreValid},
	{ID: "upstream/eager-validation", Beside: "invoke/invalid-arguments-400", Sees: check.Site, ByMCP: true, Generated: true, Run: eagerValidation},
	{ID: "upstream/pooled", Sees: check.Journal, ByMCP: true, Costly: true, Run: pooled},
	{ID: "upstream/id-mismatch", Sees: check.Site, Run: idMismatch, WithoutSite: allowedIDMismatch},
	{ID: "upstream/http-error", Sees: check.Journal, Run: httpError},
	{ID: "upstream/auth-error", Sees: check.Journal, Guesses: 1, Run: authError},
	{ID: "upstream/timeout", Sees: check.Journal, Run: timeout},
	{ID: "upstream/down-and-up", Sees: check.Journal, Run: downAndUp},
	{ID: "upstream/cancel", Sees: check.Journal, Run: cancel},
	{ID: "upstream/huge-answer", Sees: check.Journal, Run: hugeResponse},
	{ID: "upstream/no-ssrf", Sees: check.Journal, Run: noSSRF},
	{ID: "upstream/post-only", Sees: check.Journal, ByMCP: true, Run: postOnly},
	{ID: "upstream/result-status", Sees: check.Journal, Run: resultStatus},
	{ID: "upstream/excess-bytes", Sees: check.Journal, Run: excessBytes},
	{ID: "upstream/idle-closed", Sees: check.Journal, Run: idleClosed},
	{ID: "upstream/headers-chosen", Sees: check.Journal, Run: headersChosen},
	{ID: "upstream/error-any-status", Sees: check.Site, Run: errorAnyStatus, WithoutSite: allowedErrorAnyStatus},
}

// validJSONRPC looks at the requests before it looks at the responses: a site sends no result to a call without an id.
func validJSONRPC(ctx context.Context, t *check.T) {
	echo := scenario.EchoTool(t)
	known := t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{})
	echoed := t.As(check.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("valid"))
	mixed := slices.DeleteFunc(scenario.Samples(t, check.Agent, fixtures.Value), func(s scenario.Sample) bool { return strings.ToLower(s.ID) == s.ID })
	if len(mixed) > 0 {
		mixed = mixed[:1]
		t.As(check.Agent).Invoke(ctx, mixed[0].Name, mixed[0].Arguments)
	}
	if s, opened := t.MCPBeside(ctx, check.Agent); opened {
		s.CallTool(ctx, scenario.KnownTool(ctx, t), check.Args{})
	}

	calls := 0
	for _, entry := range t.Drupal.Journal() {
		if entry.Route != route.JSONRPC || entry.HTTPMethod != http.MethodPost {
			continue
		}
		calls++
		t.For(check.Identity(entry.User), "", func() { mustBeValidCall(t, entry) })
	}
	if t.HasFindings() {
		return
	}
	known.MustSucceed()
	echoed.MustSucceed()
	t.Expect(calls).To(BeNumerically(">=", 2), check.Mismatch("two invokes", "a POST "+t.CallPath()+" each", fmt.Sprintf("%d", calls)))
	t.Expect(t.Drupal.Calls(echo.ID)).NotTo(BeEmpty(), check.Mismatch(fmt.Sprintf("the invoke of %s", echo.ID), "a call of exactly that method id", match.Abbreviate(match.MethodsOf(t.Drupal.Calls()))))
	for _, tool := range mixed {
		t.Expect(t.Drupal.Calls(tool.ID)).NotTo(BeEmpty(), check.Mismatch(fmt.Sprintf("the invoke of %s", tool.Name), "a call of exactly the method id "+tool.ID, match.Abbreviate(match.MethodsOf(t.Drupal.Calls()))))
	}
}

// allowedCallsAreValid is validJSONRPC for the invocations that the configuration allows.
func allowedCallsAreValid(ctx context.Context, t *check.T) {
	scenario.MustSeeCalls(t)
	for _, call := range scenario.Allowed(t) {
		t.Upstream.Mark()
		r := t.Call(ctx, call)
		t.For(call.Identity, call.Tool, func() {
			for _, entry := range t.Upstream.Journal() {
				if len(entry.Calls) > 0 {
					mustBeValidCall(t, entry)
				}
			}
		})
		if t.HasFindings() {
			return
		}
		r.MustSucceed()
		called := t.Upstream.Calls()
		if len(called) == 0 {
			check.NotTestable("an invoke that succeeded did not pass through the recording proxy: point the bridge at it")
		}
		if t.Claims("naming-id") {
			t.For(call.Identity, call.Tool, func() {
				t.Expect(match.MethodsOf(called)).To(ContainElement(call.Tool),
					check.Mismatch(fmt.Sprintf("the invoke of %s", call.Tool), "a call of exactly that method id",
						match.Abbreviate(match.MethodsOf(called))))
			})
		}
	}
}

func eagerValidation(ctx context.Context, t *check.T) {
	echo := scenario.EchoTool(t)
	t.As(check.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("valid")).MustSucceed()

	newcomer := scenario.NewCaller(t)
	for _, row := range []struct {
		name      string
		caller    check.Client
		arguments check.Args
	}{
		{"a required parameter missing", t.As(check.Agent), check.Args{}},
		{"a wrong type", t.As(check.Agent), echo.Arguments(map[string]any{"no": "string"})},
		{"a wrong type, of 90 KB", t.As(check.Agent), echo.Arguments(map[string]any{"no": strings.Repeat("string", 90<<10/6)})},
		{"a wrong type, in a caller's first request", newcomer, echo.Arguments(map[string]any{"no": "string"})},
	} {
		t.Row(row.caller.Who, t.ToolName(echo.ID), row.name, func() {
			t.Drupal.Mark()
			t.Expect(row.caller.Invoke(ctx, t.ToolName(echo.ID), row.arguments)).To(haveCalledNothing(t.Upstream))
		})
	}
	newcomer.Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("valid")).MustSucceed()
	cases := scenario.BrokenArguments(ctx, t)
	responses := scenario.InvokeCases(ctx, t, cases)
	for i, c := range cases {
		t.For(check.Agent, c.Name, func() { t.Expect(responses.Response(i)).To(haveCalledNothing(t.Upstream, c.ID), c.What) })
	}
	if s, opened := t.MCPBeside(ctx, check.Agent); opened {
		t.Row(check.Agent, t.ToolName(echo.ID), "a wrong type, by tools/call", func() {
			t.Drupal.Mark()
			t.Expect(s.CallTool(ctx, t.ToolName(echo.ID), echo.Arguments(map[string]any{"no": "string"}))).To(haveCalledNothing(t.Upstream))
		})
		sent := map[string]bool{}
		for _, c := range cases {
			if keyword, _, _ := strings.Cut(c.What, " at "); !sent[keyword] {
				sent[keyword] = true
				t.Row(check.Agent, c.Name, c.What+", by tools/call", func() {
					t.Drupal.Mark()
					t.Expect(s.CallTool(ctx, c.Name, c.Value)).To(haveCalledNothing(t.Upstream, c.ID))
				})
			}
		}
	}
	lists := t.ToolName(scenario.Lists)
	if _, shown := t.As(check.Agent).MustListShared(ctx).Find(lists); shown { // what is generated has its members in one order
		long := check.Args{"tags": []any{"w"}, "objects": append(slices.Repeat([]any{map[string]any{"id": 1}}, 300), map[string]any{})}
		t.Row(check.Agent, lists, "an invalid element at the end of a list of 301", func() {
			t.Drupal.Mark()
			t.Expect(t.As(check.Agent).Invoke(ctx, lists, long)).To(haveCalledNothing(t.Upstream, scenario.Lists))
		})
		alike := `{"name":` + string(client.Encode(lists)) + `,"arguments":{"tags":["w"],"unlike":[{"a":1,"b":[]},{"b":[],"a":1}]}}`
		t.Row(check.Agent, lists, "uniqueItems, of objects that differ in the order of their members", func() {
			t.Drupal.Mark()
			t.Expect(t.As(check.Agent).InvokeBody(ctx, []byte(alike))).To(haveCalledNothing(t.Upstream, scenario.Lists))
		})
	}
}

func pooled(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)
	calls := []check.Invocation{call}
	if t.Drupal != nil { // an error may be read by another path than a result, and not to its end
		failing := scenario.Samples(t, check.Agent, fixtures.Fail)
		if i := slices.IndexFunc(failing, func(s scenario.Sample) bool { return len(s.Arguments) == 0 && s.Fails().Code > scenario.RPCDenied }); i >= 0 {
			calls = append(calls, check.AsAgent(failing[i].Name))
		}
	}
	t.Upstream.Mark()
	const invokes, handful, telling = 200, 10, 20
	for n := range invokes {
		if n >= telling && connections(t)*invokes <= handful*n { // as few as all may have, in proportion
			break
		}
		t.Call(ctx, calls[n%len(calls)])
	}
	used := connections(t)
	t.Expect(used).To(BeNumerically("<=", handful), check.Mismatch(fmt.Sprintf("%d invokes in turn", invokes), fmt.Sprintf("at most %d connections to the site", handful), fmt.Sprintf("%d", used)))
}

// connections counts those that calls came by.
func connections(t *check.T) int {
	used := map[int64]bool{}
	for _, entry := range t.Upstream.Journal() {
		if len(entry.Calls) > 0 { // a bridge may send discovery requests at the same time
			used[entry.Conn] = true
		}
	}
	return len(used)
}

func cancel(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)
	invoke := func(leaving context.Context) {
		t.As(call.Identity).Send(leaving, check.Request{Method: http.MethodPost, Path: check.InvokePath, Body: bytes.NewReader(call.Body()), Show: string(call.Body()), Fresh: true})
	}
	expectCancelled(ctx, t, "a caller that disconnects", hangingCalls(), invoke)
	expectCancelled(ctx, t, "a caller that disconnects while half the site's response is there", mockdrupal.Fault{Kind: fault.HangBody, Route: route.JSONRPC}, invoke)
	if t.Claims("mcp-2026") {
		if s := t.As(call.Identity).MCP(ctx, check.MCP2026July); s.Opened.RPCResult() != nil {
			expectCancelled(ctx, t, "a client of MCP 2026-07-28 that disconnects", hangingCalls(), func(leaving context.Context) { s.CallTool(leaving, call.Tool, call.Object()) })
		}
	}
	if t.Claims("mcp") {
		expectNotCancelled(ctx, t, call)
	}
	t.Expect(t.As(call.Identity).List(ctx)).To(match.MatchWhere("a response", func(r *check.Response) bool { return r.Err == nil }), "after a caller disconnected")
}

// expectCancelled expects that the request to the site ends when the caller leaves who sent the one that caused it.
func expectCancelled(ctx context.Context, t *check.T, who string, hangs mockdrupal.Fault, send func(leaving context.Context)) {
	soon := time.Second
	if t.UpstreamTimeout > 0 {
		soon = min(soon, t.UpstreamTimeout/2) // later the bridge's own time-out would end the request
	}
	calls := callsOf(ctx, t, hangs, true, soon, send)
	t.Expect(calls).NotTo(BeEmpty(), check.Mismatch("a call of a method that hangs", "a request at the site", "none"))
	t.Expect(slices.ContainsFunc(calls, isOpen)).To(BeFalse(),
		check.Mismatch(who, "the end of its request to the site", fmt.Sprintf("the request still open %v later", soon)))
}

// expectNotCancelled expects that a call of an MCP session gets the site's response, as where its client waits for that, when its
// client disconnects.
func expectNotCancelled(ctx context.Context, t *check.T, call check.Invocation) {
	for _, revision := range []check.Revision{check.MCP2025November, check.MCP2025June} {
		s := t.As(call.Identity).MCP(ctx, revision)
		if s.Opened.RPCResult() == nil {
			continue
		}
		pause := 500 * time.Millisecond
		if t.UpstreamTimeout > 0 {
			pause = min(pause, t.UpstreamTimeout/3)
		}
		slow := mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Delay: pause}
		send := func(leaving context.Context) { s.CallTool(leaving, call.Tool, call.Object()) }
		isCut := func(e journal.Entry) bool { return !isOpen(e) && e.Status == 0 }
		if waited := callsOf(ctx, t, slow, false, t.Timeout/2, send); len(waited) == 0 || slices.ContainsFunc(waited, isCut) {
			return // without a call that works nothing is known of one whose client has gone
		}
		t.Expect(slices.ContainsFunc(callsOf(ctx, t, slow, true, t.Timeout/2, send), isCut)).To(BeFalse(),
			check.Mismatch("a client of an MCP session that disconnects", "the site's response to its call, which is not cancelled",
				"its request to the site ended before the response"))
		return
	}
}

// isOpen reports whether the site's response has neither been sent nor been given up.
func isOpen(e journal.Entry) bool { return e.End.IsZero() }

// callsOf sends what causes calls at a site that is slow, disconnects as soon as the site has one if leaves is set, and returns the
// calls when they have ended, or after the time.
func callsOf(ctx context.Context, t *check.T, slow mockdrupal.Fault, leaves bool, within time.Duration,
	send func(leaving context.Context)) (calls []journal.Entry) {
	defer t.Upstream.Arm(slow)()
	t.Upstream.Mark()
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	gone := make(chan struct{})
	go func() {
		defer t.Recover()
		defer close(gone)
		send(leaving)
	}()
	read := func() []journal.Entry { // a bridge may discover first
		calls = slices.DeleteFunc(t.Upstream.Journal(), func(e journal.Entry) bool { return e.Route != route.JSONRPC })
		return calls
	}
	if check.Within(ctx, t.Timeout/2, func() bool { return len(read()) > 0 }); leaves || len(calls) == 0 {
		leave()
	}
	<-gone
	check.Within(ctx, within, func() bool { return !slices.ContainsFunc(read(), isOpen) })
	return calls
}

// siteCookie is a cookie that the site sets in its responses to the bridge.
const siteCookie = "bridgecheck_site"

// headersChosen lists and calls with headers that are meant for the bridge, while the site's own are meant for it, too.
func headersChosen(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)
	sent := http.Header{"Range": {"bytes=0-3"}, "If-None-Match": {`"bridgecheck"`}, "X-Http-Method-Override": {http.MethodGet}, "X-Forwarded-Host": {"elsewhere.invalid"}}
	if !t.Claims("auth-cookie") {
		sent.Set("Cookie", "SESSbridgecheck=none")
	}
	t.ExpireCaches()
	disarm := t.Upstream.Arm(mockdrupal.Fault{Kind: fault.SetCookie, Cookie: siteCookie + "={seq}; Path=/"})
	t.Upstream.Mark()
	responses := []*check.Response{
		t.As(call.Identity).Send(ctx, check.Request{Path: check.ListPath, Header: sent}),
		t.As(call.Identity).Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Header: sent,
			Body: bytes.NewReader(call.Body()), Show: string(call.Body())}),
	}
	disarm()
	reached := t.Upstream.Journal()
	if len(reached) == 0 {
		check.NotTestable("no list and no call with headers that are meant for the bridge reaches the site")
	}
	t.Row(call.Identity, "", "Host", func() {
		for _, entry := range reached {
			own := t.Host() == t.Hostname() || !strings.EqualFold(entry.Host, t.Host()) // without a port the site may have the same
			t.Expect(own).To(BeTrue(), check.Mismatch("a request to the bridge's host", "requests to the site with the site's own Host",
				entry.HTTPMethod+" "+entry.Path+" with Host: "+entry.Host))
		}
	})
	t.Row(call.Identity, "", "a cookie that the site sets", func() {
		for _, r := range responses {
			t.Expect(r).To(match.ConformHeader("Set-Cookie", "no cookie of the site", func(r *check.Response) string {
				if set := strings.Join(r.Header.Values("Set-Cookie"), ", "); strings.Contains(set, siteCookie) {
					return set
				}
				return ""
			}))
		}
	})
	for name := range check.InOrder(sent) {
		t.Row(call.Identity, "", name, func() {
			for _, entry := range reached {
				t.Expect(entry.Header.Values(name)).To(BeEmpty(), check.Mismatch("a request with the header "+name, "requests to the site without it", entry.HTTPMethod+" "+entry.Path+" with it"))
			}
		})
	}
}

func postOnly(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)
	if s, opened := t.MCPBeside(ctx, call.Identity); opened {
		s.CallTool(ctx, call.Tool, call.Object())
	}
	want := http.MethodPost + " " + t.CallPath()
	for _, entry := range t.Upstream.Journal() {
		if len(entry.Calls) == 0 {
			continue
		}
		t.Expect(entry.HTTPMethod+" "+entry.Path).To(Equal(want),
			check.Mismatch("a method call", want, fmt.Sprintf("%s %s?%s", entry.HTTPMethod, entry.Path, exact.Cut(entry.RawQuery, 80))))
	}
	t.Expect(t.Upstream.Calls()).NotTo(BeEmpty(), check.Mismatch("an invoke that succeeded", "its call at the site", "none"))
}
