package mutants

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode"
)

// listPageMutants break pages and cursors in ways that a single list does not show.
func listPageMutants() []Mutant {
	ofOneFetch, countFetches := cursorsOfOneFetch()
	return []Mutant{
		{Name: "cursors-of-one-fetch", Breaks: Clauses("list/cursor-opaque-roundtrip"), Origin: Peer, Claims: "-cursor-base64-offset",
			Why: "a cursor names the fetch that its list is from, and not what was fetched", Middleware: ofOneFetch, Transport: countFetches},
		{Name: "sessions-see-one-page", Breaks: Clauses("list/pages-cover-all-once"), Origin: Imagined, Why: "cursors are kept for those who log in by Basic alone",
			Middleware: onList(func(p *page) {
				if p.Request.Header.Get("Cookie") != "" {
					delete(p.Object, "nextCursor")
				}
			})},
		{Name: "pages-never-end-with-new-cursors", Breaks: Clauses("list/pages-cover-all-once"), Origin: Peer, Claims: "-cursor-base64-offset",
			Why: "the last page has a cursor to itself, which is different each time", Middleware: func(next http.Handler) http.Handler {
				return newCursors(math.MaxInt64)(atTheEnd(func(p *page) { p.Object["nextCursor"] = cursorAt(offset(p.Cursor)) })(next))
			}},
		{Name: "pages-of-administrators-are-twice-as-long", Breaks: Clauses("list/page-size"), Origin: Imagined,
			Why: "the size of a page is a setting of the account",
			Middleware: onList(func(p *page) {
				if caller(p.Request) != "admin" || p.Cursor != "" {
					return
				}
				next := p.Send(http.MethodGet, p.Request.URL.Path+"?cursor="+cursorAt(len(p.Tools)), nil).Object()
				more, _ := next["tools"].([]any)
				p.Tools, p.Object["nextCursor"] = append(p.Tools, more...), next["nextCursor"]
			})},
		{Name: "cursor-offset-in-32-bits", Breaks: Clauses("list/cursor-malformed"), Origin: Peer, Why: "`offset | 0` of JavaScript",
			Middleware: beforeBridge(func(r *http.Request) {
				if n := offset(r.URL.Query().Get("cursor")); toList(r) && n > 1<<32 && n < 1<<40 {
					r.URL.RawQuery = "cursor=" + cursorAt(n&(1<<32-1))
				}
			})},
		{Name: "format-in-query-refused", Breaks: Clauses("list/unknown-query-ignored"), Origin: Module, Why: "Drupal knows the formats of a route",
			Middleware: refuseWhere(http.StatusNotAcceptable, "invalid_request", func(r *http.Request) bool { return r.URL.Query().Has("_format") })},
		{Name: "verb-in-query", Breaks: Clauses("list/unknown-query-ignored"), Origin: Peer, Why: "forms of the framework send other verbs so",
			Middleware: beforeBridge(func(r *http.Request) {
				if verb := r.URL.Query().Get("_method"); verb != "" && r.Method == http.MethodPost {
					r.Method = verb
				}
			})},
		{Name: "no-visible-tool-403", Breaks: Clauses("list/empty-site"), Origin: Imagined, Why: "a caller who may run none of the tools is refused",
			Middleware: onResponse(toList, func(x *exchange) {
				tools, ok := x.Object()["tools"].([]any)
				if ok && len(tools) == 0 && x.Request.URL.Query().Get("cursor") == "" && x.lists() && len(x.as("admin").names()) > 0 {
					x.Refuse(http.StatusForbidden, "access_denied", "No tool is open to you.")
				}
			})},
		{Name: "cursor-lenient-then-page-two", Breaks: Clauses("list/cursor-malformed", "list/cursor-malformed-400"), Origin: Imagined,
			Why: "the page starts at the leading number of the cursor, the next one at the end of the first page", Middleware: lenientCursors()},
		{Name: "cursor-leaks-hidden-name-compressed", Breaks: Clauses("list/cursor-no-leak"), Origin: Peer, Claims: "-cursor-base64-offset",
			Why: "session libraries compress what they encode", Middleware: compressedCursors("node.delete")},
		{Name: "unmarked-methods-for-few", Breaks: Clauses("list/only-marked-methods", "access/filtered-by-method", "access/no-oracle"), Origin: Imagined, Why: "the attribute is not read for callers who may run few methods",
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if authorized(r) != basicAuth("discoverer") {
					return next.RoundTrip(r)
				}
				return onMethods(func(_ string, attributes map[string]any) {
					if attributes["mcpTool"] == nil {
						attributes["mcpTool"] = map[string]any{}
					}
				})(next).RoundTrip(r)
			})},
		{Name: "cursor-percent-encoded-in-capitals", Breaks: Clauses("list/cursor-opaque-roundtrip"), Origin: Imagined, Why: "%3D is replaced in the query, %3d is not",
			Middleware: refuseWhere(http.StatusBadRequest, "invalid_cursor", func(r *http.Request) bool { return toList(r) && strings.Contains(r.URL.RawQuery, "%3d") })},
		{Name: "describe-takes-no-other-parameter", Breaks: Clauses("list/unknown-query-ignored"), Origin: Peer, Why: "the query is validated by a schema that is closed",
			Middleware: refuseWhere(http.StatusBadRequest, "invalid_request", func(r *http.Request) bool { return toDescribe(r) && len(r.URL.Query()) > 1 })},
		{Name: "title-of-the-annotations", Breaks: Clauses("list/tool-optional-members"), Origin: Peer, Why: "MCP has a title among the annotations, too",
			Middleware: onTool(func(t tool) {
				if notes, _ := t["annotations"].(map[string]any); t["title"] == nil && notes["title"] != nil {
					t["title"] = notes["title"]
				}
			})},
		{Name: "query-before-body", Breaks: Clauses("list/unknown-query-ignored", "invoke/missing-name"), Origin: Peer, Why: "the framework joins the parameters of query and body",
			Middleware: beforeBridge(func(r *http.Request) {
				if call := calledIn(r); call != nil && r.URL.Query().Get("name") != "" {
					call["name"] = r.URL.Query().Get("name")
					setBody(r, encode(call))
				}
			})},
		{Name: "lists-in-latin-1", Breaks: Clauses("list/answers-json"), Origin: Peer, Why: "the framework's charset is announced, whatever the body is in",
			Middleware: onResponse(toList, func(x *exchange) { x.Header.Set("Content-Type", "application/json; charset=ISO-8859-1") })},
		{Name: "lists-end-with-the-first-caller", Breaks: Clauses("list/answers-json"), Origin: Peer, Why: "requests that share a flight share the context of the first: singleflight with the request's context",
			Middleware: shareFirstContext()},
	}
}

// refuseWhere refuses the requests that match before the bridge sees them.
func refuseWhere(status int, code string, matches func(*http.Request) bool) middleware {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		return matches(r) && refuseAt(w, r, status, code, "The request has a name or arguments that cannot be read.")
	})
}

// shareFirstContext sends callers with the same credentials who list at the same time one response, which is lost if the
// first of them leaves.
func shareFirstContext() middleware {
	first := func(r *http.Request) bool { return toList(r) && r.Method == http.MethodGet && r.URL.RawQuery == "" }
	return shareFlights(first, func(r *http.Request, _ []byte) string { return fmt.Sprint(r.Header) }, func(x *exchange) {
		if x.Request.Context().Err() != nil {
			x.Refuse(http.StatusBadGateway, "upstream_error", "The site did not respond.")
		}
	})
}

// lenientCursors reads the leading number of a malformed cursor as an offset, and lets page two follow each such page.
func lenientCursors() middleware {
	return onResponse(toList, func(x *exchange) {
		raw, err := base64.StdEncoding.DecodeString(x.Request.URL.Query().Get("cursor"))
		digits := strings.TrimRightFunc(string(raw), func(r rune) bool { return !unicode.IsDigit(r) })
		n, notNumber := strconv.Atoi(digits)
		if x.Status != http.StatusBadRequest || err != nil || notNumber != nil || n <= 0 || digits == string(raw) {
			return
		}
		page := x.Send(http.MethodGet, x.Request.URL.Path+"?cursor="+cursorAt(n), nil)
		object := page.Object()
		if object == nil {
			return
		}
		object["nextCursor"] = cursorAt(50)
		x.Set(http.StatusOK, object)
	})
}

// compressedCursors puts a name into cursors, compressed and in base64.
func compressedCursors(name string) middleware {
	known := newMemory[string]()
	return translateCursors(
		func(_ *http.Request, cursor string) string {
			var b bytes.Buffer
			w := zlib.NewWriter(&b)
			fmt.Fprintf(w, `{"after":%q,"offset":%d}`, name, offset(cursor))
			w.Close() //nolint:errcheck // a buffer does not fail
			packed := base64.URLEncoding.EncodeToString(b.Bytes())
			known.put(packed, cursor)
			return packed
		},
		func(_ *http.Request, packed string) string {
			if cursor, ok := known.get(packed); ok {
				return cursor
			}
			return "!"
		})
}

// cursorsOfOneFetch are cursors that are invalid once the caller's methods have been fetched again.
func cursorsOfOneFetch() (middleware, transport) {
	fetches := newMemory[int]()
	fetch := func(r *http.Request) string {
		n, _ := fetches.get(authorized(r))
		return fmt.Sprintf("f%d.", n)
	}
	return translateCursors(
			func(r *http.Request, cursor string) string { return fetch(r) + cursor },
			func(r *http.Request, given string) string {
				if cursor, current := strings.CutPrefix(given, fetch(r)); current {
					return cursor
				}
				return "!"
			}),
		onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if isDiscovery(r) {
				n, _ := fetches.get(authorized(r))
				fetches.put(authorized(r), n+1)
			}
			return next.RoundTrip(r)
		})
}

// newCursors issues a new cursor in every response; the last so many stay valid.
func newCursors(kept int64) middleware {
	var issued atomic.Int64
	return translateCursors(
		func(_ *http.Request, cursor string) string { return fmt.Sprintf("p%d.%s", issued.Add(1), cursor) },
		func(_ *http.Request, given string) string {
			number, cursor, ok := strings.Cut(given, ".")
			if n, err := strconv.ParseInt(strings.TrimPrefix(number, "p"), 10, 64); ok && err == nil && n <= issued.Load() && n > issued.Load()-kept {
				return cursor
			}
			return "!"
		})
}
