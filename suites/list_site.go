package suites

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// The checks of list that need a site of a certain size.
// checks__list__list_site are the checks of this file.
var checks__list__list_site = []Check{
	{ID: "list/page-size", Sees: Site, Run: chk__list__pageSize},
	{ID: "list/page-boundary-exact", Sees: Site, Run: chk__list__pageBoundaryExact},
	{ID: "list/empty-site", Sees: Site, Run: chk__list__emptySite},
	{ID: "list/cursor-no-leak", Sees: Site, Run: chk__list__cursorNoLeak},
	{ID: "list/change-between-pages", Sees: Site, Run: chk__list__changeBetweenPages},
}

func chk__list__pageSize(ctx context.Context, t *T) {
	list := t.steadyList(ctx)
	if len(list.Tools()) <= t.PageSize {
		list = t.allTools(ctx, t.serve(ctx, manyMethods("content.sized.", 2*t.PageSize+1)))
	}
	for i, page := range list.Pages {
		t.Row(page.Who, "", fmt.Sprintf("page %d", i+1), func() {
			t.Expect(page).To(HoldAtMost(t.PageSize))
			if i < len(list.Pages)-1 {
				t.Expect(page).To(BeFull(t.PageSize))
			}
		})
	}
}

func chk__list__pageBoundaryExact(ctx context.Context, t *T) {
	n := t.PageSize
	if list := t.steadyList(ctx); len(list.Pages) > 1 {
		n = len(list.Pages[0].Tools()) // what the bridge takes for a page; list/page-size judges that
	}
	t.Replace(ctx, t.Drupal.Site())
	for what, pages := range inOrder(map[string][]int{"exactly_one": {n}, "exactly_two": {n, n}, "one_more": {n, 1}}) {
		tools := 0
		for _, size := range pages {
			tools += size
		}
		caller := t.present(ctx, manyMethods("content."+what+".", tools))
		t.Row(caller.who, "", what, func() { t.Expect(t.allTools(ctx, caller)).To(HavePagesOf(pages...)) })
	}
}

func chk__list__emptySite(ctx context.Context, t *T) {
	t.steadyList(ctx)

	t.Replace(ctx, t.Drupal.Site())
	caller := t.present(ctx, nil)
	t.Row(caller.who, "", "on a site without a method", func() { t.Expect(caller.List(ctx)).To(BeNoTools()) })
	if !t.Claims("exposure-attribute") && !t.Claims("exposure-patterns") {
		return // every method is a tool
	}
	hidden := manyMethods("system.hidden.", 2)
	hidden[0].MCP, hidden[1].MCP = nil, nil
	caller = t.present(ctx, hidden)
	t.Row(caller.who, "", "on a site without a tool", func() { t.Expect(caller.List(ctx)).To(BeNoTools()) })

	// That one of two tools went shows to the same caller; so does it that the last one went.
	two := manyMethods("content.last.", 2)
	caller = t.present(ctx, append(two, hidden...))
	for _, left := range [][]fixtures.Method{two[1:], nil} {
		site := t.Drupal.Site().Clone()
		site.Methods = append(left, hidden...)
		t.Drupal.mock.SetSite(site)
		shown := t.Await(ctx, func() bool { return len(caller.List(ctx).Tools()) == len(left) })
		if len(left) > 0 && !shown {
			NotTestable("the bridge still shows a tool that is gone (fresh/ttl-expiry judges that)")
		}
	}
	t.Row(caller.who, "", "after the last tool went", func() { t.Expect(caller.List(ctx)).To(BeNoTools()) })
}

func chk__list__cursorNoLeak(ctx context.Context, t *T) {
	for _, who := range []Identity{Agent, Discoverer} {
		list := t.As(who).MustListAll(ctx)
		hidden := t.hiddenFrom(list)
		t.eachCaller(list.Pages, func(page *Response) { t.Expect(page).To(GiveAwayNone(hidden)) })
	}
	caller := t.serve(ctx, visibleAmongHidden(2*t.PageSize+1))
	list := t.allTools(ctx, caller)
	if len(list.Pages) < 2 {
		NotTestable(fmt.Sprintf("%d tools came without a cursor: it needs one", len(list.Tools())))
	}
	hidden := t.hiddenFrom(list)
	t.Row(caller.who, "", "hidden tools between the visible ones", func() {
		for _, page := range list.Pages {
			t.Expect(page).To(GiveAwayNone(hidden))
		}
	})
}

func chk__list__changeBetweenPages(ctx context.Context, t *T) {
	t.steadyList(ctx)
	caller := t.serve(ctx, manyMethods("content.changing.", 2*t.PageSize+1))
	first := caller.List(ctx).MustSucceed()
	if first.NextCursor() == "" {
		NotTestable("all tools came on one page: it needs two")
	}
	observer := t.newcomer()
	observer.List(ctx) // after the caller, so that what it remembers is no older
	removed := first.Tools()[0].Name()
	site := t.Drupal.Site().Clone()
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool { return t.ToolName(m.ID) == removed })
	t.Drupal.mock.SetSite(site)
	if !t.Await(ctx, func() bool { return !showsAny(observer.List(ctx), []string{removed}) }) {
		NotTestable("the bridge still shows a tool that is gone (fresh/ttl-expiry judges that)")
	}

	rest := caller.follow(ctx, first)
	t.Expect(rest).To(KeepWhatStayed(t.Visible(caller.who)))
}

// serve puts these methods in place of the site's for the rest of the running check: see present.
func (t *T) serve(ctx context.Context, methods []fixtures.Method) Client {
	t.Replace(ctx, t.Drupal.Site())
	return t.present(ctx, methods)
}

// present puts a site with the same accounts and other methods behind the bridge, waits until the bridge no longer
// shows the old ones, and gives a caller whom it has never seen, with the agent's permissions. Replace must have seen
// to it that the old site comes back.
func (t *T) present(ctx context.Context, methods []fixtures.Method) Client {
	caller := t.newcomer()
	old := t.Visible(caller.who)
	site := t.Drupal.Site().ClonePeople()
	site.Methods = methods
	t.Drupal.mock.SetSite(site)
	t.awaitShown(ctx, "that methods went", func() bool { return !showsAny(caller.List(ctx), old) })
	return caller
}

func showsAny(page *Response, names []string) bool {
	return slices.ContainsFunc(page.Tools(), func(t Tool) bool { return slices.Contains(names, t.Name()) })
}

// manyMethods are n exposed methods that ask for no permission, named with the prefix.
func manyMethods(prefix string, n int) []fixtures.Method {
	site, err := fixtures.Builtin(fmt.Sprintf("bulk-%d", n))
	if err != nil {
		panic(fmt.Sprintf("a check cannot make its own site: %v", err))
	}
	for i := range site.Methods {
		site.Methods[i].ID = fmt.Sprintf("%s%05d", prefix, i)
	}
	return site.Methods
}

// visibleAmongHidden are n methods that every caller sees, each followed by one that is no tool and one that only
// administrators may run: wherever a page ends, one of those is near.
func visibleAmongHidden(n int) []fixtures.Method {
	visible := manyMethods("content.plain.", n)
	secret, denied := manyMethods("system.secret.", n), manyMethods("content.denied.", n)
	var all []fixtures.Method
	for i := range visible {
		secret[i].MCP = nil
		denied[i].Access = []string{fixtures.AdministerSite}
		all = append(all, visible[i], secret[i], denied[i])
	}
	return all
}

// follow lists the pages behind the first one, which is the first of the listing.
func (c Client) follow(ctx context.Context, first *Response) Listing {
	list := Listing{Pages: []*Response{first}}
	for cursor := first.NextCursor(); cursor != "" && len(list.Pages) < maxPages; cursor = list.Last().NextCursor() {
		list.Pages = append(list.Pages, c.List(ctx, cursor))
	}
	return list
}

// KeepWhatStayed matches pages between which the site changed: each name stands on them once, or the old cursor is
// refused.
func KeepWhatStayed(names []string) OmegaMatcher {
	return &listingMatcher{expected: "each tool that stayed once, or 400 invalid_cursor for the cursor from before the change", judge: func(l Listing) string {
		last := l.Last()
		if last.Status == 400 && last.Code() == "invalid_cursor" {
			return ""
		}
		if last.IsError() {
			return last.Outcome()
		}
		shown := l.Names()
		for _, name := range names {
			if !slices.Contains(shown, name) {
				return fmt.Sprintf("no %q", name)
			}
		}
		if twice := repeated(shown); len(twice) > 0 {
			return "twice: " + fewOf(twice)
		}
		return ""
	}}
}

// hiddenFrom lists the ids of the site's methods that are not in a caller's list.
func (t *T) hiddenFrom(list Listing) []string {
	var hidden []string
	shown := list.Names()
	site := t.Drupal.Site()
	for i := range site.Methods {
		if id := site.Methods[i].ID; !slices.Contains(shown, t.ToolName(id)) && !t.collides(t.ToolName(id)) {
			hidden = append(hidden, id)
		}
	}
	return hidden
}

// GiveAwayNone matches a page whose cursor holds none of the names, in clear or encoded. A name that is part of one of
// the page's own tools' does not count.
func GiveAwayNone(hidden []string) OmegaMatcher {
	return Meet("a cursor that gives away no hidden name", func(a *Response) string {
		const tooShort = 5 // bytes that a random text may hold by chance
		for _, text := range decodings(a.NextCursor(), 3) {
			for _, tool := range a.Tools() {
				text = strings.ReplaceAll(text, tool.Name(), "")
			}
			for _, name := range hidden {
				if len(name) >= tooShort && strings.Contains(text, name) {
					return fmt.Sprintf("%q, in which %q can be read", a.NextCursor(), name)
				}
			}
		}
		return ""
	})
}

// decodings are a text and what it is when taken as percent-encoded, base64 of any alphabet, hexadecimal or JSON, and
// those of these again, to a depth.
func decodings(text string, depth int) []string {
	all := []string{text}
	if text == "" || depth == 0 {
		return all
	}
	bare := strings.TrimRight(text, "=")
	for _, decode := range []func() (string, error){
		func() (string, error) { return url.PathUnescape(text) },
		func() (string, error) { b, err := base64.RawStdEncoding.DecodeString(bare); return string(b), err },
		func() (string, error) { b, err := base64.RawURLEncoding.DecodeString(bare); return string(b), err },
		func() (string, error) { b, err := hex.DecodeString(text); return string(b), err },
		func() (string, error) { return strings.ReplaceAll(text, `\/`, `/`), nil },
	} {
		if decoded, err := decode(); err == nil && decoded != text {
			all = append(all, decodings(decoded, depth-1)...)
		}
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`.:;,|"{} `, r) }) {
		if part != text {
			all = append(all, decodings(part, depth-1)...)
		}
	}
	return all
}
