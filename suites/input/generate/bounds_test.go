package generate

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// A schema that asks for more than a check should send gets no value, and takes no memory.
func TestExampleIsBounded(t *testing.T) {
	for _, schema := range []string{
		`{"type":"array","minItems":1000000000000}`,
		`{"type":"object","minProperties":1000000000000}`,
		`{"type":"string","minLength":9000000000000000000}`,
		`{"type":"string","minLength":2000000000}`,
		strings.Repeat(`{"type":"array","minItems":1000,"items":`, 5) + `{}` + strings.Repeat(`}`, 5),
		strings.Repeat(`{"type":"array","contains":{},"items":`, 60) + `{}` + strings.Repeat(`}`, 60),
	} {
		must.Expect(t, Example(exact.MustParse(schema)) == nil, "a value for %.60s", schema)
		if m, err := ForArguments(object(t, `{"type":"object","properties":{"p":{"anyOf":[{"const":1},`+schema+`]}}}`), dice()); err == nil {
			m.Edges()
			m.Broken()
			m.Drawn()
		}
	}
	must.Expect(t, Example(exact.MustParse(`{"type":"string","minLength":10000}`)) != nil, "no long text")
	must.Expect(t, Example(exact.MustParse(`{"type":"array","uniqueItems":true,"minItems":2,"items":{"properties":{"a":{"properties":{"b":{"type":"integer"}}}}}}`)) != nil, "no items unlike each other")
	if text, ok := matching(strings.Repeat("(", 40)+"a"+strings.Repeat("*b)", 40), 7); ok {
		must.Expect(t, len(text) <= longestText, "a text of %d characters", len(text))
	}
	_, err := (&Makers{}).ForArguments(object(t, `{"maximum":1e999999}`))
	_, beyond := err.(jsonschema.BeyondError)
	must.Expect(t, beyond, "%v", err)
}
