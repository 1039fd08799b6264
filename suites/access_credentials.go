package suites

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// As whom a caller acts, and what becomes of credentials.
// checks__access__access_credentials are the checks of this file.
var checks__access__access_credentials = []Check{
	{ID: "access/bad-credentials", Sees: Front, Run: chk__access__badCredentials},
	{ID: "access/no-cross-talk", Sees: Site, Generated: true, Run: chk__access__noCrossTalk},
	{ID: "access/credentials-forwarded", Sees: Site, Run: chk__access__credentialsForwarded, WithoutSite: callsAsTheCaller},
	{ID: "access/credentials-kept-secret", Sees: Site, Run: chk__access__credentialsKeptSecret},
	{ID: "access/per-credential", Sees: Site, Run: chk__access__perCredential},
}

func chk__access__badCredentials(ctx context.Context, t *T) {
	victim, creds := t.victim()
	t.As(victim).List(ctx).MustSucceed() // a cache keyed by the name alone has something to give away now
	judge := func(ask func(c Client) *Response) {
		anonymous := ask(t.As(Anonymous))
		for _, bad := range t.badCredentials(victim, creds) {
			t.For(Identity(bad.what), "", func() { t.Expect(ask(t.With(Identity(bad.what), bad.creds))).To(BeTurnedAway(anonymous)) })
		}
	}
	judge(func(c Client) *Response { return c.List(ctx) })
	known := t.KnownTool(ctx)
	t.As(victim).Describe(ctx, known)
	judge(func(c Client) *Response { return c.Describe(ctx, known) })
	if t.Drupal == nil {
		return
	}
	me := t.mustFind(victim, fixtures.WhoAmI)[0]
	t.As(victim).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.Drupal.Mark()
	judge(func(c Client) *Response { return c.Invoke(ctx, me.Name, me.Arguments) })
	anonymous := t.As(Anonymous).Invoke(ctx, me.Name, me.Arguments)
	t.Drupal.revoke(victim)
	revoked := t.With("revoked credentials", creds)
	t.For(revoked.who, "", func() {
		t.Expect(revoked.Invoke(ctx, me.Name, me.Arguments)).To(BeTurnedAway(anonymous))
		if t.DiscoveryTTL == 0 {
			return
		}
		anonymous = t.As(Anonymous).List(ctx)
		var list *Response
		for range 2 { // until then it may show what it knew, and a busy site may cost the first try its time
			t.Await(ctx, func() bool { list = revoked.List(ctx); return faultOf(list, BeTurnedAway(anonymous)) == nil })
		}
		t.Expect(list).To(BeTurnedAway(anonymous), fmt.Sprint(t.patience())+" later")
	})
	if t.wrong() {
		return
	}
	reached := t.callersBut(Anonymous)
	t.Expect(reached).To(BeEmpty(), mismatch("calls with bad credentials", "none to reach the site as an account", fmt.Sprintf("calls of %s", fewOf(reached))))
}

func chk__access__noCrossTalk(ctx context.Context, t *T) {
	callers := []Identity{
		t.Drupal.NewUser(t.Permissions(Agent)...),
		t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools),
		t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent),
	}
	me := t.mustFind(callers[0], fixtures.WhoAmI)[0]
	special := t.DeniedTool(callers[1], callers[0])
	t.mustGiveResults(ctx)
	t.As(Agent).Describe(ctx, me.Name).MustSucceed()
	t.As(Agent).Invoke(ctx, special, Args{}).MustSucceed()
	var disarm []func()
	for _, route := range []string{mockdrupal.RouteMethods, mockdrupal.RouteJSONRPC} { // so that many are under way at a time
		disarm = append(disarm, t.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: route, Delay: 20 * time.Millisecond}))
	}
	const atATime = 64
	talks := make([]talk, atATime)
	atOnce(atATime, func(i int) { // while nothing is cached
		who := callers[i%len(callers)]
		talks[i] = talk{who: who, name: fmt.Sprintf("no.such.%d.tool", i), list: t.accepted(ctx, func() *Response { return t.As(who).List(ctx) })}
	})
	atOnce(atATime, func(i int) { t.converse(ctx, &talks[i], me, special, i/len(callers)%3) })
	for _, end := range disarm {
		end()
	}
	alone := map[Identity]talk{}
	for _, who := range callers {
		alone[who] = talk{list: t.As(who).List(ctx).MustSucceed(), described: t.As(who).Describe(ctx, me.Name), special: t.As(who).Invoke(ctx, special, Args{})}
		t.Row(who, "", "list, each caller alone", func() { t.Expect(alone[who].list).To(ShowNoneOf(minus(t.Visible(callers[0]), t.Visible(who)))) })
	}
	for _, item := range talks {
		for _, heard := range []struct {
			what   string
			answer *Response
			own    OmegaMatcher
		}{
			{"list", item.list, ShowTheSameTools(alone[item.who].list)},
			{"describe", item.described, EqualAnswer(alone[item.who].described)},
			{"invoke of a tool that some may run", item.special, BeAnsweredAs(alone[item.who].special)},
			{"invoke of an unknown tool", item.unknown, SpeakOfNoOther(item.name)},
			{"invoke of a tool that tells who calls", item.me, SpeakOfCaller(item.who, callers)},
		} {
			if heard.answer == nil || heard.answer.Status == 0 || heard.answer.Status >= 502 {
				continue // not asked, or lost in the crowd, which load/concurrent-exact judges
			}
			t.Row(item.who, "", heard.what+", 64 at once", func() { t.Expect(heard.answer).To(heard.own) })
		}
	}
	if t.wrong() {
		return
	}

	who := actors{callers: callers, shown: []string{me.Name}, steps: t.steps(), runs: []Invocation{
		{Tool: me.Name, Arguments: encode(me.Arguments)}, {Tool: special, Arguments: []byte("{}")}}}
	wrong := t.walk(who.sequence(t.dice("access/no-cross-talk")), func() func(step) *mismade {
		return func(s step) *mismade {
			r := t.take(ctx, s, who)
			switch {
			case s.does == listing:
				return faultOf(r, ShowTheSameTools(alone[s.who].list))
			case s.does == describing && s.tool == me.Name:
				return faultOf(r, EqualAnswer(alone[s.who].described))
			case s.does == invoking && s.tool == me.Name:
				return faultOf(r, SpeakOfCaller(s.who, callers))
			case s.does == invoking:
				return faultOf(r, BeAnsweredAs(alone[s.who].special))
			}
			return nil
		}
	})
	if wrong != nil {
		t.Expect(wrong.actual).To(wrong.must, wrong.trail)
	}

	for way, sign := range inOrder(t.furtherSignIns()) {
		for _, who := range callers {
			caller := t.With(who, sign(who))
			if list := caller.List(ctx); list.Status == http.StatusOK {
				t.Row(who, "", "list, signed in by "+way, func() { t.Expect(list).To(ShowTheSameTools(alone[who].list)) })
			}
			if r := caller.Invoke(ctx, me.Name, me.Arguments); r.Succeeded() {
				t.Row(who, me.Name, "invoke of a tool that tells who calls, signed in by "+way, func() { t.Expect(r).To(SpeakOfCaller(who, callers)) })
			}
		}
	}
}

func chk__access__credentialsForwarded(ctx context.Context, t *T) {
	fresh := t.Drupal.NewUser(t.Permissions(Agent)...)
	me := t.mustFind(fresh, fixtures.WhoAmI)[0]
	denied := t.DeniedTool(Discoverer, Agent)
	t.As(Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.expire() // so that discovery is seen below
	for _, who := range []Identity{Agent, Agent2, fresh, Discoverer, Outsider, Anonymous, Agent} {
		t.For(who, "", func() {
			t.Drupal.Mark()
			t.As(who).List(ctx)
			r := t.As(who).Invoke(ctx, me.Name, me.Arguments)
			t.As(who).Invoke(ctx, denied, Args{})
			t.Expect(t.callersBut(who)).To(BeEmpty(), mismatch(fmt.Sprintf("calls to the site for %s", who), "none of another account", fmt.Sprintf("calls of %s", fewOf(t.callersBut(who)))))
			if r.Status == http.StatusOK {
				t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), mismatch(r.Subject(), "the method to run on the site", "no run"))
			}
			if !t.Claims("visibility-broad") {
				t.Expect(t.discoverers()).NotTo(ContainElement(string(Service)), mismatch(fmt.Sprintf("discovery for %s", who), "no service account", "requests of one"))
			}
		})
	}
}

func chk__access__credentialsKeptSecret(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
	var secrets []string
	for _, who := range []Identity{Agent, Outsider, Service} {
		creds, _ := t.credentialsOf(who)
		secrets = append(secrets, creds.secrets()...)
		for _, token := range userOf(t.Drupal.Site(), who).Tokens {
			secrets = append(secrets, token.Value)
		}
	}
	wrong := Credentials{User: string(Agent), Password: "wrong-but-secret"}
	secrets = append(secrets, wrong.secrets()...)
	for _, a := range t.askAll(ctx) {
		t.Row(a.who, "", a.what, func() { t.Expect(a.Response).NotTo(HoldSecret(secrets)) })
	}
	t.each([]*Response{t.As(Agent).List(ctx), t.As(Agent).Describe(ctx, known), t.As(Agent).Invoke(ctx, known, Args{}),
		t.With("wrong password", wrong).List(ctx), t.With("wrong password", wrong).Invoke(ctx, known, Args{})},
		func(a *Response) { t.Expect(a).NotTo(HoldSecret(secrets)) })
	for what, creds := range inOrder(t.otherSignIns()) {
		caller := t.With(Identity(what), creds)
		t.each([]*Response{caller.List(ctx), caller.Describe(ctx, noSuchTool), caller.Invoke(ctx, known, Args{}), caller.Invoke(ctx, noSuchTool, Args{})},
			func(a *Response) { t.Expect(a).NotTo(HoldSecret(append(secrets, creds.secrets()...))) })
	}
	stranger := t.Drupal.NewUser(t.Permissions(Agent)...)
	creds, _ := t.credentialsOf(stranger)
	t.each(t.refusedByMCP(ctx), func(a *Response) { t.Expect(a).NotTo(HoldSecret(secrets)) })
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultReset})
	for _, a := range []*Response{t.As(Agent).Invoke(ctx, known, Args{}), t.As(stranger).List(ctx)} {
		t.Row(a.Who, "", "while the site resets connections", func() { t.Expect(a).NotTo(HoldSecret(append(secrets, creds.secrets()...))) })
	}
	disarm()
	t.recovered(ctx, asAgent(known))
}

func chk__access__perCredential(ctx context.Context, t *T) {
	wide, narrow := t.Drupal.newTokens(t.Permissions(Agent), []string{fixtures.UseJSONRPC, fixtures.DiscoverTools})
	one, two := t.With("the wide token", Credentials{Token: wide}), t.With("the narrow token", Credentials{Token: narrow})
	special := t.DeniedTool(Discoverer, Agent)
	if !slices.Contains(t.As(Agent).MustListAll(ctx).Names(), special) {
		NotTestable("the agent does not see " + special + " (access/filtered-by-method judges that)")
	}
	t.As(Agent).Describe(ctx, special).MustSucceed()
	t.As(Agent).Invoke(ctx, special, Args{}).MustSucceed()
	for range 2 { // each after the other, with and without something cached
		full, few := one.MustListAll(ctx).Names(), two.MustListAll(ctx).Names()
		t.For(one.who, special, func() {
			t.Expect(full).To(ContainElement(special), mismatch("list with the wide token", fmt.Sprintf("%q in it", special), fmt.Sprintf("%d tools without it", len(full))))
			t.Expect(one.Describe(ctx, special)).To(HaveStatus(200))
			t.Expect(one.Invoke(ctx, special, Args{})).To(BeSuccess())
		})
		t.For(two.who, special, func() {
			if t.Claims("visibility-filtered") {
				t.Expect(few).NotTo(ContainElement(special), mismatch("list with the narrow token", fmt.Sprintf("no %q in it", special), fmt.Sprintf("it among %d tools", len(few))))
				t.Expect(two.Describe(ctx, special)).To(BeRefusedWith(403, 404))
			}
			t.Drupal.Mark()
			r := two.Invoke(ctx, special, Args{})
			t.Expect(r).To(BeRefusedWith(401, 403, 404))
			t.Expect(r).To(HaveRunNothing())
		})
	}
}

// furtherSignIns are the ways of signing in that the bridge claims beside the one that the run takes.
func (t *T) furtherSignIns() map[string]func(Identity) Credentials {
	ways := map[string]func(Identity) Credentials{}
	if t.Claims("auth-bearer") && t.Claims("auth-basic") {
		ways["a token"] = func(who Identity) Credentials {
			return Credentials{Token: userOf(t.Drupal.Site(), who).Tokens[0].Value}
		}
	}
	if t.Claims("auth-cookie") && (t.Claims("auth-basic") || t.Claims("auth-bearer")) {
		ways["a session"] = func(who Identity) Credentials { return Credentials{Cookie: t.Drupal.session(who)} }
	}
	return ways
}

// otherSignIns are the agent's ways of signing in beside the one that the run takes, and a wrong token.
func (t *T) otherSignIns() map[string]Credentials {
	ways := map[string]Credentials{}
	if t.Claims("auth-bearer") {
		ways["a wrong token"] = Credentials{Token: "wrong-but-secret-token"}
		for _, item := range userOf(t.Drupal.Site(), Agent).Tokens {
			ways["a token"] = Credentials{Token: item.Value}
		}
	}
	if t.Claims("auth-cookie") {
		ways["a session"] = Credentials{Cookie: t.Drupal.session(Agent)}
	}
	return ways
}

// callersBut are the accounts other than one's whose method calls reached the site.
func (t *T) callersBut(who Identity) []string {
	var names []string
	for _, entry := range t.Drupal.Journal() {
		if len(entry.Calls) > 0 && entry.User != string(who) {
			names = append(names, entry.User)
		}
	}
	return names
}

// discoverers are the accounts that asked the site for its methods.
func (t *T) discoverers() []string {
	names := []string{}
	for _, entry := range t.Drupal.Discoveries() {
		names = append(names, entry.User)
	}
	return names
}

// victim is an account that bad credentials try to act as: with a mock one that nobody has used, else the agent.
func (t *T) victim() (Identity, Credentials) {
	who := Agent
	if t.Drupal != nil {
		who = t.Drupal.NewUser(t.Permissions(Agent)...)
	}
	creds, _ := t.credentialsOf(who)
	if creds.User == "" && creds.Token == "" && creds.Cookie == "" {
		NotTestable("the agent signs in neither by Basic nor by a token nor by a session: there is nothing to get wrong")
	}
	return who, creds
}

// badCredential is a way of signing in that must not work.
type badCredential struct {
	what  string
	creds Credentials
}

// badCredentials are near to those of the victim. Without a mock only one of them fails to sign the victim in, for a
// site locks accounts after a few of those; the others are near to those of nobody.
func (t *T) badCredentials(victim Identity, creds Credentials) []badCredential {
	user, password := creds.User, creds.Password
	if user == "" || t.Drupal == nil {
		user, password = "bridgecheck-nobody", "no-such-password"
	}
	whole := basic(user, password)
	all := []badCredential{{"a wrong token", Credentials{Token: "no-such-token"}}}
	if creds.User != "" {
		all = append(all, badCredential{"a wrong password", Credentials{User: creds.User, Password: creds.Password + "x"}})
	}
	if creds.Token != "" {
		all = append(all, badCredential{"a token cut short", Credentials{Token: creds.Token[:len(creds.Token)-1]}})
	}
	if t.Drupal != nil && t.Claims("auth-bearer") && creds.Token == "" {
		for _, item := range userOf(t.Drupal.Site(), victim).Tokens {
			all = append(all, badCredential{"the account's token cut short", Credentials{Token: item.Value[:len(item.Value)-1]}},
				badCredential{"the account's token and more", Credentials{Token: item.Value + "x"}})
		}
	}
	if creds.Cookie != "" {
		all = append(all, badCredential{"a session cut short", Credentials{Cookie: creds.Cookie[:len(creds.Cookie)-1]}})
	}
	for what, header := range inOrder(map[string]string{
		"no password":                "Basic " + basic(user, ""),
		"no user":                    "Basic " + basic("", password),
		"an unknown user":            "Basic " + basic("bridgecheck-nobody", password),
		"base64 cut short":           "Basic " + whole[:len(whole)/2],
		"no base64":                  "Basic " + user + ":" + password,
		"marks in place of base64":   "Basic %%%%",
		"no colon":                   "Basic " + base64.StdEncoding.EncodeToString([]byte(user)),
		"a NUL after the user":       "Basic " + basic(user+"\x00", password),
		"nothing after the scheme":   "Basic ",
		"the scheme alone":           "Basic",
		"no scheme":                  whole,
		"an unknown scheme":          "Negotiate " + whole,
		"a digest":                   `Digest username="` + user + `", response="0"`,
		"the user's name as token":   "Bearer " + user,
		"Basic credentials as token": "Bearer " + whole,
		"an unsigned JWT": "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"1","name":"`+user+`"}`)) + ".",
	}) {
		all = append(all, badCredential{what, Credentials{Header: map[string]string{"Authorization": header}}})
	}
	all = append(all,
		badCredential{"an unknown session", Credentials{Cookie: "SESS0123456789abcdef0123456789abcdef=no-such-session"}},
		badCredential{"names in headers", Credentials{Header: map[string]string{"X-Forwarded-User": user, "Remote-User": user, "X-Remote-User": user, "X-User": user}}})
	if t.Drupal != nil {
		for _, u := range t.Drupal.Site().Users {
			if u.Blocked {
				all = append(all, badCredential{"a blocked account", Credentials{User: u.Name, Password: u.Password}})
			}
			for _, item := range u.Tokens {
				if item.Revoked || !item.Expires.IsZero() && item.Expires.Before(time.Now()) || u.Blocked {
					all = append(all, badCredential{"an expired, revoked or blocked token", Credentials{Token: item.Value}})
				}
			}
		}
		all = append(all, badCredential{"another account's password", Credentials{User: string(victim), Password: userOf(t.Drupal.Site(), Agent2).Password}})
	}
	return all
}

// revoke gives an account of NewUser another password, ends its sessions and takes its tokens back.
func (d *Drupal) revoke(who Identity) {
	d.mock.EndSessions(string(who))
	d.changePeople(func(site *fixtures.Site) {
		for i := range site.Users {
			u := &site.Users[i]
			if u.Name != string(who) {
				continue
			}
			u.Password += "-changed"
			for t := range u.Tokens {
				u.Tokens[t].Revoked = true
			}
		}
	})
}

// newTokens gives a new account two tokens: one with all of its permissions, one that is cut down to a few.
func (d *Drupal) newTokens(all, few []string) (wide, narrow string) {
	who := string(d.NewUser(all...))
	wide, narrow = who+"-wide-token", who+"-narrow-token"
	d.changePeople(func(site *fixtures.Site) {
		site.Roles = append(site.Roles, fixtures.Role{ID: who + "-few", Permissions: few})
		for i := range site.Users {
			if site.Users[i].Name == who {
				site.Users[i].Roles = append(site.Users[i].Roles, who+"-few")
				site.Users[i].Tokens = []fixtures.Token{{Value: wide}, {Value: narrow, Scopes: []string{who + "-few"}}}
			}
		}
	})
	return wide, narrow
}

// shortestSecret is how long a secret must be to be told from a word that stands in an answer anyway.
const shortestSecret = 8

// HoldSecret matches an answer in which one of the secrets stands.
func HoldSecret(secrets []string) OmegaMatcher {
	return &responseMatcher{expected: "to hold a credential", test: func(a *Response) (string, bool) {
		for _, secret := range secrets {
			if len(secret) >= shortestSecret && HoldsText(a, secret) {
				return "one in it: " + exact.Cut(a.Outcome(), 200), true
			}
		}
		return "", false
	}}
}
