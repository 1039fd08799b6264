package translate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// tool translates a method whose only parameter p has this schema, and gives the schema of p.
func tool(t *testing.T, tr Translator, paramSchema string) (json.RawMessage, []Diagnostic, error) {
	t.Helper()
	d, notes, err := translate(t, tr, `{"id":"m","attributes":{"params":{"p":{"schema":`+paramSchema+`}}}}`)
	if err != nil {
		return nil, notes, err
	}
	_, err = schema.Compile(d.InputSchema)
	must.Expect(t, err == nil, "the translated schema does not compile: %v\n%s", err, d.InputSchema)
	root, _ := jsondoc.Parse(d.InputSchema)
	properties, _ := root.Get("properties")
	p, _ := properties.Get("p")
	return p.Bytes(), notes, nil
}

func translate(t *testing.T, tr Translator, method string) (catalog.Definition, []Diagnostic, error) {
	t.Helper()
	v, err := jsondoc.Parse([]byte(method))
	must.Assert(t, err == nil, "test data: %v", err)
	m, err := ReadMethod(v)
	if err != nil {
		return catalog.Definition{}, nil, err
	}
	return tr.Tool(m)
}

func TestSoundSchemasStayAsTheyAre(t *testing.T) {
	for _, s := range []string{
		`{"type":"string","minLength":1,"pattern":"^(?!x)y"}`,
		`{"type":["integer","null"],"default":null}`,
		`{"enum":[1,"1",null,{"a":[]}]}`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{},"required":["b"]}},"additionalProperties":false}`,
		`{"anyOf":[{"type":"integer","exclusiveMinimum":9007199254740993},{"const":[]}]}`,
		`{"type":"array","items":[{"type":"string"},{"type":"number","multipleOf":0.01}],"additionalItems":false}`,
		`{"dependencies":{"a":["b"],"c":{"required":["d"]}},"if":{"minProperties":1},"then":{"maxProperties":3}}`,
		`{"x-vendor":{"type":"nonsense"},"examples":[[],null]}`,
	} {
		got, notes, err := tool(t, Translator{}, s)
		must.Expect(t, err == nil && len(notes) == 0, "%s: error %v, notes %v", s, err, notes)
		must.Expect(t, string(got) == s, "changed\n from %s\n to   %s", s, got)
	}
}

func TestRepair(t *testing.T) {
	for name, c := range map[string]struct{ from, to string }{
		"empty properties":           {`{"type":"object","properties":[]}`, `{"type":"object","properties":{}}`},
		"deep empty properties":      {`{"items":{"properties":{"x":{"properties":[]}}}}`, `{"items":{"properties":{"x":{"properties":{}}}}}`},
		"properties as a list":       {`{"properties":[{"type":"string"}]}`, `{"properties":{"0":{"type":"string"}}}`},
		"empty array for a schema":   {`{"properties":{"x":[]}}`, `{"properties":{"x":{}}}`},
		"null for a schema":          {`{"properties":{"x":null}}`, `{"properties":{"x":{}}}`},
		"null members":               {`{"type":"string","description":null,"enum":null,"default":null}`, `{"type":"string","default":null}`},
		"boolean property":           {`{"properties":{"a":true,"b":false}}`, `{"properties":{"a":{},"b":{"not":{}}}}`},
		"boolean schema":             {`true`, `{}`},
		"required as an object":      {`{"required":{}}`, `{}`},
		"required moves up":          {`{"properties":{"a":{"type":"string","required":true},"b":{"required":false}}}`, `{"properties":{"a":{"type":"string"},"b":{}},"required":["a"]}`},
		"required positions":         {`{"required":[0,"a","a"]}`, `{"required":["0","a"]}`},
		"PHP types":                  {`{"type":["int","null"]}`, `{"type":["integer","null"]}`},
		"any type":                   {`{"type":"mixed"}`, `{}`},
		"repeated types":             {`{"type":["string","string"]}`, `{"type":["string"]}`},
		"class name as a type":       {`{"type":"Drupal\\node\\Entity\\Node"}`, `{}`},
		"class name beside":          {`{"type":"object","class":"\\Drupal\\node\\Entity\\Node"}`, `{"type":"object"}`},
		"draft-04 exclusive":         {`{"minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, `{"maximum":9,"exclusiveMinimum":0}`},
		"draft-04 id":                {`{"id":"http://x/y","type":"string","$schema":"http://json-schema.org/draft-04/schema#"}`, `{"type":"string"}`},
		"empty enum":                 {`{"type":"string","enum":[]}`, `{"type":"string"}`},
		"repeated enum":              {`{"enum":["a","a","b"]}`, `{"enum":["a","b"]}`},
		"an array without items":     {`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`},
		"an array with a prefix":     {`{"type":"array","prefixItems":[{"type":"string"}]}`, `{"type":"array","prefixItems":[{"type":"string"}]}`},
		"an enum beside its type":    {`{"type":"integer","enum":[1,"1",2.0,null]}`, `{"type":"integer","enum":[1,2.0]}`},
		"an enum of another type":    {`{"type":"string","enum":[1,2]}`, `{"type":"string","enum":[1,2]}`},
		"number in quotes":           {`{"minimum":"5","maxLength":"x"}`, `{"minimum":5}`},
		"negative length":            {`{"minLength":-1,"maxLength":1.5}`, `{}`},
		"zero multiple":              {`{"multipleOf":0.0}`, `{}`},
		"contradicting bounds":       {`{"minimum":10,"maximum":1,"type":"integer"}`, `{"type":"integer"}`},
		"broken pattern":             {`{"pattern":"(","minLength":1}`, `{"minLength":1}`},
		"dependencies":               {`{"dependencies":{"a":["b",null],"c":[]},"dependentRequired":{"a":[1],"b":null}}`, `{"dependencies":{"a":["b"],"c":{}},"dependentRequired":{"a":["1"],"b":[]}}`},
		"unknown dialect":            {`{"$schema":"http://example.com/","type":"string"}`, `{"type":"string"}`},
		"empty combinator":           {`{"allOf":[],"type":"string"}`, `{"type":"string"}`},
		"Drupal's date format":       {`{"type":"string","format":"drupal_date"}`, `{"type":"string","format":"date"}`},
		"local reference":            {`{"$ref":"#/definitions/x","definitions":{"x":{"type":"string"}}}`, `{"$ref":"#/properties/p/definitions/x","definitions":{"x":{"type":"string"}}}`},
		"reference to the root":      {`{"properties":{"child":{"$ref":"#"}}}`, `{"properties":{"child":{"$ref":"#/properties/p"}}}`},
		"a property named $ref":      {`{"properties":{"$ref":{"type":"string"}}}`, `{"properties":{"$ref":{"type":"string"}}}`},
		"a list where an object is":  {`[{"type":"string"}]`, `{}`},
		"data that looks like PHP's": {`{"const":[],"enum":[[]],"default":{"properties":[]}}`, `{"const":[],"enum":[[]],"default":{"properties":[]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := tool(t, Translator{}, c.from)
			must.Assert(t, err == nil, "quarantined: %v", err)
			must.Expect(t, string(got) == c.to, "%s became\n     %s\nwant %s", c.from, got, c.to)
		})
	}
}

func TestQuarantine(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 40) + `{}` + strings.Repeat(`}`, 40)
	for name, c := range map[string]struct{ schema, says string }{
		"remote reference":   {`{"$ref":"http://example.com/s.json"}`, "another document"},
		"file reference":     {`{"properties":{"x":{"$ref":"file:///etc/passwd"}}}`, "another document"},
		"reference astray":   {`{"$ref":"#/definitions/none"}`, "leads nowhere"},
		"direct circle":      {`{"$ref":"#"}`, "circle"},
		"circle by allOf":    {`{"definitions":{"a":{"allOf":[{"$ref":"#/definitions/b"}]},"b":{"$ref":"#/definitions/a"}},"$ref":"#/definitions/a"}`, "circle"},
		"absurd depth":       {deep, "levels deep"},
		"absurd size":        {`{"description":"` + strings.Repeat("x", 70000) + `"}`, "bytes long"},
		"unclosed 2020 bits": {`{"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"other.json"}`, "another document"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := tool(t, Translator{}, c.schema)
			must.Expect(t, err != nil && strings.Contains(err.Error(), c.says), "error = %v, want one that says %q", err, c.says)
		})
	}
}

func TestFieldTypes(t *testing.T) {
	tr := Translator{
		Types:   map[string]FieldType{"geofield": {Schema: json.RawMessage(`{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]}`)}},
		Targets: map[string][]string{"node_type": {"article", "page"}},
	}
	for name, c := range map[string]struct{ from, to string }{
		"reference":            {`{"type":"entity_reference","settings":{"target_type":"node_type"},"cardinality":1}`, `{"type":"string","enum":["article","page"]}`},
		"reference to unknown": {`{"type":"entity_reference","settings":{"target_type":"user"}}`, `{"type":"string"}`},
		"datetime":             {`{"type":"datetime","cardinality":1}`, `{"type":"string","format":"date-time"}`},
		"date":                 {`{"type":"datetime","settings":{"datetime_type":"date"}}`, `{"type":"string","format":"date"}`},
		"formatted text":       {`{"type":"text_formatted","settings":{"allowed_formats":["plain"]}}`, `{"type":"object","properties":{"value":{"type":"string"},"format":{"type":"string","enum":["plain"]}},"required":["value"]}`},
		"bounded integer":      {`{"type":"integer","settings":{"min":1,"max":5,"unsigned":false},"cardinality":1}`, `{"type":"integer","minimum":1,"maximum":5}`},
		"unsigned from 5":      {`{"type":"integer","settings":{"min":5,"unsigned":true}}`, `{"type":"integer","minimum":5}`},
		"unsigned from 0":      {`{"type":"integer","settings":{"unsigned":true,"min":-5}}`, `{"type":"integer","minimum":0}`},
		"several decimals":     {`{"type":"decimal","settings":{"max":9.5},"cardinality":3,"description":"d"}`, `{"type":"array","items":{"type":"number","maximum":9.5},"maxItems":3,"description":"d"}`},
		"any number of emails": {`{"type":"email","cardinality":-1}`, `{"type":"array","items":{"type":"string","format":"email"}}`},
		"list of strings":      {`{"type":"list_string","settings":{"allowed_values":{"a":"A","b":"B"}}}`, `{"type":"string","enum":["a","b"]}`},
		"list of integers":     {`{"type":"list_integer","settings":{"allowed_values":{"1":"One","2":"Two"}}}`, `{"type":"integer","enum":[1,2]}`},
		"labelled list":        {`{"type":"list_float","settings":{"allowed_values":[{"value":0.5,"label":"Half"}]}}`, `{"type":"number","enum":[0.5]}`},
		"default":              {`{"type":"boolean","cardinality":1,"default":false}`, `{"type":"boolean","default":false}`},
		"custom":               {`{"type":"geofield","cardinality":1}`, `{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]}`},
		"unknown":              {`{"type":"quantum_field","settings":{"x":1},"cardinality":1}`, `{}`},
		"nested required":      {`{"type":"object","properties":{"when":{"type":"datetime","required":true}}}`, `{"type":"object","properties":{"when":{"type":"string","format":"date-time"}},"required":["when"]}`},
		"file": {`{"type":"file","settings":{"file_extensions":"txt pdf","max_filesize":"2 MB"}}`,
			`{"type":"object","properties":{"target_id":{"type":"integer","minimum":1},"filename":{"type":"string","pattern":"\\.(txt|pdf)$"},"filesize":{"type":"integer","minimum":0,"maximum":2097152},"description":{"type":"string"}},"required":["target_id"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := tool(t, tr, c.from)
			must.Assert(t, err == nil, "quarantined: %v", err)
			must.Expect(t, string(got) == c.to, "%s became\n     %s\nwant %s", c.from, got, c.to)
		})
	}
}

// Every entry of the table must stand on its own: with no settings at all it gives a schema that compiles.
func TestEveryFieldTypeCompiles(t *testing.T) {
	for name := range fieldTypes {
		_, notes, err := tool(t, Translator{}, `{"type":"`+name+`","cardinality":-1,"settings":{}}`)
		must.Expect(t, err == nil && len(notes) == 0, "%s: error %v, notes %v", name, err, notes)
	}
}

func TestMethodBecomesTool(t *testing.T) {
	d, notes, err := translate(t, Translator{}, `{"id":"a.b","attributes":{"usage":"Says <b>&amp;</b>","params":{
		"one":{"attributes":{"description":"First","required":true,"schema":{"type":"string"},"factory":"Drupal\\x\\Y"},"schema":{"type":"integer"}},
		"two":{"schema":{"type":"string","description":"own"},"attributes":{"default":"x"}},
		"three":{"attributes":{"required":true,"schema":null}}},
		"output":{"type":"object","properties":[]},"mcpTool":{"title":"T","annotations":{"readOnlyHint":true,"n":[1.0]}}}}`)
	must.Do(t, err)
	for what, c := range map[string][2]string{
		"input": {string(d.InputSchema), `{"type":"object","properties":{"one":{"type":"integer","description":"First"},` +
			`"two":{"type":"string","description":"own","default":"x"},"three":{}},"required":["one","three"]}`},
		"output":      {string(d.OutputSchema), `{"type":"object","properties":{}}`},
		"annotations": {string(d.Annotations), `{"readOnlyHint":true,"n":[1.0]}`},
		"description": {d.Description, "Says <b>&amp;</b>"},
		"title":       {d.Title, "T"},
	} {
		must.Expect(t, c[0] == c[1], "%s = %s\nwant %s", what, c[0], c[1])
	}
	must.Expect(t, len(notes) == 1 && strings.Contains(notes[0].Problem, "three"),
		"notes = %v, want one about the parameter without a schema", notes)
}

func TestPositionalParametersBecomeProperties(t *testing.T) {
	d, _, err := translate(t, Translator{}, `{"id":"m","attributes":{"params":[{"id":0,"schema":{"type":"string"},"attributes":{"required":true}},{"id":1,"schema":{"type":"integer"},"attributes":{}}]}}`)
	must.Do(t, err)
	want := `{"type":"object","properties":{"0":{"type":"string"},"1":{"type":"integer"}},"required":["0"]}`
	must.Expect(t, string(d.InputSchema) == want, "input = %s, want %s", d.InputSchema, want)
	must.Expect(t, strings.Join(d.Positional, ",") == "0,1", "positional = %v", d.Positional)
}

// Whatever a site says, translation neither panics nor gives a schema that does not compile.
func FuzzTool(f *testing.F) {
	f.Add([]byte(`{"id":"m","attributes":{"usage":"u","params":{"p":{"schema":{"type":"string","properties":[],"required":{}}}},"output":{"type":"x"}}}`))
	f.Add([]byte(`{"id":"m","attributes":{"params":[{"schema":{"type":"file","settings":{"max_filesize":"9 XB"},"cardinality":-1}}]}}`))
	f.Add([]byte(`{"id":"m","attributes":{"params":{"p":{"schema":{"items":[[]],"dependencies":{"a":0},"pattern":"("}}}}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := jsondoc.Parse(doc)
		if err != nil {
			return
		}
		m, err := ReadMethod(v)
		if err != nil {
			return
		}
		d, _, err := Translator{}.Tool(m)
		if err != nil {
			return
		}
		must.Expect(t, json.Valid(catalog.NewTool(d, schema.NewLazy).Encoded()),
			"no JSON: %s", catalog.NewTool(d, schema.NewLazy).Encoded())
		_, err = schema.Compile(d.InputSchema)
		must.Expect(t, err == nil, "input does not compile: %v\n%s", err, d.InputSchema)
	})
}

// anyValue draws a JSON value that may stand anywhere, up to a depth: sound, wrong, or wrong only where it stands.
func anyValue(depth int) *rapid.Generator[string] {
	leaf := rapid.SampledFrom([]string{
		`null`, `true`, `false`, `0`, `-1`, `1.5`, `7`, `1e3`, `""`, `"x"`, `"("`, `"5"`, `"string"`, `"object"`, `"float"`, `"date-time"`,
		`"#"`, `"#/properties/a"`, `[]`, `{}`, `["a","a"]`, `[0,"b"]`, `[[]]`, `[null]`, `["string","null"]`, `"Drupal\\node\\Node"`,
	})
	if depth == 0 {
		return leaf
	}
	inner := anyValue(depth - 1)
	keywords := []string{"type", "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "additionalItems", "contains",
		"not", "if", "then", "else", "const", "default", "format", "$ref", "$id", "id", "$schema", "$comment", "readOnly", "contentEncoding", "a"}
	for k := range shapes {
		keywords = append(keywords, k)
	}
	slices.Sort(keywords)
	object := rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(keywords), 0, 4, func(s string) string { return s }).Draw(t, "keywords") {
			members = append(members, `"`+k+`":`+inner.Draw(t, k))
		}
		return `{` + strings.Join(members, ",") + `}`
	})
	list := rapid.Map(rapid.SliceOfN(inner, 1, 3), func(items []string) string { return `[` + strings.Join(items, ",") + `]` })
	return rapid.OneOf(leaf, object, object, object, list)
}

// What is offered compiles, whether it was compiled on the way or not.
func TestWhatIsOfferedCompiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		input, output := anyValue(3).Draw(rt, "schema"), anyValue(3).Draw(rt, "output")
		v, err := jsondoc.Parse([]byte(`{"id":"m","attributes":{"params":{"p":{"schema":` + input + `}},"output":` + output + `}}`))
		must.Assert(rt, err == nil, "test data: %v", err)
		m, err := ReadMethod(v)
		if err != nil {
			return
		}
		d, _, err := Translator{}.Tool(m)
		if err != nil {
			return
		}
		for _, doc := range []json.RawMessage{d.InputSchema, d.OutputSchema} {
			if doc == nil {
				continue
			}
			_, err := schema.Compile(doc)
			must.Assert(rt, err == nil, "%v\nfrom %s and %s\nto   %s", err, input, output, doc)
		}
	})
}
