package throttle

import (
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestRatesForgetNoCallerTooEarly(t *testing.T) {
	now := time.Unix(0, 0)
	l := NewRates(2, 3, func() time.Time { return now })
	ann, bob := [32]byte{1}, [32]byte{2}
	for range 3 {
		must.Do(t, l.Allow(ann, "x"))
	}
	for range 5 { // refused calls cost nothing further
		err := l.Allow(ann, "x")
		must.Assert(t, fault.Is(err, fault.RateLimited) && fault.From(err).RetryAfter == 500*time.Millisecond, "error = %v", err)
	}
	must.Expect(t, l.Allow(bob, "x") == nil && l.Allow(ann, "y") == nil, "another caller, or another tool, is limited too")
	now = now.Add(500 * time.Millisecond)
	must.Expect(t, l.Allow(ann, "x") == nil && l.Allow(ann, "x") != nil, "after half a second there is one call, not none or two")
	must.Expect(t, NewRates(0, 3, nil) == nil, "no limit limits")
}
