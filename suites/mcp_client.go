package suites

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/mcpschema"
)

// MCPPath is the Streamable HTTP endpoint, below the bridge's URL.
const MCPPath = "/mcp"

// Revision is a revision of the MCP specification.
type Revision string

// The revisions that the checks speak.
const (
	MCP2025June     Revision = "2025-06-18"
	MCP2025November Revision = "2025-11-25"
	MCP2026July     Revision = "2026-07-28"
)

// stateless tells whether a revision has no sessions: every request says who asks, and in which revision.
func (r Revision) stateless() bool { return r >= MCP2026July }

// The members of `_meta` that every request of the stateless revision carries.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// Session speaks MCP as one caller, in one revision. A stateless one has no id.
type Session struct {
	Client   Client
	Revision Revision
	ID       string    // of Mcp-Session-Id; "" where the bridge gave none
	Opened   *Response // the answer to initialize, or to server/discover

	last int
}

var clientInfo = map[string]any{"name": "bridgecheck", "version": "1"}

// MCP opens a session. Where that fails the session's Opened says how.
func (c Client) MCP(ctx context.Context, revision Revision) *Session {
	s := &Session{Client: c, Revision: revision}
	if revision.stateless() {
		s.Opened = s.Call(ctx, "server/discover", nil)
		return s
	}
	s.Opened = s.Call(ctx, "initialize", map[string]any{"protocolVersion": string(revision), "capabilities": map[string]any{}, "clientInfo": clientInfo})
	s.ID = s.Opened.Header.Get("Mcp-Session-Id")
	if s.Opened.RPCResult() != nil {
		s.Notify(ctx, "notifications/initialized")
	}
	return s
}

// MustMCP is MCP for checks that judge something else: where no session opens they are not testable.
func (c Client) MustMCP(ctx context.Context, revision Revision) *Session {
	s := c.MCP(ctx, revision)
	if s.Opened.RPCResult() == nil {
		NotTestable("no MCP session opens (mcp/initialize and mcp/stateless-2026 judge that): " + s.Opened.Outcome())
	}
	return s
}

// Call sends a request and waits for its response, in JSON or at the end of an event stream.
func (s *Session) Call(ctx context.Context, method string, params map[string]any) *Response {
	s.last++
	return s.send(ctx, s.message(s.last, method, params), s.headers(method, params))
}

// Notify sends a notification.
func (s *Session) Notify(ctx context.Context, method string) *Response {
	return s.send(ctx, s.message(nil, method, nil), s.headers(method, nil))
}

// message is a JSON-RPC message of the revision; without an id it is a notification.
func (s *Session) message(id any, method string, params map[string]any) map[string]any {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if id != nil {
		m["id"] = id
	}
	if s.Revision.stateless() {
		all := map[string]any{"_meta": map[string]any{metaVersion: string(s.Revision), metaClient: clientInfo, metaCapabilities: map[string]any{}}}
		for name, value := range params {
			all[name] = value
		}
		params = all
	}
	if params != nil {
		m["params"] = params
	}
	return m
}

// headers are those that the revision asks of a request.
func (s *Session) headers(method string, params map[string]any) http.Header {
	h := http.Header{"Accept": {"application/json, text/event-stream"}}
	if method != "initialize" {
		h.Set("MCP-Protocol-Version", string(s.Revision))
	}
	if s.ID != "" {
		h.Set("Mcp-Session-Id", s.ID)
	}
	if s.Revision.stateless() {
		h.Set("Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			h.Set("Mcp-Name", name)
		}
	}
	return h
}

func (s *Session) send(ctx context.Context, message map[string]any, h http.Header) *Response {
	body := encode(message)
	a := s.Client.Send(ctx, Request{Method: http.MethodPost, Path: MCPPath, Header: h, Body: bytes.NewReader(body), Show: string(body),
		Until: func(sofar []byte) bool { return message["id"] != nil && responseIn(sofar, message["id"]) != nil }})
	a.asked = message["id"]
	return a
}

// RPC is the JSON-RPC response in an answer: the body, or the response among the events of a stream; nil without one,
// and where it is none to what was asked. A result must come as one of the two: clients read no other.
func (a *Response) RPC() map[string]any {
	var message map[string]any
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		message = responseIn(a.Body, a.asked)
	} else {
		message = a.Object()
	}
	if a.asked != nil && (!a.responds(message) || a.Status < 400 && kind != "text/event-stream" && kind != "application/json") {
		return nil
	}
	return message
}

// responds tells whether a message is a response to the request, as clients look for it. What HTTP refuses, or JSON-RPC
// as no request at all, may be without the id, or with another: it may have come before the request was read.
func (a *Response) responds(message map[string]any) bool {
	failure, failed := message["error"].(map[string]any)
	code := fmt.Sprint(failure["code"])
	unread := failed && (a.Status >= 400 || message["id"] == nil && (code == "-32700" || code == "-32600"))
	return message["jsonrpc"] == "2.0" && (unread || sameID(a.asked, message["id"]))
}

// sameID tells whether an id that was sent came back as it was, a number as a number.
func sameID(sent, got any) bool {
	if text, ok := sent.(string); ok {
		return got == text
	}
	return exact.Equal(json.Number(fmt.Sprint(sent)), got)
}

// responseIn finds the response to an id, or the first one, in an event stream.
func responseIn(stream []byte, id any) map[string]any {
	for _, message := range events(stream) {
		_, isResult := message["result"]
		_, isError := message["error"]
		if (isResult || isError) && (id == nil || fmt.Sprint(message["id"]) == fmt.Sprint(id)) {
			return message
		}
	}
	return nil
}

// events are the JSON-RPC messages of an event stream that arrived whole.
func events(stream []byte) []map[string]any {
	var messages []map[string]any
	var data []byte
	lines := bufio.NewScanner(bytes.NewReader(stream))
	lines.Buffer(nil, maxResponse)
	for lines.Scan() {
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(rest, []byte(" "))...), '\n')
		}
		if len(line) != 0 || len(data) == 0 {
			continue
		}
		if v, err := exact.Parse(data); err == nil {
			if message, ok := v.(map[string]any); ok {
				messages = append(messages, message)
			}
		}
		data = nil
	}
	return messages
}

// RPCResult is the result of the response; nil without one.
func (a *Response) RPCResult() map[string]any {
	result, _ := a.RPC()["result"].(map[string]any)
	return result
}

// RPCCode is the code of the response's error; "" without one.
func (a *Response) RPCCode() string {
	failure, _ := a.RPC()["error"].(map[string]any)
	if code, ok := failure["code"]; ok {
		return fmt.Sprint(code)
	}
	return ""
}

// BeValid matches an answer whose result or error is what its revision's schema allows.
func BeValid(revision Revision, kind mcpschema.Kind) types.GomegaMatcher {
	return &responseMatcher{expected: fmt.Sprintf("a valid %s of %s", kind, revision), test: func(a *Response) (string, bool) {
		var document any = a.RPC()
		if kind != mcpschema.Error {
			document = a.RPC()["result"]
		}
		if result, ok := document.(map[string]any); ok {
			result = maps.Clone(result)
			switch {
			case kind == mcpschema.ListTools: // mcp/client-tolerance judges the tools
				result["tools"] = []any{}
			case kind == mcpschema.CallTool && revision.stateless(): // mcp/stateless-2026 judges it
				result["resultType"] = "complete"
			}
			document = result
		}
		fault := mcpschema.Fault(string(revision), kind, document)
		return "one that breaks it " + fault, fault == ""
	}}
}

// rpcOutcome tells in one line what came.
func (a *Response) rpcOutcome() string {
	if message := a.RPC(); message != nil {
		return fmt.Sprintf("%d %s", a.Status, exact.Short(message))
	}
	if a.asked != nil && a.Status == http.StatusOK {
		return fmt.Sprintf("%s (%s), no response to the id %v", a.Outcome(), a.Header.Get("Content-Type"), a.asked)
	}
	return a.Outcome()
}

// ListTools asks for a page.
func (s *Session) ListTools(ctx context.Context, cursor string) *Response {
	params := map[string]any{}
	if cursor != "" {
		params["cursor"] = cursor
	}
	return s.Call(ctx, "tools/list", params)
}

// mcpListing is every page of tools/list. Fault says why it ended early.
type mcpListing struct {
	Pages []*Response
	Tools []Tool
	Fault Finding
}

func (l mcpListing) find(name string) (Tool, bool) {
	for _, t := range l.Tools {
		if t.Name() == name {
			return t, true
		}
	}
	return nil, false
}

func (l mcpListing) names() []string {
	names := make([]string, len(l.Tools))
	for i, t := range l.Tools {
		names[i] = t.Name()
	}
	return names
}

// ListAllTools follows the cursors to the end.
func (s *Session) ListAllTools(ctx context.Context) mcpListing {
	var l mcpListing
	seen := map[string]bool{}
	for cursor := ""; ; {
		page := s.ListTools(ctx, cursor)
		l.Pages = append(l.Pages, page)
		result := page.RPCResult()
		tools, ok := result["tools"].([]any)
		if !ok {
			l.Fault = mismatch(page.Subject(), "a page of tools", page.rpcOutcome())
			return l
		}
		for _, t := range tools {
			if t, ok := t.(map[string]any); ok {
				l.Tools = append(l.Tools, t)
			}
		}
		next, ok := result["nextCursor"].(string)
		if !ok {
			return l
		}
		if seen[next] || len(l.Pages) == maxPages {
			l.Fault = mismatch(page.Subject(), "cursors that lead to an end", fmt.Sprintf("the cursor %q after %d pages", next, len(l.Pages)))
			return l
		}
		seen[next] = true
		cursor = next
	}
}

// MustListTools is ListAllTools for checks that judge something else.
func (s *Session) MustListTools(ctx context.Context) mcpListing {
	l := s.ListAllTools(ctx)
	if last := l.Pages[len(l.Pages)-1]; len(l.Pages) > 1 && last.RPCCode() == "-32602" {
		l = s.ListAllTools(ctx) // it changed while it was read
	}
	if !l.Fault.none() {
		Untestable("tools/list, which it builds on, failed (mcp/tools-list judges that): ", l.Fault)
	}
	return l
}

// CallTool runs a tool.
func (s *Session) CallTool(ctx context.Context, name string, arguments any) *Response {
	return s.Call(ctx, "tools/call", map[string]any{"name": name, "arguments": arguments})
}

// toolResult is a result of tools/call taken apart.
type toolResult struct {
	isError    bool
	text       []string
	structured any
	has        bool // structuredContent is there
}

func (a *Response) toolResult() toolResult {
	result := a.RPCResult()
	var r toolResult
	r.isError, _ = result["isError"].(bool)
	r.structured, r.has = result["structuredContent"]
	content, _ := result["content"].([]any)
	for _, block := range content {
		if block, ok := block.(map[string]any); ok && block["type"] == "text" {
			text, _ := block["text"].(string)
			r.text = append(r.text, text)
		}
	}
	return r
}

// value is what the tool gave: structuredContent without the wrapping of a result that is no object, or the JSON of the
// first text.
func (r toolResult) value() any {
	if r.has {
		return unwrapped(r.structured)
	}
	if len(r.text) == 0 {
		return nil
	}
	if v, err := exact.Parse([]byte(r.text[0])); err == nil {
		return v
	}
	return r.text[0]
}

// unwrapped takes {"result": x} apart; another object is itself.
func unwrapped(v any) any {
	if object, ok := v.(map[string]any); ok && len(object) == 1 {
		for _, name := range []string{"result", "value"} {
			if inner, wrapped := object[name]; wrapped {
				return inner
			}
		}
	}
	return v
}

// BeProtocolError matches a JSON-RPC error of a code, without a result.
func BeProtocolError(code string) types.GomegaMatcher {
	return &responseMatcher{expected: "the protocol error " + code, test: func(a *Response) (string, bool) {
		return a.rpcOutcome(), a.RPCCode() == code && a.RPC()["result"] == nil
	}}
}

// BeToolError matches a result of tools/call with isError true whose text holds all the words.
func BeToolError(words ...string) types.GomegaMatcher {
	expected := "a result with isError true"
	if len(words) > 0 {
		expected += " and a text with " + strings.Join(words, ", ")
	}
	return &responseMatcher{expected: expected, test: func(a *Response) (string, bool) {
		r := a.toolResult()
		for _, w := range words {
			if !strings.Contains(strings.Join(r.text, "\n"), w) {
				return a.rpcOutcome(), false
			}
		}
		return a.rpcOutcome(), r.isError && len(r.text) > 0
	}}
}

// BeToolResult matches a result of tools/call that is no error.
func BeToolResult() types.GomegaMatcher {
	return &responseMatcher{expected: "a result that is no error", test: func(a *Response) (string, bool) {
		_, content := a.RPCResult()["content"].([]any)
		return a.rpcOutcome(), content && !a.toolResult().isError
	}}
}
