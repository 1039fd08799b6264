package mutants

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// mcpCallerMutants mix MCP callers up, or break notifications and stdio.
func mcpCallerMutants() []Mutant {
	return []Mutant{
		{Name: "mcp-ping-unknown", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Imagined, Why: "A client that asks whether the server lives takes it for dead.",
			Middleware: onRPC("ping", func(m *rpc) { m.Fail(-32601, "Method not found") })},
		{Name: "mcp-empty-id-lost", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Module,
			Middleware: onRPC("", func(m *rpc) {
				if m.Response["id"] == "" {
					m.Response["id"] = nil
				}
			})},
		{Name: "mcp-id-zero-lost-in-errors", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Module,
			Middleware: onRPC("", func(m *rpc) {
				if fmtNumber(m.Response["id"]) == "0" && m.Response["error"] != nil {
					m.Response["id"] = nil
				}
			})},
		{Name: "mcp-anonymous-as-agent", MCP: true, Breaks: Clauses("mcp/tools-list", "mcp/session", "access/no-oracle"), Origin: Peer, Why: "Who does not sign in on MCP gets the bridge's own account.",
			Middleware: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if toMCP(r) && r.Header.Get("Authorization") == "" && r.Header.Get("Cookie") == "" {
					r.Header.Set("Authorization", basicAuth("agent"))
				}
				return false
			})},
		{Name: "mcp-outsiders-list", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Imagined, Why: "The permission to discover is asked for on the three endpoints alone.",
			Middleware: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if toMCP(r) && caller(r) == "outsider" {
					r.Header.Set("Authorization", basicAuth("agent"))
				}
				return false
			})},
		{Name: "mcp-calls-as-service", MCP: true, Breaks: Clauses("mcp/parity", "mcp/unknown-tool", "access/no-oracle"), Origin: Peer, Why: "The stateless revision came later, and calls with the bridge's own account.",
			Middleware: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if toMCP(r) && r.Header.Get("Mcp-Method") == "tools/call" && r.Header.Get("Authorization") != "" {
					r.Header.Set("Authorization", basicAuth("service"))
				}
				return false
			})},
		{Name: "mcp-descriptions-cut", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer,
			Middleware: onMCPTool(func(t tool) {
				if words, ok := t["description"].(string); ok {
					t["description"] = words[:min(len(words), 20)]
				}
			})},
		{Name: "mcp-all-read-only", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Imagined, Why: "A client runs what it is told to be harmless without asking.",
			Middleware: onMCPTool(func(t tool) { t["annotations"] = map[string]any{"readOnlyHint": true} })},
		{Name: "mcp-arguments-through-float64", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer,
			Middleware: onMCPCall(func(params map[string]any) { params["arguments"] = rounded(params["arguments"]) })},
		{Name: "mcp-any-later-version", MCP: true, Breaks: Clauses("mcp/bad-version-header", "mcp/stateless-2026"), Origin: Imagined, Why: "Versions are compared as text: what is later is taken for the latest.",
			Middleware: withHeader(func(h http.Header) {
				if h.Get("Mcp-Protocol-Version") <= "2026-07-28" {
					return
				}
				h.Set("Mcp-Protocol-Version", "2026-07-28")
				if h.Get("Mcp-Session-Id") != "" {
					h.Set("Mcp-Protocol-Version", "2025-11-25")
				}
			})},
		{Name: "mcp-origin-by-its-beginning", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer,
			Middleware: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				host, _, _ := strings.Cut(r.Host, ":")
				if u, err := url.Parse(r.Header.Get("Origin")); toMCP(r) && err == nil && u.Host != "" && strings.HasPrefix(u.Host, host) {
					r.Header.Del("Origin")
				}
				return false
			})},
		{Name: "mcp-origin-by-its-beginning-with-scheme", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Imagined,
			Middleware: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				host, _, _ := strings.Cut(r.Host, ":")
				if toMCP(r) && strings.HasPrefix(r.Header.Get("Origin"), "http://"+host) {
					r.Header.Del("Origin")
				}
				return false
			})},
		{Name: "mcp-origin-unread-on-get", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "Only messages pass the guard, and the stream of notifications does not.",
			Middleware: unguarded(http.MethodGet)},
		{Name: "mcp-origin-unread-on-delete", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Imagined, Why: "A page ends the sessions of its visitors.",
			Middleware: unguarded(http.MethodDelete)},
		{Name: "mcp-version-header-by-year", MCP: true, Breaks: Clauses("mcp/bad-version-header"), Origin: Imagined, Why: "Whatever looks like a date of the right year is taken for a revision.",
			Middleware: withHeader(func(h http.Header) {
				if v := h.Get("Mcp-Protocol-Version"); strings.HasPrefix(v, "2025-") {
					h.Set("Mcp-Protocol-Version", "2025-11-25")
				}
			})},
		{Name: "mcp-meta-keys-of-any-form", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer,
			Middleware: onMCPTool(func(t tool) { t["_meta"] = map[string]any{"_internal": map[string]any{"tags": []any{}}} })},
		{Name: "mcp-prompts-promised", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer, Why: "The capabilities are those of the example that the server began as.",
			Middleware: onRPCResult("initialize", func(r map[string]any) { r["capabilities"].(map[string]any)["prompts"] = map[string]any{} })},
		{Name: "mcp-arguments-taken-for-granted", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "A call without them ends in an exception.",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !toMCP(r) || r.Method != http.MethodPost || !isSmall(r) {
					return false
				}
				body := readBody(r)
				setBody(r, body)
				params, ok := decode(body)["params"].(map[string]any)
				if !ok || decode(body)["method"] != "tools/call" || has(params, "arguments") {
					return false
				}
				http.Error(w, "KeyError: 'arguments'", http.StatusInternalServerError)
				return true
			})},
		{Name: "mcp-denial-as-result", MCP: true, Breaks: Clauses("mcp/unknown-tool"), Origin: Imagined, Why: "What the site refuses is a failure like any other.", Middleware: deniedLikeFailed()},
		{Name: "mcp-origin-null", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "A sandboxed frame of any page has this origin.",
			Middleware: withHeader(func(h http.Header) {
				if h.Get("Origin") == "null" {
					h.Del("Origin")
				}
			})},
		{Name: "mcp-session-lends-its-calls", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer, Why: "The list is the sender's, the call is the owner's.",
			Middleware: lending(func(r *http.Request) bool {
				body := readBody(r)
				setBody(r, body)
				return decode(body)["method"] == "tools/call"
			})},
		{Name: "mcp-session-lends-to-nobody", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer, Why: "In a session credentials are optional.",
			Middleware: lending(func(r *http.Request) bool { return r.Header.Get("Authorization") == "" })},
		{Name: "mcp-result-type-missing-on-calls", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
			Middleware: onRPCResult("tools/call", func(result map[string]any) { delete(result, "resultType") })},
		{Name: "mcp-stdio-cuts-long-lines", MCP: true, Breaks: Clauses("mcp/stdio"), Origin: Peer, Why: "A scanner of lines takes 64 KiB unless it is told otherwise.",
			Stdout: func(w io.Writer) io.Writer { return cutLines{w} }},
		{Name: "mcp-stdio-failures-as-results", MCP: true, Breaks: Clauses("mcp/stdio"), Origin: Imagined,
			Stdout: func(w io.Writer) io.Writer { return rewriting{w, `"isError":true`, `"isError":false`} }},
		{Name: "mcp-stdio-unknown-tool-other-code", MCP: true, Breaks: Clauses("mcp/stdio"), Origin: Imagined,
			Stdout: func(w io.Writer) io.Writer { return rewriting{w, `"code":-32602`, `"code":-32603`} }},
	}
}

// unguarded has requests by one method pass whatever page they come from.
func unguarded(method string) middleware {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if toMCP(r) && r.Method == method {
			r.Header.Del("Origin")
		}
		return false
	})
}

// deniedLikeFailed makes a result of the error for a tool that the caller could run before.
func deniedLikeFailed() middleware {
	ran := newMemory[bool]()
	return onRPC("tools/call", func(m *rpc) {
		key := caller(m.Request) + "\x00" + fmt.Sprint(m.Params["name"])
		if m.Result() != nil {
			ran.put(key, true)
		} else if before, _ := ran.get(key); before && m.Code() == "-32602" {
			m.Succeed(map[string]any{"isError": true, "resultType": "complete", "content": []any{map[string]any{"type": "text", "text": "Access denied"}}})
		}
	})
}

// onMCPCall changes the params of tools/call before the bridge sees them.
func onMCPCall(change func(params map[string]any)) middleware {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toMCP(r) || r.Method != http.MethodPost || !isSmall(r) {
			return false
		}
		body := readBody(r)
		message := decode(body)
		if params, ok := message["params"].(map[string]any); ok && message["method"] == "tools/call" {
			change(params)
			body = encode(message)
		}
		setBody(r, body)
		return false
	})
}

// cutLines loses what a line has beyond 64 KiB.
type cutLines struct{ io.Writer }

func (c cutLines) Write(b []byte) (int, error) {
	const longest = 64 << 10
	line := b
	if len(b) > longest {
		line = append(bytes.Clone(b[:longest]), '\n')
	}
	_, err := c.Writer.Write(line)
	return len(b), err
}
