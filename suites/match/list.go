package match

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/check"
)

// Minus returns the names in all that are not in some.
func Minus(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}

func Union(one, two []string) []string { return append(slices.Clone(one), Minus(two, one)...) }

func StartsWithAny(name string, beginnings map[string]bool) bool {
	for beginning := range beginnings {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// ListingMatcher compares the pages of a list together.
type ListingMatcher struct {
	Expected string
	Fault    func(check.Listing) string // what is wrong with the list; "" where it matches
	Withheld bool                       // of a fault: the list lacks something, and shows nothing that it must not
	got      string
}

func (m *ListingMatcher) Match(actual any) (bool, error) {
	l, ok := actual.(check.Listing)
	if !ok {
		return false, fmt.Errorf("a listing is needed, not a %T", actual)
	}
	m.got = m.Fault(l)
	return m.got == "", nil
}

func (m *ListingMatcher) FailureMessage(actual any) string { return m.Finding(actual, false).String() }

func (m *ListingMatcher) NegatedFailureMessage(actual any) string {
	return m.Finding(actual, true).String()
}

func (m *ListingMatcher) Finding(actual any, matched bool) check.Finding {
	l := actual.(check.Listing)
	expected, got := m.Expected, m.got
	if matched {
		expected, got = "not "+expected, "them"
	}
	found := check.Mismatch("list as "+l.Pages[0].Who.String(), expected, got)
	found.Response, found.Withheld = l.Last(), m.Withheld
	return found
}

func SameBody(a, b *check.Response) bool {
	x, errX := a.JSON()
	y, errY := b.JSON()
	if errX != nil || errY != nil {
		return string(a.Body) == string(b.Body)
	}
	return Difference(x, y) == ""
}

// ContainsText reports whether a text stands in a response's headers or body, as it is or as JSON escapes it.
func ContainsText(a *check.Response, text string) bool {
	if bytes.Contains(a.Body, []byte(text)) {
		return true
	}
	for _, values := range a.Header {
		if strings.Contains(strings.Join(values, "\n"), text) {
			return true
		}
	}
	return holdsText(a.ParsedBody(), text)
}

// holdsText reports whether a text stands in a string of a document, or in the name of a member.
func holdsText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case json.Number:
		return strings.Contains(string(v), text)
	case map[string]any:
		for name, member := range v {
			if strings.Contains(name, text) || holdsText(member, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holdsText(item, text) })
	}
	return false
}

// ListOnce matches a listing with exactly one tool of the name.
func ListOnce(name string) types.GomegaMatcher {
	return &ListingMatcher{Expected: fmt.Sprintf("one tool %q", name), Fault: func(l check.Listing) string {
		if !l.Once(name) {
			return "several"
		}
		return ""
	}}
}

// HaveTool matches the page of a tool that is as expected: fault says what is wrong with it, "" when nothing is.
func HaveTool(t check.Tool, expected string, fault func(t check.Tool) string) types.GomegaMatcher {
	return &ResponseMatcher{about: fmt.Sprintf("the tool %q", t.Name()), Expected: expected, Test: func(*check.Response) (string, bool) {
		f := fault(t)
		return f, f == ""
	}}
}

// OtherNames says where two lists of names differ; "" when they are equal.
func OtherNames(want, got []string) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("%q in place of %q at position %d", got[i], want[i], i+1)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d tools in place of %d", len(got), len(want))
	}
	return ""
}

// Repeated lists the names that stand more than once.
func Repeated(names []string) []string {
	count := map[string]int{}
	var twice []string
	for _, name := range names {
		if count[name]++; count[name] == 2 {
			twice = append(twice, name)
		}
	}
	return twice
}

// Abbreviate writes names for a message: the first few, and how many more there are.
func Abbreviate(names []string) string {
	const shown = 5
	words := make([]string, 0, shown)
	for _, name := range names[:min(shown, len(names))] {
		words = append(words, fmt.Sprintf("%q", name))
	}
	text := strings.Join(words, ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// TypeOf names the JSON type of a value as messages do.
func TypeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	}
	return "an object"
}

// ListSame matches a listing of the same names in the same order as another.
func ListSame(other check.Listing) types.GomegaMatcher {
	return &ListingMatcher{Expected: "the same tools in the same order as before", Fault: func(l check.Listing) string {
		return OtherNames(other.Names(), l.Names())
	}}
}

// IncludeAll matches a describe response whose tool has every member of the listed tool, with an equal value.
func IncludeAll(listed check.Tool) types.GomegaMatcher {
	return Conform(fmt.Sprintf("all members that list shows of %q", listed.Name()), func(r *check.Response) string {
		described := r.Tool()
		for name, want := range check.InOrder(listed) {
			got, ok := described[name]
			if !ok {
				return fmt.Sprintf("a tool without `%s`", name)
			}
			if d := Difference(map[string]any{name: want}, map[string]any{name: got}); d != "" {
				return fmt.Sprintf("a different `%s` %s", name, d)
			}
		}
		return ""
	})
}
