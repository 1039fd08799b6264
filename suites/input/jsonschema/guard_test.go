package jsonschema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// A small schema can keep a validator busy for hours: Agree refuses those that do, and says why.
func TestBounded(t *testing.T) {
	var chain []string
	for i := range 40 {
		chain = append(chain, fmt.Sprintf(`"x%d":{"allOf":[{"$ref":"#/$defs/x%d"},{"$ref":"#/$defs/x%d"}]}`, i, i+1, i+1))
	}
	for name, c := range map[string]struct{ schema, beyond string }{
		"usual":                 {`{"type":"object","properties":{"a":{"$ref":"#"}},"minimum":1e300}`, ""},
		"PHP's depth":           {strings.Repeat(`{"properties":{"a":`, 60) + `{}` + strings.Repeat(`}}`, 60), ""},
		"large":                 {`{"description":"` + strings.Repeat("x", 100<<10) + `"}`, ""},
		"too large":             {`{"description":"` + strings.Repeat("x", 300<<10) + `"}`, "bytes long"},
		"too deep":              {strings.Repeat(`{"properties":{"a":`, 500) + `{}` + strings.Repeat(`}}`, 500), "levels deep"},
		"too wide":              {`{"anyOf":[{}` + strings.Repeat(`,{}`, 1000) + `]}`, "schemas"},
		"references multiply":   {`{"$defs":{` + strings.Join(chain, ",") + `,"x40":{}},"$ref":"#/$defs/x0"}`, "apply at once"},
		"an exponent":           {`{"maximum":1e999999}`, "exponent"},
		"repeated repetitions":  {`{"pattern":"((\\pL{100}){10}x){1,1}(\\pL{900}){1}"}`, "patterns"},
		"a pattern as usual":    {`{"pattern":"^[a-z]{1,64}@[a-z]{1,255}$"}`, ""},
		"a reference to itself": {`{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`, ""},
	} {
		_, err := jsonschema.Agree(exact.MustParse(c.schema), jsonschema.Draft7)
		var beyond jsonschema.BeyondError
		if c.beyond == "" {
			must.Expect(t, err == nil, "%s: %v", name, err)
			continue
		}
		must.Expect(t, errors.As(err, &beyond) && strings.Contains(err.Error(), c.beyond), "%s: %v", name, err)
	}
}

// References that meet again at each level of a value multiply: of such a value nothing is said.
func TestTooMuchOfAValue(t *testing.T) {
	agreed := must.Get(jsonschema.Agree(exact.MustParse(`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`), jsonschema.Draft7))(t)
	deep := exact.MustParse(strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60))
	must.Expect(t, !agreed.Takes(deep) && !agreed.Refuses(deep), "a value that 2^60 schemas apply to was tested")
	must.Expect(t, strings.Contains(agreed.Fault(deep), "not tested"), "%s", agreed.Fault(deep))
	must.Expect(t, agreed.Takes(exact.MustParse(`{"a":{"a":1}}`)), "a usual value was not taken")
}

// References to itself are put in place as deep as there is room for.
func TestInlinedIsBounded(t *testing.T) {
	var members []string
	for i := range 10 {
		members = append(members, fmt.Sprintf(`"m%d":{"$ref":"#/$defs/n"}`, i))
	}
	inlined := jsonschema.Inlined(exact.MustParse(`{"$defs":{"n":{"properties":{` + strings.Join(members, ",") + `}}},"properties":{"p":{"$ref":"#/$defs/n"}}}`))
	_, there := exact.Lookup(inlined, "/properties/p/properties/m1/properties/m9")
	must.Expect(t, there, "a reference was not followed")
	must.Expect(t, jsonschema.Size(inlined) < 4<<20, "%d bytes", jsonschema.Size(inlined))
}
