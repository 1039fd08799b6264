package surface

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// pairs is how many pairs of schemas the property test generates.
const pairs = 2000

// TestClassificationAgreesWithTheValidator compares the rules with validators, on generated pairs of schemas: where arguments
// that the old schema takes are refused by the new one, the difference is breaking; where it is classified as breaking, an
// example shows it, but for keywords that cannot be compared and schemas that take nothing. The same holds of results in the
// other direction. Callers send the arguments that the old schema names. The values are drawn apart from those of the classification.
func TestClassificationAgreesWithTheValidator(t *testing.T) {
	n := pairs
	if testing.Short() {
		n = 60
	}
	var breaking, kept, vacuous, unshown int
	for i := range n {
		dice := rand.New(rand.NewPCG(44, uint64(i)))
		old := schemaOf(dice, 2, true)
		now := edited(dice, old)
		for _, side := range []string{"input", "output"} {
			from, to := told(any(old), 0).(map[string]any), now
			if side == "output" {
				from, to = now, old
			}
			changes := slices.DeleteFunc(compareSchemas(t.Context(), "t", side, any(old), any(now)), func(c Change) bool {
				return c.Level != reports.MUST || c.ID == "input/ignored" // which is not a matter of validity
			})
			refused, drawnAny := refusal(t, dice, from, to)
			describe := func() string {
				return fmt.Sprintf("pair %d, %s\nold %s\nnew %s\nchanges %+v", i, side, encoded(any(old)), encoded(any(now)), changes)
			}
			example := slices.ContainsFunc(changes, func(c Change) bool { return c.Example != "" })
			open := slices.ContainsFunc(changes, func(c Change) bool { return c.ID == side+"/unproved" })
			switch {
			case refused != nil && len(changes) == 0:
				t.Errorf("%s is valid on one side and refused on the other, and the difference is not breaking\n%s", encoded(refused), describe())
			case len(changes) == 0:
				kept++
			case example || refused != nil:
				breaking++
			case open:
				unshown++
			case !drawnAny:
				vacuous++
			default:
				t.Errorf("breaking without an example\n%s", describe())
			}
		}
	}
	t.Logf("%d pairs, both sides: %d breaking with an example, %d compatible, %d that cannot be compared, %d of schemas without values", n, breaking, kept, unshown, vacuous)
	must.Expect(t, unshown <= n/10 && kept >= n/5 && breaking >= n/2, "the pairs are not what the test is about")
}

// refusal looks for a value that from takes and to refuses.
func refusal(t *testing.T, dice *rand.Rand, from, to map[string]any) (refused any, some bool) {
	t.Helper()
	takes, err := jsonschema.Agree(from, jsonschema.Draft7)
	must.Assert(t, err == nil, "%s: %v", encoded(any(from)), err)
	refuses, err := jsonschema.Agree(to, jsonschema.Draft7)
	must.Assert(t, err == nil, "%s: %v", encoded(any(to)), err)
	var values []any
	if maker, err := generate.ForResult(from, dice); err == nil {
		for range 40 {
			if v, ok := maker.Drawn(); ok {
				values = append(values, v)
			}
		}
	}
	for range 60 {
		values = append(values, valueOf(dice, from, 0))
	}
	for _, v := range values {
		if !takes.Takes(v) {
			continue
		}
		if some = true; refuses.Refuses(v) {
			return v, true
		}
	}
	return nil, some
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// valueOf is a value that may fit, drawn without a look at what the classification looks at but the shape.
func valueOf(dice *rand.Rand, schema any, level int) any {
	s, _ := schema.(map[string]any)
	if options, ok := s["anyOf"].([]any); ok && len(options) > 0 {
		return valueOf(dice, options[dice.IntN(len(options))], level)
	}
	if enum, ok := s["enum"].([]any); ok && dice.IntN(4) > 0 {
		return enum[dice.IntN(len(enum))]
	}
	kinds := typesOf(s)
	if len(kinds) == 0 || dice.IntN(12) == 0 || level > 3 {
		kinds = []string{"string", "integer", "boolean", "number"}
	}
	switch kinds[dice.IntN(len(kinds))] {
	case "null":
		return nil
	case "boolean":
		return dice.IntN(2) == 0
	case "integer":
		return number(dice.IntN(24) - 6)
	case "number":
		return json.Number(fmt.Sprintf("%d.%d", dice.IntN(12), 1+dice.IntN(9)))
	case "string":
		text := []rune{}
		for range dice.IntN(7) {
			text = append(text, rune("abcxyz01 é"[dice.IntN(9)]))
		}
		return string(text)
	case "array":
		list := []any{}
		for range dice.IntN(5) {
			list = append(list, valueOf(dice, s["items"], level+1))
		}
		return list
	}
	object := map[string]any{}
	for _, name := range names {
		if own, named := properties(s)[name]; named && dice.IntN(5) > 0 {
			object[name] = valueOf(dice, own, level+1)
		} else if !named && dice.IntN(8) == 0 {
			object[name] = valueOf(dice, s["additionalProperties"], level+1)
		}
	}
	return object
}

var names = []string{"id", "page", "title", "filter"}

// schemaOf is a random schema.
func schemaOf(dice *rand.Rand, levels int, object bool) map[string]any {
	kind := types[dice.IntN(len(types))]
	if object {
		kind = "object"
	}
	if levels == 0 {
		kind = types[dice.IntN(5)]
	}
	if !object && dice.IntN(9) == 0 {
		return map[string]any{"anyOf": []any{any(schemaOf(dice, max(0, levels-1), false)), any(schemaOf(dice, max(0, levels-1), false))}}
	}
	s := map[string]any{"type": kind}
	if !object && dice.IntN(8) == 0 {
		s["type"] = []any{kind, types[dice.IntN(5)]}
		if s["type"].([]any)[1] == kind {
			s["type"] = kind
		}
	}
	for range dice.IntN(3) {
		constrain(dice, s, kind)
	}
	switch kind {
	case "array":
		s["items"] = any(schemaOf(dice, levels-1, false))
	case "object":
		named, must := map[string]any{}, []any{}
		for _, name := range names[:dice.IntN(len(names)+1)] {
			named[name] = any(schemaOf(dice, levels-1, false))
			if dice.IntN(3) == 0 {
				must = append(must, name)
			}
		}
		s["properties"] = named
		if len(must) > 0 {
			s["required"] = must
		}
		switch dice.IntN(4) {
		case 0:
			s["additionalProperties"] = false
		case 1:
			s["additionalProperties"] = any(schemaOf(dice, 0, false))
		}
	}
	return s
}

// constrain sets one keyword, or sets it again.
func constrain(dice *rand.Rand, s map[string]any, kind string) {
	pick := func(keywords ...string) string { return keywords[dice.IntN(len(keywords))] }
	switch kind {
	case "integer", "number":
		switch keyword := pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum"); keyword {
		case "minimum", "exclusiveMinimum":
			s[keyword] = number(dice.IntN(5) - 2)
		case "maximum", "exclusiveMaximum":
			s[keyword] = number(6 + dice.IntN(6))
		case "multipleOf":
			s[keyword] = number(1 + dice.IntN(4))
		case "enum":
			s[keyword] = []any{number(1), number(2 + dice.IntN(3)), number(6 + dice.IntN(2))}
		}
	case "string":
		switch keyword := pick("minLength", "maxLength", "enum", "pattern"); keyword {
		case "minLength":
			s[keyword] = number(dice.IntN(3))
		case "maxLength":
			s[keyword] = number(3 + dice.IntN(4))
		case "enum":
			s[keyword] = []any{"abc", pick("xyz", "x", "ab"), pick("abcd", "y")}
		case "pattern":
			s[keyword] = pick("^[a-z]*$", "^[a-z0-9]*$")
		}
	case "array":
		switch keyword := pick("minItems", "maxItems", "uniqueItems"); keyword {
		case "minItems":
			s[keyword] = number(dice.IntN(3))
		case "maxItems":
			s[keyword] = number(2 + dice.IntN(3))
		case "uniqueItems":
			s[keyword] = dice.IntN(2) == 0
		}
	case "object":
		switch keyword := pick("minProperties", "maxProperties"); keyword {
		case "minProperties":
			s[keyword] = number(dice.IntN(3))
		case "maxProperties":
			s[keyword] = number(2 + dice.IntN(4))
		}
	}
}

// edited is a schema with some changes, as an author makes them; now and then it is another one.
func edited(dice *rand.Rand, old map[string]any) map[string]any {
	if dice.IntN(15) == 0 {
		return schemaOf(dice, 2, true)
	}
	text, _ := exact.Parse(encoded(any(old)))
	now := text.(map[string]any)
	for range 1 + dice.IntN(2) {
		edit(dice, now, 2)
	}
	return now
}

func edit(dice *rand.Rand, s map[string]any, levels int) {
	inner := slices.Sorted(maps.Keys(properties(s)))
	if items, ok := s["items"].(map[string]any); ok && dice.IntN(2) == 0 {
		edit(dice, items, levels-1)
		return
	}
	if options := asList(s["anyOf"]); options != nil {
		if option, ok := options[dice.IntN(len(options))].(map[string]any); ok {
			edit(dice, option, levels-1)
		}
		return
	}
	if len(inner) > 0 && dice.IntN(2) == 0 {
		if own, ok := properties(s)[inner[dice.IntN(len(inner))]].(map[string]any); ok {
			edit(dice, own, levels-1)
			return
		}
	}
	kind, _ := s["type"].(string)
	switch dice.IntN(6) {
	case 0:
		for _, keyword := range slices.Sorted(maps.Keys(s)) {
			if keyword != "type" && keyword != "properties" && keyword != "items" {
				delete(s, keyword)
				return
			}
		}
	case 1:
		if named := properties(s); kind == "object" && named != nil {
			name := names[dice.IntN(len(names))]
			if _, there := named[name]; there && dice.IntN(2) == 0 {
				delete(named, name)
			} else {
				named[name] = any(schemaOf(dice, max(0, levels-1), false))
			}
		}
	case 2:
		if kind == "object" {
			must := asList(s["required"])
			name := any(names[dice.IntN(len(names))])
			if i := slices.Index(must, name); i >= 0 {
				must = slices.Delete(slices.Clone(must), i, i+1)
			} else {
				must = append(slices.Clone(must), name)
			}
			if s["required"] = must; len(must) == 0 {
				delete(s, "required")
			}
			return
		}
		if kind != "" {
			s["type"] = []any{kind, map[bool]string{true: "string", false: "boolean"}[kind != "string"]}
			if kind == "boolean" {
				s["type"] = "boolean"
			}
		}
	case 3:
		if kind == "object" {
			s["additionalProperties"] = dice.IntN(2) == 0
		} else if kind == "integer" {
			s["type"] = "number"
		} else if kind == "number" {
			s["type"] = "integer"
		}
	default:
		constrain(dice, s, kind)
	}
}
