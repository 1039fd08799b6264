package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// allowedNotExecuted is discoveryNotExecution for allowed calls on a site whose methods are known.
func allowedNotExecuted(ctx context.Context, t *harness.T) {
	denied := scenario.AllowedDenied(t, harness.Discoverer)
	t.Call(ctx, denied).MustSucceed()
	t.As(harness.Discoverer).List(ctx).MustSucceed()
	t.Row(harness.Discoverer, denied.Tool, "a caller that may discover and may not run", func() {
		t.Mark()
		r := t.As(harness.Discoverer).InvokeBody(ctx, denied.Body())
		t.Expect(r).To(beRefusal())
		t.Expect(r).To(match.HaveRunNothing())
	})
	for _, call := range scenario.Allowed(t) {
		if m := scenario.MethodOf(t, call.Tool); m != nil && t.Site.MayRun(harness.Outsider, m) {
			t.Call(ctx, call).MustSucceed()
			t.Row(harness.Outsider, call.Tool, "a caller that may run and may not discover", func() {
				t.Expect(t.As(harness.Outsider).InvokeBody(ctx, call.Body())).To(match.BeSuccess())
			})
			return
		}
	}
	if !t.HasFindings() {
		harness.NotTestable("it needs a tool that outsider may run: allow a call of one under `invocations`")
	}
}

// allowedOfNobody is routePermission for allowed calls: by callers who may not use JSON-RPC on the site.
func allowedOfNobody(ctx context.Context, t *harness.T) {
	if t.Site == nil {
		harness.NotTestable(harness.NeedsSite)
	}
	tested := 0
	for _, call := range scenario.Allowed(t) {
		t.Call(ctx, call).MustSucceed()
		for _, who := range t.Callers(harness.NoRPC, harness.Blocked, harness.Anonymous) {
			if t.Site.Unknown(who) != "" || t.Site.MayUse(who) {
				continue
			}
			tested++
			t.For(who, call.Tool, func() {
				t.Mark()
				r := t.As(who).InvokeBody(ctx, call.Body())
				t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
				t.Expect(r).To(match.HaveRunNothing())
			})
		}
	}
	if tested == 0 {
		harness.NotTestable("the site lets everybody use JSON-RPC: give credentials of an account without `use jsonrpc services` as norpc")
	}
}

// allowedWithoutCrossTalk is noCrossTalk for an allowed call. The recording proxy responds to it in place of the site, with
// another result for each caller.
func allowedWithoutCrossTalk(ctx context.Context, t *harness.T) {
	scenario.AllowedCall(ctx, t)
	calls := scenario.AllowedReturning(ctx, t, `"a text"`)
	if len(calls) == 0 {
		harness.NotTestable("no allowed tool may return a text: allow a call of a tool without outputSchema under `invocations`")
	}
	call := calls[0]
	var callers []harness.Identity
	names := map[string]bool{}
	own := func(who harness.Identity) string { return fmt.Sprintf("%q", "the result of "+who.String()) }
	for _, who := range t.Callers(harness.Agent, harness.Agent2, harness.Service, harness.Admin) {
		name := scenario.CallerAtSite(t, who)
		if _, shown := t.As(who).ListAll(ctx).Find(call.Tool); !shown || names[name] {
			continue
		}
		names[name] = true
		t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, User: name, Body: own(who), Delay: overlap})
		callers = append(callers, who)
	}
	if len(callers) < 2 {
		harness.NotTestable("it needs two callers who see " + call.Tool + ": give credentials of agent2")
	}
	alone := map[harness.Identity]conversation{}
	for _, who := range callers {
		c := t.As(who)
		alone[who] = conversation{list: c.List(ctx).MustSucceed(), described: c.Describe(ctx, call.Tool).MustSucceed()}
	}
	if t.Site != nil && t.Site.Unknown(harness.Discoverer) == "" {
		foreign := match.Minus(t.Visible(callers[0]), t.Visible(harness.Discoverer))
		t.Row(harness.Discoverer, "", "list, each caller alone", func() { t.Expect(t.As(harness.Discoverer).List(ctx)).To(showNoneOf(foreign)) })
	}
	const atATime, topics = 64, 4
	conversations := make([]conversation, atATime)
	harness.AtOnce(atATime, func(i int) {
		who := callers[i%len(callers)]
		item := conversation{who: who, name: fmt.Sprintf("no.such.%d.tool", i)}
		c := t.As(who)
		delivered := func(ask func() *harness.Response) *harness.Response { return scenario.Delivered(ctx, t, ask) }
		switch i / len(callers) % topics {
		case 0:
			item.list = delivered(func() *harness.Response { return c.List(ctx) })
		case 1:
			item.described = delivered(func() *harness.Response { return c.Describe(ctx, call.Tool) })
		case 2:
			item.unknown = delivered(func() *harness.Response { return c.Invoke(ctx, item.name, harness.Args{}) })
		}
		item.me = delivered(func() *harness.Response { return c.InvokeBody(ctx, call.Body()) })
		conversations[i] = item
	})
	for _, item := range conversations {
		for _, got := range []struct {
			name     string
			response *harness.Response
			must     OmegaMatcher
		}{
			{"list", item.list, showSameTools(alone[item.who].list)},
			{"describe", item.described, match.EqualResponse(alone[item.who].described)},
			{"invoke of an unknown tool", item.unknown, nameNoOtherTool(item.name)},
			{"invoke of a tool with a result for each caller", item.me, match.GiveResult(own(item.who))},
		} {
			if got.response == nil || got.response.Status == 0 || got.response.Status >= http.StatusBadGateway {
				continue // not sent, or failed under load, which load/concurrent-exact tests
			}
			t.Row(item.who, "", got.name+", 64 at once", func() { t.Expect(got.response).To(got.must) })
		}
	}
}

// allowedKeepSecrets is credentialsKeptSecret with an allowed call.
func allowedKeepSecrets(ctx context.Context, t *harness.T) {
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()
	wrong := harness.Credentials{User: harness.WrongCredentials.User, Password: "wrong-but-secret"} // of no account, which Drupal would lock
	secrets := wrong.Secrets()
	for _, creds := range t.Credentials {
		secrets = append(secrets, creds.Secrets()...)
	}
	if len(secrets) == len(wrong.Secrets()) {
		harness.NotTestable("no caller of the run has credentials: give those of the agent")
	}
	responses := []*harness.Response{t.As(harness.Agent).List(ctx), t.As(harness.Agent).Describe(ctx, call.Tool), t.Call(ctx, call),
		t.With("wrong password", wrong).List(ctx), t.With("wrong password", wrong).Invoke(ctx, scenario.NoSuchTool, harness.Args{})}
	if t.Upstream != nil {
		disarm := t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Reset})
		responses = append(responses, t.Call(ctx, call))
		disarm()
	}
	t.Each(responses, func(r *harness.Response) { t.Expect(r).NotTo(holdSecret(secrets)) })
	for _, r := range scenario.SendRefusals(ctx, t) {
		t.Row(r.Who, "", r.What, func() { t.Expect(r.Response).NotTo(holdSecret(secrets)) })
	}
	scenario.WaitRecovered(ctx, t, call)
}

// grantedToAnonymous is anonymousGranted on a site that shows anonymous callers methods already.
func grantedToAnonymous(ctx context.Context, t *harness.T) {
	if t.Site == nil {
		harness.NotTestable(harness.NeedsSite)
	}
	if t.Site.Unknown(harness.Anonymous) != "" || !t.Site.MayUse(harness.Anonymous) {
		harness.NotTestable("the site does not let anonymous callers use JSON-RPC: put the mock Drupal there (--mock-listen or --exec)")
	}
	visible := t.Visible(harness.Anonymous)
	i := slices.IndexFunc(t.Invocations, func(call harness.Invocation) bool { return call.Succeeds() && slices.Contains(visible, call.Tool) })
	if i < 0 {
		harness.NotTestable("it needs a tool that anonymous callers may run: allow a call of one under `invocations`")
	}
	call := t.Invocations[i]
	anonymous := t.As(harness.Anonymous)
	list := anonymous.ListAll(ctx)
	if first := list.Pages[0]; first.Status == http.StatusUnauthorized || first.Status == http.StatusForbidden {
		harness.NotTestable("the bridge refuses anonymous callers, and it is not known whether they may discover tools: put the mock Drupal there (--mock-listen or --exec)")
	}
	t.Expect(list.Names()).To(ContainElement(call.Tool), harness.Mismatch("list as anonymous", fmt.Sprintf("%q", call.Tool), fmt.Sprintf("%d tools without it", len(list.Names()))))
	t.Expect(anonymous.Describe(ctx, call.Tool)).To(match.HaveStatus(200))
	t.Expect(anonymous.InvokeBody(ctx, call.Body())).To(match.BeSuccess())
}

// overlap is how long each call takes, so that many are in progress at the same time.
const overlap = 20 * time.Millisecond
