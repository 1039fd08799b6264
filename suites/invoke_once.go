package suites

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// How often a method runs.
var _ = Area("invoke", func(b *Bridge) {
	b.Check("invoke/runs-once", func(ctx SpecContext) {
		tool := b.mustFind(Agent, fixtures.Count)[0]
		b.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
		for _, s := range b.samples(Agent, fixtures.Echo, fixtures.Value, fixtures.Count, fixtures.Fail, fixtures.Throw) {
			b.For(Agent, s.Name, func() {
				b.Drupal.Mark()
				Expect(b.As(Agent).Invoke(ctx, s.Name, s.Arguments)).To(HaveRun(s.ID, 1))
			})
		}
		meet := func(tool sample, f siteFailure) {
			f.fault.Route, f.fault.Method, f.fault.Run = route.JSONRPC, tool.ID, true
			b.Row(Agent, tool.Name, "the site gives "+f.name, func() {
				defer b.Drupal.Arm(f.fault)()
				b.Drupal.Mark()
				Expect(b.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(HaveReachedOnce(tool.ID))
			})
			b.recovered(ctx, b.mustRun(ctx))
		}
		for _, f := range afterTheRun {
			meet(tool, f)
		}
		for _, other := range b.readOnlyFirst(b.mustFind(Agent, fixtures.Value, fixtures.Echo, fixtures.Count)) {
			for _, f := range afterTheRun[:4] {
				meet(other, f)
			}
		}
		if b.UpstreamTimeout == 0 {
			return // nobody knows how long a bridge waits for a site that hangs
		}
		meet(tool, siteFailure{"no answer within the upstream time-out", mockdrupal.Fault{Kind: fault.Hang}})
	})

	b.Check("invoke/not-cached", func(ctx SpecContext) {
		for _, tool := range b.readOnlyFirst(b.mustFind(Agent, fixtures.Value, fixtures.Echo, fixtures.Count)) {
			b.For(Agent, tool.Name, func() {
				b.Drupal.Mark()
				first := b.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
				second := b.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustSucceed()
				Expect(second).To(HaveRun(tool.ID, 2), "two equal invokes")
				Expect(first).To(ForbidStoring())
				Expect(second).To(ForbidStoring())
			})
		}
		failing := b.failing()[0]
		b.For(Agent, failing.Name, func() {
			b.Drupal.Mark()
			b.As(Agent).Invoke(ctx, failing.Name, failing.Arguments)
			again := b.As(Agent).Invoke(ctx, failing.Name, failing.Arguments)
			Expect(again).To(HaveRun(failing.ID, 2), "two equal invokes that fail")
		})
	})
})

// afterTheRun are failures of the site after the method has run: who sends the request again runs it twice.
var afterTheRun = []siteFailure{
	{"a connection reset after the request was read", mockdrupal.Fault{Kind: fault.Reset}},
	{"a connection closed without an answer", mockdrupal.Fault{Kind: fault.Close}},
	{"a connection closed in the middle of the answer", mockdrupal.Fault{Kind: fault.Cut}},
	{"500", mockdrupal.Fault{Kind: fault.Status, Status: http.StatusInternalServerError, Body: `{"message":"down"}`}},
	{"502", mockdrupal.Fault{Kind: fault.HTML, Status: http.StatusBadGateway}},
	{"503", mockdrupal.Fault{Kind: fault.Status, Status: http.StatusServiceUnavailable}},
	{"504", mockdrupal.Fault{Kind: fault.Empty, Status: http.StatusGatewayTimeout}},
	{"429", mockdrupal.Fault{Kind: fault.Empty, Status: http.StatusTooManyRequests}},
	{"invalid JSON", mockdrupal.Fault{Kind: fault.Garbage}},
	{"an answer to another request", mockdrupal.Fault{Kind: fault.WrongID}},
}

// readOnlyFirst is one tool of each sort that a bridge might be tempted to treat apart: one that says it only reads, one
// that says it is idempotent, one that says nothing.
func (b *Bridge) readOnlyFirst(tools []sample) []sample {
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
	return Meet("Cache-Control with no-store, no-cache or private", func(a *Answer) string {
		if forbidsStoring(a) {
			return ""
		}
		return "Cache-Control " + quoted(a.Header.Values("Cache-Control"))
	})
}

func forbidsStoring(a *Answer) bool {
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
func listed(a *Answer, header string) []string {
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
