package module

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// mcpSite is the mock of a small site with the module mcp.
func mcpSite(t *testing.T) *mockdrupal.Drupal {
	t.Helper()
	site := must.Get(fixtures.Parse("small.yaml", []byte(`
roles: {agent: [use jsonrpc services], admin: [use jsonrpc services, administer site configuration]}
users:
  - {uid: 2, name: agent, password: agent-pass, roles: [agent]}
  - {uid: 3, name: admin, password: admin-pass, roles: [admin]}
methods:
  - {id: a.guarded, usage: Guarded, access: [administer site configuration], mcp: {}, behaviour: whoami}
  - {id: a.one, usage: One, mcp: {title: One, annotations: {readOnlyHint: true, category: x}}, behaviour: whoami}
  - id: a.echo
    usage: Echo
    mcp: {annotations: {category: x}}
    params: {n: {schema: {type: integer}, required: true}, "2024": {schema: {$ref: "#/definitions/x", definitions: {x: {type: string}}}}}
    output: {type: array}
    behaviour: echo
  - {id: a.fails, usage: Fails, mcp: {}, behaviour: {fail: {code: -32050, message: No luck, data: {n: 1}}}}
  - {id: a.hidden, usage: Hidden, behaviour: whoami}
  - {id: A.One, usage: Has the name of another, mcp: {}, behaviour: whoami}
`)))(t)
	return must.Get(mockdrupal.New(site, mockdrupal.Options{Extensions: []mockdrupal.Extension{must.Get(New(MCP))(t)}}))(t)
}

func post(d *mockdrupal.Drupal, who, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", route.MCPPostPath, strings.NewReader(body))
	if who != "" {
		r.SetBasicAuth(who, who+"-pass")
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func TestMCPRespondsAsItsSourceSays(t *testing.T) {
	var records []struct {
		Name, From, Begins string
		As                 *string
		Request, Response  any
		Status             int
	}
	must.Do(t, yaml.Unmarshal(must.Get(os.ReadFile("testdata/mcp.yaml"))(t), &records))
	must.Assert(t, len(records) >= 15, "%d records", len(records))
	for _, c := range records {
		t.Run(c.Name, func(t *testing.T) {
			who := "agent"
			if c.As != nil {
				who = *c.As
			}
			c.Status = cmp.Or(c.Status, 200)
			w := post(mcpSite(t), who, string(must.Get(json.Marshal(c.Request))(t)))
			got := w.Body.String()
			switch {
			case w.Code != c.Status:
				t.Errorf("%d %s, want %d (%s)", w.Code, got, c.Status, c.From)
			case c.Begins != "":
				must.Expect(t, strings.HasPrefix(got, c.Begins), "%s, want %s at the beginning (%s)", got, c.Begins, c.From)
			case c.Response == nil:
				must.Expect(t, got == "", "%s, want nothing (%s)", got, c.From)
			default:
				want := must.Get(exact.Parse(must.Get(json.Marshal(c.Response))(t)))(t)
				d := exact.Diff(want, must.Get(exact.Parse(w.Body.Bytes()))(t))
				must.Expect(t, d == "", "%s: %s (%s)", got, d, c.From)
			}
		})
	}
}

// Faults and the journal know tools/call as the call of the method, and tools/list as discovery.
func TestMCPCallsMeanCallsOfTheSite(t *testing.T) {
	d := mcpSite(t)
	post(d, "agent", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	must.Get(d.Arm(mockdrupal.Fault{Kind: fault.Status, Route: route.JSONRPC, Method: "a.one", Status: 503, Count: 1}))(t)
	w := post(d, "agent", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"site_a_one"}}`)
	must.Expect(t, w.Code == 503, "a fault of the method: %d", w.Code)
	post(d, "agent", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"site_a_echo","arguments":{"n":9007199254740993}}}`)
	var seen []string
	for _, e := range d.Journal().Entries(0) {
		seen = append(seen, e.Route)
		for _, c := range e.Calls {
			seen = append(seen, fmt.Sprintf("%s%s %t", c.Method, c.Params, c.Ran))
		}
	}
	got, want := strings.Join(seen, ", "), `methods, jsonrpc, jsonrpc, a.echo{"n":9007199254740993} true`
	must.Expect(t, got == want && d.Runs("a.echo") == 1, "the journal: %s, want %s", got, want)
}

func TestMCPToolNames(t *testing.T) {
	for id, want := range map[string]string{
		"content.get": "site_content_get", "id.Case": "site_id_case", "a..b": "site_a_b", "2x": "site__2x", "id.with space": "site_id_with_space",
		strings.Repeat("long.", 20): "site_" + strings.Repeat("long_", 10) + "lo_fc3a0f",
	} {
		got := route.MCPToolName(id)
		must.Expect(t, got == want && len(got) <= 64, "%s: %s, want %s", id, got, want)
	}
}
