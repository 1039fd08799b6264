package upstream

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func timeout(ctx context.Context, t *check.T) {
	if t.UpstreamTimeout == 0 && !t.Measures() {
		check.NotTestable(unknownLimit)
	}
	call := mustRunAnyResult(ctx, t)
	mustReach(ctx, t, call)
	addresses := scenario.LocalAddresses(t)
	wait := t.UpstreamTimeout
	if t.Measures() { // then what was given may be a guess
		wait = check.Measuring
		defer t.AllowTime(wait + slack)()
	}
	limit := wait + slack
	hangs := []scenario.SiteFailure{ // not five, after which circuit breakers open
		{Name: "no headers", Fault: mockdrupal.Fault{Kind: fault.Result, Route: route.JSONRPC, Body: `"` + lateResult + `"`, Delay: 2*limit + t.Timeout}},
		{Name: "half a body under HTTP 400", Fault: mockdrupal.Fault{Kind: fault.HangBody, Route: route.JSONRPC, Status: http.StatusBadRequest}}, // as of an error, which has to be read
		{Name: "a body that comes byte by byte", Fault: mockdrupal.Fault{Kind: fault.Drip, Route: route.JSONRPC, Delay: limit / 16}},
		{Name: "no connection", Fault: mockdrupal.Fault{Kind: fault.Deaf, Delay: 2*limit + t.Timeout}},
	}
	overMCP := callByMCPThatHangs(ctx, t, wait)
	beside, hanging := listBesideHanging(ctx, t, wait)
	scenario.WaitRecovered(ctx, t, call)                           // right before, so that a bridge that repeats its last response is seen
	responses, serving := callsThatHang(ctx, t, hangs, call, wait) // while the list still hangs
	var hung []*check.Response
	if beside != nil {
		hung = hanging()
	}
	called := overMCP()
	if t.Measures() {
		measured := time.Duration(0)
		if r := responses[0]; r != nil && r.Err == nil {
			measured = r.Took
		}
		if t.NoteUpstreamTimeout(measured) == 0 {
			check.NotTestable(unknownLimit)
		}
		limit = t.UpstreamTimeout + slack
	}
	t.Row(call.Identity, call.Tool, "credentials of the request to the site", func() {
		for _, r := range responses {
			expectNoCredentials(t, r, "while the site hangs")
			if r != nil {
				t.Expect(r).NotTo(scenario.NameTheSite(addresses), "while the site hangs (invoke/no-trace-leak)")
			}
		}
	})
	if beside != nil {
		t.Row(beside.Who, "", "list for a caller never seen, while discovery hangs for another", func() {
			within := t.UpstreamTimeout / 2
			if beside.Took > within { // a bridge may take its time for a list alone
				within += newcomer(t).List(ctx).Took
			}
			t.Expect(beside).To(comeWithin(t, within))
		})
		for i, r := range hung {
			if r != nil {
				t.Row(r.Who, "", "list for a caller never seen, while the site hangs"+[]string{"", " within the body", " and sends byte by byte"}[i],
					func() { t.Expect(r).To(refuseHanging(t, limit)) })
			}
		}
	}
	if called != nil {
		t.Row(called.Who, "", "tools/call while the site hangs", func() {
			t.Expect(called).To(match.MatchWhere("a response", func(r *check.Response) bool { return r.Err == nil }))
			t.Expect(called).To(comeWithin(t, limit))
		})
	}
	refusal := func(f scenario.SiteFailure, limit time.Duration) types.GomegaMatcher {
		if f.Fault.Kind == fault.Deaf {
			return refuseHanging(t, limit)
		}
		return refuseHangingCall(t, limit)
	}
	refused := 0
	for i, r := range responses {
		if r != nil && scenario.Falsify(r, refusal(hangs[i], limit)) == nil {
			refused++
		}
	}
	if serving && refused == len(hangs) {
		return
	}
	t.ExpireCaches() // the list of the next call is new, so that no discovery comes between
	scenario.WaitRecovered(ctx, t, call)
	for _, f := range hangs { // one after the other, to find out which it is
		disarm, err := t.Upstream.TryArm(f.Fault)
		if err != nil && f.Fault.Kind != fault.Deaf {
			panic(fmt.Sprintf("a check arms an impossible fault: %v", err))
		}
		if err != nil { // not every system can show it, nor a mock that does not listen by itself
			continue
		}
		within := limit
		if f.Fault.Kind == fault.Deaf && listMayHaveExpired(t) {
			within += t.UpstreamTimeout // discovery may hang before the call
		}
		t.Row(call.Identity, "", "a site that hangs with "+f.Name, func() {
			defer disarm()
			t.Expect(t.Call(ctx, call)).To(refusal(f, within))
		})
		if !serves(ctx, t, call) {
			scenario.WaitRecovered(ctx, t, call)
		}
	}
}

// lateResult comes, when the fault ends, as the response to a call that the bridge has given up. A bridge that uses the connection
// again reads it as the response to its next call.
const lateResult = "SITE-LATE-9c42"

// serves reports whether the bridge serves once the site is well. Its first response must not be the one that another call waited for.
func serves(ctx context.Context, t *check.T, call check.Invocation) bool {
	r := t.Call(ctx, call)
	t.Row(call.Identity, call.Tool, "the call after one for which the site took too long", func() {
		t.Expect(r).To(match.Conform("its own result", func(r *check.Response) string {
			if bytes.Contains(r.Body, []byte(lateResult)) {
				return "the result of the call before it, which came late"
			}
			return ""
		}))
	})
	return r.Succeeded() || scenario.Recovers(ctx, t, call).IsZero()
}

// slack is how much later than its time-out a bridge may respond.
const slack = 1500 * time.Millisecond

const unknownLimit = "how long the bridge waits for the site is unknown: give --upstream-timeout"

// listMayHaveExpired reports whether the bridge's list is so old, where a site takes its time, that the next call needs another.
func listMayHaveExpired(t *check.T) bool {
	kept := t.KeepsFor()
	if t.Advance != nil || kept == 0 {
		return !t.Claims("discovery-cache") // then it may ask for one each time
	}
	if t.Several() { // of which another may have asked for the list that the journal shows
		return true
	}
	return !slices.ContainsFunc(t.Upstream.Recorder.Journal().Entries(0), func(e journal.Entry) bool {
		return e.Route == route.Methods && time.Since(e.Start) < kept*3/4
	})
}

func hangingCalls() mockdrupal.Fault {
	return mockdrupal.Fault{Kind: fault.Hang, Route: route.JSONRPC}
}

// callByMCPThatHangs calls a method that hangs for a caller never seen over MCP, while the check goes on. What it returns waits for
// the response; nil: no call hangs.
func callByMCPThatHangs(ctx context.Context, t *check.T, wait time.Duration) func() (hung *check.Response) {
	none := func() *check.Response { return nil }
	if t.Drupal == nil {
		return none
	}
	tools, stranger := scenario.Samples(t, check.Agent, fixtures.Count), newcomer(t)
	s, opened := t.MCPBeside(ctx, stranger.Who)
	if !opened || len(tools) == 0 {
		return none
	}
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Hang, Route: route.JSONRPC, Method: tools[0].ID, User: string(stranger.Who)})
	t.Upstream.Mark()
	var hung *check.Response
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer t.Recover()
		hung = s.CallTool(ctx, tools[0].Name, tools[0].Arguments)
	})
	reached := check.Within(ctx, min(wait/4, fastEnough), func() bool {
		return slices.ContainsFunc(t.Upstream.Journal(), func(e journal.Entry) bool { return e.Route == route.JSONRPC })
	})
	return func() *check.Response {
		waiting.Wait()
		disarm()
		if !reached { // mcp/parity tests that it can be called
			return nil
		}
		return hung
	}
}

// listBesideHanging lists for two callers never seen while discovery hangs for them, before the headers and in the body, and for
// another such caller meanwhile. It returns the other's response of the round of three in which it came fastest, as the machine may be
// busy, and waits for those that hang; nil where discovery cannot hang for one caller alone: a list that is the same for all callers
// may be stale.
func listBesideHanging(ctx context.Context, t *check.T, wait time.Duration) (fastest *check.Response, hanging func() []*check.Response) {
	if t.Drupal == nil || t.ShowsAll() {
		return nil, nil
	}
	for range 3 {
		r, hung := listsAtOnce(ctx, t, wait)
		if fastest == nil || r.Took < fastest.Took {
			fastest, hanging = r, hung
		}
		if fastest.Took < min(wait/2, fastEnough) {
			break
		}
		hung()
	}
	return fastest, hanging
}

// fastEnough is a list that does not wait for another caller's, whatever the time-out of the bridge.
const fastEnough = 2 * time.Second

// listsAtOnce is a round of listBesideHanging. A list that hangs is nil where it was never sent.
func listsAtOnce(ctx context.Context, t *check.T, wait time.Duration) (beside *check.Response, hanging func() []*check.Response) {
	var waiting sync.WaitGroup
	kinds := []mockdrupal.Fault{{Kind: fault.Hang}, {Kind: fault.HangBody}, {Kind: fault.Drip, Delay: max(wait, fastEnough) / 16}}
	hung := make([]*check.Response, len(kinds))
	var disarms []func()
	t.Upstream.Mark()
	for i, hangs := range kinds {
		stranger := newcomer(t)
		hangs.Route, hangs.User = route.Methods, string(stranger.Who)
		disarms = append(disarms, t.Drupal.Arm(hangs))
		waiting.Go(func() {
			defer t.Recover()
			hung[i] = stranger.List(ctx)
		})
	}
	other := newcomer(t)
	check.Within(ctx, min(wait/4, fastEnough), func() bool { return len(t.Upstream.Journal()) >= len(kinds) })
	beside = other.List(ctx)
	return beside, func() []*check.Response {
		waiting.Wait()
		for _, disarm := range disarms {
			disarm()
		}
		return hung
	}
}

// newcomer is a caller that the bridge has never seen, with the agent's permissions.
func newcomer(t *check.T) check.Client {
	return t.As(t.Drupal.NewUser(t.Permissions(check.Agent)...))
}

// callsThatHang sends a call for each way in which the site may hang, all at one time, and returns their responses, nil where it
// could not, and whether the bridge serves when they have ended.
func callsThatHang(ctx context.Context, t *check.T, hangs []scenario.SiteFailure, call check.Invocation,
	wait time.Duration) (responses []*check.Response, serving bool) {
	var calls sync.WaitGroup
	responses = make([]*check.Response, len(hangs))
	var disarms []func()
	t.Upstream.Mark()
	for i, f := range hangs {
		if f.Fault.Kind != fault.Deaf { // which is armed last, and meets no request but its own
			f.Fault.Count = 1
		}
		disarm, err := t.Upstream.TryArm(f.Fault)
		if err != nil {
			break
		}
		disarms = append(disarms, disarm)
		calls.Go(func() {
			defer t.Recover()
			responses[i] = t.Call(ctx, call)
		})
		if f.Fault.Kind != fault.Deaf && !callsReachSite(t, i+1, min(wait/2, 2*fastEnough)) { // with the last one nothing does
			break
		}
	}
	calls.Wait()
	for i, disarm := range disarms {
		if i > 0 {
			disarm()
		}
	}
	// A bridge that sends its next call on a connection whose response is due has that response once the first fault ends.
	if len(disarms) > 0 {
		time.AfterFunc(lateBy, disarms[0])
		defer disarms[0]()
	}
	return responses, serves(ctx, t, call) // before the next request, whatever came
}

// lateBy is how long a late response is behind the next call.
const lateBy = 100 * time.Millisecond

// callsReachSite waits until so many calls have reached the site since the last Mark. One call must not wait for another.
func callsReachSite(t *check.T, n int, limit time.Duration) bool {
	for until := time.Now().Add(limit); callsAtSite(t) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// callsAtSite counts the requests for JSON-RPC since the last Mark, including those that hang.
func callsAtSite(t *check.T) int {
	calls := 0
	for _, entry := range t.Upstream.Journal() {
		if entry.Route == route.JSONRPC {
			calls++
		}
	}
	return calls
}

func downAndUp(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	mustCallSiteThatIsUp(ctx, t, call)
	if t.Drupal != nil {
		t.As(check.Agent).MustListShared(ctx) // the positive control of the lists
	} else {
		scenario.MustReach(ctx, t, call)
	}
	const breaks = 8 // failures in a row that open a circuit breaker, as most count
	const down, atOnce = 10 * time.Second, 1200 * time.Millisecond
	var stranger check.Client
	if t.Drupal != nil {
		stranger = newcomer(t)
	}
	began := time.Now()
	reopen, err := t.Upstream.TryArm(mockdrupal.Fault{Kind: fault.Refuse, Delay: down})
	if err != nil {
		check.NotTestable("a site that is down cannot be simulated: " + err.Error())
	}
	type row struct {
		name string
		send func() *check.Response
	}
	rows := []row{{"invoke", func() *check.Response { return t.Call(ctx, call) }}}
	if t.Drupal != nil {
		another := newcomer(t)
		rows = append(rows, row{"list for a caller never seen", func() *check.Response { return stranger.List(ctx) }},
			row{"invoke by a caller never seen", func() *check.Response { return another.InvokeBody(ctx, call.Body()) }})
	}
	for _, row := range rows {
		r := row.send()
		if time.Since(began) > down && r.Took < down/2 {
			t.TooSlow("the machine was too slow: the site was up again before the requests were sent")
		}
		t.Row(r.Who, "", row.name+" while the site is down", func() {
			t.Expect(r).To(match.BeRefusedWith(502, 503, 500))
			t.Expect(r).NotTo(match.HoldTrace())
			expectNoCredentials(t, r, "while the site is down")
			t.Expect(r).To(comeWithin(t, atOnce))
		})
	}
	check.AtOnce(breaks, func(int) { t.Call(ctx, call) })
	reopen()
	t.Row(check.Agent, "", "the site is back", func() {
		t.Expect(scenario.Recovers(ctx, t, call)).To(check.BeNone())
		if t.Drupal != nil {
			t.Expect(stranger.List(ctx)).To(match.HaveStatus(200))
		}
	})
}

// expectNoCredentials expects that the response to a request that failed does not show the credentials with which the bridge sent it
// to the site; nil: there is none.
func expectNoCredentials(t *check.T, r *check.Response, when string) {
	if r != nil {
		own, _ := t.CredentialsOf(r.Who)
		t.Expect(r).NotTo(match.HoldSecret(own.Secrets()), when+" (access/credentials-kept-secret)")
	}
}

// mustCallSiteThatIsUp is the positive control of down-and-up. A bridge that refuses a call without any request to a site
// that is up has not recovered from a fault of an earlier check: that breaks this clause.
func mustCallSiteThatIsUp(ctx context.Context, t *check.T, call check.Invocation) {
	t.Upstream.Mark()
	r := t.Call(ctx, call)
	if r.Succeeded() {
		return
	}
	fault := scenario.Recovers(ctx, t, call)
	if fault.IsZero() {
		return
	}
	if unavailable, _ := match.BeRefusedWith(500, 502, 503, 504).Match(r); unavailable && len(t.Upstream.Calls()) == 0 {
		t.Blame(r)
		t.Fail(check.Mismatch(r.Subject()+", while the site is up", "a call to the site", r.Outcome()+", and no call"))
	}
	check.BlockedBy(fault.About("the positive control"), "invoke/answers-result")
}
