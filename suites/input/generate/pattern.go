package generate

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// shortest asks for the shortest text that matches.
const shortest = 0

// matching makes a text up that matches a pattern, with open-ended parts repeated so many times more than they must; ok
// is false for patterns with parts that are not simple. Only letters, digits and plain punctuation are generated: where
// dialects differ (line ends, Unicode classes) no text is.
func matching(pattern string, more int) (text string, ok bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b matched
	if !write(&b, tree, more) {
		return "", false
	}
	re, err := regexp.Compile(pattern)
	if err != nil || !re.MatchString(b.String()) {
		return "", false
	}
	return b.String(), true
}

// matched is a text that grows, with how often it did: repetitions of repetitions multiply.
type matched struct {
	strings.Builder
	steps int
}

func write(b *matched, re *syntax.Regexp, more int) bool {
	if b.steps++; b.steps > longestText {
		return false
	}
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return true
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
		return true
	case syntax.OpCharClass:
		r, ok := member(re.Rune)
		b.WriteRune(r)
		return ok
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
		return true
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if !write(b, sub, more) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		return write(b, re.Sub[more%len(re.Sub)], more)
	case syntax.OpStar:
		return times(b, re.Sub[0], more, more)
	case syntax.OpPlus:
		return times(b, re.Sub[0], 1+more, more)
	case syntax.OpQuest:
		return times(b, re.Sub[0], min(more, 1), more)
	case syntax.OpRepeat:
		n := re.Min + more
		if re.Max >= 0 {
			n = min(n, re.Max)
		}
		return times(b, re.Sub[0], n, more)
	}
	return false
}

func times(b *matched, re *syntax.Regexp, n, more int) bool {
	const most = 200
	if n > most {
		return false
	}
	for range n {
		if !write(b, re, more) {
			return false
		}
	}
	return true
}

// member picks a plain character of a class.
func member(ranges []rune) (rune, bool) {
	for _, r := range "a0A_-. /:" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return r, true
			}
		}
	}
	if len(ranges) > 0 && ranges[0] > ' ' && (ranges[0] < 0x7f || unicode.IsLetter(ranges[0])) {
		return ranges[0], true
	}
	return 0, false
}
