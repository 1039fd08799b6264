package jsonschema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/applicator"
	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Bounds of a schema that values are generated for or tested by. Whoever is tested wrote it, and a small one can keep a validator
// busy for hours. They are well above those of clause schema/bounded, so that what breaks that one is still tested.
const (
	mostBytes    = 256 << 10
	mostLevels   = 100
	mostSchemas  = 1000
	mostExponent = 1000   // of a number: libraries write out 1e999999
	mostAtOnce   = 10_000 // schemas that apply to one place of a value: alternatives that refer to alternatives multiply
	mostProgram  = 10_000 // parts of all patterns, with their repetitions: one of 2 KB can compile to 55 MB
	mostApplied  = 20_000 // times that schemas apply to the parts of one value: references that meet again multiply at each level
)

// fewAtOnce is how many schemas at one place never make a value too much.
const fewAtOnce = 32

// BeyondError says why a schema is not tested: by its size it would take longer than any check should.
type BeyondError string

func (e BeyondError) Error() string { return string(e) }

// Bounded refuses a schema that takes more than any check should, by a BeyondError.
func Bounded(schema any) error {
	_, err := bounded(schema)
	return err
}

// bounded is Bounded, and gives the document where a value can be too much for the schema, else nil.
func bounded(schema any) (heavy *document, err error) {
	if size := Size(schema); size > mostBytes {
		return nil, BeyondError(fmt.Sprintf("it is %d bytes long, more than %d", size, mostBytes))
	}
	if levels := Depth(schema); levels > mostLevels {
		return nil, BeyondError(fmt.Sprintf("it is %d levels deep, more than %d", levels, mostLevels))
	}
	for v := range exact.Values(schema) {
		if number, ok := v.(json.Number); ok && !written(number) {
			return nil, BeyondError(fmt.Sprintf("it has a number whose exponent is beyond %d, %.40s", mostExponent, number))
		}
	}
	g := guard{document: read(schema), known: map[uintptr]int{}}
	g.walk(schema, "")
	switch {
	case g.schemas > mostSchemas:
		return nil, BeyondError(fmt.Sprintf("it consists of more than %d schemas", mostSchemas))
	case g.most > mostAtOnce:
		return nil, BeyondError(fmt.Sprintf("more than %d of its schemas apply at once", mostAtOnce))
	case g.program > mostProgram:
		return nil, BeyondError(fmt.Sprintf("its patterns have more than %d parts", mostProgram))
	}
	if len(g.refs) > 0 || g.most > fewAtOnce {
		return g.document, nil
	}
	return nil, nil
}

// written reports whether a number can be written out.
func written(number json.Number) bool {
	_, exponent, has := strings.Cut(strings.ToLower(string(number)), "e")
	n, err := strconv.Atoi(exponent)
	return !has || err == nil && -mostExponent <= n && n <= mostExponent
}

// guard counts what a schema takes.
type guard struct {
	*document
	known                  map[uintptr]int // schemas that apply where an object does, itself among them
	schemas, most, program int
}

func (g *guard) walk(schema any, base string) {
	object, ok := schema.(map[string]any)
	if g.schemas++; !ok || g.schemas > mostSchemas {
		return
	}
	g.most = max(g.most, g.atOnce(object, base))
	if text, ok := object["pattern"].(string); ok {
		g.program += parts(text)
	}
	if patterns, ok := object["patternProperties"].(map[string]any); ok {
		for text := range patterns {
			g.program += parts(text)
		}
	}
	base = baseOf(object, base)
	for _, c := range children(object) {
		g.walk(c.schema, base)
	}
}

// atOnce is how many schemas apply to a value that this one applies to. Circular tests references that lead back.
func (g *guard) atOnce(schema any, base string) int {
	object, ok := schema.(map[string]any)
	if !ok {
		return 1
	}
	key := reflect.ValueOf(object).Pointer()
	if n, met := g.known[key]; met {
		return n
	}
	g.known[key] = 1
	n := 1
	g.inPlace(object, base, func(next any, base string) { n = min(n+g.atOnce(next, base), mostAtOnce+1) })
	g.known[key] = n
	return n
}

// inPlace visits what applies to the very value that a schema applies to, but for dynamic references.
func (d *document) inPlace(object map[string]any, base string, visit func(schema any, base string)) {
	base = baseOf(object, base)
	if text, ok := object["$ref"].(string); ok {
		if target, at, err := d.resolve(base, text); err == nil {
			visit(target, at)
		}
	}
	for _, c := range children(object) {
		if applicator.Keywords[c.keyword].InPlace {
			visit(c.schema, base)
		}
	}
}

// parts is how many instructions a pattern roughly compiles to; none where Go cannot read it.
func parts(pattern string) int {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return partsOf(tree)
}

func partsOf(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/8
	for _, sub := range re.Sub {
		n = min(n+partsOf(sub), mostProgram+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1) // 1000 at most
	}
	return min(n, mostProgram+1)
}

// applied counts how often schemas apply to a value and its parts, up to a limit.
func (d *document) applied(schema, value any) int {
	n := 0
	var apply func(schema any, base string, value any, refs int)
	apply = func(schema any, base string, value any, refs int) {
		object, ok := schema.(map[string]any)
		if n++; !ok || n > mostApplied || refs == 0 {
			return
		}
		d.inPlace(object, base, func(next any, base string) { apply(next, base, value, refs-1) })
		base = baseOf(object, base)
		for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
			if text, ok := object[keyword].(string); ok {
				if target, at, err := d.resolve(base, text); err == nil {
					apply(target, at, value, refs-1)
				}
			}
		}
		for _, c := range children(object) {
			for _, part := range reached(c, value) {
				apply(c.schema, base, part, mostAtOnce)
			}
		}
	}
	apply(schema, "", value, mostAtOnce)
	return n
}

// reached are the parts of a value that a schema within another may apply to: all, where its keyword may leave some out.
func reached(c child, value any) []any {
	if k := applicator.Keywords[c.keyword]; k.InPlace || c.keyword == "definitions" || c.keyword == "$defs" || c.keyword == "contentSchema" {
		return nil
	}
	var all []any
	switch value := value.(type) {
	case map[string]any:
		if c.keyword == "properties" {
			if part, there := exact.Lookup(value, strings.TrimPrefix(c.at, "/properties")); there {
				return []any{part}
			}
			return nil
		}
		for _, part := range value {
			all = append(all, part)
		}
	case []any:
		return value
	}
	return all
}
