package mutants

import (
	"net/http"
	"strings"
	"time"
)

// invokeResultMutants change values that a JSON layer or a template takes for something else.
func invokeResultMutants() []Mutant {
	return []Mutant{
		{Name: "result-dates-rewritten", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "the JSON library reads texts that look like times as times and writes them in its own form",
			Middleware: onResult(func(v any) any { return mapValues(v, onStrings(rewriteTime)) })},
		{Name: "result-numerals-as-numbers", Breaks: Clauses("invoke/result-exact"), Origin: Module, Why: "JSON_NUMERIC_CHECK", Middleware: onResult(func(v any) any { return mapValues(v, parseNumerals) })},
		{Name: "result-words-as-values", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "YAML takes `yes` and `null` for values", Middleware: onResult(func(v any) any {
			return mapValues(v, func(v any) any {
				switch v {
				case "yes", "on":
					return true
				case "no", "off":
					return false
				case "~", "null":
					return nil
				}
				return v
			})
		})},
		{Name: "result-lines-normalised", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Middleware: onResult(func(v any) any {
			return mapValues(v, onStrings(func(s string) string { return strings.ReplaceAll(s, "\r", "") }))
		})},
		{Name: "result-line-separators-lost", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Why: "U+2028 was removed so that the result can stand in a script", Middleware: onResult(func(v any) any {
			return mapValues(v, onStrings(func(s string) string { return strings.ReplaceAll(s, "\u2029", "") }))
		})},
		{Name: "result-trimmed", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Middleware: onResult(func(v any) any { return mapValues(v, onStrings(strings.TrimSpace)) })},
		{Name: "result-script-tags-removed", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Middleware: onResult(func(v any) any {
			return mapValues(v, onStrings(func(s string) string { return strings.ReplaceAll(s, "<!--", "") }))
		})},
		{Name: "result-cut-at-a-nul", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Middleware: onResult(func(v any) any {
			return mapValues(v, onStrings(func(s string) string {
				read, _, _ := strings.Cut(s, "\x00")
				return read
			}))
		})},
		{Name: "result-names-in-lower-case", Breaks: Clauses("invoke/result-exact"), Origin: Peer, Why: "members are matched without case, so that one of `id` and `ID` is lost", Middleware: onResult(func(v any) any {
			return mapValues(v, func(v any) any {
				object, ok := v.(map[string]any)
				if _, there := object["ID"]; ok && there {
					delete(object, "ID")
				}
				return v
			})
		})},
		{Name: "result-prototype-lost", Breaks: Clauses("invoke/result-exact", "invoke/arguments-forwarded"), Origin: Peer, Why: "`__proto__` is assigned, not set", Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			return onParams(func(params any) any { walkObjects(params, without("__proto__")); return params })(onReply(func(reply map[string]any) { walkObjects(reply["result"], without("__proto__")) })(next)).RoundTrip(r)
		})},
		{Name: "result-error-taken-for-its-own", Breaks: Clauses("invoke/result-exact"), Origin: Imagined, Why: "a result with a member `error` is taken for a failure", Middleware: onInvoke(func(x *exchange) {
			result, _ := x.Object()["result"].(map[string]any)
			if e, ok := result["error"].(map[string]any); ok && len(result) == 1 {
				x.Set(http.StatusInternalServerError, map[string]any{"error": e})
			}
		})},
		{Name: "argument-dates-rewritten", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "the JSON library reads texts that look like times as times",
			Transport: onArguments(onStrings(rewriteTime))},
	}
}

// rewriteTime writes a text that looks like a time in another form.
func rewriteTime(s string) string {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	return s
}
