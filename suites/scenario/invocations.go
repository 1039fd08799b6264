package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// MustSeeCalls makes the check not testable where nobody sees what reaches the site.
func MustSeeCalls(t *check.T) {
	if t.Upstream == nil {
		check.NotTestable(check.NeedsRecorder)
	}
}

// Allowed are the calls that the configuration allows and that have to work; without any the check is not testable.
func Allowed(t *check.T) []check.Invocation {
	calls := slices.DeleteFunc(slices.Clone(t.Invocations), func(i check.Invocation) bool { return !i.Succeeds() })
	if len(calls) == 0 {
		check.NotTestable("it would have to run an existing tool: allow one under `invocations`")
	}
	return calls
}

// MustReach makes a call that has to succeed and gives the methods that it called on the site.
func MustReach(ctx context.Context, t *check.T, call check.Invocation) []mockdrupal.Call {
	t.Upstream.Mark()
	t.Call(ctx, call).MustSucceed()
	calls := t.Upstream.Calls()
	if len(calls) == 0 {
		check.NotTestable("an invoke that succeeded did not come by the recording proxy: point the bridge at it")
	}
	return calls
}

// AllowedCall is an allowed call that has passed the recorder.
func AllowedCall(ctx context.Context, t *check.T) check.Invocation {
	MustSeeCalls(t)
	call := Allowed(t)[0]
	MustReach(ctx, t, call)
	return call
}

// AllowedReturning are the allowed calls of tools whose listed outputSchema, if any, takes a result.
func AllowedReturning(ctx context.Context, t *check.T, result string) []check.Invocation {
	MustSeeCalls(t)
	return slices.DeleteFunc(Allowed(t), func(call check.Invocation) bool {
		shown, ok := t.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		if !ok || shown["outputSchema"] == nil {
			return !ok
		}
		schema, err := jsonschema.Compile(shown["outputSchema"], jsonschema.Draft7)
		return err != nil || schema.Fault(exact.MustParse(result)) != ""
	})
}

// AllowedDenied is an allowed call of a tool that the caller may use JSON-RPC without being permitted to run.
func AllowedDenied(t *check.T, who check.Identity) check.Invocation {
	if t.Site == nil {
		check.NotTestable(check.NeedsSite)
	}
	for _, call := range Allowed(t) {
		if m := MethodOf(t, call.Tool); m != nil && t.Site.MayUse(who) && !t.Site.MayRun(who, m) {
			return call
		}
	}
	check.NotTestable(fmt.Sprintf("it needs a tool that %s may not run: allow a call of one under `invocations`", who))
	return check.Invocation{}
}

// CallerAtSite is the name under which the recording proxy shows a caller.
func CallerAtSite(t *check.T, who check.Identity) string {
	header := http.Header{}
	creds, _ := t.CredentialsOf(who)
	creds.Apply(header)
	return proxy.CallerName(header)
}
