package surface

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// escape is one way in which a value that one schema takes may be refused by another.
type escape struct {
	at   string // JSON pointer into the value; `*` stands for any item, and for any member that has no schema of its own
	kind string // ends the id of a rule: required, type, values, …
	from string // what the first schema says there, for people
	to   string
}

// unproved is the kind of an escape that may be none: the keywords cannot be compared.
const unproved = "unproved"

// Bounds of a comparison: of alternatives that are looked at apart, of values that stand for a range, of the depth, of pairs of
// schemas in all, and of schemas that alternatives are made of.
const (
	mostSteps        = 5000
	mostWork         = 200_000
	mostAlternatives = 64
	mostValues       = 64
	mostLevels       = 32
)

// narrowing lists the ways in which a value that from takes may be refused by to; none means that there is no such value. What is
// not looked at before the context ends is unproved.
func narrowing(ctx context.Context, from, to any) []escape {
	n := &narrower{from: from, to: to, seen: map[string]bool{}, effort: &effort{ctx, mostSteps, mostWork}}
	n.within([]any{from}, to, "", 0)
	return n.found
}

type narrower struct {
	from, to any // the documents, for their references
	found    []escape
	seen     map[string]bool // pairs that are under comparison: a reference that goes round leads back to one
	inner    int             // levels of required members that empty looks into
	*effort
}

// effort is what is left of a comparison.
type effort struct {
	ctx         context.Context
	steps, work int
}

// spent takes from the work that is left, and reports whether there is none.
func (e *effort) spent(work int) bool {
	e.work -= work
	return e.work < 0 || e.ctx.Err() != nil
}

// compiling is the work of making a validator.
const compiling = 20

// probe compares apart.
func (n *narrower) probe() *narrower {
	return &narrower{from: n.from, to: n.to, seen: map[string]bool{}, inner: n.inner, effort: n.effort}
}

func (n *narrower) escapes(at, kind string, from, to any) {
	e := escape{at, kind, short(from), short(to)}
	if !slices.ContainsFunc(n.found, func(f escape) bool { return f == e || kind == unproved && f.kind == kind && f.at == at }) {
		n.found = append(n.found, e)
	}
}

func short(v any) string {
	if v == nil {
		return ""
	}
	return exact.Short(v)
}

// within compares all values that every one of the conjuncts takes with a schema.
func (n *narrower) within(conjuncts []any, to any, at string, level int) {
	to = resolved(to, n.to)
	switch t := to.(type) {
	case bool:
		if !t && !n.empty(conjuncts) {
			n.escapes(at, "closed", nil, nil)
		}
		return
	case map[string]any:
		to = meaning(t)
		if len(to.(map[string]any)) == 0 {
			return
		}
	default:
		n.escapes(at, unproved, nil, nil)
		return
	}
	key := at + "\x00" + string(encoded(conjuncts)) + "\x00" + string(encoded(to))
	if n.seen[key] {
		return
	}
	n.steps--
	if n.seen[key] = true; level > mostLevels || n.steps < 0 {
		n.escapes(at, unproved, nil, nil)
		return
	}
	alternatives, ok := n.flatten(conjuncts, nil, 0)
	if !ok {
		n.escapes(at, unproved, nil, nil)
		return
	}
	for _, a := range alternatives {
		n.alternative(a, to.(map[string]any), at, level)
	}
}

// encoded is a value as JSON, of which equal values have the same.
func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // what was parsed can be written
		return nil
	}
	return text
}

// resolved follows references within a document; one that leads nowhere, and one beside other keywords, stays.
func resolved(schema, root any) any {
	for range mostLevels {
		object, ok := schema.(map[string]any)
		ref, is := object["$ref"].(string)
		if !ok || !is || len(meaning(object)) > 1 {
			return schema
		}
		at, local := strings.CutPrefix(ref, "#")
		if !local {
			return schema
		}
		target, ok := exact.Lookup(root, at)
		if !ok {
			return schema
		}
		schema = target
	}
	return schema
}

// silent are keywords that refuse no value.
var silent = []string{"$schema", "$id", "id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "example", "deprecated",
	"readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "$anchor"}

// known are keywords that are compared. All others refuse no value, or are unproved.
var known = []string{"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
	"format", "minItems", "maxItems", "uniqueItems", "items", "required", "properties", "additionalProperties", "minProperties", "maxProperties"}

// hard are keywords that may refuse values, and are compared as a whole: equal ones refuse the same.
var hard = []string{"$ref", "$dynamicRef", "$recursiveRef", "not", "if", "then", "else", "contains", "minContains", "maxContains", "prefixItems", "additionalItems",
	"patternProperties", "propertyNames", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "oneOf"}

// meaning is a schema without what refuses no value.
func meaning(schema map[string]any) map[string]any {
	kept := maps.Clone(schema)
	maps.DeleteFunc(kept, func(keyword string, value any) bool {
		if slices.Contains(silent, keyword) {
			return true
		}
		if keyword == "$ref" {
			return false
		}
		return !slices.Contains(known, keyword) && !slices.Contains(hard, keyword) && keyword != "allOf" && keyword != "anyOf"
	})
	return kept
}

// flatten makes alternatives of conjuncts: each is a list of schemas without allOf, anyOf and oneOf, all of which a value fits
// that takes this way. A oneOf is read as anyOf, which takes more. False: there are too many.
func (n *narrower) flatten(open []any, done []map[string]any, level int) ([][]map[string]any, bool) {
	if len(open) == 0 {
		return [][]map[string]any{done}, true
	}
	if level > 4*mostLevels || n.spent(1) {
		return nil, false
	}
	first, rest := resolved(open[0], n.from), open[1:]
	if yes, is := first.(bool); is {
		if !yes {
			return nil, true // no value at all
		}
		return n.flatten(rest, done, level+1)
	}
	object, ok := first.(map[string]any)
	if !ok {
		return nil, false
	}
	object = meaning(object)
	if all, is := object["allOf"].([]any); is {
		delete(object, "allOf")
		return n.flatten(slices.Concat([]any{object}, all, rest), done, level+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, is := object[keyword].([]any)
		if !is {
			continue
		}
		delete(object, keyword)
		var all [][]map[string]any
		for _, branch := range branches {
			some, ok := n.flatten(slices.Concat([]any{object, branch}, rest), done, level+1)
			if all = append(all, some...); !ok || len(all) > mostAlternatives {
				return nil, false
			}
		}
		return all, true
	}
	return n.flatten(rest, append(slices.Clip(done), object), level+1)
}

// empty reports whether no value fits all conjuncts, as far as that is easily seen.
func (n *narrower) empty(conjuncts []any) bool {
	if n.inner == mostLevels { // members that are required in each other without end
		return false
	}
	n.inner++
	defer func() { n.inner-- }()
	alternatives, ok := n.flatten(conjuncts, nil, 0)
	return ok && !slices.ContainsFunc(alternatives, func(a []map[string]any) bool {
		possible := n.possible(a)
		values, finite := n.values(a, possible)
		return len(possible) > 0 && (!finite || len(values) > 0)
	})
}

// types are those of JSON values; integers are numbers that are counted apart.
var types = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// typesOf are those that a schema's keyword type takes.
func typesOf(schema map[string]any) []string {
	var named []string
	switch t := schema["type"].(type) {
	case nil:
		return types
	case string:
		named = []string{t}
	case []any:
		for _, item := range t {
			if name, ok := item.(string); ok {
				named = append(named, name)
			}
		}
	}
	if slices.Contains(named, "number") {
		named = append(named, "integer")
	}
	return named
}

// possible are the types that values of an alternative may have.
func (n *narrower) possible(a []map[string]any) []string {
	left := slices.Clone(types)
	for _, s := range a {
		own := typesOf(s)
		left = slices.DeleteFunc(left, func(t string) bool { return !slices.Contains(own, t) })
	}
	return slices.DeleteFunc(left, func(t string) bool {
		switch t {
		case "integer", "number":
			if t == "number" && slices.ContainsFunc(a, func(s map[string]any) bool { step := rational(s["multipleOf"]); return step != nil && step.IsInt() }) {
				return true // all of them are integers
			}
			lower, upper := limit(a, true, t == "integer"), limit(a, false, t == "integer")
			if lower.value == nil || upper.value == nil {
				return false
			}
			by := lower.value.Cmp(upper.value)
			return by > 0 || by == 0 && (lower.open || upper.open)
		case "string":
			return crossed(a, "minLength", "maxLength")
		case "array":
			return crossed(a, "minItems", "maxItems")
		case "object":
			if crossed(a, "minProperties", "maxProperties") {
				return true
			}
			must := required(a)
			if most := count(a, "maxProperties", true, -1); most >= 0 && most < int64(len(must)) {
				return true
			}
			for _, name := range must {
				if of := n.member(a, name); of == nil || n.empty(of) {
					return true
				}
			}
		}
		return false
	})
}

// alternative compares the values of one alternative with a schema.
func (n *narrower) alternative(a []map[string]any, to map[string]any, at string, level int) {
	possible := n.possible(a)
	if len(possible) == 0 {
		return
	}
	if values, finite := n.values(a, possible); finite {
		n.listed(values, to, at)
		return
	}
	for _, part := range asList(to["allOf"]) {
		n.within(asAny(a), part, at, level+1)
	}
	if branches := asList(to["anyOf"]); branches != nil {
		n.oneOfThem(a, branches, at, level)
	}
	if branches := asList(to["oneOf"]); branches != nil && !slices.ContainsFunc(a, func(s map[string]any) bool { return exact.Equal(s["oneOf"], to["oneOf"]) }) {
		before := len(n.found)
		n.oneOfThem(a, branches, at, level)
		if len(n.found) == before && !apart(branches, n.to) {
			n.escapes(at, unproved, nil, "oneOf")
		}
	}
	allowed := typesOf(to)
	for _, t := range possible {
		if !slices.Contains(allowed, t) {
			n.escapes(at, "type", strings.Join(named(possible), ", "), to["type"])
			break
		}
	}
	possible = slices.DeleteFunc(slices.Clone(possible), func(t string) bool { return !slices.Contains(allowed, t) })
	has := func(wanted ...string) bool {
		return slices.ContainsFunc(wanted, func(t string) bool { return slices.Contains(possible, t) })
	}
	if len(possible) == 0 {
		return
	}
	if values, is := to["enum"]; is {
		n.escapes(at, "values", nil, values)
	} else if value, is := to["const"]; is {
		n.escapes(at, "values", nil, []any{value})
	}
	if has("integer", "number") {
		n.numbers(a, to, at, has("number"))
	}
	if has("string") {
		n.atLeast(a, to, at, "minLength", "length", 0)
		n.atMost(a, to, at, "maxLength", "length", -1)
		n.same(a, to, at, "pattern")
		n.same(a, to, at, "format")
	}
	if has("array") {
		n.arrays(a, to, at, level)
	}
	if has("object") {
		n.objects(a, to, at, level)
	}
	for _, keyword := range hard {
		if keyword == "oneOf" || to[keyword] == nil {
			continue
		}
		if about := map[string]string{"contains": "array", "minContains": "array", "maxContains": "array", "prefixItems": "array", "additionalItems": "array",
			"unevaluatedItems": "array", "patternProperties": "object", "propertyNames": "object", "dependencies": "object", "dependentRequired": "object",
			"dependentSchemas": "object", "unevaluatedProperties": "object"}[keyword]; about != "" && !has(about) {
			continue
		}
		if !slices.ContainsFunc(a, func(s map[string]any) bool { return n.sameHard(s, to, keyword) }) {
			n.escapes(at, unproved, nil, keyword)
		}
	}
}

// sameHard reports whether a keyword, with those that it is read with, is the same in both.
func (n *narrower) sameHard(a, b map[string]any, keyword string) bool {
	together := []string{keyword}
	switch keyword {
	case "if", "then", "else":
		together = []string{"if", "then", "else"}
	case "contains", "minContains", "maxContains":
		together = []string{"contains", "minContains", "maxContains"}
	case "prefixItems", "additionalItems", "unevaluatedItems":
		together = []string{"prefixItems", "items", "additionalItems", "unevaluatedItems"}
	case "patternProperties", "unevaluatedProperties":
		together = []string{"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"}
	}
	for _, k := range together {
		if !exact.Equal(a[k], b[k]) {
			return false
		}
	}
	text := string(encoded(b[keyword]))
	return !strings.Contains(text, `"$ref"`) && keyword != "$ref" || exact.Equal(definitions(n.from), definitions(n.to))
}

func definitions(root any) any {
	object, _ := root.(map[string]any)
	return []any{object["$defs"], object["definitions"]}
}

// oneOfThem finds a branch that takes all values; where none is, what the nearest refuses is the escape.
func (n *narrower) oneOfThem(a []map[string]any, branches []any, at string, level int) {
	var least []escape
	for i, branch := range branches {
		probe := n.probe()
		probe.within(asAny(a), branch, at, level+1)
		if len(probe.found) == 0 {
			return
		}
		if i == 0 || len(probe.found) < len(least) {
			least = probe.found
		}
	}
	// Several branches may take all of them together, type by type.
	if possible := named(n.possible(a)); len(possible) > 1 {
		whole := true
		for _, t := range possible {
			probe := n.probe()
			probe.oneOfThem(append(slices.Clip(a), map[string]any{"type": t}), branches, at, level+1)
			whole = whole && len(probe.found) == 0
		}
		if whole {
			return
		}
	}
	for _, e := range least {
		n.escapes(e.at, e.kind, e.from, e.to)
	}
	if len(branches) > 1 {
		n.escapes(at, unproved, nil, "anyOf")
	}
}

// apart reports whether no value fits two of the branches, as their types or constant members show.
func apart(branches []any, root any) bool {
	var taken []string
	for _, branch := range branches {
		object, ok := resolved(branch, root).(map[string]any)
		if !ok || object["type"] == nil {
			return false
		}
		for _, t := range typesOf(object) {
			if slices.Contains(taken, t) {
				return false
			}
			taken = append(taken, t)
		}
	}
	return true
}

// values are all that an alternative takes, where those are few.
func (n *narrower) values(a []map[string]any, possible []string) ([]any, bool) {
	var candidates []any
	for _, s := range a {
		if listed, is := s["enum"].([]any); is {
			candidates = listed
		} else if value, is := s["const"]; is {
			candidates = []any{value}
		}
	}
	if candidates == nil {
		for _, t := range possible {
			switch t {
			case "null":
				candidates = append(candidates, nil)
			case "boolean":
				candidates = append(candidates, false, true)
			case "integer":
				lower, upper := limit(a, true, true), limit(a, false, true)
				if lower.value == nil || upper.value == nil || slices.Contains(possible, "number") {
					return nil, false
				}
				for v := new(big.Rat).Set(lower.value); v.Cmp(upper.value) <= 0; v.Add(v, big.NewRat(1, 1)) {
					if len(candidates) > mostValues {
						return nil, false
					}
					candidates = append(candidates, json.Number(v.RatString()))
				}
			default:
				return nil, false
			}
		}
	}
	whole := map[string]any{"allOf": asAny(a)}
	takes, ok := n.takes(whole, n.from)
	if !ok {
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(v any) bool { return !takes(v) }), true
}

// takes tests values by a schema that is a part of a document.
func (n *narrower) takes(schema map[string]any, root any) (func(any) bool, bool) {
	if n.spent(compiling) {
		return nil, false
	}
	whole := maps.Clone(schema)
	if object, ok := root.(map[string]any); ok {
		for _, name := range []string{"$schema", "$defs", "definitions"} {
			if value, there := object[name]; there {
				whole[name] = value
			}
		}
	}
	validator, err := jsonschema.Compile(whole, jsonschema.Draft7)
	if err != nil {
		return nil, false
	}
	return func(v any) bool { return validator.Fault(v) == "" }, true
}

// listed tests each of a few values.
func (n *narrower) listed(values []any, to map[string]any, at string) {
	takes, ok := n.takes(to, n.to)
	if !ok {
		n.escapes(at, unproved, nil, nil)
		return
	}
	if refused := slices.DeleteFunc(slices.Clone(values), takes); len(refused) > 0 {
		n.escapes(at, "values", refused, nil)
	}
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func asAny(a []map[string]any) []any {
	all := make([]any, len(a))
	for i, s := range a {
		all[i] = s
	}
	return all
}

// named leaves integers out where all numbers are possible.
func named(possible []string) []string {
	if slices.Contains(possible, "number") {
		return slices.DeleteFunc(slices.Clone(possible), func(t string) bool { return t == "integer" })
	}
	return possible
}

// bound is a limit of numbers; without a value there is none.
type bound struct {
	value *big.Rat
	open  bool // the value itself is beyond it
	said  string
}

// limit is the tightest lower or upper limit of numbers, for integers the last one within it.
func limit(a []map[string]any, lower, integers bool) bound {
	closed, open := "maximum", "exclusiveMaximum"
	if lower {
		closed, open = "minimum", "exclusiveMinimum"
	}
	var tight bound
	for _, s := range a {
		for _, b := range boundsOf(s, closed, open) {
			if tight.value == nil || tighter(b, tight, lower) {
				tight = b
			}
		}
	}
	if !integers || tight.value == nil {
		return tight
	}
	whole := new(big.Int).Div(tight.value.Num(), tight.value.Denom()) // rounds down
	exactly := tight.value.IsInt()
	switch {
	case lower && (!exactly || tight.open):
		whole.Add(whole, big.NewInt(1))
	case !lower && exactly && tight.open:
		whole.Sub(whole, big.NewInt(1))
	}
	return bound{value: new(big.Rat).SetInt(whole), said: tight.said}
}

// boundsOf reads both spellings of an exclusive limit: Draft 4 has a boolean beside the number.
func boundsOf(s map[string]any, closed, open string) []bound {
	var all []bound
	strict := s[open] == true
	if v := rational(s[closed]); v != nil {
		all = append(all, bound{v, strict, closed + " " + short(s[closed])})
	}
	if v := rational(s[open]); v != nil {
		all = append(all, bound{v, true, open + " " + short(s[open])})
	}
	return all
}

func rational(v any) *big.Rat {
	number, ok := v.(json.Number)
	if !ok || len(number) > 60 {
		return nil
	}
	value, ok := new(big.Rat).SetString(string(number))
	if !ok {
		return nil
	}
	return value
}

// tighter reports whether a leaves fewer numbers than b.
func tighter(a, b bound, lower bool) bool {
	by := a.value.Cmp(b.value)
	if by == 0 {
		return a.open && !b.open
	}
	return by > 0 == lower
}

func (n *narrower) numbers(a []map[string]any, to map[string]any, at string, fractions bool) {
	for _, lower := range []bool{true, false} {
		wanted, have := limit([]map[string]any{to}, lower, !fractions), limit(a, lower, !fractions)
		if wanted.value != nil && (have.value == nil || tighter(wanted, have, lower)) {
			n.escapes(at, "range", have.said, wanted.said)
		}
	}
	if wanted := rational(to["multipleOf"]); wanted != nil && wanted.Sign() > 0 {
		steps := []*big.Rat{}
		if !fractions {
			steps = append(steps, big.NewRat(1, 1))
		}
		var said any
		for _, s := range a {
			if step := rational(s["multipleOf"]); step != nil {
				steps, said = append(steps, step), s["multipleOf"]
			}
		}
		if !slices.ContainsFunc(steps, func(step *big.Rat) bool { return new(big.Rat).Quo(step, wanted).IsInt() }) {
			kind := "range"
			if len(steps) > 1 { // together they may do
				kind = unproved
			}
			n.escapes(at, kind, said, fmt.Sprintf("multipleOf %v", to["multipleOf"]))
		}
	}
}

// count is the tightest of the counts that the schemas have under a keyword; none where there is none.
func count(a []map[string]any, keyword string, most bool, none int64) int64 {
	tight, found := none, false
	for _, s := range a {
		v := rational(s[keyword])
		if v == nil || !v.IsInt() || !v.Num().IsInt64() {
			continue
		}
		if c := v.Num().Int64(); !found || most == (c < tight) {
			tight, found = c, true
		}
	}
	return tight
}

func crossed(a []map[string]any, least, most string) bool {
	upper := count(a, most, true, -1)
	return upper >= 0 && count(a, least, false, 0) > upper
}

// atLeast compares a lower count; floor is what holds anyway.
func (n *narrower) atLeast(a []map[string]any, to map[string]any, at, keyword, kind string, floor int64) {
	wanted := count([]map[string]any{to}, keyword, false, 0)
	if have := max(floor, count(a, keyword, false, 0)); wanted > have {
		n.escapes(at, kind, fmt.Sprintf("%s %d", keyword, have), fmt.Sprintf("%s %d", keyword, wanted))
	}
}

// atMost compares an upper count; ceiling is what holds anyway, -1 for none.
func (n *narrower) atMost(a []map[string]any, to map[string]any, at, keyword, kind string, ceiling int64) {
	wanted, have := count([]map[string]any{to}, keyword, true, -1), count(a, keyword, true, -1)
	if ceiling >= 0 && (have < 0 || ceiling < have) {
		have = ceiling
	}
	if wanted >= 0 && (have < 0 || wanted < have) {
		said := ""
		if have >= 0 {
			said = fmt.Sprintf("%s %d", keyword, have)
		}
		n.escapes(at, kind, said, fmt.Sprintf("%s %d", keyword, wanted))
	}
}

// same adds an escape unless one of the conjuncts has the keyword of texts with the same value.
func (n *narrower) same(a []map[string]any, to map[string]any, at, keyword string) {
	wanted, is := to[keyword].(string)
	if !is || slices.ContainsFunc(a, func(s map[string]any) bool { return s[keyword] == wanted }) {
		return
	}
	var have any
	for _, s := range a {
		if s[keyword] != nil {
			have = s[keyword]
		}
	}
	n.escapes(at, keyword, have, wanted)
}

func (n *narrower) arrays(a []map[string]any, to map[string]any, at string, level int) {
	var items []any
	for _, s := range a {
		_, positions := s["items"].([]any)
		if s["items"] != nil && !positions && s["prefixItems"] == nil {
			items = append(items, s["items"])
		}
	}
	n.atLeast(a, to, at, "minItems", "count", 0)
	n.atMost(a, to, at, "maxItems", "count", n.different(a, items))
	most := count(a, "maxItems", true, -1)
	if to["uniqueItems"] == true && most != 0 && most != 1 && !slices.ContainsFunc(a, func(s map[string]any) bool { return s["uniqueItems"] == true }) {
		n.escapes(at, "count", nil, "uniqueItems")
	}
	if most == 0 || to["items"] == nil || to["prefixItems"] != nil {
		return
	}
	if _, positions := to["items"].([]any); positions {
		if !slices.ContainsFunc(a, func(s map[string]any) bool { return n.sameHard(s, to, "additionalItems") }) {
			n.escapes(at, unproved, nil, "items")
		}
		return
	}
	n.within(items, to["items"], at+"/*", level+1)
}

// different is how many items a list has at most, none of which is there twice; -1: any number.
func (n *narrower) different(a []map[string]any, items []any) int64 {
	if len(items) == 0 || !slices.ContainsFunc(a, func(s map[string]any) bool { return s["uniqueItems"] == true }) {
		return -1
	}
	alternatives, ok := n.flatten(items, nil, 0)
	all := int64(0)
	for _, a := range alternatives {
		values, finite := n.values(a, n.possible(a))
		ok, all = ok && finite, all+int64(len(values))
	}
	if !ok {
		return -1
	}
	return all
}

// required are the members that every object of the alternative has.
func required(a []map[string]any) []string {
	var names []string
	for _, s := range a {
		for _, item := range asList(s["required"]) {
			if name, ok := item.(string); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// properties are the members that a schema names.
func properties(s map[string]any) map[string]any {
	named, _ := s["properties"].(map[string]any)
	return named
}

// member are the schemas that a member of the alternative's objects fits; nil: there cannot be such a member.
func (n *narrower) member(a []map[string]any, name string) []any {
	all := []any{}
	if must := required(a); full(a, must) && !slices.Contains(must, name) {
		return nil
	}
	for _, s := range a {
		if own, named := properties(s)[name]; named {
			all = append(all, own)
			continue
		}
		other, given := s["additionalProperties"]
		if !given || s["patternProperties"] != nil {
			continue
		}
		if other == false {
			return nil
		}
		all = append(all, other)
	}
	return all
}

// full reports whether the members that every object has are all that it may have.
func full(a []map[string]any, must []string) bool {
	return count(a, "maxProperties", true, -1) == int64(len(must))
}

func (n *narrower) objects(a []map[string]any, to map[string]any, at string, level int) {
	have := required(a)
	closed, listed := false, map[string]bool{}
	for _, s := range a {
		for name := range properties(s) {
			listed[name] = true
		}
		closed = closed || s["additionalProperties"] == false && s["patternProperties"] == nil
	}
	for _, name := range required([]map[string]any{to}) {
		every := closed && listed[name] && count(a, "minProperties", false, 0) >= int64(len(listed)) // all that may be there are
		if !slices.Contains(have, name) && !every {
			n.escapes(at+"/"+name, "required", nil, nil)
		}
	}
	n.atLeast(a, to, at, "minProperties", "count", int64(len(have)))
	ceiling := int64(-1)
	if closed {
		ceiling = 0
		for name := range listed {
			if of := n.member(a, name); of != nil && !n.empty(of) {
				ceiling++
			}
		}
	}
	n.atMost(a, to, at, "maxProperties", "count", ceiling)
	if ceiling == 0 || count(a, "maxProperties", true, -1) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(properties(to))) {
		if of := n.member(a, name); of != nil && !n.empty(of) {
			n.within(of, properties(to)[name], at+"/"+name, level+1)
		}
	}
	other, given := to["additionalProperties"]
	if !given || other == true {
		return
	}
	if to["patternProperties"] != nil { // sameHard has looked at both together
		return
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if _, named := properties(to)[name]; named {
			continue
		}
		if of := n.member(a, name); of != nil && !n.empty(of) {
			n.within(of, other, at+"/"+name, level+1)
		}
	}
	if closed || full(a, have) {
		return
	}
	rest := []any{}
	for _, s := range a {
		if own, given := s["additionalProperties"]; given && s["patternProperties"] == nil {
			rest = append(rest, own)
		}
	}
	if !n.empty(rest) {
		n.within(rest, other, at+"/*", level+1)
	}
}
