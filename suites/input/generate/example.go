package generate

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Example generates a plain value that a schema seems to take, with every property that it names; nil where it finds
// none.
func Example(schema any) any { return newExampler().value(schema) }

// exampler generates one value. Lists of lists multiply what each asks for, so that there is a limit for the whole.
type exampler struct {
	left int // values and characters
}

// Bounds of a value.
const (
	mostExample = 1 << 20 // characters of all its texts, and perValue for each value in it
	perValue    = 64
)

func newExampler() *exampler { return &exampler{mostExample} }

// value is nil where none is found, and where there would be too much of it.
func (e *exampler) value(schema any) any {
	e.left -= perValue
	if e.left < 0 {
		return nil
	}
	v := e.fresh(schema)
	if text, ok := v.(string); ok {
		e.left -= len(text)
	}
	if e.left < 0 {
		return nil
	}
	return v
}

func (e *exampler) fresh(schema any) any {
	s := effective(schema)
	for _, keyword := range []string{"const", "default"} {
		if v, ok := s[keyword]; ok && v != nil {
			return v
		}
	}
	if list, ok := s["enum"].([]any); ok {
		return firstOf(list)
	}
	switch typesIn(s)[0] {
	case "object":
		return e.object(s)
	case "array":
		return e.array(s)
	case "integer", "number":
		return exampleNumber(s)
	case "boolean":
		return true
	}
	return exampleString(s)
}

func firstOf(list []any) any {
	i := slices.IndexFunc(list, func(v any) bool { return v != nil })
	if i < 0 {
		return nil
	}
	return list[i]
}

func (e *exampler) object(s map[string]any) any {
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	room := bound(s, "maxProperties", len(properties)+1)
	for _, name := range slices.Concat(namesIn(s["required"]), sorted(properties)) {
		if _, there := object[name]; there || len(object) >= room {
			continue
		}
		if v := e.value(memberSchema(s, name)); v != nil {
			object[name] = v
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, pattern := range sorted(patterns) {
		if name, ok := matching(pattern, shortest); ok && len(object) < room {
			object[name] = e.value(patterns[pattern])
		}
	}
	least := max(bound(s, "minProperties", 0), 1)
	if least > longestList {
		return nil
	}
	for i := 0; len(object) < least && s["additionalProperties"] != false && len(properties) == 0 && e.left >= 0; i++ {
		object["x-"+strconv.Itoa(i)] = e.value(s["additionalProperties"])
	}
	return object
}

func (e *exampler) array(s map[string]any) any {
	list := []any{}
	least := max(bound(s, "minItems", 1), 1)
	if least > longestList {
		return nil
	}
	for i := range least {
		if e.left < 0 {
			break
		}
		list = append(list, e.other(itemSchema(s, i), i, s["uniqueItems"] == true))
	}
	if contains, ok := s["contains"].(map[string]any); ok && len(list) > 0 {
		list[0] = e.value(merged(effective(itemSchema(s, 0)), contains))
	}
	return list
}

// other is an example for the item at a place, unlike those before it where it has to be.
func (e *exampler) other(schema any, i int, unique bool) any {
	v := e.value(schema)
	if !unique || i == 0 {
		return v
	}
	s := effective(schema)
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return list[i%len(list)]
	}
	switch v := v.(type) {
	case string:
		if s["pattern"] == nil && s["format"] == nil {
			return v + strconv.Itoa(i)
		}
	case map[string]any:
		for _, name := range sorted(v) {
			if inner := e.other(memberSchema(s, name), i, true); !exact.Equal(inner, v[name]) {
				return exact.With(v, name, inner)
			}
		}
	}
	if n, ok := exampleNumber(s).(fmt.Stringer); ok && (typesIn(s)[0] == "integer" || typesIn(s)[0] == "number") {
		if first, ok := new(big.Rat).SetString(n.String()); ok {
			step := big.NewRat(1, 1)
			if multiple, ok := number(s, "multipleOf"); ok {
				step = multiple
			}
			return written(plus(first, new(big.Rat).Mul(step, big.NewRat(int64(i), 1))))
		}
	}
	return v
}

func exampleNumber(s map[string]any) any {
	n := big.NewRat(1, 1)
	if low, ok := number(s, "minimum"); ok {
		n = low
	}
	if low, ok := number(s, "exclusiveMinimum"); ok && low.Cmp(n) >= 0 {
		n = plus(low, big.NewRat(1, 1))
	}
	if high, ok := number(s, "maximum"); ok && n.Cmp(high) > 0 {
		n = high
	}
	if high, ok := number(s, "exclusiveMaximum"); ok && n.Cmp(high) >= 0 {
		n = plus(high, big.NewRat(-1, 1))
	}
	if step, ok := number(s, "multipleOf"); ok && step.Sign() > 0 {
		n = new(big.Rat).Mul(step, ceiling(new(big.Rat).Quo(n, step)))
	}
	return written(n)
}

func ceiling(n *big.Rat) *big.Rat {
	q, r := new(big.Int).DivMod(n.Num(), n.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return new(big.Rat).SetInt(q)
}

// formats are values of each format that all validators agree on, and those that none takes; some of these are near misses.
var formats = map[string]struct {
	valid   []string
	invalid []string
}{
	"email":     {[]string{"someone@example.org", "a.b+c@example.com"}, []string{"no address", "someone@", ""}},
	"uri":       {[]string{"https://example.org/path", "http://example.com/a?b=c#d", "urn:isbn:0451450523"}, []string{"no uri", "/path/alone"}},
	"date":      {[]string{"2024-02-29", "1999-12-31"}, []string{"2024-02-30", "20240229", ""}},
	"date-time": {[]string{"2024-02-29T12:30:00Z", "1999-12-31T23:59:59+02:00", "2030-01-01T00:00:00.5Z"}, []string{"yesterday at noon", "20240229T123000Z", "2024-02-30T12:30:00Z", "2024-02-29T12:30:00"}},
	"ipv4":      {[]string{"192.0.2.1", "255.255.255.255"}, []string{"192.0.2.999", "192.0.2"}},
	"ipv6":      {[]string{"2001:db8::1", "::1"}, []string{"no:address", "2001:db8::1::2"}},
	"hostname":  {[]string{"example.org", "a-b.example.com"}, []string{"no host name"}},
	"time":      {[]string{"12:30:00Z", "23:59:59+02:00"}, []string{"half past noon", "12:30"}},

	// Not all validators know these.
	"uuid":          {valid: []string{"00000000-0000-4000-8000-000000000001"}},
	"uri-reference": {valid: []string{"/path?a=b#c", "https://example.org/path"}},
	"iri":           {valid: []string{"https://example.org/path"}},
	"json-pointer":  {valid: []string{"/a/b~1c"}},
	"regex":         {valid: []string{"^[a-z]+$"}},
}

func exampleString(s map[string]any) any {
	if format, ok := s["format"].(string); ok && formats[format].valid != nil {
		return formats[format].valid[0]
	}
	if pattern, ok := s["pattern"].(string); ok {
		for _, length := range []int{shortest, 2, 4, bound(s, "minLength", 1)} {
			if text, ok := matching(pattern, length); ok && within(s, text) {
				return text
			}
		}
		for _, word := range words {
			if re, err := regexp.Compile(pattern); err == nil && re.MatchString(word) && within(s, word) {
				return word
			}
		}
	}
	least := max(bound(s, "minLength", 1), 1)
	if least > longestText {
		return nil
	}
	return strings.Repeat("w", least)
}

func within(s map[string]any, text string) bool {
	n := len([]rune(text))
	return n >= bound(s, "minLength", 0) && n <= bound(s, "maxLength", n)
}

// words are tried where a schema asks for a string of a pattern that no text could be generated for.
var words = []string{"word", "w", "2024-02-29", "12345", "00000000-0000-4000-8000-000000000001", "https://example.org/path", "A"}
