package bridge_test

import (
	"bytes"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestTheSitesCertificateIsChecked(t *testing.T) {
	s := &site{methods: []string{echo}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	r := list(t, start(t, s, func(o *bridge.Options) { o.UpstreamCA = file }), "agent")
	must.Expect(t, r.Status == 200, "with the authority's file: %d %s", r.Status, r.Body)
	r = list(t, start(t, s), "agent")
	must.Expect(t, r.Status == 502 && r.Code() == "upstream_error", "without: %d %s", r.Status, r.Body)
}

func TestTheLogJoinsBothSidesAndKeepsSecrets(t *testing.T) {
	s := newSite(t, echo)
	var mu sync.Mutex
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	front := start(t, s, func(o *bridge.Options) { o.Logger = logger })
	r := send(t, front, "agent", "GET", "/mcp/tools/list", "", "X-Request-Id", "abc-1", "Traceparent", "00-trace", "Cookie", "SESSx=canary")
	must.Expect(t, r.Header.Get("X-Request-Id") == "abc-1", "headers %v", r.Header)
	s.Close()
	call(t, front, "agent", "content.echo", "{}")
	mu.Lock()
	defer mu.Unlock()
	for _, has := range []string{`"request_id":"abc-1"`, `"traceparent":"00-trace"`, `"level":"WARN"`} {
		must.Expect(t, strings.Contains(log.String(), has), "the log lacks %s:\n%s", has, &log)
	}
	for _, secret := range []string{"agent-pass", "YWdlbnQ6", "canary"} {
		must.Expect(t, !strings.Contains(log.String(), secret), "the log shows %s:\n%s", secret, &log)
	}
}

// writer makes an io.Writer of a function.
type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
