package pertool

import (
	"context"
	"fmt"
	"net/http"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// The checks of this file send the calls that the configuration allows, each with its identity's credentials.

// send makes an allowed call at the endpoint of its tool.
func send(ctx context.Context, t *check.T, call check.Invocation) *check.Response {
	return CallAt(ctx, t.As(call.Identity), call.Tool, call.Tool, call.Args(), 1)
}

func allowedRespondsInRPC(ctx context.Context, t *check.T) {
	for _, call := range scenario.Allowed(t) {
		for _, id := range []any{"abc", 7, "7"} {
			for _, by := range ways {
				t.Row(call.Identity, call.Tool, fmt.Sprintf("%s, with the id %#v", by.name, id), func() {
					t.Expect(by.send(ctx, t.As(call.Identity), call.Tool, rpcBody(call.Tool, call.Args(), id))).To(BeRPCResult(id))
				})
			}
		}
		if call.Result != nil {
			t.Row(call.Identity, call.Tool, "its result", func() { t.Expect(send(ctx, t, call)).To(match.GiveResult(string(call.Result))) })
		}
	}
}

func allowedNameBinds(ctx context.Context, t *check.T) {
	calls := scenario.Allowed(t)
	known := calls[0]
	send(ctx, t, known).MustSucceed("per-tool/answers")
	tested := 0
	for _, other := range calls[1:] {
		if other.Tool == known.Tool {
			continue
		}
		tested++
		as, body := t.As(known.Identity), rpcBody(other.Tool, other.Args(), 1)
		for _, by := range ways {
			t.Row(known.Identity, other.Tool, by.name, func() {
				t.Mark()
				r := by.send(ctx, as, known.Tool, body)
				t.Expect(r).To(beRPCRefused(), "the method "+other.Tool+" at the tool "+known.Tool)
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
			})
		}
	}
	if tested == 0 {
		check.NotTestable("it names another method at the endpoint of a tool, which a wrong bridge runs: allow a call of a second tool under `invocations`")
	}
	t.Row(known.Identity, known.Tool, "no method", func() {
		t.Mark()
		r := PostAt(ctx, t.As(known.Identity), known.Tool, []byte(`{"jsonrpc":"2.0","params":{},"id":1}`))
		t.Expect(r).To(beRPCRefused())
		t.Expect(r).To(match.HaveRunNothing(t.Upstream))
	})
}

// allowedScopes tests a tool whose annotations ask for scopes: without credentials, and by the allowed calls of it that
// the configuration expects to be refused with 403.
func allowedScopes(ctx context.Context, t *check.T) {
	enough, scopes := scopedCall(ctx, t)
	if len(scopes) == 0 {
		check.NotTestable("it needs a tool whose annotations ask for scopes: allow a call of one under `invocations`, by an identity whose token has them")
	}
	send(ctx, t, enough).MustSucceed("per-tool/answers")
	refused := 0
	for _, less := range t.Invocations {
		if less.Tool != enough.Tool || less.Status != http.StatusForbidden {
			continue
		}
		refused++
		t.Row(less.Identity, less.Tool, "with too few scopes", func() {
			r := send(ctx, t, less)
			t.Expect(r).To(match.BeRefusedWith(403))
			t.Expect(r).To(challenge("insufficient_scope"))
		})
	}
	t.Row(check.Anonymous, enough.Tool, "without a token", func() {
		anonymous := PostAt(ctx, t.As(check.Anonymous), enough.Tool, rpcBody(enough.Tool, enough.Args(), 1))
		t.Expect(anonymous).To(match.BeRefusedWith(401))
		t.Expect(anonymous).To(challenge())
	})
	if refused == 0 && !t.HasFindings() {
		check.NotTestable("it needs a token with too few scopes: allow a call of " + enough.Tool + " by its identity under `invocations`, with `expect: {status: 403}`")
	}
}

// scopedCall is an allowed call of a tool whose annotations ask for scopes, and these; no scopes: there is none.
func scopedCall(ctx context.Context, t *check.T) (call check.Invocation, scopes []any) {
	for _, call := range scenario.Allowed(t) {
		shown, _ := t.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		annotations, _ := shown["annotations"].(map[string]any)
		auth, _ := annotations["auth"].(map[string]any)
		if scopes, _ := auth["scopes"].([]any); len(scopes) > 0 {
			return call, scopes
		}
	}
	return check.Invocation{}, nil
}

func allowedUnknown404(ctx context.Context, t *check.T) {
	calls := scenario.Allowed(t)
	send(ctx, t, calls[0]).MustSucceed("per-tool/answers")
	refused := func(who check.Identity, tool, what string, call check.Invocation) {
		for _, by := range ways {
			t.Row(who, tool, what+", "+by.name, func() {
				r := by.send(ctx, t.As(who), tool, rpcBody(tool, call.Args(), 1))
				t.Expect(r).To(match.BeRefusedWith(404))
				t.Expect(r).To(match.BeProtocolError("-32601"))
			})
		}
	}
	refused(calls[0].Identity, scenario.NoSuchTool, "an unknown tool", check.Invocation{})
	for _, hidden := range t.Invocations {
		if hidden.Status == http.StatusNotFound {
			refused(hidden.Identity, hidden.Tool, "a method that is no tool", hidden)
		}
	}
	if t.Site == nil || t.Site.Unknown(check.Discoverer) != "" {
		return
	}
	for _, call := range calls {
		if m := scenario.MethodOf(t, call.Tool); m != nil && t.Site.MayUse(check.Discoverer) && !t.Site.MayRun(check.Discoverer, m) {
			refused(check.Discoverer, call.Tool, "a tool that the caller may not run", call)
			return
		}
	}
}
