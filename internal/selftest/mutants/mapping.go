package mutants

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/filter"
)

// mappingMutants write tools that do not say what the methods of the site say.
func mappingMutants() []Mutant {
	return []Mutant{
		{Name: "name-with-hyphens", Breaks: Clauses("mapping/name-is-id", "access/filtered-by-method", "translate/entity-reference", "translate/text-formatted", "translate/required-default"), Origin: Imagined,
			Why: "underscores become hyphens; both spellings are accepted", Middleware: renameTools(func(id string) string { return strings.ReplaceAll(id, "_", "-") })},
		{Name: "name-underscored-unasked", Breaks: Clauses("mapping/name-is-id", "access/filtered-by-method"), Origin: Peer,
			Why: "some clients need it, but the bridge does not claim it", Middleware: renameTools(renameTaxonomy("taxonomy_"))},
		{Name: "name-with-slashes", Breaks: Clauses("mapping/name-is-id", "mapping/name-portable", "access/filtered-by-method"), Origin: Imagined,
			Middleware: renameTools(renameTaxonomy("taxonomy/"))},
		{Name: "name-with-blanks", Breaks: Clauses("mapping/name-is-id", "mapping/name-portable", "access/filtered-by-method"), Origin: Imagined,
			Middleware: renameTools(renameTaxonomy("Taxonomy: "))},
		{Name: "names-collide-when-underscored", Breaks: Clauses("mapping/name-underscored", "mapping/long-names", "list/names-unique", "describe/equals-list"), Origin: Imagined,
			Claims: "naming-underscore", Options: useUnderscores,
			Middleware: renameTools(func(name string) string { return regexp.MustCompile(`_[0-9a-f]{8}$`).ReplaceAllString(name, "") })},
		{Name: "collisions-told-apart-by-order", Breaks: Clauses("mapping/name-underscored"), Origin: Imagined, Why: "a method listed earlier takes over the name of an existing tool",
			Claims: "naming-underscore", Options: useUnderscores, Transport: swapByOrder("id.a.b_c", "id.a_b.c")},
		{Name: "name-keeps-its-dots", Breaks: Clauses("mapping/name-underscored", "access/filtered-by-method"), Origin: Imagined,
			Claims: "naming-underscore", Why: "all names except a few; both spellings are accepted", Options: useUnderscores,
			Middleware: renameTools(func(name string) string { return strings.Replace(name, "taxonomy_", "taxonomy.", 1) })},
		{Name: "name-underscored-one-way", Breaks: Clauses("mapping/name-underscored", "describe/answers-tool"), Origin: Imagined, Claims: "naming-underscore",
			Why: "describe accepts the id only", Options: useUnderscores, Middleware: onResponse(toDescribe, func(x *exchange) {
				if strings.HasPrefix(x.described(), "id_") && x.Status == http.StatusOK {
					x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
				}
			})},
		{Name: "description-escaped", Breaks: Clauses("mapping/description-is-usage"), Origin: Module,
			Middleware: onDescription(html.EscapeString)},
		{Name: "description-cut", Breaks: Clauses("mapping/description-is-usage"), Origin: Peer, Why: "cut at 60 characters",
			Middleware: onDescription(func(s string) string {
				if runes := []rune(s); len(runes) > 60 {
					return string(runes[:59]) + "…"
				}
				return s
			})},
		{Name: "title-missing", Breaks: Clauses("mapping/title-from-attribute"), Origin: Peer,
			Middleware: onTool(func(t tool) { delete(t, "title") })},
		{Name: "title-is-usage", Breaks: Clauses("mapping/title-from-attribute"), Origin: Imagined,
			Middleware: onTool(func(t tool) {
				if _, ok := t["title"]; ok {
					t["title"] = t["description"]
				}
			})},
		{Name: "annotations-pile-up", Breaks: Clauses("mapping/annotations-from-attribute"), Origin: Imagined, Why: "all tools write into one shared object of defaults",
			Transport: onDiscovery(func(index map[string]any) {
				pile := map[string]any{}
				methods, _ := index["data"].([]any)
				for _, m := range methods {
					attribute := objectIn(objectIn(m.(map[string]any), "attributes"), "mcpTool")
					if own, has := attribute["annotations"].(map[string]any); has && len(own) > 0 {
						maps.Copy(pile, own)
						attribute["annotations"] = maps.Clone(pile)
					}
				}
			})},
		{Name: "pointers-not-decoded", Breaks: Clauses("mapping/properties-complete"), Origin: Peer, Why: "a pointer is split at its slashes", Transport: withoutReferences(`[~%][^"]*`)},
		{Name: "pointers-end-at-lists", Breaks: Clauses("mapping/properties-complete"), Origin: Peer, Why: "what has a name is in an object", Transport: withoutReferences(`/[0-9]+`)},
		{Name: "annotations-compacted", Breaks: Clauses("mapping/annotations-from-attribute"), Origin: Peer, Why: "null says nothing",
			Middleware: onAnnotations(func(a map[string]any) { maps.DeleteFunc(a, func(_ string, v any) bool { return v == nil }) })},
		{Name: "annotations-hints-only", Breaks: Clauses("mapping/annotations-from-attribute"), Origin: Peer, Why: "as go-sdk's typed annotations do",
			Middleware: onAnnotations(func(a map[string]any) {
				for name := range a {
					if !slices.Contains([]string{"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}, name) {
						delete(a, name)
					}
				}
			})},
		{Name: "output-schema-invented", Breaks: Clauses("mapping/output-schema"), Origin: Imagined, Why: "one is added where the method declares none",
			Middleware: onTool(setWhereMissing("outputSchema", map[string]any{"type": "object"}))},
		{Name: "output-schema-objects-only", Breaks: Clauses("mapping/output-schema"), Origin: Peer, Why: "revision 2025-06-18 allows only objects",
			Middleware: onTool(func(t tool) {
				if s, ok := t["outputSchema"].(map[string]any); ok && s["type"] != "object" {
					delete(t, "outputSchema")
				}
			})},
		{Name: "input-type-missing", Breaks: Clauses("mapping/input-object"), Origin: Peer,
			Middleware: onInput(func(s map[string]any) { delete(s, "type") })},
		{Name: "input-schema-empty-without-parameters", Breaks: Clauses("mapping/input-object"), Origin: Peer,
			Middleware: onInput(func(s map[string]any) {
				if p, _ := s["properties"].(map[string]any); len(p) == 0 {
					clear(s)
				}
			})},
		{Name: "properties-list-when-empty", Breaks: Clauses("mapping/no-params-object", "mapping/input-object", "schema/input-valid"), Origin: Module,
			Middleware: onInput(func(s map[string]any) {
				if p, ok := s["properties"].(map[string]any); !ok || len(p) == 0 {
					s["properties"] = []any{}
				}
			})},
		{Name: "properties-list-when-empty-nested", Breaks: Clauses("mapping/no-params-object", "schema/input-valid"), Origin: Module,
			Middleware: onProperty(func(p map[string]any) { walkObjects(p, emptyAsList) })},
		{Name: "properties-list-when-empty-in-items", Breaks: Clauses("mapping/no-params-object", "schema/input-valid"), Origin: Module, Why: "the repair goes through properties, and not through items",
			Middleware: onInput(func(schema map[string]any) {
				walkObjects(schema, func(inner map[string]any) {
					if items, ok := inner["items"].(map[string]any); ok {
						emptyAsList(items)
					}
				})
			})},
		{Name: "properties-list-when-empty-in-output", Breaks: Clauses("mapping/no-params-object", "schema/output-valid"), Origin: Module,
			Middleware: onTool(func(t tool) { walkObjects(t["outputSchema"], emptyAsList) })},
		{Name: "one-parameter-lost", Breaks: Clauses("mapping/properties-complete"), Origin: Imagined, Why: "an optional parameter is lost",
			Middleware: onTool(func(t tool) {
				properties := objectIn(objectIn(t, "inputSchema"), "properties")
				if _, optional := properties["page"]; optional && strings.HasPrefix(fmt.Sprint(t["name"]), "content.") {
					delete(properties, "page")
				}
			})},
		{Name: "parameter-invented", Breaks: Clauses("mapping/properties-complete"), Origin: Imagined,
			Middleware: onProperties(func(_, properties map[string]any) { properties["_format"] = map[string]any{} })},
		{Name: "open-maps-closed", Breaks: Clauses("mapping/properties-complete"), Origin: Module, Why: "PHP's [] is read as false",
			Middleware: onProperty(func(p map[string]any) {
				if open, ok := p["additionalProperties"].(map[string]any); ok && len(open) == 0 {
					p["additionalProperties"] = false
				}
			})},
		{Name: "enum-lost", Breaks: Clauses("mapping/properties-complete", "translate/entity-reference", "translate/boolean-integer-decimal-list"), Origin: Imagined, Middleware: onProperty(without("enum"))},
		{Name: "unknown-formats-lost", Breaks: Clauses("mapping/properties-complete"), Origin: Peer, Why: "a validator stops at a format that it does not know",
			Middleware: onProperty(func(p map[string]any) {
				if p["format"] == "machine-name" {
					delete(p, "format")
				}
			})},
		{Name: "format-lost", Breaks: Clauses("mapping/properties-complete", "translate/datetime", "translate/boolean-integer-decimal-list"), Origin: Peer, Middleware: onProperty(without("format"))},
		{Name: "bounds-lost", Breaks: Clauses("mapping/properties-complete", "translate/boolean-integer-decimal-list"), MayFail: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Middleware: onProperty(without("minimum", "maximum"))},
		{Name: "default-lost", Breaks: Clauses("mapping/properties-complete", "translate/required-default"), Origin: Imagined, Middleware: onProperty(without("default"))},
		{Name: "combinators-lost", Breaks: Clauses("mapping/properties-complete"), Origin: Peer, Middleware: onProperty(without("oneOf", "anyOf", "allOf", "not"))},
		{Name: "nested-schemas-flattened", Breaks: Clauses("mapping/properties-complete", "translate/text-formatted", "translate/file", "translate/custom-type"), Origin: Imagined,
			Middleware: onProperty(func(p map[string]any) {
				if p["additionalProperties"] == nil && !isFactorySchema(p) {
					delete(p, "properties")
				}
			})},
		{Name: "nested-enum-lost", Breaks: Clauses("mapping/properties-complete", "translate/entity-reference"), Origin: Imagined, Middleware: onNested(without("enum"))},
		{Name: "items-lost", Breaks: Clauses("mapping/properties-complete", "translate/entity-reference", "translate/boolean-integer-decimal-list",
			"translate/custom-type", "profile/array-items"),
			Origin: Imagined, Middleware: onProperty(without("items"))},
		{Name: "integer-becomes-number", Breaks: Clauses("mapping/properties-complete", "translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onProperty(func(p map[string]any) {
				if p["type"] == "integer" && p["maximum"] != nil {
					p["type"] = "number"
				}
			})},
		{Name: "parameter-description-lost", Breaks: Clauses("mapping/param-description", "translate/required-default"), Origin: Peer, Middleware: onProperty(without("description"))},
		{Name: "parameter-description-object", Breaks: Clauses("mapping/param-description", "schema/input-valid", "translate/required-default"), MayFail: Clauses("translate/boolean-integer-decimal-list", "translate/custom-type", "translate/unknown-type"), Origin: Imagined,
			Why: "TranslatableMarkup is not converted to a string",
			Middleware: onProperty(func(p map[string]any) {
				if d, ok := p["description"]; ok {
					p["description"] = map[string]any{"string": d, "arguments": []any{}}
				}
			})},
		{Name: "parameter-description-is-its-name", Breaks: Clauses("mapping/param-description"), Origin: Imagined, Why: "where the parameter has no description",
			Middleware: onProperties(func(_, properties map[string]any) {
				for name, p := range properties {
					if p := p.(map[string]any); p["description"] == nil {
						p["description"] = name
					}
				}
			})},
		{Name: "parameter-description-escaped", Breaks: Clauses("mapping/param-description"), Origin: Module,
			Middleware: onProperty(func(p map[string]any) {
				if d, ok := p["description"].(string); ok {
					p["description"] = html.EscapeString(d)
				}
			})},
		{Name: "required-missing", Breaks: Clauses("mapping/required-exact", "translate/required-default"), Origin: Peer, Middleware: onInput(without("required"))},
		{Name: "required-all", Breaks: Clauses("mapping/required-exact", "invoke/invalid-arguments-400", "translate/required-default", "upstream/eager-validation"), Origin: Imagined, Why: "the schema requires arguments that the bridge does not require",
			Middleware: onProperties(func(schema, properties map[string]any) {
				all := []any{}
				for _, name := range slices.Sorted(maps.Keys(properties)) {
					all = append(all, name)
				}
				schema["required"] = all
			})},
		{Name: "required-empty-list", Breaks: Clauses("mapping/required-exact"), Origin: Peer, Why: "Draft 4 and some clients forbid an empty list",
			Middleware: onInput(setWhereMissing("required", []any{}))},
		{Name: "required-first-only", Breaks: Clauses("mapping/required-exact", "translate/required-default"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) {
				if all := required(s); len(all) > 1 {
					s["required"] = all[:1]
				}
			})},
		{Name: "required-twice", Breaks: Clauses("mapping/required-exact", "schema/input-valid", "translate/required-default"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) {
				if all := required(s); len(all) > 0 {
					s["required"] = append(slices.Clone(all), all[0])
				}
			})},
		{Name: "factory-schema-empty", Breaks: Clauses("mapping/factory-params"), Origin: Peer,
			Middleware: onFactory(func(p map[string]any) {
				d := p["description"]
				clear(p)
				if d != nil {
					p["description"] = d
				}
			})},
		{Name: "factory-class-shown", Breaks: Clauses("mapping/factory-params"), Origin: Imagined,
			Middleware: onFactory(func(p map[string]any) { p["$comment"] = `Drupal\jsonrpc\ParameterFactory\PaginationParameterFactory` })},
		{Name: "by-position-list", Breaks: Clauses("mapping/by-position", "mapping/input-object", "schema/input-valid"), Origin: Module,
			Middleware: onPositional(func(schema, properties map[string]any) {
				list := make([]any, 0, len(properties))
				for i := range len(properties) {
					list = append(list, properties[strconv.Itoa(i)])
				}
				schema["properties"] = list
			})},
		{Name: "by-position-required-numbers", Breaks: Clauses("mapping/by-position", "schema/input-valid"), Origin: Imagined,
			Middleware: onPositional(func(schema, _ map[string]any) {
				schema["required"] = mapValues(required(schema), func(v any) any {
					if n, err := strconv.Atoi(fmt.Sprint(v)); err == nil {
						return n
					}
					return v
				})
			})},
		{Name: "language-of-the-last-request", Breaks: Clauses("mapping/language"), Origin: Peer, Why: "the language is a variable of the thread, which a request without one does not reset",
			Middleware: lastLanguage()},
		{Name: "language-lost-when-a-list-expires", Breaks: Clauses("mapping/language"), Origin: Peer, Why: "what fetches a list again has its caller, and not the language",
			Transport: languageOnce()},
		{Name: "language-of-the-first-caller", Breaks: Clauses("mapping/language"), Origin: Imagined, Why: "discovery uses the language of the first request", Transport: firstLanguage()},
		{Name: "tools-of-admins-untranslated", Breaks: Clauses("mapping/properties-complete", "mapping/required-exact"), Origin: Imagined, Why: "the agent's tools are right, those of others are not",
			Middleware: onInput(func(schema map[string]any) {
				if properties, _ := schema["properties"].(map[string]any); properties["title"] != nil && properties["body"] != nil {
					schema["properties"] = map[string]any{}
					delete(schema, "required")
				}
			})},
	}
}

// mappingVariants write the same tools in another form.
func mappingVariants() []Mutant {
	return []Mutant{
		{Name: "naming-underscore", Why: "names of letters, digits, _ and - alone", Claims: "naming-underscore", Options: useUnderscores},
		{Name: "properties-left-out", Why: "a method without parameters may leave properties out", Middleware: onInput(func(s map[string]any) {
			if p, ok := s["properties"].(map[string]any); ok && len(p) == 0 {
				delete(s, "properties")
			}
		})},
		{Name: "properties-empty-object", Why: "a method without parameters may have properties: {}", Middleware: onInput(func(s map[string]any) {
			if s["properties"] == nil {
				s["properties"] = map[string]any{}
			}
		})},
		{Name: "arguments-titled", Why: "the schema of the arguments may have additional keywords", Middleware: onInput(func(s map[string]any) {
			s["title"], s["$comment"] = "Arguments", "of this tool"
		})},
		{Name: "required-in-another-order", Why: "`required` is a set", Middleware: onInput(func(s map[string]any) { slices.Reverse(required(s)) })},
		{Name: "annotations-empty-object", Why: "empty annotations may be left out or be {}", Middleware: onTool(func(t tool) {
			if t["annotations"] == nil {
				t["annotations"] = map[string]any{}
			}
		})},
		{Name: "no-usage-no-description", Why: "a description that is not empty is a SHOULD", MayFail: Clauses("list/description-not-empty"), Middleware: onToolWithoutUsage(func(t tool) { t["description"] = "" })},
		{Name: "no-usage-other-words", Why: "the contract leaves open what replaces an empty usage", Middleware: onToolWithoutUsage(func(t tool) { t["description"] = fmt.Sprintf("Runs %s on the site.", t["name"]) })},
		{Name: "by-position-left-out", Why: "a method with parameters by position may be left out", Transport: withoutMethods(func(m map[string]any) bool {
			_, list := objectIn(m, "attributes")["params"].([]any)
			return list
		})},
	}
}

// onToolWithoutUsage changes the tools whose method has no usage, recognised by the reference's fallback.
func onToolWithoutUsage(change func(t tool)) middleware {
	return onTool(func(t tool) {
		d, name := t["description"], fmt.Sprint(t["name"])
		same := d == t["title"] && !strings.Contains(name, "worded") // which has its words in both places
		if d == "" || d == name || same {
			change(t)
		}
	})
}

// renameTools shows every tool under another name and accepts that name beside the right one.
func renameTools(to func(id string) string) middleware {
	rename := onTool(func(t tool) {
		if id, ok := t["name"].(string); ok {
			t["name"] = to(id)
		}
	})
	return func(next http.Handler) http.Handler { return rename(acceptAlias(to)(next)) }
}

// acceptAlias accepts another name of every tool beside the right one.
func acceptAlias(to func(id string) string) middleware {
	ids := newMemory[string]()
	known := func(x *exchange, name string) string {
		if _, ok := ids.get(name); !ok {
			for _, id := range x.as("admin").names() {
				ids.keep(to(id), id)
			}
		}
		if id, ok := ids.get(name); ok {
			return id
		}
		return name
	}
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		x := &exchange{Request: r, next: next}
		query := r.URL.Query()
		switch name := query.Get("name"); {
		case toDescribe(r) && name != "" && len(query["name"]) == 1:
			if id := known(x, name); id != name {
				r.URL.RawQuery = url.Values{"name": {id}}.Encode()
			}
		case toInvoke(r) && isSmall(r):
			body := readBody(r)
			if name, ok := decode(body)["name"].(string); ok && name != "" {
				if id := known(x, name); id != name {
					body = bytes.Replace(body, encode(name), encode(id), 1)
				}
			}
			setBody(r, body)
		}
		next.ServeHTTP(w, r)
	})
}

// renameTaxonomy renames only the tools of one module, so that the other tools keep the other clauses.
func renameTaxonomy(prefix string) func(string) string {
	return func(id string) string { return strings.Replace(id, "taxonomy.", prefix, 1) }
}

func useUnderscores(o *bridge.Options) { o.Naming = filter.NamingUnderscore }

func onDescription(change func(string) string) middleware { return onTextOf("description", change) }

func onAnnotations(change func(map[string]any)) middleware { return onMember("annotations", change) }

// emptyAsList writes an empty property list as PHP does.
func emptyAsList(schema map[string]any) {
	if p, ok := schema["properties"].(map[string]any); ok && len(p) == 0 {
		schema["properties"] = []any{}
	}
}

func required(schema map[string]any) []any {
	names, _ := schema["required"].([]any)
	return names
}

// onFactory changes the schemas that a parameter factory made.
func onFactory(change func(property map[string]any)) middleware {
	return onProperty(func(p map[string]any) {
		if isFactorySchema(p) {
			change(p)
		}
	})
}

// isFactorySchema recognises the schemas of the pagination and entity factories by their members.
func isFactorySchema(schema map[string]any) bool {
	inner, _ := schema["properties"].(map[string]any)
	return inner["offset"] != nil && inner["limit"] != nil || inner["uuid"] != nil && inner["type"] != nil
}

// onPositional changes the schemas of methods with parameters by position, which the reference names "0", "1", ….
func onPositional(change func(schema, properties map[string]any)) middleware {
	return onProperties(func(schema, properties map[string]any) {
		for i := range len(properties) { // a name that looks like a position is none beside others
			if properties[strconv.Itoa(i)] == nil {
				return
			}
		}
		if len(properties) > 0 {
			change(schema, properties)
		}
	})
}

// lastLanguage gives a request without a language that of the one before it.
func lastLanguage() middleware {
	var last atomic.Value
	return beforeBridge(func(r *http.Request) {
		if language := r.Header.Get("Accept-Language"); language != "" {
			last.Store(language)
		} else if before, ok := last.Swap("").(string); ok && before != "" {
			r.Header.Set("Accept-Language", before)
		}
	})
}

// languageOnce passes a caller's language on with the first discovery request in it alone.
func languageOnce() transport {
	asked := newSet()
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if language := r.Header.Get("Accept-Language"); language != "" && !isCall(r) && !asked.add(authorized(r)+r.URL.String()+language) {
			r = r.Clone(r.Context())
			r.Header.Del("Accept-Language")
		}
		return next.RoundTrip(r)
	})
}

// firstLanguage requests discovery always in the language of the first request.
func firstLanguage() transport {
	languages := newMemory[string]()
	return onSiteHeader(func(h http.Header) {
		if requested := h.Get("Accept-Language"); requested != "" {
			h.Set("Accept-Language", languages.keep("", requested))
		}
	})
}

// swapByOrder swaps two methods while the site lists the other one first.
func swapByOrder(one, other string) transport {
	return func(next http.RoundTripper) http.RoundTripper {
		var swapped atomic.Bool
		swap := func(entry map[string]any, member string) {
			switch entry[member] {
			case one:
				entry[member] = other
			case other:
				entry[member] = one
			}
		}
		calls := onCall(func(_ *http.Request, call map[string]any) {
			if swapped.Load() {
				swap(call, "method")
			}
		})
		discovered := onDiscovery(func(index map[string]any) {
			methods, _ := index["data"].([]any)
			at := func(id string) int {
				return slices.IndexFunc(methods, func(m any) bool { return m.(map[string]any)["id"] == id })
			}
			swapped.Store(at(one) > at(other))
			for _, m := range methods {
				if swapped.Load() {
					swap(m.(map[string]any), "id")
				}
			}
		})
		return calls(discovered(next))
	}
}

// withoutReferences puts a schema that takes anything in the place of references that end like this.
func withoutReferences(end string) transport {
	reference := regexp.MustCompile(`\{"\$ref":"#[^"]*` + end + `"\}`)
	return onDiscovery(func(index map[string]any) {
		index["data"] = decode(reference.ReplaceAll(encode(index), []byte("{}")))["data"]
	})
}
