package list

import (
	"context"
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

// Checks of the area list.
var Checks = []harness.Check{
	{ID: "list/answers-json", Sees: harness.Front, Run: answersJSON},
	{ID: "list/has-tools-array", Sees: harness.Front, Run: hasToolsArray},
	{ID: "list/next-cursor-type", Sees: harness.Front, Run: nextCursorType},
	{ID: "list/tool-required-members", Sees: harness.Front, Run: toolRequiredMembers},
	{ID: "list/tool-optional-members", Sees: harness.Front, Run: toolOptionalMembers},
	{ID: "list/description-not-empty", Sees: harness.Front, Run: descriptionNotEmpty},
	{ID: "list/names-unique", Sees: harness.Front, Run: namesUnique},
	{ID: "list/order-stable", Sees: harness.Front, Generated: true, Run: orderStable},
	{ID: "list/pages-cover-all-once", Sees: harness.Front, Run: pagesCoverAllOnce},
	{ID: "list/unknown-query-ignored", Sees: harness.Front, Run: unknownQueryIgnored},
	{ID: "list/only-marked-methods", Sees: harness.Site, Run: onlyMarkedMethods},
	{ID: "list/cursor-base64-offset", Sees: harness.Front, Run: cursorBase64Offset},
	{ID: "list/cursor-opaque-roundtrip", Sees: harness.Front, Run: cursorOpaqueRoundtrip},
	{ID: "list/cursor-past-end", Sees: harness.Front, Run: cursorPastEnd},
	{ID: "list/cursor-malformed", Sees: harness.Front, Run: cursorMalformed},
	{ID: "list/cursor-malformed-400", Sees: harness.Front, Run: cursorMalformed400},
	{ID: "list/cursor-empty", Sees: harness.Front, Run: cursorEmpty},
	{ID: "list/cursor-other-caller", Sees: harness.Site, Run: cursorOtherCaller},
	{ID: "list/page-size", Sees: harness.Site, Run: pageSize},
	{ID: "list/page-boundary-exact", Sees: harness.Site, Run: pageBoundaryExact},
	{ID: "list/empty-site", Sees: harness.Site, Run: emptySite},
	{ID: "list/cursor-no-leak", Sees: harness.Site, Run: cursorNoLeak},
	{ID: "list/change-between-pages", Sees: harness.Site, Run: changeBetweenPages},
}

func answersJSON(ctx context.Context, t *harness.T) {
	list := t.As(harness.Agent).ListAll(ctx)
	first := list.Pages[0]
	if t.Drupal == nil && (first.Status == http.StatusUnauthorized || first.Status == http.StatusForbidden) {
		harness.NotTestable("the bridge refuses the agent: give the credentials of a caller who may discover tools")
	}
	t.For(harness.Agent, "", func() { t.Expect(first).To(match.HaveStatus(200)) })
	eachCaller(t, append(list.Pages, pagesOfOthers(ctx, t)...), func(page *harness.Response) {
		if page.Status >= 200 && page.Status <= 299 {
			t.Expect(page).To(match.HaveStatus(200))
			t.Expect(page).To(match.BeJSON())
		}
	})
}

func hasToolsArray(ctx context.Context, t *harness.T) {
	eachCaller(t, append(pages(ctx, t), pagesWithoutTools(ctx, t)...), func(page *harness.Response) { t.Expect(page).To(HaveToolsArray()) })
}

func nextCursorType(ctx context.Context, t *harness.T) {
	eachCaller(t, append(pages(ctx, t), pagesWithoutTools(ctx, t)...), func(page *harness.Response) { t.Expect(page).To(HaveACursorOrNone()) })
	if t.Drupal == nil || t.DiscoveryTTL == 0 {
		return
	}
	t.Replace(ctx, t.Drupal.Site())
	for tools := range 2 { // a list that ends on its first page
		page := shortest(ctx, t, scenario.ManyMethods("content.few.", tools))
		t.Row(page.Who, "", fmt.Sprintf("tools on the site: %d", tools), func() { t.Expect(page).To(HaveACursorOrNone()) })
	}
}

func toolRequiredMembers(ctx context.Context, t *harness.T) {
	scenario.EveryTool(ctx, t, func(_ harness.Listing, page *harness.Response, tool harness.Tool) {
		t.Expect(page).To(match.HoldTool(tool, "a non-empty string `name`, a string `description` and an object `inputSchema`", requiredMemberFault))
	})
	eachCaller(t, pages(ctx, t), func(page *harness.Response) { t.Expect(page).To(HoldObjectsAlone()) })
}

func toolOptionalMembers(ctx context.Context, t *harness.T) {
	scenario.EveryTool(ctx, t, func(_ harness.Listing, page *harness.Response, tool harness.Tool) {
		t.Expect(page).To(match.HoldTool(tool, "`title` to be a non-empty string or absent", func(tool harness.Tool) string {
			if title, ok := tool["title"].(string); absent(tool, "title") || ok && title != "" {
				return ""
			}
			return match.MemberOf(tool, "title")
		}))
		for _, name := range []string{"outputSchema", "annotations"} {
			t.Expect(page).To(match.HoldTool(tool, "`"+name+"` to be an object or absent", func(tool harness.Tool) string {
				if _, ok := tool[name].(map[string]any); ok || absent(tool, name) {
					return ""
				}
				return match.MemberOf(tool, name)
			}))
		}
		t.Expect(page).To(match.HoldTool(tool, "neither title nor annotations where the method has none", func(tool harness.Tool) string { return inventedMember(t, tool) }))
	})
}

func descriptionNotEmpty(ctx context.Context, t *harness.T) {
	scenario.EveryTool(ctx, t, func(_ harness.Listing, page *harness.Response, tool harness.Tool) {
		t.Expect(page).To(match.HoldTool(tool, "a `description` with something in it", func(tool harness.Tool) string {
			if tool["description"] == "" {
				return `""`
			}
			return ""
		}))
	})
}

func namesUnique(ctx context.Context, t *harness.T) {
	for _, list := range append([]harness.Listing{scenario.AllTools(ctx, t, t.As(harness.Agent))}, scenario.ListsOfOthers(ctx, t)...) {
		t.EachTool(list, func(_ *harness.Response, tool harness.Tool) { t.Expect(list).To(match.HaveOnce(tool.Name())) })
	}
}

func orderStable(ctx context.Context, t *harness.T) {
	first := scenario.AllTools(ctx, t, t.As(harness.Agent))
	t.Expect(scenario.AllTools(ctx, t, t.As(harness.Agent))).To(ListSame(first), "listed twice")
	t.Expire()
	t.Expect(scenario.AllTools(ctx, t, t.As(harness.Agent))).To(ListSame(first), "listed again after all caches ran out")

	who := scenario.Agents(ctx, t)
	change := scenario.Changer(ctx, t, who)
	wrong := scenario.Walk(t, who.Sequence(scenario.Dice(t, "list/order-stable")), func() func(scenario.Step) *scenario.Mismade {
		before := map[harness.Identity]harness.Listing{}
		return func(s scenario.Step) *scenario.Mismade {
			if s.Does != scenario.Listing {
				scenario.GoOn(ctx, t, s, who, change, before)
				return nil
			}
			now := t.As(s.Who).MustListAll(ctx)
			last, seen := before[s.Who]
			before[s.Who] = now
			if !seen {
				return nil
			}
			return scenario.FaultOf(now, ListSame(last))
		}
	})
	if wrong != nil {
		t.Expect(wrong.Actual).To(wrong.Must, wrong.Trail)
	}
}

func pagesCoverAllOnce(ctx context.Context, t *harness.T) {
	list := scenario.Newcomer(t).ListAll(ctx)
	if list.Pages[0].Status != http.StatusOK {
		harness.Untestable("there is no list of tools (list/answers-json judges that): ", list.Fault)
	}
	scenario.MustBeReadable(list)
	if t.Drupal == nil && len(list.Tools()) == 0 {
		harness.NotTestable("the agent sees no tool: it needs one")
	}
	eachCovered(t, list, scenario.MustShow(t, harness.Agent))
	for _, list := range scenario.ListsOfOthers(ctx, t) {
		scenario.MustBeReadable(list)
		eachCovered(t, list, scenario.MustShow(t, list.Pages[0].Who))
	}
}

func unknownQueryIgnored(ctx context.Context, t *harness.T) {
	const unknown = "bridgecheck_unknown=1&x%5B%5D=%20"
	list := steadyList(ctx, t)
	for i, page := range list.Pages[:min(len(list.Pages), 2)] {
		t.Row(harness.Agent, "", fmt.Sprintf("page %d", i+1), func() {
			t.Expect(t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Raw: strings.TrimSuffix(unknown+"&"+page.RawQuery, "&")})).To(ShowPage(page))
		})
	}
}

func onlyMarkedMethods(ctx context.Context, t *harness.T) {
	marked := 0
	for _, who := range []harness.Identity{harness.Agent, harness.Admin} {
		t.EachTool(scenario.AllTools(ctx, t, t.As(who)), func(page *harness.Response, tool harness.Tool) {
			t.Expect(page).To(match.HoldTool(tool, "the McpTool attribute", func(tool harness.Tool) string {
				switch m := scenario.MethodOf(t, tool.Name()); {
				case m == nil: // mapping/name-is-id judges that
				case m.MCP == nil:
					return "none on the site's method"
				default:
					marked++
				}
				return ""
			}))
		})
	}
	if marked == 0 {
		harness.NotTestable("no listed tool bears the name of a method of the site")
	}
}

// pages are the pages that came with 200 and an object as body, the agent's first; without any of his, the check is not
// testable.
func pages(ctx context.Context, t *harness.T) []*harness.Response {
	list := t.As(harness.Agent).ListAll(ctx)
	pages := readable(list.Pages)
	if len(pages) == 0 {
		harness.Untestable("there is no list of tools (list/answers-json judges that): ", list.Fault)
	}
	return append(pages, readable(pagesOfOthers(ctx, t))...)
}

// eachCaller judges the pages of each caller apart from those of others.
func eachCaller(t *harness.T, pages []*harness.Response, judge func(page *harness.Response)) {
	for _, page := range pages {
		t.For(page.Who, "", func() { judge(page) })
	}
}

// shortest is the first page of a caller whom the bridge has never seen, over a site of these methods alone: as soon as
// the page holds no more, else what the bridge shows in the end. Replace must have seen to it that the old site comes
// back.
func shortest(ctx context.Context, t *harness.T, methods []fixtures.Method) (page *harness.Response) {
	site := t.Drupal.Site().Clone()
	site.Methods = methods
	t.Drupal.Mock.SetSite(site)
	caller := scenario.Newcomer(t)
	t.Await(ctx, func() bool {
		page = caller.List(ctx)
		return len(page.Tools()) <= len(methods)
	})
	return page
}

func readable(pages []*harness.Response) []*harness.Response {
	return slices.DeleteFunc(slices.Clone(pages), func(p *harness.Response) bool { return p.Status != http.StatusOK || p.Object() == nil })
}

func pagesOfOthers(ctx context.Context, t *harness.T) []*harness.Response {
	var pages []*harness.Response
	for _, list := range scenario.ListsOfOthers(ctx, t) {
		pages = append(pages, list.Pages...)
	}
	return pages
}

// pagesWithoutTools are pages that should be empty, as far as the bridge gives any: behind the end, and of a caller who
// may not use JSON-RPC.
func pagesWithoutTools(ctx context.Context, t *harness.T) []*harness.Response {
	var asked []*harness.Response
	if t.Claims("cursor-base64-offset") {
		asked = append(asked, t.As(harness.Agent).List(ctx, offsetCursor(1_000_000)))
	}
	if t.Drupal != nil {
		asked = append(asked, t.As(t.Drupal.NewUser(fixtures.DiscoverTools)).List(ctx))
	}
	return readable(asked)
}

// steadyList lists all the agent's tools for checks of pages and cursors. Where the list changes from time to time,
// loses or doubles tools, or shows some that the agent must not see, the check is not testable: other clauses judge
// that.
func steadyList(ctx context.Context, t *harness.T) harness.Listing {
	list := scenario.AllTools(ctx, t, t.As(harness.Agent))
	if d := match.OtherNames(list.Names(), scenario.AllTools(ctx, t, t.As(harness.Agent)).Names()); d != "" {
		harness.NotTestable("the list is another one each time (list/order-stable judges that): " + d)
	}
	cover := Cover(t, scenario.MustShow(t, harness.Agent))
	if ok, _ := cover.Match(list); !ok {
		harness.NotTestable("the list is not whole (list/pages-cover-all-once judges that): " + cover.FailureMessage(list))
	}
	if t.Drupal != nil && t.Claims("exposure-attribute") {
		visible := t.Visible(harness.Agent)
		for _, name := range list.Names() {
			if !slices.Contains(visible, name) && !scenario.Collides(t, name) {
				harness.NotTestable(fmt.Sprintf("the list shows %q, which the agent must not see or by another name (the areas access and mapping judge that)", name))
			}
		}
	}
	return list
}

// HoldObjectsAlone matches a page whose tools are all objects.
func HoldObjectsAlone() OmegaMatcher {
	return match.Meet("every tool to be an object", func(a *harness.Response) string {
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
		return match.MemberOf(t, "name")
	}
	if _, ok := t["description"].(string); !ok {
		return match.MemberOf(t, "description")
	}
	if t.Input() == nil {
		return match.MemberOf(t, "inputSchema")
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
		return match.MemberOf(tool, "title")
	}
	if annotations, _ := tool["annotations"].(map[string]any); m.MCP.Annotations == nil && len(annotations) > 0 {
		return match.MemberOf(tool, "annotations")
	}
	return ""
}

// BeTools matches a list answer: 200 with a tools array.
func BeTools() types.GomegaMatcher {
	return match.Matching("200 with a `tools` array", func(a *harness.Response) bool {
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
	if !l.Fault.None() {
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
	return match.Meet("`tools` to be an array", func(a *harness.Response) string {
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
	return match.Meet("`nextCursor` to be a non-empty string, null or absent", func(a *harness.Response) string {
		cursor, ok := a.Member("nextCursor")
		if text, isText := cursor.(string); !ok || cursor == nil || isText && text != "" {
			return ""
		}
		return exact.Short(cursor)
	})
}

// HoldAtMost matches a page of no more than n tools.
func HoldAtMost(n int) types.GomegaMatcher {
	return match.Meet(fmt.Sprintf("at most %d tools", n), func(a *harness.Response) string {
		if got := len(a.Tools()); got > n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// BeFull matches a page of exactly n tools.
func BeFull(n int) types.GomegaMatcher {
	return match.Meet(fmt.Sprintf("%d tools, for another page follows", n), func(a *harness.Response) string {
		if got := len(a.Tools()); got != n {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// BeNoTools matches 200 with an empty tools array and no cursor.
func BeNoTools() types.GomegaMatcher {
	return match.Meet("200 with an empty `tools` array and no cursor", func(a *harness.Response) string {
		if tools, ok := a.Object()["tools"].([]any); a.Status != http.StatusOK || !ok || len(tools) > 0 || a.NextCursor() != "" {
			return a.Outcome()
		}
		return ""
	})
}

// ShowPage matches 200 with the same tools in the same order as another page.
func ShowPage(page *harness.Response) types.GomegaMatcher {
	return match.Meet(fmt.Sprintf("200 with the page of %s", page.Subject()), func(a *harness.Response) string {
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
