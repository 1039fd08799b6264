package check

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// AwaitShown waits until the bridge shows what changed at the site, else the check is not testable. What did not show once is
// not waited for again. Instead says what the bridge shows in its place; nil: what was before.
func (t *T) AwaitShown(ctx context.Context, what string, seen func() bool, instead func() string) {
	shown := "what was before"
	if !slices.Contains(t.unshown, what) {
		if t.Await(ctx, seen) {
			return
		}
		t.unshown = append(t.unshown, what)
		if instead != nil {
			shown = instead()
		}
	}
	BlockedBy(Mismatch("the list after a change", fmt.Sprintf("%s within %v", what, t.ChangeLimit()), shown), "fresh/ttl-expiry")
}

// AwaitBack waits until the bridge shows the site as it was before the check, so that the next one is not blamed for what it has
// left. A bridge that still shows the check's site, as its TTL is longer than the one configured or starts anew with each request, is
// then left alone for twice the time; where that did not help once, the run does it no more. Such a bridge fails fresh/ttl-expiry.
func (t *T) AwaitBack(ctx context.Context, back func() bool) {
	if t.Await(ctx, back) || t.lags {
		return
	}
	t.AdvanceClock(ctx, 2*t.ChangeLimit())
	t.lags = !back()
}

// Await lets the discovery TTL pass and polls until done, at most for the time that the bridge has to notice a change.
func (t *T) Await(ctx context.Context, done func() bool) bool {
	t.ExpireCaches()
	return t.Poll(ctx, done)
}

// Poll asks until done, at most for the time that the bridge has to notice a change, and only while the run has patience
// for what is asked. Where several processes may be behind the URL, what one shows is not done: another may show the state
// before until the TTL is over.
func (t *T) Poll(ctx context.Context, done func() bool) bool {
	began := time.Now()
	if !t.several {
		if seen := t.poll(ctx, done); !seen || !t.Spares() || t.Everywhere(done) {
			return seen
		}
		t.several = true
	}
	t.awaitTTL(ctx, began)
	return t.poll(ctx, func() bool { return done() && t.Everywhere(done) }) // one may have shown the run a change early
}

// Several reports whether responses have shown that several processes, which notice a change at different times, are behind
// the URL.
func (t *T) Several() bool { return t.several }

// How often what was seen is looked at again, to find a process that shows it later.
const (
	firstLooks = 7 // until the run has looked once
	looks      = 2
)

// Everywhere reports whether what was seen is seen again, each time by a connection that a balancer may give to another process.
func (t *T) Everywhere(done func() bool) bool {
	n := looks
	if !t.looked {
		t.looked, n = true, firstLooks
	}
	for i := range n {
		t.Transport.CloseIdleConnections()
		if i%2 == 1 { // else a balancer that takes turns could give all first pages to one process
			t.Unrecorded(func() { t.As(Anonymous).Send(t.Context, Request{Path: "/none"}) })
		}
		if !done() {
			return false
		}
	}
	return true
}

// EndTime is how long the end of a session may take to reach other replicas.
const EndTime = time.Second

func (t *T) poll(ctx context.Context, done func() bool) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := Within(ctx, t.ChangeLimit(), func() bool {
		unsent := t.Unsent()
		if done() {
			return true
		}
		if t.Unsent() > unsent {
			cancel()
		}
		t.LookBetweenChecks(ctx)
		return false
	})
	if !seen {
		t.ExemptIfLate()
		t.mustHaveMeasured()
	}
	return seen
}

// Within asks until done, at most for the time given.
func Within(ctx context.Context, limit time.Duration, done func() bool) bool {
	return patience.Within(ctx, limit, done)
}

// meetClock finds out, in the first check of a run that has a clock, whether what the bridge caches gets old by it: after each move
// the list is fetched from the site, and right after that it is not. That takes four requests.
func (t *T) meetClock(ctx context.Context) {
	move := t.Clock
	if t.Clock = nil; move == nil {
		return
	}
	fetches := func() bool {
		t.Drupal.Mark()
		t.Unrecorded(func() { t.As(Agent).List(ctx) })
		return len(t.Drupal.Discoveries()) > 0
	}
	began := time.Now()
	for range 2 {
		move(t.DiscoveryTTL + time.Millisecond)
		if !fetches() || fetches() {
			return
		}
	}
	if time.Since(began) < t.DiscoveryTTL/2 { // else the TTL may have passed by itself
		t.Advance = move
	}
	t.Drupal.Mark()
}

// MoveApart lets the check go on with a process of the bridge that it may end, and that keeps the site's methods far longer than a
// caller's permissions: nothing else shows that a bridge does not keep both for the same time. It reports whether the run can start
// one.
func (t *T) MoveApart(ctx context.Context) bool {
	if t.Apart == nil {
		return false
	}
	if err := t.Apart.Start(ctx); err != nil { // it may be one that runs once on a machine
		slog.Debug("no second process of the bridge", "err", err)
		return false
	}
	t.Cleanup(func(context.Context) { t.Apart.Kill() })
	t.base = t.Apart.URL
	return true
}

// AdvanceClock lets time go by: on the run's clock where there is one, else on the wall's.
func (t *T) AdvanceClock(ctx context.Context, d time.Duration) {
	if t.Advance != nil {
		t.Advance(d)
		return
	}
	t.pause(ctx, d)
}

// Pause lets the time go by after which the bridge has asked to be called again. A bridge of --exec may count that by the wall's
// clock where its cache goes by the run's.
func (t *T) Pause(ctx context.Context, d time.Duration) {
	t.AdvanceClock(ctx, d)
	if t.Advance != nil && t.Owned {
		t.pause(ctx, d)
	}
}

func (t *T) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(min(d, 30*time.Second)):
	case <-ctx.Done():
	}
}
