package phpschema

import (
	"regexp"
	"slices"

	"bridgecheck/mockdrupal/php"
)

func (c *check) object(v, s *php.Array, path []string) {
	properties, _ := s.Member("properties").(*php.Array)
	matched := c.patternProperties(v, s, path)
	if properties != nil {
		for i := range properties.Len() {
			key, definition := properties.At(i)
			if value, has := v.Get(key); has {
				c.undefined(value, definition, append(path, key.String()))
			}
		}
	}
	c.count(v, s, path)
	c.additional(v, s, properties, matched, path)
}

func (c *check) patternProperties(v, s *php.Array, path []string) (matched []php.Key) {
	patterns, ok := s.Member("patternProperties").(*php.Array)
	if !ok {
		return nil
	}
	for i := range patterns.Len() {
		pattern, definition := patterns.At(i)
		re, err := regexp.Compile(pattern.String())
		if err != nil {
			c.fail(path, "The pattern "+pattern.String()+" is invalid", "pregrex", php.Pair{Name: "pregex", Value: pattern.String()})
			continue
		}
		for j := range v.Len() {
			key, value := v.At(j)
			if re.MatchString(key.String()) {
				matched = append(matched, key)
				c.undefined(value, definition, append(path, key.String()))
			}
		}
	}
	return matched
}

func (c *check) count(v, s *php.Array, path []string) {
	n := int64(v.Len())
	if min, ok := s.Member("minProperties").(int64); ok && n < min {
		c.fail(path, "Must contain a minimum of "+decimal(min)+" properties", "minProperties", php.Pair{Name: "minProperties", Value: min})
	}
	if max, ok := s.Member("maxProperties").(int64); ok && n > max {
		c.fail(path, "Must contain no more than "+decimal(max)+" properties", "maxProperties", php.Pair{Name: "maxProperties", Value: max})
	}
}

func (c *check) additional(v, s, properties *php.Array, matched []php.Key, path []string) {
	extra, ok := keyword(s, "additionalProperties")
	if !ok {
		return
	}
	for i := range v.Len() {
		key, value := v.At(i)
		if properties != nil {
			if _, defined := properties.Get(key); defined {
				continue
			}
		}
		if slices.Contains(matched, key) {
			continue
		}
		if extra == false {
			name := key.String()
			c.fail(path, "The property "+name+" is not defined and the definition does not allow additional properties",
				"additionalProp", php.Pair{Name: "property", Value: name})
			continue
		}
		c.undefined(value, extra, append(path, key.String()))
	}
}
