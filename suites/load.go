package suites

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// maxResent bounds how often a call that was not accepted (429, 503 with Retry-After) is sent again.
const maxResent = 20

var _ = Area("load", func(b *Bridge) {
	b.Check("load/concurrent-exact", func(ctx SpecContext) {
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
				Expect(wrong).To(GiveResult(string(encode(echo.arguments(expected)))))
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
					Expect(ran[text]).To(Equal(1), "invoke %s with %q: expected it to run once, got %d runs", tool, text, ran[text])
				})
			}
		}

		const equal = 16
		b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Method: echo.ID, Delay: 20 * time.Millisecond})
		b.Drupal.Mark()
		answers := make([]*Answer, equal)
		atOnce(equal, func(i int) {
			answers[i] = b.accepted(ctx, func() *Answer { return clients[0].Invoke(ctx, tool, echo.arguments("equal")) })
		})
		given := len(slices.DeleteFunc(answers, func(a *Answer) bool { return a.Status != http.StatusOK }))
		runs := len(b.Drupal.Runs(echo.ID))
		b.Row(clients[0].who, tool, "equal invokes", func() {
			Expect(runs).To(BeNumerically(">=", given), "%d results of equal invokes of one caller at once: expected as many runs, got %d", given, runs)
		})
	})

	b.Check("load/slow-method-isolated", func(ctx SpecContext) {
		const waiting = 32
		known, echo := b.KnownTool(ctx), b.echoTool()
		b.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
		b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), echo.arguments("twin")).MustSucceed()
		const hold = 1200 * time.Millisecond
		disarm := b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "jsonrpc", Method: echo.ID, Delay: hold})
		b.Drupal.Mark()
		slow := make(chan struct{})
		began := time.Now()
		go func() {
			defer GinkgoRecover()
			defer close(slow)
			atOnce(waiting, func(int) { b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), echo.arguments("slow")) })
		}()
		Eventually(func() int { return len(b.Drupal.Journal()) }).WithContext(ctx).WithTimeout(hold/2).WithPolling(5*time.Millisecond).
			Should(BeNumerically(">=", waiting/2), "32 calls of a slow method: expected them at the site together, got them one after another")
		fast := []*Answer{b.As(Agent).List(ctx), b.As(Agent).Invoke(ctx, known, Args{})}
		took := time.Since(began)
		disarm()
		<-slow
		b.each(fast, func(r *Answer) { Expect(r).To(HaveStatus(http.StatusOK), "while calls wait on a slow method") })
		b.Row(Agent, "", "time", func() {
			Expect(took).To(BeNumerically("<", hold), "list and a fast method while 32 calls wait: expected answers before the slow ones (%v), got them after %v", hold, took.Round(time.Millisecond))
		})
	})

	b.Check("load/large-catalogue", func(ctx SpecContext) {
		list := func(n int) (page func() *Answer) {
			caller := b.serve(ctx, manyMethods(fmt.Sprintf("content.one_of_%d.", n), n))
			caller.List(ctx).MustSucceed()
			return func() *Answer { return caller.List(ctx) }
		}
		few := b.fastest(50, 0, list(100))
		many := b.fastest(10, 3*few, list(10_000))
		Expect(many).To(BeNumerically("<=", 3*few), "a page of 10,000 tools: expected at most three times the cost of 100 (%v), got %v", few.Round(time.Microsecond), many.Round(time.Microsecond))
	})

	b.Check("load/discovery-budget", func(ctx SpecContext) {
		const discovery = 200 * time.Millisecond
		who := b.Drupal.NewUser(b.Permissions(Agent)...)
		b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "methods", User: string(who), Delay: discovery})
		b.As(who).List(ctx).MustSucceed()
		warm := b.fastest(20, discovery/10, func() *Answer { return b.As(who).List(ctx) })
		Expect(warm).To(BeNumerically("<=", discovery/10), "list on a warm cache: expected at most a tenth of the site's discovery time (%v), got %v", discovery, warm.Round(time.Microsecond))
	})
})

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
