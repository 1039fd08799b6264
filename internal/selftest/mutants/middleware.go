package mutants

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// middleware is the type of Mutant.Middleware.
type middleware = func(next http.Handler) http.Handler

// through lets every request pass a function that may call the bridge, next.
func through(serve func(w http.ResponseWriter, r *http.Request, next http.Handler)) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, next) })
	}
}

// throughWhere is through for the requests that match; the others go to the bridge.
func throughWhere(matches func(*http.Request) bool, serve func(w http.ResponseWriter, r *http.Request, next http.Handler)) middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !matches(r) {
			next.ServeHTTP(w, r)
			return
		}
		serve(w, r, next)
	})
}

// onResponse changes the responses to the requests that match. Streams and large requests pass unchanged.
func onResponse(matches func(*http.Request) bool, change func(x *exchange)) middleware {
	whole := func(r *http.Request) bool { return matches(r) && isSmall(r) && !isStream(r) }
	return throughWhere(whole, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		x := record(next, r, readBody(r))
		change(x)
		x.writeTo(w)
	})
}

// onRequest changes requests before the bridge receives them, as beforeBridge does, or responds to them itself and returns handled.
func onRequest(change func(w http.ResponseWriter, r *http.Request, next http.Handler) (handled bool)) middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !change(w, r, next) {
			next.ServeHTTP(w, r)
		}
	})
}

// beforeBridge changes requests before the bridge receives them.
func beforeBridge(change func(r *http.Request)) middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		change(r)
		next.ServeHTTP(w, r)
	})
}

// refuseStatus responds with a status and no body to the requests that match.
func refuseStatus(status int, matches func(*http.Request) bool) middleware {
	return throughWhere(matches, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(status) })
}

// actAs handles the requests that match as those of a built-in account.
func actAs(user string, matches func(*http.Request) bool) middleware {
	return beforeBridge(func(r *http.Request) {
		if matches(r) {
			r.Header.Set("Authorization", basicAuth(user))
		}
	})
}

func allRequests(*http.Request) bool { return true }

func toList(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp/tools/list") }

func toDescribe(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp/tools/describe") }

func toInvoke(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp/tools/invoke") }

func toToolViews(r *http.Request) bool { return toList(r) || toDescribe(r) }

// toCall matches the invokes by POST whose body a mutant may read.
func toCall(r *http.Request) bool { return toInvoke(r) && r.Method == http.MethodPost && isSmall(r) }

// toMessage matches the messages to the MCP endpoint.
func toMessage(r *http.Request) bool { return toMCP(r) && r.Method == http.MethodPost && isSmall(r) }

func toInvalidate(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/mcp/admin/invalidate")
}

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
	return onResponse(toToolViews, func(x *exchange) { x.eachTool(change) })
}

// eachTool changes every tool in a response of list or describe.
func (x *exchange) eachTool(change func(t tool)) {
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
}

// onInvoke changes the responses of invoke.
func onInvoke(change func(x *exchange)) middleware { return onResponse(toInvoke, change) }

// withSite changes the responses to the requests that match, with requests of its own to the site.
func withSite(matches func(*http.Request) bool, change func(site *siteClient, x *exchange)) func(*siteClient) middleware {
	return func(site *siteClient) middleware { return onResponse(matches, func(x *exchange) { change(site, x) }) }
}

// atStatus changes responses with a status.
func atStatus(status int, change func(x *exchange)) func(x *exchange) {
	return func(x *exchange) {
		if x.Status == status {
			change(x)
		}
	}
}

func setHeader(name, value string) func(x *exchange) {
	return func(x *exchange) { x.Header.Set(name, value) }
}

func dropHeader(name string) func(x *exchange) { return func(x *exchange) { x.Header.Del(name) } }

func refuse(status int, code, message string) func(x *exchange) {
	return func(x *exchange) { x.Refuse(status, code, message) }
}

// refuseAt refuses a request in place of the bridge.
func refuseAt(w http.ResponseWriter, r *http.Request, status int, code, message string) (handled bool) {
	x := &exchange{Request: r, Method: r.Method, Header: http.Header{"X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"no-store"}}}
	x.Refuse(status, code, message)
	x.writeTo(w)
	return true
}

// setWhereMissing sets a member of the objects that lack it.
func setWhereMissing(name string, value any) func(object map[string]any) {
	return func(object map[string]any) {
		if !has(object, name) {
			object[name] = value
		}
	}
}

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

// onMember changes a member of every tool, where it is an object.
func onMember(name string, change func(object map[string]any)) middleware {
	return onTool(inMember(name, change))
}

// inMember turns a change of a member into one of the tool.
func inMember(name string, change func(object map[string]any)) func(t tool) {
	return func(t tool) {
		if object, ok := t[name].(map[string]any); ok {
			change(object)
		}
	}
}

func onInput(change func(schema map[string]any)) middleware { return onMember("inputSchema", change) }

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
		if _, own := x.as(caller(x.Request)).tool(x.named()); own {
			return // the caller sees the tool: the site has lost the method
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
	return beforeBridge(func(r *http.Request) {
		if toCall(r) {
			setBody(r, change(readBody(r)))
		}
	})
}

// calledIn decodes the body of an invoke before the bridge reads it; nil for any other request.
func calledIn(r *http.Request) map[string]any {
	if !toInvoke(r) || !isSmall(r) {
		return nil
	}
	return decode(peekBody(r))
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

// toMCP matches requests to the MCP endpoint.
func toMCP(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp") }

// rpc is one MCP request with the bridge's response to it.
type rpc struct {
	*exchange
	Method   string
	Params   map[string]any
	Response map[string]any // {jsonrpc, id, result or error}
}

// Result returns the result of the response; nil without one.
func (m *rpc) Result() map[string]any {
	return objectIn(m.Response, "result")
}

// Code returns the error code of the response; "" without an error.
func (m *rpc) Code() string {
	return numberText(objectIn(m.Response, "error")["code"])
}

// Succeed replaces the response by a result.
func (m *rpc) Succeed(result any) {
	m.Status = http.StatusOK
	m.Response = map[string]any{"jsonrpc": "2.0", "id": m.Response["id"], "result": result}
}

// Fail replaces the response by an error.
func (m *rpc) Fail(code int, message string) {
	m.Response = map[string]any{"jsonrpc": "2.0", "id": m.Response["id"], "error": map[string]any{"code": code, "message": message}}
}

// Resend sends the request to the bridge again, changed, and returns the response.
func (m *rpc) Resend(change func(message map[string]any)) map[string]any {
	message := decode(m.Sent)
	change(message)
	return decode(m.Send(http.MethodPost, m.Request.URL.Path, encode(message)).Body)
}

// onRPC changes the responses to one method of MCP; "" is every method. A notification has no response to change.
func onRPC(method string, change func(m *rpc)) middleware {
	return onResponse(toMCP, func(x *exchange) {
		sent := decode(x.Sent)
		name, _ := sent["method"].(string)
		response := x.Object()
		if name == "" || response == nil || method != "" && method != name {
			return
		}
		m := &rpc{exchange: x, Method: name, Params: objectIn(sent, "params"), Response: response}
		change(m)
		m.Set(m.Status, m.Response)
	})
}

// onRPCResult changes the good results of one method.
func onRPCResult(method string, change func(result map[string]any)) middleware {
	return onRPC(method, func(m *rpc) {
		if result := m.Result(); result != nil {
			change(result)
		}
	})
}

// onMCPTools changes the tools of a page of tools/list that has any.
func onMCPTools(change func(tools []any) []any) middleware {
	return onRPCResult("tools/list", func(result map[string]any) {
		if tools, _ := result["tools"].([]any); len(tools) > 0 {
			result["tools"] = change(tools)
		}
	})
}

// onMCPTool changes every tool of tools/list.
func onMCPTool(change func(t tool)) middleware {
	return onMCPTools(func(tools []any) []any {
		for _, t := range tools {
			change(t.(tool))
		}
		return tools
	})
}

// onCallResult changes the results of tools/call that are no errors.
func onCallResult(change func(result map[string]any)) middleware {
	return onRPCResult("tools/call", func(result map[string]any) {
		if result["isError"] != true {
			change(result)
		}
	})
}

// onToolError changes the results of tools/call with isError whose text contains a text.
func onToolError(text string, change func(m *rpc)) middleware {
	return onRPC("tools/call", func(m *rpc) {
		if m.Result()["isError"] == true && strings.Contains(string(m.Body), text) {
			change(m)
		}
	})
}

// readHeader reads a header of the requests that match as another value, "" for none, where its own is such.
func readHeader(matches func(*http.Request) bool, name, value string, such func(given string) bool) middleware {
	return beforeBridge(func(r *http.Request) {
		switch {
		case !matches(r) || !such(r.Header.Get(name)):
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	})
}

// withHeader changes the headers of requests to MCP before the bridge sees them.
func withHeader(change func(h http.Header)) middleware {
	return beforeBridge(func(r *http.Request) {
		if toMCP(r) {
			change(r.Header)
		}
	})
}

// onStream changes each write to a stream of events.
func onStream(change func(event []byte) []byte) middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if toMCP(r) && isStream(r) {
			w = &eventWriter{ResponseWriter: w, change: change}
		}
		next.ServeHTTP(w, r)
	})
}

// onStreamHeader changes the header of a stream of events.
func onStreamHeader(change func(h http.Header)) middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if toMCP(r) && isStream(r) {
			w = &headerWriter{w, change}
		}
		next.ServeHTTP(w, r)
	})
}

// headerWriter changes the header of a stream before it is sent.
type headerWriter struct {
	http.ResponseWriter
	change func(http.Header)
}

func (w *headerWriter) WriteHeader(status int) {
	if w.Header().Get("Content-Type") == "text/event-stream" {
		w.change(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap allows the bridge to flush.
func (w *headerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// replaceInEvent returns a change of events that replaces a text by another one.
func replaceInEvent(old, now string) func(event []byte) []byte {
	return func(event []byte) []byte { return bytes.ReplaceAll(event, []byte(old), []byte(now)) }
}

// eventWriter changes the writes to a stream.
type eventWriter struct {
	http.ResponseWriter
	change func([]byte) []byte
}

func (w *eventWriter) Write(b []byte) (int, error) {
	_, err := w.ResponseWriter.Write(w.change(b))
	return len(b), err
}

// Unwrap allows the bridge to flush.
func (w *eventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logOnStdout writes a log line to stdout before each message that contains a text; "": before every one.
type logOnStdout struct {
	io.Writer
	about string
}

func (c logOnStdout) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.about)) {
		if _, err := io.WriteString(c.Writer, "[debug] a message goes out\n"); err != nil {
			return 0, err
		}
	}
	return c.Writer.Write(b)
}

// stdoutReplacer replaces text on stdout.
type stdoutReplacer struct {
	io.Writer
	old, now string
}

func (w stdoutReplacer) Write(b []byte) (int, error) {
	_, err := w.Writer.Write(bytes.ReplaceAll(b, []byte(w.old), []byte(w.now)))
	return len(b), err
}

func numberText(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
