// Package schema checks values against JSON Schemas and says what is wrong with them parameter by parameter. Draft 4 to
// 7, and schemas that declare nothing (Drupal means Draft 7), go to gojsonschema; 2019-09 and 2020-12 to
// santhosh-tekuri/jsonschema. It never fetches anything: Compile refuses what Check refuses. Its invariant: no document
// makes it work or hold more than a budget says. Neither library can be stopped, so evaluate, which counts its steps,
// goes first, and is believed where a library would take too long; what it accepts no library need look at.
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

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Schema is a compiled schema. It is immutable and safe for use by many at once.
type Schema struct {
	source jsondoc.Value
	heavy  bool                 // a value can make it expensive
	draft7 *gojsonschema.Schema // Draft 4 to 7
	recent *santhosh.Schema     // 2019-09 and 2020-12
	seed   maphash.Seed
	weight int                   // bytes that it takes, by and large
	plan   func() (*plan, error) // made when it is first needed
}

// Compile checks and compiles a schema document.
func Compile(doc []byte) (s *Schema, err error) {
	source, err := jsondoc.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	heavy, program, err := check(source, len(doc))
	if err != nil {
		return nil, err
	}
	// Both libraries have been seen to panic on unusual schemas.
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
	s = &Schema{source: source, heavy: heavy, seed: maphash.MakeSeed(), weight: 8<<10 + 50*len(doc) + 500*program}
	s.plan = sync.OnceValues(s.makePlan)
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

// makePlan makes the plan for evaluate.
func (s *Schema) makePlan() (made *plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			made, err = nil, fmt.Errorf("the schema has no plan: %v", p)
		}
	}()
	compiled := s.recent
	if compiled == nil {
		dialect, _ := dialectOf(s.source) // Compile refuses the others
		tree, err := Decode(readable(s.source, dialect).Bytes())
		if err != nil {
			return nil, err
		}
		if compiled, err = compileEarlier(tree); err != nil {
			return nil, err
		}
	}
	return newPlan(compiled, s.seed)
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
			members[i] = jsondoc.Member{Name: m.Name, Value: emptyObjects(m.Value, below(at, m.Name), wanted)}
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

func oneLine(s string) string { return fault.Clip(strings.Join(strings.Fields(s), " "), 300) }
