// Package access checks who sees and runs what: permissions, credentials, and that no caller receives data of another. Its
// checks change accounts and permissions at the site and compare what each caller sees at the front side and runs at the
// site side.
package access

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area access.
var Checks = []check.Check{
	{ID: "access/list-403", TellsApart: true, ByMock: true, Sees: check.Front, Run: list403},
	{ID: "access/describe-403", TellsApart: true, Sees: check.Front, Run: describe403},
	{ID: "access/anonymous", TellsApart: true, ByMock: true, Sees: check.Front, Run: anonymous},
	{ID: "access/filtered-by-method", TellsApart: true, Sees: check.Discovery, ByMCP: true, Guesses: 1, Run: filteredByMethod},
	{ID: "access/discovery-broad", TellsApart: true, Sees: check.Site, Run: discoveryBroad},
	{ID: "access/discovery-not-execution", TellsApart: true, Sees: check.Site, ByMCP: true, Run: discoveryNotExecution, WithoutSite: allowedNotExecuted},
	{ID: "access/route-permission", TellsApart: true, Sees: check.Site, ByMCP: true, Guesses: 2, Run: routePermission, WithoutSite: allowedOfNobody},
	{ID: "access/permission-revoked", TellsApart: true, Sees: check.Site, ByMCP: true, Run: permissionRevoked},
	{ID: "access/anonymous-granted", TellsApart: true, Sees: check.Site, Waits: true, Run: anonymousGranted, WithoutSite: grantedToAnonymous},
	{ID: "access/no-oracle", TellsApart: true, Sees: check.Site, Guesses: 1, Run: noOracle},
	{ID: "access/cors", Sees: check.Front, Run: cors},
	{ID: "access/csrf", ByMock: true, Sees: check.Front, Run: csrf},
	{ID: "access/bad-credentials", TellsApart: true, ByMock: true, Sees: check.Front, Guesses: 9, Run: badCredentials},
	{ID: "access/no-cross-talk", TellsApart: true, Sees: check.Site, Generated: true, Run: noCrossTalk, WithoutSite: allowedWithoutCrossTalk},
	{ID: "access/credentials-forwarded", TellsApart: true, Sees: check.Site, ByMCP: true, Guesses: 1, Run: credentialsForwarded, WithoutSite: callsAsCaller},
	{ID: "access/credentials-kept-secret", Beside: "errors/envelope", Sees: check.Site, Guesses: 7, Run: credentialsKeptSecret, WithoutSite: allowedKeepSecrets},
	{ID: "access/per-credential", TellsApart: true, Sees: check.Site, ByMCP: true, Run: perCredential},
}

func list403(ctx context.Context, t *check.T) {
	list := t.As(check.Agent).MustListAll(ctx)

	responses := []*check.Response{t.As(check.Outsider).List(ctx), t.As(check.Outsider).List(ctx, "!!")} // whatever the query is
	if cursor := list.Pages[0].NextCursor(); cursor != "" {
		responses = append(responses, t.As(check.Outsider).List(ctx, cursor))
	}
	if version := list.Pages[0].Header.Get("ETag"); version != "" {
		responses = append(responses, t.As(check.Outsider).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {version}}}))
	}
	if t.Drupal != nil { // whose tools would be the agent's, which a bridge may keep for all who have the same
		but := slices.DeleteFunc(slices.Clone(t.Permissions(check.Agent)), func(p string) bool { return p == fixtures.DiscoverTools })
		responses = append(responses, t.As(t.Drupal.NewUser(but...)).List(ctx))
	}
	t.Each(responses, func(r *check.Response) {
		t.Expect(r).To(match.HaveStatus(403))
		t.Expect(r).NotTo(nameAnyTool(list.Names()))
	})
}

func describe403(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(check.Agent).Describe(ctx, known).MustSucceed()

	for name, query := range check.InOrder(map[string]string{"a tool": "name=" + known, "an unknown tool": "name=" + scenario.NoSuchTool, "no name": "", "an empty name": "name="}) {
		t.Row(check.Outsider, "", name, func() {
			t.Expect(t.As(check.Outsider).Send(ctx, check.Request{Path: check.DescribePath, Raw: query})).To(match.HaveStatus(403))
		})
	}
}

func anonymous(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(check.Agent).List(ctx).MustSucceed()
	t.As(check.Agent).Describe(ctx, known).MustSucceed()
	if t.Drupal == nil && t.As(check.Anonymous).List(ctx).Status == http.StatusOK && !runsNothing(ctx, t, check.Anonymous) {
		check.NotTestable("anonymous callers can list tools, and without a mock it is not known whether the site permits it")
	}
	if t.Drupal != nil && t.Drupal.Site().Holds(check.UserOf(t.Drupal.Site(), check.Anonymous), fixtures.DiscoverTools) {
		check.NotTestable("on the site " + t.Drupal.Site().Name + " anonymous callers may discover tools")
	}

	t.Each([]*check.Response{t.As(check.Anonymous).List(ctx), t.As(check.Anonymous).Describe(ctx, known)}, func(r *check.Response) {
		t.Expect(r).To(match.BeRefusedWith(401, 403))
		t.Expect(r).To(match.HaveChallengeIf401())
	})
	if t.Drupal == nil || !t.Claims("discovery-permission") || !t.ShowsSoon() {
		return // the site cannot be changed, or the bridge cannot know the permission
	}
	found := scenario.Samples(t, check.Agent, fixtures.WhoAmI)
	if len(found) == 0 {
		return
	}
	// If anonymous callers may run tools, the site responds to their discovery, and only the bridge can refuse it.
	me := found[0]
	permitAnonymous(ctx, t, func(ctx context.Context) bool {
		return t.As(check.Anonymous).Invoke(ctx, me.Name, me.Arguments).Succeeded()
	},
		fixtures.UseJSONRPC, fixtures.AccessContent)
	t.Each([]*check.Response{t.As(check.Anonymous).List(ctx), t.As(check.Anonymous).Describe(ctx, known)}, func(r *check.Response) {
		t.Expect(r).To(match.BeRefusedWith(401, 403), "a caller that may run tools and may not discover them")
		t.Expect(r).To(match.HaveChallengeIf401())
	})
}

// runsNothing reports whether the bridge lists tools to a caller who may not use JSON-RPC on the site.
func runsNothing(ctx context.Context, t *check.T, who check.Identity) bool {
	return t.Site != nil && t.Site.Unknown(who) == "" && !t.Site.MayUse(who) && len(t.As(who).List(ctx).Tools()) > 0
}

func filteredByMethod(ctx context.Context, t *check.T) {
	callers := []check.Identity{check.Agent, check.Discoverer, check.Admin}
	if t.Drupal != nil {
		callers = append(callers, usersLackingOne(t)...)
	} else {
		callers = slices.DeleteFunc(append(callers, check.Agent2, check.Service), func(who check.Identity) bool { return t.Site.Unknown(who) != "" })
	}
	for _, who := range callers {
		if t.Drupal == nil && len(t.Visible(who)) == 0 && t.As(who).List(ctx).Status == http.StatusForbidden {
			continue // neither may it run anything on the site
		}
		testEachShown(t, who, t.As(who).MustListAll(ctx))
	}
	if t.Site.Unknown(check.NoRPC) != "" {
		return
	}
	limited := t.As(check.NoRPC).ListAll(ctx)
	if first := limited.Pages[0]; first.IsError() && t.Alone() {
		return // how MCP refuses is open
	} else if first.IsError() {
		t.For(check.NoRPC, "", func() { t.Expect(first).To(match.HaveStatus(403)) })
	} else if len(limited.Tools()) > 0 {
		testEachShown(t, check.NoRPC, limited)
	}
}

func discoveryBroad(ctx context.Context, t *check.T) {
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	for _, who := range []check.Identity{check.Discoverer, check.Agent} {
		testEachShown(t, who, t.As(who).MustListAll(ctx))
	}
	t.Row(check.Discoverer, denied, "describe", func() { t.Expect(t.As(check.Discoverer).Describe(ctx, denied)).To(match.BeTool(denied)) })
	t.As(check.Agent).Invoke(ctx, denied, check.Args{}).MustSucceed()
	t.Row(check.Discoverer, denied, "invoke", func() {
		t.Drupal.Mark()
		r := t.As(check.Discoverer).Invoke(ctx, denied, check.Args{})
		t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
		t.Expect(r).To(match.HaveRunNothing(t.Upstream))
	})
}

func discoveryNotExecution(ctx context.Context, t *check.T) {
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	t.As(check.Agent).Invoke(ctx, denied, check.Args{}).MustSucceed()
	t.As(check.Discoverer).List(ctx).MustSucceed()

	t.Row(check.Discoverer, denied, "a caller that may discover and may not run", func() {
		t.Drupal.Mark()
		r := t.As(check.Discoverer).Invoke(ctx, denied, check.Args{})
		t.Expect(r).To(beRefusal())
		t.Expect(r).To(match.HaveRunNothing(t.Upstream))
	})

	// access/list-403 tests that a caller that may run and may not discover cannot list.
	open := scenario.MustFind(t, check.Outsider, fixtures.Lookup, fixtures.Count, fixtures.WhoAmI)[0]
	t.As(check.Agent).Invoke(ctx, open.Name, open.Arguments).MustSucceed()
	t.Row(check.Outsider, open.Name, "a caller that may run and may not discover", func() {
		t.Expect(t.As(check.Outsider).Invoke(ctx, open.Name, open.Arguments)).To(match.BeSuccess())
	})
}

func routePermission(ctx context.Context, t *check.T) {
	for i, kind := range []fixtures.Kind{fixtures.Lookup, fixtures.Count, fixtures.WhoAmI} {
		tool := scenario.MustFind(t, check.Agent, kind)[0]
		t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
		for _, who := range []check.Identity{check.NoRPC, check.Anonymous, check.Blocked} {
			if who == check.Blocked && i > 0 && t.Spares() {
				continue // its credentials count as wrong ones
			}
			t.For(who, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(who).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
			})
		}
	}
}

func permissionRevoked(ctx context.Context, t *check.T) {
	tool := scenario.MustFind(t, check.Agent, fixtures.Count)[0]
	losses := map[string][]string{"the method's permission": {fixtures.UseJSONRPC, fixtures.DiscoverTools}, "all of them": {}}
	if t.Spares() {
		losses["all of them"] = []string{fixtures.UseJSONRPC} // whom the site refuses altogether may count as a guesser
	}
	for lost, left := range check.InOrder(losses) {
		if len(tool.Access) == 0 && len(left) > 0 {
			continue
		}
		for _, a := range scenario.Authentications(t) {
			who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
			caller := a.Client(t, who)
			caller.List(ctx)
			caller.Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			t.Drupal.Permit(who, left...)
			t.Row(who, tool.Name, "after losing "+lost+", authenticated by "+a.Name, func() {
				if len(left) == 1 { // as the site refuses who has none
					defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Status, Status: http.StatusForbidden, Body: `{"message":"Access denied."}`, Route: route.JSONRPC, User: string(who)})()
				}
				t.Drupal.Mark()
				r := caller.Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
			})
		}
	}
}

func anonymousGranted(ctx context.Context, t *check.T) {
	if t.Claims(check.OAuth) {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge claims oauth, and serves nobody without a token"}})
	}
	anonymous := t.As(check.Anonymous)
	permitAnonymous(ctx, t, func(ctx context.Context) bool { return anonymous.List(ctx).Status == http.StatusOK },
		fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent)

	me := scenario.MustFind(t, check.Anonymous, fixtures.WhoAmI)[0]
	t.As(check.Agent).Describe(ctx, me.Name).MustSucceed()
	t.As(check.Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	listed, described := anonymous.List(ctx), anonymous.Describe(ctx, me.Name)
	t.Expect(listed).To(match.HaveStatus(200))
	all := anonymous.MustListAll(ctx)
	testEachShown(t, check.Anonymous, all)
	names := all.Names()
	t.Expect(names).To(ContainElement(me.Name), check.Mismatch("list as anonymous", fmt.Sprintf("%q", me.Name), fmt.Sprintf("%d tools without it", len(names))))
	agents := t.As(check.Agent).MustListShared(ctx)
	t.EachTool(all, func(page *check.Response, tool check.Tool) {
		m := scenario.MethodOf(t, tool.Name())
		own, known := agents.Find(tool.Name())
		if !known || m == nil || slices.ContainsFunc(m.Params, func(p fixtures.Param) bool { return p.Drupal != nil }) {
			return // what a field refers to depends on who asks
		}
		t.Expect(page).To(match.HaveTool(tool, "the tool as the agent is shown it", func(tool check.Tool) string { return match.Difference(map[string]any(own), map[string]any(tool)) }))
	})
	t.Expect(described).To(match.HaveStatus(200))
	t.Each([]*check.Response{listed, described}, func(r *check.Response) { // what a shared cache stored, every caller would get
		if !r.IsView() {
			t.Expect(r).To(scenario.ExcludeSharedCaches("authorization", "cookie"), "of a caller without credentials (http/no-shared-cache)")
		}
	})
	if t.Claims("mcp") && !t.Alone() {
		s, opened := anonymous.AnyMCP(ctx)
		switch {
		case !opened && s.Opened.Status == http.StatusUnauthorized && s.Opened.Bearer() != nil: // as an endpoint of MCP may
		case !opened:
			t.Blame(s.Opened)
			t.Fail(check.Mismatch("MCP as anonymous, who may list and invoke", "a session, or 401 with a Bearer challenge", s.Opened.RPCOutcome()))
		default:
			shown := check.ListAllTools(ctx, s).Names()
			t.Expect(shown).To(ContainElement(me.Name), check.Mismatch("tools/list as anonymous", fmt.Sprintf("%q, which list shows", me.Name), fmt.Sprintf("%d tools without it", len(shown))))
		}
		if t.Claims("mcp-2026") {
			page := anonymous.MCP(ctx, check.MCP2026July).ListTools(ctx, "")
			t.Expect(page.RPCResult()["cacheScope"]).NotTo(Equal("public"),
				check.Mismatch("tools/list as anonymous", "cacheScope private (mcp/stateless-2026)", `"public"`))
		}
	}
	t.Drupal.Mark()
	r := anonymous.Invoke(ctx, me.Name, me.Arguments)
	t.Expect(r).To(match.BeSuccess())
	t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), check.Mismatch(r.Subject(), "the method to run on the site", "no run"))
	t.Expect(accountsExcept(t, check.Anonymous)).To(BeEmpty(), check.Mismatch(r.Subject(), "the call to reach the site as anonymous", "it as another"))
}

func noOracle(ctx context.Context, t *check.T) {
	t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{}).MustSucceed()
	denied, all := scenario.DeniedTool(t, check.Discoverer, check.Agent), scenario.HiddenMethods(t)
	hidden := all[max(0, slices.IndexFunc(all, func(name string) bool { // one that the callers could run, if it were a tool
		m := scenario.MethodOf(t, name)
		return m != nil && t.Site.MayRun(check.Discoverer, m)
	}))]
	for _, who := range []check.Identity{check.Discoverer, check.Outsider, check.NoRPC, check.Anonymous} {
		names := []string{hidden}
		if t.Claims("visibility-filtered") && !slices.Contains(t.Visible(who), denied) {
			names = append(names, denied)
		}
		for _, request := range nameRequests {
			if request.variant && who != check.Discoverer {
				continue
			}
			send := request.sender(t.As(who))
			for _, name := range names {
				t.For(who, name, func() {
					r := send(ctx, name)
					if name == denied && r.Status == http.StatusForbidden && r.Method != http.MethodHead {
						return // invoke/denied allows 403; describe/inaccessible-404 tests describe
					}
					t.Expect(r).To(equalUnknown(send, ctx, name), request.name)
				})
			}
		}
		if t.Claims("mcp") {
			testNamesByMCP(ctx, t, who, names)
		}
	}
}

// cors asks as pages of other hosts do in a browser that knows the caller's credentials.
func cors(ctx context.Context, t *check.T) {
	agent := t.As(check.Agent)
	agent.List(ctx).MustSucceed()
	preflight := http.Header{"Access-Control-Request-Method": {http.MethodPost}, "Access-Control-Request-Headers": {"authorization,content-type"}}
	for _, origin := range []string{"https://elsewhere.invalid", "https://" + t.Hostname() + ".elsewhere.invalid", "https://elsewhere" + t.Hostname(), "null"} {
		for what, r := range check.InOrder(map[string]check.Request{
			"list":                {Path: check.ListPath, Header: http.Header{}},
			"preflight of invoke": {Method: http.MethodOptions, Path: check.InvokePath, Header: preflight.Clone()},
		}) {
			r.Header.Set("Origin", origin)
			t.Row(check.Agent, "", what+" with Origin: "+origin, func() {
				t.Expect(agent.Send(ctx, r)).To(match.ConformHeader("Access-Control-Allow-Credentials", "no permission to read it with credentials", func(r *check.Response) string {
					to, with := r.Header.Get("Access-Control-Allow-Origin"), r.Header.Get("Access-Control-Allow-Credentials")
					if to == origin && with == "true" {
						return "Access-Control-Allow-Origin: " + to + " and Access-Control-Allow-Credentials: true"
					}
					return ""
				}))
			})
		}
	}
}

func csrf(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	caller := withSession(t, call.Identity)
	caller.InvokeBody(ctx, call.Body()).MustSucceed()
	body := string(call.Body())
	send := func(header http.Header) *check.Response {
		return caller.Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Header: header, Body: strings.NewReader(body), Show: body})
	}

	refused := map[string]http.Header{
		"as text": {"Content-Type": {"text/plain"}},
		"as text with application/json as a parameter": {"Content-Type": {"text/plain; as=application/json"}},
		"as a form":              {"Content-Type": {"application/x-www-form-urlencoded"}},
		"as a multipart form":    {"Content-Type": {"multipart/form-data; boundary=x"}},
		"without a Content-Type": {"Content-Type": nil},
		"from another origin":    {"Origin": {"https://elsewhere.invalid"}},
		"from another origin, by a script that names the bridge": {"Origin": {"https://elsewhere.invalid"},
			"Referer": {"http://" + t.Host() + "/"}, "X-Requested-With": {"XMLHttpRequest"}},
		"from a sandbox": {"Origin": {"null"}},
		"from a host that starts with the bridge's": scenario.LookalikePage(t, ".elsewhere.invalid", send),
		"from a host that ends with the bridge's":   {"Origin": {"https://elsewhere" + t.Hostname()}},
		"from such a host on the bridge's port":     {"Origin": {"https://elsewhere" + t.Host()}},
		"as another type that begins alike":         {"Content-Type": {"application/json-seq"}},
		"as another type that ends alike":           {"Content-Type": {"text/json"}},
	}
	if page := scenario.SuffixPage(t, "elsewhere", send); page != nil {
		refused["from a host that ends with localhost, which the bridge is called"] = page
	}
	for name, header := range check.InOrder(refused) {
		header["X-Csrf-Token"] = nil
		t.Row(caller.Who, "", name, func() {
			t.Mark()
			r := send(header)
			t.Expect(r).To(match.BeRefusedWith(400, 403, 415))
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
}

// withSession returns a client of the caller that authenticates by a session cookie.
func withSession(t *check.T, who check.Identity) check.Client {
	if t.Drupal != nil {
		creds := check.Credentials{Cookie: t.Drupal.Session(who)}
		t.Redact.Add(creds.Secrets()...)
		return t.With(who, creds).Waiting()
	}
	if creds, _ := t.CredentialsOf(who); creds.Cookie == "" {
		check.NotTestable("there is no session cookie to send: configure " + who.String() + " with one")
	}
	return t.As(who)
}

// usersLackingOne creates an account for each set of several permissions that a tool requires, which holds only the first, and one
// that holds the last of every set.
func usersLackingOne(t *check.T) []check.Identity {
	var all []check.Identity
	seen := map[string]bool{}
	last := []string{fixtures.UseJSONRPC, fixtures.DiscoverTools}
	for _, m := range t.Drupal.Site().Methods {
		if m.MCP == nil || len(m.Access) < 2 || seen[strings.Join(m.Access, ",")] {
			continue
		}
		seen[strings.Join(m.Access, ",")] = true
		all = append(all, t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools, m.Access[0]))
		last = append(last, m.Access[len(m.Access)-1])
	}
	return append(all, t.Drupal.NewUser(last...))
}

// nameRequest is a kind of request that contains the name of a tool.
type nameRequest struct {
	name    string
	variant bool // of another, so that one caller sends it
	sender  func(c check.Client) func(ctx context.Context, name string) *check.Response
}

// nameRequests are the requests whose responses could reveal a hidden tool.
var nameRequests = []nameRequest{
	{"describe", false, func(c check.Client) func(context.Context, string) *check.Response { return c.Describe }},
	{"describe by HEAD", true, func(c check.Client) func(context.Context, string) *check.Response {
		return func(ctx context.Context, name string) *check.Response {
			return c.Send(ctx, check.Request{Method: http.MethodHead, Path: check.DescribePath, Query: map[string][]string{"name": {name}}})
		}
	}},
	{"invoke", false, func(c check.Client) func(context.Context, string) *check.Response {
		return scenario.InvokeWith(c, check.Args{})
	}},
	{"invoke with arguments", true, func(c check.Client) func(context.Context, string) *check.Response {
		return scenario.InvokeWith(c, check.Args{"x": []int{1}})
	}},
	{"invoke without arguments", true, func(c check.Client) func(context.Context, string) *check.Response {
		return func(ctx context.Context, name string) *check.Response {
			return c.InvokeBody(ctx, client.Encode(map[string]any{"name": name}))
		}
	}},
	{"invoke as text", true, func(c check.Client) func(context.Context, string) *check.Response {
		return func(ctx context.Context, name string) *check.Response {
			body := string(client.Encode(map[string]any{"name": name, "arguments": check.Args{}}))
			return c.Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Header: scenario.AsText, Body: strings.NewReader(body), Show: body})
		}
	}},
}

// permitAnonymous gives anonymous callers more permissions on the site and waits until shown returns true. At the end of
// the check it waits until shown returns what it returned before.
func permitAnonymous(ctx context.Context, t *check.T, shown func(context.Context) bool, permissions ...string) {
	site := t.Drupal.Site().Clone()
	i := slices.IndexFunc(site.Roles, func(r fixtures.Role) bool { return r.ID == fixtures.AnonymousRole })
	if i < 0 {
		site.Roles = append(site.Roles, fixtures.Role{ID: fixtures.AnonymousRole})
		i = len(site.Roles) - 1
	}
	site.Roles[i].Permissions = append(site.Roles[i].Permissions, permissions...)
	unknown := func(ctx context.Context) int { // what the site refuses at once, the bridge may still look up among the tools that it has kept
		return t.As(check.Anonymous).Invoke(ctx, scenario.NoSuchTool, check.Args{}).Status
	}
	before, refused := shown(ctx), unknown(ctx)
	t.Cleanup(func(ctx context.Context) {
		t.AwaitBack(ctx, func() bool { return shown(ctx) == before && unknown(ctx) == refused })
	})
	t.Replace(ctx, site)
	t.Await(ctx, func() bool { return shown(ctx) })
}

// beRefusal matches a 4xx or 5xx.
func beRefusal() types.GomegaMatcher {
	return match.MatchWhere("a refusal", func(r *check.Response) bool { return r.Status > 0 && r.IsError() })
}

// nameAnyTool matches a response that contains one of the names, but for those that may be a word.
func nameAnyTool(names []string) types.GomegaMatcher {
	return match.ContainAnyOf(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(name) <= 5 }), "to name a tool")
}

// testEachShown tests every tool that the caller must see or does see: none may be missing, and no other may be listed. A
// method with parameters by position may be missing; names that collide when underscored are not tested.
func testEachShown(t *check.T, who check.Identity, list check.Listing) {
	got := list.Names()
	wrong := scenario.ShownFaults(t, who, got)
	for _, name := range match.Union(t.Visible(who), got) {
		t.For(who, name, func() { t.Expect(list).To(beExactFor(who, wrong[name], !slices.Contains(got, name))) })
	}
}

// beExactFor matches a listing in which one tool is as the caller may see it: fault says what is wrong with that tool, which the list
// lacks or must not show.
func beExactFor(who check.Identity, fault string, lacks bool) types.GomegaMatcher {
	return &match.ListingMatcher{Expected: fmt.Sprintf("exactly the tools that %s may see", who), Withheld: lacks,
		Fault: func(check.Listing) string { return fault }}
}

// beRejected matches the response to bad credentials: 401 or 403, exactly the response that an anonymous caller gets, or
// 429 from a bridge that limits failed attempts.
func beRejected(anonymous *check.Response) types.GomegaMatcher {
	return match.Conform("401, 403 or what an anonymous caller gets: "+anonymous.Outcome(), func(r *check.Response) string {
		if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden || r.Throttled() {
			return ""
		}
		if r.Status == anonymous.Status && (match.SameBody(r, anonymous) || sameButCursor(r, anonymous)) {
			return ""
		}
		if d := match.Difference(anonymous.Object(), r.Object()); r.Status == anonymous.Status && d != "" {
			return "another response " + d
		}
		return r.Outcome()
	})
}

// sameButCursor reports whether two pages of a list differ only in their cursors, which may be new in every response.
func sameButCursor(one, other *check.Response) bool {
	if one.NextCursor() == "" || other.NextCursor() == "" {
		return false
	}
	x, y := maps.Clone(one.Object()), maps.Clone(other.Object())
	delete(x, "nextCursor")
	delete(y, "nextCursor")
	return match.Difference(x, y) == ""
}

// equalUnknown matches a response that is the same as those for unknown names in status, code, headers and form. send
// sends the request with a name.
func equalUnknown(send func(ctx context.Context, name string) *check.Response, ctx context.Context, name string) types.GomegaMatcher {
	return match.Conform("the response that an unknown name gets", func(r *check.Response) string {
		return scenario.DiffersFromUnknown(ctx, send, r, name)
	})
}
