package phpschema

import (
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

var wording = map[string]string{
	"integer": "an integer", "number": "a number", "boolean": "a boolean", "object": "an object",
	"array": "an array", "string": "a string", "null": "a null", "any": "",
}

// wordings is the list of them in the message about a type that has none.
const wordings = "an integer, a number, a boolean, an object, an array, a string, a null"

func (c *check) typeOf(v, t php.Value, at place) {
	var words []string
	switch t := t.(type) {
	case nil, bool:
		if t != true {
			return
		}
	case *php.Array:
		if !t.IsList() {
			c.undefined(v, t, at.branch())
			return
		}
		for _, name := range values(t) {
			if sub, ok := name.(*php.Array); ok {
				inner := check{root: c.root, depth: c.depth}
				if inner.typeOf(v, sub, at); len(inner.errors) == 0 {
					return
				}
				words = append(words, wording["object"])
				continue
			}
			word, known := wording[php.ToString(name)]
			if !known {
				throw("", "No wording for '"+php.ToString(name)+"' available, expected wordings are: ["+wordings+"]")
			}
			if words = append(words, word); isType(v, php.ToString(name)) {
				return
			}
		}
	}
	if words == nil && !isArray(t) {
		name := php.ToString(t)
		if name == "" || isType(v, name) {
			return
		}
		words = []string{wording[name]}
	}
	expected := strings.Join(words, ", ")
	if n := len(words); n > 1 {
		expected = strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	c.fail(at, "%s value found, but %s is required", "type",
		php.Pair{Name: "found", Value: typeName(v)}, php.Pair{Name: "expected", Value: expected})
}

func typeName(v php.Value) string {
	if _, ok := v.(absent); ok {
		return "object"
	}
	return php.TypeName(v)
}

func isType(v php.Value, name string) bool {
	switch name {
	case "object":
		return isObject(v)
	case "array":
		return isArray(v)
	case "number":
		return isType(v, "integer") || php.TypeName(v) == "double"
	case "null":
		return v == nil
	case "any":
		return true
	}
	if _, known := wording[name]; !known {
		throw("", asText(v)+" is an invalid type for "+name)
	}
	return php.TypeName(v) == name
}

// asText is a value within a text.
func asText(v php.Value) string {
	switch v.(type) {
	case absent:
		return "object"
	case *php.Array:
		return "Array"
	}
	return php.ToString(v)
}
