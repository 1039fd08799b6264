package invoke

import (
	"cmp"
	"context"
	"fmt"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func answersAsConfigured(ctx context.Context, t *harness.T) {
	if len(t.Invocations) == 0 {
		harness.NotTestable("it would have to run an existing tool: allow one under `invocations`, with what it must answer under `expect`")
	}
	for _, call := range t.Invocations {
		t.For(call.Identity, call.Tool, func() { t.Expect(t.Call(ctx, call)).To(AnswerAs(call)) })
	}
}

// refusesBrokenArguments breaks the arguments of the allowed calls in one place each, as far as the inputSchema that the
// bridge shows can be broken.
func refusesBrokenArguments(ctx context.Context, t *harness.T) {
	judged := 0
	for _, call := range scenario.Allowed(t) {
		shown, ok := t.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		made := t.Makers.ForArguments(shown.Input())
		arguments := match.Must(exact.Parse([]byte(cmp.Or(string(call.Arguments), "{}"))))
		if !ok || made == nil || !made.Fits(arguments) {
			continue
		}
		t.Call(ctx, call).MustSucceed()
		for _, c := range made.BrokenFrom(arguments) {
			if judged++; judged > t.Cases {
				return
			}
			refusal := match.BeRefused(400, "invalid_params")
			if len(c.Value.(map[string]any)) == 0 {
				refusal = match.HaveStatus(400)
			}
			t.For(call.Identity, call.Tool, func() {
				t.Expect(t.As(call.Identity).Invoke(ctx, call.Tool, c.Value)).To(refusal, c.What)
			})
		}
	}
	if judged == 0 {
		harness.NotTestable("its inputSchema lets no argument of an allowed call break: allow one that takes some under `invocations`")
	}
}

// AnswerAs matches an invoke answer that is as the configuration says under `expect`.
func AnswerAs(call harness.Invocation) OmegaMatcher {
	switch {
	case !call.Succeeds():
		return match.HaveStatus(call.Status)
	case call.Result != nil:
		return match.GiveResult(string(call.Result))
	}
	return match.HaveResult()
}

func runsAllowedOnce(ctx context.Context, t *harness.T) {
	scenario.MustSeeCalls(t)
	for _, call := range scenario.Allowed(t) {
		scenario.MustReach(ctx, t, call)
		for _, f := range afterTheRun {
			f.Fault.Route, f.Fault.Run = route.JSONRPC, true
			t.Row(call.Identity, call.Tool, "the site gives "+f.Name, func() {
				defer t.Upstream.Arm(f.Fault)()
				t.Upstream.Mark()
				t.Expect(t.Call(ctx, call)).To(CallOnce())
			})
			scenario.WaitRecovered(ctx, t, call)
		}
	}
}

// CallOnce matches an answer during which, since the last Mark, one method call reached the site.
func CallOnce() OmegaMatcher {
	return match.Conform("one method call to reach the site", func(a *harness.Response) string {
		if calls := a.T.Upstream.Calls(); len(calls) != 1 {
			return fmt.Sprintf("%s, and %d calls", a.Outcome(), len(calls))
		}
		return ""
	})
}

func runsAllowedAgain(ctx context.Context, t *harness.T) {
	scenario.MustSeeCalls(t)
	for _, call := range scenario.Allowed(t) {
		first := scenario.MustReach(ctx, t, call)
		again := t.Call(ctx, call).MustSucceed()
		t.For(call.Identity, call.Tool, func() {
			t.Expect(again).To(match.Conform(fmt.Sprintf("two equal invokes to make %d calls", 2*len(first)), func(*harness.Response) string {
				if n := len(t.Upstream.Calls()); n != 2*len(first) {
					return fmt.Sprintf("%d calls at the site", n)
				}
				return ""
			}))
			t.Expect(again).To(ForbidStoring())
		})
	}
}
