// Package jsonschema checks JSON Schemas that a stranger wrote: whether they are valid in the dialect they declare,
// understood without the network, bounded, possible to satisfy, and the same in meaning as another. It reads documents
// as package exact gives them (nil, bool, string, json.Number, []any, map[string]any), never changes one, and never
// fetches anything.
package jsonschema

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Dialect is a JSON Schema dialect by the address of its meta-schema, without scheme and fragment.
type Dialect string

// The dialects that can be tested.
const (
	Draft4       Dialect = "json-schema.org/draft-04/schema"
	Draft6       Dialect = "json-schema.org/draft-06/schema"
	Draft7       Dialect = "json-schema.org/draft-07/schema"
	Draft2019_09 Dialect = "json-schema.org/draft/2019-09/schema"
	Draft2020_12 Dialect = "json-schema.org/draft/2020-12/schema"
)

// metaSchema says what is wrong with a document as a schema of one dialect; "" when nothing is. Draft 4 to 7 are
// gojsonschema's, the later ones santhosh-tekuri's, for the former cannot do them.
type metaSchema func() func(schema any) string

var metaSchemas = map[Dialect]metaSchema{
	Draft4:       sync.OnceValue(func() func(any) string { return earlier("http://" + Draft4) }),
	Draft6:       sync.OnceValue(func() func(any) string { return earlier("http://" + Draft6) }),
	Draft7:       sync.OnceValue(func() func(any) string { return earlier("http://" + Draft7) }),
	Draft2019_09: sync.OnceValue(func() func(any) string { return later("https://" + Draft2019_09) }),
	Draft2020_12: sync.OnceValue(func() func(any) string { return later("https://" + Draft2020_12) }),
}

// Declared is the dialect that a schema declares in $schema, or otherwise where it declares none. A dialect that is no
// published one, or too old to be tested, is an error.
func Declared(schema any, otherwise Dialect) (Dialect, error) {
	object, _ := schema.(map[string]any)
	declared, ok := object["$schema"]
	if !ok {
		return otherwise, nil
	}
	text, ok := declared.(string)
	if !ok {
		return "", fmt.Errorf("its $schema is %s, no string", exact.Short(declared))
	}
	_, address, _ := strings.Cut(text, "://")
	dialect := Dialect(strings.TrimSuffix(address, "#"))
	if _, known := metaSchemas[dialect]; !known {
		return "", fmt.Errorf("its $schema %.100q is not Draft 4, 6, 7, 2019-09 or 2020-12 of JSON Schema", text)
	}
	return dialect, nil
}

// Fault says why a document is no valid schema of the dialect that it declares, or of otherwise where it declares
// none, as `at /path: …`; "" when it is valid. References are not followed: Unresolved tests them.
func Fault(schema any, otherwise Dialect) string {
	dialect, err := Declared(schema, otherwise)
	if err != nil {
		return err.Error()
	}
	return metaSchemas[dialect]()(testable(schema, dialect))
}

func earlier(address Dialect) func(any) string {
	meta, err := gojsonschema.NewSchema(gojsonschema.NewReferenceLoader(string(address))) // embedded in the library
	if err != nil {
		panic(fmt.Sprintf("jsonschema: %s does not compile: %v", address, err))
	}
	return func(schema any) string {
		result, err := meta.Validate(gojsonschema.NewRawLoader(schema))
		if err != nil {
			return err.Error()
		}
		return worst(result.Errors())
	}
}

// worst picks the error that lies deepest: those around it only say that something within is wrong.
func worst(errors []gojsonschema.ResultError) string {
	deepest, fault := -1, ""
	for _, e := range errors {
		path := strings.TrimPrefix(e.Context().String("/"), "(root)")
		if depth := strings.Count(path, "/"); depth > deepest {
			deepest, fault = depth, fmt.Sprintf("at %s: %s", pointer(path), e.Description())
		}
	}
	return fault
}

func later(address Dialect) func(any) string {
	compiler := santhosh.NewCompiler()
	compiler.UseLoader(nothing{})
	meta := compiler.MustCompile(string(address)) // embedded in the library
	return func(schema any) string {
		err, _ := meta.Validate(schema).(*santhosh.ValidationError)
		if err == nil {
			return ""
		}
		return deepest(err)
	}
}

func deepest(err *santhosh.ValidationError) string {
	found := err
	var look func(e *santhosh.ValidationError)
	look = func(e *santhosh.ValidationError) {
		if len(e.Causes) == 0 && (len(found.Causes) > 0 || len(e.InstanceLocation) > len(found.InstanceLocation)) {
			found = e
		}
		for _, cause := range e.Causes {
			look(cause)
		}
	}
	look(err)
	_, reason, _ := strings.Cut(found.Error(), "': ")
	reason = cmp.Or(reason, found.Error())
	at := ""
	for _, token := range found.InstanceLocation {
		at = exact.At(at, token)
	}
	return fmt.Sprintf("at %s: %s", pointer(at), strings.Join(strings.Fields(reason), " "))
}

// nothing is a loader that fetches nothing.
type nothing struct{}

func (nothing) Load(url string) (any, error) { return nil, fmt.Errorf("%s is another document", url) }

// ecmaOnly is what ECMA-262 has in regular expressions and Go has not.
var ecmaOnly = regexp.MustCompile(`\(\?<?[=!]|\\[1-9cu]|\(\?<[A-Za-z]|\[\^?\]`)

// testable takes away what the meta-schemas in use are stricter about than the specification: patterns that Go cannot
// express, and from Draft 6 on an enum without members or with a repeated one.
func testable(schema any, dialect Dialect) any {
	return rewrite(schema, func(s map[string]any) map[string]any {
		if p, ok := s["pattern"].(string); ok && ecmaOnly.MatchString(p) {
			s = exact.Without(s, "pattern")
		}
		if patterns, ok := s["patternProperties"].(map[string]any); ok {
			for p := range patterns {
				if ecmaOnly.MatchString(p) {
					patterns = exact.Without(patterns, p)
				}
			}
			s = exact.With(s, "patternProperties", patterns)
		}
		if _, ok := s["enum"].([]any); ok && dialect != Draft4 {
			s = exact.Without(s, "enum")
		}
		return s
	})
}

// Depth is how many levels deep a schema goes: a schema within a schema is one level, and so is a list or an object
// within the data of an enum, a const or a default.
func Depth(schema any) int {
	object, ok := schema.(map[string]any)
	if !ok {
		return 1
	}
	deepest := 0
	for _, child := range children(object) {
		deepest = max(deepest, Depth(child.schema))
	}
	for _, keyword := range []string{"enum", "const", "default", "examples"} {
		deepest = max(deepest, exact.Depth(object[keyword]))
	}
	return deepest + 1
}

// Size is how many bytes a schema takes as JSON without blanks and without needless escapes.
func Size(schema any) int {
	text, _ := exact.Write(schema)
	return len(text)
}

func pointer(at string) string {
	if at == "" {
		return "the top"
	}
	return at
}
