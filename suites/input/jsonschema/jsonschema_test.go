package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

func parse(t testing.TB, s string) any {
	t.Helper()
	v, err := exact.Parse([]byte(s))
	must.Assert(t, err == nil, "%s %v", s, err)
	return v
}

// says checks a fault against words of it; "" stands for no fault.
func says(t *testing.T, fault, words string) {
	t.Helper()
	must.Expect(t, (words != "" || fault == "") && strings.Contains(fault, words), "got %q, want %q in it", fault, words)
}

func TestFaultFollowsTheDeclaredDialect(t *testing.T) {
	for name, c := range map[string]struct{ schema, fault string }{
		"an object":                        {`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, ""},
		"true":                             {`true`, ""},
		"PHP's empty properties":           {`{"type":"object","properties":[]}`, "at /properties: "},
		"an unknown type":                  {`{"properties":{"a":{"properties":{"b":{"type":"int"}}}}}`, "at /properties/a/properties/b/type"},
		"a type of Drupal":                 {`{"properties":{"a":{"type":"entity_reference"}}}`, "/properties/a/type"},
		"a number for required":            {`{"required":[0]}`, "at /required/0"},
		"a name required twice":            {`{"required":["a","a"]}`, "at /required"},
		"required beside a type":           {`{"properties":{"a":{"type":"string","required":true}}}`, "/properties/a/required"},
		"null for a schema":                {`{"properties":{"a":null}}`, "/properties/a"},
		"null at the top":                  {`null`, "at the top"},
		"a negative length":                {`{"minLength":-1}`, "at /minLength"},
		"a description that is no string":  {`{"description":{"string":"x"}}`, "at /description"},
		"an enum that is an object":        {`{"enum":{"1":"on"}}`, "at /enum"},
		"an empty enum, which is no fault": {`{"enum":[]}`, ""},
		"a broken pattern":                 {`{"pattern":"["}`, "at /pattern"},
		"a broken name pattern":            {`{"patternProperties":{"^(x-":{}}}`, "patternProperties"},
		"a pattern that Go cannot express": {`{"pattern":"^(?!x).*\\1$","patternProperties":{"(?=y)":{}}}`, ""},
		"Draft 4's bound":                  {`{"minimum":0,"exclusiveMinimum":true}`, "at /exclusiveMinimum"},
		"Draft 4 declared":                 {`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":0,"exclusiveMinimum":true}`, ""},
		"Draft 4 broken":                   {`{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":1}`, "exclusiveMinimum"},
		"Draft 6 declared":                 {`{"$schema":"http://json-schema.org/draft-06/schema","const":1}`, ""},
		"2019-09 declared":                 {`{"$schema":"https://json-schema.org/draft/2019-09/schema","dependentRequired":{"a":["b"]}}`, ""},
		"2020-12 declared":                 {`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}]}`, ""},
		"2020-12 with a list of items":     {`{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[{"type":"string"}]}`, "at /items"},
		"2020-12 with Draft 4's bound":     {`{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"a":{"exclusiveMinimum":true}}}`, "at /$defs/a/exclusiveMinimum"},
		"a dialect of nobody":              {`{"$schema":"https://example.com/schema"}`, "is not Draft 4, 6, 7, 2019-09 or 2020-12"},
		"a $schema that is no string":      {`{"$schema":7}`, "no string"},
	} {
		t.Run(name, func(t *testing.T) { says(t, jsonschema.Fault(parse(t, c.schema), jsonschema.Draft7), c.fault) })
	}
}

func TestFaultTakesTheOtherDialectWhereNoneIsDeclared(t *testing.T) {
	schema := parse(t, `{"items":[{"type":"string"}]}`)
	says(t, jsonschema.Fault(schema, jsonschema.Draft7), "")
	says(t, jsonschema.Fault(schema, jsonschema.Draft2020_12), "at /items")
}

func TestUnresolvedReferences(t *testing.T) {
	for name, c := range map[string]struct{ schema, fault string }{
		"local":                    {`{"definitions":{"a/b":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a~1b"}}}`, ""},
		"to the top":               {`{"properties":{"x":{"$ref":"#"}}}`, ""},
		"percent-encoded":          {`{"$defs":{"ü":{}},"$ref":"#/$defs/%C3%BC"}`, ""},
		"into a list":              {`{"anyOf":[{},{"$ref":"#/anyOf/0"}]}`, ""},
		"anchor":                   {`{"$defs":{"a":{"$anchor":"here"}},"$ref":"#here"}`, ""},
		"Draft 4's id":             {`{"definitions":{"a":{"id":"#here"}},"$ref":"#here"}`, ""},
		"own address":              {`{"$id":"https://example.com/s","definitions":{"a":{}},"$ref":"https://example.com/s#/definitions/a"}`, ""},
		"relative to its address":  {`{"$id":"https://example.com/s","definitions":{"a":{"$id":"t"}},"properties":{"x":{"$ref":"t"}}}`, ""},
		"within an embedded one":   {`{"properties":{"x":{"$id":"urn:x","definitions":{"a":{}},"items":{"$ref":"#/definitions/a"}}}}`, ""},
		"beyond an embedded one":   {`{"definitions":{"a":{}},"properties":{"x":{"$id":"urn:x","items":{"$ref":"#/definitions/a"}}}}`, "leads nowhere"},
		"over the network":         {`{"properties":{"x":{"$ref":"https://example.com/node.json"}}}`, "at /properties/x: the $ref \"https://example.com/node.json\" needs another document"},
		"to a file":                {`{"items":{"$ref":"file:///etc/passwd"}}`, "needs another document"},
		"to a neighbour":           {`{"items":{"$ref":"node.json#/definitions/a"}}`, "needs another document"},
		"nowhere":                  {`{"$ref":"#/definitions/gone"}`, "leads nowhere"},
		"to what is no schema":     {`{"required":["a"],"$ref":"#/required/0"}`, "leads nowhere"},
		"an anchor of nobody":      {`{"$ref":"#gone"}`, "leads nowhere"},
		"data that looks like one": {`{"default":{"$ref":"https://example.com"},"enum":[{"$ref":"#/gone"}]}`, ""},
		"a property called $ref":   {`{"properties":{"$ref":{"type":"string"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) { says(t, jsonschema.Unresolved(parse(t, c.schema)), c.fault) })
	}
}

func TestCircularReferences(t *testing.T) {
	for name, c := range map[string]struct{ schema, fault string }{
		"a tree":                {`{"properties":{"children":{"items":{"$ref":"#"}}}}`, ""},
		"itself":                {`{"$ref":"#"}`, "circle"},
		"two":                   {`{"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"allOf":[{"$ref":"#/definitions/a"}]}},"$ref":"#/definitions/a"}`, "circle"},
		"twice the same target": {`{"definitions":{"a":{}},"allOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/a"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) { says(t, jsonschema.Circular(parse(t, c.schema)), c.fault) })
	}
}

func TestDepthCountsSchemas(t *testing.T) {
	schema := `{}`
	for range 31 {
		schema = fmt.Sprintf(`{"type":"object","properties":{"below":%s}}`, schema)
	}
	must.Equal(t, jsonschema.Depth(parse(t, schema)), 32, "levels of 31 schemas around one")
	must.Equal(t, jsonschema.Depth(parse(t, `{"default":[[{"a":[]}]]}`)), 5, "levels of a schema with four levels of data")
}

func TestSizeIsThatOfTheBarestForm(t *testing.T) {
	must.Equal(t, jsonschema.Size(parse(t, ` { "a" : "<ü>" } `)), len(`{"a":"<ü>"}`), "Size")
}

func TestImpossible(t *testing.T) {
	for name, c := range map[string]struct{ schema, fault string }{
		"anything":                   {`{"type":"object"}`, ""},
		"false":                      {`false`, "at the top: false"},
		"an empty enum":              {`{"properties":{"a":{"enum":[]}}}`, "at /properties/a: an empty enum"},
		"minimum above maximum":      {`{"properties":{"a":{"minimum":2,"maximum":1}}}`, "minimum 2 above maximum 1"},
		"big bounds apart by one":    {`{"minimum":9007199254740993,"maximum":9007199254740992}`, "above"},
		"equal bounds":               {`{"minimum":1.0,"maximum":1}`, ""},
		"lengths crossed":            {`{"items":{"minLength":3,"maxLength":2}}`, "at /items: minLength"},
		"required and closed":        {`{"required":["a"],"properties":{},"additionalProperties":false}`, `"a" is required`},
		"required and matched":       {`{"required":["a"],"patternProperties":{"^a":{}},"additionalProperties":false}`, ""},
		"required and open":          {`{"required":["a"],"properties":{}}`, ""},
		"a forbidden property":       {`{"properties":{"a":false}}`, ""},
		"a forbidden required one":   {`{"properties":{"a":false},"required":["a"]}`, "at /properties/a: false"},
		"one of all":                 {`{"allOf":[{},{"enum":[]}]}`, "at /allOf/1"},
		"one of the alternatives":    {`{"anyOf":[{},{"enum":[]}]}`, ""},
		"all of the alternatives":    {`{"oneOf":[{"enum":[]},false]}`, "at /oneOf/0"},
		"an empty list and no items": {`{"items":false}`, ""},
		"under not":                  {`{"not":{"enum":[]}}`, ""},
		"a definition nobody uses":   {`{"definitions":{"a":{"enum":[]}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) { says(t, jsonschema.Impossible(parse(t, c.schema)), c.fault) })
	}
}

func TestCompileAsksForASchemaThatCanBeFollowed(t *testing.T) {
	for name, c := range map[string]struct{ schema, fault string }{
		"an unknown type": {`{"type":"int"}`, "at /type"},
		"a remote $ref":   {`{"$ref":"https://example.com"}`, "another document"},
		"a circle":        {`{"$ref":"#"}`, "circle"},
	} {
		t.Run(name, func(t *testing.T) {
			must.Refuse(jsonschema.Compile(parse(t, c.schema), jsonschema.Draft7))(t, c.fault)
		})
	}
}

func TestValidatorFault(t *testing.T) {
	const recent = `"$schema":"https://json-schema.org/draft/2020-12/schema",`
	for name, c := range map[string]struct{ schema, value, fault string }{
		"fits":                {`{"type":"object","required":["a"]}`, `{"a":1}`, ""},
		"missing":             {`{"type":"object","required":["a"]}`, `{}`, "a is required"},
		"nested":              {`{"properties":{"a":{"items":{"type":"integer"}}}}`, `{"a":[1,"2"]}`, "at /a/1"},
		"a tree":              {`{"properties":{"c":{"$ref":"#"}},"additionalProperties":false}`, `{"c":{"c":{"d":1}}}`, "at /c/c"},
		"beyond 2^53":         {`{"maximum":9007199254740992}`, `9007199254740993`, "at the top"},
		"a format":            {`{"format":"email"}`, `"nobody"`, "email"},
		"an ECMA pattern":     {`{"pattern":"(?!x)"}`, `"x"`, ""},
		"2020-12 fits":        {`{` + recent + `"prefixItems":[{"type":"string"}]}`, `["a",1]`, ""},
		"2020-12 breaks":      {`{` + recent + `"prefixItems":[{"type":"string"}]}`, `[1]`, "at /0"},
		"2020-12 with format": {`{` + recent + `"properties":{"a":{"format":"date"}}}`, `{"a":"today"}`, "at /a"},
	} {
		t.Run(name, func(t *testing.T) {
			v := must.Get(jsonschema.Compile(parse(t, c.schema), jsonschema.Draft7))(t)
			says(t, v.Fault(parse(t, c.value)), c.fault)
		})
	}
}

func FuzzSchemasOfAnyKind(f *testing.F) {
	for _, s := range []string{`{"$ref":"#"}`, `{"properties":[],"items":[{}],"enum":{}}`, `{"allOf":[{"$ref":"#/allOf/0"}]}`, `[]`, `{"$id":"urn:a","$ref":"#b"}`,
		`{"dependencies":{"a":["b"],"c":{}},"exclusiveMinimum":true,"minimum":1e5}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := exact.Parse(data)
		if err != nil || len(data) > 1<<12 {
			return
		}
		must.Equal(t, jsonschema.Difference(v, v, ""), "", "a schema differs from itself")
		jsonschema.Depth(v)
		jsonschema.Impossible(v)
		if validator, err := jsonschema.Compile(v, jsonschema.Draft7); err == nil {
			validator.Fault(v)
		}
	})
}
