// Package list checks GET /mcp/tools/list: the members of tools, pages that list every tool once, and cursors.
package list

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area list.
var Checks = []check.Check{
	{ID: "list/answers-json", ByMock: true, Sees: check.Front, Run: returnsJSON, OfOne: ofPage(match.HaveStatus(200), match.BeJSON())},
	{ID: "list/has-tools-array", ByMock: true, Sees: check.Front, Guesses: 1, Run: hasToolsArray, OfOne: ofPage(haveToolsArray())},
	{ID: "list/next-cursor-type", ByMock: true, Sees: check.Front, Guesses: 1, Run: nextCursorType, OfOne: ofPage(haveValidCursor())},
	{ID: "list/tool-required-members", Sees: check.Front, Run: toolRequiredMembers},
	{ID: "list/tool-optional-members", Sees: check.Front, Run: toolOptionalMembers},
	{ID: "list/description-not-empty", Sees: check.Front, ByMCP: true, Run: descriptionNotEmpty},
	{ID: "list/names-unique", Sees: check.Front, ByMCP: true, Run: namesUnique},
	{ID: "list/order-stable", Beside: "describe/answers-tool", ByMock: true, Sees: check.Front, Generated: true, Run: orderStable},
	{ID: "list/pages-cover-all-once", ByMock: true, Sees: check.Front, ByMCP: true, Run: pagesCoverAllOnce},
	{ID: "list/unknown-query-ignored", Sees: check.Front, Run: unknownQueryIgnored},
	{ID: "list/only-marked-methods", Sees: check.Discovery, ByMCP: true, Run: onlyMarkedMethods},
	{ID: "list/cursor-base64-offset", ByMock: true, Sees: check.Front, Run: cursorBase64Offset},
	{ID: "list/cursor-opaque-roundtrip", ByMock: true, Sees: check.Front, Run: cursorOpaqueRoundtrip},
	{ID: "list/cursor-past-end", ByMock: true, Sees: check.Front, Run: cursorPastEnd},
	{ID: "list/cursor-malformed", Sees: check.Front, Run: cursorMalformed},
	{ID: "list/cursor-malformed-400", Sees: check.Front, Run: cursorMalformed400},
	{ID: "list/cursor-empty", Sees: check.Front, Run: cursorEmpty},
	{ID: "list/cursor-other-caller", TellsApart: true, Sees: check.Site, ByMCP: true, Run: cursorOtherCaller, WithoutSite: cursorsLent},
	{ID: "list/page-size", Sees: check.Site, Run: pageSize, WithoutSite: pageSizeAsItIs},
	{ID: "list/page-boundary-exact", Sees: check.Site, Run: pageBoundaryExact, WithoutSite: pageBoundaryAsItIs},
	{ID: "list/empty-site", Sees: check.Site, ByMCP: true, Run: emptySite, WithoutSite: emptyForSomebody},
	{ID: "list/cursor-no-leak", Sees: check.Discovery, ByMCP: true, Run: cursorNoLeak},
	{ID: "list/change-between-pages", Sees: check.Site, Run: changeBetweenPages},
}

func returnsJSON(ctx context.Context, t *check.T) {
	list := t.As(check.Agent).ListAll(ctx)
	first := list.Pages[0]
	if t.Drupal == nil && (first.Status == http.StatusUnauthorized || first.Status == http.StatusForbidden) && !scenario.RefusesKnown(ctx, t, first, check.Agent) {
		check.NotTestable("the agent is refused: give the credentials of a caller who may discover tools")
	}
	t.For(check.Agent, "", func() { t.Expect(first).To(match.HaveStatus(200)) })
	eachCaller(t, append(list.Pages, pagesOfOthers(ctx, t)...), func(page *check.Response) {
		if page.Status >= 200 && page.Status <= 299 {
			t.Expect(page).To(match.HaveStatus(200))
			t.Expect(page).To(match.BeJSON())
		}
	})
	if t.Drupal != nil && !t.HasFindings() {
		listsAfterCallerLeft(ctx, t)
	}
}

// listsAfterCallerLeft lists for an account while its discovery, which an earlier request of the account has caused, is
// under way, and again later. The earlier request ends before a response.
func listsAfterCallerLeft(ctx context.Context, t *check.T) {
	who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.Methods, User: string(who), Delay: 200 * time.Millisecond})
	t.Drupal.Mark()
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	var requests sync.WaitGroup
	requests.Go(func() {
		defer t.Recover()
		t.As(who).Send(leaving, check.Request{Path: check.ListPath, Fresh: true})
	})
	check.Within(ctx, 100*time.Millisecond, func() bool { return len(t.Drupal.Discoveries()) > 0 }) // a bridge with a list for all needs none
	var beside *check.Response
	requests.Go(func() {
		defer t.Recover()
		beside = scenario.Delivered(ctx, t, func() *check.Response { return t.As(who).Send(ctx, check.Request{Path: check.ListPath, Fresh: true}) })
	})
	time.Sleep(50 * time.Millisecond) // so that the second waits beside the first; if it does not, there is less to see
	leave()
	requests.Wait()
	disarm()
	if beside != nil && beside.Status != http.StatusOK { // nil: the run ended
		t.ExemptIfLate() // the delay leaves the discovery less than the bridge's whole time-out
	}
	t.Row(who, "", "beside a request of the account whose caller left", func() { t.Expect(beside).To(match.HaveStatus(200)) })
	t.Row(who, "", "after a request of the account whose caller left", func() { t.Expect(t.As(who).List(ctx)).To(match.HaveStatus(200)) })
}

// ofPage is what every page must meet.
func ofPage(must ...types.GomegaMatcher) func(*check.T, *check.Response) types.GomegaMatcher {
	return func(_ *check.T, a *check.Response) types.GomegaMatcher {
		if a.Path != check.ListPath || a.Status/100 != 2 {
			return nil
		}
		return And(must...)
	}
}

func hasToolsArray(ctx context.Context, t *check.T) {
	eachCaller(t, append(pages(ctx, t), pagesWithoutTools(ctx, t)...), func(page *check.Response) { t.Expect(page).To(haveToolsArray()) })
}

func nextCursorType(ctx context.Context, t *check.T) {
	eachCaller(t, append(pages(ctx, t), pagesWithoutTools(ctx, t)...), func(page *check.Response) { t.Expect(page).To(haveValidCursor()) })
	if t.Drupal == nil || !t.Changeable() {
		return
	}
	t.ReplaceForNewcomers(ctx, t.Drupal.Site())
	for tools := range 2 { // lists that end on their first page
		page := firstPageOver(ctx, t, scenario.ManyMethods("content.few.", tools))
		t.Row(page.Who, "", fmt.Sprintf("tools on the site: %d", tools), func() { t.Expect(page).To(haveValidCursor()) })
	}
}

func toolRequiredMembers(ctx context.Context, t *check.T) {
	scenario.EveryTool(ctx, t, func(_ check.Listing, page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "a non-empty string `name`, a string `description` and an object `inputSchema`", requiredMemberFault))
	})
	eachCaller(t, pages(ctx, t), func(page *check.Response) { t.Expect(page).To(haveObjectsAsTools()) })
}

func toolOptionalMembers(ctx context.Context, t *check.T) {
	typed := func(page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "`title` to be a non-empty string or absent", func(tool check.Tool) string {
			if title, ok := tool["title"].(string); absent(tool, "title") || ok && title != "" {
				return ""
			}
			return match.DescribeMember(tool, "title")
		}))
		for _, name := range []string{"outputSchema", "annotations"} {
			t.Expect(page).To(match.HaveTool(tool, "`"+name+"` to be an object or absent", func(tool check.Tool) string {
				if _, ok := tool[name].(map[string]any); ok || absent(tool, name) {
					return ""
				}
				return match.DescribeMember(tool, name)
			}))
		}
	}
	var plainest check.Tool // which lacks the most of them
	scenario.EveryTool(ctx, t, func(_ check.Listing, page *check.Response, tool check.Tool) {
		typed(page, tool)
		t.Expect(page).To(match.HaveTool(tool, "neither title nor annotations where the method has none", func(tool check.Tool) string { return inventedMember(t, tool) }))
		if page.Who == check.Agent && (plainest == nil || len(tool) < len(plainest)) {
			plainest = tool
		}
	})
	if plainest == nil {
		return
	}
	if r := t.As(check.Agent).Describe(ctx, plainest.Name()); r.Tool() != nil { // else describe/answers-tool fails
		t.Row(check.Agent, plainest.Name(), "described", func() { typed(r, r.Tool()) })
	}
}

func descriptionNotEmpty(ctx context.Context, t *check.T) {
	scenario.EveryTool(ctx, t, func(_ check.Listing, page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "a `description` that is not empty", func(tool check.Tool) string {
			if tool["description"] == "" {
				return `""`
			}
			return ""
		}))
	})
}

func namesUnique(ctx context.Context, t *check.T) {
	for _, list := range append([]check.Listing{scenario.AgentsTools(ctx, t)}, scenario.ListsOfOthers(ctx, t)...) {
		t.EachTool(list, func(_ *check.Response, tool check.Tool) { t.Expect(list).To(match.ListOnce(tool.Name())) })
	}
}

func orderStable(ctx context.Context, t *check.T) {
	first := scenario.AllTools(ctx, t, t.As(check.Agent))
	t.Expect(scenario.AllTools(ctx, t, t.As(check.Agent))).To(match.ListSame(first), "listed twice")
	t.ExpireCaches()
	t.Expect(scenario.AllTools(ctx, t, t.As(check.Agent))).To(match.ListSame(first), "listed again after all caches expired")
	inFrisian := t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"Accept-Language": {"fy"}}})
	t.Row(check.Agent, "", "with an Accept-Language", func() {
		t.Expect(inFrisian).To(match.Conform("the same tools in the same order as without it", func(r *check.Response) string {
			return match.OtherNames(namesOn(first.Pages[0]), namesOn(r))
		}))
	})

	if wrong := scenario.ListsAndDescribes(ctx, t, "list/order-stable"); wrong != nil {
		t.Expect(wrong.Actual).To(wrong.Must, wrong.Trail)
	}
}

func pagesCoverAllOnce(ctx context.Context, t *check.T) {
	list := scenario.NewCaller(t).ListAll(ctx)
	if list.Pages[0].Status != http.StatusOK {
		check.BlockedBy(list.Fault, "list/answers-json")
	}
	scenario.MustBeReadable(list)
	if t.Drupal == nil && len(list.Tools()) == 0 {
		check.NotTestable("the agent sees no tool: it needs one")
	}
	eachListedOnce(t, list, scenario.MustShow(t, check.Agent))
	for _, list := range scenario.ListsOfOthers(ctx, t) {
		scenario.MustBeReadable(list)
		eachListedOnce(t, list, scenario.MustShow(t, list.Pages[0].Who))
	}
	for _, way := range scenario.OtherCredentials(t) {
		t.Row(way.Who, "", way.Name, func() { eachListedOnce(t, way.ListAll(ctx), scenario.MustShow(t, way.Who)) })
	}
	if t.HasFindings() || len(list.Pages) == 1 {
		return
	}
	first := t.As(check.Agent).List(ctx)
	for _, who := range t.Callers(check.Discoverer, check.Admin) {
		t.As(who).List(ctx) // of which a bridge may keep the rest for whoever asks for the next page
	}
	second := t.As(check.Agent).List(ctx, first.NextCursor())
	t.Row(check.Agent, "", "page 2, after others have asked for page 1", func() {
		t.Expect(second).To(match.Conform("the tools that follow those of page 1", func(r *check.Response) string {
			return match.OtherNames(namesOn(list.Pages[1]), namesOn(r))
		}))
	})
}

func unknownQueryIgnored(ctx context.Context, t *check.T) {
	const unknown = "_format=json&utm_source=bridgecheck&x%5B%5D=%20&Cursor=%21&Name=no" // names have case
	list := steadyList(ctx, t)
	for i, page := range list.Pages[:min(len(list.Pages), 2)] {
		t.Row(check.Agent, "", fmt.Sprintf("page %d", i+1), func() {
			t.Expect(t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Raw: strings.TrimSuffix(unknown+"&"+page.RawQuery, "&")})).To(showPage(page))
		})
	}
	known := scenario.KnownTool(ctx, t)
	if described := t.As(check.Agent).Describe(ctx, known); described.Succeeded() { // else describe/answers-tool fails
		t.Row(check.Agent, known, "describe", func() {
			t.Expect(t.As(check.Agent).Send(ctx, check.Request{Path: check.DescribePath, Raw: unknown + "&name=" + url.QueryEscape(known)})).To(match.EqualResponse(described))
		})
	}
	call, ok := scenario.HarmlessCall(ctx, t)
	if ok && t.Call(ctx, call).Succeeded() { // else invoke/answers-result fails
		t.Row(call.Identity, call.Tool, "invoke", func() {
			t.Expect(t.As(call.Identity).Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Raw: unknown + "&_method=PUT&name=" + scenario.NoSuchTool,
				Body: bytes.NewReader(call.Body()), Show: string(call.Body())})).To(match.BeSuccess())
		})
	}
}

func onlyMarkedMethods(ctx context.Context, t *check.T) {
	t.MustMark()
	marked := 0
	for _, list := range append([]check.Listing{scenario.AgentsTools(ctx, t)}, scenario.ListsOfOthers(ctx, t)...) {
		t.EachTool(list, func(page *check.Response, tool check.Tool) {
			t.Expect(page).To(match.HaveTool(tool, "the McpTool attribute", func(tool check.Tool) string {
				switch m := scenario.MethodOf(t, tool.Name()); {
				case m == nil: // mapping/name-is-id tests that
				case m.MCP == nil:
					return "none on the site's method"
				default:
					marked++
				}
				return ""
			}))
		})
	}
	if marked == 0 && !t.HasFindings() {
		check.BlockedBy(check.Finding{Subject: "no listed tool has the name of a method of the site"}, "mapping/name-is-id", "mapping/name-underscored")
	}
}

// pages returns the pages that have status 200 and an object as body: the agent's, then those of others. It ends the
// check if none of the agent's does.
func pages(ctx context.Context, t *check.T) []*check.Response {
	list := t.As(check.Agent).ListAll(ctx)
	pages := readable(list.Pages)
	if len(pages) == 0 {
		check.BlockedBy(check.Mismatch(list.Last().Subject(), "a list of tools", list.Last().Outcome()), "list/answers-json")
	}
	return append(pages, readable(pagesOfOthers(ctx, t))...)
}

// eachCaller runs a test for every page, and reports the failures of each caller separately.
func eachCaller(t *check.T, pages []*check.Response, test func(page *check.Response)) {
	for _, page := range pages {
		t.For(page.Who, "", func() { test(page) })
	}
}

// firstPageOver returns the first page of a new caller over a site with only these methods, as soon as the page has no
// more tools than that, or the last page that the bridge showed in time. The caller must have called Replace before.
func firstPageOver(ctx context.Context, t *check.T, methods []fixtures.Method) (page *check.Response) {
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

func readable(pages []*check.Response) []*check.Response {
	return slices.DeleteFunc(slices.Clone(pages), func(p *check.Response) bool { return p.Status != http.StatusOK || p.Object() == nil })
}

func pagesOfOthers(ctx context.Context, t *check.T) []*check.Response {
	var pages []*check.Response
	for _, list := range scenario.ListsOfOthers(ctx, t) {
		pages = append(pages, list.Pages...)
	}
	return pages
}

// pagesWithoutTools returns pages that should be empty, as far as the bridge gives any: past the end of the list, and of
// a caller who may not use JSON-RPC.
func pagesWithoutTools(ctx context.Context, t *check.T) []*check.Response {
	var empty []*check.Response
	if t.Claims("cursor-base64-offset") {
		empty = append(empty, t.As(check.Agent).List(ctx, offsetCursor(1_000_000)))
	}
	if t.Drupal != nil {
		empty = append(empty, t.As(check.NoRPC).List(ctx))
	}
	return readable(empty)
}

// steadyList returns the agent's list for checks of pages and cursors. It ends the check if the list changes between
// two requests, lacks or repeats tools, or shows tools that the agent must not see: other clauses test that.
func steadyList(ctx context.Context, t *check.T) check.Listing {
	list := scenario.AllTools(ctx, t, t.As(check.Agent))
	if d := match.OtherNames(list.Names(), scenario.AllTools(ctx, t, t.As(check.Agent)).Names()); d != "" {
		check.BlockedBy(check.Mismatch("list as "+check.Agent.String()+", twice", "the same tools", d), "list/order-stable")
	}
	complete := listEachOnce(t, scenario.MustShow(t, check.Agent))
	if ok, _ := complete.Match(list); !ok {
		check.BlockedBy(complete.Finding(list, false), "list/pages-cover-all-once")
	}
	if t.Site != nil && t.Marked() {
		visible := t.Visible(check.Agent)
		for _, name := range list.Names() {
			if !slices.Contains(visible, name) && !scenario.Collides(t, name) {
				check.BlockedBy(check.Finding{Subject: fmt.Sprintf("the list shows %q, which the agent must not see, or not under this name", name)}, "access/*", "mapping/*", "list/only-marked-methods")
			}
		}
	}
	return list
}
