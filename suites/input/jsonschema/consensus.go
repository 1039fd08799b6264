package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Consensus is what independent validators agree on: two libraries, two dialects where a schema declares none, and
// numbers read as written or into doubles. What they disagree on, a correct bridge may take or refuse.
type Consensus struct {
	opinions []*Validator
	doubles  []*Validator // of the schema as it reads with doubles; nil where that is no other
}

// dialectal is what regular expressions of ECMA-262, PCRE and Go have apart or read apart.
var dialectal = regexp.MustCompile(`\\[pPAzZQEKhHRXGbB]|\(\?[^:]|\[\[:|[+*?}]\+`)

// Agree makes the consensus on a schema of the dialect that it declares, or of otherwise where it declares none. Beside
// what Compile refuses, a schema with a pattern that is read apart is an error: nothing can be said of its values.
func Agree(schema any, otherwise Dialect) (*Consensus, error) {
	first, err := Compile(schema, otherwise)
	if err != nil {
		return nil, err
	}
	if inexpressible(schema) {
		return nil, errors.New("it has a pattern that is not the same to all")
	}
	c := &Consensus{opinions: append([]*Validator{first}, others(schema)...)}
	if read := inDoubles(schema); !exact.Equal(read, schema) {
		if c.doubles = others(read); len(c.doubles) == 0 {
			return nil, errors.New("it has numbers that are not the same to all")
		}
	}
	return c, nil
}

// others are the validators beside the first; one that cannot be made has no opinion.
func others(schema any) (opinions []*Validator) {
	dialects := []*santhosh.Draft{santhosh.Draft7}
	if _, declared := schema.(map[string]any)["$schema"]; !declared {
		dialects = append(dialects, santhosh.Draft2020)
	}
	for _, draft := range dialects {
		if other, err := compileAs(schema, draft); err == nil {
			opinions = append(opinions, other)
		}
	}
	return opinions
}

// inDoubles is a document as it reads where every number is a double: integers beyond 2^53 are rounded.
func inDoubles(v any) any {
	return exact.Mapped(v, func(v any) any {
		number, _ := v.(json.Number)
		if len(number) < len("9007199254740992") || strings.ContainsAny(number.String(), ".eE") {
			return v
		}
		if n, err := number.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(n, 'f', 0, 64))
		}
		return v
	})
}

func compileAs(schema any, draft *santhosh.Draft) (v *Validator, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("cannot be compiled: %v", p)
		}
	}()
	return compileLater(schema, draft)
}

// Takes reports whether all agree that the value fits.
func (c *Consensus) Takes(value any) bool {
	return c.agree(value, func(fault string) bool { return fault == "" })
}

// Refuses reports whether all agree that the value does not fit.
func (c *Consensus) Refuses(value any) bool {
	return c.agree(value, func(fault string) bool { return fault != "" })
}

// Cost is how often schemas apply to a value and its parts, up to a limit above which it neither fits nor does not.
func (c *Consensus) Cost(value any) int {
	return read(c.opinions[0].schema).applied(c.opinions[0].schema, value)
}

func (c *Consensus) agree(value any, on func(fault string) bool) bool {
	if c.opinions[0].tooMuch(value) {
		return false
	}
	for _, v := range c.opinions {
		if !on(v.fault(value)) {
			return false
		}
	}
	read, doubles := inDoubles(value), c.doubles
	if doubles == nil {
		if exact.Equal(read, value) {
			return true
		}
		doubles = c.opinions
	}
	for _, v := range doubles {
		if !on(v.fault(read)) {
			return false
		}
	}
	return true
}

// Fault says in the words of the first what is wrong with a value, as Validator.Fault does.
func (c *Consensus) Fault(value any) string { return c.opinions[0].Fault(value) }

func foreign(pattern string) bool {
	return ecmaOnly.MatchString(pattern) || dialectal.MatchString(pattern)
}

func inexpressible(schema any) (found bool) {
	rewrite(schema, func(s map[string]any) map[string]any {
		if p, ok := s["pattern"].(string); ok && foreign(p) {
			found = true
		}
		patterns, _ := s["patternProperties"].(map[string]any)
		for p := range patterns {
			found = found || foreign(p)
		}
		return s
	})
	return found
}

// Bounds of Inlined: how deep references are followed, and how many members of objects that makes.
const (
	maxInlined  = 16
	mostInlined = 50_000
)

// Inlined is a schema with what its local references lead to in their place, as far as that can be given: references to
// a schema with an address of its own stay, and those that are deeper than maxInlined. Where schemas refer to themselves so often
// that this makes too much of them, it is half as deep, or a quarter, …
func Inlined(schema any) any {
	d := read(schema)
	for deepest := maxInlined; ; deepest /= 2 {
		left := mostInlined
		var inline func(s any, depth int) any
		inline = func(s any, depth int) any {
			return rewrite(s, func(object map[string]any) map[string]any {
				if depth > 0 {
					left -= entries(object)
				}
				ref, ok := object["$ref"].(string)
				if !ok || depth == deepest || left < 0 {
					return object
				}
				target, base, err := d.resolve("", ref)
				if err != nil || base != "" {
					return object
				}
				if found, ok := inline(target, depth+1).(map[string]any); ok {
					return found
				}
				return object
			})
		}
		if inlined := inline(schema, 0); left >= 0 || deepest == 0 {
			return inlined
		}
	}
}

// entries are the members of a schema and of the objects in it, which rewrite copies.
func entries(object map[string]any) int {
	n := 1 + len(object)
	for _, v := range object {
		switch v := v.(type) {
		case map[string]any:
			n += len(v)
		case []any:
			n += len(v)
		}
	}
	return n
}
