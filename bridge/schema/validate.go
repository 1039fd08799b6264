package schema

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

const (
	// A library gets a document of at most so many values and names, after so many steps with so many violations.
	libraryNodes, librarySteps, libraryNoise = 2_000, 10_000, 200
	// repairNodes is how large a document may be in which [] is taken for {}.
	repairNodes = 50_000
)

// Validator checks documents against schemas, within what all checks together may take. A nil Validator bounds each check
// by itself only.
type Validator struct {
	work    *fair.Work
	observe func(steps int)
	indexes sync.Pool // of long documents, for the next: an index may take six times its document
}

// NewValidator makes a validator whose long checks share the places of work; observe receives the steps of every document,
// and may be nil.
func NewValidator(work *fair.Work, observe func(steps int)) *Validator {
	return &Validator{work: work, observe: observe}
}

// Validate checks a document, which must be JSON, for a caller; no violations means that it is valid. Errors: ErrTooMuch,
// fair.ErrFull, and what ended ctx.
func (c *Validator) Validate(ctx context.Context, who fair.Key, s *Schema, doc []byte) ([]Violation, error) {
	_, violations, err := c.validate(ctx, who, s, doc, nil, false)
	return violations, err
}

// ValidateArguments is Validate for an object of which members that are null and not required count as not there, as
// Drupal takes them. It gives the object as the site takes it: a number that the schema takes for an integer is spelled as one,
// 3 for 3.0 and 100 for 1e2. That is doc itself where all are.
func (c *Validator) ValidateArguments(ctx context.Context, who fair.Key, s *Schema, doc []byte, required []string) ([]byte, []Violation, error) {
	return c.validate(ctx, who, s, doc, required, true)
}

// index returns an index that is not in use; release ends its use.
func (c *Validator) index(doc []byte) (ix *index, release func()) {
	if c == nil || len(doc) <= fair.Long {
		return &index{}, func() {}
	}
	if ix, _ = c.indexes.Get().(*index); ix == nil {
		ix = &index{}
	}
	return ix, func() {
		ix.doc = nil
		c.indexes.Put(ix)
	}
}

func (c *Validator) validate(ctx context.Context, who fair.Key, s *Schema, doc []byte, required []string, arguments bool) ([]byte, []Violation, error) {
	if c != nil {
		size := len(doc)
		if s.heavy {
			size = max(size, fair.Long+1)
		}
		leave, err := c.work.Enter(ctx, who, size)
		if err != nil {
			return doc, nil, err
		}
		defer leave()
	}
	ix, release := c.index(doc)
	defer release()
	if err := ix.read(doc); err != nil {
		return doc, []Violation{{Expected: "JSON", Received: err.Error()}}, nil
	}
	if arguments {
		ix.withoutNulls(required)
	}
	calm := len(ix.nodes) <= libraryNodes
	plan, err := s.plan()
	if err != nil { // a schema that only its library understands
		if !calm {
			return doc, nil, ErrTooMuch
		}
		violations, err := s.decoded(doc, required, arguments)
		return doc, violations, err
	}
	e := evaluation{ctx: ctx, schema: s, ix: ix, seed: s.seed, most: maxSteps}
	e.apply(plan, 0, nil)
	if c != nil && c.observe != nil {
		c.observe(e.steps)
	}
	switch {
	case e.err != nil:
		return doc, nil, e.err
	case len(e.found) == 0 && arguments:
		return ix.integers(e.whole), nil, nil
	case len(e.found) == 0:
		return doc, nil, nil
	case !calm, e.final, e.stop, e.steps > librarySteps, e.noise > libraryNoise:
		return doc, tidy(e.found), nil
	}
	found, err := s.decoded(doc, required, arguments)
	if errors.Is(err, ErrTooMuch) {
		return doc, tidy(e.found), nil
	}
	return doc, found, err
}

// integers returns the document with the numbers at the nodes spelled as integers, as far as PHP has them.
func (ix *index) integers(nodes []uint32) []byte {
	slices.Sort(nodes)
	doc, from := ix.doc, uint32(0)
	var changed []byte
	for _, at := range slices.Compact(nodes) {
		n := ix.nodes[at]
		text, ok := parseDecimal(ix.raw(at)).text()
		if !ok {
			continue
		}
		changed = append(append(changed, doc[from:n.from]...), text...)
		from = n.to
	}
	if changed == nil {
		return doc
	}
	return append(changed, doc[from:]...)
}

// decoded checks a document by the library, if that will not take long over it.
func (s *Schema) decoded(doc []byte, required []string, nulls bool) ([]Violation, error) {
	value, err := Decode(doc)
	if err != nil {
		return []Violation{{Expected: "JSON", Received: oneLine(err.Error())}}, nil
	}
	if members, ok := value.(map[string]any); ok && nulls {
		dropOptionalNulls(members, required)
	}
	if s.tooMuch(value) {
		return nil, ErrTooMuch
	}
	return s.byLibrary(value), nil
}

// dropOptionalNulls takes null for an optional parameter as Drupal does: it is not there.
func dropOptionalNulls(members map[string]any, required []string) {
next:
	for name, v := range members {
		if v != nil {
			continue
		}
		for _, r := range required {
			if r == name {
				continue next
			}
		}
		delete(members, name)
	}
}

// Conform checks a document and, where it fails, once more with {} for each [] that stands where the schema wants an
// object: PHP writes both the same way. It gives the document that conforms, which is doc itself where that does.
// Errors are those of Validate.
func (c *Validator) Conform(ctx context.Context, who fair.Key, s *Schema, doc json.RawMessage) (json.RawMessage, []Violation, error) {
	violations, err := c.Validate(ctx, who, s, doc)
	if err != nil || len(violations) == 0 || countNodes(doc) > repairNodes {
		return doc, violations, err
	}
	tree, err := jsondoc.Parse(doc)
	if err != nil {
		return doc, violations, nil
	}
	wanted := map[string]bool{}
	for _, v := range violations {
		wanted[v.at] = true
	}
	repaired := emptyObjects(tree, "", wanted).Bytes()
	left, err := c.Validate(ctx, who, s, repaired)
	if err != nil || len(left) > 0 {
		return doc, violations, err
	}
	return repaired, nil, nil
}
