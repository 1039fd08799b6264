package suites

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bridgecheck/suites/jsonschema"
)

// breakage is a document that breaks one keyword of a schema, at one place.
type breakage struct {
	what      string // the keyword and the place: `minimum at /filter/id`
	parameter string // the top-level member that is wrong
	value     any    // of breakage at the top: always an object
}

// generated are arguments made up from what a tool shows as its inputSchema: such as it takes, and such as break it in
// one place each.
type generated struct {
	valid   map[string]any
	invalid []breakage
}

// generate makes arguments for an inputSchema; ok is false where the schema cannot be read or satisfied. Left out of the
// invalid ones is what the contract leaves open: null, unknown top-level members, and 2.0 for an integer.
func generate(schema map[string]any) (g generated, ok bool) {
	check, err := jsonschema.Compile(schema, jsonschema.Draft7)
	if err != nil {
		return g, false
	}
	properties, _ := schema["properties"].(map[string]any)
	required := namesIn(schema["required"])
	g.valid = map[string]any{}
	for _, name := range required {
		g.valid[name] = example(properties[name])
	}
	if check.Fault(g.valid) != "" {
		return g, false
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if _, there := g.valid[name]; there {
			continue
		}
		g.valid[name] = example(properties[name])
		if g.valid[name] == nil || check.Fault(g.valid) != "" {
			delete(g.valid, name)
		}
	}
	candidates := []breakage{}
	for _, name := range required {
		candidates = append(candidates, breakage{"required", name, without(g.valid, name)})
	}
	for _, name := range slices.Sorted(maps.Keys(g.valid)) {
		for _, b := range breakages(properties[name], g.valid[name], "/"+name) {
			candidates = append(candidates, breakage{b.what, name, with(g.valid, name, b.value)})
		}
	}
	for _, c := range candidates {
		if check.Fault(c.value) != "" {
			g.invalid = append(g.invalid, c)
		}
	}
	return g, true
}

// example makes up a value that a schema seems to take, with every property that it names; nil where it cannot tell.
func example(schema any) any {
	s, _ := schema.(map[string]any)
	for _, keyword := range []string{"const", "default"} {
		if v, ok := s[keyword]; ok && v != nil {
			return v
		}
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		if list, ok := s[keyword].([]any); ok && len(list) > 0 {
			return example(merged(without(s, keyword), list))
		}
	}
	switch typesIn(s)[0] {
	case "object":
		return exampleObject(s)
	case "array":
		return exampleArray(s)
	case "integer", "number":
		return exampleNumber(s)
	case "boolean":
		return true
	}
	return exampleString(s)
}

// merged joins a schema with the members of its combinators that it does not have itself.
func merged(s map[string]any, branches []any) map[string]any {
	m := maps.Clone(s)
	for _, branch := range branches {
		object, _ := branch.(map[string]any)
		for name, v := range object {
			if _, there := m[name]; !there {
				m[name] = v
			}
		}
	}
	return m
}

// typesIn lists the types that a schema allows, guessed from its keywords where it names none.
func typesIn(s map[string]any) []string {
	if name, ok := s["type"].(string); ok {
		return []string{name}
	}
	if types := namesIn(s["type"]); len(types) > 0 {
		return types
	}
	for keyword, kind := range map[string]string{"properties": "object", "items": "array", "minimum": "number", "maximum": "number"} {
		if _, ok := s[keyword]; ok {
			return []string{kind}
		}
	}
	return []string{"string"}
}

func exampleObject(s map[string]any) any {
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		if v := example(property); v != nil {
			object[name] = v
		}
	}
	for i := len(object); i < max(bound(s, "minProperties", 0), 1) && s["additionalProperties"] != false && len(properties) == 0; i++ {
		object["x-"+strconv.Itoa(i)] = example(s["additionalProperties"])
	}
	return object
}

func exampleArray(s map[string]any) any {
	list := []any{}
	for range max(bound(s, "minItems", 1), 1) {
		list = append(list, example(s["items"]))
	}
	return list
}

func exampleNumber(s map[string]any) any {
	n := bound(s, "minimum", 1)
	if low := bound(s, "exclusiveMinimum", n-1); low >= n {
		n = low + 1
	}
	if high := bound(s, "maximum", n); high < n {
		n = high
	}
	if step := bound(s, "multipleOf", 1); step > 1 && n%step != 0 {
		n += step - n%step
	}
	return whole(n)
}

// formats are a value of each format that all validators agree on, and one that no validator takes.
var formats = map[string]struct{ valid, invalid string }{
	"email":     {"someone@example.org", "no address"},
	"uri":       {"https://example.org/path", "no uri"},
	"date":      {"2024-02-29", "2024-13-45"},
	"date-time": {"2024-02-29T12:30:00Z", "yesterday at noon"},
	"ipv4":      {"192.0.2.1", "192.0.2.999"},
	"ipv6":      {"2001:db8::1", "no:address"},
	"hostname":  {"example.org", "no host name"},
}

// words are tried where a schema asks for a string of a certain pattern.
var words = []string{"word", "w", "2024-02-29", "12345", "00000000-0000-4000-8000-000000000001", "https://example.org/path", "A"}

func exampleString(s map[string]any) any {
	if format, ok := s["format"].(string); ok && formats[format].valid != "" {
		return formats[format].valid
	}
	if pattern, err := regexp.Compile(fmt.Sprint(s["pattern"])); err == nil && s["pattern"] != nil {
		for _, word := range words {
			if pattern.MatchString(word) {
				return word
			}
		}
	}
	return strings.Repeat("w", max(bound(s, "minLength", 1), 1))
}

// breakages makes values that may break a schema, each in one keyword at one place of a value that keeps it.
func breakages(schema, value any, at string) []breakage {
	s, _ := schema.(map[string]any)
	var all []breakage
	add := func(keyword string, values ...any) {
		for _, v := range values {
			all = append(all, breakage{what: keyword + " at " + at, value: v})
		}
	}
	if _, typed := s["type"]; typed {
		add("type", otherTypes[typesIn(s)[0]]...)
	}
	for _, keyword := range []string{"enum", "const", "oneOf", "anyOf", "allOf", "not"} {
		if _, ok := s[keyword]; ok {
			add(keyword, "no such value", whole(-7), forbiddenBy(s))
		}
	}
	switch v := value.(type) {
	case map[string]any:
		all = append(all, objectBreakages(s, v, at)...)
	case []any:
		all = append(all, listBreakages(s, v, at)...)
	case string:
		add("minLength", strings.Repeat("w", max(bound(s, "minLength", 0)-1, 0)))
		if limit := bound(s, "maxLength", 0); limit > 0 {
			add("maxLength", strings.Repeat("w", limit+1))
		}
		if _, ok := s["pattern"]; ok {
			add("pattern", "!? no match")
		}
		if format, ok := s["format"].(string); ok && formats[format].invalid != "" {
			add("format "+format, formats[format].invalid)
		}
	default:
		for keyword, outside := range map[string]int{"minimum": -1, "maximum": 1, "exclusiveMinimum": 0, "exclusiveMaximum": 0, "multipleOf": 1} {
			if _, ok := s[keyword]; ok {
				add(keyword, whole(bound(s, keyword, 0)+outside))
			}
		}
	}
	return all
}

// otherTypes are values that are not of a type: such as a loose reader takes for it, and such as nobody would.
var otherTypes = map[string][]any{
	"string":  {whole(12), true},
	"integer": {"12", json.Number("1.5"), true},
	"number":  {"1.5", false},
	"boolean": {"true", whole(1)},
	"object":  {"text", []any{whole(1)}},
	"array":   {"text", map[string]any{"a": whole(1)}},
}

// forbiddenBy is the first value that a `not` excludes by name.
func forbiddenBy(s map[string]any) any {
	not, _ := s["not"].(map[string]any)
	return example(not)
}

func objectBreakages(s, object map[string]any, at string) []breakage {
	var all []breakage
	for _, name := range namesIn(s["required"]) {
		all = append(all, breakage{what: "required at " + at + "/" + name, value: without(object, name)})
	}
	if s["additionalProperties"] == false {
		all = append(all, breakage{what: "additionalProperties at " + at, value: with(object, "unexpected", "x")})
	}
	if _, ok := s["minProperties"]; ok {
		all = append(all, breakage{what: "minProperties at " + at, value: map[string]any{}})
	}
	if limit := bound(s, "maxProperties", 0); limit > 0 {
		crowded := maps.Clone(object)
		for i := range limit + 1 {
			crowded["more"+strconv.Itoa(i)] = "x"
		}
		all = append(all, breakage{what: "maxProperties at " + at, value: crowded})
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		inner, named := properties[name]
		if !named {
			inner = s["additionalProperties"]
		}
		for _, b := range breakages(inner, object[name], at+"/"+name) {
			all = append(all, breakage{what: b.what, value: with(object, name, b.value)})
		}
	}
	return all
}

func listBreakages(s map[string]any, list []any, at string) []breakage {
	var all []breakage
	if _, ok := s["minItems"]; ok {
		all = append(all, breakage{what: "minItems at " + at, value: []any{}})
	}
	if limit := bound(s, "maxItems", 0); limit > 0 {
		crowded := []any{}
		for i := range limit + 1 {
			crowded = append(crowded, "item"+strconv.Itoa(i))
		}
		all = append(all, breakage{what: "maxItems at " + at, value: crowded})
	}
	if len(list) == 0 {
		return all
	}
	if s["uniqueItems"] == true {
		all = append(all, breakage{what: "uniqueItems at " + at, value: []any{list[0], list[0]}})
	}
	for _, b := range breakages(s["items"], list[0], at+"/0") {
		all = append(all, breakage{what: b.what, value: append([]any{b.value}, list[1:]...)})
	}
	return all
}

// bound reads a whole-number keyword; otherwise where it is missing or no whole number.
func bound(s map[string]any, keyword string, otherwise int) int {
	n, err := strconv.Atoi(fmt.Sprint(s[keyword]))
	if err != nil {
		return otherwise
	}
	return n
}

func namesIn(v any) []string {
	list, _ := v.([]any)
	var names []string
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

func with(object map[string]any, name string, value any) map[string]any {
	changed := maps.Clone(object)
	changed[name] = value
	return changed
}

func without(object map[string]any, name string) map[string]any {
	changed := maps.Clone(object)
	delete(changed, name)
	return changed
}

func whole(n int) json.Number { return json.Number(strconv.Itoa(n)) }
