package surface

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// What a schema makes endless to compare is unproved, whoever wrote it.
func TestComparisonIsBounded(t *testing.T) {
	for name, pair := range map[string][2]string{
		"a required member of itself": {`{"required":["a"],"properties":{"a":{"$ref":"#"}}}`, `{"required":["a"],"properties":{"a":{"$ref":"#"}},"minProperties":2}`},
		"alternatives of none": {`{"properties":{"p":{"allOf":[` + strings.Repeat(`{"anyOf":[{"minLength":1},{"minLength":2}]},`, 30) + `false]}}}`,
			`{"properties":{"p":{"type":"string"}}}`},
		"an exponent": {`{"type":"integer","minimum":1e999999}`, `{"type":"integer"}`},
	} {
		old, now := exact.MustParse(pair[0]), exact.MustParse(pair[1])
		must.Expect(t, len(compareSchemas(t.Context(), "t", "input", old, now)) > 0, "%s: no difference", name)
	}
}
