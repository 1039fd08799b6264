package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"time"

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

// Session speaks MCP as one caller, in one revision. A stateless one has no id. One that is made by hand, without Opened, is not
// opened again when the server has ended it.
type Session[C Sender] struct {
	Client   C
	Revision Revision
	ID       string    // of Mcp-Session-Id; "" where the bridge gave none
	Opened   *Response // the response to initialize, or to server/discover

	last   int
	served int // messages, since it was opened
	hasty  int // how often it ended before it served enough
}

// What a session has served that the server ends. Where it is less, for the second time, the server has lost it, as replicas do
// that share none, or the 404 is not for the session.
const (
	enough   = 3
	maxHasty = 1
)

// Info names the client that the sessions are of.
var Info = map[string]any{"name": "bridgecheck", "version": "1"}

// OpenMCP opens a session, in the revision that the server agrees to: one that is spoken from then on, and may be another than
// the one asked for. Where no session opens, Opened says why.
func OpenMCP[C Sender](ctx context.Context, c C, revision Revision) *Session[C] {
	s := &Session[C]{Client: c, Revision: revision}
	s.open(ctx)
	return s
}

func (s *Session[C]) open(ctx context.Context) {
	method, params := s.Opening()
	s.Opened = s.Call(ctx, method, params)
	if s.Revision.Stateless() {
		return
	}
	s.ID = s.Opened.Header.Get("Mcp-Session-Id")
	if result := s.Opened.RPCResult(); result != nil {
		if agreed, _ := result["protocolVersion"].(string); sessionVersion.MatchString(agreed) && !Revision(agreed).Stateless() {
			s.Revision = Revision(agreed)
		}
		s.post(ctx, s.Message(nil, "notifications/initialized", nil), s.Headers("", nil))
	}
}

// sessionVersion matches what can be a revision, and stand in a header.
var sessionVersion = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

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
	id := any(s.last)
	if s.last > 1 && s.last&1 == int(s.Revision[len("2025-0")]&1) { // every second one, other methods in one revision than in the next
		id = fmt.Sprintf("request-%d", s.last)
	}
	return s.Send(ctx, s.Message(id, method, params), s.Headers(method, params))
}

// Message is a JSON-RPC message of the revision; without an id it is a notification.
func (s *Session[C]) Message(id any, method string, params map[string]any) map[string]any {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if id != nil {
		m["id"] = id
	}
	if s.Revision.Stateless() {
		all := map[string]any{"_meta": map[string]any{MetaVersion: string(s.Revision), metaClient: Info, MetaCapabilities: map[string]any{}}}
		maps.Copy(all, params)
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

// Send posts a message, and reads an event stream up to its response. A stream that ends before the response is resumed where
// it says how, and requests of the server in it get responses. A server may end a session at any time, which a 404 says: the
// message, which nobody has read then, is sent again in a new one.
func (s *Session[C]) Send(ctx context.Context, message map[string]any, h http.Header) *Response {
	a := s.post(ctx, message, h)
	if s.served++; a.Status != http.StatusNotFound || s.ID == "" || h.Get("Mcp-Session-Id") != s.ID || s.Opened == nil {
		return a
	}
	if s.served <= enough {
		s.hasty++
	}
	if s.hasty > maxHasty {
		return a
	}
	again := &Session[C]{Client: s.Client, Revision: s.Revision, last: s.last}
	if again.open(ctx); again.ID == "" || again.Revision != s.Revision {
		return a
	}
	s.ID, s.Opened, s.served = again.ID, again.Opened, 1
	h.Set("Mcp-Session-Id", s.ID)
	return s.post(ctx, message, h)
}

func (s *Session[C]) post(ctx context.Context, message map[string]any, h http.Header) *Response {
	body, id := Encode(message), message["id"]
	a := s.Client.Send(ctx, Request{Method: http.MethodPost, Path: MCPPath, Header: h, Body: bytes.NewReader(body), Show: string(body),
		Until: s.until(ctx, id)})
	a.Asked = id
	if id != nil && !s.Revision.Stateless() {
		s.resume(ctx, a)
	}
	return a
}

// until ends the reading of a stream at the response to an id. On the way it responds to what the server asks: a server may
// wait for the response to its ping.
func (s *Session[C]) until(ctx context.Context, id any) func(sofar []byte) bool {
	read, asked, messages := 0, 0, 0
	return func(sofar []byte) bool {
		if id == nil {
			return false
		}
		ends := eventEnds(sofar, read)
		came := Events(sofar[read:ends])
		read, messages = ends, messages+len(came)
		for _, m := range came {
			if m["method"] != nil && m["id"] != nil && !s.Revision.Stateless() && asked < maxAsked {
				s.answer(ctx, m)
				asked++
			}
		}
		return responseAmong(came, id) != nil || messages >= maxMessages
	}
}

// Answer is the response of a client without capabilities to a request of the server.
func Answer(id, method any) map[string]any {
	message := map[string]any{"jsonrpc": "2.0", "id": id}
	if method == "ping" {
		message["result"] = map[string]any{}
	} else {
		message["error"] = map[string]any{"code": -32601, "message": "the client has no such method"}
	}
	return message
}

// answer sends the response to a request of the server.
func (s *Session[C]) answer(ctx context.Context, asked map[string]any) {
	body := Encode(Answer(asked["id"], asked["method"]))
	s.Client.Send(ctx, Request{Method: http.MethodPost, Path: MCPPath, Header: s.Headers("", nil), Body: bytes.NewReader(body), Show: string(body)})
}

// What resuming a stream may cost.
const (
	maxResumed   = 5
	usualPause   = time.Second // where the stream names none
	longestRetry = 5 * time.Second
)

// resume goes on reading an event stream that ended without the response: with the id of its last event, after the pause that
// it asks for. What comes is added to the body.
func (s *Session[C]) resume(ctx context.Context, a *Response) {
	for range maxResumed {
		if kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); kind != eventStream || a.Status != http.StatusOK || ctx.Err() != nil {
			return
		}
		read := readStream(a.Body)
		if read.lastID == "" || responseAmong(read.messages, a.Asked) != nil {
			return
		}
		select {
		case <-time.After(min(read.pause, longestRetry)):
		case <-ctx.Done():
			return
		}
		h := s.Headers("", nil)
		h.Set("Accept", eventStream)
		h.Set("Last-Event-ID", read.lastID)
		more := s.Client.Send(ctx, Request{Path: MCPPath, Header: h, Until: s.until(ctx, a.Asked)})
		if kind, _, _ := mime.ParseMediaType(more.Header.Get("Content-Type")); kind != eventStream || more.Status != http.StatusOK {
			return
		}
		a.Body, a.Err, a.Took = append(a.Body, more.Body...), more.Err, time.Since(a.At)
	}
}

// RPC is the JSON-RPC response in a response: the body, or the response among the events of a stream; nil without one,
// and where it is none to what was asked. A result must come as one of the two: clients read no other.
func (a *Response) RPC() map[string]any {
	var message map[string]any
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if kind == eventStream {
		message = responseAmong(Events(a.Body), a.Asked)
	} else {
		message = a.Object()
	}
	if a.Asked != nil && (!a.responds(message) || a.Status < 400 && kind != eventStream && kind != "application/json") {
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
		missing := fmt.Sprintf("no response to the id %s", Encode(a.Asked))
		if other := a.Object()["id"]; other != nil {
			missing += fmt.Sprintf(" but one to %s", Encode(other))
		}
		return fmt.Sprintf("%s (%s), %s", a.Outcome(), a.Header.Get("Content-Type"), missing)
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

// IsView reports whether what the response says came by MCP, as JSON or in a stream of events.
func (a *Response) IsView() bool { return a.viewed }

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
