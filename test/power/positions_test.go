package power

import (
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
)

// position is where a value occurs that has to arrive as it was sent.
type position struct {
	name    string
	can     domain
	mutant  func(change func(any) any) mutants.Mutant
	clauses []string // of which one must fail where a value is changed here
	open    []opening
}

// domain is what can stand at a position: values of some kinds, and of these the ones that a rule lets stand there.
type domain struct {
	kinds []kind
	holds func(v any) bool // nil: each
	why   string           // of holds

	opaque bool                   // a name or a credential, compared and not read
	alike  func(a, b string) bool // texts that mean the same; nil: none
}

// only are all values of some kinds.
func only(kinds ...kind) domain { return domain{kinds: kinds} }

// opening is what the contract leaves open at a position, and the sentence that does.
type opening struct {
	sentence        string   // as it is in docs/contract.md or a clause
	kind            kind     // of the transformations; "": of each kind
	transformations []string // with these words in their names
}

var (
	values = only(text, number, boolean, null, list, object, name)
	words  = only(text)
)

// onMethods changes the site's methods on their way to the bridge.
func onMethods(change func(method, attributes document)) mutants.Mutant {
	return site(edit{to: at("/jsonrpc/methods"), after: func(_, got document) {
		all, _ := got["data"].([]any)
		for _, m := range all {
			if m, ok := m.(document); ok {
				change(m, objectIn(m, "attributes"))
			}
		}
	}})
}

// onParams changes the parameters of the site's methods.
func onParams(change func(param document)) mutants.Mutant {
	return onMethods(func(_, attributes document) {
		for _, p := range objectIn(attributes, "params") {
			if p, ok := p.(document); ok {
				change(p)
			}
		}
	})
}

// keyword changes the values of a keyword in the schemas of parameters.
func keyword(words ...string) func(func(any) any) mutants.Mutant {
	return inKeyword(everywhere, words...)
}

// keywordNames changes the names of the members of a keyword there.
func keywordNames(word string) func(func(any) any) mutants.Mutant {
	return inKeyword(func(members any, change func(any) any) any { return change(members) }, word)
}

func inKeyword(apply func(v any, change func(any) any) any, words ...string) func(func(any) any) mutants.Mutant {
	return func(change func(any) any) mutants.Mutant {
		return onParams(func(p document) {
			edited(p, "schema", func(schema any) any {
				return everywhere(schema, func(v any) any {
					if o, ok := v.(document); ok {
						for _, word := range words {
							edited(o, word, func(v any) any { return apply(v, change) })
						}
					}
					return v
				})
			})
		})
	}
}

// onToolCall changes the arguments of tools/call before the bridge reads them.
func onToolCall(change func(params document)) mutants.Mutant {
	return overMCP(front(edit{to: at("/mcp"), before: func(sent document) {
		if sent["method"] == "tools/call" {
			change(objectIn(sent, "params"))
		}
	}}))
}

// onRPC changes the results of a method of MCP.
func onRPC(method string, change func(result document)) mutants.Mutant {
	return overMCP(front(edit{to: at("/mcp"), after: func(sent, got document) {
		if sent["method"] == method {
			change(objectIn(got, "result"))
		}
	}}))
}

func onToolsOfMCP(change func(tool document)) mutants.Mutant {
	return onRPC("tools/list", func(result document) { eachTool(result, change) })
}

func eachTool(result document, change func(tool document)) {
	tools, _ := result["tools"].([]any)
	for _, tool := range tools {
		if tool, ok := tool.(document); ok {
			change(tool)
		}
	}
}

func toCall(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jsonrpc")
}

// described makes a position of one text of a tool as describe shows it.
func described(name string) func(func(any) any) mutants.Mutant {
	return func(change func(any) any) mutants.Mutant {
		return front(edit{to: at("/mcp/tools/describe"), after: func(_, got document) {
			edited(objectIn(got, "tool"), name, func(v any) any { return everywhere(v, change) })
		}})
	}
}

func ofMCP(name string) func(func(any) any) mutants.Mutant {
	return func(change func(any) any) mutants.Mutant {
		return onToolsOfMCP(func(tool document) { edited(tool, name, func(v any) any { return everywhere(v, change) }) })
	}
}

// The sentences of the contract that leave something open at several positions.
var (
	controls = opening{"markup, entities, placeholders, quotes, blanks, line ends and non-ASCII characters are unchanged", text,
		[]string{"vertical tab", "the first NUL", "NUL dropped", "DEL dropped", "ANSI"}}
	likePHP     = opening{"PHP writes an empty object as `[]`", "", []string{"empty object", "numeric names to a list"}}
	notDeep     = opening{"No inputSchema is deeper than 10 levels", object, []string{"at most 8", "at most 10 levels", "at most 16", "at most 20"}}
	notLong     = opening{"Read at most a bounded number of bytes of each response", text, []string{"at 4000", "at 4096", "at 5000", "at 8000", "at 8191", "at 8192"}}
	hidden      = opening{"No message contains a trace, a file, a class, an internal address or a credential", text, []string{"hidden"}}
	ofTheBridge = opening{"A method that fails: its message is kept", text, []string{"end with a ", "trim", "UUIDs", "times in UTC", "milliseconds", "days to times", "in a time to T",
		"in numbers dropped", "decimal comma", "+ before", "underscores", "percent sign", "trailing zeros", "formulas", "base64", "addresses normalised", "paths cleaned", "JSON in a text", "first letter"}}
	regular = opening{"Every inputSchema is a valid JSON Schema of the dialect that its $schema declares", text, []string{"trim blanks of Unicode", "first letter in upper", "+ before", "(c) to sign", "smiley", "class names", "comments of C", "CDATA", "{{", "{name}", "${x}", "$$", "token", "#{x}", "$(x)", "Markdown"}}
	absurd  = opening{"absurd size", text, []string{"at 2000", "at 2048", "at 4000", "at 4096", "at 5000", "at 8000", "at 8191", "at 8192"}}
)

// positions are all places whose values are compared with what was sent there.
func positions() []position { return append(contents(), requested()...) }

// contents are the positions of what methods and their documents hold.
func contents() []position {
	return []position{
		{"an argument, at the top", only(text, number, boolean, null, list, object), func(change func(any) any) mutants.Mutant {
			return site(edit{to: toCall, before: func(sent document) {
				eachMember(objectIn(sent, "params"), change)
			}})
		}, []string{"invoke/arguments-forwarded"}, []opening{{"null for an optional parameter", null, nil}}},
		{"the name of an argument", only(name), func(change func(any) any) mutants.Mutant {
			return site(edit{to: toCall, before: func(sent document) { edited(sent, "params", change) }})
		}, []string{"invoke/arguments-forwarded"}, nil},
		{"an argument, within another", values, func(change func(any) any) mutants.Mutant {
			return site(edit{to: toCall, before: func(sent document) {
				eachMember(objectIn(sent, "params"), func(v any) any { return within(v, change) })
			}})
		}, []string{"invoke/arguments-forwarded"}, nil},
		{"an argument of tools/call", values, func(change func(any) any) mutants.Mutant {
			return onToolCall(func(params document) {
				eachMember(objectIn(params, "arguments"), func(v any) any { return everywhere(v, change) })
			})
		}, []string{"mcp/parity"}, nil},
		{"a result, as a whole", only(text, number, boolean, null, list, object), func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/invoke"), after: func(_, got document) { edited(got, "result", change) }})
		}, []string{"invoke/result-exact", "invoke/null-result"}, nil},
		{"a result, within another", values, func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/invoke"), after: func(_, got document) {
				edited(got, "result", func(v any) any { return within(v, change) })
			}})
		}, []string{"invoke/result-exact"}, nil},
		{"a result of tools/call", values, func(change func(any) any) mutants.Mutant {
			return onRPC("tools/call", func(result document) {
				structured, there := result["structuredContent"]
				if !there {
					return
				}
				structured = within(structured, change)
				result["structuredContent"] = structured
				result["content"] = []any{document{"type": "text", "text": written(structured)}}
			})
		}, []string{"mcp/parity", "mcp/structured-content"}, nil},
		{"the description", words, func(change func(any) any) mutants.Mutant {
			return onMethods(func(_, attributes document) { edited(attributes, "usage", textual(change)) })
		}, []string{"mapping/description-is-usage"}, []opening{controls}},
		{"the description in describe", words, described("description"), []string{"describe/equals-list"}, []opening{controls}},
		{"the description of MCP", words, ofMCP("description"), []string{"mcp/parity"}, []opening{controls}},
		{"the title", words, func(change func(any) any) mutants.Mutant {
			return onMethods(func(_, attributes document) { edited(objectIn(attributes, "mcpTool"), "title", textual(change)) })
		}, []string{"mapping/title-from-attribute"}, []opening{controls}},
		{"the title in describe", words, described("title"), []string{"describe/equals-list"}, []opening{controls}},
		{"the title of MCP", words, ofMCP("title"), []string{"mcp/parity"}, []opening{controls}},
		{"an annotation", values, func(change func(any) any) mutants.Mutant {
			return onMethods(func(_, attributes document) {
				edited(objectIn(attributes, "mcpTool"), "annotations", func(v any) any { return within(v, change) })
			})
		}, []string{"mapping/annotations-from-attribute"}, nil},
		{"an annotation in describe", values, func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/describe"), after: func(_, got document) {
				edited(objectIn(got, "tool"), "annotations", func(v any) any { return within(v, change) })
			}})
		}, []string{"describe/equals-list"}, nil},
		{"the description of a parameter", words, func(change func(any) any) mutants.Mutant {
			return onParams(func(p document) { edited(objectIn(p, "attributes"), "description", textual(change)) })
		}, []string{"mapping/param-description"}, []opening{controls}},
		{"a description in a schema", words, func(change func(any) any) mutants.Mutant {
			return onParams(func(p document) {
				edited(p, "schema", func(schema any) any {
					return within(schema, func(v any) any {
						if o, ok := v.(document); ok {
							edited(o, "description", textual(change))
						}
						return v
					})
				})
			})
		}, []string{"mapping/properties-complete"}, []opening{controls}},
		{"an enum", only(text, number, boolean, null, list), keyword("enum", "const"), []string{"mapping/properties-complete"}, []opening{likePHP}},
		{"a default", values, keyword("default"), []string{"mapping/properties-complete"}, []opening{likePHP, notDeep}},
		{"a pattern", words, keyword("pattern"), []string{"mapping/properties-complete"}, []opening{controls, regular, absurd}},
		{"the name of a parameter", only(name), func(change func(any) any) mutants.Mutant {
			return onMethods(func(_, attributes document) {
				if params, ok := attributes["params"].(document); ok {
					attributes["params"] = change(params)
				}
			})
		}, []string{"mapping/properties-complete"}, nil},
		{"the name of a property", only(name), keywordNames("properties"), []string{"mapping/properties-complete"}, nil},
		{"a text of the outputSchema", words, func(change func(any) any) mutants.Mutant {
			return onMethods(func(_, attributes document) {
				edited(attributes, "output", inSchema(change))
			})
		}, []string{"mapping/output-schema"}, nil},
		{"a text of MCP's inputSchema", words, func(change func(any) any) mutants.Mutant {
			return onToolsOfMCP(func(tool document) {
				edited(tool, "inputSchema", inSchema(change))
			})
		}, []string{"mcp/parity"}, nil},
		{"the message of an error", words, func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/invoke"), after: func(_, got document) { edited(objectIn(got, "error"), "message", textual(change)) }})
		}, []string{"invoke/execution-error-500"}, []opening{hidden, notLong, ofTheBridge, controls}},
		{"the data of an error", values, func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/invoke"), after: func(_, got document) {
				edited(objectIn(objectIn(got, "error"), "data"), "jsonrpc_data", func(v any) any { return everywhere(v, change) })
			}})
		}, []string{"invoke/error-data-kept"}, []opening{hidden}},
		{"the text of an error of tools/call", words, func(change func(any) any) mutants.Mutant {
			return onRPC("tools/call", func(result document) {
				content, _ := result["content"].([]any)
				for _, block := range content {
					if block, ok := block.(document); ok && result["isError"] == true {
						edited(block, "text", textual(change))
					}
				}
			})
		}, []string{"mcp/execution-error"}, []opening{hidden, notLong, ofTheBridge, controls}},
	}
}

// textual is a change whose result is a text again: what stands there cannot be anything else.
func textual(change func(any) any) func(any) any {
	return func(v any) any {
		if s, ok := change(v).(string); ok {
			return s
		}
		return v
	}
}

// eachMember changes the values of an object's members.
func eachMember(o document, change func(any) any) {
	for name, v := range o {
		o[name] = change(v)
	}
}
