package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// hostile are schemas with documents of a megabyte or so that make a careless validator work or allocate without end.
var hostile = map[string]struct {
	schema   string
	document func() string
}{
	"items of a wrong type": {`{"properties":{"list":{"items":{"type":"integer"}}}}`, listOf(`""`)},
	"items of a wrong type with a long enum": {
		`{"properties":{"list":{"items":{"enum":["` + strings.Repeat("long ", 2000) + `"]}}}}`, listOf(`""`)},
	"nulls":            {`{"properties":{"list":{"items":{"type":"string"}}}}`, listOf(`null`)},
	"digits":           {`{"properties":{"list":{"items":{"minimum":0}}}}`, listOf(`0`)},
	"empty objects":    {`{"properties":{"list":{"items":{"required":["a"]}}}}`, listOf(`{}`)},
	"small objects":    {`{"properties":{"list":{"items":{"type":"object","properties":{"":{"type":"integer"}}}}}}`, listOf(`{"":0}`)},
	"empty arrays":     {`{"properties":{"list":{"items":{"minItems":1}}}}`, listOf(`[]`)},
	"huge numbers":     {`{"properties":{"list":{"items":{"multipleOf":0.0000001,"maximum":1e900}}}}`, listOf(`1e999`)},
	"long numbers":     {`{"properties":{"list":{"items":{"multipleOf":7}}}}`, listOf(strings.Repeat("9", 1000))},
	"equal items":      {`{"properties":{"list":{"uniqueItems":true}}}`, listOf(`""`)},
	"different items":  {`{"properties":{"list":{"uniqueItems":true}}}`, numbered(`%d`)},
	"different arrays": {`{"properties":{"list":{"uniqueItems":true}}}`, numbered(`[%d]`)},
	"escaped strings":  {`{"properties":{"list":{"items":{"maxLength":0}}}}`, listOf(`"\n"`)},
	"no alternative":   {`{"properties":{"list":{"items":{"anyOf":[{"type":"integer"},{"type":"null"},{"required":["a"]},{"const":1}]}}}}`, listOf(`""`)},
	"alternatives of lists": {
		`{"properties":{"list":{"anyOf":[{"items":{"type":"integer"}},{"items":{"type":"null"}},{"items":{"type":"string"}}]}}}`, listOf(`""`)},
	"nested alternatives": {
		`{"definitions":{"n":{"oneOf":[{"properties":{"a":{"$ref":"#/definitions/n"}}},{"properties":{"a":{"$ref":"#/definitions/n"}},"required":["b"]}]}},"$ref":"#/definitions/n"}`,
		nested(`{"a":`, `}`, 500)},
	"recursion":              {`{"items":{"$ref":"#"},"properties":{"list":{"$ref":"#"}}}`, nested(`[`, `]`, 500)},
	"recursion that is wide": {`{"type":["object","array"],"items":{"$ref":"#"},"properties":{"list":{"$ref":"#"}}}`, listOf(`[[[""]]]`)},
	"a pattern over a long text": {`{"properties":{"list":{"items":{"pattern":"(a|b|ab|aab?){0,40}(x+x+)+y$"}}}}`,
		func() string { return `{"list":["` + strings.Repeat("ax", 500_000) + `"]}` }},
	"a pattern that repeats":           {`{"properties":{"list":{"items":{"pattern":"^(([a-z]{0,30}){0,30})*$"}}}}`, listOf(`"` + strings.Repeat("a", 100) + `!"`)},
	"patterns over many names":         {`{"patternProperties":{"a+b":{"type":"null"},"(x+x+)+y":{"type":"null"},"^[0-9a-f]*$":{"type":"null"}}}`, members(`0`)},
	"no further members":               {`{"properties":{"x":{}},"additionalProperties":false}`, members(`0`)},
	"wrong names":                      {`{"propertyNames":{"maxLength":1,"pattern":"^x"}}`, members(`0`)},
	"many members beside the required": {`{"required":["q","r","s","t"],"additionalProperties":{"type":"string"}}`, members(`0`)},
	"dependencies":                     {`{"dependencies":{"1":["q"],"2":["q"],"3":{"required":["q"]},"4":{"additionalProperties":{"type":"null"}}}}`, members(`0`)},
	"contains":                         {`{"properties":{"list":{"contains":{"type":"object","required":["a"]}}}}`, listOf(`""`)},
	"a constant that is large":         {`{"properties":{"list":{"const":[1,2,3]}}}`, listOf(`""`)},
	"enum at every depth":              {`{"enum":[1],"items":{"$ref":"#"},"properties":{"list":{"$ref":"#"}}}`, nested(`[`, `]`, 500)},
	"a format":                         {`{"properties":{"list":{"items":{"format":"email"}}}}`, listOf(`"(((((((((((((((((("`)},
	"a regular expression":             {`{"properties":{"list":{"items":{"format":"regex"}}}}`, func() string { return `{"list":["` + strings.Repeat("(a{1000})", 100_000) + `"]}` }},
	"an email without end":             {`{"properties":{"list":{"items":{"format":"email"}}}}`, func() string { return `{"list":["` + strings.Repeat("(", 1_000_000) + `"]}` }},
	"not":                              {`{"properties":{"list":{"not":{"items":{"type":"string"}}}}}`, listOf(`""`)},
	"if and then":                      {`{"properties":{"list":{"items":{"if":{"type":"string"},"then":{"minLength":1},"else":{"type":"null"}}}}}`, listOf(`""`)},
	"all of the same":                  {`{"properties":{"list":{"items":{"allOf":[{"type":"null"},{"type":"null"},{"type":"integer"},{"const":4}]}}}}`, listOf(`""`)},
	"unevaluated (2020-12)":            {`{` + draft2020 + `"properties":{"list":{"unevaluatedItems":{"type":"null"}}}}`, listOf(`""`)},
	"unevaluated members (2020-12)":    {`{` + draft2020 + `"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"unevaluatedProperties":false}`, members(`0`)},
	"dynamic (2020-12)":                {`{` + draft2020 + `"$dynamicAnchor":"n","properties":{"list":{"items":{"$dynamicRef":"#n"}}}}`, listOf(`""`)},
	"prefix items (2020-12)":           {`{` + draft2020 + `"properties":{"list":{"prefixItems":[{"type":"null"}],"items":{"type":"null"}}}}`, listOf(`""`)},
}

const megabyte = 1 << 20

// listOf is {"list": [item, item, …]}.
func listOf(item string) func() string {
	return func() string {
		n := megabyte / (len(item) + 1)
		return `{"list":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
}

func numbered(format string) func() string {
	return func() string {
		var b strings.Builder
		for i := 0; b.Len() < megabyte; i++ {
			fmt.Fprintf(&b, ","+format, i)
		}
		return `{"list":[` + b.String()[1:] + `]}`
	}
}

func members(value string) func() string {
	return func() string {
		var b strings.Builder
		for i := 0; b.Len() < megabyte; i++ {
			fmt.Fprintf(&b, `,"%x":%s`, i, value)
		}
		return `{` + b.String()[1:] + `}`
	}
}

func nested(opens, closes string, deep int) func() string {
	return func() string {
		return `{"list":[` + strings.Repeat(strings.Repeat(opens, deep)+`""`+strings.Repeat(closes, deep)+`,`, megabyte/deep/(len(opens)+len(closes))) + `0],"a":` +
			strings.Repeat(`{"a":`, deep) + `0` + strings.Repeat(`}`, deep) + `}`
	}
}

// Whatever the document, a check takes a bounded number of steps, reports 50 violations at most, and allocates no more
// than 20 times the document.
func TestHostileDocumentsAreCheckedWithinABudget(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			s := must.Get(Compile([]byte(c.schema)))(t)
			doc := []byte(c.document())
			if _, err := jsondoc.Split(doc); err != nil && !strings.Contains(err.Error(), "more than 1000") {
				t.Fatalf("the document is not JSON: %v", err)
			}
			s.plan() //nolint:errcheck // made once for all documents
			steps := 0
			validator := NewValidator(fair.NewWork(1, 1), func(n int) { steps = n })
			before := allocated()
			found, err := validator.Validate(t.Context(), fair.Key{}, s, doc)
			took := allocated() - before
			must.Expect(t, err == nil || errors.Is(err, ErrTooMuch), "error = %v", err)
			must.Expect(t, steps <= maxSteps && len(found) <= maxViolations && took <= 20*uint64(len(doc)),
				"%d steps, %d violations, %d bytes allocated for a document of %d (%.1f times)", steps, len(found), took, len(doc), float64(took)/float64(len(doc)))
			t.Logf("%d steps, %d violations, %v, %.1f times the document", steps, len(found), err, float64(took)/float64(len(doc)))

			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if found, err := validator.Validate(gone, fair.Key{}, s, doc); steps > 2*stepsPerLook && err == nil && len(found) < maxViolations {
				t.Errorf("a caller who is gone is served: %d steps", steps)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// schemas draws schemas of all keywords that a plan knows, over few names and values so that they meet.
func schemas(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		keywords := []string{
			`"type":"integer"`, `"type":"string"`, `"type":"object"`, `"type":["array","null","number"]`, `"enum":[1,"a",null,[1],{"a":1.0}]`, `"const":1`, `"const":{"a":[]}`,
			`"minimum":1`, `"maximum":1.5`, `"exclusiveMinimum":0`, `"exclusiveMaximum":10`, `"multipleOf":0.5`, `"minLength":1`, `"maxLength":1`, `"pattern":"^a"`,
			`"required":["a"]`, `"required":["a","b"]`, `"minProperties":1`, `"maxProperties":1`, `"additionalProperties":false`, `"propertyNames":{"pattern":"a"}`,
			`"dependencies":{"a":["b"]}`, `"dependencies":{"a":{"required":["b"]}}`, `"minItems":1`, `"maxItems":1`, `"uniqueItems":true`,
		}
		var parts []string
		seen := map[string]bool{}
		for range rapid.IntRange(0, 3).Draw(t, "keywords") {
			k := rapid.SampledFrom(keywords).Draw(t, "keyword")
			if name, _, _ := strings.Cut(k, ":"); !seen[name] {
				seen[name] = true
				parts = append(parts, k)
			}
		}
		if depth > 0 {
			within := schemas(depth - 1)
			for _, form := range []string{`"properties":{"a":%s,"b":%s}`, `"patternProperties":{"^a":%s,"b$":%s}`, `"items":%s`, `"items":[%s,%s]`, `"additionalItems":%s`, `"contains":%s`,
				`"allOf":[%s,%s]`, `"anyOf":[%s,%s]`, `"oneOf":[%s,%s]`, `"not":%s`, `"if":%s,"then":%s,"else":%s`} {
				name, _, _ := strings.Cut(form, ":")
				if seen[name] || rapid.IntRange(0, 4).Draw(t, "form") > 0 {
					continue
				}
				seen[name] = true
				var args []any
				for range strings.Count(form, "%s") {
					args = append(args, within.Draw(t, "within"))
				}
				parts = append(parts, fmt.Sprintf(form, args...))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}

// documents draws values that such schemas say something of.
func documents(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if depth == 0 || rapid.Bool().Draw(t, "leaf") {
			return rapid.SampledFrom([]string{`1`, `1.0`, `10e-1`, `0`, `-0.0`, `1.25`, `12`, `"a"`, `"ab"`, `"\u0061"`, `""`, `null`, `true`, `{}`, `[]`}).Draw(t, "value")
		}
		within := documents(depth - 1)
		items := rapid.SliceOfN(within, 0, 3).Draw(t, "items")
		if rapid.Bool().Draw(t, "array") {
			return "[" + strings.Join(items, ", ") + "]"
		}
		for i, name := range []string{`"a"`, `"b"`, `"\u0061b"`}[:len(items)] {
			items[i] = name + " : " + items[i]
		}
		return "{" + strings.Join(items, " ,") + "}"
	})
}

// A plan finds what the libraries find.
func TestAPlanAgreesWithTheLibraries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := schemas(2).Draw(t, "schema")
		later := rapid.Bool().Draw(t, "2020-12") && !strings.Contains(text, `"items":[`)
		if later {
			text = `{` + draft2020 + strings.TrimPrefix(text, "{")
			if rapid.Bool().Draw(t, "unevaluated") {
				text = strings.TrimSuffix(text, "}") + `,"unevaluatedProperties":false,"unevaluatedItems":false}`
			}
			text = strings.ReplaceAll(text, ",}", "}")
		}
		s, err := Compile([]byte(text))
		if err != nil {
			return
		}
		plan, err := s.plan()
		must.Assert(t, err == nil, "%s has no plan: %v", text, err)
		doc := documents(3).Draw(t, "document")
		value := must.Get(Decode([]byte(doc)))(t)
		want := s.byLibrary(value)
		ix := must.Get(newIndex([]byte(doc)))(t)
		e := evaluation{ctx: context.Background(), schema: s, ix: ix, seed: s.seed, most: maxSteps}
		must.Expect(t, e.apply(plan, 0, nil) == (len(want) == 0) && (len(e.found) == 0) == (len(want) == 0),
			"%s by %s:\nlibrary %+v\nplan    %+v", doc, text, want, e.found)
	})
}

// An index of any bytes is made or refused; of JSON it holds every value and name.
func FuzzIndex(f *testing.F) {
	for _, doc := range []string{`{"a":[1,"b\"",{}],"c":null}`, `[]`, `"`, `{"a"}`, `[[[`, `1 2`, `{]`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		ix, err := newIndex(doc)
		if _, wrong := jsondoc.Parse(doc); wrong != nil {
			return
		}
		must.Assert(t, err == nil && int(ix.nodes[0].next) == len(ix.nodes) && len(ix.nodes) <= countNodes(doc), "%q: %v", doc, err)
		var a, b any
		if json.Unmarshal(doc, &a) != nil {
			return
		}
		must.Expect(t, json.Unmarshal(ix.raw(0), &b) == nil || ix.nodes[0].kind == isString, "%q: the root is %q", doc, ix.raw(0))
		ix.hash(0, maphash.MakeSeed())
	})
}

// A number that a schema takes for an integer is spelled as one, as PHP reads it; all other bytes stay.
func TestIntegersAreSpelledAsSuch(t *testing.T) {
	const document = `{ "properties":{"n":{"type":"integer"},"m":{"type":["integer","null"]},"x":{"type":"number"},"any":{},"list":{"items":{"type":"integer"}},
		"either":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`
	s := must.Get(Compile([]byte(document)))(t)
	for _, c := range []struct{ sent, want string }{
		{`{"n":3.0}`, `{"n":3}`},
		{`{"n":1e2,"m":-30e-1}`, `{"n":100,"m":-3}`},
		{`{"n":0.3E+1,"m":-0.0}`, `{"n":3,"m":0}`},
		{`{"list":[1.0, 2,1.20e1 ]}`, `{"list":[1, 2,12 ]}`},
		{`{"either":7.0,"x":7.0,"any":7.0}`, `{"either":7,"x":7.0,"any":7.0}`},
		{`{"n":1e17}`, `{"n":100000000000000000}`},
		{`{"n":1e30,"m":9007199254740993.0}`, `{"n":1e30,"m":9007199254740993}`},
		{`{"n": 5, "x":1.5}`, `{"n": 5, "x":1.5}`},
	} {
		var v *Validator
		got, violations, err := v.ValidateArguments(t.Context(), fair.Key{}, s, []byte(c.sent), nil)
		must.Expect(t, err == nil && len(violations) == 0 && string(got) == c.want,
			"%s: got %s, %v, %v, want %s", c.sent, got, violations, err, c.want)
	}
}
