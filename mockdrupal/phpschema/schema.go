// Package phpschema validates PHP values as justinrainbow/json-schema 6 does for Drupal's jsonrpc module (Draft 4,
// CHECK_MODE_TYPE_CAST), and words the errors as that library does: the site puts them into its answers. It is no
// validator to judge anything by: what that library ignores (contains, if, propertyNames) is ignored here.
package phpschema

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"bridgecheck/mockdrupal/php"
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

var numericSegment = regexp.MustCompile(`^\d+$`)

func (e Error) property() string {
	var b strings.Builder
	for _, s := range e.path {
		if numericSegment.MatchString(s) {
			b.WriteString("[" + s + "]")
		} else {
			b.WriteString("." + s)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

var pointerEscapes = strings.NewReplacer("/", "~1", "~", "~0", "%", "%25")

func (e Error) pointer() string {
	var b strings.Builder
	for _, s := range e.path {
		b.WriteString("/" + pointerEscapes.Replace(s))
	}
	return b.String()
}

// Validate returns what is wrong with v under schema, a schema decoded to PHP values; nil when it conforms. Errors come
// in the library's order.
func Validate(v, schema php.Value) []Error {
	root, _ := schema.(*php.Array)
	c := check{root: root}
	c.undefined(v, schema, nil)
	return c.errors
}

// check is one run of the library's constraints over a value.
type check struct {
	root   *php.Array
	errors []Error
	depth  int // of $ref upon $ref
}

// keyword is a schema's member, absent when it is null, as isset() has it.
func keyword(schema *php.Array, name string) (php.Value, bool) {
	v := schema.Member(name)
	return v, v != nil
}

func (c *check) fail(path []string, message, name string, params ...php.Pair) {
	c.errors = append(c.errors, Error{path: slices.Clone(path), Message: message, Name: name, Params: php.Map(params...)})
}

// maxRefs bounds $ref chains; a schema that needs more is cyclic.
const maxRefs = 64

func (c *check) undefined(v, schema php.Value, path []string) {
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
		c.undefined(v, target, path)
		return
	}
	c.common(v, s, path)
	c.combinators(v, s, path)
	c.types(v, s, path)
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

func (c *check) common(v php.Value, s *php.Array, path []string) {
	if required, ok := s.Member("required").(*php.Array); ok && isObject(v) {
		for _, name := range values(required) {
			name := php.ToString(name)
			if _, has := v.(*php.Array).Get(php.KeyOf(name)); !has {
				c.fail(append(path, name), "The property "+name+" is required", "required", php.Pair{Name: "property", Value: name})
			}
		}
	}
	c.typeOf(v, s, path)
	if not, ok := keyword(s, "not"); ok {
		before := len(c.errors)
		c.undefined(v, not, path)
		matched := len(c.errors) == before
		c.errors = c.errors[:before]
		if matched {
			c.fail(path, "Matched a schema which it should not", "not")
		}
	}
	if deps, ok := s.Member("dependencies").(*php.Array); ok && isObject(v) {
		c.dependencies(v.(*php.Array), deps, path)
	}
}

func (c *check) dependencies(v, deps *php.Array, path []string) {
	for i := range deps.Len() {
		key, dep := deps.At(i)
		if _, has := v.Get(key); !has {
			continue
		}
		needs, ok := dep.(*php.Array)
		if !ok {
			continue
		}
		if !needs.IsList() {
			c.undefined(v, dep, path)
			continue
		}
		for _, need := range values(needs) {
			if _, has := v.Get(php.KeyOf(php.ToString(need))); !has {
				c.fail(path, key.String()+" depends on "+php.ToString(need)+", which is missing", "dependencies",
					php.Pair{Name: "key", Value: key.String()}, php.Pair{Name: "dependency", Value: need})
			}
		}
	}
}

var wording = map[string]string{
	"integer": "an integer", "number": "a number", "boolean": "a boolean", "object": "an object",
	"array": "an array", "string": "a string", "null": "a null", "any": "",
}

func (c *check) typeOf(v php.Value, s *php.Array, path []string) {
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
	found := php.TypeName(v)
	c.fail(path, strings.ToUpper(found[:1])+found[1:]+" value found, but "+expected+" is required", "type",
		php.Pair{Name: "found", Value: found}, php.Pair{Name: "expected", Value: expected})
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

func (c *check) combinators(v php.Value, s *php.Array, path []string) {
	if all, ok := s.Member("allOf").(*php.Array); ok {
		before := len(c.errors)
		for _, sub := range values(all) {
			c.undefined(v, sub, path)
		}
		if len(c.errors) > before {
			c.fail(path, "Failed to match all schemas", "allOf")
		}
	}
	if options, ok := s.Member("anyOf").(*php.Array); ok {
		c.anyOf(v, values(options), path)
	}
	if options, ok := s.Member("oneOf").(*php.Array); ok {
		c.oneOf(v, values(options), path)
	}
}

func (c *check) anyOf(v php.Value, options []php.Value, path []string) {
	before := len(c.errors)
	for _, sub := range options {
		start := len(c.errors)
		if c.undefined(v, sub, path); len(c.errors) == start {
			c.errors = c.errors[:before]
			return
		}
	}
	c.fail(path, "Failed to match at least one schema", "anyOf")
}

func (c *check) oneOf(v php.Value, options []php.Value, path []string) {
	before, matched := c.errors, 0
	var all []Error
	for _, sub := range options {
		c.errors = nil
		if c.undefined(v, sub, path); len(c.errors) == 0 {
			matched++
		}
		all = append(all, c.errors...)
	}
	if c.errors = before; matched == 1 {
		return
	}
	c.errors = append(all, before...)
	c.fail(path, "Failed to match exactly one schema", "oneOf")
}

func (c *check) types(v php.Value, s *php.Array, path []string) {
	if isArray(v) {
		c.array(v.(*php.Array), s, path)
	}
	if isObject(v) {
		c.object(v.(*php.Array), s, path)
	}
	if text, ok := v.(string); ok {
		c.text(text, s, path)
	}
	if n, ok := numeric(v); ok {
		c.number(n, s, path)
	}
	if enum, ok := s.Member("enum").(*php.Array); ok {
		if !slices.ContainsFunc(values(enum), func(want php.Value) bool { return sameEnum(v, want) }) {
			list, _ := php.Encode(enum)
			c.fail(path, "Does not have a value in the enumeration "+plain(list), "enum", php.Pair{Name: "enum", Value: enum})
		}
	}
	if want, ok := keyword(s, "const"); ok && !sameEnum(v, want) {
		text, _ := php.Encode(want)
		c.fail(path, "Does not have a value equal to "+plain(text), "const", php.Pair{Name: "const", Value: want})
	}
}

// plain undoes Drupal's hex escapes: inside messages the library calls json_encode without flags.
func plain(doc []byte) string {
	return hexEscapes.Replace(string(doc))
}

var hexEscapes = strings.NewReplacer(`\u0022`, `\"`, `\u003C`, `<`, `\u003E`, `>`, `\u0027`, `'`, `\u0026`, `&`)

// sameEnum is loose about numbers: 2, 2.0, "2" and "2.0" are one value, as the library has it.
func sameEnum(v, want php.Value) bool {
	if php.TypeName(v) == php.TypeName(want) && equal(v, want) {
		return true
	}
	a, ok := numeric(v)
	b, ok2 := numeric(want)
	return ok && ok2 && a == b
}

func equal(a, b php.Value) bool {
	x, err := php.Encode(a)
	y, err2 := php.Encode(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// numeric is PHP's is_numeric(): numbers, and strings that hold one.
func numeric(v php.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		trimmed := strings.Trim(v, " \t\n\r\v\f")
		if !numericString.MatchString(trimmed) {
			return 0, false
		}
		f, _ := strconv.ParseFloat(trimmed, 64)
		return f, true
	}
	return 0, false
}

var numericString = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)

func (c *check) array(v *php.Array, s *php.Array, path []string) {
	n := int64(v.Len())
	if min, ok := s.Member("minItems").(int64); ok && n < min {
		c.fail(path, "There must be a minimum of "+decimal(min)+" items in the array, "+decimal(n)+" found", "minItems",
			php.Pair{Name: "minItems", Value: min}, php.Pair{Name: "found", Value: n})
	}
	if max, ok := s.Member("maxItems").(int64); ok && n > max {
		c.fail(path, "There must be a maximum of "+decimal(max)+" items in the array, "+decimal(n)+" found", "maxItems",
			php.Pair{Name: "maxItems", Value: max}, php.Pair{Name: "found", Value: n})
	}
	if php.Truthy(s.Member("uniqueItems")) && hasDuplicates(v) {
		c.fail(path, "There are no duplicates allowed in the array", "uniqueItems")
	}
	c.items(v, s, path)
}

func hasDuplicates(v *php.Array) bool {
	seen := make(map[string]bool, v.Len())
	for _, item := range values(v) {
		doc, err := php.Encode(item)
		if err == nil && seen[string(doc)] {
			return true
		}
		seen[string(doc)] = true
	}
	return false
}

func (c *check) items(v, s *php.Array, path []string) {
	items, ok := s.Member("items").(*php.Array)
	if !ok {
		return
	}
	for i, item := range values(v) {
		at := append(path, strconv.Itoa(i))
		switch {
		case !items.IsList():
			c.undefined(item, items, at)
		case i < items.Len():
			_, sub := items.At(i)
			c.undefined(item, sub, at)
		case items.Len() > 0 && s.Member("additionalItems") == false:
			c.fail(path, "The item ["+strconv.Itoa(i)+"] is not defined and the definition does not allow additional items",
				"additionalItems", php.Pair{Name: "item", Value: int64(i)})
		case items.Len() > 0:
			c.undefined(item, s.Member("additionalItems"), at)
		}
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func (c *check) text(v string, s *php.Array, path []string) {
	n := int64(utf8.RuneCountInString(v))
	if max, ok := s.Member("maxLength").(int64); ok && n > max {
		c.fail(path, "Must be at most "+decimal(max)+" characters long", "maxLength", php.Pair{Name: "maxLength", Value: max})
	}
	if min, ok := s.Member("minLength").(int64); ok && n < min {
		c.fail(path, "Must be at least "+decimal(min)+" characters long", "minLength", php.Pair{Name: "minLength", Value: min})
	}
	if pattern, ok := s.Member("pattern").(string); ok {
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(v) {
			c.fail(path, "Does not match the regex pattern "+pattern, "pattern", php.Pair{Name: "pattern", Value: pattern})
		}
	}
	c.format(v, s, path)
}

// bound is one numeric keyword: what it says when it is broken.
type bound struct {
	keyword, message, name string
	broken                 func(v, limit float64) bool
}

var (
	atLeast   = bound{"minimum", "Must have a minimum value greater than or equal to ", "minimum", func(v, l float64) bool { return v < l }}
	moreThan  = bound{"minimum", "Must have a minimum value greater than ", "exclusiveMinimum", func(v, l float64) bool { return v <= l }}
	atMost    = bound{"maximum", "Must have a maximum value less than or equal to ", "maximum", func(v, l float64) bool { return v > l }}
	lessThan  = bound{"maximum", "Must have a maximum value less than ", "exclusiveMaximum", func(v, l float64) bool { return v >= l }}
	multiples = bound{"multipleOf", "Must be a multiple of ", "multipleOf", func(v, l float64) bool {
		rest := math.Abs(math.Remainder(v, l))
		return l != 0 && rest > 1e-9*math.Abs(l)
	}}
)

func (c *check) number(v float64, s *php.Array, path []string) {
	c.bound(v, s, path, "exclusiveMinimum", atLeast, moreThan)
	c.bound(v, s, path, "exclusiveMaximum", atMost, lessThan)
	if of, ok := keyword(s, "multipleOf"); ok {
		c.limit(v, of, path, multiples)
	}
	c.format(v, s, path)
}

// bound applies minimum or maximum with its exclusive companion: a flag as in Draft 4, or a limit of its own as later.
func (c *check) bound(v float64, s *php.Array, path []string, companion string, inclusive, exclusive bound) {
	limit := s.Member(inclusive.keyword)
	switch e := s.Member(companion).(type) {
	case bool:
		if e && limit != nil {
			c.limit(v, limit, path, exclusive)
			return
		}
	case int64, float64:
		c.limit(v, e, path, exclusive)
	}
	if limit != nil {
		c.limit(v, limit, path, inclusive)
	}
}

func (c *check) limit(v float64, limit php.Value, path []string, b bound) {
	l, ok := numeric(limit)
	if !ok || !b.broken(v, l) {
		return
	}
	shown := php.ToString(limit)
	if b.keyword != "multipleOf" {
		shown = decimal(int64(l)) // the library prints bounds with %d
	}
	c.fail(path, b.message+shown, b.name, php.Pair{Name: b.keyword, Value: limit})
}
