package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func credentialsForwarded(ctx context.Context, t *check.T) {
	fresh := unusualAccount(t, 0)
	changeAccount(t, fresh, func(u *fixtures.User) {
		u.Password, u.Tokens[0].Value = traps.Passwords[3], traps.Tokens[1][0]+u.Tokens[0].Value+traps.Tokens[1][1]
	})
	me := scenario.MustFind(t, fresh, fixtures.WhoAmI)[0]
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	control := t.As(check.Agent).Invoke(ctx, me.Name, me.Arguments)
	if !control.Succeeded() { // the journal shows whose the calls are whatever else is broken
		t.For(check.Agent, me.Name, func() {
			var r *check.Response
			var others []journal.Entry
			check.Within(ctx, scenario.RefusalsLast, func() bool {
				t.ExpireCaches()
				t.Drupal.Mark()
				r = t.As(check.Agent).Invoke(ctx, me.Name, me.Arguments)
				others = ofOthers(t, check.Agent)
				return len(others) > 0 || len(t.Drupal.Journal()) > 0
			})
			for _, e := range others {
				t.Expect(e.User).To(Equal(string(check.Agent)), asAnother(r, e))
			}
		})
	}
	control.MustSucceed()
	t.ExpireCaches() // so that discovery is seen below
	for _, who := range []check.Identity{check.Agent, check.Agent2, fresh, check.Discoverer, check.Outsider, check.Anonymous, check.Agent} {
		t.For(who, "", func() {
			t.Drupal.Mark()
			t.As(who).List(ctx)
			r := t.As(who).Invoke(ctx, me.Name, me.Arguments)
			t.As(who).Invoke(ctx, denied, check.Args{})
			expectCallsOf(t, who)
			if r.Succeeded() {
				t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), check.Mismatch(r.Subject(), "the method to run on the site", "no run"))
			}
			if !t.ShowsAll() {
				t.Expect(discoverers(t)).NotTo(ContainElement(string(check.Service)), check.Mismatch(fmt.Sprintf("discovery for %s", who), "no service account", "requests of one"))
			}
		})
	}
	for _, a := range scenario.Authentications(t) {
		for _, who := range []check.Identity{check.Agent, fresh} {
			t.Row(who, me.Name, "authenticated by "+a.Name, func() {
				t.Drupal.Mark()
				r := a.Client(t, who).Invoke(ctx, me.Name, me.Arguments)
				expectCallsOf(t, who)
				t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), check.Mismatch(r.Subject(), "the method to run on the site as "+who.String(), r.Outcome()))
			})
		}
		forwardedByMCP(ctx, t, a, me)
	}
	unusualCredentialsForwarded(ctx, t, me)
	deniedCallsKeepTheCaller(ctx, t, denied, me)
	cookiesStayWithTheCaller(ctx, t, me)
}

// forwardedByMCP tests that tools/call forwards each kind of credentials that the three endpoints take.
func forwardedByMCP(ctx context.Context, t *check.T, a scenario.Authentication, me scenario.Sample) {
	if !t.Claims("mcp") {
		return
	}
	s, opened := a.Client(t, check.Agent).AnyMCP(ctx)
	t.Row(check.Agent, me.Name, "by tools/call, authenticated by "+a.Name, func() {
		if !opened {
			if _, usual := t.As(check.Agent).AnyMCP(ctx); usual { // else mcp/initialize fails
				t.Blame(s.Opened)
				t.Fail(check.Mismatch("MCP as agent, authenticated by "+a.Name, "a session, as the three endpoints take these credentials", s.Opened.RPCOutcome()))
			}
			return
		}
		t.Drupal.Mark()
		r := s.CallTool(ctx, me.Name, me.Arguments)
		expectCallsOf(t, check.Agent)
		t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), check.Mismatch(r.Subject(), "the method to run on the site as "+check.Agent.String(), r.RPCOutcome()))
	})
}

// ofOthers are the calls that reached the site as another account than that of a caller; and the requests for methods, where all
// requests came as others: then it is the bridge that does not forward who calls.
func ofOthers(t *check.T, who check.Identity) []journal.Entry {
	own := func(e journal.Entry) bool { return e.User == string(who) }
	entries := t.Drupal.Journal()
	known := slices.ContainsFunc(entries, own)
	return slices.DeleteFunc(scenario.ForCallers(t, entries), func(e journal.Entry) bool {
		return own(e) || known && e.Route != route.JSONRPC
	})
}

// unusualCredentialsForwarded tests right credentials that a bridge changes if it takes them apart: a password with colons
// and other characters, and a session cookie or any other credentials beside the cookies that a browser sends along.
func unusualCredentialsForwarded(ctx context.Context, t *check.T, me scenario.Sample) {
	who := unusualAccount(t, 1)
	forwarded := func(who check.Identity, what string, creds check.Credentials) {
		t.Row(who, me.Name, what, func() {
			t.Drupal.Mark()
			r := t.With(who, creds).Waiting().Invoke(ctx, me.Name, me.Arguments)
			expectCallsOf(t, who)
			t.Expect(t.Drupal.Runs(me.ID)).NotTo(BeEmpty(), check.Mismatch(r.Subject(), "the method to run on the site as "+who.String(), r.Outcome()))
		})
	}
	// The value of one has characters that RFC 6265 does not allow: browsers send it all the same.
	const before, after = "has_js=1; prefs={\"a\":1}; consent={stamp:'x=',necessary:true}; rate=100%; ", "last=yes"
	cookies := map[string]string{"Cookie": before + after}
	for _, a := range scenario.Authentications(t) {
		switch creds := a.Of(who); {
		case creds.Token != "":
			if t.Claims("auth-bearer") {
				creds.Token = traps.Tokens[0][0] + creds.Token + traps.Tokens[0][1]
				changeAccount(t, who, func(u *fixtures.User) { u.Tokens[0].Value = creds.Token })
			}
			forwarded(who, "a long token beside cookies", check.Credentials{Token: creds.Token, Header: cookies})
		case creds.Cookie != "":
			forwarded(who, "a session beside other cookies", check.Credentials{Cookie: before + creds.Cookie + "; " + after})
		case creds.User != "":
			for i, what := range []string{"a password with colons", "a password with directives", "a long password with signs"} {
				setPassword(t, who, traps.Passwords[i])
				forwarded(who, what, check.Credentials{User: string(who), Password: traps.Passwords[i], Header: cookies})
			}
			named := unusualAccount(t, 2)
			setPassword(t, named, traps.Passwords[4])
			forwarded(named, "a user name with signs and a blank", a.Of(named))
		}
	}
}

// unusualAccount creates an account with one of the names of traps.Users.
func unusualAccount(t *check.T, which int) check.Identity {
	around := traps.Users[which]
	return t.Drupal.NewUserNamed(around[0]+string(t.Drupal.NewUser())+around[1], t.Permissions(check.Agent)...)
}

// setPassword changes the password of an account of NewUser.
func setPassword(t *check.T, who check.Identity, password string) {
	changeAccount(t, who, func(u *fixtures.User) { u.Password = password })
}

func changeAccount(t *check.T, who check.Identity, change func(*fixtures.User)) {
	t.Drupal.ChangePeople(func(site *fixtures.Site) {
		for i := range site.Users {
			if site.Users[i].Name == string(who) {
				change(&site.Users[i])
			}
		}
	})
}

// deniedCallsKeepTheCaller tests that the bridge does not turn to a stronger account when the site denies or fails a call
// of a tool that the bridge still lets the caller run.
func deniedCallsKeepTheCaller(ctx context.Context, t *check.T, denied string, me scenario.Sample) {
	for _, a := range scenario.Authentications(t) {
		who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
		caller := a.Client(t, who)
		caller.List(ctx)
		caller.Invoke(ctx, denied, check.Args{})
		t.Drupal.Permit(who, fixtures.UseJSONRPC, fixtures.DiscoverTools)
		t.Row(who, denied, "the permission is revoked, authenticated by "+a.Name, func() {
			t.Drupal.Mark()
			caller.Invoke(ctx, denied, check.Args{})
			expectCallsOf(t, who)
		})
	}
	failing := scenario.Sampled(t, scenario.Failing(t))
	responses := scenario.InvokeEach(ctx, t, check.Agent, failing)
	for i, tool := range failing {
		t.Row(check.Agent, tool.Name, "the method fails", func() {
			responses.Response(i)
			expectCallsOf(t, check.Agent)
		})
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError} {
		who := check.Agent
		if status == http.StatusUnauthorized {
			who = t.Refusable()
		}
		t.Row(who, me.Name, fmt.Sprintf("the site sends %d", status), func() {
			defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Status, Status: status, Body: "{}", Route: route.JSONRPC, Run: true})()
			t.Drupal.Mark()
			t.As(who).Invoke(ctx, me.Name, me.Arguments)
			expectCallsOf(t, who)
		})
		scenario.WaitRecovered(ctx, t, check.Invocation{Tool: me.Name, Identity: who, Arguments: client.Encode(me.Arguments)})
	}
}

// cookiesStayWithTheCaller tests that a cookie that the site sets in one caller's responses reaches no other caller's
// requests.
func cookiesStayWithTheCaller(ctx context.Context, t *check.T, me scenario.Sample) {
	const name = "bridgecheck_marker"
	defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.SetCookie, User: string(check.Agent), Cookie: name + "={seq}; Path=/"})()
	t.ExpireCaches()
	t.As(check.Agent).List(ctx)
	t.As(check.Agent).Invoke(ctx, me.Name, me.Arguments).MustSucceed()
	for _, who := range []check.Identity{check.Agent2, check.Discoverer, check.Anonymous} {
		t.Row(who, "", "after the site set a cookie for another caller", func() {
			t.Drupal.Mark()
			t.As(who).List(ctx)
			t.As(who).Invoke(ctx, me.Name, me.Arguments)
			for _, entry := range t.Drupal.Journal() {
				sent := slices.ContainsFunc(entry.Cookies, func(c journal.Cookie) bool { return c.Name == name })
				t.Expect(sent).To(BeFalse(), check.Mismatch(fmt.Sprintf("requests to the site for %s", who), "no cookie of another caller", "the cookie that the site set for "+check.Agent.String()))
			}
		})
	}
}

// discoverers are the accounts whose discovery requests reached the site.
func discoverers(t *check.T) []string {
	names := []string{}
	for _, entry := range t.Drupal.Discoveries() {
		names = append(names, entry.User)
	}
	return names
}
