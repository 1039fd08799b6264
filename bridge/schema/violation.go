package schema

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/xeipuuv/gojsonschema"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Violation is one thing that is wrong with a value.
type Violation struct {
	Parameter  string `json:"parameter"`             // dotted path of the value, as in filter.author.id
	Expected   string `json:"expected"`              // what would be right
	Received   string `json:"received"`              // what came
	SchemaPath string `json:"schema_path,omitempty"` // where in the schema that is said, as far as it can be given

	at string // the value's JSON pointer
}

// maxViolations bounds a response to a value that is wrong everywhere.
const maxViolations = 50

// rule says how one kind of gojsonschema's errors reads: the keyword, and what was expected (%v is the detail).
type rule struct{ keyword, expected, detail string }

// rules are gojsonschema's error types; one that is not here reads as the library words it.
var rules = map[string]rule{
	"required":                        {"required", "a value", ""},
	"invalid_type":                    {"type", "%v", "expected"},
	"enum":                            {"enum", "one of %v", "allowed"},
	"const":                           {"const", "%v", "allowed"},
	"number_gte":                      {"minimum", "at least %v", "min"},
	"number_gt":                       {"exclusiveMinimum", "more than %v", "min"},
	"number_lte":                      {"maximum", "at most %v", "max"},
	"number_lt":                       {"exclusiveMaximum", "less than %v", "max"},
	"multiple_of":                     {"multipleOf", "a multiple of %v", "multiple"},
	"string_gte":                      {"minLength", "at least %v characters", "min"},
	"string_lte":                      {"maxLength", "at most %v characters", "max"},
	"pattern":                         {"pattern", "a string that matches %v", "pattern"},
	"format":                          {"format", "a string in the format %v", "format"},
	"array_min_items":                 {"minItems", "at least %v items", "min"},
	"array_max_items":                 {"maxItems", "at most %v items", "max"},
	"unique":                          {"uniqueItems", "items that all differ", ""},
	"contains":                        {"contains", "an item as the schema's contains asks", ""},
	"array_min_properties":            {"minProperties", "at least %v members", "min"},
	"array_max_properties":            {"maxProperties", "at most %v members", "max"},
	"additional_property_not_allowed": {"additionalProperties", "no such member", ""},
	"array_no_additional_items":       {"additionalItems", "no further items", ""},
	"missing_dependency":              {"dependencies", "%v beside it", "dependency"},
	"number_any_of":                   {"anyOf", "a value that fits one of the alternatives", ""},
	"number_one_of":                   {"oneOf", "a value that fits exactly one of the alternatives", ""},
	"number_all_of":                   {"allOf", "a value that fits all of the alternatives", ""},
	"number_not":                      {"not", "a value that does not fit the excluded schema", ""},
}

func (s *Schema) checkDraft7(value any) []Violation {
	result, err := s.draft7.Validate(gojsonschema.NewRawLoader(value))
	if err != nil {
		return []Violation{{Expected: "a value that can be checked", Received: oneLine(err.Error())}}
	}
	if result.Valid() {
		return nil
	}
	var found []Violation
	for _, e := range result.Errors() {
		path := strings.Split(e.Context().String("\x00"), "\x00")[1:] // without gojsonschema's (root)
		got := received(e.Value())
		switch property, _ := e.Details()["property"].(string); e.Type() {
		case "required":
			path, got = append(path, property), "nothing"
		case "additional_property_not_allowed":
			path = append(path, property)
		}
		r, ok := rules[e.Type()]
		expected := r.expected
		if r.detail != "" {
			expected = fmt.Sprintf(r.expected, e.Details()[r.detail])
		}
		if !ok {
			expected = oneLine(e.Description())
		}
		found = append(found, s.violation(path, r.keyword, expected, got))
	}
	return tidy(found)
}

func (s *Schema) checkRecent(value any) []Violation {
	err := s.recent.Validate(value)
	if err == nil {
		return nil
	}
	ve, ok := err.(*santhosh.ValidationError)
	if !ok {
		return []Violation{{Expected: "a value that can be checked", Received: oneLine(err.Error())}}
	}
	return tidy(s.leaves(nil, ve, value))
}

// leaves collects the innermost causes: the outer ones only say that something within is wrong.
func (s *Schema) leaves(found []Violation, e *santhosh.ValidationError, value any) []Violation {
	for _, cause := range e.Causes {
		found = s.leaves(found, cause, value)
	}
	if len(e.Causes) > 0 {
		return found
	}
	path := e.InstanceLocation
	keyword := strings.Join(e.ErrorKind.KeywordPath(), "/")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			found = append(found, s.violation(append(path[:len(path):len(path)], name), "required", "a value", "nothing"))
		}
		return found
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			found = append(found, s.violation(append(path[:len(path):len(path)], name), keyword, "no such member", "one"))
		}
		return found
	}
	expected := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	return append(found, s.violation(path, keyword, expected, received(part(value, path))))
}

func (s *Schema) violation(path []string, keyword, expected, got string) Violation {
	v := Violation{Parameter: strings.Join(path, "."), Expected: expected, Received: got, SchemaPath: s.path(path, keyword)}
	for _, token := range path {
		v.at = below(v.at, token)
	}
	return v
}

// path leads to the keyword as far as properties and items go; behind a $ref or a combinator it stops.
func (s *Schema) path(instance []string, keyword string) string {
	at, v := "#", s.source
	if keyword == "required" && len(instance) > 0 {
		instance = instance[:len(instance)-1]
	}
	for _, token := range instance {
		if props, ok := v.Get("properties"); ok {
			if p, ok := props.Get(token); ok {
				at, v = below(at+"/properties", token), p
				continue
			}
		}
		if items, ok := v.Get("items"); ok && items.Kind == jsondoc.Object {
			at, v = at+"/items", items
			continue
		}
		return at
	}
	if _, ok := v.Get(keyword); ok {
		at += "/" + keyword
	}
	return at
}

// tidy orders violations, drops repetitions, and keeps them to a number that helps.
func tidy(found []Violation) []Violation {
	sort.SliceStable(found, func(i, j int) bool { return found[i].Parameter < found[j].Parameter })
	var kept []Violation
	for i, v := range found {
		if i > 0 && v == found[i-1] {
			continue
		}
		if kept = append(kept, v); len(kept) == maxViolations {
			break
		}
	}
	return kept
}

// received says what came: its type, and the value itself where that is short.
func received(v any) string {
	const longest = 80
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("boolean %t", v)
	case json.Number:
		if len(v) <= longest {
			return "number " + v.String()
		}
		return "number"
	case string:
		if text, err := json.Marshal(v[:min(len(v), longest)]); err == nil && len(v) <= longest && len(text) <= longest {
			return "string " + string(text)
		}
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// part returns the value at an instance location.
func part(v any, path []string) any {
	for _, token := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		}
	}
	return v
}
