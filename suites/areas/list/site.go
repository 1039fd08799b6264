package list

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func pageSize(ctx context.Context, t *check.T) {
	list := steadyList(ctx, t)
	others := scenario.ListsOfOthers(ctx, t)
	if len(list.Tools()) <= t.PageSize {
		list = scenario.AllTools(ctx, t, scenario.Serve(ctx, t, scenario.ManyMethods("content.sized.", 2*t.PageSize+1)))
	}
	for _, list := range append(others, list) {
		haveFullPages(t, list)
	}
}

// haveFullPages tests that each page of a list but the last holds as many tools as a page has.
func haveFullPages(t *check.T, list check.Listing) {
	for i, page := range list.Pages {
		t.Row(page.Who, "", fmt.Sprintf("page %d", i+1), func() {
			t.Expect(page).To(haveAtMost(t.PageSize))
			if i < len(list.Pages)-1 {
				t.Expect(page).To(beFull(t.PageSize))
			}
		})
	}
}

func pageBoundaryExact(ctx context.Context, t *check.T) {
	n := t.PageSize
	if list := steadyList(ctx, t); len(list.Pages) > 1 {
		n = len(list.Pages[0].Tools()) // the page size of the bridge, which list/page-size tests
	}
	t.ReplaceForNewcomers(ctx, t.Drupal.Site())
	hidden := scenario.ManyMethods("system.hidden.", 1) // which takes no place on a page
	hidden[0].MCP = nil
	sites := map[string][]int{"exactly_one": {n}, "exactly_two": {n, n}, "three": {n, n, n}, "one_more": {n, 1}, "five": {n, n, n, n, n}}
	for what, pages := range check.InOrder(sites) {
		tools := 0
		for _, size := range pages {
			tools += size
		}
		methods := scenario.ManyMethods("content."+what+".", tools)
		if what == "exactly_one" && t.Marked() {
			methods = append(methods, hidden...)
		}
		caller := scenario.Present(ctx, t, methods)
		t.Row(caller.Who, "", what, func() { t.Expect(scenario.AllTools(ctx, t, caller)).To(havePagesOf(pages...)) })
		if what != "exactly_two" {
			continue
		}
		if s, opened := t.MCPBeside(ctx, caller.Who); opened {
			list := check.ListAllTools(ctx, s)
			t.Row(caller.Who, "", what+" over MCP", func() {
				t.Expect(list.Pages).To(HaveLen(len(pages)), check.Mismatch(fmt.Sprintf("tools/list of %d tools", tools), pageSizes(pages), fmt.Sprintf("%d pages", len(list.Pages))))
			})
		}
	}
}

func emptySite(ctx context.Context, t *check.T) {
	steadyList(ctx, t)
	soon := t.ShowsSoon() // which is not measured while another site is in place

	t.ReplaceForNewcomers(ctx, t.Drupal.Site())
	caller := scenario.Present(ctx, t, nil)
	t.Row(caller.Who, "", "on a site without methods", func() { t.Expect(caller.List(ctx)).To(beEmptyList()) })
	if !t.Marked() && !t.Claims("exposure-patterns") {
		return // every method is a tool
	}
	hidden := scenario.ManyMethods("system.hidden.", 2)
	hidden[0].MCP, hidden[1].MCP = nil, nil
	caller = scenario.Present(ctx, t, hidden)
	t.Row(caller.Who, "", "on a site without tools", func() { t.Expect(caller.List(ctx)).To(beEmptyList()) })
	restricted := slices.Clone(hidden)
	for i := range restricted {
		restricted[i].MCP, restricted[i].Access = &fixtures.Tool{}, []string{fixtures.AdministerSite}
	}
	caller = scenario.Present(ctx, t, restricted)
	if len(t.Visible(caller.Who)) == 0 {
		t.Row(caller.Who, "", "to a caller who may run none of the tools", func() { t.Expect(caller.List(ctx)).To(beEmptyList()) })
	}

	if !soon {
		return
	}
	// The caller first sees that one of two tools is removed, then that the last one is.
	two := scenario.ManyMethods("content.last.", 2)
	caller = scenario.Present(ctx, t, append(two, hidden...))
	for _, left := range [][]fixtures.Method{two[1:], nil} {
		site := t.Drupal.Site().Clone()
		site.Methods = append(left, hidden...)
		t.Drupal.Mock.SetSite(site)
		shown := t.Await(ctx, func() bool { return len(caller.List(ctx).Tools()) == len(left) })
		if len(left) > 0 && !shown {
			check.BlockedBy(check.Finding{Subject: "the bridge still lists a tool that was removed from the site"}, "fresh/ttl-expiry")
		}
	}
	t.Row(caller.Who, "", "after the last tool was removed", func() { t.Expect(caller.List(ctx)).To(beEmptyList()) })
}

func cursorNoLeak(ctx context.Context, t *check.T) {
	lists := []check.Listing{t.As(check.Agent).MustListAll(ctx)}
	if t.Drupal != nil {
		lists = append(lists, t.As(check.Discoverer).MustListAll(ctx))
	} else {
		lists = append(lists, scenario.ListsOfOthers(ctx, t)...)
	}
	tested := 0
	for _, list := range lists {
		hidden := hiddenFrom(t, list)
		tested += len(hidden) * (len(list.Pages) - 1)
		eachCaller(t, list.Pages, func(page *check.Response) { t.Expect(page).To(revealNone(hidden)) })
	}
	if t.Drupal == nil {
		if tested == 0 && len(lists[0].Pages) > 1 {
			check.NotTestable("every caller sees every method of the site: give credentials of one who does not")
		} else if tested == 0 {
			needsPages(lists[0])
		}
		return
	}
	caller := scenario.Serve(ctx, t, visibleAmongHidden(2*t.PageSize+1))
	list := scenario.AllTools(ctx, t, caller)
	if len(list.Pages) < 2 {
		blockedByOnePage(list)
	}
	hidden := hiddenFrom(t, list)
	t.Row(caller.Who, "", "hidden tools between the visible ones", func() {
		for _, page := range list.Pages {
			t.Expect(page).To(revealNone(hidden))
		}
	})
}

// addedID is the method that takes the place of a removed one.
const addedID = "content.changing.last"

func changeBetweenPages(ctx context.Context, t *check.T) {
	t.MustShowSoon()
	steadyList(ctx, t)
	caller := scenario.Serve(ctx, t, scenario.ManyMethods("content.changing.", 2*t.PageSize+1))
	observer := scenario.NewCaller(t)
	for _, replaced := range []bool{true, false} { // so that there are as many, or one less
		first := caller.List(ctx).MustSucceed("list/answers-json")
		if first.NextCursor() == "" {
			blockedByOnePage(check.Listing{Pages: []*check.Response{first}})
		}
		observer.List(ctx) // after the caller, so that its cached list is not older
		removed := first.Tools()[0].Name()
		site := t.Drupal.Site().Clone()
		site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool { return t.ToolName(m.ID) == removed })
		if replaced {
			added := site.Methods[0]
			added.ID = addedID
			site.Methods = append(site.Methods, added)
		}
		t.Drupal.Mock.SetSite(site)
		if !t.Await(ctx, func() bool { return !scenario.ShowsAny(observer.List(ctx), []string{removed}) }) {
			check.BlockedBy(check.Finding{Subject: "the bridge still lists a tool that was removed from the site"}, "fresh/ttl-expiry")
		}
		rest := follow(ctx, caller, first)
		unchanged := slices.DeleteFunc(t.Visible(caller.Who), func(name string) bool { return replaced && name == t.ToolName(addedID) })
		t.Expect(rest).To(keepUnchangedTools(unchanged))
	}

	first := caller.List(ctx)
	shown := first.Names()
	if first.NextCursor() == "" {
		return
	}
	observer.List(ctx)
	site := t.Drupal.Site().Clone()
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool { return !slices.Contains(shown, t.ToolName(m.ID)) })
	t.Drupal.Mock.SetSite(site)
	if t.Await(ctx, func() bool { return observer.List(ctx).NextCursor() == "" }) {
		behind := caller.List(ctx, first.NextCursor())
		t.Row(caller.Who, "", "when all tools behind a page are gone", func() {
			t.Expect(scenario.ShowsAny(behind, shown)).To(BeFalse(), check.Mismatch(behind.Subject(), "no tool of the page before, or 400 invalid_cursor", "tools that were there before"))
		})
	}
}

// visibleAmongHidden returns n methods that every caller sees, each followed by one that is not a tool and one that only
// administrators may run, so that hidden methods are next to the end of every page.
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

// follow returns a listing of the given first page and the pages that its cursor leads to.
func follow(ctx context.Context, c check.Client, first *check.Response) check.Listing {
	list := check.Listing{Pages: []*check.Response{first}}
	for cursor := first.NextCursor(); cursor != "" && len(list.Pages) < check.MaxPages; cursor = list.Last().NextCursor() {
		list.Pages = append(list.Pages, c.List(ctx, cursor))
	}
	return list
}

// keepUnchangedTools matches the pages of a list during which the site changed: each name is on them once, or the old
// cursor is refused.
func keepUnchangedTools(names []string) OmegaMatcher {
	return &match.ListingMatcher{Expected: "each unchanged tool once, or 400 invalid_cursor for the cursor from before the change", Fault: func(l check.Listing) string {
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

// hiddenFrom returns the ids of the site's methods that are not in a caller's list.
func hiddenFrom(t *check.T, list check.Listing) []string {
	var hidden []string
	shown := list.Names()
	for _, m := range t.Site.Methods() {
		if id := m.ID; !slices.Contains(shown, t.ToolName(id)) && !scenario.Collides(t, t.ToolName(id)) {
			hidden = append(hidden, id)
		}
	}
	return hidden
}

// revealNone matches a page whose cursor contains none of the names, in clear or encoded. A name that is part of the name
// of a tool on the page does not count.
func revealNone(hidden []string) OmegaMatcher {
	return match.Conform("a cursor that reveals no hidden name", func(r *check.Response) string {
		const minLength = 5 // of a name; random text may contain a shorter one by chance
		for _, text := range decodings(r.NextCursor(), 3) {
			for _, tool := range r.Tools() {
				text = strings.ReplaceAll(text, tool.Name(), "")
			}
			for _, name := range hidden {
				if len(name) >= minLength && strings.Contains(text, name) {
					return fmt.Sprintf("%q, which contains %q", r.NextCursor(), name)
				}
			}
		}
		return ""
	})
}

// inflate decompresses zlib, gzip or bare deflate data.
func inflate(data string) (string, error) {
	var r io.Reader
	switch {
	case strings.HasPrefix(data, "\x1f\x8b"):
		zipped, err := gzip.NewReader(strings.NewReader(data))
		if err != nil {
			return "", err
		}
		r = zipped
	case len(data) > 2 && data[0] == 'x':
		r = flate.NewReader(strings.NewReader(data[2:]))
	default:
		r = flate.NewReader(strings.NewReader(data))
	}
	text, err := io.ReadAll(io.LimitReader(r, 64<<10))
	return string(text), err
}

// decodings returns a text and its decodings from percent-encoding, base64 of any alphabet, hexadecimal, JSON and
// compression, and the decodings of these, down to a depth.
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
		func() (string, error) { return inflate(text) },
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
