package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"github.com/bridgecheck/bridgecheck/internal/exact"
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

// Stateless reports whether a revision has no sessions: every request says who asks, and in which revision.
func (r Revision) Stateless() bool { return r >= MCP2026July }

// The members of `_meta` that every request of the stateless revision carries.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// Sender sends a request and reads its response: a Client, or a layer around it.
type Sender interface {
	Send(ctx context.Context, r Request) *Response
}

// Session speaks MCP as one caller, in one revision. A stateless one has no id.
type Session[C Sender] struct {
	Client   C
	Revision Revision
	ID       string    // of Mcp-Session-Id; "" where the bridge gave none
	Opened   *Response // the response to initialize, or to server/discover

	last int
}

// Info names the client that the sessions are of.
var Info = map[string]any{"name": "bridgecheck", "version": "1"}

// OpenMCP opens a session. Where that fails the session's Opened says how.
func OpenMCP[C Sender](ctx context.Context, c C, revision Revision) *Session[C] {
	s := &Session[C]{Client: c, Revision: revision}
	method, params := s.Opening()
	s.Opened = s.Call(ctx, method, params)
	if revision.Stateless() {
		return s
	}
	s.ID = s.Opened.Header.Get("Mcp-Session-Id")
	if s.Opened.RPCResult() != nil {
		s.Notify(ctx, "notifications/initialized")
	}
	return s
}

// Opening is the request that opens a session; without sessions, the one that asks what the server is.
func (s *Session[C]) Opening() (method string, params map[string]any) {
	if s.Revision.Stateless() {
		return "server/discover", nil
	}
	return "initialize", map[string]any{"protocolVersion": string(s.Revision), "capabilities": map[string]any{}, "clientInfo": Info}
}

// Call sends a request and waits for its response, in JSON or at the end of an event stream.
func (s *Session[C]) Call(ctx context.Context, method string, params map[string]any) *Response {
	s.last++
	return s.Send(ctx, s.Message(s.last, method, params), s.Headers(method, params))
}

// Notify sends a notification.
func (s *Session[C]) Notify(ctx context.Context, method string) *Response {
	return s.Send(ctx, s.Message(nil, method, nil), s.Headers(method, nil))
}

// Message is a JSON-RPC message of the revision; without an id it is a notification.
func (s *Session[C]) Message(id any, method string, params map[string]any) map[string]any {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if id != nil {
		m["id"] = id
	}
	if s.Revision.Stateless() {
		all := map[string]any{"_meta": map[string]any{MetaVersion: string(s.Revision), metaClient: Info, MetaCapabilities: map[string]any{}}}
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

// Headers are those that the revision asks of a request.
func (s *Session[C]) Headers(method string, params map[string]any) http.Header {
	h := http.Header{"Accept": {"application/json, text/event-stream"}}
	if method != "initialize" {
		h.Set("MCP-Protocol-Version", string(s.Revision))
	}
	if s.ID != "" {
		h.Set("Mcp-Session-Id", s.ID)
	}
	if s.Revision.Stateless() {
		h.Set("Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			h.Set("Mcp-Name", name)
		}
	}
	return h
}

// Send posts a message, and reads an event stream up to its response.
func (s *Session[C]) Send(ctx context.Context, message map[string]any, h http.Header) *Response {
	body := Encode(message)
	a := s.Client.Send(ctx, Request{Method: http.MethodPost, Path: MCPPath, Header: h, Body: bytes.NewReader(body), Show: string(body),
		Until: func(sofar []byte) bool { return message["id"] != nil && responseIn(sofar, message["id"]) != nil }})
	a.Asked = message["id"]
	return a
}

// RPC is the JSON-RPC response in a response: the body, or the response among the events of a stream; nil without one,
// and where it is none to what was asked. A result must come as one of the two: clients read no other.
func (a *Response) RPC() map[string]any {
	var message map[string]any
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		message = responseIn(a.Body, a.Asked)
	} else {
		message = a.Object()
	}
	if a.Asked != nil && (!a.responds(message) || a.Status < 400 && kind != "text/event-stream" && kind != "application/json") {
		return nil
	}
	return message
}

// responds reports whether a message is a response to the request, as clients look for it. What HTTP refuses, or JSON-RPC
// as no request at all, may be without the id, or with another: it may have come before the request was read.
func (a *Response) responds(message map[string]any) bool {
	failure, failed := message["error"].(map[string]any)
	code := fmt.Sprint(failure["code"])
	unread := failed && (a.Status >= 400 || message["id"] == nil && (code == "-32700" || code == "-32600"))
	return message["jsonrpc"] == "2.0" && (unread || SameID(a.Asked, message["id"]))
}

// SameID reports whether an id that was sent came back as it was, a number as a number.
func SameID(sent, got any) bool {
	if text, ok := sent.(string); ok {
		return got == text
	}
	return exact.Equal(json.Number(fmt.Sprint(sent)), got)
}

// responseIn finds the response to an id, or the first one, in an event stream.
func responseIn(stream []byte, id any) map[string]any {
	for _, message := range Events(stream) {
		_, isResult := message["result"]
		_, isError := message["error"]
		if (isResult || isError) && (id == nil || fmt.Sprint(message["id"]) == fmt.Sprint(id)) {
			return message
		}
	}
	return nil
}

// Events are the JSON-RPC messages of an event stream that arrived whole.
func Events(stream []byte) []map[string]any {
	var messages []map[string]any
	var data []byte
	stream = bytes.ReplaceAll(stream, []byte("\r\n"), []byte("\n"))
	for line := range bytes.Lines(bytes.ReplaceAll(stream, []byte("\r"), []byte("\n"))) {
		line = bytes.TrimSuffix(line, []byte("\n"))
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

// RPCOutcome says in one line what came.
func (a *Response) RPCOutcome() string {
	if message := a.RPC(); message != nil {
		return fmt.Sprintf("%d %s", a.Status, exact.Short(message))
	}
	if a.Asked != nil && a.Status == http.StatusOK {
		return fmt.Sprintf("%s (%s), no response to the id %v", a.Outcome(), a.Header.Get("Content-Type"), a.Asked)
	}
	return a.Outcome()
}

// ListTools asks for a page.
func (s *Session[C]) ListTools(ctx context.Context, cursor string) *Response {
	params := map[string]any{}
	if cursor != "" {
		params["cursor"] = cursor
	}
	return s.Call(ctx, "tools/list", params)
}

// CallTool runs a tool.
func (s *Session[C]) CallTool(ctx context.Context, name string, arguments any) *Response {
	return s.Call(ctx, "tools/call", map[string]any{"name": name, "arguments": arguments})
}

// View makes the response say what the three endpoints would.
func (a *Response) View(view map[string]any) *Response {
	a.parsed, a.failed, a.read, a.viewed = view, nil, true, true
	return a
}

// ValueOf is the method's result in a result of tools/call: structuredContent, or the JSON of the first text, or the text.
func ValueOf(result map[string]any) any {
	if structured, there := result["structuredContent"]; there {
		return Unwrapped(structured)
	}
	content, _ := result["content"].([]any)
	for _, block := range content {
		block, _ := block.(map[string]any)
		text, isText := block["text"].(string)
		if !isText {
			continue
		}
		if v, err := exact.Parse([]byte(text)); err == nil {
			return v
		}
		return text
	}
	return nil
}

// Unwrapped returns x for {"result": x} and {"value": x}, as results are wrapped that are no objects, and any other value
// unchanged.
func Unwrapped(v any) any {
	if object, ok := v.(map[string]any); ok && len(object) == 1 {
		for _, name := range []string{"result", "value"} {
			if inner, wrapped := object[name]; wrapped {
				return inner
			}
		}
	}
	return v
}
