package suites

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Who may see and run what.
// checks__access__access are the checks of this file.
var checks__access__access = []Check{
	{ID: "access/list-403", Sees: Front, Run: chk__access__list403},
	{ID: "access/describe-403", Sees: Front, Run: chk__access__describe403},
	{ID: "access/anonymous", Sees: Front, Run: chk__access__anonymous},
	{ID: "access/filtered-by-method", Sees: Site, Run: chk__access__filteredByMethod},
	{ID: "access/discovery-broad", Sees: Site, Run: chk__access__discoveryBroad},
	{ID: "access/discovery-not-execution", Sees: Site, Run: chk__access__discoveryNotExecution},
	{ID: "access/route-permission", Sees: Site, Run: chk__access__routePermission},
	{ID: "access/permission-revoked", Sees: Site, Run: chk__access__permissionRevoked},
	{ID: "access/anonymous-granted", Sees: Site, Run: chk__access__anonymousGranted},
	{ID: "access/no-oracle", Sees: Site, Run: chk__access__noOracle},
	{ID: "access/csrf", Sees: Front, Run: chk__access__csrf},
}

func chk__access__list403(ctx context.Context, t *T) {
	list := t.As(Agent).MustListAll(ctx)

	asked := []*Response{t.As(Outsider).List(ctx)}
	if cursor := list.Pages[0].NextCursor(); cursor != "" {
		asked = append(asked, t.As(Outsider).List(ctx, cursor))
	}
	t.each(asked, func(r *Response) {
		t.Expect(r).To(HaveStatus(403))
		t.Expect(r).NotTo(NameAnyTool(list.Names()))
	})
}

func chk__access__describe403(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).Describe(ctx, known).MustSucceed()

	for what, query := range inOrder(map[string]string{"a tool": "name=" + known, "an unknown tool": "name=" + noSuchTool, "no name": "", "an empty name": "name="}) {
		t.Row(Outsider, "", what, func() {
			t.Expect(t.As(Outsider).Send(ctx, Request{Path: DescribePath, Raw: query})).To(HaveStatus(403))
		})
	}
}

func chk__access__anonymous(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).List(ctx).MustSucceed()
	t.As(Agent).Describe(ctx, known).MustSucceed()
	if t.Drupal == nil && t.As(Anonymous).List(ctx).Status == http.StatusOK {
		NotTestable("the site lets anonymous callers discover tools, or the bridge does: without a mock nobody can tell")
	}
	if t.Drupal != nil && t.Drupal.Site().Holds(userOf(t.Drupal.Site(), Anonymous), fixtures.DiscoverTools) {
		NotTestable("on the site " + t.Drupal.Site().Name + " anonymous callers may discover tools")
	}

	t.each([]*Response{t.As(Anonymous).List(ctx), t.As(Anonymous).Describe(ctx, known)}, func(r *Response) {
		t.Expect(r).To(BeRefusedWith(401, 403))
		t.Expect(r).To(ChallengeIf401())
	})
	if t.Drupal == nil || t.DiscoveryTTL == 0 || !t.Claims("discovery-permission") {
		return // then nobody can change the site, or the bridge cannot know the permission
	}
	found := t.samples(Agent, fixtures.WhoAmI)
	if len(found) == 0 {
		return
	}
	// Where anonymous callers may run tools the site answers their discovery, and the bridge alone can refuse it.
	me := found[0]
	t.permitAnonymous(ctx, func(ctx context.Context) bool { return t.As(Anonymous).Invoke(ctx, me.Name, me.Arguments).Succeeded() },
		fixtures.UseJSONRPC, fixtures.AccessContent)
	t.each([]*Response{t.As(Anonymous).List(ctx), t.As(Anonymous).Describe(ctx, known)}, func(r *Response) {
		t.Expect(r).To(BeRefusedWith(401, 403), "who may run tools, and not discover them")
		t.Expect(r).To(ChallengeIf401())
	})
}

func chk__access__filteredByMethod(ctx context.Context, t *T) {
	for _, who := range append([]Identity{Agent, Discoverer, Admin}, t.halfPermitted()...) {
		t.eachShown(who, t.As(who).MustListAll(ctx))
	}
	limited := t.As(NoRPC).ListAll(ctx)
	if first := limited.Pages[0]; first.IsError() {
		t.For(NoRPC, "", func() { t.Expect(first).To(HaveStatus(403)) })
	} else if len(limited.Tools()) > 0 {
		t.eachShown(NoRPC, limited)
	}
}

func chk__access__discoveryBroad(ctx context.Context, t *T) {
	denied := t.DeniedTool(Discoverer, Agent)
	for _, who := range []Identity{Discoverer, Agent} {
		t.eachShown(who, t.As(who).MustListAll(ctx))
	}
	t.Row(Discoverer, denied, "describe", func() { t.Expect(t.As(Discoverer).Describe(ctx, denied)).To(BeTheTool(denied)) })
	t.As(Agent).Invoke(ctx, denied, Args{}).MustSucceed()
	t.Row(Discoverer, denied, "invoke", func() {
		t.Drupal.Mark()
		r := t.As(Discoverer).Invoke(ctx, denied, Args{})
		t.Expect(r).To(BeRefusedWith(401, 403, 404))
		t.Expect(r).To(HaveRunNothing())
	})
}

func chk__access__discoveryNotExecution(ctx context.Context, t *T) {
	denied := t.DeniedTool(Discoverer, Agent)
	t.As(Agent).Invoke(ctx, denied, Args{}).MustSucceed()
	t.As(Discoverer).List(ctx).MustSucceed()

	t.Row(Discoverer, denied, "a caller who may discover and may not run", func() {
		t.Drupal.Mark()
		r := t.As(Discoverer).Invoke(ctx, denied, Args{})
		t.Expect(r).To(BeRefusal())
		t.Expect(r).To(HaveRunNothing())
	})

	// access/list-403 judges that one who may run and may not discover cannot list.
	open := t.mustFind(Outsider, fixtures.Lookup, fixtures.Count, fixtures.WhoAmI)[0]
	t.As(Agent).Invoke(ctx, open.Name, open.Arguments).MustSucceed()
	t.Row(Outsider, open.Name, "a caller who may run and may not discover", func() {
		t.Expect(t.As(Outsider).Invoke(ctx, open.Name, open.Arguments)).To(BeSuccess())
	})
}

func chk__access__routePermission(ctx context.Context, t *T) {
	for _, kind := range []fixtures.Kind{fixtures.Lookup, fixtures.Count, fixtures.WhoAmI} {
		tool := t.mustFind(Agent, kind)[0]
		t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
		for _, who := range []Identity{NoRPC, Anonymous, Blocked} {
			t.For(who, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(who).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(BeRefusedWith(401, 403, 404))
				t.Expect(r).To(HaveRunNothing())
			})
		}
	}
}

func chk__access__permissionRevoked(ctx context.Context, t *T) {
	tool := t.mustFind(Agent, fixtures.Count)[0]
	for what, left := range inOrder(map[string][]string{
		"the method's permission": {fixtures.UseJSONRPC, fixtures.DiscoverTools},
		"all of them":             {},
	}) {
		if len(tool.Access) == 0 && len(left) > 0 {
			continue
		}
		who := t.Drupal.NewUser(t.Permissions(Agent)...)
		t.As(who).List(ctx)
		t.As(who).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
		t.Drupal.Permit(who, left...)
		t.Row(who, tool.Name, "after losing "+what, func() {
			t.Drupal.Mark()
			r := t.As(who).Invoke(ctx, tool.Name, tool.Arguments)
			t.Expect(r).To(BeRefusedWith(401, 403, 404))
			t.Expect(r).To(HaveRunNothing())
		})
	}
}

func chk__access__anonymousGranted(ctx context.Context, t *T) {
	anonymous := t.As(Anonymous)
	t.permitAnonymous(ctx, func(ctx context.Context) bool { return anonymous.List(ctx).Status == http.StatusOK },
		fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent)

	me := t.mustFind(Anonymous, fixtures.WhoAmI)[0]
	t.As(Agent).Describe(ctx, me.Name).MustSucceed()
	t.As(Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.Expect(anonymous.List(ctx)).To(HaveStatus(200))
	names := anonymous.MustListAll(ctx).Names()
	t.Expect(names).To(ContainElement(me.Name), mismatch("list as anonymous", fmt.Sprintf("%q", me.Name), fmt.Sprintf("%d tools without it", len(names))))
	t.Expect(anonymous.Describe(ctx, me.Name)).To(HaveStatus(200))
	t.Drupal.Mark()
	r := anonymous.Invoke(ctx, me.Name, me.Arguments)
	t.Expect(r).To(BeSuccess())
	t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), mismatch(r.Subject(), "the method to run on the site", "no run"))
	t.Expect(t.callersBut(Anonymous)).To(BeEmpty(), mismatch(r.Subject(), "the call to reach the site as anonymous", "it as another"))
}

func chk__access__noOracle(ctx context.Context, t *T) {
	t.As(Agent).Invoke(ctx, t.KnownTool(ctx), Args{}).MustSucceed()
	hidden, denied := t.HiddenMethods()[0], t.DeniedTool(Discoverer, Agent)
	for _, who := range []Identity{Discoverer, Outsider, NoRPC, Anonymous} {
		names := []string{hidden}
		if t.Claims("visibility-filtered") && !slices.Contains(t.Visible(who), denied) {
			names = append(names, denied)
		}
		for _, way := range waysToAsk {
			ask := way.by(t.As(who))
			for _, name := range names {
				t.For(who, name, func() {
					r := ask(ctx, name)
					if name == denied && r.Status == http.StatusForbidden && r.Method != http.MethodHead {
						return // invoke/denied allows it, and describe/inaccessible-404 does not
					}
					t.Expect(r).To(BeLikeUnknown(ask, ctx, name), way.what)
				})
			}
		}
		if t.Claims("mcp") {
			t.notToldByMCP(ctx, who, names)
		}
	}
}

func chk__access__csrf(ctx context.Context, t *T) {
	call := t.mustRun(ctx)
	caller := t.bySession(call.Identity)
	caller.InvokeBody(ctx, call.body()).MustSucceed()
	body := string(call.body())

	for what, header := range inOrder(map[string]http.Header{
		"as text":                       {"Content-Type": {"text/plain"}},
		"as text that speaks of JSON":   {"Content-Type": {"text/plain; as=application/json"}},
		"as a form":                     {"Content-Type": {"application/x-www-form-urlencoded"}},
		"as a multipart form":           {"Content-Type": {"multipart/form-data; boundary=x"}},
		"without a Content-Type":        {"Content-Type": nil},
		"from another origin":           {"Origin": {"https://elsewhere.invalid"}},
		"from a sandbox":                {"Origin": {"null"}},
		"from a host that begins alike": {"Origin": {"https://" + t.hostname() + ".elsewhere.invalid"}},
		"from a host that ends alike":   {"Origin": {"https://elsewhere" + t.hostname()}},
		"from another origin, as text":  {"Origin": {"https://elsewhere.invalid"}, "Content-Type": {"text/plain"}},
	}) {
		header["X-Csrf-Token"] = nil
		t.Row(caller.who, "", what, func() {
			t.mark()
			r := caller.Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Header: header, Body: strings.NewReader(body), Show: body})
			t.Expect(r).To(BeRefusedWith(400, 403, 415))
			t.Expect(r).To(HaveRunNothing())
		})
	}
}

// bySession is the caller signed in by a session cookie.
func (t *T) bySession(who Identity) Client {
	if t.Drupal != nil {
		creds := Credentials{Cookie: t.Drupal.session(who)}
		t.redact.Add(creds.secrets()...)
		return t.With(who, creds)
	}
	if creds, _ := t.credentialsOf(who); creds.Cookie == "" {
		NotTestable("there is no session cookie to send: let " + who.String() + " sign in by one")
	}
	return t.As(who)
}

// hostname is the bridge's, without a port.
func (t *T) hostname() string {
	u, err := url.Parse(t.url)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// halfPermitted makes an account for each pair of permissions that a tool asks for, which holds the first alone.
func (t *T) halfPermitted() []Identity {
	var all []Identity
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

// wayToAsk is a request for a tool by its name.
type wayToAsk struct {
	what string
	by   func(c Client) func(ctx context.Context, name string) *Response
}

// waysToAsk are those in which a hidden tool might show itself.
var waysToAsk = []wayToAsk{
	{"describe", func(c Client) func(context.Context, string) *Response { return c.Describe }},
	{"describe by HEAD", func(c Client) func(context.Context, string) *Response {
		return func(ctx context.Context, name string) *Response {
			return c.Send(ctx, Request{Method: http.MethodHead, Path: DescribePath, Query: map[string][]string{"name": {name}}})
		}
	}},
	{"invoke", func(c Client) func(context.Context, string) *Response { return c.invoking(Args{}) }},
	{"invoke with arguments", func(c Client) func(context.Context, string) *Response { return c.invoking(Args{"x": []int{1}}) }},
	{"invoke without arguments", func(c Client) func(context.Context, string) *Response {
		return func(ctx context.Context, name string) *Response {
			return c.InvokeBody(ctx, encode(map[string]any{"name": name}))
		}
	}},
	{"invoke as text", func(c Client) func(context.Context, string) *Response {
		return func(ctx context.Context, name string) *Response {
			body := string(encode(map[string]any{"name": name, "arguments": Args{}}))
			return c.Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Header: asText, Body: strings.NewReader(body), Show: body})
		}
	}},
}

// permitAnonymous gives anonymous callers more permissions on the site, waits for what shows them, and at the end of the
// check until it is as it was before.
func (t *T) permitAnonymous(ctx context.Context, shown func(context.Context) bool, permissions ...string) {
	site := t.Drupal.Site().Clone()
	i := slices.IndexFunc(site.Roles, func(r fixtures.Role) bool { return r.ID == fixtures.AnonymousRole })
	if i < 0 {
		site.Roles = append(site.Roles, fixtures.Role{ID: fixtures.AnonymousRole})
		i = len(site.Roles) - 1
	}
	site.Roles[i].Permissions = append(site.Roles[i].Permissions, permissions...)
	before := shown(ctx)
	Cleanup(func(ctx context.Context) { t.Await(ctx, func() bool { return shown(ctx) == before }) })
	t.Replace(ctx, site)
	t.Await(ctx, func() bool { return shown(ctx) })
}
