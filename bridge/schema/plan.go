package schema

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"
)

// plan is a schema as evaluate walks it: all dialects in one form, with what a value must be compared with prepared.
type plan struct {
	never   bool   // the schema false
	kinds   kindOf // types that are allowed; 0: all
	kindsAs string

	values   map[uint64]bool // hashes of the values of enum; nil: any
	valuesAs string
	constant *uint64
	constAs  string

	bounds     []bound
	multipleOf *big.Rat
	textPlan
	objectPlan
	arrayPlan

	same         []*plan // $ref and allOf: all must hold
	any, one     []*plan
	not          *plan
	cond         *plan
	then, orElse *plan
}

// textPlan is what a string is compared with.
type textPlan struct {
	format    string
	isFormat  func(string) bool
	pattern   *pattern
	minLength *int
	maxLength *int
}

// objectPlan is what an object and its members are compared with.
type objectPlan struct {
	minMembers *int
	maxMembers *int
	required   []string
	isRequired map[string]bool
	properties map[string]*plan
	patterns   []patternPlan
	additional *plan // for members that no property and no pattern names; nil: anything
	names      *plan
	dependents map[string]dependent

	restMembers *plan // unevaluatedProperties
}

// arrayPlan is what an array and its items are compared with.
type arrayPlan struct {
	minItems    *int
	maxItems    *int
	unique      bool
	items       []*plan // of the first items
	rest        *plan   // of all others; nil: anything
	contains    *plan
	evaluates   bool // contains counts as having evaluated the items that match (2020-12)
	minContains int
	maxContains *int

	restItems *plan // unevaluatedItems
}

// bound is what a number is compared with.
type bound struct {
	keyword, expected string
	wrong, orWrong    int // orders that break it
	rat               *big.Rat
	short             bool // it is whole: comparing it with a whole number needs no arithmetic
	whole             int64
}

func boundsOf(s *santhosh.Schema) (bounds []bound) {
	for _, b := range []bound{
		{keyword: "minimum", expected: "at least ", wrong: -1, orWrong: -1, rat: s.Minimum},
		{keyword: "exclusiveMinimum", expected: "more than ", wrong: -1, orWrong: 0, rat: s.ExclusiveMinimum},
		{keyword: "maximum", expected: "at most ", wrong: 1, orWrong: 1, rat: s.Maximum},
		{keyword: "exclusiveMaximum", expected: "less than ", wrong: 1, orWrong: 0, rat: s.ExclusiveMaximum},
	} {
		if b.rat == nil {
			continue
		}
		if b.short = b.rat.IsInt() && b.rat.Num().IsInt64(); b.short {
			b.whole = b.rat.Num().Int64()
		}
		b.expected += shown(b.rat)
		bounds = append(bounds, b)
	}
	return bounds
}

type pattern struct {
	text string
	re   *regexp.Regexp
	cost int // instructions of the compiled expression: each may be tried at each byte
}

type patternPlan struct {
	*pattern
	plan *plan
}

type dependent struct {
	required []string
	plan     *plan
}

// planner makes plans; references that meet again meet the same plan.
type planner struct {
	known map[*santhosh.Schema]*plan
	seed  maphash.Seed
}

// errDynamic says that which schema a reference means depends on the way that led to it.
var errDynamic = fmt.Errorf("dynamic references have no plan")

// newPlan makes the plan of a compiled schema.
func newPlan(compiled *santhosh.Schema, seed maphash.Seed) (*plan, error) {
	return (&planner{known: map[*santhosh.Schema]*plan{}, seed: seed}).plan(compiled)
}

// compileEarlier compiles a schema of Draft 4 to 7 for its plan.
func compileEarlier(tree any) (*santhosh.Schema, error) {
	c := santhosh.NewCompiler()
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.DefaultDraft(santhosh.Draft7)
	if err := c.AddResource(address, tree); err != nil {
		return nil, err
	}
	return c.Compile(address)
}

func (p *planner) plan(s *santhosh.Schema) (*plan, error) {
	if s == nil {
		return nil, nil
	}
	if known, ok := p.known[s]; ok {
		return known, nil
	}
	made := &plan{
		bounds: boundsOf(s), multipleOf: s.MultipleOf,
		textPlan:   textPlan{minLength: s.MinLength, maxLength: s.MaxLength},
		objectPlan: objectPlan{minMembers: s.MinProperties, maxMembers: s.MaxProperties, required: s.Required},
		arrayPlan:  arrayPlan{minItems: s.MinItems, maxItems: s.MaxItems, unique: s.UniqueItems, minContains: 1, maxContains: s.MaxContains},
	}
	p.known[s] = made
	if s.Bool != nil {
		made.never = !*s.Bool
		return made, nil
	}
	if s.DynamicRef != nil && s.DynamicRef.Anchor != "" || s.RecursiveRef != nil && s.RecursiveRef.RecursiveAnchor {
		return nil, errDynamic
	}
	if s.MinContains != nil {
		made.minContains = *s.MinContains
	}
	if len(s.Required) > 0 {
		made.isRequired = map[string]bool{}
		for _, name := range s.Required {
			made.isRequired[name] = true
		}
	}
	if err := p.values(made, s); err != nil {
		return nil, err
	}
	if err := p.texts(made, s); err != nil {
		return nil, err
	}
	return made, p.children(made, s)
}

// values prepares type, enum and const.
func (p *planner) values(made *plan, s *santhosh.Schema) error {
	if s.Types != nil {
		names := slices.Sorted(slices.Values(s.Types.ToStrings()))
		for _, name := range names {
			made.kinds |= kindBits[name]
		}
		made.kindsAs = strings.Join(names, "/")
	}
	if s.Enum != nil {
		made.values = map[uint64]bool{}
		var shown []string
		for _, v := range s.Enum.Values {
			hash, text, err := p.hash(v)
			if err != nil {
				return err
			}
			made.values[hash] = true
			shown = append(shown, text)
		}
		made.valuesAs = oneLine(strings.Join(shown, ", "))
	}
	if s.Const != nil {
		hash, text, err := p.hash(*s.Const)
		if err != nil {
			return err
		}
		made.constant, made.constAs = &hash, oneLine(text)
	}
	return nil
}

func (p *planner) hash(v any) (uint64, string, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return 0, "", fmt.Errorf("a value of the schema: %w", err)
	}
	ix, err := newIndex(doc)
	if err != nil {
		return 0, "", err
	}
	return ix.hash(0, p.seed), string(doc), nil
}

// texts prepares what strings are checked for.
func (p *planner) texts(made *plan, s *santhosh.Schema) (err error) {
	if s.Pattern != nil {
		if made.pattern, err = newPattern(s.Pattern.String()); err != nil {
			return err
		}
	}
	if f := s.Format; f != nil {
		made.format = f.Name
		switch {
		case s.DraftVersion < 2019 && gojsonschema.FormatCheckers.Has(f.Name):
			made.isFormat = func(text string) bool { return gojsonschema.FormatCheckers.IsFormat(f.Name, text) }
		case f.Validate != nil:
			made.isFormat = func(text string) bool { return f.Validate(text) == nil }
		}
	}
	return nil
}

func newPattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	return &pattern{text: text, re: re, cost: len(prog.Inst)}, nil
}

// children makes the plans of all schemas within s.
func (p *planner) children(made *plan, s *santhosh.Schema) error {
	var failed error
	get := func(s *santhosh.Schema) *plan {
		child, err := p.plan(s)
		if err != nil {
			failed = err
		}
		return child
	}
	all := func(list []*santhosh.Schema) (plans []*plan) {
		for _, s := range list {
			plans = append(plans, get(s))
		}
		return plans
	}
	extra := func(v any) *plan { // nil, a bool or a schema
		switch v := v.(type) {
		case bool:
			return &plan{never: !v}
		case *santhosh.Schema:
			return get(v)
		}
		return nil
	}
	for _, ref := range []*santhosh.Schema{s.Ref, s.RecursiveRef} {
		if ref != nil {
			made.same = append(made.same, get(ref))
		}
	}
	if s.DynamicRef != nil {
		made.same = append(made.same, get(s.DynamicRef.Ref))
	}
	made.same = append(made.same, all(s.AllOf)...)
	made.any, made.one = all(s.AnyOf), all(s.OneOf)
	made.not, made.cond, made.then, made.orElse = get(s.Not), get(s.If), get(s.Then), get(s.Else)
	if len(s.Properties) > 0 {
		made.properties = map[string]*plan{}
	}
	for name, property := range s.Properties {
		made.properties[name] = get(property)
	}
	for re, matching := range s.PatternProperties {
		compiled, err := newPattern(re.String())
		if err != nil {
			return err
		}
		made.patterns = append(made.patterns, patternPlan{compiled, get(matching)})
	}
	made.additional = extra(s.AdditionalProperties)
	made.names, made.contains = get(s.PropertyNames), get(s.Contains)
	p.dependents(made, s, get)
	switch items := s.Items.(type) {
	case *santhosh.Schema:
		made.rest = get(items)
	case []*santhosh.Schema:
		made.items, made.rest = all(items), extra(s.AdditionalItems)
	}
	if s.DraftVersion >= 2020 {
		made.evaluates = true
		made.items, made.rest = all(s.PrefixItems), get(s.Items2020)
	}
	made.restMembers, made.restItems = get(s.UnevaluatedProperties), get(s.UnevaluatedItems)
	return failed
}

func (p *planner) dependents(made *plan, s *santhosh.Schema, get func(*santhosh.Schema) *plan) {
	add := func(name string, d dependent) {
		if made.dependents == nil {
			made.dependents = map[string]dependent{}
		}
		have := made.dependents[name]
		have.required = append(have.required, d.required...)
		if d.plan != nil {
			have.plan = d.plan
		}
		made.dependents[name] = have
	}
	for name, d := range s.Dependencies {
		switch d := d.(type) {
		case []string:
			add(name, dependent{required: d})
		case *santhosh.Schema:
			add(name, dependent{plan: get(d)})
		}
	}
	for name, required := range s.DependentRequired {
		add(name, dependent{required: required})
	}
	for name, d := range s.DependentSchemas {
		add(name, dependent{plan: get(d)})
	}
}
