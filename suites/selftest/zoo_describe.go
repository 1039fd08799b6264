package selftest

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

var describeMutants = []Mutant{
	{Name: "describe-bare-tool", Breaks: Clauses("describe/answers-tool"), Origin: Imagined, Why: "the tool stands without its wrapper",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if t, ok := x.Object()["tool"]; ok {
				x.Body = encode(t)
			}
		})},
	{Name: "describe-list-of-one", Breaks: Clauses("describe/answers-tool"), Origin: Imagined,
		Front: onDescribed(func(_ *exchange, t tool) any { return []any{t} })},
	{Name: "describe-sees-page-one-only", Breaks: Clauses("describe/answers-tool"), Origin: Imagined,
		Front: onDescribed(func(x *exchange, t tool) any {
			first, _ := x.Ask(http.MethodGet, sibling(x.Request, "list"), nil).Object()["tools"].([]any)
			if !slices.ContainsFunc(first, func(other any) bool { return other.(tool)["name"] == t["name"] }) {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", t["name"]))
			}
			return t
		})},

	{Name: "describe-knows-what-all-see", Breaks: Clauses("describe/answers-tool"), Origin: Imagined, Why: "a catalogue that the first caller filled",
		Front: onDescribed(func(x *exchange, t tool) any {
			if caller(x.Request) == "admin" {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", t["name"]))
			}
			return t
		})},
	{Name: "describe-ends-with-a-comment", Breaks: Clauses("describe/answers-tool"), Origin: Peer, Why: "a debugging aid that writes behind every answer",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.Status == http.StatusOK {
				x.Body = append(x.Body, "<!-- 12 ms -->"...)
			}
		})},

	{Name: "describe-drops-titles-for-some", Breaks: Clauses("describe/equals-list"), Origin: Imagined,
		Front: onDescribed(func(x *exchange, t tool) any {
			if caller(x.Request) == "admin" {
				delete(t, "title")
			}
			return t
		})},
	{Name: "describe-drops-annotations", Breaks: Clauses("describe/equals-list"), Origin: Peer,
		Front: onDescribed(func(_ *exchange, t tool) any { delete(t, "annotations"); return t })},
	{Name: "describe-drops-nested-descriptions", Breaks: Clauses("describe/equals-list"), Origin: Imagined,
		Front: onDescribed(func(_ *exchange, t tool) any { walk(t["inputSchema"], without("description")); return t })},
	{Name: "describe-properties-list", Breaks: Clauses("describe/equals-list"), Origin: Module, Why: "list was mended, describe was not",
		Front: onDescribed(func(_ *exchange, t tool) any { walk(t["inputSchema"], emptyAsList); return t })},

	{Name: "describe-missing-name-404", Breaks: Clauses("describe/missing-name"), Origin: Imagined,
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.Status == http.StatusBadRequest && !x.Request.URL.Query().Has("name") {
				x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
			}
		})},
	{Name: "describe-empty-name-404", Breaks: Clauses("describe/missing-name"), Origin: Module,
		Front: onAnswer(toDescribe, func(x *exchange) {
			if q := x.Request.URL.Query(); x.Status == http.StatusBadRequest && q.Has("name") && q.Get("name") == "" {
				x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
			}
		})},
	{Name: "describe-missing-name-other-code", Breaks: Clauses("describe/missing-name", "errors/code-stable"), Origin: Imagined,
		Front: onAnswer(toDescribe, func(x *exchange) { x.recode("missing_parameter", "invalid_request") })},

	{Name: "describe-unknown-other-code", Breaks: Clauses("describe/unknown-404", "errors/code-stable"), Origin: Imagined,
		Front: onAnswer(toDescribe, func(x *exchange) { x.recode("tool_not_found", "not_found") })},
	{Name: "describe-unknown-unnamed", Breaks: Clauses("describe/unknown-404", "errors/message-helps"), Origin: Imagined, Why: "the message does not say which tool",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.Status == http.StatusNotFound {
				x.Refuse(http.StatusNotFound, "tool_not_found", "There is no tool of this name.")
			}
		})},

	{Name: "describe-hidden-403", Breaks: Clauses("describe/hidden-404", "access/no-oracle"), Origin: Imagined,
		Wired: onKnown(toDescribe, signedAs("admin"), func(x *exchange) {
			x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("%q is no tool.", x.described()))
		})},
	{Name: "describe-hidden-other-words", Breaks: Clauses("describe/hidden-404", "access/no-oracle"), Origin: Imagined,
		Wired: onKnown(toDescribe, signedAs("agent"), func(x *exchange) {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("%q is not exposed as a tool.", x.described()))
		})},
	{Name: "describe-hidden-shown", Breaks: Clauses("describe/hidden-404", "access/no-oracle"), Origin: Imagined,
		Wired: onKnown(toDescribe, signedAs("agent"), func(x *exchange) {
			x.Set(http.StatusOK, map[string]any{"tool": map[string]any{"name": x.described(), "description": "hidden", "inputSchema": map[string]any{"type": "object"}}})
		})},

	{Name: "describe-denied-403", Breaks: Clauses("describe/inaccessible-404", "access/no-oracle"), Origin: Imagined,
		Front: onDeniedName(toDescribe, func(x *exchange, _ tool) {
			x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("You may not use %q.", x.described()))
		})},
	{Name: "describe-denied-shown", Breaks: Clauses("describe/inaccessible-404", "access/no-oracle", "access/per-credential"), Origin: Imagined, Why: "describe asks nobody for permission",
		Front: onDeniedName(toDescribe, func(x *exchange, t tool) { x.Set(http.StatusOK, map[string]any{"tool": t}) })},
	{Name: "describe-denied-header", Breaks: Clauses("describe/inaccessible-404", "access/no-oracle"), Origin: Module,
		Why:   "cache tags tell that the tool exists",
		Front: onDeniedName(toDescribe, func(x *exchange, _ tool) { x.Header.Set("X-Cache-Tags", "jsonrpc_method") })},

	{Name: "describe-any-case", Breaks: Clauses("describe/name-exact"), Origin: Imagined, Front: lookingUp(toDescribe, strings.EqualFold)},
	{Name: "describe-takes-underscores-for-dots", Breaks: Clauses("describe/name-exact"), Origin: Peer, Why: "as clients write names that may have no dot",
		Front: lookingUp(toDescribe, func(asked, name string) bool { return strings.ReplaceAll(name, ".", "_") == asked })},
	{Name: "describe-trims-blanks", Breaks: Clauses("describe/name-exact"), Origin: Peer,
		Front: lookingUp(toDescribe, func(asked, name string) bool { return strings.TrimSpace(asked) == name })},
	{Name: "describe-takes-a-prefix", Breaks: Clauses("describe/name-exact"), Origin: Imagined, Why: "SQL's LIKE 'name%'",
		Front: lookingUp(toDescribe, func(asked, name string) bool { return len(asked) > 4 && strings.HasPrefix(name, asked) })},
	{Name: "describe-takes-a-glob", Breaks: Clauses("describe/name-exact"), Origin: Imagined,
		Front: lookingUp(toDescribe, func(asked, name string) bool {
			found, err := path.Match(asked, name)
			return found && err == nil
		})},
	{Name: "describe-cleans-the-path", Breaks: Clauses("describe/name-exact"), Origin: Imagined,
		Front: lookingUp(toDescribe, func(asked, name string) bool { return path.Base(asked) == name })},

	{Name: "describe-name-list-500", Breaks: Clauses("describe/name-not-scalar"), Origin: Imagined,
		Front: onAnswer(toDescribe, func(x *exchange) {
			if strings.Contains(x.Request.URL.RawQuery, "name[") {
				x.Refuse(http.StatusInternalServerError, "internal_error", "Array to string conversion")
			}
		})},
	{Name: "describe-invalid-utf8-500-page", Breaks: Clauses("describe/name-not-scalar", "errors/envelope"), Origin: Module,
		Front: onAnswer(toDescribe, func(x *exchange) {
			if !utf8.ValidString(x.described()) {
				x.page(http.StatusInternalServerError, "The website encountered an unexpected error. Try again later.")
			}
		})},
	{Name: "describe-long-name-500", Breaks: Clauses("describe/name-not-scalar"), Origin: Imagined,
		Front: onAnswer(toDescribe, func(x *exchange) {
			if len(x.described()) > 4096 {
				x.Refuse(http.StatusInternalServerError, "internal_error", "The name does not fit the column.")
			}
		})},
	{Name: "describe-repeated-name-500", Breaks: Clauses("describe/name-not-scalar"), Origin: Imagined,
		Front: onAnswer(toDescribe, func(x *exchange) {
			if len(x.Request.URL.Query()["name"]) > 1 {
				x.Refuse(http.StatusInternalServerError, "internal_error", "One name is wanted.")
			}
		})},

	{Name: "describe-sticky-404", Breaks: Clauses("describe/after-error"), Free: Clauses("access/no-cross-talk"), Origin: Module, Why: "the page cache forgets the query",
		Front: sticky(http.StatusNotFound, func(failed, now string) bool { return failed == now })},
	{Name: "describe-sticky-400", Breaks: Clauses("describe/after-error"), Origin: Module,
		Front: sticky(http.StatusBadRequest, func(failed, now string) bool { return failed == now })},
	{Name: "describe-name-zero-is-none", Breaks: Clauses("describe/unknown-404"), Origin: Peer, Why: "`empty('0')` is true",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.described() == "0" && x.Status == http.StatusNotFound {
				x.Refuse(http.StatusBadRequest, "missing_parameter", "The parameter \"name\" is missing.")
			}
		})},
	{Name: "describe-knows-constructor", Breaks: Clauses("describe/unknown-404"), Origin: Peer, Why: "every object of JavaScript has one",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.described() == "constructor" && x.Status == http.StatusNotFound {
				x.Set(http.StatusOK, map[string]any{"tool": map[string]any{}})
			}
		})},
	{Name: "describe-404-shared-by-name", Breaks: Clauses("describe/after-error"), Free: Clauses("describe/answers-tool", "access/per-credential", "fresh/per-user-ttl"), Origin: Imagined, Why: "a 404 cached for all, of a tool that only some may see", Front: sharedRefusal(http.StatusNotFound)},
	{Name: "describe-403-shared-by-name", Breaks: Clauses("describe/after-error"), Free: Clauses("describe/answers-tool"), Origin: Imagined, Front: sharedRefusal(http.StatusForbidden)},
	{Name: "describe-sticky-for-others", Breaks: Clauses("describe/after-error"), Free: Clauses("access/no-cross-talk", "access/per-credential"), Origin: Imagined,
		Front: sticky(http.StatusNotFound, func(failed, now string) bool { return now != "" && failed != now })},

	{Name: "describe-error-as-html", Breaks: Clauses("describe/reflects-safely", "describe/name-not-scalar", "errors/envelope"), Origin: Imagined,
		Why: "a 404's JSON is sent as text/html: a script in the name runs",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.Status == http.StatusNotFound {
				x.Header.Set("Content-Type", "text/html; charset=UTF-8")
			}
		})},
	{Name: "describe-name-unescaped", Breaks: Clauses("describe/reflects-safely", "errors/envelope"), Origin: Imagined, Why: "the error's JSON is glued together",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.Status == http.StatusNotFound {
				x.Body = []byte(`{"error":{"code":"tool_not_found","message":"There is no tool named '` + x.described() + `'"}}`)
			}
		})},
}

// onDescribed changes the tool that describe gives; the change may refuse instead.
func onDescribed(change func(x *exchange, t tool) any) front {
	return onAnswer(toDescribe, func(x *exchange) {
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

// onKnown changes the 404 for a method that exists on the site and is no tool of the caller: the account may run it.
func onKnown(matches func(*http.Request) bool, authorization string, change func(x *exchange)) func(*wire) front {
	return func(site *wire) front {
		return onAnswer(matches, func(x *exchange) {
			if x.Status == http.StatusNotFound && site.hides(authorization, x.named()) {
				change(x)
			}
		})
	}
}

// onDeniedName changes the 404 for a tool that is listed for other callers: the administrator's list tells.
func onDeniedName(matches func(*http.Request) bool, change func(x *exchange, t tool)) front {
	return onAnswer(matches, func(x *exchange) {
		if x.Status != http.StatusNotFound {
			return
		}
		if t, ok := x.as("admin").tool(x.named()); ok {
			change(x, t)
		}
	})
}

// as is the same exchange with the credentials of a built-in account.
func (x *exchange) as(user string) *exchange {
	other := *x
	other.Request = x.Request.Clone(x.Request.Context())
	other.Request.Header.Set("Authorization", signedAs(user))
	return &other
}

// tool describes a tool to the caller.
func (x *exchange) tool(name string) (tool, bool) {
	target := sibling(x.Request, "describe") + "?" + url.Values{"name": {name}}.Encode()
	t, ok := x.Ask(http.MethodGet, target, nil).Object()["tool"].(tool)
	return t, ok
}

// names lists all tools of the caller.
func (x *exchange) names() []string {
	var names []string
	for cursor := ""; ; {
		target := sibling(x.Request, "list")
		if cursor != "" {
			target += "?" + url.Values{"cursor": {cursor}}.Encode()
		}
		object := x.Ask(http.MethodGet, target, nil).Object()
		tools, _ := object["tools"].([]any)
		for _, t := range tools {
			names = append(names, t.(tool)["name"].(string))
		}
		if cursor, _ = object["nextCursor"].(string); cursor == "" {
			return names
		}
	}
}

// sibling is the path of another of the three endpoints.
func sibling(r *http.Request, endpoint string) string {
	return path.Join(path.Dir(r.URL.Path), endpoint)
}

// lookingUp finds tools by a looser comparison than equality.
func lookingUp(matches func(*http.Request) bool, same func(asked, name string) bool) front {
	return onAnswer(matches, func(x *exchange) {
		asked := x.named()
		if x.Status != http.StatusNotFound || asked == "" {
			return
		}
		for _, name := range x.names() {
			if !same(asked, name) {
				continue
			}
			if toInvoke(x.Request) {
				call := decode(x.Sent)
				call["name"] = name
				*x = *x.Ask(http.MethodPost, x.Request.URL.Path, encode(call))
				return
			}
			if t, ok := x.tool(name); ok {
				x.Set(http.StatusOK, map[string]any{"tool": t})
			}
			return
		}
	})
}

// sticky keeps describe's refusal of the status, right after a good answer to the same caller, and gives it once more in
// place of the next good answer to a caller who had one and for whom applies says so. Another refusal in between makes
// it forget.
func sticky(status int, applies func(failed, now string) bool) front {
	var (
		mu     sync.Mutex
		kept   *exchange
		served = map[string]bool{}
	)
	who := func(x *exchange) string { return x.Request.Header.Get("Authorization") }
	return onAnswer(toDescribe, func(x *exchange) {
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

// sharedRefusal gives describe's refusal of the status to whoever asks for the same name next.
func sharedRefusal(status int) front {
	var (
		mu   sync.Mutex
		kept *exchange
	)
	return onAnswer(toDescribe, func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		if kept != nil && x.Status == http.StatusOK && kept.described() == x.described() {
			x.Status, x.Body = kept.Status, kept.Body
		}
		kept = nil
		if x.Status == status {
			kept = x
		}
	})
}

// recode gives a refusal another code.
func (x *exchange) recode(from, to string) {
	object := x.Object()
	if e, ok := object["error"].(map[string]any); ok && e["code"] == from {
		e["code"] = to
		x.Body = encode(object)
	}
}

// page replaces the answer by an HTML page, as Drupal's own errors are.
func (x *exchange) page(status int, text string) {
	x.Status, x.Body = status, []byte("<!DOCTYPE html>\n<html><head><title>Error</title></head><body>"+text+"</body></html>\n")
	x.Header.Set("Content-Type", "text/html; charset=UTF-8")
}
