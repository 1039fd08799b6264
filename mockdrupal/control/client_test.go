package control_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
)

// remote runs a mock of the default site with its control plane, and returns both and a client.
func remote(t *testing.T) (*mockdrupal.Server, *control.Client) {
	t.Helper()
	site := must.Get(fixtures.Builtin("default"))(t)
	d := must.Get(mockdrupal.New(site, mockdrupal.Options{ControlToken: "s3cret"}))(t)
	s := must.Get(d.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { s.Close() })
	c := must.Get(control.New(s.URL, "s3cret"))(t)
	return s, c
}

// ask calls a method as the user agent and returns the body.
func ask(t *testing.T, s *mockdrupal.Server, method string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/jsonrpc", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
	r.SetBasicAuth("agent", "agent-pass")
	s.ServeHTTP(w, r)
	return w.Body.String()
}

func TestSiteIsReadReplacedAndPatched(t *testing.T) {
	s, c := remote(t)
	ctx := t.Context()
	site := must.Get(c.Site(ctx))(t)
	id := site.Methods[0].ID
	must.Do(t, c.Patch(ctx, patch.Patch{Disable: patch.Selection{Methods: []string{id}}}))
	must.Has(t, ask(t, s, id), "-32601", "the response of the disabled method")
	must.Do(t, c.Patch(ctx, patch.Patch{Enable: patch.Selection{Methods: []string{id}}}))
	now, err := c.Site(ctx)
	must.Expect(t, err == nil && now.Methods[0].ID == id && len(now.Methods) == len(site.Methods), "the enabled method is not back in its place: %v", err)
	site.Methods = site.Methods[:1]
	must.Do(t, c.SetSite(ctx, site))
	got := len(s.Site().Methods)
	must.Expect(t, got == 1, "%d methods after the site was replaced, want 1", got)
}

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	s, c := remote(t)
	before := s.Site()
	for _, b := range []struct {
		name, verb, path, body string
		status                 int
		says                   string
	}{
		{"no JSON", "PATCH", "site", `{"roles":`, 400, "byte"},
		{"unknown member", "PATCH", "site", `{"rolls":{}}`, 400, `"rolls"`},
		{"unknown method", "PATCH", "site", `{"methods":{"no.such":{}}}`, 400, `"no.such"`},
		{"unknown role", "PATCH", "site", `{"roles":{"nobody":{}}}`, 400, `"nobody"`},
		{"unknown user", "PATCH", "site", `{"users":{"nobody":{"blocked":true}}}`, 400, `"nobody"`},
		{"unknown permission", "PATCH", "site", `{"roles":{"agent":{"grant":["fly"]}}}`, 400, "fly"},
		{"pattern that matches nothing", "PATCH", "site", `{"disable":{"methods":["zzz.*"]}}`, 400, `"zzz.*"`},
		{"site that is none", "PUT", "site", "titel: x\n", 400, "titel"},
		{"unknown fault", "POST", "faults", `{"kind":"earthquake"}`, 400, "earthquake"},
		{"fault of an unknown method", "POST", "faults", `{"kind":"hang","method":"zzz.*"}`, 400, "zzz.*"},
		{"fault of an unknown user", "POST", "faults", `{"kind":"hang","user":"nobody"}`, 400, "nobody"},
		{"fault with an unknown member", "POST", "faults", `{"kind":"hang","when":"now"}`, 400, "when"},
		{"delay as a number", "POST", "faults", `{"kind":"delay","delay":5}`, 400, "1.5s"},
		{"unknown quirk", "PUT", "quirks/odd", "", 404, "odd"},
		{"no such fault", "DELETE", "faults/99", "", 404, "99"},
		{"unknown filter", "GET", "journal?who=me", "", 400, "who"},
		{"filter that is no number", "GET", "journal?after=x", "", 400, "after"},
		{"step of nothing", "POST", "step", `{"count":0}`, 400, "count"},
		{"unknown address", "GET", "weather", "", 404, "weather"},
		{"wrong verb", "POST", "site", "", 405, "POST"},
	} {
		t.Run(b.name, func(t *testing.T) {
			r, _ := http.NewRequest(b.verb, s.URL+control.Prefix+b.path, strings.NewReader(b.body))
			r.Header.Set("Authorization", "Bearer s3cret")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			must.Expect(t, w.Code == b.status && strings.Contains(w.Body.String(), strings.ReplaceAll(b.says, `"`, `\"`)),
				"got %d %s, want %d naming %s", w.Code, w.Body, b.status, b.says)
		})
	}
	must.Expect(t, s.Site() == before && len(s.Faults()) == 0, "bad input changed the site or armed a fault")
	_, err := c.Arm(t.Context(), mockdrupal.Fault{Kind: "earthquake"})
	must.Expect(t, errors.As(err, new(*control.Error)), "the client returns %v, want a *control.Error", err)
}

func TestTokenGuardsTheControlPlane(t *testing.T) {
	s, _ := remote(t)
	for _, token := range []string{"", "wrong"} {
		c := must.Get(control.New(s.URL, token))(t)
		var refused *control.Error
		_, err := c.Site(t.Context())
		must.Expect(t, errors.As(err, &refused) && refused.Status == 401, "with the token %q: %v, want 401", token, err)
	}
}

func TestFaultsClockAndJournalFromAfar(t *testing.T) {
	s, c := remote(t)
	ctx := t.Context()
	id := must.Get(c.Arm(ctx, mockdrupal.Fault{Kind: fault.Status, Status: 503, User: "agent", Count: 2}))(t)
	ask(t, s, "no.such")
	if list, err := c.Faults(ctx); err != nil || len(list) != 1 || list[0].Left != 1 || list[0].ID != id {
		t.Errorf("faults: %+v, %v; want one that acts on one more request", list, err)
	}
	must.Do(t, c.DisarmAll(ctx))
	page, err := c.Journal(ctx, journal.Filter{Fault: fault.Status})
	must.Expect(t, err == nil && len(page.Entries) == 1 && page.Entries[0].Status == 503 && page.Entries[0].User == "agent",
		"journal: %+v, %v; want the one affected request", page, err)
	before := s.Now()
	now, err := c.Advance(ctx, time.Hour)
	must.Expect(t, err == nil && now.Sub(before) >= time.Hour, "the clock shows %v after an hour from %v: %v", now, before, err)
}

func TestControlPlaneOnAnAddressOfItsOwn(t *testing.T) {
	d := must.Get(mockdrupal.New(&fixtures.Site{Title: "Empty"}, mockdrupal.Options{}))(t)
	if _, _, err := d.ListenControl("0.0.0.0:0", ""); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("a public address without a token: %v", err)
	}
	server, address, err := d.ListenControl("127.0.0.1:0", "")
	must.Do(t, err)
	defer server.Close()
	c := must.Get(control.New("http://"+address.String(), ""))(t)
	site, err := c.Site(t.Context())
	must.Expect(t, err == nil && site.Title == "Empty", "site %+v, %v", site, err)
}
