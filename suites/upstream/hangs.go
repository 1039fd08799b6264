package upstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// hangingList asks for the list of a caller never seen while discovery hangs for it; nil where there is none to ask for:
// a list that is one for all may be an older one.
func hangingList(ctx context.Context, t *harness.T) *harness.Response {
	if t.Drupal == nil || t.Claims("visibility-broad") {
		return nil
	}
	stranger := t.Drupal.NewUser(t.Permissions(harness.Agent)...)
	defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Hang, Route: route.Methods, User: string(stranger)})()
	return t.As(stranger).List(ctx)
}

// listOutlasts holds the list of a caller never seen to the time-out.
func listOutlasts(ctx context.Context, t *harness.T, limit time.Duration) {
	r := hangingList(ctx, t)
	if r == nil {
		return
	}
	t.Row(r.Who, "", "list for a caller never seen, while the site hangs", func() { t.Expect(r).To(OutlastList(limit)) })
}

// OutlastCall matches a refusal of a call while the site hangs: in the envelope, and within the limit.
func OutlastCall(limit time.Duration) types.GomegaMatcher {
	return AllOf(match.BeRefusedWith(504, 502, 500), match.BeEnvelope(), ComeInTime(limit))
}

// OutlastList is OutlastCall for a list.
func OutlastList(limit time.Duration) types.GomegaMatcher {
	return AllOf(match.BeRefusedWith(504, 503, 502, 500), match.BeEnvelope(), ComeInTime(limit))
}

// ComeInTime matches an answer that took no longer than the limit.
func ComeInTime(limit time.Duration) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("an answer within %v", limit), func(a *harness.Response) string {
		if a.Took <= limit {
			return ""
		}
		return fmt.Sprintf("it after %v", a.Took.Round(time.Millisecond))
	})
}

// reachesSite waits until so many calls have reached the site since the last Mark. One call must not wait for another.
func reachesSite(t *harness.T, n int) bool {
	for until := time.Now().Add(t.UpstreamTimeout / 2); callsAtSite(t) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// callsAtSite counts the requests for JSON-RPC since the last Mark, those that hang as well.
func callsAtSite(t *harness.T) int {
	calls := 0
	for _, entry := range t.Upstream.Journal() {
		if entry.Route == route.JSONRPC {
			calls++
		}
	}
	return calls
}

// outlastsAll asks for a list and makes a call for each way in which the site may hang, all at one time, and tells whether
// each is refused as it must be within the limit, and the bridge serves on.
func outlastsAll(ctx context.Context, t *harness.T, hangs []scenario.SiteFailure, call harness.Invocation, limit time.Duration) bool {
	var calls sync.WaitGroup
	answers := make([]*harness.Response, len(hangs))
	var list *harness.Response
	var disarms []func()
	t.Upstream.Mark()
	calls.Go(func() {
		defer harness.Recover()
		list = hangingList(ctx, t)
	})
	for i, f := range hangs {
		f.Fault.Count = 1
		disarm, err := t.Upstream.TryArm(f.Fault)
		if err != nil {
			break
		}
		disarms = append(disarms, disarm)
		calls.Go(func() {
			defer harness.Recover()
			answers[i] = t.Call(ctx, call)
		})
		if f.Fault.Kind != fault.Deaf && !reachesSite(t, i+1) { // a deaf one is not reached
			break
		}
	}
	calls.Wait()
	for _, disarm := range disarms {
		disarm()
	}
	back := scenario.Recovers(ctx, t, call) // before it is asked again, whatever came
	for _, a := range answers {
		if a == nil || scenario.Falsify(a, OutlastCall(limit)) != nil {
			return false
		}
	}
	if list != nil && scenario.Falsify(list, OutlastList(limit)) != nil {
		return false
	}
	return back.IsZero()
}
