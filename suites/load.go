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

func chk__load__concurrentExact(ctx context.Context, t *T) {
	const callers, each = 64, 16 // 1,024 invokes
	echo := t.echoTool()
	tool := t.ToolName(echo.ID)
	t.As(Agent).Invoke(ctx, tool, echo.arguments("twin")).MustSucceed()
	clients := make([]Client, callers)
	for i, who := range t.Drupal.NewUsers(callers, t.Permissions(Agent)...) {
		clients[i] = t.As(who)
	}
	t.Drupal.Mark()
	var mu sync.Mutex
	accepted := map[string]bool{}
	var wrong *Response
	var expected string
	lost := map[string]bool{}
	atOnce(callers, func(i int) {
		for n := range each {
			text := fmt.Sprintf("caller %d, call %d", i, n)
			r := t.accepted(ctx, func() *Response { return clients[i].Invoke(ctx, tool, echo.arguments(text)) })
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
		t.Row(wrong.Who, tool, fmt.Sprintf("one of %d wrong answers of %d", len(lost), callers*each), func() {
			t.Expect(wrong).To(GiveResult(string(encode(echo.arguments(expected)))))
		})
	}
	ran := map[string]int{}
	for _, call := range t.Drupal.Runs(echo.ID) {
		params, err := exact.Parse(call.Params)
		if object, ok := params.(map[string]any); err == nil && ok {
			ran[fmt.Sprint(object[echo.param])]++
		}
	}
	for text := range inOrder(accepted) {
		if !lost[text] { // else it is told already
			t.Row(clients[0].who, tool, "runs", func() {
				t.Expect(ran[text]).To(Equal(1), mismatch(fmt.Sprintf("invoke %s with %q", tool, text), "it to run once", fmt.Sprintf("%d runs", ran[text])))
			})
		}
	}

	const equal = 16
	t.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: mockdrupal.RouteJSONRPC, Method: echo.ID, Delay: 20 * time.Millisecond})
	t.Drupal.Mark()
	answers := make([]*Response, equal)
	atOnce(equal, func(i int) {
		answers[i] = t.accepted(ctx, func() *Response { return clients[0].Invoke(ctx, tool, echo.arguments("equal")) })
	})
	given := len(slices.DeleteFunc(answers, func(a *Response) bool { return a.Status != http.StatusOK }))
	runs := len(t.Drupal.Runs(echo.ID))
	t.Row(clients[0].who, tool, "equal invokes", func() {
		t.Expect(runs).To(BeNumerically(">=", given), mismatch(fmt.Sprintf("%d results of equal invokes of one caller at once", given), "as many runs", fmt.Sprintf("%d", runs)))
	})
}

func chk__load__slowMethodIsolated(ctx context.Context, t *T) {
	const waiting = 32
	known, echo := t.KnownTool(ctx), t.echoTool()
	t.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
	t.As(Agent).Invoke(ctx, t.ToolName(echo.ID), echo.arguments("twin")).MustSucceed()
	const hold = 1200 * time.Millisecond
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: "jsonrpc", Method: echo.ID, Delay: hold})
	t.Drupal.Mark()
	slow := make(chan struct{})
	began := time.Now()
	go func() {
		defer Recover()
		defer close(slow)
		atOnce(waiting, func(int) { t.As(Agent).Invoke(ctx, t.ToolName(echo.ID), echo.arguments("slow")) })
	}()
	together := within(ctx, hold/2, func() bool { return len(t.Drupal.Journal()) >= waiting/2 })
	t.Expect(together).To(BeTrue(), mismatch("32 calls of a slow method", "them at the site together", "them one after another"))
	fast := []*Response{t.As(Agent).List(ctx), t.As(Agent).Invoke(ctx, known, Args{})}
	took := time.Since(began)
	disarm()
	<-slow
	t.each(fast, func(r *Response) { t.Expect(r).To(HaveStatus(http.StatusOK), "while calls wait on a slow method") })
	t.Row(Agent, "", "time", func() {
		t.Expect(took).To(BeNumerically("<", hold), mismatch("list and a fast method while 32 calls wait", fmt.Sprintf("answers before the slow ones (%v)", hold), fmt.Sprintf("them after %v", took.Round(time.Millisecond))))
	})
}

func chk__load__largeCatalogue(ctx context.Context, t *T) {
	list := func(n int) (page func() *Response) {
		caller := t.serve(ctx, manyMethods(fmt.Sprintf("content.one_of_%d.", n), n))
		caller.List(ctx).MustSucceed()
		return func() *Response { return caller.List(ctx) }
	}
	few := t.fastest(50, 0, list(100))
	many := t.fastest(10, 3*few, list(10_000))
	t.Expect(many).To(BeNumerically("<=", 3*few), mismatch("a page of 10,000 tools", fmt.Sprintf("at most three times the cost of 100 (%v)", few.Round(time.Microsecond)), fmt.Sprintf("%v", many.Round(time.Microsecond))))
}

func chk__load__discoveryBudget(ctx context.Context, t *T) {
	const discovery = 200 * time.Millisecond
	who := t.Drupal.NewUser(t.Permissions(Agent)...)
	t.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: "methods", User: string(who), Delay: discovery})
	t.As(who).List(ctx).MustSucceed()
	warm := t.fastest(20, discovery/10, func() *Response { return t.As(who).List(ctx) })
	t.Expect(warm).To(BeNumerically("<=", discovery/10), mismatch("list on a warm cache", fmt.Sprintf("at most a tenth of the site's discovery time (%v)", discovery), fmt.Sprintf("%v", warm.Round(time.Microsecond))))
}

// accepted sends a request until the bridge takes it on: 429, and 503 with Retry-After, are no answers to it.
func (t *T) accepted(ctx context.Context, ask func() *Response) *Response {
	r := ask()
	for range maxResent {
		if _, busy := r.busy(); !busy {
			break
		}
		seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		t.pass(ctx, time.Duration(seconds)*time.Second)
		r = ask()
	}
	return r
}

// fastest is the least time that n equal requests took, or the first that was fast enough: noise only ever adds.
func (t *T) fastest(n int, enough time.Duration, ask func() *Response) time.Duration {
	least := ask().Took
	for i := 1; i < n && least > enough; i++ {
		least = min(least, ask().Took)
	}
	return least
}
