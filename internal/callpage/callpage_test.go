package callpage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/surface"
	"github.com/bridgecheck/bridgecheck/reports"
)

const host, base = "127.0.0.1:8083", "/token/"

// ask sends a request to a page on which agent and admin see the given tools.
func ask(t *testing.T, call func(Call) (Sent, error), method, path, body string, tools ...string) *httptest.ResponseRecorder {
	t.Helper()
	return askFor(t, &Options{}, call, method, path, body, tools...)
}

func askFor(t *testing.T, o *Options, call func(Call) (Sent, error), method, path, body string, tools ...string) *httptest.ResponseRecorder {
	t.Helper()
	var shown []map[string]any
	for _, text := range tools {
		tool := map[string]any{}
		must.Do(t, json.Unmarshal([]byte(text), &tool))
		shown = append(shown, tool)
	}
	handler := must.Get(Handler(t.Context(), Options{
		Report: o.Report, Token: "token", Hosts: []string{host}, Title: "a bridge", Ways: []string{REST, MCP},
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") },
		List: func(context.Context) (*surface.Surface, map[string]string, error) {
			seen := &surface.Surface{}
			seen.Add(surface.Caller{Name: "admin"}, shown)
			seen.Add(surface.Caller{Name: "agent"}, shown[:min(1, len(shown))])
			seen.Add(surface.Caller{Name: "guest", Refused: 401}, nil)
			seen.Add(surface.Caller{Name: "odd"}, nil)
			return seen, map[string]string{"odd": "tools is no array"}, nil
		},
		Call: func(_ context.Context, c Call) (Sent, error) { return call(c) },
	}))(t)
	r := httptest.NewRequest(method, "http://"+host+base+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestPage(t *testing.T) {
	hostile := `{"name": "a\"><script>x</script>\u202e", "title": "<img src=x>", "description": "token hunter2", "inputSchema": {"type": "object", "required": ["z"], "properties": {
		"<i>": {"type": "string", "description": "</label><script>y</script>"}, "z": {"enum": ["\"><b>", null, 1.50]}, "deep": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
		"list": {"type": "array"}, "either": {"type": ["string", "null"]}, "free": {"type": "object"}, "any": true, "all": {"type": "string", "allOf": [{}]}, "one": {"const": 7}}}}`
	page := ask(t, nil, "GET", "?caller=agent&tool=a%22%3E%3Cscript%3Ex%3C%2Fscript%3E%E2%80%AE", "", hostile, `{"name": "b"}`)
	body := page.Body.String()
	for _, wrong := range []string{"<script>x", "<script>y", "<img src", "<i>", `"><b>`, "hunter2", "\u202e</a>"} {
		must.Expect(t, !strings.Contains(body, wrong), "the page has %q as it came", wrong)
	}
	for _, want := range []string{`[redacted]`, `refused: 401`, `the list cannot be read: tools is no array`, `not shown to agent; admin sees it`,
		`<div data-kind="string" data-name="&lt;i&gt;">`, `<fieldset data-kind="object" data-name="deep">`, `<option value="true">`,
		`<div data-kind="choice" data-name="z">`, `<option value="null">`, `<div data-kind="json" data-name="list">`, `<div data-kind="json" data-name="either">`,
		`<div data-kind="json" data-name="free">`, `<div data-kind="json" data-name="any">`, `<option value="7">`} {
		must.Expect(t, strings.Contains(body, want), "the page lacks %s", want)
	}
	must.Expect(t, strings.Index(body, `data-name="z"`) <= strings.Index(body, `data-name="any"`), "what is required does not come first")
	policy := page.Header().Get("Content-Security-Policy")
	must.Expect(t, !strings.Contains(policy, "unsafe") && strings.Contains(policy, "default-src 'none'"), "the policy is %q", policy)
	if t.Failed() {
		t.Log(body)
	}
}

func TestSend(t *testing.T) {
	result := reports.Result{Evidence: []reports.Exchange{{Identity: "agent", Request: reports.Message{Method: "POST", URL: "http://b/<u>"},
		Response: &reports.Message{Status: 200, Header: map[string]string{"X-<h>": "<v>"}, Body: `{"a":"<script>"}`, Truncated: 5}}}}
	var got Call
	good := `{"caller": "agent", "way": "MCP", "tool": "t", "arguments": {"n": 1.0}}`
	w := ask(t, func(c Call) (Sent, error) { got = c; return Sent{Result: result}, nil }, "POST", "send", good)
	if text := w.Body.String(); w.Code != http.StatusOK || strings.Contains(text, "<u>") || strings.Contains(text, "<script>") || !strings.Contains(text, "X-&lt;h&gt;") ||
		!strings.Contains(text, "5 bytes more") || !strings.Contains(text, "is not seen") {
		t.Errorf("%d: %s", w.Code, text)
	}
	must.Expect(t, got.Caller == "agent" && got.Way == MCP && got.Tool == "t" && string(got.Arguments) == `{"n": 1.0}`,
		"what was sent came as %+v", got)
	w = ask(t, func(Call) (Sent, error) { return Sent{}, errors.New("no hunter2") }, "POST", "send", good)
	must.Expect(t, strings.Contains(w.Body.String(), "Nothing was sent: no [redacted]"), "an error: %d: %s", w.Code, w.Body)
	for _, wrong := range []string{``, `[]`, `{}`, strings.Replace(good, `"agent"`, `""`, 1), strings.Replace(good, `"tool"`, `"tol"`, 1), `{"caller": "agent", "way": "MCP", "tool": "t"}`} {
		w := ask(t, nil, "POST", "send", wrong)
		must.Expect(t, w.Code == http.StatusBadRequest, "%s: %d", wrong, w.Code)
	}
	if w := ask(t, nil, "POST", "list?tool=t", ""); w.Code != http.StatusSeeOther || w.Header().Get("Location") != base+"?tool=t" {
		t.Errorf("the list again: %d to %s", w.Code, w.Header().Get("Location"))
	}
}

// A report may come from anybody: what it holds is shown as text, and sent below the bridge's address alone.
func TestReport(t *testing.T) {
	const target = "http://127.0.0.1:9/base"
	message := func(path, body string) reports.Exchange {
		return reports.Exchange{Identity: "agent", Request: reports.Message{Method: "POST", URL: path, Body: body,
			Header: map[string]string{"Authorization": "Basic [redacted]", "X-<h>": "v"}}, Credentials: []reports.Credential{{Header: "Authorization"}}}
	}
	for address, want := range map[string]string{
		target + "/mcp?a=1": "/mcp?a=1", target: "/base", "http://127.0.0.1:99/mcp/tools/list": "/mcp/tools/list", target + "@evil.example/x": "/base@evil.example/x", "x": "/",
	} {
		must.Equal(t, pathOf(address, target+"/"), want, "path of %s", address)
	}
	for body, want := range map[string]string{
		`{"name": "t", "arguments": {"n": 1.0}}`: `REST t {"n": 1.0}`, `{"name": "t"}`: "", `{"name": "t", "arguments": {}, "x": 1}`: "", `[]`: "",
	} {
		got := ""
		if c := callOf(message(target+"/mcp/tools/invoke", body)); c != nil {
			got = c.Way + " " + c.Tool + " " + string(c.Arguments)
		}
		must.Expect(t, got == want, "%s is the call %q, want %q", body, got, want)
	}
	c := callOf(message(target+"/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}`))
	must.Expect(t, c != nil && c.Way == MCP && c.Tool == "t", "a call over MCP is %+v", c)
	binary := message(target+"/mcp/tools/invoke", "/w==")
	binary.Request.Encoding = "base64"
	options := &Options{Report: &reports.Report{Target: reports.Target{URL: target}, Results: []reports.Result{
		{ID: "list/answers-json", Verdict: reports.Pass}, {ID: "errors/envelope", Verdict: reports.Fail, Message: "<script>x</script>", Evidence: []reports.Exchange{
			message(target+"/mcp/tools/invoke", `</textarea><script>y</script>`), binary}},
	}}}
	page := askFor(t, options, nil, "GET", "?clause=errors%2Fenvelope", "").Body.String()
	for _, wrong := range []string{"<script>x", "<script>y", "clause=list", "Basic [redacted]\n"} {
		must.Expect(t, !strings.Contains(page, wrong), "the page has %q", wrong)
	}
	must.Expect(t, strings.Contains(page, `value="/mcp/tools/invoke"`) && strings.Contains(page, "X-&lt;h&gt;: v\n"),
		"the page lacks the request: %s", page)
	const raw = `{"caller": "agent", "way": "HTTP", "clause": "errors/envelope", "exchange": 1, "request": {"method": "POST", "path": "/x", "header": "", "session": false}}`
	var sent []string
	call := func(c Call) (Sent, error) { sent = append(sent, *c.Request.Body); return Sent{}, nil }
	for _, body := range []string{raw, strings.Replace(raw, `"header"`, `"body": "typed", "header"`, 1)} {
		askFor(t, options, call, "POST", "send", body)
	}
	for _, wrong := range []string{`"path": "@evil.example/x"`, `"path": ""`} {
		w := askFor(t, options, call, "POST", "send", strings.Replace(raw, `"path": "/x"`, wrong, 1)).Body.String()
		must.Expect(t, strings.Contains(w, "Nothing was sent: a request has"), "%s is sent: %s", wrong, w)
	}
	askFor(t, options, call, "POST", "send", strings.Replace(raw, `"exchange": 1`, `"exchange": 2`, 1))
	must.Expect(t, slices.Equal(sent, []string{"\xff", "typed"}), "sent %q", sent)
}

// A bridge may list a schema of any size: the form stays one that a browser shows, and the rest is JSON text.
func TestTheFormIsBounded(t *testing.T) {
	wide := func(n int, of any) map[string]any {
		properties := map[string]any{}
		for i := range n {
			properties[fmt.Sprint("p", i)] = of
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	must.Equal(t, formOf(wide(most, true)).Kind, "json", "kind of the whole")
	f := formOf(wide(2, wide(most-10, true)))
	must.Expect(t, f.Kind == "object" && f.Fields[0].Kind == "object" && f.Fields[1].Kind == "json",
		"the fields are %s of %s and %s", f.Kind, f.Fields[0].Kind, f.Fields[1].Kind)
}
