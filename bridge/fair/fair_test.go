package fair

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func key(n int) Key { return Key{byte(n)} }

// enterAll takes places until there are none for the key, and gives how many it got.
func enterAll(t *testing.T, g *Gate, k Key) int {
	t.Helper()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for n := 0; ; n++ {
		if g.Enter(gone, k) != nil {
			return n
		}
	}
}

func TestNobodyTakesAllPlaces(t *testing.T) {
	for places, want := range map[int][3]int{1: {1, 0, 0}, 2: {2, 0, 0}, 3: {2, 1, 0}, 8: {6, 2, 0}, 256: {171, 57, 19}} {
		g := NewGate(places, 10)
		for i, n := range want {
			must.Equal(t, enterAll(t, g, key(i)), n, "places of caller %d, of %d", i, places)
		}
	}
}

func TestWhoHasTheLeastIsNext(t *testing.T) {
	g := NewGate(3, 100)
	n := enterAll(t, g, key(1))
	must.Assert(t, n == 2, "the first caller has %d places of three, want 2", n)
	must.Do(t, g.Enter(t.Context(), key(2)))
	order := make(chan int, 20)
	var started sync.WaitGroup
	wait := func(k int) {
		started.Add(1)
		go func() {
			started.Done()
			if g.Enter(t.Context(), key(k)) == nil {
				order <- k
			}
		}()
		started.Wait()
		time.Sleep(5 * time.Millisecond) // so that they queue in this order
	}
	for range 10 {
		wait(1)
	}
	wait(3)
	g.Leave(key(1))
	must.Equal(t, <-order, 3, "who came in, ahead of one who had nothing")
}

// Whatever happens, no more are in than there are places, all who wait come in at last, and nothing is kept.
func TestGateKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places, seats := rapid.IntRange(1, 9).Draw(t, "places"), rapid.IntRange(0, 9).Draw(t, "seats")
		callers := rapid.IntRange(1, 4).Draw(t, "callers")
		g := NewGate(places, seats)
		var in, most atomic.Int64
		var wg sync.WaitGroup
		for i := range rapid.IntRange(1, 60).Draw(t, "calls") {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%3)*100*time.Microsecond+time.Second*time.Duration(i%2))
				defer cancel()
				if err := g.Enter(ctx, key(i%callers)); err != nil {
					return
				}
				if n := in.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(20 * time.Microsecond)
				in.Add(-1)
				g.Leave(key(i % callers))
			})
		}
		wg.Wait()
		if most.Load() > int64(places) || g.left != places || g.seats != seats || len(g.holders) != 0 || len(g.queue) != 0 {
			t.Errorf("%d were in of %d; afterwards %d places, %d of %d seats, %d callers, %d in the queue", most.Load(), places, g.left, g.seats, seats, len(g.holders), len(g.queue))
		}
	})
}

func TestMemoryIsShared(t *testing.T) {
	m := NewMemory(900)
	ctx, first := m.Lease(t.Context(), key(1))
	_, second := m.Lease(t.Context(), key(2))
	got := 0
	for first.Grow(10) == nil {
		got += 10
	}
	must.Expect(t, got >= 500 && got <= 600, "the first caller holds %d bytes of 900", got)
	_, again := m.Lease(t.Context(), key(1))
	err := again.Grow(100)
	must.Expect(t, errors.Is(err, ErrNoMemory), "a second request of the same caller: %v", err)
	err = second.Grow(200)
	must.Expect(t, err == nil, "another caller: %v", err)
	first.Release()
	first.Release()
	second.Release()
	must.Expect(t, m.left == 900 && len(m.held) == 0, "%d bytes are left of 900, %d callers hold some", m.left, len(m.held))
	var none *Lease
	must.Expect(t, none.Grow(1<<40) == nil && From(t.Context()) == nil && From(ctx) == first, "a lease does not travel")
}

func TestAClientIsItsNetwork(t *testing.T) {
	same := map[string]string{"::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::ffff:1", "fe80::1%eth0": "fe80::2%eth1"}
	for a, b := range same {
		must.Expect(t, Network(netip.MustParseAddr(a)) == Network(netip.MustParseAddr(b)), "%s and %s are two clients", a, b)
	}
	others := map[Key]bool{Network(netip.Addr{}): true}
	for _, a := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1", "::1"} {
		others[Network(netip.MustParseAddr(a))] = true
	}
	must.Expect(t, len(others) == 6, "%d clients, want 6", len(others))
}
