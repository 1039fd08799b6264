package suites

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
)

func absent(t Tool, member string) bool {
	_, there := t[member]
	return !there
}

// memberOf tells what a tool has in a member, for messages.
func memberOf(t Tool, member string) string {
	v, there := t[member]
	if !there {
		return "no `" + member + "`"
	}
	return fmt.Sprintf("the `%s` %s", member, exact.Short(v))
}

// properties are those of the tool's inputSchema; nil where it has no object of them.
func (t Tool) properties() map[string]any {
	properties, _ := t.Input()["properties"].(map[string]any)
	return properties
}

// property is what the tool shows of a parameter.
func (t Tool) property(name string) (any, bool) {
	v, there := t.properties()[name]
	return v, there
}

// propertyFault says where a property differs in meaning from the schema that the site publishes for the parameter; ""
// when it does not, or is not there.
func (t Tool) propertyFault(p fixtures.Param) string {
	if _, there := t.property(p.Name); !there {
		return ""
	}
	at := "/properties/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p.Name)
	if d := jsonschema.Difference(published(p.Resolved()), map[string]any(t.Input()), at); d != "" {
		return fmt.Sprintf("another schema for the parameter %q: %s", p.Name, d)
	}
	return ""
}

// published is a schema of the site as a parsed document; a parameter without one takes anything.
func published(schema fixtures.Raw) any {
	if len(schema) == 0 {
		return map[string]any{}
	}
	v, err := exact.Parse(schema)
	if err != nil {
		panic(fmt.Sprintf("a schema of the mock's site cannot be read: %v", err))
	}
	return v
}

// listAsProperties finds a `properties` that is no object, at the top of a schema or anywhere within, values of
// enumerations and defaults left aside; "" without one.
func listAsProperties(v any, at string) string {
	schema, ok := v.(map[string]any)
	if !ok {
		if items, ok := v.([]any); ok {
			for i, item := range items {
				if f := listAsProperties(item, fmt.Sprintf("%s/%d", at, i)); f != "" {
					return f
				}
			}
		}
		return ""
	}
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		inner, below := schema[keyword], at+"/"+keyword
		members, isObject := inner.(map[string]any)
		switch keyword {
		case "enum", "const", "default", "examples":
			continue
		case "properties":
			if !isObject {
				return fmt.Sprintf("%s at %s", exact.Short(inner), below)
			}
			fallthrough
		case "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies":
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if f := listAsProperties(members[name], below+"/"+name); f != "" {
					return f
				}
			}
		default:
			if f := listAsProperties(inner, below); f != "" {
				return f
			}
		}
	}
	return ""
}
