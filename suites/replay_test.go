package suites_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/reports"
)

func TestReplayReportsWhetherTheResponseIsTheSame(t *testing.T) {
	var well bool
	drupal := moduleSite(t, module.V13)
	at := serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if well {
			http.Error(w, `{"error":{"code":"invalid_cursor","message":"agent-pass"}}`, http.StatusBadRequest)
			return
		}
		drupal.ServeHTTP(w, r)
	}))
	report := must.Get(engine.Run(t.Context(), engine.Target{URL: strings.Replace(at, "http://", "http://agent:agent-pass@", 1)}, engine.Options{Only: []string{"list/cursor-malformed"}}))(t)
	line := report.Results[0].Curl
	must.Assert(t, strings.Contains(line, `-u "agent:$AGENT_PASSWORD"`) && strings.Contains(line, "cursor=LTE%3D"), "the curl line is %s", line)
	password := func(name string) string { return map[string]string{"AGENT_PASSWORD": "agent-pass"}[name] }
	none := func(string) string { return "" }
	replay := func(clause string, getenv func(string) string) (*engine.Replayed, error) {
		return engine.Replay(t.Context(), engine.ReplayOptions{Report: report, Clause: clause, Getenv: getenv, Timeout: 5 * time.Second})
	}

	must.Refuse(replay("list/cursor-malformed", none))(t, "AGENT_PASSWORD is not set")
	must.Refuse(replay("no/such", password))(t, "")
	same, err := replay("list/cursor-malformed", password)
	must.Expect(t, err == nil && same.Same && same.New.Response.Status == http.StatusOK,
		"the unchanged bridge gave %+v (%v), expected the same", same, err)
	well = true
	other, err := replay("list/cursor-malformed", password)
	must.Expect(t, err == nil && !other.Same && other.New.Response.Status == http.StatusBadRequest,
		"the fixed bridge gave %+v (%v), expected another response", other, err)
	must.Expect(t, !strings.Contains(other.New.Response.Body, "agent-pass"),
		"the new response shows the password: %s", other.New.Response.Body)
}

// A report may come from another, or from a bridge that wrote its own texts into it.
func TestReplayOfAForgedReport(t *testing.T) {
	var mu sync.Mutex
	var received []string
	record := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		received = append(received, r.Host+r.URL.RequestURI()+" "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
	}
	target, elsewhere := serveAt(t, http.HandlerFunc(record)), serveAt(t, http.HandlerFunc(record))
	environment := func(name string) string {
		return map[string]string{"AGENT_TOKEN": "agent-token", "AGENT_X_API_KEY": "agent-key", "AWS_SECRET_ACCESS_KEY": "cloud-key", "AGENT_PASSWORD": "agent-pass", "HOME": "/root"}[name]
	}
	forged := func(who, header, scheme, url string) *reports.Report {
		e := reports.Exchange{Identity: who, Request: reports.Message{Method: "GET", URL: url}}
		if header != "" {
			e.Request.Header = map[string]string{header: scheme + " [redacted]"}
			e.Credentials = []reports.Credential{{Header: header, Scheme: scheme}}
		}
		first := 0
		return &reports.Report{Target: reports.Target{URL: target + "/base"}, Results: []reports.Result{{ID: "list/cursor-malformed", Verdict: reports.Fail,
			Findings: []reports.Finding{{Message: "x", Request: &first}}, Evidence: []reports.Exchange{e}}}}
	}
	for _, c := range []struct {
		name, who, header, scheme, url, to string

		says     string // of the refusal; "": the request is sent
		receives string
	}{
		{name: "positive control", who: "agent", header: "Authorization", scheme: "Bearer", url: target + "/base/x?y=1", receives: target + "/base/x?y=1 Bearer agent-token"},
		{name: "another header of an identity", who: "agent", header: "X-Api-Key", url: target + "/base/x", receives: target + "/base/x agent-key"},
		{name: "a variable of the user", who: "AWS", header: "Secret-Access-Key", url: target + "/base/x", says: `the credentials of "AWS", and replay has only those of agent,`},
		{name: "no credentials and a strange identity", who: "AWS", url: target + "/base/x", receives: target + "/base/x "},
		{name: "another host", who: "agent", header: "Authorization", scheme: "Bearer", url: elsewhere + "/base/x", says: "name the bridge to send it to by --to"},
		{name: "another scheme", who: "agent", url: strings.Replace(target, "http:", "https:", 1) + "/base/x", says: "name the bridge to send it to by --to"},
		{name: "the target as the user of another host", who: "agent", url: strings.Replace(target, "http://", "http://"+strings.TrimPrefix(target, "http://127.")+"@", 1) + "/base/x", says: "name the bridge to send it to by --to"},
		{name: "another host, named by --to", who: "agent", header: "Authorization", scheme: "Bearer", url: target + "/base/x%2Fy?z", to: elsewhere + "/moved/", receives: elsewhere + "/moved/x%2Fy?z Bearer agent-token"},
		{name: "the host of --to, not that of the request", who: "agent", header: "Authorization", scheme: "Bearer", url: elsewhere + "/x", to: target, receives: target + "/x Bearer agent-token"},
		{name: "a --to that is no address", who: "agent", url: target + "/base/x", to: "nowhere", says: "--to: "},
		{name: "a --to with a password", who: "agent", url: target + "/base/x", to: strings.Replace(target, "http://", "http://a:b@", 1), says: "--to takes an address without credentials"},
		{name: "no address", who: "agent", url: "/base/x", says: "no address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			received = nil
			_, err := engine.Replay(t.Context(), engine.ReplayOptions{Report: forged(c.who, c.header, c.scheme, c.url), Clause: "list/cursor-malformed", To: c.to, Getenv: environment, Timeout: 5 * time.Second})
			switch {
			case c.says == "" && (err != nil || len(received) != 1 || "http://"+received[0] != c.receives):
				t.Errorf("sent %q (%v), expected %q", received, err, c.receives)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || len(received) > 0):
				t.Errorf("sent %q (%v), expected nothing and an error with %q", received, err, c.says)
			}
		})
	}
	unknown := forged("agent", "", "", target+"/x")
	unknown.Results[0].ID = "list/no-such-clause"
	_, err := engine.Replay(t.Context(), engine.ReplayOptions{Report: unknown, Clause: "list/no-such-clause", Getenv: environment, Timeout: time.Second})
	must.Expect(t, err != nil && strings.Contains(err.Error(), "no clause of the contract"), "a clause that the contract does not have: %v", err)
}

// What a bridge chose, here the id of its session, is data in the curl line, whatever it looks like.
func TestCurlLineOfAHostileBridge(t *testing.T) {
	const session = "$HOME$(id)`id`'!"
	at := serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", session)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/mcp/tools/list" {
			fmt.Fprint(w, `{"tools":[{"name":"a","description":"does","inputSchema":{"type":"object"}}]}`)
			return
		}
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`)
	}))
	report := must.Get(engine.Run(t.Context(), engine.Target{URL: at}, engine.Options{Connection: engine.Connection{Timeout: 5 * time.Second}, Capabilities: append([]string{"mcp"}, engine.DefaultCapabilities...), Only: []string{"mcp/*"}}))(t)
	lines := 0
	for _, r := range report.Results {
		if !strings.Contains(r.Curl, "Mcp-Session-Id: ") {
			continue
		}
		lines++
		quoted := `'Mcp-Session-Id: $HOME$(id)` + "`id`" + `'\''!'`
		must.Expect(t, strings.Contains(r.Curl, quoted), "%s: %s\nexpected in it %s", r.ID, r.Curl, quoted)
	}
	must.Expect(t, lines != 0, "no curl line holds the session: this proves nothing")
}

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
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("expected an error with %q, got %v", c.refused, err)
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
