package bridge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// mcpPost sends a message of a session; id "" goes without one.
func mcpPost(t testing.TB, front *httptest.Server, user, id, body string) reply {
	t.Helper()
	if id == "" {
		return send(t, front, user, "POST", "/mcp", body)
	}
	return send(t, front, user, "POST", "/mcp", body, "Mcp-Session-Id", id)
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ping       = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

func TestASessionBelongsToWhoOpenedItAndExpires(t *testing.T) {
	clock := &clock{}
	front := start(t, newSite(t, echo), func(o *bridge.Options) { o.Now, o.SessionIdle = clock.now, time.Minute })
	id := mcpPost(t, front, "agent", "", initialize).Header.Get("Mcp-Session-Id")
	for _, step := range []struct {
		name, user, id string
		wait           time.Duration
		want           int
	}{
		{"its owner", "agent", id, 0, 200},
		{"another user", "other", id, 0, 404},
		{"no session", "agent", "", 0, 400},
		{"an invented one", "agent", "x", 0, 404},
		{"used in time", "agent", id, 50 * time.Second, 200},
		{"and again", "agent", id, 50 * time.Second, 200},
		{"unused for too long", "agent", id, 61 * time.Second, 404},
	} {
		clock.advance(step.wait)
		mcpPost(t, front, step.user, step.id, ping).expect(t, step.want, "%s", step.name)
	}
}

// A client of a session that disconnects does not cancel its call, which the site ends as any other.
func TestAClientOfASessionDisconnects(t *testing.T) {
	s, reached, cancelled := newSite(t, echo), make(chan struct{}), make(chan bool, 1)
	front := start(t, s)
	s.change(func() {
		s.response = func(_ http.ResponseWriter, r *http.Request, _ rpc) {
			close(reached)
			select {
			case <-r.Context().Done():
				cancelled <- true
			case <-time.After(300 * time.Millisecond):
				cancelled <- false
			}
		}
	})
	id := mcpPost(t, front, "agent", "", initialize).Header.Get("Mcp-Session-Id")
	ctx, disconnect := context.WithCancel(t.Context())
	call := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"content.echo","arguments":{}}}`
	r := must.Get(http.NewRequestWithContext(ctx, "POST", front.URL+"/mcp", strings.NewReader(call)))(t)
	r.SetBasicAuth("agent", "agent-pass")
	r.Header.Set("Mcp-Session-Id", id)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	go func() {
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	<-reached
	disconnect()
	must.Expect(t, !<-cancelled, "the bridge cancelled the call")
}

func TestRefusalsOfMCP(t *testing.T) {
	s := newSite(t, echo)
	front := start(t, s)
	s.change(func() {
		s.list = func(w http.ResponseWriter, r *http.Request) {
			if user, _, _ := r.BasicAuth(); user == "nobody" { // as Drupal responds to an account that it does not know
				w.WriteHeader(http.StatusForbidden)
				return
			}
			io.WriteString(w, `{"data":[`+echo+`]}`)
		}
	})
	id := mcpPost(t, front, "agent", "", initialize).Header.Get("Mcp-Session-Id")
	for name, c := range map[string]struct {
		user, method, body string
		headers            []string
		status             int
		says               string
	}{
		"ping":                          {"agent", "POST", ping, []string{"Mcp-Session-Id", id}, 200, `"result":{}`},
		"GET in an unknown revision":    {"agent", "GET", "", []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "1999-01-01"}, 400, "-32022"},
		"DELETE in an unknown revision": {"agent", "DELETE", "", []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "1999-01-01"}, 400, "-32022"},
		"GET in the stateless revision": {"agent", "GET", "", []string{"Mcp-Protocol-Version", "2026-07-28"}, 405, "not allowed"},
		"a notification in an unknown revision": {"agent", "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
			[]string{"Mcp-Protocol-Version", "1999-01-01"}, 400, "-32022"},
		"initialize without a revision":          {"agent", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil, 200, "-32602"},
		"an account that the site does not know": {"nobody", "POST", initialize, nil, 403, "access_denied"},
		"a batch":                                {"agent", "POST", `[` + ping + `]`, []string{"Mcp-Session-Id", id}, 400, "-32600"},
		"a null id":                              {"agent", "POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, []string{"Mcp-Session-Id", id}, 400, "-32600"},
		"no UTF-8":                               {"agent", "POST", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", []string{"Mcp-Session-Id", id}, 400, "-32700"},
		"too deep":                               {"agent", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, []string{"Mcp-Session-Id", id}, 400, "-32700"},
		"text":                                   {"agent", "POST", ping, []string{"Mcp-Session-Id", id, "Content-Type", "text/plain"}, 415, "application/json"},
		"a client that takes HTML":               {"agent", "POST", ping, []string{"Mcp-Session-Id", id, "Accept", "text/html"}, 406, "accept"},
		"a page of another host":                 {"agent", "POST", ping, []string{"Mcp-Session-Id", id, "Origin", "http://evil.example"}, 403, "web sites"},
		"a page of nowhere":                      {"agent", "POST", ping, []string{"Mcp-Session-Id", id, "Origin", "null"}, 403, "web sites"},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, front, c.user, c.method, "/mcp", c.body, c.headers...)
			must.Expect(t, got.Status == c.status && strings.Contains(got.Body, c.says), "got %d %s, want %d with %s", got.Status, got.Body, c.status, c.says)
		})
	}
}

func TestStdioSpeaksOnlyMessages(t *testing.T) {
	s := newSite(t, echo)
	b := must.Get(bridge.New(bridge.Options{Drupal: s.URL}))(t)
	defer b.Close()
	in := strings.Join([]string{
		initialize,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		``,
		`not JSON`,
		strings.Repeat("x", 5<<20),
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\r",
		`{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"content.echo","arguments":{"n":1}}}`,
	}, "\n")
	var out strings.Builder
	must.Do(t, b.ServeStdio(t.Context(), strings.NewReader(in), &out, "agent", "agent-pass"))
	var lines []string
	for scan := bufio.NewScanner(strings.NewReader(out.String())); scan.Scan(); {
		lines = append(lines, scan.Text())
	}
	for _, want := range []string{`"protocolVersion":"2025-11-25"`, `"code":-32700`, `longer than 2097152 bytes`, `"id":7,"result":{}`, `"id":"last","result"`} {
		must.Expect(t, len(lines) == 5 && strings.Contains(out.String(), want), "want 5 lines, %s among them; got %q", want, lines)
	}
}

// A client shows the error that its first request gets, and not what the process prints.
func TestStdioSaysThatTheSiteRefusesTheAccount(t *testing.T) {
	refusing := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	b := must.Get(bridge.New(bridge.Options{Drupal: refusing.URL}))(t)
	defer b.Close()
	err := b.ServeStdio(t.Context(), strings.NewReader(initialize), io.Discard, "agent", "")
	must.Expect(t, err != nil && err.Error() == "the site refuses the account: DRUPAL_PASSWORD is not set", "without a password the error is %v", err)
	err = b.ServeStdio(t.Context(), strings.NewReader(initialize), io.Discard, "", "")
	must.Expect(t, err != nil && err.Error() == "the site refuses the account: DRUPAL_USER is not set", "without an account the error is %v", err)
	for in, answers := range map[string]int{"": 0, `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n" + initialize + "\n": 1} {
		var out strings.Builder
		err := b.ServeStdio(t.Context(), strings.NewReader(in), &out, "agent", "wrong")
		if err == nil || !strings.HasPrefix(err.Error(), "the site refuses the account: ") ||
			strings.Count(out.String(), err.Error()) != answers || strings.Count(out.String(), "\n") != answers {
			t.Errorf("after %q the error is %v, and the client got %q", in, err, &out)
		}
	}
}

func TestStreamsEndWithAReload(t *testing.T) {
	s := newSite(t, echo)
	b := must.Get(bridge.New(bridge.Options{Drupal: s.URL}))(t)
	front := serve(t, b)
	id := mcpPost(t, front, "agent", "", initialize).Header.Get("Mcp-Session-Id")
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", front.URL+"/mcp", nil))(t)
	r.SetBasicAuth("agent", "agent-pass")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", id)
	res, err := http.DefaultClient.Do(r)
	must.Assert(t, err == nil && res.StatusCode == 200, "the stream does not open: %v %v", res, err)
	defer res.Body.Close()
	must.Do(t, b.Reload(bridge.Options{Drupal: s.URL}))
	_, err = io.ReadAll(res.Body)
	must.Expect(t, err == nil, "the stream broke off: %v", err)
}

// Opening a session with 500 tools takes less than 5 ms, once the site has been asked.
func BenchmarkSessionOpenWith500Tools(b *testing.B) {
	front := start(b, newSite(b, bulk(500)...))
	mcpPost(b, front, "agent", "", initialize)
	for b.Loop() {
		id := mcpPost(b, front, "agent", "", initialize).Header.Get("Mcp-Session-Id")
		mcpPost(b, front, "agent", id, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	}
}

// A thousand idle sessions hold less than 60 MB.
func BenchmarkThousandIdleSessions(b *testing.B) {
	front := start(b, newSite(b, bulk(500)...))
	mcpPost(b, front, "agent", "", initialize)
	for b.Loop() {
		before := heap()
		for range 1000 {
			mcpPost(b, front, "agent", "", initialize)
		}
		b.ReportMetric(float64(heap()-before)/1e6, "MB/1000")
	}
}

// A thousand idle sessions whose clients listen for changes hold less than 60 MB, the clients' ends of the connections
// included.
func BenchmarkThousandListeningSessions(b *testing.B) {
	var open []net.Conn
	end := func() {
		for _, conn := range open {
			conn.Close()
		}
		open = nil
	}
	defer end() // else the bridge waits for its streams
	for b.Loop() {
		front := start(b, newSite(b, bulk(500)...)) // its own: sessions whose streams have just ended still count
		mcpPost(b, front, "agent", "", initialize)
		before := heap()
		for range 1000 {
			conn := must.Get(net.Dial("tcp", front.Listener.Addr().String()))(b)
			open = append(open, conn)
			id := mcpPost(b, front, "agent", "", initialize).Header.Get("Mcp-Session-Id")
			fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: bridge\r\nAuthorization: Basic YWdlbnQ6YWdlbnQtcGFzcw==\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", id)
			status := make([]byte, len("HTTP/1.1 200"))
			_, err := io.ReadFull(conn, status)
			must.Assert(b, err == nil && strings.HasSuffix(string(status), " 200"), "the stream does not open: %s %v", status, err)
		}
		b.ReportMetric(float64(heap()-before)/1e6, "MB/1000")
		end()
	}
}

// heap is what the process holds, stacks included.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// tools/call beside a server of the official SDK that makes the same call to the site: at least 0.9 of it.
func BenchmarkToolsCallBesideSDK(b *testing.B) {
	site := benchSite(b)
	beside(b, 16, 2000, mcpCall(sdkFloor(b, site.URL).URL), mcpCall(benchBridge(b, site.URL).URL+"/mcp"))
}

// sdkFloor is a bare server of the SDK with one tool.
func sdkFloor(b *testing.B, site string) *httptest.Server {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "content.search", Description: "Searches"},
		func(context.Context, *sdk.CallToolRequest, struct {
			Query string `json:"query"`
			Limit int    `json:"limit,omitempty"`
		}) (*sdk.CallToolResult, any, error) {
			res, err := client.Post(site+"/jsonrpc", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"content.search","params":{}}`))
			if err != nil {
				return nil, nil, err
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil, err
		})
	bare := must.Serve(b, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	return bare
}

func mcpCall(url string) func() *http.Request {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"content.search","arguments":{"query":"words","limit":10},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"b","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	return func() *http.Request {
		r, _ := http.NewRequest("POST", url, strings.NewReader(body))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "content.search",
			"Authorization": "Basic YWdlbnQ6YWdlbnQtcGFzcw=="} {
			r.Header.Set(name, value)
		}
		return r
	}
}
