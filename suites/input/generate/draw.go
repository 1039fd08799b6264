package generate

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
)

// drawing draws a value at random that seems to fit a schema.
type drawing struct {
	dice *rand.Rand
	left int // values that it may still have
}

// mostDrawn bounds what lists of lists, and members that are required in each other, multiply to.
const mostDrawn = 1 << 14

// deepest is how deep objects and lists are drawn.
const deepest = 12

func (d *drawing) value(schema any, depth int) any {
	if d.left--; d.left < 0 {
		return nil
	}
	s, _ := schema.(map[string]any)
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if list, ok := s[keyword].([]any); ok && len(list) > 0 {
			s = merged(s, list[d.dice.IntN(len(list))])
		}
	}
	s = effective(s)
	if v, ok := s["const"]; ok {
		return v
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return list[d.dice.IntN(len(list))]
	}
	types := typesIn(s)
	switch types[d.dice.IntN(len(types))] {
	case "object":
		return d.object(s, depth)
	case "array":
		return d.array(s, depth)
	case "integer":
		return d.number(s, true)
	case "number":
		return d.number(s, d.dice.IntN(2) == 0)
	case "boolean":
		return d.dice.IntN(2) == 0
	}
	return d.text(s)
}

func (d *drawing) object(s map[string]any, depth int) any {
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range namesIn(s["required"]) {
		object[name] = d.value(memberSchema(s, name), depth+1)
	}
	for _, name := range sorted(properties) {
		if _, there := object[name]; !there && depth < deepest && d.dice.IntN(3) > 0 {
			object[name] = d.value(properties[name], depth+1)
		}
	}
	// At the top, unknown members are not for us to send.
	if depth > 0 && depth < deepest && s["additionalProperties"] != false {
		for i := range d.dice.IntN(3) {
			name := "x-" + strconv.Itoa(i)
			switch inner := memberSchema(s, name); inner {
			case false:
			case nil:
				object[name] = d.text(nil)
			default:
				object[name] = d.value(inner, depth+1)
			}
		}
	}
	for name, v := range object {
		if v == nil {
			delete(object, name)
		}
	}
	return object
}

func (d *drawing) array(s map[string]any, depth int) any {
	low := bound(s, "minItems", 0)
	high := min(bound(s, "maxItems", low+4), low+4)
	list := []any{}
	for i := range low + d.dice.IntN(max(high-low, 0)+1) {
		if v := d.value(itemSchema(s, i), depth+1); v != nil {
			list = append(list, v)
		}
	}
	return list
}

func (d *drawing) number(s map[string]any, integer bool) any {
	low, bounded := number(s, "minimum")
	if exclusive, ok := number(s, "exclusiveMinimum"); ok {
		low, bounded = exclusive, true
	}
	high, capped := number(s, "maximum")
	if exclusive, ok := number(s, "exclusiveMaximum"); ok {
		high, capped = exclusive, true
	}
	const reach = 1000
	switch {
	case !bounded && !capped:
		if wild := []json.Number{"0", "-1", "9007199254740993", "-9007199254740993", "9223372036854775807"}; s["multipleOf"] == nil && d.dice.IntN(3) == 0 {
			return wild[d.dice.IntN(len(wild))]
		}
		low, high = big.NewRat(-reach, 1), big.NewRat(reach, 1)
	case !bounded:
		low = plus(high, big.NewRat(-reach, 1))
	case !capped:
		high = plus(low, big.NewRat(reach, 1))
	}
	grain := int64(1)
	if !integer {
		grain = 8 // eighths are exact in binary and in decimal
	}
	width := new(big.Rat).Mul(plus(high, new(big.Rat).Neg(low)), big.NewRat(grain, 1))
	steps, _ := width.Float64()
	n := plus(low, big.NewRat(d.dice.Int64N(int64(max(min(steps, 1<<40), 0))+1), grain))
	if integer {
		n = ceiling(n)
	}
	if step, ok := number(s, "multipleOf"); ok && step.Sign() > 0 {
		n = new(big.Rat).Mul(step, ceiling(new(big.Rat).Quo(n, step)))
	}
	return written(n)
}

// letters are what texts are drawn from: what is written otherwise in JSON, HTML, URLs, PHP, and in more bytes than one.
var letters = []rune("abcXYZ019 _-.,:;/\\\"'<>&%+?#{}[]$\n\téßñ日本עב𝒳🚀")

func (d *drawing) text(s map[string]any) any {
	if format, ok := s["format"].(string); ok && formats[format].valid != nil {
		return formats[format].valid[d.dice.IntN(len(formats[format].valid))]
	}
	if pattern, ok := s["pattern"].(string); ok {
		if made, ok := matching(pattern, d.dice.IntN(8)); ok {
			return made
		}
		return exampleString(s)
	}
	low := bound(s, "minLength", 0)
	high := min(bound(s, "maxLength", low+24), low+24)
	var b strings.Builder
	for range low + d.dice.IntN(max(high-low, 0)+1) {
		b.WriteRune(letters[d.dice.IntN(len(letters))])
	}
	return b.String()
}
