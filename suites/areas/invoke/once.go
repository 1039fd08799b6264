package invoke

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// runsOnceElsewhere calls a tool otherwise than the agent does at the three endpoints: in other ways, and by MCP in every revision.
func runsOnceElsewhere(ctx context.Context, t *check.T) {
	var revisions []check.Revision
	if t.Claims("mcp") && !t.Alone() {
		revisions = append(revisions, check.MCP2025November, check.MCP2025June)
		if t.Claims("mcp-2026") {
			revisions = append(revisions, check.MCP2026July)
		}
	}
	test := func(way scenario.Way, how string, call func(tool scenario.Sample) *check.Response) {
		counted := scenario.Samples(t, way.Who, fixtures.Count, fixtures.Value)
		if len(counted) == 0 {
			return
		}
		t.Row(way.Who, counted[0].Name, way.Name+how, func() {
			t.Drupal.Mark()
			if r := call(counted[0]); r != nil && !r.IsError() { // else access/credentials-forwarded or mcp/initialize fails
				t.Expect(r).To(match.HaveRun(t.Upstream, counted[0].ID, 1))
			}
		})
	}
	byMCP := func(way scenario.Way, revision check.Revision) {
		test(way, " by tools/call in "+string(revision), func(tool scenario.Sample) *check.Response {
			if s := way.MCP(ctx, revision); s.Opened.RPCResult() != nil {
				return s.CallTool(ctx, tool.Name, tool.Arguments)
			}
			return nil
		})
	}
	for _, revision := range revisions {
		byMCP(scenario.Way{Client: t.As(check.Agent), Name: "the agent"}, revision)
	}
	for i, way := range scenario.OtherWays(t) {
		test(way, "", func(tool scenario.Sample) *check.Response { return way.Invoke(ctx, tool.Name, tool.Arguments) })
		if len(revisions) > 0 {
			byMCP(way, revisions[i%len(revisions)])
		}
	}
}

func runsOnce(ctx context.Context, t *check.T) {
	tool := scenario.MustFind(t, check.Agent, fixtures.Count)[0]
	t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
	tools := scenario.Samples(t, check.Agent, fixtures.Echo, fixtures.Value, fixtures.Count, fixtures.Fail, fixtures.Throw)
	responses := scenario.InvokeEach(ctx, t, check.Agent, tools)
	refused := map[string]bool{} // invoke/answers-result tests that
	for i, s := range tools {
		t.For(check.Agent, s.Name, func() {
			r := responses.Response(i)
			if r.Status/100 == 4 && len(t.Upstream.Runs(s.ID)) == 0 {
				refused[s.Name] = true
				return
			}
			t.Expect(r).To(match.HaveRun(t.Upstream, s.ID, 1))
		})
	}
	if tool, sent := manyArguments(ctx, t); len(sent) > 0 {
		t.Row(check.Agent, tool.Name, "with several arguments", func() {
			t.Drupal.Mark()
			t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, sent)).To(match.HaveRun(t.Upstream, tool.ID, 1))
		})
	}
	runsOnceElsewhere(ctx, t)
	invokeDuring := func(tool scenario.Sample, f scenario.SiteFailure) {
		f.Fault.Route, f.Fault.Method, f.Fault.Run = route.JSONRPC, tool.ID, true
		t.Row(check.Agent, tool.Name, "the site sends "+f.Name, func() {
			defer t.Drupal.Arm(f.Fault)()
			t.Drupal.Mark()
			t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(haveReachedOnce(t.Upstream, tool.ID))
		})
		scenario.WaitRecovered(ctx, t, scenario.MustRun(ctx, t))
	}
	for _, f := range afterTheRun {
		invokeDuring(tool, f)
	}
	for _, f := range []scenario.SiteFailure{closed, badGateway} {
		if !t.Claims("mcp") || t.Alone() {
			break
		}
		f.Fault.Route, f.Fault.Method, f.Fault.Run = route.JSONRPC, tool.ID, true
		t.Row(check.Agent, tool.Name, "the site sends "+f.Name+" for a tools/call", func() {
			defer t.Drupal.Arm(f.Fault)()
			t.Drupal.Mark()
			if r := callByMCP(ctx, t.As(check.Agent), tool.Name, tool.Arguments); r != nil { // mcp/initialize tests that a session opens
				t.Expect(r).To(haveReachedOnce(t.Upstream, tool.ID))
			}
		})
		scenario.WaitRecovered(ctx, t, scenario.MustRun(ctx, t))
	}
	for i, other := range oneOfEachHint(t) {
		failures := []scenario.SiteFailure{reset, closed}
		if i == 0 { // read-only, most likely: what a client may repeat
			failures = afterTheRun[:10] // to invalid JSON; the others are no failures that clients repeat
		}
		for _, f := range failures {
			if refused[other.Name] {
				break
			}
			invokeDuring(other, f)
		}
	}
	slow := tool
	if hinted := oneOfEachHint(t)[0]; !refused[hinted.Name] { // a read-only tool may be asked twice while the first call lasts
		slow = hinted
	}
	if t.UpstreamTimeout > 0 { // else it is not known how long the bridge waits for a site that hangs
		invokeDuring(slow, scenario.SiteFailure{Name: "no response within the upstream time-out", Fault: mockdrupal.Fault{Kind: fault.Hang}})
	}
	whileItEnds(ctx, t, slow)
}

// How whileItEnds waits.
const (
	running = 500 * time.Millisecond // how long the method takes
	ending  = time.Second            // for the bridge to end by itself; a request that it sends again comes within this time
)

// whileItEnds tests that a bridge that has to end does not send the calls that are under way once more.
func whileItEnds(ctx context.Context, t *check.T, tool scenario.Sample) {
	if !t.MoveApart(ctx) {
		return
	}
	c := t.As(check.Agent)
	if !c.Invoke(ctx, tool.Name, tool.Arguments).Succeeded() {
		return // two processes of it may be in each other's way
	}
	defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Delay: running, Run: true, Route: route.JSONRPC, Method: tool.ID})()
	t.Drupal.Mark()
	called := make(chan *check.Response, 1)
	go func() {
		defer close(called)
		defer t.Recover()
		called <- c.Invoke(ctx, tool.Name, tool.Arguments)
	}()
	time.Sleep(running / 2)
	if t.Apart.Stop(ending); len(t.Upstream.Calls(tool.ID)) == 0 {
		return // it was not under way
	}
	if r := <-called; r != nil {
		t.Row(check.Agent, tool.Name, "the bridge gets SIGTERM meanwhile", func() { t.Expect(r).To(haveReachedOnce(t.Upstream, tool.ID)) })
	}
}

func notCached(ctx context.Context, t *check.T) {
	for _, tool := range oneOfEachHint(t) {
		t.For(check.Agent, tool.Name, func() {
			t.Drupal.Mark()
			first := t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			second := t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			t.Expect(second).To(match.HaveRun(t.Upstream, tool.ID, 2), "two equal invokes")
			if t.Alone() {
				return // MCP asks nothing of the headers
			}
			t.Expect(first).To(forbidStoring())
			t.Expect(second).To(forbidStoring())
		})
	}
	equalAtOnce(ctx, t)
	failing := scenario.Failing(t)[0]
	t.For(check.Agent, failing.Name, func() {
		t.Drupal.Mark()
		t.As(check.Agent).Invoke(ctx, failing.Name, failing.Arguments)
		again := t.As(check.Agent).Invoke(ctx, failing.Name, failing.Arguments)
		t.Expect(again).To(match.HaveRun(t.Upstream, failing.ID, 2), "two equal invokes that fail")
		if !t.Alone() {
			t.Expect(again).To(forbidStoring())
		}
	})
}

// equalAtOnce tests that two equal calls at one time are two calls.
func equalAtOnce(ctx context.Context, t *check.T) {
	tool := oneOfEachHint(t)[0]
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Delay: together, Route: route.JSONRPC, Method: tool.ID})
	t.Drupal.Mark()
	responses := make([]*check.Response, 2)
	check.AtOnce(len(responses), func(i int) { responses[i] = t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments) })
	disarm()
	t.For(check.Agent, tool.Name, func() {
		if responses[0].Succeeded() && responses[1].Succeeded() {
			t.Expect(responses[1]).To(match.HaveRun(t.Upstream, tool.ID, 2), "two equal invokes at one time")
		}
	})
}

// together is how long the site takes for calls that are to be under way at one time.
const together = 150 * time.Millisecond

// Failures of the site after the method has run: a bridge that sends the request again runs it twice.
var (
	reset      = scenario.SiteFailure{Name: "a connection reset after the request was read", Fault: mockdrupal.Fault{Kind: fault.Reset}}
	closed     = scenario.SiteFailure{Name: "a connection closed without a response", Fault: mockdrupal.Fault{Kind: fault.Close}}
	badGateway = scenario.SiteFailure{Name: "502", Fault: mockdrupal.Fault{Kind: fault.HTML, Status: http.StatusBadGateway}}
)

// afterTheRun are all of them.
var afterTheRun = []scenario.SiteFailure{
	reset,
	closed,
	{Name: "a connection closed in the middle of the response", Fault: mockdrupal.Fault{Kind: fault.Cut}},
	{Name: "500", Fault: mockdrupal.Fault{Kind: fault.Status, Status: http.StatusInternalServerError, Body: `{"message":"down"}`}},
	badGateway,
	{Name: "503 with Retry-After", Fault: mockdrupal.Fault{Kind: fault.Status, Status: http.StatusServiceUnavailable}},
	{Name: "503 without Retry-After", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: http.StatusServiceUnavailable}},
	{Name: "504", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: http.StatusGatewayTimeout}},
	{Name: "429 with Retry-After", Fault: mockdrupal.Fault{Kind: fault.Status, Status: http.StatusTooManyRequests}},
	{Name: "invalid JSON", Fault: mockdrupal.Fault{Kind: fault.Garbage}},
	{Name: "a response with another id", Fault: mockdrupal.Fault{Kind: fault.WrongID}},
	{Name: "a response with neither result nor error", Fault: mockdrupal.Fault{Kind: fault.Neither}},
	{Name: "an empty 200", Fault: mockdrupal.Fault{Kind: fault.Empty}},
	{Name: "a redirect to itself that keeps the method", Fault: mockdrupal.Fault{Kind: fault.Redirect, Status: http.StatusTemporaryRedirect, Location: "/jsonrpc"}},
}

// oneOfEachHint returns one tool of each kind that a bridge could treat differently: with the hint readOnlyHint, with
// idempotentHint, and without annotations.
func oneOfEachHint(t *check.T) []scenario.Sample {
	tools := scenario.MustFind(t, check.Agent, fixtures.Value, fixtures.Echo, fixtures.Count)
	says := func(hint string) func(scenario.Sample) bool {
		return func(s scenario.Sample) bool { return s.MCP != nil && strings.Contains(string(s.MCP.Annotations), hint) }
	}
	without := func(s scenario.Sample) bool { return s.MCP != nil && s.MCP.Annotations == nil }
	var chosen []scenario.Sample
	for _, is := range []func(scenario.Sample) bool{says(`"readOnlyHint":true`), says(`"idempotentHint":true`), without} {
		if i := slices.IndexFunc(tools, is); i >= 0 {
			chosen = append(chosen, tools[i])
		}
	}
	if len(chosen) == 0 {
		return tools[:1]
	}
	return chosen
}

// forbidStoring matches a response whose Cache-Control keeps shared caches from storing it.
func forbidStoring() OmegaMatcher {
	return match.ConformHeader("Cache-Control", "Cache-Control with no-store, no-cache or private", func(r *check.Response) string {
		if scenario.ForbidsStoring(r) {
			return ""
		}
		return "Cache-Control " + scenario.Quoted(r.Header.Values("Cache-Control"))
	})
}
