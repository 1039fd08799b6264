package mutants

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// errorMutants break the error envelope, its codes or its status.
func errorMutants() []Mutant {
	return []Mutant{
		{Name: "errors-as-html", Breaks: Clauses("errors/envelope"), Origin: Module, Middleware: onRefusal(func(x *exchange) { x.page(x.Status, x.errorMessage()) })},
		{Name: "denials-in-drupals-form", Breaks: Clauses("errors/envelope"), Origin: Module, Middleware: onRefusal(func(x *exchange) {
			if x.Status == http.StatusForbidden || x.Status == http.StatusUnauthorized {
				x.Set(x.Status, map[string]any{"message": "The 'access mcp tool discovery' permission is required."})
			}
		})},
		{Name: "errors-as-html-to-any-accept", Breaks: Clauses("errors/envelope"), Origin: Peer,
			Why: "frameworks send errors as JSON where Accept asks for it by name",
			Middleware: onRefusal(func(x *exchange) {
				if accept := x.Request.Header.Get("Accept"); accept == "*/*" || accept == "" {
					x.page(x.Status, "Error")
				}
			})},
		{Name: "errors-in-latin-1", Breaks: Clauses("errors/envelope", "http/trailing-and-case", "invoke/execution-error-500", "invoke/semantic-invalid-400"),
			Origin: Peer, Why: "the framework's charset is announced, whatever the body is in", Middleware: onRefusal(func(x *exchange) {
				if !toDescribe(x.Request) {
					x.Header.Set("Content-Type", "application/json; charset=ISO-8859-1")
				}
			})},
		{Name: "two-cursors-as-html", Breaks: Clauses("errors/envelope"), Origin: Peer, Why: "a repeated parameter is a list, which the decoder does not take",
			Middleware: onResponse(toList, func(x *exchange) {
				if len(x.Request.URL.Query()["cursor"]) > 1 {
					x.page(http.StatusInternalServerError, "Error")
				}
			})},
		{Name: "denials-with-a-code-of-the-framework", Breaks: Clauses("errors/code-stable"), Origin: Peer, Why: "the code is made of the status",
			Middleware: onResponse(allRequests, func(x *exchange) { x.recode("access_denied", "forbidden") })},
		{Name: "verbs-with-a-code-of-their-own", Breaks: Clauses("errors/code-stable"), Origin: Peer, Why: "the router has names for its refusals",
			Middleware: onResponse(allRequests, func(x *exchange) { x.recode("method_not_allowed", "wrong_method") })},
		{Name: "too-large-as-html", Breaks: Clauses("errors/envelope"), Origin: Peer, Why: "a server in front of the bridge sends its own error page",
			Middleware: tooLarge("text/html", "<html><title>413 Request Entity Too Large</title></html>")},
		{Name: "too-large-by-another-code", Breaks: Clauses("errors/code-stable"), Origin: Peer, Why: "the framework's own code",
			Middleware: tooLarge("application/json", `{"error":{"code":"payload_too_large","message":"The body is too long."}}`)},
		{Name: "denials-of-the-site-without-a-code", Breaks: Clauses("errors/code-stable"), Origin: Imagined,
			Why: "the site's -32600 to a caller who has lost a permission is rare",
			Middleware: onInvoke(func(x *exchange) {
				if name, _, _ := x.Request.BasicAuth(); name == "agent" && x.Status == http.StatusForbidden {
					x.recode("access_denied", "")
				}
			})},
		{Name: "not-allowed-as-html", Breaks: Clauses("errors/envelope"), Origin: Module,
			Middleware: onRefusal(atStatus(http.StatusMethodNotAllowed, func(x *exchange) { x.page(x.Status, "Client error") }))},
		{Name: "not-scalar-as-text", Breaks: Clauses("errors/envelope"), Origin: Module, Middleware: onResponse(allRequests, func(x *exchange) {
			if strings.Contains(x.Request.URL.RawQuery, "[") && x.Status >= 400 {
				x.Body = []byte(`Input value "name" contains a non-scalar value.`)
				x.Header.Set("Content-Type", "text/plain; charset=UTF-8")
			}
		})},
		{Name: "two-names-without-a-message", Breaks: Clauses("errors/envelope"), Origin: Imagined, Why: "the message of a case that nobody has tried is empty",
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if len(x.Request.URL.Query()["name"]) > 1 && x.Status >= 400 {
					x.Refuse(x.Status, "invalid_request", "")
				}
			})},
		{Name: "error-is-a-string", Breaks: Clauses("errors/envelope"), Origin: Peer, Middleware: onNotAllowed(func(x *exchange, _ map[string]any) { x.Set(x.Status, map[string]any{"error": x.errorMessage()}) })},
		{Name: "error-code-number", Breaks: Clauses("errors/envelope", "errors/code-stable"), Origin: Peer, Middleware: onNotAllowed(func(x *exchange, e map[string]any) { e["code"] = x.Status })},
		{Name: "wrong-tokens-as-html", Breaks: Clauses("errors/envelope"), Origin: Module, Why: "each provider of authentication has errors of its own", Middleware: onRefusal(func(x *exchange) {
			if strings.HasPrefix(authorized(x.Request), "Bearer ") {
				x.page(x.Status, "The token is invalid.")
			}
		})},
		{Name: "error-code-camel-case", Breaks: Clauses("errors/code-stable"), Origin: Imagined, Middleware: onNotAllowed(func(_ *exchange, e map[string]any) { e["code"] = camelCase(fmt.Sprint(e["code"])) })},
		{Name: "method-not-allowed-other-code-on-invoke", Breaks: Clauses("errors/code-stable"), Origin: Imagined, Middleware: onInvoke(func(x *exchange) { x.recode("method_not_allowed", "post_only") })},
		{Name: "errors-with-200", Breaks: Clauses("errors/status-agrees"), Origin: Peer, Middleware: onRefusal(func(x *exchange) { x.Status = http.StatusOK })},
		{Name: "invalid-arguments-with-200", Breaks: Clauses("errors/status-agrees", "invoke/invalid-arguments-400"), Origin: Peer,
			Middleware: onViolations(func(x *exchange, _ map[string]any, _ []violation) { x.Status = http.StatusOK })},
		{Name: "bounds-not-in-message", Breaks: Clauses("errors/message-helps"), Origin: Peer, Why: "the message is made for wrong types alone",
			Middleware: onOtherViolations(func(e map[string]any, _ violation) { e["message"] = "The arguments are not valid." })},
		{Name: "missing-argument-unnamed", Breaks: Clauses("errors/message-helps"), Origin: Imagined, Why: "a text of the site that is read in part",
			Middleware: onViolations(func(_ *exchange, e map[string]any, found []violation) {
				if onlyKeywords("required")(found) {
					e["message"] = "The arguments are invalid."
				}
			})},
		{Name: "message-names-no-parameter", Breaks: Clauses("errors/message-helps"), Origin: Imagined, Middleware: onError(func(_ *exchange, e map[string]any) {
			if e["code"] == "missing_parameter" {
				e["message"] = "A required parameter is missing."
			}
		})},
		{Name: "shape-before-permission", Breaks: Clauses("errors/precedence", "access/describe-403"), Origin: Imagined, Middleware: onResponse(toDescribe, func(x *exchange) {
			if x.Status == http.StatusForbidden && x.described() == "" {
				x.Refuse(http.StatusBadRequest, "missing_parameter", "Required parameter \"name\" is missing.")
			}
		})},
		{Name: "existence-before-shape", Breaks: Clauses("errors/precedence"), Origin: Imagined, Why: "an unknown tool without arguments is a 404", Middleware: onCallBody(func(x *exchange, call map[string]any) {
			name, named := call["name"].(string)
			if _, ok := call["arguments"].(map[string]any); ok || !named || name == "" || x.Status != http.StatusBadRequest {
				return
			}
			if _, known := x.tool(name); !known {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", name))
			}
		})},
		{Name: "anonymous-shape-first", Breaks: Clauses("errors/precedence"), Origin: Module, Why: "a malformed body gives 400 even to callers without permission", Middleware: onCallBodyRaw(func(x *exchange) {
			if (x.Status == http.StatusForbidden || x.Status == http.StatusUnauthorized) && decode(x.Sent) == nil {
				x.Refuse(http.StatusBadRequest, "invalid_json", "The body is no JSON.")
			}
		})},
		{Name: "anonymous-description-without-a-name", Breaks: Clauses("errors/precedence"), Origin: Peer,
			Why: "a parameter is read before the route's guard, which lets callers with credentials through",
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if x.anonymous() && x.described() == "" && (x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden) {
					x.Header.Del("WWW-Authenticate")
					x.Refuse(http.StatusBadRequest, "missing_parameter", "The parameter name is missing.")
				}
			})},
	}
}

// errorVariants use other messages, statuses and data than the reference.
func errorVariants() []Mutant {
	return []Mutant{
		{Name: "errors-that-count", Why: "an error may hold a reference and a duration, which repeat now and then", Middleware: countingErrors()},
		{Name: "other-words", Why: "the contract leaves messages open, as long as they name what was wrong", Middleware: onError(func(x *exchange, e map[string]any) {
			e["message"] = fmt.Sprintf("Leider nicht: %s (%s)", e["message"], x.Request.URL.Path)
		})},
		{Name: "messages-with-references", Why: "every message has its own reference number", Middleware: onError(func(_ *exchange, e map[string]any) {
			e["message"] = fmt.Sprintf("%s [ref %08x]", e["message"], uint32(time.Now().UnixNano()))
		})},
		{Name: "error-data-everywhere", Why: "data is optional", Middleware: onError(func(x *exchange, e map[string]any) {
			if e["data"] == nil {
				e["data"] = map[string]any{"status": x.Status}
			}
		})},
		{Name: "errors-without-data", Why: "data is optional; its content is a SHOULD", MayFail: Clauses("invoke/invalid-arguments-named", "invoke/error-data-kept"),
			Middleware: onError(func(_ *exchange, e map[string]any) { delete(e, "data") })},
		{Name: "failure-in-the-methods-own-words", Why: "the method's message without the bridge's prefix", Middleware: onError(func(_ *exchange, e map[string]any) {
			if _, said, ok := strings.Cut(fmt.Sprint(e["message"]), " failed: "); ok && e["code"] == "execution_error" {
				e["message"] = said
			}
		})},
	}
}

// countingErrors adds to each error what differs between most requests and agrees between some.
func countingErrors() middleware {
	var sent atomic.Int64
	return onResponse(allRequests, func(x *exchange) {
		n := sent.Add(1)
		object := x.Object()
		if object == nil || toMCP(x.Request) {
			return
		}
		if e, ok := object["error"].(map[string]any); ok {
			e["message"] = fmt.Sprintf("%v (reference %d)", e["message"], 10+n%5)
		}
		object["took_ms"] = n / 2 % 7
		if object["tools"] == nil && object["tool"] == nil {
			x.Body = encode(object)
		}
	})
}

// tooLarge refuses the body of an invoke that is long, as a server in front of a bridge does.
func tooLarge(contentType, body string) middleware {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toInvoke(r) || isSmall(r) {
			return false
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		io.WriteString(w, body) //nolint:errcheck // the caller has gone
		return true
	})
}

// onNotAllowed changes the error object of a 405, whose code no other clause names.
func onNotAllowed(change func(x *exchange, e map[string]any)) middleware {
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

// onCallBodyRaw changes the responses to invokes by POST, whatever the body is.
func onCallBodyRaw(change func(x *exchange)) middleware {
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
