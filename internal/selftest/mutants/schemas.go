package mutants

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
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
		{Name: "schema-forty-deep", Breaks: Clauses("schema/bounded", "profile/depth"), Origin: Imagined,
			Middleware: onInput(func(s map[string]any) { s["definitions"] = map[string]any{"menu": objectsWithin(40)} })},
		{Name: "schema-100-KiB", Breaks: Clauses("schema/bounded"), Origin: Imagined,
			Middleware: onTool(func(t tool) {
				if s, ok := t["inputSchema"].(map[string]any); ok && strings.HasPrefix(t["name"].(string), "taxonomy.") {
					s["$comment"] = strings.Repeat("All terms. ", 10_000)
				}
			})},
		{Name: "schema-requires-the-impossible", Breaks: Clauses("schema/accepts-valid-example", "mapping/required-exact", "translate/required-default", "invoke/undeclared-argument"), Origin: Imagined,
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
		{Name: "sets-in-another-order", Why: "enum, required and a list of types are sets: a program may write them in another order each time", MCP: true, Middleware: shuffleSets()},
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

func onOutput(change func(schema map[string]any)) middleware { return onMember("outputSchema", change) }

// translateMutants translate what the site declares wrongly.
func translateMutants() []Mutant {
	takeTime, seeReferences := slowOnReferences()
	return []Mutant{
		{Name: "references-in-place-without-a-bound", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer,
			Why: "a schema whose references multiply is written out before its size is looked at", Middleware: takeTime, Transport: seeReferences},
		{Name: "reference-one-value-short", Breaks: Clauses("translate/entity-reference"), Origin: Imagined,
			Middleware: onParameter("type.entity_reference", "bundle", func(s map[string]any) {
				if values, ok := s["enum"].([]any); ok {
					s["enum"] = values[1:]
				}
			})},
		{Name: "datetime-any-string", Breaks: Clauses("translate/datetime"), Origin: Imagined, Middleware: onParameter("type.datetime", "value", without("format"))},
		{Name: "unsigned-in-place-of-the-minimum", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Peer, Why: "the setting that is read last wins",
			Middleware: onParameter("type.numbers", "above", replaceWith(map[string]any{"type": "integer", "minimum": 0}))},
		{Name: "maximum-of-zero-lost", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Peer, Why: "a setting of 0 counts as none",
			Middleware: onParameter("type.numbers", "none", without("maximum"))},
		{Name: "choice-of-zero-lost", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Peer, Why: "a value of 0 counts as none",
			Middleware: onParameter("type.choices", "list_integer", replaceWith(map[string]any{"type": "integer", "enum": []any{1, 2}}))},
		{Name: "several-values-not-required", Breaks: Clauses("translate/required-default"), Origin: Peer, Why: "required is read beside the type of one value",
			Middleware: onTool(func(t tool) {
				if t["name"] == "type.multiple" {
					delete(objectIn(t, "inputSchema"), "required")
				}
			})},
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
		{Name: "required-within-lost", Breaks: Clauses("translate/required-default"), Origin: Peer,
			Why:        "a boolean is no list, and is dropped before its property's name is taken",
			Middleware: onParameter("type.required_within", "address", without("required"))},
		{Name: "required-within-lists-lost", Breaks: Clauses("translate/required-default"), Origin: Peer,
			Why:        "the objects of a list have no property whose name is taken",
			Middleware: onParameter("type.required_within", "others", func(s map[string]any) { without("required")(objectIn(s, "items")) })},
		{Name: "custom-type-of-one-value-alone", Breaks: Clauses("translate/custom-type"), Origin: Peer,
			Why:        "the rules are looked up before the items of a list are made",
			Middleware: onParameter("type.custom", "places", func(s map[string]any) { s["items"] = map[string]any{} })},
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
			Middleware: listsAlso("bad.null_schema", nil)},
		{Name: "wrong-keywords-as-they-are", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "the values of keywords are not looked at", Middleware: listsAlso("bad.keywords", map[string]any{"type": "object", "minProperties": -1})},
		{Name: "mcp-hints-as-they-are", MCP: true, Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "hints are copied, whatever their type",
			Middleware: onMCPTool(func(t tool) {
				if t["name"] == "bad.string_hints" {
					t["annotations"] = map[string]any{"readOnlyHint": "yes", "destructiveHint": 1, "idempotentHint": nil}
				}
			})},
		{Name: "outputs-as-deep-as-they-are", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer,
			Why: "what a method takes is bounded, and what it gives is copied",
			Middleware: onTool(func(t tool) {
				if t["name"] == "bad.string_hints" {
					t["outputSchema"] = objectsWithin(70)
				}
			})},
		{Name: "sixty-levels-as-they-are", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "a schema is deep and not large, and so within the bound of its size", Middleware: listsAlso("bad.deep", objectsWithin(60))},
		{Name: "references-multiplied-in-place", Breaks: Clauses("translate/one-bad-tool"), Origin: Imagined,
			Why:        "levels are counted, and what several references at each of them make is not",
			Middleware: listsAlso("bad.multiplying", doubled(15))},
		{Name: "local-references-not-moved", Breaks: Clauses("translate/one-bad-tool"), Origin: Imagined, Why: "the reference in a parameter's schema points elsewhere after the parameter became a part of the tool's schema",
			Middleware: onParameter("good.references", "labels", replaceWith(map[string]any{"type": "object", "properties": map[string]any{"label": map[string]any{"$ref": "#/definitions/label"}},
				"definitions": map[string]any{"label": map[string]any{"type": "string"}}}))},
		{Name: "references-through-a-name-as-it-is", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "the parameter's name is put into the pointer unescaped",
			Middleware: onParameter("good.references", "parts/of~each", replaceWith(map[string]any{"type": "object", "properties": map[string]any{"part": map[string]any{"$ref": "#/properties/parts/of~each/definitions/part"}},
				"definitions": map[string]any{"part": map[string]any{"type": "string"}}}))},
		{Name: "circular-reference-as-it-is", Breaks: Clauses("translate/one-bad-tool"), Origin: Module, Why: "a client that resolves it never ends",
			Middleware: listsAlso("bad.cyclic_ref", circular)},
		{Name: "bounds-of-zero-left-out", Breaks: Clauses("translate/one-bad-tool"), Origin: Imagined,
			Why:       "a bound has to be positive, and a tool with one of zero is rejected",
			Transport: withoutMethods(func(m map[string]any) bool { return strings.Contains(string(encode(m)), `"minLength":0`) })},
		{Name: "local-references-left-out", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "a parameter schema with local references is rejected as not translatable",
			Transport: withoutMethods(func(m map[string]any) bool { return strings.Contains(string(encode(m)), `"$ref":"#`) })},
		{Name: "values-asked-as-the-service", Breaks: Clauses("translate/entity-reference"), Origin: Peer, Why: "the values of a field are the same for all, so that the account of the bridge may ask for them",
			Transport: onCall(func(r *http.Request, call map[string]any) {
				if call["method"] == "node_type.list" {
					r.SetBasicAuth("service", "service-pass")
				}
			})},
		{Name: "values-of-a-field-kept", Breaks: Clauses("translate/entity-reference"), Origin: Peer,
			Why:        "the values of a field are looked up once in the life of the process",
			Middleware: onParameter("type.entity_reference", "bundle", keepFirstValues())},
		{Name: "references-into-lists-left-out", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "a pointer is followed through objects alone",
			Transport: withoutMethods(func(m map[string]any) bool {
				return strings.Contains(string(encode(m)), `"#/properties/either/anyOf/0"`)
			})},
		{Name: "reference-beyond-a-list-takes-all", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer, Why: "an index that the list does not have ends the request",
			Transport: onDiscovery(func(index map[string]any) {
				if strings.Contains(string(encode(index)), `"#/items/1"`) {
					delete(index, "data")
				}
			})},
		{Name: "description-of-built-types-lost", Breaks: Clauses("translate/required-default"), Origin: Peer,
			Why: "what is built from a field type replaces the property",
			Middleware: chain(onParameter("type.entity_reference", "bundle", without("description")),
				onParameter("type.datetime", "value", without("description")))},
		{Name: "description-of-lists-at-the-items", Breaks: Clauses("translate/required-default"), Origin: Imagined,
			Why: "a field of several values is a list of what one would be",
			Middleware: onParameter("type.multiple", "any_number", func(s map[string]any) {
				if items := objectIn(s, "items"); items != nil && s["description"] != nil {
					items["description"] = s["description"]
					delete(s, "description")
				}
			})},
		{Name: "default-of-several-at-the-items", Breaks: Clauses("translate/required-default"), Origin: Peer, Why: "a field of several values is a list of what one would be",
			Middleware: onParameter("type.multiple", "up_to_three", func(s map[string]any) {
				if items := objectIn(s, "items"); items != nil && s["default"] != nil {
					items["default"] = s["default"]
					delete(s, "default")
				}
			})},
		{Name: "allowed-texts-as-numbers", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Peer, Why: "keys that look like numbers become numbers",
			Middleware: onParameter("type.choices", "numbered", replaceWith(map[string]any{"enum": []any{1, 2}}))},
		{Name: "max-length-exclusive", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.texts", "string", func(s map[string]any) { s["maxLength"] = 63 })},
		{Name: "allowed-values-as-texts-as-well", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Peer,
			Why:        "PHP's keys are integers and forms send texts",
			Middleware: onParameter("type.choices", "list_integer", replaceWith(map[string]any{"enum": []any{1, 2, "1", "2"}}))},
		{Name: "boolean-or-number", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Peer, Why: "Drupal stores 0 and 1",
			Middleware: onParameter("type.numbers", "boolean", func(s map[string]any) { s["type"] = []any{"boolean", "integer"} })},
		{Name: "several-values-unique", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.multiple", "any_number", func(s map[string]any) { s["uniqueItems"] = true })},
		{Name: "float-maximum-exclusive", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.numbers", "float", func(s map[string]any) { delete(s, "maximum"); s["exclusiveMaximum"] = 1.5 })},
		{Name: "integers-of-32-bits", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Peer,
			Why: "a column's size is taken for a bound of the field",
			Middleware: chain(onParameter("type.numbers", "unsigned", func(s map[string]any) { s["maximum"] = 1<<31 - 1 }),
				onParameter("type.timestamp", "value", func(s map[string]any) { s["maximum"] = 1<<31 - 1 }))},
		{Name: "uri-of-the-web-alone", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
			Middleware: onParameter("type.texts", "uri", func(s map[string]any) { s["pattern"] = "^https?://" })},
	}
}

// translateVariants leave out methods that they cannot translate.
func translateVariants() []Mutant {
	return []Mutant{
		{Name: "file-extensions-in-both-cases", Why: "a pattern names an extension whose letters it takes in both cases",
			Middleware: onParameter("type.file", "value", replaceWith(map[string]any{"type": "string",
				"pattern": `\.([tT][xX][tT]|[pP][dD][fF])$`, "description": "A document (at most 2 MB)"}))},
		{Name: "schemas-of-draft-3-left-out", Why: "a method whose schema is no valid one may be left out",
			Transport: withoutMethods(func(m map[string]any) bool { return m["id"] == "type.required_within" })},
		{Name: "recursive-schemas-left-out", Why: "a bridge that inlines references cannot inline a recursive one",
			Transport: withoutMethods(func(m map[string]any) bool { return strings.Contains(string(encode(m)), `"$ref":"#"`) })},
	}
}

// slowOnReferences takes 5.1 s for the first list after the site has shown the method bad.multiplying.
func slowOnReferences() (middleware, transport) {
	var fetched atomic.Bool
	return onResponse(toList, func(*exchange) {
			if fetched.CompareAndSwap(true, false) {
				time.Sleep(5100 * time.Millisecond) // more than half of a request's time-out
			}
		}),
		onMethods(func(id string, _ map[string]any) {
			if id == "bad.multiplying" {
				fetched.Store(true)
			}
		})
}

// onParameter changes one parameter's schema of one tool, wherever it is shown.
func onParameter(tool, param string, change func(schema map[string]any)) middleware {
	return onTool(func(t map[string]any) {
		properties := objectIn(objectIn(t, "inputSchema"), "properties")
		if schema, ok := properties[param].(map[string]any); ok && t["name"] == tool {
			change(schema)
		}
	})
}

// replaceWith returns a change that replaces all members of a schema but the description and the default.
func replaceWith(members map[string]any) func(map[string]any) {
	return func(schema map[string]any) {
		maps.DeleteFunc(schema, func(name string, _ any) bool { return name != "description" && name != "default" })
		maps.Copy(schema, members)
	}
}

// listsAlso adds a tool with this inputSchema to the lists of the site `poisoned`.
func listsAlso(name string, inputSchema any) middleware {
	return onList(func(p *page) {
		if strings.Contains(string(p.Body), `"good.first"`) {
			p.Tools = append(p.Tools, tool{"name": name, "description": "x", "inputSchema": inputSchema})
		}
	})
}

// objectsWithin is a schema of objects within objects.
func objectsWithin(levels int) map[string]any {
	schema := map[string]any{"type": "object"}
	for range levels {
		schema = map[string]any{"type": "object", "properties": map[string]any{"value": schema}}
	}
	return schema
}

// doubled is a schema with two properties at each level.
func doubled(levels int) map[string]any {
	schema := map[string]any{"type": "object"}
	for range levels {
		schema = map[string]any{"type": "object", "properties": map[string]any{"l": schema, "r": schema}}
	}
	return schema
}

// circular is the schema of a tool whose parameter refers to itself.
var circular = map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/properties/a"}}}

// shuffleSets writes the sets of every other response in another order.
func shuffleSets() middleware {
	var responses atomic.Int64
	shuffle := func(t tool) {
		if responses.Load()%2 == 0 {
			return
		}
		for _, name := range []string{"inputSchema", "outputSchema"} {
			walkObjects(t[name], func(s map[string]any) {
				for _, keyword := range []string{"enum", "required", "type"} {
					if set, ok := s[keyword].([]any); ok {
						slices.Reverse(set)
					}
				}
			})
		}
	}
	count := onResponse(allRequests, func(*exchange) { responses.Add(1) })
	return chain(count, chain(onTool(shuffle), onMCPTool(shuffle)))
}

// keepFirstValues gives a schema the enum of the first that it is called with.
func keepFirstValues() func(schema map[string]any) {
	first := newMemory[any]()
	return func(schema map[string]any) {
		if values := schema["enum"]; values != nil {
			schema["enum"] = first.keep("", values)
		}
	}
}
