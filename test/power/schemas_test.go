package power

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/phpschema"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// suite is a part of the public JSON Schema Test Suite in a module that the product needs anyway.
type suite struct {
	module, folder string
	dialect        jsonschema.Dialect
}

var suitesOfSchemas = []suite{
	{"github.com/xeipuuv/gojsonschema", "testdata/draft4", jsonschema.Draft4},
	{"github.com/xeipuuv/gojsonschema", "testdata/draft6", jsonschema.Draft6},
	{"github.com/google/jsonschema-go", "jsonschema/testdata/draft7", jsonschema.Draft7},
	{"github.com/google/jsonschema-go", "jsonschema/testdata/draft2020-12", jsonschema.Draft2020_12},
}

// schemaCase is a value of the suite with what must come of it.
type schemaCase struct {
	name   string // file/group/test
	schema any
	data   any
	valid  bool
}

// cases reads the suite, without the files of what neither a site publishes nor a bridge may do: requests for other documents.
func (s suite) cases(t *testing.T) []schemaCase {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", s.module).Output()
	must.Need(t, err == nil, "the module %s is not here: %v", s.module, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), s.folder, "*.json"))
	must.Need(t, err == nil && len(files) > 0, "%s has no %s", s.module, s.folder)
	var all []schemaCase
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		keyword := strings.TrimSuffix(filepath.Base(file), ".json")
		if slices.Contains([]string{"refRemote", "vocabulary", "dynamicRef", "id", "anchor", "unknownKeyword", "infinite-loop-detection"}, keyword) {
			continue
		}
		groups := must.Get(exact.Parse(data))(t)
		for _, g := range groups.([]any) {
			group := g.(map[string]any)
			for _, c := range group["tests"].([]any) {
				test := c.(map[string]any)
				all = append(all, schemaCase{fmt.Sprintf("%s/%s/%s", keyword, group["description"], test["description"]), group["schema"], test["data"], test["valid"] == true})
			}
		}
	}
	return all
}

// verdict is what a validator says; known is false where it does not take the schema.
type verdict func(c schemaCase, dialect jsonschema.Dialect) (valid, known bool)

var dialects = map[jsonschema.Dialect]string{jsonschema.Draft4: "http://json-schema.org/draft-04/schema#", jsonschema.Draft6: "http://json-schema.org/draft-06/schema#",
	jsonschema.Draft7: "http://json-schema.org/draft-07/schema#", jsonschema.Draft2020_12: "https://json-schema.org/draft/2020-12/schema"}

var validators = map[string]verdict{
	"the suites": func(c schemaCase, dialect jsonschema.Dialect) (bool, bool) {
		v, err := jsonschema.Compile(c.schema, dialect)
		return err == nil && v.Fault(c.data) == "", err == nil
	},
	"the reference bridge": func(c schemaCase, dialect jsonschema.Dialect) (bool, bool) {
		// Arguments are an object: the value is one of them.
		document := map[string]any{"$schema": dialects[dialect], "type": "object", "properties": map[string]any{"value": c.schema}}
		s, err := schema.Compile([]byte(written(document)))
		if err != nil || refers(c.schema) {
			return false, false
		}
		violations, err := (*schema.Validator)(nil).Validate(context.Background(), fair.Key{}, s, []byte(written(map[string]any{"value": c.data})))
		return err == nil && len(violations) == 0, err == nil
	},
	"the mock, as PHP": func(c schemaCase, dialect jsonschema.Dialect) (bool, bool) {
		if dialect != jsonschema.Draft4 {
			return false, false // it has no other
		}
		s, err := php.Decode([]byte(written(c.schema)))
		if err != nil {
			return false, false
		}
		v, err := php.Decode([]byte(written(c.data)))
		if err != nil {
			return false, false
		}
		errs, thrown := phpschema.Validate(v, s)
		return len(errs) == 0 && thrown == nil, thrown == nil
	},
}

// refers reports whether a schema has a reference: within another document it leads elsewhere.
func refers(s any) bool {
	return strings.Contains(written(s), `"$ref"`) || strings.Contains(written(s), `"$id"`)
}

func TestValidatorsAgreeWithThePublicSuite(t *testing.T) {
	for _, s := range suitesOfSchemas {
		t.Run(filepath.Base(s.folder), func(t *testing.T) {
			cases := s.cases(t)
			for who, says := range validators {
				known, differing := 0, map[string]bool{}
				for _, c := range cases {
					valid, ok := says(c, s.dialect)
					if !ok {
						continue
					}
					known++
					if valid != c.valid && exception(who, s.dialect, c.name) == "" {
						differing[c.name] = true
						t.Errorf("%s says %t of %s, want %t: schema %s, value %s", who, valid, c.name, c.valid, exact.Short(c.schema), exact.Short(c.data))
					}
				}
				t.Logf("%s agrees on %d of %d cases", who, known-len(differing), len(cases))
			}
		})
	}
}

// exception is why a validator says something else than the public suite; "" where it must not.
func exception(who string, dialect jsonschema.Dialect, name string) string {
	for _, e := range exceptions {
		if e.who == who && (e.dialect == "" || e.dialect == dialect) && strings.HasPrefix(name, e.cases) {
			return e.why
		}
	}
	return ""
}

var exceptions = []struct {
	who     string
	dialect jsonschema.Dialect // "": each
	cases   string             // how their names begin
	why     string
}{
	{php8, jsonschema.Draft4, "additionalItems/items is schema, no additionalItems", "items that are {} are to PHP an empty list of items, behind which nothing may come"},
	{php8, jsonschema.Draft4, "additionalProperties/", "a property whose schema is {} is to PHP one without a schema, and so an additional one"},
	{php8, jsonschema.Draft4, "minProperties/minProperties validation/ignores arrays", "[] is an object to PHP"},
	{php8, jsonschema.Draft4, "required/required validation/ignores arrays", "[] is an object to PHP"},
	{php8, jsonschema.Draft4, "type/object type matches objects/an array is not an object", "[] is an object to PHP"},
	{php8, jsonschema.Draft4, "type/array type matches arrays/an object is not an array", "{} is a list to PHP"},
	{"the suites", jsonschema.Draft7, "ref/$ref prevents a sibling $id", "gojsonschema reads an $id beside a $ref; no site publishes one"},
}

const php8 = "the mock, as PHP"
