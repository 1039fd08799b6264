package suites_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// hasty is a listener whose connections serve one request each and are closed when a second one comes on them, unread:
// what a caller sees when an idle connection ends just as it sends.
type hasty struct {
	net.Listener
	mu    sync.Mutex
	idle  map[net.Conn]bool // served a request
	drops int
}

func (h *hasty) Accept() (net.Conn, error) {
	conn, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &hastyConn{conn, h}, nil
}

func (h *hasty) watch(conn net.Conn, state http.ConnState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if state == http.StateIdle {
		h.idle[conn] = true
	}
}

type hastyConn struct {
	net.Conn
	of *hasty
}

func (c *hastyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if n > 0 && c.of.idle[c] {
		c.of.drops++
		return 0, io.EOF
	}
	return n, err
}

// serveHasty serves h behind a hasty listener.
func serveHasty(t *testing.T, h http.Handler) (url string, drops func() int) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	listener := &hasty{Listener: server.Listener, idle: map[net.Conn]bool{}}
	server.Listener, server.Config.ConnState = listener, listener.watch
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, func() int {
		listener.mu.Lock()
		defer listener.mu.Unlock()
		return listener.drops
	}
}

// quitter is a bridge that does what an invoke asks for and then closes the connection in place of a response. It counts
// the requests to invoke that reach it, by verb and body.
type quitter struct {
	http.Handler
	mu    sync.Mutex
	asked map[string]int
}

func (q *quitter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/invoke") {
		q.Handler.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	q.mu.Lock()
	q.asked[r.Method+" "+r.URL.RawQuery+" "+string(body)]++
	q.mu.Unlock()
	q.Handler.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

func referenceBefore(t *testing.T, drupal http.Handler) *bridge.Bridge {
	t.Helper()
	return reference(t, bridge.Options{Drupal: serveAt(t, drupal)})
}

func TestABridgeThatClosesIdleConnectionsIsNotBlamed(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	for name, o := range map[string]suites.Options{
		"with a mock": {Site: suites.Site{Drupal: drupal}, Cases: 20},
		"without a mock": {Callers: suites.Callers{Credentials: passwords(suites.Agent), Invocations: []suites.Invocation{
			{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pong"`)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Only = []string{"list/answers-json", "describe/answers-tool", "invoke/answers-result", "invoke/runs-once", "invoke/arguments-forwarded",
				"invoke/malformed-json", "invoke/missing-arguments", "invoke/large-body"}
			url, drops := serveHasty(t, referenceBefore(t, drupal))
			report := run(t, url, o)
			for _, r := range report.With(reports.Fail, reports.Warn, reports.Error) {
				t.Errorf("%s is %s: %s", r.ID, r.Verdict, r.Message)
			}
			must.Expect(t, drops() >= 20 && report.Summary.Pass >= 6,
				"%d connections were dropped, %d clauses kept: nothing was shown", drops(), report.Summary.Pass)
		})
	}
}

func TestWhatMayHaveRunIsNotSentAgain(t *testing.T) {
	module := moduleSite(t, "v1.3") // which runs tools by GET as well
	plain := defaultSite(t, mockdrupal.Options{}, nil)
	allowed := []suites.Invocation{{Tool: "result.string", Identity: suites.Agent}}
	for name, c := range map[string]struct {
		bridge http.Handler
		o      suites.Options
	}{
		"with a mock":            {referenceBefore(t, plain), suites.Options{Site: suites.Site{Drupal: plain}, Only: []string{"invoke/answers-result"}}},
		"without a mock":         {referenceBefore(t, plain), suites.Options{Callers: suites.Callers{Credentials: passwords(suites.Agent), Invocations: allowed}, Only: []string{"invoke/answers-result"}}},
		"without a mock, by GET": {module, suites.Options{Callers: suites.Callers{Credentials: passwords(suites.Agent), Invocations: allowed}, Only: []string{"invoke/post-only"}}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &quitter{Handler: c.bridge, asked: map[string]int{}}
			report, err := suites.Run(t.Context(), suites.Target{URL: serveAt(t, q)}, c.o)
			var unreachable *suites.UnreachableError
			must.Assert(t, err == nil || errors.As(err, &unreachable), "%v", err)
			for request, n := range q.asked {
				must.Expect(t, n <= 1, "%d times: %s", n, request)
			}
			must.Expect(t, len(q.asked) > 0, "nothing was invoked")
			must.Expect(t, c.o.Only[0] != "invoke/answers-result" || report.Results[0].Verdict == reports.Fail,
				"a bridge that gives no response is %s: %s", report.Results[0].Verdict, report.Results[0].Message)
		})
	}
}

// Checks that look at what is listed share the lists: each page is asked for once, and is evidence in each of them.
func TestListsAreShared(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	report := run(t, serveAt(t, referenceBefore(t, drupal)), suites.Options{Site: suites.Site{Drupal: drupal},
		Bridge: suites.Bridge{Owned: true}, Only: []string{"list/names-unique", "schema/bounded", "list/only-marked-methods"}})
	sent := 0
	for clause, got := range verdicts(report) {
		must.Expect(t, got.Verdict == reports.Pass, "%s: %s: %s", clause, got.Verdict, got.Message)
		if got.Requests > 0 {
			sent++
		}
	}
	must.Expect(t, sent == 1, "%d of three checks sent requests, want the first alone", sent)
}
