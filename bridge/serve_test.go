package bridge_test

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

func TestTheSitesCertificateIsChecked(t *testing.T) {
	s := &site{methods: []string{echo}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	list(t, start(t, s, func(o *bridge.Options) { o.UpstreamCA = file }), "agent").expect(t, 200, "with the authority's file")
	r := list(t, start(t, s), "agent")
	must.Expect(t, r.Status == 502 && r.Code() == "upstream_error", "without: %d %s", r.Status, r.Body)
}

func TestTheLogJoinsBothSidesAndKeepsSecrets(t *testing.T) {
	s := newSite(t, echo)
	log := &program.Output{}
	front := start(t, s, func(o *bridge.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	r := send(t, front, "agent", "GET", "/mcp/tools/list", "", "X-Request-Id", "abc-1", "Traceparent", "00-trace", "Cookie", "SESSx=canary")
	must.Expect(t, r.Header.Get("X-Request-Id") == "abc-1", "headers %v", r.Header)
	s.Close()
	call(t, front, "agent", "content.echo", "{}")
	for _, has := range []string{`"request_id":"abc-1"`, `"traceparent":"00-trace"`, `"level":"WARN"`} {
		must.Expect(t, strings.Contains(log.String(), has), "the log lacks %s:\n%s", has, log)
	}
	for _, secret := range []string{"agent-pass", "YWdlbnQ6", "canary"} {
		must.Expect(t, !strings.Contains(log.String(), secret), "the log shows %s:\n%s", secret, log)
	}
}

// large is more than the buffers between the bridge and a caller hold.
const large = 12 << 20

// largeCalls get a large result, by either front.
var largeCalls = map[string]string{
	"/mcp/tools/invoke": "POST /mcp/tools/invoke HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n" +
		`{"name":"content.echo","arguments":{}}  `,
	"/mcp": "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: content.echo\r\nContent-Length: 220\r\n\r\n" +
		fmt.Sprintf("%-220s", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"content.echo","arguments":{},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`),
}

// reads sends a request over a connection whose receive buffer is small, and gives the response with its body still to come.
func reads(t *testing.T, address, request string) *http.Response {
	t.Helper()
	c := must.Get(net.Dial("tcp", address))(t)
	t.Cleanup(func() { c.Close() })
	c.(*net.TCPConn).SetReadBuffer(64 << 10)
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, request)
	res := must.Get(http.ReadResponse(bufio.NewReader(c), nil))(t)
	must.Assert(t, res.StatusCode == 200 && res.ContentLength >= large,
		"status %d, %d bytes, want 200 and more than %d", res.StatusCode, res.ContentLength, large)
	return res
}

func largeSite(t *testing.T) *site {
	s := newSite(t, echo)
	result := `"` + strings.Repeat("x", large) + `"`
	s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, result)
	}
	return s
}

func TestACallerWhoDoesNotReadIsCutOff(t *testing.T) {
	address, _ := served(t, bridge.Options{Drupal: largeSite(t).URL, ServingOptions: bridge.ServingOptions{WriteTimeout: 100 * time.Millisecond}})
	for path, request := range largeCalls {
		res := reads(t, address, request)
		eventually(t, path+" still waits for a caller who does not read", func() bool {
			metrics := must.Get(http.Get("http://" + address + "/metrics"))(t)
			defer metrics.Body.Close()
			text, _ := io.ReadAll(metrics.Body)
			return strings.Contains(string(text), fmt.Sprintf(`bridge_request_seconds_count{endpoint=%q,status="200"} 1`, path))
		})
		must.Refuse(io.Copy(io.Discard, res.Body))(t, "", path)
	}
}

// The time is for each part of a response, not for the whole.
func TestACallerWhoReadsSlowlyGetsItAll(t *testing.T) {
	const within = 500 * time.Millisecond
	address, _ := served(t, bridge.Options{Drupal: largeSite(t).URL, ServingOptions: bridge.ServingOptions{WriteTimeout: within}})
	for path, request := range largeCalls {
		start := time.Now()
		res := reads(t, address, request)
		var n int64
		for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
			var read int64
			read, err = io.CopyN(io.Discard, res.Body, 128<<10)
			n += read
		}
		if took := time.Since(start); n != res.ContentLength || took < 3*within/2 {
			t.Errorf("%s: %d of %d bytes in %s, want all, in longer than %s", path, n, res.ContentLength, took, within)
		}
	}
}
