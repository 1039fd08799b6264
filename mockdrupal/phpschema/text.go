package phpschema

import (
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

func (c *check) text(v string, s *php.Array, at place) {
	n := float64(utf8.RuneCountInString(v))
	if max, ok := number(s.Member("maxLength")); ok && n > max {
		c.fail(at, "Must be at most %s characters long", "maxLength", php.Pair{Name: "maxLength", Value: s.Member("maxLength")})
	}
	if min, ok := number(s.Member("minLength")); ok && n < min {
		c.fail(at, "Must be at least %s characters long", "minLength", php.Pair{Name: "minLength", Value: s.Member("minLength")})
	}
	if pattern, ok := s.Member("pattern").(string); ok && !compilePattern(pattern).match(v) {
		c.fail(at, "Does not match the regex pattern %s", "pattern", php.Pair{Name: "pattern", Value: pattern})
	}
	c.format(v, s, at)
}
