package phpschema

import (
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
		value, has := v.Get(key)
		if !has {
			value = absent{}
		}
		if d, ok := definition.(*php.Array); ok && !d.IsList() {
			c.undefined(value, definition, at.step(key))
		}
	}
}

func (c *check) patternProperties(v, s *php.Array, at place) (matched []php.Key) {
	patterns, ok := s.Member("patternProperties").(*php.Array)
	if !ok {
		return nil
	}
	for i := range patterns.Len() {
		pattern, definition := patterns.At(i)
		re := compilePattern(pattern.String())
		if re == nil {
			c.fail(at, "The pattern %s is invalid", "pregrex", php.Pair{Name: "pregex", Value: keyValue(pattern)})
			continue
		}
		for j := range v.Len() {
			key, value := v.At(j)
			if re.match(key.String()) {
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
	for i := range v.Len() {
		key, value := v.At(i)
		var definition php.Value
		if properties != nil {
			definition, _ = properties.Get(key)
		}
		switch {
		case !ok || php.Truthy(definition):
		case slices.Contains(matched, key):
		case extra != false:
			c.undefined(value, extra, at.step(key))
		case key.String() != inlineSchema:
			c.fail(at, "The property %s is not defined and the definition does not allow additional properties",
				"additionalProp", php.Pair{Name: "property", Value: keyValue(key)})
		}
		if d, ok := definition.(*php.Array); ok { // as Draft 3 has it
			needs := php.ToString(d.Member("requires"))
			if needs != "" && !php.Truthy(v.Member(needs)) {
				c.fail(at, "The presence of the property %s requires that %s also be present", "requires",
					php.Pair{Name: "property", Value: keyValue(key)}, php.Pair{Name: "requiredProperty", Value: d.Member("requires")})
			}
		}
	}
}
