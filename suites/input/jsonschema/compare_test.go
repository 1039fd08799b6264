package jsonschema_test

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

func TestDifference(t *testing.T) {
	for name, c := range map[string]struct{ want, got, difference string }{
		"equal":                       {`{"type":"string","minLength":1}`, `{"minLength":1.0,"type":"string"}`, ""},
		"a type in a list":            {`{"type":"string"}`, `{"type":["string"]}`, ""},
		"types in another order":      {`{"type":["string","null"]}`, `{"type":["null","string"]}`, ""},
		"another type":                {`{"type":"integer"}`, `{"type":"number"}`, `at /type: expected ["integer"], got ["number"]`},
		"null allowed as well":        {`{"type":"string"}`, `{"type":["string","null"]}`, "at /type"},
		"type lost":                   {`{"type":"string"}`, `{}`, "at /type: expected [\"string\"], got nothing"},
		"enum in another order":       {`{"enum":[1,2]}`, `{"enum":[2,1.0]}`, ""},
		"enum shortened":              {`{"enum":[1,2]}`, `{"enum":[1]}`, "at /enum"},
		"enum of texts":               {`{"enum":[1]}`, `{"enum":["1"]}`, "at /enum"},
		"const as an enum":            {`{"const":1}`, `{"enum":[1]}`, ""},
		"Draft 4's bound":             {`{"minimum":0,"exclusiveMinimum":true}`, `{"exclusiveMinimum":0}`, ""},
		"Draft 4's bound lost":        {`{"minimum":0,"exclusiveMinimum":true}`, `{"minimum":0}`, "at /exclusiveMinimum"},
		"a bound rounded":             {`{"maximum":9007199254740993}`, `{"maximum":9007199254740992}`, "at /maximum: expected 9007199254740993, got 9007199254740992"},
		"format lost":                 {`{"format":"email"}`, `{}`, "at /format"},
		"default lost":                {`{"default":false}`, `{}`, "at /default: expected false, got nothing"},
		"default null lost":           {`{"default":null}`, `{}`, "at /default"},
		"default invented":            {`{}`, `{"default":null}`, "at /default: expected nothing, got null"},
		"default of PHP":              {`{"default":{}}`, `{"default":[]}`, ""},
		"nested required lost":        {`{"properties":{"a":{"properties":{"b":{}},"required":["b"]}}}`, `{"properties":{"a":{"properties":{"b":{}}}}}`, "at /properties/a/required"},
		"nested property lost":        {`{"properties":{"a/b":{"type":"string"}}}`, `{"properties":{}}`, "at /properties"},
		"nested property more":        {`{"properties":{"a":{}}}`, `{"properties":{"a":{},"b":{"type":"null"}}}`, "at /properties/b: expected nothing"},
		"empty nested required":       {`{}`, `{"required":[],"properties":{},"minItems":0,"uniqueItems":false,"items":{},"additionalProperties":true}`, ""},
		"PHP's empty properties":      {`{"properties":{"a":{"properties":[]}}}`, `{"properties":{"a":{"properties":{}}}}`, ""},
		"PHP's empty schema":          {`{"properties":{"a":[]}}`, `{"properties":{"a":true}}`, ""},
		"closed":                      {`{"additionalProperties":false}`, `{}`, "at /additionalProperties"},
		"narrowed":                    {`{"type":"object"}`, `{"type":"object","additionalProperties":false}`, "at /additionalProperties: expected nothing"},
		"alternatives lost":           {`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{"anyOf":[{"type":"integer"}]}`, "at /anyOf"},
		"an alternative changed":      {`{"oneOf":[{"type":"integer"},{"type":"string"}]}`, `{"oneOf":[{"type":"integer"},{}]}`, "at /oneOf/1/type"},
		"items of Draft 7":            {`{"items":[{"type":"string"}],"additionalItems":false}`, `{"prefixItems":[{"type":"string"}],"items":false}`, ""},
		"dependencies of Draft 7":     {`{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`, ""},
		"a text more":                 {`{"type":"string"}`, `{"type":"string","title":"A","$comment":"x","x-drupal":1}`, ""},
		"a text less":                 {`{"title":"A"}`, `{}`, "at /title"},
		"the description at the top":  {`{"description":"a"}`, `{"description":"b"}`, ""},
		"a description within":        {`{"items":{"description":"a"}}`, `{"items":{"description":"b"}}`, "at /items/description"},
		"a reference followed":        {`{"definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a"}`, `{"type":"string"}`, ""},
		"a reference put in place":    {`{"items":{"type":"string"}}`, `{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"string"}}}`, ""},
		"a reference in allOf":        {`{"type":"string"}`, `{"allOf":[{"$ref":"#/$defs/a"}],"description":"d","$defs":{"a":{"type":"string"}}}`, ""},
		"a reference to another type": {`{"items":{"type":"string"}}`, `{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"null"}}}`, "at /items/type"},
		"recursion on both sides":     {`{"properties":{"c":{"$ref":"#"}}}`, `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"c":{"$ref":"#/$defs/n"}}}}}`, ""},
		"false":                       {`{"properties":{"a":false}}`, `{"properties":{"a":{"not":{}}}}`, ""},
		"false made true":             {`{"properties":{"a":false}}`, `{"properties":{"a":{}}}`, "at /properties/a/not"},
		"required beside the type":    {`{"type":"string"}`, `{"type":"string","required":true}`, "at /required: expected nothing, got true"},
		"null for a schema":           {`{"type":"string"}`, `null`, "at /type"},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, jsonschema.Difference(parse(t, c.want), parse(t, c.got), ""), c.difference)
		})
	}
}

func TestDifferenceLooksWithinADocument(t *testing.T) {
	want := `{"type":"array","items":{"$ref":"#/definitions/id"},"definitions":{"id":{"type":"integer"}}}`
	for name, c := range map[string]struct{ document, difference string }{
		"hoisted":    {`{"definitions":{"id":{"type":"integer"}},"properties":{"ids":{"type":"array","items":{"$ref":"#/definitions/id"}}}}`, ""},
		"repointed":  {`{"properties":{"ids":{"type":"array","items":{"$ref":"#/properties/ids/definitions/id"},"definitions":{"id":{"type":"integer"}}}}}`, ""},
		"named":      {`{"properties":{"ids":{"$id":"urn:ids","type":"array","items":{"$ref":"#/definitions/id"},"definitions":{"id":{"type":"integer"}}}}}`, ""},
		"left alone": {`{"properties":{"ids":{"type":"array","items":{"$ref":"#/definitions/id"},"definitions":{"id":{"type":"integer"}}}}}`, "at /items"},
		"another":    {`{"definitions":{"id":{"type":"string"}},"properties":{"ids":{"type":"array","items":{"$ref":"#/definitions/id"}}}}`, "at /items/type"},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, jsonschema.Difference(parse(t, want), parse(t, c.document), "/properties/ids"), c.difference)
		})
	}
}

// Sets may come in any order, lists may not.
func TestAligned(t *testing.T) {
	parse := func(text string) any {
		return must.Get(exact.Parse([]byte(text)))(t)
	}
	const want = `{"tools":[{"name":"a","inputSchema":{"type":["string","null"],"enum":[1,"b"],"required":["x","y"],"default":{"enum":[1,2]},"properties":{"enum":{"enum":[1,2]}}}}]}`
	for _, c := range []struct {
		got  string
		same bool
	}{
		{`{"tools":[{"name":"a","inputSchema":{"type":["null","string"],"enum":["b",1.0],"required":["y","x"],"default":{"enum":[1,2]},"properties":{"enum":{"enum":[2,1]}}}}]}`, true},
		{`{"tools":[{"name":"a","inputSchema":{"type":["null","string"],"enum":["b",2],"required":["y","x"],"default":{"enum":[1,2]},"properties":{"enum":{"enum":[2,1]}}}}]}`, false},
		{`{"tools":[{"name":"a","inputSchema":{"type":["string","null"],"enum":[1,"b"],"required":["x","y"],"default":{"enum":[2,1]},"properties":{"enum":{"enum":[1,2]}}}}]}`, false},
	} {
		must.Equal(t, exact.Equal(parse(want), jsonschema.Aligned(parse(want), parse(c.got))), c.same, "whether %s is the same", c.got)
	}
	must.Expect(t, !exact.Equal(parse(`{"enum":[1,2]}`), jsonschema.Aligned(parse(`{"enum":[1,2]}`), parse(`{"enum":[2,1]}`))),
		"an enum outside of a schema is a set")
}

func TestConsensusLeavesOpenWhatDoublesDecide(t *testing.T) {
	for _, c := range []struct {
		schema, value  string
		takes, refuses bool
	}{
		{`{"maximum":9007199254740992}`, `9007199254740992`, true, false},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false, false}, // a double of it is the bound
		{`{"maximum":9007199254740992}`, `9007199254740994`, false, true},
		{`{"maximum":9007199254740993}`, `9007199254740993`, true, false},
		{`{"minimum":9007199254740993}`, `9007199254740992`, false, false}, // a double of the bound is it
		{`{"properties":{"n":{"enum":[9007199254740993]}}}`, `{"n":9007199254740992}`, false, false},
		{`{"properties":{"n":{"enum":[9007199254740993]}}}`, `{"n":1}`, false, true},
		{`{"type":"integer"}`, `9223372036854775807`, true, false},
	} {
		schema := must.Get(exact.Parse([]byte(c.schema)))(t)
		value := must.Get(exact.Parse([]byte(c.value)))(t)
		consensus := must.Get(jsonschema.Agree(schema, jsonschema.Draft7))(t)
		if takes, refuses := consensus.Takes(value), consensus.Refuses(value); takes != c.takes || refuses != c.refuses {
			t.Errorf("%s of %s: takes %t, refuses %t; want %t, %t", c.schema, c.value, takes, refuses, c.takes, c.refuses)
		}
	}
}
