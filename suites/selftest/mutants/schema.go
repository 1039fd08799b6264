package mutants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schemaMutants give schemas that are invalid, unbounded or refer to elsewhere.
func schemaMutants() []Mutant {
	return []Mutant{
		{Name: "schema-unknown-type", Breaks: Clauses("schema/input-valid"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) { s["definitions"] = map[string]any{"id": map[string]any{"type": "int"}} })},
		{Name: "schema-draft3-required", Breaks: Clauses("schema/input-valid", "mapping/properties-complete", "translate/boolean-integer-decimal-list", "translate/required-default"), Origin: Module,
			Why: "`required: true` beside a type, as Drupal developers write it",
			Middleware: onProperty(func(p map[string]any) {
				if p["type"] == "string" {
					p["required"] = true
				}
			})},
		{Name: "schema-negative-length", Breaks: Clauses("schema/input-valid"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) { s["minProperties"] = -1 })},
		{Name: "schema-broken-pattern", Breaks: Clauses("schema/input-valid"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) { s["patternProperties"] = map[string]any{"^(x-": map[string]any{}} })},
		{Name: "schema-other-dialect", Breaks: Clauses("schema/input-valid"), Origin: Imagined, Why: "declares 2020-12 and uses Draft 4",
			Middleware: onInput(func(s map[string]any) {
				s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
				s["$defs"] = map[string]any{"bounded": map[string]any{"minimum": 0, "exclusiveMinimum": true}}
			})},
		{Name: "schema-broken-on-page-two", Breaks: Clauses("schema/input-valid", "describe/equals-list"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				for _, t := range p.Tools {
					if s, ok := t.(tool)["inputSchema"].(map[string]any); ok && p.Cursor != "" {
						s["title"] = 7
					}
				}
			})},
		{Name: "output-schema-unknown-type", Breaks: Clauses("schema/output-valid"), Origin: Imagined,
			Middleware: onOutput(func(s map[string]any) { s["definitions"] = map[string]any{"id": map[string]any{"type": "entity"}} })},
		{Name: "output-schema-draft3-required", Breaks: Clauses("schema/output-valid", "mapping/output-schema"), Origin: Module,
			Middleware: onOutput(func(s map[string]any) { s["required"] = false })},
		{Name: "output-schema-enum-object", Breaks: Clauses("schema/output-valid"), Origin: Imagined, Why: "an enum from a PHP array with keys",
			Middleware: onOutput(func(s map[string]any) {
				s["definitions"] = map[string]any{"state": map[string]any{"enum": map[string]any{"1": "on"}}}
			})},
		{Name: "schema-remote-ref", Breaks: Clauses("schema/no-remote-ref"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) {
				s["definitions"] = map[string]any{"node": map[string]any{"$ref": "https://schemas.example.com/node.json"}}
			})},
		{Name: "schema-file-ref", Breaks: Clauses("schema/no-remote-ref"), Origin: Imagined,
			Middleware: onOutput(func(s map[string]any) {
				s["definitions"] = map[string]any{"node": map[string]any{"$ref": "file:///var/www/html/schema/node.json"}}
			})},
		{Name: "schema-dangling-ref", Breaks: Clauses("schema/no-remote-ref"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) {
				s["definitions"] = map[string]any{"node": map[string]any{"$ref": "#/definitions/gone"}}
			})},
		{Name: "schema-forty-deep", Breaks: Clauses("schema/bounded"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) { s["definitions"] = map[string]any{"menu": nest(40)} })},
		{Name: "schema-100-KiB", Breaks: Clauses("schema/bounded"), Origin: Imagined,
			Middleware: onTool(func(t tool) {
				if s, ok := t["inputSchema"].(map[string]any); ok && strings.HasPrefix(t["name"].(string), "taxonomy.") {
					s["$comment"] = strings.Repeat("All terms. ", 10_000)
				}
			})},
		{Name: "schema-requires-the-impossible", Breaks: Clauses("schema/accepts-valid-example", "mapping/required-exact", "translate/required-default"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) {
				s["additionalProperties"] = false
				s["required"] = append(required(s), "entity_id")
			})},
		{Name: "schema-empty-enum", Breaks: Clauses("schema/accepts-valid-example", "mapping/properties-complete", "translate/entity-reference", "translate/boolean-integer-decimal-list"), Origin: Module,
			Why: "an entity_reference to a target without entities",
			Middleware: onProperty(func(p map[string]any) {
				if _, ok := p["enum"]; ok {
					p["enum"] = []any{}
				}
			})},
		{Name: "schema-bounds-swapped", Breaks: Clauses("schema/accepts-valid-example", "mapping/properties-complete", "translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onProperty(func(p map[string]any) {
				if p["minimum"] != nil && p["maximum"] != nil {
					p["minimum"], p["maximum"] = p["maximum"], p["minimum"]
				}
			})},
		{Name: "schema-broken-for-admins", Breaks: Clauses("schema/input-valid", "mapping/properties-complete"), Origin: Imagined,
			Middleware: onInput(func(schema map[string]any) {
				if properties, _ := schema["properties"].(map[string]any); properties["title"] != nil && properties["body"] != nil {
					properties["body"].(map[string]any)["type"] = "text"
				}
			})},
	}
}

// schemaVariants write equivalent schemas.
func schemaVariants() []Mutant {
	return []Mutant{
		{Name: "draft-7-declared", Why: "the dialect may be declared", Middleware: onInput(func(s map[string]any) { s["$schema"] = "http://json-schema.org/draft-07/schema#" })},
		{Name: "parameters-by-reference", Why: "a local reference is equal to its target", Middleware: onProperties(moveToDefinitions)},
	}
}

// moveToDefinitions moves the schema of each parameter into the definitions, and keeps its texts and default beside the
// reference in an allOf, as Draft 7 requires.
func moveToDefinitions(schema, properties map[string]any) {
	definitions, ok := schema["definitions"].(map[string]any)
	if !ok {
		definitions = map[string]any{}
		schema["definitions"] = definitions
	}
	for i, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok || property["$schema"] != nil || strings.Contains(string(encode(property)), `"$ref"`) {
			continue // it has another dialect, or references into the tool's schema
		}
		key := fmt.Sprintf("parameter%d", i)
		definitions[key] = property
		outer := map[string]any{"allOf": []any{map[string]any{"$ref": "#/definitions/" + key}}}
		for _, beside := range []string{"description", "default"} {
			if v, there := property[beside]; there {
				outer[beside] = v
			}
		}
		properties[name] = outer
	}
}

func onOutput(change func(schema map[string]any)) middleware {
	return onTool(func(t tool) {
		if s, ok := t["outputSchema"].(map[string]any); ok {
			change(s)
		}
	})
}

// nest returns an object schema of the given depth.
func nest(depth int) map[string]any {
	if depth == 0 {
		return map[string]any{"type": "string"}
	}
	return map[string]any{"type": "object", "properties": map[string]any{"below": nest(depth - 1)}}
}
