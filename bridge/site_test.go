package bridge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// site is a Drupal site small enough to read: what it lists and responds is a field.
type site struct {
	*httptest.Server
	discoveries, calls atomic.Int64

	mu       sync.Mutex
	methods  []string                                            // entries of /jsonrpc/methods
	meta     string                                              // its meta member; "" for none
	list     http.HandlerFunc                                    // replaces the whole of GET /jsonrpc/methods
	response func(w http.ResponseWriter, r *http.Request, c rpc) // replaces the echo
	lastAuth string
}

// rpc is a call as the site got it.
type rpc struct {
	Method string
	Params json.RawMessage
	ID     json.RawMessage
}

// echo is a method that takes anything and gives it back.
const echo = `{"id":"content.echo","attributes":{"usage":"Echoes","params":{` +
	`"n":{"schema":{"type":"integer","minimum":1}},"any":{"schema":{}}},"mcpTool":{}}}`

func method(id string) string {
	return fmt.Sprintf(`{"id":%q,"attributes":{"usage":"Method %s","mcpTool":{"title":%q}}}`, id, id, id)
}

func newSite(t testing.TB, methods ...string) *site {
	s := &site{methods: methods, meta: `{"mcp":{"discovery":true}}`}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	methods, meta, list, response := s.methods, s.meta, s.list, s.response
	s.lastAuth = r.Header.Get("Authorization")
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/jsonrpc/methods":
		s.discoveries.Add(1)
		if list != nil {
			list(w, r)
			return
		}
		doc := `{"data":[` + strings.Join(methods, ",") + `]`
		if meta != "" {
			doc += `,"meta":` + meta
		}
		io.WriteString(w, doc+"}")
	case "/jsonrpc":
		s.calls.Add(1)
		var c rpc
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		if response != nil {
			response(w, r, c)
			return
		}
		if c.Params == nil {
			c.Params = json.RawMessage("null")
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, c.Params)
	default:
		http.NotFound(w, r)
	}
}

// clock is a clock that moves only by advance.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_700_000_000, c.offset.Load()) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// start puts a bridge before the site.
func start(t testing.TB, s *site, change ...func(*bridge.Options)) *httptest.Server {
	t.Helper()
	o := bridge.Options{Drupal: s.URL}
	for _, f := range change {
		f(&o)
	}
	return serve(t, must.Get(bridge.New(o))(t))
}

// reply is a response of the bridge, read to its end.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

// expect is must.Expect for the status of the response.
func (r reply) expect(t testing.TB, status int, what string, args ...any) {
	t.Helper()
	must.Expect(t, r.Status == status, "%s: got %d %.300s, want %d", fmt.Sprintf(what, args...), r.Status, r.Body, status)
}

// Code is the error code in the envelope, "" without an envelope.
func (r reply) Code() string {
	var e struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal([]byte(r.Body), &e) != nil || e.Error.Message == "" {
		return ""
	}
	return e.Error.Code
}

// send asks the bridge as a user; "" is anonymous.
func send(t testing.TB, front *httptest.Server, user, method, path, body string, headers ...string) reply {
	t.Helper()
	req := must.Get(http.NewRequest(method, front.URL+path, strings.NewReader(body)))(t)
	if user != "" {
		req.SetBasicAuth(user, user+"-pass")
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1] // net/http sends no other
		}
	}
	res := must.Get(front.Client().Do(req))(t)
	defer res.Body.Close()
	b := must.Get(io.ReadAll(res.Body))(t)
	return reply{res.StatusCode, res.Header, string(b)}
}

func list(t testing.TB, front *httptest.Server, user string) reply {
	t.Helper()
	return send(t, front, user, "GET", "/mcp/tools/list", "")
}

func call(t testing.TB, front *httptest.Server, user, name, arguments string) reply {
	t.Helper()
	return send(t, front, user, "POST", "/mcp/tools/invoke", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

// serve puts an existing bridge on an address.
func serve(t testing.TB, b *bridge.Bridge) *httptest.Server {
	front := httptest.NewServer(b)
	t.Cleanup(func() { front.Close(); b.Close() })
	return front
}

// get asks without credentials and gives the status.
func get(t testing.TB, front *httptest.Server, path string) int {
	return send(t, front, "", "GET", path, "").Status
}
