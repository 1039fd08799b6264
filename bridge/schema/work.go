package schema

import "github.com/bridgecheck/bridgecheck/bridge/jsondoc"

// maxApplied is how many times a schema may be applied to a part of a value that a library gets. References that meet
// again in the same place multiply with each level of the value, and neither library can be stopped once it has begun.
const maxApplied = 20_000

// steps counts how often schemas would be applied, up to its limit.
type steps struct {
	guard
	left int
}

// tooMuch reports whether a library would take longer over a value than any check should.
func (s *Schema) tooMuch(value any) bool {
	if !s.heavy {
		return false
	}
	count := steps{guard{root: s.source}, maxApplied}
	count.apply(s.source, value, MaxDepth)
	return count.left < 0
}

// apply counts a schema's application to a value and all that follows from it; refs is how many references may follow
// each other in one place.
func (s *steps) apply(v jsondoc.Value, value any, refs int) {
	if s.left--; s.left < 0 {
		return
	}
	for _, keyword := range references {
		ref, ok := v.Get(keyword)
		if !ok || refs == 0 {
			continue
		}
		if _, target, err := s.resolve(ref); err == nil {
			s.apply(target, value, refs-1)
		}
	}
	for _, c := range children(v) {
		if !c.within {
			s.apply(c.schema, value, refs)
			continue
		}
		s.descend(c, value)
	}
}

// descend counts what a keyword applies to the parts of a value; where it leaves out parts that others have taken, they
// are counted all the same.
func (s *steps) descend(c child, value any) {
	switch c.keyword {
	case "definitions", "$defs", "propertyNames":
		return
	case "properties":
		if members, ok := value.(map[string]any); ok {
			if part, there := members[c.name]; there {
				s.apply(c.schema, part, MaxDepth)
			}
		}
		return
	}
	switch parts := value.(type) {
	case map[string]any:
		for _, part := range parts {
			s.apply(c.schema, part, MaxDepth)
		}
	case []any:
		for i, part := range parts {
			if c.index < 0 || c.index == i {
				s.apply(c.schema, part, MaxDepth)
			}
			if s.left < 0 {
				return
			}
		}
	}
}
