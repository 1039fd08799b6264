package terminal

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns a JSON document with the same value, in which strings have JSON escapes (\u202e) in place of what Visible
// escapes and of the `##` that CI systems take for a command. It is for JSON that is printed to a terminal or a log.
func JSON(data []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(data))
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		command := c == '#' && i > 0 && data[i-1] == '#'
		switch {
		case c == '\r', c == utf8.RuneError, !command && !unsafe(c): // white space between values, and broken UTF-8, stay
			b.Write(data[i : i+size])
		case c > 0xFFFF:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		i += size
	}
	return b.Bytes()
}
