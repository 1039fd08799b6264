package list

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
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// The checks of list that need a site of a certain size.
func pageSize(ctx context.Context, t *harness.T) {
	list := steadyList(ctx, t)
	if len(list.Tools()) <= t.PageSize {
		list = scenario.AllTools(ctx, t, scenario.Serve(ctx, t, scenario.ManyMethods("content.sized.", 2*t.PageSize+1)))
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

func pageBoundaryExact(ctx context.Context, t *harness.T) {
	n := t.PageSize
	if list := steadyList(ctx, t); len(list.Pages) > 1 {
		n = len(list.Pages[0].Tools()) // what the bridge takes for a page; list/page-size judges that
	}
	t.Replace(ctx, t.Drupal.Site())
	for what, pages := range harness.InOrder(map[string][]int{"exactly_one": {n}, "exactly_two": {n, n}, "one_more": {n, 1}}) {
		tools := 0
		for _, size := range pages {
			tools += size
		}
		caller := scenario.Present(ctx, t, scenario.ManyMethods("content."+what+".", tools))
		t.Row(caller.Who, "", what, func() { t.Expect(scenario.AllTools(ctx, t, caller)).To(HavePagesOf(pages...)) })
	}
}

func emptySite(ctx context.Context, t *harness.T) {
	steadyList(ctx, t)

	t.Replace(ctx, t.Drupal.Site())
	caller := scenario.Present(ctx, t, nil)
	t.Row(caller.Who, "", "on a site without a method", func() { t.Expect(caller.List(ctx)).To(BeNoTools()) })
	if !t.Claims("exposure-attribute") && !t.Claims("exposure-patterns") {
		return // every method is a tool
	}
	hidden := scenario.ManyMethods("system.hidden.", 2)
	hidden[0].MCP, hidden[1].MCP = nil, nil
	caller = scenario.Present(ctx, t, hidden)
	t.Row(caller.Who, "", "on a site without a tool", func() { t.Expect(caller.List(ctx)).To(BeNoTools()) })

	// That one of two tools went shows to the same caller; so does it that the last one went.
	two := scenario.ManyMethods("content.last.", 2)
	caller = scenario.Present(ctx, t, append(two, hidden...))
	for _, left := range [][]fixtures.Method{two[1:], nil} {
		site := t.Drupal.Site().Clone()
		site.Methods = append(left, hidden...)
		t.Drupal.Mock.SetSite(site)
		shown := t.Await(ctx, func() bool { return len(caller.List(ctx).Tools()) == len(left) })
		if len(left) > 0 && !shown {
			harness.BlockedBy(harness.Finding{Subject: "the bridge still shows a tool that is gone"}, "fresh/ttl-expiry")
		}
	}
	t.Row(caller.Who, "", "after the last tool went", func() { t.Expect(caller.List(ctx)).To(BeNoTools()) })
}

func cursorNoLeak(ctx context.Context, t *harness.T) {
	for _, who := range []harness.Identity{harness.Agent, harness.Discoverer} {
		list := t.As(who).MustListAll(ctx)
		hidden := hiddenFrom(t, list)
		eachCaller(t, list.Pages, func(page *harness.Response) { t.Expect(page).To(GiveAwayNone(hidden)) })
	}
	caller := scenario.Serve(ctx, t, visibleAmongHidden(2*t.PageSize+1))
	list := scenario.AllTools(ctx, t, caller)
	if len(list.Pages) < 2 {
		harness.NotTestable(fmt.Sprintf("%d tools came without a cursor: it needs one", len(list.Tools())))
	}
	hidden := hiddenFrom(t, list)
	t.Row(caller.Who, "", "hidden tools between the visible ones", func() {
		for _, page := range list.Pages {
			t.Expect(page).To(GiveAwayNone(hidden))
		}
	})
}

func changeBetweenPages(ctx context.Context, t *harness.T) {
	steadyList(ctx, t)
	caller := scenario.Serve(ctx, t, scenario.ManyMethods("content.changing.", 2*t.PageSize+1))
	first := caller.List(ctx).MustSucceed()
	if first.NextCursor() == "" {
		harness.NotTestable("all tools came on one page: it needs two")
	}
	observer := scenario.NewCaller(t)
	observer.List(ctx) // after the caller, so that what it remembers is no older
	removed := first.Tools()[0].Name()
	site := t.Drupal.Site().Clone()
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool { return t.ToolName(m.ID) == removed })
	t.Drupal.Mock.SetSite(site)
	if !t.Await(ctx, func() bool { return !scenario.ShowsAny(observer.List(ctx), []string{removed}) }) {
		harness.BlockedBy(harness.Finding{Subject: "the bridge still shows a tool that is gone"}, "fresh/ttl-expiry")
	}

	rest := follow(ctx, caller, first)
	t.Expect(rest).To(KeepWhatStayed(t.Visible(caller.Who)))
}

// visibleAmongHidden are n methods that every caller sees, each followed by one that is no tool and one that only
// administrators may run: wherever a page ends, one of those is near.
func visibleAmongHidden(n int) []fixtures.Method {
	visible := scenario.ManyMethods("content.plain.", n)
	secret, denied := scenario.ManyMethods("system.secret.", n), scenario.ManyMethods("content.denied.", n)
	var all []fixtures.Method
	for i := range visible {
		secret[i].MCP = nil
		denied[i].Access = []string{fixtures.AdministerSite}
		all = append(all, visible[i], secret[i], denied[i])
	}
	return all
}

// follow lists the pages behind the first one, which is the first of the listing.
func follow(ctx context.Context, c harness.Client, first *harness.Response) harness.Listing {
	list := harness.Listing{Pages: []*harness.Response{first}}
	for cursor := first.NextCursor(); cursor != "" && len(list.Pages) < harness.MaxPages; cursor = list.Last().NextCursor() {
		list.Pages = append(list.Pages, c.List(ctx, cursor))
	}
	return list
}

// KeepWhatStayed matches pages between which the site changed: each name stands on them once, or the old cursor is
// refused.
func KeepWhatStayed(names []string) OmegaMatcher {
	return &match.ListingMatcher{Expected: "each tool that stayed once, or 400 invalid_cursor for the cursor from before the change", Judge: func(l harness.Listing) string {
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
		if twice := match.Repeated(shown); len(twice) > 0 {
			return "twice: " + match.Abbreviate(twice)
		}
		return ""
	}}
}

// hiddenFrom lists the ids of the site's methods that are not in a caller's list.
func hiddenFrom(t *harness.T, list harness.Listing) []string {
	var hidden []string
	shown := list.Names()
	site := t.Drupal.Site()
	for i := range site.Methods {
		if id := site.Methods[i].ID; !slices.Contains(shown, t.ToolName(id)) && !scenario.Collides(t, t.ToolName(id)) {
			hidden = append(hidden, id)
		}
	}
	return hidden
}

// GiveAwayNone matches a page whose cursor holds none of the names, in clear or encoded. A name that is part of one of
// the page's own tools' does not count.
func GiveAwayNone(hidden []string) OmegaMatcher {
	return match.Conform("a cursor that gives away no hidden name", func(a *harness.Response) string {
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
