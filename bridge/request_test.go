package bridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// fuzzSite is a site without a network: it lists one method and sends back what it is called with.
type fuzzSite struct{}

func (fuzzSite) RoundTrip(r *http.Request) (*http.Response, error) {
	text := `{"data":[{"id":"content.echo","attributes":{"usage":"Echoes","params":{"v":{"schema":{"type":["integer","array"]}}},"mcpTool":{}}}],"meta":{"mcp":{"discovery":true}}}`
	if r.Method == http.MethodPost {
		var call struct{ ID, Params json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			return nil, err
		}
		text = `{"jsonrpc":"2.0","id":` + string(call.ID) + `,"result":` + string(call.Params) + `}`
	}
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// Whatever a request is, the bridge responds in its own form, without a failure of its own and without a secret.
func FuzzRequest(f *testing.F) {
	log := &program.Output{}
	b, err := bridge.New(bridge.Options{
		Drupal:        "http://site.example",
		Transport:     fuzzSite{},
		CallerOptions: bridge.CallerOptions{AdminTokens: []caller.Secret{"operator-canary"}, AccountFailures: 1 << 30, AddressFailures: 1 << 30, TotalFailures: 1 << 30},
		Logger:        slog.New(slog.NewTextHandler(log, nil)),
	})
	must.Do(f, err)
	defer b.Close()
	const stateless = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, request := range []struct{ head, body string }{
		{"GET /mcp/tools/list?cursor=NTA HTTP/1.1\r\nAccept-Language: de, en;q=0.5\r\nAuthorization: Basic YTpi", ""},
		{"GET /mcp/tools/describe?name=content.echo HTTP/1.1\r\nAuthorization: bearer x.y.z\r\nX-Forwarded-For: 1.2.3.4", ""},
		{"POST /mcp/tools/invoke HTTP/1.1\r\nContent-Type: application/json\r\nTraceparent: 00-0-0-0\r\nX-Request-Id: r", `{"name":"content.echo","arguments":{"v":[1,{"a":"\ud83d"}]}}`},
		{"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`},
		{"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: =?base64?Y29udGVudC5lY2hv?=", `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"content.echo","arguments":{"v":1},` + stateless + `}}`},
		{"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nMcp-Session-Id: x", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`},
		{"GET /mcp HTTP/1.1\r\nAccept: text/event-stream\r\nLast-Event-Id: 1", ""},
		{"DELETE /mcp HTTP/1.1\r\nMcp-Session-Id: \xff", ""},
		{"POST /mcp/admin/invalidate HTTP/1.1\r\nAuthorization: Bearer operator", ""},
		{"OPTIONS * HTTP/1.1\r\nOrigin: http://evil.example\r\nCookie: SESSa=b; SESSb=c", ""},
		{"GET /metrics HTTP/1.0", ""}, {"GET //readyz/../healthz HTTP/1.1", ""},
	} {
		f.Add([]byte(request.head), []byte(request.body))
	}
	f.Fuzz(func(t *testing.T, head, body []byte) {
		r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(head), strings.NewReader("\r\nHost: bridge.example\r\n\r\n"))))
		if err != nil {
			t.Skip() // net/http refuses it before the bridge sees it
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // which ends streams
		defer cancel()
		r = r.WithContext(ctx)
		r.Body, r.ContentLength, r.RemoteAddr = io.NopCloser(bytes.NewReader(body)), int64(len(body)), "192.0.2.1:1234"
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		text := log.Take()
		must.Expect(t, w.Code != http.StatusInternalServerError && w.Code >= 200 && !strings.Contains(text, "panic"),
			"%d %s\n%s", w.Code, w.Body, text)
		kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
		must.Expect(t, kind != "application/json" || w.Body.Len() == 0 || json.Valid(w.Body.Bytes()), "no JSON: %q", w.Body)
		must.Lacks(t, text+w.Body.String(), "operator-canary", "what is shown")
	})
}
