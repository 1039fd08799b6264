package generate

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

func dice() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	v := must.Get(exact.Parse([]byte(text)))(t)
	return v.(map[string]any)
}

func show(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestEveryKeywordIsBrokenAlone(t *testing.T) {
	for name, c := range map[string]struct {
		schema  string // of the parameter p
		keyword string
		at      string
	}{
		"a minimum":                   {`{"type":"integer","minimum":1,"maximum":5}`, "minimum", "/p"},
		"a maximum":                   {`{"type":"integer","minimum":1,"maximum":5}`, "maximum", "/p"},
		"a decimal minimum":           {`{"type":"number","minimum":0.5}`, "minimum", "/p"},
		"an exclusive minimum":        {`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":10}`, "exclusiveMinimum", "/p"},
		"an exclusive maximum":        {`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":10}`, "exclusiveMaximum", "/p"},
		"a step":                      {`{"type":"integer","multipleOf":5}`, "multipleOf", "/p"},
		"a step within bounds":        {`{"type":"integer","multipleOf":5,"minimum":10,"maximum":20}`, "multipleOf", "/p"},
		"a maximum on a step":         {`{"type":"integer","multipleOf":5,"minimum":10,"maximum":20}`, "maximum", "/p"},
		"an enum":                     {`{"type":"string","enum":["draft","live"]}`, "enum", "/p"},
		"an enum of numbers":          {`{"type":"integer","enum":[1,2]}`, "enum", "/p"},
		"a constant":                  {`{"const":"2.0"}`, "const", "/p"},
		"a length":                    {`{"type":"string","minLength":2,"maxLength":4}`, "minLength", "/p"},
		"a length at most":            {`{"type":"string","minLength":2,"maxLength":4}`, "maxLength", "/p"},
		"a length with a pattern":     {`{"type":"string","pattern":"^[a-z]+$","maxLength":4}`, "maxLength", "/p"},
		"a pattern":                   {`{"type":"string","pattern":"^[a-z]+$"}`, "pattern", "/p"},
		"a list's least":              {`{"type":"array","items":{"type":"integer"},"minItems":2}`, "minItems", "/p"},
		"a list's most":               {`{"type":"array","items":{"type":"integer"},"maxItems":3}`, "maxItems", "/p"},
		"a list of unlike things":     {`{"type":"array","items":{"type":"string"},"uniqueItems":true,"maxItems":3}`, "uniqueItems", "/p"},
		"unlike objects":              {`{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}}},"uniqueItems":true}`, "uniqueItems", "/p"},
		"a list's most, unlike":       {`{"type":"array","items":{"type":"string","minLength":1},"uniqueItems":true,"minItems":1,"maxItems":3}`, "maxItems", "/p"},
		"the least of members":        {`{"type":"object","minProperties":2}`, "minProperties", "/p"},
		"the most of members":         {`{"type":"object","maxProperties":2,"additionalProperties":{"type":"integer"}}`, "maxProperties", "/p"},
		"a closed object":             {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, "additionalProperties", "/p"},
		"a required member":           {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`, "required", "/p"},
		"names of members":            {`{"type":"object","propertyNames":{"maxLength":3}}`, "propertyNames", "/p"},
		"a condition":                 {`{"type":"object","properties":{"c":{"type":"string"},"z":{"type":"string"}},"if":{"properties":{"c":{"const":"DE"}},"required":["c"]},"then":{"properties":{"z":{"pattern":"^[0-9]{5}$"}}}}`, "then", "/p"},
		"one of":                      {`{"oneOf":[{"type":"integer","multipleOf":2},{"type":"integer","multipleOf":3}]}`, "oneOf", "/p"},
		"any of":                      {`{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`, "anyOf", "/p"},
		"what is forbidden":           {`{"type":"string","not":{"enum":["forbidden"]}}`, "not", "/p"},
		"a minimum in an object":      {`{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}`, "minimum", "/p/n"},
		"a step in a list":            {`{"type":"array","items":{"type":"integer","multipleOf":3}}`, "multipleOf", "/p/0"},
		"a pattern in a list of maps": {`{"type":"array","items":{"type":"object","additionalProperties":{"type":"string","pattern":"^x+$"}}}`, "pattern", "/p/0/x-0"},
		"a type behind a reference":   {`{"$ref":"#/definitions/d"}`, "minimum", "/p"},
	} {
		t.Run(name, func(t *testing.T) {
			schema := object(t, `{"type":"object","definitions":{"d":{"type":"integer","minimum":3}},"properties":{"p":`+c.schema+`},"required":["p"]}`)
			m := must.Get(ForArguments(schema, dice()))(t)
			lax := must.Get(jsonschema.Compile(aside(schema, c.keyword), jsonschema.Draft7))(t)
			var all []string
			for _, b := range m.Broken() {
				if b.What == c.keyword+" at "+c.at || c.keyword == "required" && strings.HasPrefix(b.What, "required at /p/") {
					if lax.Fault(b.Value) == "" {
						return
					}
				}
				all = append(all, b.What+": "+show(b.Value))
			}
			t.Errorf("nothing breaks %s alone, only:\n%s", c.keyword, strings.Join(all, "\n"))
		})
	}
}

func TestTheEdgesAreReached(t *testing.T) {
	for name, c := range map[string]struct{ schema, holds string }{
		"the least":                  {`{"type":"integer","minimum":3,"maximum":9}`, `{"p":3}`},
		"the most":                   {`{"type":"integer","minimum":3,"maximum":9}`, `{"p":9}`},
		"just above":                 {`{"type":"integer","exclusiveMinimum":3}`, `{"p":4}`},
		"the longest":                {`{"type":"string","maxLength":3}`, `{"p":"www"}`},
		"the longest in astral":      {`{"type":"string","maxLength":2}`, `{"p":"𝒳𝒳"}`},
		"the last of an enum":        {`{"enum":["a","b"]}`, `{"p":"b"}`},
		"the second type":            {`{"type":["string","integer"]}`, `{"p":1}`},
		"the second branch":          {`{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`, `{"p":true}`},
		"the fullest list":           {`{"type":"array","items":{"type":"integer"},"maxItems":2}`, `{"p":[1,1]}`},
		"a second type that is near": {`{"type":["integer","number"]}`, `{"p":0.5}`},
		"an empty text":              {`{"type":"string"}`, `{"p":""}`},
		"an empty list":              {`{"type":"array"}`, `{"p":[]}`},
		"an empty object":            {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"p":{}}`},
		"zero":                       {`{"type":"number","maximum":1}`, `{"p":0}`},
		"nothing":                    {`{"type":"string"}`, `{}`},
		"nothing in it":              {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`, `{"p":{"b":1}}`},
		"a multiple":                 {`{"type":"integer","multipleOf":5}`, `{"p":35}`},
		"a text around the match":    {`{"type":"string","pattern":"x"}`, `{"p":"zz x zz"}`},
		"an edge below two levels":   {`{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","maximum":7}}}}`, `{"p":[{"n":7}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := must.Get(ForArguments(object(t, `{"type":"object","properties":{"p":`+c.schema+`}}`), dice()))(t)
			var all []string
			for _, e := range m.Edges() {
				all = append(all, show(e.Value))
			}
			must.Expect(t, slices.Contains(all, c.holds), "%s is not among %q", c.holds, all)
		})
	}
}

func TestNothingIsGeneratedFrom(t *testing.T) {
	for name, schema := range map[string]string{
		"a schema that is none":          `{"type":"nonsense"}`,
		"a schema that cannot be kept":   `{"type":"object","required":["a"],"properties":{"a":false}}`,
		"a required parameter of no use": `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^\\p{Lu}$"}}}`,
		"a pattern of ECMA's own":        `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`,
	} {
		must.Refuse(ForArguments(object(t, schema), dice()))(t, "", name)
	}
}

func TestParametersThatAreRefusedAreLeftOut(t *testing.T) {
	schema := object(t, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"boolean"}},"required":["a"]}`)
	refusesB := func(v any) bool { _, there := v.(map[string]any)["b"]; return !there }
	whole := must.Get(ForArguments(schema, dice()))(t)
	m := whole.Taken(refusesB)
	must.Expect(t, m != nil && show(m.Plain()) == `{"a":"w","c":true}`, "without b there are %v", m)
	m = whole.Taken(func(any) bool { return false })
	must.Expect(t, m == nil, "a tool that takes nothing is tried with %v", m)
}

func TestNothingIsBrokenWhereNothingMayBe(t *testing.T) {
	for _, schema := range []string{`{"type":"object","properties":{},"additionalProperties":false}`, `{"properties":{"any":{}}}`} {
		m := must.Get(ForArguments(object(t, schema), dice()))(t)
		broken := m.Broken()
		must.Expect(t, len(broken) == 0, "%s: %v", schema, broken)
	}
}

// Whatever is generated for the tools of the default site is what it is said to be: fitting, broken, and never one of the
// things that the contract leaves open.
func TestCasesKeepTheirWord(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	tools, edges, broken, drawn := 0, 0, 0, 0
	for _, method := range site.Methods {
		schema := inputOf(t, method)
		m, err := ForArguments(schema, dice())
		if err != nil {
			continue
		}
		tools++
		check := must.Get(jsonschema.Compile(schema, jsonschema.Draft7))(t)
		fitting := m.Edges()
		edges += len(fitting)
		packed := m.EdgesTogether()
		for _, edge := range fitting {
			name := edge.Parameter()
			must.Expect(t, slices.ContainsFunc(packed, func(c Case) bool {
				return show(c.Value.(map[string]any)[name]) == show(edge.Value.(map[string]any)[name])
			}), "%s: no case of several edges has %s", method.ID, edge.What)
		}
		fitting = append(fitting, packed...)
		faulty := m.Broken()
		broken += len(faulty)
		for range 5 {
			if v, ok := m.Drawn(); ok {
				drawn++
				fitting = append(fitting, Case{"drawn", v})
			}
			if c, ok := m.DrawnBroken(); ok {
				faulty = append(faulty, c)
			}
		}
		for _, c := range fitting {
			must.Equal(t, check.Fault(c.Value), "", "the fault of %s, %s: %s", method.ID, c.What, show(c.Value))
		}
		for _, c := range faulty {
			must.Expect(t, check.Fault(c.Value) != "", "%s: %s: %s fits", method.ID, c.What, show(c.Value))
		}
		properties := schema["properties"].(map[string]any)
		for _, c := range append(fitting, faulty...) {
			for name, v := range c.Value.(map[string]any) {
				if _, known := properties[name]; v == nil && !slices.Contains(schema["required"].([]any), any(name)) || !known {
					t.Errorf("%s: %s: %q is optional and null, or unknown", method.ID, c.What, name)
				}
			}
		}
	}
	t.Logf("%d tools, %d edges, %d broken, %d drawn", tools, edges, broken, drawn)
	must.Expect(t, tools >= 100 && edges >= 100 && broken >= 200 && drawn >= 400,
		"%d tools, %d edges, %d broken, %d drawn: the default site has more", tools, edges, broken, drawn)
}

func inputOf(t *testing.T, method fixtures.Method) map[string]any {
	t.Helper()
	schema := map[string]any{"type": "object", "properties": map[string]any{}, "required": []any{}}
	for _, p := range method.Params {
		schema["properties"].(map[string]any)[p.Name] = map[string]any{}
		if resolved := p.Resolved(); len(resolved) > 0 {
			v := must.Get(exact.Parse(resolved))(t)
			schema["properties"].(map[string]any)[p.Name] = v
		}
		if p.Required {
			schema["required"] = append(schema["required"].([]any), p.Name)
		}
	}
	return schema
}

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	draw := func(seed uint64) string {
		m := must.Get(ForArguments(object(t, `{"type":"object","properties":{"p":{"type":"array","items":{"type":"string"}},"q":{"type":"object","properties":{"a":{"type":"integer"}}}}}`), rand.New(rand.NewPCG(seed, 0))))(t)
		var all []any
		for range 10 {
			v, _ := m.Drawn()
			all = append(all, v)
		}
		return show(all)
	}
	first, again, other := draw(7), draw(7), draw(8)
	must.Expect(t, first == again && first != other, "the draw is not the seed's")
}

func TestSmallestKeepsWhatShowsTheFault(t *testing.T) {
	value := object(t, `{"a":"text","b":{"c":[1,2,{"d":"xyzzy","e":true}]},"f":[]}`)
	holds := func(v any) bool { return strings.Contains(show(v), "zz") }
	must.Equal(t, show(Smallest(value, 200, holds)), `{"b":{"c":[{"d":"zz"}]}}`, "the smallest")
	asked := 0
	Smallest(value, 3, func(any) bool { asked++; return false })
	must.Expect(t, asked <= 3, "it asked %d times, and may 3 times", asked)
}

func TestParameter(t *testing.T) {
	for what, want := range map[string]string{"minimum at /a/b/0": "a", "type at /a~1b~0c": "a/b~c", "type at ": ""} {
		must.Equal(t, (Case{What: what}).Parameter(), want, "the parameter of %s", what)
	}
}

func FuzzCases(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"array","items":{"enum":[1]},"uniqueItems":true,"maxItems":0}}}`, uint64(1))
	f.Add(`{"properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"type":["integer","null"],"multipleOf":0.1}}}`, uint64(2))
	f.Add(`{"properties":{"a":{"pattern":"(a{1000}){1000}","oneOf":[true,false]}},"minProperties":9}`, uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		v, err := exact.Parse([]byte(text))
		schema, ok := v.(map[string]any)
		if err != nil || !ok {
			return
		}
		m, err := ForArguments(schema, rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			return
		}
		for _, c := range m.Edges() {
			must.Expect(t, m.Fits(c.Value), "%s does not fit", show(c.Value))
		}
		for _, c := range m.Broken() {
			must.Expect(t, m.Breaks(c.Value), "%s fits", show(c.Value))
		}
		m.Drawn()
		m.DrawnBroken()
	})
}

// An array that says nothing of its items but that it contains some gets an example.
func TestExampleOfContainsAlone(t *testing.T) {
	Example(map[string]any{"type": "array", "contains": map[string]any{"type": "integer"}})
}
