package fair

import (
	"context"
	"errors"
	"sync"
)

// ErrNoMemory says that a caller has its share of the memory, or that all of it is in use.
var ErrNoMemory = errors.New("too much is held in memory at present")

// Memory bounds how many bytes are held for all callers together.
type Memory struct {
	mu   sync.Mutex
	left int64
	held map[Key]int64
}

// NewMemory makes a budget of so many bytes.
func NewMemory(bytes int64) *Memory { return &Memory{left: bytes, held: map[Key]int64{}} }

// Lease is what one request holds of a budget. It belongs to one goroutine at a time. A nil Lease holds anything.
type Lease struct {
	of    *Memory
	key   Key
	bytes int64
}

// Lease opens a lease that holds nothing yet, and gives a context that carries it to where memory is taken. Release must
// be called at its end.
func (m *Memory) Lease(ctx context.Context, key Key) (context.Context, *Lease) {
	l := &leased{Context: ctx, lease: Lease{of: m, key: key}}
	return l, &l.lease
}

// Grow takes so many bytes more, or none with ErrNoMemory.
func (l *Lease) Grow(bytes int64) error {
	if l == nil || bytes <= 0 {
		return nil
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	held := l.of.held[l.key]
	if bytes > l.of.left || !allows(held+bytes-1, l.of.left-bytes+1) {
		return ErrNoMemory
	}
	l.of.left -= bytes
	l.of.held[l.key] = held + bytes
	l.bytes += bytes
	return nil
}

// Release gives all of it back.
func (l *Lease) Release() {
	if l == nil || l.bytes == 0 {
		return
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.left += l.bytes
	if l.of.held[l.key] -= l.bytes; l.of.held[l.key] == 0 {
		delete(l.of.held, l.key)
	}
	l.bytes = 0
}

type leaseKey struct{}

// leased is a context and the lease that it carries, for one allocation is cheaper than two.
type leased struct {
	context.Context
	lease Lease
}

// Value returns the lease, or what the context carries beside.
func (l *leased) Value(key any) any {
	if key == (leaseKey{}) {
		return &l.lease
	}
	return l.Context.Value(key)
}

// From returns the lease that a context carries; nil where it carries none.
func From(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}
