package invoke

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// How often a method runs.
func runsOnce(ctx context.Context, t *harness.T) {
	tool := scenario.MustFind(t, harness.Agent, fixtures.Count)[0]
	t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
	for _, s := range scenario.Samples(t, harness.Agent, fixtures.Echo, fixtures.Value, fixtures.Count, fixtures.Fail, fixtures.Throw) {
		t.For(harness.Agent, s.Name, func() {
			t.Drupal.Mark()
			t.Expect(t.As(harness.Agent).Invoke(ctx, s.Name, s.Arguments)).To(match.HaveRun(s.ID, 1))
		})
	}
	meet := func(tool scenario.Sample, f scenario.SiteFailure) {
		f.Fault.Route, f.Fault.Method, f.Fault.Run = route.JSONRPC, tool.ID, true
		t.Row(harness.Agent, tool.Name, "the site gives "+f.Name, func() {
			defer t.Drupal.Arm(f.Fault)()
			t.Drupal.Mark()
			t.Expect(t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(HaveReachedOnce(tool.ID))
		})
		scenario.WaitRecovered(ctx, t, scenario.MustRun(ctx, t))
	}
	for _, f := range afterTheRun {
		meet(tool, f)
	}
	for _, other := range readOnlyFirst(t, scenario.MustFind(t, harness.Agent, fixtures.Value, fixtures.Echo, fixtures.Count)) {
		for _, f := range afterTheRun[:4] {
			meet(other, f)
		}
	}
	if t.UpstreamTimeout == 0 {
		return // nobody knows how long a bridge waits for a site that hangs
	}
	meet(tool, scenario.SiteFailure{Name: "no answer within the upstream time-out", Fault: mockdrupal.Fault{Kind: fault.Hang}})
}

func notCached(ctx context.Context, t *harness.T) {
	for _, tool := range readOnlyFirst(t, scenario.MustFind(t, harness.Agent, fixtures.Value, fixtures.Echo, fixtures.Count)) {
		t.For(harness.Agent, tool.Name, func() {
			t.Drupal.Mark()
			first := t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			second := t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			t.Expect(second).To(match.HaveRun(tool.ID, 2), "two equal invokes")
			t.Expect(first).To(ForbidStoring())
			t.Expect(second).To(ForbidStoring())
		})
	}
	failing := scenario.Failing(t)[0]
	t.For(harness.Agent, failing.Name, func() {
		t.Drupal.Mark()
		t.As(harness.Agent).Invoke(ctx, failing.Name, failing.Arguments)
		again := t.As(harness.Agent).Invoke(ctx, failing.Name, failing.Arguments)
		t.Expect(again).To(match.HaveRun(failing.ID, 2), "two equal invokes that fail")
	})
}

// afterTheRun are failures of the site after the method has run: who sends the request again runs it twice.
var afterTheRun = []scenario.SiteFailure{
	{Name: "a connection reset after the request was read", Fault: mockdrupal.Fault{Kind: fault.Reset}},
	{Name: "a connection closed without an answer", Fault: mockdrupal.Fault{Kind: fault.Close}},
	{Name: "a connection closed in the middle of the answer", Fault: mockdrupal.Fault{Kind: fault.Cut}},
	{Name: "500", Fault: mockdrupal.Fault{Kind: fault.Status, Status: http.StatusInternalServerError, Body: `{"message":"down"}`}},
	{Name: "502", Fault: mockdrupal.Fault{Kind: fault.HTML, Status: http.StatusBadGateway}},
	{Name: "503", Fault: mockdrupal.Fault{Kind: fault.Status, Status: http.StatusServiceUnavailable}},
	{Name: "504", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: http.StatusGatewayTimeout}},
	{Name: "429", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: http.StatusTooManyRequests}},
	{Name: "invalid JSON", Fault: mockdrupal.Fault{Kind: fault.Garbage}},
	{Name: "an answer to another request", Fault: mockdrupal.Fault{Kind: fault.WrongID}},
}

// readOnlyFirst is one tool of each sort that a bridge might be tempted to treat apart: one that says it only reads, one
// that says it is idempotent, one that says nothing.
func readOnlyFirst(t *harness.T, tools []scenario.Sample) []scenario.Sample {
	sorts := []func(s scenario.Sample) bool{
		func(s scenario.Sample) bool {
			return strings.Contains(string(s.MCP.Annotations), `"readOnlyHint":true`)
		},
		func(s scenario.Sample) bool {
			return strings.Contains(string(s.MCP.Annotations), `"idempotentHint":true`)
		},
		func(s scenario.Sample) bool { return s.MCP.Annotations == nil },
	}
	var chosen []scenario.Sample
	for _, is := range sorts {
		for _, tool := range tools {
			if tool.MCP != nil && is(tool) {
				chosen = append(chosen, tool)
				break
			}
		}
	}
	if len(chosen) == 0 {
		return tools[:1]
	}
	return chosen
}

// ForbidStoring matches an answer whose Cache-Control keeps caches from giving it to others.
func ForbidStoring() OmegaMatcher {
	return match.Conform("Cache-Control with no-store, no-cache or private", func(a *harness.Response) string {
		if scenario.ForbidsStoring(a) {
			return ""
		}
		return "Cache-Control " + scenario.Quoted(a.Header.Values("Cache-Control"))
	})
}
