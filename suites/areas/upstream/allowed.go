package upstream

import (
	"context"
	"fmt"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// allowedError is the error with which the recording proxy responds to an allowed call in place of the site.
var allowedError = fixtures.RPCError{Code: -32000, Message: "The search index is not built"}

// failingAllowed is an allowed call, and the refusal that it gets where the method fails.
func failingAllowed(ctx context.Context, t *check.T) (call check.Invocation, plain *check.Response) {
	call = scenario.AllowedCall(ctx, t)
	disarm := t.Upstream.Arm(allowedFailure(0))
	defer disarm()
	return call, t.Call(ctx, call).MustMeet(showFailure(allowedError.Message), "invoke/execution-error-500")
}

// allowedFailure is the error under an HTTP status; 0: 200.
func allowedFailure(status int) mockdrupal.Fault {
	body := client.Encode(map[string]any{"code": allowedError.Code, "message": allowedError.Message})
	return mockdrupal.Fault{Kind: fault.Failure, Status: status, Body: string(body)}
}

func allowedIDMismatch(ctx context.Context, t *check.T) {
	call, plain := failingAllowed(ctx, t)
	eachFailure(ctx, t, mismatchedResponses, call, beUpstreamError())
	eachFailure(ctx, t, []scenario.SiteFailure{
		{Name: "an error with id null", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 200, Body: errorBody(&allowedError, `"id":null,`)}},
		{Name: "an error without an id", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 200, Body: errorBody(&allowedError, "")}},
	}, call, showSameFailure(plain, allowedError.Message))
}

func allowedErrorAnyStatus(ctx context.Context, t *check.T) {
	call, plain := failingAllowed(ctx, t)
	failures := []scenario.SiteFailure{
		{Name: "a JSON-RPC error without id under HTTP 400", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 400, Body: errorBody(&allowedError, "")}},
		{Name: "a JSON-RPC error with id null under HTTP 500", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 500, Body: errorBody(&allowedError, `"id":null,`)}},
	}
	for _, status := range []int{200, 400, 500} {
		failures = append(failures, scenario.SiteFailure{Name: fmt.Sprintf("a JSON-RPC error under HTTP %d", status), Fault: allowedFailure(status)})
	}
	eachFailure(ctx, t, failures, call, showSameFailure(plain, allowedError.Message))
	eachFailure(ctx, t, []scenario.SiteFailure{
		{Name: "204", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: 204}},
		{Name: "an empty 200", Fault: mockdrupal.Fault{Kind: fault.Empty}},
	}, call, beUpstreamError())
}
