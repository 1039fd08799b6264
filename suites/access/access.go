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
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area access.
var Checks = []harness.Check{
	{ID: "access/list-403", Sees: harness.Front, Run: list403},
	{ID: "access/describe-403", Sees: harness.Front, Run: describe403},
	{ID: "access/anonymous", Sees: harness.Front, Run: anonymous},
	{ID: "access/filtered-by-method", Sees: harness.Discovery, ByMCP: true, Run: filteredByMethod},
	{ID: "access/discovery-broad", Sees: harness.Site, Run: discoveryBroad},
	{ID: "access/discovery-not-execution", Sees: harness.Site, ByMCP: true, Run: discoveryNotExecution, WithoutSite: allowedNotExecuted},
	{ID: "access/route-permission", Sees: harness.Site, ByMCP: true, Run: routePermission, WithoutSite: allowedOfNobody},
	{ID: "access/permission-revoked", Sees: harness.Site, ByMCP: true, Run: permissionRevoked},
	{ID: "access/anonymous-granted", Sees: harness.Site, Run: anonymousGranted, WithoutSite: grantedToAnonymous},
	{ID: "access/no-oracle", Sees: harness.Site, Run: noOracle},
	{ID: "access/csrf", Sees: harness.Front, Run: csrf},
	{ID: "access/bad-credentials", Sees: harness.Front, Run: badCredentials},
	{ID: "access/no-cross-talk", Sees: harness.Site, Generated: true, Run: noCrossTalk, WithoutSite: allowedWithoutCrossTalk},
	{ID: "access/credentials-forwarded", Sees: harness.Site, ByMCP: true, Run: credentialsForwarded, WithoutSite: callsAsCaller},
	{ID: "access/credentials-kept-secret", Sees: harness.Site, Run: credentialsKeptSecret, WithoutSite: allowedKeepSecrets},
	{ID: "access/per-credential", Sees: harness.Site, ByMCP: true, Run: perCredential},
}

func list403(ctx context.Context, t *harness.T) {
	list := t.As(harness.Agent).MustListAll(ctx)

	responses := []*harness.Response{t.As(harness.Outsider).List(ctx)}
	if cursor := list.Pages[0].NextCursor(); cursor != "" {
		responses = append(responses, t.As(harness.Outsider).List(ctx, cursor))
	}
	if version := list.Pages[0].Header.Get("ETag"); version != "" {
		responses = append(responses, t.As(harness.Outsider).Send(ctx, harness.Request{Path: harness.ListPath, Header: http.Header{"If-None-Match": {version}}}))
	}
	t.Each(responses, func(r *harness.Response) {
		t.Expect(r).To(match.HaveStatus(403))
		t.Expect(r).NotTo(nameAnyTool(list.Names()))
	})
}

func describe403(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(harness.Agent).Describe(ctx, known).MustSucceed()

	for name, query := range harness.InOrder(map[string]string{"a tool": "name=" + known, "an unknown tool": "name=" + scenario.NoSuchTool, "no name": "", "an empty name": "name="}) {
		t.Row(harness.Outsider, "", name, func() {
			t.Expect(t.As(harness.Outsider).Send(ctx, harness.Request{Path: harness.DescribePath, Raw: query})).To(match.HaveStatus(403))
		})
	}
}

func anonymous(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(harness.Agent).List(ctx).MustSucceed()
	t.As(harness.Agent).Describe(ctx, known).MustSucceed()
	if t.Drupal == nil && t.As(harness.Anonymous).List(ctx).Status == http.StatusOK && !runsNothing(ctx, t, harness.Anonymous) {
		harness.NotTestable("anonymous callers can list tools, and without a mock it is not known whether the site permits it")
	}
	if t.Drupal != nil && t.Drupal.Site().Holds(harness.UserOf(t.Drupal.Site(), harness.Anonymous), fixtures.DiscoverTools) {
		harness.NotTestable("on the site " + t.Drupal.Site().Name + " anonymous callers may discover tools")
	}

	t.Each([]*harness.Response{t.As(harness.Anonymous).List(ctx), t.As(harness.Anonymous).Describe(ctx, known)}, func(r *harness.Response) {
		t.Expect(r).To(match.BeRefusedWith(401, 403))
		t.Expect(r).To(haveChallengeIf401())
	})
	if t.Drupal == nil || t.DiscoveryTTL == 0 || !t.Claims("discovery-permission") {
		return // the site cannot be changed, or the bridge cannot know the permission
	}
	found := scenario.Samples(t, harness.Agent, fixtures.WhoAmI)
	if len(found) == 0 {
		return
	}
	// If anonymous callers may run tools, the site responds to their discovery, and only the bridge can refuse it.
	me := found[0]
	permitAnonymous(ctx, t, func(ctx context.Context) bool {
		return t.As(harness.Anonymous).Invoke(ctx, me.Name, me.Arguments).Succeeded()
	},
		fixtures.UseJSONRPC, fixtures.AccessContent)
	t.Each([]*harness.Response{t.As(harness.Anonymous).List(ctx), t.As(harness.Anonymous).Describe(ctx, known)}, func(r *harness.Response) {
		t.Expect(r).To(match.BeRefusedWith(401, 403), "a caller that may run tools and may not discover them")
		t.Expect(r).To(haveChallengeIf401())
	})
}

// runsNothing reports whether the bridge lists tools to a caller who may not use JSON-RPC on the site.
func runsNothing(ctx context.Context, t *harness.T, who harness.Identity) bool {
	return t.Site != nil && t.Site.Unknown(who) == "" && !t.Site.MayUse(who) && len(t.As(who).List(ctx).Tools()) > 0
}

func filteredByMethod(ctx context.Context, t *harness.T) {
	callers := []harness.Identity{harness.Agent, harness.Discoverer, harness.Admin}
	if t.Drupal != nil {
		callers = append(callers, usersLackingOne(t)...)
	} else {
		callers = slices.DeleteFunc(append(callers, harness.Agent2, harness.Service), func(who harness.Identity) bool { return t.Site.Unknown(who) != "" })
	}
	for _, who := range callers {
		list := t.As(who).ListAll(ctx)
		if t.Drupal == nil && list.Pages[0].Status == http.StatusForbidden && len(t.Visible(who)) == 0 {
			continue // neither may it run anything on the site
		}
		list = t.As(who).MustListAll(ctx)
		testEachShown(t, who, list)
	}
	if t.Site.Unknown(harness.NoRPC) != "" {
		return
	}
	limited := t.As(harness.NoRPC).ListAll(ctx)
	if first := limited.Pages[0]; first.IsError() && t.Alone() {
		return // how MCP refuses is open
	} else if first.IsError() {
		t.For(harness.NoRPC, "", func() { t.Expect(first).To(match.HaveStatus(403)) })
	} else if len(limited.Tools()) > 0 {
		testEachShown(t, harness.NoRPC, limited)
	}
}

func discoveryBroad(ctx context.Context, t *harness.T) {
	denied := scenario.DeniedTool(t, harness.Discoverer, harness.Agent)
	for _, who := range []harness.Identity{harness.Discoverer, harness.Agent} {
		testEachShown(t, who, t.As(who).MustListAll(ctx))
	}
	t.Row(harness.Discoverer, denied, "describe", func() { t.Expect(t.As(harness.Discoverer).Describe(ctx, denied)).To(match.BeTool(denied)) })
	t.As(harness.Agent).Invoke(ctx, denied, harness.Args{}).MustSucceed()
	t.Row(harness.Discoverer, denied, "invoke", func() {
		t.Drupal.Mark()
		r := t.As(harness.Discoverer).Invoke(ctx, denied, harness.Args{})
		t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
		t.Expect(r).To(match.HaveRunNothing())
	})
}

func discoveryNotExecution(ctx context.Context, t *harness.T) {
	denied := scenario.DeniedTool(t, harness.Discoverer, harness.Agent)
	t.As(harness.Agent).Invoke(ctx, denied, harness.Args{}).MustSucceed()
	t.As(harness.Discoverer).List(ctx).MustSucceed()

	t.Row(harness.Discoverer, denied, "a caller that may discover and may not run", func() {
		t.Drupal.Mark()
		r := t.As(harness.Discoverer).Invoke(ctx, denied, harness.Args{})
		t.Expect(r).To(beRefusal())
		t.Expect(r).To(match.HaveRunNothing())
	})

	// access/list-403 tests that a caller that may run and may not discover cannot list.
	open := scenario.MustFind(t, harness.Outsider, fixtures.Lookup, fixtures.Count, fixtures.WhoAmI)[0]
	t.As(harness.Agent).Invoke(ctx, open.Name, open.Arguments).MustSucceed()
	t.Row(harness.Outsider, open.Name, "a caller that may run and may not discover", func() {
		t.Expect(t.As(harness.Outsider).Invoke(ctx, open.Name, open.Arguments)).To(match.BeSuccess())
	})
}

func routePermission(ctx context.Context, t *harness.T) {
	for _, kind := range []fixtures.Kind{fixtures.Lookup, fixtures.Count, fixtures.WhoAmI} {
		tool := scenario.MustFind(t, harness.Agent, kind)[0]
		t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
		for _, who := range []harness.Identity{harness.NoRPC, harness.Anonymous, harness.Blocked} {
			t.For(who, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(who).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
				t.Expect(r).To(match.HaveRunNothing())
			})
		}
	}
}

func permissionRevoked(ctx context.Context, t *harness.T) {
	tool := scenario.MustFind(t, harness.Agent, fixtures.Count)[0]
	for lost, left := range harness.InOrder(map[string][]string{
		"the method's permission": {fixtures.UseJSONRPC, fixtures.DiscoverTools},
		"all of them":             {},
	}) {
		if len(tool.Access) == 0 && len(left) > 0 {
			continue
		}
		for _, a := range authentications(t) {
			who := t.Drupal.NewUser(t.Permissions(harness.Agent)...)
			caller := a.client(t, who)
			caller.List(ctx)
			caller.Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			t.Drupal.Permit(who, left...)
			t.Row(who, tool.Name, "after losing "+lost+", authenticated by "+a.name, func() {
				t.Drupal.Mark()
				r := caller.Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
				t.Expect(r).To(match.HaveRunNothing())
			})
		}
	}
}

func anonymousGranted(ctx context.Context, t *harness.T) {
	if t.Claims(harness.OAuth) {
		harness.End(harness.Ending{Kind: harness.Inapplicable, Why: harness.Finding{Subject: "the bridge claims oauth, and serves nobody without a token"}})
	}
	anonymous := t.As(harness.Anonymous)
	permitAnonymous(ctx, t, func(ctx context.Context) bool { return anonymous.List(ctx).Status == http.StatusOK },
		fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent)

	me := scenario.MustFind(t, harness.Anonymous, fixtures.WhoAmI)[0]
	t.As(harness.Agent).Describe(ctx, me.Name).MustSucceed()
	t.As(harness.Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.Expect(anonymous.List(ctx)).To(match.HaveStatus(200))
	names := anonymous.MustListAll(ctx).Names()
	t.Expect(names).To(ContainElement(me.Name), harness.Mismatch("list as anonymous", fmt.Sprintf("%q", me.Name), fmt.Sprintf("%d tools without it", len(names))))
	t.Expect(anonymous.Describe(ctx, me.Name)).To(match.HaveStatus(200))
	t.Drupal.Mark()
	r := anonymous.Invoke(ctx, me.Name, me.Arguments)
	t.Expect(r).To(match.BeSuccess())
	t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), harness.Mismatch(r.Subject(), "the method to run on the site", "no run"))
	t.Expect(accountsExcept(t, harness.Anonymous)).To(BeEmpty(), harness.Mismatch(r.Subject(), "the call to reach the site as anonymous", "it as another"))
}

func noOracle(ctx context.Context, t *harness.T) {
	t.As(harness.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), harness.Args{}).MustSucceed()
	hidden, denied := scenario.HiddenMethods(t)[0], scenario.DeniedTool(t, harness.Discoverer, harness.Agent)
	for _, who := range []harness.Identity{harness.Discoverer, harness.Outsider, harness.NoRPC, harness.Anonymous} {
		names := []string{hidden}
		if t.Claims("visibility-filtered") && !slices.Contains(t.Visible(who), denied) {
			names = append(names, denied)
		}
		for _, request := range nameRequests {
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

func csrf(ctx context.Context, t *harness.T) {
	call := scenario.MustRun(ctx, t)
	caller := withSession(t, call.Identity)
	caller.InvokeBody(ctx, call.Body()).MustSucceed()
	body := string(call.Body())

	for name, header := range harness.InOrder(map[string]http.Header{
		"as text": {"Content-Type": {"text/plain"}},
		"as text with application/json as a parameter": {"Content-Type": {"text/plain; as=application/json"}},
		"as a form":                                 {"Content-Type": {"application/x-www-form-urlencoded"}},
		"as a multipart form":                       {"Content-Type": {"multipart/form-data; boundary=x"}},
		"without a Content-Type":                    {"Content-Type": nil},
		"from another origin":                       {"Origin": {"https://elsewhere.invalid"}},
		"from a sandbox":                            {"Origin": {"null"}},
		"from a host that starts with the bridge's": {"Origin": {"https://" + t.Hostname() + ".elsewhere.invalid"}},
		"from a host that ends with the bridge's":   {"Origin": {"https://elsewhere" + t.Hostname()}},
		"from such a host on the bridge's port":     {"Origin": {"https://elsewhere" + t.Host()}},
		"from another origin, as text":              {"Origin": {"https://elsewhere.invalid"}, "Content-Type": {"text/plain"}},
	}) {
		header["X-Csrf-Token"] = nil
		t.Row(caller.Who, "", name, func() {
			t.Mark()
			r := caller.Send(ctx, harness.Request{Method: http.MethodPost, Path: harness.InvokePath, Header: header, Body: strings.NewReader(body), Show: body})
			t.Expect(r).To(match.BeRefusedWith(400, 403, 415))
			t.Expect(r).To(match.HaveRunNothing())
		})
	}
}

// withSession returns a client of the caller that authenticates by a session cookie.
func withSession(t *harness.T, who harness.Identity) harness.Client {
	if t.Drupal != nil {
		creds := harness.Credentials{Cookie: t.Drupal.Session(who)}
		t.Redact.Add(creds.Secrets()...)
		return t.With(who, creds)
	}
	if creds, _ := t.CredentialsOf(who); creds.Cookie == "" {
		harness.NotTestable("there is no session cookie to send: configure " + who.String() + " with one")
	}
	return t.As(who)
}

// usersLackingOne creates an account for each set of several permissions that a tool requires. It holds only the first.
func usersLackingOne(t *harness.T) []harness.Identity {
	var all []harness.Identity
	seen := map[string]bool{}
	for _, m := range t.Drupal.Site().Methods {
		if m.MCP == nil || len(m.Access) < 2 || seen[strings.Join(m.Access, ",")] {
			continue
		}
		seen[strings.Join(m.Access, ",")] = true
		all = append(all, t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools, m.Access[0]))
	}
	return all
}

// nameRequest is a kind of request that contains the name of a tool.
type nameRequest struct {
	name   string
	sender func(c harness.Client) func(ctx context.Context, name string) *harness.Response
}

// nameRequests are the requests whose responses could reveal a hidden tool.
var nameRequests = []nameRequest{
	{"describe", func(c harness.Client) func(context.Context, string) *harness.Response { return c.Describe }},
	{"describe by HEAD", func(c harness.Client) func(context.Context, string) *harness.Response {
		return func(ctx context.Context, name string) *harness.Response {
			return c.Send(ctx, harness.Request{Method: http.MethodHead, Path: harness.DescribePath, Query: map[string][]string{"name": {name}}})
		}
	}},
	{"invoke", func(c harness.Client) func(context.Context, string) *harness.Response {
		return scenario.InvokeWith(c, harness.Args{})
	}},
	{"invoke with arguments", func(c harness.Client) func(context.Context, string) *harness.Response {
		return scenario.InvokeWith(c, harness.Args{"x": []int{1}})
	}},
	{"invoke without arguments", func(c harness.Client) func(context.Context, string) *harness.Response {
		return func(ctx context.Context, name string) *harness.Response {
			return c.InvokeBody(ctx, harness.Encode(map[string]any{"name": name}))
		}
	}},
	{"invoke as text", func(c harness.Client) func(context.Context, string) *harness.Response {
		return func(ctx context.Context, name string) *harness.Response {
			body := string(harness.Encode(map[string]any{"name": name, "arguments": harness.Args{}}))
			return c.Send(ctx, harness.Request{Method: http.MethodPost, Path: harness.InvokePath, Header: scenario.AsText, Body: strings.NewReader(body), Show: body})
		}
	}},
}

// permitAnonymous gives anonymous callers more permissions on the site and waits until shown returns true. At the end of
// the check it waits until shown returns what it returned before.
func permitAnonymous(ctx context.Context, t *harness.T, shown func(context.Context) bool, permissions ...string) {
	site := t.Drupal.Site().Clone()
	i := slices.IndexFunc(site.Roles, func(r fixtures.Role) bool { return r.ID == fixtures.AnonymousRole })
	if i < 0 {
		site.Roles = append(site.Roles, fixtures.Role{ID: fixtures.AnonymousRole})
		i = len(site.Roles) - 1
	}
	site.Roles[i].Permissions = append(site.Roles[i].Permissions, permissions...)
	before := shown(ctx)
	harness.Cleanup(func(ctx context.Context) { t.Await(ctx, func() bool { return shown(ctx) == before }) })
	t.Replace(ctx, site)
	t.Await(ctx, func() bool { return shown(ctx) })
}

// beRefusal matches a 4xx or 5xx.
func beRefusal() types.GomegaMatcher {
	return match.MatchWhere("a refusal", func(r *harness.Response) bool { return r.Status > 0 && r.IsError() })
}

// haveChallengeIf401 matches a response that is no 401, or a 401 with a challenge.
func haveChallengeIf401() types.GomegaMatcher {
	return match.ConformHeader("WWW-Authenticate", "a 401 to carry WWW-Authenticate", func(r *harness.Response) string {
		if r.Status != http.StatusUnauthorized || r.Header.Get("WWW-Authenticate") != "" {
			return ""
		}
		return "a 401 without it"
	})
}

// nameAnyTool matches a response that contains one of the names, in a header or in the body.
func nameAnyTool(names []string) types.GomegaMatcher {
	return &match.ResponseMatcher{Expected: "to name a tool", Test: func(r *harness.Response) (string, bool) {
		for _, name := range names {
			if len(name) > 5 && match.ContainsText(r, name) {
				return fmt.Sprintf("%q in it: %s", name, r.Outcome()), true
			}
		}
		return "", false
	}}
}

// testEachShown tests every tool that the caller must see or does see: none may be missing, and no other may be listed. A
// method with parameters by position may be missing; names that collide when underscored are not tested.
func testEachShown(t *harness.T, who harness.Identity, list harness.Listing) {
	got := list.Names()
	wrong := scenario.ShownFaults(t, who, got)
	for _, name := range match.Union(t.Visible(who), got) {
		t.For(who, name, func() { t.Expect(list).To(beExactFor(who, wrong[name])) })
	}
}

// beExactFor matches a listing in which one tool is as the caller may see it: fault says what is wrong with that tool.
func beExactFor(who harness.Identity, fault string) types.GomegaMatcher {
	return &match.ListingMatcher{Expected: fmt.Sprintf("exactly the tools that %s may see", who), Fault: func(harness.Listing) string { return fault }}
}

// beRejected matches the response to bad credentials: 401 or 403, exactly the response that an anonymous caller gets, or
// 429 from a bridge that limits failed attempts.
func beRejected(anonymous *harness.Response) types.GomegaMatcher {
	return match.Conform("401, 403 or what an anonymous caller gets: "+anonymous.Outcome(), func(r *harness.Response) string {
		if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden || r.Throttled() {
			return ""
		}
		if r.Status != anonymous.Status || !match.SameBody(r, anonymous) && !sameButCursor(r, anonymous) {
			return r.Outcome()
		}
		return ""
	})
}

// sameButCursor reports whether two pages of a list differ only in their cursors, which may be new in every response.
func sameButCursor(one, other *harness.Response) bool {
	if one.NextCursor() == "" || other.NextCursor() == "" {
		return false
	}
	x, y := maps.Clone(one.Object()), maps.Clone(other.Object())
	delete(x, "nextCursor")
	delete(y, "nextCursor")
	return exact.Equal(x, y)
}

// equalUnknown matches a response that is the same as those for unknown names in status, code, headers and form. send
// sends the request with a name.
func equalUnknown(send func(ctx context.Context, name string) *harness.Response, ctx context.Context, name string) types.GomegaMatcher {
	return match.Conform("the response that an unknown name gets", func(r *harness.Response) string {
		return match.DiffersFromUnknown(send, ctx, r, name)
	})
}
