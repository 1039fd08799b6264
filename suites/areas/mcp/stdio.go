package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/mcpschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func stdio(ctx context.Context, t *check.T) {
	if t.Stdio == nil {
		check.NotTestable("how the bridge is started for stdio is unknown: give --exec with --mcp-stdio")
	}
	revisions := []check.Revision{check.MCP2025November, check.MCP2025June}
	if t.Claims("mcp-2026") {
		revisions = append(revisions, check.MCP2026July)
	}
	supported := 0
	for _, revision := range revisions {
		p := dialStdio(ctx, t, revision)
		if !p.open(ctx) {
			continue // one of the revisions is enough
		}
		supported++
		opened := map[bool]mcpschema.Kind{true: mcpschema.Discover, false: mcpschema.Initialize}[revision.Stateless()]
		t.Expect(mcpschema.Fault(string(revision), opened, p.opened)).To(BeEmpty(),
			check.Mismatch(fmt.Sprintf("the first response over stdio in %s", revision), fmt.Sprintf("a valid %s", opened), ""))
		names := p.listAll(ctx)
		if t.Drupal != nil {
			t.Expect(shownFault(t, check.Service, names)).To(BeEmpty(), check.Mismatch(fmt.Sprintf("tools/list over stdio as service in %s", revision), "exactly what service may see", ""))
			t.Expect(match.Repeated(names)).To(BeEmpty(), check.Mismatch(fmt.Sprintf("tools/list over stdio as service in %s", revision), "each tool once", fmt.Sprintf("several of %s", match.Abbreviate(match.Repeated(names)))))
			called := p.call(ctx, "tools/call", map[string]any{"name": scenario.KnownTool(ctx, t), "arguments": map[string]any{}})
			result, _ := called["result"].(map[string]any)
			t.Expect(result).To(HaveKey("content"), check.Mismatch("tools/call over stdio", "a result", exact.Short(called)))
			t.Expect(mcpschema.Fault(string(revision), mcpschema.CallTool, result)).To(BeEmpty(),
				check.Mismatch(fmt.Sprintf("tools/call over stdio in %s", revision), "a valid result", ""))
			t.Expect(result["isError"]).NotTo(Equal(true), check.Mismatch("tools/call over stdio", "a result that is no error", exact.Short(called)))
			p.callsWell(ctx, t)
		}
		refused := p.call(ctx, "tools/call", map[string]any{"name": scenario.NoSuchTool, "arguments": map[string]any{}})
		t.Expect(codeOf(refused) == "-32602" || t.Foreign() && notRefused(refused) == "").To(BeTrue(), check.Mismatch(fmt.Sprintf("tools/call of %s over stdio", scenario.NoSuchTool), "the protocol error -32602", exact.Short(refused)))
		unknown := p.call(ctx, "no/such/method", map[string]any{})
		t.Expect(codeOf(unknown)).To(Equal("-32601"), check.Mismatch("no/such/method over stdio", "the protocol error -32601", exact.Short(unknown)))
		t.Expect(p.strange).To(BeEmpty(), check.Mismatch("stdout of the bridge", "protocol messages only", match.Abbreviate(p.strange)))
	}
	if supported == 0 {
		untestedRevision(ctx, t)
	}
	stdioWithBadMethods(ctx, t, revisions)
	t.Expect(supported).NotTo(BeZero(), check.Mismatch("initialize over stdio", fmt.Sprintf("one of the revisions %v in the response", revisions), "none of them"))
}

// stdioWithBadMethods starts the bridge over a site with methods that it may leave out: what it says of them is for its log.
func stdioWithBadMethods(ctx context.Context, t *check.T, revisions []check.Revision) {
	if t.Drupal == nil || !t.ShowsSoon() || t.HasFindings() {
		return
	}
	site := t.Drupal.Site().Clone()
	poisoned, err := fixtures.Builtin("poisoned")
	t.Expect(err).NotTo(HaveOccurred())
	site.Methods = poisoned.Methods
	t.ReplaceForNewcomers(ctx, site)
	t.ExpireCaches() // of a bridge that serves stdio by the process that serves HTTP
	for _, revision := range revisions {
		if p := dialStdio(ctx, t, revision); p.open(ctx) {
			p.listAll(ctx)
			t.Expect(p.strange).To(BeEmpty(), check.Mismatch("stdout of the bridge, before a site with methods that it leaves out", "protocol messages only", match.Abbreviate(p.strange)))
			return
		}
	}
}

// callsWell tests calls over stdio as over HTTP: a method that fails gives a result with isError, and a long text comes
// back whole.
func (p *pipe) callsWell(ctx context.Context, t *check.T) {
	if failing := anyFailing(t); failing != "" {
		failed := p.call(ctx, "tools/call", map[string]any{"name": failing, "arguments": map[string]any{}})
		result, _ := failed["result"].(map[string]any)
		t.Expect(result["isError"]).To(Equal(true), check.Mismatch("tools/call of a method that fails over stdio", "a result with isError", exact.Short(failed)))
	}
	echo, ok := scenario.FindEcho(t)
	if !ok {
		return
	}
	const long = 128 << 10
	text := strings.Repeat("é", long/2)
	echoed := p.call(ctx, "tools/call", map[string]any{"name": t.ToolName(echo.ID), "arguments": echo.Arguments(text)})
	result, _ := echoed["result"].(map[string]any)
	t.Expect(strings.Contains(string(client.Encode(result)), text)).To(BeTrue(), check.Mismatch(fmt.Sprintf("tools/call over stdio with a text of %d bytes", long), "the same text in the result", exact.Short(echoed)))
}

// codeOf is the code of a response's error; "" without one.
func codeOf(response map[string]any) string {
	failure, _ := response["error"].(map[string]any)
	if code, ok := failure["code"]; ok {
		return fmt.Sprint(code)
	}
	return ""
}

// pipe is a connection to a bridge that serves MCP on its stdin and stdout.
type pipe struct {
	t       *check.T
	session check.Session // builds the messages
	opened  map[string]any
	last    int // id
	to      io.Writer
	lines   chan string
	strange []string
}

// dialStdio starts the bridge for stdio; it ends with the check.
func dialStdio(ctx context.Context, t *check.T, revision check.Revision) *pipe {
	conn, err := t.Stdio(ctx)
	if err != nil {
		check.NotTestable("the bridge does not start for stdio: " + err.Error())
	}
	t.Cleanup(func(context.Context) { conn.Close() })
	p := &pipe{t: t, session: check.Session{Revision: revision}, to: conn, lines: make(chan string, 1024)}
	go func() {
		defer close(p.lines)
		scan := bufio.NewScanner(conn)
		scan.Buffer(nil, client.MaxResponse)
		for scan.Scan() {
			p.lines <- scan.Text()
		}
	}()
	return p
}

// open opens the session; false: the bridge does not support the revision.
func (p *pipe) open(ctx context.Context) bool {
	revision := p.session.Revision
	if revision.Stateless() {
		p.opened, _ = p.call(ctx, "server/discover", nil)["result"].(map[string]any)
		versions, _ := p.opened["supportedVersions"].([]any)
		return holds(versions, string(revision))
	}
	opened := p.call(ctx, "initialize", map[string]any{"protocolVersion": string(revision), "capabilities": map[string]any{}, "clientInfo": client.Info})
	p.opened, _ = opened["result"].(map[string]any)
	if p.opened["protocolVersion"] != string(revision) {
		return false
	}
	p.send(p.session.Message(nil, "notifications/initialized", nil))
	return true
}

// listAll names the tools over all pages.
func (p *pipe) listAll(ctx context.Context) []string {
	names := []string{}
	params := map[string]any{}
	for range check.MaxPages {
		listed := p.call(ctx, "tools/list", params)
		page, _ := listed["result"].(map[string]any)
		tools, ok := page["tools"].([]any)
		p.t.Expect(ok).To(BeTrue(), check.Mismatch("tools/list over stdio", "tools", exact.Short(listed)))
		for _, t := range tools {
			if t, ok := t.(map[string]any); ok {
				names = append(names, check.Tool(t).Name())
			}
		}
		cursor, more := page["nextCursor"]
		if !more || cursor == nil {
			return names
		}
		params = map[string]any{"cursor": cursor}
	}
	p.t.Fail(check.Mismatch("tools/list over stdio", "cursors that lead to an end", fmt.Sprintf("a cursor after %d pages", check.MaxPages)))
	return nil
}

func (p *pipe) send(message map[string]any) {
	_, err := p.to.Write(append(client.Encode(message), '\n'))
	p.t.Expect(err).NotTo(HaveOccurred(), "writing to the bridge's stdin")
}

// call sends a request and waits for its response.
func (p *pipe) call(ctx context.Context, method string, params map[string]any) map[string]any {
	p.last++
	id := p.last
	p.send(p.session.Message(id, method, params))
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	for {
		select {
		case line, open := <-p.lines:
			p.t.Expect(open).To(BeTrue(), check.Mismatch(fmt.Sprintf("%s over stdio", method), "a response", "the end of stdout"))
			v, err := exact.Parse([]byte(line))
			message, ok := v.(map[string]any)
			if err != nil || !ok || message["jsonrpc"] != "2.0" {
				p.strange = append(p.strange, exact.Cut(line, 120))
				continue
			}
			if message["method"] != nil {
				continue // a notification
			}
			if client.SameID(id, message["id"]) {
				if result, _ := message["result"].(map[string]any); result["isError"] == true {
					p.t.ExemptIfLate() // the site may have been too late for the bridge
				}
				return message
			}
			p.strange = append(p.strange, "a response without a request: "+exact.Cut(line, 120))
		case <-patience.C:
			p.t.Expect(p.strange).To(BeNil(), check.Mismatch(fmt.Sprintf("%s over stdio", method), "a response", fmt.Sprintf("other lines only: %s", match.Abbreviate(p.strange))))
			p.t.Fail(check.Mismatch(method+" over stdio", "a response within 10s", "none"))
		case <-ctx.Done():
			p.t.Fail(check.Mismatch(method+" over stdio", "a response", "none before the run ended"))
		}
	}
}
