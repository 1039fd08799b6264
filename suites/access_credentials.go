package suites

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// As whom a caller acts, and what becomes of credentials.
var _ = Area("access", func(b *Bridge) {
	b.Check("access/bad-credentials", func(ctx SpecContext) {
		victim, creds := b.victim()
		b.As(victim).List(ctx).MustSucceed() // a cache keyed by the name alone has something to give away now
		judge := func(ask func(c Client) *Answer) {
			anonymous := ask(b.As(Anonymous))
			for _, bad := range b.badCredentials(victim, creds) {
				b.For(Identity(bad.what), "", func() { Expect(ask(b.With(Identity(bad.what), bad.creds))).To(BeTurnedAway(anonymous)) })
			}
		}
		judge(func(c Client) *Answer { return c.List(ctx) })
		known := b.KnownTool(ctx)
		b.As(victim).Describe(ctx, known)
		judge(func(c Client) *Answer { return c.Describe(ctx, known) })
		if b.Drupal == nil {
			return
		}
		me := b.mustFind(victim, fixtures.WhoAmI)[0]
		b.As(victim).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
		b.Drupal.Mark()
		judge(func(c Client) *Answer { return c.Invoke(ctx, me.Name, me.Arguments) })
		anonymous := b.As(Anonymous).Invoke(ctx, me.Name, me.Arguments)
		b.Drupal.revoke(victim)
		revoked := b.With("revoked credentials", creds)
		b.For(revoked.who, "", func() {
			Expect(revoked.Invoke(ctx, me.Name, me.Arguments)).To(BeTurnedAway(anonymous))
			if b.DiscoveryTTL == 0 {
				return
			}
			anonymous = b.As(Anonymous).List(ctx)
			var list *Answer
			for range 2 { // until then it may show what it knew, and a busy site may cost the first try its time
				b.Await(ctx, func() bool { list = revoked.List(ctx); return faultOf(list, BeTurnedAway(anonymous)) == nil })
			}
			Expect(list).To(BeTurnedAway(anonymous), fmt.Sprint(b.patience())+" later")
		})
		if b.wrong() {
			return
		}
		reached := b.callersBut(Anonymous)
		Expect(reached).To(BeEmpty(), "calls with bad credentials: expected none to reach the site as an account, got calls of %s", fewOf(reached))
	})

	b.Check("access/no-cross-talk", func(ctx SpecContext) {
		callers := []Identity{
			b.Drupal.NewUser(b.Permissions(Agent)...),
			b.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools),
			b.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent),
		}
		me := b.mustFind(callers[0], fixtures.WhoAmI)[0]
		special := b.DeniedTool(callers[1], callers[0])
		b.mustGiveResults(ctx)
		b.As(Agent).Describe(ctx, me.Name).MustSucceed()
		b.As(Agent).Invoke(ctx, special, Args{}).MustSucceed()
		var disarm []func()
		for _, route := range []string{route.Methods, route.JSONRPC} { // so that many are under way at a time
			disarm = append(disarm, b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route, Delay: 20 * time.Millisecond}))
		}
		const atATime = 64
		talks := make([]talk, atATime)
		atOnce(atATime, func(i int) { // while nothing is cached
			who := callers[i%len(callers)]
			talks[i] = talk{who: who, name: fmt.Sprintf("no.such.%d.tool", i), list: b.accepted(ctx, func() *Answer { return b.As(who).List(ctx) })}
		})
		atOnce(atATime, func(i int) { b.converse(ctx, &talks[i], me, special, i/len(callers)%3) })
		for _, end := range disarm {
			end()
		}
		alone := map[Identity]talk{}
		for _, who := range callers {
			alone[who] = talk{list: b.As(who).List(ctx).MustSucceed(), described: b.As(who).Describe(ctx, me.Name), special: b.As(who).Invoke(ctx, special, Args{})}
			b.Row(who, "", "list, each caller alone", func() { Expect(alone[who].list).To(ShowNoneOf(minus(b.Visible(callers[0]), b.Visible(who)))) })
		}
		for _, t := range talks {
			for _, heard := range []struct {
				what   string
				answer *Answer
				own    OmegaMatcher
			}{
				{"list", t.list, ShowTheSameTools(alone[t.who].list)},
				{"describe", t.described, EqualAnswer(alone[t.who].described)},
				{"invoke of a tool that some may run", t.special, BeAnsweredAs(alone[t.who].special)},
				{"invoke of an unknown tool", t.unknown, SpeakOfNoOther(t.name)},
				{"invoke of a tool that tells who calls", t.me, SpeakOfCaller(t.who, callers)},
			} {
				if heard.answer == nil || heard.answer.Status == 0 || heard.answer.Status >= 502 {
					continue // not asked, or lost in the crowd, which load/concurrent-exact judges
				}
				b.Row(t.who, "", heard.what+", 64 at once", func() { Expect(heard.answer).To(heard.own) })
			}
		}
		if b.wrong() {
			return
		}

		who := actors{callers: callers, shown: []string{me.Name}, steps: b.steps(), runs: []Invocation{
			{Tool: me.Name, Arguments: encode(me.Arguments)}, {Tool: special, Arguments: []byte("{}")}}}
		wrong := b.walk(who.sequence(b.dice("access/no-cross-talk")), func() func(step) *mismade {
			return func(s step) *mismade {
				r := b.take(ctx, s, who)
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
			Expect(wrong.actual).To(wrong.must, wrong.trail)
		}

		for way, sign := range inOrder(b.furtherSignIns()) {
			for _, who := range callers {
				caller := b.With(who, sign(who))
				if list := caller.List(ctx); list.Status == http.StatusOK {
					b.Row(who, "", "list, signed in by "+way, func() { Expect(list).To(ShowTheSameTools(alone[who].list)) })
				}
				if r := caller.Invoke(ctx, me.Name, me.Arguments); r.Succeeded() {
					b.Row(who, me.Name, "invoke of a tool that tells who calls, signed in by "+way, func() { Expect(r).To(SpeakOfCaller(who, callers)) })
				}
			}
		}
	})

	b.Check("access/credentials-forwarded", func(ctx SpecContext) {
		fresh := b.Drupal.NewUser(b.Permissions(Agent)...)
		me := b.mustFind(fresh, fixtures.WhoAmI)[0]
		denied := b.DeniedTool(Discoverer, Agent)
		b.As(Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
		b.expire() // so that discovery is seen below
		for _, who := range []Identity{Agent, Agent2, fresh, Discoverer, Outsider, Anonymous, Agent} {
			b.For(who, "", func() {
				b.Drupal.Mark()
				b.As(who).List(ctx)
				r := b.As(who).Invoke(ctx, me.Name, me.Arguments)
				b.As(who).Invoke(ctx, denied, Args{})
				Expect(b.callersBut(who)).To(BeEmpty(), "calls to the site for %s: expected none of another account, got calls of %s", who, fewOf(b.callersBut(who)))
				if r.Status == http.StatusOK {
					Expect(b.Drupal.Runs(me.ID)).NotTo(BeEmpty(), "%s: expected the method to run on the site, got no run", r.Subject())
				}
				if !b.Claims("visibility-broad") {
					Expect(b.discoverers()).NotTo(ContainElement(string(Service)), "discovery for %s: expected no service account, got requests of one", who)
				}
			})
		}
	})

	b.Check("access/credentials-kept-secret", func(ctx SpecContext) {
		known := b.KnownTool(ctx)
		b.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
		var secrets []string
		for _, who := range []Identity{Agent, Outsider, Service} {
			creds, _ := b.credentialsOf(who)
			secrets = append(secrets, creds.secrets()...)
			for _, token := range userOf(b.Drupal.Site(), who).Tokens {
				secrets = append(secrets, token.Value)
			}
		}
		wrong := Credentials{User: string(Agent), Password: "wrong-but-secret"}
		secrets = append(secrets, wrong.secrets()...)
		for _, a := range b.askAll(ctx) {
			b.Row(a.who, "", a.what, func() { Expect(a.Answer).NotTo(HoldSecret(secrets)) })
		}
		b.each([]*Answer{b.As(Agent).List(ctx), b.As(Agent).Describe(ctx, known), b.As(Agent).Invoke(ctx, known, Args{}),
			b.With("wrong password", wrong).List(ctx), b.With("wrong password", wrong).Invoke(ctx, known, Args{})},
			func(a *Answer) { Expect(a).NotTo(HoldSecret(secrets)) })
		for what, creds := range inOrder(b.otherSignIns()) {
			caller := b.With(Identity(what), creds)
			b.each([]*Answer{caller.List(ctx), caller.Describe(ctx, noSuchTool), caller.Invoke(ctx, known, Args{}), caller.Invoke(ctx, noSuchTool, Args{})},
				func(a *Answer) { Expect(a).NotTo(HoldSecret(append(secrets, creds.secrets()...))) })
		}
		stranger := b.Drupal.NewUser(b.Permissions(Agent)...)
		creds, _ := b.credentialsOf(stranger)
		b.each(b.refusedByMCP(ctx), func(a *Answer) { Expect(a).NotTo(HoldSecret(secrets)) })
		disarm := b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Reset})
		for _, a := range []*Answer{b.As(Agent).Invoke(ctx, known, Args{}), b.As(stranger).List(ctx)} {
			b.Row(a.Who, "", "while the site resets connections", func() { Expect(a).NotTo(HoldSecret(append(secrets, creds.secrets()...))) })
		}
		disarm()
		b.recovered(ctx, asAgent(known))
	})

	b.Check("access/per-credential", func(ctx SpecContext) {
		wide, narrow := b.Drupal.newTokens(b.Permissions(Agent), []string{fixtures.UseJSONRPC, fixtures.DiscoverTools})
		one, two := b.With("the wide token", Credentials{Token: wide}), b.With("the narrow token", Credentials{Token: narrow})
		special := b.DeniedTool(Discoverer, Agent)
		if !contains(b.As(Agent).MustListAll(ctx).Names(), special) {
			NotTestable("the agent does not see " + special + " (access/filtered-by-method judges that)")
		}
		b.As(Agent).Describe(ctx, special).MustSucceed()
		b.As(Agent).Invoke(ctx, special, Args{}).MustSucceed()
		for range 2 { // each after the other, with and without something cached
			full, few := one.MustListAll(ctx).Names(), two.MustListAll(ctx).Names()
			b.For(one.who, special, func() {
				Expect(full).To(ContainElement(special), "list with the wide token: expected %q in it, got %d tools without it", special, len(full))
				Expect(one.Describe(ctx, special)).To(HaveStatus(200))
				Expect(one.Invoke(ctx, special, Args{})).To(BeSuccess())
			})
			b.For(two.who, special, func() {
				if b.Claims("visibility-filtered") {
					Expect(few).NotTo(ContainElement(special), "list with the narrow token: expected no %q in it, got it among %d tools", special, len(few))
					Expect(two.Describe(ctx, special)).To(BeRefusedWith(403, 404))
				}
				b.Drupal.Mark()
				r := two.Invoke(ctx, special, Args{})
				Expect(r).To(BeRefusedWith(401, 403, 404))
				Expect(r).To(HaveRunNothing())
			})
		}
	})
})

// furtherSignIns are the ways of signing in that the bridge claims beside the one that the run takes.
func (b *Bridge) furtherSignIns() map[string]func(Identity) Credentials {
	ways := map[string]func(Identity) Credentials{}
	if b.Claims("auth-bearer") && b.Claims("auth-basic") {
		ways["a token"] = func(who Identity) Credentials {
			return Credentials{Token: userOf(b.Drupal.Site(), who).Tokens[0].Value}
		}
	}
	if b.Claims("auth-cookie") && (b.Claims("auth-basic") || b.Claims("auth-bearer")) {
		ways["a session"] = func(who Identity) Credentials { return Credentials{Cookie: b.Drupal.session(who)} }
	}
	return ways
}

// otherSignIns are the agent's ways of signing in beside the one that the run takes, and a wrong token.
func (b *Bridge) otherSignIns() map[string]Credentials {
	ways := map[string]Credentials{}
	if b.Claims("auth-bearer") {
		ways["a wrong token"] = Credentials{Token: "wrong-but-secret-token"}
		for _, t := range userOf(b.Drupal.Site(), Agent).Tokens {
			ways["a token"] = Credentials{Token: t.Value}
		}
	}
	if b.Claims("auth-cookie") {
		ways["a session"] = Credentials{Cookie: b.Drupal.session(Agent)}
	}
	return ways
}

// callersBut are the accounts other than one's whose method calls reached the site.
func (b *Bridge) callersBut(who Identity) []string {
	var names []string
	for _, entry := range b.Drupal.Journal() {
		if len(entry.Calls) > 0 && entry.User != string(who) {
			names = append(names, entry.User)
		}
	}
	return names
}

// discoverers are the accounts that asked the site for its methods.
func (b *Bridge) discoverers() []string {
	names := []string{}
	for _, entry := range b.Drupal.Discoveries() {
		names = append(names, entry.User)
	}
	return names
}

// victim is an account that bad credentials try to act as: with a mock one that nobody has used, else the agent.
func (b *Bridge) victim() (Identity, Credentials) {
	who := Agent
	if b.Drupal != nil {
		who = b.Drupal.NewUser(b.Permissions(Agent)...)
	}
	creds, _ := b.credentialsOf(who)
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
func (b *Bridge) badCredentials(victim Identity, creds Credentials) []badCredential {
	user, password := creds.User, creds.Password
	if user == "" || b.Drupal == nil {
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
	if b.Drupal != nil && b.Claims("auth-bearer") && creds.Token == "" {
		for _, t := range userOf(b.Drupal.Site(), victim).Tokens {
			all = append(all, badCredential{"the account's token cut short", Credentials{Token: t.Value[:len(t.Value)-1]}},
				badCredential{"the account's token and more", Credentials{Token: t.Value + "x"}})
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
	if b.Drupal != nil {
		for _, u := range b.Drupal.Site().Users {
			if u.Blocked {
				all = append(all, badCredential{"a blocked account", Credentials{User: u.Name, Password: u.Password}})
			}
			for _, t := range u.Tokens {
				if t.Revoked || !t.Expires.IsZero() && t.Expires.Before(time.Now()) || u.Blocked {
					all = append(all, badCredential{"an expired, revoked or blocked token", Credentials{Token: t.Value}})
				}
			}
		}
		all = append(all, badCredential{"another account's password", Credentials{User: string(victim), Password: userOf(b.Drupal.Site(), Agent2).Password}})
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
	return &answerMatcher{expected: "to hold a credential", judge: func(a *Answer) (string, bool) {
		for _, secret := range secrets {
			if len(secret) >= shortestSecret && HoldsText(a, secret) {
				return "one in it: " + exact.Cut(a.Outcome(), 200), true
			}
		}
		return "", false
	}}
}
