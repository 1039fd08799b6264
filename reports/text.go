package reports

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible makes text from a bridge harmless to show: control characters, bidirectional marks, invisible characters and
// bytes that are not UTF-8 become escapes (\x1b, \u202e); line ends and tabs stay.
func visible(s string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unsafeRune(c), c == utf8.RuneError:
			b.WriteRune(c)
		case c < 0x80:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
		i += size
	}
	return b.String()
}

// unsafeRune holds for what a terminal, a browser or an XML parser would act on instead of showing, and for U+FFFD, as
// which a range over a string reports broken UTF-8.
func unsafeRune(c rune) bool {
	if c == '\n' || c == '\t' {
		return false
	}
	noncharacter := c&0xFFFE == 0xFFFE
	return c == utf8.RuneError || noncharacter || unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// clip cuts s on a character border so that it fits most bytes together with a note of how much is missing.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const note = len("… (000000000 more bytes)")
	cut := max(most-note, 0)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:cut], len(s)-cut)
}

// line makes s one visible line of at most about most bytes.
func line(s string, most int) string {
	return clip(visible(strings.Join(strings.Fields(clip(s, 4*most)), " ")), most)
}
