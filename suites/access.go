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

func chk__access__list403(ctx context.Context, b *Bridge) {
	list := b.As(Agent).MustListAll(ctx)

	asked := []*Answer{b.As(Outsider).List(ctx)}
	if cursor := list.Pages[0].NextCursor(); cursor != "" {
		asked = append(asked, b.As(Outsider).List(ctx, cursor))
	}
	b.each(asked, func(r *Answer) {
		b.Expect(r).To(HaveStatus(403))
		b.Expect(r).NotTo(NameAnyTool(list.Names()))
	})
}

func chk__access__describe403(ctx context.Context, b *Bridge) {
	known := b.KnownTool(ctx)
	b.As(Agent).Describe(ctx, known).MustSucceed()

	for what, query := range inOrder(map[string]string{"a tool": "name=" + known, "an unknown tool": "name=" + noSuchTool, "no name": "", "an empty name": "name="}) {
		b.Row(Outsider, "", what, func() {
			b.Expect(b.As(Outsider).Send(ctx, Request{Path: DescribePath, Raw: query})).To(HaveStatus(403))
		})
	}
}

func chk__access__anonymous(ctx context.Context, b *Bridge) {
	known := b.KnownTool(ctx)
	b.As(Agent).List(ctx).MustSucceed()
	b.As(Agent).Describe(ctx, known).MustSucceed()
	if b.Drupal == nil && b.As(Anonymous).List(ctx).Status == http.StatusOK {
		NotTestable("the site lets anonymous callers discover tools, or the bridge does: without a mock nobody can tell")
	}
	if b.Drupal != nil && b.Drupal.Site().Holds(userOf(b.Drupal.Site(), Anonymous), fixtures.DiscoverTools) {
		NotTestable("on the site " + b.Drupal.Site().Name + " anonymous callers may discover tools")
	}

	b.each([]*Answer{b.As(Anonymous).List(ctx), b.As(Anonymous).Describe(ctx, known)}, func(r *Answer) {
		b.Expect(r).To(BeRefusedWith(401, 403))
		b.Expect(r).To(ChallengeIf401())
	})
	if b.Drupal == nil || b.DiscoveryTTL == 0 || !b.Claims("discovery-permission") {
		return // then nobody can change the site, or the bridge cannot know the permission
	}
	found := b.samples(Agent, fixtures.WhoAmI)
	if len(found) == 0 {
		return
	}
	// Where anonymous callers may run tools the site answers their discovery, and the bridge alone can refuse it.
	me := found[0]
	b.permitAnonymous(ctx, func(ctx context.Context) bool { return b.As(Anonymous).Invoke(ctx, me.Name, me.Arguments).Succeeded() },
		fixtures.UseJSONRPC, fixtures.AccessContent)
	b.each([]*Answer{b.As(Anonymous).List(ctx), b.As(Anonymous).Describe(ctx, known)}, func(r *Answer) {
		b.Expect(r).To(BeRefusedWith(401, 403), "who may run tools, and not discover them")
		b.Expect(r).To(ChallengeIf401())
	})
}

func chk__access__filteredByMethod(ctx context.Context, b *Bridge) {
	for _, who := range append([]Identity{Agent, Discoverer, Admin}, b.halfPermitted()...) {
		b.eachShown(who, b.As(who).MustListAll(ctx))
	}
	limited := b.As(NoRPC).ListAll(ctx)
	if first := limited.Pages[0]; first.IsError() {
		b.For(NoRPC, "", func() { b.Expect(first).To(HaveStatus(403)) })
	} else if len(limited.Tools()) > 0 {
		b.eachShown(NoRPC, limited)
	}
}

func chk__access__discoveryBroad(ctx context.Context, b *Bridge) {
	denied := b.DeniedTool(Discoverer, Agent)
	for _, who := range []Identity{Discoverer, Agent} {
		b.eachShown(who, b.As(who).MustListAll(ctx))
	}
	b.Row(Discoverer, denied, "describe", func() { b.Expect(b.As(Discoverer).Describe(ctx, denied)).To(BeTheTool(denied)) })
	b.As(Agent).Invoke(ctx, denied, Args{}).MustSucceed()
	b.Row(Discoverer, denied, "invoke", func() {
		b.Drupal.Mark()
		r := b.As(Discoverer).Invoke(ctx, denied, Args{})
		b.Expect(r).To(BeRefusedWith(401, 403, 404))
		b.Expect(r).To(HaveRunNothing())
	})
}

func chk__access__discoveryNotExecution(ctx context.Context, b *Bridge) {
	denied := b.DeniedTool(Discoverer, Agent)
	b.As(Agent).Invoke(ctx, denied, Args{}).MustSucceed()
	b.As(Discoverer).List(ctx).MustSucceed()

	b.Row(Discoverer, denied, "a caller who may discover and may not run", func() {
		b.Drupal.Mark()
		r := b.As(Discoverer).Invoke(ctx, denied, Args{})
		b.Expect(r).To(BeRefusal())
		b.Expect(r).To(HaveRunNothing())
	})

	// access/list-403 judges that one who may run and may not discover cannot list.
	open := b.mustFind(Outsider, fixtures.Lookup, fixtures.Count, fixtures.WhoAmI)[0]
	b.As(Agent).Invoke(ctx, open.Name, open.Arguments).MustSucceed()
	b.Row(Outsider, open.Name, "a caller who may run and may not discover", func() {
		b.Expect(b.As(Outsider).Invoke(ctx, open.Name, open.Arguments)).To(BeSuccess())
	})
}

func chk__access__routePermission(ctx context.Context, b *Bridge) {
	for _, kind := range []fixtures.Kind{fixtures.Lookup, fixtures.Count, fixtures.WhoAmI} {
		tool := b.mustFind(Agent, kind)[0]
		b.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
		for _, who := range []Identity{NoRPC, Anonymous, Blocked} {
			b.For(who, tool.Name, func() {
				b.Drupal.Mark()
				r := b.As(who).Invoke(ctx, tool.Name, tool.Arguments)
				b.Expect(r).To(BeRefusedWith(401, 403, 404))
				b.Expect(r).To(HaveRunNothing())
			})
		}
	}
}

func chk__access__permissionRevoked(ctx context.Context, b *Bridge) {
	tool := b.mustFind(Agent, fixtures.Count)[0]
	for what, left := range inOrder(map[string][]string{
		"the method's permission": {fixtures.UseJSONRPC, fixtures.DiscoverTools},
		"all of them":             {},
	}) {
		if len(tool.Access) == 0 && len(left) > 0 {
			continue
		}
		who := b.Drupal.NewUser(b.Permissions(Agent)...)
		b.As(who).List(ctx)
		b.As(who).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
		b.Drupal.Permit(who, left...)
		b.Row(who, tool.Name, "after losing "+what, func() {
			b.Drupal.Mark()
			r := b.As(who).Invoke(ctx, tool.Name, tool.Arguments)
			b.Expect(r).To(BeRefusedWith(401, 403, 404))
			b.Expect(r).To(HaveRunNothing())
		})
	}
}

func chk__access__anonymousGranted(ctx context.Context, b *Bridge) {
	anonymous := b.As(Anonymous)
	b.permitAnonymous(ctx, func(ctx context.Context) bool { return anonymous.List(ctx).Status == http.StatusOK },
		fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent)

	me := b.mustFind(Anonymous, fixtures.WhoAmI)[0]
	b.As(Agent).Describe(ctx, me.Name).MustSucceed()
	b.As(Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	b.Expect(anonymous.List(ctx)).To(HaveStatus(200))
	names := anonymous.MustListAll(ctx).Names()
	b.Expect(names).To(ContainElement(me.Name), mismatch("list as anonymous", fmt.Sprintf("%q", me.Name), fmt.Sprintf("%d tools without it", len(names))))
	b.Expect(anonymous.Describe(ctx, me.Name)).To(HaveStatus(200))
	b.Drupal.Mark()
	r := anonymous.Invoke(ctx, me.Name, me.Arguments)
	b.Expect(r).To(BeSuccess())
	b.Expect(b.Drupal.Runs(me.ID)).NotTo(BeEmpty(), mismatch(r.Subject(), "the method to run on the site", "no run"))
	b.Expect(b.callersBut(Anonymous)).To(BeEmpty(), mismatch(r.Subject(), "the call to reach the site as anonymous", "it as another"))
}

func chk__access__noOracle(ctx context.Context, b *Bridge) {
	b.As(Agent).Invoke(ctx, b.KnownTool(ctx), Args{}).MustSucceed()
	hidden, denied := b.HiddenMethods()[0], b.DeniedTool(Discoverer, Agent)
	for _, who := range []Identity{Discoverer, Outsider, NoRPC, Anonymous} {
		names := []string{hidden}
		if b.Claims("visibility-filtered") && !contains(b.Visible(who), denied) {
			names = append(names, denied)
		}
		for _, way := range waysToAsk {
			ask := way.by(b.As(who))
			for _, name := range names {
				b.For(who, name, func() {
					r := ask(ctx, name)
					if name == denied && r.Status == http.StatusForbidden && r.Method != http.MethodHead {
						return // invoke/denied allows it, and describe/inaccessible-404 does not
					}
					b.Expect(r).To(BeLikeUnknown(ask, ctx, name), way.what)
				})
			}
		}
		if b.Claims("mcp") {
			b.notToldByMCP(ctx, who, names)
		}
	}
}

func chk__access__csrf(ctx context.Context, b *Bridge) {
	call := b.mustRun(ctx)
	caller := b.bySession(call.Identity)
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
		"from a host that begins alike": {"Origin": {"https://" + b.hostname() + ".elsewhere.invalid"}},
		"from a host that ends alike":   {"Origin": {"https://elsewhere" + b.hostname()}},
		"from another origin, as text":  {"Origin": {"https://elsewhere.invalid"}, "Content-Type": {"text/plain"}},
	}) {
		header["X-Csrf-Token"] = nil
		b.Row(caller.who, "", what, func() {
			b.mark()
			r := caller.Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Header: header, Body: strings.NewReader(body), Show: body})
			b.Expect(r).To(BeRefusedWith(400, 403, 415))
			b.Expect(r).To(HaveRunNothing())
		})
	}
}

// bySession is the caller signed in by a session cookie.
func (b *Bridge) bySession(who Identity) Client {
	if b.Drupal != nil {
		creds := Credentials{Cookie: b.Drupal.session(who)}
		b.redact.Add(creds.secrets()...)
		return b.With(who, creds)
	}
	if creds, _ := b.credentialsOf(who); creds.Cookie == "" {
		NotTestable("there is no session cookie to send: let " + who.String() + " sign in by one")
	}
	return b.As(who)
}

// hostname is the bridge's, without a port.
func (b *Bridge) hostname() string {
	u, err := url.Parse(b.url)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// halfPermitted makes an account for each pair of permissions that a tool asks for, which holds the first alone.
func (b *Bridge) halfPermitted() []Identity {
	var all []Identity
	seen := map[string]bool{}
	for _, m := range b.Drupal.Site().Methods {
		if m.MCP == nil || len(m.Access) < 2 || seen[strings.Join(m.Access, ",")] {
			continue
		}
		seen[strings.Join(m.Access, ",")] = true
		all = append(all, b.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools, m.Access[0]))
	}
	return all
}

// wayToAsk is a request for a tool by its name.
type wayToAsk struct {
	what string
	by   func(c Client) func(ctx context.Context, name string) *Answer
}

// waysToAsk are those in which a hidden tool might show itself.
var waysToAsk = []wayToAsk{
	{"describe", func(c Client) func(context.Context, string) *Answer { return c.Describe }},
	{"describe by HEAD", func(c Client) func(context.Context, string) *Answer {
		return func(ctx context.Context, name string) *Answer {
			return c.Send(ctx, Request{Method: http.MethodHead, Path: DescribePath, Query: map[string][]string{"name": {name}}})
		}
	}},
	{"invoke", func(c Client) func(context.Context, string) *Answer { return c.invoking(Args{}) }},
	{"invoke with arguments", func(c Client) func(context.Context, string) *Answer { return c.invoking(Args{"x": []int{1}}) }},
	{"invoke without arguments", func(c Client) func(context.Context, string) *Answer {
		return func(ctx context.Context, name string) *Answer {
			return c.InvokeBody(ctx, encode(map[string]any{"name": name}))
		}
	}},
	{"invoke as text", func(c Client) func(context.Context, string) *Answer {
		return func(ctx context.Context, name string) *Answer {
			body := string(encode(map[string]any{"name": name, "arguments": Args{}}))
			return c.Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Header: asText, Body: strings.NewReader(body), Show: body})
		}
	}},
}

// permitAnonymous gives anonymous callers more permissions on the site, waits for what shows them, and at the end of the
// check until it is as it was before.
func (b *Bridge) permitAnonymous(ctx context.Context, shown func(context.Context) bool, permissions ...string) {
	site := b.Drupal.Site().Clone()
	i := slices.IndexFunc(site.Roles, func(r fixtures.Role) bool { return r.ID == fixtures.AnonymousRole })
	if i < 0 {
		site.Roles = append(site.Roles, fixtures.Role{ID: fixtures.AnonymousRole})
		i = len(site.Roles) - 1
	}
	site.Roles[i].Permissions = append(site.Roles[i].Permissions, permissions...)
	before := shown(ctx)
	Cleanup(func(ctx context.Context) { b.Await(ctx, func() bool { return shown(ctx) == before }) })
	b.Replace(ctx, site)
	b.Await(ctx, func() bool { return shown(ctx) })
}
