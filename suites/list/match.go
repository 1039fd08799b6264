package list

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// BeTools matches a list answer: 200 with a tools array.
func BeTools() types.GomegaMatcher {
	return match.MatchWhere("200 with a `tools` array", func(a *harness.Response) bool {
		_, ok := a.Object()["tools"].([]any)
		return a.Status == http.StatusOK && ok
	})
}

// ListSame matches a listing of tools of the same names in the same order as another.
func ListSame(other harness.Listing) types.GomegaMatcher {
	return &match.ListingMatcher{Expected: "the same tools in the same order as the time before", Judge: func(l harness.Listing) string {
		return match.OtherNames(other.Names(), l.Names())
	}}
}

// Cover matches a listing that ends, holds no tool twice, and lacks none of the methods.
func Cover(t *harness.T, methods []*fixtures.Method) types.GomegaMatcher {
	return coverWith(func(l harness.Listing) string {
		wrong := coverFaults(t, l, methods)
		for _, fault := range harness.InOrder(wrong) {
			if len(wrong) > 1 {
				fault += fmt.Sprintf(" and %d more", len(wrong)-1)
			}
			return fault
		}
		return ""
	})
}

func coverWith(fault func(harness.Listing) string) types.GomegaMatcher {
	return &match.ListingMatcher{Expected: "every visible tool exactly once, and an end", Judge: fault}
}

// eachCovered is Cover with every tool judged apart, where the list comes to an end.
func eachCovered(t *harness.T, list harness.Listing, methods []*fixtures.Method) {
	who, wrong := list.Pages[0].Who, coverFaults(t, list, methods)
	names := []string{""}
	for _, m := range methods {
		names = append(names, t.ToolName(m.ID))
	}
	for _, name := range match.Union(names, list.Names()) {
		t.For(who, name, func() { t.Expect(list).To(coverWith(func(harness.Listing) string { return wrong[name] })) })
	}
}

// coverFaults says of each name that is missing or stands twice what is wrong, and of "" why the list has no end. Tools
// that share a name, or whose name is no method's, may be the missing ones: list/names-unique and the area mapping judge
// those.
func coverFaults(t *harness.T, l harness.Listing, methods []*fixtures.Method) map[string]string {
	if !l.Fault.IsZero() {
		return map[string]string{"": l.Fault.Actual}
	}
	wrong := map[string]string{}
	for _, name := range doubled(l.Tools()) {
		wrong[name] = fmt.Sprintf("%q twice", name)
	}
	shown := map[string]bool{}
	misnamed := 0
	for _, name := range l.Names() {
		if shown[name] || t.Drupal != nil && scenario.MethodOf(t, name) == nil {
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

// HavePagesOf matches a listing of exactly these many tools a page.
func HavePagesOf(sizes ...int) types.GomegaMatcher {
	return &match.ListingMatcher{Expected: "pages of " + pageSizes(sizes) + " tools", Judge: func(l harness.Listing) string {
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
	return match.Conform("`tools` to be an array", func(a *harness.Response) string {
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
	return match.Conform("`nextCursor` to be a non-empty string, null or absent", func(a *harness.Response) string {
		cursor, ok := a.Member("nextCursor")
		if text, isText := cursor.(string); !ok || cursor == nil || isText && text != "" {
			return ""
		}
		return exact.Short(cursor)
	})
}

// HoldAtMost matches a page of no more than n tools.
func HoldAtMost(n int) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("at most %d tools", n), func(a *harness.Response) string {
		if got := len(a.Tools()); got > n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// BeFull matches a page of exactly n tools.
func BeFull(n int) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("%d tools, for another page follows", n), func(a *harness.Response) string {
		if got := len(a.Tools()); got != n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// BeNoTools matches 200 with an empty tools array and no cursor.
func BeNoTools() types.GomegaMatcher {
	return match.Conform("200 with an empty `tools` array and no cursor", func(a *harness.Response) string {
		if tools, ok := a.Object()["tools"].([]any); a.Status != http.StatusOK || !ok || len(tools) > 0 || a.NextCursor() != "" {
			return a.Outcome()
		}
		return ""
	})
}

// ShowPage matches 200 with the same tools in the same order as another page.
func ShowPage(page *harness.Response) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("200 with the page of %s", page.Subject()), func(a *harness.Response) string {
		if a.Status != http.StatusOK {
			return a.Outcome()
		}
		return match.OtherNames(namesOn(page), namesOn(a))
	})
}

func namesOn(page *harness.Response) []string {
	return harness.Listing{Pages: []*harness.Response{page}}.Names()
}

// doubled lists the names of tools that stand there twice, equal in all.
func doubled(tools []harness.Tool) []string {
	first := map[string]harness.Tool{}
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

func absent(t harness.Tool, member string) bool {
	_, there := t[member]
	return !there
}

// HoldObjectsAlone matches a page whose tools are all objects.
func HoldObjectsAlone() OmegaMatcher {
	return match.Conform("every tool to be an object", func(a *harness.Response) string {
		list, _ := a.Object()["tools"].([]any)
		for i, item := range list {
			if _, ok := item.(map[string]any); !ok {
				return fmt.Sprintf("%s at position %d", match.TypeOf(item), i+1)
			}
		}
		return ""
	})
}

func requiredMemberFault(t harness.Tool) string {
	if t.Name() == "" {
		return match.DescribeMember(t, "name")
	}
	if _, ok := t["description"].(string); !ok {
		return match.DescribeMember(t, "description")
	}
	if t.Input() == nil {
		return match.DescribeMember(t, "inputSchema")
	}
	return ""
}

// inventedMember finds a title or annotations on a tool whose method has none. Only the site can tell.
func inventedMember(t *harness.T, tool harness.Tool) string {
	if t.Drupal == nil || !t.Claims("exposure-attribute") {
		return ""
	}
	m := scenario.MethodOf(t, tool.Name())
	if m == nil || m.MCP == nil || m.Unchecked {
		return ""
	}
	if m.MCP.Title == "" && !absent(tool, "title") {
		return match.DescribeMember(tool, "title")
	}
	if annotations, _ := tool["annotations"].(map[string]any); m.MCP.Annotations == nil && len(annotations) > 0 {
		return match.DescribeMember(tool, "annotations")
	}
	return ""
}
