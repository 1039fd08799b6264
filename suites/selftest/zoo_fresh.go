package selftest

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
)

// far is a time to live that no run reaches.
const far = 24 * time.Hour

var freshMutants = []Mutant{
	{Name: "nothing-cached", Breaks: Clauses("fresh/cache-hit"), Origin: Peer,
		Options: func(o *bridge.Options) { o.DiscoveryTTL, o.PermissionTTL = time.Nanosecond, time.Nanosecond }},
	{Name: "unknown-names-ask-the-site", Breaks: Clauses("fresh/cache-hit"), Origin: Peer, Why: "whoever asks for names that nobody has keeps the site busy",
		Wired: func(site *wire) front {
			return onAnswer(toDescribe, func(x *exchange) {
				if x.Status == http.StatusNotFound {
					site.method(x.Request.Header.Get("Authorization"), x.described())
				}
			})
		}},
	{Name: "cached-for-good", Breaks: Clauses("fresh/ttl-expiry", "access/anonymous-granted", "fresh/stale-on-error", "fresh/version", "fresh/per-user-ttl"), Origin: Peer,
		Options: func(o *bridge.Options) { o.DiscoveryTTL, o.PermissionTTL = far, far }},
	onTheClock(Mutant{Name: "cached-while-it-is-asked-for", Breaks: Clauses("fresh/ttl-expiry"), Origin: Peer, Why: "each request gives the list another TTL"}, func(now func() time.Time) front {
		return cachedViews(toList, now, true)
	}),
	onTheClock(Mutant{Name: "descriptions-cached-apart", Breaks: Clauses("fresh/schema-change"), Origin: Peer, Why: "list and describe have a TTL each"}, func(now func() time.Time) front {
		return cachedViews(toDescribe, now, false)
	}),
	{Name: "removed-tool-described", Breaks: Clauses("fresh/ttl-expiry", "fresh/per-user-ttl"), Origin: Imagined, Front: describedForGood()},
	{Name: "removed-tools-linger", Breaks: Clauses("fresh/ttl-expiry"), Origin: Imagined, Front: lingeringTools()},
	{Name: "invalidation-does-nothing", Breaks: Clauses("fresh/invalidate"), Origin: Imagined,
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !strings.HasSuffix(r.URL.Path, "/mcp/admin/invalidate") || r.Header.Get("Authorization") != signedAs("admin") {
				return false
			}
			w.WriteHeader(http.StatusNoContent)
			return true
		})},
	{Name: "anyone-invalidates", Breaks: Clauses("fresh/invalidate"), Origin: Imagined,
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.HasSuffix(r.URL.Path, "/mcp/admin/invalidate") {
				r.Header.Set("Authorization", signedAs("admin"))
			}
			return false
		})},
	{Name: "a-flight-for-each", Breaks: Clauses("fresh/single-flight"), Origin: Peer,
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !isCall(r) {
				if again, err := next.RoundTrip(r.Clone(r.Context())); err == nil {
					again.Body.Close()
				}
			}
			return next.RoundTrip(r)
		})},
	{Name: "stale-without-a-mark", Breaks: Clauses("fresh/stale-on-error"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) { x.Header.Del("Warning"); x.Header.Del("Age") })},
	{Name: "describe-remembers-the-schema", Breaks: Clauses("fresh/schema-change", "fresh/schema-mismatch"), Origin: Imagined, Front: rememberedDescribe("content.arrival")},
	{Name: "schema-mismatch-500", Breaks: Clauses("fresh/schema-mismatch"), Origin: Peer, Why: "what the site refuses of a changed schema is taken for a failure",
		Front: onInvoke(func(x *exchange) {
			if x.invoked() == "content.arrival" && x.Status == http.StatusBadRequest && strings.Contains(x.errorMessage(), "The site refused") {
				x.Refuse(http.StatusInternalServerError, "execution_error", "Invalid Params")
			}
		})},
	{Name: "removed-tool-500", Breaks: Clauses("fresh/removed-tool"), Origin: Peer,
		Front: onInvoke(func(x *exchange) {
			if x.Status == http.StatusNotFound && x.invoked() == "content.arrival" {
				x.Refuse(http.StatusInternalServerError, "execution_error", "Method Not Found")
			}
		})},
	{Name: "version-never-changes", Breaks: Clauses("fresh/version"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			if x.Status == http.StatusOK {
				x.Header.Set("ETag", `"1"`)
				if x.Request.Header.Get("If-None-Match") == `"1"` {
					x.Status, x.Body = http.StatusNotModified, nil
				}
			}
		})},
	{Name: "version-of-the-names", Breaks: Clauses("fresh/version"), Origin: Imagined, Why: "a changed schema does not reach who asks with a version",
		Front: onList(func(p *page) {
			sum := sha256.New()
			for _, t := range p.Tools {
				fmt.Fprintln(sum, t.(tool)["name"])
			}
			version := fmt.Sprintf(`"%x"`, sum.Sum(nil)[:8])
			p.Header.Set("ETag", version)
			if p.Request.Header.Get("If-None-Match") == version {
				p.Status, p.Body, p.Object = http.StatusNotModified, nil, nil
			}
		})},
	{Name: "unversioned", Breaks: Clauses("fresh/version"), Origin: Peer, Front: onAnswer(toList, func(x *exchange) { x.Header.Del("ETag") })},
	{Name: "refused-describe-remembered", Breaks: Clauses("fresh/per-user-ttl"), Origin: Module, Front: rememberedRefusals()},
}

// onTheClock gives a mutant a front that knows the stand's time.
func onTheClock(m Mutant, made func(now func() time.Time) front) Mutant {
	var clock func() time.Time
	m.Options = func(o *bridge.Options) { clock = o.Now }
	m.Wired = func(*wire) front { return made(clock) }
	return m
}

// cachedViews keeps a caller's answers for a TTL of their own, which each request prolongs where it is told to. It is
// emptied with the bridge's cache, and leaves out what asks with a version.
func cachedViews(matches func(*http.Request) bool, now func() time.Time, prolonged bool) front {
	type kept struct {
		body []byte
		at   time.Time
	}
	views := newTable[kept]()
	cached := onAnswer(matches, func(x *exchange) {
		key := x.Request.Header.Get("Authorization") + x.Request.URL.String()
		old, known := views.get(key)
		switch {
		case x.Method != http.MethodGet, x.Request.Header.Get("If-None-Match") != "", x.Status != http.StatusOK:
		case !known || now().Sub(old.at) >= TTL:
			views.put(key, kept{x.Body, now()})
		default:
			x.Body = old.body
			if prolonged {
				views.put(key, kept{old.body, now()})
			}
		}
	})
	return func(next http.Handler) http.Handler {
		inner := cached(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/mcp/admin/invalidate") {
				views.clear()
			}
			inner.ServeHTTP(w, r)
		})
	}
}

// describedForGood describes to a caller what was described to them once.
func describedForGood() front {
	first := newTable[[]byte]()
	return onAnswer(toDescribe, func(x *exchange) {
		key := x.Request.Header.Get("Authorization") + x.Request.URL.RawQuery
		if x.Status == http.StatusOK {
			first.put(key, x.Body)
		} else if told, known := first.get(key); known && x.Status == http.StatusNotFound {
			x.Status, x.Body = http.StatusOK, told
		}
	})
}

// lingeringTools ends a caller's list with what it ended with at first.
func lingeringTools() front {
	ends := newTable[any]()
	return onList(func(p *page) {
		if next, _ := p.Object["nextCursor"].(string); next != "" || len(p.Tools) == 0 {
			return
		}
		end := p.Tools[len(p.Tools)-1]
		if first := ends.keep(p.Request.Header.Get("Authorization"), end); first.(tool)["name"] != end.(tool)["name"] {
			p.Tools = append(p.Tools, first)
		}
	})
}

// rememberedDescribe gives the first description of a tool for good.
func rememberedDescribe(name string) front {
	first := newTable[[]byte]()
	return onAnswer(toDescribe, func(x *exchange) {
		if x.Status == http.StatusOK && x.Request.URL.Query().Get("name") == name {
			x.Body = first.keep(name, x.Body)
		}
	})
}

// rememberedRefusals gives a caller's first refusal of a description for good.
func rememberedRefusals() front {
	refused := newSet()
	return onAnswer(toDescribe, func(x *exchange) {
		key := x.Request.Header.Get("Authorization") + x.Request.URL.RawQuery
		if x.Status == http.StatusNotFound {
			refused.add(key)
		} else if _, stuck := refused.get(key); stuck && x.Status == http.StatusOK {
			x.Refuse(http.StatusNotFound, "tool_not_found", "There is no tool named "+x.Request.URL.Query().Get("name"))
		}
	})
}
