package phpschema

import "github.com/bridgecheck/bridgecheck/mockdrupal/php"

func (c *check) combinators(v php.Value, s *php.Array, at place) {
	if all, ok := s.Member("allOf").(*php.Array); ok {
		before := len(c.errors)
		for _, sub := range values(all) {
			c.undefined(v, sub, at.branch())
		}
		if len(c.errors) > before {
			c.fail(at, "Failed to match all schemas", "allOf")
		}
	}
	if options, ok := s.Member("anyOf").(*php.Array); ok {
		c.anyOf(v, values(options), at)
	}
	if options, ok := s.Member("oneOf").(*php.Array); ok {
		c.oneOf(v, values(options), at)
	}
}

func (c *check) anyOf(v php.Value, options []php.Value, at place) {
	before := len(c.errors)
	for _, sub := range options {
		start := len(c.errors)
		if c.undefined(v, sub, at.branch()); len(c.errors) == start {
			c.errors = c.errors[:before]
			return
		}
	}
	c.fail(at, "Failed to match at least one schema", "anyOf")
}

// oneOf enters the last branch's errors before those of all branches: the library does not clear them.
func (c *check) oneOf(v php.Value, options []php.Value, at place) {
	before, matched := c.errors, 0
	var all []Error
	for _, sub := range options {
		c.errors = nil
		if c.undefined(v, sub, at.branch()); len(c.errors) == 0 {
			matched++
		}
		all = append(all, c.errors...)
	}
	if matched == 1 {
		c.errors = before
		return
	}
	c.errors = append(append(c.errors, all...), before...)
	c.fail(at, "Failed to match exactly one schema", "oneOf")
}
