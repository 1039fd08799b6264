package check

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// defining are the members of a tool that its method determines, with the clause that says so.
var defining = []struct{ member, clause string }{
	{"inputSchema", "mapping/properties-complete"},
	{"outputSchema", "mapping/output-schema"},
	{"description", "mapping/description-is-usage"},
	{"title", "mapping/title-from-attribute"},
	{"annotations", "mapping/annotations-from-attribute"},
}

// seen is what the run has been shown of the site as it was in the beginning.
type seen struct {
	site    *fixtures.Site
	methods map[string]*fixtures.Method
	changed map[string]bool     // the tools whose methods a check has changed
	tools   map[string]seenTool // by interface, language and name
	pages   map[string]seenPage // of the agent, by interface, credentials and cursor
}

type seenTool struct {
	Tool
	in string // the request
}

type seenPage struct {
	names []string
	more  bool
}

// auditLists compares the tools and pages that the check was shown with those that the run has been shown before of the same site:
// what a list shows depends on nothing but the site, the caller and the cursor. It sends nothing.
func (t *T) auditLists(all []*exchange) (found []noticed) {
	if t.Drupal == nil || t.several {
		return nil
	}
	s := &t.seen
	if s.site == nil {
		site := t.Drupal.Snapshot()
		*s = seen{site, t.byTool(site), map[string]bool{}, map[string]seenTool{}, map[string]seenPage{}}
	}
	var sites []*fixtures.Site // during the check
	changes := false           // of what the site has
	for _, e := range all {
		if e.site != nil && !slices.Contains(sites, e.site) {
			sites = append(sites, e.site)
			if !sameSite(s.site, e.site) {
				s.note(t, e.site)
				changes = true
			}
		}
	}
	steady := map[Identity]bool{} // whether nothing changed what the caller may see during the check
	shows := func(who Identity) bool {
		if _, known := steady[who]; !known {
			steady[who] = !changes && (who == Agent || t.Drupal.Made(who)) && unchanged(who, sites)
		}
		return steady[who]
	}
	ofOthers := map[string]seenPage{} // whom no later check knows
	for _, e := range all {
		a := e.Response
		by := interfaceOf(a)
		if e.site == nil || by == "" || a.Status != http.StatusOK {
			continue
		}
		tools, more := pageOf(a)
		names := map[string]int{}
		for _, tool := range tools {
			names[tool.Name()]++
		}
		for _, tool := range tools {
			if s.changed[tool.Name()] || !determined(s.methods[tool.Name()]) || names[tool.Name()] > 1 { // list/names-unique tests the last
				continue
			}
			key := by + " " + a.Sent.Get("Accept-Language") + " " + tool.Name()
			if before, known := s.tools[key]; !known {
				s.tools[key] = seenTool{tool, a.Subject()}
			} else if n := otherwise(before, tool, a); n.clause != "" {
				found = append(found, n)
			}
		}
		if a.Path == client.DescribePath || !shows(a.Who) {
			continue
		}
		key := fmt.Sprint(by, " of ", a.Base, "?", a.RawQuery, " as ", a.Who, a.Sent["Authorization"], a.Sent["Cookie"]) // a token may be for fewer tools
		if a.Asked != nil {
			key += cursorIn(a.Shown)
		}
		pages := s.pages
		if a.Who != Agent {
			pages = ofOthers
		}
		page := seenPage{client.NamesOf(tools), more}
		if before, known := pages[key]; !known {
			pages[key] = page
		} else if n := otherPage(before, page, a); n.clause != "" {
			found = append(found, n)
		}
	}
	return found
}

// determined reports whether nothing but the method determines its tool: a field type may take its values from what the caller sees of
// the site at the moment.
func determined(m *fixtures.Method) bool {
	return m != nil && !slices.ContainsFunc(m.Params, func(p fixtures.Param) bool { return p.Drupal != nil })
}

// cursorIn is the cursor that a request of tools/list has; "" without one.
func cursorIn(body string) string {
	var sent struct{ Params struct{ Cursor string } }
	_ = json.Unmarshal([]byte(body), &sent) // what is no JSON has none
	return sent.Params.Cursor
}

// unchanged reports whether an account holds the same permissions at all sites that have it.
func unchanged(who Identity, sites []*fixtures.Site) bool {
	var before []string
	for _, s := range sites {
		user := UserOf(s, who)
		if user == nil {
			continue
		}
		now := sortedPermissions(s, user)
		if before != nil && !slices.Equal(before, now) {
			return false
		}
		before = now
	}
	return true
}

// note records the tools whose methods differ at another site.
func (s *seen) note(t *T, other *fixtures.Site) {
	theirs := t.byTool(other)
	for name, m := range s.methods {
		if o := theirs[name]; !s.changed[name] && o != nil && o != m && !reflect.DeepEqual(o, m) {
			s.changed[name] = true
		}
	}
}

// interfaceOf names the interface through which a response shows tools; "" where it shows none.
func interfaceOf(a *Response) string {
	switch {
	case a.Path == client.ListPath, a.Path == client.DescribePath:
		return a.Path
	case a.Asked != nil && a.RPCResult()["tools"] != nil:
		return "tools/list in " + a.Sent.Get("Mcp-Protocol-Version")
	}
	return ""
}

// pageOf is the tools of a response, and whether more follow.
func pageOf(a *Response) (tools []Tool, more bool) {
	page := a.Object()
	if a.Asked != nil {
		page = a.RPCResult()
	}
	all, _ := page["tools"].([]any)
	for _, item := range append(all, page["tool"]) {
		if tool, is := item.(map[string]any); is {
			tools = append(tools, tool)
		}
	}
	return tools, page["nextCursor"] != nil
}

// otherwise finds a member of a tool that differs from what was shown before.
func otherwise(before seenTool, tool Tool, in *Response) noticed {
	for _, d := range defining {
		want, was := before.Tool[d.member]
		got, is := tool[d.member]
		if was == is && exact.Equal(want, got) {
			continue
		}
		schema, _ := want.(map[string]any)
		if _, as := got.(map[string]any); as && schema != nil && d.member != "annotations" && jsonschema.Difference(schema, got, "") == "" {
			continue
		}
		clause := d.clause
		switch {
		case in.Asked != nil:
			clause = sameAsInvoke
		case in.Path == client.DescribePath:
			clause = "describe/equals-list"
		}
		return noticed{clause, Finding{Subject: fmt.Sprintf("%s: the %s of %s", in.Subject(), d.member, tool.Name()), Response: in, Tool: tool.Name(),
			Expected: fmt.Sprintf("%s, as in %s", exact.Short(want), before.in), Actual: exact.Short(got)}}
	}
	return noticed{}
}

// otherPage finds how a page differs from the same page before.
func otherPage(before, page seenPage, a *Response) noticed {
	clause, f := "", Finding{Subject: a.Subject(), Response: a}
	switch {
	case !slices.Equal(before.names, page.names):
		clause, f.Expected = "list/order-stable", fmt.Sprintf("the %d tools of the same request before, in the same order", len(before.names))
		f.Actual = fmt.Sprintf("%d tools, or others", len(page.names))
	case before.more && !page.more:
		clause, f.Expected, f.Actual = "list/pages-cover-all-once", "a nextCursor, as in the same request before", "none"
	case page.more && !before.more:
		clause, f.Expected, f.Actual = "list/pages-cover-all-once", "no nextCursor, as in the same request before", "one"
	default:
		return noticed{}
	}
	if a.Asked != nil {
		clause = "mcp/tools-list"
	}
	return noticed{clause, f}
}
