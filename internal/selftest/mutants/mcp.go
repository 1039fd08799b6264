package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// mcpMutants break the MCP endpoint: life cycle, messages, tools, results.
func mcpMutants() []Mutant {
	return []Mutant{
		{Name: "mcp-declares-nothing", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer,
			Middleware: onRPCResult("initialize", func(r map[string]any) { r["capabilities"] = map[string]any{} })},
		{Name: "mcp-agrees-to-the-newest-alone", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer, Why: "initialize responds with a constant, and the header with an older revision is accepted still",
			Middleware: onRPCResult("initialize", func(r map[string]any) { r["protocolVersion"] = "2025-11-25" })},
		{Name: "mcp-pages-kept-by-cursor", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer,
			Why: "the key of a page of tools/list is its cursor", Middleware: mcpPagesByCursor()},
		{Name: "mcp-arguments-demanded", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Middleware: demandArguments()},
		{Name: "mcp-stream-buffered", MCP: true, Breaks: Clauses("mcp/stream-unbuffered"), Origin: Peer,
			Middleware: onStreamHeader(func(h http.Header) { h.Del("X-Accel-Buffering") }),
			Remedy:     onStreamHeader(func(h http.Header) { h.Set("X-Accel-Buffering", "no") })},
		{Name: "mcp-agrees-to-later-versions", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer, Why: "dates are compared: what is later is better",
			Middleware: agreeTo(func(version string) bool { return version > "2025-11-25" })},
		{Name: "mcp-agrees-to-any-date-between", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer, Why: "a range of dates is accepted",
			Middleware: agreeTo(func(version string) bool { return version > "2025-06-18" && version < "2025-11-25" })},
		{Name: "mcp-prompts-undeclared", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer,
			Middleware: onRPC("prompts/list", func(m *rpc) { m.Succeed(map[string]any{"prompts": []any{}}) })},
		{Name: "mcp-resources-undeclared", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer,
			Middleware: onRPC("resources/list", func(m *rpc) { m.Succeed(map[string]any{"resources": []any{}}) })},
		{Name: "mcp-answers-by-another-id", MCP: true, Breaks: Clauses("mcp/initialize", "mcp/stateless-2026"), Origin: Imagined,
			Why:        "the client waits for the response until it times out",
			Middleware: onRPC("", func(m *rpc) { m.Response["id"] = fmt.Sprint(m.Response["id"]) })},
		{Name: "mcp-answers-without-jsonrpc", MCP: true, Breaks: Clauses("mcp/initialize", "mcp/stateless-2026"), Origin: Peer,
			Middleware: onRPC("", func(m *rpc) { delete(m.Response, "jsonrpc") })},
		{Name: "mcp-answers-as-text", MCP: true, Breaks: Clauses("mcp/initialize", "mcp/stateless-2026"), Origin: Peer,
			Why: "clients read JSON and event streams only",
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.Status == http.StatusOK && len(x.Body) > 0 {
					x.Header.Set("Content-Type", "text/plain; charset=utf-8")
				}
			})},
		{Name: "mcp-list-fails", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer,
			Why: "one tool whose schema cannot be written takes the whole list with it, as with another zod beside @rekog/mcp-nest",
			Middleware: onRPC("tools/list", func(m *rpc) {
				if m.Result() != nil {
					delete(m.Response, "result")
					m.Response["error"] = map[string]any{"code": -32603, "message": "Tool schema cannot be advertised."}
				}
			})},
		{Name: "mcp-401-without-challenge", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer,
			Why:        "the headers of a refusal are those of the three endpoints alone",
			Middleware: onResponse(toMCP, atStatus(http.StatusUnauthorized, dropHeader("Www-Authenticate")))},
		{Name: "mcp-401-without-challenge-to-a-call", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer, Why: "the site's 401 to a call becomes another",
			Middleware: onRPC("tools/call", func(m *rpc) {
				if m.Status == http.StatusUnauthorized {
					m.Header.Del("Www-Authenticate")
				}
			})},
		{Name: "mcp-cursor-null", MCP: true, Breaks: Clauses("mcp/tools-list"), MayFail: Clauses("mcp/stateless-2026"), Origin: Module,
			Middleware: onRPCResult("tools/list", func(r map[string]any) {
				if r["nextCursor"] == nil {
					r["nextCursor"] = nil
				}
			})},
		{Name: "mcp-endless-pages", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer,
			Middleware: onRPC("tools/list", func(m *rpc) {
				if m.Params["cursor"] != nil && m.Result() != nil {
					m.Response = m.Resend(func(message map[string]any) { delete(message["params"].(map[string]any), "cursor") })
				}
			})},
		{Name: "mcp-last-tool-lost", MCP: true, Breaks: Clauses("mcp/tools-list", "mcp/parity"), Origin: Imagined,
			Middleware: onMCPTools(func(tools []any) []any { return tools[:len(tools)-1] })},
		{Name: "mcp-tool-doubled", MCP: true, Breaks: Clauses("mcp/tools-list", "mcp/parity"), Origin: Peer,
			Middleware: onMCPTools(func(tools []any) []any { return append(tools, tools[0]) })},
		{Name: "mcp-hidden-tools-shown", MCP: true, Breaks: Clauses("mcp/tools-list", "mapping/name-is-id", "access/filtered-by-method", "list/names-unique"), MayFail: Clauses("list/pages-cover-all-once"), Origin: Peer, Claims: "-tools",
			Why: "a bridge with MCP only is compared with the site itself",
			Middleware: onRPCResult("tools/list", func(r map[string]any) {
				tools, _ := r["tools"].([]any)
				r["tools"] = append(tools, map[string]any{"name": "system.maintenance", "inputSchema": map[string]any{"type": "object"}})
			})},
		{Name: "mcp-alone-tool-lost", MCP: true, Breaks: Clauses("mcp/tools-list", "list/pages-cover-all-once", "access/filtered-by-method"),
			MayFail: Clauses("mapping/long-names", "translate/unknown-type", "translate/required-default", "translate/one-bad-tool"), Origin: Imagined, Claims: "-tools",
			Middleware: onRPCResult("tools/list", func(r map[string]any) {
				if tools, _ := r["tools"].([]any); r["nextCursor"] == nil && len(tools) > 0 {
					r["tools"] = tools[:len(tools)-1]
				}
			})},
		{Name: "mcp-alone-tool-doubled", MCP: true, Breaks: Clauses("mcp/tools-list", "list/names-unique", "list/pages-cover-all-once"), Origin: Peer, Claims: "-tools",
			Middleware: onMCPTools(func(tools []any) []any { return append(tools, tools[0]) })},
		{Name: "mcp-order-reversed", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Imagined,
			Middleware: onMCPTools(func(tools []any) []any { slices.Reverse(tools); return tools })},
		{Name: "mcp-result-as-string", MCP: true, Breaks: Clauses("mcp/parity", "mcp/structured-content", "mcp/empty-map"), Origin: Peer,
			Middleware: onCallResult(func(r map[string]any) {
				delete(r, "structuredContent")
				r["content"] = []any{map[string]any{"type": "text", "text": "done"}}
			})},
		{Name: "mcp-long-texts-cut", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "the model's context is spared",
			Middleware: onCallResult(func(r map[string]any) {
				content, _ := r["content"].([]any)
				for _, block := range content {
					b, _ := block.(map[string]any)
					if text, _ := b["text"].(string); len(text) > 100_000 {
						b["text"] = text[:100_000] + "… [truncated]"
					}
				}
			})},
		{Name: "mcp-texts-without-a-schema-cut", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer,
			Why: "what a schema describes is for programs, and the rest for models",
			Middleware: onCallResult(func(r map[string]any) {
				content, _ := r["content"].([]any)
				for _, block := range content {
					b, _ := block.(map[string]any)
					if text, _ := b["text"].(string); r["structuredContent"] == nil && len(text) > 20_000 {
						b["text"] = text[:20_000] + "… (shortened)"
					}
				}
			})},
		{Name: "mcp-runs-bad-arguments", MCP: true, Breaks: Clauses("mcp/parity", "mcp/invalid-arguments", "mcp/undeclared-argument"), Origin: Peer,
			Middleware: onToolError("not valid", func(m *rpc) {
				m.Succeed(map[string]any{"content": []any{map[string]any{"type": "text", "text": "{}"}}})
			})},
		takesForNone("mcp-takes-a-list-for-no-arguments", "PHP's arrays have no names or have them", func(given any) bool {
			_, list := given.([]any)
			return list
		}),
		takesForNone("mcp-takes-null-for-no-arguments", "a nil map is an empty one", func(given any) bool { return given == nil }),
		{Name: "mcp-bad-cursor-is-first-page", MCP: true, Breaks: Clauses("mcp/invalid-cursor"), Origin: Peer,
			Middleware: onRPC("tools/list", func(m *rpc) {
				if m.Code() == "-32602" && m.Params["cursor"] != nil {
					m.Status = http.StatusOK
					m.Response = m.Resend(func(message map[string]any) { delete(message["params"].(map[string]any), "cursor") })
				}
			})},
		{Name: "mcp-unknown-tool-as-result", MCP: true, Breaks: Clauses("mcp/unknown-tool", "mcp/unknown-tool-error"), Origin: Peer,
			Middleware: onRPC("tools/call", func(m *rpc) {
				if m.Code() == "-32602" {
					m.Succeed(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "unknown tool"}}})
				}
			})},
		{Name: "mcp-names-as-models-write-them", MCP: true, Breaks: Clauses("mcp/unknown-tool"), Origin: Peer, Why: "models write _ in place of dots",
			Middleware: onRPC("tools/call", func(m *rpc) {
				name, _ := m.Params["name"].(string)
				if m.Code() != "-32602" || !strings.Contains(name, "_") {
					return
				}
				sent := decode(m.Sent)
				objectIn(sent, "params")["name"] = strings.ReplaceAll(name, "_", ".")
				m.Request.Header.Del("Mcp-Name")
				if again := m.Send(http.MethodPost, m.Request.URL.Path, encode(sent)); objectIn(again.Object(), "result") != nil {
					m.Response, m.Status = again.Object(), again.Status
				}
			})},
		{Name: "mcp-nulls-left-out", MCP: true, Breaks: Clauses("mcp/parity"), MayFail: Clauses("mcp/undeclared-argument"), Origin: Peer, Why: "models write null for what they leave out",
			Middleware: onMCPCall(func(params map[string]any) {
				if arguments, ok := params["arguments"].(map[string]any); ok {
					maps.DeleteFunc(arguments, func(_ string, v any) bool { return v == nil })
				}
			})},
		{Name: "mcp-unknown-tool-other-code", MCP: true, Breaks: Clauses("mcp/unknown-tool"), Origin: Peer,
			Middleware: onRPC("tools/call", func(m *rpc) {
				if m.Code() == "-32602" {
					m.Fail(-32603, "unknown tool")
				}
			})},
		{Name: "mcp-bad-arguments-as-error", MCP: true, Breaks: Clauses("mcp/invalid-arguments"), Origin: Peer,
			Middleware: onToolError("not valid", func(m *rpc) { m.Fail(-32602, "message: invalid") })},
		{Name: "mcp-bad-arguments-unnamed", MCP: true, Breaks: Clauses("mcp/invalid-arguments"), Origin: Peer,
			Middleware: onToolError("not valid", func(m *rpc) {
				m.Succeed(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "bad request"}}})
			})},
		{Name: "mcp-failure-as-protocol-error", MCP: true, Breaks: Clauses("mcp/execution-error"), Origin: Peer,
			Middleware: onToolError("failed", func(m *rpc) { m.Fail(-32603, "the tool failed") })},
		{Name: "mcp-failure-as-success", MCP: true, Breaks: Clauses("mcp/execution-error"), Origin: Peer,
			Middleware: onToolError("failed", func(m *rpc) { delete(m.Result(), "isError") })},
		{Name: "mcp-structured-missing", MCP: true, Breaks: Clauses("mcp/structured-content", "mcp/parity", "mcp/empty-map"), Origin: Peer,
			Middleware: onCallResult(func(r map[string]any) { delete(r, "structuredContent") })},
		{Name: "mcp-structured-without-text", MCP: true, Breaks: Clauses("mcp/structured-content"), Origin: Peer,
			Middleware: onCallResult(func(r map[string]any) {
				if r["structuredContent"] != nil {
					r["content"] = []any{}
				}
			})},
		{Name: "mcp-structured-bare", MCP: true, Breaks: Clauses("mcp/structured-content"), Origin: Peer,
			Middleware: onCallResult(func(r map[string]any) {
				if wrapped, _ := r["structuredContent"].(map[string]any); len(wrapped) == 1 && wrapped["result"] != nil {
					r["structuredContent"] = wrapped["result"]
				}
			})},
		{Name: "mcp-wrapped-by-the-result", MCP: true, Breaks: Clauses("mcp/structured-content"), Origin: Peer,
			Why: "an object needs no wrapping, whatever the listed schema says",
			Middleware: onCallResult(func(r map[string]any) {
				if wrapped, _ := r["structuredContent"].(map[string]any); len(wrapped) == 1 && has(wrapped, "result") {
					if object, ok := wrapped["result"].(map[string]any); ok {
						r["structuredContent"] = object
					}
				}
			})},
		{Name: "mcp-empty-list-for-object", MCP: true, Breaks: Clauses("mcp/empty-map", "mcp/parity", "mcp/structured-content"), Origin: Module,
			Middleware: onCallResult(func(r map[string]any) {
				if object, ok := r["structuredContent"].(map[string]any); ok && len(object) == 0 {
					r["structuredContent"] = []any{}
				}
			})},
		{Name: "mcp-empty-list-within-a-list", MCP: true, Breaks: Clauses("mcp/empty-map", "mcp/parity", "mcp/structured-content"), Origin: Peer, Why: "the result and its members are looked at, and not what is in lists",
			Middleware: onRPCResult("tools/call", func(result map[string]any) {
				structured, _ := result["structuredContent"].(map[string]any)
				if list, ok := structured["result"].([]any); ok {
					for i, item := range list {
						if object, ok := item.(map[string]any); ok && len(object) == 0 {
							list[i] = []any{}
						}
					}
				}
			})},
		{Name: "mcp-empty-list-within-an-object", MCP: true, Breaks: Clauses("mcp/empty-map"), Origin: Peer, Why: "the result is looked at, and not its members",
			Middleware: onCallResult(func(r map[string]any) {
				if settings, ok := objectIn(r, "structuredContent")["settings"].(map[string]any); ok && len(settings) == 0 {
					objectIn(r, "structuredContent")["settings"] = []any{}
				}
			})},
		{Name: "mcp-names-trimmed", MCP: true, Breaks: Clauses("mcp/unknown-tool"), Origin: Peer, Why: "models add blanks",
			Middleware: onMCPCall(func(params map[string]any) {
				if name, _ := params["name"].(string); strings.HasSuffix(name, " ") {
					params["name"] = strings.TrimSpace(name)
				}
			})},
		{Name: "mcp-names-with-a-prefix", MCP: true, Breaks: Clauses("mcp/unknown-tool"), Origin: Peer, Why: "models call tools as their client shows them",
			Middleware: onMCPCall(func(params map[string]any) {
				if name, _ := params["name"].(string); strings.HasPrefix(name, "mcp__") {
					params["name"] = name[strings.LastIndex(name, "__")+2:]
				}
			})},
		{Name: "mcp-extensions-trusted", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "an extension of the browser is taken for the user's own program",
			Middleware: readHeader(toMCP, "Origin", "", func(given string) bool { return strings.HasPrefix(given, "chrome-extension://") })},
		{Name: "mcp-ids-as-doubles", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer, Why: "JSON is read into doubles, which Python writes with a point",
			Middleware: onRPC("", func(m *rpc) {
				if id, ok := m.Response["id"].(json.Number); ok && !strings.Contains(string(id), ".") {
					m.Response["id"] = json.Number(string(id) + ".0")
				}
			})},
		{Name: "mcp-list-writes-into-the-tools", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "both interfaces show the same objects, and one of them changes what it shows",
			Middleware: func() middleware {
				var shown atomic.Bool
				rest := onProperties(func(schema, _ map[string]any) {
					if shown.Load() {
						schema["additionalProperties"] = false
					}
				})
				return chain(beforeBridge(func(r *http.Request) {
					if toMessage(r) && decode(peekBody(r))["method"] == "tools/list" {
						shown.Store(true)
					}
				}), rest)
			}(), MayFail: Clauses("mapping/properties-complete", "schema/accepts-valid-example", "invoke/undeclared-argument", "describe/equals-list", "list/order-stable", "mcp/tools-list", "mcp/undeclared-argument")},
		{Name: "mcp-origin-only-logged", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Imagined,
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.Status == http.StatusForbidden && x.Request.Header.Get("Origin") != "" {
					x.Status = http.StatusBadRequest
				}
			})},
		{Name: "mcp-session-lends-identity", MCP: true, Breaks: Clauses("mcp/session", "access/bad-credentials"),
			MayFail: Clauses("access/credentials-forwarded"), Origin: Peer,
			Middleware: actAsSessionOwner(func(*http.Request, string) bool { return true })},
		{Name: "mcp-session-outlives-delete", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer,
			Middleware: refuseStatus(http.StatusNoContent, toMCPBy(http.MethodDelete))},
		{Name: "mcp-session-ended-by-another", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer, Why: "an SDK looks the session up by its id alone",
			Middleware: actAsSessionOwner(func(r *http.Request, _ string) bool { return r.Method == http.MethodDelete && authorized(r) != "" })},
		{Name: "mcp-session-ended-by-a-refused-delete", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer,
			Why: "the session is taken out of the map before its owner is compared",
			Middleware: inOwnedSession(func(_ http.ResponseWriter, r *http.Request, next http.Handler, owner string) (handled bool) {
				if who := authorized(r); r.Method == http.MethodDelete && who != "" && who != owner {
					ends := r.Clone(r.Context())
					ends.Header.Set("Authorization", owner)
					record(next, ends, nil)
				}
				return false
			})},
		{Name: "mcp-sessions-by-their-beginning", MCP: true, Breaks: Clauses("mcp/session"), Origin: Imagined, Why: "a column holds eight characters",
			Middleware: sessionsByTheirBeginning()},
		{Name: "mcp-any-session-listens", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer, Why: "only the handler of messages looks the session up",
			Middleware: throughWhere(toMCPBy(http.MethodGet), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(streamAnyway{w}, r)
			})},
		{Name: "mcp-unknown-session-400", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer,
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.Status == http.StatusNotFound && x.Request.Header.Get("Mcp-Session-Id") != "" {
					x.Status = http.StatusBadRequest
				}
			})},
		{Name: "mcp-notification-200", MCP: true, Breaks: Clauses("mcp/notification-202"), Origin: Peer,
			Middleware: onResponse(toMCP, atStatus(http.StatusAccepted, func(x *exchange) { x.Status = http.StatusOK }))},
		{Name: "mcp-notification-answered", MCP: true, Breaks: Clauses("mcp/notification-202"), Origin: Peer,
			Middleware: onResponse(toMCP, atStatus(http.StatusAccepted, func(x *exchange) {
				x.Set(http.StatusAccepted, map[string]any{"jsonrpc": "2.0", "result": map[string]any{}})
			}))},
		{Name: "mcp-cache-public", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
			Middleware: onRPCResult("tools/list", func(r map[string]any) {
				if r["cacheScope"] != nil {
					r["cacheScope"] = "public"
				}
			})},
		{Name: "mcp-ttl-missing", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
			Middleware: onRPCResult("tools/list", func(r map[string]any) { delete(r, "ttlMs") })},
		{Name: "mcp-discover-unknown", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
			Middleware: onRPC("server/discover", func(m *rpc) { m.Fail(-32601, "no such method") })},
		{Name: "mcp-method-header-unread", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
			Middleware: withHeader(func(h http.Header) {
				if h.Get("Mcp-Method") == "tools/call" && h.Get("Mcp-Name") == "" {
					h.Set("Mcp-Method", "tools/list")
				}
			})},
		{Name: "mcp-version-of-the-body-unread", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer, Why: "the header says it already",
			Middleware: beforeBridge(func(r *http.Request) {
				if toMCP(r) && r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" {
					setBody(r, bytes.ReplaceAll(readBody(r), []byte(`protocolVersion":"2025-11-25"`), []byte(`protocolVersion":"2026-07-28"`)))
				}
			})},
		{Name: "mcp-method-header-in-any-case", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer, Why: "headers have no case",
			Middleware: withHeader(func(h http.Header) {
				if method := strings.ToLower(h.Get("Mcp-Method")); method == "tools/list" {
					h.Set("Mcp-Method", method)
				}
			})},
		{Name: "mcp-name-in-base64-refused", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
			Why:        "the Go SDK compares the header without parsing it",
			Middleware: readHeader(toMCP, "Mcp-Name", "other", func(given string) bool { return strings.HasPrefix(given, "=?base64?") })},
		{Name: "mcp-name-header-optional", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
			Middleware: beforeBridge(func(r *http.Request) {
				if toMCP(r) && r.Header.Get("Mcp-Method") == "tools/call" && r.Header.Get("Mcp-Name") == "" {
					body := readBody(r)
					r.Header.Set("Mcp-Name", fmt.Sprint(objectIn(decode(body), "params")["name"]))
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
			})},
		{Name: "mcp-unknown-method-200", MCP: true, Breaks: Clauses("mcp/stateless-2026"), Origin: Peer,
			Middleware: onRPC("no/such/method", func(m *rpc) { m.Status = http.StatusOK })},
		{Name: "mcp-chats-on-stdout", MCP: true, Breaks: Clauses("mcp/stdio"), Origin: Peer,
			Stdout: func(w io.Writer) io.Writer { return logOnStdout{w, ""} }},
		{Name: "mcp-stdio-answers-notifications", MCP: true, Breaks: Clauses("mcp/stdio"), Origin: Peer,
			Stdout: func(w io.Writer) io.Writer {
				return stdoutReplacer{w, "\n", "\n" + `{"jsonrpc":"2.0","id":null,"result":{}}` + "\n"}
			}},
		{Name: "mcp-description-null", MCP: true, Breaks: Clauses("mcp/client-tolerance"), Origin: Peer,
			Middleware: onMCPTool(func(t tool) { t["title"] = nil })},
		{Name: "mcp-annotations-list", MCP: true, Breaks: Clauses("mcp/client-tolerance"), Origin: Module,
			Middleware: onMCPTool(func(t tool) { t["annotations"] = []any{} })},
		{Name: "mcp-hint-as-text", MCP: true, Breaks: Clauses("mcp/client-tolerance"), Origin: Peer,
			Middleware: onMCPTool(inMember("annotations", func(notes map[string]any) { notes["readOnlyHint"] = "yes" }))},
		{Name: "mcp-output-of-any-type", MCP: true, Breaks: Clauses("mcp/client-tolerance", "mcp/parity"), Origin: Peer,
			Middleware: onMCPTool(inMember("outputSchema", without("type")))},
		{Name: "mcp-listen-unacknowledged", MCP: true, Breaks: Clauses("mcp/stateless-2026"), MayFail: Clauses("fresh/notify"), Origin: Peer,
			Why: "the client cannot know whether it will receive notifications",
			Middleware: onStream(func(event []byte) []byte {
				if bytes.Contains(event, []byte("subscriptions/acknowledged")) {
					return []byte(":\n\n")
				}
				return event
			})},
		{Name: "mcp-listen-subscription-unnamed", MCP: true, Breaks: Clauses("mcp/stateless-2026", "fresh/notify"), Origin: Peer,
			Why:        "a client with two subscriptions cannot assign the notification and drops it",
			Middleware: onStream(replaceInEvent(`"io.modelcontextprotocol/subscriptionId":`, `"subscription":`))},
		{Name: "mcp-listen-subscription-as-text", MCP: true, Breaks: Clauses("mcp/stateless-2026", "fresh/notify"), Origin: Imagined,
			Middleware: onStream(replaceInEvent(`subscriptionId":4711`, `subscriptionId":"4711"`))},
		{Name: "mcp-notifications-after-the-end", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer,
			Why: "the session is looked up where something is to be done",
			Middleware: onResponse(toMCP, func(x *exchange) {
				if message := decode(x.Sent); x.Status == http.StatusNotFound && message["method"] != nil && message["id"] == nil {
					x.Status, x.Body = http.StatusAccepted, nil
				}
			})},
		{Name: "mcp-outputs-of-any-object", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer,
			Why: "results are passed on as they are, and the SDK wants some schema",
			Middleware: onMCPTool(func(t tool) {
				if objectIn(t, "outputSchema")["type"] == "object" {
					t["outputSchema"] = map[string]any{"type": "object"}
				}
			})},
		{Name: "mcp-refusal-of-a-method-as-protocol-error", MCP: true, Breaks: Clauses("mcp/execution-error"), Origin: Peer,
			Why: "the site's -32602 is sent on as it is",
			Middleware: onToolError("The site refused", func(m *rpc) {
				m.Fail(-32602, "Invalid Params")
			})},
		{Name: "mcp-origin-begins-with-localhost", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer,
			Why:        "an expression for the user's own machine is not anchored",
			Middleware: readHeader(toMCP, "Origin", "", func(given string) bool { return strings.HasPrefix(given, "http://localhost") })},
		{Name: "mcp-undeclared-methods-fail", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Imagined,
			Why: "the list of an undeclared capability is unknown, and what takes a name finds none",
			Middleware: onRPC("", func(m *rpc) {
				if m.Code() == "-32601" && (m.Method == "prompts/get" || m.Method == "resources/read") {
					m.Fail(-32602, "There is nothing of that name.")
				}
			})},
		{Name: "mcp-calls-need-discovery", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer,
			Why: "a tool is looked up in the list of the caller, who may not have one",
			Middleware: onRPC("tools/call", func(m *rpc) {
				if m.Result() != nil && m.Send(http.MethodGet, "/mcp/tools/list", nil).Status == http.StatusForbidden {
					m.Fail(-32602, fmt.Sprintf("There is no tool named %q.", m.Params["name"]))
				}
			})},
		{Name: "mcp-removed-tools-stay", MCP: true, Breaks: Clauses("mcp/parity"),
			MayFail: Clauses("fresh/per-user-ttl", "mcp/tools-list", "mcp/order-stable"), Origin: Peer,
			Why:        "tools are registered with the server, and never removed",
			Middleware: keepToolsOfMCP(authorized, func(*exchange, string) bool { return true })},
		{Name: "mcp-calls-by-the-first-schema", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer,
			Why: "compiled schemas are kept by the tool's name", Middleware: validateByFirstSchema("content.arrival")},
	}
}

// onlyWithSlash serves MCP at the path with a slash at its end, and redirects to it.
var onlyWithSlash = through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
	switch r.URL.Path {
	case "/mcp":
		http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
		return
	case "/mcp/":
		r = r.Clone(r.Context())
		r.URL.Path = "/mcp"
	}
	next.ServeHTTP(w, r)
})

// mcpVariants are correct MCP servers that differ from the reference.
func mcpVariants() []Mutant {
	return []Mutant{
		{Name: "mcp-answers-as-events", MCP: true, Why: "a response may be JSON or an event of a stream",
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.Status == http.StatusOK && strings.Contains(x.Request.Header.Get("Accept"), "text/event-stream") && x.Object() != nil {
					x.Body = append(append([]byte(": here it comes\n\nevent: message\nid: 1\ndata: "), x.Body...), "\n\n"...)
					x.Header.Set("Content-Type", "text/event-stream")
					x.Header.Set("X-Accel-Buffering", "no")
				}
			})},
		{Name: "mcp-delete-405", MCP: true, Why: "a server may refuse to end a session",
			Middleware: refuseStatus(http.StatusMethodNotAllowed, toMCPBy(http.MethodDelete))},
		{Name: "mcp-delete-404", MCP: true, Why: "a router without a route for DELETE, as in an example of the TypeScript SDK",
			Middleware: refuseStatus(http.StatusNotFound, toMCPBy(http.MethodDelete))},
		{Name: "mcp-ends-sessions", MCP: true, Why: "a server may end a session at any time, here after ten messages; the client opens another",
			Claims: "-tools,-mcp-2026", Middleware: endingSessions(10)},
		{Name: "mcp-behind-a-slash", MCP: true, Why: "a router may send the client to the path with a slash at its end, and keep the verb", Middleware: onlyWithSlash},
		{Name: "mcp-wraps-as-value", MCP: true, Why: "the server decides how it wraps a result that is no object, as long as the schema matches",
			Middleware: onRPC("", func(m *rpc) {
				if m.Method != "tools/list" && m.Method != "tools/call" {
					return
				}
				walkObjects(m.Response["result"], func(o map[string]any) {
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
		{Name: "mcp-alone", MCP: true, Why: "a bridge may have MCP and nothing else", Claims: "-tools",
			Middleware: refuseStatus(http.StatusNotFound, func(r *http.Request) bool { return !toMCP(r) })},
		{Name: "mcp-tells-of-changes-in-2026-only", MCP: true, Why: "without sessions there is no stream for notifications; then listChanged is not declared",
			Middleware: chain(onRPCResult("initialize", func(r map[string]any) { r["capabilities"] = map[string]any{"tools": map[string]any{}} }),
				refuseStatus(http.StatusMethodNotAllowed, toMCPBy(http.MethodGet)))},
		{Name: "mcp-without-sessions", MCP: true, Why: "sessions are optional for a server in all revisions that have them",
			Claims: "-mcp-list-changed", Middleware: withoutSessions()},
		{Name: "mcp-strings-as-they-are", MCP: true, Why: "the text of a string result may be the string itself instead of its JSON",
			Middleware: onCallResult(func(r map[string]any) {
				if structured, ok := r["structuredContent"].(map[string]any); ok {
					if text, ok := structured["result"].(string); ok {
						r["content"] = []any{map[string]any{"type": "text", "text": text}}
					}
				}
			})},
		{Name: "mcp-errors-without-id", MCP: true, Why: "an error before the message is parsed has no id",
			Middleware: onRPC("", func(m *rpc) {
				if m.Status == http.StatusBadRequest && m.Code() != "-32602" {
					m.Response["id"] = nil
				}
			})},
		{Name: "mcp-one-revision", MCP: true, Why: "one revision with sessions is enough", Claims: "-mcp-2026", Middleware: onlyRevision("2025-11-25")},
		{Name: "mcp-older-revision", MCP: true, Why: "one revision with sessions is enough, and it need not be the newest", Claims: "-mcp-2026", Middleware: onlyRevision("2025-06-18")},
		{Name: "mcp-older-revision-alone", MCP: true, Why: "as mcp-older-revision, for a bridge with MCP alone", Claims: "-mcp-2026,-tools", Middleware: onlyRevision("2025-06-18")},
		{Name: "mcp-alone-as-streams", MCP: true, Why: "any response to a request may be a stream of events, as the TypeScript SDK sends it", Claims: "-tools",
			Middleware: asStream(func(message string) string { return "event: message\ndata: " + message + "\n\n" })},
		{Name: "mcp-asks-first", MCP: true, Why: "a server may send requests of its own in the stream, such as a ping, and wait for the response", Claims: "-tools,-mcp-2026", Middleware: asksFirst()},
		{Name: "mcp-resumed", MCP: true, Why: "a server may close the connection after the first event, which has an id; the client goes on with GET and Last-Event-ID", Claims: "-tools,-mcp-2026",
			Middleware: resumedStreams()},
		{Name: "mcp-says-more-first", MCP: true, Why: "a stream may carry a priming event, comments and notifications before the response; lines may end in CR LF, and data may have several lines",
			Middleware: asStream(func(message string) string {
				said := "retry: 3000\r\nid: 0\r\ndata:\r\n\r\n: still here\r\n\r\n" +
					"event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\r\ndata: \"params\":{\"level\":\"info\",\"data\":\"one moment\"}}\r\n\r\nevent: message\r\nid: 1\r\n"
				for line := range strings.Lines(string(encodeIndented(decode([]byte(message))))) {
					said += "data: " + strings.TrimSuffix(line, "\n") + "\r\n"
				}
				return said + "\r\n"
			})},
		{Name: "mcp-stream-in-pieces", MCP: true, Why: "a stream may begin with a byte order mark, arrive in pieces that end within a character, with comments in between, and carry requests of the server that a client without capabilities refuses; the next response may be JSON",
			Claims: "-tools,-mcp-2026", Middleware: inPieces()},
		{Name: "mcp-tells-twice", MCP: true, Why: "a change may be notified more than once",
			Middleware: onStream(func(event []byte) []byte {
				if bytes.Contains(event, []byte("list_changed")) && bytes.HasSuffix(event, []byte("\n\n")) {
					return bytes.Repeat(event, 2)
				}
				return event
			})},
		{Name: "mcp-writes-defaults-out", MCP: true, Why: "hints may be written with their default values, and a title may be one of the annotations",
			Middleware: onMCPTool(func(t tool) {
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
		{Name: "mcp-refuses-unknown-versions", MCP: true, Why: "the specification's own example responds to an unknown version with an error",
			Middleware: onRPC("initialize", func(m *rpc) {
				if v := m.Params["protocolVersion"]; v != "2025-11-25" && v != "2025-06-18" {
					m.Fail(-32602, "Unsupported protocol version")
				}
			})},
		{Name: "mcp-for-those-who-sign-in", MCP: true, Why: "an endpoint may require credentials before it reads a message",
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.anonymous() {
					x.Refuse(http.StatusUnauthorized, "authentication_required", "Authentication is required.")
					x.Header.Set("WWW-Authenticate", `Bearer resource_metadata="https://bridge.example/.well-known/oauth-protected-resource"`)
				}
			})},
		{Name: "mcp-other-words", MCP: true, Why: "the contract leaves messages open",
			Middleware: onRPC("", func(m *rpc) {
				if failure, ok := m.Response["error"].(map[string]any); ok {
					failure["message"] = "Nein."
					if m.Code() != "-32022" {
						delete(failure, "data")
					}
				}
			})},
	}
}

// agreeTo agrees to the versions in initialize that match.
func agreeTo(matches func(version string) bool) middleware {
	return onRPC("initialize", func(m *rpc) {
		if version, _ := m.Params["protocolVersion"].(string); matches(version) && m.Result() != nil {
			m.Result()["protocolVersion"] = version
		}
	})
}

// chain returns one middleware around another.
func chain(outer, inner middleware) middleware {
	return func(next http.Handler) http.Handler { return outer(inner(next)) }
}

// endingSessions serves only so many messages of a session.
func endingSessions(most int) middleware {
	var served sync.Map // id → *atomic.Int32
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		id := r.Header.Get("Mcp-Session-Id")
		if !toMCP(r) || r.Method != http.MethodPost || id == "" {
			return false
		}
		count, _ := served.LoadOrStore(id, new(atomic.Int32))
		if int(count.(*atomic.Int32).Add(1)) <= most {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	})
}

// withoutSessions opens an internal session for every request of the revisions with sessions, and gives the client none.
func withoutSessions() middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case !toMCP(r), r.Header.Get("Mcp-Method") != "":
			next.ServeHTTP(w, r)
			return
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body := readBody(r)
		opening := r.Clone(r.Context())
		opening.Header.Del("Mcp-Protocol-Version")
		opened := record(next, opening, encode(map[string]any{"jsonrpc": "2.0", "id": 0, "method": "initialize",
			"params": map[string]any{"protocolVersion": r.Header.Get("Mcp-Protocol-Version"), "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "n", "version": "1"}}}))
		if decode(body)["method"] != "initialize" && r.Header.Get("Mcp-Session-Id") == "" {
			r.Header.Set("Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"))
		}
		x := record(next, r, body)
		x.Header.Del("Mcp-Session-Id")
		x.writeTo(w)
	})
}

// demandArguments refuses a call without the member arguments.
func demandArguments() middleware {
	return onRPC("tools/call", func(m *rpc) {
		if _, there := m.Params["arguments"]; !there {
			m.Fail(-32602, "arguments is required")
		}
	})
}

// onlyRevision serves one of the revisions with sessions.
func onlyRevision(revision string) middleware {
	return chain(onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		version := r.Header.Get("Mcp-Protocol-Version")
		if !toMCP(r) || version == "" || version == revision {
			return false
		}
		http.Error(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Unsupported protocol version"},"id":null}`, http.StatusBadRequest)
		return true
	}), onRPC("initialize", func(m *rpc) {
		if m.Params["protocolVersion"] != revision {
			m.Status = http.StatusOK
			m.Response = m.Resend(func(message map[string]any) { message["params"].(map[string]any)["protocolVersion"] = revision })
		}
	}))
}

// asStream sends every response to a request of MCP as a stream of events, which write makes of the message.
func asStream(write func(message string) string) middleware {
	return onResponse(toMCP, func(x *exchange) {
		if x.Status != http.StatusOK || !strings.Contains(x.Request.Header.Get("Accept"), "text/event-stream") || x.Object() == nil {
			return
		}
		x.Body = []byte(write(string(encode(x.Object()))))
		x.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
		x.Header.Set("X-Accel-Buffering", "no")
	})
}

// asksFirst sends a ping before the response to tools/list, and waits until the client responds to it.
func asksFirst() middleware {
	answered := newMemory[chan struct{}]() // by the id of the ping
	var last atomic.Int64
	return throughWhere(toMessage, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		body := readBody(r)
		message := decode(body)
		id, _ := message["id"].(string)
		if waiting, ok := answered.get(id); ok && message["result"] != nil {
			waiting <- struct{}{}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if x := record(next, r, body); message["method"] != "tools/list" || x.Status != http.StatusOK || x.Object() == nil {
			x.writeTo(w)
		} else {
			waiting := make(chan struct{}, 1)
			id := fmt.Sprintf("ping %d", last.Add(1))
			answered.put(id, waiting)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%q,\"method\":\"ping\"}\n\n", id)
			http.NewResponseController(w).Flush() //nolint:errcheck // the caller has gone
			select {
			case <-waiting:
				io.WriteString(w, "data: "+string(encode(x.Object()))+"\n\n") //nolint:errcheck // likewise
			case <-r.Context().Done():
			}
		}
	})
}

// inPieces sends every second response as a stream, of which what follows the first bytes of characters comes later.
func inPieces() middleware {
	const asked = "\xef\xbb\xbf:\n\ndata:{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"roots/list\"}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":1}}\n\n: still here\n\nevent: message\ndata: "
	var responses atomic.Int64
	return throughWhere(toMessage, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		body := readBody(r)
		if message := decode(body); message["method"] == nil && message["id"] != nil { // the response to what was asked
			w.WriteHeader(http.StatusAccepted)
			return
		}
		x := record(next, r, body)
		if x.Status != http.StatusOK || x.Object() == nil || responses.Add(1)%2 == 0 {
			x.writeTo(w)
			return
		}
		maps.Copy(w.Header(), x.Header)
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Type", "text/event-stream")
		text := []byte(asked + string(encode(x.Object())) + "\n\n")
		for pieces := 0; len(text) > 0; pieces++ {
			end := len(text)
			if lead := slices.IndexFunc(text, func(b byte) bool { return b >= 0xc0 }); lead >= 0 && pieces < 20 {
				end = lead + 1
			}
			w.Write(text[:end])                   //nolint:errcheck // the caller has gone
			http.NewResponseController(w).Flush() //nolint:errcheck // likewise
			text = text[end:]
		}
	})
}

// resumedStreams sends the first event of a stream and closes the connection; what is left of the stream is for who resumes it.
func resumedStreams() middleware {
	left := newMemory[[]byte]()
	var last atomic.Int64
	firstEventAlone := onResponse(toMCP, func(x *exchange) {
		if x.Status != http.StatusOK || x.Request.Method != http.MethodPost || x.Object() == nil {
			return
		}
		id := fmt.Sprintf("event-%d", last.Add(1))
		left.put(id, encode(x.Object()))
		x.Body = []byte("retry: 1\nid: " + id + "\ndata:\n\n")
		x.Header.Set("Content-Type", "text/event-stream")
	})
	resumes := func(r *http.Request) bool {
		return toMCP(r) && r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != ""
	}
	return chain(throughWhere(resumes, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		id := r.Header.Get("Last-Event-ID")
		message, ok := left.get(id)
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %s-end\ndata: %s\n\n", id, message)
	}), firstEventAlone)
}

// streamAnyway opens a stream where there is no session, and ends it at once.
type streamAnyway struct{ http.ResponseWriter }

func (w streamAnyway) WriteHeader(status int) {
	if status == http.StatusNotFound {
		status = http.StatusOK
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap allows the bridge to flush.
func (w streamAnyway) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// toMCPBy matches the requests to the MCP endpoint by one HTTP method.
func toMCPBy(method string) func(*http.Request) bool {
	return func(r *http.Request) bool { return toMCP(r) && r.Method == method }
}

// sessionsByTheirBeginning takes an id for that of the session whose id begins alike.
func sessionsByTheirBeginning() middleware {
	whole := newMemory[string]() // by the beginning
	return chain(withHeader(func(h http.Header) {
		if id := h.Get("Mcp-Session-Id"); len(id) > 8 {
			if known, ok := whole.get(id[:8]); ok {
				h.Set("Mcp-Session-Id", known)
			}
		}
	}), onResponse(toMCP, func(x *exchange) {
		if id := x.Header.Get("Mcp-Session-Id"); len(id) > 8 {
			whole.put(id[:8], id)
		}
	}))
}

// validateByFirstSchema checks an argument by the enum that the tool had when it was called first.
func validateByFirstSchema(name string) middleware {
	var first atomic.Value
	return onRPC("tools/call", func(m *rpc) {
		kind := objectIn(m.Params, "arguments")["kind"]
		if m.Params["name"] != name || kind == nil {
			return
		}
		if t, ok := m.rest().tool(name); ok {
			first.CompareAndSwap(nil, encode(t["inputSchema"]))
		}
		if schema, _ := first.Load().([]byte); schema != nil && !bytes.Contains(schema, encode(kind)) {
			m.Succeed(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "kind is not valid"}}})
		}
	})
}

// takesForNone returns a mutant that calls a tool without arguments where those of tools/call are no object and are wanted.
func takesForNone(name, why string, wanted func(given any) bool) Mutant {
	return Mutant{Name: name, MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: why, Middleware: onRPC("tools/call", func(m *rpc) {
		given, there := m.Params["arguments"]
		if _, object := given.(map[string]any); there && !object && wanted(given) {
			m.Status = http.StatusOK
			m.Response = m.Resend(func(message map[string]any) { objectIn(message, "params")["arguments"] = map[string]any{} })
		}
	})}
}

// mcpPagesByCursor gives a page of tools/list to callers who send its cursor and have never received it.
func mcpPagesByCursor() middleware {
	given, pages := newSet(), newMemory[map[string]any]()
	return onRPC("tools/list", func(m *rpc) {
		result, by := m.Result(), authorized(m.Request)
		if next, ok := result["nextCursor"].(string); ok {
			given.add(by + next)
		}
		cursor, _ := m.Params["cursor"].(string)
		page, kept := pages.get(cursor)
		switch {
		case given.has(by+cursor) && result != nil:
			pages.put(cursor, maps.Clone(result))
		case cursor != "" && kept:
			m.Succeed(page)
		}
	})
}
