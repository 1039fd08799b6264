package phpschema

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// isOneOf compares as the library's EnumConstraint: of one type and equal, or the same number, be it written as text:
// 2, 2.0, "2" and "2.0" are one value.
func isOneOf(v, want php.Value) bool {
	a, isNumber := numeric(v)
	if b, ok := numeric(want); ok && isNumber && a == b {
		return true
	}
	return isConst(v, want) && (isObject(v) == isObject(want))
}

// isConst compares as the library's ConstConstraint. An object is equal to one of the schema's with the same members,
// but not an object within it: that is an array in the one and an stdClass in the other.
func isConst(v, want php.Value) bool {
	object, ok := want.(*php.Array)
	if !ok || object.IsList() {
		return equal(v, want, true)
	}
	a, ok := v.(*php.Array)
	return ok && sameMembers(a, object, true)
}

// equal is the library's DeepComparer: 1 and 1.0 are one value. Where the right side comes from a schema, its objects
// are no PHP arrays.
func equal(a, b php.Value, schema bool) bool {
	x, isNumber := number(a)
	if y, ok := number(b); ok && isNumber {
		return x == y
	}
	left, ok := a.(*php.Array)
	if !ok {
		_, other := b.(*php.Array)
		return !other && a == b
	}
	right, ok := b.(*php.Array)
	return ok && (!schema || right.IsList()) && sameMembers(left, right, schema)
}

func sameMembers(a, b *php.Array, schema bool) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		key, v := a.At(i)
		if other, has := b.Get(key); !has || !equal(v, other, schema) {
			return false
		}
	}
	return true
}

// number is the value of an integer or a float.
func number(v php.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// numeric is PHP's is_numeric(): numbers, and strings that hold one.
func numeric(v php.Value) (float64, bool) {
	text, ok := v.(string)
	if !ok {
		return number(v)
	}
	trimmed := strings.Trim(text, " \t\n\r\v\f")
	if !numericString.MatchString(trimmed) {
		return 0, false
	}
	f, _ := strconv.ParseFloat(trimmed, 64)
	return f, true
}

var numericString = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)

// compare is -1, 0 or 1 as a is less than, equal to or greater than b, both numeric; integers to the last digit.
func compare(a, b php.Value) int {
	x, isInt := a.(int64)
	if y, ok := b.(int64); ok && isInt {
		return cmp.Compare(x, y)
	}
	f, _ := numeric(a)
	g, _ := numeric(b)
	return cmp.Compare(f, g)
}

// hasDuplicates compares every two elements as equal does, by a text that is the same for equal values.
func hasDuplicates(v *php.Array) bool {
	seen := make(map[string]bool, v.Len())
	for _, item := range values(v) {
		text := canonical(item)
		if seen[text] {
			return true
		}
		seen[text] = true
	}
	return false
}

func canonical(v php.Value) string {
	if n, ok := number(v); ok {
		return strconv.FormatFloat(n+0, 'g', -1, 64) // -0 is 0
	}
	a, ok := v.(*php.Array)
	if !ok {
		return php.TypeName(v) + strconv.Quote(php.ToString(v))
	}
	members := make([]string, a.Len())
	for i := range members {
		key, item := a.At(i)
		members[i] = strconv.Quote(key.String()) + ":" + canonical(item)
	}
	slices.Sort(members)
	return "{" + strings.Join(members, ",") + "}"
}
