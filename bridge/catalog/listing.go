package catalog

import "sync"

// maxIssued bounds what one caller's listing remembers: more pages than a real client follows.
const maxIssued = 4096

// Listing remembers which pages of a caller's catalog were given out, so that a cursor keeps its meaning when the
// tools change between two pages: a tool that stayed is neither lost nor doubled (clause list/change-between-pages).
// The zero value is ready; it is safe for use by many at once.
type Listing struct {
	mu      sync.Mutex
	current *Catalog
	before  *Catalog
	issued  map[Cursor]bool // cursors given out with current
	earlier map[Cursor]bool // and with before
}

// Page returns the page of the current catalog that a cursor means.
func (l *Listing) Page(now *Catalog, at Cursor) *Page {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != now {
		if l.current != nil && l.current.Version != now.Version {
			l.before, l.earlier = l.current, l.issued
			l.issued = nil
		}
		l.current = now
	}
	if at > 0 && !l.issued[at] && l.earlier[at] {
		at = carryOver(l.before, now, at)
	}
	page := now.Page(at)
	if page.Next > 0 {
		if l.issued == nil || len(l.issued) >= maxIssued {
			l.issued = map[Cursor]bool{}
		}
		l.issued[page.Next] = true
	}
	return page
}

// carryOver finds the place in now that an offset had in before: ahead of the first tool at or after the offset that
// is still there, or else behind the last one ahead of it. Without a common tool the offset stays what it is.
func carryOver(before, now *Catalog, at Cursor) Cursor {
	for _, t := range before.tools[min(int(at), len(before.tools)):] {
		if i, ok := now.index[t.Name]; ok {
			return Cursor(i)
		}
	}
	for i := min(int(at), len(before.tools)) - 1; i >= 0; i-- {
		if j, ok := now.index[before.tools[i].Name]; ok {
			return Cursor(j + 1)
		}
	}
	return at
}
