package mapping

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// portableName matches a name that every MCP client accepts.
var portableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// isID reports whether a name is a method's id, which the bridge cannot change. Where the site is not known the claim decides.
func isID(t *check.T, name string) bool {
	if !t.Claims("naming-id") {
		return false
	}
	if t.Site == nil {
		return true
	}
	_, ok := t.Method(name)
	return ok
}

// underscoreFault returns what is wrong with a tool's name under naming-underscore; "" when nothing is.
func underscoreFault(t *check.T, tool check.Tool) string {
	if slices.ContainsFunc(t.Site.Methods(), func(m fixtures.Method) bool { return t.ToolName(m.ID) == tool.Name() }) {
		return ""
	}
	if scenario.Collides(t, tool.Name()) && portableName.MatchString(tool.Name()) && !strings.Contains(tool.Name(), ".") {
		return ""
	}
	return "another name"
}

// nameOf finds the name under which a method is listed by its usage; "" if no tool, or several tools or methods, have it.
func nameOf(t *check.T, list check.Listing, m *fixtures.Method) string {
	alike := 0
	methods := t.Site.Methods()
	for i := range methods {
		if methods[i].Usage == m.Usage {
			alike++
		}
	}
	var names []string
	for _, tool := range list.Tools() {
		if tool["description"] == m.Usage {
			names = append(names, tool.Name())
		}
	}
	if m.Usage == "" || alike > 1 || len(names) != 1 {
		return ""
	}
	return names[0]
}

// haveIDAsName matches a listing in which the tool with the method's usage has the method's id as name.
func haveIDAsName(t *check.T, m *fixtures.Method) OmegaMatcher {
	return &match.ListingMatcher{Expected: fmt.Sprintf("the name %q for the tool %q", m.ID, m.Usage), Fault: func(l check.Listing) string {
		if name := nameOf(t, l, m); name != "" && name != m.ID {
			return fmt.Sprintf("%q", name)
		}
		return ""
	}}
}

// haveNamesOf matches a listing of the same names as another, in any order.
func haveNamesOf(other check.Listing) types.GomegaMatcher {
	return &match.ListingMatcher{Expected: "the same names as before", Fault: func(l check.Listing) string {
		before := other.Names()
		return match.Abbreviate(slices.DeleteFunc(l.Names(), func(n string) bool { return slices.Contains(before, n) }))
	}}
}
