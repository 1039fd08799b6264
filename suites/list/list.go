// Package list checks GET /mcp/tools/list: the form of tools, that the pages hold every tool once, and cursors.
package list

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
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
		t.Expect(page).To(match.HaveTool(tool, "a non-empty string `name`, a string `description` and an object `inputSchema`", requiredMemberFault))
	})
	eachCaller(t, pages(ctx, t), func(page *harness.Response) { t.Expect(page).To(HoldObjectsAlone()) })
}

func toolOptionalMembers(ctx context.Context, t *harness.T) {
	scenario.EveryTool(ctx, t, func(_ harness.Listing, page *harness.Response, tool harness.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "`title` to be a non-empty string or absent", func(tool harness.Tool) string {
			if title, ok := tool["title"].(string); absent(tool, "title") || ok && title != "" {
				return ""
			}
			return match.DescribeMember(tool, "title")
		}))
		for _, name := range []string{"outputSchema", "annotations"} {
			t.Expect(page).To(match.HaveTool(tool, "`"+name+"` to be an object or absent", func(tool harness.Tool) string {
				if _, ok := tool[name].(map[string]any); ok || absent(tool, name) {
					return ""
				}
				return match.DescribeMember(tool, name)
			}))
		}
		t.Expect(page).To(match.HaveTool(tool, "neither title nor annotations where the method has none", func(tool harness.Tool) string { return inventedMember(t, tool) }))
	})
}

func descriptionNotEmpty(ctx context.Context, t *harness.T) {
	scenario.EveryTool(ctx, t, func(_ harness.Listing, page *harness.Response, tool harness.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "a `description` with something in it", func(tool harness.Tool) string {
			if tool["description"] == "" {
				return `""`
			}
			return ""
		}))
	})
}

func namesUnique(ctx context.Context, t *harness.T) {
	for _, list := range append([]harness.Listing{scenario.AllTools(ctx, t, t.As(harness.Agent))}, scenario.ListsOfOthers(ctx, t)...) {
		t.EachTool(list, func(_ *harness.Response, tool harness.Tool) { t.Expect(list).To(match.ListOnce(tool.Name())) })
	}
}

func orderStable(ctx context.Context, t *harness.T) {
	first := scenario.AllTools(ctx, t, t.As(harness.Agent))
	t.Expect(scenario.AllTools(ctx, t, t.As(harness.Agent))).To(ListSame(first), "listed twice")
	t.ExpireCaches()
	t.Expect(scenario.AllTools(ctx, t, t.As(harness.Agent))).To(ListSame(first), "listed again after all caches ran out")

	who := scenario.Agents(ctx, t)
	change := scenario.SiteChanger(ctx, t, who)
	wrong := scenario.RunSequence(t, who.Sequence(scenario.Random(t, "list/order-stable")), func() func(scenario.Step) *scenario.Counterexample {
		before := map[harness.Identity]harness.Listing{}
		return func(s scenario.Step) *scenario.Counterexample {
			if s.Does != scenario.Listing {
				scenario.ApplyStep(ctx, t, s, who, change, before)
				return nil
			}
			now := t.As(s.Who).MustListAll(ctx)
			last, seen := before[s.Who]
			before[s.Who] = now
			if !seen {
				return nil
			}
			return scenario.Falsify(now, ListSame(last))
		}
	})
	if wrong != nil {
		t.Expect(wrong.Actual).To(wrong.Must, wrong.Trail)
	}
}

func pagesCoverAllOnce(ctx context.Context, t *harness.T) {
	list := scenario.NewCaller(t).ListAll(ctx)
	if list.Pages[0].Status != http.StatusOK {
		harness.BlockedBy(list.Fault.About("there is no list of tools"), "list/answers-json")
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
			t.Expect(page).To(match.HaveTool(tool, "the McpTool attribute", func(tool harness.Tool) string {
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
		harness.BlockedBy(list.Fault.About("there is no list of tools"), "list/answers-json")
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
	caller := scenario.NewCaller(t)
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
		harness.BlockedBy(harness.Finding{Subject: "the list is another one each time" + ": " + d}, "list/order-stable")
	}
	cover := Cover(t, scenario.MustShow(t, harness.Agent))
	if ok, _ := cover.Match(list); !ok {
		harness.BlockedBy(harness.Finding{Subject: "the list is not whole" + ": " + cover.FailureMessage(list)}, "list/pages-cover-all-once")
	}
	if t.Drupal != nil && t.Claims("exposure-attribute") {
		visible := t.Visible(harness.Agent)
		for _, name := range list.Names() {
			if !slices.Contains(visible, name) && !scenario.Collides(t, name) {
				harness.BlockedBy(harness.Finding{Subject: fmt.Sprintf("the list shows %q, which the agent must not see, or not by this name", name)}, "access/*", "mapping/*", "list/only-marked-methods")
			}
		}
	}
	return list
}
