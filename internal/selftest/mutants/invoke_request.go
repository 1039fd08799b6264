package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// invokeRequestMutants accept requests and arguments that they must refuse, or refuse what they must accept.
func invokeRequestMutants() []Mutant {
	return []Mutant{
		{Name: "empty-arguments-refused", Breaks: Clauses("invoke/empty-arguments"), Origin: Module, Why: "`empty($arguments)`",
			Middleware: onCallBody(func(x *exchange, call map[string]any) {
				if a, ok := call["arguments"].(map[string]any); ok && len(a) == 0 && strings.HasPrefix(x.invoked(), "taxonomy.") {
					x.Refuse(http.StatusBadRequest, "missing_parameter", "Required parameter \"arguments\" is missing")
				}
			})},
		{Name: "empty-arguments-500", Breaks: Clauses("invoke/empty-arguments"), Origin: Imagined,
			Middleware: onCallBody(func(x *exchange, call map[string]any) {
				if a, ok := call["arguments"].(map[string]any); ok && len(a) == 0 && x.Status == http.StatusOK && strings.HasPrefix(x.invoked(), "media.") {
					x.Refuse(http.StatusInternalServerError, "internal_error", "array_keys(): Argument #1 must be of type array, null given")
				}
			})},
		{Name: "mcp-alone-arguments-demanded", MCP: true, Breaks: Clauses("invoke/empty-arguments"), Origin: Peer, Claims: "-tools", Middleware: demandArguments()},
		{Name: "integers-cut-at-the-point", Breaks: Clauses("invoke/integral-number"), Origin: Peer, Why: "the text of a number is read up to the first character that is no digit",
			Middleware: onBody(onNumbers(func(n string) string {
				if wholeNumber(n) == n { // it has a fraction, or is spelled as an integer
					return n
				}
				whole, _, _ := strings.Cut(n, "e")
				whole, _, _ = strings.Cut(whole, ".")
				return whole
			})),
			Remedy: onBody(onNumbers(wholeNumber))},
		{Name: "integral-numbers-500", Breaks: Clauses("invoke/integral-number"), Origin: Peer, Why: "the number does not fit the type that was generated for an integer",
			Middleware: onInvoke(func(x *exchange) {
				if floatForThree.Match(x.Sent) {
					x.Refuse(http.StatusInternalServerError, "internal_error", "Failed to parse literal as an int value")
				}
			})},
		{Name: "malformed-json-422", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Middleware: onMalformed(func(x *exchange) { x.Status = http.StatusUnprocessableEntity })},
		{Name: "empty-body-is-empty-object", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Middleware: onBody(func(body []byte) []byte {
			if len(bytes.TrimSpace(body)) == 0 {
				return []byte(`{}`)
			}
			return body
		})},
		{Name: "body-trimmed", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "what languages trim is more than JSON's white space",
			Middleware: onBody(func(body []byte) []byte { return bytes.Trim(body, " \t\r\n\v\f") })},
		{Name: "trailing-garbage-ignored", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "the decoder reads one value and stops",
			Middleware: onBody(func(body []byte) []byte {
				if object := decode(body); object != nil && !bytes.HasSuffix(bytes.TrimSpace(body), []byte("}")) {
					return encode(object)
				}
				return body
			})},
		{Name: "surrogates-in-utf8-taken", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "CESU-8 is read, as Java writes it",
			Middleware: onBody(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte("\xed\xa0\x80"), []byte("?")) })},
		{Name: "overlong-utf8-taken", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "the decoder adds up what the bytes hold",
			Middleware: onBody(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte("\xc1\xa1"), []byte("a")) })},
		{Name: "body-list-500", Breaks: Clauses("invoke/body-not-object"), MayFail: Clauses("invoke/malformed-json"), Origin: Imagined, Middleware: onInvoke(func(x *exchange) {
			if bytes.HasPrefix(bytes.TrimSpace(x.Sent), []byte("[")) && x.Status == http.StatusBadRequest {
				x.Refuse(http.StatusInternalServerError, "internal_error", "cannot unmarshal array")
			}
		})},
		{Name: "body-null-404", Breaks: Clauses("invoke/body-not-object"), MayFail: Clauses("invoke/malformed-json"), Origin: Imagined, Middleware: onInvoke(func(x *exchange) {
			if string(bytes.TrimSpace(x.Sent)) == "null" {
				x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
			}
		})},
		{Name: "name-object-500", Breaks: Clauses("invoke/missing-name", "errors/envelope"), Origin: Module, Middleware: onCallBody(func(x *exchange, call map[string]any) {
			switch call["name"].(type) {
			case map[string]any, []any:
				x.page(http.StatusInternalServerError, "The website encountered an unexpected error. Try again later.")
			}
		})},
		{Name: "name-number-404", Breaks: Clauses("invoke/missing-name"), Origin: Imagined, Why: "cast to a string", Middleware: onCallBody(func(x *exchange, call map[string]any) {
			if _, ok := call["name"].(interface{ Int64() (int64, error) }); ok {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", fmt.Sprint(call["name"])))
			}
		})},
		{Name: "name-list-of-one-runs", Breaks: Clauses("invoke/missing-name"), Origin: Imagined, Middleware: onBody(onCallObject(func(call map[string]any) {
			if list, ok := call["name"].([]any); ok && len(list) == 1 {
				call["name"] = list[0]
			}
		}))},
		{Name: "arguments-absent-runs", Breaks: Clauses("invoke/missing-arguments"), Origin: Peer, Middleware: onBody(onCallObject(func(call map[string]any) {
			if _, ok := call["arguments"]; !ok && call["name"] != nil {
				call["arguments"] = map[string]any{}
			}
		}))},
		{Name: "arguments-null-runs", Breaks: Clauses("invoke/missing-arguments"), Origin: Peer, Middleware: onBody(onCallObject(func(call map[string]any) {
			if a, ok := call["arguments"]; ok && a == nil {
				call["arguments"] = map[string]any{}
			}
		}))},
		{Name: "arguments-list-runs", Breaks: Clauses("invoke/missing-arguments"), Origin: Module, Middleware: onBody(onCallObject(func(call map[string]any) {
			if list, ok := call["arguments"].([]any); ok && len(list) > 0 {
				call["arguments"] = map[string]any{}
			}
		}))},
		{Name: "params-taken-for-arguments", Breaks: Clauses("invoke/missing-arguments"), Origin: Peer, Why: "JSON-RPC has params",
			Middleware: onBody(onCallObject(func(call map[string]any) {
				if params, ok := call["params"]; ok && !has(call, "arguments") {
					call["arguments"] = params
				}
			}))},
		{Name: "call-of-mcp-taken", Breaks: Clauses("invoke/missing-name"), Origin: Peer, Why: "one handler takes both forms",
			Middleware: onBody(onCallObject(func(call map[string]any) {
				maps.Copy(call, objectIn(call, "params"))
			}))},
		{Name: "body-ends-at-a-semicolon", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "the parser reads what JavaScript would",
			Middleware: onBody(func(body []byte) []byte { return bytes.TrimSuffix(body, []byte(";")) })},
		{Name: "equal-members-taken", Breaks: Clauses("invoke/duplicate-members"), Origin: Peer, Why: "two that say the same do no harm",
			Middleware: onBody(func(body []byte) []byte { return bytes.Replace(body, []byte(`"b":1,"b":1`), []byte(`"b":1`), 1) })},
		{Name: "objects-deeper-than-the-stack", Breaks: Clauses("invoke/large-body"), Origin: Peer, Why: "the depth of lists alone is bounded",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				deep := toCall(r) && bytes.Contains(peekBody(r), bytes.Repeat([]byte(`{"a":`), 1000))
				return deep && refuseAt(w, r, http.StatusInternalServerError, "internal_error", "The request failed.")
			})},
		{Name: "arguments-zero-run", Breaks: Clauses("invoke/missing-arguments"), Origin: Peer, Why: "`empty(0)` is true", Middleware: onBody(func(body []byte) []byte {
			return bytes.Replace(body, []byte(`"arguments":0}`), []byte(`"arguments":{}}`), 1)
		})},
		{Name: "unique-decimals-compared-by-reference", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "numbers that are objects of the language are equal to themselves alone",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Keyword == "uniqueItems" && v.Parameter == "decimals" }))},
		{Name: "unique-objects-compared-as-text", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "items are compared by their JSON text",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Keyword == "uniqueItems" && v.Parameter == "unlike" }))},
		{Name: "nothing-validated", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Module,
			Why: "the site's refusal is reported as a failure", SiteMiddleware: skipValidation(func([]violation) bool { return true })},
		{Name: "format-of-times-loose", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "the own parser of the language takes other forms of a time, too",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Keyword == "format" && strings.Contains(v.Received, "20240229T") }))},
		{Name: "days-that-no-month-has", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer,
			Why:            "the own parser of the language takes the 30th of February for the last day",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Keyword == "format" && strings.Contains(v.Received, `02-30"`) }))},
		{Name: "times-without-a-zone", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "a naive datetime of the language has no zone",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Keyword == "format" && strings.Contains(v.Received, `:00"`) }))},
		{Name: "nested-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "invoke/undeclared-argument", "upstream/eager-validation"), Origin: Imagined,
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return strings.Contains(v.Parameter, ".") }))},
		{Name: "invalid-arguments-422", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Peer,
			Middleware: onViolations(func(x *exchange, _ map[string]any, _ []violation) { x.Status = http.StatusUnprocessableEntity })},
		{Name: "invalid-arguments-other-code", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Imagined,
			Middleware: onViolations(func(_ *exchange, e map[string]any, _ []violation) { e["code"] = "invalid_request" })},
		{Name: "invalid-arguments-run-first", Breaks: Clauses("invoke/invalid-arguments-400", "invoke/undeclared-argument", "upstream/eager-validation"), Origin: Imagined, Why: "invalid arguments are dropped, the method runs, and then the bridge sends 400",
			SiteMiddleware: func(site *siteClient) middleware {
				return onViolations(func(x *exchange, _ map[string]any, found []violation) {
					arguments, _ := decode(x.Sent)["arguments"].(map[string]any)
					for _, v := range found {
						name, _, _ := strings.Cut(v.Parameter, ".")
						delete(arguments, name)
					}
					site.call(authorized(x.Request), x.invoked(), arguments)
				})
			}},
		{Name: "invalid-arguments-first-only", Breaks: Clauses("invoke/invalid-arguments-named"), Origin: Peer,
			Middleware: onViolations(func(_ *exchange, e map[string]any, found []violation) {
				if len(found) > 1 {
					e["data"] = map[string]any{"parameter": found[0].Parameter, "expected": found[0].Expected, "received": found[0].Received}
					e["message"] = found[0].Parameter + " is not valid"
				}
			})},
		{Name: "missing-arguments-named-alone", Breaks: Clauses("invoke/invalid-arguments-named"), Origin: Peer,
			Why: "validation ends where a required parameter is missing",
			Middleware: onViolations(func(_ *exchange, e map[string]any, found []violation) {
				if i := slices.IndexFunc(found, func(v violation) bool { return v.Keyword == "required" }); i >= 0 {
					e["data"] = map[string]any{"parameter": found[i].Parameter, "expected": found[i].Expected, "received": found[i].Received}
					e["message"] = found[i].Parameter + " is missing"
				}
			})},
		{Name: "get-executes", Breaks: Clauses("invoke/post-only"), Origin: Module, Why: "the route accepts GET, and its body is a call", Middleware: methodAsPost(http.MethodGet)},
		{Name: "put-executes", Breaks: Clauses("invoke/post-only"), Origin: Imagined, Middleware: methodAsPost(http.MethodPut)},
		{Name: "delete-executes-then-405", Breaks: Clauses("invoke/post-only"), Origin: Imagined, Why: "the status is right, but the method ran",
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if x.Method == http.MethodDelete && x.invoked() != "" {
					site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])
				}
			})},
		{Name: "get-on-invoke-400", Breaks: Clauses("invoke/post-only"), Origin: Module, Middleware: onInvoke(func(x *exchange) {
			if x.Method == http.MethodGet {
				x.Refuse(http.StatusBadRequest, "invalid_json", "Request body must be valid JSON")
			}
		})},
		{Name: "large-body-500", Breaks: Clauses("invoke/large-body"), Origin: Imagined, Middleware: onInvoke(func(x *exchange) {
			if len(x.Sent) > 512<<10 {
				x.Refuse(http.StatusInternalServerError, "internal_error", "Allowed memory size exhausted")
			}
		})},
		{Name: "long-results-cut", Breaks: Clauses("invoke/large-body"), Origin: Peer,
			Why: "a text that a model could not read is cut", Middleware: onInvoke(func(x *exchange) {
				x.Body = bytes.ReplaceAll(x.Body, bytes.Repeat([]byte("x"), 512<<10), nil)
			})},
		{Name: "deep-nesting-500", Breaks: Clauses("invoke/large-body"), Origin: Imagined, Middleware: onInvoke(func(x *exchange) {
			if bytes.Count(x.Sent, []byte("[")) >= 5000 || bytes.Count(x.Sent, []byte("{")) >= 5000 {
				x.Refuse(http.StatusInternalServerError, "internal_error", "Maximum stack depth exceeded")
			}
		})},
		{Name: "announced-body-unbounded", Breaks: Clauses("invoke/large-body"), Origin: Peer, Why: "only a body in chunks is cut off: its length is not known",
			Middleware: readHugeBody(func(length int64) bool { return length > 32<<20 })},
		{Name: "body-in-chunks-unbounded", Breaks: Clauses("invoke/large-body"), Origin: Peer, Why: "the limit is compared with Content-Length, which a body in chunks does not have",
			Middleware: readHugeBody(func(length int64) bool { return length < 0 })},
		{Name: "arguments-normalised-as-bytes", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "the body is normalised before it is parsed, which leaves escapes alone",
			Middleware: onBody(norm.NFC.Bytes)},
		{Name: "duplicate-members-last-wins", Breaks: Clauses("invoke/duplicate-members"), Origin: Module, Middleware: onBody(func(body []byte) []byte {
			if object := decode(body); object != nil && json.Valid(body) && bytes.Count(body, []byte(`"arguments"`))+bytes.Count(body, []byte(`"name"`)) > 2 {
				return encode(object)
			}
			return body
		})},
		{Name: "duplicates-compared-as-written", Breaks: Clauses("invoke/duplicate-members"), Origin: Peer,
			Why:        "names below the top are compared before their escapes are read",
			Middleware: onBody(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(`"a":1,"\u0061"`), []byte(`"a"`)) })},
		{Name: "duplicates-within-lists-last-win", Breaks: Clauses("invoke/duplicate-members"), Origin: Peer, Why: "the search for them goes through objects alone",
			Middleware: onBody(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(`[{"b":1,`), []byte(`[{`)) })},
		{Name: "one-of-read-as-any-of", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, SiteMiddleware: skipValidation(eachViolation(func(v violation) bool {
			return v.Keyword == "oneOf" && regexp.MustCompile(`^number -?(6|12)`).MatchString(v.Received)
		}))},
		{Name: "steps-of-fractions-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "the remainder of binary fractions is not exact, and so is not looked at",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Keyword == "multipleOf" && strings.Contains(v.Received, ".") }))},
		{Name: "exclusive-bounds-inclusive", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "it supports only exclusiveMinimum: true of Draft 4",
			SiteMiddleware: skipValidation(onlyKeywords("exclusiveMinimum", "exclusiveMaximum"))},
		{Name: "patterns-before-a-line-end", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer,
			Why: "$ is before a last line end, too, in Perl, Python and PCRE",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool {
				pattern, err := regexp.Compile(strings.TrimPrefix(v.Expected, "a string that matches "))
				less, ended := strings.CutSuffix(reportedString(v), "\n")
				return v.Keyword == "pattern" && err == nil && ended && pattern.MatchString(less)
			}))},
		{Name: "ten-items-checked-only", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer,
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool {
				return regexp.MustCompile(`\.[1-9]\d+(\.|$)`).MatchString(v.Parameter)
			}))},
		{Name: "digits-for-an-integer", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Module, Why: "PHP casts them",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool {
				return v.Keyword == "type" && regexp.MustCompile(`^string "\d+"$`).MatchString(v.Received)
			}))},
		{Name: "true-is-one-in-enums", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer,
			Why:            "True == 1 in Python, and true loosely equals 1 elsewhere",
			SiteMiddleware: skipValidation(eachViolation(func(v violation) bool { return v.Keyword == "enum" && strings.HasSuffix(v.Received, "true") }))},
		{Name: "arguments-read-by-a-charset", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer,
			Why: "frameworks decode a text by the charset of its Content-Type",
			Middleware: beforeBridge(func(r *http.Request) {
				if strings.Contains(r.Header.Get("Content-Type"), "iso-8859-1") {
					setBody(r, []byte(inLatin1(string(readBody(r)))))
				}
			})},
		{Name: "true-is-one-in-unique-lists", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "True == 1 in Python, and true loosely equals 1 elsewhere",
			Middleware: refuseArguments(func(arguments map[string]any) bool {
				list, _ := arguments["mixed"].([]any)
				return slices.Contains(list, any(true)) && slices.ContainsFunc(list, func(v any) bool { return fmt.Sprintf("%T %v", v, v) == "json.Number 1" })
			})},
		{Name: "length-in-utf16-units", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "JavaScript counts UTF-16 code units",
			Middleware: refuseArguments(func(arguments map[string]any) bool {
				code, _ := arguments["code"].(string)
				return len([]rune(code)) <= 8 && utf16Length(code) > 8
			})},
		{Name: "null-for-a-required-one-refused", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "`isset($arguments['stated'])`",
			Middleware: refuseArguments(func(arguments map[string]any) bool {
				stated, there := arguments["stated"]
				return there && stated == nil
			})},
		{Name: "long-texts-match-no-pattern", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer,
			Why:        "preg_match() gives false beyond its limit of backtracking",
			Middleware: refuseArguments(func(arguments map[string]any) bool { part, _ := arguments["part"].(string); return len(part) > 10_000 })},
		{Name: "pattern-held-to-the-whole", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "fullmatch anchors patterns that have no anchors",
			Middleware: refuseArguments(func(arguments map[string]any) bool {
				part, ok := arguments["part"].(string)
				return ok && len(part) != len("0-0")
			})},
		{Name: "longest-list-refused", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "the longest allowed list is refused",
			Middleware: refuseArguments(func(arguments map[string]any) bool { tags, _ := arguments["tags"].([]any); return len(tags) == 5 })},
		{Name: "items-alike-as-text-refused", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "items are compared as texts: 1 is \"1\"",
			Middleware: refuseArguments(func(arguments map[string]any) bool {
				mixed, _ := arguments["mixed"].([]any)
				return len(mixed) == 2 && mixed[0] != mixed[1] && fmt.Sprint(mixed[0]) == fmt.Sprint(mixed[1])
			})},
		{Name: "nested-output-unchecked", Breaks: Clauses("invoke/output-matches-schema"), Origin: Imagined, Why: "only the type of the result itself is checked",
			SiteMiddleware: func(site *siteClient) middleware {
				return onInvalidResult(func(x *exchange) {
					if x.invoked() == "result.record" {
						site.run(x, authorized(x.Request))
					}
				})
			}},
		{Name: "output-refused-at-its-edge", Breaks: Clauses("invoke/output-matches-schema"), Origin: Imagined, Why: "the smallest allowed id is refused",
			Middleware: onInvoke(func(x *exchange) {
				result, _ := x.Object()["result"].(map[string]any)
				if x.invoked() == "result.record" && string(encode(result["id"])) == "1" {
					x.Refuse(http.StatusInternalServerError, "execution_error", "The result breaks the output schema.")
				}
			})},
	}
}

// reportedString returns the string that a violation reports; "" if it reports none or a long one.
func reportedString(v violation) string {
	text, ok := strings.CutPrefix(v.Received, "string ")
	if !ok {
		return ""
	}
	plain, err := strconv.Unquote(text)
	if err != nil {
		return ""
	}
	return plain
}

// utf16Length returns the length of a text in UTF-16 code units.
func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// floatForThree matches a body with 3 in the spelling of a number with a fraction.
var floatForThree = regexp.MustCompile(`:(3\.0|30e-1|0\.3e1)[,}]`)

// onNumbers changes the text of each number in the arguments.
func onNumbers(change func(text string) string) func([]byte) []byte {
	return onCallObject(func(call map[string]any) {
		call["arguments"] = mapValues(call["arguments"], func(v any) any {
			if n, ok := v.(json.Number); ok {
				return json.Number(change(n.String()))
			}
			return v
		})
	})
}

// wholeNumber spells a number without a fraction as an integer.
func wholeNumber(text string) string {
	if r, ok := new(big.Rat).SetString(text); ok && r.IsInt() {
		return r.Num().String()
	}
	return text
}

// refuseArguments refuses invokes by their arguments before the bridge receives them.
func refuseArguments(refused func(arguments map[string]any) bool) middleware {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		arguments, ok := calledIn(r)["arguments"].(map[string]any)
		return ok && refused(arguments) && refuseAt(w, r, http.StatusBadRequest, "invalid_params", "The arguments do not fit the schema.")
	})
}

// onMalformed changes the refusals of short bodies that are not JSON.
func onMalformed(change func(x *exchange)) middleware {
	return onCode("invalid_json", func(x *exchange) {
		if len(x.Sent) < 1024 && !(json.Valid(x.Sent) && utf8.Valid(x.Sent)) {
			change(x)
		}
	})
}

// onCallObject changes a body that is one JSON object.
func onCallObject(change func(call map[string]any)) func([]byte) []byte {
	return func(body []byte) []byte {
		before := decode(body)
		if before == nil || !bytes.HasSuffix(bytes.TrimSpace(body), []byte("}")) {
			return body
		}
		after := decode(body)
		if change(after); string(encode(before)) == string(encode(after)) {
			return body
		}
		return encode(after)
	}
}

// violation is one error that the reference found in arguments, as the data of its refusal reports it.
type violation struct{ Parameter, Expected, Received, Keyword string }

// onlyKeywords returns a test whether all violations are of one of the keywords.
func onlyKeywords(keywords ...string) func([]violation) bool {
	return eachViolation(func(v violation) bool { return slices.Contains(keywords, v.Keyword) })
}

// eachViolation returns a test whether each violation passes a test.
func eachViolation(test func(violation) bool) func([]violation) bool {
	return func(found []violation) bool {
		return !slices.ContainsFunc(found, func(v violation) bool { return !test(v) })
	}
}

// violations returns the errors that the bridge found in the arguments; nil if it found none.
func (x *exchange) violations() []violation {
	data := objectIn(objectIn(x.Object(), "error"), "data")
	list, _ := data["errors"].([]any)
	var found []violation
	for _, item := range list {
		item, _ := item.(map[string]any)
		v := violation{}
		v.Parameter, _ = item["parameter"].(string)
		v.Expected, _ = item["expected"].(string)
		v.Received, _ = item["received"].(string)
		at, _ := item["schema_path"].(string)
		v.Keyword = at[strings.LastIndex(at, "/")+1:]
		found = append(found, v)
	}
	return found
}

// skipValidation sends arguments to the site although the bridge refused them, if all violations are overlooked. The site
// refuses them with an error of its own, which becomes a failure.
func skipValidation(overlooked func([]violation) bool) func(*siteClient) middleware {
	return func(site *siteClient) middleware {
		return onCode("invalid_params", func(x *exchange) {
			if found := x.violations(); len(found) > 0 && overlooked(found) {
				site.run(x, authorized(x.Request))
			}
		})
	}
}

// methodAsPost handles another HTTP method on invoke as POST.
func methodAsPost(method string) middleware {
	return beforeBridge(func(r *http.Request) {
		if toInvoke(r) && r.Method == method && r.ContentLength != 0 {
			r.Method = http.MethodPost
			r.Header.Set("Content-Type", "application/json")
		}
	})
}

// readHugeBody reads a body of such a Content-Length (-1 for one in chunks) to its end, and finds no tool of its name.
func readHugeBody(such func(length int64) bool) middleware {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toInvoke(r) || r.Method != http.MethodPost || !such(r.ContentLength) {
			return false
		}
		if n, _ := io.Copy(io.Discard, r.Body); n < 32<<20 {
			return false
		}
		return refuseAt(w, r, http.StatusNotFound, "tool_not_found", "There is no such tool.")
	})
}

// onViolations changes the refusals of arguments that do not match the schema.
func onViolations(change func(x *exchange, e map[string]any, found []violation)) middleware {
	return onError(func(x *exchange, e map[string]any) {
		if found := x.violations(); len(found) > 0 {
			change(x, e, found)
		}
	})
}

// onOtherViolations changes the refusals of arguments that have the right types, and lack none.
func onOtherViolations(change func(e map[string]any, first violation)) middleware {
	return onViolations(func(_ *exchange, e map[string]any, found []violation) {
		if eachViolation(func(v violation) bool { return v.Keyword != "type" && v.Keyword != "required" })(found) {
			change(e, found[0])
		}
	})
}
