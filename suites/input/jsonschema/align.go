package jsonschema

import "maps"

// Aligned returns a document with the sets in its schemas (enum, required, a list of types) in the order in which another has
// them, where they are the same sets: what a comparison then finds is a difference in meaning. Schemas are what stands under
// inputSchema and outputSchema, at any depth.
func Aligned(want, got any) any { return aligned(want, got, false) }

func aligned(want, got any, inSchema bool) any {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return got
		}
		out := maps.Clone(g)
		for name, v := range g {
			wanted, there := w[name]
			switch {
			case !there:
			case inSchema && meanings[name] == set && sameSet(asList(wanted), asList(v)):
				out[name] = wanted
			case inSchema && (name == "default" || name == "const" || name == "examples"): // values, not schemas
			default:
				out[name] = aligned(wanted, v, inSchema || name == "inputSchema" || name == "outputSchema")
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return got
		}
		out := make([]any, len(g))
		for i := range g {
			out[i] = aligned(w[i], g[i], inSchema)
		}
		return out
	}
	return got
}

// asList is a value of a keyword that may be one value or a list, as a list.
func asList(v any) any {
	if one, ok := v.(string); ok {
		return []any{one}
	}
	return v
}
