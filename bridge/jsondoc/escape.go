package jsondoc

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unescaped are the escapes of one character that do not stand for themselves.
var unescaped = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Unescape decodes what stands between the quotes of a string of a parsed document.
func Unescape(text []byte) []byte {
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b = append(b, text[i])
			continue
		}
		i++
		if r, ok := hex4(text[i-1:]); ok {
			i += 4
			if low, ok := hex4(text[min(i+1, len(text)):]); ok && utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			b = utf8.AppendRune(b, r)
			continue
		}
		if c, ok := unescaped[text[i]]; ok {
			b = append(b, c)
		} else {
			b = append(b, text[i])
		}
	}
	return b
}

// hex4 reads a \u and its four hexadecimal digits at the start of s.
func hex4(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
