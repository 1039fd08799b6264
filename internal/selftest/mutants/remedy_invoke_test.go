package mutants

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// invokeRemedies are applied to calls: their form, arguments, results and failures.
func invokeRemedies() []Remedy {
	return []Remedy{
		{Clause: "invoke/answers-result", Mutant: "invoke-jsonrpc-envelope", Front: front(withCall(copyResult)), After: atTheSite(nil)},
		{Clause: "invoke/result-exact", Mutant: "repaired-results-through-float64", Front: front(withCall(copyResult)), After: atTheSite(nil)},
		{Clause: "invoke/null-result", Mutant: "null-result-empty-answer", Front: front(withCall(copyResult)), After: atTheSite(nil)},
		{Clause: "invoke/arguments-forwarded", Mutant: "arguments-through-float64", Front: front(withCall(nil)), After: atTheSite(func(r *http.Request, c *call) {
			body := readBody(r)
			if params, ok := decode(body)["params"].(map[string]any); isCall(r) && ok && params != nil && c.arguments != nil {
				body = member(body, "params", c.arguments)
			}
			if body != nil {
				setBody(r, body)
			}
		})},
		{Clause: "invoke/malformed-json", Mutant: "trailing-garbage-ignored", Front: front(checkForm(wellFormed))},
		{Clause: "invoke/body-not-object", Mutant: "body-null-404", Front: front(checkForm(wellFormed, isObject))},
		{Clause: "invoke/missing-name", Mutant: "name-list-of-one-runs", Front: front(checkForm(wellFormed, isObject, hasName))},
		{Clause: "invoke/missing-arguments", Mutant: "arguments-null-runs", Front: front(checkForm(wellFormed, isObject, hasName, hasArguments))},
		{Clause: "invoke/duplicate-members", Mutant: "duplicate-members-last-wins", Front: front(checkForm(wellFormed))},
		{Clause: "invoke/large-body", Mutant: "deep-nesting-500", Front: front(boundBody)},
		{Clause: "invoke/post-only", Mutant: "get-executes", Front: front(allowOnly(toInvoke, http.MethodPost))},
		{Clause: "invoke/not-cached", Mutant: "results-cacheable", Front: front(onInvoke(func(x *exchange) { x.Header.Set("Cache-Control", "no-store") }))},
		{Clause: "invoke/invalid-arguments-400", Mutant: "nothing-validated", Front: front(validateArguments)},
		{Clause: "upstream/eager-validation", Mutant: "site-asked-before-validation", Front: front(validateArguments)},
		{Clause: "invoke/undeclared-argument", Mutant: "closed-schemas-unenforced", Front: front(validateArguments)},
		{Clause: "invoke/invalid-arguments-named", Mutant: "missing-argument-not-in-data", Front: front(validateArguments)},
		{Clause: "invoke/output-matches-schema", Mutant: "output-unchecked", Front: front(onInvoke(func(x *exchange) {
			t, ok := x.tool(x.invoked())
			result, there := x.Object()["result"]
			if x.Status != http.StatusOK || !ok || !there || t["outputSchema"] == nil {
				return
			}
			output, _ := t["outputSchema"].(map[string]any)
			if len(violationsOf(output, encode(match.WithObjects(result, output)))) > 0 { // PHP's [] for {}
				x.Refuse(http.StatusInternalServerError, "execution_error", "The result does not conform to the output schema.")
			}
		}))},
		{Clause: "invoke/unknown-404", Mutant: "invoke-any-case", Front: front(lookUp)},
		{Clause: "invoke/hidden-404", Mutant: "hidden-method-runs", Front: front(lookUp)},
		{Clause: "filter/invoke-guarded", Mutant: "filter-on-the-list-alone", Front: front(lookUp)},
		{Clause: "invoke/denied", Mutant: "sites-denial-500", Front: front(withCall(mapErrors)), After: atTheSite(nil)},
		{Clause: "invoke/execution-error-500", Mutant: "failure-as-result", Front: front(withCall(mapErrors)), After: atTheSite(nil)},
		{Clause: "invoke/semantic-invalid-400", Mutant: "semantic-invalid-404", Front: front(withCall(mapErrors)), After: atTheSite(nil)},
		{Clause: "fresh/removed-tool", Mutant: "method-not-found-500", Front: front(withCall(mapErrorsAndRefetch)), After: atTheSite(nil)},
		{Clause: "upstream/error-any-status", Mutant: "errors-under-500-lost", Front: front(withCall(mapErrors)), After: atTheSite(nil)},
		{Clause: "invoke/denied-clear", Mutant: "broad-denied-unclear", Front: front(withCall(func(x *exchange, c *call) {
			if c.denied() {
				x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("You may not run %s.", x.invoked()))
			}
		})), After: atTheSite(nil)},
		{Clause: "invoke/error-data-kept", Mutant: "error-data-lost", Front: front(withCall(func(x *exchange, c *call) {
			if e := errorOf(x); e != nil && c.reply.Error != nil {
				e["data"] = c.data()
				x.Body = encode(map[string]any{"error": e})
			}
		})), After: atTheSite(nil)},
		{Clause: "invoke/no-trace-leak", Mutant: "thrown-text-in-message", Front: front(withCall(func(x *exchange, c *call) {
			if e := errorOf(x); e != nil && c.reply.Error != nil && c.reply.Error.Code == -32603 {
				e["message"] = c.reply.Error.Message
				x.Body = encode(map[string]any{"error": e})
			}
		})), After: atTheSite(nil)},
	}
}

// copyResult copies the site's bytes of the result into the response, alone.
func copyResult(x *exchange, c *call) {
	if x.Status == http.StatusOK && c.reply.Result != nil && c.reply.Error == nil {
		x.Body = []byte(`{"result":` + string(c.reply.Result) + `}`)
		x.Header.Set("Content-Type", "application/json")
	}
}

// data is what the error of a response keeps of the site's error: its code, and its data where they are not PHP's own text.
func (c *call) data() map[string]any {
	data := map[string]any{"jsonrpc_code": c.reply.Error.Code}
	if value, err := exact.Parse(c.reply.Error.Data); err == nil && c.reply.Error.Code != -32603 && !strings.Contains(fmt.Sprint(value), "does not conform") {
		data["jsonrpc_data"] = value
	}
	return data
}

func (c *call) denied() bool {
	e := c.reply.Error
	return e != nil && e.Code == -32600 && strings.HasPrefix(string(e.Data), `"Access Denied`)
}

// mapErrorsAndRefetch is mapErrors, and empties the cache where the site does not know the method.
func mapErrorsAndRefetch(x *exchange, c *call) {
	mapErrors(x, c)
	if e := c.reply.Error; e != nil && e.Code == -32601 {
		x.as("admin").Send(http.MethodPost, "/mcp/admin/invalidate", nil)
	}
}

// mapErrors makes the status and the code of the site's JSON-RPC error: -32602 is 400, -32601 404, a denial 403, every other
// code 500.
func mapErrors(x *exchange, c *call) {
	e := c.reply.Error
	if e == nil || c.status == http.StatusUnauthorized || c.status == http.StatusForbidden {
		return
	}
	status, code := http.StatusInternalServerError, "execution_error"
	switch {
	case e.Code == -32602:
		status, code = http.StatusBadRequest, "invalid_params"
	case e.Code == -32601:
		status, code = http.StatusNotFound, "tool_not_found"
	case c.denied():
		status, code = http.StatusForbidden, "access_denied"
	}
	if now := errorOf(x); x.Status == status && now["code"] == code {
		return
	}
	message := cmp.Or(e.Message, "The method failed.")
	if status == http.StatusNotFound {
		message = fmt.Sprintf("There is no tool named %q.", x.invoked())
	}
	failure := map[string]any{"code": code, "message": message}
	if status == http.StatusBadRequest || status == http.StatusInternalServerError {
		failure["data"] = c.data()
	}
	x.Set(status, map[string]any{"error": failure})
}

// allowOnly refuses the other methods at the paths that match.
func allowOnly(matches func(*http.Request) bool, methods ...string) middleware {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !matches(r) || r.Method == http.MethodOptions || slices.Contains(methods, r.Method) {
			return false
		}
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return refuseAt(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "Use "+methods[0]+".")
	})
}

// fault says what is wrong with the body of a call; "" for nothing.
type fault func(body []byte) (code, message string)

// checkForm refuses a call by the first fault of its body, after the permission: what the bridge refuses a call of no tool
// with 401 or 403 for stays that.
func checkForm(faults ...fault) middleware {
	return onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !toCall(r) {
			return false
		}
		body := peekBody(r)
		for _, wrong := range faults {
			code, message := wrong(body)
			if code == "" {
				continue
			}
			allowed := record(next, r, []byte(`{"name":"no.such.tool","arguments":{}}`))
			if allowed.Status != http.StatusUnauthorized && allowed.Status != http.StatusForbidden {
				allowed.Refuse(http.StatusBadRequest, code, message)
			}
			allowed.writeTo(w)
			return true
		}
		return false
	})
}

func wellFormed(body []byte) (code, message string) {
	if _, err := exact.Parse(body); err != nil || !utf8.Valid(body) {
		return "invalid_json", fmt.Sprintf("The body is no JSON: %v.", err)
	}
	return "", ""
}

func isObject(body []byte) (code, message string) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return "invalid_json", "The body is no object."
	}
	return "", ""
}

func hasName(body []byte) (code, message string) {
	if name, _ := decode(body)["name"].(string); name == "" {
		return "missing_parameter", "The parameter name is missing."
	}
	return "", ""
}

func hasArguments(body []byte) (code, message string) {
	if _, ok := decode(body)["arguments"].(map[string]any); !ok {
		return "missing_parameter", "The parameter arguments is missing."
	}
	return "", ""
}

// boundBody refuses a body of more than 2 MiB, and nesting deeper than 512, as json_decode does.
func boundBody(next http.Handler) http.Handler {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toInvoke(r) || !isSmall(r) {
			return false
		}
		body := peekBody(r)
		depth, deepest := 0, 0
		for _, c := range body {
			switch c {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			deepest = max(deepest, depth)
		}
		switch {
		case len(body) > 2<<20:
			refuseAt(w, r, http.StatusRequestEntityTooLarge, "request_too_large", "The body is larger than 2 MiB.")
		case deepest > 512:
			refuseAt(w, r, http.StatusBadRequest, "invalid_json", "The body is nested deeper than 512 levels.")
		default:
			return false
		}
		return true
	})(next)
}

// violationsOf validates a document.
func violationsOf(s any, document []byte) []schema.Violation {
	compiled, err := schema.Compile(encode(s))
	if err != nil {
		return nil
	}
	var unlimited *schema.Validator
	violations, err := unlimited.Validate(context.Background(), fair.Key{}, compiled, document) // no limits, nothing to wait for
	if err != nil {
		return nil
	}
	return violations
}

// validateArguments checks the arguments as they came against the inputSchema that describe shows, before the call.
func validateArguments(next http.Handler) http.Handler {
	return onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !toCall(r) {
			return false
		}
		body := peekBody(r)
		x := &exchange{Request: r, Sent: body, next: next}
		arguments, ok := decode(body)["arguments"].(map[string]any)
		if _, there := decode(body)["name"].(string); !ok || !there {
			return false
		}
		t, ok := x.tool(x.invoked())
		if !ok {
			return false
		}
		input, _ := t["inputSchema"].(map[string]any)
		for name, value := range arguments { // null for an optional parameter is not checked, as Drupal accepts it
			if value == nil && !slices.Contains(required(input), any(name)) {
				delete(arguments, name)
			}
		}
		violations := violationsOf(input, encode(arguments))
		if len(violations) == 0 {
			return false
		}
		data := make([]any, len(violations))
		var said []string
		for i, v := range violations {
			data[i] = map[string]any{"parameter": v.Parameter, "expected": v.Expected, "received": v.Received}
			said = append(said, fmt.Sprintf("%s: expected %s, got %s", v.Parameter, v.Expected, v.Received))
		}
		failure := map[string]any{"code": "invalid_params", "message": strings.Join(said, "; "), "data": any(data)}
		if len(data) == 1 {
			failure["data"] = data[0]
		}
		x.Header = http.Header{"Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}}
		x.Method = r.Method
		x.Set(http.StatusBadRequest, map[string]any{"error": failure})
		x.writeTo(w)
		return true
	})(next)
}

// lookUp looks the name up among the tools that the caller's list shows, byte for byte, before anything is called.
func lookUp(next http.Handler) http.Handler {
	return onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		var name string
		x := &exchange{Request: r, next: next, Method: r.Method}
		switch {
		case toCall(r):
			x.Sent = peekBody(r)
			for _, wrong := range []fault{wellFormed, isObject, hasName, hasArguments} {
				if code, _ := wrong(x.Sent); code != "" {
					return false
				}
			}
			name = x.invoked()
		case toDescribe(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			name = r.URL.Query().Get("name")
		}
		if name == "" || !x.lists() {
			return false
		}
		if slices.Contains(x.names(), name) {
			return false
		}
		return refuseAt(w, r, http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", name))
	})(next)
}
