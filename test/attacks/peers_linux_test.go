package attacks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
)

const (
	peerLimit = 250 // MiB of a bridge before a hostile site or authorization server
	peerWaits = 20 * time.Second
)

// A site sends what it likes to one caller, as its list or as its results: that caller gets an error in time, others are
// served, and the bridge holds little.
func TestSites(t *testing.T) {
	limitMemory(t)
	for _, attack := range answers {
		t.Run(attack.name, func(t *testing.T) {
			s := newSite(t)
			var n atomic.Int64
			others := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, _, _ := r.BasicAuth()
				if user == "mallory" || user == "trudy" && r.URL.Path != "/jsonrpc/methods" {
					attack.send(w, n.Add(1))
					return
				}
				others.ServeHTTP(w, r)
			})
			p := start(t, s, "--upstream-timeout", "3s")
			p.besides(func() {
				crowd(16, func(i int) {
					ctx, cancel := context.WithTimeout(context.Background(), peerWaits)
					defer cancel()
					user := []string{"mallory", "trudy"}[i%2]
					status, body := p.call(ctx, user, "content.echo", `{"v":1}`)
					must.Expect(t, status >= 400 && len(body) <= 64<<10, "%s gets %d %.300s", user, status, body)
				})()
			})
			must.Expect(t, n.Load() != 0, "the site was not asked: nothing was attacked")
			p.quiet(64 << 10)
			p.bounded(peerLimit)
		})
	}
}

// An authorization server sends what it likes in place of its metadata, its keys and its word on tokens: callers get a 401 or
// 503 in time, probes are served, and a good token is accepted once the server is itself again.
func TestIssuers(t *testing.T) {
	limitMemory(t)
	for _, attack := range answers {
		for mode, flags := range map[string][]string{
			"metadata":      nil,
			"keys":          {"--oauth-jwks", "/jwks"},
			"introspection": {"--oauth-introspection", "--oauth-client", "bridge"},
		} {
			t.Run(attack.name+"/"+mode, func(t *testing.T) {
				if mode == "introspection" {
					t.Setenv("BRIDGE_OAUTH_CLIENT_SECRET", secret)
				}
				a := newJWKSServer(t)
				var n atomic.Int64
				var sane atomic.Bool
				front := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if sane.Load() {
						a.ServeHTTP(w, r)
						return
					}
					attack.send(w, n.Add(1))
				}))
				a.URL = front.URL // the issuer
				given := append([]string{"--oauth-issuer", a.URL, "--oauth-resource", jwksResource, "--upstream-timeout", "3s"}, flags...)
				if mode == "keys" {
					given[len(given)-1] = a.URL + authserver.KeysPath
				}
				p := launch(t, newSite(t), given...)
				bearer := http.Header{"Authorization": {"Bearer " + a.Issue("7", jwksResource)}}
				ask := func() (int, string) {
					ctx, cancel := context.WithTimeout(context.Background(), peerWaits)
					defer cancel()
					return p.send(ctx, "127.0.0.1", "", "GET", "/mcp/tools/list", "", bearer)
				}
				wait := crowd(8, func(int) {
					status, body := ask()
					must.Expect(t, (status == 401 || status == 503) && len(body) <= 64<<10, "a caller gets %d %.300s", status, body)
				})
				for range 5 {
					status, body := p.send(context.Background(), "127.0.0.1", "", "GET", "/healthz", "", nil)
					must.Expect(t, status == 200, "/healthz: %d %s", status, body)
				}
				wait()
				must.Expect(t, n.Load() != 0, "the authorization server was not asked: nothing was attacked")
				if sane.Store(true); mode == "keys" {
					status := 0
					for end := time.Now().Add(peerWaits); status != 200 && time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
						status, _ = ask()
					}
					must.Expect(t, status == 200, "a good token gets %d once the authorization server is itself again", status)
				}
				p.quiet(64 << 10)
				p.bounded(peerLimit)
			})
		}
	}
}

// An authorization server says of every token that it is good, and much more: what the bridge keeps of it and writes into its log
// is bounded, and so is how often it asks.
func TestIssuersSayMuch(t *testing.T) {
	const tokens = 2000
	limitMemory(t)
	t.Setenv("BRIDGE_OAUTH_CLIENT_SECRET", secret)
	name, long, longer := strings.Repeat("x", 1000), strings.Repeat("x", 60<<10), strings.Repeat("x", 900<<10)
	for _, attack := range []struct {
		name                  string
		issuer, claims, token string // JSON, %d is the number of the request; "": as usual
		served                bool
	}{
		{name: "as a server says it", served: true},
		{name: "a long name", claims: `"sub":"%d` + name + `","client_id":"` + name + `"`, served: true},
		{name: "a longer name", claims: `"sub":"%d` + long + `"`},
		{name: "an endless name", claims: `"sub":"%d` + longer + `"`},
		{name: "many scopes", claims: `"sub":"%d","scope":["` + strings.Repeat(`a","`, 250) + `"]`, served: true},
		{name: "more scopes", claims: `"sub":"%d","scope":["` + strings.Repeat(`a","`, 10<<10) + `"]`},
		{name: "a long token", token: `"%dx` + strings.Repeat(name, 15) + `"`, served: true},
		{name: "a longer token", token: `"%dx` + long + `"`},
		{name: "an endless token", token: `"%dx` + longer + `"`},
		{name: "a header in the token", token: `"%d\r\nX-Admin: 1"`},
		{name: "another issuer", issuer: `"%d` + long[:50<<10] + `"`},
		{name: "an endless issuer", issuer: `"%d` + longer + `"`},
	} {
		t.Run(attack.name, func(t *testing.T) {
			var n, metadata atomic.Int64
			say := func(said, usual string) string {
				said = cmp.Or(said, usual)
				return strings.Replace(said, "%d", strconv.FormatInt(n.Add(1), 10), 1)
			}
			var issuer *httptest.Server
			issuer = must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/token":
					io.WriteString(w, `{"token_type":"Bearer","expires_in":3600,"access_token":`+say(attack.token, `"%dx"`)+`}`)
				case "/introspect":
					fmt.Fprintf(w, `{"active":true,"aud":%q,"exp":%d,%s}`, jwksResource, time.Now().Add(time.Hour).Unix(), say(attack.claims, `"sub":"%d"`))
				default:
					metadata.Add(1)
					fmt.Fprintf(w, `{"issuer":%s,"introspection_endpoint":"%s/introspect","token_endpoint":"%[2]s/token"}`,
						say(attack.issuer, strconv.Quote(issuer.URL)), issuer.URL)
				}
			}))
			p := launch(t, &site{Server: &httptest.Server{URL: jwksSite(t)}}, "--oauth-issuer", issuer.URL, "--oauth-resource", jwksResource,
				"--oauth-introspection", "--oauth-client", "bridge", "--oauth-exchange", "site")
			began := time.Now()
			var next atomic.Int64
			crowd(8, func(int) {
				for i := next.Add(1); i <= tokens; i = next.Add(1) {
					status, body := p.send(context.Background(), "127.0.0.1", "", "GET", "/mcp/tools/list", "", http.Header{"Authorization": {fmt.Sprint("Bearer t", i)}})
					if attack.served != (status == 200) || status != 200 && status != 401 && status != 429 && status != 503 {
						t.Errorf("a caller gets %d %.300s", status, body)
						return
					}
				}
			})()
			asked, most := metadata.Load(), 6*(1+int64(time.Since(began)/(5*time.Second)))
			must.Expect(t, asked != 0 && asked <= most, "the metadata were asked for %d times, want %d at most", asked, most)
			p.bounded(peerLimit)
		})
	}
}

// forgetPeak makes what this process holds now the most that it has held: Linux counts that for a program that it starts, too.
func forgetPeak(t *testing.T) {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Logf("the memory of this process may count for the program: %v", err)
	}
}

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
			p.quiet(8 << 10)
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
	p.quiet(8 << 10)
	p.bounded(200)
}
