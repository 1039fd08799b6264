package phpschema

import (
	"math"
	"strconv"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// shown is a number as %d prints it.
func shown(v php.Value) string {
	if n, ok := v.(int64); ok {
		return decimal(n)
	}
	f, _ := numeric(v)
	return decimal(int64(f))
}

// bound is minimum or maximum with its exclusive companion. That is a flag, as Draft 4 has it: of the number that later drafts
// have there only the truth counts, and without its bound it refuses every number.
type bound struct {
	keyword, companion string
	side               int // the side of the limit on which a value is refused
	message, exclusive string
	missing            string
}

var bounds = []bound{
	{"minimum", "exclusiveMinimum", -1, "Must have a minimum value greater than or equal to ", "Must have a minimum value greater than ", "missingMinimum"},
	{"maximum", "exclusiveMaximum", 1, "Must have a maximum value less than or equal to ", "Must have a maximum value less than ", "missingMaximum"},
}

// number checks a number, or a text that holds one.
func (c *check) number(v php.Value, s *php.Array, at place) {
	for _, b := range bounds {
		c.bound(v, s, at, b)
	}
	if by, ok := keyword(s, "divisibleBy"); ok && !isMultiple(v, by) {
		c.fail(at, "Is not divisible by "+shown(by), "divisibleBy", php.Pair{Name: "divisibleBy", Value: by})
	}
	if of, ok := keyword(s, "multipleOf"); ok && !isMultiple(v, of) {
		c.fail(at, "Must be a multiple of %s", "multipleOf", php.Pair{Name: "multipleOf", Value: of})
	}
	c.format(v, s, at)
}

func (c *check) bound(v php.Value, s *php.Array, at place, b bound) {
	limit, bounded := keyword(s, b.keyword)
	flag, flagged := keyword(s, b.companion)
	if flagged && !bounded {
		c.fail(at, "Use of "+b.companion+" requires presence of "+b.keyword, b.missing)
		return
	}
	if _, ok := numeric(limit); !ok {
		return
	}
	switch param := (php.Pair{Name: b.keyword, Value: limit}); {
	case php.Truthy(flag) && compare(v, limit)*b.side >= 0:
		c.fail(at, b.exclusive+shown(limit), b.companion, param)
	case compare(v, limit)*b.side > 0:
		c.fail(at, b.message+shown(limit), b.keyword, param)
	}
}

// isMultiple is exact to ten digits behind the point, as the library's fmod.
func isMultiple(v, of php.Value) bool {
	n, _ := numeric(v)
	step, ok := numeric(of)
	if ok && step == 0 {
		throw("DivisionByZeroError", "Division by zero")
	}
	return !ok || math.Abs(n-math.Round(n/step)*step) < 1e-10
}
