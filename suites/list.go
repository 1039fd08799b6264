package suites

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"bridgecheck/fixtures"
)

var _ = Area("list", func(b *Bridge) {
	b.Check("list/answers-json", func(ctx SpecContext) {
		list := b.As(Agent).ListAll(ctx)
		first := list.Pages[0]
		if b.Drupal == nil && (first.Status == http.StatusUnauthorized || first.Status == http.StatusForbidden) {
			NotTestable("the bridge refuses the agent: give the credentials of a caller who may discover tools")
		}
		Expect(first).To(HaveStatus(200))
		for _, page := range list.Pages {
			if page.Status == http.StatusOK {
				Expect(page).To(BeJSON())
			}
		}
	})

	b.Check("list/has-tools-array", func(ctx SpecContext) {
		for _, page := range append(b.pages(ctx), b.pagesWithoutTools(ctx)...) {
			Expect(page).To(HaveToolsArray())
		}
	})

	b.Check("list/next-cursor-type", func(ctx SpecContext) {
		for _, page := range b.pages(ctx) {
			Expect(page).To(HaveACursorOrNone())
		}
	})

	b.Check("list/tool-required-members", func(ctx SpecContext) {
		for _, page := range b.allTools(ctx, b.As(Agent)).Pages {
			Expect(page).To(HoldObjectsAlone())
			Expect(page).To(HoldTools("a non-empty string `name`, a string `description` and an object `inputSchema`", requiredMemberFault))
		}
	})

	b.Check("list/tool-optional-members", func(ctx SpecContext) {
		for _, page := range b.allTools(ctx, b.As(Agent)).Pages {
			Expect(page).To(HoldTools("`title` to be a non-empty string or absent", func(t Tool) string {
				if title, ok := t["title"].(string); absent(t, "title") || ok && title != "" {
					return ""
				}
				return memberOf(t, "title")
			}))
			for _, name := range []string{"outputSchema", "annotations"} {
				Expect(page).To(HoldTools("`"+name+"` to be an object or absent", func(t Tool) string {
					if _, ok := t[name].(map[string]any); ok || absent(t, name) {
						return ""
					}
					return memberOf(t, name)
				}))
			}
			Expect(page).To(HoldTools("neither title nor annotations where the method has none", b.inventedMember))
		}
	})

	b.Check("list/description-not-empty", func(ctx SpecContext) {
		for _, page := range b.allTools(ctx, b.As(Agent)).Pages {
			Expect(page).To(HoldTools("a `description` with something in it", func(t Tool) string {
				if t["description"] == "" {
					return `""`
				}
				return ""
			}))
		}
	})

	b.Check("list/names-unique", func(ctx SpecContext) {
		Expect(b.allTools(ctx, b.As(Agent))).To(HaveNoNameTwice())
	})

	b.Check("list/order-stable", func(ctx SpecContext) {
		first := b.allTools(ctx, b.As(Agent))
		Expect(b.allTools(ctx, b.As(Agent))).To(ListSame(first), "listed twice")
		b.expire()
		Expect(b.allTools(ctx, b.As(Agent))).To(ListSame(first), "listed again after all caches ran out")
	})

	b.Check("list/pages-cover-all-once", func(ctx SpecContext) {
		b.pages(ctx)
		list := b.As(Agent).ListAll(ctx)
		mustBeReadable(list)
		Expect(list).To(CoverOnce(b.mustShow(Agent)))
	})

	b.Check("list/unknown-query-ignored", func(ctx SpecContext) {
		_, list := b.severalPages(ctx)
		for i, page := range list.Pages[:min(2, len(list.Pages))] {
			query := "bridgecheck_unknown=1&x%5B%5D=%20"
			if i > 0 {
				query += "&" + page.RawQuery
			}
			Expect(b.As(Agent).Send(ctx, Request{Path: ListPath, Raw: query})).To(ShowPage(page))
		}
	})

	b.Check("list/only-marked-methods", func(ctx SpecContext) {
		marked := map[string]bool{}
		for _, id := range b.Drupal.Site().Exposed() {
			marked[b.ToolName(id)] = true
		}
		for _, who := range []Identity{Agent, Admin} {
			for _, page := range b.allTools(ctx, b.As(who)).Pages {
				Expect(page).To(HoldTools("the McpTool attribute", func(t Tool) string {
					if marked[t.Name()] || b.collides(t.Name()) {
						return ""
					}
					return "none on the site's method"
				}))
			}
		}
	})
})

// pages are the agent's pages that came with 200 and an object as body; without any, the check is not testable.
func (b *Bridge) pages(ctx context.Context) []*Answer {
	var pages []*Answer
	list := b.As(Agent).ListAll(ctx)
	for _, page := range list.Pages {
		if page.Status == http.StatusOK && page.Object() != nil {
			pages = append(pages, page)
		}
	}
	if len(pages) == 0 {
		NotTestable("there is no list of tools (list/answers-json judges that): " + list.Fault)
	}
	return pages
}

// pagesWithoutTools are pages that should be empty, as far as the bridge gives any: behind the end, and of a caller who
// may not use JSON-RPC.
func (b *Bridge) pagesWithoutTools(ctx context.Context) []*Answer {
	var asked, pages []*Answer
	if b.Claims("cursor-base64-offset") {
		asked = append(asked, b.As(Agent).List(ctx, offsetCursor(1_000_000)))
	}
	if b.Drupal != nil {
		asked = append(asked, b.As(b.Drupal.NewUser(fixtures.DiscoverTools)).List(ctx))
	}
	for _, page := range asked {
		if page.Status == http.StatusOK && page.Object() != nil {
			pages = append(pages, page)
		}
	}
	return pages
}

// allTools lists all that the caller sees. Where the list fails, is empty or cannot be followed to its end, the check
// is not testable: other clauses judge that.
func (b *Bridge) allTools(ctx context.Context, caller Client) Listing {
	list := caller.MustListAll(ctx)
	mustBeReadable(list)
	if len(list.Tools()) == 0 {
		NotTestable(mismatch(list.Pages[0].Subject(), "tools", "none"))
	}
	return list
}

// mustBeReadable makes the check not testable where a cursor cannot be sent back because it is no string.
func mustBeReadable(list Listing) {
	if cursor, ok := list.Last().Member("nextCursor"); ok && cursor != nil && cursor != false {
		if _, text := cursor.(string); !text {
			NotTestable("the list cannot be followed: its `nextCursor` is " + typeOf(cursor) + " (list/next-cursor-type judges that)")
		}
	}
}

// mustShow names the tools that the caller must find in the list. Not among them are those that a bridge may leave out
// or whose name the contract does not foretell. Without a site, or with exposure by patterns, nobody knows any.
func (b *Bridge) mustShow(who Identity) []string {
	if b.Drupal == nil || !b.Claims("exposure-attribute") {
		return nil
	}
	var names []string
	for _, name := range b.Visible(who) {
		if m := b.methodOf(name); m != nil && !m.ByPosition && translatable(b, m) {
			names = append(names, name)
		}
	}
	return names
}

// translatable tells whether the bridge has to understand the method's schemas.
func translatable(b *Bridge, m *fixtures.Method) bool {
	if m.Unchecked {
		return false
	}
	for _, p := range m.Params {
		if p.Drupal != nil && !b.Claims("drupal-types") {
			return false
		}
	}
	return true
}

// methodOf is the site's method that a tool's name belongs to; nil where there is none, or more than one.
func (b *Bridge) methodOf(name string) *fixtures.Method {
	var found *fixtures.Method
	site := b.Drupal.Site()
	for i := range site.Methods {
		if b.ToolName(site.Methods[i].ID) == name {
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
	return Meet("every tool to be an object", func(a *Answer) string {
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
func (b *Bridge) inventedMember(t Tool) string {
	if b.Drupal == nil || !b.Claims("exposure-attribute") {
		return ""
	}
	m := b.methodOf(t.Name())
	if m == nil || m.MCP == nil || m.Unchecked {
		return ""
	}
	if m.MCP.Title == "" && !absent(t, "title") {
		return memberOf(t, "title")
	}
	if annotations, _ := t["annotations"].(map[string]any); m.MCP.Annotations == nil && len(annotations) > 0 {
		return memberOf(t, "annotations")
	}
	return ""
}
