package upstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// A dead site must cost nothing: after this many failures in a row calls fail at once, and one call each probeEvery
// tries the site again.
const (
	breakAfter = 5
	probeEvery = time.Second
)

// breaker counts failures of the site as a whole. A method that is slow while others respond is no such failure.
type breaker struct {
	now func() time.Time

	mu        sync.Mutex
	failures  int
	responded time.Time // when the site last responded
	opened    time.Time // by the given clock; zero while closed
	openedAge time.Time // by the machine's clock: a given clock that stands still must not keep the site away
}

func newBreaker(now func() time.Time) *breaker {
	if now == nil {
		now = time.Now
	}
	return &breaker{now: now}
}

func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures < breakAfter
}

// allow lets a request through, or returns when to retry.
func (b *breaker) allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return nil
	}
	if b.now().Sub(b.opened) >= probeEvery || time.Since(b.openedAge) >= probeEvery {
		b.opened, b.openedAge = b.now(), time.Now() // this one is the probe
		return nil
	}
	e := fault.New(fault.UpstreamUnavailable, unreachable)
	e.RetryAfter = probeEvery
	return e
}

// report takes the outcome of a request that started at start (machine's clock).
func (b *breaker) report(start time.Time, err error, callerLeft bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case exhausted(err):
		// The site was not asked.
	case err == nil || !siteIsSilent(err):
		b.failures, b.responded = 0, time.Now()
	case callerLeft || b.responded.After(start):
		// Nobody waited for the end, or the site responded to others meanwhile.
	default:
		if b.failures++; b.failures == breakAfter {
			b.opened, b.openedAge = b.now(), time.Now()
		}
	}
}

// siteIsSilent distinguishes a site that cannot be reached or does not respond from one that responds badly.
func siteIsSilent(err error) bool {
	if errors.Is(err, errTooLong) {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || notConnected(err) || timedOut(err)
}
