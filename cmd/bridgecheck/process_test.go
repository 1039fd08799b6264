package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A bridge is ready when it responds as one: a gateway that responds for it is waited for.
func TestWhatRespondsAsABridge(t *testing.T) {
	const list, mcp = false, true
	for name, c := range map[string]struct {
		mcp             bool
		status          int
		header, body    string
		bridge, strange bool
	}{
		"tools":                     {list, 200, "application/json", `{"tools":[]}`, true, false},
		"a refusal of the contract": {list, 503, "application/json", `{"error":{"code":"upstream_unavailable","message":"x"}}`, true, false},
		"credentials are missing":   {list, 401, "text/html", `<p>no`, true, false},
		"a gateway":                 {list, 502, "text/html", `<h1>502 Bad Gateway`, false, false},
		"a gateway that has JSON":   {list, 503, "application/json", `{"error":{"message":"no upstream"}}`, false, false},
		"no such route yet":         {list, 404, "text/html", `Cannot GET /mcp/tools/list`, false, true},
		"a page":                    {list, 200, "text/html", `<h1>Welcome`, false, true},
		"an initialize":             {mcp, 200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`, true, false},
		"a stream":                  {mcp, 200, "text/event-stream", `data: x`, true, false},
		"another revision":          {mcp, 404, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}`, true, false},
		"a gateway before MCP":      {mcp, 504, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"x"}}`, false, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.header)
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		ask := listTools
		if c.mcp {
			ask = initialize
		}
		got := look(t.Context(), server.Client(), server.URL, ask)
		must.Expect(t, got.bridge == c.bridge && got.strange == c.strange && got.seen != "", "%s: got %+v", name, got)
		server.Close()
		got = look(t.Context(), server.Client(), server.URL, ask)
		must.Expect(t, !got.bridge && !got.strange && strings.Contains(got.seen, "nothing listens at the address in BRIDGE_LISTEN (127.0.0.1:"),
			"%s, with nothing there: got %+v", name, got)
	}
}

// A program that takes connections and never responds is not described as one that refuses them, which it did before.
func TestWhoWasWaitedForIsNotRefused(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	log := must.Get(createLog(t.TempDir(), nil))(t)
	defer log.Close()
	p := &process{command: "silent", log: log, exited: make(chan struct{})}
	err := p.awaitReady(t.Context(), "http://"+silent.Addr().String(), 1500*time.Millisecond, []string{"tools"})
	must.Say(t, err, "last seen: no response for 1.")
}
