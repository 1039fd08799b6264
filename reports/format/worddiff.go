package format

import (
	"bytes"
	"encoding/json"
	"unicode"
)

// segment is a run of text that two values share, or that one of them has alone.
type segment struct {
	Text   string
	Differ bool
}

// commonPercent is how much of the longer value both must share for marks to help rather than to speckle.
const commonPercent = 40

// diffCells bounds the table of a comparison; larger values are shown without marks.
const diffCells = 1 << 20

// diffValues marks where expected and actual differ: word by word, JSON indented first so that shape does not hide
// content. Values that have little in common are not marked. Both sides are visible text.
func diffValues(expected, actual string) (want, got []segment) {
	if expected == "" || actual == "" {
		return whole(expected), whole(actual)
	}
	a, b := splitWords(indented(expected)), splitWords(indented(actual))
	if len(a)*len(b) > diffCells {
		return whole(expected), whole(actual)
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	if longer := max(len(a), len(b)); int(common[0][0])*100 < longer*commonPercent {
		return whole(expected), whole(actual)
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			want, got = extend(want, a[i], false), extend(got, b[j], false)
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			want = extend(want, a[i], true)
			i++
		default:
			got = extend(got, b[j], true)
			j++
		}
	}
	return want, got
}

func whole(s string) []segment {
	if s == "" {
		return nil
	}
	return []segment{{Text: indented(s)}}
}

func extend(segments []segment, word string, differ bool) []segment {
	if n := len(segments); n > 0 && segments[n-1].Differ == differ {
		segments[n-1].Text += word
		return segments
	}
	return append(segments, segment{word, differ})
}

// indented is s with JSON laid out by lines; text that is no JSON stays. Numbers stay as they are written.
func indented(s string) string {
	var b bytes.Buffer
	if len(s) > 0 && (s[0] == '{' || s[0] == '[') && json.Indent(&b, []byte(s), "", "  ") == nil {
		s = b.String()
	}
	return s
}

// splitWords splits s into words, runs of blanks, and single other characters; joined they are s again.
func splitWords(s string) []string {
	var parts []string
	start, last := 0, 0
	for i, c := range s {
		kind := 0
		switch {
		case unicode.IsLetter(c), unicode.IsDigit(c), c == '_':
			kind = 1
		case unicode.IsSpace(c):
			kind = 2
		}
		if i > start && (kind != last || kind == 0) {
			parts = append(parts, s[start:i])
			start = i
		}
		last = kind
	}
	if start < len(s) {
		parts = append(parts, s[start:])
	}
	return parts
}
