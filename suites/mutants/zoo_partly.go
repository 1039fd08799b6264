package mutants

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// What is right for one caller, page or value and wrong for another.
var partlyMutants = []Mutant{
	{Name: "list-text-html-for-admins", Breaks: Clauses("list/answers-json"), Origin: Imagined,
		Front: onList(func(p *page) {
			if caller(p.Request) == "admin" {
				p.Header.Set("Content-Type", "text/html; charset=UTF-8")
			}
		})},
	{Name: "tools-keyed-when-filtered", Breaks: Clauses("list/has-tools-array"), Origin: Module, Why: "array_filter() keeps the keys",
		Front: onList(func(p *page) {
			if caller(p.Request) != "discoverer" {
				return
			}
			keyed := map[string]any{}
			for i, t := range p.Tools {
				keyed[strconv.Itoa(i+1)] = t
			}
			p.Object["tools"] = keyed
			p.Body, p.Object = encode(p.Object), nil
		})},
	{Name: "next-cursor-empty-on-the-only-page", Breaks: Clauses("list/next-cursor-type"), Origin: Imagined,
		Front: atTheEnd(func(p *page) {
			if p.Cursor == "" {
				p.Object["nextCursor"] = ""
			}
		})},
	{Name: "last-tool-never-goes", Breaks: Clauses("list/empty-site"), Origin: Imagined, Why: "an empty discovery is taken for a failed one", Upstream: emptyNotBelieved()},
	{Name: "cursor-invalid-utf8-500", Breaks: Clauses("list/cursor-malformed"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			if raw, _ := base64.StdEncoding.DecodeString(x.Request.URL.Query().Get("cursor")); !utf8.Valid(raw) {
				x.Refuse(http.StatusInternalServerError, "internal_error", "Malformed UTF-8 characters, possibly incorrectly encoded")
			}
		})},
	{Name: "description-cut-at-1024", Breaks: Clauses("mapping/description-is-usage"), Origin: Peer, Why: "what some clients take at most",
		Front: onDescription(func(d string) string { return string([]rune(d)[:min(1024, utf8.RuneCountInString(d))]) })},
	{Name: "tools-of-admins-untranslated", Breaks: Clauses("mapping/properties-complete", "mapping/required-exact"), Origin: Imagined, Why: "the agent's tools are right, those of others are not",
		Front: onInput(func(schema map[string]any) {
			if properties, _ := schema["properties"].(map[string]any); properties["title"] != nil && properties["body"] != nil {
				schema["properties"] = map[string]any{}
				delete(schema, "required")
			}
		})},
	{Name: "schema-broken-for-admins", Breaks: Clauses("schema/input-valid", "mapping/properties-complete"), Origin: Imagined,
		Front: onInput(func(schema map[string]any) {
			if properties, _ := schema["properties"].(map[string]any); properties["title"] != nil && properties["body"] != nil {
				properties["body"].(map[string]any)["type"] = "text"
			}
		})},

	{Name: "describe-needs-a-list-before", Breaks: Clauses("describe/answers-tool"), Origin: Imagined, Why: "only list fills the caller's catalogue", Front: describeNeedsList()},
	{Name: "describe-text-html", Breaks: Clauses("describe/answers-tool"), Origin: Peer, Front: onDescribed(func(x *exchange, t tool) any {
		x.Header.Set("Content-Type", "text/html; charset=UTF-8")
		return t
	})},
	{Name: "describe-unknown-escaped", Breaks: Clauses("describe/unknown-404"), Origin: Module, Why: "the @placeholder of a message escapes for HTML",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.Status == http.StatusNotFound {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named '%s'.", html.EscapeString(x.described())))
			}
		})},
	{Name: "describe-reads-to-a-nul", Breaks: Clauses("describe/name-exact"), Origin: Imagined, Why: "a name that went through C",
		Front: lookingUp(toDescribe, func(asked, name string) bool {
			read, _, cut := strings.Cut(asked, "\x00")
			return cut && read == name
		})},
	{Name: "describe-decodes-twice", Breaks: Clauses("describe/name-exact"), Origin: Peer,
		Front: lookingUp(toDescribe, func(asked, name string) bool {
			again, err := url.QueryUnescape(asked)
			return err == nil && again == name
		})},
	{Name: "describe-control-characters-raw", Breaks: Clauses("describe/reflects-safely"), Origin: Peer, Why: "the error's JSON is glued together, and only quotes are escaped",
		Front: onAnswer(toDescribe, func(x *exchange) {
			if x.Status == http.StatusNotFound {
				x.Body = []byte(`{"error":{"code":"tool_not_found","message":"There is no tool named ` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(x.described()) + `"}}`)
			}
		})},
	{Name: "describe-500-after-two-names", Breaks: Clauses("describe/after-error"), Origin: Imagined, Why: "the first failure leaves its worker broken", Front: brokenAfterTwoNames()},
}

// emptyNotBelieved goes on with the methods that the site showed a caller before, where it shows no tool at all.
func emptyNotBelieved() upstream {
	last := newTable[[]any]()
	return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		who := r.Header.Get("Authorization")
		return onDiscovery(func(index map[string]any) {
			methods, _ := index["data"].([]any)
			if slices.ContainsFunc(methods, func(m any) bool {
				attributes, _ := m.(map[string]any)["attributes"].(map[string]any)
				return attributes["mcpTool"] != nil
			}) {
				last.put(who, methods)
			} else if kept, ok := last.get(who); ok {
				index["data"] = kept
			}
		})(next).RoundTrip(r)
	})
}

// describeNeedsList knows no tool of a caller who has not listed any.
func describeNeedsList() front {
	listed := newSet()
	return onAnswer(toToolViews, func(x *exchange) {
		who := x.Request.Header.Get("Authorization")
		if toList(x.Request) {
			listed.add(who)
		} else if _, ok := listed.get(who); !ok && x.Status == http.StatusOK {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
		}
	})
}

// brokenAfterTwoNames fails the describe after one with two names.
func brokenAfterTwoNames() front {
	var broken atomic.Bool
	return onAnswer(toDescribe, func(x *exchange) {
		if broken.CompareAndSwap(true, false) && x.Status == http.StatusOK {
			x.Refuse(http.StatusInternalServerError, "internal_error", "The worker is gone.")
		}
		broken.Store(len(x.Request.URL.Query()["name"]) > 1)
	})
}
