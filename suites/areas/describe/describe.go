// Package describe checks GET /mcp/tools/describe: it returns the tool that the list shows, and refuses names of tools
// that the caller must not know.
package describe

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area describe.
var Checks = []check.Check{
	{ID: "describe/answers-tool", ByMock: true, Sees: check.Front, Generated: true, Run: returnsTool, OfOne: func(_ *check.T, a *check.Response) types.GomegaMatcher {
		query, err := url.ParseQuery(a.RawQuery)
		if a.Path != check.DescribePath || a.Status/100 != 2 || err != nil {
			return nil
		}
		return And(match.BeTool(query.Get("name")), match.BeJSON())
	}},
	{ID: "describe/equals-list", Beside: "describe/answers-tool", ByMock: true, Sees: check.Front, Generated: true, Run: equalsList},
	{ID: "describe/missing-name", Sees: check.Front, Run: missingName},
	{ID: "describe/unknown-404", Sees: check.Front, Run: unknown404},
	{ID: "describe/hidden-404", Sees: check.Discovery, Run: hidden404},
	{ID: "describe/inaccessible-404", TellsApart: true, Sees: check.Discovery, Run: inaccessible404},
	{ID: "describe/name-exact", Sees: check.Front, Run: nameExact},
	{ID: "describe/name-not-scalar", Sees: check.Front, Run: nameNotScalar},
	{ID: "describe/after-error", ByMock: true, Sees: check.Front, Run: afterError},
	{ID: "describe/reflects-safely", Sees: check.Front, Run: reflectsSafely},
}

func returnsTool(ctx context.Context, t *check.T) {
	eachListed(ctx, t, func(described *check.Response, listed check.Tool) {
		t.Expect(described).To(match.BeTool(listed.Name()))
		t.Expect(described).To(match.BeJSON())
	})
	if t.HasFindings() {
		return
	}
	known, caller := scenario.KnownTool(ctx, t), scenario.NewCaller(t)
	t.Row(check.Agent, known, "with every byte percent-encoded", func() {
		t.Expect(t.As(check.Agent).Send(ctx, check.Request{Path: check.DescribePath, Raw: "name=" + client.PercentEncoded(known)})).To(match.BeTool(known))
	})
	t.Row(caller.Who, known, "the first request of a caller", func() { t.Expect(caller.Describe(ctx, known)).To(match.BeTool(known)) })
}

func equalsList(ctx context.Context, t *check.T) {
	eachListed(ctx, t, func(described *check.Response, listed check.Tool) {
		if described.Tool() != nil { // else describe/answers-tool fails
			t.Expect(described).To(match.IncludeAll(listed))
		}
	})

	if wrong := scenario.ListsAndDescribes(ctx, t, "describe/equals-list"); wrong != nil {
		t.For(wrong.Last.Who, wrong.Last.Tool, func() { t.Expect(wrong.Actual).To(wrong.Must, wrong.Trail) })
	}
}

func missingName(ctx context.Context, t *check.T) {
	t.As(check.Agent).Describe(ctx, scenario.KnownTool(ctx, t)).MustSucceed("describe/answers-tool", "describe/after-error")

	for what, query := range check.InOrder(map[string]string{"without a name": "", "with an empty name": "name=", "with a name that has no value": "name"}) {
		t.Row(check.Agent, "", what, func() {
			t.Expect(t.As(check.Agent).Send(ctx, check.Request{Path: check.DescribePath, Raw: query})).To(match.BeRefused(400, "missing_parameter"))
		})
	}
}

func unknown404(ctx context.Context, t *check.T) {
	t.As(check.Agent).Describe(ctx, scenario.KnownTool(ctx, t)).MustSucceed("describe/answers-tool", "describe/after-error")

	listed := t.As(check.Agent).MustListShared(ctx).Names()
	for _, name := range append(scenario.OddNames, scenario.NoSuchTool) {
		if !slices.Contains(listed, name) {
			t.For(check.Agent, name, func() {
				r := t.As(check.Agent).Describe(ctx, name)
				t.Expect(r).To(match.BeRefused(404, "tool_not_found"))
				t.Expect(r).To(match.HaveMessageWith(name))
			})
		}
	}
}

func hidden404(ctx context.Context, t *check.T) {
	t.As(check.Agent).Describe(ctx, scenario.KnownTool(ctx, t)).MustSucceed("describe/answers-tool", "describe/after-error")

	all := scenario.HiddenMethods(t)
	for _, hidden := range all {
		t.For(check.Agent, hidden, func() {
			r := t.As(check.Agent).Describe(ctx, hidden)
			t.Expect(r).To(match.BeUnknown(scenario.DiffersFromUnknown(ctx, t.As(check.Agent).Describe, r, hidden)))
		})
	}
	near := all[0][:len(all[0])-1]
	t.Row(check.Agent, near, "a method that is not exposed without its last letter", func() { // "did you mean"
		t.Expect(t.As(check.Agent).Describe(ctx, near)).NotTo(match.ContainAnyOf(all[:1], "to name a method that is not exposed"))
	})
}

func inaccessible404(ctx context.Context, t *check.T) {
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	t.As(check.Agent).Describe(ctx, denied).MustSucceed("describe/answers-tool", "describe/after-error")

	t.For(check.Discoverer, denied, func() {
		r := t.As(check.Discoverer).Describe(ctx, denied)
		t.Expect(r).To(match.BeUnknown(scenario.DiffersFromUnknown(ctx, t.As(check.Discoverer).Describe, r, denied)))
	})
}

func nameExact(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(check.Agent).Describe(ctx, known).MustSucceed("describe/answers-tool", "describe/after-error")

	listed := t.As(check.Agent).MustListShared(ctx).Names()
	for what, name := range check.InOrder(scenario.OtherSpellings(known)) {
		if slices.Contains(listed, name) {
			continue
		}
		t.Row(check.Agent, "", what, func() { t.Expect(t.As(check.Agent).Describe(ctx, name)).To(match.BeRefusedWith(404)) })
	}
	if name := scenario.Hyphenated(listed); name != "" {
		t.Row(check.Agent, "", "hyphens in place of underscores", func() { t.Expect(t.As(check.Agent).Describe(ctx, name)).To(match.BeRefusedWith(404)) })
	}
	for what, name := range check.InOrder(scenario.UncleanSpellings(known)) {
		t.Row(check.Agent, "", what, func() { t.Expect(t.As(check.Agent).Describe(ctx, name)).To(match.BeClientError()) })
	}
}

func nameNotScalar(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(check.Agent).Describe(ctx, known).MustSucceed("describe/answers-tool", "describe/after-error")

	oneOfThem := match.Conform("a 4xx, or the response for one of the two names", func(r *check.Response) string {
		if r.Status >= 400 && r.Status < 500 || r.Status == 200 && r.Tool().Name() == known {
			return ""
		}
		return r.Outcome()
	})
	for _, row := range []struct {
		what, query string
		expected    OmegaMatcher
	}{
		{"name[]=", "name[]=" + url.QueryEscape(known), match.BeClientError()},
		{"name[]=, encoded", "name%5B%5D=" + url.QueryEscape(known), match.BeClientError()},
		{"name[a]=", "name[a]=" + url.QueryEscape(known), match.BeClientError()},
		{"invalid UTF-8", "name=%FF%FE", match.BeClientError()},
		{"8 KiB", "name=" + strings.Repeat("x", 8<<10), match.BeClientError()},
		{"a repeated name", "name=" + url.QueryEscape(known) + "&name=" + scenario.NoSuchTool, oneOfThem},
	} {
		t.Row(check.Agent, "", row.what, func() {
			r := t.As(check.Agent).Send(ctx, check.Request{Path: check.DescribePath, Raw: row.query})
			t.Expect(r).To(row.expected)
			if !r.RefusedForLength() {
				t.Expect(r).NotTo(match.BeHTML())
			}
		})
	}
}

func afterError(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	callers := []check.Client{t.As(check.Agent)}
	switch {
	case t.Drupal != nil: // new callers, which no earlier error has affected
		callers = []check.Client{scenario.NewCaller(t), scenario.NewCaller(t)}
	case t.Knows(check.Agent2):
		callers = append(callers, t.As(check.Agent2))
	}
	before := callers[0].Describe(ctx, known).MustSucceed("describe/answers-tool", "describe/after-error")
	for _, other := range callers[1:] {
		other.Describe(ctx, known).MustSucceed("describe/answers-tool", "describe/after-error")
	}

	for what, query := range check.InOrder(map[string]string{"a 404": "name=no.such.tool", "a 400": "", "an empty name": "name=",
		"a list of names": "name[]=x", "two names": "name=no.such.tool&name=no.such.tool", "a name of invalid UTF-8": "name=%FF%FE"}) {
		callers[0].Send(ctx, check.Request{Path: check.DescribePath, Raw: query})
		for _, c := range callers {
			t.Expect(c.Describe(ctx, known)).To(match.EqualResponse(before), "after "+what)
		}
	}
	if t.Drupal == nil {
		return
	}
	t.As(check.Outsider).Describe(ctx, known)
	t.Expect(callers[0].Describe(ctx, known)).To(match.EqualResponse(before), "after another caller's 403")
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	if t.As(check.Discoverer).Describe(ctx, denied).IsError() && slices.Contains(callers[0].MustListAll(ctx).Names(), denied) {
		t.Expect(callers[0].Describe(ctx, denied)).To(match.HaveStatus(200), "after another caller's 404")
	}
}

func reflectsSafely(ctx context.Context, t *check.T) {
	t.As(check.Agent).Describe(ctx, scenario.KnownTool(ctx, t)).MustSucceed("describe/answers-tool", "describe/after-error")

	const hostile = `</script><script>alert(1)</script>"'&\`
	for what, query := range check.InOrder(map[string]url.Values{
		"markup":             {"name": {hostile}},
		"control characters": {"name": {"no.such\x01\x1b\n\u2028tool"}},
		"a callback":         {"name": {hostile}, "callback": {"alert"}},
	}) {
		t.Row(check.Agent, "", what, func() {
			r := t.As(check.Agent).Send(ctx, check.Request{Path: check.DescribePath, Query: query})
			t.Expect(r).To(match.BeClientError())
			t.Expect(r).To(match.BeJSON())
		})
	}
}

// eachListed describes the tools that the agent sees. Where the site is known it also describes every tenth tool of other callers,
// and those that the agent does not see. It describes at most --cases tools for each caller.
func eachListed(ctx context.Context, t *check.T, test func(described *check.Response, listed check.Tool)) {
	own := t.As(check.Agent).MustListAll(ctx) // what is described is compared with what is listed now
	visitSome := func(who check.Identity, tools []check.Tool) {
		tools = scenario.RandomSubset(scenario.Random(t, "describe"), tools, t.Cases)
		responses := t.Table(len(tools), func(i int) *check.Response { return t.As(who).Describe(ctx, tools[i].Name()) }).
			Shared(func(i int) string { return fmt.Sprintf("%s describes %s", who, tools[i].Name()) })
		for i, tool := range tools {
			t.For(who, tool.Name(), func() { test(responses.Response(i), tool) })
		}
	}
	visitSome(check.Agent, own.Tools())
	if t.Site == nil {
		return
	}
	shown := own.Names()
	for _, who := range t.Callers(check.Discoverer, check.Admin) {
		var only []check.Tool
		for i, tool := range t.As(who).ListAll(ctx).Tools() {
			if (i%10 == 0 || !slices.Contains(shown, tool.Name())) && !t.Marks(tool.Name()) {
				only = append(only, tool)
			}
		}
		visitSome(who, only)
	}
}
