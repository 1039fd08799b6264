package invoke

import (
	"context"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// resultTool is a tool whose method returns a value that the check sets, whether it fits the listed outputSchema or not.
type resultTool struct {
	scenario.Sample
	*generate.Maker
}

// resultTools returns the agent's tools that list the outputSchema of their method and return a fixed value.
func resultTools(ctx context.Context, t *check.T) []resultTool {
	listed := t.As(check.Agent).MustListShared(ctx)
	var tools []resultTool
	for _, s := range scenario.Samples(t, check.Agent, fixtures.Value) {
		shown, ok := listed.Find(s.Name)
		schema, isObject := shown["outputSchema"].(map[string]any)
		if !ok || !isObject || s.Output == nil || !exact.Equal(match.Published(s.Output), schema) {
			continue // mapping/output-schema tests the listed schema
		}
		generator, err := t.Makers.ForResult(schema)
		if t.LeaveOut(s.Name, "outputSchema", err); err == nil {
			tools = append(tools, resultTool{s, generator.With(scenario.Random(t, s.Name))})
		}
	}
	return tools
}

// untypedTools are tools that return a fixed value and list no outputSchema, so that their methods may return any value.
func untypedTools(ctx context.Context, t *check.T) []scenario.Sample {
	listed := t.As(check.Agent).MustListShared(ctx)
	return slices.DeleteFunc(scenario.Samples(t, check.Agent, fixtures.Value), func(s scenario.Sample) bool {
		shown, ok := listed.Find(s.Name)
		return !ok || s.Output != nil || shown["outputSchema"] != nil
	})
}

// returnAndInvoke returns a function that sets the method's result and invokes its tool.
func returnAndInvoke(ctx context.Context, t *check.T, tool resultTool) func(any) *check.Response {
	return func(v any) *check.Response {
		setValues(t.Drupal, map[string]any{tool.ID: v})
		return t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)
	}
}

// restoreBehaviours restores the methods' behaviours when the check ends.
func restoreBehaviours(t *check.T) {
	d := t.Drupal
	before := d.Site()
	t.Cleanup(func(context.Context) {
		changeBehaviours(d, func(site *fixtures.Site) {
			for i := range site.Methods {
				if m, ok := before.Method(site.Methods[i].ID); ok {
					site.Methods[i].Behaviour = m.Behaviour
				}
			}
		})
	})
}

// setValues sets the results of methods by their id. What the site shows of the methods does not change.
func setValues(d *site.Drupal, values map[string]any) {
	changeBehaviours(d, func(site *fixtures.Site) {
		for i := range site.Methods {
			if v, ok := values[site.Methods[i].ID]; ok {
				site.Methods[i].Behaviour = fixtures.Behaviour{Kind: fixtures.Value, Value: client.Encode(v)}
			}
		}
	})
}

// setBehaviour sets what a method does.
func setBehaviour(d *site.Drupal, id string, b fixtures.Behaviour) {
	changeBehaviours(d, func(site *fixtures.Site) {
		for i := range site.Methods {
			if site.Methods[i].ID == id {
				site.Methods[i].Behaviour = b
			}
		}
	})
}

// changeBehaviours changes the behaviours of the site's methods; alter must replace a behaviour as a whole.
func changeBehaviours(d *site.Drupal, alter func(*fixtures.Site)) {
	site := *d.Site()
	site.Methods = slices.Clone(site.Methods)
	alter(&site)
	d.Mock.SetSite(&site)
}

// holdsEmpty reports whether a value contains an empty list or object, which PHP cannot distinguish.
func holdsEmpty(v any) bool {
	for v := range exact.Values(v) {
		object, isObject := v.(map[string]any)
		list, isList := v.([]any)
		if (isObject || isList) && len(object)+len(list) == 0 {
			return true
		}
	}
	return false
}

// drawnResults is how many results are drawn for one tool, of those that fit and of those that do not fit.
const drawnResults = 4

// resultCase is a result generated for a tool, which fits the outputSchema or breaks it in one place.
type resultCase struct {
	resultTool
	generate.Case
	fits bool
}

// resultCases returns the results to test, in rounds of at most one for each tool, and no more than --cases in total: first one that
// breaks each keyword, which a tool with many of them would come to too late.
func resultCases(t *check.T, tools []resultTool) [][]resultCase {
	var keywords, rounds [][]resultCase
	seen := map[string]bool{}
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
		var first, all []resultCase // all: of both kinds in turn, as the last rounds may be cut off
		var others []generate.Case
		for _, c := range broken {
			if seen[c.What] {
				others = append(others, c)
				continue
			}
			seen[c.What], first = true, append(first, resultCase{tool, c, false})
		}
		broken = others
		for i := range max(len(fitting), len(broken)) {
			if i < len(broken) {
				all = append(all, resultCase{tool, broken[i], false})
			}
			if i < len(fitting) {
				all = append(all, resultCase{tool, fitting[i], true})
			}
		}
		keywords, rounds = inRounds(keywords, first), inRounds(rounds, all)
	}
	rounds = append(keywords, rounds...)
	left := t.Cases
	for i, round := range rounds {
		if left == 0 {
			return rounds[:i]
		}
		rounds[i] = round[:min(left, len(round))]
		left -= len(rounds[i])
	}
	return rounds
}

// inRounds adds the cases of one tool to rounds.
func inRounds(rounds [][]resultCase, all []resultCase) [][]resultCase {
	for i, c := range all {
		if i == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[i] = append(rounds[i], c)
	}
	return rounds
}

// setResults sets the result of every tool of a round.
func setResults(t *check.T, round []resultCase) {
	values := map[string]any{}
	for _, c := range round {
		values[c.ID] = c.Value
	}
	setValues(t.Drupal, values)
}

func withoutEmpties(all []generate.Case) []generate.Case {
	return slices.DeleteFunc(all, func(c generate.Case) bool { return holdsEmpty(c.Value) })
}
