package jsonschema

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/applicator"
	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// document is a schema with all that a reference within it can reach.
type document struct {
	resources map[string]any // by address without fragment; the document itself is "" as well
	anchors   map[string]any // by address#name
	refs      []reference
}

// reference is a $ref, $dynamicRef or $recursiveRef as it stands in a schema.
type reference struct {
	at   string // JSON pointer of the schema that holds it
	base string // address that it is relative to
	text string
}

func read(schema any) *document {
	d := &document{resources: map[string]any{"": schema}, anchors: map[string]any{}}
	d.index(schema, "", "")
	return d
}

func (d *document) index(schema any, base, at string) {
	object, ok := schema.(map[string]any)
	if !ok {
		return
	}
	base = d.name(object, base)
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := object[keyword].(string); ok {
			d.anchors[base+"#"+name] = schema
		}
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if text, ok := object[keyword].(string); ok {
			d.refs = append(d.refs, reference{at, base, text})
		}
	}
	for _, c := range children(object) {
		d.index(c.schema, base, at+c.at)
	}
}

// name enters a schema under its $id (Draft 4: id) and gives the base address within it.
func (d *document) name(schema map[string]any, base string) string {
	id, ok := schema["$id"].(string)
	if !ok {
		id, ok = schema["id"].(string)
	}
	if !ok {
		return base
	}
	if name, plain := strings.CutPrefix(id, "#"); plain {
		d.anchors[base+"#"+name] = schema
		return base
	}
	base, _, _ = strings.Cut(join(base, id), "#")
	d.resources[base] = schema
	return base
}

// join resolves a reference against the base address.
func join(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	if b.Opaque != "" && strings.HasPrefix(ref, "#") { // urn:…, which net/url cannot resolve against
		return base + ref
	}
	return b.ResolveReference(r).String()
}

// resolve finds what a reference leads to, with the base address there.
func (d *document) resolve(base, text string) (schema any, newBase string, err error) {
	if !strings.HasPrefix(text, "#") || base != "" {
		text = join(base, text)
	}
	address, fragment, _ := strings.Cut(text, "#")
	resource, ok := d.resources[address]
	if !ok {
		return nil, "", fmt.Errorf("needs another document")
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment != "" && fragment[0] != '/' {
		if schema, ok = d.anchors[address+"#"+fragment]; !ok {
			return nil, "", fmt.Errorf("leads nowhere")
		}
		return schema, address, nil
	}
	if schema, ok = exact.Lookup(resource, fragment); !ok || !isSchema(schema) {
		return nil, "", fmt.Errorf("leads nowhere")
	}
	return schema, address, nil
}

// Unresolved says which reference of a schema cannot be followed within it, because it needs another document or leads
// nowhere; "" when all can.
func Unresolved(schema any) string {
	d := read(schema)
	for _, r := range d.refs {
		if _, _, err := d.resolve(r.base, r.text); err != nil {
			return fmt.Sprintf("at %s: the $ref %.200q %v", pointer(r.at), r.text, err)
		}
	}
	return ""
}

// Circular says where references lead back to where they started without going into the value on the way: who
// follows such a schema never ends. "" when none do.
func Circular(schema any) string {
	d := read(schema)
	done := map[string]bool{}
	for _, r := range d.refs {
		if d.circles(r.base, r.text, map[string]bool{}, done) {
			return fmt.Sprintf("at %s: the $ref %.200q goes round in a circle", pointer(r.at), r.text)
		}
	}
	return ""
}

// circles follows one reference. A $dynamicRef may be a recursion that ends by itself, and is not followed further.
func (d *document) circles(base, text string, path, done map[string]bool) bool {
	key := join(base, text)
	switch {
	case path[key]:
		return true
	case done[key]:
		return false
	}
	done[key] = true
	target, at, err := d.resolve(base, text)
	if err != nil {
		return false
	}
	path[key] = true
	defer delete(path, key)
	return d.circlesFrom(target, at, path, done)
}

func (d *document) circlesFrom(schema any, base string, path, done map[string]bool) bool {
	object, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	if text, ok := object["$ref"].(string); ok && d.circles(base, text, path, done) {
		return true
	}
	return slices.ContainsFunc(children(object), func(c child) bool {
		return applicator.Keywords[c.keyword].InPlace && d.circlesFrom(c.schema, base, path, done)
	})
}

// Each visits a schema and all schemas in it, each with its JSON pointer; references are not followed. Pointers are made on demand: those
// of thousands of levels are hundreds of megabytes.
func Each(schema any, visit func(at func() string, s map[string]any)) {
	var walk func(schema any, at func() string)
	walk = func(schema any, at func() string) {
		object, ok := schema.(map[string]any)
		if !ok {
			return
		}
		visit(at, object)
		for _, c := range children(object) {
			walk(c.schema, func() string { return at() + c.at })
		}
	}
	walk(schema, func() string { return "" })
}
