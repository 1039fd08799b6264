package attacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
)

// limitMemory starts the bridges of a test with 1 GiB of address space, of which the Go runtime takes 750 MiB before it
// does anything: a bridge that needs more ends.
func limitMemory(t *testing.T) {
	t.Helper()
	unlimited := binary
	script := fmt.Sprintf("#!/bin/sh\nulimit -v 1048576\nexec '%s' \"$@\"\n", unlimited)
	binary = filepath.Join(t.TempDir(), "bridgecheck")
	t.Cleanup(func() { binary = unlimited })
	must.Do(t, os.WriteFile(binary, []byte(script), 0o700))
}

// storeReplies are what no store says.
var storeReplies = []struct{ name, operation, reply string }{
	{"as a store answers", "", ""},
	{"a string of 100 GB", redistest.Rate, "$99999999999\r\n"},
	{"a list of two thousand million", redistest.Try, "*2000000000\r\n"},
	{"a million nested lists", redistest.Rate, strings.Repeat("*1\r\n", 1<<20)},
	{"a string of 100 GB for events", redistest.Read, "$99999999999\r\n"},
	{"nested lists for events", redistest.Read, strings.Repeat("*1\r\n", 1<<20)},
	{"a list of two thousand million for the last event", redistest.Last, "*2000000000\r\n"},
	{"a line without end", redistest.Auth, "+" + strings.Repeat("x", 8<<20)},
	{"a time to wait below zero", redistest.Rate, ":-1\r\n"},
	{"a time to wait of an age", redistest.Rate, ":9223372036854775807\r\n"},
	{"no outcome", redistest.Try, "*0\r\n"},
	{"half an outcome", redistest.Try, "*1\r\n:1\r\n"},
	{"an outcome of an age", redistest.Try, "*2\r\n:1\r\n:9223372036854775807\r\n"},
	{"an outcome below zero", redistest.Try, "*2\r\n:1\r\n:-7\r\n"},
	{"an outcome that is unknown", redistest.Try, "*2\r\n:9\r\n:9\r\n"},
	{"an error for each", redistest.Rate, "-ERR " + strings.Repeat("x", 3000) + "\r\n"},
	{"events without end", redistest.Read, "*-1\r\n"},
}

// The store that replicas share does what it likes. Callers are served as without one: no reply of the store makes a 502,
// a 429 or a refusal of good credentials, and none costs memory or a log line for each.
func TestStore(t *testing.T) {
	const most = 200 // MiB
	limitMemory(t)
	t.Setenv("BRIDGE_SESSION_KEYS", "the bridge under attack encrypts with this key")
	s := newSite(t)
	for _, attack := range storeReplies {
		t.Run(attack.name, func(t *testing.T) {
			store := redistest.NewFake(t)
			store.Reply(attack.operation, attack.reply)
			p := start(t, s, "--shared", strings.Replace(store.Address, "redis://", "redis://:"+secret+"@", 1), "--rate-limit", "1000", "--rate-burst", "1000")
			for i := range 20 {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				user := fmt.Sprintf("honest%d", i/2) // credentials that are new, and that were accepted
				status, body := p.call(ctx, user, "content.echo", `{"v":1}`)
				if cancel(); status != 200 {
					t.Errorf("call %d gets %d %.200s", i, status, body)
				}
			}
			if attack.operation == "" && (store.Count(redistest.Rate) < 20 || store.Count(redistest.Try) < 10) {
				t.Errorf("the store counts %d calls and %d credentials: nothing was attacked", store.Count(redistest.Rate), store.Count(redistest.Try))
			}
			must.Expect(t, strings.Contains(p.output.String(), "set BRIDGE_SHARED"),
				"no warning says that the command line shows the store's password")
			n := store.Count("connections")
			must.Expect(t, n <= 10, "%d connections are opened", n)
			log := p.output.String()
			must.Expect(t, len(log) <= 8<<10, "%d bytes are logged: %.1000s", len(log), log)
			p.bounded(most)
		})
	}
}

// Whoever can write to the store writes what is large and what is much.
func TestStoreEvents(t *testing.T) {
	limitMemory(t)
	t.Setenv("BRIDGE_SESSION_KEYS", "the bridge under attack encrypts with this key")
	store := redistest.NewFake(t)
	p := start(t, newSite(t), "--shared", store.Address)
	p.besides(func() {
		store.Add(strings.Repeat("x", 300), 20_000)
		time.Sleep(2 * time.Second)
		store.Add(strings.Repeat("x", 1<<20), 100)
		time.Sleep(2 * time.Second)
	})
	log := p.output.String()
	must.Expect(t, len(log) <= 8<<10, "%d bytes are logged: %.1000s", len(log), log)
	p.bounded(200)
}
