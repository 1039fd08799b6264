package mapping

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// listAsProperties finds a `properties` that is not an object, at the top of a schema or anywhere within, except in data
// (enum, const, default, examples); "" when there is none.
func listAsProperties(v any, at string) string {
	schema, ok := v.(map[string]any)
	if !ok {
		if items, ok := v.([]any); ok {
			for i, item := range items {
				if f := listAsProperties(item, fmt.Sprintf("%s/%d", at, i)); f != "" {
					return f
				}
			}
		}
		return ""
	}
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		inner, below := schema[keyword], at+"/"+keyword
		members, isObject := inner.(map[string]any)
		switch keyword {
		case "enum", "const", "default", "examples":
			continue
		case "properties":
			if !isObject {
				return fmt.Sprintf("%s at %s", exact.Short(inner), below)
			}
			fallthrough
		case "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies":
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if f := listAsProperties(members[name], below+"/"+name); f != "" {
					return f
				}
			}
		default:
			if f := listAsProperties(inner, below); f != "" {
				return f
			}
		}
	}
	return ""
}
