package load

import (
	"context"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// allowedConcurrentExact is concurrentExact for an allowed call that takes a text. The recording proxy responds to it in
// place of the site, with its arguments as the result.
func allowedConcurrentExact(ctx context.Context, t *check.T) {
	scenario.MustSeeCalls(t)
	for _, call := range scenario.Allowed(t) {
		shown, _ := t.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		parameter := textParameter(call, shown)
		if parameter == "" || !slices.Contains(toolsOf(scenario.AllowedReturning(ctx, t, string(client.Encode(with(call, parameter, "equal"))))), call.Tool) {
			continue
		}
		method := scenario.MustReach(ctx, t, call)[0].Method
		e := echo{call.Tool, method, func(text string) check.Args { return with(call, parameter, text) }, t.Upstream.Calls, nil}
		t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Echo, Route: route.JSONRPC, Delay: 20 * time.Millisecond})
		clients := make([]check.Client, callers)
		for i := range clients {
			clients[i] = t.As(call.Identity)
		}
		e.testConcurrently(ctx, t, clients)
		return
	}
	check.NotTestable("it needs a tool that takes any text in a parameter and may return its arguments (it has no outputSchema, or one that takes any object): allow a call of one under `invocations`")
}

func toolsOf(calls []check.Invocation) []string {
	var tools []string
	for _, call := range calls {
		tools = append(tools, call.Tool)
	}
	return tools
}

// textParameter is a parameter of the tool that takes any text beside the arguments of the call; "" without one.
func textParameter(call check.Invocation, shown check.Tool) string {
	properties, _ := shown.Input()["properties"].(map[string]any)
	schema, err := jsonschema.Compile(shown.Input(), jsonschema.Draft7)
	if err != nil {
		return ""
	}
	for name := range check.InOrder(properties) {
		takes := true
		for _, text := range []string{"caller 63, call 15", "equal"} {
			takes = takes && schema.Fault(exact.MustParse(client.Encode(with(call, name, text)))) == ""
		}
		if takes {
			return name
		}
	}
	return ""
}

// with are the arguments of a call with another value for one of them.
func with(call check.Invocation, parameter, text string) check.Args {
	arguments := call.Args()
	arguments[parameter] = text
	return arguments
}

// allowedSlowIsolated is slowMethodIsolated for two allowed tools. The recording proxy is slow in place of the site, for one.
func allowedSlowIsolated(ctx context.Context, t *check.T) {
	scenario.MustSeeCalls(t)
	allowed := scenario.Allowed(t)
	for _, fast := range allowed[1:] {
		if slow := allowed[0]; fast.Tool != slow.Tool {
			method := scenario.MustReach(ctx, t, slow)[0].Method
			testIsolated(ctx, t, fast, slow, mockdrupal.Fault{Kind: fault.Result, Route: route.JSONRPC, Method: method, Body: "null"})
			return
		}
	}
	check.NotTestable("it needs two tools: allow a call of another one under `invocations`")
}
