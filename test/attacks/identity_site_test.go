package attacks

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// identitySite is a Drupal site that knows accounts by Basic credentials, tokens and session cookies, and counts what it
// is asked. As Drupal does, it takes a name in any letter case, and refuses wrong Basic credentials with 403.
type identitySite struct {
	*httptest.Server

	mu          sync.Mutex
	asked       int // requests for its methods
	refused     int // of them, with credentials that are wrong
	calls       int
	running     int // requests for its methods at one time
	mostRunning int
	languages   map[string]bool
	forwarded   map[string]bool
	slow        chan struct{} // nil: the site responds at once; else when it is closed
}

const identityTools = `{"data":[{"id":"content.echo","attributes":{"usage":"Echoes","params":{"text":{"schema":{"type":"string"}}},"mcpTool":{}}}],"meta":{"mcp":{"discovery":true}}}`

func newIdentitySite(t testing.TB) *identitySite {
	s := &identitySite{languages: map[string]bool{}, forwarded: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// accepts reports whether the credentials of a request are those of an account: the password of NAME is NAME-pass.
func (s *identitySite) accepts(r *http.Request) bool {
	if user, password, basic := r.BasicAuth(); basic {
		name := strings.ToLower(strings.TrimSpace(user))
		return strings.HasPrefix(name, "user") && password == name+"-pass"
	}
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		return strings.HasPrefix(token, "good-")
	}
	if cookie := r.Header.Get("Cookie"); cookie != "" {
		return strings.Contains(cookie, "=good")
	}
	return true
}

func (s *identitySite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	good := s.accepts(r)
	s.mu.Lock()
	s.languages[r.Header.Get("Accept-Language")] = true
	s.forwarded[r.Header.Get("X-Forwarded-For")] = true
	slow := s.slow
	s.mu.Unlock()
	if r.URL.Path == "/jsonrpc" {
		s.count(func() { s.calls++ })
		var call struct{ ID, Params json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || !good {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, call.Params)
		return
	}
	s.count(func() {
		s.asked++
		s.running++
		s.mostRunning = max(s.mostRunning, s.running)
		if !good {
			s.refused++
		}
	})
	defer s.count(func() { s.running-- })
	if slow != nil {
		select {
		case <-slow:
		case <-r.Context().Done():
			return
		}
	}
	switch bearer := strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "); {
	case good:
		io.WriteString(w, identityTools)
	case bearer:
		w.Header().Set("WWW-Authenticate", `Bearer realm="OAuth"`)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.WriteHeader(http.StatusForbidden)
	}
}

func (s *identitySite) count(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// identityCounts is what a site was asked so far.
type identityCounts struct{ asked, refused, calls, running, mostRunning int }

func (s *identitySite) counts() identityCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return identityCounts{s.asked, s.refused, s.calls, s.running, s.mostRunning}
}

// identityBridge serves a bridge with these options before a site, on a listener of its own; its address is given.
func identityBridge(t testing.TB, site string, change ...func(*bridge.Options)) string {
	t.Helper()
	_, base := identityServe(t, site, change...)
	return base
}

// newServer makes a bridge, which is closed with the test, its server and a listener for that.
func newServer(t testing.TB, o bridge.Options) (*bridge.Bridge, *http.Server, net.Listener) {
	t.Helper()
	b := must.Get(bridge.New(o))(t)
	t.Cleanup(func() { b.Close() })
	server := must.Get(o.Server(b))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	return b, server, l
}

func identityServe(t testing.TB, site string, change ...func(*bridge.Options)) (*bridge.Bridge, string) {
	t.Helper()
	o := bridge.Options{Drupal: site, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	b, server, l := newServer(t, o)
	go server.Serve(l) //nolint:errcheck // it ends with Close
	t.Cleanup(func() { server.Close() })
	return b, "http://" + l.Addr().String()
}

// identityReply is a response, read to its end.
type identityReply struct {
	status int
	header http.Header
	body   string
}

// expect is must.Expect for the status of the response.
func (r identityReply) expect(t testing.TB, status int, what string, args ...any) {
	t.Helper()
	must.Expect(t, r.status == status, "%s: got %d %.300s, want %d", fmt.Sprintf(what, args...), r.status, r.body, status)
}

// identitySend sends a request; headers are pairs of name and value, of which Host is the request's own.
func identitySend(t testing.TB, method, address, body string, headers ...string) identityReply {
	t.Helper()
	r := must.Get(http.NewRequest(method, address, strings.NewReader(body)))(t)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Add(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	res := must.Get(http.DefaultTransport.RoundTrip(r))(t)
	defer res.Body.Close()
	read := must.Get(io.ReadAll(res.Body))(t)
	return identityReply{res.StatusCode, res.Header, string(read)}
}

// identityBasic is the header of Basic credentials.
func identityBasic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

const identityCall = `{"name":"content.echo","arguments":{"text":"x"}}`

const identityInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
