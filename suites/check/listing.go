package check

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Bounds of how far cursors are followed: a list that never ends is a fault, not a hang.
const (
	MaxPages        = 3000
	maxUselessPages = 20 // pages without a tool that an earlier page does not have
	endlessPages    = 3  // that are read of a list which had no end before

	maxListed = 32 << 20 // bytes of all pages
)

// Listing is every page that following the cursors gave. Fault says why it ended early, "" at a proper end.
type Listing struct {
	Pages []*Response
	Fault Finding
}

// Tools are the tools of all pages, in order.
func (l Listing) Tools() []Tool {
	var all []Tool
	for _, p := range l.Pages {
		all = append(all, p.Tools()...)
	}
	return all
}

// Names are the names of all pages, in order.
func (l Listing) Names() []string { return client.NamesOf(l.Tools()) }

// Once reports whether exactly one tool has the name.
func (l Listing) Once(name string) bool {
	return len(slices.DeleteFunc(l.Names(), func(other string) bool { return other != name })) == 1
}

// Find returns the listed tool of a name.
func (l Listing) Find(name string) (Tool, bool) { return find(l.Tools(), name) }

func find(tools []Tool, name string) (Tool, bool) {
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name() == name }); i >= 0 {
		return tools[i], true
	}
	return nil, false
}

// PageOf is the page that holds a tool of the name; the last one where none does.
func (l Listing) PageOf(name string) *Response {
	for _, page := range l.Pages {
		if slices.ContainsFunc(page.Tools(), func(t Tool) bool { return t.Name() == name }) {
			return page
		}
	}
	return l.Last()
}

// Last is the last page.
func (l Listing) Last() *Response { return l.Pages[len(l.Pages)-1] }

// ListAll follows the cursors from the first page to the end, to a refusal, or to a cursor that stood before.
func (c Client) ListAll(ctx context.Context) Listing {
	page := c.List(ctx)
	l := Listing{Pages: []*Response{page}}
	seen, listed := map[string]bool{}, map[string]bool{}
	useless, held := 0, 0
	for {
		held += len(page.Body)
		if e := c.T.Environment; !e.endless.IsZero() && len(l.Pages) > endlessPages {
			l.Fault = e.endless
			return l
		}
		cursor := page.NextCursor()
		known := len(listed)
		for _, t := range page.Tools() {
			listed[t.Name()] = true
		}
		if len(listed) == known {
			useless++
		}
		switch {
		case !page.Is(http.StatusOK):
			l.Fault = Mismatch(page.Subject(), "a page of tools", page.Outcome())
			return l
		case cursor == "":
			return l
		case seen[cursor]:
			l.Fault = Mismatch(page.Subject(), "cursors that lead to an end", fmt.Sprintf("the cursor %q a second time", cursor))
			return l
		case len(l.Pages) == MaxPages || useless == maxUselessPages || held > maxListed:
			l.Fault = Mismatch(page.Subject(), "cursors that lead to an end", fmt.Sprintf("still a cursor after %d pages", len(l.Pages)))
			c.T.endless = l.Fault
			return l
		}
		seen[cursor] = true
		page = c.List(ctx, cursor)
		l.Pages = append(l.Pages, page)
	}
}

// listings are lists that the run has read whole, by caller.
type listings struct {
	mu   sync.Mutex
	read map[string][]*exchange
}

// ListShared is ListAll for checks that look at what is listed, and not at how the bridge comes to it: what the run has read of
// the site as it is counts as it came. A bridge that is up may have shown what an earlier run had left, so that it is asked anew.
func (c Client) ListShared(ctx context.Context) Listing {
	t, key := c.T, fmt.Sprint(c.URL, c.Base, c.Creds)
	if t.Alone() || t.Spares() || t.Upstream.Faulty() {
		return c.ListAll(ctx)
	}
	kept := &t.listings
	kept.mu.Lock()
	defer kept.mu.Unlock()
	now := t.Drupal.Snapshot()
	if pages := kept.read[key]; pages != nil && sameFor(c.Who, pages[0].site, now) {
		var l Listing
		for _, e := range pages {
			e.site = now // the next one compares fast
			again, response := *e, *e.Response
			again.Response, response.Who = &response, c.Who
			t.keep(&again)
			l.Pages = append(l.Pages, &response)
		}
		return l
	}
	delete(kept.read, key)
	l := c.ListAll(ctx)
	if l.Fault.IsZero() && t.Drupal.Snapshot() == now {
		if kept.read == nil {
			kept.read = map[string][]*exchange{}
		}
		for _, page := range l.Pages {
			kept.read[key] = append(kept.read[key], t.exchangeOf(page))
		}
	}
	return l
}

// exchangeOf is the exchange that a response belongs to, also of one that was not recorded.
func (t *T) exchangeOf(a *Response) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range slices.Backward(t.exchanges) {
		if e.Response == a {
			return &exchange{Response: a, since: e.since, until: e.until, site: e.site}
		}
	}
	return &exchange{Response: a, site: t.Drupal.Snapshot(), caused: []mockdrupal.Entry{}}
}

// MustListAll is ListAll for checks that test something else: where the list itself fails they are not testable. A
// list that changed while it was read, which a cursor may show (list/change-between-pages), is read once more.
func (c Client) MustListAll(ctx context.Context) Listing {
	l := c.ListAll(ctx)
	if last := l.Last(); len(l.Pages) > 1 && last.Status == http.StatusBadRequest && last.Code() == "invalid_cursor" {
		l = c.ListAll(ctx)
	}
	return l.MustHold()
}

// MustListShared is ListShared for checks that test something else, as MustListAll is ListAll.
func (c Client) MustListShared(ctx context.Context) Listing {
	if l := c.ListShared(ctx); l.Fault.IsZero() {
		return l.MustHold()
	}
	return c.MustListAll(ctx)
}

// MustHold makes the check not testable where the list cannot be built on.
func (l Listing) MustHold() Listing {
	if !l.Fault.IsZero() {
		BlockedBy(l.Fault.About("the check builds on this list"), "list/answers-json", "list/pages-cover-all-once")
	}
	for _, page := range l.Pages {
		cursor, there := page.Member("nextCursor")
		if _, text := cursor.(string); there && cursor != nil && !text {
			BlockedBy(Finding{Subject: "the list of tools, which it builds on, has a cursor that is no string"}, "list/next-cursor-type")
		}
		tools, _ := page.Member("tools")
		if _, list := tools.([]any); !list {
			BlockedBy(Finding{Subject: "the list of tools, which it builds on, has no `tools` array"}, "list/has-tools-array")
		}
	}
	return l
}

// MCPListing is every page of tools/list. Fault says why it ended early.
type MCPListing struct {
	Pages []*Response
	Tools []Tool
	Fault Finding
}

func (l MCPListing) Names() []string { return client.NamesOf(l.Tools) }

// Find returns the listed tool of a name.
func (l MCPListing) Find(name string) (Tool, bool) { return find(l.Tools, name) }

// ListAllTools follows the cursors of tools/list to the end.
func ListAllTools(ctx context.Context, s *Session) MCPListing {
	var l MCPListing
	seen, held := map[string]bool{}, 0
	for cursor := ""; ; {
		page := s.ListTools(ctx, cursor)
		l.Pages = append(l.Pages, page)
		result := page.RPCResult()
		tools, ok := result["tools"].([]any)
		if !ok {
			l.Fault = Mismatch(page.Subject(), "a page of tools", page.RPCOutcome())
			return l
		}
		for _, t := range tools {
			if t, ok := t.(map[string]any); ok {
				l.Tools = append(l.Tools, t)
			}
		}
		next, ok := result["nextCursor"].(string)
		if !ok {
			return l
		}
		if held += len(page.Body); seen[next] || len(l.Pages) == MaxPages || held > maxListed {
			l.Fault = Mismatch(page.Subject(), "cursors that lead to an end", fmt.Sprintf("the cursor %q after %d pages", next, len(l.Pages)))
			return l
		}
		seen[next] = true
		cursor = next
	}
}
