package selftest

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
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
	{Name: "invoke-text-html", Breaks: Clauses("invoke/answers-result"), Origin: Peer, Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusOK {
			x.Header.Set("Content-Type", "text/html; charset=UTF-8")
		}
	})},
	{Name: "arguments-keyed-as-list", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Module, Why: "an object with the keys 0 and 1 is a list to PHP", Upstream: onArguments(keyedAsList)},
	{Name: "arguments-cut-at-a-nul", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined,
		Upstream: onArguments(onStrings(func(s string) string {
			read, _, _ := strings.Cut(s, "\x00")
			return read
		}))},
	{Name: "arguments-json-in-texts-decoded", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "clients that send objects as text are helped, and texts are spoiled",
		Upstream: onNestedArguments(func(v any) any {
			if s, ok := v.(string); ok {
				if object := decode([]byte(s)); object != nil {
					return object
				}
			}
			return v
		})},
	{Name: "result-keyed-as-list", Breaks: Clauses("invoke/result-exact"), Origin: Module, Front: onResult(func(v any) any { return mapped(v, keyedAsList) })},
	{Name: "json-comments-accepted", Breaks: Clauses("invoke/malformed-json"), Origin: Peer, Why: "a parser of JSON5",
		Front: onBody(func(body []byte) []byte { return regexp.MustCompile(`(?m)/\*.*?\*/|^//.*$`).ReplaceAll(body, nil) })},
	{Name: "name-false-404", Breaks: Clauses("invoke/missing-name"), Origin: Imagined, Front: onCallBody(func(x *exchange, call map[string]any) {
		if call["name"] == false {
			x.Refuse(http.StatusNotFound, "tool_not_found", `There is no tool named "".`)
		}
	})},
	{Name: "null-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "null passes for a value of every type",
		Wired: unchecked(everyOne(func(v violation) bool { return v.Received == "null" }))},
	{Name: "empty-list-for-an-object", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Module, Why: "PHP's [] is both", Wired: emptyListForObject},
	leaking("thrown-text-for-admins", "who may see everything sees the exception, and so does the model that works for them", Clauses("invoke/no-trace-leak"), func(x *exchange, text string) {
		if caller(x.Request) == "admin" {
			x.Header.Set("X-Exception", strings.Join(strings.Fields(text), " "))
		}
	}),
	{Name: "local-references-left-out", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "a parameter's schema with references of its own is taken for one that cannot be translated",
		Upstream: onDiscovery(func(index map[string]any) {
			methods, _ := index["data"].([]any)
			index["data"] = slices.DeleteFunc(methods, func(m any) bool { return strings.Contains(string(encode(m)), `"$ref":"#`) })
		})},

	{Name: "describe-500-after-two-names", Breaks: Clauses("describe/after-error"), Origin: Imagined, Why: "the first failure leaves its worker broken", Front: brokenAfterTwoNames()},
}

// keyedAsList makes a list of an object whose keys are those of one.
func keyedAsList(v any) any {
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 {
		return v
	}
	list := make([]any, len(object))
	for i := range list {
		if list[i], ok = object[strconv.Itoa(i)]; !ok {
			return v
		}
	}
	return list
}

// emptyListForObject lets through a parameter that must be an object and is an empty list.
func emptyListForObject(site *wire) front {
	return onCode("invalid_params", func(x *exchange) {
		arguments, _ := decode(x.Sent)["arguments"].(map[string]any)
		found := x.violations()
		if len(found) > 0 && everyOne(func(v violation) bool {
			list, ok := arguments[v.Parameter].([]any)
			return ok && len(list) == 0 && v.Expected == "object"
		})(found) {
			site.run(x, x.Request.Header.Get("Authorization"))
		}
	})
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
