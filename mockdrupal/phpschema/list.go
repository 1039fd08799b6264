package phpschema

import (
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

func (c *check) array(v *php.Array, s *php.Array, at place) {
	n := int64(v.Len())
	if min, ok := number(s.Member("minItems")); ok && float64(n) < min {
		c.fail(at, "There must be a minimum of %s items in the array, %s found", "minItems",
			php.Pair{Name: "minItems", Value: s.Member("minItems")}, php.Pair{Name: "found", Value: n})
	}
	if max, ok := number(s.Member("maxItems")); ok && float64(n) > max {
		c.fail(at, "There must be a maximum of %s items in the array, %s found", "maxItems",
			php.Pair{Name: "maxItems", Value: s.Member("maxItems")}, php.Pair{Name: "found", Value: n})
	}
	if php.Truthy(s.Member("uniqueItems")) && hasDuplicates(v) {
		c.fail(at, "There are no duplicates allowed in the array", "uniqueItems")
	}
	switch items := s.Member("items").(type) {
	case *php.Array:
		if items.IsList() {
			c.tuple(v, s, items, at)
		} else {
			c.items(v, s, items, at)
		}
	case nil:
	default:
		if items != true && v.Len() > 0 {
			throw("TypeError", "array_key_exists(): Argument #2 ($array) must be of type array, "+php.DebugType(items)+" given")
		}
	}
}

// items checks every element under one schema; one that fails may still pass as an additional item.
func (c *check) items(v, s, items *php.Array, at place) {
	additional, _ := keyword(s, "additionalItems")
	for i := range v.Len() {
		key, item := v.At(i)
		before := len(c.errors)
		c.undefined(item, items, at.step(key))
		after := len(c.errors)
		if after == before || additional == nil || additional == false {
			continue
		}
		if c.undefined(item, additional, at.step(key)); len(c.errors) == after {
			c.errors = c.errors[:before]
		} else {
			c.errors = c.errors[:after]
		}
	}
}

// tuple checks every element under the schema of its place. {} is such a list to PHP, an empty one.
func (c *check) tuple(v, s, items *php.Array, at place) {
	additional, limited := s.Get(php.KeyOf("additionalItems"))
	for i := range v.Len() {
		key, item := v.At(i)
		sub, defined := items.Get(key)
		switch {
		case defined:
			c.undefined(item, sub, at.step(key))
		case limited && additional == false:
			c.fail(at, "The item %s[%s] is not defined and the definition does not allow additional items", "additionalItems",
				php.Pair{Name: "item", Value: at.last}, php.Pair{Name: "property", Value: keyValue(key)},
				php.Pair{Name: "additionalItems", Value: false})
		case limited:
			c.undefined(item, additional, at.step(key))
		}
	}
	for i := v.Len(); v.Len() > 0 && i < items.Len(); i++ {
		key, definition := items.At(i)
		c.undefined(absent{}, definition, at.step(key))
	}
}
