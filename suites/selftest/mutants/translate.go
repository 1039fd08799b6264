package mutants

import (
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge"
)

// translateMutants translate what the site declares wrongly.
func translateMutants() []Mutant {
	return []Mutant{
		{Name: "reference-without-values", Breaks: Clauses("translate/entity-reference"), Origin: Imagined,
			Middleware: onParameter("type.entity_reference", "bundle", without("enum"))},
		{Name: "reference-one-value-short", Breaks: Clauses("translate/entity-reference"), Origin: Imagined,
			Middleware: onParameter("type.entity_reference", "bundle", func(s map[string]any) {
				if values, ok := s["enum"].([]any); ok {
					s["enum"] = values[1:]
				}
			})},
		{Name: "datetime-any-string", Breaks: Clauses("translate/datetime"), Origin: Imagined, Middleware: onParameter("type.datetime", "value", without("format"))},
		{Name: "datetime-as-date", Breaks: Clauses("translate/datetime"), Origin: Imagined,
			Middleware: onParameter("type.datetime", "value", replaceWith(map[string]any{"type": "string", "format": "date"}))},
		{Name: "formatted-text-as-string", Breaks: Clauses("translate/text-formatted"), Origin: Imagined,
			Middleware: onParameter("type.text_formatted", "value", replaceWith(map[string]any{"type": "string"}))},
		{Name: "formatted-text-without-value", Breaks: Clauses("translate/text-formatted"), Origin: Imagined,
			Middleware: onParameter("type.text_formatted", "value", without("required"))},
		{Name: "file-without-constraints", Breaks: Clauses("translate/file"), Origin: Imagined,
			Middleware: onParameter("type.file", "value", replaceWith(map[string]any{"type": "integer"}))},
		{Name: "file-without-size", Breaks: Clauses("translate/file"), Origin: Imagined,
			Middleware: onParameter("type.file", "value", replaceWith(map[string]any{"type": "string", "pattern": `\.(txt|pdf)$`}))},
		{Name: "integer-without-bounds", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.numbers", "integer", without("minimum", "maximum"))},
		{Name: "list-without-values", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.choices", "list_string", without("enum"))},
		{Name: "long-text-as-short", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.texts", "string_long", func(s map[string]any) { s["maxLength"] = 255 })},
		{Name: "uri-any-string", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.texts", "uri", without("format"))},
		{Name: "several-values-as-one", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.multiple", "any_number", replaceWith(map[string]any{"type": "string"}))},
		{Name: "more-values-than-the-field-takes", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.multiple", "up_to_three", without("maxItems"))},
		{Name: "field-default-lost", Breaks: Clauses("translate/required-default"), Origin: Imagined,
			Middleware: onParameter("type.required_default", "status", without("default"))},
		{Name: "field-default-false-lost", Breaks: Clauses("translate/required-default"), Origin: Imagined, Why: "values that PHP considers empty are dropped",
			Middleware: onParameter("type.numbers", "boolean", without("default"))},
		{Name: "field-required-lost", Breaks: Clauses("translate/required-default"), Origin: Imagined,
			Middleware: onTool(func(t map[string]any) {
				if input, ok := t["inputSchema"].(map[string]any); ok && t["name"] == "type.required_default" {
					delete(input, "required")
				}
			})},
		{Name: "custom-type-unknown", Breaks: Clauses("translate/custom-type"), Origin: Imagined,
			Options: func(o *bridge.Options) { o.Types = nil }},
		{Name: "unknown-type-refuses-all", Breaks: Clauses("translate/unknown-type"), Origin: Imagined,
			Middleware: onParameter("type.unknown", "value", replaceWith(map[string]any{"type": "object", "required": []any{"foam"}}))},
		{Name: "one-bad-tool-takes-all", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer,
			Transport: onDiscovery(func(index map[string]any) {
				if strings.Contains(string(encode(index)), "bad.null_schema") {
					delete(index, "data")
				}
			})},
		{Name: "bad-tools-as-they-are", Breaks: Clauses("translate/one-bad-tool"), Origin: Module,
			Middleware: onList(func(p *page) {
				if strings.Contains(string(p.Body), `"good.first"`) {
					p.Tools = append(p.Tools, tool{"name": "bad.null_schema", "description": "x", "inputSchema": nil})
				}
			})},
		{Name: "local-references-not-moved", Breaks: Clauses("translate/one-bad-tool"), Origin: Imagined, Why: "the reference in a parameter's schema points elsewhere after the parameter became a part of the tool's schema",
			Middleware: onParameter("good.references", "labels", replaceWith(map[string]any{"type": "object", "properties": map[string]any{"label": map[string]any{"$ref": "#/definitions/label"}},
				"definitions": map[string]any{"label": map[string]any{"type": "string"}}}))},
		{Name: "circular-reference-as-it-is", Breaks: Clauses("translate/one-bad-tool"), Origin: Module, Why: "a client that resolves it never ends",
			Middleware: onList(func(p *page) {
				if strings.Contains(string(p.Body), `"good.first"`) {
					p.Tools = append(p.Tools, tool{"name": "bad.cyclic_ref", "description": "x", "inputSchema": circular})
				}
			})},
		{Name: "local-references-left-out", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "a parameter schema with local references is rejected as not translatable",
			Transport: onDiscovery(func(index map[string]any) {
				methods, _ := index["data"].([]any)
				index["data"] = slices.DeleteFunc(methods, func(m any) bool { return strings.Contains(string(encode(m)), `"$ref":"#`) })
			})},
	}
}

// translateVariants leave out methods that they cannot translate.
func translateVariants() []Mutant {
	return []Mutant{
		{Name: "recursive-schemas-left-out", Why: "a bridge that inlines references cannot inline a recursive one", Transport: onDiscovery(func(index map[string]any) {
			methods, _ := index["data"].([]any)
			index["data"] = slices.DeleteFunc(methods, func(m any) bool { return strings.Contains(string(encode(m)), `"$ref":"#"`) })
		})},
	}
}

// onParameter changes one parameter's schema of one tool, wherever it is shown.
func onParameter(tool, param string, change func(schema map[string]any)) middleware {
	return onTool(func(t map[string]any) {
		input, _ := t["inputSchema"].(map[string]any)
		properties, _ := input["properties"].(map[string]any)
		if schema, ok := properties[param].(map[string]any); ok && t["name"] == tool {
			change(schema)
		}
	})
}

// replaceWith returns a change that replaces all members of a schema.
func replaceWith(members map[string]any) func(map[string]any) {
	return func(schema map[string]any) {
		clear(schema)
		for name, value := range members {
			schema[name] = value
		}
	}
}

// circular is the schema of a tool whose parameter refers to itself.
var circular = map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/properties/a"}}}
