package list

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func cursorBase64Offset(ctx context.Context, t *harness.T) {
	caller, list := severalPages(ctx, t)
	offset := 0
	for i, page := range list.Pages[:len(list.Pages)-1] {
		offset += len(page.Tools())
		t.Row(caller.Who, "", fmt.Sprintf("page %d", i+1), func() { t.Expect(page).To(HaveCursor(offsetCursor(offset))) })
		if bare := strings.TrimRight(page.NextCursor(), "="); bare != page.NextCursor() {
			t.Row(caller.Who, "", "without padding", func() { t.Expect(caller.List(ctx, bare)).To(ShowPage(list.Pages[i+1])) })
		}
	}
}

func cursorOpaqueRoundtrip(ctx context.Context, t *harness.T) {
	caller := scenario.NewCaller(t)
	if steadyPage(ctx, caller).NextCursor() == "" {
		caller, _ = severalPages(ctx, t)
	}
	cursor := steadyPage(ctx, caller).NextCursor()
	var second *harness.Response
	for _, sent := range []struct {
		how   string
		query string
		fresh bool
	}{
		{how: "percent-encoded", query: url.QueryEscape(cursor)},
		{how: "a second time", query: url.QueryEscape(cursor)},
		{how: "byte for byte", query: cursor},
		{how: "with every byte percent-encoded", query: harness.PercentEncoded(cursor)},
		{how: "on a fresh connection", query: url.QueryEscape(cursor), fresh: true},
	} {
		if value, err := url.QueryUnescape(sent.query); err != nil || value != cursor {
			continue // as it stands, this cursor means something else in a URL
		}
		r := caller.Send(ctx, harness.Request{Path: harness.ListPath, Raw: "cursor=" + sent.query, Fresh: sent.fresh})
		if second == nil { // what the others are held against
			second = r
			t.Expect(r).To(BeTools(), sent.how)
		}
		t.Row(caller.Who, "", sent.how, func() { t.Expect(r).To(ShowPage(second)) })
	}
}

func cursorPastEnd(ctx context.Context, t *harness.T) {
	total := len(steadyList(ctx, t).Tools())
	for _, offset := range []int{total, total + 1, total + t.PageSize, 1_000_000} {
		t.Row(harness.Agent, "", fmt.Sprintf("offset %d of %d", offset, total), func() {
			t.Expect(t.As(harness.Agent).List(ctx, offsetCursor(offset))).To(BeBehindTheEnd())
		})
	}
}

func cursorMalformed(ctx context.Context, t *harness.T) {
	list := steadyList(ctx, t)
	for _, c := range badCursors {
		t.Row(harness.Agent, "", c.what, func() {
			r := t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Raw: c.query})
			t.Expect(r).To(BeHarmless(c, list))
			if r.NextCursor() != "" && r.NextCursor() != list.Pages[0].NextCursor() {
				t.Expect(t.As(harness.Agent).List(ctx, r.NextCursor())).To(GoOnFrom(list, r))
			}
		})
	}
}

func cursorMalformed400(ctx context.Context, t *harness.T) {
	list := steadyList(ctx, t)
	for _, c := range badCursors {
		if !c.unmistakable && !(c.text && hasOffsets(list)) {
			continue
		}
		t.Row(harness.Agent, "", c.what, func() {
			r := t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Raw: c.query})
			if harmless, _ := BeHarmless(c, list).Match(r); harmless { // else list/cursor-malformed fails
				t.Expect(r).To(match.BeRefused(400, "invalid_cursor"))
			}
		})
	}
}

func cursorEmpty(ctx context.Context, t *harness.T) {
	list := steadyList(ctx, t)
	t.Expect(t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Raw: "cursor="})).To(ShowPage(list.Pages[0]))
}

func cursorOtherCaller(ctx context.Context, t *harness.T) {
	steadyList(ctx, t)
	agent, discoverer, admin := t.As(harness.Agent), t.As(harness.Discoverer), t.As(harness.Admin)
	judged := lendCursors(ctx, t, discoverer, agent) + lendCursors(ctx, t, discoverer, admin) + lendCursors(ctx, t, agent, admin) + lendCursors(ctx, t, admin, agent)
	if judged > 0 {
		return
	}
	few := scenario.Serve(ctx, t, visibleAmongHidden(t.PageSize+1))
	many := t.As(t.Drupal.NewUser(append(t.Permissions(harness.Agent), fixtures.AdministerSite)...))
	if lendCursors(ctx, t, few, many)+lendCursors(ctx, t, many, few) == 0 {
		harness.NotTestable("no caller gets a cursor: the site has fewer tools than a page holds")
	}
}

// lendCursors judges what the sender gets for each of the owner's cursors, and tells how many there were.
func lendCursors(ctx context.Context, t *harness.T, sender, owner harness.Client) (judged int) {
	own := sender.MustListAll(ctx)
	for _, page := range owner.MustListAll(ctx).Pages {
		if page.NextCursor() != "" {
			judged++
			t.Row(sender.Who, "", "the cursor of "+owner.Who.String(), func() { t.Expect(sender.List(ctx, page.NextCursor())).To(ShowNoneBut(own)) })
		}
	}
	return judged
}

// badCursor is a query whose cursor is none, with the offsets of the pages that a lenient reading may lead to beside
// the first.
type badCursor struct {
	what         string
	query        string
	numbers      []int // that the text begins with
	negative     bool
	unmistakable bool // no bridge can have made it
	text         bool // it is base64, but of no offset
	long         bool // a server may refuse it before it looks
}

var badCursors = []badCursor{
	{what: "not base64", query: "cursor=%21%21%21%21", unmistakable: true},
	{what: "no number", query: "cursor=" + encoded("abc"), text: true},
	{what: "not base64 and no number", query: "cursor=abc"},
	{what: "a bare number", query: "cursor=10", numbers: []int{10}},
	{what: "a number with more behind it", query: "cursor=" + encoded("10abc"), numbers: []int{10}, text: true},
	{what: "a decimal", query: "cursor=" + encoded("10.9"), numbers: []int{10}, text: true},
	{what: "minus one", query: "cursor=" + encoded("-1"), negative: true, text: true},
	{what: "minus five", query: "cursor=" + encoded("-5"), negative: true, text: true},
	{what: "far below zero", query: "cursor=" + encoded("-1000000"), negative: true, text: true},
	{what: "the least integer", query: "cursor=" + encoded("-9223372036854775808"), negative: true, text: true},
	{what: "a bare minus one", query: "cursor=-1", negative: true},
	{what: "the largest integer", query: "cursor=" + encoded("9223372036854775807")},
	{what: "a number of 20 digits", query: "cursor=" + encoded("99999999999999999999")},
	{what: "control characters", query: "cursor=%00%01%1B", unmistakable: true},
	{what: "a number with a line break", query: "cursor=" + encoded("50\n"), numbers: []int{50}},
	{what: "invalid UTF-8", query: "cursor=%FF%FE"},
	{what: "invalid UTF-8 in base64", query: "cursor=" + encoded("\xff\xfe5"), text: true},
	{what: "a number with an exponent", query: "cursor=" + encoded("1e1"), numbers: []int{1, 10}},
	{what: "a number with a sign", query: "cursor=" + encoded("+5"), numbers: []int{5}},
	{what: "a number behind a blank", query: "cursor=" + encoded(" 7"), numbers: []int{7}},
	{what: "a hexadecimal number", query: "cursor=" + encoded("0x10"), numbers: []int{16}},
	{what: "8 KiB", query: "cursor=" + strings.Repeat("A", 8<<10), long: true},
	{what: "cursor[]=", query: "cursor[]="},
	{what: "cursor[]=x, encoded", query: "cursor%5B%5D=x"},
}

func encoded(cursor string) string {
	return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(cursor)))
}

// offsetCursor is the cursor of an offset as cursor-base64-offset has it.
func offsetCursor(offset int) string {
	return base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(offset)))
}

// hasOffsets tells whether the list's own cursors are offsets in base64.
func hasOffsets(list harness.Listing) bool {
	first := list.Pages[0]
	return first.NextCursor() == offsetCursor(len(first.Tools()))
}

// mayStartAt tells whether a page that answers the cursor may start there. Where cursors are no offsets, all but one
// that says a negative number may mean something.
func (c badCursor) mayStartAt(offset int, list harness.Listing) bool {
	return offset == 0 || slices.Contains(c.numbers, offset) || !c.negative && !hasOffsets(list)
}

// BeHarmless matches an answer to a malformed cursor: 400 with the envelope, a page that may start there, or an empty
// last one.
func BeHarmless(c badCursor, list harness.Listing) OmegaMatcher {
	return match.Conform("400 with the envelope, the first page, the page of a leading number, or an empty last page", func(a *harness.Response) string {
		tools := a.Tools()
		switch {
		case a.Status == http.StatusBadRequest && a.Code() != "" && a.Message() != "":
			return ""
		case c.long && a.RefusedForLength():
			return ""
		case a.Status != http.StatusOK:
			return a.Outcome()
		case len(tools) == 0 && a.NextCursor() == "":
			return ""
		case len(tools) == 0:
			return "an empty page with a cursor: " + a.Outcome()
		}
		offset := slices.Index(list.Names(), tools[0].Name())
		if !isRun(list.Names(), offset, tools) {
			return "tools that do not follow each other in the list: " + a.Outcome()
		}
		if !c.mayStartAt(offset, list) {
			return fmt.Sprintf("the page from tool %d of %d", offset+1, len(list.Names()))
		}
		return ""
	})
}

// GoOnFrom matches the page after another one: it starts with the tool that follows.
func GoOnFrom(list harness.Listing, before *harness.Response) OmegaMatcher {
	return match.Conform("the tools after those of "+before.Subject(), func(a *harness.Response) string {
		names, shown := list.Names(), before.Tools()
		next := len(shown)
		if len(shown) > 0 {
			next += slices.Index(names, shown[0].Name())
		}
		tools := a.Tools()
		if a.Status != http.StatusOK || len(tools) == 0 {
			return a.Outcome()
		}
		if !isRun(names, next, tools) {
			return fmt.Sprintf("a page from %q on", tools[0].Name())
		}
		return ""
	})
}

// isRun tells whether tools are those of the list from an offset on.
func isRun(names []string, offset int, tools []harness.Tool) bool {
	if offset < 0 || offset+len(tools) > len(names) {
		return false
	}
	for i, t := range tools {
		if t.Name() != names[offset+i] {
			return false
		}
	}
	return true
}

// HaveCursor matches a page with this cursor.
func HaveCursor(cursor string) OmegaMatcher {
	return match.Conform(fmt.Sprintf("the cursor %q", cursor), func(a *harness.Response) string {
		if a.NextCursor() == cursor {
			return ""
		}
		return fmt.Sprintf("%q", a.NextCursor())
	})
}

// BeBehindTheEnd matches an answer to a cursor beyond the last tool.
func BeBehindTheEnd() OmegaMatcher {
	return match.Conform("200 with an empty `tools` array and no cursor, or 400", func(a *harness.Response) string {
		_, ok := a.Member("tools") // list/has-tools-array judges its form
		if a.Status == http.StatusBadRequest || a.Status == http.StatusOK && ok && len(a.Tools()) == 0 && a.NextCursor() == "" {
			return ""
		}
		return a.Outcome()
	})
}

// ShowNoneBut matches an answer of tools that are all in the listing, or 400.
func ShowNoneBut(own harness.Listing) OmegaMatcher {
	return match.Conform("tools of the sender's own, or 400", func(a *harness.Response) string {
		switch a.Status {
		case http.StatusBadRequest:
			return ""
		case http.StatusOK:
			foreign := slices.DeleteFunc(namesOn(a), func(n string) bool { return slices.Contains(own.Names(), n) })
			return match.Abbreviate(foreign)
		}
		return a.Outcome()
	})
}

// steadyPage is the caller's first page. Where it cannot be read, or is another one each time, the check is not
// testable.
func steadyPage(ctx context.Context, caller harness.Client) *harness.Response {
	page := caller.List(ctx)
	if page.Status != http.StatusOK {
		harness.BlockedBy(harness.Finding{Subject: "there is no list of tools" + ": " + page.Outcome()}, "list/answers-json")
	}
	scenario.MustBeReadable(harness.Listing{Pages: []*harness.Response{page}})
	if d := match.OtherNames(namesOn(page), namesOn(caller.List(ctx))); d != "" {
		harness.BlockedBy(harness.Finding{Subject: "the list is another one each time" + ": " + d}, "list/order-stable")
	}
	return page
}

// severalPages is a caller whose tools fill more than a page, with all of them: the agent, where the mock's site has
// too few tools on a larger one.
func severalPages(ctx context.Context, t *harness.T) (harness.Client, harness.Listing) {
	list := steadyList(ctx, t)
	if len(list.Pages) > 1 {
		return t.As(harness.Agent), list
	}
	if t.Drupal == nil || len(scenario.MustShow(t, harness.Agent)) > t.PageSize {
		harness.NotTestable(fmt.Sprintf("all %d tools of the agent came on one page: it needs two", len(list.Tools())))
	}
	caller := scenario.Serve(ctx, t, scenario.ManyMethods("content.more.", 2*t.PageSize+1))
	list = scenario.AllTools(ctx, t, caller)
	if len(list.Pages) < 2 {
		harness.NotTestable(fmt.Sprintf("%d tools came on one page: it needs two", len(list.Tools())))
	}
	return caller, list
}
