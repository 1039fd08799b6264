package bridge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// exchangeRaw sends bytes on a connection of its own and gives the responses until the server closes it.
func exchangeRaw(t *testing.T, address, request string) string {
	t.Helper()
	c := must.Get(net.Dial("tcp", address))(t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	go io.WriteString(c, request)
	got, _ := io.ReadAll(c)
	return string(got)
}

// Between SIGTERM and the end of drain_pause readiness fails, while requests are served and connections given up.
func TestTheBridgeDrains(t *testing.T) {
	s := newSite(t, echo)
	address, stop := served(t, bridge.Options{Drupal: s.URL, ServingOptions: bridge.ServingOptions{DrainPause: 1500 * time.Millisecond}})
	status := func(method, path string) (int, bool) {
		r := must.Get(http.NewRequest(method, "http://"+address+path, nil))(t)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, false
		}
		res.Body.Close()
		return res.StatusCode, res.Close
	}
	for _, path := range []string{"/", "/readyz", "/healthz"} {
		got, closes := status("OPTIONS", path)
		must.Expect(t, got == 200 && !closes, "before: %s gives %d, closes: %v", path, got, closes)
	}
	began, ended := time.Now(), make(chan error, 1)
	go func() { ended <- stop() }()
	eventually(t, "the bridge is still ready", func() bool { got, _ := status("GET", "/readyz"); return got == 503 })
	for path, want := range map[string]int{"/": 503, "/readyz": 503, "/healthz": 200, "/mcp/tools/list": 200} {
		got, closes := status("GET", path)
		must.Expect(t, got == want && closes, "while it drains: %s gives %d, want %d; closes the connection: %v", path, got, want, closes)
	}
	err := <-ended
	must.Expect(t, err == nil && time.Since(began) >= 1500*time.Millisecond, "ended after %s: %v", time.Since(began), err)
	got, _ := status("GET", "/healthz")
	must.Expect(t, got == 0, "after the end: %d", got)
}

// What proxies and monitors ask by default gets a success, under any host name and without credentials.
func TestUsualHealthChecks(t *testing.T) {
	address, _ := served(t, bridge.Options{Drupal: newSite(t, echo).URL, ServingOptions: bridge.ServingOptions{AllowedHosts: []string{"bridge.example"}}})
	for _, head := range []string{
		"OPTIONS / HTTP/1.0\r\n", "OPTIONS * HTTP/1.0\r\n", "HEAD / HTTP/1.0\r\n", "GET / HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n",
		"GET /health HTTP/1.0\r\n", "GET /ping HTTP/1.0\r\n", "GET /livez HTTP/1.0\r\n", "HEAD /ready HTTP/1.0\r\n", "OPTIONS /readyz HTTP/1.0\r\n",
	} {
		got := exchangeRaw(t, address, head+"\r\n")
		must.Expect(t, strings.Contains(got, " 200 OK\r\n"), "%q gets %q", head, got)
	}
	if got := exchangeRaw(t, address, "GET /other HTTP/1.0\r\nHost: 10.0.0.7\r\n\r\n"); !strings.Contains(got, " 403 ") || !strings.Contains(got, "allowed_hosts") {
		t.Errorf("another path under another name gets %q, want 403 that names allowed_hosts", got)
	}
}

// A client that sends all of a body that is refused reads the refusal, though the body is larger than what sockets hold.
func TestARefusedBodyIsDrained(t *testing.T) {
	address, _ := served(t, bridge.Options{Drupal: newSite(t, echo).URL})
	const size = 32 << 20
	for name, c := range map[string]struct{ path, header, want string }{
		"too large":         {"/mcp/tools/invoke", "Content-Length: %d", " 413 "},
		"too large, by MCP": {"/mcp", "Accept: application/json\r\nContent-Length: %d", " 413 "},
		"no such path":      {"/other", "Content-Length: %d", " 404 "},
		"another site":      {"/mcp/tools/invoke", "Origin: http://evil.example\r\nContent-Length: %d", " 403 "},
		"no credentials":    {"/mcp/admin/invalidate", "Content-Length: %d", " 401 "},
	} {
		t.Run(name, func(t *testing.T) {
			conn := must.Get(net.Dial("tcp", address))(t)
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(20 * time.Second))
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+c.header+"\r\n\r\n", c.path, size)
			if n, err := io.Copy(conn, io.LimitReader(blanks{}, size)); err != nil { // as Apache does, before it reads
				t.Errorf("the connection was reset after %d bytes: %v", n, err)
			}
			line, err := bufio.NewReader(conn).ReadString('\n')
			must.Expect(t, strings.Contains(line, c.want), "got %q, %v, want%s", line, err, c.want)
		})
	}
}

// blanks is an endless body.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A connection on which two lengths of a body were given is not used again.
func TestTwoLengthsOfABodyCloseTheConnection(t *testing.T) {
	address, _ := served(t, bridge.Options{Drupal: newSite(t, echo).URL})
	const second = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	post := func(headers string) string {
		return exchangeRaw(t, address, "POST /mcp/tools/invoke HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+headers+"\r\n\r\n2\r\n{}\r\n0\r\n\r\n"+second)
	}
	got := post("Content-Length: 12")
	must.Expect(t, strings.Count(got, "HTTP/1.1 ") == 2, "one length: %q", got)
	for _, headers := range []string{"Content-Length: 12\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\ncontent-length: 5"} {
		got := post(headers)
		must.Expect(t, strings.Count(got, "HTTP/1.1 ") == 1 && strings.Contains(got, "Connection: close\r\n"), "%q: %q", headers, got)
	}
}

// Below a path everything is found whether the proxy removes the path or not, and the challenge names an address below it.
func TestAPathPrefix(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, echo)
	const public = "http://127.0.0.1/drupal/mcp"
	front := start(t, s, func(o *bridge.Options) { o.OAuthIssuer, o.OAuthResource = a.URL, public })
	challenge := send(t, front, "", "POST", "/drupal/mcp", listTools).Header.Get("WWW-Authenticate")
	const metadata = "/drupal/.well-known/oauth-protected-resource/mcp"
	must.Expect(t, strings.Contains(challenge, `resource_metadata="http://127.0.0.1`+metadata+`"`), "the challenge is %s", challenge)
	for _, path := range []string{metadata, strings.TrimPrefix(metadata, "/drupal"), "/.well-known/oauth-protected-resource/drupal/mcp"} {
		got := send(t, front, "", "GET", path, "")
		must.Expect(t, got.Status == 200 && strings.Contains(got.Body, `"resource":"`+public+`"`), "%s: %d %s", path, got.Status, got.Body)
	}
	plain := start(t, s, func(o *bridge.Options) { o.BasePath = "/a/b/" })
	for path, want := range map[string]int{"/a/b/healthz": 200, "/healthz": 200, "/a/b": 200, "/a/b/mcp/tools/list": 200, "/mcp/tools/list": 200, "/a/bc": 404, "/a/b/a/b/healthz": 404} {
		must.Equal(t, get(t, plain, path), want, "status of %s", path)
	}
	for _, bad := range []string{"a", "/a b", "/a//b", "/", "/é"} {
		_, err := bridge.New(bridge.Options{Drupal: s.URL, BasePath: bad})
		must.Expect(t, (err == nil) == (bad == "/"), "base_path %q: %v", bad, err)
	}
}

// request_timeout bounds a request over all that it waits for, by either interface.
func TestARequestHasOneBound(t *testing.T) {
	s := newSite(t, echo)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	front := start(t, s, func(o *bridge.Options) {
		o.UpstreamTimeout, o.RequestTimeout, o.MaxInFlight = time.Second, time.Second, 1
	})
	got := call(t, front, "", "content.echo", "{}")
	must.Assert(t, got.Status == 200, "the positive control: %d %s", got.Status, got.Body)
	s.change(func() { s.response = func(http.ResponseWriter, *http.Request, rpc) { <-release } })
	began := time.Now()
	var all sync.WaitGroup
	for range 4 { // the last would have to wait for three others
		all.Go(func() {
			got := call(t, front, "", "content.echo", "{}")
			must.Expect(t, got.Status == 504 || got.Status == 503, "got %d %s", got.Status, got.Body)
			const run = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"content.echo","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
			send(t, front, "", "POST", "/mcp", run, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "content.echo")
		})
	}
	all.Wait()
	took := time.Since(began)
	must.Expect(t, took <= 4*time.Second, "two rounds of requests with a bound of 1 s took %s", took) // two requests, one after the other
	_, err := bridge.New(bridge.Options{Drupal: s.URL, CallOptions: bridge.CallOptions{UpstreamTimeout: time.Minute},
		ServingOptions: bridge.ServingOptions{RequestTimeout: time.Second}})
	must.Expect(t, err != nil, "a bound below upstream_timeout is taken")
}

// Proxies must close an idle connection first; Caddy keeps them for 2 minutes.
func TestIdleConnectionsOutliveThoseOfProxies(t *testing.T) {
	server := must.Get(bridge.Options{Drupal: "http://site.example"}.Server(nil))(t)
	must.Expect(t, server.IdleTimeout > 2*time.Minute, "idle connections are closed after %s", server.IdleTimeout)
}

// With a listener of their own, metrics and administration are not on the public one; probes are on both.
func TestTheOperatorsListener(t *testing.T) {
	o := bridge.Options{Drupal: newSite(t, echo).URL, AdminListen: "127.0.0.1:0", ServingOptions: bridge.ServingOptions{AllowedHosts: []string{"bridge.example"}, MaxConnections: 1}}
	b := must.Get(bridge.New(o))(t)
	defer b.Close()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	stop := must.Get(o.ServeAdmin(b, l))(t)
	front := serve(t, b)
	for path, want := range map[string][2]int{ // public, admin
		"/healthz": {200, 200}, "/readyz": {200, 200}, "/metrics": {404, 200}, "/mcp/admin/diagnostics": {404, 401}, "/mcp/tools/list": {200, 404}, "/mcp": {400, 404},
	} {
		public := send(t, front, "", "GET", path, "", "Host", "bridge.example").Status
		res := must.Get(http.Get("http://" + l.Addr().String() + path))(t)
		res.Body.Close()
		must.Equal(t, [2]int{public, res.StatusCode}, want, "statuses of %s, public and the operator's", path)
	}
	stop()
	must.Refuse((&net.Dialer{}).DialContext(context.Background(), "tcp", l.Addr().String()))(t, "", "it still listens")
}
