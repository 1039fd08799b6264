package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// integral are spellings that JSON Schema calls integers, and PHP does not: of 3, and of one that no double holds.
var integral = map[json.Number][]json.Number{"3": {"3.0", "30e-1", "0.3e1"}, "9007199254740993": {"9007199254740993.0"}}

func integralNumber(ctx context.Context, t *check.T) {
	tool, parameter := countingTool(t)
	send := func(number json.Number) *check.Response {
		arguments := check.Args{}
		maps.Copy(arguments, tool.Arguments)
		arguments[parameter] = number
		t.Drupal.Mark()
		return t.As(check.Agent).Invoke(ctx, tool.Name, arguments)
	}
	for value, spellings := range check.InOrder(integral) {
		if r := send(value); value == "3" {
			r.MustMeet(runWith(t, value, tool, parameter), "invoke/arguments-forwarded", "invoke/answers-result", "invoke/runs-once")
		} else if r.IsError() {
			continue // too large for the parameter
		}
		for _, number := range spellings {
			t.Row(check.Agent, tool.Name, string(number)+" for an integer", func() {
				r := send(number)
				if r.IsError() {
					t.Expect(r).To(match.BeRefused(400, "invalid_params"))
					t.Expect(r).To(match.HaveRunNothing(t.Upstream))
					return
				}
				t.Expect(r).To(runWith(t, value, tool, parameter))
			})
		}
	}
}

// runWith matches a response with which the method ran once, with the value for the parameter.
func runWith(t *check.T, value json.Number, tool scenario.Sample, parameter string) OmegaMatcher {
	return match.Conform(fmt.Sprintf("one run of %s with the value %s for %s", tool.ID, value, parameter), func(r *check.Response) string {
		runs := t.Drupal.Runs(tool.ID)
		if len(runs) != 1 || r.IsError() {
			return fmt.Sprintf("%s, and it ran %s", r.Outcome(), match.Times(len(runs)))
		}
		params, err := exact.Parse(runs[0].Params)
		if err != nil {
			return "params that " + err.Error()
		}
		if object, _ := params.(map[string]any); !exact.Equal(value, object[parameter]) {
			return "the params " + exact.Short(params)
		}
		return ""
	})
}

// countingTool finds a tool with a parameter that takes all integers that are sent, or 3 at least.
func countingTool(t *check.T) (tool scenario.Sample, parameter string) {
	for _, values := range [][]json.Number{{"3", "9007199254740993"}, {"3"}} {
		for _, tool := range scenario.Samples(t, check.Agent, fixtures.Echo) {
			for _, p := range tool.Params {
				schema, _ := exact.MustParse(p.Resolved()).(map[string]any)
				if schema["type"] == "integer" && takes(schema, values) {
					return tool, p.Name
				}
			}
		}
	}
	check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that gives back an integer")
	return scenario.Sample{}, ""
}

func takes(schema map[string]any, values []json.Number) bool {
	compiled, err := jsonschema.Compile(schema, jsonschema.Draft7)
	return err == nil && !slices.ContainsFunc(values, func(v json.Number) bool { return compiled.Fault(v) != "" })
}
