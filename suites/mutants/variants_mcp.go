package mutants

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
	{Name: "mcp-one-revision", Why: "One revision with sessions is enough.", Claims: "-mcp-2026",
		Front: onRPC("initialize", func(m *rpc) {
			if m.Params["protocolVersion"] == "2025-06-18" {
				m.Status = http.StatusOK
				m.Response = m.Again(func(message map[string]any) { message["params"].(map[string]any)["protocolVersion"] = "2025-11-25" })
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

func has(o map[string]any, name string) bool {
	_, ok := o[name]
	return ok
}
