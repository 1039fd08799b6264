package attacks

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// sessionOpen opens an MCP session.
func sessionOpen(t testing.TB, base string, headers ...string) string {
	t.Helper()
	r := identitySend(t, "POST", base+"/mcp", identityInitialize, headers...)
	must.Assert(t, r.status == 200 && r.header.Get("Mcp-Session-Id") != "", "initialize: %d %s", r.status, r.body)
	return r.header.Get("Mcp-Session-Id")
}

func sessionPing(t testing.TB, base, id string, headers ...string) int {
	t.Helper()
	return identitySend(t, "POST", base+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, append(headers, "Mcp-Session-Id", id)...).status
}

// Anonymous callers who open sessions without end cost nobody a session that is in use: neither those who are known nor
// other anonymous callers.
func TestSessionFloodOfAnonymousInitializes(t *testing.T) {
	base := identityBridge(t, newIdentitySite(t).URL)
	agent := []string{"Authorization", identityBasic("user1", "user1-pass")}
	known, unknown := sessionOpen(t, base, agent...), sessionOpen(t, base)
	sessionPing(t, base, known, agent...)
	sessionPing(t, base, unknown)
	var refused atomic.Int64
	crowd(16, func(int) {
		for range 700 { // more than all places
			if r := identitySend(t, "POST", base+"/mcp", identityInitialize); r.status == 503 && r.header.Get("Retry-After") != "" {
				refused.Add(1)
			} else if r.status != 200 {
				t.Errorf("initialize: %d %s", r.status, r.body)
			}
		}
	})()
	must.Equal(t, sessionPing(t, base, known, agent...), 200, "the session of a known caller")
	must.Equal(t, sessionPing(t, base, unknown), 200, "an anonymous session in use")
	sessionOpen(t, base, agent...)
}

// New settings end no session, and a stream that is opened again goes on.
func TestSessionSurvivesAReload(t *testing.T) {
	site := newIdentitySite(t)
	b, base := identityServe(t, site.URL)
	agent := []string{"Authorization", identityBasic("user1", "user1-pass")}
	id := sessionOpen(t, base, agent...)
	for range 3 {
		must.Do(t, b.Reload(bridge.Options{Drupal: site.URL, ToolOptions: bridge.ToolOptions{PageSize: 10}}))
		must.Equal(t, sessionPing(t, base, id, agent...), 200, "after a reload")
	}
	status := sessionPing(t, base, id, "Authorization", identityBasic("user2", "user2-pass"))
	must.Expect(t, status == 404, "another caller in the session: %d", status)
}

// What fails over /mcp is logged, counted and named as what fails over the tools API.
func TestSessionFailuresAreSeen(t *testing.T) {
	site := newIdentitySite(t)
	log := &program.Output{}
	base := identityBridge(t, site.URL, func(o *bridge.Options) { o.Logger = slog.New(slog.NewJSONHandler(log, nil)) })
	agent := []string{"Authorization", identityBasic("user1", "user1-pass")}
	id := sessionOpen(t, base, agent...)
	identitySend(t, "GET", base+"/mcp/tools/list", "", agent...)
	site.CloseClientConnections()
	site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	calls := map[string]string{
		"session":   `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"content.echo","arguments":{}}}`,
		"stateless": `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"content.echo","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	}
	for revision, body := range calls {
		headers := append([]string{"X-Request-Id", "mine-" + revision, "Mcp-Session-Id", id}, agent...)
		if revision == "stateless" {
			headers = append(headers, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "content.echo")
		}
		r := identitySend(t, "POST", base+"/mcp", body, headers...)
		must.Expect(t, strings.Contains(r.body, `"isError":true`) && r.header.Get("X-Request-Id") == "mine-"+revision,
			"%s: %d %s, X-Request-Id %q", revision, r.status, r.body, r.header.Get("X-Request-Id"))
		must.Expect(t, strings.Contains(log.String(), `"request_id":"mine-`+revision+`"`),
			"%s: the log has no line of the request:\n%s", revision, log)
	}
	identitySend(t, "POST", base+"/mcp/tools/invoke", identityCall, append(agent, "X-Request-Id", "mine-rest")...)
	for line := range strings.Lines(log.String()) {
		var entry struct {
			Msg, Level, Path string
			Status           int
			RequestID        string `json:"request_id"`
		}
		must.Do(t, json.Unmarshal([]byte(line), &entry))
		must.Expect(t, entry.Msg != "request" || entry.Level == "WARN" && entry.Status == 502, "line %s", line)
	}
	figures := identitySend(t, "GET", base+"/metrics", "").body
	for _, want := range []string{`bridge_request_seconds_count{endpoint="/mcp",status="502"} 2`, `bridge_request_seconds_count{endpoint="/mcp/tools/invoke",status="502"} 1`} {
		must.Expect(t, strings.Contains(figures, want), "the figures lack %s", want)
	}
	must.Expect(t, !strings.Contains(log.String(), "user1-pass"), "the log shows a password")
}

// sessionTransport fails as a machine does that has no descriptors left, until that is changed.
type sessionTransport struct {
	exhausted atomic.Pointer[error]
}

func (s *sessionTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := s.exhausted.Load(); err != nil {
		return nil, *err
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A bridge that has no descriptors left says so; it does not take the site for dead.
func TestSessionExhaustedDescriptorsAreNoDeadSite(t *testing.T) {
	site := newIdentitySite(t)
	transport := &sessionTransport{}
	base := identityBridge(t, site.URL, func(o *bridge.Options) { o.Transport = transport })
	agent := []string{"Authorization", identityBasic("user1", "user1-pass")}
	identitySend(t, "GET", base+"/mcp/tools/list", "", agent...)
	for _, cause := range []error{
		os.NewSyscallError("socket", syscall.EMFILE), os.NewSyscallError("socket", syscall.ENFILE), os.NewSyscallError("connect", syscall.EADDRNOTAVAIL),
		&net.DNSError{Err: "too many open files", UnwrapErr: os.NewSyscallError("socket", syscall.EMFILE)},
	} {
		var err error = &net.OpError{Op: "dial", Net: "tcp", Err: cause}
		transport.exhausted.Store(&err)
		for range 20 {
			r := identitySend(t, "POST", base+"/mcp/tools/invoke", identityCall, agent...)
			must.Expect(t, r.status == 503 && strings.Contains(r.body, "overloaded") && r.header.Get("Retry-After") != "", "%v: %d %s", cause, r.status, r.body)
		}
		identitySend(t, "GET", base+"/readyz", "").expect(t, 200, "%v: /readyz", cause)
		transport.exhausted.Store(nil)
		identitySend(t, "POST", base+"/mcp/tools/invoke", identityCall, agent...).expect(t, 200, "%v, a moment later", cause)
	}
	// A site that is dead is still taken for dead.
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	base = identityBridge(t, dead.URL)
	for i := range 10 {
		identitySend(t, "GET", base+"/mcp/tools/list", "", "Authorization", fmt.Sprint("Bearer good-", i))
	}
	identitySend(t, "GET", base+"/readyz", "").expect(t, 503, "/readyz of a dead site")
}
