package generate

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// edges lists values that just keep a schema, in place of one that keeps it.
func edges(s map[string]any, value any) []Case {
	var all []Case
	if list, ok := s["enum"].([]any); ok {
		for _, v := range list {
			if v != nil {
				all = append(all, Case{"enum", v})
			}
		}
		return all
	}
	if types := typesIn(s); len(types) > 1 {
		for _, name := range types[1:] {
			all = append(all, Case{"the type " + name, Example(exact.With(s, "type", name))})
		}
		if slices.Contains(types, "number") {
			all = append(all, Case{"the type number", json.Number("0.5")}) // an example may be an integer
		}
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		list, _ := s[keyword].([]any)
		for _, branch := range list {
			all = append(all, Case{"a branch of " + keyword, Example(branch)})
		}
	}
	switch v := value.(type) {
	case map[string]any:
		if required := namesIn(s["required"]); len(required) < len(v) {
			least := map[string]any{}
			for _, name := range required {
				least[name] = v[name]
			}
			all = append(all, Case{"what is required alone", least})
		}
		properties, _ := s["properties"].(map[string]any)
		nulls, nullable := v, false
		for _, name := range sorted(properties) {
			if property, _ := properties[name].(map[string]any); slices.Contains(namesIn(property["type"]), "null") {
				nulls, nullable = exact.With(nulls, name, nil), true
			}
		}
		if nullable {
			all = append(all, Case{"null where it may be", nulls})
		}
		for _, keyword := range []string{"minProperties", "maxProperties"} {
			if n := bound(s, keyword, maxList+1); n <= maxList && n > 0 {
				all = append(all, Case{keyword, sized(s, v, n)})
			}
		}
		if patterns, ok := s["patternProperties"].(map[string]any); ok {
			for _, pattern := range sorted(patterns) {
				if name, ok := matching(pattern, 3); ok {
					all = append(all, Case{"patternProperties", exact.With(v, name, Example(patterns[pattern]))})
				}
			}
		}
	case []any:
		if len(v) > 0 {
			all = append(all, Case{"equal items", []any{v[0], v[0]}}, Case{"items alike as text", []any{json.Number("1"), "1"}}, Case{"items alike to a language", []any{true, json.Number("1"), "1", false, json.Number("0"), "0", ""}})
		}
		for _, keyword := range []string{"minItems", "maxItems"} {
			if n := bound(s, keyword, maxList+1); n <= maxList && n > 0 {
				all = append(all, Case{keyword, items(s, n)})
			}
		}
	case string:
		all = append(all, textEdges(s)...)
	case json.Number:
		all = append(all, numberEdges(s)...)
	case bool:
		all = append(all, Case{"the other boolean", !v})
	}
	return slices.DeleteFunc(all, func(c Case) bool { return c.Value == nil })
}

// argumentEdges are the edges of an argument, and what a bridge may take for none at all.
func argumentEdges(s map[string]any, value any) []Case {
	return append(edges(s, value), nothings(value)...)
}

// nothings are the values of a value's type that languages take for none.
func nothings(value any) []Case {
	switch value.(type) {
	case map[string]any:
		return []Case{{"empty object", map[string]any{}}}
	case []any:
		return []Case{{"empty list", []any{}}}
	case string:
		return []Case{{"empty text", ""}, {"empty text but for a zero", "0"}}
	case json.Number:
		return []Case{{"empty number", json.Number("0")}}
	}
	return nil
}

// Emptied is the plain value with each top-level member, in turn, as empty as the schema lets it be: who asks whether
// there is anything in a required one takes it for missing. ok is false where nothing can be empty.
func (m *Maker) Emptied() (c Case, ok bool) {
	value, _ := m.plain.(map[string]any)
	for _, name := range sorted(value) {
		for _, nothing := range []any{"", json.Number("0"), false, []any{}, map[string]any{}} {
			if less := exact.With(value, name, nothing); m.consensus.Takes(less) {
				value, ok = less, true
				break
			}
		}
	}
	return Case{"empty values", value}, ok
}

func textEdges(s map[string]any) []Case {
	var all []Case
	if format, ok := s["format"].(string); ok {
		for _, v := range formats[format].valid {
			all = append(all, Case{"format " + format, v})
		}
	}
	for _, keyword := range []string{"minLength", "maxLength"} {
		if n := bound(s, keyword, maxText+1); n > 0 && n <= maxText {
			all = append(all, Case{keyword, text(s, n, "w")}, Case{keyword + " in astral characters", text(s, n, astral)})
		}
	}
	if pattern, ok := s["pattern"].(string); ok {
		for _, more := range []int{0, 1, 7} {
			if made, ok := matching(pattern, more); ok {
				all = append(all, Case{"pattern", made}, Case{"pattern within a text", "zz " + made + " zz"},
					Case{"pattern in a long text", strings.Repeat("zz ", 5000) + made})
			}
		}
	}
	return all
}

func numberEdges(s map[string]any) []Case {
	var all []Case
	near := big.NewRat(1, 4)
	if typesIn(s)[0] == "integer" {
		near = big.NewRat(1, 1)
	}
	for _, limit := range []struct {
		keyword string
		by      *big.Rat
	}{
		{"minimum", new(big.Rat)}, {"maximum", new(big.Rat)}, {"exclusiveMinimum", near}, {"exclusiveMaximum", new(big.Rat).Neg(near)},
	} {
		if n, ok := number(s, limit.keyword); ok {
			all = append(all, Case{limit.keyword, written(plus(n, limit.by))})
		}
	}
	if step, ok := number(s, "multipleOf"); ok {
		for _, n := range []int64{0, 2, 7, -1} {
			all = append(all, Case{"multipleOf", written(new(big.Rat).Mul(step, big.NewRat(n, 1)))})
		}
	}
	return all
}
