package suites_test

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
)

func TestRestage(t *testing.T) {
	const clause = "describe/unknown-404"
	account := &reports.Account{Permissions: []string{"use jsonrpc services"}}
	basic := []reports.Credential{{Header: "Authorization", Scheme: "Basic", User: "check7"}}
	for _, c := range []struct {
		name     string
		exchange reports.Exchange
		refused  string // part of the error; "": it can be sent again
		created  string
	}{
		{name: "an account of the site", exchange: reports.Exchange{Identity: "agent", Credentials: basic}},
		{name: "an account of the check", exchange: reports.Exchange{Identity: "check7", Account: account, Credentials: basic}, created: "check7"},
		{name: "a forged account", exchange: reports.Exchange{Identity: "AWS", Account: account, Credentials: basic}, refused: `needs the credentials of "AWS"`},
		{name: "an account without permissions", exchange: reports.Exchange{Identity: "check7", Credentials: basic}, refused: `needs the credentials of "check7"`},
		{name: "a changed site", exchange: reports.Exchange{Identity: "agent", SiteChanged: true}, refused: "the check had changed the site"},
		{name: "a fault of the site", exchange: reports.Exchange{Identity: "agent", Drupal: []reports.Upstream{{Fault: "hang"}}}, refused: "had a fault armed at the site (hang)"},
		{name: "a long body", exchange: reports.Exchange{Identity: "agent", Request: reports.Message{Truncated: 9}}, refused: "without the last 9 bytes of its body"},
		{name: "a session", exchange: reports.Exchange{Identity: "agent", Request: reports.Message{Header: map[string]string{"Mcp-Session-Id": "1"}}}, refused: "belongs to an MCP session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.exchange.Request.Method, c.exchange.Request.URL = "GET", "http://127.0.0.1:1/x"
			report := &reports.Report{Results: []reports.Result{{ID: clause, Verdict: reports.Fail, Findings: []reports.Finding{{Message: "x", Request: new(0)}}, Evidence: []reports.Exchange{c.exchange}}}}
			site := must.Get(fixtures.Builtin("default"))(t)
			drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
			created, err := engine.Restage(report, clause, drupal)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "bridgecheck run --exec … --only "+clause+" --keep") {
					t.Fatalf("expected an error with %q and what to run instead, got %v", c.refused, err)
				}
				return
			}
			must.Do(t, err)
			if c.created == "" {
				must.Expect(t, len(created) == 0, "created %v", created)
				return
			}
			user, ok := drupal.Site().User(c.created)
			if !ok || len(created) != 1 || string(created[0]) != c.created || !drupal.Site().Holds(user, account.Permissions[0]) || drupal.Site().Holds(user, "administer site configuration") {
				t.Errorf("created %v, user %+v", created, user)
			}
		})
	}
}
