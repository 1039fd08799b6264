package mutants

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// invokeMutants change arguments or results, or run what they must not run.
func invokeMutants() []Mutant {
	return []Mutant{
		{Name: "invoke-jsonrpc-envelope", Breaks: Clauses("invoke/answers-result"), Origin: Peer,
			Middleware: onSuccess(func(result any) any {
				return map[string]any{"data": map[string]any{"jsonrpc": "2.0", "id": 1, "result": result}}
			})},
		{Name: "invoke-ends-with-a-comment", Breaks: Clauses("invoke/answers-result"), Origin: Peer, Why: "a debugging tool appends a comment to every response",
			Middleware: onInvoke(atStatus(http.StatusOK, func(x *exchange) { x.Body = append(x.Body, "<!-- 12 ms -->"...) }))},
		{Name: "arguments-with-defaults", Breaks: Clauses("invoke/arguments-forwarded", "invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "some validators add them", Middleware: fillDefaults},
		{Name: "arguments-through-float64", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer,
			Transport: onParams(roundToFloat64)},
		{Name: "lists-of-integers-as-doubles", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer,
			Why: "a list of nothing but numbers becomes one typed array",
			Transport: onParams(func(params any) any {
				return mapValues(params, func(v any) any {
					list, _ := v.([]any)
					if len(list) > 1 && !slices.ContainsFunc(list, func(v any) bool { n, is := v.(json.Number); return !is || strings.ContainsAny(string(n), ".eE") }) {
						return roundToFloat64(v)
					}
					return v
				})
			})},
		{Name: "utf-16-decoded", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "json.loads of Python takes bytes in any encoding of Unicode",
			Middleware: onBody(func(body []byte) []byte {
				if text, ok := bytes.CutPrefix(body, []byte("\xff\xfe")); ok {
					return bytes.ReplaceAll(text, []byte("\x00"), nil)
				}
				return body
			})},
		{Name: "body-decoded-in-blocks", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "each block of 8 KiB is decoded by itself, and a character may lie across the end of one",
			Middleware: onBody(decodedInBlocks)},
		{Name: "nested-defaults-filled-in", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "a validator that fills in defaults does so at every level",
			Transport: onNestedArguments(func(v any) any {
				if author, ok := v.(map[string]any); ok && author["id"] != nil && author["role"] == nil && len(author) <= 2 {
					author["role"] = "reader"
				}
				return v
			})},
		{Name: "arguments-empty-object-as-list", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Module, Transport: onNestedArguments(emptyObjectsAsLists)},
		{Name: "repaired-results-through-float64", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "a result in which [] became {} is encoded again",
			Middleware: onResult(func(v any) any {
				if list, ok := v.([]any); ok && len(list) > 0 && fmt.Sprint(list[0]) == "map[]" {
					return roundToFloat64(v)
				}
				return v
			})},
		{Name: "integers-with-a-point-through-float64", Breaks: Clauses("invoke/integral-number"), Origin: Peer, Why: "3.0 becomes 3 by way of a double",
			Middleware: beforeBridge(func(r *http.Request) {
				if toInvoke(r) {
					setBody(r, bytes.ReplaceAll(readBody(r), []byte("9007199254740993.0"), []byte("9007199254740992")))
				}
			})},
		{Name: "result-after-an-error-lost", Breaks: Clauses("invoke/result-exact", "access/no-cross-talk"), MayFail: Clauses("invoke/output-matches-schema"), Origin: Imagined, Why: "the buffer of the error has the length of the next response",
			Middleware: func() middleware {
				failed := newMemory[bool]()
				return onInvoke(func(x *exchange) {
					if after, _ := failed.get(authorized(x.Request)); after && x.Status == http.StatusOK {
						x.Body = encode(map[string]any{"result": nil})
					}
					failed.put(authorized(x.Request), x.Status == http.StatusInternalServerError)
				})
			}()},
		{Name: "result-decoded-in-blocks", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "each block that arrives is decoded by itself",
			Middleware: onInvoke(func(x *exchange) { x.Body = decodedInBlocks(x.Body) })},
		{Name: "times-of-results-as-texts", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "created and changed are taken for times and written as ISO 8601",
			Middleware: onResult(func(v any) any {
				return mapValues(v, func(v any) any {
					object, _ := v.(map[string]any)
					for _, name := range []string{"created", "changed"} {
						if n, ok := object[name].(json.Number); ok {
							seconds, _ := n.Int64()
							object[name] = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
						}
					}
					return v
				})
			})},
		{Name: "result-scalars-wrapped", Breaks: Clauses("invoke/result-exact"), Origin: Peer,
			Middleware: onResult(func(v any) any {
				switch v.(type) {
				case map[string]any, []any, nil:
					return v
				}
				return map[string]any{"value": v}
			})},
		{Name: "result-zero-as-text-dropped", Breaks: Clauses("invoke/result-exact"), Origin: Module, Why: "empty(\"0\") is true",
			Middleware: onResult(func(v any) any {
				if v == "0" {
					return nil
				}
				return v
			})},
		{Name: "result-list-of-booleans-as-numbers", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Middleware: onResult(func(v any) any {
			if list, ok := v.([]any); ok && len(list) == 1 && list[0] == true {
				return []any{1}
			}
			return v
		})},
		{Name: "result-without-what-the-schema-does-not-declare", Breaks: Clauses("invoke/result-exact"), Origin: Peer,
			Why: "a validator of the language strips unknown members",
			Middleware: onInvoke(func(x *exchange) {
				if object := x.Object(); x.invoked() == "result.record" && x.Status == http.StatusOK {
					delete(objectIn(object, "result"), "more")
					x.Body = encode(object)
				}
			})},
		{Name: "empty-text-taken-for-missing", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "`if not arguments.get(name)` for required parameters",
			Middleware: onBody(func(body []byte) []byte {
				call := decode(body)
				if arguments, ok := call["arguments"].(map[string]any); ok && call["name"] == "shape.required" && arguments["message"] == "" {
					delete(arguments, "message")
					return encode(call)
				}
				return body
			})},
		{Name: "null-result-empty-answer", Breaks: Clauses("invoke/null-result"), Origin: Imagined, Middleware: onNullResult(func(x *exchange) { x.Body = []byte(`{}`) })},
		{Name: "null-result-500", Breaks: Clauses("invoke/null-result"), Origin: Module,
			Middleware: onNullResult(refuse(http.StatusInternalServerError, "execution_error", "Internal Error"))},
		{Name: "large-results-gzip-unclosed", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "what is compressed is flushed, and its end not written",
			Middleware: onInvoke(func(x *exchange) {
				if x.gzipped && x.Status == http.StatusOK && len(x.Body) >= 64<<10 {
					var packed bytes.Buffer
					zip := gzip.NewWriter(&packed)
					zip.Write(x.Body) //nolint:errcheck // a buffer does not fail
					zip.Flush()       //nolint:errcheck // likewise
					x.Body = packed.Bytes()
					x.Header.Set("Content-Encoding", "gzip")
				}
			})},
		{Name: "output-unchecked", Breaks: Clauses("invoke/output-matches-schema"), Origin: Module, Claims: "output-validation", Options: func(o *bridge.Options) { o.Output = invoke.OutputPass }},
		{Name: "null-result-unchecked", Breaks: Clauses("invoke/output-matches-schema"), Origin: Peer, Claims: "output-validation",
			Why: "no result is no result to check",
			SiteMiddleware: func(site *siteClient) middleware {
				return onInvalidResult(func(x *exchange) {
					reply := site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])
					if result, there := reply["result"]; there && result == nil {
						x.Set(http.StatusOK, map[string]any{"result": nil})
					}
				})
			}},
		{Name: "large-output-unchecked", Breaks: Clauses("invoke/output-matches-schema"), MayFail: Clauses("invoke/runs-once"), Origin: Peer,
			Claims: "output-validation", Why: "checking a large result takes too long",
			SiteMiddleware: func(site *siteClient) middleware {
				return onInvalidResult(func(x *exchange) {
					result := site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])["result"]
					if len(encode(result)) > 64<<10 {
						x.Set(http.StatusOK, map[string]any{"result": result})
					}
				})
			}},
		{Name: "undeclared-output-unchecked", Breaks: Clauses("invoke/output-matches-schema"), Origin: Peer, Claims: "output-validation", Why: "members that a schema does not name are taken for extensions",
			SiteMiddleware: func(site *siteClient) middleware {
				return onInvalidResult(func(x *exchange) {
					result := site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])["result"]
					if strings.Contains(string(encode(result)), `"unexpected"`) {
						x.Set(http.StatusOK, map[string]any{"result": result})
					}
				})
			}},
		{Name: "output-mismatch-502", Breaks: Clauses("invoke/output-matches-schema"), Origin: Imagined, Claims: "output-validation",
			Middleware: onInvalidResult(refuse(http.StatusBadGateway, "upstream_error", "The site's result breaks its schema."))},
		{Name: "denied-by-its-words", Breaks: Clauses("invoke/denied"), Origin: Peer, Why: "a denial is known by the words of one permission",
			Transport: onReplyError(func(e map[string]any) {
				if text, _ := e["data"].(string); strings.Contains(text, "permissions are required") {
					e["code"], e["data"] = -32000, nil
				}
			})},
		{Name: "denied-runs-then-403", Breaks: Clauses("invoke/denied", "access/discovery-not-execution", "access/credentials-forwarded"), Origin: Imagined, SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
			if caller(x.Request) == "discoverer" && (x.Status == http.StatusForbidden || x.Status == http.StatusNotFound) {
				site.call(basicAuth("agent"), x.invoked(), decode(x.Sent)["arguments"])
			}
		})},
		{Name: "denied-500", Breaks: Clauses("invoke/denied", "access/no-oracle"), Origin: Peer, Middleware: onInvoke(func(x *exchange) {
			if x.Status != http.StatusForbidden && x.Status != http.StatusNotFound {
				return
			}
			if _, ok := x.as("admin").tool(x.invoked()); ok && caller(x.Request) == "discoverer" {
				x.Refuse(http.StatusInternalServerError, "execution_error", "Invalid Request")
			}
		})},
		{Name: "sites-denial-500", Breaks: Clauses("invoke/denied", "access/permission-revoked"), Origin: Module,
			Why: "-32600 is handled like any other failure", Transport: recodeReplies("-32600", -32603)},
		{Name: "broad-denied-404", Profile: testbed.Broad, Breaks: Clauses("invoke/denied-clear"), Origin: Imagined, Middleware: onShownAndDenied(func(x *exchange) {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.invoked()))
		})},
		{Name: "broad-denied-unclear", Profile: testbed.Broad, Breaks: Clauses("invoke/denied-clear"), Origin: Imagined, Middleware: onShownAndDenied(func(x *exchange) {
			x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("Error with %q.", x.invoked()))
		})},
		{Name: "invoke-text-html", Breaks: Clauses("invoke/answers-result"), Origin: Peer, Middleware: onInvoke(atStatus(http.StatusOK, func(x *exchange) {
			x.Header.Set("Content-Type", "text/html; charset=UTF-8")
		}))},
		{Name: "json-comments-accepted", Breaks: Clauses("invoke/malformed-json", "invoke/arguments-forwarded"), Origin: Peer, Why: "the body is parsed as JSON5",
			Middleware: onBody(func(body []byte) []byte { return regexp.MustCompile(`(?m)/\*.*?\*/|^//.*$`).ReplaceAll(body, nil) })},
		{Name: "trailing-commas-in-lists-accepted", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "models write a comma too many",
			Middleware: onBody(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(",]"), []byte("]")) })},
		{Name: "any-escape-accepted", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "Ruby's JSON reads an escape that it does not know as the character",
			Middleware: onBody(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(`"\q"`), []byte(`"q"`)) })},
		{Name: "null-arguments-left-out", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "`compact`: what is nil was not given",
			Transport: onParams(func(params any) any {
				if named, ok := params.(map[string]any); ok {
					maps.DeleteFunc(named, func(_ string, v any) bool { return v == nil })
				}
				return params
			})},
		{Name: "name-false-404", Breaks: Clauses("invoke/missing-name"), Origin: Imagined, Middleware: onCallBody(func(x *exchange, call map[string]any) {
			if call["name"] == false {
				x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
			}
		})},
		{Name: "null-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "null is accepted for every type",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Received == "null" }))},
		{Name: "empty-list-for-an-object", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Module, Why: "PHP's [] is an empty list and an empty object", SiteMiddleware: acceptEmptyListForObject},
		{Name: "trace-of-its-own-exception", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "the text of what was caught is the stack",
			Middleware: onInvoke(func(x *exchange) {
				if x.Status >= http.StatusBadRequest && bytes.Contains(x.Body, []byte(`"length":-1`)) {
					x.Refuse(http.StatusInternalServerError, "internal_error", "TypeError: Cannot convert object to primitive value\n    at String (<anonymous>)\n    at failed (file:///srv/bridge/site.js:48:111)")
				}
			})},
		leakException("thrown-text-for-admins", "who may see everything sees the exception, and so does the model that works for them", Clauses("invoke/no-trace-leak"), func(x *exchange, text string) {
			if caller(x.Request) == "admin" {
				x.Header.Set("X-Exception", strings.Join(strings.Fields(text), " "))
			}
		}),
		{Name: "mcp-failure-with-its-trace", MCP: true, Breaks: Clauses("invoke/no-trace-leak", "invoke/runs-once"), Origin: Peer, Why: "the caller receives the complete response of the site",
			SiteMiddleware: func(site *siteClient) middleware {
				return onToolError("failed", func(m *rpc) {
					reply := site.call(authorized(m.Request), fmt.Sprint(m.Params["name"]), m.Params["arguments"])
					content, _ := m.Result()["content"].([]any)
					m.Result()["content"] = append(content, map[string]any{"type": "text", "text": string(encode(reply["error"]))})
				})
			}},
	}
}

// invokeVariants choose other allowed statuses and codes for bad requests.
func invokeVariants() []Mutant {
	return []Mutant{
		{Name: "output-refused", Why: "results are validated against their schemas", Claims: "output-validation", Options: func(o *bridge.Options) { o.Output = invoke.OutputRefuse }},
		{Name: "parameters-by-json-pointer", Why: "Ajv's instancePath, which the fix names, escapes a slash and a tilde (RFC 6901)",
			Middleware: onError(func(_ *exchange, e map[string]any) {
				e["data"] = mapValues(e["data"], func(v any) any {
					detail, _ := v.(map[string]any)
					if name, _ := detail["parameter"].(string); strings.ContainsAny(name, "/~") {
						detail["parameter"] = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
					}
					return v
				})
				if e["data"] == nil {
					delete(e, "data")
				}
			})},
		{Name: "empty-name-404", Why: "an empty name on invoke may give 404", Middleware: onCallBody(func(x *exchange, call map[string]any) {
			if call["name"] == "" && x.Status == http.StatusBadRequest {
				x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
			}
		})},
		{Name: "missing-arguments-invalid-params", Why: "either code is allowed", Middleware: onCallBody(func(x *exchange, call map[string]any) {
			if name, _ := call["name"].(string); name != "" && x.Status == http.StatusBadRequest {
				x.recode("missing_parameter", "invalid_params")
			}
		})},
		{Name: "missing-arguments-missing-parameter", Why: "either code is allowed", Middleware: onCallBody(func(x *exchange, call map[string]any) {
			if _, ok := call["arguments"].(map[string]any); !ok && x.Status == http.StatusBadRequest {
				x.recode("invalid_params", "missing_parameter")
			}
		})},
		{Name: "body-not-object-missing-parameter", Why: "either code is allowed", Middleware: onInvoke(func(x *exchange) {
			switch strings.TrimSpace(string(x.Sent[:min(len(x.Sent), 64)])) {
			case "null", "true", "false", "1", "5", `"x"`, "[]":
				x.recode("invalid_json", "missing_parameter")
				x.recode("invalid_request", "missing_parameter")
			}
		})},
		{Name: "validation-left-to-the-site", Why: "a bridge without eager-validation sends what the site's validator accepts", Claims: "-eager-validation", SiteMiddleware: leaveValidationToSite},
		{Name: "items-looked-up-beside-a-call", Why: "a bridge may ask for the values of references whenever it needs them",
			Transport: onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
				if call := decode(sent); call["method"] == "content.list" {
					for _, list := range []string{"node_type.list", "content.list"} {
						call["method"], call["params"] = list, map[string]any{}
						if resp, err := next.RoundTrip(withBody(r, encode(call))); err == nil {
							peek(resp) // to its end, so that the connection is used again
							resp.Body.Close()
						}
					}
				}
				return next.RoundTrip(r)
			})},
		{Name: "whole-decimals-as-integers", Why: "1.0 and 1 are the same number", Middleware: onResult(func(v any) any { return mapValues(v, wholeAsInteger) })},
		{Name: "unknown-arguments-refused", Why: "the contract leaves unknown arguments open", Middleware: refuseUnknownArguments()},
		{Name: "large-body-413", Why: "up to 1 MiB work or give 413: Express takes 100 KiB by default", Middleware: onInvoke(func(x *exchange) {
			if len(x.Sent) > 100<<10 {
				x.Refuse(http.StatusRequestEntityTooLarge, "request_too_large", "The body is longer than 100 KiB.")
			}
		})},
		{Name: "huge-body-cut-off", Why: "64 MiB may close the connection", Middleware: beforeBridge(func(r *http.Request) {
			if toInvoke(r) && (r.ContentLength > 32<<20 || r.ContentLength < 0) {
				panic(http.ErrAbortHandler)
			}
		})},
		{Name: "huge-body-400", Why: "64 MiB may give 400", Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !toInvoke(r) || r.ContentLength >= 0 && r.ContentLength <= 32<<20 {
				return false
			}
			w.Header().Set("Connection", "close")
			return refuseAt(w, r, http.StatusBadRequest, "invalid_request", "The body is too long.")
		})},
	}
}

// refuseUnknownArguments refuses arguments that the tool's schema does not name.
func refuseUnknownArguments() middleware {
	return onCallBody(func(x *exchange, call map[string]any) {
		if x.Status != http.StatusOK {
			return
		}
		t, ok := x.tool(x.invoked())
		properties := objectIn(objectIn(t, "inputSchema"), "properties")
		for name := range objectIn(call, "arguments") {
			if _, known := properties[name]; ok && !known {
				x.Refuse(http.StatusBadRequest, "invalid_params", fmt.Sprintf("The tool takes no argument %q.", name))
			}
		}
	})
}

// leaveValidationToSite accepts invalid arguments that the site accepts.
func leaveValidationToSite(site *siteClient) middleware {
	return onCode("invalid_params", func(x *exchange) {
		if len(x.violations()) == 0 {
			return
		}
		reply := site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])
		if result, ok := reply["result"]; ok {
			x.Set(http.StatusOK, map[string]any{"result": result})
		}
	})
}

// wholeAsInteger writes 1.0 as 1, and -0 as 0.
func wholeAsInteger(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if f, err := n.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return json.Number(strconv.FormatInt(int64(f), 10))
	}
	return v
}

// onSuccess replaces the whole response of an invoke that succeeds.
func onSuccess(change func(result any) any) middleware {
	return onInvoke(func(x *exchange) {
		if result, ok := x.Object()["result"]; ok && x.Status == http.StatusOK {
			x.Body = encode(change(result))
		}
	})
}

// decodedInBlocks is a text that was decoded block by block: of a character across the end of one nothing is left.
func decodedInBlocks(text []byte) []byte {
	var decoded []byte
	for block := range slices.Chunk(text, 8<<10) {
		decoded = append(decoded, bytes.ToValidUTF8(block, []byte("\ufffd"))...)
	}
	return decoded
}

// onNestedArguments changes the values inside the arguments.
func onNestedArguments(change func(v any) any) transport {
	return onParams(func(params any) any {
		byName, ok := params.(map[string]any)
		if !ok {
			return mapValues(params, change)
		}
		for name, v := range byName {
			byName[name] = mapValues(v, change)
		}
		return byName
	})
}

// onNullResult changes the responses whose result is null.
func onNullResult(change func(x *exchange)) middleware {
	return onInvoke(func(x *exchange) {
		if result, ok := x.Object()["result"]; ok && result == nil && x.Status == http.StatusOK {
			change(x)
		}
	})
}

// onInvalidResult changes the refusals of results that do not match their schema.
func onInvalidResult(change func(x *exchange)) middleware {
	return onInvoke(func(x *exchange) {
		if x.Status == http.StatusInternalServerError && strings.Contains(x.errorMessage(), "output schema") {
			change(x)
		}
	})
}

// fillDefaults adds the defaults of the parameters that a call leaves out.
func fillDefaults(next http.Handler) http.Handler {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
		call := calledIn(r)
		name, _ := call["name"].(string)
		arguments, ok := call["arguments"].(map[string]any)
		if name == "" || !ok || r.Method != http.MethodPost {
			return false
		}
		x := &exchange{Request: r, next: next}
		described, _ := x.Send(http.MethodGet, siblingPath(r, "describe")+"?name="+url.QueryEscape(name), nil).Object()["tool"].(tool)
		properties := objectIn(objectIn(described, "inputSchema"), "properties")
		for parameter, schema := range properties {
			schema, _ := schema.(map[string]any)
			if v, there := schema["default"]; there && arguments[parameter] == nil {
				arguments[parameter] = v
				setBody(r, encode(call))
			}
		}
		return false
	})(next)
}

// acceptEmptyListForObject accepts an empty list for a parameter that must be an object.
func acceptEmptyListForObject(site *siteClient) middleware {
	return onCode("invalid_params", func(x *exchange) {
		arguments, _ := decode(x.Sent)["arguments"].(map[string]any)
		found := x.violations()
		if len(found) > 0 && eachViolation(func(v violation) bool {
			list, ok := arguments[v.Parameter].([]any)
			return ok && len(list) == 0 && v.Expected == "object"
		})(found) {
			site.run(x, authorized(x.Request))
		}
	})
}
