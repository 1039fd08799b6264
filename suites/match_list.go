package suites

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// ListSame matches a listing of tools of the same names in the same order as another.
func ListSame(other Listing) types.GomegaMatcher {
	return &listingMatcher{expected: "the same tools in the same order as the time before", judge: func(l Listing) string {
		return otherNames(other.Names(), l.Names())
	}}
}

// Cover matches a listing that ends, holds no tool twice, and lacks none of the methods.
func Cover(t *T, methods []*fixtures.Method) types.GomegaMatcher {
	return coverWith(func(l Listing) string {
		wrong := t.coverFaults(l, methods)
		for _, fault := range inOrder(wrong) {
			if len(wrong) > 1 {
				fault += fmt.Sprintf(" and %d more", len(wrong)-1)
			}
			return fault
		}
		return ""
	})
}

func coverWith(fault func(Listing) string) types.GomegaMatcher {
	return &listingMatcher{expected: "every visible tool exactly once, and an end", judge: fault}
}

// eachCovered is Cover with every tool judged apart, where the list comes to an end.
func (t *T) eachCovered(list Listing, methods []*fixtures.Method) {
	who, wrong := list.Pages[0].Who, t.coverFaults(list, methods)
	names := []string{""}
	for _, m := range methods {
		names = append(names, t.ToolName(m.ID))
	}
	for _, name := range union(names, list.Names()) {
		t.For(who, name, func() { t.Expect(list).To(coverWith(func(Listing) string { return wrong[name] })) })
	}
}

// coverFaults says of each name that is missing or stands twice what is wrong, and of "" why the list has no end. Tools
// that share a name, or whose name is no method's, may be the missing ones: list/names-unique and the area mapping judge
// those.
func (t *T) coverFaults(l Listing, methods []*fixtures.Method) map[string]string {
	if !l.Fault.none() {
		return map[string]string{"": l.Fault.Actual}
	}
	wrong := map[string]string{}
	for _, name := range doubled(l.Tools()) {
		wrong[name] = fmt.Sprintf("%q twice", name)
	}
	shown := map[string]bool{}
	misnamed := 0
	for _, name := range l.Names() {
		if shown[name] || t.Drupal != nil && t.methodOf(name) == nil {
			misnamed++
		}
		shown[name] = true
	}
	missing := slices.DeleteFunc(slices.Clone(methods), func(m *fixtures.Method) bool { return shown[t.ToolName(m.ID)] })
	for _, m := range missing {
		if len(missing) > misnamed {
			wrong[t.ToolName(m.ID)] = fmt.Sprintf("no %q", t.ToolName(m.ID))
		}
	}
	return wrong
}

// HaveNamesOf matches a listing of the same names as another, in any order.
func HaveNamesOf(other Listing) types.GomegaMatcher {
	return &listingMatcher{expected: "the same names as the time before", judge: func(l Listing) string {
		before := other.Names()
		return fewOf(slices.DeleteFunc(l.Names(), func(n string) bool { return slices.Contains(before, n) }))
	}}
}

// HaveOnce matches a listing with exactly one tool of the name.
func HaveOnce(name string) types.GomegaMatcher {
	return &listingMatcher{expected: fmt.Sprintf("one tool %q", name), judge: func(l Listing) string {
		if !l.Once(name) {
			return "several"
		}
		return ""
	}}
}

// HavePagesOf matches a listing of exactly these many tools a page.
func HavePagesOf(sizes ...int) types.GomegaMatcher {
	return &listingMatcher{expected: "pages of " + pageSizes(sizes) + " tools", judge: func(l Listing) string {
		got := make([]int, len(l.Pages))
		for i, p := range l.Pages {
			got[i] = len(p.Tools())
		}
		if slices.Equal(got, sizes) {
			return ""
		}
		return pageSizes(got)
	}}
}

// HaveToolsArray matches a page whose `tools` is an array, empty or not.
func HaveToolsArray() types.GomegaMatcher {
	return Meet("`tools` to be an array", func(a *Response) string {
		tools, ok := a.Member("tools")
		if !ok {
			return "no `tools`"
		}
		if _, ok := tools.([]any); !ok {
			return exact.Short(tools)
		}
		return ""
	})
}

// HaveACursorOrNone matches a page whose `nextCursor` has one of the forms that a page may end with.
func HaveACursorOrNone() types.GomegaMatcher {
	return Meet("`nextCursor` to be a non-empty string, null or absent", func(a *Response) string {
		cursor, ok := a.Member("nextCursor")
		if text, isText := cursor.(string); !ok || cursor == nil || isText && text != "" {
			return ""
		}
		return exact.Short(cursor)
	})
}

// HoldTool matches the page of a tool that is as expected: fault says what is wrong with it, "" when nothing is.
func HoldTool(t Tool, expected string, fault func(t Tool) string) types.GomegaMatcher {
	return &responseMatcher{about: fmt.Sprintf("the tool %q", t.Name()), expected: expected, test: func(*Response) (string, bool) {
		f := fault(t)
		return f, f == ""
	}}
}

// HoldAtMost matches a page of no more than n tools.
func HoldAtMost(n int) types.GomegaMatcher {
	return Meet(fmt.Sprintf("at most %d tools", n), func(a *Response) string {
		if got := len(a.Tools()); got > n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// BeFull matches a page of exactly n tools.
func BeFull(n int) types.GomegaMatcher {
	return Meet(fmt.Sprintf("%d tools, for another page follows", n), func(a *Response) string {
		if got := len(a.Tools()); got != n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// BeNoTools matches 200 with an empty tools array and no cursor.
func BeNoTools() types.GomegaMatcher {
	return Meet("200 with an empty `tools` array and no cursor", func(a *Response) string {
		if tools, ok := a.Object()["tools"].([]any); a.Status != http.StatusOK || !ok || len(tools) > 0 || a.NextCursor() != "" {
			return a.Outcome()
		}
		return ""
	})
}

// ShowPage matches 200 with the same tools in the same order as another page.
func ShowPage(page *Response) types.GomegaMatcher {
	return Meet(fmt.Sprintf("200 with the page of %s", page.Subject()), func(a *Response) string {
		if a.Status != http.StatusOK {
			return a.Outcome()
		}
		return otherNames(namesOn(page), namesOn(a))
	})
}

func namesOn(page *Response) []string { return Listing{Pages: []*Response{page}}.Names() }

// otherNames says where two lists of names differ; "" when they are equal.
func otherNames(want, got []string) string {
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

// doubled lists the names of tools that stand there twice, equal in all.
func doubled(tools []Tool) []string {
	first := map[string]Tool{}
	var twice []string
	for _, t := range tools {
		other, seen := first[t.Name()]
		if seen && exact.Equal(map[string]any(other), map[string]any(t)) {
			twice = append(twice, t.Name())
		}
		first[t.Name()] = t
	}
	return twice
}

// repeated lists the names that stand more than once.
func repeated(names []string) []string {
	count := map[string]int{}
	var twice []string
	for _, name := range names {
		if count[name]++; count[name] == 2 {
			twice = append(twice, name)
		}
	}
	return twice
}

// fewOf writes names for a message: the first few, and how many more there are.
func fewOf(names []string) string {
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

// pageSizes writes page sizes for a message.
func pageSizes(sizes []int) string {
	words := make([]string, 0, 8)
	for _, n := range sizes[:min(8, len(sizes))] {
		words = append(words, fmt.Sprint(n))
	}
	text := strings.Join(words, " and ")
	if len(sizes) > 8 {
		text += fmt.Sprintf(" and %d more pages", len(sizes)-8)
	}
	return text
}

// typeOf names the JSON type of a value as messages do.
func typeOf(v any) string {
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
