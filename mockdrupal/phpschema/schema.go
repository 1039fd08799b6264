// Package phpschema validates PHP values as justinrainbow/json-schema 6.11 does for Drupal's jsonrpc module: in
// CHECK_MODE_TYPE_CAST, in which it reads the keywords of Drafts 3 and 4 whatever the schema declares. It words the errors as
// that library does, because the site shows them in its responses. It is no validator to check anything else with: what that
// library ignores (contains, if, propertyNames, prefixItems) is ignored here, and where it throws an exception, so does Validate.
//
// Its invariant: Validate changes neither value nor schema, and reports errors in the library's order. A value and a
// schema, both decoded by package php, go in; the list of violations comes out. Nothing is fetched: a reference to another
// document is one to a document that is not there.
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

// Exception is a PHP exception that the library throws in place of a verdict.
type Exception struct {
	Class   string // TypeError, DivisionByZeroError, or "" for all those that extend PHP's Exception
	Message string
}

func (e *Exception) Error() string { return e.Message }

func throw(class, message string) { panic(&Exception{class, message}) }

// Validate returns what is wrong with v under schema, a schema decoded to PHP values; nil when it conforms. Errors come
// in the library's order, each of them once. thrown is nil unless the library throws an exception.
func Validate(v, schema php.Value) (errs []Error, thrown *Exception) {
	defer func() {
		if r := recover(); r != nil {
			e, ours := r.(*Exception)
			if !ours {
				panic(r)
			}
			errs, thrown = nil, e
		}
	}()
	root, _ := schema.(*php.Array)
	c := check{root: root}
	c.undefined(v, schema, place{})
	return distinct(c.errors), nil
}

// absent stands for a value that is not there, under a definition of it.
type absent struct{}

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
	depth  int
	steps  int
}

// What a schema may cost: PHP runs out of memory where a reference leads to itself by way of another keyword.
const (
	maxDepth = 1000
	maxSteps = 1_000_000
)

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

// again is the place as the library has it within some keywords: its last step twice.
func (p place) again() place {
	switch last := p.last.(type) {
	case int64:
		return p.step(php.Key{Int: last, IsInt: true})
	case string:
		if last != "" {
			return p.step(php.KeyOf(last))
		}
	}
	return p
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

func (c *check) undefined(v, schema php.Value, at place) {
	c.depth++
	c.steps++
	defer func() { c.depth-- }()
	if c.depth > maxDepth || c.steps > maxSteps {
		throw("Error", "Allowed memory size exhausted")
	}
	s, ok := c.dereferenced(schema, nil).(*php.Array)
	if !ok || s.IsList() { // a list is no schema, and {} is one to PHP
		return
	}
	outer := c.errors
	c.errors = nil // a validator of its own, as in the library
	c.common(v, s, at)
	if _, isAbsent := v.(absent); !isAbsent {
		c.combinators(v, s, at)
		c.types(v, s, at)
	} else if required := s.Member("required"); php.Truthy(required) || required != nil && isObject(required) && !isArray(required) {
		c.options(v, s, at)
	}
	c.errors = append(outer, c.errors...)
}

func (c *check) common(v php.Value, s *php.Array, at place) {
	if bases, ok := s.Member("extends").(*php.Array); ok {
		if !bases.IsList() {
			bases = php.List(bases)
		}
		for _, base := range values(bases) {
			c.undefined(v, base, at.again())
		}
	}
	_, isAbsent := v.(absent)
	switch required, has := keyword(s, "required"); {
	case !isAbsent && !isObject(v):
	case !isAbsent && has && isArray(required):
		for _, name := range values(required.(*php.Array)) {
			key := php.KeyOf(php.ToString(name))
			if _, has := v.(*php.Array).Get(key); !has {
				c.fail(at.step(key), "The property %s is required", "required", php.Pair{Name: "property", Value: name})
			}
		}
	case has && !isArray(required): // a flag, as Draft 3 has it
		if isAbsent && (php.Truthy(required) || isObject(required)) {
			var name php.Value = false // what PHP's end() says of no path
			if n := len(at.path); n > 0 {
				name = at.path[n-1]
			}
			c.fail(at, "The property %s is required", "required", php.Pair{Name: "property", Value: name})
		}
	case isAbsent:
		return
	}
	if !isAbsent {
		c.typeOf(v, s.Member("type"), at)
	}
	if disallow, ok := keyword(s, "disallow"); ok {
		c.mustFail(at, "Disallowed value was matched", "disallow", func() { c.typeOf(v, disallow, at) })
	}
	if not, ok := keyword(s, "not"); ok {
		c.mustFail(at, "Matched a schema which it should not", "not", func() { c.undefined(v, not, at.again()) })
	}
	if deps, ok := s.Member("dependencies").(*php.Array); ok && !isAbsent && isObject(v) {
		c.dependencies(v.(*php.Array), deps, at)
	}
}

// mustFail enters an error where a part of a schema finds none.
func (c *check) mustFail(at place, message, name string, part func()) {
	before := len(c.errors)
	part()
	matched := len(c.errors) == before
	c.errors = c.errors[:before]
	if matched {
		c.fail(at, message, name)
	}
}

func (c *check) dependencies(v, deps *php.Array, at place) {
	for i := range deps.Len() {
		key, dep := deps.At(i)
		if _, has := v.Get(key); !has {
			continue
		}
		needs := php.List()
		switch d := dep.(type) {
		case string: // as Draft 3 has it
			needs = php.List(d)
		case *php.Array:
			if needs = d; !d.IsList() {
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

// isObject and isArray are the library's LooseTypeCheck: [] is both.
func isObject(v php.Value) bool {
	if _, ok := v.(absent); ok {
		return true
	}
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
	c.options(v, s, at)
}

// options are the keywords enum and const.
func (c *check) options(v php.Value, s *php.Array, at place) {
	if enum, ok := s.Member("enum").(*php.Array); ok {
		if !slices.ContainsFunc(values(enum), func(want php.Value) bool { return isOneOf(v, want) }) {
			c.fail(at, "Does not have a value in the enumeration %s", "enum", php.Pair{Name: "enum", Value: enum})
		}
	}
	if want, ok := keyword(s, "const"); ok && !isConst(v, want) {
		c.fail(at, "Does not have a value equal to %s", "const", php.Pair{Name: "const", Value: want})
	}
}
