package mutants

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// toolRemedies are applied to the tools of list and describe: their names, texts and schemas.
func toolRemedies() []Remedy {
	return []Remedy{
		{Clause: "mapping/name-is-id", Mutant: "name-with-hyphens", Front: fromSite(func(t tool, _ map[string]any, ids []string) {
			for _, id := range ids {
				if strings.ReplaceAll(id, "_", "-") == t["name"] {
					t["name"] = id
				}
			}
		})},
		{Clause: "mapping/name-underscored", Mutant: "name-keeps-its-dots", Front: front(renameTools(func(name string) string {
			return regexp.MustCompile(`[^A-Za-z0-9_-]`).ReplaceAllString(name, "_")
		}))},
		{Clause: "mapping/name-portable", Mutant: "name-with-blanks", Front: front(renameTools(func(name string) string {
			return regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(name, "_")
		}))},
		{Clause: "mapping/description-is-usage", Mutant: "description-escaped", Front: fromSite(func(t tool, site map[string]any, _ []string) {
			if usage, _ := site["usage"].(string); usage != "" {
				t["description"] = usage
			}
		})},
		{Clause: "mapping/title-from-attribute", Mutant: "title-is-usage", Front: fromSite(func(t tool, site map[string]any, _ []string) {
			delete(t, "title")
			if title, _ := attribute(site)["title"].(string); title != "" {
				t["title"] = title
			}
		})},
		{Clause: "mapping/annotations-from-attribute", Mutant: "annotations-hints-only", Front: fromSite(func(t tool, site map[string]any, _ []string) {
			if annotations, ok := attribute(site)["annotations"].(map[string]any); ok {
				t["annotations"] = annotations
			}
		})},
		{Clause: "mapping/output-schema", Mutant: "output-schema-objects-only", Front: fromSite(copyOutput)},
		{Clause: "schema/output-valid", Mutant: "output-schema-draft3-required", Front: fromSite(copyOutput)},
		{Clause: "mapping/input-object", Mutant: "input-schema-empty-without-parameters", Front: front(onTool(func(t tool) {
			input, _ := t["inputSchema"].(map[string]any)
			outer := map[string]any{"type": "object", "properties": map[string]any{}}
			maps.Copy(outer, input)
			outer["type"] = "object"
			t["inputSchema"] = outer
		}))},
		{Clause: "mapping/no-params-object", Mutant: "properties-list-when-empty-nested", Front: front(onTool(func(t tool) {
			for _, name := range []string{"inputSchema", "outputSchema"} {
				walkObjects(t[name], emptyProperties)
			}
		}))},
		{Clause: "mapping/properties-complete", Mutant: "combinators-lost", Front: fromSite(copyParameters)},
		{Clause: "mapping/factory-params", Mutant: "factory-schema-empty", Front: fromSite(copyParameters)},
		{Clause: "mapping/param-description", Mutant: "parameter-description-is-its-name", Front: fromSite(func(t tool, site map[string]any, _ []string) {
			eachParameter(t, site, func(property, parameter map[string]any) {
				delete(property, "description")
				if d, _ := definition(parameter)["description"].(string); d != "" {
					property["description"] = d
				}
			})
		})},
		{Clause: "mapping/required-exact", Mutant: "required-first-only", Front: fromSite(func(t tool, site map[string]any, _ []string) {
			schema, _ := t["inputSchema"].(map[string]any)
			properties, _ := schema["properties"].(map[string]any)
			parameters, ok := site["params"].(map[string]any)
			if !ok {
				return
			}
			delete(schema, "required")
			var names []any
			for name := range properties {
				if p, _ := parameters[name].(map[string]any); definition(p)["required"] == true {
					names = append(names, name)
				}
			}
			slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			if len(names) > 0 {
				schema["required"] = names
			}
		})},
		{Clause: "mapping/by-position", Mutant: "by-position-list", Front: front(withoutTools(func(t tool) bool {
			_, list := objectIn(t, "inputSchema")["properties"].([]any)
			return list
		}))},
		{Clause: "schema/input-valid", Mutant: "schema-unknown-type", Front: front(onInput(func(s map[string]any) {
			walkObjects(s, func(s map[string]any) {
				if s["type"] == "int" {
					s["type"] = "integer"
				}
			})
		}))},
		{Clause: "schema/no-remote-ref", Mutant: "schema-remote-ref", Front: front(onInput(func(s map[string]any) {
			walkObjects(s["definitions"], func(inner map[string]any) {
				if ref, ok := inner["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
					clear(inner)
				}
			})
		}))},
		{Clause: "schema/accepts-valid-example", Mutant: "schema-requires-the-impossible", Front: front(onInput(func(s map[string]any) {
			names := slices.DeleteFunc(required(s), func(name any) bool { return !has(objectIn(s, "properties"), fmt.Sprint(name)) })
			if delete(s, "required"); len(names) > 0 {
				s["required"] = names
			}
		}))},
		{Clause: "schema/bounded", Mutant: "schema-forty-deep", Front: front(onInput(func(s map[string]any) { cutBelow(s, 10) }))},
		{Clause: "profile/array-items", Mutant: "arrays-without-items", Front: front(onInput(func(s map[string]any) {
			walkObjects(s, withItems)
		}))},
		{Clause: "profile/enum-fits-type", Mutant: "enum-of-another-type", Front: front(onInput(func(s map[string]any) {
			walkObjects(s, func(s map[string]any) {
				if values, ok := s["enum"].([]any); ok && s["type"] == "string" {
					s["enum"] = slices.DeleteFunc(values, func(v any) bool { _, text := v.(string); return !text })
				}
			})
		}))},
		{Clause: "profile/strict-mode", Mutant: "tools-without-parameters-are-open", Front: front(onInput(without("additionalProperties")))},
		{Clause: "profile/no-root-combinator", Mutant: "root-any-of", Front: front(onInput(func(s map[string]any) {
			for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
				if has(s, keyword) {
					delete(s, keyword)
					s["description"] = "Which parameters belong together, the description of the tool says."
				}
			}
		}))},
		{Clause: "translate/datetime", Mutant: "datetime-any-string", Front: fromSite(fieldType("datetime", func(s map[string]any) map[string]any {
			return map[string]any{"type": "string", "format": "date-time"}
		}))},
		{Clause: "translate/text-formatted", Mutant: "formatted-text-as-string", Front: fromSite(fieldType("text_formatted", func(map[string]any) map[string]any {
			return map[string]any{"type": "object", "required": []any{"value"}, "properties": map[string]any{
				"value": map[string]any{"type": "string"}, "format": map[string]any{"type": "string"}}}
		}))},
		{Clause: "translate/file", Mutant: "file-without-constraints", Front: fromSite(fieldType("file", func(s map[string]any) map[string]any {
			settings, _ := s["settings"].(map[string]any)
			extensions := strings.Fields(fmt.Sprint(settings["file_extensions"]))
			return map[string]any{"type": "string", "pattern": `\.(` + strings.Join(extensions, "|") + `)$`,
				"description": fmt.Sprintf("A file: %s, at most %v.", strings.Join(extensions, " or "), settings["max_filesize"])}
		}))},
		{Clause: "translate/custom-type", Mutant: "custom-type-unknown", Front: fromSite(fieldType("geofield", func(published map[string]any) map[string]any {
			place := map[string]any{"type": "object", "required": []any{"lat", "lon"},
				"properties": map[string]any{"lat": map[string]any{"type": "number"}, "lon": map[string]any{"type": "number"}}}
			if numberText(published["cardinality"]) == "1" {
				return place
			}
			return map[string]any{"type": "array", "items": place}
		}))},
		{Clause: "translate/unknown-type", Mutant: "unknown-type-refuses-all", Front: fromSite(fieldType("quantum_foam", func(map[string]any) map[string]any {
			return map[string]any{}
		}))},
		{Clause: "translate/required-default", Mutant: "field-required-lost", Front: fromSite(func(t tool, site map[string]any, _ []string) {
			schema, _ := t["inputSchema"].(map[string]any)
			for name, p := range objectIn(site, "params") {
				if objectIn(p.(map[string]any), "schema")["required"] == true && !slices.Contains(required(schema), any(name)) {
					schema["required"] = append(required(schema), name)
				}
			}
		})},
		{Clause: "translate/one-bad-tool", Mutant: "bad-tools-as-they-are", Front: front(withoutTools(func(t tool) bool { return t["inputSchema"] == nil }))},
	}
}

// fromSite changes every tool with the attributes of its method, as the site shows them to the caller (nil where the tool has
// another name), and the ids of all.
func fromSite(change func(t tool, attributes map[string]any, ids []string)) func(*siteClient) middleware {
	return func(site *siteClient) middleware {
		return onResponse(toToolViews, func(x *exchange) {
			methods, _ := site.methods(x.Request)
			ids := slices.Collect(maps.Keys(methods))
			x.eachTool(func(t tool) { change(t, methods[fmt.Sprint(t["name"])], ids) })
		})
	}
}

// attribute is the McpTool attribute of a method.
func attribute(site map[string]any) map[string]any {
	return objectIn(site, "mcpTool")
}

// definition is what the site says of a parameter beside its schema.
func definition(parameter map[string]any) map[string]any {
	return objectIn(parameter, "attributes")
}

// eachParameter calls change with each property of a tool and the parameter of the method that it stands for.
func eachParameter(t tool, site map[string]any, change func(property, parameter map[string]any)) {
	properties := objectIn(objectIn(t, "inputSchema"), "properties")
	parameters, _ := site["params"].(map[string]any)
	for name, property := range properties {
		p, isObject := property.(map[string]any)
		if parameter, ok := parameters[name].(map[string]any); ok && isObject {
			change(p, parameter)
		}
	}
}

// copyOutput shows the schema that the method declares.
func copyOutput(t tool, site map[string]any, _ []string) {
	delete(t, "outputSchema")
	if output, ok := site["output"].(map[string]any); ok && repaired(output) {
		t["outputSchema"] = output
	}
}

// repaired writes {} for the [] of PHP, and reports whether the schema is one.
func repaired(schema map[string]any) bool {
	walkObjects(schema, emptyProperties)
	return jsonschema.Fault(schema, jsonschema.Draft7) == ""
}

// emptyProperties writes {} for `properties: []`.
func emptyProperties(schema map[string]any) {
	if p, ok := schema["properties"].([]any); ok && len(p) == 0 {
		schema["properties"] = map[string]any{}
	}
}

// withItems gives an array without items those that mean the same.
func withItems(schema map[string]any) {
	if schema["type"] == "array" && schema["items"] == nil && schema["prefixItems"] == nil {
		schema["items"] = map[string]any{}
	}
}

// copyParameters copies the schema of each parameter as a whole, where it is JSON Schema, and adds its description.
func copyParameters(t tool, site map[string]any, _ []string) {
	eachParameter(t, site, func(property, parameter map[string]any) {
		published, ok := parameter["schema"].(map[string]any)
		if !ok || !repaired(published) {
			return
		}
		published, _ = jsonschema.Inlined(published).(map[string]any) // a reference would lead out of the parameter
		walkObjects(published, withItems)
		clear(property)
		maps.Copy(property, published)
		if d, _ := definition(parameter)["description"].(string); d != "" {
			property["description"] = d
		}
	})
}

// cutBelow keeps of the schemas below a level only the type.
func cutBelow(s map[string]any, levels int) {
	if levels == 1 {
		maps.DeleteFunc(s, func(keyword string, _ any) bool { return keyword != "type" })
		s["$comment"] = "what is below this level is left out"
		return
	}
	for _, keyword := range []string{"properties", "definitions"} {
		schemas, _ := s[keyword].(map[string]any)
		for _, schema := range schemas {
			if schema, ok := schema.(map[string]any); ok {
				cutBelow(schema, levels-1)
			}
		}
	}
}

// fieldType is an entry of the table of field types: it writes the schema of the parameters of a type, and keeps their
// descriptions and defaults.
func fieldType(name string, schema func(published map[string]any) map[string]any) func(t tool, site map[string]any, _ []string) {
	return func(t tool, site map[string]any, _ []string) {
		eachParameter(t, site, func(property, parameter map[string]any) {
			published, _ := parameter["schema"].(map[string]any)
			if published["type"] != name {
				return
			}
			kept := map[string]any{}
			for _, keyword := range []string{"description", "default"} {
				if v, ok := property[keyword]; ok {
					kept[keyword] = v
				}
			}
			clear(property)
			maps.Copy(property, schema(published))
			if said, more := kept["description"].(string); more && property["description"] != nil {
				kept["description"] = said + " " + property["description"].(string)
			}
			maps.Copy(property, kept)
		})
	}
}

// withoutTools leaves the tools out of list, describe and invoke that omit selects.
func withoutTools(omit func(t tool) bool) middleware {
	lists := pageAgain(func(_ *exchange, tools []any) []any {
		return slices.DeleteFunc(tools, func(t any) bool { return omit(t.(tool)) })
	})
	named := onResponse(func(r *http.Request) bool { return toDescribe(r) || toInvoke(r) }, func(x *exchange) {
		if x.Status >= 300 {
			return
		}
		if t, ok := x.tool(x.named()); ok && omit(t) {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.named()))
		}
	})
	return chain(named, lists)
}
