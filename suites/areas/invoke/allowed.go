package invoke

import (
	"cmp"
	"context"
	"fmt"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

func respondsAsConfigured(ctx context.Context, t *check.T) {
	if len(t.Invocations) == 0 {
		check.NotTestable("it would have to run an existing tool: allow one under `invocations`, with the expected response under `expect`")
	}
	for _, call := range t.Invocations {
		t.For(call.Identity, call.Tool, func() { t.Expect(t.Call(ctx, call)).To(respondAs(t, call)) })
	}
}

// refusesInvalidAllowed breaks the arguments of the allowed calls in one place each, as far as the inputSchema in the
// bridge's list can be broken.
func refusesInvalidAllowed(ctx context.Context, t *check.T) {
	tested := 0
	for _, call := range scenario.Allowed(t) {
		shown, ok := t.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		generator, err := t.Makers.ForArguments(shown.Input())
		t.LeaveOut(call.Tool, "inputSchema", err)
		arguments := exact.MustParse(cmp.Or(string(call.Arguments), "{}"))
		if !ok || err != nil || !generator.Fits(arguments) {
			continue
		}
		t.Call(ctx, call).MustSucceed()
		for _, c := range generator.BrokenFrom(arguments) {
			if siteMayAccept(t, c.What, c.Value, generator.BreaksAside(unread...)) {
				continue
			}
			if tested++; tested > t.Cases {
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
	if tested == 0 {
		check.NotTestable("no argument of an allowed call can be made invalid by its inputSchema: allow a call with arguments under `invocations`")
	}
}

// respondAs matches a response to invoke that is as the configuration says under `expect`.
func respondAs(t *check.T, call check.Invocation) OmegaMatcher {
	switch {
	case !call.Succeeds() && t.Alone(): // which error of MCP stands for the status is open
		return match.MatchRPCWhere("an error", func(r *check.Response) bool { return r.ErrorObject() != nil })
	case !call.Succeeds():
		return match.HaveStatus(call.Status)
	case call.Result != nil:
		return match.GiveResult(string(call.Result))
	}
	return match.HaveResult()
}

func runsAllowedOnce(ctx context.Context, t *check.T) {
	scenario.MustSeeCalls(t)
	for _, call := range scenario.Allowed(t) {
		scenario.MustReach(ctx, t, call)
		for _, f := range afterTheRun {
			f.Fault.Route, f.Fault.Run = route.JSONRPC, true
			t.Row(call.Identity, call.Tool, "the site sends "+f.Name, func() {
				defer t.Upstream.Arm(f.Fault)()
				t.Upstream.Mark()
				t.Expect(t.Call(ctx, call)).To(callOnce(t.Upstream))
			})
			scenario.WaitRecovered(ctx, t, call)
		}
	}
}

// callOnce matches a response if one method call reached the site since the last Mark.
func callOnce(at *site.Upstream) OmegaMatcher {
	return match.Conform("one method call to reach the site", func(r *check.Response) string {
		if calls := at.Calls(); len(calls) != 1 {
			return fmt.Sprintf("%d calls, and %s", len(calls), r.Outcome())
		}
		return ""
	})
}

func runsAllowedAgain(ctx context.Context, t *check.T) {
	scenario.MustSeeCalls(t)
	for _, call := range scenario.Allowed(t) {
		first := scenario.MustReach(ctx, t, call)
		again := t.Call(ctx, call).MustSucceed()
		t.For(call.Identity, call.Tool, func() {
			t.Expect(again).To(match.Conform(fmt.Sprintf("two equal invokes to make %d calls", 2*len(first)), func(*check.Response) string {
				if n := len(t.Upstream.Calls()); n != 2*len(first) {
					return fmt.Sprintf("%d calls at the site", n)
				}
				return ""
			}))
			t.Expect(again).To(forbidStoring())
		})
	}
}
