//go:build unix

package shared_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/keys"
	"github.com/bridgecheck/bridgecheck/bridge/shared"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
)

// oddReplies are replies that no store gives. Each of the first three ended the process through another client.
var oddReplies = map[string]string{
	"a string of 100 GB":                "$99999999999\r\n",
	"a list of two thousand million":    "*2000000000\r\n",
	"a million nested lists":            strings.Repeat("*1\r\n", 1<<20),
	"lists within lists within bounds":  strings.Repeat("*8\r\n", 8),
	"a negative length":                 "$-7\r\n",
	"a number beyond 64 bits":           ":99999999999999999999999\r\n",
	"a number without digits":           ":\r\n",
	"a type that is unknown":            "%1\r\n+a\r\n+b\r\n",
	"a line without end":                "+" + strings.Repeat("a", 1<<20),
	"a line that is too long":           "-" + strings.Repeat("a", 8<<10) + "\r\n",
	"a line without carriage return":    "+OK\n",
	"a string that is longer than said": "$2\r\nabcdef\r\n",
	"an error within a list":            "*2\r\n:0\r\n-ERR\r\n",
	"nothing":                           "\r\n",
	"two replies":                       "+OK\r\n+OK\r\n+OK\r\n",
}

var counters = []throttle.Counter{{Name: "account", Window: time.Hour, Limit: 3}}

// connected is a replica with its hostile store.
func connected(t *testing.T) (*redistest.Fake, *shared.Store) {
	t.Helper()
	store := redistest.NewFake(t)
	s, _ := replica(t, store.Address, first)
	await(t, "connected", s.Up)
	return store, s
}

// allocated is how many bytes an attack makes this process allocate.
func allocated(attack func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	attack()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestOddRepliesAreAStoreThatIsDown(t *testing.T) {
	for _, operation := range []string{redistest.Auth, redistest.Last, redistest.Rate, redistest.Try, redistest.Read, redistest.Ended} {
		for name, raw := range oddReplies {
			t.Run(operation+" "+name, func(t *testing.T) {
				t.Parallel()
				store := redistest.NewFake(t)
				if operation == redistest.Auth || operation == redistest.Last {
					store.Reply(operation, raw)
				}
				s, h := replica(t, strings.Replace(store.Address, "redis://", "redis://:secret@", 1), first)
				if operation != redistest.Auth && operation != redistest.Last {
					await(t, "connected", s.Up)
					wait, err := s.Take([]byte("bucket"), 1, 1)
					must.Assert(t, err == nil && wait == 0, "before the attack: %s, %v", wait, err)
					store.Reply(operation, raw)
				}
				began := time.Now()
				switch operation {
				case redistest.Rate:
					wait, err := s.Take([]byte("bucket"), 1, 1)
					must.Expect(t, err != nil && wait == 0, "a call waits %s, %v", wait, err)
				case redistest.Try:
					wait, busy, err := s.Reserve("attempt", counters)
					must.Expect(t, err != nil && wait == 0 && !busy, "an attempt waits %s, busy %v, %v", wait, busy, err)
				case redistest.Ended:
					must.Expect(t, !s.Ended("session"), "a session has ended that nobody ended")
				}
				took := time.Since(began)
				must.Expect(t, took <= time.Second, "it takes %s", took)
				await(t, "the store is taken for down, once in the log", func() bool { return strings.Count(h.logged(), "goes on alone") == 1 })
				must.Expect(t, !s.Up() && !strings.Contains(h.logged(), "secret") && len(h.logged()) <= 1<<10,
					"up %v, logged: %.2000s", s.Up(), h.logged())
			})
		}
	}
}

// What odd replies cost, all together and one after the other, so that the count is theirs.
func TestOddRepliesAreBounded(t *testing.T) {
	for name, raw := range oddReplies {
		store, s := connected(t)
		store.Reply(redistest.Rate, raw)
		bytes := allocated(func() { s.Take([]byte("bucket"), 1, 1) })
		must.Expect(t, bytes <= uint64(1<<20+2*len(raw)), "%s: %d bytes are allocated", name, bytes) // the fake store allocates, too
		s.Close()
	}
}

// Replies that are well formed and mean nothing.
func TestOddCounters(t *testing.T) {
	for raw, want := range map[string]time.Duration{
		":0\r\n": 0, ":500000\r\n": 500 * time.Millisecond, // as a store counts
		":-5\r\n": -1, ":9223372036854775807\r\n": -1, ":1000002\r\n": -1, "+OK\r\n": -1, "$1\r\n7\r\n": -1, "$-1\r\n": -1, "*0\r\n": -1, "-ERR\r\n": -1,
	} {
		store, s := connected(t)
		store.Reply(redistest.Rate, raw)
		wait, err := s.Take([]byte("bucket"), 1, 1)
		must.Expect(t, (err != nil) == (want < 0) && wait == max(want, 0), "a call after %q waits %s, %v", raw, wait, err)
	}
	list := func(n ...int64) string {
		raw := fmt.Sprintf("*%d\r\n", len(n))
		for _, n := range n {
			raw += fmt.Sprintf(":%d\r\n", n)
		}
		return raw
	}
	type outcome struct {
		wait time.Duration
		busy bool
		odd  bool
	}
	for raw, want := range map[string]outcome{
		list(0, 0): {}, list(2, 0): {busy: true}, list(1, 60_000_000): {wait: time.Minute}, // as a store counts
		list(): {odd: true}, list(0): {odd: true}, list(0, 0, 0): {odd: true}, list(1, 0): {odd: true}, list(1, -1): {odd: true}, list(1, 1<<62): {odd: true},
		list(0, 5): {odd: true}, list(2, 5): {odd: true}, list(3, 0): {odd: true}, list(-1, 0): {odd: true}, "*2\r\n+1\r\n+2\r\n": {odd: true}, "*-1\r\n": {odd: true}, ":0\r\n": {odd: true},
	} {
		store, s := connected(t)
		store.Reply(redistest.Try, raw)
		wait, busy, err := s.Reserve("attempt", counters)
		must.Equal(t, (outcome{wait, busy, err != nil}), want, "an attempt after %q", raw)
	}
}

// A store that says that every session has ended is not believed: it has no key.
func TestEndsAreSealed(t *testing.T) {
	store, s := connected(t)
	store.Reply(redistest.Ended, "$5\r\nended\r\n")
	must.Expect(t, !s.Ended("session"), "the store ended a session")
}

// Whoever can write to the store sends events again, keeps them back, and fills the stream.
func TestEventsAreHeardOnce(t *testing.T) {
	const many = 2000
	store := redistest.NewFake(t)
	a, _ := replica(t, store.Address, first)
	b, h := replica(t, store.Address, first)
	await(t, "connected", func() bool { return a.Up() && b.Up() && h.reconnections() == 1 })
	for _, kind := range []shared.Kind{shared.Invalidated, shared.Changed} {
		must.Do(t, a.Publish(shared.Event{Kind: kind, Subject: []byte(kind)}))
	}
	await(t, "both events", func() bool { return len(strings.Fields(h.subjects())) == 2 })
	heard := h.subjects()
	captured := store.Entries()
	old := seal(t, store, time.Now().Add(-time.Hour))
	future := seal(t, store, time.Now().Add(time.Hour))
	unknown := strings.Repeat("x", 200)
	for _, entry := range append(captured, old, future, unknown) {
		store.Add(entry, many)
	}
	fresh := seal(t, store, time.Now())
	store.Add(fresh, many) // the positive control: it is heard, once
	await(t, "the event after all those", func() bool { return h.subjects() == heard+" sealed" })
	lines := strings.Count(h.logged(), "\n")
	must.Expect(t, lines <= 4, "%d lines are logged:\n%.2000s", lines, h.logged()) // reached, unreadable, too old, sent again

	// Large events are passed over, and cost a reconnection at most.
	store.Add(strings.Repeat("x", 64<<10), 32)
	await(t, "down", func() bool { return !b.Up() })
	await(t, "reached again", b.Up)
	if err := a.Publish(shared.Event{Kind: shared.Changed, Subject: []byte("after")}); err != nil {
		await(t, "the other is connected", func() bool { return a.Publish(shared.Event{Kind: shared.Changed, Subject: []byte("after")}) == nil })
	}
	await(t, "an event after large ones", func() bool { return strings.HasSuffix(h.subjects(), "after") })
}

// seal makes an event of another replica with this time.
func seal(t *testing.T, store *redistest.Fake, at time.Time) string {
	t.Helper()
	ring := must.Get(keys.New([]string{first}, "test"))(t)
	plain := must.Get(json.Marshal(map[string]any{"kind": shared.Changed, "subject": []byte("sealed"), "from": fmt.Sprint(at), "number": 1, "at": at}))(t)
	return string(ring.Seal(plain, []byte(store.Stream())))
}

// Invalidations by the thousand, each a right one, are few discoveries, and the last is not lost.
func TestDoubtsAreBounded(t *testing.T) {
	store := redistest.NewFake(t)
	a, _ := replica(t, store.Address, first)
	b, h := replica(t, store.Address, first)
	await(t, "connected", func() bool { return a.Up() && b.Up() })
	for range 1000 {
		must.Do(t, a.Publish(shared.Event{Kind: shared.Invalidated, Subject: []byte("x")}))
	}
	await(t, "one is heard", func() bool { return h.subjects() != "" })
	time.Sleep(time.Second)
	heard := len(strings.Fields(h.subjects())) + h.reconnections()
	must.Expect(t, heard <= 6, "1000 invalidations are %d discoveries of a list", heard)
}

// A store that has something to read at all times, and nothing in it, does not keep a processor.
func TestReadsAreBounded(t *testing.T) {
	store, _ := connected(t)
	store.Reply(redistest.Read, "*-1\r\n")
	time.Sleep(2 * time.Second)
	reads := store.Count(redistest.Read)
	must.Expect(t, reads <= 200, "%d reads in 2 s", reads)
}
