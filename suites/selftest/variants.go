package selftest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
)

// Variants lists the correct bridges that differ from the reference wherever the contract leaves room. A run against
// one fails nothing, and warns only of what the variant declares.
func Variants() []Mutant {
	return slices.Concat(wireVariants, listVariants, toolVariants, refusalVariants, accessVariants, sessionVariants, perToolVariants, mcpVariants)
}

// How answers travel and are written.
var wireVariants = []Mutant{
	{Name: "reference", Why: "the reference bridge itself", MCP: true},
	{Name: "members-in-reverse-order", Why: "JSON objects have no order", Front: reencoded(reversed)},
	{Name: "pretty-printed", Why: "white space means nothing; answers are larger", Front: reencoded(indented)},
	{Name: "escaped-as-php-does", Why: `\/ and \u00e9 are the same strings`, Front: reencoded(escaped)},
	{Name: "extra-members-everywhere", Why: "what a caller does not know it ignores", Front: onAnswer(everything, func(x *exchange) {
		object := x.Object()
		if object == nil {
			return
		}
		object["_meta"] = map[string]any{"bridge": "other", "version": 3}
		if e, ok := object["error"].(map[string]any); ok {
			e["documentation"] = "https://docs.example.com/errors"
		}
		if t, ok := object["tool"].(tool); ok {
			t["icons"] = []any{map[string]any{"src": "https://www.example.com/tool.png"}}
		}
		x.Body = encode(object)
	})},
	{Name: "charset-and-newline", Why: "a media type may have parameters, a body may end with a newline", Front: onAnswer(everything, func(x *exchange) {
		if x.Header.Get("Content-Type") == "application/json" {
			x.Header.Set("Content-Type", "application/json; charset=utf-8")
			x.Body = append(slices.Concat([]byte("\n"), x.Body), '\n')
		}
	})},
	{Name: "headers-and-request-ids", Why: "headers of its own, another one each time", Front: onAnswer(everything, func(x *exchange) {
		x.Header.Set("X-Request-Id", fmt.Sprintf("%016x", time.Now().UnixNano()))
		x.Header.Set("Server", "OtherBridge/2.1")
		x.Header.Set("X-Generator", "Drupal 10")
		x.Header.Set("Content-Language", "en")
	})},
	{Name: "headers-of-the-moment", Why: "headers that tell of the time and the load", Front: onAnswer(everything, func(x *exchange) {
		now := time.Now().UnixMilli()
		x.Header.Set("Age", fmt.Sprint(now/15%100))
		x.Header.Set("X-Response-Time", fmt.Sprintf("%dms", now/7%3))
		x.Header.Set("X-RateLimit-Reset", fmt.Sprint(now/20))
	})},
	{Name: "spare-connections", Why: "connections to the site that are opened before they are needed", Upstream: withSpares},
	{Name: "tiny-writes", Why: "chunked, a few bytes at a time, without a length", Front: dripping},
	{Name: "slow", Why: "each answer takes a while", Front: onRequest(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		time.Sleep(4 * time.Millisecond) // the latency is the point
		return false
	})},
	{Name: "closes-every-connection", Why: "as HTTP/1.0 does", Free: Clauses("http/keep-alive-after-error"),
		Server: func(s *http.Server) { s.SetKeepAlivesEnabled(false) }},
	{Name: "behind-a-web-server", Why: "it refuses a long address with a page of its own, ends the connection after a 400, and tells by GET alone that it compresses",
		Free: Clauses("http/keep-alive-after-error"), Front: asWebServersDo},
	{Name: "without-gzip", Why: "compression is a SHOULD", Free: Clauses("http/content-negotiation"), Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		r.Header.Del("Accept-Encoding")
		return false
	})},
	{Name: "without-etag", Why: "a version is a SHOULD", Free: Clauses("fresh/version"), Front: onAnswer(everything, func(x *exchange) { x.Header.Del("ETag") })},
	{Name: "weak-etag", Why: "a weak version is a version", Front: onAnswer(toToolViews, func(x *exchange) {
		if tag := x.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
			x.Header.Set("ETag", "W/"+tag)
		}
	})},
	{Name: "failures-of-the-site-500", Why: "502, 503, 504 or 500, as a bridge likes", Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusBadGateway || x.Status == http.StatusGatewayTimeout {
			x.Refuse(http.StatusInternalServerError, "internal_error", "The site gave no answer that can be read.")
		}
	})},
	{Name: "failures-of-the-site-503", Why: "502, 503 or 500, as a bridge likes", Front: onAnswer(everything, func(x *exchange) {
		if x.Status == http.StatusBadGateway {
			x.Refuse(http.StatusServiceUnavailable, "upstream_unavailable", "The site gave no answer that can be read.")
		}
	})},
	{Name: "cache-control-private", Why: "private keeps shared caches out as well", Front: onAnswer(everything, func(x *exchange) { x.Header.Set("Cache-Control", "max-age=0, private, must-revalidate") })},
	{Name: "cache-control-no-store", Why: "so does no-store", Front: onAnswer(everything, func(x *exchange) {
		x.Header.Set("Cache-Control", "No-Store")
		x.Header.Del("Vary")
	})},
	{Name: "vary-in-place-of-cache-control", Why: "Vary names what identifies the caller", Front: onAnswer(toToolViews, func(x *exchange) {
		x.Header.Del("Cache-Control")
		x.Header.Set("Vary", "Accept-Encoding, authorization, cookie")
	})},
	{Name: "sniffable-by-browsers", Why: "nosniff is a SHOULD", Free: Clauses("http/nosniff"), Front: onAnswer(everything, func(x *exchange) { x.Header.Del("X-Content-Type-Options") })},
	{Name: "refuses-under-load", Why: "503 with Retry-After for every fifth request while more than 40 are under way", Front: overloaded(40, 5)},
}

// How the list is cut and ordered.
var listVariants = []Mutant{
	{Name: "cursor-null-at-the-end", Why: "null and absent are the same", Front: atTheEnd(func(p *page) { p.Object["nextCursor"] = nil })},
	{Name: "cursor-absent-at-the-end", Why: "null and absent are the same", Front: atTheEnd(func(p *page) { delete(p.Object, "nextCursor") })},
	{Name: "cursors-opaque", Why: "random words, valid for everybody", Claims: "-cursor-base64-offset", Front: opaqueCursors(false)},
	{Name: "cursors-bound-to-the-caller", Why: "another caller's cursor gives 400", Claims: "-cursor-base64-offset", Front: opaqueCursors(true)},
	{Name: "cursor-with-odd-characters", Why: "a cursor is percent-encoded on its way back", Claims: "-cursor-base64-offset", Front: prefixedCursors("+/&=%?#é ")},
	{Name: "cursor-malformed-first-page", Why: "a MUST allows it", Free: Clauses("list/cursor-malformed-400"), Front: onBadCursor(func(x *exchange) {
		*x = *x.Ask(http.MethodGet, x.Request.URL.Path, nil)
	})},
	{Name: "cursor-malformed-empty-page", Why: "a MUST allows it", Free: Clauses("list/cursor-malformed-400"), Front: onBadCursor(func(x *exchange) {
		x.Set(http.StatusOK, map[string]any{"tools": []any{}, "nextCursor": nil})
	})},
	{Name: "cursor-past-the-end-400", Why: "beyond the last tool is 400 or empty", Front: onAnswer(toList, func(x *exchange) {
		if tools, ok := x.Object()["tools"].([]any); ok && len(tools) == 0 && offset(x.Request.URL.Query().Get("cursor")) > 0 {
			x.Refuse(http.StatusBadRequest, "invalid_cursor", "The cursor lies beyond the last tool.")
		}
	})},
	{Name: "cursor-past-the-end-empty", Why: "beyond the last tool is 400 or empty", Front: onBadCursor(func(x *exchange) {
		if offset(x.Request.URL.Query().Get("cursor")) > 50 {
			x.Set(http.StatusOK, map[string]any{"tools": []any{}})
		}
	})},
	{Name: "sorted-by-name", Why: "any order is right that stays", Free: Clauses("list/change-between-pages"), Front: relisted(func(a, b tool) int { return cmp.Compare(a["name"].(string), b["name"].(string)) })},
	{Name: "sorted-by-title-backwards", Why: "any order is right that stays", Free: Clauses("list/change-between-pages"), Front: relisted(func(a, b tool) int {
		return cmp.Or(-cmp.Compare(fmt.Sprint(a["title"]), fmt.Sprint(b["title"])), cmp.Compare(a["name"].(string), b["name"].(string)))
	})},
	{Name: "describe-says-more", Why: "describe may hold more than list", Front: onDescribed(func(_ *exchange, t tool) any {
		t["method"], t["examples"] = t["name"], []any{map[string]any{"arguments": map[string]any{}}}
		return t
	})},
}

// How tools are written.
var toolVariants = []Mutant{
	{Name: "naming-underscore", Why: "names of letters, digits, _ and - alone", Claims: "naming-underscore", Options: underscoring},
	{Name: "exposure-patterns", Why: "patterns in place of the attribute", Claims: "exposure-patterns,-discovery-permission,-drupal-types,-custom-types", Options: func(o *bridge.Options) { o.Expose = discovery.ExposePatterns }},
	{Name: "output-refused", Why: "results are held to their schemas", Claims: "output-validation", Options: func(o *bridge.Options) { o.Output = invoke.OutputRefuse }},
	{Name: "properties-left-out", Why: "a method without parameters may leave properties out", Front: onInput(func(s map[string]any) {
		if p, ok := s["properties"].(map[string]any); ok && len(p) == 0 {
			delete(s, "properties")
		}
	})},
	{Name: "properties-empty-object", Why: "or give {}", Front: onInput(func(s map[string]any) {
		if s["properties"] == nil {
			s["properties"] = map[string]any{}
		}
	})},
	{Name: "closed-and-titled", Why: "the schema of all arguments may have words of its own and be closed", Front: onInput(func(s map[string]any) {
		s["additionalProperties"], s["title"] = false, "Arguments"
	})},
	{Name: "draft-7-declared", Why: "the dialect may be said", Front: onInput(func(s map[string]any) { s["$schema"] = "http://json-schema.org/draft-07/schema#" })},
	{Name: "parameters-by-reference", Why: "a local reference means what it leads to", Front: onProperties(byReference)},
	{Name: "required-in-another-order", Why: "`required` is a set", Front: onInput(func(s map[string]any) { slices.Reverse(required(s)) })},
	{Name: "annotations-empty-object", Why: "empty annotations are left out or {}", Front: onTool(func(t tool) {
		if t["annotations"] == nil {
			t["annotations"] = map[string]any{}
		}
	})},
	{Name: "no-usage-no-description", Why: "a description that is not empty is a SHOULD", Free: Clauses("list/description-not-empty"), Front: withoutUsage(func(t tool) { t["description"] = "" })},
	{Name: "no-usage-other-words", Why: "what to say in place of an empty usage is free", Front: withoutUsage(func(t tool) { t["description"] = fmt.Sprintf("Runs %s on the site.", t["name"]) })},
	{Name: "by-position-left-out", Why: "a method with parameters by position may be left out", Upstream: onDiscovery(func(index map[string]any) {
		methods, _ := index["data"].([]any)
		index["data"] = slices.DeleteFunc(methods, func(m any) bool {
			attributes, _ := m.(map[string]any)["attributes"].(map[string]any)
			_, list := attributes["params"].([]any)
			return list
		})
	})},
	{Name: "recursive-schemas-left-out", Why: "a bridge that puts references in place comes to no end with a tree", Upstream: onDiscovery(func(index map[string]any) {
		methods, _ := index["data"].([]any)
		index["data"] = slices.DeleteFunc(methods, func(m any) bool { return strings.Contains(string(encode(m)), `"$ref":"#"`) })
	})},
}

// In which words, and with which of the allowed statuses, requests are refused.
var refusalVariants = []Mutant{
	{Name: "other-words", Why: "messages are free, as long as they name what was wrong", Front: onError(func(x *exchange, e map[string]any) {
		e["message"] = fmt.Sprintf("Leider nicht: %s (%s)", e["message"], x.Request.URL.Path)
	})},
	{Name: "messages-with-references", Why: "no two messages are the same", Front: onError(func(_ *exchange, e map[string]any) {
		e["message"] = fmt.Sprintf("%s [ref %08x]", e["message"], uint32(time.Now().UnixNano()))
	})},
	{Name: "error-data-everywhere", Why: "data is optional", Front: onError(func(x *exchange, e map[string]any) {
		if e["data"] == nil {
			e["data"] = map[string]any{"status": x.Status}
		}
	})},
	{Name: "errors-without-data", Why: "data is optional; what it tells is a SHOULD", Free: Clauses("invoke/invalid-arguments-named", "invoke/error-data-kept"),
		Front: onError(func(_ *exchange, e map[string]any) { delete(e, "data") })},
	{Name: "failure-in-the-methods-own-words", Why: "the message alone, without the bridge's", Front: onError(func(_ *exchange, e map[string]any) {
		if _, said, ok := strings.Cut(fmt.Sprint(e["message"]), " failed: "); ok && e["code"] == "execution_error" {
			e["message"] = said
		}
	})},
	{Name: "empty-name-404", Why: "an empty name on invoke may be 404", Front: onCallBody(func(x *exchange, call map[string]any) {
		if call["name"] == "" && x.Status == http.StatusBadRequest {
			x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
		}
	})},
	{Name: "missing-arguments-invalid-params", Why: "either code will do", Front: onCallBody(func(x *exchange, call map[string]any) {
		if name, _ := call["name"].(string); name != "" && x.Status == http.StatusBadRequest {
			x.recode("missing_parameter", "invalid_params")
		}
	})},
	{Name: "missing-arguments-missing-parameter", Why: "either code will do", Front: onCallBody(func(x *exchange, call map[string]any) {
		if _, ok := call["arguments"].(map[string]any); !ok && x.Status == http.StatusBadRequest {
			x.recode("invalid_params", "missing_parameter")
		}
	})},
	{Name: "body-not-object-missing-parameter", Why: "either code will do", Front: onInvoke(func(x *exchange) {
		switch strings.TrimSpace(string(x.Sent[:min(len(x.Sent), 64)])) {
		case "null", "true", "false", "1", "5", `"x"`, "[]":
			x.recode("invalid_json", "missing_parameter")
			x.recode("invalid_request", "missing_parameter")
		}
	})},
	{Name: "repeated-name-400", Why: "a repeated name may be refused", Front: onAnswer(toDescribe, func(x *exchange) {
		if len(x.Request.URL.Query()["name"]) > 1 {
			x.Refuse(http.StatusBadRequest, "invalid_request", "The parameter \"name\" came twice.")
		}
	})},
	{Name: "unknown-arguments-refused", Why: "not judged: unknown top-level members", Front: strictArguments()},
	{Name: "large-body-413", Why: "1 MiB works or gives 413", Front: onInvoke(func(x *exchange) {
		if len(x.Sent) > 256<<10 {
			x.Refuse(http.StatusRequestEntityTooLarge, "request_too_large", "The body is longer than 256 KiB.")
		}
	})},
	{Name: "huge-body-cut-off", Why: "64 MiB may close the connection", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if toInvoke(r) && (r.ContentLength > 32<<20 || r.ContentLength < 0) {
			panic(http.ErrAbortHandler)
		}
		return false
	})},
	{Name: "huge-body-400", Why: "64 MiB may be a 400", Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toInvoke(r) || r.ContentLength >= 0 && r.ContentLength <= 32<<20 {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"error":{"code":"invalid_request","message":"The body is too long."}}`)) //nolint:errcheck // the caller has gone
		return true
	})},
}

// Who is told what, where the contract lets a bridge choose.
var accessVariants = []Mutant{
	{Name: "denied-invoke-403", Why: "403 or 404 for a tool that the caller may not run", Front: onDeniedName(toInvoke, func(x *exchange, _ tool) {
		x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("You may not run %q.", x.invoked()))
	})},
	{Name: "denied-invoke-404", Why: "403 or 404 for a tool that the caller may not run", Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusForbidden && strings.Contains(x.errorMessage(), "does not let this caller run") {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.invoked()))
		}
	})},
	{Name: "anonymous-401", Why: "401 with a challenge, or 403", Front: onRefusal(func(x *exchange) {
		if x.anonymous() && x.Status == http.StatusForbidden {
			x.Refuse(http.StatusUnauthorized, "authentication_required", "Sign in first.")
			x.Header.Set("WWW-Authenticate", `Basic realm="Other", charset="UTF-8"`)
		}
	})},
	{Name: "anonymous-403", Why: "401 with a challenge, or 403", Front: onRefusal(func(x *exchange) {
		if x.anonymous() && x.Status == http.StatusUnauthorized {
			x.Refuse(http.StatusForbidden, "access_denied", "Anonymous callers may not use this.")
			x.Header.Del("WWW-Authenticate")
		}
	})},
	{Name: "bad-credentials-403", Why: "401, 403, or what anonymous gets", Front: onAnswer(toToolViews, func(x *exchange) {
		if !x.anonymous() && x.Status == http.StatusUnauthorized {
			x.Refuse(http.StatusForbidden, "access_denied", "The credentials are not valid.")
			x.Header.Del("WWW-Authenticate")
		}
	})},
	{Name: "no-rpc-permission-empty-list", Why: "who may not use JSON-RPC gets an empty list, or 403, or the list", Front: onAnswer(toList, func(x *exchange) {
		if caller(x.Request) == "norpc" {
			x.Set(http.StatusOK, map[string]any{"tools": []any{}})
		}
	})},
	{Name: "broad", Setup: Broad, Why: "list and describe show every tool; running stays guarded", MCP: true},
	{Name: "broad-denied-other-words", Setup: Broad, Why: "messages are free, as long as they say what is wrong", Front: onShownAndDenied(func(x *exchange) {
		x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("You may not run %q.", x.invoked()))
	})},
	{Name: "no-discovery-permission", Why: "a bridge that does not know who may discover", Claims: "-discovery-permission", Upstream: onDiscovery(func(index map[string]any) {
		index["meta"] = map[string]any{"mcp": map[string]any{"discovery": true}}
	})},
}
