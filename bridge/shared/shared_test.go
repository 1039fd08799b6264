//go:build unix

package shared_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/keys"
	"github.com/bridgecheck/bridgecheck/bridge/shared"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
)

const (
	first  = "0123456789abcdef0123456789abcdef"
	second = "another key of more than 32 characters"
)

// heard collects what a replica hears.
type heard struct {
	mu          sync.Mutex
	events      []shared.Event
	reconnected int
	log         bytes.Buffer
}

func (h *heard) Heard(e shared.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *heard) Reconnected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reconnected++
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(b)
}

func (h *heard) subjects() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, e := range h.events {
		all = append(all, string(e.Subject))
	}
	return strings.Join(all, " ")
}

func (h *heard) reconnections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reconnected
}

func (h *heard) logged() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

func replica(t *testing.T, address string, secrets ...string) (*shared.Store, *heard) {
	t.Helper()
	ring := must.Get(keys.New(secrets, "test"))(t)
	h := &heard{}
	s := must.Get(shared.New(shared.Options{Address: address, Site: "http://site", Keys: ring, Logger: slog.New(slog.NewTextHandler(h, nil)), Handler: h}))(t)
	s.Start()
	t.Cleanup(s.Close)
	return s, h
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	must.Become(t, 10*time.Second, is, "not within 10 s: %s", what)
}

func TestEventsReachTheOthers(t *testing.T) {
	server := redistest.Start(t)
	a, heardByA := replica(t, server.Address, first)
	b, heardByB := replica(t, server.Address, second, first) // keys are being replaced
	c, heardByC := replica(t, server.Address, second)
	await(t, "all are connected", func() bool { return a.Up() && b.Up() && c.Up() })
	publish := func(s *shared.Store, subject string) {
		t.Helper()
		must.Do(t, s.Publish(shared.Event{Kind: shared.Changed, Subject: []byte(subject)}))
	}
	publish(a, "1")
	await(t, "the event of the other", func() bool { return heardByB.subjects() == "1" })
	publish(b, "2")
	await(t, "the event of the other", func() bool { return heardByC.subjects() == "2" })
	must.Expect(t, heardByA.subjects() == "", "a replica heard itself, or what it has no key for: %q", heardByA.subjects())

	server.Kill()
	await(t, "the store is taken for down", func() bool {
		return a.Publish(shared.Event{}) != nil && !a.Up() && strings.Contains(heardByA.logged(), "goes on alone")
	})
	began := time.Now()
	err := a.Publish(shared.Event{})
	must.Expect(t, err != nil && time.Since(began) <= 50*time.Millisecond, "without the store: %v after %s", err, time.Since(began))
	server.Restart()
	await(t, "the store is reached again", func() bool { return a.Up() && b.Up() })
	publish(a, "3")
	await(t, "events after the restart", func() bool { return strings.HasSuffix(heardByB.subjects(), "3") })
	must.Expect(t, heardByB.reconnections() >= 2, "nobody is notified that events may have been lost")
}

// A store that hangs costs a caller little, and soon nothing.
func TestAStoreThatHangs(t *testing.T) {
	server := redistest.Start(t)
	s, _ := replica(t, server.Address, first)
	await(t, "connected", s.Up)
	must.Expect(t, !s.Ended("x"), "a session that nobody ended has ended")
	server.Pause()
	began := time.Now()
	for range 100 {
		s.Ended("x")
	}
	took := time.Since(began)
	must.Expect(t, took <= time.Second, "100 commands to a store that hangs take %s", took)
	server.Resume()
	await(t, "reached again", s.Up)
}

// More callers than a client has connections use the store at the time when it is given up.
func TestManyCallersLoseTheStore(t *testing.T) {
	server := redistest.Start(t)
	s, _ := replica(t, server.Address, first)
	for range 3 {
		await(t, "connected", s.Up)
		server.Pause()
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				began := time.Now()
				_, err := s.Take([]byte("bucket"), 1, 1)
				must.Expect(t, err != nil && time.Since(began) <= time.Second, "a command to a store that hangs: %v after %s", err, time.Since(began))
			})
		}
		wg.Wait()
		server.Resume()
	}
}

func TestSessionsThatEnded(t *testing.T) {
	server := redistest.Start(t)
	a, _ := replica(t, server.Address, first)
	b, heardByB := replica(t, server.Address, second, first)
	await(t, "connected", func() bool { return a.Up() && b.Up() })
	a.End("the id", time.Now().Add(time.Hour))
	await(t, "the event", func() bool { return heardByB.subjects() == "the id" })
	must.Expect(t, b.Ended("the id") && !b.Ended("another"), "which sessions have ended is not known")
}

func TestRatesAreOfAll(t *testing.T) {
	server := redistest.Start(t)
	a, _ := replica(t, server.Address, first)
	b, _ := replica(t, server.Address, first)
	await(t, "connected", func() bool { return a.Up() && b.Up() })
	allowed := 0
	for i := range 20 {
		wait := must.Get([]*shared.Store{a, b}[i%2].Take([]byte("caller tool"), 0.1, 7))(t)
		if wait == 0 {
			allowed++
		} else if wait > 10*time.Second || wait < 5*time.Second {
			t.Errorf("a wait of %s where a call is due every 10 s", wait)
		}
	}
	must.Expect(t, allowed == 7, "%d calls of a bucket of 7 are allowed", allowed)
	wait, err := a.Take([]byte("another"), 0.1, 7)
	must.Expect(t, wait == 0 && err == nil, "the bucket of another caller: %s, %v", wait, err)
	time.Sleep(30 * time.Millisecond)
	for range 2 {
		wait, _ := b.Take([]byte("fast"), 50, 1)
		must.Expect(t, wait == 0, "a call that is due has to wait %s", wait)
		time.Sleep(25 * time.Millisecond)
	}
}

func TestRefusalsAreOfAll(t *testing.T) {
	server := redistest.Start(t)
	a, _ := replica(t, server.Address, first)
	b, _ := replica(t, server.Address, first)
	await(t, "connected", func() bool { return a.Up() && b.Up() })
	counters := []throttle.Counter{{Name: "account", Window: time.Hour, Limit: 3}, {Name: "total", Window: time.Hour, Limit: 10}}
	reserve := func(s *shared.Store, name string) (time.Duration, bool) {
		t.Helper()
		wait, busy, err := s.Reserve(name, counters)
		must.Do(t, err)
		return wait, busy
	}
	for i := range 3 {
		wait, busy := reserve(a, strconv.Itoa(i))
		must.Assert(t, wait == 0 && !busy, "attempt %d: %s %v", i, wait, busy)
	}
	_, busy := reserve(b, "3")
	must.Expect(t, busy, "a fourth attempt while three are under way")
	a.Settle("0", counters, false)
	wait, busy := reserve(b, "4")
	must.Expect(t, wait == 0 && !busy, "an attempt after one that was accepted: %s %v", wait, busy)
	a.Settle("1", counters, true)
	a.Settle("2", counters, true)
	b.Settle("4", counters, true)
	wait, busy = reserve(a, "5")
	must.Expect(t, !busy && wait >= 59*time.Minute && wait <= time.Hour, "after three refusals: %s %v", wait, busy)
	counters[0].Name = "another"
	wait, busy = reserve(a, "6")
	must.Expect(t, wait == 0 && !busy, "another account: %s %v", wait, busy)
}

func TestAddresses(t *testing.T) {
	ring := must.Get(keys.New([]string{first}, "test"))(t)
	for address, want := range map[string]bool{
		"redis://127.0.0.1:6379": true, "rediss://user:secret@store:6379/2": true, "redis://:secret@store": true,
		"store:6379": false, "http://store": false, "redis://": false, "": false, "redis://:secret@store:port": false, "redis://store/secret": false, "redis://store/1?addr=other": false,
	} {
		_, err := shared.New(shared.Options{Address: address, Keys: ring})
		must.Expect(t, (err == nil) == want && (err == nil || !strings.Contains(err.Error(), "secret")), "%s: %v", address, err)
	}
	must.Refuse(shared.New(shared.Options{Address: "redis://store", Keys: &keys.Ring{}}))(t, "session_keys", "without keys")
}
