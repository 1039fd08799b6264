package suites

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
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

func chk__describe__answersTool(ctx context.Context, t *T) {
	t.eachListed(ctx, func(caller Client, listed Tool) {
		r := caller.Describe(ctx, listed.Name())
		t.Expect(r).To(BeTheTool(listed.Name()))
		t.Expect(r).To(BeJSON())
	})
	if t.wrong() {
		return
	}
	known, caller := t.KnownTool(ctx), t.newcomer()
	t.Row(Agent, known, "with every byte percent-encoded", func() {
		t.Expect(t.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name=" + percentEncoded(known)})).To(BeTheTool(known))
	})
	t.Row(caller.who, known, "the first request of a caller", func() { t.Expect(caller.Describe(ctx, known)).To(BeTheTool(known)) })
}

func chk__describe__equalsList(ctx context.Context, t *T) {
	t.eachListed(ctx, func(caller Client, listed Tool) {
		if described := caller.Describe(ctx, listed.Name()); described.Tool() != nil { // else describe/answers-tool fails
			t.Expect(described).To(HoldAllOf(listed))
		}
	})

	who := t.agents(ctx)
	change := t.changer(ctx, who)
	wrong := t.walk(who.sequence(t.dice("describe/equals-list")), func() func(step) *mismade {
		lists := map[Identity]Listing{}
		return func(s step) *mismade {
			switch s.does {
			case listing:
				lists[s.who] = t.As(s.who).MustListAll(ctx)
			case describing:
				if lists[s.who].Pages == nil {
					lists[s.who] = t.As(s.who).MustListAll(ctx)
				}
				described := t.take(ctx, s, who)
				if listed, ok := lists[s.who].Find(s.tool); ok && described.Tool() != nil && !t.foundWrong(s.who, s.tool) {
					return faultOf(described, HoldAllOf(listed))
				}
			default:
				t.goOn(ctx, s, who, change, lists)
			}
			return nil
		}
	})
	if wrong != nil {
		t.For(wrong.last.who, wrong.last.tool, func() { t.Expect(wrong.actual).To(wrong.must, wrong.trail) })
	}
}

func chk__describe__missingName(ctx context.Context, t *T) {
	t.As(Agent).Describe(ctx, t.KnownTool(ctx)).MustSucceed()

	for what, query := range inOrder(map[string]string{"without a name": "", "with an empty name": "name=", "with a name that has no value": "name"}) {
		t.Row(Agent, "", what, func() {
			t.Expect(t.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: query})).To(BeRefused(400, "missing_parameter"))
		})
	}
}

func chk__describe__unknown404(ctx context.Context, t *T) {
	t.As(Agent).Describe(ctx, t.KnownTool(ctx)).MustSucceed()

	listed := t.As(Agent).MustListAll(ctx).Names()
	for _, name := range append(oddNames, noSuchTool) {
		if !slices.Contains(listed, name) {
			t.For(Agent, name, func() {
				r := t.As(Agent).Describe(ctx, name)
				t.Expect(r).To(BeRefused(404, "tool_not_found"))
				t.Expect(r).To(SayInMessage(name))
			})
		}
	}
}

func chk__describe__hidden404(ctx context.Context, t *T) {
	t.As(Agent).Describe(ctx, t.KnownTool(ctx)).MustSucceed()

	for _, hidden := range t.HiddenMethods() {
		t.For(Agent, hidden, func() {
			t.Expect(t.As(Agent).Describe(ctx, hidden)).To(BeUnknown(t.As(Agent).Describe, ctx, hidden))
		})
	}
}

func chk__describe__inaccessible404(ctx context.Context, t *T) {
	denied := t.DeniedTool(Discoverer, Agent)
	t.As(Agent).Describe(ctx, denied).MustSucceed()

	t.For(Discoverer, denied, func() {
		t.Expect(t.As(Discoverer).Describe(ctx, denied)).To(BeUnknown(t.As(Discoverer).Describe, ctx, denied))
	})
}

func chk__describe__nameExact(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).Describe(ctx, known).MustSucceed()

	listed := t.As(Agent).MustListAll(ctx).Names()
	for what, name := range inOrder(otherSpellings(known)) {
		if slices.Contains(listed, name) {
			continue
		}
		t.Row(Agent, "", what, func() { t.Expect(t.As(Agent).Describe(ctx, name)).To(BeRefusedWith(404)) })
	}
	for what, name := range inOrder(uncleanSpellings(known)) {
		t.Row(Agent, "", what, func() { t.Expect(t.As(Agent).Describe(ctx, name)).To(BeClientError()) })
	}
}

func chk__describe__nameNotScalar(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).Describe(ctx, known).MustSucceed()

	for what, query := range inOrder(map[string]string{
		"a list":         "name[]=" + url.QueryEscape(known),
		"an encoded one": "name%5B%5D=" + url.QueryEscape(known),
		"a map":          "name[a]=" + url.QueryEscape(known),
		"invalid UTF-8":  "name=%FF%FE",
	}) {
		t.Row(Agent, "", what, func() {
			r := t.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: query})
			t.Expect(r).To(BeClientError())
			t.Expect(r).NotTo(BeHTML())
		})
	}
	t.Row(Agent, "", "8 KiB", func() {
		r := t.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name=" + strings.Repeat("x", 8<<10)})
		t.Expect(r).To(BeClientError())
		if !r.RefusedForLength() {
			t.Expect(r).NotTo(BeHTML())
		}
	})
	t.Row(Agent, "", "a repeated name", func() {
		r := t.As(Agent).Send(ctx, Request{Path: DescribePath, Raw: "name=" + url.QueryEscape(known) + "&name=no.such.tool"})
		t.Expect(r).To(Meet("a 4xx, or the answer for one of the two names", func(a *Response) string {
			if a.Status >= 400 && a.Status < 500 || a.Status == 200 && a.Tool().Name() == known {
				return ""
			}
			return a.Outcome()
		}))
		t.Expect(r).NotTo(BeHTML())
	})
}

func chk__describe__afterError(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	callers := []Client{t.As(Agent)}
	switch {
	case t.Drupal != nil: // whom no earlier error can have reached
		callers = []Client{t.newcomer(), t.newcomer()}
	case t.Knows(Agent2):
		callers = append(callers, t.As(Agent2))
	}
	before := callers[0].Describe(ctx, known).MustSucceed()
	for _, other := range callers[1:] {
		other.Describe(ctx, known).MustSucceed()
	}

	for what, query := range inOrder(map[string]string{"a 404": "name=no.such.tool", "a 400": "", "an empty name": "name=",
		"a list of names": "name[]=x", "two names": "name=no.such.tool&name=no.such.tool", "a name of invalid UTF-8": "name=%FF%FE"}) {
		callers[0].Send(ctx, Request{Path: DescribePath, Raw: query})
		for _, c := range callers {
			t.Expect(c.Describe(ctx, known)).To(EqualAnswer(before), "after "+what)
		}
	}
	if t.Drupal == nil {
		return
	}
	t.As(Outsider).Describe(ctx, known)
	t.Expect(callers[0].Describe(ctx, known)).To(EqualAnswer(before), "after another caller's 403")
	denied := t.DeniedTool(Discoverer, Agent)
	if t.As(Discoverer).Describe(ctx, denied).IsError() && slices.Contains(callers[0].MustListAll(ctx).Names(), denied) {
		t.Expect(callers[0].Describe(ctx, denied)).To(HaveStatus(200), "after another caller's 404")
	}
}

func chk__describe__reflectsSafely(ctx context.Context, t *T) {
	t.As(Agent).Describe(ctx, t.KnownTool(ctx)).MustSucceed()

	const hostile = `</script><script>alert(1)</script>"'&\`
	for what, query := range inOrder(map[string]url.Values{
		"markup":             {"name": {hostile}},
		"control characters": {"name": {"no.such\x01\x1b\n\u2028tool"}},
		"a callback":         {"name": {hostile}, "callback": {"alert"}},
	}) {
		t.Row(Agent, "", what, func() {
			r := t.As(Agent).Send(ctx, Request{Path: DescribePath, Query: query})
			t.Expect(r).To(BeClientError())
			t.Expect(r).To(BeJSON())
		})
	}
}

// oddNames are names of no tool that a careless look-up takes for something else: for nothing, or for what every object
// of the language has; and those that a careless message does not hold whole.
var oddNames = []string{"0", "null", "constructor", "__proto__", "toString", "<b>no</b>&such", "no.such.tool." + strings.Repeat("x", 87)}

// eachListed visits every tool that the agent sees and, with a mock, what only others see, and the first of theirs: of
// each caller no more than --cases.
func (t *T) eachListed(ctx context.Context, visit func(caller Client, listed Tool)) {
	own := t.As(Agent).MustListAll(ctx)
	visitSome := func(who Identity, tools []Tool) {
		for _, tool := range some(t.dice("describe"), tools, t.cases) {
			t.For(who, tool.Name(), func() { visit(t.As(who), tool) })
		}
	}
	visitSome(Agent, own.Tools())
	if t.Drupal == nil {
		return
	}
	shown := own.Names()
	for _, who := range []Identity{Discoverer, Admin} {
		var only []Tool
		for i, tool := range t.As(who).ListAll(ctx).Tools() {
			if i == 0 || !slices.Contains(shown, tool.Name()) {
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
	return Meet(fmt.Sprintf("all that list gives of %q", listed.Name()), func(a *Response) string {
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
