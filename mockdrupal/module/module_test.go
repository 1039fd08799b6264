package module

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// send runs a version of the module on a site of two tools, one of them guarded, and sends one request as the agent.
func send(t *testing.T, version, verb, path, body string) (int, string) {
	t.Helper()
	f := must.Get(New(version))(t)
	value := fixtures.Behaviour{Kind: fixtures.WhoAmI}
	site := &fixtures.Site{Title: "Small", Auth: fixtures.Auth{JSONRPC: []string{"basic"}, MCP: []string{"bearer"}},
		Roles: []fixtures.Role{{ID: "agent", Permissions: []string{fixtures.UseJSONRPC, fixtures.DiscoverTools}}},
		Users: []fixtures.User{{UID: 2, Name: "agent", Roles: []string{"agent"}, Tokens: []fixtures.Token{{Value: "t"}}}},
		Methods: []fixtures.Method{
			{ID: "a.one", Usage: "One", MCP: &fixtures.Tool{Title: "One"}, Behaviour: value},
			{ID: "a.scoped", Usage: "Scoped", MCP: &fixtures.Tool{Annotations: fixtures.Raw(`{"auth":{"scopes":["x:read","x:write"]}}`)}, Behaviour: value},
			{ID: "a.guarded", Usage: "Guarded", Access: []string{"administer site configuration"}, MCP: &fixtures.Tool{}, Behaviour: value},
			{ID: "a.hidden", Usage: "Hidden", Behaviour: value},
		}}
	d := must.Get(mockdrupal.New(site, mockdrupal.Options{Extensions: []mockdrupal.Extension{f}}))(t)
	r := httptest.NewRequest(verb, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer t")
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Code, w.Body.String() + w.Header().Get("WWW-Authenticate")
}

func TestVersionsRespondWithTheModulesErrors(t *testing.T) {
	for _, c := range []struct {
		name, version, verb, path, body string
		status                          int
		holds                           string
	}{
		{"empty properties are a list", V13, "GET", "/mcp/tools/list", "", 200, `"inputSchema":{"type":"object","properties":[]}`},
		{"the last cursor is null", V13, "GET", "/mcp/tools/list", "", 200, `"nextCursor":null`},
		{"a negative cursor counts from the end", V13, "GET", "/mcp/tools/list?cursor=LTE%3D", "", 200, `{"tools":[{"name":"a.scoped"`},
		{"a list for a cursor", V13, "GET", "/mcp/tools/list?cursor[]=x", "", 400, `Input value "cursor" contains a non-scalar value.`},
		{"a list for a cursor, as JSON", V13, "GET", "/mcp/tools/list?cursor[]=x&_format=json", "", 400, `{"message":"Input value \u0022cursor\u0022`},
		{"describe", V13, "GET", "/mcp/tools/describe?name=a.one", "", 200, `{"tool":{"name":"a.one"`},
		{"describe what is guarded", V13, "GET", "/mcp/tools/describe?name=a.guarded", "", 404, "tool_not_found"},
		{"describe nothing", V13, "GET", "/mcp/tools/describe", "", 400, "missing_parameter"},
		{"invoke by GET", V13, "GET", "/mcp/tools/invoke", `{"name":"a.one","arguments":{}}`, 200, `"name":"agent"`},
		{"a name that is a list ends it", V13, "POST", "/mcp/tools/invoke", `{"name":["a.one"],"arguments":{}}`, 500, "unexpected error"},
		{"no tool of its own path", V13, "POST", "/mcp/tools/a.one", `{}`, 404, "Page not found"},
		{"the path names the tool, the body the method", V14, "POST", "/mcp/tools/a.one", `{"jsonrpc":"2.0","id":1,"method":"a.hidden"}`, 200, `"name":"agent"`},
		{"an address in any case", V14, "POST", "/MCP/tools/A.one", `{"jsonrpc":"2.0","id":1,"method":"a.one"}`, 200, `"name":"agent"`},
		{"a tool that is guarded", V14, "POST", "/mcp/tools/a.guarded", `{}`, 404, "Method not found"},
		{"a method that is no tool", V14, "POST", "/mcp/tools/a.hidden", `{}`, 404, "Page not found"},
		{"scopes that the token lacks", V14, "POST", "/mcp/tools/a.scoped", `{}`, 403, `scope="x:read x:write"`},
		{"invoke is gone", V14, "POST", "/mcp/tools/invoke", `{}`, 404, "Page not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := send(t, c.version, c.verb, c.path, c.body)
			must.Expect(t, status == c.status && strings.Contains(body, c.holds), "%d %s, want %d with %s", status, body, c.status, c.holds)
		})
	}
	must.Refuse(New("v9"))(t, "v9", "an unknown version")
}
