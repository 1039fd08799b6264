package bridge_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestServiceAccountNeedsAFrontEndToken(t *testing.T) {
	s := newSite(t, echo)
	front := start(t, s, func(o *bridge.Options) {
		o.ServiceUser, o.ServicePassword, o.ServiceTokens = "service", "canary-pass", []caller.Secret{"front"}
	})
	for auth, want := range map[string]int{"Bearer front": 200, "Bearer other": 401, "": 401, "Basic c2VydmljZTpjYW5hcnktcGFzcw==": 401} {
		send(t, front, "", "GET", "/mcp/tools/list", "", "Authorization", auth).expect(t, want, "%q", auth)
	}
	s.change(func() {
		must.Expect(t, strings.HasPrefix(s.lastAuth, "Basic "), "the site got %q, want the account's own credential", s.lastAuth)
	})
	r := send(t, front, "", "POST", "/mcp/admin/invalidate", "", "Authorization", "Bearer front")
	must.Expect(t, r.Status == 403, "a front-end token administers the bridge: %d", r.Status)

	for _, status := range []int{401, 403} {
		s.change(func() { s.list = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) } })
		front := start(t, s, func(o *bridge.Options) {
			o.ServiceUser, o.ServicePassword, o.ServiceTokens = "service", "wrong-pass", []caller.Secret{"front"}
		})
		r := send(t, front, "", "GET", "/mcp/tools/list", "", "Authorization", "Bearer front")
		must.Expect(t, r.Status == status && strings.Contains(r.Body, "service_password"),
			"an account that the site refuses with %d: %d %s", status, r.Status, r.Body)
	}
}

func TestAdministration(t *testing.T) {
	s := newSite(t, echo)
	s.list = func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		extra := ""
		if user == "admin" {
			extra = `,{"id":"cache.rebuild","attributes":{}},{"id":"bad","attributes":{"mcpTool":{},"params":{"p":{"schema":{"$ref":"http://x/"}}}}}`
		}
		io.WriteString(w, `{"data":[`+echo+extra+`],"meta":{"mcp":{"discovery":true}}}`)
	}
	front := start(t, s, func(o *bridge.Options) { o.AdminTokens = []caller.Secret{"operator"} })
	list(t, front, "admin")
	before := s.discoveries.Load()
	list(t, front, "admin")
	must.Assert(t, s.discoveries.Load() == before, "the list is not remembered")
	for who, want := range map[string]int{"agent": 403, "": 401, "admin": 200} {
		user := who
		r := send(t, front, user, "POST", "/mcp/admin/invalidate", "")
		must.Expect(t, r.Status == want || who == "" && r.Status == 403, "%q invalidates: %d, want %d", who, r.Status, want)
	}
	r := send(t, front, "", "POST", "/mcp/admin/invalidate", "", "Authorization", "Bearer operator")
	must.Expect(t, r.Status == 200, "an operator's token: %d", r.Status)
	before = s.discoveries.Load()
	list(t, front, "admin")
	must.Expect(t, s.discoveries.Load() == before+1, "after the invalidation the site was not asked")
	if r := send(t, front, "admin", "GET", "/mcp/admin/diagnostics", ""); r.Status != 200 || !strings.Contains(r.Body, `"method":"bad"`) || !strings.Contains(r.Body, `"quarantined":true`) {
		t.Errorf("diagnostics: %d %s", r.Status, r.Body)
	}
}

func TestViolationsAreAllNamed(t *testing.T) {
	front := start(t, newSite(t, `{"id":"content.x","attributes":{"params":{"a":{"schema":{"type":"string"},"attributes":{"required":true}},
		"b":{"schema":{"type":"object","properties":{"c":{"enum":["x","y"]}}}}},"mcpTool":{}}}`))
	r := call(t, front, "agent", "content.x", `{"b":{"c":"z"}}`)
	var got struct {
		Error struct {
			Data struct {
				Parameter, Expected, Received string
				Errors                        []struct{ Parameter, Expected, Received, Schema_path string }
			}
		}
	}
	must.Do(t, json.Unmarshal([]byte(r.Body), &got))
	d := got.Error.Data
	if r.Status != 400 || d.Parameter != "a" || d.Expected != "a value" || d.Received != "nothing" || len(d.Errors) != 2 ||
		d.Errors[1].Parameter != "b.c" || d.Errors[1].Schema_path != "#/properties/b/properties/c/enum" {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}

func TestLenientWhereDrupalIs(t *testing.T) {
	front := start(t, newSite(t, echo))
	for _, arguments := range []string{`{}`, `{"n":null}`, `{"n":2.0}`, `{"unknown":1}`, `[]`} {
		call(t, front, "agent", "content.echo", arguments).expect(t, 200, "%s", arguments)
	}
}
