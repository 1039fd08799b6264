package suites

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// hangingList asks for the list of a caller never seen while discovery hangs for it; nil where there is none to ask for:
// a list that is one for all may be an older one.
func (b *Bridge) hangingList(ctx context.Context) *Answer {
	if b.Drupal == nil || b.Claims("visibility-broad") {
		return nil
	}
	stranger := b.Drupal.NewUser(b.Permissions(Agent)...)
	defer b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Hang, Route: route.Methods, User: string(stranger)})()
	return b.As(stranger).List(ctx)
}

// listOutlasts holds the list of a caller never seen to the time-out.
func (b *Bridge) listOutlasts(ctx context.Context, limit time.Duration) {
	r := b.hangingList(ctx)
	if r == nil {
		return
	}
	b.Row(r.Who, "", "list for a caller never seen, while the site hangs", func() { Expect(r).To(OutlastList(limit)) })
}

// OutlastCall matches a refusal of a call while the site hangs: in the envelope, and within the limit.
func OutlastCall(limit time.Duration) types.GomegaMatcher {
	return And(BeRefusedWith(504, 502, 500), BeEnvelope(), ComeInTime(limit))
}

// OutlastList is OutlastCall for a list.
func OutlastList(limit time.Duration) types.GomegaMatcher {
	return And(BeRefusedWith(504, 503, 502, 500), BeEnvelope(), ComeInTime(limit))
}

// ComeInTime matches an answer that took no longer than the limit.
func ComeInTime(limit time.Duration) types.GomegaMatcher {
	return Meet(fmt.Sprintf("an answer within %v", limit), func(a *Answer) string {
		if a.Took <= limit {
			return ""
		}
		return fmt.Sprintf("it after %v", a.Took.Round(time.Millisecond))
	})
}

// reachesSite waits until so many calls have reached the site since the last Mark. One call must not wait for another.
func (b *Bridge) reachesSite(n int) bool {
	for until := time.Now().Add(b.UpstreamTimeout / 2); b.callsAtSite() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// callsAtSite counts the requests for JSON-RPC since the last Mark, those that hang as well.
func (b *Bridge) callsAtSite() int {
	calls := 0
	for _, entry := range b.Upstream.Journal() {
		if entry.Route == route.JSONRPC {
			calls++
		}
	}
	return calls
}

// outlastsAll asks for a list and makes a call for each way in which the site may hang, all at one time, and tells whether
// each is refused as it must be within the limit, and the bridge serves on.
func (b *Bridge) outlastsAll(ctx context.Context, hangs []siteFailure, call Invocation, limit time.Duration) bool {
	var calls sync.WaitGroup
	answers := make([]*Answer, len(hangs))
	var list *Answer
	var disarms []func()
	b.Upstream.Mark()
	calls.Go(func() {
		defer GinkgoRecover()
		list = b.hangingList(ctx)
	})
	for i, f := range hangs {
		f.fault.Count = 1
		disarm, err := b.Upstream.TryArm(f.fault)
		if err != nil {
			break
		}
		disarms = append(disarms, disarm)
		calls.Go(func() {
			defer GinkgoRecover()
			answers[i] = b.make(ctx, call)
		})
		if f.fault.Kind != fault.Deaf && !b.reachesSite(i+1) { // a deaf one is not reached
			break
		}
	}
	calls.Wait()
	for _, disarm := range disarms {
		disarm()
	}
	back := b.comesBack(ctx, call) // before it is asked again, whatever came
	for _, a := range answers {
		if a == nil || faultOf(a, OutlastCall(limit)) != nil {
			return false
		}
	}
	if list != nil && faultOf(list, OutlastList(limit)) != nil {
		return false
	}
	return back == ""
}
