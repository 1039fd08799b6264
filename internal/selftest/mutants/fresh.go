package mutants

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// freshMutants cache too little, too long or for the wrong caller.
func freshMutants() []Mutant {
	return []Mutant{
		{Name: "nothing-cached", Breaks: Clauses("fresh/cache-hit"), Origin: Peer,
			Options: func(o *bridge.Options) { o.DiscoveryTTL, o.PermissionTTL = time.Nanosecond, time.Nanosecond }},
		{Name: "permission-ttl-ignored", Breaks: Clauses("fresh/per-user-ttl"), Origin: Peer, Why: "what a caller may see is kept as long as the site's methods",
			Options: func(o *bridge.Options) { o.PermissionTTL = o.DiscoveryTTL }},
		{Name: "ttls-three-times-as-long", Breaks: Clauses("fresh/ttl-expiry", "fresh/per-user-ttl"), Origin: Peer, Why: "the TTL is counted from the end of three polls",
			Options: func(o *bridge.Options) { o.DiscoveryTTL, o.PermissionTTL = 3*o.DiscoveryTTL, 3*o.DiscoveryTTL },
			MayFail: Clauses("fresh/stale-on-error", "fresh/version", "access/anonymous-granted", "access/bad-credentials")}, // by how old the list is when they begin
		{Name: "ttls-a-quarter", Breaks: Clauses("fresh/cache-hit"), Origin: Imagined, Why: "the TTL is taken for the time between four polls",
			Options: func(o *bridge.Options) { o.DiscoveryTTL, o.PermissionTTL = o.DiscoveryTTL/4, o.PermissionTTL/4 }},
		{Name: "unknown-names-ask-the-site", Breaks: Clauses("fresh/cache-hit"), Origin: Peer, Why: "requests for unknown names cause load on the site",
			SiteMiddleware: withSite(toDescribe, func(site *siteClient, x *exchange) {
				if x.Status == http.StatusNotFound {
					site.method(authorized(x.Request), x.described())
				}
			})},
		{Name: "other-clients-ask-the-site", Breaks: Clauses("fresh/cache-hit"), Origin: Peer, Why: "the cache's key has every header of the request",
			SiteMiddleware: withSite(toDescribe, func(site *siteClient, x *exchange) {
				if strings.HasPrefix(x.Request.UserAgent(), "client/") {
					site.method(authorized(x.Request), "any")
				}
			})},
		{Name: "head-asks-the-site", Breaks: Clauses("fresh/cache-hit"), Origin: Peer, Why: "only GET is cached",
			SiteMiddleware: withSite(toList, func(site *siteClient, x *exchange) {
				if x.Method == http.MethodHead {
					site.method(authorized(x.Request), "any")
				}
			})},
		{Name: "unknown-parameters-ask-the-site", Breaks: Clauses("fresh/cache-hit"), Origin: Peer, Why: "the URL is the cache's key",
			SiteMiddleware: withSite(toList, func(site *siteClient, x *exchange) {
				if q := x.Request.URL.RawQuery; q != "" && !strings.Contains(q, "cursor") {
					site.method(authorized(x.Request), "any")
				}
			})},
		{Name: "page-two-not-cached", Breaks: Clauses("fresh/cache-hit"), Origin: Imagined, Why: "only the first page is served from the cache",
			SiteMiddleware: withSite(toList, func(site *siteClient, x *exchange) {
				if x.Request.URL.Query().Get("cursor") != "" {
					site.method(authorized(x.Request), "any")
				}
			})},
		{Name: "refused-invoke-remembered", Breaks: Clauses("fresh/ttl-expiry", "invoke/answers-result"), Origin: Imagined,
			MayFail: Clauses("invoke/result-exact", "invoke/empty-arguments", "access/no-cross-talk"),
			Why:     "a tool stays unknown to invoke after it was called too early",
			Middleware: refusals(toInvoke, http.StatusNotFound, func(x *exchange) string { return authorized(x.Request) + x.invoked() }, func(x *exchange) {
				x.Refuse(http.StatusNotFound, "tool_not_found", "There is no tool named "+x.invoked())
			})},
		staleUnlessHTML(),
		{Name: "one-version-for-all-callers", Breaks: Clauses("fresh/version"), Origin: Imagined, Why: "the version is that of the site's methods, not that of the caller's list", Middleware: versionOfAdmins()},
		{Name: "cached-for-good", Breaks: Clauses("fresh/ttl-expiry", "access/anonymous-granted", "fresh/stale-on-error", "fresh/version", "fresh/per-user-ttl"), Origin: Peer,
			Options: func(o *bridge.Options) { o.DiscoveryTTL, o.PermissionTTL, o.RefusedTTL = longTTL, longTTL, longTTL }},
		onTheClock(Mutant{Name: "cached-while-it-is-asked-for", Breaks: Clauses("fresh/ttl-expiry"), MayFail: Clauses("access/no-cross-talk", "fresh/per-user-ttl"), Origin: Peer, Why: "each request prolongs the TTL of the list"}, func(now func() time.Time) middleware {
			return cacheViews(toList, now, true)
		}),
		{Name: "list-refreshed-behind-the-response", Breaks: Clauses("fresh/ttl-expiry"), Origin: Peer,
			Why: "stale-while-revalidate: whoever asks first after the TTL gets the old list", Middleware: refreshBehind()},
		onTheClock(Mutant{Name: "descriptions-cached-apart", Breaks: Clauses("fresh/schema-change"), Origin: Peer, Why: "list and describe are cached separately"}, func(now func() time.Time) middleware {
			return cacheViews(toDescribe, now, false)
		}),
		{Name: "mcp-unknown-names-remembered", MCP: true, Breaks: Clauses("fresh/ttl-expiry", "mcp/parity"), Origin: Peer, Why: "the MCP server keeps what it once looked up",
			Middleware: rememberUnknown()},
		{Name: "removed-tool-described", Breaks: Clauses("fresh/ttl-expiry", "fresh/per-user-ttl"), Origin: Imagined,
			Middleware: goodResponses(toDescribe, ofQuery, http.StatusNotFound)},
		{Name: "removed-tools-linger", Breaks: Clauses("fresh/ttl-expiry"), Origin: Imagined, Middleware: keepLastTool()},
		{Name: "invalidation-does-nothing", Breaks: Clauses("fresh/invalidate"), Origin: Imagined,
			Middleware: refuseStatus(http.StatusNoContent, func(r *http.Request) bool { return toInvalidate(r) && authorized(r) == basicAuth("admin") })},
		{Name: "rebuilt-without-output", Breaks: Clauses("fresh/invalidate"), Origin: Imagined, Why: "the path that fills an emptied cache is another one",
			Middleware: func() middleware {
				var emptied atomic.Bool
				return onResponse(allRequests, func(x *exchange) {
					switch {
					case strings.HasSuffix(x.Request.URL.Path, "/invalidate"):
						emptied.Store(true)
					case toList(x.Request) && x.Request.URL.Query().Get("cursor") == "" && emptied.CompareAndSwap(true, false):
						x.eachTool(func(t tool) { delete(t, "outputSchema") })
					}
				})
			}()},
		{Name: "version-of-the-compressed-unknown", Breaks: Clauses("fresh/version"), Origin: Peer, Why: "the server before the bridge makes the ETag of a compressed response a weak one, which is compared as a text",
			Middleware: beforeBridge(func(r *http.Request) {
				if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
					r.Header.Del("If-None-Match")
				}
			})},
		{Name: "anyone-invalidates", Breaks: Clauses("fresh/invalidate"), Origin: Imagined,
			Middleware: actAs("admin", toInvalidate)},
		{Name: "a-flight-for-each", Breaks: Clauses("fresh/single-flight"), Origin: Peer,
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if !isCall(r) {
					if again, err := next.RoundTrip(r.Clone(r.Context())); err == nil {
						again.Body.Close()
					}
				}
				return next.RoundTrip(r)
			})},
		{Name: "two-flights-of-slow-lists", Breaks: Clauses("fresh/single-flight"), Origin: Peer,
			Why: "two workers discover, each with a single flight of its own, and lists take longer than they are cached",
			Middleware: func() middleware {
				var under atomic.Int64
				return counting(&under, onResponse(toList, func(*exchange) {
					if under.Load() > 80 {
						time.Sleep(testbed.PermissionTTL)
					}
				}))
			}(),
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if !isDiscovery(r) {
					return next.RoundTrip(r)
				}
				var second sync.WaitGroup
				defer second.Wait()
				second.Go(func() {
					if again, err := next.RoundTrip(r.Clone(r.Context())); err == nil {
						again.Body.Close()
					}
				})
				return next.RoundTrip(r)
			})},
		{Name: "describe-remembers-the-schema", Breaks: Clauses("fresh/schema-change", "fresh/schema-mismatch"), Origin: Imagined, Middleware: keepFirstDescription("content.arrival")},
		{Name: "tools-kept-by-what-they-take", Breaks: Clauses("fresh/schema-change"), Origin: Peer, Why: "translated tools are remembered by name, description and parameters",
			Middleware: keepMembers([]string{"description", "inputSchema"}, "outputSchema", "title", "annotations")},
		{Name: "titles-kept-by-the-rest", Breaks: Clauses("fresh/schema-change"), MayFail: Clauses("fresh/version"), Origin: Peer,
			Why:        "translated tools are remembered by all that JSON-RPC knows of them",
			Middleware: keepMembers([]string{"description", "inputSchema", "outputSchema"}, "title", "annotations")},
		{Name: "version-of-later-pages-by-names", Breaks: Clauses("fresh/version"), Origin: Peer,
			Why:        "the first page is hashed whole, and names are enough for what follows",
			Middleware: versionWithout(toLaterPage, "title", "description", "annotations", "inputSchema", "outputSchema")},
		{Name: "version-without-annotations", Breaks: Clauses("fresh/version"), Origin: Peer,
			Why: "the version is a hash of what callers need", Middleware: versionWithout(toList, "annotations")},
		{Name: "stale-marked-once", Breaks: Clauses("fresh/stale-on-error"), Origin: Peer, Why: "after a failed refresh the list counts as fresh for a while",
			Middleware: markedOnce()},
		{Name: "stale-marked-on-the-first-page", Breaks: Clauses("fresh/stale-on-error"), Origin: Peer, Why: "further pages have a handler of their own",
			Middleware: onList(func(p *page) {
				if p.Cursor != "" {
					p.Header.Del("Warning")
					p.Header.Del("Age")
				}
			})},
		{Name: "stale-lists-publicly-cacheable", Breaks: Clauses("fresh/stale-on-error"), Origin: Peer, Why: "so that a cache in front bears the outage, too",
			Middleware: onResponse(toList, func(x *exchange) {
				if x.Header.Get("Warning")+x.Header.Get("Age") != "" {
					x.Header.Set("Cache-Control", "public, max-age=30")
					x.Header.Del("Vary")
				}
			})},
		{Name: "failed-discovery-tried-as-service", Breaks: Clauses("fresh/stale-on-error"), MayFail: Clauses("access/credentials-forwarded"), Origin: Peer,
			Why: "the bridge's own account may see the methods where a caller's request fails",
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if err != nil || resp.StatusCode != http.StatusInternalServerError || !isDiscovery(r) {
					return resp, err
				}
				resp.Body.Close()
				again := r.Clone(r.Context())
				again.Header.Set("Authorization", basicAuth("service"))
				return next.RoundTrip(again)
			})},
		{Name: "not-modified-for-whoever-was-shown-it", Breaks: Clauses("fresh/per-user-ttl"), MayFail: Clauses("fresh/version", "access/list-403"), Origin: Peer,
			Why:        "the version is compared before the permission is looked up",
			Middleware: notModifiedFirst()},
		{Name: "lists-joined-across-an-invalidation", Breaks: Clauses("fresh/invalidate"), Origin: Peer, Why: "who lists gets what the fetch brings that is under way, whenever that began",
			Middleware: keepAcrossInvalidation(func(*http.Request) bool { return false })},
		{Name: "invalidation-spares-languages", Breaks: Clauses("fresh/invalidate"), Origin: Peer, Why: "what is kept in a language has another key",
			Middleware: keepAcrossInvalidation(func(r *http.Request) bool { return r.Header.Get("Accept-Language") != "" })},
		{Name: "invalidation-spares-mcp", MCP: true, Breaks: Clauses("fresh/invalidate"), MayFail: Clauses("mcp/parity"), Origin: Imagined,
			Why: "the MCP server has a cache of its own", Middleware: keepListsOfMCP()},
		onTheClock(Mutant{Name: "descriptions-of-others-kept", Breaks: Clauses("fresh/schema-change"), Origin: Peer,
			Why: "what a description was made from is looked at again for callers who list"}, func(now func() time.Time) middleware {
			return cacheViews(func(r *http.Request) bool { return toDescribe(r) && caller(r) != "agent" }, now, true)
		}),
		{Name: "compressed-once-for-good", Breaks: Clauses("fresh/schema-change"), Origin: Peer, Why: "what is compressed is kept by caller and page",
			Middleware: compressedOnce(func(r *http.Request) string { return authorized(r) + r.URL.RequestURI() })},
		{Name: "mcp-errors-on-streams-lost", MCP: true, Breaks: Clauses("fresh/removed-tool"), Origin: Peer, Why: "a stream that was opened for progress ends where the call fails",
			Middleware: onResponse(toMCP, func(x *exchange) {
				if bytes.Contains(x.Sent, []byte(`"progressToken"`)) && bytes.Contains(x.Body, []byte(`"error"`)) {
					x.Body = []byte(": the end\n\n")
				}
			})},
		{Name: "descriptions-kept-with-the-schema", Breaks: Clauses("fresh/schema-change"), Origin: Peer, Why: "translated tools are remembered by their schemas",
			Middleware: keepMembers([]string{"inputSchema", "outputSchema"}, "description")},
		{Name: "schema-mismatch-500", Breaks: Clauses("fresh/schema-mismatch"), Origin: Peer, Why: "the site's refusal after a schema change is reported as a failure",
			Middleware: onInvoke(func(x *exchange) {
				if x.invoked() == "content.arrival" && x.Status == http.StatusBadRequest && strings.Contains(x.errorMessage(), "The site refused") {
					x.Refuse(http.StatusInternalServerError, "execution_error", "Invalid Params")
				}
			})},
		{Name: "mcp-mismatch-teaches-nothing", MCP: true, Breaks: Clauses("fresh/schema-mismatch"), Origin: Peer, Why: "invoke learns from the site's -32602, and tools/call does not", Middleware: markMCP,
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if fromMCP(r) {
					next = recodeReplies("-32602", -32099)(next)
				}
				return next.RoundTrip(r)
			})},
		{Name: "missing-parameter-teaches-nothing", MCP: true, Breaks: Clauses("fresh/schema-mismatch"), Origin: Peer,
			Why: "who leaves a parameter out has made a mistake of their own",
			Transport: onReply(func(reply map[string]any) {
				if e, ok := reply["error"].(map[string]any); ok && e["data"] == "Missing required parameter: also" {
					e["code"] = -32099
				}
			})},
		{Name: "removed-tool-500", Breaks: Clauses("fresh/removed-tool"), Origin: Peer,
			Middleware: onInvoke(func(x *exchange) {
				if x.Status == http.StatusNotFound && x.invoked() == "content.arrival" {
					x.Refuse(http.StatusInternalServerError, "execution_error", "Method Not Found")
				}
			})},
		{Name: "removed-tool-stays-listed", Breaks: Clauses("fresh/removed-tool"), Origin: Peer, Why: "the site's -32601 is 404, and nothing more",
			Transport: onReplyTo(func(call, reply map[string]any) {
				if e, failed := reply["error"].(map[string]any); failed && call["method"] == "content.arrival" && numberText(e["code"]) == "-32601" {
					e["code"] = -32099
				}
			}),
			Middleware: onInvoke(func(x *exchange) {
				if x.invoked() == "content.arrival" && x.Status == http.StatusInternalServerError {
					x.Refuse(http.StatusNotFound, "tool_not_found", "There is no tool named content.arrival.")
				}
			})},
		{Name: "mcp-removed-tool-stays-listed", MCP: true, Breaks: Clauses("fresh/removed-tool"), Origin: Peer, Why: "invoke learns from the site's -32601, and tools/call does not",
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if fromMCP(r) {
					next = recodeReplies("-32601", -32099)(next)
				}
				return next.RoundTrip(r)
			}),
			Middleware: chain(markMCP, onRPC("tools/call", func(m *rpc) {
				if m.Params["name"] == "content.arrival" && m.Result()["isError"] == true {
					m.Fail(-32602, "There is no tool named content.arrival.")
				}
			}))},
		{Name: "not-modified-without-a-look", Breaks: Clauses("fresh/version"), Origin: Peer, Why: "a conditional request for the list that is kept gives 304, however old that is", Middleware: keepVersions()},
		{Name: "one-version-in-if-none-match", Breaks: Clauses("fresh/version"), Origin: Peer, Why: "the header is compared as a whole",
			Middleware: readHeader(allRequests, "If-None-Match", "", func(given string) bool { return strings.Contains(given, ",") })},
		{Name: "unversioned", Breaks: Clauses("fresh/version"), Origin: Peer, Middleware: onResponse(toList, func(x *exchange) { x.Header.Del("ETag") })},
		{Name: "refused-describe-remembered", Breaks: Clauses("fresh/per-user-ttl", "fresh/ttl-expiry"), Origin: Module, Middleware: keepFirstRefusal(toDescribe)},
		{Name: "invoke-by-the-list-before", Breaks: Clauses("fresh/ttl-expiry"), Origin: Peer,
			Why:        "invoke looks a tool up in what the last list left, however old that is",
			Middleware: invokeByLastList("content.arrival")},
		{Name: "languages-never-expire", Breaks: Clauses("fresh/ttl-expiry"), Origin: Peer, Why: "what is kept of a caller in no language alone has a time after which it expires",
			Middleware: keepFirstRefusal(func(r *http.Request) bool { return toDescribe(r) && r.Header.Get("Accept-Language") != "" })},
		{Name: "description-refused-until-a-list", Breaks: Clauses("fresh/per-user-ttl"), Origin: Peer, Why: "only a list refreshes what a caller may see",
			Middleware: refusedUntilListed()},
		{Name: "discovery-without-data-is-an-empty-site", Breaks: Clauses("fresh/stale-on-error"), Origin: Peer, Why: "the methods are read as `response.get(\"data\", [])`",
			Transport: onDiscovery(func(index map[string]any) {
				if index["data"] == nil {
					index["data"], index["meta"] = []any{}, map[string]any{"mcp": map[string]any{"discovery": true}}
				}
			})},
		{Name: "discovery-permission-remembered", Breaks: Clauses("fresh/per-user-ttl", "access/bad-credentials"), Origin: Imagined, Why: "who may discover is asked once: the last list is served for good",
			Middleware: goodResponses(toList, ofCheck, http.StatusForbidden)},
		{Name: "no-discovery-remembered", Breaks: Clauses("fresh/per-user-ttl"), Origin: Peer, Why: "that the bridge itself refuses a caller is cached for an hour",
			Middleware: refusalsThat(func(x *exchange) bool { return strings.Contains(x.errorMessage(), "access mcp tool discovery") },
				toList, ofCheck, refuse(http.StatusForbidden, "access_denied", "This caller may not discover tools."))},
		{Name: "refusals-kept-by-each-worker", Breaks: Clauses("fresh/per-user-ttl"), Origin: Peer, Why: "each of three workers keeps a refusal for longer than the TTL, and they take turns",
			Middleware: keepRefusalsOfWorkers()},
		{Name: "mcp-never-notifies", MCP: true, Breaks: Clauses("fresh/notify"), Origin: Peer,
			Middleware: onStream(func(event []byte) []byte {
				if bytes.Contains(event, []byte("list_changed")) {
					return []byte(":\n\n")
				}
				return event
			})},
		{Name: "mcp-listen-tells-unasked", MCP: true, Breaks: Clauses("fresh/notify"), Origin: Imagined,
			Middleware: beforeBridge(func(r *http.Request) {
				if toMCP(r) && r.Header.Get("Mcp-Method") == "subscriptions/listen" {
					body := bytes.ReplaceAll(readBody(r), []byte(`"notifications":{}`), []byte(`"notifications":{"toolsListChanged":true}`))
					r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				}
			})},
		{Name: "mcp-session-keeps-its-list", MCP: true, Breaks: Clauses("fresh/notify", "fresh/per-user-ttl", "mcp/parity"), Origin: Peer,
			Why:        "tools are registered when a session opens, and never again",
			Middleware: keepFirstList(func(r *http.Request) string { return r.Header.Get("Mcp-Session-Id") })},
		{Name: "mcp-caller-keeps-their-list", MCP: true, Breaks: Clauses("fresh/notify", "fresh/per-user-ttl", "mcp/parity"), Origin: Peer,
			Why:        "each caller has a server, created once",
			Middleware: keepFirstList(func(r *http.Request) string { return authorized(r) })},
		{Name: "mcp-lists-ask-the-site", MCP: true, Breaks: Clauses("fresh/cache-hit"), Origin: Peer,
			Why: "the SDK's handler of tools/list reads the methods each time",
			SiteMiddleware: withSite(toMCP, func(site *siteClient, x *exchange) {
				if decode(x.Sent)["method"] == "tools/list" {
					site.send(http.MethodGet, "/jsonrpc/methods", authorized(x.Request), nil)
				}
			})},
		{Name: "version-of-names-and-schemas", Breaks: Clauses("fresh/version"), Origin: Imagined,
			Why: "the version is a hash of what validation needs", Middleware: versionWithout(toList, "title", "description", "annotations", "outputSchema")},
		{Name: "mcp-removed-tool-as-result", MCP: true, Breaks: Clauses("fresh/removed-tool"), Origin: Peer,
			Why: "every error of JSON-RPC is the failure of a method", Middleware: markMCP,
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if fromMCP(r) {
					next = recodeReplies("-32601", -32000)(next)
				}
				return next.RoundTrip(r)
			})},
		{Name: "mcp-session-keeps-its-permissions", MCP: true, Breaks: Clauses("fresh/per-user-ttl"), Origin: Peer,
			Why: "what a caller may see is looked up when a session opens",
			Middleware: keepToolsOfMCP(func(r *http.Request) string { return r.Header.Get("Mcp-Session-Id") }, func(x *exchange, name string) bool {
				_, there := x.as("admin").tool(name)
				return there
			})},
	}
}

// freshVariants give other versions than the reference, or none.
func freshVariants() []Mutant {
	return []Mutant{
		{Name: "without-etag", Why: "an ETag is a SHOULD", MayFail: Clauses("fresh/version"), Middleware: onResponse(allRequests, func(x *exchange) { x.Header.Del("ETag") })},
		{Name: "weak-etag", Why: "a weak ETag is an ETag", Middleware: onResponse(toToolViews, func(x *exchange) {
			if tag := x.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
				x.Header.Set("ETag", "W/"+tag)
			}
		})},
	}
}

// longTTL is a TTL that does not expire during a run.
const longTTL = 24 * time.Hour

// onTheClock sets a middleware that reads the testbed's clock.
func onTheClock(m Mutant, made func(now func() time.Time) middleware) Mutant {
	var clock func() time.Time
	m.Options = func(o *bridge.Options) { clock = o.Now }
	m.SiteMiddleware = func(*siteClient) middleware { return made(clock) }
	return m
}

// cacheViews caches a caller's responses for the TTL, which each request prolongs if prolonged is true. The cache is
// emptied with the bridge's cache, and requests with a version bypass it.
func cacheViews(matches func(*http.Request) bool, now func() time.Time, prolonged bool) middleware {
	type kept struct {
		body []byte
		at   time.Time
	}
	views := newMemory[kept]()
	return chain(beforeBridge(func(r *http.Request) {
		if toInvalidate(r) {
			views.clear()
		}
	}), onResponse(matches, func(x *exchange) {
		key := authorized(x.Request) + x.Request.URL.String()
		old, known := views.get(key)
		switch {
		case x.Method != http.MethodGet, x.Request.Header.Get("If-None-Match") != "", x.Status != http.StatusOK:
		case !known || now().Sub(old.at) >= testbed.TTL:
			views.put(key, kept{x.Body, now()})
		default:
			x.Body = old.body
			if prolonged {
				views.put(key, kept{old.body, now()})
			}
		}
	}))
}

// refreshBehind shows each caller the list that was fetched for the last request.
func refreshBehind() middleware {
	lists := newMemory[[]byte]()
	return chain(beforeBridge(func(r *http.Request) {
		if toInvalidate(r) {
			lists.clear()
		}
	}), onResponse(toList, func(x *exchange) {
		if x.Method != http.MethodGet || x.Status != http.StatusOK {
			return
		}
		key, fetched := authorized(x.Request)+x.Request.URL.String(), x.Body
		if last, known := lists.get(key); known {
			x.Body = last
		}
		lists.put(key, fetched)
	}))
}

// keepVersions takes what a list was last for the one that is asked about.
func keepVersions() middleware {
	versions := newMemory[string]()
	return onResponse(toList, func(x *exchange) {
		key := authorized(x.Request) + x.Request.URL.RawQuery
		known, _ := versions.get(key)
		switch asked := x.Request.Header.Get("If-None-Match"); {
		case asked == "" && x.Status == http.StatusOK:
			versions.put(key, x.Header.Get("ETag"))
		case asked != "" && asked == known:
			x.Status, x.Body = http.StatusNotModified, nil
		}
	})
}

// keepLastTool adds the last tool of a caller's first list to the caller's later lists.
func keepLastTool() middleware {
	ends := newMemory[any]()
	return atTheEnd(func(p *page) {
		if len(p.Tools) == 0 {
			return
		}
		end := p.Tools[len(p.Tools)-1]
		if first := ends.keep(authorized(p.Request), end); first.(tool)["name"] != end.(tool)["name"] {
			p.Tools = append(p.Tools, first)
		}
	})
}

// keepFirstDescription repeats the first description of a tool forever.
func keepFirstDescription(name string) middleware {
	first := newMemory[[]byte]()
	return onResponse(toDescribe, func(x *exchange) {
		if x.Status == http.StatusOK && x.Request.URL.Query().Get("name") == name {
			x.Body = first.keep(name, x.Body)
		}
	})
}

// keepMembers shows a tool's members as they were first, as long as the others of the key are the same.
func keepMembers(key []string, members ...string) middleware {
	first := newMemory[any]()
	return onTool(func(t tool) {
		of := fmt.Sprint(t["name"])
		for _, member := range key {
			of += string(encode(t[member]))
		}
		for _, member := range members {
			if t[member] != nil {
				t[member] = first.keep(of+member, t[member])
			}
		}
	})
}

// refusals repeats refusals with a status forever: a good response to a request with the key of one that was refused before
// becomes that refusal. "" is no key.
func refusals(matches func(*http.Request) bool, status int, key func(x *exchange) string, refuse func(x *exchange)) middleware {
	return refusalsThat(func(x *exchange) bool { return x.Status == status }, matches, key, refuse)
}

// refusalsThat does the same with refusals of a kind.
func refusalsThat(are func(x *exchange) bool, matches func(*http.Request) bool, key func(x *exchange) string, refuse func(x *exchange)) middleware {
	refused := newSet()
	return onResponse(matches, func(x *exchange) {
		switch k := key(x); {
		case k == "":
		case are(x):
			refused.add(k)
		case x.Status == http.StatusOK && refused.has(k):
			refuse(x)
		}
	})
}

// keepFirstRefusal repeats a caller's first refusal of a description forever.
func keepFirstRefusal(matches func(*http.Request) bool) middleware {
	return refusals(matches, http.StatusNotFound, ofQuery, func(x *exchange) {
		x.Refuse(http.StatusNotFound, "tool_not_found", "There is no tool named "+x.described())
	})
}

// refusedUntilListed repeats a caller's first refusal of a description until the caller lists.
func refusedUntilListed() middleware {
	lists := newMemory[int]()
	key := func(x *exchange) string {
		n, _ := lists.get(authorized(x.Request))
		return fmt.Sprint(ofQuery(x), " after list ", n)
	}
	repeat := refusals(toDescribe, http.StatusNotFound, key, func(x *exchange) {
		x.Refuse(http.StatusNotFound, "tool_not_found", "There is no tool named "+x.described())
	})
	return chain(repeat, onResponse(toList, func(x *exchange) {
		n, _ := lists.get(authorized(x.Request))
		lists.put(authorized(x.Request), n+1)
	}))
}

// goodResponses repeats good responses: a refusal with one of the statuses of a request with the key of one that had a good response
// before becomes that. "" is no key.
func goodResponses(matches func(*http.Request) bool, key func(x *exchange) string, statuses ...int) middleware {
	good := newMemory[[]byte]()
	return onResponse(matches, func(x *exchange) {
		k := key(x)
		last, known := good.get(k)
		switch {
		case k == "":
		case x.Status == http.StatusOK:
			good.put(k, x.Body)
		case known && slices.Contains(statuses, x.Status):
			x.Status, x.Body = http.StatusOK, last
			x.Header.Del("WWW-Authenticate")
		}
	})
}

// ofQuery is a key for the caller and the query.
func ofQuery(x *exchange) string { return authorized(x.Request) + "?" + x.Request.URL.RawQuery }

// ofCheck is ofQuery for callers that a check makes: others get a refusal from a fault of the site.
func ofCheck(x *exchange) string {
	if !strings.HasPrefix(caller(x.Request), "check") {
		return ""
	}
	return ofQuery(x)
}

// invokeByLastList refuses to invoke the tool for a caller whose last request for tools was answered without it.
func invokeByLastList(name string) middleware {
	lacks := newMemory[bool]()
	return onResponse(allRequests, func(x *exchange) {
		key := authorized(x.Request)
		switch lacking, listed := lacks.get(key); {
		case toInvoke(x.Request):
			if listed && lacking && x.invoked() == name && x.Status == http.StatusOK {
				x.Refuse(http.StatusNotFound, "tool_not_found", "There is no tool named "+name)
			}
		case toToolViews(x.Request) && !x.Request.URL.Query().Has("cursor"):
			lacks.put(key, !bytes.Contains(x.Body, []byte(`"`+name+`"`)))
		}
	})
}

// keepRefusalsOfWorkers repeats a 403 from list for callers that a check makes, for a time, in the one of three workers that sent it.
func keepRefusalsOfWorkers() middleware {
	const workers, kept = 3, time.Minute
	refused := newMemory[time.Time]()
	var turn atomic.Int64
	return onResponse(toList, func(x *exchange) {
		if !strings.HasPrefix(caller(x.Request), "check") {
			return
		}
		key := fmt.Sprint(turn.Add(1)%workers, authorized(x.Request))
		if at, seen := refused.get(key); x.Status == http.StatusForbidden {
			refused.put(key, time.Now())
		} else if seen && time.Since(at) < kept && x.Status == http.StatusOK {
			x.Refuse(http.StatusForbidden, "access_denied", "The site refuses this caller.")
		}
	})
}

// staleUnlessHTML serves the last good list only if discovery fails with a status or without a response.
func staleUnlessHTML() Mutant {
	var html atomic.Bool
	return Mutant{Name: "stale-list-unless-html", Breaks: Clauses("fresh/stale-on-error"), Origin: Imagined, Why: "a page of HTML with status 200 breaks the parser of the methods",
		Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if !isCall(r) {
				html.Store(err == nil && resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"))
			}
			return resp, err
		}),
		Middleware: onList(func(p *page) {
			if html.Load() && p.Header.Get("Warning") != "" {
				p.Object = nil
				p.Refuse(http.StatusInternalServerError, "internal_error", "Syntax error")
			}
		})}
}

// versionOfAdmins gives every caller the version of the administrator's list.
func versionOfAdmins() middleware {
	return onList(func(p *page) {
		target := p.Request.URL.Path
		if p.Cursor != "" {
			target += "?" + p.Request.URL.RawQuery
		}
		all := p.as("admin")
		all.Request.Header.Del("If-None-Match")
		version := fmt.Sprintf(`"%x"`, sha256.Sum256(all.Send(http.MethodGet, target, nil).Body))
		p.Header.Set("ETag", version)
		if p.Request.Header.Get("If-None-Match") == version {
			p.Status, p.Body, p.Object = http.StatusNotModified, nil, nil
		}
	})
}

// keepFirstList repeats the first list for each key forever; "" is no key.
func keepFirstList(key func(*http.Request) string) middleware {
	first := newMemory[map[string]any]()
	return onRPC("tools/list", func(m *rpc) {
		k, result := key(m.Request), m.Result()
		if k == "" || result == nil {
			return
		}
		kept := first.keep(k+"\x00"+fmt.Sprint(m.Params["cursor"]), maps.Clone(result))
		result["tools"] = kept["tools"]
		delete(result, "nextCursor")
		if next, more := kept["nextCursor"]; more {
			result["nextCursor"] = next
		}
	})
}

// keepToolsOfMCP shows by MCP, behind the last page, the tools that it has shown before for the same key and that stay; "" is no key.
func keepToolsOfMCP(key func(*http.Request) string, stays func(x *exchange, name string) bool) middleware {
	var mu sync.Mutex
	shown := map[string]map[string]any{} // by key and name
	return onRPC("tools/list", func(m *rpc) {
		k := key(m.Request)
		tools, ok := m.Result()["tools"].([]any)
		if !ok || k == "" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if shown[k] == nil {
			shown[k] = map[string]any{}
		}
		for _, t := range tools {
			shown[k][t.(tool)["name"].(string)] = t
		}
		if m.Result()["nextCursor"] != nil {
			return
		}
		rest := m.rest()
		now := rest.names()
		for name, t := range shown[k] {
			if !slices.Contains(now, name) && stays(rest, name) {
				tools = append(tools, t)
			}
		}
		m.Result()["tools"] = tools
	})
}

// rest is the exchange as one of the three endpoints, for what it asks of the bridge.
func (m *rpc) rest() *exchange {
	x := *m.exchange
	x.Request = m.Request.Clone(m.Request.Context())
	x.Request.URL.Path = "/mcp/tools/list"
	return &x
}

// toLaterPage reports whether a request asks for a page of the list that is not the first.
func toLaterPage(r *http.Request) bool { return toList(r) && r.URL.Query().Has("cursor") }

// versionWithout gives a list the hash of its tools without some members as its version.
func versionWithout(matches func(*http.Request) bool, members ...string) middleware {
	return onResponse(matches, func(x *exchange) {
		whole := x.Request.Header.Get("If-None-Match")
		if x.Status == http.StatusNotModified {
			return
		}
		object := x.Object()
		if x.Status != http.StatusOK || object == nil {
			return
		}
		tools, _ := object["tools"].([]any)
		for _, t := range tools {
			for _, name := range members {
				delete(t.(tool), name)
			}
		}
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256(encode(object)))
		x.Header.Set("ETag", tag)
		if strings.Contains(whole, tag) {
			x.Status, x.Body = http.StatusNotModified, nil
		}
	})
}

// markedOnce marks the first of several stale lists of a caller.
func markedOnce() middleware {
	marked := newMemory[bool]()
	return onResponse(toList, func(x *exchange) {
		stale := x.Header.Get("Warning")+x.Header.Get("Age") != ""
		before, _ := marked.get(authorized(x.Request))
		if marked.put(authorized(x.Request), stale); stale && before {
			x.Header.Del("Warning")
			x.Header.Del("Age")
		}
	})
}

// notModifiedFirst compares the version that a caller asks about with the last one that it was shown before it asks the bridge.
func notModifiedFirst() middleware {
	shown := newMemory[string]()
	return onResponse(toList, func(x *exchange) {
		key := authorized(x.Request) + x.Request.URL.RawQuery
		if tag, known := shown.get(key); known && x.Status == http.StatusForbidden && x.Request.Header.Get("If-None-Match") == tag {
			x.Status, x.Body = http.StatusNotModified, nil
		}
		if x.Status == http.StatusOK {
			shown.put(key, x.Header.Get("ETag"))
		}
	})
}

// keepAcrossInvalidation shows the list of before for a second after an invalidation: to who was listing meanwhile, and in answer to
// requests of a kind that the invalidation always misses.
func keepAcrossInvalidation(missed func(*http.Request) bool) middleware {
	lists, kept := newMemory[[]byte](), newMemory[time.Time]() // the last list, and until when it is shown
	var underWay sync.Map
	return chain(beforeBridge(func(r *http.Request) {
		if toInvalidate(r) {
			underWay.Range(func(key, _ any) bool { kept.put(key.(string), time.Now().Add(time.Second)); return true })
		}
	}), throughWhere(func(r *http.Request) bool { return toList(r) && r.Method == http.MethodGet && r.URL.RawQuery == "" }, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		key := authorized(r) + r.Header.Get("Accept-Language")
		underWay.Store(key, true)
		x := record(next, r, nil)
		if !missed(r) {
			underWay.Delete(key)
		}
		last, known := lists.get(key)
		if until, _ := kept.get(key); known && time.Now().Before(until) && x.Status == http.StatusOK {
			x.Body = last
		} else if x.Status == http.StatusOK {
			lists.put(key, x.Body)
		}
		x.writeTo(w)
	}))
}

// keepListsOfMCP shows by MCP, for a second after an invalidation, the list of before.
func keepListsOfMCP() middleware {
	lists := newMemory[map[string]any]()
	var until atomic.Int64
	return chain(beforeBridge(func(r *http.Request) {
		if toInvalidate(r) {
			until.Store(time.Now().Add(time.Second).UnixNano())
		}
	}), onRPC("tools/list", func(m *rpc) {
		key := authorized(m.Request) + fmt.Sprint(m.Params["cursor"])
		if last, known := lists.get(key); known && time.Now().UnixNano() < until.Load() {
			m.Response["result"] = last
		} else if m.Result() != nil {
			lists.put(key, m.Result())
		}
	}))
}

// rememberUnknown refuses for good over MCP what was once no tool of a caller.
func rememberUnknown() middleware {
	unknown := newMemory[map[string]any]()
	return onRPC("tools/call", func(m *rpc) {
		key := fmt.Sprint(authorized(m.Request), m.Params["name"])
		if failed, known := unknown.get(key); known {
			m.Response = map[string]any{"jsonrpc": "2.0", "id": m.Response["id"], "error": failed}
		} else if strings.Contains(string(m.Body), "no tool") {
			unknown.put(key, objectIn(m.Response, "error"))
		}
	})
}
