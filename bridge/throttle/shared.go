package throttle

import (
	"crypto/rand"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// Shared counts refusals over all replicas of a bridge.
type Shared interface {
	// Reserve takes a place in all counters for an attempt, or in none: then wait says when one is free, or busy that it
	// depends on attempts under way. An error: this replica counts alone.
	Reserve(attempt string, counters []Counter) (wait time.Duration, busy bool, err error)
	// Settle ends an attempt, or counts one that was refused without a place.
	Settle(attempt string, counters []Counter, refused bool)
}

// Counter is a sliding window that all replicas count in.
type Counter struct {
	Name   string
	Window time.Duration
	Limit  int
}

// busyTime is how long to wait for attempts of other replicas before the next look.
const busyTime = 25 * time.Millisecond

// Share counts over all replicas from now on. It is called before the first attempt.
func (l *Limiter) Share(with Shared) { l.shared = with }

// reservation is the places of a trial in the shared counters.
type reservation struct {
	attempt  string // "": none
	counters []Counter
}

// reserve takes the places of a trial that has those of this replica. Like begin, it gives the trial, what to wait for, or
// an error; but for the trial, the places of this replica are free again.
func (t *Trial) reserve(known *fault.Error) (*Trial, <-chan struct{}, error) {
	l := t.l
	if l.shared == nil || len(t.held) == 0 {
		return t, nil, nil
	}
	r := reservation{rand.Text(), l.common(t.held)}
	wait, busy, err := l.shared.Reserve(r.attempt, r.counters)
	switch {
	case err != nil: // alone
		return t, nil, nil
	case !busy && wait == 0:
		t.shared = r
		return t, nil, nil
	case !busy:
		t.end(false)
		if known != nil {
			return nil, nil, known
		}
		return nil, nil, throttled(wait)
	}
	t.end(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= maxWaiting {
		return nil, nil, throttled(time.Second)
	}
	l.waiting++
	look := make(chan struct{})
	time.AfterFunc(busyTime, func() { close(look) })
	return nil, look, nil
}

// settle ends the trial in the shared counters. Nobody waits for it: until it is done, the attempt counts as one under way.
func (t *Trial) settle(failed bool) {
	r := t.shared
	if t.l.shared == nil || r.attempt == "" && (t.held != nil || !failed) {
		return
	}
	if r.attempt == "" { // it was good until now
		r = reservation{rand.Text(), t.l.common(t.l.keys(t.attempt, false))}
	}
	go t.l.shared.Settle(r.attempt, r.counters, failed)
}

// common are the counters of all replicas for those of this one.
func (l *Limiter) common(keys []key) []Counter {
	l.mu.Lock()
	defer l.mu.Unlock()
	counters := make([]Counter, len(keys))
	for i, k := range keys {
		counters[i] = Counter{Name: string('0'+k.kind) + k.name, Window: window(k), Limit: l.limit(k)}
	}
	return counters
}
