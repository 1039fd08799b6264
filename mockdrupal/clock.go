package mockdrupal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
)

// clock is the site's time: a base that a test may own, moved by an offset, and the calls that sleep on it.
type clock struct {
	base func() time.Time

	mu      sync.Mutex
	offset  time.Duration
	frozen  string // pattern of the methods that wait for Step; "": none
	changed chan struct{}
	waiting []*sleeper
}

type sleeper struct {
	method string
	until  time.Time
	wake   chan struct{}
}

func newClock(base func() time.Time) *clock {
	if base == nil {
		base = time.Now
	}
	return &clock{base: base, changed: make(chan struct{})}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base().Add(c.offset)
}

// change runs f under the lock and wakes all sleepers to check their time again.
func (c *clock) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// sleep waits until the site's clock has advanced by pause or, for a frozen method, until a step.
func (c *clock) sleep(ctx context.Context, method string, pause time.Duration) error {
	s := &sleeper{method: method, wake: make(chan struct{})}
	c.mu.Lock()
	s.until = c.base().Add(c.offset + pause)
	c.waiting = append(c.waiting, s)
	c.mu.Unlock()
	defer c.forget(s)
	for {
		c.mu.Lock()
		left, frozen, changed := s.until.Sub(c.base().Add(c.offset)), c.holds(s), c.changed
		c.mu.Unlock()
		if left <= 0 && !frozen {
			return nil
		}
		var timeout <-chan time.Time
		var timer *time.Timer
		if !frozen {
			timer = time.NewTimer(left)
			timeout = timer.C
		}
		select {
		case <-timeout:
			return nil
		case <-s.wake:
			return nil
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

func (c *clock) holds(s *sleeper) bool { return c.frozen != "" && journal.Matches(c.frozen, s.method) }

// isFrozen reports whether calls of the method wait for a step.
func (c *clock) isFrozen(method string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds(&sleeper{method: method})
}

func (c *clock) forget(s *sleeper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.waiting, s); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
}

// Now returns the site's time.
func (d *Drupal) Now() time.Time { return d.clock.now() }

// Advance moves the site's clock by this much, backwards too. Tokens and flood windows expire by it, and slow methods
// that have slept long enough continue.
func (d *Drupal) Advance(by time.Duration) { d.clock.change(func() { d.clock.offset += by }) }

// Freeze makes every method whose id matches the path.Match pattern wait for Step before it runs, slow or not. An empty
// pattern makes all follow the clock again.
func (d *Drupal) Freeze(pattern string) { d.clock.change(func() { d.clock.frozen = pattern }) }

// Step lets the n calls continue that have slept longest, and returns how many there were.
func (d *Drupal) Step(n int) int {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	n = min(n, len(d.clock.waiting))
	for _, s := range d.clock.waiting[:n] {
		close(s.wake)
	}
	d.clock.waiting = slices.Delete(d.clock.waiting, 0, n)
	return n
}

// Waiting returns how many calls sleep now.
func (d *Drupal) Waiting() int {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	return len(d.clock.waiting)
}
