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
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func cursorBase64Offset(ctx context.Context, t *check.T) {
	caller, list := severalPages(ctx, t)
	offset := 0
	for i, page := range list.Pages[:len(list.Pages)-1] {
		offset += len(page.Tools())
		t.Row(caller.Who, "", fmt.Sprintf("page %d", i+1), func() { t.Expect(page).To(haveCursor(offsetCursor(offset))) })
		if bare := strings.TrimRight(page.NextCursor(), "="); bare != page.NextCursor() {
			t.Row(caller.Who, "", "without padding", func() { t.Expect(caller.List(ctx, bare)).To(showPage(list.Pages[i+1])) })
		}
	}
}

func cursorOpaqueRoundtrip(ctx context.Context, t *check.T) {
	caller := scenario.NewCaller(t)
	if steadyPage(ctx, caller).NextCursor() == "" {
		caller, _ = severalPages(ctx, t)
	}
	cursor := steadyPage(ctx, caller).NextCursor()
	if t.Drupal != nil {
		t.As(check.Admin).List(ctx) // whose other list makes no cursor void
	}
	var second *check.Response
	for _, sent := range []struct {
		how   string
		query string
		fresh bool
	}{
		{how: "percent-encoded", query: url.QueryEscape(cursor)},
		{how: "a second time", query: url.QueryEscape(cursor)},
		{how: "byte for byte", query: cursor},
		{how: "with every byte percent-encoded", query: client.PercentEncoded(cursor)},
		{how: "with every byte percent-encoded, in lower case", query: strings.ToLower(client.PercentEncoded(cursor))},
		{how: "on a fresh connection", query: url.QueryEscape(cursor), fresh: true},
	} {
		if value, err := url.QueryUnescape(sent.query); err != nil || value != cursor {
			continue // unencoded, this cursor has another meaning in a URL
		}
		r := caller.Send(ctx, check.Request{Path: check.ListPath, Raw: "cursor=" + sent.query, Fresh: sent.fresh})
		if second == nil { // the page that the others must equal
			second = r
			t.Expect(r).To(beToolList(), sent.how)
		}
		t.Row(caller.Who, "", sent.how, func() { t.Expect(r).To(showPage(second)) })
	}
	list := scenario.AllTools(ctx, t, caller)
	if last := len(list.Pages) - 1; last > 1 {
		again := caller.List(ctx, list.Pages[last-1].NextCursor())
		t.Row(caller.Who, "", "that of the last page a second time", func() { t.Expect(again).To(showPage(list.Pages[last])) })
	}
	if list.Pages[0].NextCursor() != cursor { // each response has cursors of its own, of which a bridge may keep too few
		for range 20 {
			caller.List(ctx)
		}
		t.Row(caller.Who, "", "after twenty further lists", func() { t.Expect(caller.List(ctx, cursor)).To(showPage(second)) })
	}
	if t.Drupal != nil && t.OutlastTTL(ctx, 2*time.Second) {
		caller.List(ctx)
		t.Row(caller.Who, "", "after the bridge has fetched the same list again", func() { t.Expect(caller.List(ctx, cursor)).To(showPage(second)) })
	}
}

func cursorPastEnd(ctx context.Context, t *check.T) {
	total := len(steadyList(ctx, t).Tools())
	caller := scenario.NewCaller(t) // to the agent it may have given such a cursor when there were more tools
	for _, offset := range []int{total, total + 1, total + t.PageSize, 1_000_000} {
		t.Row(caller.Who, "", fmt.Sprintf("offset %d of %d", offset, total), func() {
			t.Expect(caller.List(ctx, offsetCursor(offset))).To(bePastEnd())
		})
	}
}

func cursorMalformed(ctx context.Context, t *check.T) {
	list := steadyList(ctx, t)
	bad := append(slices.Clone(badCursors), besideOwn(list)...)
	sent := sendCursors(ctx, t, bad)
	for i, c := range bad {
		t.Row(check.Agent, "", c.what, func() {
			r := sent.Response(i)
			t.Expect(r).To(beHarmless(c, list))
			if r.NextCursor() != "" {
				t.Expect(t.As(check.Agent).List(ctx, r.NextCursor())).To(continueAfter(list, r))
			}
		})
	}
}

// sendCursors is the table of the agent's lists with such cursors.
func sendCursors(ctx context.Context, t *check.T, cursors []badCursor) *check.Table {
	return t.Table(len(cursors), func(i int) *check.Response {
		return t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Raw: cursors[i].query})
	}).Shared(func(i int) string { return "list as the agent with " + cursors[i].query })
}

func cursorMalformed400(ctx context.Context, t *check.T) {
	list := steadyList(ctx, t)
	bad := append(slices.Clone(badCursors), besideOwn(list)...)
	sent := sendCursors(ctx, t, bad)
	for i, c := range bad {
		if !c.unmistakable && !(c.text && hasOffsets(list)) {
			continue
		}
		t.Row(check.Agent, "", c.what, func() {
			r := sent.Response(i)
			if harmless, _ := beHarmless(c, list).Match(r); harmless { // else list/cursor-malformed fails
				t.Expect(r).To(match.BeRefused(400, "invalid_cursor"))
			}
		})
	}
}

func cursorEmpty(ctx context.Context, t *check.T) {
	list := steadyList(ctx, t)
	t.Expect(t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Raw: "cursor="})).To(showPage(list.Pages[0]))
}

func cursorOtherCaller(ctx context.Context, t *check.T) {
	steadyList(ctx, t)
	agent, discoverer, admin := t.As(check.Agent), t.As(check.Discoverer), t.As(check.Admin)
	sent := lendCursors(ctx, t, discoverer, agent) + lendCursors(ctx, t, discoverer, admin) + lendCursors(ctx, t, agent, admin) + lendCursors(ctx, t, admin, agent)
	if sent > 0 {
		return
	}
	few := scenario.Serve(ctx, t, visibleAmongHidden(t.PageSize+1))
	many := t.As(t.Drupal.NewUser(append(t.Permissions(check.Agent), fixtures.AdministerSite)...))
	if lendCursors(ctx, t, few, many)+lendCursors(ctx, t, many, few) == 0 {
		check.BlockedBy(check.Mismatch(fmt.Sprintf("the list of %d tools", t.PageSize+1), "a cursor", "none"), "list/page-size")
	}
}

// lendCursors tests what the sender gets for each of the owner's cursors, and returns how many there were.
func lendCursors(ctx context.Context, t *check.T, sender, owner check.Client) (cursors int) {
	own := sender.MustListAll(ctx)
	for _, page := range owner.MustListAll(ctx).Pages {
		if page.NextCursor() != "" {
			cursors++
			owner.List(ctx) // of which a bridge may keep the rest for whoever asks for it
			t.Row(sender.Who, "", "the cursor of "+owner.Who.String(), func() { t.Expect(sender.List(ctx, page.NextCursor())).To(showOnly(own)) })
		}
	}
	return cursors
}

// badCursor is a query with a malformed cursor, and what a lenient bridge may take it for.
type badCursor struct {
	what         string
	query        string
	numbers      []int // offsets at which the page may start, besides 0
	negative     bool  // it is a negative number
	unmistakable bool  // no bridge can have issued it
	text         bool  // it is the base64 form of something that is not an offset
	long         bool  // a server may refuse it for its length before routing
}

var badCursors = []badCursor{
	{what: "not base64", query: "cursor=%21%21%21%21", unmistakable: true},
	{what: "text in base64", query: "cursor=" + encoded("abc"), text: true},
	{what: "bare text", query: "cursor=abc"},
	{what: "a bare number", query: "cursor=50", numbers: []int{50}, text: true},
	{what: "a number in base64 with another character within", query: "cursor=N%21TA=", numbers: []int{50}, text: true},
	{what: "a blank", query: "cursor=%20", unmistakable: true},
	{what: "a number followed by text", query: "cursor=" + encoded("50abc"), numbers: []int{50}, text: true},
	{what: "a decimal", query: "cursor=" + encoded("50.9"), numbers: []int{50}, text: true},
	{what: "minus one", query: "cursor=" + encoded("-1"), negative: true, text: true},
	{what: "minus five", query: "cursor=" + encoded("-5"), negative: true, text: true},
	{what: "minus a million", query: "cursor=" + encoded("-1000000"), negative: true, text: true},
	{what: "the smallest integer", query: "cursor=" + encoded("-9223372036854775808"), negative: true, text: true},
	{what: "a bare minus one", query: "cursor=-1", negative: true},
	{what: "the largest integer", query: "cursor=" + encoded("9223372036854775807")},
	{what: "a number of 33 bits", query: "cursor=" + encoded("4294967297")},
	{what: "a number of 20 digits", query: "cursor=" + encoded("99999999999999999999")},
	{what: "control characters", query: "cursor=%00%01%1B", unmistakable: true},
	{what: "a number with a line break", query: "cursor=" + encoded("50\n"), numbers: []int{50}, text: true},
	{what: "invalid UTF-8", query: "cursor=%FF%FE"},
	{what: "invalid UTF-8 in base64", query: "cursor=" + encoded("\xff\xfe5"), text: true},
	{what: "a number with an exponent", query: "cursor=" + encoded("5e1"), numbers: []int{5, 50}, text: true},
	{what: "a number with a sign", query: "cursor=" + encoded("+50"), numbers: []int{50}, text: true},
	{what: "a number after a blank", query: "cursor=" + encoded(" 50"), numbers: []int{50}, text: true},
	{what: "a hexadecimal number", query: "cursor=" + encoded("0x32"), numbers: []int{50}, text: true},
	{what: "8 KiB, a number of 6144 digits in base64", query: "cursor=" + encoded(strings.Repeat("9", 6<<10)), long: true},
	{what: "cursor[]=", query: "cursor[]="},
	{what: "cursor[]=x, encoded", query: "cursor%5B%5D=x"},
}

// besideOwn are cursors that are one of the bridge's own but for a character or two; none where it has one page.
func besideOwn(list check.Listing) []badCursor {
	own := url.QueryEscape(list.Pages[0].NextCursor())
	if own == "" {
		return nil
	}
	next := []int{len(list.Pages[0].Tools())}
	beside := []badCursor{
		{what: "a minus before one of its own", query: "cursor=-" + own, negative: true, numbers: next},
		{what: "text behind one of its own", query: "cursor=" + own + "%20%21", numbers: next, unmistakable: true},
	}
	if hasOffsets(list) { // badCursors has these
		return beside
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		digits, err := encoding.DecodeString(list.Pages[0].NextCursor())
		if _, notNumber := strconv.ParseUint(string(digits), 10, 64); err != nil || notNumber != nil {
			continue
		}
		for what, text := range check.InOrder(map[string]string{"a blank before": " " + string(digits), "a line break behind": string(digits) + "\n"}) {
			query := "cursor=" + url.QueryEscape(encoding.EncodeToString([]byte(text)))
			beside = append(beside, badCursor{what: what + " the number in one of its own", query: query, numbers: next, unmistakable: true})
		}
		break
	}
	return beside
}

func encoded(cursor string) string {
	return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(cursor)))
}

// offsetCursor returns the cursor of an offset under the capability cursor-base64-offset.
func offsetCursor(offset int) string {
	return base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(offset)))
}

// hasOffsets reports whether the bridge's own cursors are offsets in base64.
func hasOffsets(list check.Listing) bool {
	first := list.Pages[0]
	return first.NextCursor() == offsetCursor(len(first.Tools()))
}

// mayStartAt reports whether the page for this cursor may start at the offset. If the bridge's cursors are not offsets,
// any of them but a negative number may be valid.
func (c badCursor) mayStartAt(offset int, list check.Listing) bool {
	return offset == 0 || slices.Contains(c.numbers, offset) || !c.negative && !hasOffsets(list)
}

// beHarmless matches a response to a malformed cursor: 400 with the envelope, a page that may start there, or an empty
// last page.
func beHarmless(c badCursor, list check.Listing) OmegaMatcher {
	return match.Conform("400 with the envelope, the first page, the page of a leading number, or an empty last page", func(r *check.Response) string {
		tools := r.Tools()
		switch {
		case r.Status == http.StatusBadRequest && r.Code() != "" && r.Message() != "":
			return ""
		case c.long && r.RefusedForLength():
			return ""
		case r.Status != http.StatusOK:
			return r.Outcome()
		case len(tools) == 0 && r.NextCursor() == "":
			return ""
		case len(tools) == 0:
			return "an empty page with a cursor: " + r.Outcome()
		}
		offset := slices.Index(list.Names(), tools[0].Name())
		if !isRun(list.Names(), offset, tools) {
			return "tools that do not follow each other in the list: " + r.Outcome()
		}
		if !c.mayStartAt(offset, list) {
			return fmt.Sprintf("the page from tool %d of %d", offset+1, len(list.Names()))
		}
		return ""
	})
}

// continueAfter matches the page that starts with the tool after the last tool of another page.
func continueAfter(list check.Listing, before *check.Response) OmegaMatcher {
	return match.Conform("the tools that follow those of "+before.Subject(), func(r *check.Response) string {
		names, shown := list.Names(), before.Tools()
		next := len(shown)
		if len(shown) > 0 {
			next += slices.Index(names, shown[0].Name())
		}
		tools := r.Tools()
		if r.Status != http.StatusOK || len(tools) == 0 {
			return r.Outcome()
		}
		if !isRun(names, next, tools) {
			return fmt.Sprintf("a page that starts with %q", tools[0].Name())
		}
		return ""
	})
}

// isRun reports whether the tools are those of the list from an offset on.
func isRun(names []string, offset int, tools []check.Tool) bool {
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

// haveCursor matches a page with this cursor.
func haveCursor(cursor string) OmegaMatcher {
	return match.Conform(fmt.Sprintf("the cursor %q", cursor), func(r *check.Response) string {
		if r.NextCursor() == cursor {
			return ""
		}
		return fmt.Sprintf("%q", r.NextCursor())
	})
}

// bePastEnd matches a response to a cursor past the last tool.
func bePastEnd() OmegaMatcher {
	return match.Conform("200 with an empty `tools` array and no cursor, or 400", func(r *check.Response) string {
		_, ok := r.Member("tools") // list/has-tools-array tests its type
		if r.Status == http.StatusBadRequest || r.Status == http.StatusOK && ok && len(r.Tools()) == 0 && r.NextCursor() == "" {
			return ""
		}
		return r.Outcome()
	})
}

// showOnly matches a page whose tools are all in the listing, or 400.
func showOnly(own check.Listing) OmegaMatcher {
	return match.Conform("only tools of the sender, or 400", func(r *check.Response) string {
		switch r.Status {
		case http.StatusBadRequest:
			return ""
		case http.StatusOK:
			foreign := slices.DeleteFunc(namesOn(r), func(n string) bool { return slices.Contains(own.Names(), n) })
			return match.Abbreviate(foreign)
		}
		return r.Outcome()
	})
}

// steadyPage returns the caller's first page. It ends the check if the page cannot be read or changes between two
// requests.
func steadyPage(ctx context.Context, caller check.Client) *check.Response {
	page := caller.List(ctx)
	if page.Status != http.StatusOK {
		check.BlockedBy(check.Mismatch(page.Subject(), "a list of tools", page.Outcome()), "list/answers-json")
	}
	scenario.MustBeReadable(check.Listing{Pages: []*check.Response{page}})
	if d := match.OtherNames(namesOn(page), namesOn(caller.List(ctx))); d != "" {
		check.BlockedBy(check.Mismatch(page.Subject()+", twice", "the same tools", d), "list/order-stable")
	}
	return page
}

// severalPages returns a caller whose tools fill several pages, and the list of these tools. The caller is the agent; if
// the mock's site has too few tools, it is a new caller on a larger site.
func severalPages(ctx context.Context, t *check.T) (check.Client, check.Listing) {
	list := steadyList(ctx, t)
	if len(list.Pages) > 1 {
		return t.As(check.Agent), list
	}
	if t.Drupal == nil {
		check.NotTestable(fmt.Sprintf("all %d tools of the agent are on one page: it needs two", len(list.Tools())))
	}
	if len(scenario.MustShow(t, check.Agent)) > t.PageSize {
		blockedByOnePage(list)
	}
	caller := scenario.Serve(ctx, t, scenario.ManyMethods("content.more.", 2*t.PageSize+1))
	list = scenario.AllTools(ctx, t, caller)
	if len(list.Pages) < 2 {
		blockedByOnePage(list)
	}
	return caller, list
}

// blockedByOnePage ends the check because the bridge puts all tools on one page where they need several.
func blockedByOnePage(list check.Listing) {
	check.BlockedBy(check.Mismatch(list.Last().Subject(), "several pages", fmt.Sprintf("%d tools on one page", len(list.Tools()))), "list/page-size")
}
