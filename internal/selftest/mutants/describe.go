package mutants

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"
)

// describeMutants describe the wrong tool, or describe one differently from the list.
func describeMutants() []Mutant {
	return []Mutant{
		{Name: "describe-bare-tool", Breaks: Clauses("describe/answers-tool"), Origin: Imagined, Why: "the tool is not wrapped in an object",
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if t, ok := x.Object()["tool"]; ok {
					x.Body = encode(t)
				}
			})},
		{Name: "describe-list-of-one", Breaks: Clauses("describe/answers-tool"), Origin: Imagined,
			Middleware: onDescribed(func(_ *exchange, t tool) any { return []any{t} })},
		{Name: "describe-ends-with-a-comment", Breaks: Clauses("describe/answers-tool"), Origin: Peer, Why: "a debugging tool appends a comment to every response",
			Middleware: onResponse(toDescribe, atStatus(http.StatusOK, func(x *exchange) { x.Body = append(x.Body, "<!-- 12 ms -->"...) }))},
		{Name: "describe-drops-titles-for-some", Breaks: Clauses("describe/equals-list"), Origin: Imagined,
			Middleware: onDescribed(func(x *exchange, t tool) any {
				if caller(x.Request) == "admin" {
					delete(t, "title")
				}
				return t
			})},
		{Name: "describe-drops-annotations", Breaks: Clauses("describe/equals-list"), Origin: Peer,
			Middleware: onDescribed(func(_ *exchange, t tool) any { delete(t, "annotations"); return t })},
		{Name: "describe-properties-list", Breaks: Clauses("describe/equals-list"), Origin: Module, Why: "list was fixed, describe was not",
			Middleware: onDescribed(func(_ *exchange, t tool) any { walkObjects(t["inputSchema"], emptyAsList); return t })},
		{Name: "describe-missing-name-404", Breaks: Clauses("describe/missing-name"), Origin: Imagined,
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if x.Status == http.StatusBadRequest && !x.Request.URL.Query().Has("name") {
					x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
				}
			})},
		{Name: "describe-empty-name-404", Breaks: Clauses("describe/missing-name"), Origin: Module,
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if q := x.Request.URL.Query(); x.Status == http.StatusBadRequest && q.Has("name") && q.Get("name") == "" {
					x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
				}
			})},
		{Name: "describe-missing-name-other-code", Breaks: Clauses("describe/missing-name", "errors/code-stable"), Origin: Imagined,
			Middleware: onResponse(toDescribe, func(x *exchange) { x.recode("missing_parameter", "invalid_request") })},
		{Name: "describe-unknown-other-code", Breaks: Clauses("describe/unknown-404", "errors/code-stable"), Origin: Imagined,
			Middleware: onResponse(toDescribe, func(x *exchange) { x.recode("tool_not_found", "not_found") })},
		{Name: "describe-unknown-unnamed", Breaks: Clauses("describe/unknown-404", "errors/message-helps"), Origin: Imagined, Why: "the message does not say which tool",
			Middleware: onResponse(toDescribe, atStatus(http.StatusNotFound, refuse(http.StatusNotFound, "tool_not_found", "There is no tool of this name.")))},
		{Name: "describe-hidden-403", Breaks: Clauses("describe/hidden-404", "access/no-oracle"), Origin: Imagined,
			SiteMiddleware: onExistingMethod(toDescribe, basicAuth("admin"), func(x *exchange) {
				x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("%q is no tool.", x.described()))
			})},
		{Name: "describe-hidden-other-words", Breaks: Clauses("describe/hidden-404", "access/no-oracle"), Origin: Imagined,
			SiteMiddleware: onExistingMethod(toDescribe, basicAuth("agent"), func(x *exchange) {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("%q is not exposed as a tool.", x.described()))
			})},
		{Name: "describe-server-before-a-name", Breaks: Clauses("describe/name-exact"), Origin: Peer, Why: "clients of several servers put the server's name before",
			Middleware: beforeBridge(func(r *http.Request) {
				if toDescribe(r) {
					r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "mcp__drupal__", "", 1)
				}
			})},
		{Name: "describe-suggests-hidden-names", Breaks: Clauses("describe/hidden-404"), Origin: Peer, Why: "did you mean: the nearest of all methods",
			SiteMiddleware: withSite(toDescribe, func(site *siteClient, x *exchange) {
				for _, last := range "abcdefghijklmnopqrstuvwxyz" {
					if near := x.described() + string(last); x.Status == http.StatusNotFound && site.hides(basicAuth("admin"), near) {
						x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q. Did you mean %q?", x.described(), near))
					}
				}
			})},
		{Name: "describe-denied-403", Breaks: Clauses("describe/inaccessible-404", "access/no-oracle"), Origin: Imagined,
			Middleware: onDeniedName(toDescribe, func(x *exchange, _ tool) {
				x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("You may not use %q.", x.described()))
			})},
		{Name: "describe-denied-shown", Breaks: Clauses("describe/inaccessible-404", "access/no-oracle", "access/per-credential"), Origin: Imagined, Why: "describe checks no permission",
			Middleware: onDeniedName(toDescribe, func(x *exchange, t tool) { x.Set(http.StatusOK, map[string]any{"tool": t}) })},
		{Name: "describe-denied-header", Breaks: Clauses("describe/inaccessible-404", "access/no-oracle"), Origin: Module,
			Why:        "cache tags reveal that the tool exists",
			Middleware: onDeniedName(toDescribe, func(x *exchange, _ tool) { x.Header.Set("X-Cache-Tags", "jsonrpc_method") })},
		{Name: "describe-folds-letters", Breaks: Clauses("describe/name-exact"), Origin: Peer, Why: "names are compared without case by folding: ſ is s, and the Kelvin sign is k",
			Middleware: looseLookup(toDescribe, func(requested, name string) bool {
				return len(requested) != len(name) && strings.EqualFold(requested, name)
			})},
		{Name: "describe-takes-hyphens-for-underscores", Breaks: Clauses("describe/name-exact"), MayFail: Clauses("describe/answers-tool"), Origin: Peer,
			Why:        "models mix them up",
			Middleware: looseLookup(toDescribe, func(requested, name string) bool { return strings.ReplaceAll(name, "_", "-") == requested })},
		{Name: "describe-any-case", Breaks: Clauses("describe/name-exact"), Origin: Imagined, Middleware: looseLookup(toDescribe, strings.EqualFold)},
		{Name: "describe-takes-underscores-for-dots", Breaks: Clauses("describe/name-exact"), Origin: Peer, Why: "some clients replace the dots of names",
			Middleware: looseLookup(toDescribe, func(requested, name string) bool { return strings.ReplaceAll(name, ".", "_") == requested })},
		{Name: "describe-drops-a-format", Breaks: Clauses("describe/name-exact"), Origin: Peer, Why: "Rails takes a format from the end of a path",
			Middleware: looseLookup(toDescribe, func(requested, name string) bool { return strings.TrimSuffix(requested, ".json") == name })},
		{Name: "describe-trims-blanks", Breaks: Clauses("describe/name-exact"), Origin: Peer,
			Middleware: looseLookup(toDescribe, func(requested, name string) bool { return strings.TrimSpace(requested) == name })},
		{Name: "describe-reads-the-first-of-a-list", Breaks: Clauses("describe/name-exact"), Origin: Peer, Why: "`name` is split at commas",
			Middleware: looseLookup(toDescribe, func(requested, name string) bool {
				first, _, several := strings.Cut(requested, ",")
				return several && first == name
			})},
		{Name: "describe-name-list-500", Breaks: Clauses("describe/name-not-scalar"), Origin: Imagined,
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if strings.Contains(x.Request.URL.RawQuery, "name[") {
					x.Refuse(http.StatusInternalServerError, "internal_error", "Array to string conversion")
				}
			})},
		{Name: "describe-invalid-utf8-500-page", Breaks: Clauses("describe/name-not-scalar", "errors/envelope"), Origin: Module,
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if !utf8.ValidString(x.described()) {
					x.page(http.StatusInternalServerError, "The website encountered an unexpected error. Try again later.")
				}
			})},
		{Name: "describe-long-name-500", Breaks: Clauses("describe/name-not-scalar"), Origin: Imagined,
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if len(x.described()) > 4096 {
					x.Refuse(http.StatusInternalServerError, "internal_error", "The name does not fit the column.")
				}
			})},
		{Name: "describe-sticky-404", Breaks: Clauses("describe/after-error"), MayFail: Clauses("access/no-cross-talk"), Origin: Module, Why: "the page cache forgets the query",
			Middleware: repeatRefusal(http.StatusNotFound, func(failed, now string) bool { return failed == now })},
		{Name: "describe-sticky-400", Breaks: Clauses("describe/after-error"), Origin: Module,
			Middleware: repeatRefusal(http.StatusBadRequest, func(failed, now string) bool { return failed == now })},
		{Name: "describe-name-zero-is-none", Breaks: Clauses("describe/unknown-404"), Origin: Peer, Why: "`empty('0')` is true",
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if x.described() == "0" && x.Status == http.StatusNotFound {
					x.Refuse(http.StatusBadRequest, "missing_parameter", "The parameter \"name\" is missing.")
				}
			})},
		{Name: "describe-knows-constructor", Breaks: Clauses("describe/unknown-404"), Origin: Peer, Why: "every object of JavaScript has one",
			Middleware: onResponse(toDescribe, func(x *exchange) {
				if x.described() == "constructor" && x.Status == http.StatusNotFound {
					x.Set(http.StatusOK, map[string]any{"tool": map[string]any{}})
				}
			})},
		{Name: "describe-error-as-html", Breaks: Clauses("describe/reflects-safely", "describe/name-not-scalar", "errors/envelope"), Origin: Imagined,
			Why: "the JSON of a 404 is sent as text/html: a script in the name runs",
			Middleware: onResponse(toDescribe, atStatus(http.StatusNotFound, func(x *exchange) {
				x.Header.Set("Content-Type", "text/html; charset=UTF-8")
			}))},
		{Name: "describe-name-unescaped", Breaks: Clauses("describe/reflects-safely", "errors/envelope"), Origin: Imagined, Why: "the JSON of the error is concatenated without escaping",
			Middleware: onResponse(toDescribe, atStatus(http.StatusNotFound, func(x *exchange) {
				x.Body = []byte(`{"error":{"code":"tool_not_found","message":"There is no tool named '` + x.described() + `'"}}`)
			}))},
		{Name: "describe-shared-by-all", Breaks: Clauses("describe/inaccessible-404", "access/describe-403", "access/anonymous", "access/no-oracle", "access/per-credential", "fresh/schema-change", "fresh/schema-mismatch"), Origin: Peer,
			Middleware: shareFirstResponse(toDescribe, func(r *http.Request) string { return r.URL.RawQuery })},
		{Name: "describe-text-html", Breaks: Clauses("describe/answers-tool"), Origin: Peer, Middleware: onDescribed(func(x *exchange, t tool) any {
			x.Header.Set("Content-Type", "text/html; charset=UTF-8")
			return t
		})},
		{Name: "describe-name-read-as-latin-1", Breaks: Clauses("describe/unknown-404"), Origin: Peer, Why: "WSGI's query is a text of Latin-1",
			Middleware: onUnknownName(inLatin1)},
		{Name: "describe-unknown-formatted", Breaks: Clauses("describe/unknown-404"), Origin: Peer, Why: "the message with the name in it is the format of a printf",
			Middleware: onUnknownName(func(name string) string { return strings.ReplaceAll(name, "%s", "") })},
		{Name: "describe-unknown-escaped", Breaks: Clauses("describe/unknown-404"), Origin: Module, Why: "the @placeholder of a message escapes for HTML",
			Middleware: onResponse(toDescribe, atStatus(http.StatusNotFound, func(x *exchange) {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named '%s'.", html.EscapeString(x.described())))
			}))},
		{Name: "describe-decodes-twice", Breaks: Clauses("describe/name-exact"), Origin: Peer,
			Middleware: looseLookup(toDescribe, func(requested, name string) bool {
				again, err := url.QueryUnescape(requested)
				return err == nil && again == name
			})},
		{Name: "describe-control-characters-raw", Breaks: Clauses("describe/reflects-safely"), Origin: Peer, Why: "the JSON of the error is concatenated, and only quotes are escaped",
			Middleware: onResponse(toDescribe, atStatus(http.StatusNotFound, func(x *exchange) {
				x.Body = []byte(`{"error":{"code":"tool_not_found","message":"There is no tool named ` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(x.described()) + `"}}`)
			}))},
	}
}

// describeVariants add to a description, or refuse a repeated name.
func describeVariants() []Mutant {
	return []Mutant{
		{Name: "suggests-visible-names", Why: "which of the caller's own tools is near says nothing of others",
			Middleware: onResponse(toDescribe, atStatus(http.StatusNotFound, func(x *exchange) {
				_, rest, _ := strings.Cut(x.described(), ".")
				list := x.Send(http.MethodGet, strings.Replace(x.Request.URL.Path, "describe", "list", 1), nil)
				list.eachTool(func(t tool) {
					if name, _ := t["name"].(string); rest != "" && strings.HasSuffix(name, "."+rest) {
						x.Refuse(http.StatusNotFound, "tool_not_found", x.errorMessage()+" Did you mean "+name+"?")
					}
				})
			}))},
		{Name: "describe-says-more", Why: "describe may return more members than list", Middleware: onDescribed(func(_ *exchange, t tool) any {
			t["method"], t["examples"] = t["name"], []any{map[string]any{"arguments": map[string]any{}}}
			return t
		})},
		{Name: "plus-is-no-blank", Why: "in a query that is no form + stands for itself", Middleware: beforeBridge(func(r *http.Request) {
			r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "+", "%2B")
		})},
		{Name: "front-server-431", Why: "a server in front of the bridge may refuse a long request line or odd bytes before routing, with a page of its own",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !toDescribe(r) || len(r.URL.RawQuery) < 4<<10 && utf8.ValidString(r.URL.Query().Get("name")) {
					return false
				}
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
				fmt.Fprint(w, "<html><h1>431 Request Header Fields Too Large</h1></html>") //nolint:errcheck // the caller has gone
				return true
			})},
		{Name: "repeated-name-400", Why: "a repeated name may be refused", Middleware: onResponse(toDescribe, func(x *exchange) {
			if len(x.Request.URL.Query()["name"]) > 1 {
				x.Refuse(http.StatusBadRequest, "invalid_request", "The parameter \"name\" came twice.")
			}
		})},
	}
}

// onDescribed changes the tool in describe responses; the change may refuse instead.
func onDescribed(change func(x *exchange, t tool) any) middleware {
	return onResponse(toDescribe, func(x *exchange) {
		object := x.Object()
		t, ok := object["tool"].(tool)
		if x.Status != http.StatusOK || !ok {
			return
		}
		object["tool"] = change(x, t)
		if x.Status == http.StatusOK {
			x.Body = encode(object)
		}
	})
}

// looseLookup finds tools by a looser comparison than equality.
func looseLookup(matches func(*http.Request) bool, same func(requested, name string) bool) middleware {
	return onResponse(matches, func(x *exchange) {
		requested := x.named()
		if x.Status != http.StatusNotFound || requested == "" {
			return
		}
		for _, name := range x.names() {
			if !same(requested, name) {
				continue
			}
			if toInvoke(x.Request) {
				call := decode(x.Sent)
				call["name"] = name
				*x = *x.Send(http.MethodPost, x.Request.URL.Path, encode(call))
				return
			}
			if t, ok := x.tool(name); ok {
				x.Set(http.StatusOK, map[string]any{"tool": t})
			}
			return
		}
	})
}

// repeatRefusal keeps a refusal of describe with the status that follows a good response to the same caller, and repeats it once
// instead of the next good response to a caller that had one before, if applies reports true. Another refusal in between
// discards it.
func repeatRefusal(status int, applies func(failed, now string) bool) middleware {
	var (
		mu     sync.Mutex
		kept   *exchange
		served = map[string]bool{}
	)
	who := func(x *exchange) string { return authorized(x.Request) }
	return onResponse(toDescribe, func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		good := x.Status == http.StatusOK
		switch {
		case x.Status == status && served[who(x)]:
			kept = x
			return
		case !good:
			kept = nil
		case x.Method == http.MethodGet && kept != nil && served[who(x)] && applies(who(kept), who(x)):
			x.Status, x.Body, kept = kept.Status, kept.Body, nil
		}
		served[who(x)] = good
	})
}

// onUnknownName changes the name in the message for an unknown one.
func onUnknownName(change func(name string) string) middleware {
	return onResponse(toDescribe, atStatus(http.StatusNotFound, func(x *exchange) {
		x.Body = bytes.ReplaceAll(x.Body, []byte(x.described()), []byte(change(x.described())))
	}))
}
