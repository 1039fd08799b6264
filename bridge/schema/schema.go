// Package schema checks values against JSON Schemas and says what is wrong with them parameter by parameter. Draft 4 to
// 7, and schemas that declare nothing (Drupal means Draft 7), go to gojsonschema; 2019-09 and 2020-12 to
// santhosh-tekuri/jsonschema. It never fetches anything: Compile refuses what Check refuses. Its invariant: no document
// makes it work or hold more than a budget says. Neither library can be stopped, so evaluate, which counts its steps,
// goes first wherever a document is not small, and is believed where a library would take too long.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Schema is a compiled schema. It is immutable and safe for use by many at once.
type Schema struct {
	source jsondoc.Value
	heavy  bool                 // a value can make it expensive
	long   bool                 // the schema's text, which goes into messages
	draft7 *gojsonschema.Schema // Draft 4 to 7
	recent *santhosh.Schema     // 2019-09 and 2020-12
	seed   maphash.Seed
	plan   func() (*plan, error) // made when it is first needed
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
	tree, err := Decode(withoutForeignPatterns(source).Bytes())
	if err != nil {
		return nil, err
	}
	s = &Schema{source: source, heavy: heavy, long: len(doc) > longSchema, seed: maphash.MakeSeed()}
	s.plan = sync.OnceValues(s.makePlan)
	if Recent(source) {
		s.recent, err = compileRecent(tree)
	} else {
		s.draft7, err = compileDraft7(tree)
	}
	if err != nil {
		return nil, fmt.Errorf("the schema is not valid: %s", oneLine(err.Error()))
	}
	return s, nil
}

// makePlan makes the plan for evaluate.
func (s *Schema) makePlan() (made *plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			made, err = nil, fmt.Errorf("the schema has no plan: %v", p)
		}
	}()
	compiled := s.recent
	if compiled == nil {
		tree, err := Decode(withoutForeignPatterns(s.source).Bytes())
		if err != nil {
			return nil, err
		}
		if compiled, err = compileEarlier(tree); err != nil {
			return nil, err
		}
	}
	return newPlan(compiled, s.seed)
}

// Recent tells whether a schema declares a dialect from 2019-09 on.
func Recent(v jsondoc.Value) bool {
	declared, ok := v.Get("$schema")
	if !ok {
		return false
	}
	text, _ := declared.Text()
	return strings.Contains(text, "json-schema.org/draft/20")
}

func compileDraft7(tree any) (*gojsonschema.Schema, error) {
	loader := draft7Loader()
	if object, ok := tree.(map[string]any); ok && object["$schema"] == nil {
		if err := isDraft7(tree); err != nil {
			return nil, err
		}
	} else {
		loader.Validate = true // against the draft that it declares
	}
	return loader.Compile(gojsonschema.NewRawLoader(tree))
}

func draft7Loader() *gojsonschema.SchemaLoader {
	loader := gojsonschema.NewSchemaLoader()
	loader.Draft = gojsonschema.Draft7
	return loader
}

// draft7 is the schema of schemas, which the library would compile anew for every schema.
var draft7 = sync.OnceValues(func() (*gojsonschema.Schema, error) {
	return draft7Loader().Compile(gojsonschema.NewReferenceLoader("http://json-schema.org/draft-07/schema#"))
})

func isDraft7(tree any) error {
	meta, err := draft7()
	if err != nil {
		return err
	}
	result, err := meta.Validate(gojsonschema.NewRawLoader(tree))
	if err != nil {
		return err
	}
	var faults []string
	for _, fault := range result.Errors() {
		faults = append(faults, fault.String())
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
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

// Decode reads JSON for a library: numbers keep their digits.
func Decode(doc []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("cannot decode JSON: %w", err)
	}
	return v, nil
}

// byLibrary checks a decoded value with the library for the schema's dialect.
func (s *Schema) byLibrary(value any) []Violation {
	if s.recent != nil {
		return s.checkRecent(value)
	}
	return s.checkDraft7(value)
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
