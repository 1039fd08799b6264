package mutants

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// listRemedies are applied to lists, pages and cursors.
func listRemedies() []Remedy {
	return []Remedy{
		{Clause: "list/answers-json", Mutant: "list-text-html", Front: front(onResponse(toToolViews, func(x *exchange) {
			x.Header.Set("Content-Type", "application/json")
		}))},
		{Clause: "list/has-tools-array", Mutant: "tools-keyed-when-filtered", Front: front(onListObject(func(_ *exchange, object map[string]any) {
			object["tools"] = arrayValues(object["tools"])
		}))},
		{Clause: "list/empty-site", Mutant: "empty-site-404", Front: front(onResponse(toList, atStatus(http.StatusNotFound, func(x *exchange) {
			x.Set(http.StatusOK, map[string]any{"tools": []any{}})
		})))},
		{Clause: "list/next-cursor-type", Mutant: "next-cursor-number", Front: front(onListObject(func(_ *exchange, object map[string]any) {
			switch c := object["nextCursor"].(type) {
			case nil, bool:
				delete(object, "nextCursor")
			case string:
				if c == "" {
					delete(object, "nextCursor")
				}
			default:
				object["nextCursor"] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(c)))
			}
		}))},
		{Clause: "list/tool-required-members", Mutant: "description-missing-when-empty", Front: front(onTool(describeByTitle))},
		{Clause: "list/description-not-empty", Mutant: "description-empty", Front: front(onTool(describeByTitle))},
		{Clause: "list/tool-optional-members", Mutant: "annotations-list-when-empty", Front: front(onTool(func(t tool) {
			if t["title"] == nil || t["title"] == "" {
				delete(t, "title")
			}
			if t["outputSchema"] == nil {
				delete(t, "outputSchema")
			}
			switch a := t["annotations"].(type) {
			case nil:
				delete(t, "annotations")
			case []any:
				if len(a) == 0 {
					t["annotations"] = map[string]any{}
				}
			}
		}))},
		{Clause: "list/names-unique", Mutant: "second-page-duplicates-last", Front: front(pageAgain(nil))},
		{Clause: "list/order-stable", Mutant: "order-alternates", Front: front(pageAgain(func(_ *exchange, tools []any) []any {
			slices.SortFunc(tools, func(a, b any) int { return cmp.Compare(a.(tool)["name"].(string), b.(tool)["name"].(string)) })
			return tools
		}))},
		{Clause: "list/pages-cover-all-once", Mutant: "pages-never-end", Front: front(pageAgain(nil))},
		{Clause: "list/page-size", Mutant: "page-of-49", Front: front(pageAgain(nil))},
		{Clause: "list/page-boundary-exact", Mutant: "empty-trailing-page", Front: front(pageAgain(nil))},
		{Clause: "list/cursor-past-end", Mutant: "cursor-past-end-wraps", Front: front(pageAgain(nil))},
		{Clause: "list/change-between-pages", Mutant: "offset-into-another-list", Front: front(pageAgain(nil))},
		{Clause: "list/cursor-no-leak", Mutant: "cursor-leaks-hidden-name", Front: front(pageAgain(nil))},
		{Clause: "list/cursor-base64-offset", Mutant: "cursor-unpadded-refused", Front: front(onCursor(func(cursor string) string {
			raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(cursor, "="))
			if err != nil {
				return cursor
			}
			return base64.StdEncoding.EncodeToString(raw)
		}))},
		{Clause: "list/cursor-malformed", Mutant: "cursor-list-500", Front: front(checkCursor)},
		{Clause: "list/cursor-malformed-400", Mutant: "cursor-blank-first-page", Front: front(checkCursor)},
		{Clause: "list/cursor-empty", Mutant: "cursor-empty-400", Front: front(onQuery(toList, func(query url.Values) {
			if query.Has("cursor") && query.Get("cursor") == "" {
				query.Del("cursor")
			}
		}))},
		{Clause: "list/unknown-query-ignored", Mutant: "unknown-query-400", Front: front(onQuery(toList, func(query url.Values) {
			for name := range query {
				if name != "cursor" && name != "cursor[]" {
					query.Del(name)
				}
			}
		}))},
		{Clause: "list/only-marked-methods", Mutant: "every-method-is-a-tool", Front: func(site *siteClient) middleware {
			return onlyTools(site, func(attributes map[string]any) bool { return attributes["mcpTool"] != nil })
		}},
	}
}

// onListObject changes the body of every page.
func onListObject(change func(x *exchange, object map[string]any)) middleware {
	return onResponse(toList, func(x *exchange) {
		if object := x.Object(); x.Status == http.StatusOK && object != nil {
			change(x, object)
			x.Body = encode(object)
		}
	})
}

// arrayValues is PHP's function, of an object whose keys are numbers.
func arrayValues(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	keys := make([]int, 0, len(object))
	for key := range object {
		n, _ := strconv.Atoi(key)
		keys = append(keys, n)
	}
	slices.Sort(keys)
	values := []any{}
	for _, key := range keys {
		values = append(values, object[strconv.Itoa(key)])
	}
	return values
}

// describeByTitle gives a tool without a description its title, or else its name.
func describeByTitle(t tool) {
	if d, _ := t["description"].(string); d != "" {
		return
	}
	t["description"] = t["name"]
	if title, _ := t["title"].(string); title != "" {
		t["description"] = title
	}
}

// pageAgain fetches the whole list of the caller, each name once, and cuts it into pages: filter first, count offsets in what
// remains, a next page if offset + size < count. It keeps the list of a caller's first page for that caller's further pages.
func pageAgain(change func(x *exchange, tools []any) []any) middleware {
	kept := newMemory[[]any]()
	return onResponse(toList, func(x *exchange) {
		if x.Status != http.StatusOK {
			return
		}
		given := x.Request.URL.Query().Get("cursor")
		who := authorized(x.Request) + "\x00" + x.Request.Header.Get("Cookie")
		tools, known := kept.get(who)
		if !known || given == "" {
			if tools = x.all(); change != nil {
				tools = change(x, tools)
			}
			kept.put(who, tools)
		}
		const size = 50
		from := min(offset(given), len(tools))
		to := min(from+size, len(tools))
		response := map[string]any{"tools": tools[from:to]}
		if from+size < len(tools) {
			response["nextCursor"] = cursorAt(to)
		}
		x.Body = encode(response)
	})
}

// all follows the cursors of the bridge behind and returns its tools, each name once.
func (x *exchange) all() []any {
	all, seen, cursors := []any{}, newSet(), newSet()
	for cursor := ""; cursors.add(cursor); {
		target := x.Request.URL.Path
		if cursor != "" {
			target += "?" + url.Values{"cursor": {cursor}}.Encode()
		}
		object := x.Send(http.MethodGet, target, nil).Object()
		tools, _ := object["tools"].([]any)
		fresh := 0
		for _, t := range tools {
			if seen.add(fmt.Sprint(t.(tool)["name"])) {
				all = append(all, t)
				fresh++
			}
		}
		if cursor, _ = object["nextCursor"].(string); cursor == "" || fresh == 0 {
			break
		}
	}
	return all
}

// onQuery changes the query of the requests that match.
func onQuery(matches func(*http.Request) bool, change func(query url.Values)) middleware {
	return beforeBridge(func(r *http.Request) {
		if query := r.URL.Query(); matches(r) && len(query) > 0 {
			change(query)
			r.URL.RawQuery = query.Encode()
		}
	})
}

// onCursor changes the cursor of a list request.
func onCursor(change func(cursor string) string) middleware {
	return onQuery(toList, func(query url.Values) {
		if c := query.Get("cursor"); c != "" {
			query.Set("cursor", change(c))
		}
	})
}

// checkCursor refuses a cursor that is no text, or whose base64 holds something other than a number: `ctype_digit()`.
func checkCursor(next http.Handler) http.Handler {
	return onResponse(toList, func(x *exchange) {
		query := x.Request.URL.Query()
		bad := query.Has("cursor[]")
		if c := query.Get("cursor"); c != "" {
			raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(c, "="))
			_, notNumber := strconv.ParseUint(string(raw), 10, 31)
			bad = bad || err != nil || notNumber != nil
		}
		if bad && x.Status != http.StatusUnauthorized && x.Status != http.StatusForbidden {
			x.Refuse(http.StatusBadRequest, "invalid_cursor", "The cursor is not one of this bridge.")
		}
	})(next)
}

// onlyTools removes from all endpoints what the site does not show the caller as wanted.
func onlyTools(site *siteClient, wanted func(attributes map[string]any) bool) middleware {
	shown := func(r *http.Request) func(name string) bool {
		methods, _ := site.methods(r)
		return func(name string) bool { attributes, ok := methods[name]; return ok && wanted(attributes) }
	}
	lists := pageAgain(func(x *exchange, tools []any) []any {
		ok := shown(x.Request)
		return slices.DeleteFunc(tools, func(t any) bool { return !ok(t.(tool)["name"].(string)) })
	})
	named := onResponse(func(r *http.Request) bool { return toDescribe(r) || toInvoke(r) }, func(x *exchange) {
		if x.Status < 300 && !shown(x.Request)(x.named()) {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.named()))
		}
	})
	return chain(named, lists)
}
