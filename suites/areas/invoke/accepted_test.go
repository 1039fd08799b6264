package invoke

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

func TestSiteMayAccept(t *testing.T) {
	const schema = `{"type":"object","properties":{"o":{"type":"object","properties":{"n":{"type":"integer"}}},"r":{"type":"object","required":["n"]},
		"l":{"type":"array","items":{"type":"integer"}},"e":{"enum":[1,"a"]},"i":{"type":"integer"}}}`
	parsed := must.Get(exact.Parse([]byte(schema)))(t)
	compiled := must.Get(jsonschema.Compile(parsed, jsonschema.Draft7))(t)
	for name, c := range map[string]struct {
		fault, arguments string
		accepts          bool
	}{
		"[] for an object":                           {"type at /o", `{"o":[]}`, true},
		"[] for an object with a required member":    {"type at /r", `{"r":[]}`, false},
		"a list for an object":                       {"type at /o", `{"o":[1]}`, false},
		"{} for a list":                              {"type at /l", `{"l":{}}`, true},
		"an object for a list":                       {"type at /l", `{"l":{"a":1}}`, false},
		"null for an optional nested member":         {"null as n at /o", `{"o":{"n":null}}`, true},
		"null for a parameter":                       {"type at /i", `{"i":null}`, false},
		"null for an item":                           {"type at /l/0", `{"l":[null]}`, false},
		"a numeral in an enum":                       {"enum at /e", `{"e":"1"}`, true},
		"another text in an enum":                    {"enum at /e", `{"e":"2"}`, false},
		"a numeral for an integer":                   {"type at /i", `{"i":"1"}`, false},
		"a keyword that the validator does not read": {"propertyNames at /o", `{"o":[1]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := must.Get(exact.Parse([]byte(c.arguments)))(t)
			breaks := func(v any) bool { return compiled.Fault(v) != "" }
			run := &check.T{Environment: &check.Environment{}}
			must.Equal(t, siteMayAccept(run, c.fault, arguments, breaks), c.accepts, "siteMayAccept(%s)", c.arguments)
			run.Claimed = []string{"eager-validation"}
			must.Expect(t, !siteMayAccept(run, c.fault, arguments, breaks),
				"siteMayAccept(%s) is true for a bridge that validates", c.arguments)
		})
	}
}
