// Package bridgetests adds three clauses of our own to those of the contract. They stand in the area acme, and appear in
// every report, in JUnit and SARIF, in a baseline and in `bridgecheck checks explain acme/…` beside it.
package bridgetests

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// Checks are given as suites.Options.Extra.
var Checks = []check.Check{
	{Run: describesEveryTool, Clause: &contract.Clause{
		ID: "acme/described", Level: contract.MUST,
		Text: "Every tool MUST have a description of at least ten characters.",
		Reason: contract.Reason{Why: "Our agents choose tools by their descriptions; a tool without one is never called.",
			Fix: contract.Fix{Any: "Take the description from the method's usage, and write one where it is empty."}},
	}},
	{Run: namesItsServer, Clause: &contract.Clause{
		ID: "acme/no-powered-by", Level: contract.SHOULD,
		Text: "Responses SHOULD NOT carry X-Powered-By.",
		Reason: contract.Reason{Why: "Our scanners report each release that names its framework.",
			Fix: contract.Fix{Any: "Remove the header.", Node: "app.disable('x-powered-by')"}},
	}},
	{Sees: check.Journal, Run: callsOnce, Clause: &contract.Clause{
		ID: "acme/one-call", Level: contract.MUST,
		Text: "An invoke MUST cause exactly one call of its method at the site.",
		Reason: contract.Reason{Why: "We pay for each call of the site's search.",
			Fix: contract.Fix{Any: "Do not call the method to find out whether it exists; discovery says so."}},
	}},
}

func describesEveryTool(ctx context.Context, t *check.T) {
	t.EachTool(t.As(check.Agent).MustListAll(ctx), func(_ *check.Response, tool check.Tool) {
		text, _ := tool["description"].(string)
		t.Expect(len(strings.TrimSpace(text)) >= 10).To(BeTrue(), check.Mismatch("its description", "ten characters or more", text))
	})
}

func namesItsServer(ctx context.Context, t *check.T) {
	r := t.As(check.Agent).List(ctx).MustSucceed()
	t.Expect(r.Header.Get("X-Powered-By")).To(BeEmpty(), check.Mismatch("X-Powered-By of "+r.Subject(), "no such header", r.Header.Get("X-Powered-By")))
}

func callsOnce(ctx context.Context, t *check.T) {
	const tool = "result.string" // of the default site: without arguments
	t.As(check.Agent).Invoke(ctx, t.ToolName(tool), check.Args{}).MustMeet(match.HaveStatus(200), "invoke/answers-result")
	t.Mark()
	t.As(check.Agent).Invoke(ctx, t.ToolName(tool), check.Args{}).MustSucceed()
	t.Expect(len(t.Upstream.Calls(tool))).To(Equal(1), check.Mismatch("an invoke of "+tool, "one call of the method", "another number"))
}
