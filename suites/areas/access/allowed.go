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
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// allowedNotExecuted is discoveryNotExecution for allowed calls on a site whose methods are known.
func allowedNotExecuted(ctx context.Context, t *check.T) {
	denied := scenario.AllowedDenied(t, check.Discoverer)
	t.Call(ctx, denied).MustSucceed()
	t.As(check.Discoverer).List(ctx).MustSucceed()
	t.Row(check.Discoverer, denied.Tool, "a caller that may discover and may not run", func() {
		t.Mark()
		r := t.As(check.Discoverer).InvokeBody(ctx, denied.Body())
		t.Expect(r).To(beRefusal())
		t.Expect(r).To(match.HaveRunNothing(t.Upstream))
	})
	for _, call := range scenario.Allowed(t) {
		if m := scenario.MethodOf(t, call.Tool); m != nil && t.Site.MayRun(check.Outsider, m) {
			t.Call(ctx, call).MustSucceed()
			t.Row(check.Outsider, call.Tool, "a caller that may run and may not discover", func() {
				t.Expect(t.As(check.Outsider).InvokeBody(ctx, call.Body())).To(match.BeSuccess())
			})
			return
		}
	}
	if !t.HasFindings() {
		check.NotTestable("it needs a tool that outsider may run: allow a call of one under `invocations`")
	}
}

// allowedOfNobody is routePermission for allowed calls: by callers who may not use JSON-RPC on the site.
func allowedOfNobody(ctx context.Context, t *check.T) {
	if t.Site == nil {
		check.NotTestable(check.NeedsSite)
	}
	tested := 0
	for _, call := range scenario.Allowed(t) {
		t.Call(ctx, call).MustSucceed()
		for _, who := range t.Callers(check.NoRPC, check.Blocked, check.Anonymous) {
			if t.Site.Unknown(who) != "" || t.Site.MayUse(who) {
				continue
			}
			tested++
			t.For(who, call.Tool, func() {
				t.Mark()
				r := t.As(who).InvokeBody(ctx, call.Body())
				t.Expect(r).To(match.BeRefusedWith(401, 403, 404))
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
			})
		}
	}
	if tested == 0 {
		check.NotTestable("the site lets everybody use JSON-RPC: give credentials of an account without `use jsonrpc services` as norpc")
	}
}

// allowedWithoutCrossTalk is noCrossTalk for an allowed call. The recording proxy responds to it in place of the site, with
// another result for each caller.
func allowedWithoutCrossTalk(ctx context.Context, t *check.T) {
	scenario.AllowedCall(ctx, t)
	calls := scenario.AllowedReturning(ctx, t, `"a text"`)
	if len(calls) == 0 {
		check.NotTestable("no allowed tool may return a text: allow a call of a tool without outputSchema under `invocations`")
	}
	call := calls[0]
	var callers []check.Identity
	names := map[string]bool{}
	own := func(who check.Identity) string { return fmt.Sprintf("%q", "the result of "+who.String()) }
	for _, who := range t.Callers(check.Agent, check.Agent2, check.Service, check.Admin) {
		name := scenario.CallerAtSite(t, who)
		if _, shown := t.As(who).ListAll(ctx).Find(call.Tool); !shown || names[name] {
			continue
		}
		names[name] = true
		t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, User: name, Body: own(who), Delay: overlap})
		callers = append(callers, who)
	}
	if len(callers) < 2 {
		check.NotTestable("it needs two callers who see " + call.Tool + ": give credentials of agent2")
	}
	alone := map[check.Identity]conversation{}
	for _, who := range callers {
		c := t.As(who)
		alone[who] = conversation{list: c.List(ctx).MustSucceed(), described: c.Describe(ctx, call.Tool).MustSucceed()}
	}
	if t.Site != nil && t.Site.Unknown(check.Discoverer) == "" {
		foreign := match.Minus(t.Visible(callers[0]), t.Visible(check.Discoverer))
		t.Row(check.Discoverer, "", "list, each caller alone", func() { t.Expect(t.As(check.Discoverer).List(ctx)).To(showNoneOf(foreign)) })
	}
	const atATime, topics = 64, 4
	conversations := make([]conversation, atATime)
	check.AtOnce(atATime, func(i int) {
		who := callers[i%len(callers)]
		item := conversation{who: who, name: fmt.Sprintf("no.such.%d.tool", i)}
		c := t.As(who)
		delivered := func(ask func() *check.Response) *check.Response { return scenario.Delivered(ctx, t, ask) }
		switch i / len(callers) % topics {
		case 0:
			item.list = delivered(func() *check.Response { return c.List(ctx) })
		case 1:
			item.described = delivered(func() *check.Response { return c.Describe(ctx, call.Tool) })
		case 2:
			item.unknown = delivered(func() *check.Response { return c.Invoke(ctx, item.name, check.Args{}) })
		}
		item.me = delivered(func() *check.Response { return c.InvokeBody(ctx, call.Body()) })
		conversations[i] = item
	})
	for _, item := range conversations {
		item.expect(t, []underLoad{
			{"list", item.list, showSameTools(alone[item.who].list)},
			{"describe", item.described, match.EqualResponse(alone[item.who].described)},
			{"invoke of an unknown tool", item.unknown, nameNoOtherTool(item.name)},
			{"invoke of a tool with a result for each caller", item.me, match.GiveResult(own(item.who))},
		})
	}
}

// allowedKeepSecrets is credentialsKeptSecret with an allowed call.
func allowedKeepSecrets(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()
	wrong := check.WrongCredentials // of no account, which Drupal would lock
	secrets := wrong.Secrets()
	for _, creds := range t.Credentials {
		secrets = append(secrets, creds.Secrets()...)
	}
	if len(secrets) == len(wrong.Secrets()) {
		check.NotTestable("no caller of the run has credentials: give those of the agent")
	}
	responses := []*check.Response{t.As(check.Agent).List(ctx), t.As(check.Agent).Describe(ctx, call.Tool), t.Call(ctx, call),
		t.With("wrong password", wrong).List(ctx), t.With("wrong password", wrong).Invoke(ctx, scenario.NoSuchTool, check.Args{})}
	if t.Upstream != nil {
		disarm := t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Reset})
		responses = append(responses, t.Call(ctx, call))
		disarm()
	}
	t.Each(responses, func(r *check.Response) { t.Expect(r).NotTo(match.HoldSecret(secrets)) })
	for _, r := range scenario.SendRefusals(ctx, t) {
		t.Row(r.Who, "", r.What, func() { t.Expect(r.Response).NotTo(match.HoldSecret(secrets)) })
	}
	scenario.WaitRecovered(ctx, t, call)
}

// grantedToAnonymous is anonymousGranted on a site that shows anonymous callers methods already.
func grantedToAnonymous(ctx context.Context, t *check.T) {
	if t.Site == nil {
		check.NotTestable(check.NeedsSite)
	}
	if t.Site.Unknown(check.Anonymous) != "" || !t.Site.MayUse(check.Anonymous) {
		check.NotTestable("the site does not let anonymous callers use JSON-RPC: put the mock Drupal there (--mock-listen or --exec)")
	}
	visible := t.Visible(check.Anonymous)
	i := slices.IndexFunc(t.Invocations, func(call check.Invocation) bool { return call.Succeeds() && slices.Contains(visible, call.Tool) })
	if i < 0 {
		check.NotTestable("it needs a tool that anonymous callers may run: allow a call of one under `invocations`")
	}
	call := t.Invocations[i]
	anonymous := t.As(check.Anonymous)
	list := anonymous.ListAll(ctx)
	if first := list.Pages[0]; first.Status == http.StatusUnauthorized || first.Status == http.StatusForbidden {
		check.NotTestable("the bridge refuses anonymous callers, and it is not known whether they may discover tools: put the mock Drupal there (--mock-listen or --exec)")
	}
	t.Expect(list.Names()).To(ContainElement(call.Tool), check.Mismatch("list as anonymous", fmt.Sprintf("%q", call.Tool), fmt.Sprintf("%d tools without it", len(list.Names()))))
	t.Expect(anonymous.Describe(ctx, call.Tool)).To(match.HaveStatus(200))
	t.Expect(anonymous.InvokeBody(ctx, call.Body())).To(match.BeSuccess())
}

// overlap is how long each call takes, so that many are in progress at the same time.
const overlap = 20 * time.Millisecond
