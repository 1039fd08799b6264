package jsonschema

import (
	"maps"
	"slices"
	"strconv"

	"github.com/bridgecheck/bridgecheck/internal/applicator"
	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// child is a schema that stands directly within another.
type child struct {
	keyword string
	at      string // JSON pointer from the parent, as /properties/name
	schema  any
}

func isSchema(v any) bool {
	switch v.(type) {
	case map[string]any, bool:
		return true
	}
	return false
}

// children lists the schemas directly within one, in the order of their names.
func children(schema map[string]any) []child {
	var found []child
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		where, value := applicator.Keywords[keyword].Holds, schema[keyword]
		add := func(at string, v any) {
			if isSchema(v) {
				found = append(found, child{keyword, exact.At("", keyword) + at, v})
			}
		}
		if where == applicator.One || where == applicator.OneOrList {
			add("", value)
		}
		if items, ok := value.([]any); ok && (where == applicator.List || where == applicator.OneOrList) {
			for i, item := range items {
				add("/"+strconv.Itoa(i), item)
			}
		}
		if members, ok := value.(map[string]any); ok && (where == applicator.Named || where == applicator.NamedOrNames) {
			for _, name := range slices.Sorted(maps.Keys(members)) {
				add(exact.At("", name), members[name])
			}
		}
	}
	return found
}

// rewrite returns a copy of a schema in which change was applied to every schema within, innermost first, then to itself.
func rewrite(schema any, change func(map[string]any) map[string]any) any {
	object, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	object = maps.Clone(object)
	for keyword, value := range object {
		where := applicator.Keywords[keyword].Holds
		switch v := value.(type) {
		case map[string]any:
			switch where {
			case applicator.One, applicator.OneOrList:
				object[keyword] = rewrite(v, change)
			case applicator.Named, applicator.NamedOrNames:
				members := make(map[string]any, len(v))
				for name, member := range v {
					members[name] = rewrite(member, change)
				}
				object[keyword] = members
			}
		case []any:
			if where == applicator.List || where == applicator.OneOrList {
				items := make([]any, len(v))
				for i, item := range v {
					items[i] = rewrite(item, change)
				}
				object[keyword] = items
			}
		}
	}
	return change(object)
}
