package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// Alone reports whether MCP is the bridge's only interface. Then List, Describe and Invoke ask by MCP, and what comes is
// read as the three endpoints would say it: a page of tools, a tool, a result. A refusal stays what MCP makes of it, so
// that checks of refusals do not apply (Check.ByMCP).
func (e *Environment) Alone() bool { return !e.Claims("tools") }

// session is the caller's session in the running check; where none opens, its Opened says why.
func (c Client) session(ctx context.Context) *Session {
	key := sessionKey{c.Who, fmt.Sprint(c.Creds)}
	c.T.sessionsMu.Lock()
	defer c.T.sessionsMu.Unlock()
	if s := c.T.sessions[key]; s != nil {
		return s
	}
	var s *Session
	for _, revision := range []Revision{MCP2025November, MCP2025June, MCP2026July} {
		if revision.Stateless() && !c.T.Claims("mcp-2026") {
			continue
		}
		if s = c.MCP(ctx, revision); s.Opened.RPCResult() != nil {
			if c.T.sessions == nil {
				c.T.sessions = map[sessionKey]*Session{}
			}
			c.T.sessions[key] = s
			break
		}
	}
	return s
}

type sessionKey struct {
	who   Identity
	creds string
}

// says makes the response say what the three endpoints would.
func (a *Response) says(view map[string]any) *Response {
	a.parsed, a.failed, a.read, a.viewed = view, nil, true, true
	return a
}

// Is reports whether the response has one of the statuses. What came by MCP in place of the three endpoints is a success or
// an error, whatever its status.
func (a *Response) Is(statuses ...int) bool {
	if a.viewed {
		return (a.ErrorObject() != nil) == (statuses[0] >= http.StatusBadRequest)
	}
	return slices.Contains(statuses, a.Status)
}

// noSession is the response to a caller who gets no session: a refusal of whatever would have been sent.
func (s *Session) noSession() *Response {
	return s.Opened.says(map[string]any{"error": map[string]any{"message": s.Opened.RPCOutcome()}})
}

func (c Client) listAlone(ctx context.Context, cursor string) *Response {
	s := c.session(ctx)
	if s.Opened.RPCResult() == nil {
		return s.noSession()
	}
	page := s.ListTools(ctx, cursor)
	if result := page.RPCResult(); result != nil {
		view := map[string]any{}
		for _, name := range []string{"tools", "nextCursor"} {
			if v, there := result[name]; there {
				view[name] = v
			}
		}
		return page.says(view)
	}
	return page.says(map[string]any{"error": map[string]any{"message": page.RPCOutcome()}})
}

// describeAlone finds the tool in the list, for MCP has no describe. Without it the response is the last page.
func (c Client) describeAlone(ctx context.Context, name string) *Response {
	page := c.ListAll(ctx).PageOf(name)
	tools := page.Tools()
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name() == name }); i >= 0 {
		return page.says(map[string]any{"tool": map[string]any(tools[i])})
	}
	return page.says(map[string]any{"error": map[string]any{"code": "tool_not_found"}})
}

func (c Client) invokeAlone(ctx context.Context, name string, arguments any) *Response {
	s := c.session(ctx)
	if s.Opened.RPCResult() == nil {
		return s.noSession()
	}
	r := s.CallTool(ctx, name, arguments)
	result := r.RPCResult()
	if result == nil || result["isError"] == true {
		return r.says(map[string]any{"error": map[string]any{"message": r.RPCOutcome()}})
	}
	return r.says(map[string]any{"result": ValueOf(result)})
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

// refused reports whether a page of a list is a refusal.
func (a *Response) refused() bool {
	return !a.Is(http.StatusOK)
}
