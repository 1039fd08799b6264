package scenario

import (
	"context"
	"slices"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/harness"
)

// MustSeeCalls makes the check not testable where nobody sees what reaches the site.
func MustSeeCalls(t *harness.T) {
	if t.Upstream == nil {
		harness.NotTestable(harness.NeedsRecorder)
	}
}

// Allowed are the calls that the configuration allows and that have to work; without any the check is not testable.
func Allowed(t *harness.T) []harness.Invocation {
	calls := slices.DeleteFunc(slices.Clone(t.Invocations), func(i harness.Invocation) bool { return !i.Succeeds() })
	if len(calls) == 0 {
		harness.NotTestable("it would have to run an existing tool: allow one under `invocations`")
	}
	return calls
}

// MustReach makes a call that has to succeed and gives the methods that it called on the site.
func MustReach(ctx context.Context, t *harness.T, call harness.Invocation) []mockdrupal.Call {
	t.Upstream.Mark()
	t.Call(ctx, call).MustSucceed()
	calls := t.Upstream.Calls()
	if len(calls) == 0 {
		harness.NotTestable("an invoke that succeeded did not come by the recording proxy: point the bridge at it")
	}
	return calls
}
