package selftest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// How failures of a method, and refusals of any kind, are told.
var errorMutants = []Mutant{
	{Name: "unknown-tool-other-code", Breaks: Clauses("invoke/unknown-404", "errors/code-stable"), Origin: Imagined, Why: "describe and invoke disagree",
		Front: onInvoke(func(x *exchange) { x.recode("tool_not_found", "unknown_tool") })},
	{Name: "invoke-knows-constructor", Breaks: Clauses("invoke/unknown-404"), Origin: Peer, Why: "every object of JavaScript has one", Front: onInvoke(func(x *exchange) {
		if x.invoked() == "constructor" && x.Status == http.StatusNotFound {
			x.Refuse(http.StatusInternalServerError, "internal_error", "validate is not a function")
		}
	})},
	{Name: "odd-tool-name-500", Breaks: Clauses("invoke/unknown-404"), Origin: Peer, Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusNotFound && !oddless.MatchString(x.invoked()) {
			x.Refuse(http.StatusInternalServerError, "execution_error", fmt.Sprintf("The tool %q cannot be run.", x.invoked()))
		}
	})},
	{Name: "invoke-any-case", Breaks: Clauses("invoke/unknown-404"), Origin: Imagined, Front: lookingUp(toInvoke, strings.EqualFold)},
	{Name: "invoke-trims-blanks", Breaks: Clauses("invoke/unknown-404"), Origin: Peer,
		Front: lookingUp(toInvoke, func(asked, name string) bool { return strings.TrimSpace(asked) == name })},

	{Name: "hidden-method-runs", Breaks: Clauses("invoke/hidden-404", "access/no-oracle"), Origin: Imagined, Why: "invoke asks the site, not the catalog",
		Wired: runsHidden},
	{Name: "hidden-method-runs-by-its-id", Breaks: Clauses("invoke/hidden-404"), Origin: Imagined, Why: "what is no listed name is taken for an id", Claims: "naming-underscore",
		Options: underscoring, Wired: runsHidden},
	{Name: "hidden-method-runs-then-404", Breaks: Clauses("invoke/hidden-404"), Origin: Imagined, Wired: func(site *wire) front {
		return onInvoke(func(x *exchange) {
			authorization := x.Request.Header.Get("Authorization")
			if x.Status == http.StatusNotFound && site.hides(authorization, x.invoked()) {
				site.call(authorization, x.invoked(), decode(x.Sent)["arguments"])
			}
		})
	}},
	{Name: "hidden-method-403", Breaks: Clauses("invoke/hidden-404", "access/no-oracle"), Origin: Imagined, Wired: onKnown(toInvoke, signedAs("admin"), func(x *exchange) {
		x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("%q is no tool.", x.invoked()))
	})},

	{Name: "failure-200", Breaks: Clauses("invoke/execution-error-500", "errors/status-agrees"), Origin: Peer, Front: onFailure(func(x *exchange) { x.Status = http.StatusOK })},
	{Name: "failure-502", Breaks: Clauses("invoke/execution-error-500"), Origin: Imagined, Front: onFailure(func(x *exchange) { x.Status = http.StatusBadGateway })},
	{Name: "failure-other-code", Breaks: Clauses("invoke/execution-error-500"), Origin: Imagined, Front: onFailure(func(x *exchange) { x.recode("execution_error", "internal_error") })},
	{Name: "failure-text-lost", Breaks: Clauses("invoke/execution-error-500"), Origin: Module, Front: onError(func(_ *exchange, e map[string]any) {
		if data, _ := e["data"].(map[string]any); e["code"] == "execution_error" && data["jsonrpc_code"] != nil {
			e["message"] = "The tool failed."
		}
	})},
	{Name: "failure-as-result", Breaks: Clauses("invoke/execution-error-500"), Origin: Peer, Why: "isError inside a good answer", Front: onFailure(func(x *exchange) {
		x.Set(http.StatusOK, map[string]any{"result": map[string]any{"isError": true, "message": x.errorMessage()}})
	})},
	{Name: "server-errors-as-invalid", Breaks: Clauses("invoke/execution-error-500"), Origin: Imagined, Why: "a JSON-RPC code other than -32603 is the caller's fault",
		Upstream: onReplyError(func(e map[string]any) {
			if code := fmt.Sprint(e["code"]); code != "-32603" && code != "-32600" && code != "-32601" {
				e["code"] = -32602
			}
		})},

	{Name: "error-code-lost", Breaks: Clauses("invoke/error-data-kept"), Origin: Peer, Front: onErrorData(without("jsonrpc_code"))},
	{Name: "error-data-lost", Breaks: Clauses("invoke/error-data-kept"), Origin: Module, Front: onErrorData(without("jsonrpc_data"))},
	{Name: "error-code-as-text", Breaks: Clauses("invoke/error-data-kept"), Origin: Imagined, Front: onErrorData(func(data map[string]any) {
		if code, ok := data["jsonrpc_code"]; ok {
			data["jsonrpc_code"] = fmt.Sprint(code)
		}
	})},
	{Name: "error-data-as-text", Breaks: Clauses("invoke/error-data-kept"), Origin: Imagined, Front: onErrorData(func(data map[string]any) {
		switch inner := data["jsonrpc_data"].(type) {
		case map[string]any, []any:
			data["jsonrpc_data"] = string(encode(inner))
		}
	})},

	{Name: "semantic-invalid-500", Breaks: Clauses("invoke/semantic-invalid-400"), Origin: Module, Front: onInvoke(func(x *exchange) {
		e, _ := x.Object()["error"].(map[string]any)
		if data, _ := e["data"].(map[string]any); x.Status == http.StatusBadRequest && data["jsonrpc_code"] != nil {
			e["code"] = "execution_error"
			x.Set(http.StatusInternalServerError, map[string]any{"error": e})
		}
	})},
	{Name: "semantic-invalid-404", Breaks: Clauses("invoke/semantic-invalid-400"), Origin: Imagined, Front: onInvoke(func(x *exchange) {
		e, _ := x.Object()["error"].(map[string]any)
		if data, _ := e["data"].(map[string]any); x.Status == http.StatusBadRequest && data["jsonrpc_code"] != nil {
			x.Set(http.StatusNotFound, map[string]any{"error": e})
		}
	})},

	{Name: "thrown-text-in-message", Breaks: Clauses("invoke/no-trace-leak"), Origin: Module, Upstream: onReplyError(func(e map[string]any) {
		if text, ok := e["data"].(string); ok && fmt.Sprint(e["code"]) == "-32603" {
			e["message"] = fmt.Sprintf("%v: %s", e["message"], text)
		}
	})},

	leaking("thrown-text-in-data", "PHP's own text is kept as the error's data", Clauses("invoke/no-trace-leak", "invoke/error-data-kept"), func(x *exchange, text string) {
		object := x.Object()
		if e, ok := object["error"].(map[string]any); ok {
			e["data"] = map[string]any{"jsonrpc_code": -32603, "jsonrpc_data": text}
			x.Body = encode(object)
		}
	}),
	leaking("thrown-text-in-header", "a debugging header shows the exception", Clauses("invoke/no-trace-leak"), func(x *exchange, text string) {
		x.Header.Set("X-Debug-Exception", strconv.QuoteToASCII(text))
	}),

	{Name: "errors-as-html", Breaks: Clauses("errors/envelope"), Origin: Module, Front: onRefusal(func(x *exchange) { x.page(x.Status, x.errorMessage()) })},
	{Name: "denials-as-html", Breaks: Clauses("errors/envelope"), Origin: Module, Why: "only what Drupal itself refuses", Front: onRefusal(func(x *exchange) {
		if x.Status == http.StatusForbidden || x.Status == http.StatusUnauthorized {
			x.page(x.Status, "You are not authorized to access this page.")
		}
	})},
	{Name: "denials-in-drupals-form", Breaks: Clauses("errors/envelope"), Origin: Module, Front: onRefusal(func(x *exchange) {
		if x.Status == http.StatusForbidden || x.Status == http.StatusUnauthorized {
			x.Set(x.Status, map[string]any{"message": "The 'access mcp tool discovery' permission is required."})
		}
	})},
	{Name: "too-large-as-html", Breaks: Clauses("errors/envelope"), Origin: Peer, Why: "a server in front of the bridge refuses in its own words",
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !toInvoke(r) || small(r) {
				return false
			}
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			io.WriteString(w, "<html><title>413 Request Entity Too Large</title></html>") //nolint:errcheck // the caller has gone
			return true
		})},
	{Name: "not-allowed-as-html", Breaks: Clauses("errors/envelope"), Origin: Module, Front: onRefusal(func(x *exchange) {
		if x.Status == http.StatusMethodNotAllowed {
			x.page(x.Status, "Client error")
		}
	})},
	{Name: "not-scalar-as-text", Breaks: Clauses("errors/envelope"), Origin: Module, Front: onAnswer(everything, func(x *exchange) {
		if strings.Contains(x.Request.URL.RawQuery, "[") && x.Status >= 400 {
			x.Body = []byte(`Input value "name" contains a non-scalar value.`)
			x.Header.Set("Content-Type", "text/plain; charset=UTF-8")
		}
	})},
	{Name: "error-is-a-string", Breaks: Clauses("errors/envelope"), Origin: Peer, Front: onNotAllowed(func(x *exchange, _ map[string]any) { x.Set(x.Status, map[string]any{"error": x.errorMessage()}) })},
	{Name: "error-message-empty", Breaks: Clauses("errors/envelope"), Origin: Imagined, Front: onNotAllowed(func(_ *exchange, e map[string]any) { e["message"] = "" })},
	{Name: "error-code-number", Breaks: Clauses("errors/envelope", "errors/code-stable"), Origin: Peer, Front: onNotAllowed(func(x *exchange, e map[string]any) { e["code"] = x.Status })},
	{Name: "error-beside-result", Breaks: Clauses("errors/envelope"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if object := x.Object(); object != nil && toInvoke(x.Request) {
			object["result"] = nil
			x.Body = encode(object)
		}
	})},
	{Name: "error-beside-tools", Breaks: Clauses("errors/envelope"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if object := x.Object(); object != nil && toList(x.Request) {
			object["tools"] = []any{}
			x.Body = encode(object)
		}
	})},

	{Name: "error-code-camel-case", Breaks: Clauses("errors/code-stable"), Origin: Imagined, Front: onNotAllowed(func(_ *exchange, e map[string]any) { e["code"] = camelCase(fmt.Sprint(e["code"])) })},
	{Name: "error-code-is-status", Breaks: Clauses("errors/code-stable"), Origin: Peer, Front: onNotAllowed(func(x *exchange, e map[string]any) { e["code"] = strconv.Itoa(x.Status) })},
	{Name: "method-not-allowed-other-code-on-invoke", Breaks: Clauses("errors/code-stable"), Origin: Imagined, Front: onInvoke(func(x *exchange) { x.recode("method_not_allowed", "post_only") })},

	{Name: "errors-with-200", Breaks: Clauses("errors/status-agrees"), Origin: Peer, Front: onRefusal(func(x *exchange) { x.Status = http.StatusOK })},
	{Name: "invalid-arguments-with-200", Breaks: Clauses("errors/status-agrees", "invoke/invalid-arguments-400"), Origin: Peer, Front: onCode("invalid_params", func(x *exchange) {
		if len(x.violations()) > 0 {
			x.Status = http.StatusOK
		}
	})},
	{Name: "falsy-results-with-500", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Front: onInvoke(func(x *exchange) {
		if result, ok := x.Object()["result"]; ok && result == false {
			x.Status = http.StatusInternalServerError
		}
	})},

	{Name: "messages-say-nothing", Breaks: Clauses("errors/message-helps"), Origin: Peer, Front: onError(func(x *exchange, e map[string]any) {
		if code := e["code"]; code == "invalid_params" || code == "missing_parameter" {
			e["message"] = http.StatusText(x.Status)
		}
	})},
	{Name: "message-names-no-parameter", Breaks: Clauses("errors/message-helps"), Origin: Imagined, Front: onError(func(_ *exchange, e map[string]any) {
		if e["code"] == "missing_parameter" {
			e["message"] = "A required parameter is missing."
		}
	})},

	{Name: "shape-before-permission", Breaks: Clauses("errors/precedence", "access/describe-403"), Origin: Imagined, Front: onAnswer(toDescribe, func(x *exchange) {
		if x.Status == http.StatusForbidden && x.described() == "" {
			x.Refuse(http.StatusBadRequest, "missing_parameter", "Required parameter \"name\" is missing.")
		}
	})},
	{Name: "existence-before-shape", Breaks: Clauses("errors/precedence"), Origin: Imagined, Why: "an unknown tool without arguments is a 404", Front: onCallBody(func(x *exchange, call map[string]any) {
		name, named := call["name"].(string)
		if _, ok := call["arguments"].(map[string]any); ok || !named || name == "" || x.Status != http.StatusBadRequest {
			return
		}
		if _, known := x.tool(name); !known {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", name))
		}
	})},
	{Name: "anonymous-shape-first", Breaks: Clauses("errors/precedence"), Origin: Module, Why: "a broken body is a 400 even for those who may not call at all", Front: onCallBodyRaw(func(x *exchange) {
		if (x.Status == http.StatusForbidden || x.Status == http.StatusUnauthorized) && decode(x.Sent) == nil {
			x.Refuse(http.StatusBadRequest, "invalid_json", "The body is no JSON.")
		}
	})},

	{Name: "retries-after-5xx", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		return again(r, next, func(resp *http.Response, err error) bool { return err == nil && resp.StatusCode >= 500 })
	})},
	{Name: "retries-after-a-drop", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		return again(r, next, func(_ *http.Response, err error) bool { return err != nil && r.Context().Err() == nil })
	})},
	{Name: "retries-what-was-closed-unanswered", Breaks: Clauses("invoke/runs-once"), Origin: Peer, Why: "as clients do that take the end of a connection they used before for an idle one's", Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		return again(r, next, func(_ *http.Response, err error) bool { return errors.Is(err, io.EOF) })
	})},
	{Name: "retries-what-only-reads", Breaks: Clauses("invoke/runs-once"), Origin: Imagined, Why: "readOnlyHint is a hint", Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		reads := onlyReads(r)
		return again(r, next, func(resp *http.Response, err error) bool { return reads && (err != nil || resp.StatusCode >= 500) })
	})},
	{Name: "every-call-twice", Breaks: Clauses("invoke/runs-once", "invoke/not-cached"), Origin: Imagined, Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		return again(r, next, func(*http.Response, error) bool { return isCall(r) })
	})},

	{Name: "results-cached", Breaks: Clauses("invoke/not-cached", "invoke/runs-once", "invoke/denied", "access/permission-revoked"), Origin: Module, Front: cachedAnswers(http.StatusOK)},
	{Name: "failures-cached", Breaks: Clauses("invoke/not-cached"), Origin: Imagined, Front: cachedAnswers(http.StatusInternalServerError)},
	{Name: "results-cacheable", Breaks: Clauses("invoke/not-cached"), Origin: Imagined, Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusOK {
			x.Header.Set("Cache-Control", "public, max-age=60")
		}
	})},
	{Name: "results-without-cache-control", Breaks: Clauses("invoke/not-cached"), Origin: Imagined, Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusOK {
			x.Header.Del("Cache-Control")
		}
	})},
}

// oddless matches the names that a method may have.
var oddless = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// onFailure changes the refusals that tell of a method that failed.
func onFailure(change func(x *exchange)) front {
	return onCode("execution_error", func(x *exchange) {
		e, _ := x.Object()["error"].(map[string]any)
		if data, _ := e["data"].(map[string]any); data["jsonrpc_code"] != nil {
			change(x)
		}
	})
}

// onNotAllowed changes the error object of a 405, of which no other clause names the code.
func onNotAllowed(change func(x *exchange, e map[string]any)) front {
	return onRefusal(func(x *exchange) {
		object := x.Object()
		if e, ok := object["error"].(map[string]any); ok && x.Status == http.StatusMethodNotAllowed {
			x.Body = nil
			if change(x, e); x.Body == nil {
				x.Body = encode(object)
			}
		}
	})
}

// onReplyError changes the JSON-RPC errors that the site answers.
func onReplyError(change func(e map[string]any)) upstream {
	return onReply(func(reply map[string]any) {
		if e, ok := reply["error"].(map[string]any); ok {
			change(e)
		}
	})
}

// onErrorData changes what a failed method's error carries beside its message.
func onErrorData(change func(data map[string]any)) front {
	return onError(func(_ *exchange, e map[string]any) {
		if data, ok := e["data"].(map[string]any); ok && data["jsonrpc_code"] != nil {
			change(data)
		}
	})
}

// leaking shows callers the text that a method threw, which the bridge keeps to itself.
func leaking(name, why string, broken []string, show func(x *exchange, text string)) Mutant {
	thrown := newTable[string]()
	return Mutant{Name: name, Why: why, Breaks: broken, Origin: Module,
		Upstream: onReplyError(func(e map[string]any) {
			if text, ok := e["data"].(string); ok && fmt.Sprint(e["code"]) == "-32603" {
				thrown.put("last", text)
			}
		}),
		Front: onFailure(func(x *exchange) {
			if text, ok := thrown.get("last"); ok && strings.Contains(string(x.Body), "-32603") {
				show(x, text)
			}
		})}
}

// onCallBodyRaw changes the answers to invokes by POST, whatever the body is.
func onCallBodyRaw(change func(x *exchange)) front {
	return onInvoke(func(x *exchange) {
		if x.Method == http.MethodPost {
			change(x)
		}
	})
}

func camelCase(s string) string {
	words := strings.Split(s, "_")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// again sends a call a second time where the first answer asks for it.
func again(r *http.Request, next http.RoundTripper, wanted func(*http.Response, error) bool) (*http.Response, error) {
	if !isCall(r) {
		return next.RoundTrip(r)
	}
	body := drain(r)
	first := r.Clone(r.Context())
	fill(first, body)
	resp, err := next.RoundTrip(first)
	if !wanted(resp, err) {
		return resp, err
	}
	if err == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // so that the connection is used again
		resp.Body.Close()
	}
	second := r.Clone(r.Context())
	fill(second, body)
	return next.RoundTrip(second)
}

// onlyReads tells whether a call is of a method of the default site that says so itself.
func onlyReads(r *http.Request) bool {
	body := drain(r)
	fill(r, body)
	id, _ := decode(body)["method"].(string)
	site, err := fixtures.Builtin("default")
	if err != nil {
		panic(err)
	}
	m, ok := site.Method(id)
	return ok && m.MCP != nil && decode(m.MCP.Annotations)["readOnlyHint"] == true
}

// repeated is an invoke with its answer.
type repeated struct{ who, call, answer string }

// cachedAnswers gives a caller who asks the same again at once the same answer of the status again.
func cachedAnswers(status int) front {
	last := newTable[repeated]()
	return func(next http.Handler) http.Handler {
		keep := onInvoke(func(x *exchange) {
			if x.Status == status {
				last.put("", repeated{x.Request.Header.Get("Authorization"), string(x.Sent), string(x.Body)})
			}
		})(next)
		return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			kept, _ := last.get("")
			last.put("", repeated{})
			if !toInvoke(r) || r.Method != http.MethodPost || !small(r) {
				return false
			}
			body := drain(r)
			fill(r, body)
			if kept.answer == "" || kept.who != r.Header.Get("Authorization") || kept.call != string(body) {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(status)
			io.WriteString(w, kept.answer) //nolint:errcheck // the caller has gone
			return true
		})(keep)
	}
}

// runsHidden has invoke run what the site has and the catalog has not.
func runsHidden(site *wire) front {
	return onInvoke(func(x *exchange) {
		authorization := x.Request.Header.Get("Authorization")
		if x.Status == http.StatusNotFound && site.hides(authorization, x.invoked()) {
			site.run(x, authorization)
		}
	})
}
