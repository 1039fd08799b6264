package surface

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// Bounds of the search for an example.
const (
	mostTried   = 4000 // values, where schemas seem to differ
	fewTried    = 200  // where they do not
	mostBases   = 16   // values of the first schema that are changed in one place
	mostLiteral = 40   // values that the schemas suggest for a place
	mostMembers = 12   // members or items that a value gets more
	mostDrawn   = 5000 // parts of a value: members that have as many of their own multiply
	fewApplied  = 200  // schemas that apply to a value which counts as one of those tried
)

// witness looks for a value that from takes and to refuses: it changes values of from in one place, to what stands in either
// schema, just beyond a limit, or is of another type. It is made small.
func witness(ctx context.Context, from, to any, tries int) (any, bool) {
	old, ok := from.(map[string]any)
	now, too := to.(map[string]any)
	if !ok || !too {
		return nil, false
	}
	takes, err := jsonschema.Agree(old, jsonschema.Draft7)
	if err != nil {
		return nil, false
	}
	refuses, err := jsonschema.Agree(now, jsonschema.Draft7)
	if err != nil {
		return nil, false
	}
	shows := func(v any) bool { return takes.Takes(v) && refuses.Refuses(v) }
	tried, cost := 0, 1
	var found any
	try := func(v any) (done bool) {
		tried += cost
		if shows(v) {
			found = v
		}
		return found != nil || tried > tries || ctx.Err() != nil
	}
	literals := literalsOf(old, now)
	for _, base := range bases(ctx, old, takes, literals) {
		cost = 1 + takes.Cost(base)/fewApplied // those changed in one place cost as much
		if try(base) || changed(base, literals, try) {
			break
		}
	}
	if found == nil || ctx.Err() != nil {
		return nil, false
	}
	return generate.Smallest(found, 200, shows), true
}

// bases are values that the schema takes: with all members and with few, and some at random.
func bases(ctx context.Context, schema map[string]any, takes *jsonschema.Consensus, l literals) []any {
	var all []any
	add := func(v any) {
		if len(all) < mostBases && takes.Takes(v) && !slices.ContainsFunc(all, func(w any) bool { return exact.Equal(v, w) }) {
			all = append(all, v)
		}
	}
	add(generate.Example(schema))
	dice := rand.New(rand.NewPCG(1, 2)) // the same examples each time
	if maker, err := generate.ForResult(schema, dice); err == nil {
		add(maker.Plain())
		add(generate.Smallest(maker.Plain(), 100, takes.Takes))
		for range mostBases / 3 {
			if v, ok := maker.Drawn(); ok {
				add(v)
			}
		}
	}
	for range 40 * mostBases { // that generator makes no null, and no members without a name
		left := mostDrawn
		if v := l.draw(dice, schema, schema, 0, &left); len(all) < mostBases && ctx.Err() == nil {
			add(v)
		}
	}
	return all
}

// draw is a value that looks as a schema asks, of what the schemas suggest.
func (l literals) draw(dice *rand.Rand, schema, root any, level int, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	s, _ := resolved(schema, root).(map[string]any)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if options := asList(s[keyword]); len(options) > 0 && level < mostLevels {
			return l.draw(dice, options[dice.IntN(len(options))], root, level+1, left)
		}
	}
	if values := asList(s["enum"]); len(values) > 0 {
		return values[dice.IntN(len(values))]
	}
	if value, is := s["const"]; is {
		return value
	}
	kinds := typesOf(s)
	if len(kinds) == 0 || level > 4 {
		return nil
	}
	kind := kinds[dice.IntN(len(kinds))]
	switch kind {
	case "object":
		object := map[string]any{}
		must := required([]map[string]any{s})
		for _, name := range slices.Sorted(maps.Keys(properties(s))) {
			if slices.Contains(must, name) || dice.IntN(2) == 0 {
				object[name] = l.draw(dice, properties(s)[name], root, level+1, left)
			}
		}
		for _, name := range append(must, "more1", "more2", "more3", "more4") {
			if _, there := object[name]; !there && (slices.Contains(must, name) || s["additionalProperties"] != false && dice.IntN(3) == 0) {
				object[name] = l.draw(dice, s["additionalProperties"], root, level+1, left)
			}
		}
		return object
	case "array":
		list := []any{}
		for range dice.IntN(5) {
			list = append(list, l.draw(dice, s["items"], root, level+1, left))
		}
		return list
	}
	fitting := slices.DeleteFunc(slices.Clone(l.values), func(v any) bool {
		switch v := v.(type) {
		case nil:
			return kind != "null"
		case bool:
			return kind != "boolean"
		case string:
			return kind != "string"
		case json.Number:
			r := rational(v)
			return r == nil || kind != "number" && (kind != "integer" || !r.IsInt())
		}
		return true
	})
	if len(fitting) == 0 {
		return nil
	}
	return fitting[dice.IntN(len(fitting))]
}

// literals are what the schemas suggest.
type literals struct {
	values  []any
	members []string
	sizes   []int // of lists, objects and texts
}

// literalsOf collects the values in schemas, values just beyond their limits, and one value of each type.
func literalsOf(schemas ...any) literals {
	l := literals{values: []any{nil, true, false, json.Number("0"), json.Number("1"), json.Number("0.5"), json.Number("-1"), json.Number("1000003"), "", "a", "é 0", "2020-01-31", []any{}, map[string]any{}},
		members: []string{"another"}}
	for _, s := range schemas {
		l.collect(s, 0)
	}
	slices.Sort(l.sizes)
	l.sizes = slices.Compact(l.sizes)
	for _, n := range l.sizes {
		for _, size := range []int{n - 1, n, n + 1} {
			if size >= 0 && size <= 1<<12 {
				l.add(strings.Repeat("a", size))
				l.add(strings.Repeat("7", size))
			}
		}
	}
	return l
}

func (l *literals) add(v any) {
	if len(l.values) < mostLiteral+14 && !slices.ContainsFunc(l.values, func(w any) bool { return exact.Equal(v, w) }) {
		l.values = append(l.values, v)
	}
}

func (l *literals) collect(schema any, level int) {
	s, ok := schema.(map[string]any)
	if !ok || level > mostLevels {
		return
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		switch value := s[keyword].(type) {
		case json.Number:
			v := rational(value)
			if v == nil {
				continue
			}
			switch keyword {
			case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
				for _, by := range []*big.Rat{big.NewRat(-1, 1), {}, big.NewRat(1, 1), big.NewRat(1, 2)} {
					sum := new(big.Rat).Add(v, by)
					if text := sum.FloatString(6); strings.Contains(text, ".") {
						l.add(json.Number(strings.TrimSuffix(strings.TrimRight(text, "0"), ".")))
					}
				}
			default:
				if n, err := strconv.Atoi(string(value)); err == nil {
					l.sizes = append(l.sizes, n)
				}
			}
		case []any:
			for _, item := range value {
				switch keyword {
				case "enum":
					l.add(item)
				case "required":
					if name, ok := item.(string); ok && !slices.Contains(l.members, name) {
						l.members = append(l.members, name)
					}
				default:
					l.collect(item, level+1)
				}
			}
		case map[string]any:
			if keyword == "properties" || keyword == "$defs" || keyword == "definitions" {
				for _, name := range slices.Sorted(maps.Keys(value)) {
					if keyword == "properties" && !slices.Contains(l.members, name) {
						l.members = append(l.members, name)
					}
					if example := generate.Example(value[name]); example != nil {
						l.add(example)
					}
					l.collect(value[name], level+1)
				}
				continue
			}
			l.collect(value, level+1)
		case string:
			if keyword == "pattern" {
				l.add(generate.Example(map[string]any{"type": "string", "pattern": value}))
			}
		}
		if keyword == "const" {
			l.add(s[keyword])
		}
	}
}

// changed tries a value with each of its parts changed, one at a time.
func changed(v any, l literals, try func(any) bool) bool {
	if slices.ContainsFunc(l.values, try) {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			without := maps.Clone(v)
			delete(without, name)
			if try(without) {
				return true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if changed(v[name], l, func(part any) bool {
				with := maps.Clone(v)
				with[name] = part
				return try(with)
			}) {
				return true
			}
		}
		for _, name := range l.members {
			if _, there := v[name]; there {
				continue
			}
			for _, other := range slices.Sorted(maps.Keys(v)) { // in its place
				with := maps.Clone(v)
				delete(with, other)
				if with[name] = v[other]; try(with) {
					return true
				}
			}
			for _, value := range l.values {
				with := maps.Clone(v)
				with[name] = value
				if try(with) {
					return true
				}
			}
		}
		return grown(v, l, try)
	case []any:
		for i := range v {
			if try(slices.Delete(slices.Clone(v), i, i+1)) || try(append(slices.Clone(v), v[i])) {
				return true
			}
			if i < 2 && changed(v[i], l, func(part any) bool {
				with := slices.Clone(v)
				with[i] = part
				return try(with)
			}) {
				return true
			}
		}
		for _, value := range l.values {
			if try([]any{value}) || try([]any{value, value}) || try(append(slices.Clone(v), value)) {
				return true
			}
		}
		kinds := map[string][]any{}
		for _, value := range l.values {
			kind := fmt.Sprintf("%T", value)
			kinds[kind] = append(kinds[kind], value)
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) { // lists that have no item twice
			for n := range min(mostMembers, len(kinds[kind])) {
				if try(slices.Clone(kinds[kind][:n+1])) {
					return true
				}
			}
		}
		for _, value := range l.values {
			with := slices.Clone(v)
			for range mostMembers {
				if with = append(with, value); l.telling(len(with)) && try(slices.Clone(with)) {
					return true
				}
			}
		}
	}
	return false
}

// telling reports whether a size is at or just beyond a limit of the schemas.
func (l literals) telling(size int) bool {
	return slices.Contains(l.sizes, size) || slices.Contains(l.sizes, size-1)
}

// grown tries an object with more and more members, of one value each.
func grown(v map[string]any, l literals, try func(any) bool) bool {
	for _, value := range l.values {
		with := maps.Clone(v)
		for i := range mostMembers {
			with[fmt.Sprintf("another%d", i+1)] = value
			if l.telling(len(with)) && try(maps.Clone(with)) {
				return true
			}
		}
	}
	return false
}
