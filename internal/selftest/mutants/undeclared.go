package mutants

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// traceOfMessage is the member of _meta that names a trace.
var traceOfMessage = regexp.MustCompile(`"traceparent": ?"[^"]*"`)

// undeclaredMutants list closed schemas, and do not refuse what these do not declare, or change calls over MCP alone.
func undeclaredMutants() []Mutant {
	return []Mutant{
		{Name: "mcp-alone-numbers-rounded", MCP: true, Claims: "-tools", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "arguments pass through JSON.parse",
			Middleware: onMCPCall(func(params map[string]any) { params["arguments"] = roundToFloat64(params["arguments"]) })},
		{Name: "mcp-alone-runs-twice", MCP: true, Claims: "-tools", Breaks: Clauses("invoke/runs-once", "invoke/not-cached"), Origin: Imagined,
			Middleware: onRPC("tools/call", func(m *rpc) { m.Response = m.Resend(func(map[string]any) {}) })},
		{Name: "closed-schemas-unenforced", Breaks: Clauses("invoke/undeclared-argument"), Origin: Peer, Why: "the list is generated, the arguments go on to the site, which ignores what it does not know",
			Middleware: onTool(closeInput)},
		{Name: "undeclared-arguments-dropped", Breaks: Clauses("invoke/undeclared-argument"), Origin: Peer, Why: "zod drops the keys that an object does not declare",
			Middleware: chain(onTool(closeInput), onArgumentsOf(declaredTop))},
		{Name: "undeclared-members-dropped", Breaks: Clauses("invoke/undeclared-argument", "invoke/invalid-arguments-400", "upstream/eager-validation"), MayFail: Clauses("invoke/invalid-arguments-named"), Origin: Imagined, Why: "arguments are decoded into a struct",
			Middleware: dropUndeclared(func(_ any, inList bool) bool { return !inList })},
		{Name: "undeclared-nulls-dropped", Breaks: Clauses("invoke/invalid-arguments-400", "invoke/undeclared-argument", "upstream/eager-validation"), Origin: Peer, Why: "null stands for a member that is not there",
			Middleware: dropUndeclared(func(member any, _ bool) bool { return member == nil })},
		{Name: "undeclared-in-lists-dropped", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "the objects in a list are decoded into structs",
			Middleware: dropUndeclared(func(_ any, inList bool) bool { return inList })},
		{Name: "members-declared-by-a-pattern-refused", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "a closed object is compared with properties alone",
			Middleware: onArgumentsOf(func(_ tool, arguments map[string]any) map[string]any {
				declared, _ := arguments["declared"].(map[string]any)
				for name := range declared {
					if strings.HasPrefix(name, "x-") {
						return nil
					}
				}
				return arguments
			})},
	}
}

// mcpResultMutants break results, traces and the order of the list over MCP.
func mcpResultMutants() []Mutant {
	var asked atomic.Int64
	return []Mutant{
		{Name: "mcp-list-needs-params", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer, Why: "params, which are optional, are decoded without a look",
			Middleware: onRPC("tools/list", func(m *rpc) {
				if m.Params == nil {
					m.Fail(-32602, "params is required")
				}
			})},
		{Name: "mcp-compares-the-content-type", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer, Why: "a charset is refused",
			Middleware: refuseWhere(http.StatusUnsupportedMediaType, "unsupported_media_type", func(r *http.Request) bool {
				return toMCP(r) && strings.Contains(r.Header.Get("Content-Type"), ";")
			})},
		{Name: "mcp-meta-refused", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "clients that show progress send a progressToken with each call, and the params are read strictly",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !toMessage(r) {
					return false
				}
				x := &exchange{Request: r, Method: r.Method, Header: http.Header{}, Sent: peekBody(r)}
				if meta, _ := objectIn(decode(x.Sent), "params")["_meta"].(map[string]any); meta["progressToken"] == nil {
					return false
				}
				x.Set(http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": decode(x.Sent)["id"], "error": map[string]any{"code": -32602, "message": "unknown member _meta"}})
				x.writeTo(w)
				return true
			})},
		{Name: "mcp-closed-schemas-unenforced", MCP: true, Claims: "-tools", Breaks: Clauses("mcp/undeclared-argument"), Origin: Peer,
			Middleware: onMCPTool(closeInput)},
		{Name: "mcp-wrapped-output-unchecked", MCP: true, Breaks: Clauses("mcp/structured-mismatch"), Origin: Peer,
			Why: "what is wrapped is an object, as the schema requires",
			Middleware: onToolError(mismatch, func(m *rpc) {
				if strings.HasSuffix(fmt.Sprint(m.Params["name"]), "list_wrong") {
					wrong := map[string]any{"result": []any{"three"}}
					m.Succeed(map[string]any{"resultType": "complete", "content": textContent(`["three"]`), "structuredContent": wrong})
				}
			})},
		{Name: "mcp-output-mismatch-as-text", MCP: true, Breaks: Clauses("mcp/structured-mismatch"), Origin: Peer, Why: "what does not fit is left out, and the client refuses the response for want of it",
			Middleware: onToolError(mismatch, func(m *rpc) {
				m.Succeed(map[string]any{"resultType": "complete", "content": textContent(wrongResult(m))})
			})},
		{Name: "mcp-failures-validated", MCP: true, Breaks: Clauses("mcp/structured-mismatch"), MayFail: Clauses("mcp/execution-error", "mcp/invalid-arguments"), Origin: Peer, Why: "an SDK validates every result of a tool with an outputSchema",
			Middleware: onToolError("", func(m *rpc) {
				target := m.Request.URL.Path + "/tools/describe?" + url.Values{"name": {fmt.Sprint(m.Params["name"])}}.Encode()
				t, _ := m.Send(http.MethodGet, target, nil).Object()["tool"].(tool)
				if t["outputSchema"] != nil && !strings.Contains(string(m.Body), mismatch) {
					m.Fail(-32602, "MCP error -32602: Output validation error: no structured content")
				}
			})},
		{Name: "mcp-failures-structured", MCP: true, Breaks: Clauses("mcp/structured-mismatch"), Origin: Peer,
			Why:        "the error is structured content as well, of which no schema knows",
			Middleware: onToolError("The counter is out of order", func(m *rpc) { m.Result()["structuredContent"] = map[string]any{"error": "failed"} })},
		{Name: "mcp-trace-lost-unless-sampled", MCP: true, Breaks: Clauses("mcp/trace-context"), Origin: Peer, Why: "what nobody records is not worth a header",
			Transport: onSiteHeader(func(h http.Header) {
				if strings.HasSuffix(h.Get("Traceparent"), "-00") {
					h.Del("Traceparent")
				}
			})},
		{Name: "mcp-trace-of-the-request-first", MCP: true, Breaks: Clauses("mcp/trace-context"), Origin: Peer, Why: "the trace of the message counts where the request has none",
			Middleware: beforeBridge(func(r *http.Request) {
				if parent := r.Header.Get("Traceparent"); parent != "" && toMCP(r) {
					setBody(r, traceOfMessage.ReplaceAll(readBody(r), []byte(`"traceparent":"`+parent+`"`)))
				}
			})},
		{Name: "mcp-trace-restarted", MCP: true, Breaks: Clauses("mcp/trace-context"), Origin: Imagined, Why: "the HTTP client begins a trace of its own",
			Transport: onTraceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")},
		{Name: "mcp-order-by-chance", MCP: true, Claims: "-tools", Breaks: Clauses("mcp/order-stable"), MayFail: Clauses("list/empty-site", "list/cursor-other-caller"), Origin: Peer, Why: "the tools come from a map",
			Middleware: onMCPTools(func(tools []any) []any {
				i := int(asked.Add(1)) % len(tools)
				return slices.Concat(tools[i:], tools[:i])
			})},
	}
}

// profileMutants list what clients and providers refuse.
func profileMutants() []Mutant {
	return []Mutant{
		{Name: "arrays-without-items", Breaks: Clauses("profile/array-items"), Origin: Peer,
			Middleware: onInput(func(s map[string]any) {
				s["definitions"] = map[string]any{"list": map[string]any{"type": "array"}}
			})},
		{Name: "array-in-a-list-of-types-without-items", Breaks: Clauses("profile/array-items"), Origin: Peer, Why: "a parameter that is one value or several",
			Middleware: onInput(func(s map[string]any) {
				s["definitions"] = map[string]any{"ids": map[string]any{"type": []any{"string", "array"}}}
			})},
		{Name: "root-any-of", Breaks: Clauses("profile/no-root-combinator"), Origin: Peer, Why: "the rule that one of two parameters is needed",
			Middleware: onInput(func(s map[string]any) { s["anyOf"] = []any{map[string]any{}} })},
		{Name: "enum-of-another-type", Breaks: Clauses("profile/enum-fits-type"), Origin: Peer, Why: "the keys of a PHP array are strings where they look like words, and integers where they look like numbers",
			Middleware: onInput(func(s map[string]any) {
				s["definitions"] = map[string]any{"state": map[string]any{"type": "string", "enum": []any{"on", json.Number("1")}}}
			})},
		{Name: "names-too-long-behind-a-prefix", Breaks: Clauses("profile/name-with-prefix"), MayFail: Clauses("mapping/name-underscored", "access/filtered-by-method"), Origin: Peer, Claims: "naming-underscore", Options: useUnderscores,
			Middleware: renameTools(func(name string) string {
				if strings.HasPrefix(name, "taxonomy_") {
					return name + strings.Repeat("_of_the_site", 5)
				}
				return name
			})},
		{Name: "schemas-eleven-levels-deep", Breaks: Clauses("profile/depth"), Origin: Peer, Why: "a filter may have filters, written out instead of referred to",
			Middleware: onInput(func(s map[string]any) { s["definitions"] = map[string]any{"filter": objectsWithin(9)} })},
		{Name: "tools-without-parameters-are-open", Breaks: Clauses("profile/strict-mode"), Origin: Peer, Why: "the generator of schemas writes {} for a type without fields",
			Middleware: onInput(func(s map[string]any) {
				if properties, _ := s["properties"].(map[string]any); len(properties) == 0 {
					s["additionalProperties"] = map[string]any{}
				}
			})},
		{Name: "names-apart-by-case-alone", Breaks: Clauses("profile/names-apart"), Origin: Peer, Claims: "naming-underscore", Options: useUnderscores,
			Why: "what keeps the names of methods apart whose underscored ids are the same is a letter's case",
			Middleware: renameTools(func(name string) string {
				switch name {
				case "id_a_b_c_51d9e1ef":
					return "id_a_b_c_x"
				case "id_a_b_c_e806462a":
					return "id_a_b_c_X"
				}
				return name
			})},
	}
}

func undeclaredVariants() []Mutant {
	return []Mutant{
		{Name: "schemas-ten-levels-deep", Why: "ten levels are what the strictest provider takes",
			Middleware: onInput(func(s map[string]any) { s["definitions"] = map[string]any{"filter": objectsWithin(8)} })},
		{Name: "array-in-a-list-of-types-with-items", Why: "a list of types may name an array, as long as it has items",
			Middleware: onInput(func(s map[string]any) {
				s["definitions"] = map[string]any{"ids": map[string]any{"type": []any{"string", "array"}, "items": map[string]any{"type": "string"}}}
			})},
		{Name: "closed-schemas-enforced", Why: "a bridge may refuse every argument that is not declared",
			Middleware: chain(onTool(closeInput), onArgumentsOf(func(t tool, arguments map[string]any) map[string]any {
				if len(declaredTop(t, arguments)) < len(arguments) {
					return nil
				}
				return arguments
			}))},
	}
}

func mcpResultVariants() []Mutant {
	return []Mutant{
		{Name: "mcp-lines-end-in-cr", MCP: true, Why: "a line of a stream of events may end in CR alone, and a server may send requests of its own first",
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.Status == http.StatusOK && strings.Contains(x.Request.Header.Get("Accept"), "text/event-stream") && x.Object() != nil {
					x.Body = []byte("data:{\"jsonrpc\":\"2.0\",\"id\":\"server-1\",\"method\":\"ping\"}\r\revent: message\rdata:" + string(x.Body) + "\r\r")
					x.Header.Set("Content-Type", "text/event-stream")
					x.Header.Set("X-Accel-Buffering", "no")
				}
			})},
		{Name: "mcp-trace-continued", MCP: true, Why: "a bridge may be a span of its own",
			Transport: onTraceparent("00-${1}-aaaaaaaaaaaaaaaa-01")},
		{Name: "mcp-mismatch-protocol-error", MCP: true, Why: "a result that breaks its schema may be an error of the protocol",
			Middleware: onToolError(mismatch, func(m *rpc) { m.Fail(-32603, "The result does not conform to the output schema") })},
	}
}

// mismatch is what the reference says of a result that breaks its schema; the result itself is the text after that.
const mismatch = "does not conform to its output schema"

func wrongResult(m *rpc) string {
	content, _ := m.Result()["content"].([]any)
	block, _ := content[len(content)-1].(map[string]any)
	text, _ := block["text"].(string)
	return text
}

func textContent(text string) []any { return []any{map[string]any{"type": "text", "text": text}} }

// closeInput lists a tool with a closed inputSchema.
var closeInput = inMember("inputSchema", func(input map[string]any) { input["additionalProperties"] = false })

// onArgumentsOf changes the arguments of an invoke, by the tool as the bridge describes it, before the bridge reads them;
// it refuses them where the change returns nil.
func onArgumentsOf(change func(t tool, arguments map[string]any) map[string]any) middleware {
	return onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !toCall(r) {
			return false
		}
		call := decode(peekBody(r))
		name, _ := call["name"].(string)
		if arguments, object := call["arguments"].(map[string]any); object && name != "" {
			x := &exchange{Request: r, Header: http.Header{"X-Content-Type-Options": {"nosniff"}}, Method: r.Method, next: next}
			if t, ok := x.tool(name); ok {
				changed := change(t, arguments)
				if changed == nil {
					x.Refuse(http.StatusBadRequest, "invalid_params", "There is a parameter that the tool does not have.")
					x.writeTo(w)
					return true
				}
				if !exact.Equal(changed, arguments) {
					call["arguments"] = changed
					setBody(r, encode(call))
				}
			}
		}
		return false
	})
}

// declaredTop keeps the arguments that the tool declares.
func declaredTop(t tool, arguments map[string]any) map[string]any {
	properties := objectIn(objectIn(t, "inputSchema"), "properties")
	kept := map[string]any{}
	for name, value := range arguments {
		if has(properties, name) {
			kept[name] = value
		}
	}
	return kept
}

// dropUndeclared drops of the members of each closed object in the arguments those that its schema does not declare, where drops says
// so of a member and of whether its object stands in a list.
func dropUndeclared(drops func(member any, inList bool) bool) middleware {
	var without func(schema, v any, inList bool) any
	without = func(schema, v any, inList bool) any {
		s, _ := schema.(map[string]any)
		properties, _ := s["properties"].(map[string]any)
		switch v := v.(type) {
		case map[string]any:
			kept := map[string]any{}
			for name, member := range v {
				if has(properties, name) || s["additionalProperties"] != false || s["patternProperties"] != nil || !drops(member, inList) {
					kept[name] = without(properties[name], member, inList)
				}
			}
			return kept
		case []any:
			kept := []any{}
			for _, item := range v {
				kept = append(kept, without(s["items"], item, true))
			}
			return kept
		}
		return v
	}
	return onArgumentsOf(func(t tool, arguments map[string]any) map[string]any {
		return without(t["inputSchema"], arguments, false).(map[string]any)
	})
}

var traceOf = regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// onTraceparent replaces the traceparent of requests to the site; $1 is its trace.
func onTraceparent(other string) transport {
	return onSiteHeader(func(h http.Header) {
		if parent := h.Get("Traceparent"); parent != "" {
			h.Set("Traceparent", traceOf.ReplaceAllString(parent, other))
		}
	})
}
