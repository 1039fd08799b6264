package suites

import (
	"slices"
	"strings"
	"testing"

	"bridgecheck/fixtures"
	"bridgecheck/suites/exact"
	"bridgecheck/suites/jsonschema"
)

func TestGenerateBreaksEveryKeyword(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		breaks []string
	}{
		"a required parameter":   {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, []string{"required", "type at /a"}},
		"bounds":                 {`{"properties":{"n":{"type":"integer","minimum":1,"maximum":5}}}`, []string{"minimum at /n", "maximum at /n", "type at /n"}},
		"exclusive bounds":       {`{"properties":{"n":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":10}}}`, []string{"exclusiveMinimum at /n", "exclusiveMaximum at /n"}},
		"a step":                 {`{"properties":{"n":{"type":"integer","multipleOf":5}}}`, []string{"multipleOf at /n"}},
		"an enum":                {`{"properties":{"s":{"type":"string","enum":["draft","live"]}}}`, []string{"enum at /s"}},
		"a constant":             {`{"properties":{"s":{"const":"2.0"}}}`, []string{"const at /s"}},
		"a length":               {`{"properties":{"s":{"type":"string","minLength":2,"maxLength":4}}}`, []string{"minLength at /s", "maxLength at /s"}},
		"a pattern":              {`{"properties":{"s":{"type":"string","pattern":"^[a-z]+$"}}}`, []string{"pattern at /s"}},
		"formats":                {`{"properties":{"e":{"type":"string","format":"email"},"d":{"type":"string","format":"date-time"}}}`, []string{"format email at /e", "format date-time at /d"}},
		"a nested object":        {`{"properties":{"f":{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"],"additionalProperties":false}}}`, []string{"required at /f/id", "type at /f/id", "minimum at /f/id", "additionalProperties at /f"}},
		"a list":                 {`{"properties":{"l":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3,"uniqueItems":true}}}`, []string{"minItems at /l", "maxItems at /l", "uniqueItems at /l", "type at /l/0"}},
		"a map":                  {`{"properties":{"m":{"type":"object","additionalProperties":{"type":"integer"}}}}`, []string{"type at /m/x-0"}},
		"a combination":          {`{"properties":{"c":{"oneOf":[{"type":"integer"},{"type":"boolean"}]}}}`, []string{"oneOf at /c"}},
		"a forbidden value":      {`{"properties":{"w":{"type":"string","not":{"enum":["forbidden"]}}}}`, []string{"not at /w"}},
		"the number of members":  {`{"properties":{"o":{"type":"object","minProperties":1,"maxProperties":2}}}`, []string{"minProperties at /o", "maxProperties at /o"}},
		"nothing but top level":  {`{"type":"object","properties":{},"additionalProperties":false}`, nil},
		"a parameter of no type": {`{"properties":{"any":{}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, ok := generate(object(t, c.schema))
			if !ok {
				t.Fatal("no arguments could be made up")
			}
			var broken []string
			for _, b := range g.invalid {
				broken = append(broken, b.what)
			}
			for _, want := range c.breaks {
				if !slices.Contains(broken, want) {
					t.Errorf("%q is not broken, only %q", want, broken)
				}
			}
			if c.breaks == nil && len(broken) > 0 {
				t.Errorf("broken where nothing may be: %q", broken)
			}
		})
	}
}

func TestGenerateGivesUpOn(t *testing.T) {
	for name, schema := range map[string]string{
		"a schema that is none":          `{"type":"nonsense"}`,
		"a schema that cannot be kept":   `{"type":"object","required":["a"],"properties":{"a":false}}`,
		"a required parameter of no use": `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^[A-Z]{40}$"}}}`,
	} {
		if g, ok := generate(object(t, schema)); ok {
			t.Errorf("%s: made up %v", name, g.valid)
		}
	}
}

// Whatever is generated for the tools of the default site is what it is said to be: valid, invalid, and never one of the
// things that the contract leaves open.
func TestGenerateKeepsItsWord(t *testing.T) {
	site, err := fixtures.Builtin("default")
	if err != nil {
		t.Fatal(err)
	}
	tools, breakages := 0, 0
	for _, m := range site.Methods {
		schema := map[string]any{"type": "object", "properties": map[string]any{}, "required": []any{}}
		for _, p := range m.Params {
			schema["properties"].(map[string]any)[p.Name] = must(exact.Parse(p.Resolved()))
			if p.Required {
				schema["required"] = append(schema["required"].([]any), p.Name)
			}
		}
		g, ok := generate(schema)
		if !ok {
			continue
		}
		check, err := jsonschema.Compile(schema, jsonschema.Draft7)
		if err != nil {
			t.Fatal(err)
		}
		if fault := check.Fault(g.valid); fault != "" {
			t.Errorf("%s: %v is not valid: %s", m.ID, g.valid, fault)
		}
		tools++
		for _, b := range g.invalid {
			breakages++
			arguments := b.value.(map[string]any)
			if check.Fault(b.value) == "" {
				t.Errorf("%s: %s: %v is valid", m.ID, b.what, b.value)
			}
			for name, v := range arguments {
				if v == nil || !strings.Contains(string(encode(schema["properties"])), string(encode(name))) {
					t.Errorf("%s: %s: %q is null or unknown", m.ID, b.what, name)
				}
			}
		}
	}
	if tools < 100 || breakages < 200 {
		t.Errorf("%d tools and %d breakages: the default site has more to break", tools, breakages)
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := exact.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}
