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

// What the pairs that were kept of the library have nowhere: references in circles, addresses, patterns that only PCRE knows.
func TestErrorsInTheLibrarysWords(t *testing.T) {
	for _, c := range []struct {
		name, schema, value string
		want                []string // property: message (constraint)
	}{
		{"duplicates", `{"uniqueItems":true}`, `[{"a":1},{"a":1}]`, []string{": There are no duplicates allowed in the array (uniqueItems)"}},
		{"pattern properties", `{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`, `{"xa":1}`, []string{"xa: Integer value found, but a string is required (type)"}},
		{"an object within a constant is never met", `{"enum":[{"a":{"b":1}}]}`, `{"a":{"b":1}}`, []string{`: Does not have a value in the enumeration [{"a":{"b":1}}] (enum)`}},
		{"equal numbers and members in any order are duplicates", `{"uniqueItems":true}`, `[{"a":1,"b":2},{"b":2,"a":1.0}]`, []string{": There are no duplicates allowed in the array (uniqueItems)"}},
		{"text and number are no duplicates", `{"uniqueItems":true}`, `[1,"1",true,null,""]`, nil},
		{"required as a flag, Draft 3", `{"properties":{"a":{"required":true}}}`, `{}`, []string{"a: The property a is required (required)"}},
		{"more items than the tuple has", `{"properties":{"t":{"items":[{}],"additionalItems":false}}}`, `{"t":[1,2]}`, []string{"t: The item t[1] is not defined and the definition does not allow additional items (additionalItems)"}},
		{"an item that passes as an additional one", `{"items":{"type":"integer"},"additionalItems":{"type":"string"}}`, `[1,"a",true]`,
			[]string{"[2]: Boolean value found, but an integer is required (type)"}},
		{"the dollar stands before a last newline", `{"pattern":"^a$"}`, "\"a\\n\"", nil},
		{"a reference to itself", `{"$ref":"#"}`, `1`, []string{"! Dereferencing a pointer to internal://provided-schema/# results in an infinite loop"}},
		{"a schema that contains itself", `{"properties":{"a":{"$ref":"#"},"b":{"type":"string"}}}`, `{"a":{"a":{"b":1}}}`, []string{"a.a.b: Integer value found, but a string is required (type)"}},
		{"a schema that needs itself", `{"not":{"$ref":"#"}}`, `1`, []string{"Error! Allowed memory size exhausted"}},
		{"a schema that needs itself twice", `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `1`, []string{"Error! Allowed memory size exhausted"}},
		{"remote reference is not fetched", `{"$ref":"http://127.0.0.1:1/x"}`, `1`, []string{"! file_get_contents(http://127.0.0.1:1/x): Failed to open stream: No such file or directory"}},
		{"email", `{"format":"email"}`, `"not-an-email"`, []string{": Invalid email (emailFormat)"}},
		{"email that is one", `{"format":"email"}`, `"a@b.example"`, nil},
		{"an address without a dot", `{"format":"email"}`, `"a@b"`, []string{": Invalid email (emailFormat)"}},
		{"a quoted local part", `{"format":"email"}`, `"\"a..b\"@c.example"`, nil},
		{"letters of all alphabets, before the @ only", `{"format":"email"}`, `"ü@ü.example"`, []string{": Invalid email (emailFormat)"}},
		{"mailto", `{"format":"uri"}`, `"mailto:a@b.example"`, nil},
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
