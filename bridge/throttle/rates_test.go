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
		if !fault.Is(err, fault.RateLimited) || fault.From(err).RetryAfter != 500*time.Millisecond {
			t.Fatalf("error = %v", err)
		}
	}
	if l.Allow(bob, "x") != nil || l.Allow(ann, "y") != nil {
		t.Error("another caller, or another tool, is limited too")
	}
	now = now.Add(500 * time.Millisecond)
	if l.Allow(ann, "x") != nil || l.Allow(ann, "x") == nil {
		t.Error("after half a second there is one call, not none or two")
	}
	if NewRates(0, 3, nil) != nil {
		t.Error("no limit limits")
	}
}
