package phpschema

import (
	"math"
	"strconv"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// bound is minimum or maximum with its exclusive companion, a flag as Draft 4 has it. A companion that is a limit of its
// own, as later drafts have it, is kept too, where the library refuses every number: a site of such schemas would be of
// no use to anyone.
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
	if of, ok := keyword(s, "multipleOf"); ok && !isMultiple(v, of) {
		c.fail(at, "Must be a multiple of %s", "multipleOf", php.Pair{Name: "multipleOf", Value: of})
	}
	if _, isText := v.(string); !isText {
		c.format(v, s, at)
	}
}

func (c *check) bound(v php.Value, s *php.Array, at place, b bound) {
	limit, bounded := keyword(s, b.keyword)
	flag, flagged := keyword(s, b.companion)
	if own, ok := number(flag); ok {
		if compare(v, flag)*b.side >= 0 {
			c.fail(at, b.exclusive+decimal(int64(own)), b.companion, php.Pair{Name: b.keyword, Value: flag})
		}
		flag, flagged = nil, false
	}
	if flagged && !bounded {
		c.fail(at, "Use of "+b.companion+" requires presence of "+b.keyword, b.missing)
		return
	}
	l, ok := numeric(limit)
	if !ok {
		return
	}
	shown := decimal(int64(l)) // the library prints bounds with %d
	switch param := (php.Pair{Name: b.keyword, Value: limit}); {
	case php.Truthy(flag) && compare(v, limit)*b.side >= 0:
		c.fail(at, b.exclusive+shown, b.companion, param)
	case compare(v, limit)*b.side > 0:
		c.fail(at, b.message+shown, b.keyword, param)
	}
}

// isMultiple is exact to ten digits behind the point, as the library's fmod.
func isMultiple(v, of php.Value) bool {
	n, _ := numeric(v)
	step, ok := numeric(of)
	return !ok || step == 0 || math.Abs(n-math.Round(n/step)*step) < 1e-10
}
