package suites

import (
	"fmt"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"bridgecheck/suites/exact"
)

var _ = Area("describe", func(b *Bridge) {
	b.Check("describe/answers-tool", func(ctx SpecContext) {
		for _, tool := range b.As(Agent).MustListAll(ctx).Tools() {
			Expect(b.As(Agent).Describe(ctx, tool.Name())).To(BeTheTool(tool.Name()))
		}
	})

	b.Check("describe/equals-list", func(ctx SpecContext) {
		for _, listed := range b.As(Agent).MustListAll(ctx).Tools() {
			described := b.As(Agent).Describe(ctx, listed.Name())
			if described.Tool() == nil {
				continue // describe/answers-tool judges that
			}
			Expect(described).To(HoldAllOf(listed))
		}
	})

	b.Check("describe/missing-name", func(ctx SpecContext) {
		b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

		Expect(b.As(Agent).Send(ctx, Request{Path: DescribePath})).To(BeRefused(400, "missing_parameter"))
		Expect(b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name="})).To(BeRefused(400, "missing_parameter"))
	})

	b.Check("describe/unknown-404", func(ctx SpecContext) {
		b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

		r := b.As(Agent).Describe(ctx, "no.such.tool")
		Expect(r).To(BeRefused(404, "tool_not_found"))
		Expect(r).To(SayInMessage("no.such.tool"))
	})

	b.Check("describe/hidden-404", func(ctx SpecContext) {
		b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

		for _, hidden := range b.HiddenMethods() {
			Expect(b.As(Agent).Describe(ctx, hidden)).To(BeUnknown(b.As(Agent).Describe, ctx, hidden))
		}
	})

	b.Check("describe/inaccessible-404", func(ctx SpecContext) {
		denied := b.DeniedTool(Discoverer, Agent)
		b.As(Agent).Describe(ctx, denied).MustSucceed()

		Expect(b.As(Discoverer).Describe(ctx, denied)).To(BeUnknown(b.As(Discoverer).Describe, ctx, denied))
	})

	b.Check("describe/name-exact", func(ctx SpecContext) {
		known := b.KnownTool(ctx)
		b.As(Agent).Describe(ctx, known).MustSucceed()

		listed := b.As(Agent).MustListAll(ctx).Names()
		for what, name := range otherSpellings(known) {
			if contains(listed, name) {
				continue
			}
			Expect(b.As(Agent).Describe(ctx, name)).To(BeRefusedWith(404), what)
		}
	})

	b.Check("describe/name-not-scalar", func(ctx SpecContext) {
		known := b.KnownTool(ctx)
		b.As(Agent).Describe(ctx, known).MustSucceed()

		for what, query := range map[string]string{
			"a list":         "name[]=" + url.QueryEscape(known),
			"an encoded one": "name%5B%5D=" + url.QueryEscape(known),
			"a map":          "name[a]=" + url.QueryEscape(known),
			"invalid UTF-8":  "name=%FF%FE",
			"8 KiB":          "name=" + strings.Repeat("x", 8<<10),
		} {
			r := b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: query})
			Expect(r).To(BeClientError(), what)
			Expect(r).NotTo(BeHTML(), what)
		}
		r := b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name=" + url.QueryEscape(known) + "&name=no.such.tool"})
		Expect(r).To(Meet("a 4xx, or the answer for one of the two names", func(a *Answer) string {
			if a.Status >= 400 && a.Status < 500 || a.Status == 200 && a.Tool().Name() == known {
				return ""
			}
			return a.Outcome()
		}))
		Expect(r).NotTo(BeHTML(), "a repeated name")
	})

	b.Check("describe/after-error", func(ctx SpecContext) {
		known := b.KnownTool(ctx)
		callers := []Client{b.As(Agent)}
		switch {
		case b.Drupal != nil: // whom no earlier error can have reached
			callers = []Client{b.newcomer(), b.newcomer()}
		case b.Knows(Agent2):
			callers = append(callers, b.As(Agent2))
		}
		before := callers[0].Describe(ctx, known).MustSucceed()
		for _, other := range callers[1:] {
			other.Describe(ctx, known).MustSucceed()
		}

		for what, query := range map[string]string{"a 404": "name=no.such.tool", "a 400": "", "an empty name": "name="} {
			callers[0].Send(ctx, Request{Path: DescribePath, Raw: query})
			for _, c := range callers {
				Expect(c.Describe(ctx, known)).To(EqualAnswer(before), "after "+what)
			}
		}
	})

	b.Check("describe/reflects-safely", func(ctx SpecContext) {
		b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

		const hostile = `</script><script>alert(1)</script>"'&\`
		r := b.As(Agent).Describe(ctx, hostile)
		Expect(r).To(BeClientError())
		Expect(r).To(BeJSON())
	})
})

// otherSpellings are names close to a known one that must not find it, each with what it tries.
func otherSpellings(name string) map[string]string {
	return map[string]string{
		"upper case":     strings.ToUpper(name),
		"lower case":     strings.ToLower(name),
		"a blank before": " " + name,
		"a blank after":  name + " ",
		"a prefix":       name[:len(name)-1],
		"a longer one":   name + "x",
		"a path":         "./" + name,
		"a slash before": "/" + name,
		"a glob":         name[:1] + "*",
		"everything":     "*",
		"SQL's wildcard": name[:1] + "%",
		"a pattern":      ".*",
	}
}

// HoldAllOf matches a describe answer whose tool has every member of the listed tool, with an equal value.
func HoldAllOf(listed Tool) OmegaMatcher {
	return Meet(fmt.Sprintf("all that list gives of %q", listed.Name()), func(a *Answer) string {
		described := a.Tool()
		for name, want := range listed {
			got, ok := described[name]
			if !ok {
				return fmt.Sprintf("a tool without `%s`", name)
			}
			if d := exact.Diff(want, got); d != "" {
				return fmt.Sprintf("another `%s` %s", name, d)
			}
		}
		return ""
	})
}
