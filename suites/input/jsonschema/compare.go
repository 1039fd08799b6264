package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// meaning says how the values of a keyword are compared.
type meaning int

const (
	value   meaning = iota + 1 // by value, numbers by theirs
	set                        // a list whose order says nothing
	note                       // says nothing about validity: what is there must stay, more may come
	nested                     // a schema
	listed                     // a list of schemas
	members                    // an object of schemas
)

// meanings are the keywords that are compared, in the words of 2020-12; normal brings the others to these. Unknown
// keywords mean nothing.
var meanings = map[string]meaning{
	"type": set, "enum": set, "required": set,
	"multipleOf": value, "maximum": value, "exclusiveMaximum": value, "minimum": value, "exclusiveMinimum": value,
	"maxLength": value, "minLength": value, "pattern": value, "format": value,
	"maxItems": value, "minItems": value, "uniqueItems": value, "maxContains": value, "minContains": value,
	"maxProperties": value, "minProperties": value, "dependentRequired": value, "default": value,
	"title": note, "description": note, "examples": note, "readOnly": note, "writeOnly": note, "deprecated": note,
	"contentEncoding": note, "contentMediaType": note,
	"items": nested, "contains": nested, "additionalProperties": nested, "propertyNames": nested, "unevaluatedItems": nested,
	"unevaluatedProperties": nested, "not": nested, "if": nested, "then": nested, "else": nested,
	"prefixItems": listed, "allOf": listed, "anyOf": listed, "oneOf": listed,
	"properties": members, "patternProperties": members, "dependentSchemas": members,
	"$ref": value, // only where it cannot be followed
}

// Difference says where the schema at a JSON pointer of got differs in meaning from want, as `at /path: expected X,
// got Y`; "" when it does not. Free are: the order of members and of sets, spellings that mean the same (a type alone
// or in a list, const or an enum of one, Draft 4's boolean exclusiveMinimum, Draft 7's lists of items), keywords that
// allow everything, references in place of what they lead to, PHP's [] for {}, added texts, and the description at the
// top.
func Difference(want, got any, at string) string {
	w, g := side{doc: read(want), schema: want}, side{doc: read(got)}
	g.base = baseOf(got, "")
	g.schema, _ = exact.Lookup(got, at)
	c := comparison{seen: map[[2]uintptr]bool{}}
	return c.schemas(w, g, "")
}

// At returns the keywords of the schema at a JSON pointer within a document, with references followed, a lone allOf
// opened, and one spelling for each meaning, as Difference compares them; a lone type is no list. False where there is
// no schema.
func At(schema any, pointer string) (map[string]any, bool) {
	found, ok := exact.Lookup(schema, pointer)
	if !ok || !isSchema(found) {
		return nil, false
	}
	keywords, _ := side{read(schema), baseOf(schema, ""), found}.normal(0)
	if types, ok := keywords["type"].([]any); ok && len(types) == 1 {
		keywords["type"] = types[0]
	}
	return keywords, true
}

// side is one of the two schemas, with the document around it and the address that its references are relative to.
type side struct {
	doc    *document
	base   string
	schema any
}

func (s side) within(schema any) side { return side{s.doc, s.base, schema} }

func baseOf(schema any, base string) string {
	object, _ := schema.(map[string]any)
	return (&document{resources: map[string]any{}, anchors: map[string]any{}}).name(object, base)
}

type comparison struct {
	seen map[[2]uintptr]bool // pairs of schemas that were compared, or are being so: references may recur
}

func (c *comparison) schemas(want, got side, at string) string {
	if w, ok := want.schema.(map[string]any); ok {
		if g, ok := got.schema.(map[string]any); ok {
			pair := [2]uintptr{reflect.ValueOf(w).Pointer(), reflect.ValueOf(g).Pointer()}
			if c.seen[pair] {
				return ""
			}
			c.seen[pair] = true
		}
	}
	w, want := want.normal(0)
	g, got := got.normal(0)
	for _, keyword := range slices.Sorted(maps.Keys(meanings)) {
		wv, wanted := w[keyword]
		gv, there := g[keyword]
		kind := meanings[keyword]
		if !wanted && (!there || kind == note) || at == "" && keyword == "description" {
			continue
		}
		if keyword == "default" && exact.Equal(w["type"], []any{"array"}) && isEmpty(wv) && isEmpty(gv) && !exact.Equal(wv, gv) { // whose empty list is no {}
			return fmt.Sprintf("at %s: expected %s, got %s", pointer(exact.At(at, keyword)), exact.Short(wv), exact.Short(gv))
		}
		if d := c.values(kind, want, got, wv, gv, wanted, there, exact.At(at, keyword)); d != "" {
			return d
		}
	}
	return ""
}

func (c *comparison) values(kind meaning, want, got side, w, g any, wanted, there bool, at string) string {
	switch {
	case !there:
		return fmt.Sprintf("at %s: expected %s, got nothing", at, exact.Short(w))
	case !wanted:
		return fmt.Sprintf("at %s: expected nothing, got %s", at, exact.Short(g))
	}
	switch kind {
	case nested:
		return c.schemas(want.within(w), got.within(g), at)
	case listed:
		wl, ok1 := w.([]any)
		gl, ok2 := g.([]any)
		if !ok1 || !ok2 || len(wl) != len(gl) {
			return unlike(at, w, g)
		}
		for i := range wl {
			if d := c.schemas(want.within(wl[i]), got.within(gl[i]), fmt.Sprintf("%s/%d", at, i)); d != "" {
				return d
			}
		}
		return ""
	case members:
		wm, ok1 := w.(map[string]any)
		gm, ok2 := g.(map[string]any)
		if !ok1 || !ok2 {
			return unlike(at, w, g)
		}
		return c.members(want, got, wm, gm, at)
	case set:
		if sameSet(w, g) {
			return ""
		}
	}
	return unlike(at, w, g)
}

func (c *comparison) members(want, got side, w, g map[string]any, at string) string {
	for _, name := range slices.Sorted(maps.Keys(w)) {
		gv, there := g[name]
		if !there {
			return fmt.Sprintf("at %s: expected %s, got nothing", exact.At(at, name), exact.Short(w[name]))
		}
		if d := c.schemas(want.within(w[name]), got.within(gv), exact.At(at, name)); d != "" {
			return d
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if _, wanted := w[name]; !wanted {
			return fmt.Sprintf("at %s: expected nothing, got %s", exact.At(at, name), exact.Short(g[name]))
		}
	}
	return ""
}

// unlike compares what is no schema.
func unlike(at string, w, g any) string {
	if exact.Equal(w, g) || isEmpty(w) && isEmpty(g) {
		return ""
	}
	return fmt.Sprintf("at %s: expected %s, got %s", pointer(at), exact.Short(w), exact.Short(g))
}

func sameSet(a, b any) bool {
	if exact.Equal(a, b) { // most often, and much sooner for a long list
		return true
	}
	al, ok1 := a.([]any)
	bl, ok2 := b.([]any)
	return ok1 && ok2 && covers(al, bl) && covers(bl, al)
}

func covers(a, b []any) bool {
	return !slices.ContainsFunc(b, func(v any) bool {
		return !slices.ContainsFunc(a, func(w any) bool { return exact.Equal(w, v) })
	})
}

// isEmpty sets {} and [], which PHP cannot keep apart.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// normal returns the schema's keywords with references followed and with one spelling for each meaning, and the side
// that its inner schemas belong to. References deeper than that many are left as they stand.
func (s side) normal(depth int) (map[string]any, side) {
	const deep = 32
	switch v := s.schema.(type) {
	case bool:
		if !v {
			return map[string]any{"not": map[string]any{}}, s
		}
	case map[string]any:
		s.base = baseOf(v, s.base)
		if text, ok := v["$ref"].(string); ok && depth < deep {
			if target, base, err := s.doc.resolve(s.base, text); err == nil {
				inner, at := side{s.doc, base, target}.normal(depth + 1)
				return overlay(inner, exact.Without(v, "$ref")), at
			}
		}
		if parts, ok := v["allOf"].([]any); ok && len(parts) == 1 && depth < deep && onlyNotes(exact.Without(v, "allOf")) {
			inner, at := s.within(parts[0]).normal(depth + 1)
			return overlay(inner, exact.Without(v, "allOf")), at
		}
		return normal(v), s
	}
	return map[string]any{}, s
}

// overlay puts what stands beside a reference over what the reference leads to.
func overlay(inner, beside map[string]any) map[string]any {
	inner = maps.Clone(inner)
	maps.Copy(inner, normal(beside))
	return inner
}

func onlyNotes(schema map[string]any) bool {
	for keyword := range schema {
		if kind := meanings[keyword]; kind != 0 && kind != note && keyword != "default" {
			return false
		}
	}
	return true
}

// noOps are the values with which a keyword allows everything.
var noOps = map[string][]any{
	"required": {[]any{}}, "properties": {map[string]any{}, []any{}}, "patternProperties": {map[string]any{}, []any{}},
	"items": {true, map[string]any{}}, "prefixItems": {[]any{}}, "additionalProperties": {true, map[string]any{}, []any{}},
	"propertyNames": {true, map[string]any{}}, "allOf": {[]any{}}, "uniqueItems": {false},
	"minLength": {json.Number("0")}, "minItems": {json.Number("0")}, "minProperties": {json.Number("0")},
}

// normal spells every meaning of an object schema in one way.
func normal(schema map[string]any) map[string]any {
	n := maps.Clone(schema)
	if v, ok := n["const"]; ok {
		n["enum"] = []any{v}
	}
	if t, ok := n["type"].(string); ok {
		n["type"] = []any{t}
	}
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if is, ok := n[exclusive].(bool); ok {
			delete(n, exclusive)
			if limit, ok := n[bound]; is && ok {
				n[exclusive] = limit
				delete(n, bound)
			}
		}
	}
	if list, ok := n["items"].([]any); ok {
		n["prefixItems"] = list
		delete(n, "items")
		if rest, ok := n["additionalItems"]; ok && len(list) > 0 {
			n["items"] = rest
		}
	}
	if all, ok := n["dependencies"].(map[string]any); ok {
		divide(n, all)
	}
	for keyword, values := range noOps {
		if slices.ContainsFunc(values, func(v any) bool { return exact.Equal(v, n[keyword]) }) {
			delete(n, keyword)
		}
	}
	return n
}

// divide spells Draft 7's dependencies as 2019-09 does.
func divide(n, dependencies map[string]any) {
	names, schemas := map[string]any{}, map[string]any{}
	for name, v := range dependencies {
		if _, list := v.([]any); list {
			names[name] = v
		} else {
			schemas[name] = v
		}
	}
	if len(names) > 0 {
		n["dependentRequired"] = names
	}
	if len(schemas) > 0 {
		n["dependentSchemas"] = schemas
	}
}
