package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// GiveStructured matches a result of tools/call whose structuredContent contains the method's result, conforms to the
// tool's outputSchema, and is repeated in a text block.
func GiveStructured(m *fixtures.Method, tool check.Tool, revision check.Revision) OmegaMatcher {
	want := scenario.Parsed(string(m.Behaviour.Value))
	return match.Conform("structuredContent with "+exact.Short(want)+" that fits the outputSchema, and the same as text", func(a *check.Response) string {
		r := toolResultOf(a)
		if !r.has || r.isError {
			return a.RPCOutcome()
		}
		if _, object := r.structured.(map[string]any); !object && !revision.Stateless() {
			return "structuredContent that is no object: " + exact.Short(r.structured)
		}
		if !exact.Equal(want, r.structured) && !exact.Equal(want, client.Unwrapped(r.structured)) {
			return "structuredContent " + exact.Short(r.structured)
		}
		schema, err := jsonschema.Compile(tool["outputSchema"], jsonschema.Draft2020_12)
		if err != nil {
			return "the outputSchema " + exact.Short(tool["outputSchema"]) + ", which " + err.Error()
		}
		if fault := schema.Fault(r.structured); fault != "" {
			return "structuredContent that breaks the outputSchema " + fault
		}
		for _, text := range r.text {
			v, err := exact.Parse([]byte(text))
			if text == want || err == nil && (exact.Equal(v, r.structured) || exact.Equal(v, want)) {
				return ""
			}
		}
		return "no text block with the same JSON: " + exact.Short(r.text)
	})
}

// conforms reports whether a method's result conforms to its output schema: no clause covers one that does not.
func conforms(m *fixtures.Method) bool {
	schema, err := jsonschema.Compile(scenario.Parsed(string(m.Output)), jsonschema.Draft7)
	return err == nil && schema.Fault(scenario.Parsed(string(m.Behaviour.Value))) == ""
}

// beyondDouble reports whether a value contains a number that a double cannot represent: MCP bridges in JavaScript lose
// its digits, so that no client relies on them. invoke/result-exact and mcp/parity test such numbers.
func beyondDouble(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), beyondDouble)
	case []any:
		return slices.ContainsFunc(v, beyondDouble)
	case json.Number:
		double, err := v.Float64()
		return err != nil || !exact.SameNumber(v.String(), strconv.FormatFloat(double, 'g', -1, 64))
	}
	return false
}
