package suites

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"bridgecheck/suites/exact"
)

// wrongHeader is a header of the stateless revision that disagrees with the body, or is missing.
type wrongHeader struct {
	what, name, value string // value "": the header is left out
}

var wrongHeaders = []wrongHeader{
	{"another method", "Mcp-Method", "tools/call"},
	{"no method", "Mcp-Method", ""},
	{"another version", "MCP-Protocol-Version", string(MCP2025November)},
}

var _ = Area("mcp", func(b *Bridge) {
	b.Check("mcp/stateless-2026", func(ctx SpecContext) {
		s := b.As(Agent).MCP(ctx, MCP2026July)
		Expect(s.Opened).To(Meet("server/discover with supportedVersions, the tools capability and resultType", discoverFault))
		first := s.ListTools(ctx, "")
		Expect(first).To(HaveTools())
		for _, page := range s.ListAllTools(ctx).Pages {
			Expect(page).To(Meet("resultType complete, cacheScope private and a ttlMs of 0 or more", cacheFault))
		}
		for _, w := range wrongHeaders {
			h := s.headers("tools/list", nil)
			h.Del(w.name)
			if w.value != "" {
				h.Set(w.name, w.value)
			}
			r := s.send(ctx, s.message(1, "tools/list", map[string]any{}), h)
			Expect(r).To(BeRefusedWith(400), "headers that disagree with the body: "+w.what)
			Expect(r).To(BeProtocolError("-32020"), "headers that disagree with the body: "+w.what)
		}
		bare := s.send(ctx, map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": map[string]any{}}, s.headers("tools/list", nil))
		Expect(bare).To(BeRefusedWith(400), "no _meta")
		Expect(bare).To(BeProtocolError("-32602"), "no _meta")

		future := &Session{Client: s.Client, Revision: "2999-01-01"}
		refused := future.ListTools(ctx, "")
		Expect(refused).To(BeRefusedWith(400), "a revision that nobody knows")
		Expect(refused).To(BeProtocolError("-32022"), "a revision that nobody knows")
		Expect(refused).To(Meet("data.supported with the revisions that it knows", func(a *Answer) string {
			failure, _ := a.RPC()["error"].(map[string]any)
			data, _ := failure["data"].(map[string]any)
			if supported, _ := data["supported"].([]any); !holds(supported, string(MCP2026July)) {
				return a.rpcOutcome()
			}
			return ""
		}))
		unknown := s.Call(ctx, "no/such/method", map[string]any{})
		Expect(unknown).To(BeRefusedWith(404), "a method that nobody has")
		Expect(unknown).To(BeProtocolError("-32601"), "a method that nobody has")
		if b.Drupal != nil {
			b.namedByHeader(ctx, s)
		}
	})

	b.Check("mcp/stdio", func(ctx SpecContext) {
		if b.stdio == nil {
			NotTestable("how the bridge is started for stdio is unknown: give --exec with --mcp-stdio")
		}
		for _, revision := range []Revision{MCP2025November, MCP2025June} {
			p := b.dialStdio(ctx)
			opened := p.call(ctx, 1, "initialize", map[string]any{"protocolVersion": string(revision), "capabilities": map[string]any{}, "clientInfo": clientInfo})
			result, _ := opened["result"].(map[string]any)
			Expect(result["protocolVersion"]).To(Equal(string(revision)), "initialize over stdio: expected the version %s, got %s", revision, exact.Short(opened))
			p.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
			names := []string{}
			for cursor, id := any(nil), 2; ; id++ {
				params := map[string]any{}
				if cursor != nil {
					params["cursor"] = cursor
				}
				listed := p.call(ctx, id, "tools/list", params)
				page, _ := listed["result"].(map[string]any)
				tools, ok := page["tools"].([]any)
				Expect(ok).To(BeTrue(), "tools/list over stdio: expected tools, got %s", exact.Short(listed))
				for _, t := range tools {
					if t, ok := t.(map[string]any); ok {
						names = append(names, Tool(t).Name())
					}
				}
				if cursor = page["nextCursor"]; cursor == nil || id > maxPages {
					break
				}
			}
			Expect(names).To(ConsistOf(b.Visible(Service)), "tools/list over stdio as service: expected what service may see, got another list")
			called := p.call(ctx, 9001, "tools/call", map[string]any{"name": b.KnownTool(ctx), "arguments": map[string]any{}})
			ran, _ := called["result"].(map[string]any)
			Expect(ran).To(HaveKey("content"), "tools/call over stdio: expected a result, got %s", exact.Short(called))
			refused := p.call(ctx, 9002, "tools/call", map[string]any{"name": "no.such.tool", "arguments": map[string]any{}})
			Expect(refused).To(HaveKey("error"), "tools/call of no.such.tool over stdio: expected a protocol error, got %s", exact.Short(refused))
			Expect(p.noise()).To(BeEmpty(), "stdout of the bridge: expected protocol messages only, got something else")
		}
	})

	b.Check("fresh/notify", func(ctx SpecContext) {
		if !b.Claims("mcp") && !b.Claims("mcp-2026") {
			NotTestable("the bridge claims no revision of MCP")
		}
		for _, revision := range b.revisions(ctx) {
			b.As(Agent).MustListAll(ctx)
			events, stop := b.As(Agent).listen(ctx, revision)
			Consistently(events.changes).WithContext(ctx).WithTimeout(100*time.Millisecond).WithPolling(20*time.Millisecond).
				Should(BeZero(), "nothing changed: expected no notifications/tools/list_changed, got one (%s)", revision)
			b.Replace(b.Drupal.with(arrivalOld, ""))
			told := b.Await(ctx, func() bool { return events.changes() > 0 })
			stop()
			Expect(told).To(BeTrue(), "the tools changed: expected notifications/tools/list_changed within %v, got none (%s)", b.patience(), revision)
			b.Drupal.mock.SetSite(b.Drupal.with("", arrival))
			b.expire()
		}
	})
})

// namedByHeader holds tools/call against the header that names the tool.
func (b *Bridge) namedByHeader(ctx context.Context, s *Session) {
	known := b.KnownTool(ctx)
	params := map[string]any{"name": known, "arguments": map[string]any{}}
	Expect(s.Call(ctx, "tools/call", params)).To(BeToolResult())
	h := s.headers("tools/call", params)
	h.Set("Mcp-Name", "=?base64?"+base64.StdEncoding.EncodeToString([]byte(known))+"?=")
	Expect(s.send(ctx, s.message(3, "tools/call", params), h)).To(BeToolResult(), "Mcp-Name in base64")
	b.Drupal.Mark()
	h.Set("Mcp-Name", known+"x")
	r := s.send(ctx, s.message(4, "tools/call", params), h)
	Expect(r).To(BeRefusedWith(400), "Mcp-Name of another tool")
	Expect(r).To(BeProtocolError("-32020"), "Mcp-Name of another tool")
	Expect(b.Drupal.Runs()).To(BeEmpty(), "Mcp-Name of another tool: expected no run, got one")
}

func discoverFault(a *Answer) string {
	result := a.RPCResult()
	versions, _ := result["supportedVersions"].([]any)
	capabilities, _ := result["capabilities"].(map[string]any)
	if _, tools := capabilities["tools"].(map[string]any); !tools || !holds(versions, string(MCP2026July)) || result["resultType"] != "complete" {
		return a.rpcOutcome()
	}
	return ""
}

func cacheFault(a *Answer) string {
	result := a.RPCResult()
	ttl, isNumber := result["ttlMs"].(json.Number)
	switch {
	case result["resultType"] != "complete":
		return "resultType " + exact.Short(result["resultType"])
	case result["cacheScope"] != "private":
		return "cacheScope " + exact.Short(result["cacheScope"])
	case !isNumber || strings.HasPrefix(ttl.String(), "-"):
		return "ttlMs " + exact.Short(result["ttlMs"])
	}
	return ""
}

func holds(list []any, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

// pipe is a bridge that speaks MCP on its stdin and stdout.
type pipe struct {
	to      io.Writer
	lines   chan string
	strange []string
}

// dialStdio starts the bridge for stdio; it ends with the check.
func (b *Bridge) dialStdio(ctx context.Context) *pipe {
	conn, err := b.stdio(ctx)
	if err != nil {
		NotTestable("the bridge does not start for stdio: " + err.Error())
	}
	DeferCleanup(conn.Close)
	p := &pipe{to: conn, lines: make(chan string, 1024)}
	go func() {
		defer close(p.lines)
		scan := bufio.NewScanner(conn)
		scan.Buffer(nil, maxAnswer)
		for scan.Scan() {
			p.lines <- scan.Text()
		}
	}()
	return p
}

func (p *pipe) send(message map[string]any) {
	_, err := p.to.Write(append(encode(message), '\n'))
	Expect(err).NotTo(HaveOccurred(), "writing to the bridge's stdin")
}

// call sends a request and waits for its response.
func (p *pipe) call(ctx context.Context, id int, method string, params map[string]any) map[string]any {
	p.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	for {
		select {
		case line, open := <-p.lines:
			Expect(open).To(BeTrue(), "%s over stdio: expected a response, got the end of stdout", method)
			v, err := exact.Parse([]byte(line))
			message, ok := v.(map[string]any)
			if err != nil || !ok || message["jsonrpc"] != "2.0" {
				p.strange = append(p.strange, exact.Cut(line, 120))
				continue
			}
			if fmt.Sprint(message["id"]) == fmt.Sprint(id) && message["method"] == nil {
				return message
			}
		case <-patience.C:
			Expect(p.strange).To(BeNil(), "%s over stdio: expected a response, got only other lines", method)
			Fail(mismatch(method+" over stdio", "a response within 10s", "none"))
		case <-ctx.Done():
			Fail(mismatch(method+" over stdio", "a response", "none before the run ended"))
		}
	}
}

// noise are the lines of stdout that are no protocol messages.
func (p *pipe) noise() []string { return p.strange }

// listener collects the notifications of a stream.
type listener struct {
	body chan []byte
	all  []byte
}

// listen opens the stream on which the revision's notifications come, and waits until it stands.
func (c Client) listen(ctx context.Context, revision Revision) (l *listener, stop func()) {
	s := c.MustMCP(ctx, revision)
	ctx, cancel := context.WithCancel(ctx)
	method, h, message := http.MethodGet, s.headers("", nil), []byte(nil)
	h.Set("Accept", "text/event-stream")
	if revision.stateless() {
		params := map[string]any{"notifications": map[string]any{"toolsListChanged": true}}
		method, h, message = http.MethodPost, s.headers("subscriptions/listen", params), encode(s.message(4711, "subscriptions/listen", params))
		h.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(ctx, method, c.bridge.url+MCPPath, strings.NewReader(string(message)))
	if err != nil {
		cancel()
		NotTestable("the stream of notifications does not open: " + err.Error())
	}
	c.creds.apply(req.Header)
	for name, values := range h {
		req.Header[name] = values
	}
	resp, err := c.bridge.transport.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		cancel()
		Fail(mismatch(fmt.Sprintf("the stream of notifications in %s", revision), "200 with text/event-stream", fmt.Sprint(statusOf(resp), err)))
	}
	l = &listener{body: make(chan []byte, 256)}
	go func() {
		defer close(l.body)
		defer resp.Body.Close()
		for {
			chunk := make([]byte, 8<<10)
			n, err := resp.Body.Read(chunk)
			if n > 0 {
				l.body <- chunk[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return l, cancel
}

func statusOf(resp *http.Response) string {
	if resp == nil {
		return "no answer: "
	}
	return resp.Status + " "
}

// changes counts the notifications of a changed list so far.
func (l *listener) changes() int {
	for {
		select {
		case chunk, open := <-l.body:
			l.all = append(l.all, chunk...)
			if open {
				continue
			}
		default:
		}
		break
	}
	n := 0
	for _, m := range events(l.all) {
		if m["method"] == "notifications/tools/list_changed" {
			n++
		}
	}
	return n
}
