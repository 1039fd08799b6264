// Package terminal makes text from outside harmless to show. A bridge, a site or a report from elsewhere may put
// control characters, bidirectional overrides or the commands of a CI system into any text; what leaves this package is
// valid UTF-8 that shows each of them as an escape (\x1b, \u202e). It knows nothing of markup: HTML, XML, Markdown and
// JSON are escaped by those who write them, after this.
//
// Visible is for files that people open, Escape for terminals and CI logs.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns s with an escape in place of each control character (C0, C1, DEL), format character (bidirectional
// overrides and isolates, zero-width characters), line or paragraph separator, private-use or noncharacter, and each byte
// that is not UTF-8. Line feeds and tabs stay.
func Visible(s string) string {
	at := strings.IndexFunc(s, unsafe)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 64)
	done := 0 // spans are copied whole: a report has megabytes
	for at < len(s) {
		c, size := rune(s[at]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[at:])
		}
		if broken := c == utf8.RuneError && size == 1; broken || unsafe(c) && c != utf8.RuneError {
			b.WriteString(s[done:at])
			done = at + size
			switch {
			case broken:
				fmt.Fprintf(&b, `\x%02x`, s[at])
			case c < 0x80:
				fmt.Fprintf(&b, `\x%02x`, c)
			case c <= 0xFFFF:
				fmt.Fprintf(&b, `\u%04x`, c)
			default:
				fmt.Fprintf(&b, `\U%08x`, c)
			}
		}
		at += size
	}
	b.WriteString(s[done:])
	return b.String()
}

// unsafe reports what a terminal, a browser or an XML parser acts on instead of showing it, and U+FFFD, which ranging
// over a string yields for broken UTF-8.
func unsafe(c rune) bool {
	if c == '\n' || c == '\t' || c >= ' ' && c <= '~' {
		return false
	}
	noncharacter := c&0xFFFE == 0xFFFE || c >= 0xFDD0 && c <= 0xFDEF
	return c == utf8.RuneError || noncharacter || unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// Escape returns s as Visible does, with what a CI system takes for a command in a log made harmless: `::name::` where a line or
// a word begins (GitHub; a word, because wrapping may put it at the beginning of a line) becomes `:\x3aname::`, `##[name]` (GitHub,
// Azure), `##vso[` (Azure) and `##teamcity[` anywhere `#\x23[name]`.
func Escape(s string) string {
	s = Visible(s)
	if !strings.Contains(s, "::") && !strings.Contains(s, "##") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 64)
	done := 0
	for at := 0; at+1 < len(s); at++ { // by hand: a report has megabytes, for which a regular expression takes minutes
		if s[at] == ':' && s[at+1] == ':' && beginsWord(s[:at]) || s[at] == '#' && s[at+1] == '#' && namesCommand(s[at+2:]) {
			b.WriteString(s[done : at+1])
			fmt.Fprintf(&b, `\x%02x`, s[at+1])
			at++
			done = at + 1
		}
	}
	b.WriteString(s[done:])
	return b.String()
}

// beginsWord reports whether a word begins after a text.
func beginsWord(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(last) || unicode.In(last, unicode.Z)
}

// namesCommand reports whether a text begins with a bracket, or with letters and one.
func namesCommand(text string) bool {
	after := strings.TrimLeftFunc(text, func(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' })
	return strings.HasPrefix(after, "[")
}

// Line returns s as one line for a terminal or a log, of at most about most bytes: runs of white space become one blank.
func Line(s string, most int) string { return Clip(Escape(oneLine(s, most)), most) }

// VisibleLine is Line for a file: it leaves the commands of CI systems as they are.
func VisibleLine(s string, most int) string { return Clip(Visible(oneLine(s, most)), most) }

func oneLine(s string, most int) string { return strings.Join(strings.Fields(Clip(s, 4*most)), " ") }

// Clip cuts s between characters so that it fits most bytes together with a note of how many bytes are missing.
func Clip(s string, most int) string {
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
