package testbed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

func start(t *testing.T, o Options) *Testbed {
	t.Helper()
	bed := must.Get(Start(o))(t)
	t.Cleanup(bed.Close)
	return bed
}

// list requests the first page of tools as the agent and returns its body.
func list(t *testing.T, bed *Testbed) string {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, bed.URL+"/mcp/tools/list", nil))(t)
	req.SetBasicAuth("agent", "agent-pass")
	if bed.Authority != nil {
		req.Header.Set("Authorization", "Bearer "+bed.Authority.Issue("agent", bed.URL+"/mcp"))
	}
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must.Assert(t, err == nil && resp.StatusCode == http.StatusOK, "%v %d %s", err, resp.StatusCode, body)
	return string(body)
}

func TestEveryProfileListsTools(t *testing.T) {
	for _, p := range Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			bed := start(t, Options{Profile: p.Name})
			must.Expect(t, strings.Contains(list(t, bed), `"inputSchema"`), "the list has no tools")
			_, err := engine.Checks(engine.Options{Contract: contract.Draft, Capabilities: p.Capabilities, Skip: p.Skip})
			must.Expect(t, err == nil, "%v", err)
		})
	}
}

func TestOptionsTakeEffect(t *testing.T) {
	var sent, received []string
	bed := start(t, Options{
		Bridge: func(o *bridge.Options) { o.PageSize = 1 },
		Middleware: func(b Backends, handler http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				received = append(received, b.SiteURL+" "+r.URL.Path)
				handler.ServeHTTP(w, r)
			})
		},
		Transport: func(site http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.URL.Path)
				return site.RoundTrip(r)
			})
		},
		Server: func(s *http.Server) { s.MaxHeaderBytes = 1 << 20 },
	})
	var page struct{ Tools []json.RawMessage }
	err := json.Unmarshal([]byte(list(t, bed)), &page)
	must.Expect(t, err == nil && len(page.Tools) == 1, "%v: a page has %d tools, not 1", err, len(page.Tools))
	must.Expect(t, len(sent) > 0 && len(received) == 1 && strings.HasPrefix(received[0], "http://127.0.0.1:"),
		"the transport saw %v, the middleware %v", sent, received)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAdvanceMovesTheClockOfBridgeAndMock(t *testing.T) {
	var now func() time.Time
	bed := start(t, Options{Bridge: func(o *bridge.Options) { now = o.Now }})
	before := now()
	bed.Advance(time.Hour)
	ahead := now().Sub(before)
	must.Expect(t, ahead >= time.Hour && ahead <= time.Hour+time.Minute, "the bridge's clock moved by %s", ahead)
	ahead = bed.Now().Sub(before)
	must.Expect(t, ahead >= time.Hour && ahead <= time.Hour+time.Minute, "the testbed's clock moved by %s", ahead)
}

func TestStdioSpeaksMCP(t *testing.T) {
	bed := start(t, Options{Stdout: func(w io.Writer) io.Writer { return prefixed{w} }})
	conn := must.Get(bed.Stdio(t.Context()))(t)
	defer conn.Close()
	go fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	line, err := bufio.NewReader(conn).ReadString('\n')
	must.Expect(t, err == nil && strings.HasPrefix(line, "> {") && strings.Contains(line, `"protocolVersion"`),
		"%v: the response is %q", err, line)
}

// prefixed writes an arrow before each message.
type prefixed struct{ io.Writer }

func (p prefixed) Write(b []byte) (int, error) {
	_, err := p.Writer.Write(append([]byte("> "), b...))
	return len(b), err
}

func TestUnknownNamesAreErrors(t *testing.T) {
	for _, o := range []Options{{Profile: "none"}, {Fixture: "none"}} {
		if bed, err := Start(o); err == nil {
			bed.Close()
			t.Errorf("%+v starts", o)
		}
	}
}
