package mutants

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// onTextOf changes a text of every tool in list and describe.
func onTextOf(member string, change func(string) string) middleware {
	return onTool(func(t tool) {
		if text, ok := t[member].(string); ok {
			t[member] = change(text)
		}
	})
}

// mappingValueMutants change texts and values of tools as JSON libraries and text filters do.
func mappingValueMutants() []Mutant {
	allTexts := Clauses("mapping/description-is-usage", "mapping/title-from-attribute", "mapping/annotations-from-attribute", "mapping/output-schema",
		"mapping/properties-complete", "mapping/param-description")
	return []Mutant{
		{Name: "title-0-is-none", Breaks: Clauses("mapping/title-from-attribute"), Origin: Peer, Why: "empty() of PHP takes the text 0 for empty",
			Middleware: onTool(func(t tool) {
				if t["title"] == "0" {
					delete(t, "title")
				}
			})},
		{Name: "language-of-lists-alone", Breaks: Clauses("mapping/language"), Origin: Imagined, Why: "describe does not pass Accept-Language on",
			Middleware: onLanguage(func(r *http.Request, language string) string {
				if toDescribe(r) {
					return ""
				}
				return language
			})},
		{Name: "language-without-its-region", Breaks: Clauses("mapping/language"), Origin: Peer, Why: "pt-BR is Portuguese",
			Middleware: onLanguage(func(_ *http.Request, language string) string {
				if strings.Contains(language, ",") {
					return language
				}
				short, _, _ := strings.Cut(language, "-")
				return short
			})},
		{Name: "languages-share-a-fetch", Breaks: Clauses("mapping/language"), Origin: Peer, Why: "who asks while a fetch for the same caller runs waits for that one, whatever its language is",
			Middleware: shareLanguage()},
		{Name: "language-of-the-first-page-alone", Breaks: Clauses("mapping/language"), Origin: Imagined, Why: "a cursor stands for a list, and not for its language",
			Middleware: onLanguage(func(r *http.Request, language string) string {
				if r.URL.Query().Has("cursor") {
					return ""
				}
				return language
			})},
		{Name: "language-of-the-first-describe", Breaks: Clauses("mapping/language"), Origin: Peer, Why: "a description is kept by caller and name",
			Middleware: keepFirstLanguage(toDescribe)},
		{Name: "kept-language-preferred", Breaks: Clauses("mapping/language"), Origin: Peer, Why: "the first language of the header for which there is a list wins",
			Middleware: preferKeptLanguage()},
		{Name: "mcp-language-of-the-session", MCP: true, Breaks: Clauses("mapping/language"), Origin: Peer, Why: "the context of a session is made once, at initialize",
			Middleware: keepFirstLanguage(toMCP)},
		{Name: "mcp-language-lost", MCP: true, Breaks: Clauses("mapping/language"), Origin: Imagined,
			Middleware: onLanguage(func(r *http.Request, language string) string {
				if toMCP(r) {
					return ""
				}
				return language
			})},
		{Name: "mcp-alone-descriptions-cut", MCP: true, Claims: "-tools", Breaks: Clauses("mapping/description-is-usage"), Origin: Peer,
			Middleware: onMCPTool(func(t tool) {
				if d, _ := t["description"].(string); len(d) > 40 {
					t["description"] = strings.ToValidUTF8(d[:40], "")
				}
			})},
		{Name: "mcp-alone-required-lost", MCP: true, Claims: "-tools", Breaks: Clauses("mapping/required-exact", "translate/required-default"), Origin: Peer,
			Middleware: onMCPTool(inMember("inputSchema", without("required")))},
		{Name: "names-cut-at-64", Breaks: Clauses("mapping/long-names"), Origin: Peer, Why: "a provider refuses longer names; the first of two that are then equal runs",
			Middleware: renameTools(cutAt(64))},
		{Name: "names-cut-at-100", Breaks: Clauses("mapping/long-names"), Origin: Imagined, Middleware: renameTools(cutAt(100))},
		{Name: "long-names-merged", Breaks: Clauses("mapping/long-names"), Origin: Peer, Why: "tools are kept in a map by their cut names",
			Transport: onDiscovery(func(index map[string]any) {
				methods, _ := index["data"].([]any)
				seen := map[string]bool{}
				index["data"] = slices.DeleteFunc(methods, func(m any) bool {
					id, _ := m.(map[string]any)["id"].(string)
					name := cutAt(64)(id)
					defer func() { seen[name] = true }()
					return len(id) > 64 && seen[name]
				})
			})},
		{Name: "times-rewritten", Breaks: allTexts, Origin: Peer,
			Why:        "the JSON library reads texts that look like times as times and writes them in UTC, as Newtonsoft.Json does",
			Middleware: onTool(changeTexts(inUTC))},
		{Name: "numeric-texts-as-numbers", Breaks: Clauses("mapping/description-is-usage", "mapping/title-from-attribute", "mapping/annotations-from-attribute", "mapping/output-schema", "mapping/properties-complete", "mapping/required-exact", "mapping/param-description", "mapping/by-position", "schema/input-valid"), Origin: Module,
			Why:        "JSON_NUMERIC_CHECK turns texts that look like numbers into numbers",
			Middleware: onTool(changeTexts(asNumber))},
		{Name: "line-ends-rewritten", Breaks: allTexts, Origin: Imagined, Why: "a text filter writes every line end as \\n",
			Middleware: onTool(changeTexts(func(s string) any { return strings.ReplaceAll(s, "\r\n", "\n") }))},
		{Name: "decimals-of-14-digits", Breaks: Clauses("mapping/annotations-from-attribute", "mapping/output-schema", "mapping/properties-complete"), Origin: Module, Why: "serialize_precision is 14, as in an old php.ini",
			Middleware: onTool(changeNumbers(of14Digits))},
		{Name: "property-of-a-reserved-name-lost", Breaks: Clauses("mapping/properties-complete"), Origin: Peer, Why: "in JavaScript, an assignment to __proto__ adds no member",
			Middleware: onProperties(func(_, properties map[string]any) { delete(properties, "__proto__") })},
		{Name: "output-schema-through-a-struct", Breaks: Clauses("mapping/output-schema"), Origin: Peer, Why: "a struct of known keywords drops the others",
			Middleware: onTool(func(t tool) {
				walkObjects(t["outputSchema"], without("enum", "format", "oneOf", "maxItems", "pattern"))
			})},
		{Name: "rare-keywords-lost", Breaks: Clauses("mapping/properties-complete"), Origin: Peer, Why: "a struct of known keywords drops the others",
			Middleware: onProperty(without("contains", "dependencies", "additionalItems"))},
		{Name: "empty-defaults-lost", Breaks: Clauses("mapping/properties-complete"), Origin: Peer, Why: "omitempty, or `if ($default)`",
			Middleware: onProperty(func(p map[string]any) {
				if d := string(encode(p["default"])); d == "{}" || d == "[]" {
					delete(p, "default")
				}
			})},
	}
}

// changeTexts returns a change of all texts in a tool, except its name and the names of members.
func changeTexts(change func(string) any) func(tool) {
	return func(t tool) {
		for member, v := range t {
			if member != "name" {
				t[member] = mapValues(v, func(v any) any {
					if s, ok := v.(string); ok {
						return change(s)
					}
					return v
				})
			}
		}
	}
}

// changeNumbers returns a change of all numbers in a tool.
func changeNumbers(change func(json.Number) json.Number) func(tool) {
	return func(t tool) {
		for member, v := range t {
			t[member] = mapValues(v, func(v any) any {
				if n, ok := v.(json.Number); ok {
					return change(n)
				}
				return v
			})
		}
	}
}

// of14Digits rounds a decimal as PHP does with serialize_precision=14. Integers stay as they are.
func of14Digits(n json.Number) json.Number {
	f, err := n.Float64()
	if err != nil || !strings.Contains(n.String(), ".") {
		return n
	}
	return json.Number(strconv.FormatFloat(f, 'g', 14, 64))
}

// inUTC returns a text that is a time with an offset as the same time in UTC.
func inUTC(s string) any {
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return at.UTC().Format("2006-01-02T15:04:05Z07:00")
	}
	return s
}

var looksNumeric = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(e[0-9]+)?$`)

// asNumber returns a text that looks like a number as a number.
func asNumber(s string) any {
	if f, err := strconv.ParseFloat(s, 64); err == nil && looksNumeric.MatchString(s) {
		return f
	}
	return s
}

func emptyObjectsAsLists(v any) any {
	if object, ok := v.(map[string]any); ok && len(object) == 0 {
		return []any{}
	}
	return v
}

// cutAt cuts names at a length.
func cutAt(length int) func(string) string {
	return func(name string) string { return name[:min(len(name), length)] }
}

// onLanguage changes the Accept-Language of requests.
func onLanguage(change func(r *http.Request, language string) string) middleware {
	return beforeBridge(func(r *http.Request) {
		if language := r.Header.Get("Accept-Language"); language != "" {
			r.Header.Set("Accept-Language", change(r, language))
		}
	})
}

// keepFirstLanguage asks for the language that a caller asked for first.
func keepFirstLanguage(matches func(*http.Request) bool) middleware {
	first := newMemory[string]()
	return onLanguage(func(r *http.Request, language string) string {
		if matches(r) {
			return first.keep(authorized(r), language)
		}
		return language
	})
}

// preferKeptLanguage asks for the first language of the header where a caller has asked for it before.
func preferKeptLanguage() middleware {
	kept := newSet()
	return onLanguage(func(r *http.Request, language string) string {
		first, _, _ := strings.Cut(language, ",")
		first, _, _ = strings.Cut(first, ";")
		if !kept.add(authorized(r) + first) {
			return first
		}
		return language
	})
}

// shareFlightByName gives a list that is asked for while another runs for the same account the credentials of that one.
func shareFlightByName() middleware {
	var running sync.Map // credentials by name
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if name, _, ok := r.BasicAuth(); toList(r) && ok {
			first, shared := running.LoadOrStore(name, authorized(r))
			if r.Header.Set("Authorization", first.(string)); !shared {
				defer running.Delete(name)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// shareLanguage gives a list that is asked for while another runs for the same caller the language of that one.
func shareLanguage() middleware {
	var running sync.Map // language by credentials
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if language := r.Header.Get("Accept-Language"); toList(r) && language != "" {
			caller := authorized(r)
			first, shared := running.LoadOrStore(caller, language)
			if r.Header.Set("Accept-Language", first.(string)); !shared {
				defer running.Delete(caller)
			}
		}
		next.ServeHTTP(w, r)
	})
}
