package translate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
)

// phpTypes are type names that sites write beside those of JSON Schema; "" takes anything.
var phpTypes = map[string]string{
	"int": "integer", "float": "number", "double": "number", "numeric": "number", "bool": "boolean", "str": "string",
	"mapping": "object", "sequence": "array", "list": "array", "any": "", "mixed": "",
}

var jsonTypes = map[string]bool{
	"null": true, "boolean": true, "integer": true, "number": true, "string": true, "array": true, "object": true,
}

// formats are Drupal's names for formats of JSON Schema.
var formats = map[string]string{
	"drupal_date": "date", "drupal_datetime": "date-time", "drupal_date_time": "date-time", "drupal_time": "time",
	"html_datetime": "date-time", "html_date": "date", "html_time": "time",
}

// shapes says what a keyword's value has to be. What is something else is made so where PHP's reason is known (an
// empty array for an empty object, a number in quotes), and dropped where it is not.
var shapes = map[string]jsondoc.Kind{
	"properties": jsondoc.Object, "patternProperties": jsondoc.Object, "definitions": jsondoc.Object, "$defs": jsondoc.Object,
	"dependencies": jsondoc.Object, "dependentSchemas": jsondoc.Object, "dependentRequired": jsondoc.Object,
	"allOf": jsondoc.Array, "anyOf": jsondoc.Array, "oneOf": jsondoc.Array, "prefixItems": jsondoc.Array,
	"required": jsondoc.Array, "enum": jsondoc.Array, "examples": jsondoc.Array,
	"title": jsondoc.String, "description": jsondoc.String, "format": jsondoc.String, "pattern": jsondoc.String,
	"$ref": jsondoc.String, "$schema": jsondoc.String, "$comment": jsondoc.String,
	"minimum": jsondoc.Number, "maximum": jsondoc.Number, "exclusiveMinimum": jsondoc.Number, "exclusiveMaximum": jsondoc.Number,
	"multipleOf": jsondoc.Number, "minLength": jsondoc.Number, "maxLength": jsondoc.Number, "minItems": jsondoc.Number,
	"maxItems": jsondoc.Number, "minProperties": jsondoc.Number, "maxProperties": jsondoc.Number,
	"minContains": jsondoc.Number, "maxContains": jsondoc.Number, "uniqueItems": jsondoc.Boolean,
	"readOnly": jsondoc.Boolean, "writeOnly": jsondoc.Boolean, "deprecated": jsondoc.Boolean,
	"contentEncoding": jsondoc.String, "contentMediaType": jsondoc.String, "$anchor": jsondoc.String,
}

// counts are the keywords whose number must be a whole one, and not negative.
var counts = map[string]bool{
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "minProperties": true, "maxProperties": true,
	"minContains": true, "maxContains": true,
}

// mayBeEmpty are the arrays that mean something without items.
var mayBeEmpty = map[string]bool{"examples": true}

// mayBeNull are the members whose null is data.
var mayBeNull = map[string]bool{"const": true, "default": true}

// className is a PHP class name, which must not reach clients.
var className = regexp.MustCompile(`^\\*[A-Z]\w*(\\+\w+)+$`)

// repair returns a schema that validators and clients take, with the same meaning as far as it had one.
func (t Translator) repair(v jsondoc.Value, notes *notes) jsondoc.Value {
	v = schema.Rewrite(v, liftRequired)
	v = schema.Rewrite(v, func(v jsondoc.Value) jsondoc.Value { return t.fieldType(v, notes) })
	v = schema.Rewrite(v, func(v jsondoc.Value) jsondoc.Value { return repairOne(v, notes) })
	if v.Kind == jsondoc.Boolean {
		return permissive(v) // some clients refuse true and false for a schema
	}
	return v
}

// permissive is the object form of a boolean schema.
func permissive(v jsondoc.Value) jsondoc.Value {
	if v.IsTrue() {
		return jsondoc.NewObject()
	}
	return jsondoc.NewObject(jsondoc.Member{Name: "not", Value: jsondoc.NewObject()})
}

// liftRequired moves a property's `required: true` into the list of the object that has the property.
func liftRequired(v jsondoc.Value) jsondoc.Value {
	properties, ok := v.Get("properties")
	if !ok {
		return v
	}
	list, _ := v.Get("required")
	names := list.Items
	for _, p := range properties.Members {
		if r, ok := p.Value.Get("required"); ok && r.IsTrue() {
			names = append(names, jsondoc.NewString(p.Name))
		}
	}
	if len(names) == len(list.Items) {
		return v
	}
	return v.With("required", jsondoc.NewArray(distinct(names)...))
}

// repairOne repairs one schema, whose inner schemas are repaired already.
func repairOne(v jsondoc.Value, notes *notes) jsondoc.Value {
	switch {
	case v.Kind == jsondoc.Boolean:
		return v
	case v.IsEmptyArray():
		return jsondoc.NewObject() // PHP's empty object
	case v.Kind != jsondoc.Object:
		notes.add("a JSON %s stands where a schema should; it takes anything", v.Kind)
		return jsondoc.NewObject()
	}
	var kept []jsondoc.Member
	for _, m := range v.Members {
		if repaired, keep := repairMember(m, notes); keep {
			kept = append(kept, repaired)
		}
	}
	return withItems(fitEnum(repairBounds(draft04(jsondoc.NewObject(kept...), v), notes), notes))
}

// withItems returns an array without items those that mean the same: model providers refuse it otherwise (profile/array-items).
func withItems(v jsondoc.Value) jsondoc.Value {
	kind, _ := v.Get("type")
	name, _ := kind.Text()
	_, items := v.Get("items")
	_, prefix := v.Get("prefixItems")
	if name != "array" || items || prefix {
		return v
	}
	return v.With("items", jsondoc.NewObject())
}

// fitEnum leaves the values of an enum out that its type excludes, as long as some are left: no argument can have them
// (profile/enum-fits-type).
func fitEnum(v jsondoc.Value, notes *notes) jsondoc.Value {
	enum, _ := v.Get("enum")
	kind, _ := v.Get("type")
	name, one := kind.Text()
	if !one || enum.Kind != jsondoc.Array {
		return v
	}
	var kept []jsondoc.Value
	for _, item := range enum.Items {
		if string(item.Kind) == name || name == "integer" && item.Kind == jsondoc.Number {
			kept = append(kept, item)
		}
	}
	switch len(kept) {
	case len(enum.Items):
		return v
	case 0:
		notes.add("the enum has no value of the type %s beside it", name)
		return v
	}
	notes.add("%d values of the enum are not of the type %s; they are left out", len(enum.Items)-len(kept), name)
	return v.With("enum", jsondoc.NewArray(kept...))
}

// repairMember repairs one keyword; false drops it.
func repairMember(m jsondoc.Member, notes *notes) (jsondoc.Member, bool) {
	v := m.Value
	if v.Kind == jsondoc.Null && !mayBeNull[m.Name] {
		return m, false
	}
	switch m.Name {
	case "type":
		m.Value = repairType(v, notes)
		return m, m.Value.Kind != ""
	case "$id", "id":
		// Where a schema becomes part of a larger one its own base would lead its references astray.
		s, _ := v.Text()
		return m, len(s) > 0 && s[0] == '#'
	case "$schema":
		s, _ := v.Text()
		if dialects[strings.TrimSuffix(s, "#")] {
			break
		}
		address := schema.Dialect(s)
		if m.Value = jsondoc.NewString(address); !dialects[strings.TrimSuffix(address, "#")] {
			notes.add("$schema is %.80s; the schema is read as Draft 7", v.Bytes())
			return m, false
		}
	case "format":
		if s, ok := v.Text(); ok && formats[s] != "" {
			m.Value = jsondoc.NewString(formats[s])
			return m, true
		}
	}
	want, known := shapes[m.Name]
	if !known {
		s, _ := v.Text()
		return m, mayBeNull[m.Name] || !className.MatchString(s)
	}
	m.Value = reshape(v, want)
	switch {
	case m.Value.Kind == "":
		if v.Kind != jsondoc.Boolean && !v.IsEmptyArray() { // booleans are older dialects' forms
			notes.add("%s is a JSON %s; it is left out", m.Name, v.Kind)
		}
		return m, false
	case want == jsondoc.Array && len(m.Value.Items) == 0:
		return m, mayBeEmpty[m.Name]
	case counts[m.Name]:
		n, whole := m.Value.Int()
		return m, whole && n >= 0
	case m.Name == "multipleOf":
		return m, m.Value.Raw[0] != '-' && strings.Trim(string(m.Value.Raw), "0.") != ""
	case m.Name == "pattern":
		if s, _ := v.Text(); schema.Broken(s) {
			notes.add("the pattern %.80q is no regular expression; it is left out", s)
			return m, false
		}
	case m.Name == "required":
		m.Value = jsondoc.NewArray(texts(m.Value.Items)...)
	case m.Name == "enum":
		m.Value = jsondoc.NewArray(distinct(m.Value.Items)...)
	case m.Name == "dependencies" || m.Name == "dependentRequired":
		members := slices.Clone(m.Value.Members)
		for i, d := range members {
			if d.Value.Kind == jsondoc.Array || m.Name == "dependentRequired" {
				members[i].Value = jsondoc.NewArray(texts(d.Value.Items)...)
			}
		}
		m.Value = jsondoc.NewObject(members...)
	case m.Name == "properties":
		for i, p := range m.Value.Members {
			if p.Value.Kind == jsondoc.Boolean {
				m.Value.Members[i].Value = permissive(p.Value)
			}
		}
	}
	return m, true
}

// reshape converts a value to the kind that a keyword requires; the zero value when it cannot be.
func reshape(v jsondoc.Value, want jsondoc.Kind) jsondoc.Value {
	switch {
	case v.Kind == want:
		return v
	case want == jsondoc.Object && v.IsEmptyArray():
		return jsondoc.NewObject()
	case want == jsondoc.Number && v.Kind == jsondoc.String:
		s, _ := v.Text()
		if n, err := jsondoc.Parse([]byte(s)); err == nil && n.Kind == jsondoc.Number {
			return n
		}
	}
	return jsondoc.Value{}
}

// repairType repairs the type keyword, a name or a list of names; the zero value takes anything.
func repairType(v jsondoc.Value, notes *notes) jsondoc.Value {
	items := v.Items
	if v.Kind != jsondoc.Array {
		items = []jsondoc.Value{v}
	}
	var names []jsondoc.Value
	for _, item := range items {
		name, _ := item.Text()
		if php, ok := phpTypes[name]; ok {
			name = php
		} else if !jsonTypes[name] {
			notes.add("the type %.80s is unknown; it takes anything", item.Bytes())
			name = ""
		}
		if name == "" {
			return jsondoc.Value{}
		}
		names = append(names, jsondoc.NewString(name))
	}
	names = distinct(names)
	switch {
	case len(names) == 0:
		return jsondoc.Value{}
	case v.Kind == jsondoc.String:
		return names[0]
	}
	return jsondoc.NewArray(names...)
}

// draft04 puts `exclusiveMinimum: true` beside a minimum into today's form; before is the schema as it was.
func draft04(v, before jsondoc.Value) jsondoc.Value {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		was, ok := before.Get(exclusive)
		if !ok || !was.IsTrue() {
			continue
		}
		if limit, ok := v.Get(bound); ok {
			v = v.Without(bound).With(exclusive, limit)
		}
	}
	return v
}

// dialects are those that a schema may declare. Draft 4 is not among them: its forms are put into Draft 7's.
var dialects = map[string]bool{
	"http://json-schema.org/draft-06/schema":       true,
	"http://json-schema.org/draft-07/schema":       true,
	"https://json-schema.org/draft/2019-09/schema": true,
	"https://json-schema.org/draft/2020-12/schema": true,
}

// pairs are bounds of which the first must not be above the second.
var pairs = [][2]string{
	{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"},
}

// repairBounds drops bounds that contradict each other: no value would fit, and the site checks the arguments anyway.
func repairBounds(v jsondoc.Value, notes *notes) jsondoc.Value {
	for _, p := range pairs {
		low, hasLow := v.Get(p[0])
		high, hasHigh := v.Get(p[1])
		if !hasLow || !hasHigh {
			continue
		}
		if above(low, high) {
			notes.add("%s is above %s; both are left out", p[0], p[1])
			v = v.Without(p[0]).Without(p[1])
		}
	}
	return v
}

// above reports whether both are numbers, and the first is the higher.
func above(low, high jsondoc.Value) bool {
	from, err1 := strconv.ParseFloat(string(low.Raw), 64)
	to, err2 := strconv.ParseFloat(string(high.Raw), 64)
	return err1 == nil && err2 == nil && from > to
}

// texts keeps the distinct strings of a list; numbers are names that PHP took for positions.
func texts(values []jsondoc.Value) []jsondoc.Value {
	var kept []jsondoc.Value
	for _, v := range values {
		switch v.Kind {
		case jsondoc.String:
			kept = append(kept, v)
		case jsondoc.Number:
			kept = append(kept, jsondoc.NewString(string(v.Raw)))
		}
	}
	return distinct(kept)
}

// distinct keeps the first of equal values.
func distinct(values []jsondoc.Value) []jsondoc.Value {
	seen := map[string]bool{}
	var kept []jsondoc.Value
	for _, v := range values {
		key := string(v.Bytes())
		if !seen[key] {
			seen[key] = true
			kept = append(kept, v)
		}
	}
	return kept
}
