package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
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
		must.Expect(t, !got.bridge && !got.strange && got.seen != "", "%s, with nothing there: got %+v", name, got)
	}
}

// What tests count at the mock is not changed by health checks of its container.
func TestAHealthCheckLeavesNothingInTheMock(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	server := must.Get(drupal.Listen("127.0.0.1:0"))(t)
	defer server.Close()
	must.Get(drupal.Arm(mockdrupal.Fault{Kind: fault.Status, Status: 503, Count: 1}))(t)
	for range 3 {
		healthy(t, 0, strings.TrimPrefix(server.URL, "http://"))
	}
	n := len(drupal.Journal().Entries(0))
	must.Expect(t, n == 0, "the journal has %d entries, expected none", n)
	healthy(t, 1, server.URL) // a request, by contrast, takes the fault and is recorded
	n = len(drupal.Journal().Entries(0))
	must.Expect(t, n == 1, "the journal has %d entries after a request, expected 1", n)
}

// A certificate names the bridge's public address, which a loopback address is not.
func TestAHealthCheckOfTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Redirect(w, r, "/healthz", http.StatusFound)
		}
	}))
	defer server.Close()
	healthy(t, 0, server.URL+"/healthz")
	healthy(t, 1, server.URL+"/elsewhere")
}

func healthy(t *testing.T, want int, address string) {
	t.Helper()
	var out, stderr bytes.Buffer
	code := execute(t.Context(), []string{"healthy", address}, &out, &stderr)
	must.Expect(t, code == want, "healthy %s: exit code %d, expected %d: %s", address, code, want, stderr.String())
}
