package suites

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// maxResent bounds how often a call that was not accepted (429, 503 with Retry-After) is sent again.
const maxResent = 20

// checks__load__load are the checks of this file.
var checks__load__load = []Check{
	{ID: "load/concurrent-exact", Sees: Site, Costly: true, Run: chk__load__concurrentExact},
	{ID: "load/slow-method-isolated", Sees: Site, Costly: true, Run: chk__load__slowMethodIsolated},
	{ID: "load/large-catalogue", Sees: Site, Costly: true, Run: chk__load__largeCatalogue},
	{ID: "load/discovery-budget", Sees: Site, Costly: true, Run: chk__load__discoveryBudget},
}

func chk__load__concurrentExact(ctx context.Context, b *Bridge) {
	const callers, each = 64, 16 // 1,024 invokes
	echo := b.echoTool()
	tool := b.ToolName(echo.ID)
	b.As(Agent).Invoke(ctx, tool, echo.arguments("twin")).MustSucceed()
	clients := make([]Client, callers)
	for i, who := range b.Drupal.NewUsers(callers, b.Permissions(Agent)...) {
		clients[i] = b.As(who)
	}
	b.Drupal.Mark()
	var mu sync.Mutex
	accepted := map[string]bool{}
	var wrong *Answer
	var expected string
	lost := map[string]bool{}
	atOnce(callers, func(i int) {
		for n := range each {
			text := fmt.Sprintf("caller %d, call %d", i, n)
			r := b.accepted(ctx, func() *Answer { return clients[i].Invoke(ctx, tool, echo.arguments(text)) })
			mu.Lock()
			accepted[text] = true
			if result, _ := r.Member("result"); !exact.Equal(result, map[string]any{echo.param: text}) {
				lost[text] = true
				if wrong == nil {
					wrong, expected = r, text
				}
			}
			mu.Unlock()
		}
	})
	if wrong != nil {
		b.Row(wrong.Who, tool, fmt.Sprintf("one of %d wrong answers of %d", len(lost), callers*each), func() {
			b.Expect(wrong).To(GiveResult(string(encode(echo.arguments(expected)))))
		})
	}
	ran := map[string]int{}
	for _, call := range b.Drupal.Runs(echo.ID) {
		params, err := exact.Parse(call.Params)
		if object, ok := params.(map[string]any); err == nil && ok {
			ran[fmt.Sprint(object[echo.param])]++
		}
	}
	for text := range inOrder(accepted) {
		if !lost[text] { // else it is told already
			b.Row(clients[0].who, tool, "runs", func() {
				b.Expect(ran[text]).To(Equal(1), mismatch(fmt.Sprintf("invoke %s with %q", tool, text), "it to run once", fmt.Sprintf("%d runs", ran[text])))
			})
		}
	}

	const equal = 16
	b.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: mockdrupal.RouteJSONRPC, Method: echo.ID, Delay: 20 * time.Millisecond})
	b.Drupal.Mark()
	answers := make([]*Answer, equal)
	atOnce(equal, func(i int) {
		answers[i] = b.accepted(ctx, func() *Answer { return clients[0].Invoke(ctx, tool, echo.arguments("equal")) })
	})
	given := len(slices.DeleteFunc(answers, func(a *Answer) bool { return a.Status != http.StatusOK }))
	runs := len(b.Drupal.Runs(echo.ID))
	b.Row(clients[0].who, tool, "equal invokes", func() {
		b.Expect(runs).To(BeNumerically(">=", given), mismatch(fmt.Sprintf("%d results of equal invokes of one caller at once", given), "as many runs", fmt.Sprintf("%d", runs)))
	})
}

func chk__load__slowMethodIsolated(ctx context.Context, b *Bridge) {
	const waiting = 32
	known, echo := b.KnownTool(ctx), b.echoTool()
	b.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
	b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), echo.arguments("twin")).MustSucceed()
	const hold = 1200 * time.Millisecond
	disarm := b.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: "jsonrpc", Method: echo.ID, Delay: hold})
	b.Drupal.Mark()
	slow := make(chan struct{})
	began := time.Now()
	go func() {
		defer Recover()
		defer close(slow)
		atOnce(waiting, func(int) { b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), echo.arguments("slow")) })
	}()
	together := within(ctx, hold/2, func() bool { return len(b.Drupal.Journal()) >= waiting/2 })
	b.Expect(together).To(BeTrue(), mismatch("32 calls of a slow method", "them at the site together", "them one after another"))
	fast := []*Answer{b.As(Agent).List(ctx), b.As(Agent).Invoke(ctx, known, Args{})}
	took := time.Since(began)
	disarm()
	<-slow
	b.each(fast, func(r *Answer) { b.Expect(r).To(HaveStatus(http.StatusOK), "while calls wait on a slow method") })
	b.Row(Agent, "", "time", func() {
		b.Expect(took).To(BeNumerically("<", hold), mismatch("list and a fast method while 32 calls wait", fmt.Sprintf("answers before the slow ones (%v)", hold), fmt.Sprintf("them after %v", took.Round(time.Millisecond))))
	})
}

func chk__load__largeCatalogue(ctx context.Context, b *Bridge) {
	list := func(n int) (page func() *Answer) {
		caller := b.serve(ctx, manyMethods(fmt.Sprintf("content.one_of_%d.", n), n))
		caller.List(ctx).MustSucceed()
		return func() *Answer { return caller.List(ctx) }
	}
	few := b.fastest(50, 0, list(100))
	many := b.fastest(10, 3*few, list(10_000))
	b.Expect(many).To(BeNumerically("<=", 3*few), mismatch("a page of 10,000 tools", fmt.Sprintf("at most three times the cost of 100 (%v)", few.Round(time.Microsecond)), fmt.Sprintf("%v", many.Round(time.Microsecond))))
}

func chk__load__discoveryBudget(ctx context.Context, b *Bridge) {
	const discovery = 200 * time.Millisecond
	who := b.Drupal.NewUser(b.Permissions(Agent)...)
	b.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: "methods", User: string(who), Delay: discovery})
	b.As(who).List(ctx).MustSucceed()
	warm := b.fastest(20, discovery/10, func() *Answer { return b.As(who).List(ctx) })
	b.Expect(warm).To(BeNumerically("<=", discovery/10), mismatch("list on a warm cache", fmt.Sprintf("at most a tenth of the site's discovery time (%v)", discovery), fmt.Sprintf("%v", warm.Round(time.Microsecond))))
}

// accepted sends a request until the bridge takes it on: 429, and 503 with Retry-After, are no answers to it.
func (b *Bridge) accepted(ctx context.Context, ask func() *Answer) *Answer {
	r := ask()
	for range maxResent {
		if _, busy := r.busy(); !busy {
			break
		}
		seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		b.pass(ctx, time.Duration(seconds)*time.Second)
		r = ask()
	}
	return r
}

// fastest is the least time that n equal requests took, or the first that was fast enough: noise only ever adds.
func (b *Bridge) fastest(n int, enough time.Duration, ask func() *Answer) time.Duration {
	least := ask().Took
	for i := 1; i < n && least > enough; i++ {
		least = min(least, ask().Took)
	}
	return least
}
