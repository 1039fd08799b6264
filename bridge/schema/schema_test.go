package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// validate checks a document by nobody in particular.
func validate(t testing.TB, s *Schema, doc string) []Violation {
	t.Helper()
	found, err := (*Validator)(nil).Validate(t.Context(), fair.Key{}, s, []byte(doc))
	must.Assert(t, err == nil, "%.200s: %v", doc, err)
	return found
}

const draft2020 = `"$schema":"https://json-schema.org/draft/2020-12/schema",`

func TestViolationsReadTheSameInBothDialects(t *testing.T) {
	for name, c := range map[string]struct {
		schema, value string
		parameter     string
		path          string // "" where the libraries differ
	}{
		"missing":        {`"required":["a"],"properties":{"a":{}}`, `{}`, "a", "#/required"},
		"nested missing": {`"properties":{"a":{"type":"object","required":["b"]}}`, `{"a":{}}`, "a.b", "#/properties/a/required"},
		"type":           {`"properties":{"a":{"type":"integer"}}`, `{"a":"x"}`, "a", "#/properties/a/type"},
		"in a list":      {`"properties":{"a":{"items":{"type":"string"}}}`, `{"a":["x",1]}`, "a.1", "#/properties/a/items/type"},
		"enum":           {`"properties":{"a":{"enum":["x",1]}}`, `{"a":2}`, "a", "#/properties/a/enum"},
		"minimum":        {`"properties":{"a":{"minimum":9007199254740993}}`, `{"a":9007199254740992}`, "a", "#/properties/a/minimum"},
		"pattern":        {`"properties":{"a":{"pattern":"^x$"}}`, `{"a":"y"}`, "a", "#/properties/a/pattern"},
		"format":         {`"properties":{"a":{"format":"email"}}`, `{"a":"nobody"}`, "a", "#/properties/a/format"},
		"additional":     {`"properties":{"o":{"additionalProperties":false}}`, `{"o":{"x":1}}`, "o.x", ""},
		"odd names":      {`"properties":{"a/b":{"properties":{"~":{"type":"null"}}}}`, `{"a/b":{"~":1}}`, "a/b.~", "#/properties/a~1b/properties/~0/type"},
		"by reference":   {`"properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"type":"string"}}`, `{"a":1}`, "a", ""},
	} {
		for dialect, head := range map[string]string{"draft 7": "", "2020-12": draft2020} {
			t.Run(name+" in "+dialect, func(t *testing.T) {
				s := must.Get(Compile([]byte(`{` + head + `"type":"object",` + c.schema + `}`)))(t)
				found := validate(t, s, c.value)
				if len(found) != 1 || found[0].Parameter != c.parameter || found[0].Expected == "" || found[0].Received == "" ||
					c.path != "" && found[0].SchemaPath != c.path {
					t.Errorf("violations %+v, want one of %s at %s", found, c.parameter, c.path)
				}
			})
		}
	}
}

func TestSchemasThatMustNotReachALibrary(t *testing.T) {
	for name, c := range map[string]struct{ schema, says string }{
		"remote":                {`{"$ref":"https://example.com/x"}`, "another document"},
		"remote in definitions": {`{"definitions":{"a":{"$ref":"file:///etc/passwd"}}}`, "another document"},
		"to itself":             {`{"$ref":"#"}`, "circle"},
		"through anyOf":         {`{"anyOf":[{"$ref":"#"}]}`, "circle"},
		"through two":           {`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "circle"},
		"nowhere":               {`{"$ref":"#/definitions/x"}`, "leads nowhere"},
		"not a schema":          {`{"$ref":"#/x","x":5}`, "leads nowhere"},
		"no string":             {`{"$ref":5}`, "no string"},
		"invalid":               {`{"type":"nonsense"}`, "not valid"},
		"invalid 2020":          {`{` + draft2020 + `"type":"nonsense"}`, "not valid"},
		"unknown dialect":       {`{"$schema":"http://example.com/dialect"}`, "not known"},
		"deep":                  {strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40), "levels deep"},
		"no JSON":               {`{`, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			must.Refuse(Compile([]byte(c.schema)))(t, c.says)
		})
	}
}

// A small schema must not keep the bridge busy for hours, neither by itself nor with the help of a value.
func TestSchemasAndValuesThatMultiply(t *testing.T) {
	bomb := `{"$ref":"#/definitions/a0","definitions":{"a22":{"type":"string"}`
	for i := 21; i >= 0; i-- {
		bomb += fmt.Sprintf(`,"a%d":{"anyOf":[{"$ref":"#/definitions/a%d"},{"$ref":"#/definitions/a%d"}]}`, i, i+1, i+1)
	}
	must.Refuse(Compile([]byte(bomb+`}}`)))(t, "at once")
	for dialect, head := range map[string]string{"draft 7": "", "2020-12": draft2020} {
		s := must.Get(Compile([]byte(`{` + head + `"properties":{"a":{"oneOf":[{"allOf":[{"$ref":"#"},{"$ref":"#"}]},{"type":"array"}]}}}`)))(t)
		for deep, good := range map[int]bool{8: true, 60: false} {
			doc := strings.Repeat(`{"a":`, deep) + `"x"` + strings.Repeat(`}`, deep)
			steps := 0
			validator := NewValidator(fair.NewWork(1, 0), func(n int) { steps += n })
			found, err := validator.Validate(t.Context(), fair.Key{}, s, []byte(doc))
			must.Expect(t, (err == nil) == good && len(found) == 0 && steps != 0 && steps <= maxSteps+1,
				"%s, %d deep: %v, %v after %d steps", dialect, deep, found, err, steps)
		}
	}
}

func TestRecursionThatEndsIsFine(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"child":{"$ref":"#"}},"required":["n"]}`,
		`{"definitions":{"node":{"items":{"$ref":"#/definitions/node"},"type":["array","integer"]}},"$ref":"#/definitions/node"}`,
		`{` + draft2020 + `"$defs":{"n":{"$anchor":"n","properties":{"c":{"$ref":"#n"}},"required":["n"]}},"$ref":"#n"}`,
	} {
		s, err := Compile([]byte(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		found := validate(t, s, `{"n":1,"child":{"n":1},"c":{"n":2}}`)
		must.Expect(t, len(found) == 0 || strings.Contains(schema, "array"), "%s: %+v", schema, found)
	}
}

func TestPatternsThatGoCannotExpressAreTheSitesAffair(t *testing.T) {
	s := must.Get(Compile([]byte(`{"properties":{"a":{"pattern":"^(?!x)","minLength":2}},"patternProperties":{"(?=b)":{}},"additionalProperties":false}`)))(t)
	found := validate(t, s, `{"a":"xx","b":1}`)
	must.Expect(t, len(found) == 0, "violations %+v", found)
	found = validate(t, s, `{"a":"x"}`)
	must.Expect(t, len(found) == 1, "violations %+v, want the one of minLength", found)
	for pattern, broken := range map[string]bool{"(": true, "[z-a]": true, "(?!x)": false, `(a)\1`: false, "a+": false, "*": true} {
		must.Expect(t, Broken(pattern) == broken, "Broken(%q) = %v", pattern, !broken)
	}
}

func TestConformTakesPHPsEmptyListForAnObject(t *testing.T) {
	s := must.Get(Compile([]byte(`{"type":"object","properties":{"m":{"type":"object"},"l":{"type":"array"}}}`)))(t)
	for doc, want := range map[string]string{
		`{"m":{}, "n":1.0}`: `{"m":{}, "n":1.0}`, `[]`: `{}`, `{"m":[],"l":[],"n":1.0}`: `{"m":{},"l":[],"n":1.0}`,
	} {
		got, found, _ := (*Validator)(nil).Conform(t.Context(), fair.Key{}, s, json.RawMessage(doc))
		must.Expect(t, string(got) == want && len(found) == 0, "Conform(%s) = %s, %+v, want %s", doc, got, found, want)
	}
	got, found, _ := (*Validator)(nil).Conform(t.Context(), fair.Key{}, s, json.RawMessage(`{"m":[1]}`))
	must.Expect(t, string(got) == `{"m":[1]}` && len(found) > 0, "Conform of a list that is not empty = %s, %+v", got, found)
}
