package mockdrupal

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
)

// pageCache is the page cache that the quirk sticky-get-cache puts before GET /jsonrpc.
type pageCache struct {
	mu    sync.Mutex
	pages map[cacheKey]*Response
}

// cacheKey has no query for the responses that the real site does not vary by it.
type cacheKey struct{ path, format, permissions, query string }

const maxCached = 10_000

func (c *pageCache) usable(x *request) bool {
	return x.Verb == http.MethodGet && x.d.quirks.Has(quirk.StickyGet)
}

// key goes by the account's permissions, as the real site's does: it ignores which scopes a token has.
func (c *pageCache) key(x *request, query string) cacheKey {
	account := caller{user: x.caller.user}
	held := []string{}
	for _, p := range append(slices.Clone(x.state.site.Permissions), fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent) {
		if x.state.holds(account, p) {
			held = append(held, p)
		}
	}
	format, _ := x.format()
	return cacheKey{x.Path, format, x.state.visible(account) + "/" + strings.Join(held, ","), query}
}

// keep is the response to a request that the cache has, or else the one that is made and kept.
func (c *pageCache) keep(x *request, make func() *Response) *Response {
	a, hit := c.get(x)
	if !hit {
		a = make()
		c.put(x, a)
	}
	return a
}

func (c *pageCache) get(x *request) (*Response, bool) {
	if !c.usable(x) {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, hit := c.pages[c.key(x, "")]
	if !hit {
		a, hit = c.pages[c.key(x, "?"+x.Request.URL.RawQuery)]
	}
	if !hit {
		return nil, false
	}
	copied := *a
	copied.Header = a.Header.Clone()
	return &copied, true
}

func (c *pageCache) put(x *request, a *Response) {
	if a == nil || !c.usable(x) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil || len(c.pages) >= maxCached {
		c.pages = map[cacheKey]*Response{}
	}
	query := "?" + x.Request.URL.RawQuery
	if a.Status != http.StatusOK {
		query = ""
	}
	kept := *a
	kept.Header = a.Header.Clone()
	c.pages[c.key(x, query)] = &kept
}

func (c *pageCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages = nil
}

// ClearCaches empties the site's page cache, as `drush cache:rebuild` does.
func (d *Drupal) ClearCaches() { d.cache.clear() }
