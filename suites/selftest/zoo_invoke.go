package selftest

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
)

// What happens to arguments and results on the way through.
var invokeMutants = []Mutant{
	{Name: "invoke-bare-result", Breaks: Clauses("invoke/answers-result"), Origin: Imagined, Front: onSuccess(func(result any) any { return result })},
	{Name: "invoke-jsonrpc-envelope", Breaks: Clauses("invoke/answers-result"), Origin: Peer,
		Front: onSuccess(func(result any) any {
			return map[string]any{"data": map[string]any{"jsonrpc": "2.0", "id": 1, "result": result}}
		})},
	{Name: "invoke-mcp-content", Breaks: Clauses("invoke/answers-result"), Origin: Peer, Why: "answers as tools/call does",
		Front: onSuccess(func(result any) any {
			return map[string]any{"content": []any{map[string]any{"type": "text", "text": string(encode(result))}}}
		})},
	{Name: "invoke-created-201", Breaks: Clauses("invoke/answers-result"), Origin: Imagined,
		Front: onInvoke(func(x *exchange) {
			if x.Status == http.StatusOK {
				x.Status = http.StatusCreated
			}
		})},

	{Name: "invoke-ends-with-a-comment", Breaks: Clauses("invoke/answers-result"), Origin: Peer, Why: "a debugging aid that writes behind every answer", Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusOK {
			x.Body = append(x.Body, "<!-- 12 ms -->"...)
		}
	})},

	{Name: "arguments-with-defaults", Breaks: Clauses("invoke/arguments-forwarded", "invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "validators that fill them in", Front: defaultsFilled},
	{Name: "arguments-through-float64", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer,
		Upstream: onParams(rounded)},
	{Name: "arguments-empty-object-as-list", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Module, Upstream: onNestedArguments(func(v any) any {
		if object, ok := v.(map[string]any); ok && len(object) == 0 {
			return []any{}
		}
		return v
	})},
	{Name: "arguments-empty-list-as-object", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Upstream: onNestedArguments(func(v any) any {
		if list, ok := v.([]any); ok && len(list) == 0 {
			return map[string]any{}
		}
		return v
	})},
	{Name: "arguments-nulls-dropped", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Upstream: onNestedArguments(func(v any) any {
		if object, ok := v.(map[string]any); ok {
			for name, member := range object {
				if member == nil {
					delete(object, name)
				}
			}
		}
		return v
	})},
	{Name: "arguments-booleans-as-numbers", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Upstream: onNestedArguments(func(v any) any {
		switch v {
		case true:
			return 1
		case false:
			return 0
		}
		return v
	})},
	{Name: "arguments-ascii-only", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined,
		Upstream: onArguments(onStrings(func(s string) string { return strings.Map(questioned, s) }))},
	{Name: "arguments-beyond-bmp-lost", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Why: "a three-byte utf8 column",
		Upstream: onArguments(onStrings(func(s string) string {
			return strings.Map(func(r rune) rune {
				if r > 0xffff {
					return '\ufffd'
				}
				return r
			}, s)
		}))},
	{Name: "arguments-trimmed", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Upstream: onArguments(onStrings(strings.TrimSpace))},
	{Name: "argument-names-in-lower-case", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "names become those of headers",
		Upstream: onParams(func(params any) any {
			arguments, _ := params.(map[string]any)
			for name, v := range arguments {
				delete(arguments, name)
				arguments[strings.ToLower(name)] = v
			}
			return params
		})},
	{Name: "arguments-cut-at-64K", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined,
		Upstream: onArguments(onStrings(func(s string) string { return s[:min(len(s), 65535)] }))},
	{Name: "arguments-numeric-strings-as-numbers", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Upstream: onNestedArguments(numeric)},
	{Name: "arguments-nested-as-text", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "what is below the second level is sent as a string of JSON",
		Upstream: onParams(func(params any) any { return shallow(params, 3) })},

	{Name: "result-through-float64", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Front: onResult(rounded)},
	{Name: "result-escaped", Breaks: Clauses("invoke/result-exact"), Origin: Module, Front: onResult(func(v any) any { return mapped(v, onStrings(html.EscapeString)) })},
	{Name: "result-markup-unescaped", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Front: onResult(func(v any) any { return mapped(v, onStrings(html.UnescapeString)) })},
	{Name: "result-as-text", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "objects come back as a string of JSON",
		Front: onResult(func(v any) any {
			if object, ok := v.(map[string]any); ok && len(object) > 2 {
				return string(encode(v))
			}
			return v
		})},
	{Name: "result-scalars-wrapped", Breaks: Clauses("invoke/result-exact"), Origin: Peer,
		Front: onResult(func(v any) any {
			switch v.(type) {
			case map[string]any, []any, nil:
				return v
			}
			return map[string]any{"value": v}
		})},
	{Name: "result-falsy-as-null", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Why: "`result ?: NULL`",
		Front: onResult(func(v any) any {
			if v == false || v == "" || fmt.Sprint(v) == "0" {
				return nil
			}
			return v
		})},
	{Name: "result-empty-list-as-object", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Front: onResult(func(v any) any {
		if list, ok := v.([]any); ok && len(list) == 0 {
			return map[string]any{}
		}
		return v
	})},
	{Name: "result-empty-object-as-list", Breaks: Clauses("invoke/result-exact"), Origin: Module, Why: "decoded into a PHP array on the way",
		Front: onResult(func(v any) any {
			return mapped(v, func(v any) any {
				if object, ok := v.(map[string]any); ok && len(object) == 0 {
					return []any{}
				}
				return v
			})
		})},
	{Name: "result-members-escaped", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Why: "each field goes through a template",
		Front: onResult(func(v any) any {
			object, ok := v.(map[string]any)
			for name, member := range object {
				if text, isText := member.(string); ok && isText {
					object[name] = html.EscapeString(text)
				}
			}
			return v
		})},
	{Name: "empty-text-taken-for-missing", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "if not arguments.get(name), of what is required",
		Front: onBody(func(body []byte) []byte {
			call := decode(body)
			if arguments, ok := call["arguments"].(map[string]any); ok && call["name"] == "shape.required" && arguments["message"] == "" {
				delete(arguments, "message")
				return encode(call)
			}
			return body
		})},
	{Name: "result-data-unwrapped", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "`result.data ?? result`",
		Front: onResult(func(v any) any {
			if object, _ := v.(map[string]any); object["data"] != nil {
				return object["data"]
			}
			return v
		})},
	{Name: "result-nested-nulls-dropped", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Why: "omitempty",
		Front: onResult(func(v any) any {
			return mapped(v, func(v any) any {
				if object, ok := v.(map[string]any); ok {
					for name, member := range object {
						if member == nil {
							delete(object, name)
						}
					}
				}
				return v
			})
		})},
	{Name: "result-list-of-one-unpacked", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Front: onResult(func(v any) any {
		if list, ok := v.([]any); ok && len(list) == 1 {
			return list[0]
		}
		return v
	})},

	{Name: "null-result-empty-answer", Breaks: Clauses("invoke/null-result"), Origin: Imagined, Front: onNull(func(x *exchange) { x.Body = []byte(`{}`) })},
	{Name: "null-result-204", Breaks: Clauses("invoke/null-result"), Origin: Imagined, Front: onNull(func(x *exchange) { x.Status, x.Body = http.StatusNoContent, nil })},
	{Name: "null-result-500", Breaks: Clauses("invoke/null-result"), Origin: Module, Front: onNull(func(x *exchange) {
		x.Refuse(http.StatusInternalServerError, "execution_error", "Internal Error")
	})},

	{Name: "output-unchecked", Breaks: Clauses("invoke/output-matches-schema"), Origin: Module, Claims: "output-validation", Options: func(o *bridge.Options) { o.Output = invoke.OutputPass }},
	{Name: "output-mismatch-502", Breaks: Clauses("invoke/output-matches-schema"), Origin: Imagined, Claims: "output-validation", Front: onBadOutput(func(x *exchange) {
		x.Refuse(http.StatusBadGateway, "upstream_error", "The site's result breaks its schema.")
	})},
}

// onSuccess replaces the whole answer of an invoke that succeeds.
func onSuccess(change func(result any) any) front {
	return onInvoke(func(x *exchange) {
		if result, ok := x.Object()["result"]; ok && x.Status == http.StatusOK {
			x.Body = encode(change(result))
		}
	})
}

// onNestedArguments changes the values below the arguments' own level.
func onNestedArguments(change func(v any) any) upstream {
	return onParams(func(params any) any {
		byName, ok := params.(map[string]any)
		if !ok {
			return mapped(params, change)
		}
		for name, v := range byName {
			byName[name] = mapped(v, change)
		}
		return byName
	})
}

// onNull changes the answers whose result is null.
func onNull(change func(x *exchange)) front {
	return onInvoke(func(x *exchange) {
		if result, ok := x.Object()["result"]; ok && result == nil && x.Status == http.StatusOK {
			change(x)
		}
	})
}

// onBadOutput changes the refusals of results that break their schema.
func onBadOutput(change func(x *exchange)) front {
	return onInvoke(func(x *exchange) {
		if x.Status == http.StatusInternalServerError && strings.Contains(x.errorMessage(), "output schema") {
			change(x)
		}
	})
}

func questioned(r rune) rune {
	if r > 0x7f {
		return '?'
	}
	return r
}

// numeric makes a number of every string that reads as one.
func numeric(v any) any {
	if s, ok := v.(string); ok && s != "" {
		if n, err := strconv.ParseFloat(s, 64); err == nil {
			return n
		}
	}
	return v
}

// shallow writes what lies deeper than levels as text.
func shallow(v any, levels int) any {
	switch v := v.(type) {
	case map[string]any:
		if levels == 0 {
			return string(encode(v))
		}
		for name, member := range v {
			v[name] = shallow(member, levels-1)
		}
	case []any:
		if levels == 0 {
			return string(encode(v))
		}
		for i, item := range v {
			v[i] = shallow(item, levels-1)
		}
	}
	return v
}

// defaultsFilled puts in the defaults of the parameters that a call leaves out.
func defaultsFilled(next http.Handler) http.Handler {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !toInvoke(r) || !small(r) {
			return false
		}
		body := drain(r)
		fill(r, body)
		call := decode(body)
		name, _ := call["name"].(string)
		arguments, ok := call["arguments"].(map[string]any)
		if name == "" || !ok || r.Method != http.MethodPost {
			return false
		}
		x := &exchange{Request: r, next: next}
		described, _ := x.Ask(http.MethodGet, sibling(r, "describe")+"?name="+url.QueryEscape(name), nil).Object()["tool"].(tool)
		input, _ := described["inputSchema"].(map[string]any)
		properties, _ := input["properties"].(map[string]any)
		for parameter, schema := range properties {
			schema, _ := schema.(map[string]any)
			if v, there := schema["default"]; there && arguments[parameter] == nil {
				arguments[parameter] = v
				fill(r, encode(call))
			}
		}
		return false
	})(next)
}
