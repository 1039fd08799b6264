package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/mockdrupal/recorder"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// proxied is a site as the mock serves it and a proxy before it.
func proxied(t *testing.T) (site *mockdrupal.Server, before *recorder.Server, p *proxy.Proxy) {
	t.Helper()
	data := must.Get(fixtures.Builtin("default"))(t)
	mock := must.Get(mockdrupal.New(data, mockdrupal.Options{}))(t)
	site = must.Get(mock.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { site.Close() })
	address := must.Get(url.Parse(site.URL))(t)
	p = must.Get(proxy.New(address, proxy.Options{}))(t)
	before = must.Get(p.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { before.Close() })
	return site, before, p
}

// post sends a JSON-RPC request with an Authorization header ("" for none) and returns status and body.
func post(t *testing.T, base, authorization, body string) (int, string) {
	t.Helper()
	req := must.Get(http.NewRequest(http.MethodPost, base+"/jsonrpc", strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

const asAgent = "Basic YWdlbnQ6YWdlbnQtcGFzcw==" // agent:agent-pass

func TestProxyPassesOnAndRecordsAsTheMockDoes(t *testing.T) {
	site, before, p := proxied(t)
	for what, c := range map[string]struct {
		authorization, body string
		ran                 []bool
	}{
		"a call":                   {asAgent, `{"jsonrpc":"2.0","method":"content.list","id":1}`, []bool{true}},
		"an unknown method":        {asAgent, `{"jsonrpc":"2.0","method":"no.such","id":"x"}`, []bool{false}},
		"a parameter missing":      {asAgent, `{"jsonrpc":"2.0","method":"content.search","params":{},"id":2}`, []bool{false}},
		"an anonymous caller":      {"", `{"jsonrpc":"2.0","method":"content.list","id":1}`, []bool{false}},
		"a batch":                  {asAgent, `[{"jsonrpc":"2.0","method":"content.list","id":1},{"jsonrpc":"2.0","method":"content.list","id":2}]`, []bool{true, true}},
		"a notification":           {asAgent, `{"jsonrpc":"2.0","method":"content.list"}`, []bool{true}},
		"the method's own refusal": {asAgent, `{"jsonrpc":"2.0","method":"fail.invalid_params","id":1}`, []bool{true}},
		"words in place of JSON":   {asAgent, `hello`, nil},
	} {
		t.Run(what, func(t *testing.T) {
			status, body := post(t, site.URL, c.authorization, c.body)
			p.Journal().Clear()
			through, same := post(t, before.URL, c.authorization, c.body)
			must.Expect(t, through == status && same == body, "through the proxy came %d %s, want %d %s", through, same, status, body)
			entries := p.Journal().Entries(0)
			must.Assert(t, len(entries) == 1, "the journal has %d entries, want 1", len(entries))
			e := entries[0]
			user := "agent"
			if c.authorization == "" {
				user = ""
			}
			must.Expect(t, e.User == user && e.Status == status,
				"the entry shows %q and %d, want %q and %d", e.User, e.Status, user, status)
			must.Assert(t, len(e.Calls) == len(c.ran), "the entry has the calls %+v, want %d", e.Calls, len(c.ran))
			for i, ran := range c.ran {
				must.Expect(t, e.Calls[i].Ran == ran, "call %d ran: %v, want %v (%s)", i, e.Calls[i].Ran, ran, body)
			}
		})
	}
}

// What runs by the module that is itself a bridge, the proxy records as the mock does.
func TestProxyRecordsCallsByTheModule(t *testing.T) {
	const call = `{"jsonrpc":"2.0","method":"content.list","id":1}`
	for _, c := range []struct {
		version, verb, path, body string
		ran                       bool
	}{
		{module.V13, http.MethodPost, "/mcp/tools/invoke", `{"name":"content.list","arguments":{"page":{"limit":1}}}`, true},
		{module.V13, http.MethodPost, "/mcp/tools/invoke", `{"name":"no.such","arguments":{}}`, false},
		{module.V14, http.MethodPost, "/mcp/tools/content.list", call, true},
		{module.V14, http.MethodGet, "/mcp/tools/content.list?query=" + url.QueryEscape(call), "", true},
		{module.V14, http.MethodGet, "/mcp/tools/list", "", false},
	} {
		t.Run(c.verb+" "+c.path+" "+c.body, func(t *testing.T) {
			data := must.Get(fixtures.Builtin("default"))(t)
			data.Auth.MCP = data.Auth.JSONRPC
			extension := must.Get(module.New(c.version))(t)
			mock := must.Get(mockdrupal.New(data, mockdrupal.Options{Extensions: []mockdrupal.Extension{extension}}))(t)
			site := must.Get(mock.Listen("127.0.0.1:0"))(t)
			defer site.Close()
			p := must.Get(proxy.New(must.Get(url.Parse(site.URL))(t), proxy.Options{}))(t)
			before := must.Get(p.Listen("127.0.0.1:0"))(t)
			defer before.Close()
			req := must.Get(http.NewRequest(c.verb, before.URL+c.path, strings.NewReader(c.body)))(t)
			req.Header = http.Header{"Authorization": {asAgent}, "Content-Type": {"application/json"}}
			resp := must.Get(http.DefaultClient.Do(req))(t)
			resp.Body.Close()
			ran := func(entries []journal.Entry) (ran []string) {
				for _, e := range entries {
					for _, one := range e.Calls {
						if one.Ran {
							ran = append(ran, one.Method+" "+string(one.Params))
						}
					}
				}
				return ran
			}
			have, want := ran(p.Journal().Entries(0)), ran(mock.Journal().Entries(0))
			must.Expect(t, slices.Equal(have, want) && len(want) > 0 == c.ran,
				"the proxy saw %q run, the site ran %q (%d)", have, want, resp.StatusCode)
		})
	}
}

func TestProxyHidesTokensInItsJournal(t *testing.T) {
	_, before, p := proxied(t)
	post(t, before.URL, "Bearer agent-token", `{"jsonrpc":"2.0","method":"content.list","id":1}`)
	e := p.Journal().Entries(0)[0]
	if e.Scheme != "bearer" || strings.Contains(e.User, "agent-token") || e.User != proxy.CallerName(http.Header{"Authorization": {"Bearer agent-token"}}) {
		t.Errorf("the entry names the caller %q by %s", e.User, e.Scheme)
	}
}

func TestProxyFaults(t *testing.T) {
	_, before, p := proxied(t)
	const call = `{"jsonrpc":"2.0","method":"content.list","id":1}`
	for _, f := range []struct {
		fault mockdrupal.Fault
		want  func(status int, body string) bool
	}{
		{mockdrupal.Fault{Kind: fault.Status, Status: 503, Route: route.JSONRPC}, func(s int, _ string) bool { return s == 503 }},
		{mockdrupal.Fault{Kind: fault.WrongID, Method: "content.list"}, func(s int, b string) bool { return s == 200 && strings.Contains(b, `"id":2`) }},
		{mockdrupal.Fault{Kind: fault.Reset, User: "agent"}, func(s int, _ string) bool { return s == 0 }},
		{mockdrupal.Fault{Kind: fault.Cut}, func(s int, _ string) bool { return s == 0 }},
		{mockdrupal.Fault{Kind: fault.Status, Status: 500, User: "somebody.else"}, func(s int, _ string) bool { return s == 200 }},
	} {
		disarm := must.Get(p.Arm(f.fault))(t)
		status, body := post(t, before.URL, asAgent, call)
		must.Expect(t, f.want(status, body), "under %+v came %d %s", f.fault, status, body)
		disarm()
	}
	status, body := post(t, before.URL, asAgent, call)
	must.Expect(t, status == 200, "after all faults came %d %s", status, body)
	must.Refuse(p.Arm(mockdrupal.Fault{Kind: fault.Stale}))(t, "no discovery", "a fault that shows earlier discovery was armed before any")
}

// Discovery can be shown as it was, to the caller who saw it.
func TestStaleDiscoveryBeforeARealSite(t *testing.T) {
	site, before, p := proxied(t)
	tools := func(who string) string {
		t.Helper()
		req := must.Get(http.NewRequest(http.MethodGet, before.URL+"/jsonrpc/methods", nil))(t)
		req.SetBasicAuth(who, who+"-pass")
		resp := must.Get(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		body := must.Get(io.ReadAll(resp.Body))(t)
		return string(body)
	}
	first := tools("agent")
	disarm := must.Get(p.Arm(mockdrupal.Fault{Kind: fault.Stale, Route: route.Methods, User: "agent"}))(t)
	must.Do(t, site.Update(func(s *fixtures.Site) error { s.Methods = s.Methods[:1]; return nil }))
	must.Expect(t, tools("agent") == first, "discovery is not shown as it was")
	body := tools("agent2")
	must.Expect(t, len(body) < len(first), "a caller who saw nothing before sees an earlier state")
	disarm()
	must.Expect(t, tools("agent") != first, "discovery is shown as it was after the fault")
}

func TestProxyBeforeASiteThatIsDown(t *testing.T) {
	site, before, p := proxied(t)
	err := p.Reachable(context.Background())
	must.Expect(t, err == nil, "the site is up, and Reachable says %v", err)
	site.Close()
	status, _ := post(t, before.URL, asAgent, `{}`)
	must.Expect(t, status == http.StatusBadGateway, "before a dead site the proxy responds with %d, want 502", status)
	must.Say(t, p.Reachable(context.Background()), "", "the site is down, and Reachable says nothing")
}

func TestNewProxyRefusesWhatIsNoSite(t *testing.T) {
	for _, address := range []string{"ftp://site", "http://", "/path", ""} {
		u := must.Get(url.Parse(address))(t)
		must.Refuse(proxy.New(u, proxy.Options{}))(t, "", address)
	}
}
