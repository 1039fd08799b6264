package drupalmodule

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
)

// over serves a module by HTTP, a request at a time.
func over(t *testing.T, module *phpSite) *httptest.Server {
	var one sync.Mutex
	server := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		must.Expect(t, err == nil, "%v", err)
		query := map[string]string{}
		for name, values := range r.URL.Query() {
			query[name] = values[0]
		}
		one.Lock()
		defer one.Unlock()
		status, text := module.serve(phpRequest{Verb: r.Method, Path: r.URL.Path, Query: query, Body: body, Authorization: r.Header.Get("Authorization")})
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	return server
}

const token = "a-token-of-the-test"

func controlled(t *testing.T, name string) (*fixtures.Site, *phpSite, *control.Client) {
	t.Helper()
	requirePHP(t)
	site, dir := exported(t, name, 3)
	module := startPHP(t, dir, "BRIDGECHECK_CONTROL_TOKEN="+token)
	client := must.Get(control.New(over(t, module).URL, token))(t)
	return site, module, client
}

// refused fails unless the module refused with this status, and says why.
func refused(t *testing.T, err error, status int, why string) {
	t.Helper()
	var e *control.Error
	must.Expect(t, errors.As(err, &e) && e.Status == status && strings.Contains(e.Message, why),
		"expected a refusal with %d and %q, got %v", status, why, err)
}

func TestControlNeedsItsToken(t *testing.T) {
	_, module, client := controlled(t, "transcripts")
	must.Get(client.Site(context.Background()))(t) // positive control
	for _, sent := range []string{"", "Bearer", "Bearer other", "Basic " + token} {
		status, body := module.serve(phpRequest{Verb: "GET", Path: "/-/mock/site", Authorization: sent})
		must.Expect(t, status == 401 && !strings.Contains(body, "methods"), "Authorization %q: %d %.80s", sent, status, body)
	}
	_, dir := exported(t, "transcripts", 3)
	without := startPHP(t, dir, "BRIDGECHECK_CONTROL_TOKEN=")
	status, _ := without.serve(phpRequest{Verb: "GET", Path: "/-/mock/site", Authorization: "Bearer "})
	must.Expect(t, status == 404, "without a token in the environment: %d", status)
}

// The site that the control plane shows is the site that was exported.
func TestControlShowsTheSite(t *testing.T) {
	for _, name := range sites {
		t.Run(name, func(t *testing.T) {
			site, _, client := controlled(t, name)
			shown := must.Get(client.Site(context.Background()))(t)
			for i := range site.Users { // a module has no tokens to give
				shown.Users[i].Tokens, site.Users[i].Tokens = nil, nil
			}
			want := must.Get(site.YAML())(t)
			got := must.Get(shown.YAML())(t)
			must.Expect(t, string(got) == string(want), "another site than was exported: %d bytes, expected %d", len(got), len(want))
		})
	}
}

func ids(t *testing.T, module *phpSite) (all []string, documents map[string]json.RawMessage) {
	t.Helper()
	var list struct{ Data []json.RawMessage }
	must.Do(t, json.Unmarshal([]byte(module.send(phpRequest{Verb: "GET", Path: "/jsonrpc/methods"})), &list))
	documents = map[string]json.RawMessage{}
	for _, doc := range list.Data {
		var m struct{ ID string }
		must.Do(t, json.Unmarshal(doc, &m))
		all = append(all, m.ID)
		documents[m.ID] = doc
	}
	return all, documents
}

func TestControlPatchesMethods(t *testing.T) {
	ctx := context.Background()
	site, module, client := controlled(t, "default")
	before, documents := ids(t, module)
	must.Do(t, client.Patch(ctx, patch.Patch{Disable: patch.Selection{Methods: []string{"echo", "shape.*"}}}))
	fewer, _ := ids(t, module)
	must.Expect(t, !slices.Contains(fewer, "echo") && !slices.Contains(fewer, "shape.none") && slices.Contains(fewer, "access.open"),
		"disabled methods are shown: %v", fewer)
	refused(t, client.Patch(ctx, patch.Patch{Disable: patch.Selection{Methods: []string{"echo"}}}), 400, `no method that is on the site matches "echo"`)
	shown := must.Get(client.Site(ctx))(t)
	_, there := shown.Method("echo")
	must.Expect(t, !there && len(shown.Methods) == len(fewer), "the site file has %d methods, the site %d", len(shown.Methods), len(fewer))
	must.Do(t, client.Patch(ctx, patch.Patch{Enable: patch.Selection{Methods: []string{"*"}}}))
	after, _ := ids(t, module)
	must.Expect(t, slices.Equal(after, before), "the methods did not come back in their old places")

	usage, title, hide := "Says something else", "Another title", false
	must.Do(t, client.Patch(ctx, patch.Patch{Methods: map[string]patch.Method{
		"shape.required": {Usage: &usage, Title: &title, Access: &[]string{fixtures.AccessContent},
			Schemas: map[string]fixtures.Raw{"message": fixtures.Raw(`{"type":"integer","minimum":3}`)}, Output: fixtures.Raw(`{"type":"array"}`)},
		"access.open": {Exposed: &hide},
	}}))
	_, changed := ids(t, module)
	for _, part := range []string{usage, title, `"minimum":3`, `"output":{"type":"array"}`, `"required":true`} {
		must.Expect(t, strings.Contains(string(changed["shape.required"]), part), "%s is not in %s", part, changed["shape.required"])
	}
	must.Expect(t, !strings.Contains(string(changed["access.open"]), "mcpTool") && strings.Contains(string(documents["access.open"]), "mcpTool"),
		"a hidden tool: %s", changed["access.open"])
	shown = must.Get(client.Site(ctx))(t)
	m, _ := shown.Method("shape.required")
	was, _ := site.Method("shape.required")
	if m.Usage != usage || m.MCP.Title != title || string(m.Params[0].Schema) != `{"type":"integer","minimum":3}` || !reflect.DeepEqual(m.Behaviour, was.Behaviour) {
		t.Errorf("the site file has %+v", m)
	}
	for why, p := range map[string]patch.Patch{
		`the site has no method "no.such"`:           {Methods: map[string]patch.Method{"no.such": {Usage: &usage}}},
		`the method has no parameter "no"`:           {Methods: map[string]patch.Method{"echo": {Schemas: map[string]fixtures.Raw{"no": fixtures.Raw(`{"type":"null"}`)}}}},
		`no permission is called "fly"`:              {Methods: map[string]patch.Method{"echo": {Access: &[]string{"fly"}}}},
		`the site has no role "no"`:                  {Roles: map[string]patch.Role{"no": {}}},
		`the site has no account "no"`:               {Users: map[string]patch.User{"no": {}}},
		`belongs to the module "no"`:                 {Disable: patch.Selection{Modules: []string{"no"}}},
		`no method that was disabled matches "echo"`: {Enable: patch.Selection{Methods: []string{"echo"}}},
		`the jsonrpc module takes no empty schema`:   {Methods: map[string]patch.Method{"echo": {Schemas: map[string]fixtures.Raw{"any": fixtures.Raw(`{}`)}}}},
	} {
		p.Extensions = &hide
		refused(t, client.Patch(ctx, p), 400, why)
	}
	body := module.send(phpRequest{Verb: "GET", Path: "/jsonrpc/methods"})
	must.Expect(t, strings.Contains(body, "mcpTool"), "a patch that was refused changed something")
	for body, why := range map[string]string{
		`{"disable":{"method":["echo"]}}`:       `disable: unknown field \"method\"`,
		`{"methods":{"echo":{"hidden":true}}}`:  `methods.echo: unknown field \"hidden\"`,
		`{"roles":{"agent":{"granted":["x"]}}}`: `roles.agent: unknown field \"granted\"`,
		`{"users":{"agent":{"block":true}}}`:    `users.agent: unknown field \"block\"`,
		`{"disabled":{"methods":["echo"]}}`:     `the body: unknown field \"disabled\"`,
	} {
		status, said := module.serve(phpRequest{Verb: "PATCH", Path: "/-/mock/site", Body: []byte(body), Authorization: "Bearer " + token})
		must.Expect(t, status == 400 && strings.Contains(said, why), "%s: %d %s", body, status, said)
	}
	must.Do(t, client.Patch(ctx, patch.Patch{Extensions: &hide}))
	must.Lacks(t, module.send(phpRequest{Verb: "GET", Path: "/jsonrpc/methods"}), "mcpTool", "what is shown of extensions that were switched off")
}

func TestControlPatchesPeople(t *testing.T) {
	ctx := context.Background()
	_, _, client := controlled(t, "default")
	blocked := true
	must.Do(t, client.Patch(ctx, patch.Patch{
		Roles: map[string]patch.Role{"agent": {Grant: []string{"administer nodes"}, Revoke: []string{fixtures.AccessContent}}},
		Users: map[string]patch.User{"agent2": {Blocked: &blocked}, "outsider": {Roles: &[]string{"agent"}}},
	}))
	shown := must.Get(client.Site(ctx))(t)
	role := shown.Roles[slices.IndexFunc(shown.Roles, func(r fixtures.Role) bool { return r.ID == "agent" })]
	agent2, _ := shown.User("agent2")
	outsider, _ := shown.User("outsider")
	if !slices.Contains(role.Permissions, "administer nodes") || slices.Contains(role.Permissions, fixtures.AccessContent) || !agent2.Blocked || !slices.Equal(outsider.Roles, []string{"agent"}) {
		t.Errorf("%+v %+v %+v", role, agent2, outsider)
	}
}

func TestControlJournal(t *testing.T) {
	ctx := context.Background()
	site, module, client := controlled(t, "default")
	agent, _ := site.User("agent")
	module.send(call(*agent, []byte(`[{"jsonrpc":"2.0","method":"access.open","id":1}, {"jsonrpc":"2.0","method":"echo","params":{"any" : 1.0}}]`)))
	module.send(call(fixtures.User{Name: fixtures.Anonymous}, []byte(`{"jsonrpc":"2.0","method":"fail.invalid_params","id":"x"}`)))
	page := must.Get(client.Journal(ctx, journal.Filter{}))(t)
	must.Assert(t, len(page.Entries) == 2 && page.Last == 2 && page.Lost == 0, "%+v", page)
	first := page.Entries[0]
	want := []journal.Call{{Method: "access.open", ID: fixtures.Raw("1"), Ran: true}, {Method: "echo", Params: fixtures.Raw(`{"any" : 1.0}`), Ran: true, Notification: true}}
	if first.User != "agent" || first.Route != "jsonrpc" || first.Status != 200 || !reflect.DeepEqual(first.Calls, want) || first.Start.IsZero() || first.End.Before(first.Start) {
		t.Errorf("%+v", first)
	}
	for name, f := range map[string]journal.Filter{"by account": {User: "anonymous"}, "by method": {Method: "fail.*"}, "after": {After: 1}, "the last": {Limit: 1}} {
		some := must.Get(client.Journal(ctx, f))(t)
		must.Expect(t, len(some.Entries) == 1 && some.Entries[0].Seq == 2, "%s: %+v", name, some)
	}
	_, body := module.serve(phpRequest{Verb: "GET", Path: "/-/mock/journal", Authorization: "Bearer " + token})
	for _, part := range []string{`"result":"open"`, `"exception":"Drupal\\jsonrpc\\Exception\\JsonRpcException: Invalid Params"`} {
		must.Expect(t, strings.Contains(body, part), "%s is not in the journal: %s", part, body)
	}
	runs, err := client.Runs(ctx, "access.open")
	must.Do(t, err)
	must.Expect(t, runs == 1, "%d runs", runs)
	_, err = client.Runs(ctx, "no.such")
	refused(t, err, 404, "no.such")
	must.Do(t, client.ClearJournal(ctx))
	page = must.Get(client.Journal(ctx, journal.Filter{}))(t)
	must.Expect(t, len(page.Entries) == 0 && page.Last == 2 && page.Lost == 0, "a cleared journal: %+v", page)
	withToken := call(*agent, []byte(`{"jsonrpc":"2.0","method":"access.open","id":1}`))
	withToken.Authorization = "Bearer a-token-of-the-agent"
	module.send(withToken)
	page = must.Get(client.Journal(ctx, journal.Filter{}))(t)
	must.Expect(t, len(page.Entries) == 1 && page.Entries[0].Scheme == "bearer" && first.Scheme == "cookie",
		"authenticated by %q without the header Authorization, and then: %+v", first.Scheme, page.Entries)
}

// What a real site cannot do is refused with the reason; the rest of the control plane responds.
func TestControlLimits(t *testing.T) {
	ctx := context.Background()
	_, _, client := controlled(t, "transcripts")
	_, err := client.Arm(ctx, fault.Fault{})
	refused(t, err, 501, "recording proxy")
	refused(t, client.SetQuirk(ctx, "sticky-get-cache", true), 501, "quirks")
	_, err = client.Advance(ctx, 1)
	refused(t, err, 501, "clock")
	must.Do(t, client.ClearCaches(ctx))
	must.Do(t, client.SetFlood(ctx, false))
	must.Do(t, client.Freeze(ctx, "fx.*"))
	refused(t, client.Freeze(ctx, "no.such"), 400, "no.such")
	waiting := must.Get(client.Waiting(ctx))(t)
	stepped, err := client.Step(ctx, 1)
	must.Do(t, err)
	must.Expect(t, waiting == 0 && stepped == 0, "%v %v", waiting, stepped)
	_, err = client.Step(ctx, 0)
	refused(t, err, 400, "give 1 or more")
	must.Do(t, client.Freeze(ctx, ""))
}

// A whole site is put in place of the exported one: it shows and does what the mock of it shows and does; and it goes back.
func TestControlPutsASite(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no PHP is started")
	ctx := context.Background()
	exportedSite, module, client := controlled(t, "default")
	before := module.send(phpRequest{Verb: "GET", Path: "/jsonrpc/methods"})
	for _, name := range []string{"transcripts", "types"} {
		other := builtinSite(t, name)
		must.Do(t, client.SetSite(ctx, other))
		got, want := module.send(phpRequest{Verb: "GET", Path: "/jsonrpc/methods"}), collection(t, other)
		must.Expect(t, got == want, "%s: the methods differ\nPHP:  %.2000s\nmock: %.2000s", name, got, want)
		behavesAsTheMock(t, other.Clone(), module, map[fixtures.Kind]int{})
		shown := must.Get(client.Site(ctx))(t)
		must.Expect(t, len(shown.Users) == len(other.Users) && len(shown.Methods) == len(other.Methods),
			"%s is shown with %d users and %d methods", name, len(shown.Users), len(shown.Methods))
	}
	people := exportedSite.Clone()
	people.Roles = append(people.Roles, fixtures.Role{ID: "newcomer", Permissions: []string{fixtures.UseJSONRPC}})
	people.Users = append(people.Users, fixtures.User{UID: 77, Name: "check1", Password: "check1-pass", Roles: []string{"newcomer"}})
	must.Do(t, client.SetSite(ctx, people))
	shown := must.Get(client.Site(ctx))(t)
	u, ok := shown.User("check1")
	must.Expect(t, ok && shown.Holds(u, fixtures.UseJSONRPC), "a new account: %+v", u)
	must.Do(t, client.SetSite(ctx, exportedSite))
	must.Expect(t, module.send(phpRequest{Verb: "GET", Path: "/jsonrpc/methods"}) == before, "the exported site did not come back")
	shown = must.Get(client.Site(ctx))(t)
	_, there := shown.User("check1")
	must.Expect(t, !there && len(shown.Roles) == len(exportedSite.Roles), "an account or a role stayed")
	refused(t, client.SetSite(ctx, builtinSite(t, "poisoned")), 501, "no place for a schema")
}

// Nothing is left of a module that was uninstalled, and what it changed is as it was.
func TestUninstallLeavesNoTrace(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no PHP is started")
	ctx := context.Background()
	site, module, client := controlled(t, "default")
	must.Do(t, client.Patch(ctx, patch.Patch{
		Roles: map[string]patch.Role{"authenticated": {Grant: []string{fixtures.AccessContent}}},
		Users: map[string]patch.User{"admin": {Roles: &[]string{"agent"}}, "outsider": {Roles: &[]string{"agent"}}},
	}))
	changed := site.Clone()
	changed.Users = changed.Users[:3]
	must.Do(t, client.SetSite(ctx, changed))
	var stored struct{ Before, During, After json.RawMessage }
	must.Do(t, json.Unmarshal([]byte(module.send(phpRequest{Verb: "UNINSTALL"})), &stored))
	must.Expect(t, strings.Contains(string(stored.During), `"agent"`),
		"the installed module stored nothing: %s", stored.During) // positive control
	must.Expect(t, string(stored.After) == string(stored.Before), "after:  %s\nbefore: %s", stored.After, stored.Before)
}
