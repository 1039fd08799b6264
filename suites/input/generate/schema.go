package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// effective is a schema with what its combinators ask for beside it, one branch of each alternative taken.
func effective(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if list, ok := s[keyword].([]any); ok && len(list) > 0 {
			s = merged(s, list[0])
		}
	}
	if list, ok := s["allOf"].([]any); ok {
		for _, branch := range list {
			s = merged(s, branch)
		}
	}
	return s
}

// merged joins a schema with the members of another that it does not have itself; properties are joined one by one.
func merged(s map[string]any, branch any) map[string]any {
	other, _ := branch.(map[string]any)
	m := map[string]any{}
	maps.Copy(m, s) // s may be nil
	for name, v := range other {
		mine, there := m[name]
		switch {
		case !there:
			m[name] = v
		case name == "properties":
			m[name] = overlaid(v, mine)
		case name == "required":
			m[name] = joined(mine, v)
		}
	}
	return m
}

func overlaid(below, above any) any {
	b, _ := below.(map[string]any)
	a, _ := above.(map[string]any)
	m := map[string]any{}
	maps.Copy(m, b)
	maps.Copy(m, a)
	return m
}

func joined(a, b any) any {
	x, _ := a.([]any)
	y, _ := b.([]any)
	return slices.Concat(x, y)
}

// typesIn lists the types that a schema allows, without null; where it names none they are guessed from its keywords.
func typesIn(s map[string]any) []string {
	if name, ok := s["type"].(string); ok {
		return []string{name}
	}
	types := slices.DeleteFunc(namesIn(s["type"]), func(name string) bool { return name == "null" })
	if len(types) > 0 {
		return types
	}
	for _, guess := range []struct{ keyword, kind string }{
		{"properties", "object"}, {"additionalProperties", "object"}, {"patternProperties", "object"}, {"minProperties", "object"}, {"required", "object"},
		{"items", "array"}, {"prefixItems", "array"}, {"minItems", "array"}, {"uniqueItems", "array"},
		{"minimum", "number"}, {"maximum", "number"}, {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"}, {"multipleOf", "number"},
	} {
		if _, ok := s[guess.keyword]; ok {
			return []string{guess.kind}
		}
	}
	return []string{"string"}
}

// memberSchema is what an object's schema says of a member: under properties, by a pattern, or of all others.
func memberSchema(s map[string]any, name string) any {
	properties, _ := s["properties"].(map[string]any)
	if inner, ok := properties[name]; ok {
		return inner
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, pattern := range sorted(patterns) {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
			return patterns[pattern]
		}
	}
	return s["additionalProperties"]
}

// itemSchema is what a list's schema says of the item at a place.
func itemSchema(s map[string]any, i int) any {
	for _, keyword := range []string{"prefixItems", "items"} {
		if list, ok := s[keyword].([]any); ok {
			if i < len(list) {
				return list[i]
			}
			if keyword == "items" {
				return s["additionalItems"]
			}
		}
	}
	return s["items"]
}

// The largest texts that are generated, in characters, and the largest lists and objects. No value is generated that has to be larger:
// a bound beyond one of these is read as one more than that.
const (
	longestText = 1 << 14
	longestList = 1 << 10
)

// bound reads a whole-number keyword; otherwise where it is missing or no whole number of a size that matters.
func bound(s map[string]any, keyword string, otherwise int) int {
	n, err := strconv.Atoi(fmt.Sprint(s[keyword]))
	if err != nil {
		return otherwise
	}
	if strings.HasSuffix(keyword, "Length") {
		return min(n, longestText+1)
	}
	return min(n, longestList+1)
}

// number reads a keyword as an exact number.
func number(s map[string]any, keyword string) (*big.Rat, bool) {
	n, ok := s[keyword].(json.Number)
	if !ok || len(n) > 40 || strings.ContainsAny(string(n), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

// written is a number as JSON writes it: whole without a point.
func written(n *big.Rat) json.Number {
	if n.IsInt() {
		return json.Number(n.Num().String())
	}
	return json.Number(strings.TrimRight(n.FloatString(9), "0"))
}

func plus(n *big.Rat, by *big.Rat) *big.Rat { return new(big.Rat).Add(n, by) }

func sorted(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

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
