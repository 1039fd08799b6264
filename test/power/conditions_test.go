package power

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// moment is a request to the bridge with its response, and what was before it.
type moment struct {
	r         *http.Request
	body      []byte
	sent, got document                   // nil: no JSON object
	rec       *httptest.ResponseRecorder // nil before the bridge

	who        string // the caller's name, or credentials
	nth        int    // of the same requests of the caller, from 1
	ofWho      int    // of the caller's requests, from 1
	total      int    // requests before
	lastStatus int    // of the caller's response before; 0: none
	invoked    bool   // the caller has called a tool
	sinceFail  time.Duration
	sinceEmpty time.Duration // since an invalidation
	concurrent int32         // requests under way, with this one
}

func (m *moment) isMCP() bool { return strings.HasSuffix(m.r.URL.Path, "/mcp") }

// op is list, describe or invoke, or a method of MCP; "" for anything else.
func (m *moment) op() string {
	if m.isMCP() {
		method, _ := m.sent["method"].(string)
		return method
	}
	if before, op, found := strings.Cut(m.r.URL.Path, "/mcp/tools/"); found && before == "" {
		return op
	}
	return ""
}

func (m *moment) isCall() bool { return m.op() == "invoke" || m.op() == "tools/call" }
func (m *moment) isList() bool { return m.op() == "list" || m.op() == "tools/list" }

// params are the members of a call.
func (m *moment) params() document {
	if m.isMCP() {
		return objectIn(m.sent, "params")
	}
	return m.sent
}

func (m *moment) args() document {
	if !m.isCall() {
		return nil
	}
	return objectIn(m.params(), "arguments")
}

// name is that of the tool; "" where there is none.
func (m *moment) name() string {
	if m.op() == "describe" {
		return m.r.URL.Query().Get("name")
	}
	if !m.isCall() {
		return ""
	}
	name, _ := m.params()["name"].(string)
	return name
}

func (m *moment) cursor() string {
	if m.op() == "list" {
		return m.r.URL.Query().Get("cursor")
	}
	cursor, _ := m.params()["cursor"].(string)
	return cursor
}

// page is the object with tools and nextCursor in the response to a list.
func (m *moment) page() document {
	switch m.op() {
	case "list":
		return m.got
	case "tools/list":
		return objectIn(m.got, "result")
	}
	return document{}
}

// tools are those that the response shows.
func (m *moment) tools() (tools []document) {
	all, _ := m.page()["tools"].([]any)
	if m.op() == "describe" {
		all = []any{m.got["tool"]}
	}
	for _, v := range all {
		if tool, ok := v.(document); ok {
			tools = append(tools, tool)
		}
	}
	return tools
}

// result is the value of the method in the response.
func (m *moment) result() (any, bool) {
	if m.op() == "invoke" {
		v, ok := m.got["result"]
		return v, ok
	}
	v, ok := objectIn(m.got, "result")["structuredContent"]
	if o, is := v.(document); is && len(o) == 1 {
		if inner, wrapped := o["result"]; wrapped {
			return inner, true
		}
	}
	return v, ok
}

func (m *moment) setResult(v any) {
	if m.op() == "invoke" {
		m.got["result"] = v
		return
	}
	result := objectIn(m.got, "result")
	if o, is := result["structuredContent"].(document); is && len(o) == 1 && o["result"] != nil {
		result["structuredContent"] = document{"result": v}
	} else {
		result["structuredContent"] = v
	}
	if content, ok := result["content"].([]any); ok && len(content) == 1 {
		if block, is := content[0].(document); is {
			block["text"] = written(v)
		}
	}
}

// condition is when a fault shows.
type condition struct {
	name  string
	after bool // it depends on the response
	holds func(m *moment) bool
}

// anywhere reports whether a value, or one within it, is such a one.
func anywhere(v any, such func(any) bool) bool {
	for v := range exact.Values(v) {
		if such(v) {
			return true
		}
	}
	return false
}

// conditions are those under which bridges differ: who asks, how, for what, after what and beside what, and what comes.
func conditions() []condition {
	all := []condition{
		{name: "always", holds: func(*moment) bool { return true }},
		{name: "Basic", holds: func(m *moment) bool { return strings.HasPrefix(m.r.Header.Get("Authorization"), "Basic") }},
		{name: "a token", holds: func(m *moment) bool { return strings.HasPrefix(m.r.Header.Get("Authorization"), "Bearer") }},
		{name: "a cookie", holds: func(m *moment) bool { return m.r.Header.Get("Cookie") != "" }},
		{name: "anonymous", holds: func(m *moment) bool { return m.who == "" }},
		{name: "an account of a check", holds: func(m *moment) bool { return strings.HasPrefix(m.who, "check") }},
		{name: "REST", holds: func(m *moment) bool { return !m.isMCP() }},
		{name: "MCP", holds: func(m *moment) bool { return m.isMCP() }},
		{name: "MCP in a session", holds: func(m *moment) bool { return m.isMCP() && m.r.Header.Get("Mcp-Session-Id") != "" }},
		{name: "MCP with _meta", holds: func(m *moment) bool {
			return m.isMCP() && m.params()["_meta"] != nil && m.r.Header.Get("MCP-Protocol-Version") < "2026"
		}},
		{name: "MCP with a text for an id", holds: func(m *moment) bool { _, text := m.sent["id"].(string); return m.isMCP() && text }},
		{name: "the second of the same", holds: func(m *moment) bool { return m.nth == 2 }},
		{name: "the third of the same and later", holds: func(m *moment) bool { return m.nth >= 3 }},
		{name: "the caller's first", holds: func(m *moment) bool { return m.ofWho == 1 }},
		{name: "the caller's 20th and later", holds: func(m *moment) bool { return m.ofWho >= 20 }},
		{name: "every tenth", holds: func(m *moment) bool { return m.total%10 == 9 }},
		{name: "after 2,000", holds: func(m *moment) bool { return m.total > 2000 }},
		{name: "after the caller's 4xx", holds: func(m *moment) bool { return m.lastStatus >= 400 && m.lastStatus < 500 }},
		{name: "after the caller's 5xx", holds: func(m *moment) bool { return m.lastStatus >= 500 }},
		{name: "within 100 ms of a 5xx", holds: func(m *moment) bool { return m.sinceFail < 100*time.Millisecond }},
		{name: "within 300 ms of an invalidation", holds: func(m *moment) bool { return m.sinceEmpty < 300*time.Millisecond }},
		{name: "after the caller's call", holds: func(m *moment) bool { return m.invoked }},
		{name: "with a cursor", holds: func(m *moment) bool { return m.cursor() != "" }},
		{name: "no arguments", holds: func(m *moment) bool { return m.isCall() && len(m.args()) == 0 }},
		{name: "one argument", holds: func(m *moment) bool { return len(m.args()) == 1 }},
		{name: "three arguments and more", holds: func(m *moment) bool { return len(m.args()) >= 3 }},
		{name: "an unknown parameter", holds: func(m *moment) bool {
			q := m.r.URL.Query()
			q.Del("cursor")
			q.Del("name")
			return len(q) > 0
		}},
		{name: "a charset", holds: func(m *moment) bool {
			return strings.Contains(strings.ToLower(m.r.Header.Get("Content-Type")), "charset")
		}},
		{name: "HTTP/1.0", holds: func(m *moment) bool { return m.r.ProtoAtLeast(1, 0) && !m.r.ProtoAtLeast(1, 1) }},
		{name: "the last page", after: true, holds: func(m *moment) bool { return m.isList() && m.cursor() != "" && m.page()["nextCursor"] == nil }},
		{name: "a full page", after: true, holds: func(m *moment) bool { return m.isList() && len(m.tools()) == 50 }},
		{name: "a page of one", after: true, holds: func(m *moment) bool { return m.isList() && len(m.tools()) == 1 }},
	}
	for _, who := range []string{"agent", "admin", "discoverer"} {
		all = append(all, condition{name: who, holds: func(m *moment) bool { return m.who == who }})
	}
	for _, revision := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		all = append(all, condition{name: "MCP " + revision, holds: func(m *moment) bool { return m.isMCP() && m.r.Header.Get("MCP-Protocol-Version") == revision }})
	}
	for _, n := range []int32{2, 8, 32} {
		all = append(all, condition{name: fmt.Sprintf("%d at a time", n), holds: func(m *moment) bool { return m.concurrent >= n }})
	}
	for _, header := range []string{"Accept-Language", "Accept-Encoding", "If-None-Match", "X-Forwarded-For", "Origin", "traceparent"} {
		all = append(all, condition{name: header, holds: func(m *moment) bool { return m.r.Header.Get(header) != "" }})
	}
	for _, n := range []int{1, 4, 16, 64, 256} {
		all = append(all, condition{name: fmt.Sprintf("a request over %d K", n), holds: func(m *moment) bool { return len(m.body) > n<<10 }},
			condition{name: fmt.Sprintf("a response over %d K", n), after: true, holds: func(m *moment) bool { return m.rec.Body.Len() > n<<10 }})
	}
	for _, code := range []int{400, 401, 403, 404, 405, 406, 413, 415, 429, 500, 502, 503, 504} {
		all = append(all, condition{name: fmt.Sprintf("status %d", code), after: true, holds: func(m *moment) bool { return m.rec.Code == code }})
	}
	for what, such := range map[string]func(name string) bool{
		"with _": func(s string) bool { return strings.Contains(s, "_") }, "with -": func(s string) bool { return strings.Contains(s, "-") },
		"with two dots": func(s string) bool { return strings.Count(s, ".") >= 2 }, "without a dot": func(s string) bool { return s != "" && !strings.Contains(s, ".") },
		"with a digit": func(s string) bool { return strings.ContainsAny(s, "0123456789") }, "with a capital": func(s string) bool { return strings.IndexFunc(s, unicode.IsUpper) >= 0 },
		"over 30": func(s string) bool { return len(s) > 30 }, "over 60": func(s string) bool { return len(s) > 60 },
	} {
		all = append(all, condition{name: "a name " + what, holds: func(m *moment) bool { return such(m.name()) }})
	}
	for what, such := range map[string]func(v any) bool{
		"a text": func(v any) bool { _, ok := v.(string); return ok }, "an empty text": func(v any) bool { return v == "" },
		"a line break": func(v any) bool { s, _ := v.(string); return strings.Contains(s, "\n") }, "a long text": func(v any) bool { s, _ := v.(string); return len(s) > 2000 },
		"what is not ASCII": func(v any) bool {
			s, _ := v.(string)
			return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) >= 0
		},
		"a number": func(v any) bool { _, ok := v.(json.Number); return ok }, "a big number": func(v any) bool { n, ok := v.(json.Number); return ok && len(n) > 16 },
		"true": func(v any) bool { return v == true }, "false": func(v any) bool { return v == false }, "null": func(v any) bool { return v == nil },
		"a list": func(v any) bool { l, ok := v.([]any); return ok && len(l) > 0 }, "an empty list": func(v any) bool { l, ok := v.([]any); return ok && len(l) == 0 },
		"a list of objects": func(v any) bool { l, _ := v.([]any); return len(l) > 0 && exact.Depth(l[0]) > 0 }, "an empty object": func(v any) bool { o, ok := v.(document); return ok && len(o) == 0 },
		"over 10 members": func(v any) bool { o, ok := v.(document); return ok && len(o) > 10 }, "over 10 items": func(v any) bool { l, ok := v.([]any); return ok && len(l) > 10 },
		"4 levels": func(v any) bool { return exact.Depth(v) >= 4 }, "20 levels": func(v any) bool { return exact.Depth(v) >= 20 },
	} {
		all = append(all,
			condition{name: "arguments with " + what, holds: func(m *moment) bool {
				return slices.ContainsFunc(slices.Collect(maps.Values(m.args())), func(v any) bool { return anywhere(v, such) })
			}},
			condition{name: "a result with " + what, after: true, holds: func(m *moment) bool { v, ok := m.result(); return ok && anywhere(v, such) }})
	}
	slices.SortStableFunc(all, func(x, y condition) int { return strings.Compare(x.name, y.name) })
	return all
}
