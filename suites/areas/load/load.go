// Package load checks a bridge with many callers and many tools. It measures ratios, never seconds.
package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area load.
var Checks = []check.Check{
	{ID: "load/concurrent-exact", Sees: check.Site, Costly: true, Run: concurrentExact, WithoutSite: allowedConcurrentExact},
	{ID: "load/slow-method-isolated", Sees: check.Site, Costly: true, Run: slowMethodIsolated, WithoutSite: allowedSlowIsolated},
	{ID: "load/large-catalogue", Sees: check.Site, Costly: true, Run: largeCatalogue},
	{ID: "load/discovery-budget", Sees: check.Site, Costly: true, Run: discoveryBudget},
	{ID: "load/cold-list", Sees: check.Site, Costly: true, Run: coldList},
}

// The size of load/concurrent-exact: 128 invokes. What makes responses change places is how many are in progress, not how many were
// before.
const callers, each = 64, 2

// echo is a tool whose result is its arguments, one of which is a text of choice.
type echo struct {
	tool, method string
	arguments    func(text string) check.Args
	reached      func(methods ...string) []mockdrupal.Call // what came to the site of its calls
	slow         *mockdrupal.Fault                         // makes it slow; nil: it is so already
}

// mustBear ends a check that makes so many calls at a time where a real site would have to bear them.
func mustBear(t *check.T, calls int) {
	if t.Upstream.Proxy {
		check.NotTestable(fmt.Sprintf("it makes %d calls at a time, and how many the real site bears is not known: put the mock Drupal behind the bridge", calls))
	}
}

func concurrentExact(ctx context.Context, t *check.T) {
	mustBear(t, callers)
	method := scenario.EchoTool(t)
	e := echo{t.ToolName(method.ID), method.ID, func(text string) check.Args { return method.Arguments(text) }, t.Upstream.Runs,
		&mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Method: method.ID, Delay: 20 * time.Millisecond}}
	t.As(check.Agent).Invoke(ctx, e.tool, e.arguments("control")).MustSucceed()
	clients := make([]check.Client, callers)
	for i, who := range t.Drupal.NewUsers(callers, t.Permissions(check.Agent)...) {
		clients[i] = t.As(who)
	}
	e.testConcurrently(ctx, t, clients)
}

// testConcurrently invokes the tool by all clients at the same time, each time with another text.
func (e echo) testConcurrently(ctx context.Context, t *check.T, clients []check.Client) {
	t.Upstream.Mark()
	var mu sync.Mutex
	accepted := map[string]bool{}
	failed := map[string]bool{}
	failures := map[string][]outcome{}
	check.AtOnce(callers, func(i int) {
		for n := range each {
			text := fmt.Sprintf("caller %d, call %d", i, n)
			if i%8 > 0 { // larger than the buffers that are usual
				text += strings.Repeat(fmt.Sprintf(", %d", i), map[bool]int{true: 12_000, false: 2500}[i%2 == 0])
			}
			r := scenario.Delivered(ctx, t, func() *check.Response { return clients[i].Invoke(ctx, e.tool, e.arguments(text)) })
			if r.Status == 0 && r.Err != client.ErrTimeout && t.Front() != nil && !e.ran(text) {
				// A busy proxy closes idle connections, one of them under a request that is on its way (RFC 9112 section 9.3.1).
				r = scenario.Delivered(ctx, t, func() *check.Response { return clients[i].Invoke(ctx, e.tool, e.arguments(text)) })
			}
			kind := kindOf(r, e.arguments(text))
			mu.Lock()
			accepted[text] = kind != refusals
			if kind != "" {
				failed[text] = true
				failures[kind] = append(failures[kind], outcome{r, text})
			}
			mu.Unlock()
		}
	})
	if len(failures) > 0 && failures[mixUps] == nil && failures[changes] == nil {
		t.ExemptIfLate()
	}
	for kind, all := range check.InOrder(failures) {
		t.Row(all[0].Who, e.tool, fmt.Sprintf("%d %s among %d invokes at once", len(all), kind, callers*each), func() {
			t.Blame(all[0].Response)
			want := exact.MustParse(client.Encode(e.arguments(all[0].sent)))
			got := all[0].Outcome() + advice[kind]
			if result, _ := all[0].Member("result"); match.EncodedTwice(want, result) != "" {
				got = match.EncodedTwice(want, result) + ": " + all[0].Outcome()
			}
			found := check.Mismatch(all[0].Subject(), "200 with the result "+exact.Short(want), got)
			found.Withheld = kind != mixUps
			t.Fail(found)
		})
	}
	ran := map[string]int{}
	for _, call := range e.reached(e.method) {
		if params, err := exact.Parse(call.Params); err == nil {
			ran[string(client.Encode(params))]++
		}
	}
	for text, taken := range check.InOrder(accepted) {
		if taken && !failed[text] { // else it is reported above
			n := ran[string(client.Encode(e.arguments(text)))]
			t.Row(clients[0].Who, e.tool, "runs", func() {
				t.Expect(n).To(Equal(1), check.Mismatch(fmt.Sprintf("invoke %s with %s", e.tool, exact.Short(text)), "it to run once", fmt.Sprintf("%d runs", n)))
			})
		}
	}

	const equal = 4
	if e.slow != nil {
		t.Upstream.Arm(*e.slow)
	}
	t.Upstream.Mark()
	responses := make([]*check.Response, equal)
	check.AtOnce(equal, func(i int) {
		responses[i] = scenario.Delivered(ctx, t, func() *check.Response { return clients[0].Invoke(ctx, e.tool, e.arguments("equal")) })
	})
	given := len(slices.DeleteFunc(responses, func(a *check.Response) bool { return a.Status != http.StatusOK }))
	runs := len(e.reached(e.method))
	t.Row(clients[0].Who, e.tool, "equal invokes", func() {
		t.Expect(runs).To(BeNumerically(">=", given), check.Mismatch(fmt.Sprintf("%d results of equal invokes of one caller at once", given), "as many runs", fmt.Sprintf("%d", runs)))
	})
}

// ran reports whether the call with a text has reached the site.
func (e echo) ran(text string) bool {
	want := string(client.Encode(e.arguments(text)))
	return slices.ContainsFunc(e.reached(e.method), func(call mockdrupal.Call) bool {
		params, err := exact.Parse(call.Params)
		return err == nil && string(client.Encode(params)) == want
	})
}

// outcome is the response to one of many invokes, with the text that was sent.
type outcome struct {
	*check.Response
	sent string
}

// The kinds of failures under load. Only the first says that the bridge assigned a response to the wrong request.
const (
	mixUps   = "mismatched responses"
	changes  = "changed results"
	refusals = "refusals"
	timeouts = "time-outs"
	others   = "other failures"
)

// advice says what to look at, by the kind of failure.
var advice = map[string]string{
	mixUps:   ": the bridge keeps state of a request where another request finds it",
	changes:  ": the call is the caller's own, and its arguments or its result came changed (invoke/arguments-forwarded, invoke/result-exact)",
	refusals: ": the bridge refuses although each call was sent again after its Retry-After",
	timeouts: ": the call was too slow, which a busy machine can cause as well: run it again with free cores or a longer time-out",
	others:   ": look for a limit of connections or workers, and for what requests at the same time share, as a buffer",
}

// kindOf is the kind of failure of an invoke of the echo; "" where its response is right. A time-out is no mix-up.
func kindOf(r *check.Response, sent check.Args) string {
	result, has := r.Member("result")
	_, busy := r.Busy()
	switch {
	case r.Status == http.StatusOK && r.Err == nil && has && exact.Diff(exact.MustParse(client.Encode(sent)), result) == "":
		return ""
	case errors.Is(r.Err, client.ErrTimeout), r.Status == http.StatusGatewayTimeout:
		return timeouts
	case busy, r.Status == http.StatusServiceUnavailable:
		return refusals
	case r.Status == http.StatusOK && r.Err == nil && has && ofOneCall(string(r.Body), string(client.Encode(sent))):
		return changes
	case r.Status == http.StatusOK && r.Err == nil:
		return mixUps
	}
	return others
}

// callText is what an invoke of the echo says.
var callText = regexp.MustCompile(`caller \d+, call \d+`)

// ofOneCall reports whether a response has the text of the call that was sent, and of no other.
func ofOneCall(body, sent string) bool {
	own, said := callText.FindString(sent), callText.FindAllString(body, -1)
	return len(said) > 0 && !slices.ContainsFunc(said, func(text string) bool { return text != own })
}

func slowMethodIsolated(ctx context.Context, t *check.T) {
	mustBear(t, waiting)
	method := scenario.EchoTool(t)
	testIsolated(ctx, t, check.AsAgent(scenario.KnownTool(ctx, t)),
		check.Invocation{Tool: t.ToolName(method.ID), Identity: check.Agent, Arguments: client.Encode(method.Arguments("slow"))},
		mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Method: method.ID})
}

// hold is how long the site takes for a slow method: as long as a bridge that lets one call wait for another is waited for.
const hold = 3 * time.Second

// waiting is how many calls wait for the slow method.
const waiting = 32

// testIsolated makes one call fast while many of the other are slow, by the fault.
func testIsolated(ctx context.Context, t *check.T, fast, slow check.Invocation, slowly mockdrupal.Fault) {
	t.Call(ctx, fast).MustSucceed()
	t.Call(ctx, slow).MustSucceed()
	callers := []check.Invocation{slow}
	if t.LimitsCalls() && t.Drupal != nil { // then not all can be one caller's
		callers = nil
		for range waiting {
			of := slow
			of.Identity = t.Drupal.NewUser(t.Permissions(slow.Identity)...)
			t.Call(ctx, of).MustSucceed()
			callers = append(callers, of)
		}
	}
	session, byMCP := t.MCPBeside(ctx, slow.Identity) // whose calls may wait for each other there
	slowly.Delay = hold
	disarm := t.Upstream.Arm(slowly)
	t.Upstream.Mark()
	ended, began := make(chan struct{}), time.Now()
	var firstEnded atomic.Int64 // when the first slow call ended: where the bridge waits for less than hold, before that
	go func() {
		defer t.Recover()
		defer close(ended)
		check.AtOnce(waiting, func(i int) {
			if byMCP && i == 0 {
				session.CallTool(ctx, slow.Tool, slow.Object())
			} else {
				t.Call(ctx, callers[i%len(callers)])
			}
			if time.Since(began) >= hold/12 { // a refusal comes at once
				firstEnded.CompareAndSwap(0, int64(time.Since(began)))
			}
		})
	}()
	slows := func(n int) func() bool { return func() bool { return len(t.Upstream.Journal()) >= n } }
	check.Within(ctx, hold/6, slows(waiting/2)) // a bridge may let some of them wait
	reached := check.Within(ctx, hold/3, slows(1))
	if !reached {
		t.ExemptIfLate()
		t.ExemptIfLimited()
	}
	t.Expect(reached).To(BeTrue(), check.Mismatch("32 calls of a slow method", "one of them at the site", "none"))
	limit, late := hold, firstEnded.Load() != 0
	responses := []*check.Response{t.As(check.Agent).List(ctx), t.Call(ctx, fast)}
	each := fmt.Sprintf("the list took %v, the method %v", responses[0].Took.Round(time.Millisecond), responses[1].Took.Round(time.Millisecond))
	if byMCP {
		r := session.CallTool(ctx, fast.Tool, fast.Object())
		responses, each = append(responses, r), fmt.Sprintf("%s, the method over MCP %v", each, r.Took.Round(time.Millisecond))
	}
	took := time.Since(began)
	if at := time.Duration(firstEnded.Load()); at != 0 && !late {
		limit = min(limit, at)
	}
	disarm()
	<-ended
	if took >= limit || slices.ContainsFunc(responses, func(r *check.Response) bool { return r.Status >= http.StatusInternalServerError }) {
		t.ExemptIfLate() // the slow calls may have met the bridge's time-out, and the site now counts as down
	}
	t.Each(responses, func(r *check.Response) {
		t.Expect(r).To(match.HaveStatus(http.StatusOK), "while calls wait on a slow method")
	})
	t.Row(check.Agent, "", "time", func() {
		inTime := fmt.Sprintf("their responses before those of the slow calls (%v)", limit.Round(time.Millisecond))
		t.Expect(took).To(BeNumerically("<", limit), check.Mismatch("list and a fast method while 32 calls wait", inTime, fmt.Sprintf("them after %v: %s", took.Round(time.Millisecond), each)))
	})
}

// beyond is a usual bound of how many tools a bridge looks at.
const beyond = 1000

// pageBeyond follows the cursors to the page behind so many tools.
func pageBeyond(ctx context.Context, t *check.T, caller check.Client) {
	page := caller.List(ctx)
	for shown := len(page.Names()); shown <= beyond && page.NextCursor() != ""; shown += len(page.Names()) {
		page = caller.List(ctx, page.NextCursor())
	}
	t.Row(caller.Who, "", fmt.Sprintf("the page behind %d tools", beyond), func() { t.Expect(page).To(match.HaveStatus(http.StatusOK)) })
}

func largeCatalogue(ctx context.Context, t *check.T) {
	if t.Upstream.Proxy {
		check.NotTestable("it compares a list of 10,000 tools with one of 100, and a real site takes seconds for the long one: put the mock Drupal behind the bridge")
	}
	list := func(n int) (page func() *check.Response) {
		caller := scenario.Serve(ctx, t, scenario.ManyMethods(fmt.Sprintf("content.one_of_%d.", n), n))
		caller.List(ctx).MustSucceed()
		last := t.ToolName(fmt.Sprintf("content.one_of_%d.%05d", n, n-1))
		t.Row(caller.Who, last, fmt.Sprintf("the last of %d tools", n), func() { t.Expect(caller.Describe(ctx, last)).NotTo(match.HaveStatus(http.StatusNotFound)) })
		if n > beyond && t.PageSize >= 20 { // else it takes too many requests
			pageBeyond(ctx, t, caller)
		}
		return func() *check.Response { return caller.List(ctx) }
	}
	few := fastest(8, 0, list(100), settled(t))
	bound := 3*few + noise
	many := fastest(500, bound, list(10_000), settled(t))
	if kept := t.KeepsFor(); many > bound && kept > 0 && many > kept/2 {
		check.NotTestable(fmt.Sprintf("the bridge may cache a list for %v, and one of 10,000 tools takes %v: give --discovery-ttl 10s", kept, many.Round(time.Millisecond)))
	}
	if many > bound {
		t.ExemptIfLate()
	}
	t.Expect(many).To(BeNumerically("<=", bound), check.Mismatch("a page of 10,000 tools",
		fmt.Sprintf("at most three times the cost of 100 (%v) and %v", few.Round(time.Microsecond), noise), fmt.Sprintf("%v", many.Round(time.Microsecond))))
}

// noise is by how much a page may take longer than another for no reason that the bridge can change: 10,000 tools are more to collect.
const noise = 3 * time.Millisecond

// settled reports whether it is no noise that the last requests, so many since a time, were slow: nothing held up the processes of the run
// for a while, or the site was asked for its methods for each. Of another machine nobody knows what holds it up, and within one process
// everybody holds everybody up.
func settled(t *check.T) func(requests int, since time.Time) bool {
	t.Mark()
	return func(requests int, since time.Time) bool {
		if asked := t.Drupal.Discoveries(); len(asked) >= requests && !slices.ContainsFunc(asked, func(e mockdrupal.Entry) bool { return e.Status != http.StatusOK }) {
			return true
		}
		return time.Since(since) > aWhile && t.Owned && t.Undisturbed(since)
	}
}

func discoveryBudget(ctx context.Context, t *check.T) {
	const discovery = 200 * time.Millisecond
	if kept := t.KeepsFor(); kept > 0 && kept <= discovery {
		check.NotTestable(fmt.Sprintf("the bridge may cache a list for %v, and the check needs more than %v: give --discovery-ttl 1s", kept, discovery))
	}
	who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "methods", User: string(who), Delay: discovery})
	t.As(who).List(ctx).MustSucceed()
	warm := fastest(500, discovery/10, func() *check.Response { return t.As(who).List(ctx) }, settled(t))
	if warm > discovery/10 {
		t.ExemptIfLate()
	}
	t.Expect(warm).To(BeNumerically("<=", discovery/10), check.Mismatch("list on a warm cache", fmt.Sprintf("at most %v, a tenth of the site's discovery time of %v", discovery/10, discovery), fmt.Sprintf("%v", warm.Round(time.Microsecond))))
}

func coldList(ctx context.Context, t *check.T) {
	const methods, requests, slow = 230, 200, 15 * time.Millisecond // for 300 ms: a run has no minute to wait
	scenario.Serve(ctx, t, scenario.ManyMethods("content.one_of_230.", methods)).List(ctx).MustSucceed()
	who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Delay: slow})
	first := t.As(who).List(ctx)
	if first.Status != http.StatusOK || first.Took > requests*slow {
		t.ExemptIfLate()
	}
	what := fmt.Sprintf("the first list of %d tools, with a site that takes %v for each request", methods, slow)
	t.Expect(first.Status).To(Equal(http.StatusOK), check.Mismatch(what, "200", first.Outcome()))
	t.Expect(first.Tools()).NotTo(BeEmpty(), check.Mismatch(what, "tools", "none"))
	t.Expect(first.Took).To(BeNumerically("<=", requests*slow), check.Mismatch(what, fmt.Sprintf("at most %v, the time of %d requests", requests*slow, requests), fmt.Sprintf("%v", first.Took.Round(time.Millisecond))))
}

// enoughNoise is how long the fastest of many requests is looked for: longer than a busy machine interrupts each of them.
const enoughNoise = 4 * time.Second

// mayRefresh is how many requests in a row may each meet a cache that has just expired, which a slow bridge fills for longer
// than enoughNoise.
const mayRefresh = 4

// No busy machine makes each of inARow requests take farOff times as long as they may, nor one that holds nobody up for aWhile each of
// more than mayRefresh: a bridge that builds a page of 10,000 tools for each is told after these.
const (
	inARow = 12
	farOff = 20
	aWhile = time.Second / 2
)

// fastest is the least time that n equal requests took, or the first that was fast enough: noise only ever adds.
func fastest(n int, enough time.Duration, ask func() *check.Response, settled func(requests int, since time.Time) bool) time.Duration {
	began := time.Now()
	least, row := ask().Took, began
	for i := 1; i < n && least > enough && (i < mayRefresh || time.Since(began) < enoughNoise); i++ {
		if i >= inARow && enough > 0 && least > farOff*enough {
			break
		}
		if i >= mayRefresh && enough > 0 {
			if settled(i, row) {
				break
			}
			if time.Since(row) > aWhile {
				row = time.Now()
			}
		}
		least = min(least, ask().Took)
	}
	return least
}
