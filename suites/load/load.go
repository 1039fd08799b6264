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
	t.As(harness.Agent).Invoke(ctx, tool, echo.Arguments("twin")).MustSucceed()
	clients := make([]harness.Client, callers)
	for i, who := range t.Drupal.NewUsers(callers, t.Permissions(harness.Agent)...) {
		clients[i] = t.As(who)
	}
	t.Drupal.Mark()
	var mu sync.Mutex
	accepted := map[string]bool{}
	var wrong *harness.Response
	var expected string
	lost := map[string]bool{}
	harness.AtOnce(callers, func(i int) {
		for n := range each {
			text := fmt.Sprintf("caller %d, call %d", i, n)
			r := scenario.Delivered(ctx, t, func() *harness.Response { return clients[i].Invoke(ctx, tool, echo.Arguments(text)) })
			mu.Lock()
			accepted[text] = true
			if result, _ := r.Member("result"); !exact.Equal(result, map[string]any{echo.Param: text}) {
				lost[text] = true
				if wrong == nil {
					wrong, expected = r, text
				}
			}
			mu.Unlock()
		}
	})
	if wrong != nil {
		t.Row(wrong.Who, tool, fmt.Sprintf("one of %d wrong answers of %d", len(lost), callers*each), func() {
			t.Expect(wrong).To(match.GiveResult(string(harness.Encode(echo.Arguments(expected)))))
		})
	}
	ran := map[string]int{}
	for _, call := range t.Drupal.Runs(echo.ID) {
		params, err := exact.Parse(call.Params)
		if object, ok := params.(map[string]any); err == nil && ok {
			ran[fmt.Sprint(object[echo.Param])]++
		}
	}
	for text := range harness.InOrder(accepted) {
		if !lost[text] { // else it is told already
			t.Row(clients[0].Who, tool, "runs", func() {
				t.Expect(ran[text]).To(Equal(1), harness.Mismatch(fmt.Sprintf("invoke %s with %q", tool, text), "it to run once", fmt.Sprintf("%d runs", ran[text])))
			})
		}
	}

	const equal = 16
	t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Method: echo.ID, Delay: 20 * time.Millisecond})
	t.Drupal.Mark()
	answers := make([]*harness.Response, equal)
	harness.AtOnce(equal, func(i int) {
		answers[i] = scenario.Delivered(ctx, t, func() *harness.Response { return clients[0].Invoke(ctx, tool, echo.Arguments("equal")) })
	})
	given := len(slices.DeleteFunc(answers, func(a *harness.Response) bool { return a.Status != http.StatusOK }))
	runs := len(t.Drupal.Runs(echo.ID))
	t.Row(clients[0].Who, tool, "equal invokes", func() {
		t.Expect(runs).To(BeNumerically(">=", given), harness.Mismatch(fmt.Sprintf("%d results of equal invokes of one caller at once", given), "as many runs", fmt.Sprintf("%d", runs)))
	})
}

func slowMethodIsolated(ctx context.Context, t *harness.T) {
	const waiting = 32
	known, echo := scenario.KnownTool(ctx, t), scenario.EchoTool(t)
	t.As(harness.Agent).Invoke(ctx, known, harness.Args{}).MustSucceed()
	t.As(harness.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("twin")).MustSucceed()
	const hold = 1200 * time.Millisecond
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
	t.Expect(together).To(BeTrue(), harness.Mismatch("32 calls of a slow method", "them at the site together", "them one after another"))
	fast := []*harness.Response{t.As(harness.Agent).List(ctx), t.As(harness.Agent).Invoke(ctx, known, harness.Args{})}
	took := time.Since(began)
	disarm()
	<-slow
	t.Each(fast, func(r *harness.Response) {
		t.Expect(r).To(match.HaveStatus(http.StatusOK), "while calls wait on a slow method")
	})
	t.Row(harness.Agent, "", "time", func() {
		t.Expect(took).To(BeNumerically("<", hold), harness.Mismatch("list and a fast method while 32 calls wait", fmt.Sprintf("answers before the slow ones (%v)", hold), fmt.Sprintf("them after %v", took.Round(time.Millisecond))))
	})
}

func largeCatalogue(ctx context.Context, t *harness.T) {
	list := func(n int) (page func() *harness.Response) {
		caller := scenario.Serve(ctx, t, scenario.ManyMethods(fmt.Sprintf("content.one_of_%d.", n), n))
		caller.List(ctx).MustSucceed()
		return func() *harness.Response { return caller.List(ctx) }
	}
	few := fastest(t, 50, 0, list(100))
	many := fastest(t, 10, 3*few, list(10_000))
	t.Expect(many).To(BeNumerically("<=", 3*few), harness.Mismatch("a page of 10,000 tools", fmt.Sprintf("at most three times the cost of 100 (%v)", few.Round(time.Microsecond)), fmt.Sprintf("%v", many.Round(time.Microsecond))))
}

func discoveryBudget(ctx context.Context, t *harness.T) {
	const discovery = 200 * time.Millisecond
	who := t.Drupal.NewUser(t.Permissions(harness.Agent)...)
	t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "methods", User: string(who), Delay: discovery})
	t.As(who).List(ctx).MustSucceed()
	warm := fastest(t, 20, discovery/10, func() *harness.Response { return t.As(who).List(ctx) })
	t.Expect(warm).To(BeNumerically("<=", discovery/10), harness.Mismatch("list on a warm cache", fmt.Sprintf("at most a tenth of the site's discovery time (%v)", discovery), fmt.Sprintf("%v", warm.Round(time.Microsecond))))
}

// fastest is the least time that n equal requests took, or the first that was fast enough: noise only ever adds.
func fastest(t *harness.T, n int, enough time.Duration, ask func() *harness.Response) time.Duration {
	least := ask().Took
	for i := 1; i < n && least > enough; i++ {
		least = min(least, ask().Took)
	}
	return least
}
