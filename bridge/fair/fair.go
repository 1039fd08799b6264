// Package fair shares what is scarce among callers: places (Gate), bytes (Memory), and the processor for work on long
// documents (Work, EndTurn). Its invariant: nobody holds more than twice of what is left, so that the next caller finds
// some, however much the others ask for. It knows a caller only by a key, and no HTTP.
package fair

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
)

// Key identifies a caller.
type Key = [32]byte

// Network is the key of a client that is known by its address: of IPv6 its network, for one client has many addresses
// there.
func Network(ip netip.Addr) Key {
	var k Key
	switch ip = ip.Unmap(); {
	case ip.Is6():
		network := ip.As16()
		copy(k[:8], network[:8])
		k[31] = 6
	case ip.Is4():
		v4 := ip.As4()
		copy(k[:], v4[:])
		k[31] = 4
	}
	return k
}

// ErrFull: the caller has its share, and no more may wait.
var ErrFull = errors.New("the caller has its share, and too many wait for more")

// allows reports whether a caller that holds so much may get more while so much is left.
func allows(has, left int64) bool { return left > 0 && has < 2*left }

// Gate bounds how many may be in at one time and how many may wait. The caller with the fewest places enters first.
type Gate struct {
	mu      sync.Mutex
	left    int // places
	seats   int // for those who wait
	holders map[Key]*holder
	queue   []*holder // those who wait, in turn
	limited bool
}

// holder is a caller who is in or waits.
type holder struct {
	key     Key
	in      int
	waiting []*waiter
}

type waiter struct {
	admitted chan struct{}
	in       bool
}

// NewGate makes a gate; one without places is always open.
func NewGate(places, waiting int) *Gate {
	return &Gate{left: places, seats: max(waiting, 0), holders: map[Key]*holder{}, limited: places > 0}
}

// Enter takes a place, waiting for one if there is a seat. Leave gives it back. Errors: ErrFull, and what ended ctx.
func (g *Gate) Enter(ctx context.Context, key Key) error {
	if !g.limited {
		return nil
	}
	g.mu.Lock()
	h := g.holders[key]
	if h == nil {
		h = &holder{key: key}
		g.holders[key] = h
	}
	if len(h.waiting) == 0 && allows(int64(h.in), int64(g.left)) {
		h.in++
		g.left--
		g.mu.Unlock()
		return nil
	}
	if !allows(int64(len(h.waiting)), int64(g.seats)) {
		g.forget(h)
		g.mu.Unlock()
		return ErrFull
	}
	w := &waiter{admitted: make(chan struct{})}
	if len(h.waiting) == 0 {
		g.queue = append(g.queue, h)
	}
	h.waiting = append(h.waiting, w)
	g.seats--
	g.mu.Unlock()
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.in { // at the last moment
		g.release(h)
		return ctx.Err()
	}
	h.waiting = slices.DeleteFunc(h.waiting, func(other *waiter) bool { return other == w })
	g.seats++
	if len(h.waiting) == 0 {
		g.queue = slices.DeleteFunc(g.queue, func(other *holder) bool { return other == h })
	}
	g.forget(h)
	return ctx.Err()
}

// Leave gives a place back.
func (g *Gate) Leave(key Key) {
	if !g.limited {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(g.holders[key])
}

// release gives a place back and admits the next.
func (g *Gate) release(h *holder) {
	h.in--
	g.left++
	g.forget(h)
	for len(g.queue) > 0 {
		next := slices.MinFunc(g.queue, func(a, b *holder) int { return a.in - b.in })
		if !allows(int64(next.in), int64(g.left)) {
			return
		}
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		w.in = true
		close(w.admitted)
		next.in++
		g.left--
		g.seats++
		g.queue = slices.DeleteFunc(g.queue, func(other *holder) bool { return other == next })
		if len(next.waiting) > 0 {
			g.queue = append(g.queue, next)
		}
	}
}

// forget drops a caller who has nothing and waits for nothing.
func (g *Gate) forget(h *holder) {
	if h.in == 0 && len(h.waiting) == 0 {
		delete(g.holders, h.key)
	}
}
