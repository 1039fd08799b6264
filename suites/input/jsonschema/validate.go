package jsonschema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"
)

// Validator reports whether values fit a schema. It is safe for use by many at once.
type Validator struct {
	earlier *gojsonschema.Schema // Draft 4 to 7
	later   *santhosh.Schema     // 2019-09 and 2020-12

	schema any
	heavy  *document // nil where no value can be too much
}

// Compile makes a validator of a schema in the dialect that it declares, or in otherwise where it declares none;
// formats are asserted. A schema that is beyond Bounded, is not valid, needs another document or goes round in a circle is an
// error. Patterns that Go cannot express are left out.
func Compile(schema any, otherwise Dialect) (v *Validator, err error) {
	heavy, err := bounded(schema)
	if err != nil {
		return nil, err
	}
	for _, test := range []func() string{
		func() string { return Fault(schema, otherwise) },
		func() string { return Unresolved(schema) },
		func() string { return Circular(schema) },
	} {
		if fault := test(); fault != "" {
			return nil, errors.New(fault)
		}
	}
	dialect, err := Declared(schema, otherwise)
	if err != nil {
		return nil, err
	}
	defer func() { // both libraries have been seen to panic on schemas nobody thought of
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("cannot be compiled: %v", p)
		}
	}()
	schema = expressible(schema)
	defer func() {
		if v != nil {
			v.schema, v.heavy = schema, heavy
		}
	}()
	switch dialect {
	case Draft2019_09, Draft2020_12:
		v, err = compileLater(schema, santhosh.Draft2020)
	default:
		v, err = compileEarlier(schema, dialect)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	return v, nil
}

var drafts = map[Dialect]gojsonschema.Draft{Draft4: gojsonschema.Draft4, Draft6: gojsonschema.Draft6, Draft7: gojsonschema.Draft7}

func compileEarlier(schema any, dialect Dialect) (*Validator, error) {
	loader := gojsonschema.NewSchemaLoader()
	loader.Draft, loader.AutoDetect = drafts[dialect], false
	compiled, err := loader.Compile(gojsonschema.NewRawLoader(schema))
	return &Validator{earlier: compiled}, err
}

// compileLater compiles a schema, of the draft where it declares none.
func compileLater(schema any, draft *santhosh.Draft) (*Validator, error) {
	const address = "schema:///root"
	compiler := santhosh.NewCompiler()
	compiler.DefaultDraft(draft)
	compiler.UseLoader(nothing{})
	compiler.AssertFormat()
	if err := compiler.AddResource(address, schema); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(address)
	return &Validator{later: compiled}, err
}

// expressible takes away the patterns that Go cannot express. Which properties a lost one covers is unknown, so nothing
// may be said of all others either.
func expressible(schema any) any {
	return rewrite(schema, func(s map[string]any) map[string]any {
		if p, ok := s["pattern"].(string); ok && ecmaOnly.MatchString(p) {
			s = exact.Without(s, "pattern")
		}
		patterns, _ := s["patternProperties"].(map[string]any)
		for p := range patterns {
			if ecmaOnly.MatchString(p) {
				return exact.Without(exact.Without(exact.Without(s, "patternProperties"), "additionalProperties"), "unevaluatedProperties")
			}
		}
		return s
	})
}

// Fault says what is wrong with a value, as `at /path: …`; "" when it fits the schema.
func (v *Validator) Fault(value any) string {
	if v.tooMuch(value) {
		return fmt.Sprintf("at the top: the value is not tested, because schemas would apply to it more than %d times", mostApplied)
	}
	return v.fault(value)
}

// tooMuch reports whether a library would take longer over a value than any check should: neither can be stopped.
func (v *Validator) tooMuch(value any) bool {
	return v.heavy != nil && v.heavy.applied(v.schema, value) > mostApplied
}

func (v *Validator) fault(value any) string {
	if v.later != nil {
		err, _ := v.later.Validate(value).(*santhosh.ValidationError)
		if err == nil {
			return ""
		}
		return deepest(err)
	}
	result, err := v.earlier.Validate(gojsonschema.NewRawLoader(value))
	if err != nil {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	return worst(result.Errors())
}

// Fits reports whether a value fits a schema that a site publishes, which is of Draft 7 unless it says otherwise. What is no schema
// accepts nothing; no schema at all accepts everything.
func Fits[B ~[]byte](schema B, value any) bool {
	if schema == nil {
		return true
	}
	s, err := exact.Parse(schema)
	if err != nil {
		return false
	}
	v, err := Compile(s, Draft7)
	return err == nil && v.Fault(value) == ""
}
