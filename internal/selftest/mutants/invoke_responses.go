package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// invokeErrorMutants report a failed call wrongly: status, code, message, data.
func invokeErrorMutants() []Mutant {
	return []Mutant{
		{Name: "unknown-tool-other-code", Breaks: Clauses("invoke/unknown-404", "errors/code-stable"), MayFail: Clauses("invoke/execution-error-500"), Origin: Imagined, Why: "describe and invoke disagree",
			Middleware: onInvoke(func(x *exchange) { x.recode("tool_not_found", "unknown_tool") })},
		{Name: "invoke-knows-constructor", Breaks: Clauses("invoke/unknown-404"), Origin: Peer, Why: "every object of JavaScript has one", Middleware: onInvoke(func(x *exchange) {
			if x.invoked() == "constructor" && x.Status == http.StatusNotFound {
				x.Refuse(http.StatusInternalServerError, "internal_error", "validate is not a function")
			}
		})},
		{Name: "surrogate-in-name-500", Breaks: Clauses("invoke/unknown-404"), Origin: Peer, Why: "the message repeats the name, which UTF-8 cannot encode", Middleware: onInvoke(func(x *exchange) {
			if bytes.Contains(x.Sent, []byte(`"name":"\ud83d"`)) {
				x.Refuse(http.StatusInternalServerError, "internal_error", "surrogates not allowed")
			}
		})},
		{Name: "contains-not-validated", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Peer, Why: "the validator does not know `contains`", Middleware: acceptEverythingFor("value.contains")},
		{Name: "additional-items-not-validated", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Peer, Why: "the validator is of a draft that has `prefixItems`", Middleware: acceptEverythingFor("value.tuple")},
		{Name: "dependent-schemas-not-validated", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Peer, Why: "what depends on a member is a list of names",
			Middleware: acceptWhere("value.dependent", func(arguments map[string]any) bool { return arguments["sent"] != nil })},
		{Name: "else-not-validated", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Peer, Why: "if and then are read",
			Middleware: acceptWhere("shape.conditional", func(arguments map[string]any) bool { return objectIn(arguments, "address")["country"] != "DE" })},
		{Name: "constants-of-nothing-not-validated", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Peer, Why: "a constant is there if it is true to the language",
			Middleware: acceptWhere("shape.const", func(arguments map[string]any) bool {
				return (arguments["flag"] == nil || arguments["flag"] == true) && (arguments["version"] == nil || arguments["version"] == "2.0")
			})},
		{Name: "patterns-of-undeclared-names-alone", Breaks: Clauses("invoke/invalid-arguments-400"), Origin: Peer, Why: "a member that is declared has its schema",
			Middleware: acceptWhere("shape.map", func(arguments map[string]any) bool {
				id := objectIn(arguments, "headers")["x-id"]
				_, isText := id.(string)
				return id != nil && !isText
			})},
		{Name: "invoke-members-in-any-case", Breaks: Clauses("invoke/missing-name", "invoke/missing-arguments"), Origin: Peer, Why: "encoding/json of Go matches names of members so",
			Middleware: onBody(onCallObject(func(call map[string]any) {
				for name, v := range call {
					if lower := strings.ToLower(name); call[lower] == nil {
						call[lower] = v
					}
				}
			}))},
		{Name: "times-fail", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "the validator throws an exception for every value of a format, so that no call has one",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				return objectIn(calledIn(r), "arguments")["date_time"] != nil && refuseAt(w, r, http.StatusInternalServerError, "internal_error", "The bridge failed.")
			})},
		{Name: "invoke-folds-letters", Breaks: Clauses("invoke/unknown-404"), Origin: Peer, Why: "names are compared without case by folding: ſ is s, and the Kelvin sign is k",
			Middleware: looseLookup(toInvoke, func(requested, name string) bool {
				return len(requested) != len(name) && strings.EqualFold(requested, name)
			})},
		{Name: "long-results-through-doubles", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "what is long is read by another parser",
			Middleware: onResult(func(result any) any {
				if len(encode(result)) > 64<<10 {
					return roundToFloat64(result)
				}
				return result
			})},
		{Name: "results-32-levels-deep", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "a parser with a limit of depth gives null beyond it",
			Middleware: onInvoke(func(x *exchange) { x.Body = bytes.ReplaceAll(x.Body, deepLists, []byte("null")) })},
		{Name: "site-read-in-another-encoding", Breaks: Clauses("invoke/result-exact", "upstream/http-error"), Origin: Peer, Why: "the site's Content-Type names no charset, and Latin-1 was HTTP's default once",
			Transport: onCallResponse(func(resp *http.Response) {
				if is := peek(resp); is != "" && len(is) < maxBuffered && inLatin1(is) != is {
					replaceBody(resp, inLatin1(is))
				}
			})},
		{Name: "missing-argument-not-in-data", Breaks: Clauses("invoke/invalid-arguments-named"), Origin: Peer,
			Why: "Ajv's instancePath is of the object that lacks it",
			Middleware: onViolations(func(_ *exchange, e map[string]any, found []violation) {
				if onlyKeywords("required")(found) {
					e["data"] = map[string]any{"parameter": "", "expected": found[0].Expected, "received": found[0].Received}
				}
			})},
		{Name: "bounds-not-in-data", Breaks: Clauses("invoke/invalid-arguments-named"), Origin: Peer, Why: "the data is made for wrong types alone",
			Middleware: onOtherViolations(func(e map[string]any, first violation) {
				e["data"] = map[string]any{"expected": first.Expected, "received": first.Received}
			})},
		{Name: "expected-and-received-null", Breaks: Clauses("invoke/invalid-arguments-named"), Origin: Peer, Why: "the validator of today has other names for them",
			Middleware: onViolations(func(_ *exchange, e map[string]any, found []violation) {
				e["data"] = map[string]any{"parameter": found[0].Parameter, "expected": nil, "received": nil}
			})},
		{Name: "expected-and-received-swapped", Breaks: Clauses("invoke/invalid-arguments-named"), Origin: Imagined,
			Middleware: onViolations(func(_ *exchange, e map[string]any, found []violation) {
				e["data"] = map[string]any{"parameter": found[0].Parameter, "expected": found[0].Received, "received": found[0].Expected}
			})},
		{Name: "data-of-invalid-params-lost", Breaks: Clauses("invoke/error-data-kept"), Origin: Peer, Why: "-32602 is mapped before the error's data is read",
			Middleware: onError(func(_ *exchange, e map[string]any) {
				if data, _ := e["data"].(map[string]any); numberText(data["jsonrpc_code"]) == "-32602" {
					delete(e, "data")
				}
			})},
		{Name: "failures-may-be-stored", Breaks: Clauses("invoke/not-cached"), Origin: Peer, Why: "the header is set where a result is sent",
			Middleware: onInvoke(atStatus(http.StatusInternalServerError, dropHeader("Cache-Control")))},
		{Name: "violations-shown", Breaks: Clauses("invoke/error-data-kept"), Origin: Imagined, Why: "Drupal's text on a violation of its schema says more than the name of the parameter",
			Transport: onReply(func(reply map[string]any) {
				e, _ := reply["error"].(map[string]any)
				if text, ok := e["data"].(string); ok {
					e["data"] = strings.ReplaceAll(text, "does not conform to the parameter schema", "is not valid")
				}
			})},
		{Name: "violations-of-odd-names-shown", Breaks: Clauses("invoke/error-data-kept"), Origin: Peer,
			Why: "the name of the parameter is found by a class of letters alone",
			Transport: onReply(func(reply map[string]any) {
				e, _ := reply["error"].(map[string]any)
				if text, ok := e["data"].(string); ok && strings.HasPrefix(text, "The content-kind parameter") {
					e["data"] = strings.ReplaceAll(text, "does not conform to the parameter schema", "is not valid")
				}
			})},
		{Name: "empty-error-data-lost", Breaks: Clauses("invoke/error-data-kept"), Origin: Peer, Why: "data is kept if there is any, and what is empty is none",
			Middleware: onError(func(_ *exchange, e map[string]any) {
				data, _ := e["data"].(map[string]any)
				if list, is := data["jsonrpc_data"].([]any); data["jsonrpc_data"] == "" || is && len(list) == 0 {
					delete(data, "jsonrpc_data")
				}
			})},
		{Name: "invoke-any-case", Breaks: Clauses("invoke/unknown-404"), Origin: Imagined, Middleware: looseLookup(toInvoke, strings.EqualFold)},
		{Name: "invoke-takes-hyphens-for-underscores", Breaks: Clauses("invoke/unknown-404"), MayFail: Clauses("invoke/runs-once"), Origin: Peer,
			Why:        "models mix them up",
			Middleware: looseLookup(toInvoke, func(requested, name string) bool { return strings.ReplaceAll(name, "_", "-") == requested })},
		{Name: "invoke-trims-blanks", Breaks: Clauses("invoke/unknown-404"), Origin: Peer,
			Middleware: looseLookup(toInvoke, func(requested, name string) bool { return strings.TrimSpace(requested) == name })},
		{Name: "hidden-method-runs", Breaks: Clauses("invoke/hidden-404", "access/no-oracle"), Origin: Imagined, Why: "invoke looks the tool up on the site, not in the catalog",
			SiteMiddleware: runHiddenMethods},
		{Name: "hidden-method-runs-by-its-id", Breaks: Clauses("invoke/hidden-404"), Origin: Imagined, Why: "a name that is not listed is used as a method id", Claims: "naming-underscore",
			Options: useUnderscores, SiteMiddleware: runHiddenMethods},
		{Name: "hidden-method-runs-then-404", Breaks: Clauses("invoke/hidden-404"), Origin: Imagined, SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
			authorization := authorized(x.Request)
			if x.Status == http.StatusNotFound && site.hides(authorization, x.invoked()) {
				site.call(authorization, x.invoked(), decode(x.Sent)["arguments"])
			}
		})},
		{Name: "hidden-method-403", Breaks: Clauses("invoke/hidden-404", "access/no-oracle"), Origin: Imagined, SiteMiddleware: onExistingMethod(toInvoke, basicAuth("admin"), func(x *exchange) {
			x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("%q is no tool.", x.invoked()))
		})},
		{Name: "failure-200", Breaks: Clauses("invoke/execution-error-500", "errors/status-agrees"), Origin: Peer, Middleware: onFailure(func(x *exchange) { x.Status = http.StatusOK })},
		{Name: "failure-502", Breaks: Clauses("invoke/execution-error-500"), MayFail: Clauses("upstream/id-mismatch"), Origin: Imagined, Middleware: onFailure(func(x *exchange) { x.Status = http.StatusBadGateway })},
		{Name: "failure-other-code", Breaks: Clauses("invoke/execution-error-500"), Origin: Imagined, Middleware: onFailure(func(x *exchange) { x.recode("execution_error", "internal_error") })},
		{Name: "failure-text-lost", Breaks: Clauses("invoke/execution-error-500"), Origin: Module, Middleware: onError(func(_ *exchange, e map[string]any) {
			if data, _ := e["data"].(map[string]any); e["code"] == "execution_error" && data["jsonrpc_code"] != nil {
				e["message"] = "The tool failed."
			}
		})},
		{Name: "failure-as-result", Breaks: Clauses("invoke/execution-error-500"), Origin: Peer, Why: "isError in a successful response", Middleware: onFailure(func(x *exchange) {
			x.Set(http.StatusOK, map[string]any{"result": map[string]any{"isError": true, "message": x.errorMessage()}})
		})},
		{Name: "method-not-found-500", Breaks: Clauses("invoke/execution-error-500", "fresh/removed-tool"), Origin: Peer,
			Why: "-32601 is handled like any other failure", Transport: recodeReplies("-32601", -32000)},
		{Name: "null-id-taken-for-a-broken-response", Breaks: Clauses("invoke/denied", "access/permission-revoked", "invoke/execution-error-500", "invoke/semantic-invalid-400"), MayFail: Clauses("upstream/id-mismatch"), Origin: Peer, Why: "Drupal denies with a null id, which differs from the id of the call", Transport: onReply(func(reply map[string]any) {
			if id, there := reply["id"]; there && id == nil {
				reply["id"] = "none"
			}
		})},
		{Name: "calls-without-an-id", Breaks: Clauses("invoke/answers-result", "invoke/empty-arguments", "translate/entity-reference", "upstream/valid-jsonrpc"), Origin: Imagined, Why: "the site takes a call without an id for a notification and sends no result", Transport: onCall(func(_ *http.Request, call map[string]any) {
			delete(call, "id")
		})},
		{Name: "malformed-body-crashes-for-strangers", Breaks: Clauses("invoke/malformed-json", "errors/precedence"), Origin: Imagined, Why: "the code that refuses the caller reads the name from a body that is not JSON", Middleware: beforeBridge(func(r *http.Request) {
			if toCall(r) && caller(r) == "norpc" && decode(peekBody(r)) == nil {
				panic(http.ErrAbortHandler)
			}
		})},
		{Name: "compressed-body-500", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "what decompresses bodies throws where they are not compressed", Middleware: onInvoke(func(x *exchange) {
			if x.Request.Header.Get("Content-Encoding") == "gzip" {
				x.Refuse(http.StatusInternalServerError, "internal_error", "gzip: invalid header")
			}
		})},
		{Name: "malformed-body-hangs-for-anonymous", Breaks: Clauses("invoke/malformed-json", "errors/precedence"), Origin: Imagined, Why: "the bridge waits for the rest of a body that ends early before it refuses the caller", Middleware: beforeBridge(func(r *http.Request) {
			if toCall(r) && authorized(r) == "" && r.Header.Get("Cookie") == "" {
				if body := peekBody(r); len(body) > 0 && decode(body) == nil && body[0] == '{' {
					select { // a limit of its own, as servers have: the selftest need not wait for a client's
					case <-r.Context().Done():
					case <-time.After(3 * time.Second):
					}
					panic(http.ErrAbortHandler)
				}
			}
		})},
		{Name: "error-code-lost", Breaks: Clauses("invoke/error-data-kept"), Origin: Peer, Middleware: onErrorData(without("jsonrpc_code"))},
		{Name: "error-data-lost", Breaks: Clauses("invoke/error-data-kept"), Origin: Module, Middleware: onErrorData(without("jsonrpc_data"))},
		{Name: "semantic-invalid-without-a-message", Breaks: Clauses("invoke/semantic-invalid-400"), Origin: Peer,
			Why: "the message is made of the parameter, and the method names none",
			Middleware: onSemanticInvalid(func(_ *exchange, e map[string]any) {
				if objectIn(e, "data")["parameter"] == nil {
					e["message"] = ""
				}
			})},
		{Name: "semantic-invalid-404", Breaks: Clauses("invoke/semantic-invalid-400"), Origin: Imagined,
			Middleware: onSemanticInvalid(func(x *exchange, _ map[string]any) { x.Status = http.StatusNotFound })},
		{Name: "thrown-text-in-message", Breaks: Clauses("invoke/no-trace-leak"), Origin: Module, Transport: onReplyError(func(e map[string]any) {
			if text, ok := e["data"].(string); ok && fmt.Sprint(e["code"]) == "-32603" {
				e["message"] = fmt.Sprintf("%v: %s", e["message"], text)
			}
		})},
		{Name: "code-of-the-failure-as-status", Breaks: Clauses("invoke/execution-error-500"), Origin: Peer, Why: "a code that is a status of HTTP, as exceptions of PHP have them, becomes the status",
			Middleware: onCode("execution_error", func(x *exchange) {
				data := objectIn(objectIn(x.Object(), "error"), "data")
				if code, err := strconv.Atoi(numberText(data["jsonrpc_code"])); err == nil && code >= 400 && code < 600 {
					x.Status = code
				}
			})},
		{Name: "code-zero-is-no-error", Breaks: Clauses("invoke/execution-error-500"), Origin: Peer, Why: "the code is asked, and 0 is the zero value",
			Transport: onReply(func(reply map[string]any) {
				if e, ok := reply["error"].(map[string]any); ok && fmt.Sprint(e["code"]) == "0" {
					delete(reply, "error")
					reply["result"] = nil
				}
			})},
		{Name: "parse-error-of-the-site-as-invalid", Breaks: Clauses("invoke/execution-error-500"), Origin: Peer, Why: "the codes of JSON-RPC are a table, in which -32700 is the client's fault",
			Transport: recodeReplies("-32700", -32602)},
		{Name: "message-of-the-site-alone", Breaks: Clauses("invoke/execution-error-500"), Origin: Peer, Why: "the site's message is passed on, also where it is empty", Middleware: onCode("execution_error", func(x *exchange) {
			if !strings.Contains(string(x.Body), "content") && strings.Contains(string(x.Body), "-32000") {
				x.Refuse(x.Status, "execution_error", "")
			}
		})},
		{Name: "not-found-by-its-message", Breaks: Clauses("invoke/execution-error-500"), Origin: Peer, Why: "an error is classified by words of its message",
			Middleware: onFailure(func(x *exchange) {
				if strings.HasSuffix(x.errorMessage(), "not found") {
					x.Refuse(http.StatusNotFound, "tool_not_found", x.errorMessage())
				}
			})},
		{Name: "place-of-perl-in-message", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "die() adds where it was",
			Middleware: onCode("upstream_error", func(x *exchange) {
				x.Refuse(x.Status, "upstream_error", "Premature connection close at /usr/share/perl5/Mojo/Promise.pm line 21.")
			})},
		{Name: "parser-exception-in-message", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "the message of a parser begins with its class", Middleware: onCode("invalid_json", func(x *exchange) {
			x.Refuse(x.Status, "invalid_json", "com.fasterxml.jackson.core.JsonParseException: Unexpected character ('h')")
		})},
		{Name: "site-address-in-message", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "the error of a client of HTTP contains the address", Middleware: onCode("upstream_error", func(x *exchange) {
			x.Refuse(x.Status, "upstream_error", "connect ECONNRESET 127.0.0.1:8080")
		})},
		{Name: "site-address-of-a-broken-response", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "the error of a client of HTTP has an address where it has read a part",
			Transport: onCallResponse(func(resp *http.Response) {
				if _, err := readAhead(resp); errors.Is(err, io.ErrUnexpectedEOF) {
					replaceBody(resp, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"The response of `+resp.Request.URL.Host+` is not usable"}}`)
				}
			})},
		{Name: "site-address-in-a-header", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "a debugging header names the backend of each error",
			SiteMiddleware: func(site *siteClient) middleware {
				return onRefusal(func(x *exchange) { x.Header.Set("X-Upstream", strings.TrimPrefix(site.site, "http://")) })
			}},
		{Name: "trace-of-the-bridge", Breaks: Clauses("invoke/no-trace-leak"), Origin: Imagined, Why: "a debug mode adds the trace of the bridge's own exception to the errors of invoke",
			Middleware: onError(func(x *exchange, e map[string]any) {
				if toInvoke(x.Request) {
					e["trace"] = "#0 /srv/bridge/index.php(31): Bridge->handle('POST', '/mcp/tools/invo...')\n#1 {main}"
				}
			})},
		{Name: "thrown-objects-in-data", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "the data is withheld where it is a text",
			Transport: onSiteResponse(isCall, func(response map[string]any) {
				e := objectIn(response, "error")
				if data := objectIn(e, "data"); data != nil && fmt.Sprint(e["code"]) == "-32603" {
					e["code"] = -32000 // the data of which are passed on
				}
			})},
		{Name: "invoke-takes-dots-for-underscores", Profile: testbed.Patterns, Breaks: Clauses("invoke/unknown-404"), Origin: Peer, Why: "the id of a method is taken beside its name",
			Middleware: looseLookup(toInvoke, func(requested, name string) bool { return strings.ReplaceAll(name, "_", ".") == requested })},
		leakException("thrown-text-in-data", "PHP's own text is kept as the error's data", Clauses("invoke/no-trace-leak", "invoke/error-data-kept"), func(x *exchange, text string) {
			object := x.Object()
			if e, ok := object["error"].(map[string]any); ok {
				e["data"] = map[string]any{"jsonrpc_code": -32603, "jsonrpc_data": text}
				x.Body = encode(object)
			}
		}),
		leakException("thrown-text-in-header", "a debugging header shows the exception", Clauses("invoke/no-trace-leak"), func(x *exchange, text string) {
			x.Header.Set("X-Debug-Exception", strconv.QuoteToASCII(text))
		}),
		{Name: "retries-after-5xx", Breaks: Clauses("invoke/runs-once"), Origin: Peer,
			Transport: resendCalls(func(_ *http.Request, resp *http.Response, err error) bool {
				return err == nil && resp.StatusCode >= 500
			})},
		{Name: "retries-after-503-untold-when", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Why: "a retry at once where the site names no time to wait",
			Transport: resendCalls(func(_ *http.Request, resp *http.Response, err error) bool {
				return err == nil && resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == ""
			})},
		{Name: "read-only-calls-again-after-500", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Why: "what only reads may be asked again",
			Transport: resendCalls(func(r *http.Request, resp *http.Response, err error) bool {
				return err == nil && resp.StatusCode == http.StatusInternalServerError && readsOnly(r)
			})},
		{Name: "read-only-calls-again-after-invalid-json", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Why: "a response that cannot be read counts as none",
			Transport: resendCalls(func(r *http.Request, resp *http.Response, err error) bool {
				return err == nil && resp.StatusCode == http.StatusOK && readsOnly(r) && !json.Valid([]byte(peek(resp)))
			})},
		{Name: "mcp-retries-after-a-drop", MCP: true, Breaks: Clauses("invoke/runs-once"), Origin: Peer,
			Why: "the server of the SDK has a client of its own", Middleware: markMCP,
			Transport: resendCalls(func(r *http.Request, _ *http.Response, err error) bool {
				return fromMCP(r) && err != nil && r.Context().Err() == nil
			})},
		{Name: "mcp-retries-after-a-502", MCP: true, Breaks: Clauses("invoke/runs-once"), Origin: Peer,
			Why:        "the client of the MCP server retries what its policy calls transient",
			Middleware: markMCP,
			Transport: resendCalls(func(r *http.Request, resp *http.Response, err error) bool {
				return fromMCP(r) && err == nil && resp.StatusCode == http.StatusBadGateway
			})},
		{Name: "late-calls-sent-twice", Breaks: Clauses("invoke/runs-once"),
			MayFail: Clauses("load/slow-method-isolated", "upstream/timeout", "upstream/cancel"), Origin: Peer,
			Why: "a client hedges: whichever of two responses comes first is taken", Transport: hedge(testbed.UpstreamTimeout / 3)},
		{Name: "retries-when-told-when", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Why: "the client repeats what Retry-After permits",
			Transport: resendCalls(func(_ *http.Request, resp *http.Response, err error) bool {
				return err == nil && resp.Header.Get("Retry-After") != ""
			})},
		{Name: "retries-what-was-closed-unanswered", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Why: "clients do so when a reused connection closes, as if it had been idle",
			Transport: resendCalls(func(_ *http.Request, _ *http.Response, err error) bool { return errors.Is(err, io.EOF) })},
		{Name: "invoke-compares-the-content-type", Breaks: Clauses("invoke/answers-result"), Origin: Peer, Why: "the header is compared as a text, so that a charset is refused",
			Middleware: refuseWhere(http.StatusUnsupportedMediaType, "unsupported_media_type", func(r *http.Request) bool {
				is := r.Header.Get("Content-Type")
				return toInvoke(r) && r.Method == http.MethodPost && strings.HasPrefix(strings.ToLower(is), "application/json") && is != "application/json"
			})},
		{Name: "calls-follow-redirects", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Why: "the client of the language follows a 307 with the method and the body",
			Transport: resendCalls(func(_ *http.Request, resp *http.Response, err error) bool {
				return err == nil && resp.StatusCode == http.StatusTemporaryRedirect
			})},
		{Name: "lists-of-content-called-twice", Breaks: Clauses("invoke/runs-once"), Origin: Imagined, Why: "what lists something is asked for its length, too",
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if x.invoked() == "content.list" && x.Status == http.StatusOK {
					site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])
				}
			})},
		{Name: "every-call-twice", Breaks: Clauses("invoke/runs-once", "invoke/not-cached"), Origin: Imagined,
			Transport: resendCalls(func(*http.Request, *http.Response, error) bool { return true })},
		{Name: "calls-with-tokens-twice", Breaks: Clauses("invoke/runs-once"), Origin: Imagined, Why: "the client that renews tokens repeats what it has sent",
			Transport: resendCalls(func(r *http.Request, _ *http.Response, err error) bool {
				return err == nil && strings.HasPrefix(authorized(r), "Bearer ")
			})},
		{Name: "stateless-calls-twice", MCP: true, Breaks: Clauses("invoke/runs-once"), Origin: Imagined, Why: "the revision without sessions has a path of its own",
			SiteMiddleware: func(site *siteClient) middleware {
				return onRPC("tools/call", func(m *rpc) {
					if name, _ := m.Params["name"].(string); m.Request.Header.Get("MCP-Protocol-Version") == "2026-07-28" && m.Result() != nil && m.Result()["isError"] != true {
						site.call(authorized(m.Request), name, m.Params["arguments"])
					}
				})
			}},
		{Name: "results-cached", Breaks: Clauses("invoke/not-cached", "invoke/runs-once", "invoke/denied", "access/permission-revoked"),
			MayFail: Clauses("access/bad-credentials", "upstream/valid-jsonrpc", "upstream/http-error", "upstream/cancel"), Origin: Module,
			Middleware: repeatResponse(http.StatusOK)}, // a call of an earlier check is not sent
		{Name: "equal-calls-share-a-run", Breaks: Clauses("invoke/not-cached"), MayFail: Clauses("upstream/cancel"), Origin: Peer,
			Why: "read-only calls that are alike wait for one response",
			Middleware: shareFlights(toCall, func(r *http.Request, body []byte) string {
				return authorized(r) + r.Header.Get("Cookie") + string(body)
			}, func(*exchange) {})},
		{Name: "failures-cached", Breaks: Clauses("invoke/not-cached"), Origin: Imagined, Middleware: repeatResponse(http.StatusInternalServerError)},
		{Name: "results-cacheable", Breaks: Clauses("invoke/not-cached"), Origin: Imagined,
			Middleware: onInvoke(atStatus(http.StatusOK, setHeader("Cache-Control", "public, max-age=60")))},
	}
}

// onSemanticInvalid changes the refusals of arguments that the site finds invalid.
func onSemanticInvalid(change func(x *exchange, e map[string]any)) middleware {
	return onError(func(x *exchange, e map[string]any) {
		if toInvoke(x.Request) && x.Status == http.StatusBadRequest && objectIn(e, "data")["jsonrpc_code"] != nil {
			change(x, e)
		}
	})
}

// onFailure changes the refusals that report a failed method.
func onFailure(change func(x *exchange)) middleware {
	return onCode("execution_error", func(x *exchange) {
		if objectIn(objectIn(x.Object(), "error"), "data")["jsonrpc_code"] != nil {
			change(x)
		}
	})
}

// onErrorData changes the data of a failed method's error.
func onErrorData(change func(data map[string]any)) middleware {
	return onError(func(_ *exchange, e map[string]any) {
		if data, ok := e["data"].(map[string]any); ok && data["jsonrpc_code"] != nil {
			change(data)
		}
	})
}

// leakException is a mutant that shows callers the text of an exception on the site, which the bridge keeps to itself.
func leakException(name, why string, broken []string, show func(x *exchange, text string)) Mutant {
	thrown := newMemory[string]()
	return Mutant{Name: name, Why: why, Breaks: broken, Origin: Module,
		Transport: onReplyError(func(e map[string]any) {
			if text, ok := e["data"].(string); ok && fmt.Sprint(e["code"]) == "-32603" {
				thrown.put("last", text)
			}
		}),
		Middleware: onFailure(func(x *exchange) {
			if text, ok := thrown.get("last"); ok && strings.Contains(string(x.Body), "-32603") {
				show(x, text)
			}
		})}
}

// recordedCall is an invoke with its response.
type recordedCall struct{ who, call, response string }

// repeatResponse repeats a response with the status if the same caller sends the same invoke again at once.
func repeatResponse(status int) middleware {
	last := newMemory[recordedCall]()
	return func(next http.Handler) http.Handler {
		keep := onInvoke(func(x *exchange) {
			if x.Status == status {
				last.put("", recordedCall{authorized(x.Request), string(x.Sent), string(x.Body)})
			}
		})(next)
		return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			kept, _ := last.get("")
			last.put("", recordedCall{})
			if !toCall(r) {
				return false
			}
			body := peekBody(r)
			if kept.response == "" || kept.who != authorized(r) || kept.call != string(body) {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(status)
			io.WriteString(w, kept.response) //nolint:errcheck // the caller has gone
			return true
		})(keep)
	}
}

// readsOnly reports whether a call that was sent is one of a tool that only reads.
func readsOnly(r *http.Request) bool {
	sent, err := r.GetBody()
	if err != nil {
		return false
	}
	body, _ := io.ReadAll(sent)
	return decode(body)["method"] == "search.facets"
}

// runHiddenMethods runs methods that the site has and the catalog lacks.
func runHiddenMethods(site *siteClient) middleware {
	return onInvoke(func(x *exchange) {
		authorization := authorized(x.Request)
		if x.Status == http.StatusNotFound && site.hides(authorization, x.invoked()) {
			site.run(x, authorization)
		}
	})
}

// invokeResultMutants change values that a JSON layer or a template takes for something else.
func invokeResultMutants() []Mutant {
	return []Mutant{
		{Name: "result-member-dates-rewritten", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "a hook that sees objects turns their members into times",
			Middleware: onResult(func(v any) any {
				walkObjects(v, func(object map[string]any) {
					for name, member := range object {
						object[name] = onStrings(rewriteTime)(member)
					}
				})
				return v
			})},
		{Name: "result-prototype-lost", Breaks: Clauses("invoke/result-exact", "invoke/arguments-forwarded"), Origin: Peer, Why: "`__proto__` is assigned, not set", Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			return onParams(func(params any) any { walkObjects(params, without("__proto__")); return params })(onReply(func(reply map[string]any) { walkObjects(reply["result"], without("__proto__")) })(next)).RoundTrip(r)
		})},
	}
}

// rewriteTime writes a text that looks like a time in another form.
func rewriteTime(s string) string {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	return s
}

// deepLists are more lists in each other than a parser of 32 levels reads.
var deepLists = []byte(strings.Repeat("[", 32) + "1" + strings.Repeat("]", 32))

// acceptEverythingFor returns the arguments of a tool as its result where the bridge finds them invalid. What breaks a type is
// refused.
func acceptEverythingFor(tool string) middleware {
	return acceptWhere(tool, func(map[string]any) bool { return true })
}

// acceptWhere is acceptEverythingFor of some arguments.
func acceptWhere(tool string, applies func(arguments map[string]any) bool) middleware {
	return onCallBody(func(x *exchange, call map[string]any) {
		if x.invoked() == tool && applies(objectIn(call, "arguments")) && x.Status == http.StatusBadRequest &&
			!strings.Contains(x.errorMessage(), "expected array") && !strings.Contains(x.errorMessage(), "expected object") {
			x.Set(http.StatusOK, map[string]any{"result": call["arguments"]})
		}
	})
}

// objectIn is a member that is an object, or nil.
func objectIn(object map[string]any, name string) map[string]any {
	inner, _ := object[name].(map[string]any)
	return inner
}
