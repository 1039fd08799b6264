package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// limits are the pairs of keywords of which the first must not be above the second.
var limits = [][2]string{
	{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"},
}

// Impossible says what plainly makes a schema impossible to satisfy, as `at /path: …`; "" when nothing does. A property
// that no value fits counts even where it is optional; one whose schema is false is merely forbidden, and counts only
// where it is required.
func Impossible(schema any) string { return impossible(schema, "", 0) }

func impossible(schema any, at string, depth int) string {
	const deep = 64 // what is nested more deeply is not examined
	if schema == false {
		return fmt.Sprintf("at %s: false, which no value fits", pointer(at))
	}
	object, ok := schema.(map[string]any)
	if !ok || depth > deep {
		return ""
	}
	if allowed, ok := object["enum"].([]any); ok && len(allowed) == 0 {
		return fmt.Sprintf("at %s: an empty enum", pointer(at))
	}
	for _, pair := range limits {
		low, ok1 := number(object[pair[0]])
		high, ok2 := number(object[pair[1]])
		if ok1 && ok2 && low.Cmp(high) > 0 {
			return fmt.Sprintf("at %s: %s %s above %s %s", pointer(at), pair[0], object[pair[0]], pair[1], object[pair[1]])
		}
	}
	if fault := unmeetable(object, at); fault != "" {
		return fault
	}
	properties, _ := object["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if properties[name] == false && !slices.Contains(required(object), name) {
			continue
		}
		if fault := impossible(properties[name], exact.At(at+"/properties", name), depth+1); fault != "" {
			return fault
		}
	}
	if items := object["items"]; items != false {
		if fault := impossible(items, at+"/items", depth+1); fault != "" {
			return fault
		}
	}
	return impossibleParts(object, at, depth)
}

// unmeetable finds a required name that a closed object has no property for.
func unmeetable(object map[string]any, at string) string {
	if object["additionalProperties"] != false || object["patternProperties"] != nil {
		return ""
	}
	properties, _ := object["properties"].(map[string]any)
	for _, name := range required(object) {
		if _, ok := properties[name]; !ok {
			return fmt.Sprintf("at %s: %q is required, is no property, and additionalProperties is false", pointer(at), name)
		}
	}
	return ""
}

// impossibleParts checks combinators: all of allOf, or every alternative of the others.
func impossibleParts(object map[string]any, at string, depth int) string {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := object[keyword].([]any)
		possible, first := 0, ""
		for i, part := range parts {
			fault := impossible(part, fmt.Sprintf("%s/%s/%d", at, keyword, i), depth+1)
			if fault == "" {
				possible++
			} else if first == "" {
				first = fault
			}
		}
		if first != "" && (possible == 0 || keyword == "allOf") {
			return first
		}
	}
	return ""
}

func required(object map[string]any) []string {
	list, _ := object["required"].([]any)
	var names []string
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

func number(v any) (*big.Float, bool) {
	text, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Float).SetPrec(256).SetString(string(text))
}
