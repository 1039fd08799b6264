package mockdrupal

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Quirk is a fault of the recorded site that the mock has only when asked for.
type Quirk struct {
	Name string
	Text string
}

// QuirkStickyGet is the name of the only quirk.
const QuirkStickyGet = "sticky-get-cache"

// Quirks lists all quirks.
func Quirks() []Quirk {
	return []Quirk{
		{QuirkStickyGet, "GET /jsonrpc?query= (and the module's describe) answers from the page cache of the caller's permissions: another user's answer, and after a 400 or 204 that answer to every later query, until the site changes; GET /jsonrpc/methods forgets which scopes a token has."},
	}
}

type quirks struct {
	mu sync.RWMutex
	on []string
}

func (q *quirks) has(name string) bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return slices.Contains(q.on, name)
}

// SetQuirk switches a quirk on or off. It fails when there is none of this name.
func (d *Drupal) SetQuirk(name string, on bool) error {
	all := Quirks()
	if !slices.ContainsFunc(all, func(q Quirk) bool { return q.Name == name }) {
		names := make([]string, len(all))
		for i, q := range all {
			names[i] = q.Name
		}
		return fmt.Errorf("there is no quirk %q: the mock knows %s", name, strings.Join(names, ", "))
	}
	d.quirks.mu.Lock()
	defer d.quirks.mu.Unlock()
	d.quirks.on = slices.DeleteFunc(slices.Clone(d.quirks.on), func(have string) bool { return have == name })
	if on {
		d.quirks.on = append(d.quirks.on, name)
	}
	return nil
}

// ActiveQuirks returns the names of the quirks that are on.
func (d *Drupal) ActiveQuirks() []string {
	d.quirks.mu.RLock()
	defer d.quirks.mu.RUnlock()
	return slices.Clone(d.quirks.on)
}

// getCache is the page cache that the quirk sticky-get-cache puts before GET /jsonrpc.
type getCache struct {
	mu    sync.Mutex
	pages map[cacheKey]*Answer
}

// cacheKey has no query for the answers that the real site forgot to vary by it.
type cacheKey struct{ path, format, permissions, query string }

const maxCached = 10_000

func (c *getCache) usable(x *exchange) bool {
	return x.verb == http.MethodGet && x.d.quirks.has(QuirkStickyGet)
}

// key goes by the account's permissions, as the real site's does: it forgets which scopes a token has.
func (c *getCache) key(x *exchange, query string) cacheKey {
	account := caller{user: x.caller.user}
	held := []string{}
	for _, p := range append(slices.Clone(x.state.site.Permissions), fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent) {
		if x.state.holds(account, p) {
			held = append(held, p)
		}
	}
	format, _ := x.format()
	return cacheKey{x.path, format, x.state.visible(account) + "/" + strings.Join(held, ","), query}
}

func (c *getCache) get(x *exchange) (*Answer, bool) {
	if !c.usable(x) {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, hit := c.pages[c.key(x, "")]
	if !hit {
		a, hit = c.pages[c.key(x, "?"+x.r.URL.RawQuery)]
	}
	if !hit {
		return nil, false
	}
	copied := *a
	copied.header = a.header.Clone()
	return &copied, true
}

func (c *getCache) put(x *exchange, a *Answer) {
	if a == nil || !c.usable(x) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil || len(c.pages) >= maxCached {
		c.pages = map[cacheKey]*Answer{}
	}
	query := "?" + x.r.URL.RawQuery
	if a.status != http.StatusOK {
		query = ""
	}
	kept := *a
	kept.header = a.header.Clone()
	c.pages[c.key(x, query)] = &kept
}

func (c *getCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages = nil
}

// ClearCaches empties the site's page cache, as `drush cache:rebuild` does.
func (d *Drupal) ClearCaches() { d.cache.clear() }
