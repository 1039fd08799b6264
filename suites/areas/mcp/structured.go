package mcp

import (
	"encoding/json"
	"strconv"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// GiveStructured matches a result of tools/call whose structuredContent contains the method's result, conforms to the
// tool's outputSchema, and is repeated in a text block.
func GiveStructured(m *fixtures.Method, tool check.Tool, revision check.Revision) OmegaMatcher {
	want := exact.MustParse(m.Behaviour.Value)
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
		return otherText(r)
	})
}

// conforms reports whether a method's result conforms to its output schema, if it has one: no clause covers one that does not.
func conforms(m *fixtures.Method) bool {
	return jsonschema.Fits(m.Output, exact.MustParse(m.Behaviour.Value))
}

// beyondDouble reports whether a value contains a number that a double cannot represent: MCP bridges in JavaScript lose
// its digits, so that no client relies on them. invoke/result-exact and mcp/parity test such numbers.
func beyondDouble(v any) bool {
	for v := range exact.Values(v) {
		if n, ok := v.(json.Number); ok {
			double, err := n.Float64()
			if err != nil || !exact.SameNumber(n.String(), strconv.FormatFloat(double, 'g', -1, 64)) {
				return true
			}
		}
	}
	return false
}
