package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// RunsPlainly reports whether a method responds at once to a call without arguments.
func RunsPlainly(m *fixtures.Method) bool {
	return !slices.ContainsFunc(m.Params, func(p fixtures.Param) bool { return p.Required }) && m.Behaviour.Kind != fixtures.Fail &&
		m.Behaviour.Kind != fixtures.Throw && m.Behaviour.Sleep == 0
}

// ToolTaking finds a tool that gives back its arguments and whose listed inputSchema takes the value alone in one of its
// parameters.
func ToolTaking(t *check.T, listed check.Listing, value string) (tool Sample, parameter string, ok bool) {
	v := exact.MustParse(value)
	for _, s := range Samples(t, check.Agent, fixtures.Echo) {
		shown, listed := listed.Find(s.Name)
		if !listed || len(s.Arguments) > 0 {
			continue
		}
		schema, err := jsonschema.Compile(shown.Input(), jsonschema.Draft7)
		if err != nil {
			continue
		}
		for _, p := range s.Params {
			if schema.Fault(map[string]any{p.Name: v}) == "" {
				return s, p.Name, true
			}
		}
	}
	return Sample{}, "", false
}

// Plain lists the agent's tools whose result is a text in which nothing can get lost.
func Plain(t *check.T) []Sample {
	plain := slices.DeleteFunc(Samples(t, check.Agent, fixtures.Value), func(s Sample) bool { return !IsPlain(s.Behaviour.Value) })
	if len(plain) == 0 {
		check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool with a plain text as its result")
	}
	return plain
}

// MustGiveResults is the positive control of all that looks into results: a plain one comes back, in whatever form.
func MustGiveResults(ctx context.Context, t *check.T) {
	tool := Plain(t)[0]
	test := match.HaveInResult(tool.Behaviour.Value)
	r := t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)
	if ok, err := test.Match(r); err != nil || !ok {
		check.BlockedBy(check.Finding{Subject: "a plain result does not come back" + ": " + test.FailureMessage(r)}, "invoke/answers-result")
	}
}

// IsPlain says whether a text without anything in it that could get lost or changed.
func IsPlain(value fixtures.Raw) bool {
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" || len(text) > 100 {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r > '~' || r < ' ' || strings.ContainsRune(`<>&"'\/{}`, r) })
}

// Simplest is the first method of the site that the agent may run as a tool and that responds at once to a call without
// arguments; "" on a site without one.
func Simplest(t *check.T) string {
	for _, m := range AgentTools(t) {
		if RunsPlainly(m) {
			return m.ID
		}
	}
	return ""
}

// AgentTools are the methods that are tools and that the agent may run, in the site's order.
func AgentTools(t *check.T) []*fixtures.Method {
	var tools []*fixtures.Method
	methods := t.Site.Methods()
	for i := range methods {
		if m := &methods[i]; t.Exposed(m) && t.Site.MayRun(check.Agent, m) {
			tools = append(tools, m)
		}
	}
	return tools
}

// KnownTool names a tool that the agent sees: a plain one of the mock's site that runs without arguments, else the
// first that is listed.
func KnownTool(ctx context.Context, t *check.T) string {
	if t.Drupal != nil {
		if id := Simplest(t); id != "" {
			return t.ToolName(id)
		}
	}
	names := t.As(check.Agent).MustListShared(ctx).Names()
	if len(names) == 0 {
		check.NotTestable("the agent sees no tool: it needs one")
	}
	return names[0]
}

// mostHidden is how many hidden methods a check asks for: each costs three requests, and what hides one hides the others, but for
// what filter/include-exclude looks at of each.
const mostHidden = 60

// HiddenMethods are methods of the site that every permission would let run, but that are not exposed as tools.
func HiddenMethods(t *check.T) []string {
	var hidden []string
	methods := t.Site.Methods()
	for i := range methods {
		if m := &methods[i]; !t.Exposed(m) && t.Site.MayRun(check.Agent, m) {
			hidden = append(hidden, t.ToolName(m.ID))
			if t.ToolName(m.ID) != m.ID {
				hidden = append(hidden, m.ID) // the name that the site knows it by
			}
		}
	}
	if len(hidden) == 0 {
		check.NotTestable("the site " + t.Site.Name() + " has no method that is not exposed")
	}
	return RandomSubset(Random(t, "hidden"), hidden, mostHidden)
}

// DeniedTool names a tool that may runs and who lacks the permission for.
func DeniedTool(t *check.T, who, may check.Identity) string {
	methods := t.Site.Methods()
	for i := range methods {
		m := &methods[i]
		if t.Exposed(m) && !t.Site.MayRun(who, m) && t.Site.MayRun(may, m) && RunsPlainly(m) {
			return t.ToolName(m.ID)
		}
	}
	check.NotTestable(fmt.Sprintf("the site %s has no tool that %s may run and %s may not", t.Site.Name(), may, who))
	return ""
}
