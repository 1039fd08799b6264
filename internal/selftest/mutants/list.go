package mutants

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/bridge"
)

// listMutants break the list: its members, pages, cursors and order.
func listMutants() []Mutant {
	return []Mutant{
		{Name: "list-text-html", Breaks: Clauses("list/answers-json"), Origin: Peer,
			Middleware: onResponse(toList, atStatus(http.StatusOK, func(x *exchange) {
				x.Header.Set("Content-Type", "text/html; charset=UTF-8")
			}))},
		{Name: "list-byte-order-mark", Breaks: Clauses("list/answers-json"), Origin: Imagined,
			Middleware: onResponse(toList, atStatus(http.StatusOK, func(x *exchange) { x.Body = append([]byte("\xef\xbb\xbf"), x.Body...) }))},
		{Name: "tools-object-when-empty", Breaks: Clauses("list/has-tools-array", "list/empty-site"), Origin: Module,
			Middleware: onList(func(p *page) {
				if len(p.Tools) == 0 {
					p.Object["tools"] = map[string]any{}
					p.Body, p.Object = encode(p.Object), nil
				}
			})},
		{Name: "tools-null-when-empty", Breaks: Clauses("list/has-tools-array", "list/empty-site"), Origin: Peer,
			Middleware: onList(func(p *page) {
				if len(p.Tools) == 0 {
					p.Tools = nil
				}
			})},
		{Name: "tools-object-by-name", Breaks: Clauses("list/has-tools-array"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				byName := map[string]any{}
				for _, t := range p.Tools {
					byName[fmt.Sprint(t.(tool)["name"])] = t
				}
				p.Object["tools"] = byName
				p.Body, p.Object = encode(p.Object), nil
			})},
		{Name: "next-cursor-number", Breaks: Clauses("list/next-cursor-type"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				if c, ok := p.Object["nextCursor"].(string); ok && c != "" {
					p.Object["nextCursor"] = offset(c)
				}
			})},
		{Name: "next-cursor-empty-at-end", Breaks: Clauses("list/next-cursor-type"), Origin: Peer,
			Middleware: atTheEnd(func(p *page) { p.Object["nextCursor"] = "" })},
		{Name: "description-missing-when-empty", Breaks: Clauses("list/tool-required-members"), Origin: Peer,
			Middleware: onTool(func(t tool) {
				if t["description"] == "" || t["description"] == t["title"] {
					delete(t, "description")
				}
			})},
		{Name: "description-null-on-page-two", Breaks: Clauses("list/tool-required-members", "describe/equals-list"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				if p.Cursor != "" && len(p.Tools) > 0 {
					p.Tools[len(p.Tools)-1].(tool)["description"] = nil
				}
			})},
		{Name: "title-null", Breaks: Clauses("list/tool-optional-members"), Origin: Peer,
			Middleware: onTool(setWhereMissing("title", nil))},
		{Name: "title-empty", Breaks: Clauses("list/tool-optional-members"), Origin: Imagined,
			Middleware: onTool(setWhereMissing("title", ""))},
		{Name: "annotations-list-when-empty", Breaks: Clauses("list/tool-optional-members"), Origin: Module,
			Middleware: onTool(func(t tool) {
				if a, ok := t["annotations"].(map[string]any); !ok || len(a) == 0 {
					t["annotations"] = []any{}
				}
			})},
		{Name: "described-output-schema-null", Breaks: Clauses("list/tool-optional-members"), Origin: Peer,
			Why:        "describe encodes the whole class, list a part of it",
			Middleware: onResponse(toDescribe, func(x *exchange) { x.eachTool(setWhereMissing("outputSchema", nil)) })},
		{Name: "output-schema-null", Breaks: Clauses("list/tool-optional-members"), Origin: Peer,
			Middleware: onTool(setWhereMissing("outputSchema", nil))},
		{Name: "description-empty", Breaks: Clauses("list/description-not-empty", "mapping/description-is-usage"), Origin: Module,
			Middleware: onTool(func(t tool) {
				if d, _ := t["description"].(string); d == t["name"] || d == t["title"] {
					t["description"] = ""
				}
			})},
		{Name: "second-page-duplicates-last", Breaks: Clauses("list/names-unique", "list/pages-cover-all-once"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				if n := offset(p.Cursor); n > 0 && len(p.Tools) > 0 {
					before := p.withCursor("")
					p.Tools = append([]any{before[len(before)-1]}, p.Tools...)
				}
			})},
		{Name: "second-page-skips-first", Breaks: Clauses("list/pages-cover-all-once", "access/filtered-by-method"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				if offset(p.Cursor) > 0 && len(p.Tools) > 0 {
					p.Tools = p.Tools[1:]
				}
			})},
		{Name: "one-tool-withheld", Breaks: Clauses("list/pages-cover-all-once", "access/filtered-by-method"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				p.Tools = slices.DeleteFunc(p.Tools, func(t any) bool { return strings.HasPrefix(fmt.Sprint(t.(tool)["name"]), "taxonomy.") })
			})},
		{Name: "pages-never-end", Breaks: Clauses("list/pages-cover-all-once"), Origin: Peer,
			Middleware: atTheEnd(func(p *page) { p.Object["nextCursor"] = cursorAt(offset(p.Cursor) + 50) })},
		{Name: "order-alternates", Breaks: Clauses("list/order-stable"), Origin: Imagined, Middleware: alternatingOrder()},
		{Name: "order-of-a-language", Breaks: Clauses("list/order-stable"), MayFail: Clauses("access/no-cross-talk", "fresh/version"), Origin: Peer,
			Why: "who asks in a language reads the tools by their titles",
			Middleware: onList(func(p *page) {
				if p.Request.Header.Get("Accept-Language") != "" {
					slices.SortStableFunc(p.Tools, func(a, b any) int { return cmp.Compare(fmt.Sprint(b.(tool)["title"]), fmt.Sprint(a.(tool)["title"])) })
				}
			})},
		{Name: "list-of-200-at-most", Breaks: Clauses("list/page-boundary-exact"), Origin: Peer, Why: "the site is asked for so many methods",
			Middleware: onList(func(p *page) {
				if offset(p.Cursor) >= 150 {
					delete(p.Object, "nextCursor")
				}
			})},
		{Name: "mcp-empty-trailing-page", MCP: true, Breaks: Clauses("list/page-boundary-exact"), Origin: Peer, Why: "a full page is taken for one with others behind it",
			Middleware: onRPCResult("tools/list", func(result map[string]any) {
				if tools, _ := result["tools"].([]any); len(tools) == 50 && result["nextCursor"] == nil {
					result["nextCursor"] = cursorAt(100)
				}
			})},
		{Name: "page-of-49", Breaks: Clauses("list/page-size"), Origin: Imagined,
			Options: func(o *bridge.Options) { o.PageSize = 49 }},
		{Name: "page-of-100", Breaks: Clauses("list/page-size"), Origin: Imagined,
			Options: func(o *bridge.Options) { o.PageSize = 100 }},
		{Name: "empty-trailing-page", Breaks: Clauses("list/page-boundary-exact"), Origin: Peer,
			Middleware: atTheEnd(func(p *page) {
				if len(p.Tools) == 50 {
					p.Object["nextCursor"] = cursorAt(offset(p.Cursor) + 50)
				}
			})},
		{Name: "empty-page-behind-three", Breaks: Clauses("list/page-boundary-exact"), Origin: Peer,
			Why: "the pages are counted while they are made, and one too many",
			Middleware: atTheEnd(func(p *page) {
				if end := offset(p.Cursor) + len(p.Tools); end == 150 {
					p.Object["nextCursor"] = cursorAt(end)
				}
			})},
		{Name: "empty-site-404", Breaks: Clauses("list/empty-site"), Origin: Imagined,
			Middleware: onResponse(toList, func(x *exchange) {
				if tools, ok := x.Object()["tools"].([]any); ok && len(tools) == 0 && x.Request.URL.Query().Get("cursor") == "" {
					x.Refuse(http.StatusNotFound, "not_found", "No tools are available")
				}
			})},
		{Name: "cursor-hex", Breaks: Clauses("list/cursor-base64-offset"), Origin: Imagined, Middleware: hexCursors()},
		{Name: "cursor-unpadded-refused", Breaks: Clauses("list/cursor-base64-offset"), Origin: Imagined,
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
				if c := r.URL.Query().Get("cursor"); toList(r) && len(c)%4 != 0 {
					r.URL.RawQuery = "cursor=%21"
				}
				return false
			})},
		{Name: "cursor-works-once", Breaks: Clauses("list/cursor-opaque-roundtrip"), MayFail: Clauses("list/pages-cover-all-once"), Origin: Imagined, Middleware: singleUseCursors()},
		{Name: "last-cursor-works-once", Breaks: Clauses("list/cursor-opaque-roundtrip"), MayFail: Clauses("list/pages-cover-all-once"), Origin: Peer, Why: "with the last page the list is over",
			Middleware: forgetLastCursor()},
		{Name: "sixteen-cursors-kept", Breaks: Clauses("list/cursor-opaque-roundtrip"), Origin: Peer, Claims: "-cursor-base64-offset",
			MayFail: Clauses("list/pages-cover-all-once"), // whose lists of several callers are read at once
			Why:     "cursors are random keys of a small cache", Middleware: newCursors(16)},
		{Name: "cursor-past-end-wraps", Breaks: Clauses("list/cursor-past-end"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				if len(p.Tools) == 0 && offset(p.Cursor) > 0 {
					p.Tools = p.withCursor("")
				}
			})},
		{Name: "cursor-negative-from-end", Breaks: Clauses("list/cursor-malformed", "list/cursor-malformed-400"), Origin: Module,
			Middleware: onResponse(toList, func(x *exchange) {
				c := x.Request.URL.Query().Get("cursor")
				if offset(c) < 0 {
					all, _ := x.Send(http.MethodGet, x.Request.URL.Path, nil).Object()["tools"].([]any)
					x.Set(http.StatusOK, map[string]any{"tools": all[max(0, len(all)+offset(c)):], "nextCursor": nil})
				}
			})},
		{Name: "own-cursor-negative-from-end", Breaks: Clauses("list/cursor-malformed"), Origin: Peer, Why: "the number of a cursor may have a sign",
			Middleware: onResponse(toList, func(x *exchange) {
				if own, minus := strings.CutPrefix(x.Request.URL.Query().Get("cursor"), "-"); minus && offset(own) > 0 {
					all, _ := x.Send(http.MethodGet, x.Request.URL.Path, nil).Object()["tools"].([]any)
					x.Set(http.StatusOK, map[string]any{"tools": all[max(0, len(all)-5):], "nextCursor": nil})
				}
			})},
		{Name: "cursor-list-500", Breaks: Clauses("list/cursor-malformed"), Origin: Module,
			Middleware: onResponse(toList, func(x *exchange) {
				if strings.Contains(x.Request.URL.RawQuery, "cursor[") || strings.Contains(x.Request.URL.RawQuery, "cursor%5B") {
					x.Refuse(http.StatusInternalServerError, "internal_error", "The website encountered an unexpected error")
				}
			})},
		{Name: "cursor-of-any-numeral", Breaks: Clauses("list/cursor-malformed-400"), Origin: Peer,
			Why: "is_numeric() takes +50 and 50.9 for numbers, and the offset must be one of a page",
			Middleware: onBadCursor(func(x *exchange) {
				raw, _ := base64.StdEncoding.DecodeString(x.Request.URL.Query().Get("cursor"))
				if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n > 0 && int(n)%50 == 0 {
					*x = *x.Send(http.MethodGet, x.Request.URL.Path+"?cursor="+cursorAt(int(n)), nil)
				}
			})},
		{Name: "cursor-of-a-trimmed-number", Breaks: Clauses("list/cursor-malformed-400"), Origin: Peer, Why: "int() of Python takes blanks around a number",
			Middleware: onBadCursor(func(x *exchange) {
				raw, _ := base64.StdEncoding.DecodeString(x.Request.URL.Query().Get("cursor"))
				if n, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && n == 50 && raw[0] != '+' {
					*x = *x.Send(http.MethodGet, x.Request.URL.Path+"?cursor="+cursorAt(n), nil)
				}
			})},
		{Name: "own-cursor-of-a-trimmed-number", Breaks: Clauses("list/cursor-malformed-400"), Origin: Peer, Claims: "-cursor-base64-offset",
			Why: "int() of Python takes blanks around a number, here in base64 for URLs", Middleware: unpaddedCursors(strings.TrimSpace)},
		{Name: "cursor-without-base64", Breaks: Clauses("list/cursor-malformed-400"), Origin: Peer, Why: "a bare number is taken as well",
			Middleware: onBadCursor(func(x *exchange) {
				if n, err := strconv.Atoi(x.Request.URL.Query().Get("cursor")); err == nil && n > 0 {
					*x = *x.Send(http.MethodGet, x.Request.URL.Path+"?cursor="+cursorAt(n), nil)
				}
			})},
		{Name: "cursor-among-other-characters", Breaks: Clauses("list/cursor-malformed-400"), Origin: Peer, Why: "the decoder passes over what is no base64",
			Middleware: onBadCursor(func(x *exchange) {
				if given := x.Request.URL.Query().Get("cursor"); strings.Contains(given, "!T") {
					*x = *x.Send(http.MethodGet, x.Request.URL.Path+"?cursor="+strings.ReplaceAll(given, "!", ""), nil)
				}
			})},
		{Name: "cursor-with-more-behind-it", Breaks: Clauses("list/cursor-malformed-400"), Origin: Peer, Why: "the pattern of a cursor has no end",
			Middleware: onBadCursor(func(x *exchange) {
				if own, more := strings.CutSuffix(x.Request.URL.Query().Get("cursor"), " !"); more {
					*x = *x.Send(http.MethodGet, x.Request.URL.Path+"?"+url.Values{"cursor": {own}}.Encode(), nil)
				}
			})},
		{Name: "cursor-blank-first-page", Breaks: Clauses("list/cursor-malformed-400"), Origin: Peer, Why: "parameters are trimmed",
			Middleware: onBadCursor(func(x *exchange) {
				if x.Request.URL.Query().Get("cursor") == " " {
					*x = *x.Send(http.MethodGet, x.Request.URL.Path, nil)
				}
			})},
		{Name: "cursor-of-too-many-digits-500", Breaks: Clauses("list/cursor-malformed"), Origin: Peer,
			Why: "Python's int() refuses more than 4300 digits with another exception",
			Middleware: onBadCursor(func(x *exchange) {
				if raw, _ := base64.StdEncoding.DecodeString(x.Request.URL.Query().Get("cursor")); len(raw) > 4300 && raw[0] == '9' {
					x.Refuse(http.StatusInternalServerError, "internal_error", "The request failed.")
				}
			})},
		{Name: "pages-begin-at-the-last-that-is-left", Breaks: Clauses("list/change-between-pages"), MayFail: Clauses("fresh/version"), Origin: Peer,
			Why: "where all tools behind a cursor are gone, it leads to the last one before them", Middleware: lastOfTheRest()},
		{Name: "offset-into-a-shorter-list", Breaks: Clauses("list/change-between-pages"), Origin: Peer, Why: "a cursor is carried over into a list that has grown, or has as many tools", Middleware: plainAfterRemovals()},
		{Name: "pages-of-whoever-listed-last", Breaks: Clauses("list/cursor-other-caller"), MayFail: Clauses("access/no-cross-talk"), Origin: Peer,
			Why:        "the list that is kept for further pages is one for all callers",
			Middleware: pagesOfTheLast()},
		{Name: "cursor-empty-400", Breaks: Clauses("list/cursor-empty"), Origin: Imagined,
			Middleware: onResponse(toList, func(x *exchange) {
				if q := x.Request.URL.Query(); q.Has("cursor") && q.Get("cursor") == "" {
					x.Refuse(http.StatusBadRequest, "invalid_cursor", "The cursor is empty")
				}
			})},
		{Name: "cursor-leaks-hidden-name", Breaks: Clauses("list/cursor-no-leak"), Origin: Peer, Claims: "-cursor-base64-offset", Middleware: leakyCursors()},
		{Name: "unknown-query-400", Breaks: Clauses("list/unknown-query-ignored"), Origin: Imagined,
			Middleware: onResponse(toList, func(x *exchange) {
				for name := range x.Request.URL.Query() {
					if !strings.HasPrefix(name, "cursor") {
						x.Refuse(http.StatusBadRequest, "invalid_request", "Unknown parameter "+name)
					}
				}
			})},
		{Name: "every-method-is-a-tool", Breaks: Clauses("list/only-marked-methods", "describe/hidden-404", "invoke/hidden-404", "access/filtered-by-method", "access/no-oracle"), Origin: Imagined,
			Transport: onMethods(func(_ string, attributes map[string]any) {
				if attributes["mcpTool"] == nil {
					attributes["mcpTool"] = map[string]any{}
				}
			})},
		{Name: "offset-into-another-list", Breaks: Clauses("list/change-between-pages"), Origin: Module, Why: "a removed tool shifts all tools after it", Middleware: resortList(func(tool, tool) int { return 0 })},
		{Name: "cursor-carries-the-list", Breaks: Clauses("list/cursor-other-caller", "list/change-between-pages"), MayFail: Clauses("access/filtered-by-method", "list/names-unique", "list/pages-cover-all-once"), Origin: Imagined, Middleware: cachePagesByCursor()},
		{Name: "tools-keyed-when-filtered", Breaks: Clauses("list/has-tools-array"), Origin: Module, Why: "array_filter() keeps the keys",
			Middleware: onList(func(p *page) {
				if caller(p.Request) != "discoverer" {
					return
				}
				keyed := map[string]any{}
				for i, t := range p.Tools {
					keyed[strconv.Itoa(i+1)] = t
				}
				p.Object["tools"] = keyed
				p.Body, p.Object = encode(p.Object), nil
			})},
		{Name: "last-tool-never-goes", Breaks: Clauses("list/empty-site"), Origin: Imagined, Why: "an empty discovery is handled as a failed one", Transport: keepToolsWhenEmpty()},
	}
}

// listVariants use other cursors and another order than the reference.
func listVariants() []Mutant {
	return []Mutant{
		{Name: "cursor-null-at-the-end", Why: "null and absent mean the same", Middleware: atTheEnd(func(p *page) { p.Object["nextCursor"] = nil })},
		{Name: "cursor-absent-at-the-end", Why: "null and absent mean the same", Middleware: atTheEnd(func(p *page) { delete(p.Object, "nextCursor") })},
		{Name: "cursors-opaque", Why: "random words, valid for every caller", Claims: "-cursor-base64-offset", Middleware: opaqueCursors(false)},
		{Name: "cursors-bound-to-the-caller", Why: "another caller's cursor may give 400", Claims: "-cursor-base64-offset", Middleware: opaqueCursors(true)},
		{Name: "cursors-new-in-every-response",
			Why: "equal requests may get different cursors", Claims: "-cursor-base64-offset", Middleware: newCursors(math.MaxInt64)},
		{Name: "cursors-unpadded",
			Why: "an offset may be in base64 for URLs, without padding", Claims: "-cursor-base64-offset", Middleware: unpaddedCursors(strings.Clone)},
		{Name: "cursor-with-odd-characters", Why: "callers percent-encode a cursor when they send it", Claims: "-cursor-base64-offset", Middleware: prefixedCursors("+/&=%?#é ")},
		{Name: "cursor-malformed-first-page", Why: "a MUST allows it", MayFail: Clauses("list/cursor-malformed-400"), Middleware: onBadCursor(func(x *exchange) {
			*x = *x.Send(http.MethodGet, x.Request.URL.Path, nil)
		})},
		{Name: "cursor-malformed-empty-page", Why: "a MUST allows it", MayFail: Clauses("list/cursor-malformed-400"), Middleware: onBadCursor(func(x *exchange) {
			x.Set(http.StatusOK, map[string]any{"tools": []any{}, "nextCursor": nil})
		})},
		{Name: "cursor-past-the-end-400", Why: "a cursor past the last tool may give 400 or an empty page", Middleware: onResponse(toList, func(x *exchange) {
			if tools, ok := x.Object()["tools"].([]any); ok && len(tools) == 0 && offset(x.Request.URL.Query().Get("cursor")) > 0 {
				x.Refuse(http.StatusBadRequest, "invalid_cursor", "The cursor lies beyond the last tool.")
			}
		})},
		{Name: "cursor-past-the-end-empty", Why: "a cursor past the last tool may give 400 or an empty page", Middleware: onBadCursor(func(x *exchange) {
			if offset(x.Request.URL.Query().Get("cursor")) > 50 {
				x.Set(http.StatusOK, map[string]any{"tools": []any{}})
			}
		})},
		{Name: "sorted-by-name", Why: "any stable order is allowed", MayFail: Clauses("list/change-between-pages"), Middleware: resortList(func(a, b tool) int { return cmp.Compare(a["name"].(string), b["name"].(string)) })},
		{Name: "sorted-by-title-backwards", Why: "any stable order is allowed", MayFail: Clauses("list/change-between-pages"), Middleware: resortList(func(a, b tool) int {
			return cmp.Or(-cmp.Compare(fmt.Sprint(a["title"]), fmt.Sprint(b["title"])), cmp.Compare(a["name"].(string), b["name"].(string)))
		})},
	}
}

// translateCursors translates cursors to another form and back; to and from receive the request, too. from returns "!" for a
// cursor that is invalid.
func translateCursors(to, from func(r *http.Request, cursor string) string) middleware {
	rewrite := through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if c := r.URL.Query().Get("cursor"); toList(r) && c != "" {
			r.URL.RawQuery = url.Values{"cursor": {from(r, c)}}.Encode()
		}
		next.ServeHTTP(w, r)
	})
	give := onList(func(p *page) {
		if c, _ := p.Object["nextCursor"].(string); c != "" {
			p.Object["nextCursor"] = to(p.Request, c)
		}
	})
	return func(next http.Handler) http.Handler { return give(rewrite(next)) }
}

// opaqueCursors are cursors without meaning to a caller; if bound, they are valid for the same caller only.
func opaqueCursors(bound bool) middleware {
	known := newMemory[string]()
	word := func(r *http.Request, cursor string) string {
		who := ""
		if bound {
			who = caller(r)
		}
		var sum uint64 = 14695981039346656037
		for _, b := range []byte(who + "\x00" + cursor) {
			sum = (sum ^ uint64(b)) * 1099511628211
		}
		return "page-" + strconv.FormatUint(sum, 36)
	}
	return translateCursors(
		func(r *http.Request, cursor string) string {
			w := word(r, cursor)
			known.put(w, cursor)
			return w
		},
		func(r *http.Request, w string) string {
			if cursor, ok := known.get(w); ok && word(r, cursor) == w {
				return cursor
			}
			return "!"
		})
}

// unpaddedCursors are offsets in base64 for URLs, without padding; read changes what is in a cursor before it must be a number.
func unpaddedCursors(read func(string) string) middleware {
	return translateCursors(
		func(_ *http.Request, cursor string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(offset(cursor))))
		},
		func(_ *http.Request, given string) string {
			raw, err := base64.RawURLEncoding.Strict().DecodeString(given)
			text := read(string(raw))
			n, notNumber := strconv.ParseUint(text, 10, 31)
			if err != nil || notNumber != nil || strconv.FormatUint(n, 10) != text {
				return "!"
			}
			return cursorAt(int(n))
		})
}

// prefixedCursors start with characters that must be percent-encoded.
func prefixedCursors(prefix string) middleware {
	return translateCursors(
		func(_ *http.Request, cursor string) string { return prefix + cursor },
		func(_ *http.Request, given string) string {
			if cursor, ok := strings.CutPrefix(given, prefix); ok {
				return cursor
			}
			return "!"
		})
}

// onBadCursor changes the refusals of cursors.
func onBadCursor(change func(x *exchange)) middleware {
	return onResponse(toList, atStatus(http.StatusBadRequest, change))
}

// alternatingOrder swaps the first two tools of every second list.
func alternatingOrder() middleware {
	var listings atomic.Int64
	return onList(func(p *page) {
		if p.Cursor == "" && listings.Add(1)%2 == 0 && len(p.Tools) > 2 {
			p.Tools[0], p.Tools[1] = p.Tools[1], p.Tools[0]
		}
	})
}

// hexCursors writes the offsets in cursors in hexadecimal.
func hexCursors() middleware {
	return translateCursors(
		func(_ *http.Request, cursor string) string { return fmt.Sprintf("%x", offset(cursor)) },
		func(_ *http.Request, given string) string {
			if n, err := strconv.ParseInt(given, 16, 32); err == nil {
				return cursorAt(int(n))
			}
			return given
		})
}

// singleUseCursors refuses a cursor that the caller used before.
func singleUseCursors() middleware {
	used := newSet()
	return onResponse(toList, func(x *exchange) {
		c := x.Request.URL.Query().Get("cursor")
		if c != "" && x.Status == http.StatusOK && !used.add(authorized(x.Request)+c) {
			x.Refuse(http.StatusBadRequest, "invalid_cursor", "This cursor was used already")
		}
	})
}

// forgetLastCursor refuses a cursor that has led to the last page, until a list issues it again.
func forgetLastCursor() middleware {
	over := newMemory[bool]()
	return onResponse(toList, func(x *exchange) {
		if x.Status != http.StatusOK {
			return
		}
		caller, sent := authorized(x.Request), x.Request.URL.Query().Get("cursor")
		if gone, _ := over.get(caller + sent); gone {
			x.Refuse(http.StatusBadRequest, "invalid_cursor", "This list is over.")
			return
		}
		if next, more := x.Object()["nextCursor"].(string); more {
			over.put(caller+next, false)
		} else {
			over.put(caller+sent, sent != "")
		}
	})
}

// leakyCursors puts the name of a hidden method into cursors, as a bridge does that filters tools after
// it cut the pages.
func leakyCursors() middleware {
	return translateCursors(
		func(_ *http.Request, cursor string) string {
			return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"after":"node.delete","offset":%d}`, offset(cursor)))
		},
		func(_ *http.Request, given string) string {
			raw, _ := base64.StdEncoding.DecodeString(given)
			var n int
			if _, err := fmt.Sscanf(string(raw), `{"after":"node.delete","offset":%d}`, &n); err == nil {
				return cursorAt(n)
			}
			return given
		})
}

// cachePagesByCursor stores the page that a cursor leads to and sends it to every caller that uses the cursor.
func cachePagesByCursor() middleware {
	pages := newMemory[[]byte]()
	return onResponse(toList, func(x *exchange) {
		c := x.Request.URL.Query().Get("cursor")
		if kept, ok := pages.get(c); ok && c != "" && x.Status == http.StatusOK {
			x.Body = kept
			return
		}
		if next, _ := x.Object()["nextCursor"].(string); next != "" && x.Status == http.StatusOK {
			pages.put(next, x.Send(http.MethodGet, x.Request.URL.Path+"?cursor="+url.QueryEscape(next), nil).Body)
		}
	})
}

// plainAfterRemovals reads a cursor from before a removal as an offset into the list that is left.
func plainAfterRemovals() middleware {
	counts := newMemory[int]()
	return onResponse(toList, func(x *exchange) {
		who, now := authorized(x.Request), len(x.names())
		if x.Request.URL.Query().Get("cursor") == "" {
			counts.put(who, now)
		} else if before, _ := counts.get(who); now < before {
			*x = *x.Send(http.MethodGet, x.Request.URL.RequestURI(), nil) // by now the bridge has given out this cursor for the new list
		}
	})
}

// keepToolsWhenEmpty keeps the methods that the site showed a caller before if it now shows no tool.
func keepToolsWhenEmpty() transport {
	last := newMemory[[]any]()
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		who := authorized(r)
		return onDiscovery(func(index map[string]any) {
			methods, _ := index["data"].([]any)
			if slices.ContainsFunc(methods, func(m any) bool {
				return objectIn(m.(map[string]any), "attributes")["mcpTool"] != nil
			}) {
				last.put(who, methods)
			} else if kept, ok := last.get(who); ok {
				index["data"] = kept
			}
		})(next).RoundTrip(r)
	})
}

// pagesOfTheLast answers further pages as of the caller who asked for a first page last.
func pagesOfTheLast() middleware {
	var last atomic.Value
	return beforeBridge(func(r *http.Request) {
		switch given := authorized(r); {
		case !toList(r) || given == "":
		case r.URL.Query().Get("cursor") == "":
			last.Store(given)
		default:
			if other, ok := last.Load().(string); ok {
				r.Header.Set("Authorization", other)
			}
		}
	})
}

// lastOfTheRest shows again, where a page is empty that a caller has seen with tools, the last tool of the caller's first page.
func lastOfTheRest() middleware {
	last, seen := newMemory[any](), newSet()
	return onResponse(toList, func(x *exchange) {
		body := x.Object()
		tools, ok := body["tools"].([]any)
		cursor, key := x.Request.URL.Query().Get("cursor"), authorized(x.Request)
		switch {
		case !ok:
		case cursor == "" && len(tools) > 0:
			last.put(key, tools[len(tools)-1])
		case len(tools) > 0:
			seen.add(key + cursor)
		case seen.has(key + cursor):
			body["tools"] = []any{}
			if t, known := last.get(key); known {
				body["tools"] = []any{t}
			}
			x.Set(x.Status, body)
		}
	})
}
