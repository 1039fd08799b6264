package phpschema_test

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/phpschema"
)

func decode(t *testing.T, doc string) php.Value {
	t.Helper()
	v, err := php.Decode([]byte(doc))
	must.Assert(t, err == nil, "%s: %v", doc, err)
	return v
}

func TestErrorsInTheLibrarysWords(t *testing.T) {
	for _, c := range []struct {
		name, schema, value string
		want                []string // property: message (constraint)
	}{
		{"type", `{"type":"integer"}`, `2.0`, []string{": Double value found, but an integer is required (type)"}},
		{"types", `{"type":["number","string"]}`, `false`, []string{": Boolean value found, but a number or a string is required (type)"}},
		{"three types", `{"type":["null","array","object"]}`, `"x"`, []string{": String value found, but a null, an array or an object is required (type)"}},
		{"[] is an object", `{"type":"object"}`, `[]`, nil},
		{"{} is an array", `{"type":"array"}`, `{}`, nil},
		{"a list is no object", `{"type":"object"}`, `[1]`, []string{": Array value found, but an object is required (type)"}},
		{"required, nested", `{"properties":{"a":{"type":"object","required":["b"]}}}`, `{"a":{"c":1}}`, []string{"a.b: The property b is required (required)"}},
		{"items", `{"items":{"type":"string"}}`, `["a",1]`, []string{"[1]: Integer value found, but a string is required (type)"}},
		{"enum", `{"enum":["a","b/c"]}`, `"x"`, []string{`: Does not have a value in the enumeration ["a","b\/c"] (enum)`}},
		{"enum is loose about numbers", `{"enum":["2.0"]}`, `2`, nil},
		{"a numeric string meets its bounds", `{"type":"integer","minimum":3}`, `"2"`, []string{": String value found, but an integer is required (type)", ": Must have a minimum value greater than or equal to 3 (minimum)"}},
		{"bounds", `{"minimum":1,"maximum":5,"multipleOf":2}`, `7`, []string{": Must have a maximum value less than or equal to 5 (maximum)", ": Must be a multiple of 2 (multipleOf)"}},
		{"exclusive, Draft 4", `{"minimum":1,"exclusiveMinimum":true}`, `1`, []string{": Must have a minimum value greater than 1 (exclusiveMinimum)"}},
		{"exclusive, later", `{"exclusiveMaximum":1}`, `1`, []string{": Use of exclusiveMaximum requires presence of maximum (missingMaximum)"}},
		{"lengths and pattern", `{"minLength":3,"pattern":"^a"}`, `"éb"`, []string{": Must be at least 3 characters long (minLength)", ": Does not match the regex pattern ^a (pattern)"}},
		{"item counts", `{"minItems":2,"uniqueItems":true}`, `[1]`, []string{": There must be a minimum of 2 items in the array, 1 found (minItems)"}},
		{"duplicates", `{"uniqueItems":true}`, `[{"a":1},{"a":1}]`, []string{": There are no duplicates allowed in the array (uniqueItems)"}},
		{"properties come before what is too much", `{"properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"b":1,"a":1}`,
			[]string{"a: Integer value found, but a string is required (type)", ": The property b is not defined and the definition does not allow additional properties (additionalProp)"}},
		{"pattern properties", `{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`, `{"xa":1}`, []string{"xa: Integer value found, but a string is required (type)"}},
		{"property counts", `{"maxProperties":1}`, `{"a":1,"b":2}`, []string{": Must contain no more than 1 properties (maxProperties)"}},
		{"anyOf shows every branch", `{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `true`,
			[]string{": Boolean value found, but an integer is required (type)", ": Boolean value found, but a string is required (type)", ": Failed to match at least one schema (anyOf)"}},
		{"oneOf twice", `{"oneOf":[{"type":"integer"},{"minimum":0}]}`, `1`, []string{": Failed to match exactly one schema (oneOf)"}},
		{"allOf", `{"allOf":[{"type":"integer"},{"minimum":5}]}`, `1`, []string{": Must have a minimum value greater than or equal to 5 (minimum)", ": Failed to match all schemas (allOf)"}},
		{"not", `{"not":{"type":"integer"}}`, `1`, []string{": Matched a schema which it should not (not)"}},
		{"dependencies", `{"dependencies":{"a":["b"]}}`, `{"a":1}`, []string{`: A depends on ["b"], which is missing (dependencies)`}},
		{"a flag without its bound", `{"exclusiveMinimum":true}`, `1`, []string{": Use of exclusiveMinimum requires presence of minimum (missingMinimum)"}},
		{"a constant is strict about text", `{"const":"2.0"}`, `2`, []string{": Does not have a value equal to 2.0 (const)"}},
		{"a constant object", `{"const":{"a":1,"b":2}}`, `{"b":2.0,"a":1}`, nil},
		{"an object within a constant is never met", `{"enum":[{"a":{"b":1}}]}`, `{"a":{"b":1}}`, []string{`: Does not have a value in the enumeration [{"a":{"b":1}}] (enum)`}},
		{"equal numbers and members in any order are duplicates", `{"uniqueItems":true}`, `[{"a":1,"b":2},{"b":2,"a":1.0}]`, []string{": There are no duplicates allowed in the array (uniqueItems)"}},
		{"text and number are no duplicates", `{"uniqueItems":true}`, `[1,"1",true,null,""]`, nil},
		{"the same error is reported once", `{"allOf":[{"type":"integer"},{"type":"integer"}]}`, `"x"`, []string{": String value found, but an integer is required (type)", ": Failed to match all schemas (allOf)"}},
		{"oneOf reports the last branch first", `{"oneOf":[{"type":"integer"},{"type":"boolean"},{"type":"null"}]}`, `"x"`,
			[]string{": String value found, but a null is required (type)", ": String value found, but an integer is required (type)", ": String value found, but a boolean is required (type)", ": Failed to match exactly one schema (oneOf)"}},
		{"a property with an empty definition is not defined", `{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1}`, []string{": The property a is not defined and the definition does not allow additional properties (additionalProp)"}},
		{"$schema is always allowed", `{"additionalProperties":false}`, `{"$schema":"x"}`, nil},
		{"required as a flag, Draft 3", `{"properties":{"a":{"required":true}}}`, `{}`, []string{"a: The property a is required (required)"}},
		{"more items than the tuple has", `{"properties":{"t":{"items":[{}],"additionalItems":false}}}`, `{"t":[1,2]}`, []string{"t: The item t[1] is not defined and the definition does not allow additional items (additionalItems)"}},
		{"an item that passes as an additional one", `{"items":{"type":"integer"},"additionalItems":{"type":"string"}}`, `[1,"a",true]`,
			[]string{"[2]: Boolean value found, but an integer is required (type)"}},
		{"the dollar stands before a last newline", `{"pattern":"^a$"}`, "\"a\\n\"", nil},
		{"local reference", `{"definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n"}}}`, `{"a":"x"}`, []string{"a: String value found, but an integer is required (type)"}},
		{"a reference to itself", `{"$ref":"#"}`, `1`, []string{"! Dereferencing a pointer to internal://provided-schema/# results in an infinite loop"}},
		{"a schema that contains itself", `{"properties":{"a":{"$ref":"#"},"b":{"type":"string"}}}`, `{"a":{"a":{"b":1}}}`, []string{"a.a.b: Integer value found, but a string is required (type)"}},
		{"a schema that needs itself", `{"not":{"$ref":"#"}}`, `1`, []string{"Error! Allowed memory size exhausted"}},
		{"a schema that needs itself twice", `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `1`, []string{"Error! Allowed memory size exhausted"}},
		{"no such definition", `{"properties":{"a":{"$ref":"#/definitions/x"}}}`, `{"a":1}`, []string{"! File: internal://provided-schema/ is found, but could not resolve fragment: #/definitions/x"}},
		{"remote reference is not fetched", `{"$ref":"http://127.0.0.1:1/x"}`, `1`, []string{"! file_get_contents(http://127.0.0.1:1/x): Failed to open stream: No such file or directory"}},
		{"email", `{"format":"email"}`, `"not-an-email"`, []string{": Invalid email (emailFormat)"}},
		{"email that is one", `{"format":"email"}`, `"a@b.example"`, nil},
		{"date", `{"format":"date"}`, `"2020-13-01"`, []string{": Invalid date 2020-13-01, expected format YYYY-MM-DD (dateFormat)"}},
		{"date-time", `{"format":"date-time"}`, `"soon"`, []string{`: Invalid date-time "soon", expected format YYYY-MM-DDThh:mm:ssZ or YYYY-MM-DDThh:mm:ss+hh:mm (dateTimeFormat)`}},
		{"uri", `{"format":"uri"}`, `"x"`, []string{": Invalid URL format (urlFormat)"}},
		{"an address without a dot", `{"format":"email"}`, `"a@b"`, []string{": Invalid email (emailFormat)"}},
		{"a quoted local part", `{"format":"email"}`, `"\"a..b\"@c.example"`, nil},
		{"letters of all alphabets, before the @ only", `{"format":"email"}`, `"ü@ü.example"`, []string{": Invalid email (emailFormat)"}},
		{"a number has any format", `{"format":"ipv4"}`, `1`, nil},
		{"time without a zone", `{"format":"time"}`, `"10:20:30"`, nil},
		{"time with one", `{"format":"time"}`, `"10:20:30Z"`, []string{`: Invalid time "10:20:30Z", expected format hh:mm:ss (timeFormat)`}},
		{"mailto", `{"format":"uri"}`, `"mailto:a@b.example"`, nil},
		{"reference", `{"format":"uri-reference"}`, `"a b"`, []string{": Invalid URL format (urlFormat)"}},
		{"ip", `{"format":"ipv4"}`, `"1.2.3"`, []string{": Invalid IP address (ipFormat)"}},
		{"unknown format", `{"format":"colour of the sky"}`, `"x"`, nil},
		{"an unknown type", `{"type":"entity_reference"}`, `1`, []string{"! 1 is an invalid type for entity_reference"}},
		{"a multiple of 0", `{"multipleOf":0}`, `1`, []string{"DivisionByZeroError! Division by zero"}},
		{"words of all alphabets", `{"pattern":"^\\w+$"}`, `"né"`, nil},
		{"a boundary after any letter", `{"pattern":"\\bfoo\\b"}`, `"éfoo"`, []string{`: Does not match the regex pattern \bfoo\b (pattern)`}},
		{"look-around", `{"pattern":"^(?=.*\\d)(?!x)\\w++$"}`, `"ab"`, []string{`: Does not match the regex pattern ^(?=.*\d)(?!x)\w++$ (pattern)`}},
		{"an invalid pattern refuses all", `{"pattern":"("}`, `"("`, []string{`: Does not match the regex pattern ( (pattern)`}},
		{"the end of the text", `{"pattern":"^abc\\z"}`, `"abc\n"`, []string{`: Does not match the regex pattern ^abc\z (pattern)`}},
		{"what the library does not know", `{"contains":{"type":"integer"},"if":{},"propertyNames":{"maxLength":1}}`, `{"long":1}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			errs, thrown := phpschema.Validate(decode(t, c.value), decode(t, c.schema))
			if thrown != nil {
				got = append(got, thrown.Class+"! "+thrown.Message)
			}
			for _, e := range errs {
				got = append(got, php.ToString(e.Value().Member("property"))+": "+e.Message+" ("+e.Name+")")
			}
			must.Expect(t, strings.Join(got, "\n") == strings.Join(c.want, "\n"),
				"%s under %s gives\n%q\nwant\n%q", c.value, c.schema, got, c.want)
		})
	}
}

func TestErrorAsPHPHasIt(t *testing.T) {
	errs, _ := phpschema.Validate(decode(t, `{"a":{"b/c":[5]}}`), decode(t, `{"properties":{"a":{"properties":{"b/c":{"items":{"type":"string"}}}}}}`))
	out, err := php.Encode(errs[0].Value())
	if err != nil || !strings.Contains(string(out), `"property":"a.b\/c[0]","pointer":"\/a\/b~1c\/0","message":"Integer value found, but a string is required","constraint":{"name":"type","params":{"found":"integer","expected":"a string"}},"context":1`) {
		t.Errorf("%s %v", out, err)
	}
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}},"items":[{}],"required":["a",1]}`), []byte(`{"a":[1,{}]}`))
	f.Add([]byte(`{"anyOf":[{"not":{}}],"enum":[[],{}],"minimum":"x","pattern":"("}`), []byte(`"1e5"`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := php.Decode(schema)
		if err != nil {
			return
		}
		v, err := php.Decode(value)
		if err != nil {
			return
		}
		errs, _ := phpschema.Validate(v, s)
		for _, e := range errs {
			must.Assert(t, e.Message != "" && e.Name != "", "%s under %s: an error without words", value, schema)
		}
	})
}
