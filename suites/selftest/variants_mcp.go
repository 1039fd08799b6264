package selftest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// mcpVariants are correct servers of MCP that are not like the reference.
var mcpVariants = mcp([]Mutant{
	{Name: "mcp-answers-as-events", Why: "A response may come as JSON or as an event of a stream.",
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.Status == http.StatusOK && strings.Contains(x.Request.Header.Get("Accept"), "text/event-stream") && x.Object() != nil {
				x.Body = append(append([]byte(": here it comes\n\nevent: message\nid: 1\ndata: "), x.Body...), "\n\n"...)
				x.Header.Set("Content-Type", "text/event-stream")
			}
		})},
	{Name: "mcp-delete-405", Why: "A server may keep clients from ending a session.",
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) && r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return true
			}
			return false
		})},
	{Name: "mcp-wraps-as-value", Why: "How a result that is no object is wrapped is the server's business, as long as the schema matches.",
		Front: onRPC("", func(m *rpc) {
			if m.Method != "tools/list" && m.Method != "tools/call" {
				return
			}
			walk(m.Response["result"], func(o map[string]any) {
				if structured, ok := o["structuredContent"].(map[string]any); ok && len(structured) == 1 && has(structured, "result") {
					o["structuredContent"] = map[string]any{"value": structured["result"]}
					text, _ := json.Marshal(o["structuredContent"])
					o["content"] = []any{map[string]any{"type": "text", "text": string(text)}}
				}
				if output, ok := o["outputSchema"].(map[string]any); ok {
					if properties, _ := output["properties"].(map[string]any); len(properties) == 1 && has(properties, "result") && output["required"] != nil {
						renamed := encode(map[string]any{"type": "object", "properties": map[string]any{"value": properties["result"]}, "required": []any{"value"}})
						if dialect, ok := output["$schema"]; ok {
							renamed = encode(map[string]any{"$schema": dialect, "type": "object", "properties": map[string]any{"value": properties["result"]}, "required": []any{"value"}})
						}
						o["outputSchema"] = decode(bytes.ReplaceAll(renamed, []byte("#/properties/result"), []byte("#/properties/value")))
					}
				}
			})
		})},
	{Name: "mcp-alone", Why: "A bridge may have MCP and nothing else.", Claims: "-tools",
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) {
				return false
			}
			w.WriteHeader(http.StatusNotFound)
			return true
		})},
	{Name: "mcp-tells-of-changes-in-2026-only", Why: "Without a session there is nobody to tell; then listChanged is not declared.",
		Front: both(onRPCResult("initialize", func(r map[string]any) { r["capabilities"] = map[string]any{"tools": map[string]any{}} }),
			onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if toMCP(r) && r.Method == http.MethodGet {
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
				return toMCP(r) && r.Method == http.MethodGet
			}))},
	{Name: "mcp-without-sessions", Why: "The revisions with sessions leave it to the server whether there are any.",
		Claims: "-mcp-list-changed", Front: sessionless()},
	{Name: "mcp-strings-as-they-are", Why: "The text of a result that is a string is that string, not its JSON.",
		Front: onCallResult(func(r map[string]any) {
			if structured, ok := r["structuredContent"].(map[string]any); ok {
				if text, ok := structured["result"].(string); ok {
					r["content"] = []any{map[string]any{"type": "text", "text": text}}
				}
			}
		})},
	{Name: "mcp-errors-without-id", Why: "What is refused before the message is read cannot say which it was.",
		Front: onRPC("", func(m *rpc) {
			if m.Status == http.StatusBadRequest && m.Code() != "-32602" {
				m.Response["id"] = nil
			}
		})},
	{Name: "mcp-one-revision", Why: "One revision with sessions is enough.", Claims: "-mcp-2026",
		Front: onRPC("initialize", func(m *rpc) {
			if m.Params["protocolVersion"] == "2025-06-18" {
				m.Status = http.StatusOK
				m.Response = m.Again(func(message map[string]any) { message["params"].(map[string]any)["protocolVersion"] = "2025-11-25" })
			}
		})},
	{Name: "mcp-says-more-first", Why: "Before the response a stream may carry a priming event, comments and notifications; lines may end in CR LF, data may have several.",
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.Status != http.StatusOK || !strings.Contains(x.Request.Header.Get("Accept"), "text/event-stream") || x.Object() == nil {
				return
			}
			said := "retry: 3000\r\nid: 0\r\ndata:\r\n\r\n: still here\r\n\r\n" +
				"event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\r\ndata: \"params\":{\"level\":\"info\",\"data\":\"one moment\"}}\r\n\r\nevent: message\r\nid: 1\r\n"
			for line := range strings.Lines(string(indented(x.Object()))) {
				said += "data: " + strings.TrimSuffix(line, "\n") + "\r\n"
			}
			x.Body = []byte(said + "\r\n")
			x.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
		})},
	{Name: "mcp-tells-twice", Why: "A change may be told of more than once.",
		Front: onStream(func(event []byte) []byte {
			if bytes.Contains(event, []byte("list_changed")) && bytes.HasSuffix(event, []byte("\n\n")) {
				return bytes.Repeat(event, 2)
			}
			return event
		})},
	{Name: "mcp-writes-defaults-out", Why: "A hint that says what its absence means says nothing, and a title may stand among the annotations.",
		Front: onMCPTool(func(t tool) {
			notes, ok := t["annotations"].(map[string]any)
			if !ok {
				notes = map[string]any{}
				t["annotations"] = notes
			}
			for hint, otherwise := range map[string]bool{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true} {
				if notes[hint] == nil {
					notes[hint] = otherwise
				}
			}
			if title := t["title"]; title != nil {
				notes["title"] = title
				delete(t, "title")
			}
		})},
	{Name: "mcp-refuses-unknown-versions", Why: "The specification's own example answers a version that it does not know with an error.",
		Front: onRPC("initialize", func(m *rpc) {
			if v := m.Params["protocolVersion"]; v != "2025-11-25" && v != "2025-06-18" {
				m.Fail(-32602, "Unsupported protocol version")
			}
		})},
	{Name: "mcp-for-those-who-sign-in", Why: "An endpoint that asks everybody to sign in before it reads a message.",
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.anonymous() {
				x.Refuse(http.StatusUnauthorized, "authentication_required", "Sign in first.")
				x.Header.Set("WWW-Authenticate", `Bearer resource_metadata="https://bridge.example/.well-known/oauth-protected-resource"`)
			}
		})},
	{Name: "mcp-other-words", Why: "Messages are free.",
		Front: onRPC("", func(m *rpc) {
			if failure, ok := m.Response["error"].(map[string]any); ok {
				failure["message"] = "Nein."
				if m.Code() != "-32022" {
					delete(failure, "data")
				}
			}
		})},
})

// both is one front behind another.
func both(outer, inner front) front {
	return func(next http.Handler) http.Handler { return outer(inner(next)) }
}

// sessionless opens a session of its own for every request of the revisions with sessions, and gives the client none.
func sessionless() front {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !toMCP(r), r.Header.Get("Mcp-Method") != "":
				next.ServeHTTP(w, r)
				return
			case r.Method != http.MethodPost:
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			body := drain(r)
			opening := r.Clone(r.Context())
			opening.Header.Del("Mcp-Protocol-Version")
			opened := answer(next, opening, encode(map[string]any{"jsonrpc": "2.0", "id": 0, "method": "initialize",
				"params": map[string]any{"protocolVersion": r.Header.Get("Mcp-Protocol-Version"), "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "n", "version": "1"}}}))
			if decode(body)["method"] != "initialize" && r.Header.Get("Mcp-Session-Id") == "" {
				r.Header.Set("Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"))
			}
			x := answer(next, r, body)
			x.Header.Del("Mcp-Session-Id")
			x.send(w)
		})
	}
}

func has(o map[string]any, name string) bool {
	_, ok := o[name]
	return ok
}
