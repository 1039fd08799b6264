// Package load checks a bridge with many callers and many tools. It measures ratios, never seconds.
package load

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area load.
var Checks = []harness.Check{
	{ID: "load/concurrent-exact", Sees: harness.Site, Costly: true, Run: concurrentExact},
	{ID: "load/slow-method-isolated", Sees: harness.Site, Costly: true, Run: slowMethodIsolated},
	{ID: "load/large-catalogue", Sees: harness.Site, Costly: true, Run: largeCatalogue},
	{ID: "load/discovery-budget", Sees: harness.Site, Costly: true, Run: discoveryBudget},
}

func concurrentExact(ctx context.Context, t *harness.T) {
	const callers, each = 64, 16 // 1,024 invokes
	echo := scenario.EchoTool(t)
	tool := t.ToolName(echo.ID)
	t.As(harness.Agent).Invoke(ctx, tool, echo.Arguments("control")).MustSucceed()
	clients := make([]harness.Client, callers)
	for i, who := range t.Drupal.NewUsers(callers, t.Permissions(harness.Agent)...) {
		clients[i] = t.As(who)
	}
	t.Drupal.Mark()
	var mu sync.Mutex
	accepted := map[string]bool{}
	failed := map[string]bool{}
	failures := map[string][]outcome{}
	harness.AtOnce(callers, func(i int) {
		for n := range each {
			text := fmt.Sprintf("caller %d, call %d", i, n)
			r := scenario.Delivered(ctx, t, func() *harness.Response { return clients[i].Invoke(ctx, tool, echo.Arguments(text)) })
			kind := kindOf(r, echo.Param, text)
			mu.Lock()
			accepted[text] = kind != refusals
			if kind != "" {
				failed[text] = true
				failures[kind] = append(failures[kind], outcome{r, text})
			}
			mu.Unlock()
		}
	})
	if len(failures) == 1 && failures[timeouts] != nil {
		t.ExcuseLag()
	}
	for kind, all := range harness.InOrder(failures) {
		t.Row(all[0].Who, tool, fmt.Sprintf("%d %s among %d invokes at once", len(all), kind, callers*each), func() {
			all[0].Blame()
			t.Fail(harness.Mismatch(all[0].Subject(), "200 with the result "+string(harness.Encode(echo.Arguments(all[0].sent))), all[0].Outcome()+advice[kind]))
		})
	}
	ran := map[string]int{}
	for _, call := range t.Drupal.Runs(echo.ID) {
		params, err := exact.Parse(call.Params)
		if object, ok := params.(map[string]any); err == nil && ok {
			ran[fmt.Sprint(object[echo.Param])]++
		}
	}
	for text, taken := range harness.InOrder(accepted) {
		if taken && !failed[text] { // else it is reported above
			t.Row(clients[0].Who, tool, "runs", func() {
				t.Expect(ran[text]).To(Equal(1), harness.Mismatch(fmt.Sprintf("invoke %s with %q", tool, text), "it to run once", fmt.Sprintf("%d runs", ran[text])))
			})
		}
	}

	const equal = 16
	t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Method: echo.ID, Delay: 20 * time.Millisecond})
	t.Drupal.Mark()
	responses := make([]*harness.Response, equal)
	harness.AtOnce(equal, func(i int) {
		responses[i] = scenario.Delivered(ctx, t, func() *harness.Response { return clients[0].Invoke(ctx, tool, echo.Arguments("equal")) })
	})
	given := len(slices.DeleteFunc(responses, func(a *harness.Response) bool { return a.Status != http.StatusOK }))
	runs := len(t.Drupal.Runs(echo.ID))
	t.Row(clients[0].Who, tool, "equal invokes", func() {
		t.Expect(runs).To(BeNumerically(">=", given), harness.Mismatch(fmt.Sprintf("%d results of equal invokes of one caller at once", given), "as many runs", fmt.Sprintf("%d", runs)))
	})
}

// outcome is the response to one of many invokes, with the text that was sent.
type outcome struct {
	*harness.Response
	sent string
}

// The kinds of failures under load. Only the first says that the bridge assigned a response to the wrong request.
const (
	mixUps   = "mismatched responses"
	refusals = "refusals"
	timeouts = "time-outs"
	errors   = "other failures"
)

// advice says what to look at, by the kind of failure.
var advice = map[string]string{
	mixUps:   ": the bridge keeps state of a request where another request finds it",
	refusals: ": the bridge refuses although each call was sent again after its Retry-After",
	timeouts: ": the call was too slow, which a busy machine can cause as well: run it again with free cores or a longer time-out",
	errors:   ": look for a limit of connections or workers",
}

// kindOf is the kind of failure of an invoke of the echo; "" where its response is right. A time-out is no mix-up.
func kindOf(r *harness.Response, param, sent string) string {
	result, has := r.Member("result")
	_, busy := r.Busy()
	switch {
	case r.Status == http.StatusOK && r.Err == nil && has && exact.Equal(result, map[string]any{param: sent}):
		return ""
	case r.Err == harness.ErrTimeout, r.Status == http.StatusGatewayTimeout:
		return timeouts
	case busy, r.Status == http.StatusServiceUnavailable:
		return refusals
	case r.Status == http.StatusOK && r.Err == nil:
		return mixUps
	}
	return errors
}

func slowMethodIsolated(ctx context.Context, t *harness.T) {
	const waiting = 32
	known, echo := scenario.KnownTool(ctx, t), scenario.EchoTool(t)
	t.As(harness.Agent).Invoke(ctx, known, harness.Args{}).MustSucceed()
	t.As(harness.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("control")).MustSucceed()
	const hold = 3 * time.Second // as long as a bridge that lets one call wait for another is waited for
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "jsonrpc", Method: echo.ID, Delay: hold})
	t.Drupal.Mark()
	slow := make(chan struct{})
	began := time.Now()
	go func() {
		defer harness.Recover()
		defer close(slow)
		harness.AtOnce(waiting, func(int) { t.As(harness.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("slow")) })
	}()
	together := harness.Within(ctx, hold/2, func() bool { return len(t.Drupal.Journal()) >= waiting/2 })
	if !together {
		t.ExcuseLag()
	}
	t.Expect(together).To(BeTrue(), harness.Mismatch("32 calls of a slow method", "them at the site together", "them one after another"))
	fast := []*harness.Response{t.As(harness.Agent).List(ctx), t.As(harness.Agent).Invoke(ctx, known, harness.Args{})}
	took := time.Since(began)
	disarm()
	<-slow
	t.Each(fast, func(r *harness.Response) {
		t.Expect(r).To(match.HaveStatus(http.StatusOK), "while calls wait on a slow method")
	})
	if took >= hold {
		t.ExcuseLag()
	}
	t.Row(harness.Agent, "", "time", func() {
		t.Expect(took).To(BeNumerically("<", hold), harness.Mismatch("list and a fast method while 32 calls wait", fmt.Sprintf("their responses before those of the slow calls (%v)", hold), fmt.Sprintf("them after %v", took.Round(time.Millisecond))))
	})
}

func largeCatalogue(ctx context.Context, t *harness.T) {
	list := func(n int) (page func() *harness.Response) {
		caller := scenario.Serve(ctx, t, scenario.ManyMethods(fmt.Sprintf("content.one_of_%d.", n), n))
		caller.List(ctx).MustSucceed()
		return func() *harness.Response { return caller.List(ctx) }
	}
	few := fastest(50, 0, list(100))
	many := fastest(500, 3*few, list(10_000))
	if many > 3*few {
		t.ExcuseLag()
	}
	t.Expect(many).To(BeNumerically("<=", 3*few), harness.Mismatch("a page of 10,000 tools", fmt.Sprintf("at most three times the cost of 100 (%v)", few.Round(time.Microsecond)), fmt.Sprintf("%v", many.Round(time.Microsecond))))
}

func discoveryBudget(ctx context.Context, t *harness.T) {
	const discovery = 200 * time.Millisecond
	who := t.Drupal.NewUser(t.Permissions(harness.Agent)...)
	t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "methods", User: string(who), Delay: discovery})
	t.As(who).List(ctx).MustSucceed()
	warm := fastest(500, discovery/10, func() *harness.Response { return t.As(who).List(ctx) })
	if warm > discovery/10 {
		t.ExcuseLag()
	}
	t.Expect(warm).To(BeNumerically("<=", discovery/10), harness.Mismatch("list on a warm cache", fmt.Sprintf("at most a tenth of the site's discovery time (%v)", discovery), fmt.Sprintf("%v", warm.Round(time.Microsecond))))
}

// enoughNoise is how long the fastest of many requests is looked for: longer than a busy machine interrupts each of them.
const enoughNoise = 4 * time.Second

// fastest is the least time that n equal requests took, or the first that was fast enough: noise only ever adds.
func fastest(n int, enough time.Duration, ask func() *harness.Response) time.Duration {
	began := time.Now()
	least := ask().Took
	for i := 1; i < n && least > enough && time.Since(began) < enoughNoise; i++ {
		least = min(least, ask().Took)
	}
	return least
}
