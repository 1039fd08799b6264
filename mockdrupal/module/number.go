package module

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var leadingNumber = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?`)

// maxOffset bounds offsets, so that adding a page to one cannot overflow; no site has so many tools.
const maxOffset = math.MaxInt / 2

// intval is PHP's `(int) $text`: the leading number, cut to an integer, 0 where there is none.
func intval(text string) int {
	found := leadingNumber.FindString(strings.TrimLeft(text, " \t\n\r\v\f"))
	if found == "" {
		return 0
	}
	f, _ := strconv.ParseFloat(found, 64) // out of range is ±Inf
	return int(min(max(f, -maxOffset), maxOffset))
}

func isUTF8(s string) bool { return utf8.ValidString(s) }
