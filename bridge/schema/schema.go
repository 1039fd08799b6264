// Package schema checks values against JSON Schemas and says what is wrong with them parameter by parameter. Draft 4 to
// 7, and schemas that declare nothing (Drupal means Draft 7), go to gojsonschema; 2019-09 and 2020-12 to
// santhosh-tekuri/jsonschema. It never fetches anything: Compile refuses what Check refuses.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Schema is a compiled schema. It is immutable and safe for use by many at once.
type Schema struct {
	source jsondoc.Value
	heavy  bool                 // a value can make it expensive
	draft7 *gojsonschema.Schema // Draft 4 to 7
	recent *santhosh.Schema     // 2019-09 and 2020-12
}

// Compile checks and compiles a schema document.
func Compile(doc []byte) (s *Schema, err error) {
	source, err := jsondoc.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	heavy, err := check(source, len(doc))
	if err != nil {
		return nil, err
	}
	// Both libraries have been seen to panic on schemas nobody thought of.
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("the schema cannot be compiled: %v", p)
		}
	}()
	dialect, known := dialectOf(source)
	if !known {
		return nil, errors.New("the schema declares a dialect that is not known here")
	}
	tree, err := Decode(readable(source, dialect).Bytes())
	if err != nil {
		return nil, err
	}
	s = &Schema{source: source, heavy: heavy}
	if dialect.recent {
		s.recent, err = compileRecent(tree)
	} else {
		s.draft7, err = compileOlder(tree, dialect)
	}
	if err != nil {
		return nil, fmt.Errorf("the schema is not valid: %s", oneLine(err.Error()))
	}
	return s, nil
}

const address = "schema:///root.json"

func compileRecent(tree any) (*santhosh.Schema, error) {
	c := santhosh.NewCompiler()
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(address, tree); err != nil {
		return nil, err
	}
	return c.Compile(address)
}

// noLoader keeps the compiler from reaching out.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("the schema needs another document: " + url)
}

// Decode reads JSON for Validate: numbers keep their digits.
func Decode(doc []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("cannot decode JSON: %w", err)
	}
	return v, nil
}

// Validate checks a decoded value; no violations means that it is valid.
func (s *Schema) Validate(value any) []Violation {
	if s.tooMuch(value) {
		return []Violation{{Expected: "a value that the schema does not apply to in so many ways", Received: "one that is too large or too deep for it"}}
	}
	if s.recent != nil {
		return s.checkRecent(value)
	}
	return s.checkDraft7(value)
}

// Conform checks a document and, where it fails, once more with {} for each [] that stands where the schema wants an
// object: PHP writes both the same way. It gives the document that conforms, which is doc itself where that does.
func (s *Schema) Conform(doc json.RawMessage) (json.RawMessage, []Violation) {
	value, err := Decode(doc)
	if err != nil {
		return doc, []Violation{{Expected: "JSON", Received: err.Error()}}
	}
	violations := s.Validate(value)
	if len(violations) == 0 {
		return doc, nil
	}
	tree, err := jsondoc.Parse(doc)
	if err != nil {
		return doc, violations
	}
	wanted := map[string]bool{}
	for _, v := range violations {
		wanted[v.at] = true
	}
	mended := emptyObjects(tree, "", wanted).Bytes()
	if value, err = Decode(mended); err != nil || len(s.Validate(value)) > 0 {
		return doc, violations
	}
	return mended, nil
}

// emptyObjects puts {} for [] at the wanted places.
func emptyObjects(v jsondoc.Value, at string, wanted map[string]bool) jsondoc.Value {
	switch {
	case v.IsEmptyArray() && wanted[at]:
		return jsondoc.NewObject()
	case len(v.Members) > 0:
		members := make([]jsondoc.Member, len(v.Members))
		for i, m := range v.Members {
			members[i] = jsondoc.Member{Name: m.Name, Value: emptyObjects(m.Value, at+"/"+escapePointer(m.Name), wanted)}
		}
		return jsondoc.NewObject(members...)
	case len(v.Items) > 0:
		items := make([]jsondoc.Value, len(v.Items))
		for i, item := range v.Items {
			items[i] = emptyObjects(item, at+"/"+strconv.Itoa(i), wanted)
		}
		return jsondoc.NewArray(items...)
	}
	return v
}

func oneLine(s string) string {
	const longest = 300
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return s
}
