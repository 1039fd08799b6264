package translate

import (
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
)

// fieldMembers belong to a field's description and not to JSON Schema.
var fieldMembers = map[string]bool{"type": true, "settings": true, "cardinality": true, "required": true}

// isField distinguishes a Drupal field from a JSON Schema: its type is not one of JSON Schema, or it has members that only fields have.
func (t Translator) isField(v jsondoc.Value) bool {
	name := text(v, "type")
	if v.Kind != jsondoc.Object || name == "" {
		return false
	}
	_, settings := v.Get("settings")
	_, cardinality := v.Get("cardinality")
	_, known := t.typeNamed(name)
	return settings || cardinality || known && !jsonTypes[name]
}

// typeNamed finds a field type; a configured rule wins over the built-in one.
func (t Translator) typeNamed(name string) (FieldType, bool) {
	if rule, ok := t.Types[name]; ok {
		return rule, true
	}
	rule, ok := fieldTypes[name]
	return rule, ok
}

// fieldType turns {"type": T, "settings": {…}, "cardinality": n, …} into the schema of its values, and leaves every
// other schema as it is. Members that JSON Schema has as well (title, description, default) stay with it.
func (t Translator) fieldType(v jsondoc.Value, notes *notes) jsondoc.Value {
	if !t.isField(v) {
		return v
	}
	name := text(v, "type")
	rule, known := t.typeNamed(name)
	var one jsondoc.Value
	if known {
		one = t.apply(rule, v, notes)
	} else {
		notes.add("the field type %.80q is unknown; it takes anything", name)
		one = jsondoc.NewObject()
	}
	if c, ok := v.Get("cardinality"); ok && known {
		one = many(one, c)
	}
	for _, m := range v.Members {
		if _, own := one.Get(m.Name); !own && !fieldMembers[m.Name] {
			one = one.With(m.Name, m.Value)
		}
	}
	return one
}

// apply puts a field's settings into its type's schema.
func (t Translator) apply(rule FieldType, field jsondoc.Value, notes *notes) jsondoc.Value {
	v, err := jsondoc.Parse(rule.Schema)
	if err != nil {
		notes.add("the rule for the field type %s has no valid schema; it takes anything", text(field, "type"))
		return jsondoc.NewObject()
	}
	settings, _ := field.Get("settings")
	for _, m := range settings.Members {
		value := m.Value
		if convert := settingValues[m.Name]; convert != nil {
			value = convert(value)
		}
		if value.Kind == "" || value.Kind == jsondoc.Null || value.IsEmptyText() {
			continue
		}
		for _, path := range rule.Settings[m.Name] {
			if there, bounded := v.Get(path); bounded && path == "minimum" && above(there, value) {
				continue // of min and unsigned, in either order, the higher counts
			}
			v = put(v, strings.Split(path, "/"), asTyped(v, path, value))
		}
	}
	if values := t.Targets[text(settings, "target_type")]; rule.Target != "" && len(values) > 0 {
		items := make([]jsondoc.Value, len(values))
		for i, s := range values {
			items[i] = jsondoc.NewString(s)
		}
		v = put(v, strings.Split(rule.Target, "/"), jsondoc.NewArray(items...))
	}
	return v
}

// asTyped writes an enum's values as the schema's type has them: PHP's array keys are strings even for numbers.
func asTyped(v jsondoc.Value, path string, value jsondoc.Value) jsondoc.Value {
	kind := text(v, "type")
	if path != "enum" || kind != "integer" && kind != "number" {
		return value
	}
	var numbers []jsondoc.Value
	for _, item := range value.Items {
		if n := reshape(item, jsondoc.Number); n.Kind != "" {
			numbers = append(numbers, n)
		}
	}
	return jsondoc.NewArray(numbers...)
}

// put sets a member deep within an object.
func put(v jsondoc.Value, path []string, value jsondoc.Value) jsondoc.Value {
	if len(path) > 1 {
		inner, ok := v.Get(path[0])
		if !ok {
			inner = jsondoc.NewObject()
		}
		value = put(inner, path[1:], value)
	}
	return v.With(path[0], value)
}

// many makes a list of a field that takes more than one value; -1 is any number.
func many(one jsondoc.Value, cardinality jsondoc.Value) jsondoc.Value {
	n, ok := cardinality.Int()
	if !ok || n == 1 || n == 0 {
		return one
	}
	list := jsondoc.NewObject(
		jsondoc.Member{Name: "type", Value: jsondoc.NewString("array")},
		jsondoc.Member{Name: "items", Value: one})
	if n > 1 {
		list = list.With("maxItems", jsondoc.NewInt(n))
	}
	return list
}

// TargetsOf names the entity types whose values a method's parameters refer to, each once.
func (t Translator) TargetsOf(m Method) []string {
	var targets []string
	for _, p := range m.Params {
		schema.Rewrite(p.Schema, func(v jsondoc.Value) jsondoc.Value {
			rule, _ := t.typeNamed(text(v, "type"))
			settings, _ := v.Get("settings")
			if name := text(settings, "target_type"); rule.Target != "" && name != "" && !slices.Contains(targets, name) {
				targets = append(targets, name)
			}
			return v
		})
	}
	return targets
}
