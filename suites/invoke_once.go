package suites

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// How often a method runs.
// checks__invoke__invoke_once are the checks of this file.
var checks__invoke__invoke_once = []Check{
	{ID: "invoke/runs-once", Sees: Site, Run: chk__invoke__runsOnce, WithoutSite: runsAllowedOnce},
	{ID: "invoke/not-cached", Sees: Site, Run: chk__invoke__notCached, WithoutSite: runsAllowedAgain},
}

func chk__invoke__runsOnce(ctx context.Context, t *T) {
	tool := t.mustFind(Agent, fixtures.Count)[0]
	t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
	for _, s := range t.samples(Agent, fixtures.Echo, fixtures.Value, fixtures.Count, fixtures.Fail, fixtures.Throw) {
		t.For(Agent, s.Name, func() {
			t.Drupal.Mark()
			t.Expect(t.As(Agent).Invoke(ctx, s.Name, s.Arguments)).To(HaveRun(s.ID, 1))
		})
	}
	meet := func(tool sample, f siteFailure) {
		f.fault.Route, f.fault.Method, f.fault.Run = mockdrupal.RouteJSONRPC, tool.ID, true
		t.Row(Agent, tool.Name, "the site gives "+f.name, func() {
			defer t.Drupal.Arm(f.fault)()
			t.Drupal.Mark()
			t.Expect(t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(HaveReachedOnce(tool.ID))
		})
		t.recovered(ctx, t.mustRun(ctx))
	}
	for _, f := range afterTheRun {
		meet(tool, f)
	}
	for _, other := range t.readOnlyFirst(t.mustFind(Agent, fixtures.Value, fixtures.Echo, fixtures.Count)) {
		for _, f := range afterTheRun[:4] {
			meet(other, f)
		}
	}
	if t.UpstreamTimeout == 0 {
		return // nobody knows how long a bridge waits for a site that hangs
	}
	meet(tool, siteFailure{"no answer within the upstream time-out", mockdrupal.Fault{Kind: mockdrupal.FaultHang}})
}

func chk__invoke__notCached(ctx context.Context, t *T) {
	for _, tool := range t.readOnlyFirst(t.mustFind(Agent, fixtures.Value, fixtures.Echo, fixtures.Count)) {
		t.For(Agent, tool.Name, func() {
			t.Drupal.Mark()
			first := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			second := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
			t.Expect(second).To(HaveRun(tool.ID, 2), "two equal invokes")
			t.Expect(first).To(ForbidStoring())
			t.Expect(second).To(ForbidStoring())
		})
	}
	failing := t.failing()[0]
	t.For(Agent, failing.Name, func() {
		t.Drupal.Mark()
		t.As(Agent).Invoke(ctx, failing.Name, failing.Arguments)
		again := t.As(Agent).Invoke(ctx, failing.Name, failing.Arguments)
		t.Expect(again).To(HaveRun(failing.ID, 2), "two equal invokes that fail")
	})
}

// afterTheRun are failures of the site after the method has run: who sends the request again runs it twice.
var afterTheRun = []siteFailure{
	{"a connection reset after the request was read", mockdrupal.Fault{Kind: mockdrupal.FaultReset}},
	{"a connection closed without an answer", mockdrupal.Fault{Kind: mockdrupal.FaultClose}},
	{"a connection closed in the middle of the answer", mockdrupal.Fault{Kind: mockdrupal.FaultCut}},
	{"500", mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Status: http.StatusInternalServerError, Body: `{"message":"down"}`}},
	{"502", mockdrupal.Fault{Kind: mockdrupal.FaultHTML, Status: http.StatusBadGateway}},
	{"503", mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Status: http.StatusServiceUnavailable}},
	{"504", mockdrupal.Fault{Kind: mockdrupal.FaultEmpty, Status: http.StatusGatewayTimeout}},
	{"429", mockdrupal.Fault{Kind: mockdrupal.FaultEmpty, Status: http.StatusTooManyRequests}},
	{"invalid JSON", mockdrupal.Fault{Kind: mockdrupal.FaultGarbage}},
	{"an answer to another request", mockdrupal.Fault{Kind: mockdrupal.FaultWrongID}},
}

// readOnlyFirst is one tool of each sort that a bridge might be tempted to treat apart: one that says it only reads, one
// that says it is idempotent, one that says nothing.
func (t *T) readOnlyFirst(tools []sample) []sample {
	sorts := []func(s sample) bool{
		func(s sample) bool { return strings.Contains(string(s.MCP.Annotations), `"readOnlyHint":true`) },
		func(s sample) bool { return strings.Contains(string(s.MCP.Annotations), `"idempotentHint":true`) },
		func(s sample) bool { return s.MCP.Annotations == nil },
	}
	var chosen []sample
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
	return Meet("Cache-Control with no-store, no-cache or private", func(a *Response) string {
		if forbidsStoring(a) {
			return ""
		}
		return "Cache-Control " + quoted(a.Header.Values("Cache-Control"))
	})
}

func forbidsStoring(a *Response) bool {
	for _, directive := range listed(a, "Cache-Control") {
		name, _, _ := strings.Cut(directive, "=")
		switch name {
		case "no-store", "no-cache", "private":
			return true
		}
	}
	return false
}

// listed are the members of a header that is a list, in lower case.
func listed(a *Response, header string) []string {
	var members []string
	for _, value := range a.Header.Values(header) {
		for member := range strings.SplitSeq(value, ",") {
			members = append(members, strings.ToLower(strings.TrimSpace(member)))
		}
	}
	return members
}

func quoted(values []string) string {
	if len(values) == 0 {
		return "missing"
	}
	return `"` + strings.Join(values, ", ") + `"`
}
