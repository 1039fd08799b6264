package mutants

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// middleware is the type of Mutant.Middleware.
type middleware = func(next http.Handler) http.Handler

// onResponse changes the responses to the requests that match. Streams and large requests pass unchanged.
func onResponse(matches func(*http.Request) bool, change func(x *exchange)) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !matches(r) || !isSmall(r) || isStream(r) {
				next.ServeHTTP(w, r)
				return
			}
			x := record(next, r, readBody(r))
			change(x)
			x.writeTo(w)
		})
	}
}

// onRequest changes requests before the bridge receives them, or responds to them itself and returns handled.
func onRequest(change func(w http.ResponseWriter, r *http.Request, next http.Handler) (handled bool)) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !change(w, r, next) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

func allRequests(*http.Request) bool { return true }

func toList(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp/tools/list") }

func toDescribe(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp/tools/describe") }

func toInvoke(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp/tools/invoke") }

func toToolViews(r *http.Request) bool { return toList(r) || toDescribe(r) }

// page is a decoded list response.
type page struct {
	*exchange
	Tools  []any
	Cursor string // the requested cursor; "" on the first page
	Object map[string]any
}

// onList changes every page of a list. A change that sets Object to nil has written the Body itself.
func onList(change func(p *page)) middleware {
	return onResponse(toList, func(x *exchange) {
		object := x.Object()
		tools, ok := object["tools"].([]any)
		if x.Status != http.StatusOK || !ok {
			return
		}
		p := &page{exchange: x, Tools: tools, Cursor: x.Request.URL.Query().Get("cursor"), Object: object}
		change(p)
		if p.Object != nil {
			if _, kept := p.Object["tools"]; kept {
				p.Object["tools"] = p.Tools
			}
			x.Body = encode(p.Object)
		}
	})
}

// tool is one tool of a response.
type tool = map[string]any

// onTool changes every tool in the responses of list and describe.
func onTool(change func(t tool)) middleware {
	return onResponse(toToolViews, func(x *exchange) {
		object := x.Object()
		if x.Status != http.StatusOK || object == nil {
			return
		}
		tools, _ := object["tools"].([]any)
		if one, ok := object["tool"]; ok {
			tools = []any{one}
		}
		for _, t := range tools {
			if t, ok := t.(tool); ok {
				change(t)
			}
		}
		x.Body = encode(object)
	})
}

// onInvoke changes the responses of invoke.
func onInvoke(change func(x *exchange)) middleware { return onResponse(toInvoke, change) }

// onResult changes the results of invokes that succeed.
func onResult(change func(result any) any) middleware {
	return onInvoke(func(x *exchange) {
		object := x.Object()
		if result, ok := object["result"]; ok && x.Status == http.StatusOK {
			object["result"] = change(result)
			x.Body = encode(object)
		}
	})
}

// onRefusal changes every 4xx and 5xx of the three endpoints.
func onRefusal(change func(x *exchange)) middleware {
	return onResponse(allRequests, func(x *exchange) {
		if x.Status >= 400 {
			change(x)
		}
	})
}

// onError changes the error object of every refusal.
func onError(change func(x *exchange, e map[string]any)) middleware {
	return onRefusal(func(x *exchange) {
		object := x.Object()
		if e, ok := object["error"].(map[string]any); ok {
			change(x, e)
			x.Body = encode(object)
		}
	})
}

// onCode changes the refusals with the error code.
func onCode(code string, change func(x *exchange)) middleware {
	return onRefusal(func(x *exchange) {
		if e, _ := x.Object()["error"].(map[string]any); e["code"] == code {
			change(x)
		}
	})
}

// onInput changes the inputSchema of every tool.
func onInput(change func(schema map[string]any)) middleware {
	return onTool(func(t tool) {
		if schema, ok := t["inputSchema"].(map[string]any); ok {
			change(schema)
		}
	})
}

// onProperties changes the property list of every tool with parameters.
func onProperties(change func(schema, properties map[string]any)) middleware {
	return onInput(func(schema map[string]any) {
		if properties, ok := schema["properties"].(map[string]any); ok && len(properties) > 0 {
			change(schema, properties)
		}
	})
}

// onProperty changes the schema of every parameter.
func onProperty(change func(property map[string]any)) middleware {
	return onProperties(func(_, properties map[string]any) {
		for _, p := range properties {
			if p, ok := p.(map[string]any); ok {
				change(p)
			}
		}
	})
}

// onNested changes the schemas within the schema of every parameter.
func onNested(change func(schema map[string]any)) middleware {
	return onProperty(func(property map[string]any) {
		for _, member := range property {
			walkObjects(member, change)
		}
	})
}

// onStrings turns a change of strings into a change of any value.
func onStrings(change func(string) string) func(any) any {
	return func(v any) any {
		if s, ok := v.(string); ok {
			return change(s)
		}
		return v
	}
}

// atTheEnd changes last pages.
func atTheEnd(change func(p *page)) middleware {
	return onList(func(p *page) {
		if c, _ := p.Object["nextCursor"].(string); c == "" {
			change(p)
		}
	})
}

// resortList sorts all tools and cuts them into pages again.
func resortList(compare func(a, b tool) int) middleware {
	return onResponse(toList, func(x *exchange) {
		if x.Status != http.StatusOK {
			return
		}
		all := []any{}
		for cursor := ""; ; {
			p := x.Send(http.MethodGet, x.Request.URL.Path+"?"+url.Values{"cursor": {cursor}}.Encode(), nil).Object()
			tools, _ := p["tools"].([]any)
			all = append(all, tools...)
			if cursor, _ = p["nextCursor"].(string); cursor == "" {
				break
			}
		}
		slices.SortStableFunc(all, func(a, b any) int { return compare(a.(tool), b.(tool)) })
		const size = 50
		from := min(offset(x.Request.URL.Query().Get("cursor")), len(all))
		to := min(from+size, len(all))
		response := map[string]any{"tools": all[from:to]}
		if to < len(all) {
			response["nextCursor"] = cursorAt(to)
		}
		x.Body = encode(response)
	})
}

func has(o map[string]any, name string) bool {
	_, ok := o[name]
	return ok
}

// onShownAndDenied changes the response to a call that the site denies although the bridge shows the tool.
func onShownAndDenied(change func(*exchange)) middleware {
	return onInvoke(func(x *exchange) {
		if x.Status != http.StatusForbidden || !strings.Contains(x.errorMessage(), "does not let this caller run") {
			return
		}
		if _, shown := x.tool(x.invoked()); shown {
			change(x)
		}
	})
}

// onExistingMethod changes the 404 for a method that is not a tool of the caller but that the account may run on the site.
func onExistingMethod(matches func(*http.Request) bool, authorization string, change func(x *exchange)) func(*siteClient) middleware {
	return func(site *siteClient) middleware {
		return onResponse(matches, func(x *exchange) {
			if x.Status == http.StatusNotFound && site.hides(authorization, x.named()) {
				change(x)
			}
		})
	}
}

// onDeniedName changes the 404 for a tool that is in the administrator's list but not in the caller's.
func onDeniedName(matches func(*http.Request) bool, change func(x *exchange, t tool)) middleware {
	return onResponse(matches, func(x *exchange) {
		if x.Status != http.StatusNotFound {
			return
		}
		if t, ok := x.as("admin").tool(x.named()); ok {
			change(x, t)
		}
	})
}

// onCallBody changes the responses to invokes by POST whose body is an object.
func onCallBody(change func(x *exchange, call map[string]any)) middleware {
	return onInvoke(func(x *exchange) {
		if call := decode(x.Sent); call != nil && x.Method == http.MethodPost {
			change(x, call)
		}
	})
}

// onBody changes the body of an invoke before the bridge reads it.
func onBody(change func(body []byte) []byte) middleware {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if toInvoke(r) && r.Method == http.MethodPost && isSmall(r) {
			setBody(r, change(readBody(r)))
		}
		return false
	})
}

// offset decodes a cursor of the reference; 0 for the first page or another form.
func offset(cursor string) int {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(cursor, "="))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(raw))
	return n
}

func cursorAt(n int) string { return base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(n))) }

// withCursor requests another page for the same caller and returns its tools.
func (p *page) withCursor(cursor string) []any {
	target := p.Request.URL.Path
	if cursor != "" {
		target += "?cursor=" + url.QueryEscape(cursor)
	}
	tools, _ := p.Send(http.MethodGet, target, nil).Object()["tools"].([]any)
	return tools
}

// without returns a change that deletes keywords of a schema.
func without(keywords ...string) func(map[string]any) {
	return func(schema map[string]any) {
		for _, k := range keywords {
			delete(schema, k)
		}
	}
}
