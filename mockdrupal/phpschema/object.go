package phpschema

import (
	"regexp"
	"slices"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// inlineSchema is a member that may always be there.
const inlineSchema = "$schema"

func (c *check) object(v, s *php.Array, at place) {
	properties, _ := s.Member("properties").(*php.Array)
	matched := c.patternProperties(v, s, at)
	if properties != nil {
		c.properties(v, properties, at)
	}
	c.count(v, s, at)
	c.additional(v, s, properties, matched, at)
}

func (c *check) properties(v, properties *php.Array, at place) {
	for i := range properties.Len() {
		key, definition := properties.At(i)
		if value, has := v.Get(key); has {
			c.undefined(value, definition, at.step(key))
			continue
		}
		d, ok := definition.(*php.Array)
		if required, isFlag := boolean(d, "required"); ok && isFlag && required { // Draft 3
			c.fail(at.step(key), "The property %s is required", "required", php.Pair{Name: "property", Value: key.String()})
		}
	}
}

func boolean(schema *php.Array, name string) (value, ok bool) {
	if schema == nil {
		return false, false
	}
	value, ok = schema.Member(name).(bool)
	return value, ok
}

func (c *check) patternProperties(v, s *php.Array, at place) (matched []php.Key) {
	patterns, ok := s.Member("patternProperties").(*php.Array)
	if !ok {
		return nil
	}
	for i := range patterns.Len() {
		pattern, definition := patterns.At(i)
		re, err := regexp.Compile(pattern.String())
		if err != nil {
			c.fail(at, "The pattern %s is invalid", "pregrex", php.Pair{Name: "pregex", Value: keyValue(pattern)})
			continue
		}
		for j := range v.Len() {
			key, value := v.At(j)
			if matches(re, key.String()) {
				matched = append(matched, key)
				c.undefined(value, definition, at.step(key))
			}
		}
	}
	return matched
}

func (c *check) count(v, s *php.Array, at place) {
	n := int64(v.Len())
	if least, ok := s.Member("minProperties").(int64); ok && n < max(0, least) {
		c.fail(at, "Must contain a minimum of %s properties", "minProperties", php.Pair{Name: "minProperties", Value: least})
	}
	if most, ok := s.Member("maxProperties").(int64); ok && n > max(0, most) {
		c.fail(at, "Must contain no more than %s properties", "maxProperties", php.Pair{Name: "maxProperties", Value: most})
	}
}

// additional checks the members that have no definition; an empty one counts for none, for PHP takes it for false.
func (c *check) additional(v, s, properties *php.Array, matched []php.Key, at place) {
	extra, ok := keyword(s, "additionalProperties")
	if !ok {
		return
	}
	for i := range v.Len() {
		key, value := v.At(i)
		if properties != nil {
			if definition, _ := properties.Get(key); php.Truthy(definition) {
				continue
			}
		}
		switch {
		case slices.Contains(matched, key):
		case extra != false:
			c.undefined(value, extra, at.step(key))
		case key.String() != inlineSchema:
			c.fail(at, "The property %s is not defined and the definition does not allow additional properties",
				"additionalProp", php.Pair{Name: "property", Value: keyValue(key)})
		}
	}
}
