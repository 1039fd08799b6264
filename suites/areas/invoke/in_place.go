package invoke

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// The checks of this file make allowed calls, to which the recording proxy responds in place of a real site: nothing runs
// there but the positive control.

// siteErrors are errors of a method that say nothing but that it failed.
var siteErrors = []fixtures.RPCError{
	{Code: -32000, Message: "The search index is not built"},
	{Code: -32050, Message: "Too many items", Data: fixtures.Raw(`{"limit":50,"ids":[1,2],"retry":true}`)},
	{Code: 7, Message: "A code of the module's own"},
	{Code: scenario.RPCInternalError, Message: "Internal Error", Data: fixtures.Raw(`"PDOException: CANARY-2f7d in /var/www/html/web/core/lib/Drupal/Core/Database/Connection.php:812\n#0 /var/www/html/web/index.php(19): Drupal\\Core\\DrupalKernel->handle()"`)},
}

// respondWith makes the recording proxy respond to calls with an error until disarm is called.
func respondWith(t *check.T, e fixtures.RPCError) (disarm func()) {
	object := map[string]any{"code": e.Code, "message": e.Message}
	if e.Data != nil {
		object["data"] = json.RawMessage(e.Data)
	}
	return t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Failure, Body: string(client.Encode(object))})
}

// returnWith makes the recording proxy respond to calls with a result until disarm is called.
func returnWith(t *check.T, result string) (disarm func()) {
	return t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, Body: result})
}

func allowedResultsExact(ctx context.Context, t *check.T) {
	scenario.AllowedCall(ctx, t)
	tested := 0
	for _, v := range slices.Concat(exactValues, resultValues) {
		for _, call := range scenario.AllowedReturning(ctx, t, v.value) {
			tested++
			t.Row(call.Identity, call.Tool, v.name, func() {
				defer returnWith(t, v.value)()
				t.Expect(t.Call(ctx, call)).To(match.GiveResult(v.value))
			})
			break
		}
	}
	if tested == 0 {
		check.NotTestable("no allowed tool may return any of the values that it tries: allow a call of a tool without outputSchema under `invocations`")
	}
}

func allowedNullResult(ctx context.Context, t *check.T) {
	scenario.AllowedCall(ctx, t)
	calls := scenario.AllowedReturning(ctx, t, "null")
	if len(calls) == 0 {
		check.NotTestable("no allowed tool may return null: allow a call of a tool without outputSchema under `invocations`")
	}
	defer returnWith(t, "null")()
	t.Expect(t.Call(ctx, calls[0])).To(match.GiveResult("null"))
}

func allowedExecutionError(ctx context.Context, t *check.T) {
	call := scenario.AllowedCall(ctx, t)
	for _, e := range siteErrors {
		t.Row(call.Identity, call.Tool, "the site returns "+e.Message, func() {
			defer respondWith(t, e)()
			r := t.Call(ctx, call)
			t.Expect(r).To(match.BeRefused(500, "execution_error"))
			t.Expect(r).To(match.HaveMessageWith(e.Message))
		})
	}
	t.Row(call.Identity, call.Tool, "the site returns -32601", func() {
		defer respondWith(t, fixtures.RPCError{Code: rpcMethodNotFound, Message: "Method not found"})()
		t.Expect(t.Call(ctx, call)).To(match.BeRefused(404, "tool_not_found"))
	})
	t.Await(ctx, func() bool { return t.Call(ctx, call).Status != http.StatusNotFound }) // as executionError500 does
}

func allowedErrorDataKept(ctx context.Context, t *check.T) {
	call := scenario.AllowedCall(ctx, t)
	tested := 0
	for _, e := range siteErrors {
		disarm := respondWith(t, e)
		r := t.Call(ctx, call)
		disarm()
		if r.Status != http.StatusInternalServerError {
			continue // invoke/execution-error-500 tests that
		}
		tested++
		t.Row(call.Identity, call.Tool, "the site returns "+e.Message, func() { t.Expect(r).To(keepErrorData(e)) })
	}
	if tested == 0 {
		check.BlockedBy(check.Finding{Subject: "no method that fails gets 500"}, "invoke/execution-error-500")
	}
}

func allowedSemanticInvalid(ctx context.Context, t *check.T) {
	call := scenario.AllowedCall(ctx, t)
	defer respondWith(t, fixtures.RPCError{Code: scenario.RPCInvalidParams, Message: "Invalid Params", Data: fixtures.Raw(`"No such node."`)})()
	t.Expect(t.Call(ctx, call)).To(match.BeRefused(400, "invalid_params"))
}

func allowedNoTraceLeak(ctx context.Context, t *check.T) {
	call := scenario.AllowedCall(ctx, t)
	for _, refusal := range scenario.SendRefusals(ctx, t) {
		t.Row(refusal.Who, "", refusal.What, func() { t.Expect(refusal.Response).NotTo(match.HoldTrace()) })
	}
	for _, e := range siteErrors {
		planted := canaries(&fixtures.Method{Behaviour: fixtures.Behaviour{Kind: fixtures.Fail, Error: &e}})
		if len(planted) == 0 {
			continue
		}
		t.Row(call.Identity, call.Tool, "an exception of the site", func() {
			defer respondWith(t, e)()
			t.Expect(t.Call(ctx, call)).NotTo(holdAny(planted))
			if t.Claims("mcp") {
				if r := callByMCP(ctx, t.As(call.Identity), call.Tool, call.Object()); r != nil {
					t.Expect(r).NotTo(holdAny(planted), "over MCP")
				}
			}
		})
	}
}

// allowedArgumentsForwarded compares the arguments of the allowed calls with those at the site, and tries values that some
// JSON layers change in every parameter that takes them.
func allowedArgumentsForwarded(ctx context.Context, t *check.T) {
	scenario.MustSeeCalls(t)
	tested := 0
	for _, call := range scenario.Allowed(t) {
		method := scenario.MustReach(ctx, t, call)[0].Method
		send := func(what string, arguments map[string]any) {
			t.Row(call.Identity, call.Tool, what, func() {
				defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Echo})()
				t.Upstream.Mark()
				if r := t.As(call.Identity).Invoke(ctx, call.Tool, arguments); !refusesLong(r) {
					t.Expect(r).To(match.HaveForwarded(t.Upstream, method, client.Encode(arguments)))
				}
			})
		}
		send("as configured", call.Args())
		tested += len(call.Args())
		shown, _ := t.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		schema, err := jsonschema.Compile(shown.Input(), jsonschema.Draft7)
		properties, _ := shown.Input()["properties"].(map[string]any)
		if err != nil {
			continue // schema/input-valid tests that
		}
		for _, c := range exactValues {
			for name := range check.InOrder(properties) {
				arguments := map[string]any(call.Args())
				arguments[name] = exact.MustParse(c.value)
				if schema.Fault(arguments) == "" {
					tested++
					send(c.name, arguments)
					break
				}
			}
		}
	}
	if tested == 0 {
		check.NotTestable("no allowed call has arguments: allow one with arguments under `invocations`")
	}
}

// allowedHidden404 names methods on invoke that are no tools, where the configuration allows that.
func allowedHidden404(ctx context.Context, t *check.T) {
	if t.Site == nil {
		check.NotTestable(check.NeedsSite)
	}
	t.Call(ctx, scenario.Allowed(t)[0]).MustSucceed()
	tested := 0
	for _, call := range t.Invocations {
		m := scenario.MethodOf(t, call.Tool)
		if call.Status != http.StatusNotFound || m == nil || t.Exposed(m) || !t.Site.MayRun(call.Identity, m) {
			continue
		}
		tested++
		t.For(call.Identity, call.Tool, func() {
			t.Mark()
			r := t.Call(ctx, call)
			t.Expect(r).To(match.BeUnknown(scenario.DiffersFromUnknown(ctx, scenario.InvokeWith(t.As(call.Identity), check.Args{}), r, call.Tool)))
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
	if tested == 0 {
		check.NotTestable("it names a method on invoke that is no tool, which a wrong bridge runs: allow such a call under `invocations`, with `expect: {status: 404}`")
	}
}

func allowedDenied(ctx context.Context, t *check.T) {
	call := scenario.AllowedDenied(t, check.Discoverer)
	t.Call(ctx, call).MustSucceed()
	t.For(check.Discoverer, call.Tool, func() {
		t.Mark()
		r := t.As(check.Discoverer).InvokeBody(ctx, call.Body())
		t.Expect(r).To(match.BeRefusedWith(403, 404))
		t.Expect(r).To(match.HaveRunNothing(t.Upstream))
	})
}
