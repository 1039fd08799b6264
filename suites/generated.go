package suites

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/generate"
)

// defaultCases is how many made-up cases a check tries at most.
const defaultCases = 400

// shrinkings is how many requests the search for the smallest failing case may take.
const shrinkings = 60

// dice are the run's for one purpose: the same seed throws the same, whatever else was drawn before.
func (t *T) dice(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(uint64(t.seed), h.Sum64()))
}

// strictTool is a tool that takes arguments made up for its inputSchema.
type strictTool struct {
	sample
	*generate.Maker
}

// takenBy is the tool that was asked to take what was made up for the inputSchema that it shows.
type takenBy struct {
	tool string
	made *generate.Maker
}

// toolCase is a case made up for one of the tools.
type toolCase struct {
	strictTool
	generate.Case
}

// strictTools lists the agent's tools of the kinds that take the plain arguments made up for the inputSchema they show:
// the twins of all that break it. There are no more of them than there may be cases. What a tool takes is asked once a
// run, and of the first one each time anew, for it shows that the bridge still takes any.
func (t *T) strictTools(ctx context.Context, kinds ...fixtures.Kind) []strictTool {
	listed := t.As(Agent).MustListAll(ctx)
	var able []strictTool
	for _, s := range t.samples(Agent, kinds...) {
		if shown, ok := listed.Find(s.Name); ok && len(s.Params) > 0 {
			if made := t.makers.ForArguments(shown.Input()); made != nil {
				able = append(able, strictTool{s, made})
			}
		}
	}
	var tools []strictTool
	for _, tool := range some(t.dice("strict"), able, t.cases) {
		key := takenBy{tool.Name, tool.Maker}
		taken, asked := t.taken[key]
		if !asked || len(tools) == 0 {
			taken = tool.Taken(func(arguments any) bool { return !t.As(Agent).Invoke(ctx, tool.Name, arguments).IsError() })
			t.taken[key] = taken
		}
		if taken != nil {
			tools = append(tools, strictTool{tool.sample, taken.With(t.dice(tool.Name))})
		}
	}
	if len(tools) == 0 {
		NotTestable("no tool takes valid arguments made up for its inputSchema")
	}
	return tools
}

// everyCase gathers what can be told of each tool's schema, and adds what is drawn, one tool after the other: a fifth of
// all. There are no more than --cases.
func (t *T) everyCase(tools []strictTool, told func(strictTool) []generate.Case, drawn func(strictTool) (generate.Case, bool)) []toolCase {
	var all []toolCase
	for _, tool := range tools {
		for _, c := range told(tool) {
			all = append(all, toolCase{tool, c})
		}
	}
	all = t.fairly(all, t.cases*4/5)
	for n := range min(t.cases-len(all), t.cases/5) {
		if c, ok := drawn(tools[n%len(tools)]); ok {
			all = append(all, toolCase{tools[n%len(tools)], c})
		}
	}
	return all
}

// brokenArguments are made up for the tools that the agent may run, each breaking the inputSchema in one place.
func (t *T) brokenArguments(ctx context.Context) []toolCase {
	broken := t.everyCase(t.strictTools(ctx, well...), func(tool strictTool) []generate.Case { return tool.Broken() }, strictTool.DrawnBroken)
	if len(broken) == 0 {
		NotTestable("the bridge lists no tool whose inputSchema can be broken")
	}
	return broken
}

// fairly are n of all the cases in their order, of every keyword as many as there are or as many as of the others; which
// ones, the seed says.
func (t *T) fairly(all []toolCase, n int) []toolCase {
	if len(all) <= n {
		return all
	}
	groups := map[string][]int{}
	for _, at := range t.dice("pick").Perm(len(all)) {
		keyword, _, _ := strings.Cut(all[at].What, " ")
		groups[keyword] = append(groups[keyword], at)
	}
	keywords := slices.Sorted(maps.Keys(groups))
	var picked []int
	for round := 0; len(picked) < n; round++ {
		for _, keyword := range keywords {
			if group := groups[keyword]; round < len(group) && len(picked) < n {
				picked = append(picked, group[round])
			}
		}
	}
	slices.Sort(picked)
	chosen := make([]toolCase, n)
	for i, at := range picked {
		chosen[i] = all[at]
	}
	return chosen
}

// smallest takes the answer to a made-up value. Where it is not as it must be, it puts smaller values of the same kind to
// the bridge, and gives the answer to the smallest that fails, with a note on the value.
func (t *T) smallest(c generate.Case, kind func(any) bool, fault func(any) string, a *Response, put func(any) *Response, must types.GomegaMatcher) (least *Response, note string) {
	holds := func(a *Response) bool { ok, err := must.Match(a); return ok && err == nil }
	note = fmt.Sprintf("%s, made up with seed %d", c.What, t.seed)
	if holds(a) || t.wrong() { // there is a small one to begin with
		return a, note
	}
	value := generate.Smallest(c.Value, shrinkings, func(v any) bool { return kind(v) && !holds(put(v)) })
	if why := fault(value); why != "" {
		note = fmt.Sprintf("%s, made up with seed %d", why, t.seed)
	}
	if least = put(value); holds(least) {
		return a, note // it fails now and then: the first failure counts
	}
	return least, note
}

// putArguments invokes the tool with made-up arguments.
func (t *T) putArguments(ctx context.Context, tool string) func(any) *Response {
	return func(v any) *Response {
		t.mark()
		return t.As(Agent).Invoke(ctx, tool, v)
	}
}

// resultTool is a tool whose method gives whatever it is told to, within the outputSchema that is shown or not.
type resultTool struct {
	sample
	*generate.Maker
}

// resultTools are the agent's tools that show the outputSchema of their method and that give a fixed value.
func (t *T) resultTools(ctx context.Context) []resultTool {
	listed := t.As(Agent).MustListAll(ctx)
	var tools []resultTool
	for _, s := range t.samples(Agent, fixtures.Value) {
		shown, ok := listed.Find(s.Name)
		schema, isObject := shown["outputSchema"].(map[string]any)
		if !ok || !isObject || s.Output == nil || !exact.Equal(published(s.Output), schema) {
			continue // mapping/output-schema judges another one
		}
		if made := t.makers.ForResult(schema); made != nil {
			tools = append(tools, resultTool{s, made.With(t.dice(s.Name))})
		}
	}
	return tools
}

// putResult has the method give a made-up value, and invokes its tool.
func (t *T) putResult(ctx context.Context, tool resultTool) func(any) *Response {
	return func(v any) *Response {
		t.Drupal.behave(map[string]any{tool.ID: v})
		return t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)
	}
}

// restoring puts the methods' behaviours back when the check ends.
func (d *Drupal) restoring() {
	before := d.Site()
	ginkgo.DeferCleanup(func() {
		d.changeBehaviours(func(site *fixtures.Site) {
			for i := range site.Methods {
				if m, ok := before.Method(site.Methods[i].ID); ok {
					site.Methods[i].Behaviour = m.Behaviour
				}
			}
		})
	})
}

// behave has methods give these values, by their id: nothing changes that the site shows of them.
func (d *Drupal) behave(values map[string]any) {
	d.changeBehaviours(func(site *fixtures.Site) {
		for i := range site.Methods {
			if v, ok := values[site.Methods[i].ID]; ok {
				site.Methods[i].Behaviour = fixtures.Behaviour{Kind: fixtures.Value, Value: encode(v)}
			}
		}
	})
}

// holdsEmpty tells whether an empty list or object stands in a value, which PHP cannot tell apart.
func holdsEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if holdsEmpty(member) {
				return true
			}
		}
		return len(v) == 0
	case []any:
		return len(v) == 0 || slices.ContainsFunc(v, holdsEmpty)
	}
	return false
}

// drawnValid are arguments that fit, drawn at random.
func (t strictTool) drawnValid() (generate.Case, bool) {
	v, ok := t.Drawn()
	return generate.Case{What: "a draw", Value: v}, ok
}

// drawnResults is how many results are drawn for one tool, of those that fit and of those that do not.
const drawnResults = 4

// resultCase is a result made up for a tool, which fits the outputSchema or breaks it in one place.
type resultCase struct {
	resultTool
	generate.Case
	fits bool
}

// resultCases are the results to be tried, in rounds of at most one for each tool. There are no more than --cases.
func (t *T) resultCases(tools []resultTool) [][]resultCase {
	var rounds [][]resultCase
	for _, tool := range tools {
		fitting, broken := tool.Edges(), tool.Broken()
		for range drawnResults {
			if v, ok := tool.Drawn(); ok {
				fitting = append(fitting, generate.Case{What: "a draw", Value: v})
			}
			if c, ok := tool.DrawnBroken(); ok {
				broken = append(broken, c)
			}
		}
		fitting, broken = withoutEmpties(fitting), withoutEmpties(broken)
		var all []resultCase // of both kinds in turn, for the last rounds may be too many
		for i := range max(len(fitting), len(broken)) {
			if i < len(broken) {
				all = append(all, resultCase{tool, broken[i], false})
			}
			if i < len(fitting) {
				all = append(all, resultCase{tool, fitting[i], true})
			}
		}
		for i, c := range all {
			if i == len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[i] = append(rounds[i], c)
		}
	}
	left := t.cases
	for i, round := range rounds {
		if left == 0 {
			return rounds[:i]
		}
		rounds[i] = round[:min(left, len(round))]
		left -= len(rounds[i])
	}
	return rounds
}

// together has every tool of a round give its result.
func (t *T) together(round []resultCase) {
	values := map[string]any{}
	for _, c := range round {
		values[c.ID] = c.Value
	}
	t.Drupal.behave(values)
}

func withoutEmpties(all []generate.Case) []generate.Case {
	return slices.DeleteFunc(all, func(c generate.Case) bool { return holdsEmpty(c.Value) })
}
