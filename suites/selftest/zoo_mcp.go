package selftest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

func fmtNumber(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

var mcpMutants = mcp([]Mutant{
	{Name: "mcp-declares-nothing", Breaks: Clauses("mcp/initialize"), Origin: Peer,
		Front: onRPCResult("initialize", func(r map[string]any) { r["capabilities"] = map[string]any{} })},
	{Name: "mcp-agrees-to-any-version", Breaks: Clauses("mcp/initialize"), Origin: Peer,
		Front: onRPC("initialize", func(m *rpc) { m.Result()["protocolVersion"] = m.Params["protocolVersion"] })},
	{Name: "mcp-nameless", Breaks: Clauses("mcp/initialize"), Origin: Imagined,
		Front: onRPCResult("initialize", func(r map[string]any) { delete(r, "serverInfo") })},
	{Name: "mcp-prompts-undeclared", Breaks: Clauses("mcp/initialize"), Origin: Peer,
		Front: onRPC("prompts/list", func(m *rpc) { m.Answer(map[string]any{"prompts": []any{}}) })},
	{Name: "mcp-resources-undeclared", Breaks: Clauses("mcp/initialize"), Origin: Peer,
		Front: onRPC("resources/list", func(m *rpc) { m.Answer(map[string]any{"resources": []any{}}) })},
	{Name: "mcp-list-changed-undeclared", Breaks: Clauses("mcp/initialize"), Origin: Imagined,
		Front: onRPCResult("initialize", func(r map[string]any) { r["capabilities"] = map[string]any{"tools": map[string]any{}} })},

	{Name: "mcp-answers-by-another-id", Breaks: Clauses("mcp/initialize", "mcp/stateless-2026"), Origin: Imagined,
		Why:   "A client waits for the answer until it gives up.",
		Front: onRPC("", func(m *rpc) { m.Response["id"] = fmt.Sprint(m.Response["id"]) })},
	{Name: "mcp-answers-without-jsonrpc", Breaks: Clauses("mcp/initialize", "mcp/stateless-2026"), Origin: Peer,
		Front: onRPC("", func(m *rpc) { delete(m.Response, "jsonrpc") })},

	{Name: "mcp-answers-as-text", Breaks: Clauses("mcp/initialize", "mcp/stateless-2026"), Origin: Peer,
		Why: "A client reads JSON and event streams, and nothing else.",
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.Status == http.StatusOK && len(x.Body) > 0 {
				x.Header.Set("Content-Type", "text/plain; charset=utf-8")
			}
		})},
	{Name: "mcp-id-zero-lost", Breaks: Clauses("mcp/initialize"), Origin: Module,
		Front: onRPC("", func(m *rpc) {
			if fmtNumber(m.Response["id"]) == "0" {
				m.Response["id"] = nil
			}
		})},
	{Name: "mcp-ids-are-numbers", Breaks: Clauses("mcp/initialize"), Origin: Imagined,
		Front: onRPC("", func(m *rpc) {
			if _, text := m.Response["id"].(string); text {
				m.Response["id"] = 0
			}
		})},

	{Name: "mcp-cursor-as-number", Breaks: Clauses("mcp/tools-list"), Origin: Imagined,
		Front: onRPCResult("tools/list", func(r map[string]any) {
			if r["nextCursor"] != nil {
				r["nextCursor"] = 50
			}
		})},
	{Name: "mcp-cursor-null", Breaks: Clauses("mcp/tools-list"), Origin: Module,
		Front: onRPCResult("tools/list", func(r map[string]any) {
			if r["nextCursor"] == nil {
				r["nextCursor"] = nil
			}
		})},
	{Name: "mcp-endless-pages", Breaks: Clauses("mcp/tools-list"), Origin: Peer,
		Front: onRPC("tools/list", func(m *rpc) {
			if m.Params["cursor"] != nil && m.Result() != nil {
				m.Response = m.Again(func(message map[string]any) { delete(message["params"].(map[string]any), "cursor") })
			}
		})},
	{Name: "mcp-last-tool-lost", Breaks: Clauses("mcp/tools-list", "mcp/parity"), Origin: Imagined,
		Front: onRPCResult("tools/list", func(r map[string]any) {
			if tools, _ := r["tools"].([]any); len(tools) > 0 {
				r["tools"] = tools[:len(tools)-1]
			}
		})},
	{Name: "mcp-tool-doubled", Breaks: Clauses("mcp/tools-list", "mcp/parity"), Origin: Peer,
		Front: onRPCResult("tools/list", func(r map[string]any) {
			if tools, _ := r["tools"].([]any); len(tools) > 0 {
				r["tools"] = append(tools, tools[0])
			}
		})},

	{Name: "mcp-hidden-tools-shown", Breaks: Clauses("mcp/tools-list"), Origin: Peer, Claims: "-tools",
		Why: "A bridge that has MCP only is held to the site itself.",
		Front: onRPCResult("tools/list", func(r map[string]any) {
			tools, _ := r["tools"].([]any)
			r["tools"] = append(tools, map[string]any{"name": "system.maintenance", "inputSchema": map[string]any{"type": "object"}})
		})},
	{Name: "mcp-alone-tool-lost", Breaks: Clauses("mcp/tools-list"), Origin: Imagined, Claims: "-tools",
		Front: onRPCResult("tools/list", func(r map[string]any) {
			if tools, _ := r["tools"].([]any); r["nextCursor"] == nil && len(tools) > 0 {
				r["tools"] = tools[:len(tools)-1]
			}
		})},
	{Name: "mcp-alone-tool-doubled", Breaks: Clauses("mcp/tools-list"), Origin: Peer, Claims: "-tools",
		Front: onRPCResult("tools/list", func(r map[string]any) {
			if tools, _ := r["tools"].([]any); len(tools) > 0 {
				r["tools"] = append(tools, tools[0])
			}
		})},

	{Name: "mcp-order-reversed", Breaks: Clauses("mcp/parity"), Origin: Imagined,
		Front: onRPCResult("tools/list", func(r map[string]any) {
			tools, _ := r["tools"].([]any)
			slices.Reverse(tools)
		})},
	{Name: "mcp-schemas-emptied", Breaks: Clauses("mcp/parity"), Origin: Peer,
		Front: onMCPTool(func(t tool) { t["inputSchema"] = map[string]any{"type": "object"} })},
	{Name: "mcp-result-as-string", Breaks: Clauses("mcp/parity", "mcp/structured-content", "mcp/empty-map"), Origin: Peer,
		Front: onCallResult(func(r map[string]any) {
			delete(r, "structuredContent")
			r["content"] = []any{map[string]any{"type": "text", "text": "done"}}
		})},
	{Name: "mcp-runs-bad-arguments", Breaks: Clauses("mcp/parity", "mcp/invalid-arguments"), Origin: Peer,
		Front: onToolError("not valid", func(m *rpc) { m.Answer(map[string]any{"content": []any{map[string]any{"type": "text", "text": "{}"}}}) })},

	{Name: "mcp-bad-cursor-is-first-page", Breaks: Clauses("mcp/invalid-cursor"), Origin: Peer,
		Front: onRPC("tools/list", func(m *rpc) {
			if m.Code() == "-32602" && m.Params["cursor"] != nil {
				m.Status = http.StatusOK
				m.Response = m.Again(func(message map[string]any) { delete(message["params"].(map[string]any), "cursor") })
			}
		})},

	{Name: "mcp-unknown-tool-as-result", Breaks: Clauses("mcp/unknown-tool"), Origin: Peer,
		Front: onRPC("tools/call", func(m *rpc) {
			if m.Code() == "-32602" {
				m.Answer(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "unknown tool"}}})
			}
		})},
	{Name: "mcp-unknown-tool-other-code", Breaks: Clauses("mcp/unknown-tool"), Origin: Peer,
		Front: onRPC("tools/call", func(m *rpc) {
			if m.Code() == "-32602" {
				m.Fail(-32603, "unknown tool")
			}
		})},

	{Name: "mcp-bad-arguments-as-error", Breaks: Clauses("mcp/invalid-arguments"), Origin: Peer,
		Front: onToolError("not valid", func(m *rpc) { m.Fail(-32602, "message: invalid") })},
	{Name: "mcp-bad-arguments-unnamed", Breaks: Clauses("mcp/invalid-arguments"), Origin: Peer,
		Front: onToolError("not valid", func(m *rpc) {
			m.Answer(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "bad request"}}})
		})},

	{Name: "mcp-failure-as-protocol-error", Breaks: Clauses("mcp/execution-error"), Origin: Peer,
		Front: onToolError("failed", func(m *rpc) { m.Fail(-32603, "the tool failed") })},
	{Name: "mcp-failure-as-success", Breaks: Clauses("mcp/execution-error"), Origin: Peer,
		Front: onToolError("failed", func(m *rpc) { delete(m.Result(), "isError") })},
	{Name: "mcp-failure-mute", Breaks: Clauses("mcp/execution-error"), Origin: Imagined,
		Front: onToolError("failed", func(m *rpc) { m.Result()["content"] = []any{} })},

	{Name: "mcp-structured-missing", Breaks: Clauses("mcp/structured-content", "mcp/parity", "mcp/empty-map"), Origin: Peer,
		Front: onCallResult(func(r map[string]any) { delete(r, "structuredContent") })},
	{Name: "mcp-structured-without-text", Breaks: Clauses("mcp/structured-content"), Origin: Peer,
		Front: onCallResult(func(r map[string]any) {
			if r["structuredContent"] != nil {
				r["content"] = []any{}
			}
		})},
	{Name: "mcp-structured-bare", Breaks: Clauses("mcp/structured-content"), Origin: Peer,
		Front: onCallResult(func(r map[string]any) {
			if wrapped, _ := r["structuredContent"].(map[string]any); len(wrapped) == 1 && wrapped["result"] != nil {
				r["structuredContent"] = wrapped["result"]
			}
		})},
	{Name: "mcp-empty-list-for-object", Breaks: Clauses("mcp/empty-map", "mcp/parity", "mcp/structured-content"), Origin: Module,
		Front: onCallResult(func(r map[string]any) {
			if object, ok := r["structuredContent"].(map[string]any); ok && len(object) == 0 {
				r["structuredContent"] = []any{}
			}
		})},

	{Name: "mcp-any-version-header", Breaks: Clauses("mcp/bad-version-header"), Origin: Peer,
		Front: withHeader(func(h http.Header) {
			if h.Get("Mcp-Protocol-Version") == "1999-01-01" {
				h.Set("Mcp-Protocol-Version", "2025-11-25")
				if h.Get("Mcp-Session-Id") == "" {
					h.Set("Mcp-Protocol-Version", "2026-07-28")
				}
			}
		})},
	{Name: "mcp-any-origin", Breaks: Clauses("mcp/origin"), Origin: Peer,
		Front: withHeader(func(h http.Header) { h.Del("Origin") })},
	{Name: "mcp-origin-only-logged", Breaks: Clauses("mcp/origin"), Origin: Imagined,
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.Status == http.StatusForbidden && x.Request.Header.Get("Origin") != "" {
				x.Status = http.StatusBadRequest
			}
		})},

	{Name: "mcp-session-lends-identity", Breaks: Clauses("mcp/session"), Origin: Peer, Front: lending(everything)},
	{Name: "mcp-session-outlives-delete", Breaks: Clauses("mcp/session"), Origin: Peer,
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) && r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusNoContent)
				return true
			}
			return false
		})},
	{Name: "mcp-unknown-session-400", Breaks: Clauses("mcp/session"), Origin: Peer,
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.Status == http.StatusNotFound && x.Request.Header.Get("Mcp-Session-Id") != "" {
				x.Status = http.StatusBadRequest
			}
		})},

	{Name: "mcp-notification-200", Breaks: Clauses("mcp/notification-202"), Origin: Peer,
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.Status == http.StatusAccepted {
				x.Status = http.StatusOK
			}
		})},
	{Name: "mcp-notification-answered", Breaks: Clauses("mcp/notification-202"), Origin: Peer,
		Front: onAnswer(toMCP, func(x *exchange) {
			if x.Status == http.StatusAccepted {
				x.Set(http.StatusAccepted, map[string]any{"jsonrpc": "2.0", "result": map[string]any{}})
			}
		})},

	{Name: "mcp-cache-public", Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
		Front: onRPCResult("tools/list", func(r map[string]any) {
			if r["cacheScope"] != nil {
				r["cacheScope"] = "public"
			}
		})},
	{Name: "mcp-ttl-missing", Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
		Front: onRPCResult("tools/list", func(r map[string]any) { delete(r, "ttlMs") })},
	{Name: "mcp-result-type-missing", Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
		Front: onRPCResult("tools/list", func(r map[string]any) { delete(r, "resultType") })},
	{Name: "mcp-discover-unknown", Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
		Front: onRPC("server/discover", func(m *rpc) { m.Fail(-32601, "no such method") })},
	{Name: "mcp-method-header-unread", Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
		Front: withHeader(func(h http.Header) {
			if h.Get("Mcp-Method") == "tools/call" && h.Get("Mcp-Name") == "" {
				h.Set("Mcp-Method", "tools/list")
			}
		})},
	{Name: "mcp-name-in-base64-refused", Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
		Why: "The SDK for Go compares the header as it stands.",
		Front: withHeader(func(h http.Header) {
			if strings.HasPrefix(h.Get("Mcp-Name"), "=?base64?") {
				h.Set("Mcp-Name", "other")
			}
		})},
	{Name: "mcp-name-header-optional", Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) && r.Header.Get("Mcp-Method") == "tools/call" && r.Header.Get("Mcp-Name") == "" {
				body := drain(r)
				params, _ := decode(body)["params"].(map[string]any)
				r.Header.Set("Mcp-Name", fmt.Sprint(params["name"]))
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			return false
		})},
	{Name: "mcp-client-capabilities-optional", Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
		Front: onRPC("tools/list", func(m *rpc) {
			if meta, ok := m.Params["_meta"].(map[string]any); ok && m.Code() == "-32602" && len(meta) == 1 {
				m.Answer(map[string]any{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": []any{}})
			}
		})},
	{Name: "mcp-unknown-method-200", Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
		Front: onRPC("no/such/method", func(m *rpc) { m.Status = http.StatusOK })},
	{Name: "mcp-supported-untold", Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
		Front: onRPC("", func(m *rpc) {
			if failure, ok := m.Response["error"].(map[string]any); ok && m.Code() == "-32022" {
				delete(failure, "data")
			}
		})},

	{Name: "mcp-chats-on-stdout", Breaks: Clauses("mcp/stdio"), Origin: Peer,
		Stdout: func(w io.Writer) io.Writer { return chatty{w} }},
	{Name: "mcp-stdio-answers-notifications", Breaks: Clauses("mcp/stdio"), Origin: Peer,
		Stdout: func(w io.Writer) io.Writer {
			return rewriting{w, "\n", "\n" + `{"jsonrpc":"2.0","id":null,"result":{}}` + "\n"}
		}},
	{Name: "mcp-stdio-ids-as-text", Breaks: Clauses("mcp/stdio"), Origin: Imagined,
		Stdout: func(w io.Writer) io.Writer { return rewriting{w, `"id":2,`, `"id":"2",`} }},
	{Name: "mcp-stdio-nameless", Breaks: Clauses("mcp/stdio"), Origin: Imagined,
		Stdout: func(w io.Writer) io.Writer { return rewriting{w, `"serverInfo":`, `"server":`} }},
	{Name: "mcp-stdio-forgets-errors", Breaks: Clauses("mcp/stdio"), Origin: Imagined,
		Stdout: func(w io.Writer) io.Writer { return rewriting{w, `"error":`, `"result":`} }},

	{Name: "mcp-description-null", Breaks: Clauses("mcp/client-tolerance"), Origin: Peer,
		Front: onMCPTool(func(t tool) { t["title"] = nil })},
	{Name: "mcp-annotations-list", Breaks: Clauses("mcp/client-tolerance"), Origin: Module,
		Front: onMCPTool(func(t tool) { t["annotations"] = []any{} })},
	{Name: "mcp-hint-as-text", Breaks: Clauses("mcp/client-tolerance"), Origin: Peer,
		Front: onMCPTool(func(t tool) {
			if notes, ok := t["annotations"].(map[string]any); ok {
				notes["readOnlyHint"] = "yes"
			}
		})},
	{Name: "mcp-output-of-any-type", Breaks: Clauses("mcp/client-tolerance"), Origin: Peer,
		Front: onMCPTool(func(t tool) {
			if output, ok := t["outputSchema"].(map[string]any); ok {
				delete(output, "type")
			}
		})},

	{Name: "mcp-never-notifies", Breaks: Clauses("fresh/notify"), Origin: Peer,
		Front: onStream(func(event []byte) []byte {
			if bytes.Contains(event, []byte("list_changed")) {
				return []byte(":\n\n")
			}
			return event
		})},
	{Name: "mcp-listen-unacknowledged", Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
		Why: "A client does not know whether it will hear of anything.",
		Front: onStream(func(event []byte) []byte {
			if bytes.Contains(event, []byte("subscriptions/acknowledged")) {
				return []byte(":\n\n")
			}
			return event
		})},
	{Name: "mcp-listen-acknowledged-late", Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
		Front: onStream(func(event []byte) []byte {
			if !bytes.Contains(event, []byte("subscriptions/acknowledged")) {
				return event
			}
			hasty := "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"hello\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":4711}}}\n\n"
			return append([]byte(hasty), event...)
		})},
	{Name: "mcp-listen-promises-nothing", Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
		Front: onStream(replacing(`"notifications":{"toolsListChanged":true}`, `"notifications":{}`))},
	{Name: "mcp-listen-subscription-unnamed", Breaks: Clauses("mcp/stateless-2026", "fresh/notify"), Origin: Peer,
		Why:   "A client with two subscriptions cannot tell whose notification it is, and drops it.",
		Front: onStream(replacing(`"io.modelcontextprotocol/subscriptionId":`, `"subscription":`))},
	{Name: "mcp-listen-subscription-as-text", Breaks: Clauses("mcp/stateless-2026", "fresh/notify"), Origin: Imagined,
		Front: onStream(replacing(`subscriptionId":4711`, `subscriptionId":"4711"`))},
	{Name: "mcp-listen-tells-unasked", Breaks: Clauses("fresh/notify"), Origin: Imagined,
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) && r.Header.Get("Mcp-Method") == "subscriptions/listen" {
				body := bytes.ReplaceAll(drain(r), []byte(`"notifications":{}`), []byte(`"notifications":{"toolsListChanged":true}`))
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			return false
		})},
	{Name: "mcp-notifies-at-once", Breaks: Clauses("fresh/notify"), Origin: Imagined,
		Front: onStream(func(event []byte) []byte {
			return append(event, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"...)
		})},
})

// mcp marks mutants as such of MCP.
func mcp(list []Mutant) []Mutant {
	for i := range list {
		list[i].MCP = true
	}
	return list
}
