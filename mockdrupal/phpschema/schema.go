// Package phpschema validates PHP values as justinrainbow/json-schema 6 does for Drupal's jsonrpc module (Draft 4,
// CHECK_MODE_TYPE_CAST), and words the errors as that library does, because the site shows them in its responses. It is no
// validator to check anything else with: what that library ignores (contains, if, propertyNames) is ignored here.
//
// Its invariant: Validate changes neither value nor schema, and reports errors in the library's order. A value and a
// schema, both decoded by package php, go in; the list of violations comes out.
package phpschema

import (
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Error is one violation, in the words of the library.
type Error struct {
	path    []string
	Message string
	Name    string     // the constraint's name: type, additionalProp, emailFormat, …
	Params  *php.Array // the constraint's parameters
}

// Value returns the error as the library hands it to PHP: {property, pointer, message, constraint, context}.
func (e Error) Value() *php.Array {
	return php.Map(
		php.Pair{Name: "property", Value: e.property()},
		php.Pair{Name: "pointer", Value: e.pointer()},
		php.Pair{Name: "message", Value: e.Message},
		php.Pair{Name: "constraint", Value: php.Map(
			php.Pair{Name: "name", Value: e.Name},
			php.Pair{Name: "params", Value: e.Params},
		)},
		php.Pair{Name: "context", Value: int64(1)}, // the document, not the schema
	)
}

func (e Error) property() string {
	var b strings.Builder
	for _, s := range e.path {
		if n, ok := numeric(s); ok {
			b.WriteString("[" + decimal(int64(n)) + "]")
		} else {
			b.WriteString("." + s)
		}
	}
	return strings.Trim(b.String(), ".")
}

var pointerEscapes = strings.NewReplacer("/", "~1", "~", "~0", "%", "%25")

func (e Error) pointer() string {
	var b strings.Builder
	for _, s := range e.path {
		b.WriteString("/" + pointerEscapes.Replace(s))
	}
	return strings.TrimRight(b.String(), "/")
}

// Validate returns what is wrong with v under schema, a schema decoded to PHP values; nil when it conforms. Errors come
// in the library's order, each of them once.
func Validate(v, schema php.Value) []Error {
	root, _ := schema.(*php.Array)
	c := check{root: root}
	c.undefined(v, schema, place{})
	return distinct(c.errors)
}

func distinct(errors []Error) []Error {
	if len(errors) < 2 {
		return errors
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(errors, func(e Error) bool {
		key, _ := php.Encode(e.Value()) // errors are plain values
		again := seen[string(key)]
		seen[string(key)] = true
		return again
	})
}

// check is one run of the library's constraints over a value.
type check struct {
	root   *php.Array
	errors []Error
	depth  int // of $ref upon $ref
}

// place is where in the document a value stands.
type place struct {
	path []string
	last php.Value // the last step as the library hands it on: nil at the top, "" in a branch of a combinator
}

// step is the place of an element. A member without a name has its parent's path.
func (p place) step(key php.Key) place {
	if !key.IsInt && key.Str == "" {
		return place{p.path, ""}
	}
	return place{append(slices.Clip(p.path), key.String()), keyValue(key)}
}

// branch is the same place for a subschema of a combinator.
func (p place) branch() place { return place{p.path, ""} }

func keyValue(k php.Key) php.Value {
	if k.IsInt {
		return k.Int
	}
	return k.Str
}

// keyword is a schema's member, absent when it is null, as isset() has it.
func keyword(schema *php.Array, name string) (php.Value, bool) {
	v := schema.Member(name)
	return v, v != nil
}

// fail enters an error. Every %s in the message stands for the next parameter.
func (c *check) fail(at place, message, name string, params ...php.Pair) {
	for _, p := range params {
		message = strings.Replace(message, "%s", printed(p.Value), 1)
	}
	if message != "" { // as ucfirst has it
		message = strings.ToUpper(message[:1]) + message[1:]
	}
	c.errors = append(c.errors, Error{path: at.path, Message: message, Name: name, Params: php.Map(params...)})
}

// printed is a parameter within a message: json_encode without flags for what is no scalar.
func printed(v php.Value) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "true"
		}
		return "false"
	case nil, *php.Array:
		doc, _ := php.Encode(v)
		return plain(doc)
	}
	return php.ToString(v)
}

// hexEscapes are those that Drupal asks json_encode for; inside messages the library does not.
var hexEscapes = map[string]string{`\u0022`: `\"`, `\u003C`: `<`, `\u003E`: `>`, `\u0027`: `'`, `\u0026`: `&`}

func plain(doc []byte) string {
	var b strings.Builder
	for i := 0; i < len(doc); {
		n := 1
		if doc[i] == '\\' {
			n = 2
		}
		if i+6 <= len(doc) {
			if as, ok := hexEscapes[string(doc[i:i+6])]; ok {
				b.WriteString(as)
				i += 6
				continue
			}
		}
		b.Write(doc[i : i+n])
		i += n
	}
	return b.String()
}

// maxRefs bounds $ref chains; a schema that needs more is cyclic.
const maxRefs = 64

func (c *check) undefined(v, schema php.Value, at place) {
	s, ok := schema.(*php.Array)
	if !ok || s.Len() == 0 {
		return
	}
	if ref, ok := s.Member("$ref").(string); ok {
		target, found := c.resolve(ref)
		if !found || c.depth == maxRefs {
			return
		}
		c.depth++
		defer func() { c.depth-- }()
		c.undefined(v, target, at)
		return
	}
	outer := c.errors
	c.errors = nil // a validator of its own, as in the library
	c.common(v, s, at)
	c.combinators(v, s, at)
	c.types(v, s, at)
	c.errors = append(outer, c.errors...)
}

func (c *check) resolve(ref string) (php.Value, bool) {
	rest, local := strings.CutPrefix(ref, "#")
	if !local || c.root == nil {
		return nil, false
	}
	var at php.Value = c.root
	for _, s := range strings.Split(strings.TrimPrefix(rest, "/"), "/") {
		if s == "" {
			continue
		}
		a, ok := at.(*php.Array)
		if !ok {
			return nil, false
		}
		if at, ok = a.Get(php.KeyOf(strings.NewReplacer("~1", "/", "~0", "~").Replace(s))); !ok {
			return nil, false
		}
	}
	return at, true
}

func (c *check) common(v php.Value, s *php.Array, at place) {
	if required, ok := s.Member("required").(*php.Array); ok && isObject(v) {
		for _, name := range values(required) {
			key := php.KeyOf(php.ToString(name))
			if _, has := v.(*php.Array).Get(key); !has {
				c.fail(at.step(key), "The property %s is required", "required", php.Pair{Name: "property", Value: name})
			}
		}
	}
	c.typeOf(v, s, at)
	if not, ok := keyword(s, "not"); ok {
		before := len(c.errors)
		c.undefined(v, not, at)
		matched := len(c.errors) == before
		c.errors = c.errors[:before]
		if matched {
			c.fail(at, "Matched a schema which it should not", "not")
		}
	}
	if deps, ok := s.Member("dependencies").(*php.Array); ok && isObject(v) {
		c.dependencies(v.(*php.Array), deps, at)
	}
}

func (c *check) dependencies(v, deps *php.Array, at place) {
	for i := range deps.Len() {
		key, dep := deps.At(i)
		if _, has := v.Get(key); !has {
			continue
		}
		needs := php.List(dep) // Draft 3: one name
		if list, ok := dep.(*php.Array); ok {
			if needs = list; !list.IsList() {
				c.undefined(v, dep, at.branch())
				continue
			}
		}
		for _, need := range values(needs) {
			if _, has := v.Get(php.KeyOf(php.ToString(need))); !has {
				c.fail(at, "%s depends on %s, which is missing", "dependencies",
					php.Pair{Name: "key", Value: key.String()}, php.Pair{Name: "dependency", Value: dep})
			}
		}
	}
}

var wording = map[string]string{
	"integer": "an integer", "number": "a number", "boolean": "a boolean", "object": "an object",
	"array": "an array", "string": "a string", "null": "a null", "any": "",
}

func (c *check) typeOf(v php.Value, s *php.Array, at place) {
	var names []string
	switch t := s.Member("type").(type) {
	case string:
		names = []string{t}
	case *php.Array:
		for _, n := range values(t) {
			names = append(names, php.ToString(n))
		}
	default:
		return
	}
	if slices.ContainsFunc(names, func(name string) bool { return isType(v, name) }) {
		return
	}
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = wording[n]
	}
	expected := strings.Join(words, ", ")
	if n := len(words); n > 1 {
		expected = strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	c.fail(at, "%s value found, but %s is required", "type",
		php.Pair{Name: "found", Value: php.TypeName(v)}, php.Pair{Name: "expected", Value: expected})
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
	default:
		_, known := wording[name]
		return !known || php.TypeName(v) == name // an unknown type (a Drupal field type) takes anything
	}
}

// isObject and isArray are the library's LooseTypeCheck: [] is both.
func isObject(v php.Value) bool {
	a, ok := v.(*php.Array)
	return ok && (a.Len() == 0 || !a.IsList())
}

func isArray(v php.Value) bool {
	a, ok := v.(*php.Array)
	return ok && a.IsList()
}

func values(a *php.Array) []php.Value {
	vs := make([]php.Value, a.Len())
	for i := range vs {
		_, vs[i] = a.At(i)
	}
	return vs
}

func (c *check) types(v php.Value, s *php.Array, at place) {
	if isArray(v) {
		c.array(v.(*php.Array), s, at)
	}
	if isObject(v) {
		c.object(v.(*php.Array), s, at)
	}
	text, isText := v.(string)
	if isText {
		c.text(text, s, at)
	}
	if _, ok := numeric(v); ok {
		c.number(v, s, at)
	}
	if enum, ok := s.Member("enum").(*php.Array); ok {
		if !slices.ContainsFunc(values(enum), func(want php.Value) bool { return isOneOf(v, want) }) {
			c.fail(at, "Does not have a value in the enumeration %s", "enum", php.Pair{Name: "enum", Value: enum})
		}
	}
	if want, ok := keyword(s, "const"); ok && !isConst(v, want) {
		c.fail(at, "Does not have a value equal to %s", "const", php.Pair{Name: "const", Value: want})
	}
}
