package redact

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// text is bytes with the place in the original at which each begins. The byte at i ends where the next one begins.
// A plus sign is a blank in it, for forms write the one for the other and nobody knows where.
type text struct {
	bytes []byte
	from  []int // one more than bytes: the last is the original's length
}

func plainText(s string) *text {
	t := &text{bytes: []byte(s), from: make([]int, len(s)+1)}
	for i := range t.from {
		t.from[i] = i
	}
	t.blankPlus()
	return t
}

func (t *text) blankPlus() {
	for i, c := range t.bytes {
		if c == '+' {
			t.bytes[i] = ' '
		}
	}
}

// end is where byte i ends in the original: bytes of one escape share its whole length.
func (t *text) end(i int) int {
	for i++; i < len(t.bytes) && t.from[i] == t.from[i-1]; i++ {
	}
	return t.from[i]
}

// unescape undoes one layer of escapes, of whatever kind each is; false when there was none.
func (t *text) unescape() bool {
	if !slices.ContainsFunc(t.bytes, func(c byte) bool { return c == '%' || c == '\\' || c == '&' }) {
		return false
	}
	bytes, from := make([]byte, 0, len(t.bytes)), make([]int, 0, len(t.from))
	changed := false
	for i := 0; i < len(t.bytes); {
		plain, length := escapeAt(t.bytes[i:])
		if length == 0 {
			plain, length = t.bytes[i:i+1], 1
		} else {
			changed = true
		}
		for range plain {
			from = append(from, t.from[i])
		}
		bytes = append(bytes, plain...)
		i += length
	}
	t.bytes, t.from = bytes, append(from, t.from[len(t.from)-1])
	t.blankPlus()
	return changed
}

// escapeAt reads the escape that b begins with; its length is 0 when there is none.
func escapeAt(b []byte) (plain []byte, length int) {
	switch b[0] {
	case '%':
		return numbered(b, 1, 2)
	case '\\':
		return backslash(b)
	case '&':
		return entity(b)
	}
	return nil, 0
}

// numbered reads so many hexadecimal digits from a place on, as one byte.
func numbered(b []byte, at, digits int) (plain []byte, length int) {
	if len(b) < at+digits {
		return nil, 0
	}
	n, err := strconv.ParseUint(string(b[at:at+digits]), 16, 32)
	if err != nil {
		return nil, 0
	}
	if digits == 2 {
		return []byte{byte(n)}, at + digits
	}
	return utf8.AppendRune(nil, rune(n)), at + digits
}

// letters are the escapes of JSON and Go that are one letter.
var letters = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '"': '"', '\'': '\'', '\\': '\\', '/': '/'}

func backslash(b []byte) (plain []byte, length int) {
	if len(b) < 2 {
		return nil, 0
	}
	switch b[1] {
	case 'u':
		return unicodeEscape(b)
	case 'x':
		return numbered(b, 2, 2)
	case 'U':
		return numbered(b, 2, 8)
	}
	if c, ok := letters[b[1]]; ok {
		return []byte{c}, 2
	}
	return nil, 0
}

// unicodeEscape reads \u with its four hexadecimal digits, or two of them that are one character together.
func unicodeEscape(b []byte) (plain []byte, length int) {
	const one = len(`\u0000`)
	high, ok := codeUnit(b)
	if !ok {
		return nil, 0
	}
	if low, pair := codeUnit(b[one:]); pair && 0xD800 <= high && high < 0xDC00 && 0xDC00 <= low && low < 0xE000 {
		return utf8.AppendRune(nil, (high-0xD800)<<10+(low-0xDC00)+0x10000), 2 * one
	}
	return utf8.AppendRune(nil, high), one
}

func codeUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(n), err == nil
}

// longestEntity bounds how far the semicolon of an entity is looked for.
const longestEntity = 12

func entity(b []byte) (plain []byte, length int) {
	name, _, ok := strings.Cut(string(b[:min(len(b), longestEntity)]), ";")
	if !ok {
		return nil, 0
	}
	name += ";"
	if plain := html.UnescapeString(name); plain != name {
		return []byte(plain), len(name)
	}
	return nil, 0
}
