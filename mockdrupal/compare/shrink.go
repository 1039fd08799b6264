package compare

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// candidates are smaller requests, the much smaller ones first.
func candidates(r Generated) iter.Seq[Generated] {
	return func(yield func(Generated) bool) {
		bodies := cuts(r.Body)
		if json.Valid([]byte(r.Body)) {
			bodies = smaller(r.Body)
		}
		for body := range bodies {
			if len(body) < len(r.Body) {
				other := r
				if other.Body = body; !yield(other) {
					return
				}
			}
		}
		if r.As != fixtures.Anonymous {
			r.As = fixtures.Anonymous
			yield(r)
		}
	}
}

// smaller are smaller JSON texts in place of a valid one: a part of it, or it without a part, at every depth.
func smaller(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		trimmed := strings.TrimSpace(text)
		if !yield(trimmed) {
			return
		}
		doc := []byte(trimmed)
		switch {
		case strings.HasPrefix(trimmed, "{"):
			smallerObject(php.Members(doc), yield)
		case strings.HasPrefix(trimmed, "["):
			smallerList(php.Elements(doc), yield)
		case strings.HasPrefix(trimmed, `"`):
			smallerText(trimmed, yield)
		case len(trimmed) > 1:
			_ = yield("0") && yield("1") && yield(`""`)
		}
	}
}

func smallerObject(members []php.Member, yield func(string) bool) {
	if len(members) > 0 && !yield("{}") {
		return
	}
	for i := range members {
		if !yield(object(slices.Delete(slices.Clone(members), i, i+1))) {
			return
		}
	}
	for i, m := range members {
		for less := range smaller(string(m.Raw)) {
			other := slices.Clone(members)
			other[i].Raw = []byte(less)
			if !yield(object(other)) {
				return
			}
		}
	}
}

func smallerList(elements [][]byte, yield func(string) bool) {
	if len(elements) > 0 && !yield("[]") {
		return
	}
	for i, element := range elements {
		// One call of a batch alone, or the batch without it.
		if !yield(string(element)) || !yield(list(slices.Delete(slices.Clone(elements), i, i+1))) {
			return
		}
	}
	for i, element := range elements {
		for less := range smaller(string(element)) {
			other := slices.Clone(elements)
			other[i] = []byte(less)
			if !yield(list(other)) {
				return
			}
		}
	}
}

func smallerText(text string, yield func(string) bool) {
	var s string
	if json.Unmarshal([]byte(text), &s) != nil || s == "" {
		return
	}
	for _, less := range []string{"", s[:1], s[:len(s)/2], s[len(s)/2:], s[:len(s)-1]} {
		if less != s && utf8.ValidString(less) && !yield(encode(less)) {
			return
		}
	}
}

// cuts are parts of a text that is no JSON.
func cuts(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for size := len(text) / 2; size > 0; size /= 2 {
			for from := 0; from < len(text); from += size {
				if !yield(text[:from] + text[min(len(text), from+size):]) {
					return
				}
			}
		}
	}
}

func object(members []php.Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = encode(m.Name) + ":" + string(m.Raw)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func list(elements [][]byte) string {
	parts := make([]string, len(elements))
	for i, element := range elements {
		parts[i] = string(element)
	}
	return "[" + strings.Join(parts, ",") + "]"
}
