package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// integral are the spellings of 3 that JSON Schema calls integers, and PHP does not.
var integral = []json.Number{"3.0", "30e-1", "0.3e1"}

func integralNumber(ctx context.Context, t *check.T) {
	tool, parameter := countingTool(t)
	send := func(number json.Number) *check.Response {
		arguments := check.Args{}
		maps.Copy(arguments, tool.Arguments)
		arguments[parameter] = number
		t.Drupal.Mark()
		return t.As(check.Agent).Invoke(ctx, tool.Name, arguments)
	}
	send("3").MustMeet(runWithThree(t, tool, parameter), "invoke/arguments-forwarded", "invoke/answers-result", "invoke/runs-once")
	for _, number := range integral {
		t.Row(check.Agent, tool.Name, string(number)+" for an integer", func() {
			r := send(number)
			if r.IsError() {
				t.Expect(r).To(match.BeRefused(400, "invalid_params"))
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
				return
			}
			t.Expect(r).To(runWithThree(t, tool, parameter))
		})
	}
}

// runWithThree matches a response with which the method ran once, with 3 for the parameter.
func runWithThree(t *check.T, tool scenario.Sample, parameter string) OmegaMatcher {
	return match.Conform(fmt.Sprintf("one run of %s with the value 3 for %s", tool.ID, parameter), func(r *check.Response) string {
		runs := t.Drupal.Runs(tool.ID)
		if len(runs) != 1 || r.IsError() {
			return fmt.Sprintf("%s, and it ran %s", r.Outcome(), match.Times(len(runs)))
		}
		params, err := exact.Parse(runs[0].Params)
		if err != nil {
			return "params that " + err.Error()
		}
		if object, _ := params.(map[string]any); !exact.Equal(json.Number("3"), object[parameter]) {
			return "the params " + exact.Short(params)
		}
		return ""
	})
}

// countingTool finds a tool with a parameter that takes the integer 3.
func countingTool(t *check.T) (tool scenario.Sample, parameter string) {
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Echo) {
		for _, p := range tool.Params {
			schema, _ := exact.MustParse(p.Resolved()).(map[string]any)
			if schema["type"] == "integer" && takesThree(schema) {
				return tool, p.Name
			}
		}
	}
	check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that gives back an integer")
	return scenario.Sample{}, ""
}

func takesThree(schema map[string]any) bool {
	compiled, err := jsonschema.Compile(schema, jsonschema.Draft7)
	return err == nil && compiled.Fault(json.Number("3")) == ""
}
