package selftest

import "strings"

// What is wrong here stands beside the parameters' own schemas where it can, so that mapping keeps its verdict.
var schemaMutants = []Mutant{
	{Name: "schema-unknown-type", Breaks: Clauses("schema/input-valid"), Origin: Imagined,
		Front: onInput(func(s map[string]any) { s["definitions"] = map[string]any{"id": map[string]any{"type": "int"}} })},
	{Name: "schema-draft3-required", Breaks: Clauses("schema/input-valid", "mapping/properties-complete", "translate/boolean-integer-decimal-list", "translate/required-default"), Origin: Module,
		Why: "`required: true` beside a type, as Drupal developers write it",
		Front: onProperty(func(p map[string]any) {
			if p["type"] == "string" {
				p["required"] = true
			}
		})},
	{Name: "schema-negative-length", Breaks: Clauses("schema/input-valid"), Origin: Imagined,
		Front: onInput(func(s map[string]any) { s["minProperties"] = -1 })},
	{Name: "schema-broken-pattern", Breaks: Clauses("schema/input-valid"), Origin: Imagined,
		Front: onInput(func(s map[string]any) { s["patternProperties"] = map[string]any{"^(x-": map[string]any{}} })},
	{Name: "schema-other-dialect", Breaks: Clauses("schema/input-valid"), Origin: Imagined, Why: "says 2020-12 and means Draft 4",
		Front: onInput(func(s map[string]any) {
			s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
			s["$defs"] = map[string]any{"bounded": map[string]any{"minimum": 0, "exclusiveMinimum": true}}
		})},
	{Name: "schema-broken-on-page-two", Breaks: Clauses("schema/input-valid", "describe/equals-list"), Origin: Imagined,
		Front: onList(func(p *page) {
			for _, t := range p.Tools {
				if s, ok := t.(tool)["inputSchema"].(map[string]any); ok && p.Cursor != "" {
					s["title"] = 7
				}
			}
		})},

	{Name: "output-schema-unknown-type", Breaks: Clauses("schema/output-valid"), Origin: Imagined,
		Front: onOutput(func(s map[string]any) { s["definitions"] = map[string]any{"id": map[string]any{"type": "entity"}} })},
	{Name: "output-schema-draft3-required", Breaks: Clauses("schema/output-valid", "mapping/output-schema"), Origin: Module,
		Front: onOutput(func(s map[string]any) { s["required"] = false })},
	{Name: "output-schema-enum-object", Breaks: Clauses("schema/output-valid"), Origin: Imagined, Why: "PHP's keyed array in an enum",
		Front: onOutput(func(s map[string]any) {
			s["definitions"] = map[string]any{"state": map[string]any{"enum": map[string]any{"1": "on"}}}
		})},

	{Name: "schema-remote-ref", Breaks: Clauses("schema/no-remote-ref"), Origin: Imagined,
		Front: onInput(func(s map[string]any) {
			s["definitions"] = map[string]any{"node": map[string]any{"$ref": "https://schemas.example.com/node.json"}}
		})},
	{Name: "schema-file-ref", Breaks: Clauses("schema/no-remote-ref"), Origin: Imagined,
		Front: onOutput(func(s map[string]any) {
			s["definitions"] = map[string]any{"node": map[string]any{"$ref": "file:///var/www/html/schema/node.json"}}
		})},
	{Name: "schema-dangling-ref", Breaks: Clauses("schema/no-remote-ref"), Origin: Imagined,
		Front: onInput(func(s map[string]any) {
			s["definitions"] = map[string]any{"node": map[string]any{"$ref": "#/definitions/gone"}}
		})},

	{Name: "schema-forty-deep", Breaks: Clauses("schema/bounded"), Origin: Imagined,
		Front: onInput(func(s map[string]any) { s["definitions"] = map[string]any{"menu": nest(40)} })},
	{Name: "schema-100-KiB", Breaks: Clauses("schema/bounded"), Origin: Imagined,
		Front: onTool(func(t tool) {
			if s, ok := t["inputSchema"].(map[string]any); ok && strings.HasPrefix(t["name"].(string), "taxonomy.") {
				s["$comment"] = strings.Repeat("All terms. ", 10_000)
			}
		})},

	{Name: "schema-requires-the-impossible", Breaks: Clauses("schema/accepts-valid-example", "mapping/required-exact", "translate/required-default"), Origin: Imagined,
		Front: onInput(func(s map[string]any) {
			s["additionalProperties"] = false
			s["required"] = append(required(s), "entity_id")
		})},
	{Name: "schema-empty-enum", Breaks: Clauses("schema/accepts-valid-example", "mapping/properties-complete", "translate/entity-reference", "translate/boolean-integer-decimal-list"), Origin: Module,
		Why: "an entity_reference to a target without entities",
		Front: onProperty(func(p map[string]any) {
			if _, ok := p["enum"]; ok {
				p["enum"] = []any{}
			}
		})},
	{Name: "schema-bounds-swapped", Breaks: Clauses("schema/accepts-valid-example", "mapping/properties-complete", "translate/boolean-integer-decimal-list"), Origin: Imagined,
		Front: onProperty(func(p map[string]any) {
			if p["minimum"] != nil && p["maximum"] != nil {
				p["minimum"], p["maximum"] = p["maximum"], p["minimum"]
			}
		})},
}

func onOutput(change func(schema map[string]any)) front {
	return onTool(func(t tool) {
		if s, ok := t["outputSchema"].(map[string]any); ok {
			change(s)
		}
	})
}

// nest is an object schema of the given depth.
func nest(depth int) map[string]any {
	if depth == 0 {
		return map[string]any{"type": "string"}
	}
	return map[string]any{"type": "object", "properties": map[string]any{"below": nest(depth - 1)}}
}
