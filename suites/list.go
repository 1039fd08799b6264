package suites

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// checks__list__list are the checks of this file.
var checks__list__list = []Check{
	{ID: "list/answers-json", Sees: Front, Run: chk__list__answersJSON},
	{ID: "list/has-tools-array", Sees: Front, Run: chk__list__hasToolsArray},
	{ID: "list/next-cursor-type", Sees: Front, Run: chk__list__nextCursorType},
	{ID: "list/tool-required-members", Sees: Front, Run: chk__list__toolRequiredMembers},
	{ID: "list/tool-optional-members", Sees: Front, Run: chk__list__toolOptionalMembers},
	{ID: "list/description-not-empty", Sees: Front, Run: chk__list__descriptionNotEmpty},
	{ID: "list/names-unique", Sees: Front, Run: chk__list__namesUnique},
	{ID: "list/order-stable", Sees: Front, Generated: true, Run: chk__list__orderStable},
	{ID: "list/pages-cover-all-once", Sees: Front, Run: chk__list__pagesCoverAllOnce},
	{ID: "list/unknown-query-ignored", Sees: Front, Run: chk__list__unknownQueryIgnored},
	{ID: "list/only-marked-methods", Sees: Site, Run: chk__list__onlyMarkedMethods},
}

func chk__list__answersJSON(ctx context.Context, t *T) {
	list := t.As(Agent).ListAll(ctx)
	first := list.Pages[0]
	if t.Drupal == nil && (first.Status == http.StatusUnauthorized || first.Status == http.StatusForbidden) {
		NotTestable("the bridge refuses the agent: give the credentials of a caller who may discover tools")
	}
	t.For(Agent, "", func() { t.Expect(first).To(HaveStatus(200)) })
	t.eachCaller(append(list.Pages, t.pagesOfOthers(ctx)...), func(page *Response) {
		if page.Status >= 200 && page.Status <= 299 {
			t.Expect(page).To(HaveStatus(200))
			t.Expect(page).To(BeJSON())
		}
	})
}

func chk__list__hasToolsArray(ctx context.Context, t *T) {
	t.eachCaller(append(t.pages(ctx), t.pagesWithoutTools(ctx)...), func(page *Response) { t.Expect(page).To(HaveToolsArray()) })
}

func chk__list__nextCursorType(ctx context.Context, t *T) {
	t.eachCaller(append(t.pages(ctx), t.pagesWithoutTools(ctx)...), func(page *Response) { t.Expect(page).To(HaveACursorOrNone()) })
	if t.Drupal == nil || t.DiscoveryTTL == 0 {
		return
	}
	t.Replace(ctx, t.Drupal.Site())
	for tools := range 2 { // a list that ends on its first page
		page := t.shortest(ctx, manyMethods("content.few.", tools))
		t.Row(page.Who, "", fmt.Sprintf("tools on the site: %d", tools), func() { t.Expect(page).To(HaveACursorOrNone()) })
	}
}

func chk__list__toolRequiredMembers(ctx context.Context, t *T) {
	t.everyTool(ctx, func(_ Listing, page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, "a non-empty string `name`, a string `description` and an object `inputSchema`", requiredMemberFault))
	})
	t.eachCaller(t.pages(ctx), func(page *Response) { t.Expect(page).To(HoldObjectsAlone()) })
}

func chk__list__toolOptionalMembers(ctx context.Context, t *T) {
	t.everyTool(ctx, func(_ Listing, page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, "`title` to be a non-empty string or absent", func(tool Tool) string {
			if title, ok := tool["title"].(string); absent(tool, "title") || ok && title != "" {
				return ""
			}
			return memberOf(tool, "title")
		}))
		for _, name := range []string{"outputSchema", "annotations"} {
			t.Expect(page).To(HoldTool(tool, "`"+name+"` to be an object or absent", func(tool Tool) string {
				if _, ok := tool[name].(map[string]any); ok || absent(tool, name) {
					return ""
				}
				return memberOf(tool, name)
			}))
		}
		t.Expect(page).To(HoldTool(tool, "neither title nor annotations where the method has none", func(tool Tool) string { return t.inventedMember(tool) }))
	})
}

func chk__list__descriptionNotEmpty(ctx context.Context, t *T) {
	t.everyTool(ctx, func(_ Listing, page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, "a `description` with something in it", func(tool Tool) string {
			if tool["description"] == "" {
				return `""`
			}
			return ""
		}))
	})
}

func chk__list__namesUnique(ctx context.Context, t *T) {
	for _, list := range append([]Listing{t.allTools(ctx, t.As(Agent))}, t.listsOfOthers(ctx)...) {
		t.eachTool(list, func(_ *Response, tool Tool) { t.Expect(list).To(HaveOnce(tool.Name())) })
	}
}

func chk__list__orderStable(ctx context.Context, t *T) {
	first := t.allTools(ctx, t.As(Agent))
	t.Expect(t.allTools(ctx, t.As(Agent))).To(ListSame(first), "listed twice")
	t.expire()
	t.Expect(t.allTools(ctx, t.As(Agent))).To(ListSame(first), "listed again after all caches ran out")

	who := t.agents(ctx)
	change := t.changer(ctx, who)
	wrong := t.walk(who.sequence(t.dice("list/order-stable")), func() func(step) *mismade {
		before := map[Identity]Listing{}
		return func(s step) *mismade {
			if s.does != listing {
				t.goOn(ctx, s, who, change, before)
				return nil
			}
			now := t.As(s.who).MustListAll(ctx)
			last, seen := before[s.who]
			before[s.who] = now
			if !seen {
				return nil
			}
			return faultOf(now, ListSame(last))
		}
	})
	if wrong != nil {
		t.Expect(wrong.actual).To(wrong.must, wrong.trail)
	}
}

func chk__list__pagesCoverAllOnce(ctx context.Context, t *T) {
	list := t.newcomer().ListAll(ctx)
	if list.Pages[0].Status != http.StatusOK {
		Untestable("there is no list of tools (list/answers-json judges that): ", list.Fault)
	}
	mustBeReadable(list)
	if t.Drupal == nil && len(list.Tools()) == 0 {
		NotTestable("the agent sees no tool: it needs one")
	}
	t.eachCovered(list, t.mustShow(Agent))
	for _, list := range t.listsOfOthers(ctx) {
		mustBeReadable(list)
		t.eachCovered(list, t.mustShow(list.Pages[0].Who))
	}
}

func chk__list__unknownQueryIgnored(ctx context.Context, t *T) {
	const unknown = "bridgecheck_unknown=1&x%5B%5D=%20"
	list := t.steadyList(ctx)
	for i, page := range list.Pages[:min(len(list.Pages), 2)] {
		t.Row(Agent, "", fmt.Sprintf("page %d", i+1), func() {
			t.Expect(t.As(Agent).Send(ctx, Request{Path: ListPath, Raw: strings.TrimSuffix(unknown+"&"+page.RawQuery, "&")})).To(ShowPage(page))
		})
	}
}

func chk__list__onlyMarkedMethods(ctx context.Context, t *T) {
	marked := 0
	for _, who := range []Identity{Agent, Admin} {
		t.eachTool(t.allTools(ctx, t.As(who)), func(page *Response, tool Tool) {
			t.Expect(page).To(HoldTool(tool, "the McpTool attribute", func(tool Tool) string {
				switch m := t.methodOf(tool.Name()); {
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
		NotTestable("no listed tool bears the name of a method of the site")
	}
}

// pages are the pages that came with 200 and an object as body, the agent's first; without any of his, the check is not
// testable.
func (t *T) pages(ctx context.Context) []*Response {
	list := t.As(Agent).ListAll(ctx)
	pages := readable(list.Pages)
	if len(pages) == 0 {
		Untestable("there is no list of tools (list/answers-json judges that): ", list.Fault)
	}
	return append(pages, readable(t.pagesOfOthers(ctx))...)
}

// eachCaller judges the pages of each caller apart from those of others.
func (t *T) eachCaller(pages []*Response, judge func(page *Response)) {
	for _, page := range pages {
		t.For(page.Who, "", func() { judge(page) })
	}
}

// shortest is the first page of a caller whom the bridge has never seen, over a site of these methods alone: as soon as
// the page holds no more, else what the bridge shows in the end. Replace must have seen to it that the old site comes
// back.
func (t *T) shortest(ctx context.Context, methods []fixtures.Method) (page *Response) {
	site := t.Drupal.Site().Clone()
	site.Methods = methods
	t.Drupal.mock.SetSite(site)
	caller := t.newcomer()
	t.Await(ctx, func() bool {
		page = caller.List(ctx)
		return len(page.Tools()) <= len(methods)
	})
	return page
}

func readable(pages []*Response) []*Response {
	return slices.DeleteFunc(slices.Clone(pages), func(p *Response) bool { return p.Status != http.StatusOK || p.Object() == nil })
}

// listsOfOthers are the lists of callers of the mock's site who see more and fewer tools than the agent, where they may
// list at all.
func (t *T) listsOfOthers(ctx context.Context) []Listing {
	if t.Drupal == nil {
		return nil
	}
	var lists []Listing
	for _, who := range []Identity{Discoverer, Admin} {
		if list := t.As(who).ListAll(ctx); list.Pages[0].Status == http.StatusOK {
			lists = append(lists, list)
		}
	}
	return lists
}

func (t *T) pagesOfOthers(ctx context.Context) []*Response {
	var pages []*Response
	for _, list := range t.listsOfOthers(ctx) {
		pages = append(pages, list.Pages...)
	}
	return pages
}

// pagesWithoutTools are pages that should be empty, as far as the bridge gives any: behind the end, and of a caller who
// may not use JSON-RPC.
func (t *T) pagesWithoutTools(ctx context.Context) []*Response {
	var asked []*Response
	if t.Claims("cursor-base64-offset") {
		asked = append(asked, t.As(Agent).List(ctx, offsetCursor(1_000_000)))
	}
	if t.Drupal != nil {
		asked = append(asked, t.As(t.Drupal.NewUser(fixtures.DiscoverTools)).List(ctx))
	}
	return readable(asked)
}

// allTools lists all that the caller sees. Where the list fails, is empty or cannot be followed to its end, the check
// is not testable: other clauses judge that.
func (t *T) allTools(ctx context.Context, caller Client) Listing {
	list := caller.MustListAll(ctx)
	mustBeReadable(list)
	if len(list.Tools()) == 0 {
		Untestable("", mismatch(list.Pages[0].Subject(), "tools", "none"))
	}
	return list
}

// mustBeReadable makes the check not testable where pages do not hold tools or a cursor in a form that can be used.
func mustBeReadable(list Listing) {
	for _, page := range list.Pages {
		if tools, _ := page.Member("tools"); page.Status == http.StatusOK && typeOf(tools) != "an array" {
			NotTestable("the list cannot be read: its `tools` is " + typeOf(tools) + " (list/has-tools-array judges that)")
		}
	}
	if cursor, _ := list.Last().Member("nextCursor"); cursor != nil && cursor != false && typeOf(cursor) != "a string" {
		NotTestable("the list cannot be followed: its `nextCursor` is " + typeOf(cursor) + " (list/next-cursor-type judges that)")
	}
}

// steadyList lists all the agent's tools for checks of pages and cursors. Where the list changes from time to time,
// loses or doubles tools, or shows some that the agent must not see, the check is not testable: other clauses judge
// that.
func (t *T) steadyList(ctx context.Context) Listing {
	list := t.allTools(ctx, t.As(Agent))
	if d := otherNames(list.Names(), t.allTools(ctx, t.As(Agent)).Names()); d != "" {
		NotTestable("the list is another one each time (list/order-stable judges that): " + d)
	}
	cover := Cover(t, t.mustShow(Agent))
	if ok, _ := cover.Match(list); !ok {
		NotTestable("the list is not whole (list/pages-cover-all-once judges that): " + cover.FailureMessage(list))
	}
	if t.Drupal != nil && t.Claims("exposure-attribute") {
		visible := t.Visible(Agent)
		for _, name := range list.Names() {
			if !slices.Contains(visible, name) && !t.collides(name) {
				NotTestable(fmt.Sprintf("the list shows %q, which the agent must not see or by another name (the areas access and mapping judge that)", name))
			}
		}
	}
	return list
}

// newcomer is a caller like the agent whom the bridge has never seen; without a site to make one on, the agent.
func (t *T) newcomer() Client {
	if t.Drupal == nil {
		return t.As(Agent)
	}
	return t.As(t.Drupal.NewUser(t.Permissions(Agent)...))
}

// mustShow are the methods that the caller must find in the list. Not among them are those that a bridge may leave out
// or whose name the contract does not foretell. Without a site, or with exposure by patterns, nobody knows any.
func (t *T) mustShow(who Identity) []*fixtures.Method {
	if t.Drupal == nil || !t.Claims("exposure-attribute") {
		return nil
	}
	var methods []*fixtures.Method
	for _, name := range t.Visible(who) {
		if m := t.methodOf(name); m != nil && !m.ByPosition && translatable(t, m) {
			methods = append(methods, m)
		}
	}
	return methods
}

// translatable tells whether the bridge has to understand the method's schemas.
func translatable(t *T, m *fixtures.Method) bool {
	if m.Unchecked {
		return false
	}
	for _, p := range m.Params {
		if p.Drupal != nil && !t.Claims("drupal-types") {
			return false
		}
	}
	return true
}

// methodOf is the site's method that a tool's name belongs to; nil where there is none, or more than one.
func (t *T) methodOf(name string) *fixtures.Method {
	site := t.Drupal.Site()
	if !t.Claims("naming-underscore") {
		m, _ := site.Method(name)
		return m
	}
	var found *fixtures.Method
	for i := range site.Methods {
		if t.ToolName(site.Methods[i].ID) == name {
			if found != nil {
				return nil
			}
			found = &site.Methods[i]
		}
	}
	return found
}

// HoldObjectsAlone matches a page whose tools are all objects.
func HoldObjectsAlone() OmegaMatcher {
	return Meet("every tool to be an object", func(a *Response) string {
		list, _ := a.Object()["tools"].([]any)
		for i, item := range list {
			if _, ok := item.(map[string]any); !ok {
				return fmt.Sprintf("%s at position %d", typeOf(item), i+1)
			}
		}
		return ""
	})
}

func requiredMemberFault(t Tool) string {
	if t.Name() == "" {
		return memberOf(t, "name")
	}
	if _, ok := t["description"].(string); !ok {
		return memberOf(t, "description")
	}
	if t.Input() == nil {
		return memberOf(t, "inputSchema")
	}
	return ""
}

// inventedMember finds a title or annotations on a tool whose method has none. Only the site can tell.
func (t *T) inventedMember(tool Tool) string {
	if t.Drupal == nil || !t.Claims("exposure-attribute") {
		return ""
	}
	m := t.methodOf(tool.Name())
	if m == nil || m.MCP == nil || m.Unchecked {
		return ""
	}
	if m.MCP.Title == "" && !absent(tool, "title") {
		return memberOf(tool, "title")
	}
	if annotations, _ := tool["annotations"].(map[string]any); m.MCP.Annotations == nil && len(annotations) > 0 {
		return memberOf(tool, "annotations")
	}
	return ""
}
