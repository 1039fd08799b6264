package access

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

func badCredentials(ctx context.Context, t *check.T) {
	victim, creds := victim(ctx, t)
	right := t.As(victim).WithoutWaiting()           // a bridge that locks the account after a wrong password is to blame
	anonymousList := t.As(check.Anonymous).List(ctx) // before a list that could be cached for all
	t.As(victim).List(ctx).MustSucceed()             // now a cache keyed by the name alone holds a list
	gone := victim                                   // whose credentials are revoked at the end
	if t.Spares() && t.Drupal != nil {
		gone = t.Drupal.NewUser(t.Permissions(check.Agent)...)
		t.As(gone).List(ctx).MustSucceed()
	}
	for _, a := range scenario.Authentications(t) {
		a.Client(t, victim).List(ctx)
		a.Client(t, gone).List(ctx)
	}
	if !t.Spares() && t.Drupal != nil {
		wrongDuringRight(ctx, t, anonymousList)
	}
	rows, endpoint := rejectedCredentials(t, victim, creds), -1
	testAll := func(send func(c check.Client) *check.Response) {
		anonymous := send(t.As(check.Anonymous))
		endpoint++
		for i, bad := range rows {
			if at, one := wrongPasswords[bad.name]; t.Spares() && !closest[bad.name] && (one && at != endpoint && t.Drupal != nil || !one && i%3 != endpoint) {
				continue // each goes to one of the endpoints
			}
			if header := bad.creds.Header["Authorization"]; header != "" && endpoint != 0 && i%3 != endpoint {
				continue // what is wrong with the header is read in one place, and lists are cached by it
			}
			t.For(check.Identity(bad.name), "", func() { t.Expect(send(t.With(check.Identity(bad.name), bad.creds))).To(beRejected(anonymous)) })
		}
	}
	testAll(func(c check.Client) *check.Response { return c.List(ctx) })
	if t.Spares() {
		t.For(victim, "", func() { t.Expect(right.List(ctx)).To(match.BeSuccess(), "after a wrong password") })
	}
	known := scenario.KnownTool(ctx, t)
	right.Describe(ctx, known)
	testAll(func(c check.Client) *check.Response { return c.Describe(ctx, known) })
	if t.Drupal == nil {
		return
	}
	me := scenario.MustFind(t, victim, fixtures.WhoAmI)[0]
	if rightAfterWrong(ctx, t, me); t.HasFindings() {
		return
	}
	right.Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.Drupal.Mark()
	testAll(func(c check.Client) *check.Response { return c.Invoke(ctx, me.Name, me.Arguments) })
	anonymous := t.As(check.Anonymous).Invoke(ctx, me.Name, me.Arguments)
	wrongByMCP(ctx, t, victim, altered(creds), me)
	reached := accountsExcept(t, check.Anonymous)
	if t.Spares() {
		t.For(victim, "", func() {
			t.Expect(right.Invoke(ctx, me.Name, me.Arguments)).To(match.BeSuccess(), "after a wrong password")
		})
	}
	t.As(gone).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	t.As(gone).Describe(ctx, known)
	t.Drupal.Mark()
	creds, _ = t.CredentialsOf(gone)
	revoked := t.With("revoked credentials", creds)
	var others []check.Client
	for _, a := range scenario.Authentications(t) {
		others = append(others, t.With(check.Identity("revoked: "+a.Name), a.Of(gone)))
	}
	revoke(t, gone)
	for _, c := range others {
		t.For(c.Who, "", func() { t.Expect(c.Invoke(ctx, me.Name, me.Arguments)).To(beRejected(anonymous)) })
	}
	t.For(revoked.Who, "", func() {
		t.Expect(revoked.Invoke(ctx, me.Name, me.Arguments)).To(beRejected(anonymous))
		if t.TTL() == 0 {
			return
		}
		var list *check.Response
		rejected := func() bool {
			list = revoked.List(ctx)
			return scenario.Falsify(list, beRejected(anonymousList)) == nil
		}
		if t.Spares() {
			for looks := 1; !rejected() && looks < revokedLooks; looks++ {
				t.AdvanceClock(ctx, t.ChangeLimit()/(revokedLooks-1))
			}
		} else if !t.Await(ctx, rejected) {
			t.Await(ctx, rejected) // on a busy machine the first try can time out
		}
		t.Expect(list).To(beRejected(anonymousList), fmt.Sprint(t.ChangeLimit())+" later")
		if !t.Spares() {
			anonymous := t.As(check.Anonymous).Describe(ctx, known)
			t.Poll(ctx, func() bool {
				list = revoked.Describe(ctx, known)
				return scenario.Falsify(list, beRejected(anonymous)) == nil
			})
			t.Expect(list).To(beRejected(anonymous), fmt.Sprint(t.ChangeLimit())+" later")
		}
	})
	if t.HasFindings() {
		return
	}
	reached = append(reached, accountsExcept(t, check.Anonymous)...)
	t.Expect(reached).To(BeEmpty(), check.Mismatch("calls with bad credentials", "none to reach the site as an account", fmt.Sprintf("calls of %s", match.Abbreviate(reached))))
}

// revokedLooks is how often revoked credentials list until they must be refused, where the run spares the bridge: each may count
// as a wrong password.
const revokedLooks = 4

// wrongByMCP tests that wrong credentials of an account run and show nothing as it over MCP, in a session of its own and in another.
func wrongByMCP(ctx context.Context, t *check.T, who check.Identity, wrong check.Credentials, me scenario.Sample) {
	if !t.Claims("mcp") || t.Spares() {
		return
	}
	own, opened := t.As(who).AnyMCP(ctx)
	if !opened {
		return
	}
	var shown []string // to anonymous callers
	if s, opened := t.As(check.Anonymous).AnyMCP(ctx); opened {
		shown = check.ListAllTools(ctx, s).Names()
	}
	own.ListTools(ctx, "") // what is kept of the right credentials is there now
	bad := t.With("wrong credentials", wrong)
	sessions := map[string]*check.Session{"in a session of the right ones": {Client: bad, Revision: own.Revision, ID: own.ID}}
	if s := bad.MCP(ctx, own.Revision); s.Opened.RPCResult() != nil {
		sessions["in another session"] = s
	}
	for what, s := range check.InOrder(sessions) {
		t.Row(bad.Who, me.Name, "over MCP, "+what, func() {
			t.Expect(s.ListTools(ctx, "")).To(match.Conform("a refusal, or what anonymous callers see", func(r *check.Response) string {
				tools, _ := r.RPCResult()["tools"].([]any)
				for _, item := range tools {
					if item, ok := item.(map[string]any); ok && !slices.Contains(shown, check.Tool(item).Name()) {
						return fmt.Sprintf("the tool %q", check.Tool(item).Name())
					}
				}
				return ""
			}))
			t.Drupal.Mark()
			r := s.CallTool(ctx, me.Name, me.Arguments)
			reached := accountsExcept(t, check.Anonymous)
			t.Expect(reached).To(BeEmpty(), check.Mismatch(r.Subject(), "no call to reach the site as an account", "calls of "+match.Abbreviate(reached)))
		})
	}
}

// rightAfterWrong tests that wrong credentials of an account do not keep its right ones from working.
func rightAfterWrong(ctx context.Context, t *check.T, me scenario.Sample) {
	for _, a := range scenario.Authentications(t) {
		who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
		right, wrong := a.Client(t, who).WithoutWaiting(), t.With("wrong credentials", altered(a.Of(who)))
		t.Row(who, "", a.Name+" after a wrong one", func() {
			if !right.List(ctx).Succeeded() || !right.Invoke(ctx, me.Name, me.Arguments).Succeeded() {
				return // access/credentials-forwarded tests that
			}
			wrong.List(ctx)
			t.Expect(right.List(ctx)).To(match.BeSuccess())
			if !t.Spares() { // one whom the bridge has never seen
				newcomer := t.Drupal.NewUser(t.Permissions(check.Agent)...)
				t.With("wrong credentials", altered(a.Of(newcomer))).List(ctx)
				t.Expect(a.Client(t, newcomer).WithoutWaiting().List(ctx)).To(match.BeSuccess(), "for the first time")
			}
			if a.Name == scenario.Password && t.Spares() {
				return // one is counted
			}
			wrong.Invoke(ctx, me.Name, me.Arguments)
			t.Expect(right.Invoke(ctx, me.Name, me.Arguments)).To(match.BeSuccess())
		})
	}
}

// compressedApart lists compressed, each caller alone: who sees other tools gets other bytes.
func compressedApart(ctx context.Context, t *check.T, callers []check.Identity, plain func(check.Identity) *check.Response) {
	zipped := map[check.Identity][]byte{}
	for _, who := range callers {
		r := t.As(who).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"Accept-Encoding": {"gzip"}}})
		if !r.Succeeded() {
			continue
		}
		for other, theirs := range check.InOrder(zipped) {
			if !bytes.Equal(plain(who).Body, plain(other).Body) {
				t.Row(who, "", "a compressed list after that of "+other.String(), func() {
					t.Expect(bytes.Equal(r.Body, theirs)).To(BeFalse(),
						check.Mismatch(r.Subject(), "the caller's own tools", "the bytes of the list of "+other.String()))
				})
			}
		}
		zipped[who] = r.Body
	}
}

func noCrossTalk(ctx context.Context, t *check.T) {
	newCallers := func() []check.Identity {
		return []check.Identity{
			t.Drupal.NewUser(t.Permissions(check.Agent)...),
			t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools),
			t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools, fixtures.AccessContent),
		}
	}
	callers, strangers := newCallers(), newCallers()
	me := scenario.MustFind(t, callers[0], fixtures.WhoAmI)[0]
	special := scenario.DeniedTool(t, callers[1], callers[0])
	scenario.MustGiveResults(ctx, t)
	t.As(check.Agent).Describe(ctx, me.Name).MustSucceed()
	t.As(check.Agent).Invoke(ctx, special, check.Args{}).MustSucceed()
	stranger := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	kinds := slices.DeleteFunc(scenario.Authentications(t), func(a scenario.Authentication) bool { // those that a stranger may list by: others have to, too
		return !t.Poll(ctx, func() bool { return a.Client(t, stranger).List(ctx).Succeeded() })
	})
	var disarm []func()
	for _, r := range []string{route.Methods, route.JSONRPC} { // so that many are in progress at the same time
		disarm = append(disarm, t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: r, Delay: 20 * time.Millisecond}))
	}
	const atATime, cold, fresh = 64, 27, 9
	conversations := make([]conversation, atATime)
	for i := range conversations { // a bridge may tell callers apart by some kinds of credentials, and not by others
		who := callers[i%len(callers)]
		conversations[i] = conversation{who: who, client: t.As(who), name: fmt.Sprintf("no.such.%d.tool", i), describes: i%2 == 0}
		if len(kinds) > 0 {
			conversations[i].client = kinds[i/len(callers)%len(kinds)].Client(t, who)
		}
	}
	check.AtOnce(cold, func(i int) { // while nothing is cached
		conversations[i].list = scenario.Delivered(ctx, t, func() *check.Response { return conversations[i].client.List(ctx) })
	})
	first := make([]conversation, fresh)
	check.AtOnce(fresh, func(i int) { // each call waits for discovery: what is kept of it in between is seen
		who := strangers[i%len(strangers)]
		first[i] = conversation{who: who, me: scenario.Delivered(ctx, t, func() *check.Response { return t.As(who).Invoke(ctx, me.Name, me.Arguments) })}
	})
	check.AtOnce(atATime, func(i int) { sendTopic(ctx, t, &conversations[i], me, special, i/len(callers)%4) })
	for _, end := range disarm {
		end()
	}
	alone := map[check.Identity]conversation{}
	for _, who := range callers {
		alone[who] = conversation{list: t.As(who).List(ctx).MustSucceed(), described: t.As(who).Describe(ctx, me.Name),
			special: t.As(who).Invoke(ctx, special, check.Args{}), seen: t.As(who).Describe(ctx, special)}
		t.Row(who, "", "list, each caller alone", func() { t.Expect(alone[who].list).To(showNoneOf(match.Minus(t.Visible(callers[0]), t.Visible(who)))) })
	}
	if !t.Alone() {
		compressedApart(ctx, t, callers, func(who check.Identity) *check.Response { return alone[who].list })
	}
	for _, item := range conversations {
		item.expect(t, []underLoad{
			{"list", item.list, showSameTools(alone[item.who].list)},
			{"describe", item.described, match.EqualResponse(alone[item.who].described)},
			{"invoke of a tool that some may run", item.special, haveOutcomeOf(alone[item.who].special)},
			{"describe of a tool that some may run", item.seen, haveOutcomeOf(alone[item.who].seen)},
			{"an unknown tool", item.unknown, nameNoOtherTool(item.name)},
			{"invoke of a tool that returns its caller", item.me, nameOnlyCaller(item.who, callers)},
		})
	}
	for _, item := range first {
		item.expect(t, []underLoad{{"invoke, as the first request, of a tool that returns its caller", item.me, nameOnlyCaller(item.who, strangers)}})
	}
	refusedAtOnce(ctx, t, t.As(callers[0]))
	failedAtOnce(ctx, t, t.As(callers[0]))
	cancelledByAnother(ctx, t, t.As(callers[0]), t.As(callers[1]), me)
	if t.Claims("mcp") {
		callsByMCPAtOnce(ctx, t, callers, me)
	}
	t.Row(callers[0], me.Name, "the body arrives after another caller's list", func() {
		r := scenario.Delivered(ctx, t, func() *check.Response {
			return invokeInTwoParts(ctx, t.As(callers[0]), me, func() {
				time.Sleep(10 * time.Millisecond) // for the bridge to read the header
				t.As(callers[1]).List(ctx)
			})
		})
		if r.Status != 0 && r.Status != http.StatusRequestTimeout { // a server of one process waits for the body
			t.Expect(r).To(nameOnlyCaller(callers[0], callers))
		}
	})
	if t.HasFindings() {
		return
	}

	who := scenario.Actors{Callers: callers, Shown: []string{me.Name}, Steps: 2 * scenario.Steps(t), Runs: []check.Invocation{
		{Tool: me.Name, Arguments: client.Encode(me.Arguments)}, {Tool: special, Arguments: []byte("{}")}}}
	wrong := scenario.RunSequence(t, who.Sequence(scenario.Random(t, "access/no-cross-talk")), func() func(scenario.Step) *scenario.Counterexample {
		return func(s scenario.Step) *scenario.Counterexample {
			r := scenario.SendStep(ctx, t, s, who)
			switch {
			case s.Does == scenario.Listing:
				return scenario.Falsify(r, showSameTools(alone[s.Who].list))
			case s.Does == scenario.Describing && s.Tool == me.Name:
				return scenario.Falsify(r, match.EqualResponse(alone[s.Who].described))
			case s.Does == scenario.Invoking && s.Tool == me.Name:
				return scenario.Falsify(r, nameOnlyCaller(s.Who, callers))
			case s.Does == scenario.Invoking:
				return scenario.Falsify(r, haveOutcomeOf(alone[s.Who].special))
			}
			return nil
		}
	})
	if wrong != nil {
		t.Expect(wrong.Actual).To(wrong.Must, wrong.Trail)
	}

	for _, path := range []string{check.ListPath + "/", check.ListPath + "?", "/mcp//tools/list", "//mcp/tools/list", "/mcp/tools/LIST", "/mcp/tools/./list",
		check.ListPath + ".json", check.ListPath + ";a=b", "/mcp/tools%2Flist"} { // a cache may take them for one
		if t.As(callers[0]).Send(ctx, check.Request{Path: path}).Is(http.StatusNotFound) {
			continue
		}
		for _, who := range []check.Identity{callers[1], check.Anonymous} {
			t.Row(who, "", "GET "+path+" after another caller", func() {
				t.Expect(t.As(who).Send(ctx, check.Request{Path: path})).To(showNoneOf(match.Minus(t.Visible(callers[0]), t.Visible(who))))
			})
		}
	}
	if len(kinds) > 0 && kinds[0].Name == scenario.Password {
		pair := newCallers()
		listOfTwo(ctx, t, pair[1], pair[0])
	}
	for _, a := range kinds {
		for _, who := range callers { // one right after the other, while the first is cached
			r := listWithOddCookie(ctx, t, who, a)
			if !r.Succeeded() {
				r = a.Client(t, who).List(ctx)
			}
			t.Row(who, "", "list, authenticated by "+a.Name, func() { t.Expect(r).To(showSameTools(alone[who].list)) })
		}
		for _, who := range callers {
			if r := a.Client(t, who).Invoke(ctx, me.Name, me.Arguments); r.Succeeded() {
				t.Row(who, me.Name, "invoke of a tool that returns its caller, authenticated by "+a.Name, func() { t.Expect(r).To(nameOnlyCaller(who, callers)) })
			}
		}
	}
}

// listWithOddCookie lists with a cookie that says nothing of the caller, before the session where that is one: a cache that looks at the
// first cookie takes all callers for one.
func listWithOddCookie(ctx context.Context, t *check.T, who check.Identity, a scenario.Authentication) *check.Response {
	const odd = "theme=dark"
	creds, header := a.Of(who), http.Header{"Accept-Language": {"fy"}} // nor may the language be all that a cache looks at
	if creds.Cookie != "" {
		creds.Cookie = odd + "; " + creds.Cookie
	} else {
		header.Set("Cookie", odd)
	}
	return t.With(who, creds).Send(ctx, check.Request{Path: check.ListPath, Header: header})
}

// listOfTwo lists as two callers at once, and then as the first alone, who sees less: where one part of a bridge reads the first of two
// headers and another the last, the first caller is shown what the other may see.
func listOfTwo(ctx context.Context, t *check.T, less, more check.Identity) {
	both := http.Header{}
	for _, who := range []check.Identity{less, more} {
		creds, _ := t.CredentialsOf(who)
		both.Add("Authorization", "Basic "+client.Basic(creds.User, creds.Password))
	}
	t.As(check.Anonymous).Send(ctx, check.Request{Path: check.ListPath, Header: both})
	t.Row(less, "", "list, after one with the credentials of two callers", func() {
		t.Expect(t.As(less).List(ctx)).To(showNoneOf(match.Minus(t.Visible(more), t.Visible(less))))
	})
}

func credentialsKeptSecret(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(check.Agent).Invoke(ctx, known, check.Args{}).MustSucceed()
	var secrets []string
	for _, who := range []check.Identity{check.Agent, check.Outsider, check.Service} {
		creds, _ := t.CredentialsOf(who)
		secrets = append(secrets, creds.Secrets()...)
		for _, token := range check.UserOf(t.Drupal.Site(), who).Tokens {
			secrets = append(secrets, token.Value)
		}
	}
	wrong := check.Credentials{User: string(check.Agent), Password: "wrong-but-secret"}
	if t.Spares() {
		wrong = check.WrongCredentials
	}
	secrets = append(secrets, wrong.Secrets()...)
	for _, r := range scenario.SendRefusals(ctx, t) {
		t.Row(r.Who, "", r.What, func() { t.Expect(r.Response).NotTo(match.HoldSecret(secrets)) })
	}
	t.Each([]*check.Response{t.As(check.Agent).List(ctx), t.As(check.Agent).Describe(ctx, known), t.As(check.Agent).Invoke(ctx, known, check.Args{}),
		t.As(check.Agent).Send(ctx, check.Request{Method: http.MethodTrace, Path: check.ListPath}),
		t.With("wrong password", wrong).List(ctx), t.With("wrong password", wrong).Invoke(ctx, known, check.Args{}),
		t.With("an unknown scheme", check.Credentials{Header: map[string]string{"Authorization": "Negotiate " + secretOfScheme}}).List(ctx)},
		func(r *check.Response) { t.Expect(r).NotTo(match.HoldSecret(append(secrets, secretOfScheme))) })
	if own, _ := t.CredentialsOf(check.Agent); own.User != "" && !t.Spares() { // which an error may repeat so that it can be seen what is wrong
		pair := own.User + ":" + own.Password
		unpadded := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(pair)), "=")
		for what, header := range check.InOrder(map[string]string{"without padding": unpadded, "without base64": pair,
			"with a blank within": unpadded[:8] + " " + unpadded[8:], "without a colon": base64.StdEncoding.EncodeToString([]byte(own.Password))}) {
			t.Row(check.Agent, "", "malformed credentials, "+what, func() {
				r := t.With("malformed credentials", check.Credentials{Header: map[string]string{"Authorization": "Basic " + header}}).List(ctx)
				t.Expect(r).NotTo(match.HoldSecret(append(secrets, unpadded, header)))
			})
		}
	}
	for name, creds := range check.InOrder(agentAuthentications(t)) {
		caller := t.With(check.Identity(name), creds)
		t.Each([]*check.Response{caller.List(ctx), caller.Describe(ctx, scenario.NoSuchTool), caller.Invoke(ctx, known, check.Args{}),
			caller.Invoke(ctx, scenario.NoSuchTool, check.Args{})},
			func(r *check.Response) { t.Expect(r).NotTo(match.HoldSecret(append(secrets, creds.Secrets()...))) })
	}
	for _, a := range scenario.Authentications(t) {
		creds := a.Of(check.Outsider)
		denied := t.With("the outsider with "+check.Identity(a.Name), creds)
		t.Each([]*check.Response{denied.List(ctx), denied.Invoke(ctx, known, check.Args{})}, func(r *check.Response) {
			t.Expect(r).NotTo(match.HoldSecret(append(secrets, creds.Secrets()...)))
		})
	}
	stranger := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	creds, _ := t.CredentialsOf(stranger)
	t.Each(sendRefusalsByMCP(ctx, t), func(r *check.Response) { t.Expect(r).NotTo(match.HoldSecret(secrets)) })
	for what, f := range check.InOrder(map[string]mockdrupal.Fault{
		"resets connections": {Kind: fault.Reset},
		"sends error pages":  {Kind: fault.HTML, Status: http.StatusInternalServerError},
	}) {
		disarm := t.Drupal.Arm(f)
		for _, r := range []*check.Response{t.As(check.Agent).Invoke(ctx, known, check.Args{}), t.As(stranger).List(ctx)} {
			t.Row(r.Who, "", "while the site "+what, func() { t.Expect(r).NotTo(match.HoldSecret(append(secrets, creds.Secrets()...))) })
		}
		disarm()
	}
	scenario.WaitRecovered(ctx, t, check.AsAgent(known))
}

func perCredential(ctx context.Context, t *check.T) {
	wide, narrow := newTokens(t.Drupal, t.Permissions(check.Agent), []string{fixtures.UseJSONRPC, fixtures.DiscoverTools})
	one, two := t.With("the wide token", check.Credentials{Token: wide}).Waiting(), t.With("the narrow token", check.Credentials{Token: narrow}).Waiting()
	special := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	if !slices.Contains(t.As(check.Agent).MustListAll(ctx).Names(), special) {
		check.BlockedBy(check.Finding{Subject: "the agent does not see " + special}, "access/filtered-by-method")
	}
	t.As(check.Agent).Describe(ctx, special).MustSucceed()
	t.As(check.Agent).Invoke(ctx, special, check.Args{}).MustSucceed()
	for range 2 { // each after the other, with an empty and with a filled cache
		full, few := one.MustListAll(ctx).Names(), two.MustListAll(ctx).Names()
		t.For(one.Who, special, func() {
			t.Expect(full).To(ContainElement(special), check.Mismatch("list with the wide token", fmt.Sprintf("%q in it", special), fmt.Sprintf("%d tools without it", len(full))))
			t.Expect(one.Describe(ctx, special)).To(match.HaveStatus(200))
			t.Expect(one.Invoke(ctx, special, check.Args{})).To(match.BeSuccess())
		})
		t.For(two.Who, special, func() {
			if t.Claims("visibility-filtered") {
				t.Expect(few).NotTo(ContainElement(special), check.Mismatch("list with the narrow token", fmt.Sprintf("no %q in it", special), fmt.Sprintf("it among %d tools", len(few))))
				t.Expect(two.Describe(ctx, special)).To(match.BeRefusedWith(403, 404))
			}
			t.Drupal.Mark()
			r := two.Invoke(ctx, special, check.Args{})
			t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
}

// secretOfScheme is what follows an unknown scheme.
const secretOfScheme = "wrong-but-secret-ticket"

// agentAuthentications are the agent's credentials besides those that the run uses, and a wrong token.
func agentAuthentications(t *check.T) map[string]check.Credentials {
	credentials := map[string]check.Credentials{}
	if t.Claims("auth-bearer") {
		credentials["a wrong token"] = check.Credentials{Token: "wrong-but-secret-token"}
		for _, item := range check.UserOf(t.Drupal.Site(), check.Agent).Tokens {
			credentials["a token"] = check.Credentials{Token: item.Value}
		}
	}
	if t.Claims("auth-cookie") {
		credentials["a wrong session"] = check.Credentials{Cookie: "SESS0123456789abcdef0123456789abcdef=wrong-but-secret-session"}
		credentials["a session"] = check.Credentials{Cookie: t.Drupal.Session(check.Agent)}
	}
	return credentials
}

// victim is an account that bad credentials try to act as: with a mock an unused one, else the agent. Where the run spares the
// bridge it is the same in every run, so that a bridge which remembers what was refused counts that once, unless it has locked it.
func victim(ctx context.Context, t *check.T) (check.Identity, check.Credentials) {
	who := check.Agent
	long := func(who check.Identity) check.Identity {
		if !t.Upstream.Proxy { // a real site reads no more than its hash does
			setPassword(t, who, check.UserOf(t.Drupal.Site(), who).Password+strings.Repeat("-long", 30)) // longer than what any hash reads
		}
		return who
	}
	if t.Drupal != nil && t.Spares() {
		who = long(t.Drupal.NewUserNamed("bridgecheck-guessed", t.Permissions(check.Agent)...))
	}
	if t.Drupal != nil && (!t.Spares() || !t.As(who).WithoutWaiting().List(ctx).Succeeded()) {
		who = long(t.Drupal.NewUser(t.Permissions(check.Agent)...))
	}
	creds, _ := t.CredentialsOf(who)
	if creds.User == "" && creds.Token == "" && creds.Cookie == "" {
		check.NotTestable("the agent authenticates neither by Basic nor by a token nor by a session: no bad credentials can be derived")
	}
	return who, creds
}

// wrongDuringRight lists with a wrong password while the first list of the same account with the right one is on its way: requests
// that share a fetch must have the same credentials.
func wrongDuringRight(ctx context.Context, t *check.T, anonymous *check.Response) {
	who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	creds, _ := t.CredentialsOf(who)
	if creds.User == "" {
		return
	}
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.Methods, User: string(who), Delay: 200 * time.Millisecond})
	defer disarm()
	var listing sync.WaitGroup
	defer listing.Wait()
	t.Drupal.Mark()
	listing.Go(func() {
		defer t.Recover()
		t.As(who).List(ctx)
	})
	check.Within(ctx, time.Second, func() bool { return len(t.Drupal.Journal()) > 0 })
	name := "a wrong password, while a list with the right one is on its way"
	t.For(check.Identity(name), "", func() {
		t.Expect(t.With(check.Identity(name), check.Credentials{User: creds.User, Password: creds.Password + "x"}).List(ctx)).To(beRejected(anonymous))
	})
}

// hashReads is how many bytes of a password bcrypt reads, by which a Drupal stores it: the site itself takes one that differs behind them.
const hashReads = 72

// badCredential is credentials that must not authenticate.
type badCredential struct {
	name  string
	creds check.Credentials
}

// closest are the wrong credentials that every endpoint gets, also where the run spares the bridge.
var closest = map[string]bool{"a token cut short": true}

// wrongPasswords are those that the agent's account gets where the run spares the bridge, which a site locks after five, and to which
// endpoint each goes.
var wrongPasswords = map[string]int{"a wrong password": 0, "letters that fold to the password's": 1, "the password in capitals": 1, "blanks around the password": 2}

// spared are the names of the wrong credentials that a bridge does not get where the run spares it: the others show the same
// faults, or name an account, which a site and a bridge lock after a few failures.
var spared = map[string]bool{"another account's password": true, "no password": true, "no user": true, "an unknown user": true,
	"base64 cut short": true, "base64 in capitals": true, "no base64": true, "no base64 characters": true, "no colon": true, "a NUL after the user": true,
	"nothing after the scheme": true, "an unknown scheme": true, "the scheme alone": true, "no scheme": true, "a digest": true, "the user's name as token": true,
	"Basic credentials as token": true, "the account's token cut short": true, "a session cut short": true}

// spare leaves out what is spared, and all but the first of each name.
func spare(t *check.T, all []badCredential) []badCredential {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(bad badCredential) bool {
		token := bad.name == "an unsigned JWT" || strings.HasSuffix(bad.name, "blocked token")
		again := seen[bad.name] || token && !t.Claims("auth-bearer")
		seen[bad.name] = true
		return again || spared[bad.name]
	})
}

// rejectedCredentials are close to those of the victim. Where the run spares the bridge only one of them names the victim,
// since a site locks accounts after a few failures; the others are close to those of another or an unknown account.
func rejectedCredentials(t *check.T, victim check.Identity, creds check.Credentials) []badCredential {
	user, password := creds.User, creds.Password
	if user == "" || t.Spares() {
		user, password = check.WrongCredentials.User, check.WrongCredentials.Password
	}
	whole := client.Basic(user, password)
	all := []badCredential{{"a wrong token", check.Credentials{Token: "no-such-token"}}}
	if creds.User != "" {
		wrong := creds.Password + "x"
		if t.Drupal == nil && len(wrong) > hashReads {
			wrong = "x" + creds.Password
		}
		all = append(all, badCredential{"a wrong password", check.Credentials{User: creds.User, Password: wrong}})
	}
	if creds.User != "" && t.Drupal != nil {
		right := creds.Password
		for what, close := range check.InOrder(map[string]string{
			"the password in capitals": strings.ToUpper(right), "a password cut short": right[:len(right)-1], "a colon and more behind the password": right + ":x", "a blank behind the password": right + " ",
			"a blank before the password": " " + right, "blanks around the password": " " + right + " ", "a line end behind the password": right + "\n", "letters that fold to the password's": strings.ReplaceAll(right, "s", "ſ"),
		}) {
			if _, gets := wrongPasswords[what]; gets || !t.Spares() {
				all = append(all, badCredential{what, check.Credentials{User: creds.User, Password: close}})
			}
		}
	}
	if creds.Token != "" {
		all = append(all, badCredential{"a token cut short", check.Credentials{Token: creds.Token[:len(creds.Token)-1]}})
	}
	if t.Drupal != nil && t.Claims("auth-bearer") && creds.Token == "" {
		for _, item := range check.UserOf(t.Drupal.Site(), victim).Tokens {
			all = append(all, badCredential{"the account's token cut short", check.Credentials{Token: item.Value[:len(item.Value)-1]}},
				badCredential{"the account's token and more", check.Credentials{Token: item.Value + "x"}},
				badCredential{"the account's token with = behind it", check.Credentials{Token: item.Value + "="}},
				badCredential{"the account's token in capitals", check.Credentials{Token: strings.ToUpper(item.Value)}})
		}
	}
	session := creds.Cookie
	if session == "" && t.Drupal != nil && t.Claims("auth-cookie") && slices.Contains(t.Drupal.Site().Auth.JSONRPC, "cookie") {
		session = t.Drupal.Session(victim)
	}
	if session != "" {
		all = append(all, badCredential{"a session cut short", check.Credentials{Cookie: session[:len(session)-1]}},
			badCredential{"a session and more", check.Credentials{Cookie: session + "x"}})
	}
	for name, header := range check.InOrder(map[string]string{
		"no password":                "Basic " + client.Basic(user, ""),
		"no user":                    "Basic " + client.Basic("", password),
		"an unknown user":            "Basic " + client.Basic(check.WrongCredentials.User, password),
		"base64 cut short":           "Basic " + whole[:len(whole)/2],
		"base64 in capitals":         "Basic " + strings.ToUpper(whole),
		"no base64":                  "Basic " + user + ":" + password,
		"no base64 characters":       "Basic %%%%",
		"no colon":                   "Basic " + base64.StdEncoding.EncodeToString([]byte(user)),
		"a NUL after the user":       "Basic " + client.Basic(user+"\x00", password),
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
		all = append(all, badCredential{name, check.Credentials{Header: map[string]string{"Authorization": header}}})
	}
	all = append(all,
		badCredential{"an unknown session", check.Credentials{Cookie: "SESS0123456789abcdef0123456789abcdef=no-such-session"}},
		badCredential{"names and addresses in headers", check.Credentials{Header: map[string]string{
			"X-Forwarded-User": user, "Remote-User": user, "X-Remote-User": user, "X-User": user, "X-Auth-Request-User": user, "X-Webauth-User": user,
			"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1", "True-Client-Ip": "127.0.0.1", "Forwarded": "for=127.0.0.1"}}})
	if t.Drupal != nil {
		for _, u := range t.Drupal.Site().Users {
			if u.Blocked {
				all = append(all, badCredential{"a blocked account", check.Credentials{User: u.Name, Password: u.Password}})
			}
			for _, item := range u.Tokens {
				if item.Revoked || !item.Expires.IsZero() && item.Expires.Before(time.Now()) || u.Blocked {
					all = append(all, badCredential{"an expired, revoked or blocked token", check.Credentials{Token: item.Value}})
				}
			}
		}
		all = append(all, badCredential{"another account's password", check.Credentials{User: string(victim), Password: check.UserOf(t.Drupal.Site(), check.Agent2).Password}})
	}
	if t.Spares() {
		return spare(t, all)
	}
	return all
}

// revoke changes the password of an account of NewUser, ends its sessions and revokes its tokens. Those of an authorization
// server are valid until they expire: there the account is blocked.
func revoke(t *check.T, who check.Identity) {
	t.Drupal.Mock.EndSessions(string(who))
	t.Drupal.ChangePeople(func(site *fixtures.Site) {
		for i := range site.Users {
			u := &site.Users[i]
			if u.Name != string(who) {
				continue
			}
			u.Password += "-changed"
			u.Blocked = t.Claims(check.OAuth)
			for i := range u.Tokens {
				u.Tokens[i].Revoked = true
			}
		}
	})
}

// newTokens creates an account with two tokens: one with all of its permissions, one limited to a few.
func newTokens(d *site.Drupal, all, few []string) (wide, narrow string) {
	who := string(d.NewUser(all...))
	wide, narrow = site.TokenHead+who+"-wide-token", site.TokenHead+who+"-narrow-token"
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

// callsByMCPAtOnce tests that tools/call of several callers at the same time run each as its own.
func callsByMCPAtOnce(ctx context.Context, t *check.T, callers []check.Identity, me scenario.Sample) {
	const atATime = 12
	var sessions []*check.Session
	for _, who := range callers {
		s, opened := t.As(who).AnyMCP(ctx)
		if !opened {
			return
		}
		sessions = append(sessions, s)
	}
	responses := make([]*check.Response, atATime)
	check.AtOnce(atATime, func(i int) { responses[i] = sessions[i%len(sessions)].CallTool(ctx, me.Name, me.Arguments) })
	for i, r := range responses {
		who := callers[i%len(callers)]
		others := slices.DeleteFunc(slices.Clone(callers), func(other check.Identity) bool { return other == who })
		t.Row(who, me.Name, "tools/call of a tool that returns its caller, several at once", func() {
			t.Expect(r).NotTo(match.ContainAnyOf(names(others), "to name another caller"))
		})
	}
}

func names(who []check.Identity) []string {
	var all []string
	for _, w := range who {
		all = append(all, string(w))
	}
	return all
}

// cancelledByAnother tests that a caller's notifications/cancelled over MCP does not end another's call whose request has the same id.
func cancelledByAnother(ctx context.Context, t *check.T, owner, other check.Client, me scenario.Sample) {
	if !t.Claims("mcp") {
		return
	}
	own, opened := owner.AnyMCP(ctx)
	others, also := other.AnyMCP(ctx)
	if !opened || !also || own.Revision.Stateless() || others.Revision.Stateless() {
		return // the revision without sessions defines no such notification over HTTP
	}
	const id, long = 77, 200 * time.Millisecond
	call := map[string]any{"name": me.Name, "arguments": me.Arguments}
	run := func() *check.Response {
		return own.Send(ctx, own.Message(id, "tools/call", call), own.Headers("tools/call", call))
	}
	cancelled := map[string]any{"requestId": id}
	beside := func() (r *check.Response) {
		defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Delay: long})()
		t.Drupal.Mark()
		check.AtOnce(2, func(i int) {
			if i == 0 {
				r = run()
				return
			}
			check.Within(ctx, long, func() bool {
				return slices.ContainsFunc(t.Drupal.Journal(), func(e mockdrupal.Entry) bool { return e.Route == route.JSONRPC })
			})
			others.Send(ctx, others.Message(nil, "notifications/cancelled", cancelled), others.Headers("notifications/cancelled", cancelled))
		})
		return r
	}
	succeeded := func(r *check.Response) bool {
		ok, _ := match.BeToolResult().Match(r)
		return ok
	}
	r := beside()
	if !succeeded(r) {
		if !succeeded(run()) {
			return // the call does not succeed without the other, either: mcp/parity tests that
		}
		r = beside() // a call that timed out on a busy machine succeeds now
	}
	t.Row(owner.Who, me.Name, "tools/call while another caller cancels a request of the same id", func() { t.Expect(r).To(match.BeToolResult()) })
}
