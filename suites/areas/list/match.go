package list

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// beToolList matches a response with status 200 and a tools array.
func beToolList() types.GomegaMatcher {
	return match.MatchWhere("200 with a `tools` array", func(r *check.Response) bool {
		_, ok := r.Object()["tools"].([]any)
		return r.Status == http.StatusOK && ok
	})
}

// listEachOnce matches a listing that ends, contains no tool twice, and lacks none of the methods.
func listEachOnce(t *check.T, methods []*fixtures.Method) *match.ListingMatcher {
	return listEachOnceBut(func(l check.Listing) string {
		wrong := coverFaults(t, l, methods)
		for _, fault := range check.InOrder(wrong) {
			if len(wrong) > 1 {
				fault += fmt.Sprintf(" and %d more", len(wrong)-1)
			}
			return fault
		}
		return ""
	})
}

// listEachOnceBut matches a listing for which fault returns "".
func listEachOnceBut(fault func(check.Listing) string) *match.ListingMatcher {
	return &match.ListingMatcher{Expected: "every visible tool exactly once, and an end", Fault: fault}
}

// eachListedOnce is listEachOnce with a separate finding for every tool, if the list ends.
func eachListedOnce(t *check.T, list check.Listing, methods []*fixtures.Method) {
	who, wrong := list.Pages[0].Who, coverFaults(t, list, methods)
	names := []string{""}
	for _, m := range methods {
		names = append(names, t.ToolName(m.ID))
	}
	for _, name := range match.Union(names, list.Names()) {
		t.For(who, name, func() { t.Expect(list).To(listEachOnceBut(func(check.Listing) string { return wrong[name] })) })
	}
}

// coverFaults returns what is wrong with each name that is missing or listed twice, and under "" why the list has no end.
// Tools that share a name, or have a name of no method, may be the missing ones: list/names-unique and the area mapping
// test those.
func coverFaults(t *check.T, l check.Listing, methods []*fixtures.Method) map[string]string {
	if !l.Fault.IsZero() {
		return map[string]string{"": l.Fault.Actual}
	}
	wrong := map[string]string{}
	for _, name := range repeatedTools(l.Tools()) {
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

// havePagesOf matches a listing whose pages have exactly these numbers of tools.
func havePagesOf(sizes ...int) types.GomegaMatcher {
	return &match.ListingMatcher{Expected: "pages of " + pageSizes(sizes) + " tools", Fault: func(l check.Listing) string {
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

// haveToolsArray matches a page whose `tools` is an array, empty or not.
func haveToolsArray() types.GomegaMatcher {
	return match.Conform("`tools` to be an array", func(r *check.Response) string {
		tools, ok := r.Member("tools")
		if !ok {
			return "no `tools`"
		}
		if _, ok := tools.([]any); !ok {
			return exact.Short(tools)
		}
		return ""
	})
}

// haveValidCursor matches a page whose `nextCursor` has one of the allowed forms.
func haveValidCursor() types.GomegaMatcher {
	return match.Conform("`nextCursor` to be a non-empty string, null or absent", func(r *check.Response) string {
		cursor, ok := r.Member("nextCursor")
		if text, isText := cursor.(string); !ok || cursor == nil || isText && text != "" {
			return ""
		}
		return exact.Short(cursor)
	})
}

// haveAtMost matches a page of no more than n tools.
func haveAtMost(n int) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("at most %d tools", n), func(r *check.Response) string {
		if got := len(r.Tools()); got > n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// beFull matches a page of exactly n tools.
func beFull(n int) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("%d tools, because another page follows", n), func(r *check.Response) string {
		if got := len(r.Tools()); got != n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// beEmptyList matches 200 with an empty tools array and no cursor.
func beEmptyList() types.GomegaMatcher {
	return match.MatchWhere("200 with an empty `tools` array and no cursor", func(r *check.Response) bool {
		tools, ok := r.Object()["tools"].([]any)
		return r.Status == http.StatusOK && ok && len(tools) == 0 && r.NextCursor() == ""
	})
}

// showPage matches 200 with the same tools in the same order as another page.
func showPage(page *check.Response) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("200 with the page of %s", page.Subject()), func(r *check.Response) string {
		if r.Status != http.StatusOK {
			return r.Outcome()
		}
		return match.OtherNames(namesOn(page), namesOn(r))
	})
}

func namesOn(page *check.Response) []string {
	return check.Listing{Pages: []*check.Response{page}}.Names()
}

// repeatedTools returns the names of tools that are listed twice with equal members.
func repeatedTools(tools []check.Tool) []string {
	first := map[string]check.Tool{}
	var twice []string
	for _, t := range tools {
		other, seen := first[t.Name()]
		if seen && match.Difference(map[string]any(other), map[string]any(t)) == "" {
			twice = append(twice, t.Name())
		}
		first[t.Name()] = t
	}
	return twice
}

// pageSizes formats page sizes for a message.
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

func absent(t check.Tool, member string) bool {
	_, there := t[member]
	return !there
}

// haveObjectsAsTools matches a page whose tools are all objects.
func haveObjectsAsTools() OmegaMatcher {
	return match.Conform("every tool to be an object", func(r *check.Response) string {
		list, _ := r.Object()["tools"].([]any)
		for i, item := range list {
			if _, ok := item.(map[string]any); !ok {
				return fmt.Sprintf("%s at position %d", match.TypeOf(item), i+1)
			}
		}
		return ""
	})
}

// requiredMemberFault returns the first required member that is missing or has a wrong type; "" when there is none.
func requiredMemberFault(t check.Tool) string {
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

// inventedMember returns a title or annotations of a tool whose method has none; "" where the site is not known.
func inventedMember(t *check.T, tool check.Tool) string {
	if t.Site == nil || !t.Marked() {
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
