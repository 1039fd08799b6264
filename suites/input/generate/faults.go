package generate

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// faults lists values that may break a schema, each in one keyword, in place of a value that keeps it.
func faults(s map[string]any, value any) []Case {
	var all []Case
	add := func(keyword string, values ...any) {
		for _, v := range values {
			all = append(all, Case{keyword, v})
		}
	}
	_, typed := s["type"]
	if typed {
		add("type", otherTypes[typesIn(s)[0]]...)
		if list, many := value.([]any); !many {
			add("type", []any{value})
		} else if len(list) > 0 {
			add("type", list[0]) // one may be taken for a list of one, and the reverse
		}
	}
	for _, keyword := range []string{"enum", "const"} {
		if _, ok := s[keyword]; ok {
			add(keyword, nearMisses(value)...)
			if n, _ := value.(json.Number); !typed && (n == "0" || n == "1") {
				add(keyword, n == "1") // some languages take true for 1
			}
		}
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "not"} {
		if _, ok := s[keyword]; ok {
			add(keyword, "no such value", whole(-7), forbiddenBy(s))
		}
	}
	if list, ok := s["oneOf"].([]any); ok {
		add("oneOf", ofAll(list))
	}
	switch v := value.(type) {
	case map[string]any:
		all = append(all, objectFaults(s, v)...)
	case []any:
		all = append(all, listFaults(s, v)...)
	case string:
		all = append(all, textFaults(s, v)...)
	case json.Number:
		all = append(all, numberFaults(s)...)
	}
	return slices.DeleteFunc(all, func(c Case) bool { return c.Value == nil })
}

// otherTypes are values that are not of a type: such as a loose reader takes for it, and such as nobody would.
var otherTypes = map[string][]any{
	"string":  {whole(12), true},
	"integer": {"12", json.Number("1.5"), true},
	"number":  {"1.5", false},
	"boolean": {"true", whole(1)},
	"object":  {"text", `{"a":1}`, []any{whole(1)}, []any{}},
	"array":   {"text", "[1]", map[string]any{"a": whole(1)}, map[string]any{}},
}

// nearMisses are values that a careless comparison takes for the same, and one that nobody does.
func nearMisses(v any) []any {
	switch v := v.(type) {
	case string:
		misses := []any{"no such value", strings.ToUpper(v), v + " ", v[:max(len(v)-1, 0)]}
		if decimal.MatchString(v) {
			misses = append(misses, json.Number(v))
		}
		return misses
	case json.Number:
		return []any{whole(-7), string(v)}
	case bool:
		return []any{!v, strconv.FormatBool(v), whole(map[bool]int{true: 1}[v])}
	}
	return []any{"no such value", whole(-7)}
}

// decimal matches a text that reads as a number of JSON.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// forbiddenBy is the first value that a `not` excludes by name.
func forbiddenBy(s map[string]any) any {
	if s["not"] == nil {
		return nil
	}
	return Example(s["not"])
}

// ofAll is a value that seems to fit every branch at once, which oneOf forbids.
func ofAll(branches []any) any {
	step := big.NewRat(1, 1)
	s := map[string]any{}
	for _, branch := range branches {
		b, _ := branch.(map[string]any)
		s = merged(s, b)
		if multiple, ok := number(b, "multipleOf"); ok {
			step.Mul(step, multiple)
		}
	}
	if s["multipleOf"] != nil {
		return written(step)
	}
	return Example(s)
}

func textFaults(s map[string]any, v string) []Case {
	var all []Case
	if limit := bound(s, "minLength", 0); limit > 0 {
		all = append(all, Case{"minLength", text(s, limit-1, "w")}, Case{"minLength", text(s, limit-1, astral)})
	}
	if limit := bound(s, "maxLength", maxText+1); limit <= maxText {
		all = append(all, Case{"maxLength", text(s, limit+1, "w")}, Case{"maxLength", text(s, limit, "w") + " "})
	}
	if _, ok := s["pattern"]; ok {
		all = append(all, Case{"pattern", ""}, Case{"pattern", "!? no match"}, Case{"pattern", v + "!"}, Case{"pattern", "!" + v}, Case{"pattern", strings.ToUpper(v)},
			Case{"pattern", "!\n" + v + "\n!"}, Case{"$ before a line end", v + "\n"}) // ^ and $ are no ends of lines
	}
	if format, ok := s["format"].(string); ok {
		for _, v := range formats[format].invalid {
			all = append(all, Case{"format " + format, v})
		}
	}
	return all
}

// maxText is the longest text that is generated, in characters.
const maxText = 4096

// astral is a character that takes one code point, two UTF-16 units and four bytes.
const astral = "𝒳"

// text is a text of so many characters: one that matches where there is a pattern, else of one character repeated.
func text(s map[string]any, length int, character string) string {
	if pattern, ok := s["pattern"].(string); ok {
		for more := range min(length, 128) + 1 {
			if made, ok := matching(pattern, more); ok && len([]rune(made)) == length {
				return made
			}
		}
	}
	return strings.Repeat(character, max(length, 0))
}

func numberFaults(s map[string]any) []Case {
	near := big.NewRat(1, 2)
	if typesIn(s)[0] == "integer" {
		near = big.NewRat(1, 1)
	}
	far := new(big.Rat).Mul(near, big.NewRat(1000, 1))
	minus := func(n *big.Rat) *big.Rat { return new(big.Rat).Neg(n) }
	var all []Case
	for _, limit := range []struct {
		keyword string
		by      []*big.Rat
	}{
		{"minimum", []*big.Rat{minus(near), minus(far)}},
		{"maximum", []*big.Rat{near, far}},
		{"exclusiveMinimum", []*big.Rat{new(big.Rat), minus(near)}},
		{"exclusiveMaximum", []*big.Rat{new(big.Rat), near}},
	} {
		if n, ok := number(s, limit.keyword); ok {
			for _, by := range limit.by {
				all = append(all, Case{limit.keyword, onStep(s, plus(n, by), by.Sign())})
			}
		}
	}
	if step, ok := number(s, "multipleOf"); ok {
		by := big.NewRat(1, 1)
		if !step.IsInt() { // binary fractions take a number near a multiple for one, but none in the middle
			by.Quo(step, big.NewRat(2, 1))
		}
		if base, ok := new(big.Rat).SetString(string(exampleNumber(s).(json.Number))); ok {
			all = append(all, Case{"multipleOf", written(plus(base, by))}, Case{"multipleOf", written(plus(base, new(big.Rat).Neg(by)))})
		}
	}
	return all
}

// onStep moves a number outwards to the next multiple where the schema asks for one.
func onStep(s map[string]any, n *big.Rat, direction int) json.Number {
	step, ok := number(s, "multipleOf")
	if !ok || step.Sign() <= 0 {
		return written(n)
	}
	whole := ceiling(new(big.Rat).Quo(n, step))
	if direction < 0 {
		whole = new(big.Rat).Neg(ceiling(new(big.Rat).Neg(new(big.Rat).Quo(n, step))))
	}
	return written(new(big.Rat).Mul(step, whole))
}

func objectFaults(s, object map[string]any) []Case {
	var all []Case
	for _, name := range sorted(object) {
		all = append(all, Case{"null as " + name, exact.With(object, name, nil)})
	}
	if s["additionalProperties"] == false {
		all = append(all, Case{"additionalProperties", exact.With(object, "unexpected", "x")}, Case{"additionalProperties", exact.With(object, "unexpected", nil)})
	}
	if others, ok := s["additionalProperties"].(map[string]any); ok {
		for _, c := range faults(effective(others), Example(others)) {
			all = append(all, Case{"additionalProperties", exact.With(object, "unexpected", c.Value)})
		}
	}
	if limit := bound(s, "minProperties", 0); limit > 0 {
		all = append(all, Case{"minProperties", sized(s, object, limit-1)})
	}
	if limit := bound(s, "maxProperties", maxList+1); limit <= maxList {
		all = append(all, Case{"maxProperties", sized(s, object, limit+1)})
	}
	if names, ok := s["propertyNames"].(map[string]any); ok {
		for _, c := range faults(names, "w") {
			if name, ok := c.Value.(string); ok {
				all = append(all, Case{"propertyNames", exact.With(object, name, Example(memberSchema(s, name)))})
			}
		}
	}
	if needs, ok := s["dependencies"].(map[string]any); ok {
		for _, name := range sorted(needs) {
			for _, other := range namesIn(needs[name]) {
				all = append(all, Case{"dependencies", exact.Without(exact.With(object, name, Example(memberSchema(s, name))), other)})
			}
			if _, ok := needs[name].(map[string]any); ok {
				all = append(all, branchFaults("dependencies", s, needs[name], exact.With(object, name, Example(memberSchema(s, name))))...)
			}
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	declared, _ := s["properties"].(map[string]any)
	for _, pattern := range sorted(patterns) { // what is declared keeps those, too
		for _, name := range sorted(declared) {
			if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
				for _, c := range faults(effective(patterns[pattern]), Example(patterns[pattern])) {
					all = append(all, Case{"patternProperties", exact.With(object, name, c.Value)})
				}
			}
		}
	}
	if then, ok := s["then"]; ok {
		met := overlaid(object, Example(merged(effective(s["if"]), map[string]any{"type": "object"}))).(map[string]any)
		all = append(all, branchFaults("then", s, then, met)...)
	}
	if otherwise, ok := s["else"]; ok {
		all = append(all, branchFaults("else", s, otherwise, object)...)
	}
	return all
}

// branchFaults break in an object what the branch of a keyword asks of its members.
func branchFaults(keyword string, s map[string]any, branch any, object map[string]any) []Case {
	var all []Case
	joined := merged(effective(branch), s)
	for _, c := range append(leftOut(object, "", picker{absent: "required"}), varyMembers(joined, object, "", picker{"required", faults})...) {
		all = append(all, Case{keyword, c.Value})
	}
	return all
}

// sized is an object with so many members: required ones first, then others that fit.
func sized(s, object map[string]any, n int) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Concat(namesIn(s["required"]), sorted(object)) {
		if v, ok := object[name]; ok && len(made) < n {
			made[name] = v
		}
	}
	e := newExampler()
	for i := 0; len(made) < n && e.left >= 0; i++ {
		name := "x-" + strconv.Itoa(i)
		made[name] = e.value(memberSchema(s, name))
	}
	return made
}

// maxList is the longest list that is generated, in items.
const maxList = 64

func listFaults(s map[string]any, list []any) []Case {
	var all []Case
	unique := s["uniqueItems"] == true
	// One wrong item behind right ones, as many as there may be: a validator may stop at the first, or at the tenth.
	if most := bound(s, "maxItems", maxList); len(list) == 1 && most > 2 {
		right := 2 // an enum has few values that differ
		if !unique {
			right = min(most, maxList) - 1
		}
		for _, c := range faults(effective(itemSchema(s, right)), Example(itemSchema(s, right))) {
			all = append(all, Case{c.What + " in the last of many items", append(items(s, right), c.Value)})
		}
	}
	if limit := bound(s, "minItems", 0); limit > 0 {
		all = append(all, Case{"minItems", items(s, limit-1)})
	}
	if limit := bound(s, "maxItems", maxList+1); limit <= maxList {
		all = append(all, Case{"maxItems", items(s, limit+1)})
	}
	if places, ok := s["items"].([]any); ok && s["additionalItems"] != nil {
		more := items(s, len(places))
		all = append(all, Case{"additionalItems", append(more, map[string]any{"no such": "value"})}, Case{"additionalItems", append(slices.Clone(more), "no such value")})
	}
	if unique && len(list) > 0 {
		all = append(all, Case{"uniqueItems", []any{list[0], list[0]}})
		if n := min(bound(s, "maxItems", 4), 4); n > 2 {
			several := items(s, n-1)
			all = append(all, Case{"uniqueItems", append(several, several[0])})
		}
	}
	if contains, ok := s["contains"]; ok && contains != nil {
		all = append(all, Case{"contains", []any{}}, Case{"contains", []any{"no such value"}}, Case{"contains", []any{Example(itemSchema(s, 0))}})
	}
	if len(list) > 0 {
		all = append(all, Case{"null as an item", replaced(list, len(list)-1, nil)})
	}
	return all
}

// items is a list of so many items that fit, no two alike where the schema asks for that.
func items(s map[string]any, n int) []any {
	list := []any{}
	e := newExampler()
	for i := range n {
		if e.left < 0 {
			break
		}
		list = append(list, e.other(itemSchema(s, i), i, s["uniqueItems"] == true))
	}
	return list
}
