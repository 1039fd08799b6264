package selftest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/bridge"
)

// offset reads a reference cursor; 0 on the first page or for another form.
func offset(cursor string) int {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(cursor, "="))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(raw))
	return n
}

func cursorAt(n int) string { return base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(n))) }

// withCursor asks the bridge for another page of the same caller.
func (p *page) withCursor(cursor string) []any {
	target := p.Request.URL.Path
	if cursor != "" {
		target += "?cursor=" + url.QueryEscape(cursor)
	}
	tools, _ := p.Ask(http.MethodGet, target, nil).Object()["tools"].([]any)
	return tools
}

var listMutants = []Mutant{
	{Name: "list-text-html", Breaks: Clauses("list/answers-json"), Origin: Peer,
		Front: onAnswer(toList, func(x *exchange) {
			if x.Status == http.StatusOK {
				x.Header.Set("Content-Type", "text/html; charset=UTF-8")
			}
		})},
	{Name: "list-byte-order-mark", Breaks: Clauses("list/answers-json"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			if x.Status == http.StatusOK {
				x.Body = append([]byte("\xef\xbb\xbf"), x.Body...)
			}
		})},
	{Name: "list-duplicate-member", Breaks: Clauses("list/answers-json"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			if x.Status == http.StatusOK && len(x.Body) > 1 {
				x.Body = append([]byte(`{"tools":[],`), x.Body[1:]...)
			}
		})},
	{Name: "tools-object-when-empty", Breaks: Clauses("list/has-tools-array", "list/empty-site"), Origin: Module,
		Front: onList(func(p *page) {
			if len(p.Tools) == 0 {
				p.Object["tools"] = map[string]any{}
				p.Body, p.Object = encode(p.Object), nil
			}
		})},
	{Name: "tools-null-when-empty", Breaks: Clauses("list/has-tools-array", "list/empty-site"), Origin: Peer,
		Front: onList(func(p *page) {
			if len(p.Tools) == 0 {
				p.Tools = nil
			}
		})},
	{Name: "tools-object-by-name", Breaks: Clauses("list/has-tools-array"), Origin: Imagined,
		Front: onList(func(p *page) {
			byName := map[string]any{}
			for _, t := range p.Tools {
				byName[fmt.Sprint(t.(tool)["name"])] = t
			}
			p.Object["tools"] = byName
			p.Body, p.Object = encode(p.Object), nil
		})},
	{Name: "next-cursor-number", Breaks: Clauses("list/next-cursor-type"), Origin: Imagined,
		Front: onList(func(p *page) {
			if c, ok := p.Object["nextCursor"].(string); ok && c != "" {
				p.Object["nextCursor"] = offset(c)
			}
		})},
	{Name: "next-cursor-empty-at-end", Breaks: Clauses("list/next-cursor-type"), Origin: Peer,
		Front: onList(func(p *page) {
			if c, _ := p.Object["nextCursor"].(string); c == "" {
				p.Object["nextCursor"] = ""
			}
		})},
	{Name: "next-cursor-false-at-end", Breaks: Clauses("list/next-cursor-type"), Origin: Imagined,
		Front: onList(func(p *page) {
			if c, _ := p.Object["nextCursor"].(string); c == "" {
				p.Object["nextCursor"] = false
			}
		})},
	{Name: "description-missing-when-empty", Breaks: Clauses("list/tool-required-members"), Origin: Peer,
		Front: onTool(func(t tool) {
			if t["description"] == "" || t["description"] == t["title"] {
				delete(t, "description")
			}
		})},
	{Name: "description-null-on-page-two", Breaks: Clauses("list/tool-required-members", "describe/equals-list"), Origin: Imagined,
		Front: onList(func(p *page) {
			if p.Cursor != "" && len(p.Tools) > 0 {
				p.Tools[len(p.Tools)-1].(tool)["description"] = nil
			}
		})},
	{Name: "title-null", Breaks: Clauses("list/tool-optional-members"), Origin: Peer,
		Front: onTool(func(t tool) {
			if _, ok := t["title"]; !ok {
				t["title"] = nil
			}
		})},
	{Name: "title-empty", Breaks: Clauses("list/tool-optional-members"), Origin: Imagined,
		Front: onTool(func(t tool) {
			if _, ok := t["title"]; !ok {
				t["title"] = ""
			}
		})},
	{Name: "annotations-list-when-empty", Breaks: Clauses("list/tool-optional-members"), Origin: Module,
		Front: onTool(func(t tool) {
			if a, ok := t["annotations"].(map[string]any); !ok || len(a) == 0 {
				t["annotations"] = []any{}
			}
		})},
	{Name: "output-schema-null", Breaks: Clauses("list/tool-optional-members"), Origin: Peer,
		Front: onTool(func(t tool) {
			if _, ok := t["outputSchema"]; !ok {
				t["outputSchema"] = nil
			}
		})},
	{Name: "description-empty", Breaks: Clauses("list/description-not-empty"), Origin: Module,
		Front: onTool(func(t tool) {
			if d, _ := t["description"].(string); d == t["name"] || d == t["title"] {
				t["description"] = ""
			}
		})},
	{Name: "second-page-duplicates-last", Breaks: Clauses("list/names-unique", "list/pages-cover-all-once"), Origin: Imagined,
		Front: onList(func(p *page) {
			if n := offset(p.Cursor); n > 0 && len(p.Tools) > 0 {
				before := p.withCursor("")
				p.Tools = append([]any{before[len(before)-1]}, p.Tools...)
			}
		})},
	{Name: "second-page-skips-first", Breaks: Clauses("list/pages-cover-all-once", "access/filtered-by-method"), Origin: Imagined,
		Front: onList(func(p *page) {
			if offset(p.Cursor) > 0 && len(p.Tools) > 0 {
				p.Tools = p.Tools[1:]
			}
		})},
	{Name: "one-tool-withheld", Breaks: Clauses("list/pages-cover-all-once", "access/filtered-by-method"), Origin: Imagined,
		Front: onList(func(p *page) {
			p.Tools = slices.DeleteFunc(p.Tools, func(t any) bool { return strings.HasPrefix(fmt.Sprint(t.(tool)["name"]), "taxonomy.") })
		})},
	{Name: "pages-never-end", Breaks: Clauses("list/pages-cover-all-once"), Origin: Peer,
		Front: onList(func(p *page) {
			if c, _ := p.Object["nextCursor"].(string); c == "" {
				p.Object["nextCursor"] = cursorAt(offset(p.Cursor) + 50)
			}
		})},
	{Name: "order-shuffled", Breaks: Clauses("list/order-stable"), Origin: Peer,
		Front: onList(func(p *page) {
			rand.Shuffle(len(p.Tools), func(i, j int) { p.Tools[i], p.Tools[j] = p.Tools[j], p.Tools[i] })
		})},
	{Name: "order-alternates", Breaks: Clauses("list/order-stable"), Origin: Imagined, Front: alternatingOrder()},
	{Name: "page-of-49", Breaks: Clauses("list/page-size"), Origin: Imagined,
		Options: func(o *bridge.Options) { o.PageSize = 49 }},
	{Name: "page-of-100", Breaks: Clauses("list/page-size"), Origin: Imagined,
		Options: func(o *bridge.Options) { o.PageSize = 100 }},
	{Name: "empty-trailing-page", Breaks: Clauses("list/page-boundary-exact"), Origin: Peer,
		Front: onList(func(p *page) {
			if c, _ := p.Object["nextCursor"].(string); c == "" && len(p.Tools) == 50 {
				p.Object["nextCursor"] = cursorAt(offset(p.Cursor) + 50)
			}
		})},
	{Name: "empty-site-404", Breaks: Clauses("list/empty-site"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			if tools, ok := x.Object()["tools"].([]any); ok && len(tools) == 0 && x.Request.URL.Query().Get("cursor") == "" {
				x.Refuse(http.StatusNotFound, "not_found", "No tools are available")
			}
		})},
	{Name: "cursor-hex", Breaks: Clauses("list/cursor-base64-offset"), Origin: Imagined, Front: hexCursors},
	{Name: "cursor-unpadded-refused", Breaks: Clauses("list/cursor-base64-offset"), Origin: Imagined,
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if c := r.URL.Query().Get("cursor"); toList(r) && len(c)%4 != 0 {
				r.URL.RawQuery = "cursor=%21"
			}
			return false
		})},
	{Name: "cursor-works-once", Breaks: Clauses("list/cursor-opaque-roundtrip"), Free: Clauses("list/pages-cover-all-once"), Origin: Imagined, Front: cursorWorksOnce()},
	{Name: "cursor-past-end-wraps", Breaks: Clauses("list/cursor-past-end"), Origin: Imagined,
		Front: onList(func(p *page) {
			if len(p.Tools) == 0 && offset(p.Cursor) > 0 {
				p.Tools = p.withCursor("")
			}
		})},
	{Name: "cursor-negative-from-end", Breaks: Clauses("list/cursor-malformed", "list/cursor-malformed-400"), Origin: Module,
		Front: onAnswer(toList, func(x *exchange) {
			c := x.Request.URL.Query().Get("cursor")
			if offset(c) < 0 {
				all, _ := x.Ask(http.MethodGet, x.Request.URL.Path, nil).Object()["tools"].([]any)
				x.Set(http.StatusOK, map[string]any{"tools": all[max(0, len(all)+offset(c)):], "nextCursor": nil})
			}
		})},
	{Name: "cursor-garbage-500", Breaks: Clauses("list/cursor-malformed"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			if x.Status == http.StatusBadRequest {
				x.Refuse(http.StatusInternalServerError, "internal_error", "illegal base64 data at input byte 0")
			}
		})},
	{Name: "cursor-list-500", Breaks: Clauses("list/cursor-malformed"), Origin: Module,
		Front: onAnswer(toList, func(x *exchange) {
			if strings.Contains(x.Request.URL.RawQuery, "cursor[") || strings.Contains(x.Request.URL.RawQuery, "cursor%5B") {
				x.Refuse(http.StatusInternalServerError, "internal_error", "The website encountered an unexpected error")
			}
		})},
	{Name: "cursor-garbage-first-page", Breaks: Clauses("list/cursor-malformed-400"), Origin: Module,
		Front: onAnswer(toList, func(x *exchange) {
			if x.Status == http.StatusBadRequest {
				*x = *x.Ask(http.MethodGet, x.Request.URL.Path, nil)
			}
		})},
	{Name: "cursor-empty-400", Breaks: Clauses("list/cursor-empty"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			if q := x.Request.URL.Query(); q.Has("cursor") && q.Get("cursor") == "" {
				x.Refuse(http.StatusBadRequest, "invalid_cursor", "The cursor is empty")
			}
		})},
	{Name: "cursor-leaks-hidden-name", Breaks: Clauses("list/cursor-no-leak"), Origin: Peer, Claims: "-cursor-base64-offset", Front: leakyCursors},
	{Name: "unknown-query-400", Breaks: Clauses("list/unknown-query-ignored"), Origin: Imagined,
		Front: onAnswer(toList, func(x *exchange) {
			for name := range x.Request.URL.Query() {
				if !strings.HasPrefix(name, "cursor") {
					x.Refuse(http.StatusBadRequest, "invalid_request", "Unknown parameter "+name)
				}
			}
		})},
	{Name: "every-method-is-a-tool", Breaks: Clauses("list/only-marked-methods", "describe/hidden-404", "invoke/hidden-404", "access/filtered-by-method", "access/no-oracle"), Origin: Imagined,
		Upstream: onMethods(func(_ string, attributes map[string]any) {
			if attributes["mcpTool"] == nil {
				attributes["mcpTool"] = map[string]any{}
			}
		})},
	{Name: "offset-into-another-list", Breaks: Clauses("list/change-between-pages"), Origin: Module, Why: "a tool that went shifts all that follow", Front: relisted(func(tool, tool) int { return 0 })},
	{Name: "cursor-carries-the-list", Breaks: Clauses("list/cursor-other-caller", "list/change-between-pages"), Free: Clauses("access/filtered-by-method", "list/names-unique", "list/pages-cover-all-once"), Origin: Imagined, Front: cursorKeepsTools()},
}

// alternatingOrder turns every second full listing round.
func alternatingOrder() front {
	var listings atomic.Int64
	return onList(func(p *page) {
		if p.Cursor == "" && listings.Add(1)%2 == 0 && len(p.Tools) > 2 {
			p.Tools[0], p.Tools[1] = p.Tools[1], p.Tools[0]
		}
	})
}

// hexCursors gives out offsets in hexadecimal and takes them back.
func hexCursors(next http.Handler) http.Handler {
	changed := onList(func(p *page) {
		if c, _ := p.Object["nextCursor"].(string); c != "" {
			p.Object["nextCursor"] = fmt.Sprintf("%x", offset(c))
		}
	})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.ParseInt(r.URL.Query().Get("cursor"), 16, 32); toList(r) && err == nil {
			r.URL.RawQuery = "cursor=" + url.QueryEscape(cursorAt(int(n)))
		}
		changed.ServeHTTP(w, r)
	})
}

// cursorWorksOnce forgets a cursor when it was used.
func cursorWorksOnce() front {
	used := newSet()
	return onAnswer(toList, func(x *exchange) {
		c := x.Request.URL.Query().Get("cursor")
		if c != "" && x.Status == http.StatusOK && !used.add(x.Request.Header.Get("Authorization")+c) {
			x.Refuse(http.StatusBadRequest, "invalid_cursor", "This cursor was used already")
		}
	})
}

// leakyCursors carries the name of the method before which the next page starts, hidden or not, as filtering after
// paging does.
func leakyCursors(next http.Handler) http.Handler {
	const hidden = "node.delete"
	changed := onList(func(p *page) {
		if c, _ := p.Object["nextCursor"].(string); c != "" {
			p.Object["nextCursor"] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf(`{"after":%q,"offset":%d}`, hidden, offset(c))))
		}
	})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := base64.StdEncoding.DecodeString(r.URL.Query().Get("cursor"))
		var n int
		if toList(r) && err == nil {
			if _, err := fmt.Sscanf(string(raw), `{"after":"`+hidden+`","offset":%d}`, &n); err == nil {
				r.URL.RawQuery = "cursor=" + url.QueryEscape(cursorAt(n))
			}
		}
		changed.ServeHTTP(w, r)
	})
}

// cursorKeepsTools remembers the page that a cursor leads to, whoever sends it.
func cursorKeepsTools() front {
	pages := newTable[[]byte]()
	return onAnswer(toList, func(x *exchange) {
		c := x.Request.URL.Query().Get("cursor")
		if kept, ok := pages.get(c); ok && c != "" && x.Status == http.StatusOK {
			x.Body = kept
			return
		}
		if next, _ := x.Object()["nextCursor"].(string); next != "" && x.Status == http.StatusOK {
			pages.put(next, x.Ask(http.MethodGet, x.Request.URL.Path+"?cursor="+url.QueryEscape(next), nil).Body)
		}
	})
}
