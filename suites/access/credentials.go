package access

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
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// As whom a caller acts, and what becomes of credentials.
func badCredentials(ctx context.Context, t *harness.T) {
	victim, creds := victim(t)
	t.As(victim).List(ctx).MustSucceed() // a cache keyed by the name alone has something to give away now
	judge := func(ask func(c harness.Client) *harness.Response) {
		anonymous := ask(t.As(harness.Anonymous))
		for _, bad := range rejectedCredentials(t, victim, creds) {
			t.For(harness.Identity(bad.what), "", func() { t.Expect(ask(t.With(harness.Identity(bad.what), bad.creds))).To(BeTurnedAway(anonymous)) })
		}
	}
	judge(func(c harness.Client) *harness.Response { return c.List(ctx) })
	known := scenario.KnownTool(ctx, t)
	t.As(victim).Describe(ctx, known)
	judge(func(c harness.Client) *harness.Response { return c.Describe(ctx, known) })
	if t.Drupal == nil {
		return
	}
	me := scenario.MustFind(t, victim, fixtures.WhoAmI)[0]
	t.As(victim).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.Drupal.Mark()
	judge(func(c harness.Client) *harness.Response { return c.Invoke(ctx, me.Name, me.Arguments) })
	anonymous := t.As(harness.Anonymous).Invoke(ctx, me.Name, me.Arguments)
	revoke(t.Drupal, victim)
	revoked := t.With("revoked credentials", creds)
	t.For(revoked.Who, "", func() {
		t.Expect(revoked.Invoke(ctx, me.Name, me.Arguments)).To(BeTurnedAway(anonymous))
		if t.DiscoveryTTL == 0 {
			return
		}
		anonymous = t.As(harness.Anonymous).List(ctx)
		var list *harness.Response
		for range 2 { // until then it may show what it knew, and a busy site may cost the first try its time
			t.Await(ctx, func() bool { list = revoked.List(ctx); return scenario.Falsify(list, BeTurnedAway(anonymous)) == nil })
		}
		t.Expect(list).To(BeTurnedAway(anonymous), fmt.Sprint(t.ChangeLimit())+" later")
	})
	if t.HasFindings() {
		return
	}
	reached := callersBut(t, harness.Anonymous)
	t.Expect(reached).To(BeEmpty(), harness.Mismatch("calls with bad credentials", "none to reach the site as an account", fmt.Sprintf("calls of %s", match.Abbreviate(reached))))
}

func noCrossTalk(ctx context.Context, t *harness.T) {
	callers := []harness.Identity{
		t.Drupal.NewUser(t.Permissions(harness.Agent)...),
		t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools),
		t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent),
	}
	me := scenario.MustFind(t, callers[0], fixtures.WhoAmI)[0]
	special := scenario.DeniedTool(t, callers[1], callers[0])
	scenario.MustGiveResults(ctx, t)
	t.As(harness.Agent).Describe(ctx, me.Name).MustSucceed()
	t.As(harness.Agent).Invoke(ctx, special, harness.Args{}).MustSucceed()
	var disarm []func()
	for _, route := range []string{route.Methods, route.JSONRPC} { // so that many are under way at a time
		disarm = append(disarm, t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route, Delay: 20 * time.Millisecond}))
	}
	const atATime = 64
	talks := make([]talk, atATime)
	harness.AtOnce(atATime, func(i int) { // while nothing is cached
		who := callers[i%len(callers)]
		talks[i] = talk{who: who, name: fmt.Sprintf("no.such.%d.tool", i), list: scenario.Delivered(ctx, t, func() *harness.Response { return t.As(who).List(ctx) })}
	})
	harness.AtOnce(atATime, func(i int) { converse(ctx, t, &talks[i], me, special, i/len(callers)%3) })
	for _, end := range disarm {
		end()
	}
	alone := map[harness.Identity]talk{}
	for _, who := range callers {
		alone[who] = talk{list: t.As(who).List(ctx).MustSucceed(), described: t.As(who).Describe(ctx, me.Name), special: t.As(who).Invoke(ctx, special, harness.Args{})}
		t.Row(who, "", "list, each caller alone", func() { t.Expect(alone[who].list).To(ShowNoneOf(match.Minus(t.Visible(callers[0]), t.Visible(who)))) })
	}
	for _, item := range talks {
		for _, heard := range []struct {
			what   string
			answer *harness.Response
			own    OmegaMatcher
		}{
			{"list", item.list, ShowTheSameTools(alone[item.who].list)},
			{"describe", item.described, match.EqualResponse(alone[item.who].described)},
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
	if t.HasFindings() {
		return
	}

	who := scenario.Actors{Callers: callers, Shown: []string{me.Name}, Steps: scenario.Steps(t), Runs: []harness.Invocation{
		{Tool: me.Name, Arguments: harness.Encode(me.Arguments)}, {Tool: special, Arguments: []byte("{}")}}}
	wrong := scenario.RunSequence(t, who.Sequence(scenario.Random(t, "access/no-cross-talk")), func() func(scenario.Step) *scenario.Counterexample {
		return func(s scenario.Step) *scenario.Counterexample {
			r := scenario.SendStep(ctx, t, s, who)
			switch {
			case s.Does == scenario.Listing:
				return scenario.Falsify(r, ShowTheSameTools(alone[s.Who].list))
			case s.Does == scenario.Describing && s.Tool == me.Name:
				return scenario.Falsify(r, match.EqualResponse(alone[s.Who].described))
			case s.Does == scenario.Invoking && s.Tool == me.Name:
				return scenario.Falsify(r, SpeakOfCaller(s.Who, callers))
			case s.Does == scenario.Invoking:
				return scenario.Falsify(r, BeAnsweredAs(alone[s.Who].special))
			}
			return nil
		}
	})
	if wrong != nil {
		t.Expect(wrong.Actual).To(wrong.Must, wrong.Trail)
	}

	for way, sign := range harness.InOrder(furtherSignIns(t)) {
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

func credentialsForwarded(ctx context.Context, t *harness.T) {
	fresh := t.Drupal.NewUser(t.Permissions(harness.Agent)...)
	me := scenario.MustFind(t, fresh, fixtures.WhoAmI)[0]
	denied := scenario.DeniedTool(t, harness.Discoverer, harness.Agent)
	t.As(harness.Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.ExpireCaches() // so that discovery is seen below
	for _, who := range []harness.Identity{harness.Agent, harness.Agent2, fresh, harness.Discoverer, harness.Outsider, harness.Anonymous, harness.Agent} {
		t.For(who, "", func() {
			t.Drupal.Mark()
			t.As(who).List(ctx)
			r := t.As(who).Invoke(ctx, me.Name, me.Arguments)
			t.As(who).Invoke(ctx, denied, harness.Args{})
			t.Expect(callersBut(t, who)).To(BeEmpty(), harness.Mismatch(fmt.Sprintf("calls to the site for %s", who), "none of another account", fmt.Sprintf("calls of %s", match.Abbreviate(callersBut(t, who)))))
			if r.Status == http.StatusOK {
				t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), harness.Mismatch(r.Subject(), "the method to run on the site", "no run"))
			}
			if !t.Claims("visibility-broad") {
				t.Expect(discoverers(t)).NotTo(ContainElement(string(harness.Service)), harness.Mismatch(fmt.Sprintf("discovery for %s", who), "no service account", "requests of one"))
			}
		})
	}
}

func credentialsKeptSecret(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(harness.Agent).Invoke(ctx, known, harness.Args{}).MustSucceed()
	var secrets []string
	for _, who := range []harness.Identity{harness.Agent, harness.Outsider, harness.Service} {
		creds, _ := t.CredentialsOf(who)
		secrets = append(secrets, creds.Secrets()...)
		for _, token := range harness.UserOf(t.Drupal.Site(), who).Tokens {
			secrets = append(secrets, token.Value)
		}
	}
	wrong := harness.Credentials{User: string(harness.Agent), Password: "wrong-but-secret"}
	secrets = append(secrets, wrong.Secrets()...)
	for _, a := range scenario.SendRefusals(ctx, t) {
		t.Row(a.Who, "", a.What, func() { t.Expect(a.Response).NotTo(HoldSecret(secrets)) })
	}
	t.Each([]*harness.Response{t.As(harness.Agent).List(ctx), t.As(harness.Agent).Describe(ctx, known), t.As(harness.Agent).Invoke(ctx, known, harness.Args{}),
		t.With("wrong password", wrong).List(ctx), t.With("wrong password", wrong).Invoke(ctx, known, harness.Args{})},
		func(a *harness.Response) { t.Expect(a).NotTo(HoldSecret(secrets)) })
	for what, creds := range harness.InOrder(otherSignIns(t)) {
		caller := t.With(harness.Identity(what), creds)
		t.Each([]*harness.Response{caller.List(ctx), caller.Describe(ctx, scenario.NoSuchTool), caller.Invoke(ctx, known, harness.Args{}), caller.Invoke(ctx, scenario.NoSuchTool, harness.Args{})},
			func(a *harness.Response) { t.Expect(a).NotTo(HoldSecret(append(secrets, creds.Secrets()...))) })
	}
	stranger := t.Drupal.NewUser(t.Permissions(harness.Agent)...)
	creds, _ := t.CredentialsOf(stranger)
	t.Each(refusedByMCP(ctx, t), func(a *harness.Response) { t.Expect(a).NotTo(HoldSecret(secrets)) })
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Reset})
	for _, a := range []*harness.Response{t.As(harness.Agent).Invoke(ctx, known, harness.Args{}), t.As(stranger).List(ctx)} {
		t.Row(a.Who, "", "while the site resets connections", func() { t.Expect(a).NotTo(HoldSecret(append(secrets, creds.Secrets()...))) })
	}
	disarm()
	scenario.WaitRecovered(ctx, t, harness.AsAgent(known))
}

func perCredential(ctx context.Context, t *harness.T) {
	wide, narrow := newTokens(t.Drupal, t.Permissions(harness.Agent), []string{fixtures.UseJSONRPC, fixtures.DiscoverTools})
	one, two := t.With("the wide token", harness.Credentials{Token: wide}), t.With("the narrow token", harness.Credentials{Token: narrow})
	special := scenario.DeniedTool(t, harness.Discoverer, harness.Agent)
	if !slices.Contains(t.As(harness.Agent).MustListAll(ctx).Names(), special) {
		harness.BlockedBy(harness.Finding{Subject: "the agent does not see " + special}, "access/filtered-by-method")
	}
	t.As(harness.Agent).Describe(ctx, special).MustSucceed()
	t.As(harness.Agent).Invoke(ctx, special, harness.Args{}).MustSucceed()
	for range 2 { // each after the other, with and without something cached
		full, few := one.MustListAll(ctx).Names(), two.MustListAll(ctx).Names()
		t.For(one.Who, special, func() {
			t.Expect(full).To(ContainElement(special), harness.Mismatch("list with the wide token", fmt.Sprintf("%q in it", special), fmt.Sprintf("%d tools without it", len(full))))
			t.Expect(one.Describe(ctx, special)).To(match.HaveStatus(200))
			t.Expect(one.Invoke(ctx, special, harness.Args{})).To(match.BeSuccess())
		})
		t.For(two.Who, special, func() {
			if t.Claims("visibility-filtered") {
				t.Expect(few).NotTo(ContainElement(special), harness.Mismatch("list with the narrow token", fmt.Sprintf("no %q in it", special), fmt.Sprintf("it among %d tools", len(few))))
				t.Expect(two.Describe(ctx, special)).To(match.BeRefusedWith(403, 404))
			}
			t.Drupal.Mark()
			r := two.Invoke(ctx, special, harness.Args{})
			t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
			t.Expect(r).To(match.HaveRunNothing())
		})
	}
}

// furtherSignIns are the ways of signing in that the bridge claims beside the one that the run takes.
func furtherSignIns(t *harness.T) map[string]func(harness.Identity) harness.Credentials {
	ways := map[string]func(harness.Identity) harness.Credentials{}
	if t.Claims("auth-bearer") && t.Claims("auth-basic") {
		ways["a token"] = func(who harness.Identity) harness.Credentials {
			return harness.Credentials{Token: harness.UserOf(t.Drupal.Site(), who).Tokens[0].Value}
		}
	}
	if t.Claims("auth-cookie") && (t.Claims("auth-basic") || t.Claims("auth-bearer")) {
		ways["a session"] = func(who harness.Identity) harness.Credentials {
			return harness.Credentials{Cookie: t.Drupal.Session(who)}
		}
	}
	return ways
}

// otherSignIns are the agent's ways of signing in beside the one that the run takes, and a wrong token.
func otherSignIns(t *harness.T) map[string]harness.Credentials {
	ways := map[string]harness.Credentials{}
	if t.Claims("auth-bearer") {
		ways["a wrong token"] = harness.Credentials{Token: "wrong-but-secret-token"}
		for _, item := range harness.UserOf(t.Drupal.Site(), harness.Agent).Tokens {
			ways["a token"] = harness.Credentials{Token: item.Value}
		}
	}
	if t.Claims("auth-cookie") {
		ways["a session"] = harness.Credentials{Cookie: t.Drupal.Session(harness.Agent)}
	}
	return ways
}

// callersBut are the accounts other than one's whose method calls reached the site.
func callersBut(t *harness.T, who harness.Identity) []string {
	var names []string
	for _, entry := range t.Drupal.Journal() {
		if len(entry.Calls) > 0 && entry.User != string(who) {
			names = append(names, entry.User)
		}
	}
	return names
}

// discoverers are the accounts that asked the site for its methods.
func discoverers(t *harness.T) []string {
	names := []string{}
	for _, entry := range t.Drupal.Discoveries() {
		names = append(names, entry.User)
	}
	return names
}

// victim is an account that bad credentials try to act as: with a mock one that nobody has used, else the agent.
func victim(t *harness.T) (harness.Identity, harness.Credentials) {
	who := harness.Agent
	if t.Drupal != nil {
		who = t.Drupal.NewUser(t.Permissions(harness.Agent)...)
	}
	creds, _ := t.CredentialsOf(who)
	if creds.User == "" && creds.Token == "" && creds.Cookie == "" {
		harness.NotTestable("the agent signs in neither by Basic nor by a token nor by a session: there is nothing to get wrong")
	}
	return who, creds
}

// badCredential is a way of signing in that must not work.
type badCredential struct {
	what  string
	creds harness.Credentials
}

// badCredentials are near to those of the victim. Without a mock only one of them fails to sign the victim in, for a
// site locks accounts after a few of those; the others are near to those of nobody.
func rejectedCredentials(t *harness.T, victim harness.Identity, creds harness.Credentials) []badCredential {
	user, password := creds.User, creds.Password
	if user == "" || t.Drupal == nil {
		user, password = "bridgecheck-nobody", "no-such-password"
	}
	whole := harness.Basic(user, password)
	all := []badCredential{{"a wrong token", harness.Credentials{Token: "no-such-token"}}}
	if creds.User != "" {
		all = append(all, badCredential{"a wrong password", harness.Credentials{User: creds.User, Password: creds.Password + "x"}})
	}
	if creds.Token != "" {
		all = append(all, badCredential{"a token cut short", harness.Credentials{Token: creds.Token[:len(creds.Token)-1]}})
	}
	if t.Drupal != nil && t.Claims("auth-bearer") && creds.Token == "" {
		for _, item := range harness.UserOf(t.Drupal.Site(), victim).Tokens {
			all = append(all, badCredential{"the account's token cut short", harness.Credentials{Token: item.Value[:len(item.Value)-1]}},
				badCredential{"the account's token and more", harness.Credentials{Token: item.Value + "x"}})
		}
	}
	if creds.Cookie != "" {
		all = append(all, badCredential{"a session cut short", harness.Credentials{Cookie: creds.Cookie[:len(creds.Cookie)-1]}})
	}
	for what, header := range harness.InOrder(map[string]string{
		"no password":                "Basic " + harness.Basic(user, ""),
		"no user":                    "Basic " + harness.Basic("", password),
		"an unknown user":            "Basic " + harness.Basic("bridgecheck-nobody", password),
		"base64 cut short":           "Basic " + whole[:len(whole)/2],
		"no base64":                  "Basic " + user + ":" + password,
		"marks in place of base64":   "Basic %%%%",
		"no colon":                   "Basic " + base64.StdEncoding.EncodeToString([]byte(user)),
		"a NUL after the user":       "Basic " + harness.Basic(user+"\x00", password),
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
		all = append(all, badCredential{what, harness.Credentials{Header: map[string]string{"Authorization": header}}})
	}
	all = append(all,
		badCredential{"an unknown session", harness.Credentials{Cookie: "SESS0123456789abcdef0123456789abcdef=no-such-session"}},
		badCredential{"names in headers", harness.Credentials{Header: map[string]string{"X-Forwarded-User": user, "Remote-User": user, "X-Remote-User": user, "X-User": user}}})
	if t.Drupal != nil {
		for _, u := range t.Drupal.Site().Users {
			if u.Blocked {
				all = append(all, badCredential{"a blocked account", harness.Credentials{User: u.Name, Password: u.Password}})
			}
			for _, item := range u.Tokens {
				if item.Revoked || !item.Expires.IsZero() && item.Expires.Before(time.Now()) || u.Blocked {
					all = append(all, badCredential{"an expired, revoked or blocked token", harness.Credentials{Token: item.Value}})
				}
			}
		}
		all = append(all, badCredential{"another account's password", harness.Credentials{User: string(victim), Password: harness.UserOf(t.Drupal.Site(), harness.Agent2).Password}})
	}
	return all
}

// revoke gives an account of NewUser another password, ends its sessions and takes its tokens back.
func revoke(d *harness.Drupal, who harness.Identity) {
	d.Mock.EndSessions(string(who))
	d.ChangePeople(func(site *fixtures.Site) {
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
func newTokens(d *harness.Drupal, all, few []string) (wide, narrow string) {
	who := string(d.NewUser(all...))
	wide, narrow = who+"-wide-token", who+"-narrow-token"
	d.ChangePeople(func(site *fixtures.Site) {
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
	return &match.ResponseMatcher{Expected: "to hold a credential", Test: func(a *harness.Response) (string, bool) {
		for _, secret := range secrets {
			if len(secret) >= shortestSecret && match.ContainsText(a, secret) {
				return "one in it: " + exact.Cut(a.Outcome(), 200), true
			}
		}
		return "", false
	}}
}
