package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The bridge in front of a small site of its own. `bridgecheck run --config bridgecheck.yaml` tests it against the whole
// contract.

const methods = `{"data": [
	{"id": "content.get", "attributes": {"usage": "Loads content", "mcpTool": {"title": "Get"},
		"params": {"nid": {"schema": {"type": "integer"}, "attributes": {"required": true}}}}},
	{"id": "cache.rebuild", "attributes": {"usage": "No tool"}},
	{"id": "by.position", "attributes": {"usage": "No names", "mcpTool": {"title": "P"}, "params": [{"schema": {}}]}},
	{"id": "content.tree", "attributes": {"usage": "References", "mcpTool": [], "params": {
		"tag": {"schema": {"$ref": "#/definitions/tag", "definitions": {"tag": {"type": "object", "properties": []}}}}}}}
], "meta": {"mcp": {"discovery": true}}}`

// beyond is a number that no float64 holds.
const beyond = "9007199254740993"

// bridgeWith serves a bridge whose site gives this status and body for a call; it adds each call to seen.
func bridgeWith(t *testing.T, status int, body string, seen *[]string) string {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ ID json.Number }
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &call)
		switch {
		case r.Header.Get("Authorization") != "Basic me":
			w.Header().Set("WWW-Authenticate", `Basic realm="site"`)
			w.WriteHeader(401)
		case r.URL.Path == "/jsonrpc/methods":
			fmt.Fprint(w, methods)
		default:
			*seen = append(*seen, string(data))
			w.WriteHeader(status)
			fmt.Fprint(w, strings.ReplaceAll(body, "ID", call.ID.String()))
		}
	}))
	t.Cleanup(site.Close)
	bridge := httptest.NewServer(&Bridge{newSite(site.URL, time.Second), 1})
	t.Cleanup(bridge.Close)
	return bridge.URL
}

// send returns a response and its body; without a body it is a GET.
func send(t *testing.T, address, body, authorization string) (*http.Response, string) {
	t.Helper()
	verb := http.MethodPost
	if body == "" {
		verb = http.MethodGet
	}
	r, err := http.NewRequest(verb, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", authorization)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, strings.TrimSpace(string(data))
}

// want compares a status and a body; a body without a brace is the code of an error.
func want(t *testing.T, response *http.Response, got string, status int, body string) {
	t.Helper()
	if body == "" || body[0] != '{' {
		var envelope struct{ Error Failure }
		if err := json.Unmarshal([]byte(got), &envelope); err != nil {
			t.Error(err)
		}
		got = envelope.Error.Code
	}
	if response.StatusCode != status || got != body {
		t.Errorf("want %d %s\ngot  %d %s", status, body, response.StatusCode, got)
	}
}

func TestListAndDescribe(t *testing.T) {
	address := bridgeWith(t, 200, "", new([]string)) + "/mcp/tools/"
	get := `{"name":"content.get","title":"Get","description":"Loads content",` +
		`"inputSchema":{"type":"object","properties":{"nid":{"type":"integer"}},"required":["nid"]}}`
	_, first := send(t, address+"list", "", "Basic me")
	var page struct{ NextCursor string }
	if err := json.Unmarshal([]byte(first), &page); err != nil || !strings.HasPrefix(first, `{"tools":[`+get+`],"nextCursor":"`) {
		t.Errorf("%v: %s", err, first)
	}
	response, second := send(t, address+"list?cursor="+url.QueryEscape(page.NextCursor), "", "Basic me")
	want(t, response, second, 200, `{"tools":[{"name":"content.tree","description":"References",`+
		`"inputSchema":{"type":"object","properties":{"tag":{"properties":{},"type":"object"}}}}]}`)
	response, tool := send(t, address+"describe?name=content.get", "", "Basic me")
	want(t, response, tool, 200, `{"tool":`+get+`}`)
	for query, code := range map[string]string{
		"list?cursor=LTE%3D": "400 invalid_cursor", "describe": "400 missing_parameter", "describe?name=Content.Get": "404 tool_not_found",
		"describe?name=cache.rebuild": "404 tool_not_found", "describe?name=by.position": "404 tool_not_found",
		"nothing": "404 not_found", "invoke": "405 method_not_allowed",
	} {
		response, got := send(t, address+query, "", "Basic me")
		if got = fmt.Sprint(response.StatusCode, " ", got); !strings.HasPrefix(got, code[:3]) || !strings.Contains(got, code[4:]) {
			t.Errorf("%s: want %s, got %s", query, code, got)
		}
	}
	response, refused := send(t, address+"list", "", "")
	want(t, response, refused, 401, "authentication_required")
	if got := response.Header.Get("WWW-Authenticate"); got != `Basic realm="site"` {
		t.Errorf("the challenge is %q", got)
	}
}

func TestInvokeLosesNothingAndCallsOnce(t *testing.T) {
	var seen []string
	address := bridgeWith(t, 200, `{"jsonrpc": "2.0", "id": ID, "result": {"big": `+beyond+`, "ratio": 1.0}}`, &seen)
	call := `{"name": "content.get", "arguments": {"nid": ` + beyond + `, "filter": {}}}`
	response, got := send(t, address+"/mcp/tools/invoke", call, "Basic me")
	want(t, response, got, 200, `{"result":{"big":`+beyond+`,"ratio":1.0}}`)
	if len(seen) != 1 || !strings.Contains(seen[0], `"params":{"nid":`+beyond+`,"filter":{}}`) {
		t.Errorf("the site received %s", seen)
	}
}

func TestInvokeRunsNothingThatIsMalformedOrHidden(t *testing.T) {
	var seen []string
	address := bridgeWith(t, 200, "", &seen)
	for _, row := range []struct {
		body   string
		status int
		code   string
	}{
		{`{"name": "content.get"`, 400, "invalid_json"},
		{`{"name": "content.get", "name": "x", "arguments": {}}`, 400, "invalid_json"},
		{`{"name": "content.get", "arguments": ` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, 400, "invalid_json"},
		{`[]`, 400, "invalid_json"},
		{`null`, 400, "missing_parameter"},
		{`{"name": ["content.get"], "arguments": {}}`, 400, "missing_parameter"},
		{`{"Name": "content.get", "arguments": {}}`, 400, "missing_parameter"},
		{`{"name": "content.get", "arguments": []}`, 400, "missing_parameter"},
		{`{"name": "cache.rebuild", "arguments": {}}`, 404, "tool_not_found"},
		{`{"name": "content.get", "arguments": {"x": "` + strings.Repeat("x", 3<<20) + `"}}`, 413, "request_too_large"},
	} {
		response, got := send(t, address+"/mcp/tools/invoke", row.body, "Basic me")
		want(t, response, got, row.status, row.code)
	}
	if len(seen) > 0 {
		t.Errorf("the site received %s", seen)
	}
}

func TestErrorsOfTheSite(t *testing.T) {
	problem := func(code int, data string) string {
		return fmt.Sprintf(`{"jsonrpc": "2.0", "id": null, "error": {"code": %d, "message": "No", "data": %q}}`, code, data)
	}
	for _, row := range []struct {
		status int
		body   string
		want   int
		code   string
	}{
		{200, problem(-32600, "Access Denied: no"), 403, "access_denied"},
		{400, problem(-32601, "x"), 404, "tool_not_found"},
		{400, problem(-32602, "There is no such article"), 400, "invalid_params"},
		{400, problem(-32602, "The nid parameter does not conform to the parameter schema. secret"), 400, "invalid_params"},
		{500, problem(-32603, "/var/www/secret.php"), 500, "execution_error"},
		{200, `{"jsonrpc": "2.0", "id": 0, "result": 1}`, 502, "upstream_error"},
		{200, `{"jsonrpc": "2.0", "result": 1}`, 502, "upstream_error"},
		{503, "<html>", 503, "upstream_unavailable"},
		{204, "", 502, "upstream_error"},
	} {
		address := bridgeWith(t, row.status, row.body, new([]string))
		response, got := send(t, address+"/mcp/tools/invoke", `{"name": "content.get", "arguments": {"nid": "one"}}`, "Basic me")
		want(t, response, got, row.want, row.code)
		if strings.Contains(got, "secret") {
			t.Errorf("the text of the site is shown: %s", got)
		}
	}
	address := bridgeWith(t, 400, problem(-32602, "Missing required parameter: nid"), new([]string))
	response, got := send(t, address+"/mcp/tools/invoke", `{"name": "content.get", "arguments": {}}`, "Basic me")
	want(t, response, got, 400, `{"error":{"code":"invalid_params","message":"The argument nid of content.get is missing.",`+
		`"data":{"expected":{"type":"integer"},"parameter":"nid","received":null}}}`)
}
