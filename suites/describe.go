package suites

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// checks__describe__describe are the checks of this file.
var checks__describe__describe = []Check{
	{ID: "describe/answers-tool", Sees: Front, Generated: true, Run: chk__describe__answersTool},
	{ID: "describe/equals-list", Sees: Front, Generated: true, Run: chk__describe__equalsList},
	{ID: "describe/missing-name", Sees: Front, Run: chk__describe__missingName},
	{ID: "describe/unknown-404", Sees: Front, Run: chk__describe__unknown404},
	{ID: "describe/hidden-404", Sees: Site, Run: chk__describe__hidden404},
	{ID: "describe/inaccessible-404", Sees: Site, Run: chk__describe__inaccessible404},
	{ID: "describe/name-exact", Sees: Front, Run: chk__describe__nameExact},
	{ID: "describe/name-not-scalar", Sees: Front, Run: chk__describe__nameNotScalar},
	{ID: "describe/after-error", Sees: Front, Run: chk__describe__afterError},
	{ID: "describe/reflects-safely", Sees: Front, Run: chk__describe__reflectsSafely},
}

func chk__describe__answersTool(ctx context.Context, b *Bridge) {
	b.eachListed(ctx, func(caller Client, listed Tool) {
		r := caller.Describe(ctx, listed.Name())
		b.Expect(r).To(BeTheTool(listed.Name()))
		b.Expect(r).To(BeJSON())
	})
	if b.wrong() {
		return
	}
	known, caller := b.KnownTool(ctx), b.newcomer()
	b.Row(Agent, known, "with every byte percent-encoded", func() {
		b.Expect(b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name=" + percentEncoded(known)})).To(BeTheTool(known))
	})
	b.Row(caller.who, known, "the first request of a caller", func() { b.Expect(caller.Describe(ctx, known)).To(BeTheTool(known)) })
}

func chk__describe__equalsList(ctx context.Context, b *Bridge) {
	b.eachListed(ctx, func(caller Client, listed Tool) {
		if described := caller.Describe(ctx, listed.Name()); described.Tool() != nil { // else describe/answers-tool fails
			b.Expect(described).To(HoldAllOf(listed))
		}
	})

	who := b.agents(ctx)
	change := b.changer(ctx, who)
	wrong := b.walk(who.sequence(b.dice("describe/equals-list")), func() func(step) *mismade {
		lists := map[Identity]Listing{}
		return func(s step) *mismade {
			switch s.does {
			case listing:
				lists[s.who] = b.As(s.who).MustListAll(ctx)
			case describing:
				if lists[s.who].Pages == nil {
					lists[s.who] = b.As(s.who).MustListAll(ctx)
				}
				described := b.take(ctx, s, who)
				if listed, ok := lists[s.who].Find(s.tool); ok && described.Tool() != nil && !b.foundWrong(s.who, s.tool) {
					return faultOf(described, HoldAllOf(listed))
				}
			default:
				b.goOn(ctx, s, who, change, lists)
			}
			return nil
		}
	})
	if wrong != nil {
		b.For(wrong.last.who, wrong.last.tool, func() { b.Expect(wrong.actual).To(wrong.must, wrong.trail) })
	}
}

func chk__describe__missingName(ctx context.Context, b *Bridge) {
	b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

	for what, query := range inOrder(map[string]string{"without a name": "", "with an empty name": "name=", "with a name that has no value": "name"}) {
		b.Row(Agent, "", what, func() {
			b.Expect(b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: query})).To(BeRefused(400, "missing_parameter"))
		})
	}
}

func chk__describe__unknown404(ctx context.Context, b *Bridge) {
	b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

	listed := b.As(Agent).MustListAll(ctx).Names()
	for _, name := range append(oddNames, noSuchTool) {
		if !contains(listed, name) {
			b.For(Agent, name, func() {
				r := b.As(Agent).Describe(ctx, name)
				b.Expect(r).To(BeRefused(404, "tool_not_found"))
				b.Expect(r).To(SayInMessage(name))
			})
		}
	}
}

func chk__describe__hidden404(ctx context.Context, b *Bridge) {
	b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

	for _, hidden := range b.HiddenMethods() {
		b.For(Agent, hidden, func() {
			b.Expect(b.As(Agent).Describe(ctx, hidden)).To(BeUnknown(b.As(Agent).Describe, ctx, hidden))
		})
	}
}

func chk__describe__inaccessible404(ctx context.Context, b *Bridge) {
	denied := b.DeniedTool(Discoverer, Agent)
	b.As(Agent).Describe(ctx, denied).MustSucceed()

	b.For(Discoverer, denied, func() {
		b.Expect(b.As(Discoverer).Describe(ctx, denied)).To(BeUnknown(b.As(Discoverer).Describe, ctx, denied))
	})
}

func chk__describe__nameExact(ctx context.Context, b *Bridge) {
	known := b.KnownTool(ctx)
	b.As(Agent).Describe(ctx, known).MustSucceed()

	listed := b.As(Agent).MustListAll(ctx).Names()
	for what, name := range inOrder(otherSpellings(known)) {
		if contains(listed, name) {
			continue
		}
		b.Row(Agent, "", what, func() { b.Expect(b.As(Agent).Describe(ctx, name)).To(BeRefusedWith(404)) })
	}
	for what, name := range inOrder(uncleanSpellings(known)) {
		b.Row(Agent, "", what, func() { b.Expect(b.As(Agent).Describe(ctx, name)).To(BeClientError()) })
	}
}

func chk__describe__nameNotScalar(ctx context.Context, b *Bridge) {
	known := b.KnownTool(ctx)
	b.As(Agent).Describe(ctx, known).MustSucceed()

	for what, query := range inOrder(map[string]string{
		"a list":         "name[]=" + url.QueryEscape(known),
		"an encoded one": "name%5B%5D=" + url.QueryEscape(known),
		"a map":          "name[a]=" + url.QueryEscape(known),
		"invalid UTF-8":  "name=%FF%FE",
	}) {
		b.Row(Agent, "", what, func() {
			r := b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: query})
			b.Expect(r).To(BeClientError())
			b.Expect(r).NotTo(BeHTML())
		})
	}
	b.Row(Agent, "", "8 KiB", func() {
		r := b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name=" + strings.Repeat("x", 8<<10)})
		b.Expect(r).To(BeClientError())
		if !r.RefusedForLength() {
			b.Expect(r).NotTo(BeHTML())
		}
	})
	b.Row(Agent, "", "a repeated name", func() {
		r := b.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name=" + url.QueryEscape(known) + "&name=no.such.tool"})
		b.Expect(r).To(Meet("a 4xx, or the answer for one of the two names", func(a *Answer) string {
			if a.Status >= 400 && a.Status < 500 || a.Status == 200 && a.Tool().Name() == known {
				return ""
			}
			return a.Outcome()
		}))
		b.Expect(r).NotTo(BeHTML())
	})
}

func chk__describe__afterError(ctx context.Context, b *Bridge) {
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

	for what, query := range inOrder(map[string]string{"a 404": "name=no.such.tool", "a 400": "", "an empty name": "name=",
		"a list of names": "name[]=x", "two names": "name=no.such.tool&name=no.such.tool", "a name of invalid UTF-8": "name=%FF%FE"}) {
		callers[0].Send(ctx, Request{Path: DescribePath, Raw: query})
		for _, c := range callers {
			b.Expect(c.Describe(ctx, known)).To(EqualAnswer(before), "after "+what)
		}
	}
	if b.Drupal == nil {
		return
	}
	b.As(Outsider).Describe(ctx, known)
	b.Expect(callers[0].Describe(ctx, known)).To(EqualAnswer(before), "after another caller's 403")
	denied := b.DeniedTool(Discoverer, Agent)
	if b.As(Discoverer).Describe(ctx, denied).IsError() && contains(callers[0].MustListAll(ctx).Names(), denied) {
		b.Expect(callers[0].Describe(ctx, denied)).To(HaveStatus(200), "after another caller's 404")
	}
}

func chk__describe__reflectsSafely(ctx context.Context, b *Bridge) {
	b.As(Agent).Describe(ctx, b.KnownTool(ctx)).MustSucceed()

	const hostile = `</script><script>alert(1)</script>"'&\`
	for what, query := range inOrder(map[string]url.Values{
		"markup":             {"name": {hostile}},
		"control characters": {"name": {"no.such\x01\x1b\n\u2028tool"}},
		"a callback":         {"name": {hostile}, "callback": {"alert"}},
	}) {
		b.Row(Agent, "", what, func() {
			r := b.As(Agent).Send(ctx, Request{Path: DescribePath, Query: query})
			b.Expect(r).To(BeClientError())
			b.Expect(r).To(BeJSON())
		})
	}
}

// oddNames are names of no tool that a careless look-up takes for something else: for nothing, or for what every object
// of the language has; and those that a careless message does not hold whole.
var oddNames = []string{"0", "null", "constructor", "__proto__", "toString", "<b>no</b>&such", "no.such.tool." + strings.Repeat("x", 87)}

// eachListed visits every tool that the agent sees and, with a mock, what only others see, and the first of theirs: of
// each caller no more than --cases.
func (b *Bridge) eachListed(ctx context.Context, visit func(caller Client, listed Tool)) {
	own := b.As(Agent).MustListAll(ctx)
	visitSome := func(who Identity, tools []Tool) {
		for _, tool := range some(b.dice("describe"), tools, b.cases) {
			b.For(who, tool.Name(), func() { visit(b.As(who), tool) })
		}
	}
	visitSome(Agent, own.Tools())
	if b.Drupal == nil {
		return
	}
	shown := own.Names()
	for _, who := range []Identity{Discoverer, Admin} {
		var only []Tool
		for i, tool := range b.As(who).ListAll(ctx).Tools() {
			if i == 0 || !contains(shown, tool.Name()) {
				only = append(only, tool)
			}
		}
		visitSome(who, only)
	}
}

// otherSpellings are names close to a known one that must not find it, each with what it tries.
func otherSpellings(name string) map[string]string {
	spellings := map[string]string{
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

		"SQL's wildcard for one character": name[:1] + "_" + name[min(2, len(name)):],
		"a pattern of one character":       name[:1] + "." + name[min(2, len(name)):],
		"a suffix":                         name[1:],
		"underscores in place of dots":     strings.ReplaceAll(name, ".", "_"),
		"a longer one by a dot":            name + ".",
		"a longer one by a word":           name + ".x",
		"percent-encoded twice":            percentEncoded(name),
		"a full-width letter":              string('\uff21'+rune(name[0]-'A')) + name[1:],
		"an accent":                        name[:1] + "\u0301" + name[1:],
		"a blank of no width behind":       name + "\u200b",
	}
	maps.DeleteFunc(spellings, func(_, other string) bool { return other == "" || other == name })
	return spellings
}

// uncleanSpellings must not find the name either, and may be refused for their control characters before it is looked up.
func uncleanSpellings(name string) map[string]string {
	return map[string]string{"a NUL behind": name + "\x00", "a NUL and more behind": name + "\x00x", "a line break behind": name + "\n", "a tab before": "\t" + name}
}

// HoldAllOf matches a describe answer whose tool has every member of the listed tool, with an equal value.
func HoldAllOf(listed Tool) OmegaMatcher {
	return Meet(fmt.Sprintf("all that list gives of %q", listed.Name()), func(a *Answer) string {
		described := a.Tool()
		for name, want := range inOrder(listed) {
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
