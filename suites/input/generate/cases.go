// Package generate generates values from any JSON Schema: values that fit it, including those at its limits, and values
// that break one keyword in one place. It never generates what correct validators disagree on, nor what the contract
// leaves open: null, unknown arguments, and 2.0 for an integer. Documents are in the form of package exact and are never
// changed. The result depends only on the schema and the random source.
package generate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// Case is one value, with what is special about it.
type Case struct {
	What  string // the keyword and the place: `minimum at /filter/id`
	Value any
}

// Parameter is the top-level member that the case is about; "" for the value as a whole.
func (c Case) Parameter() string {
	_, place, _ := strings.Cut(c.What, " at /")
	name, _, _ := strings.Cut(place, "/")
	return jsontext.Pointer(name).LastToken()
}

// Of is c for a smaller value: What names those of several edges that are of parameters which the value still has.
func (c Case) Of(value any) Case {
	arguments, _ := value.(map[string]any)
	left := slices.DeleteFunc(strings.Split(c.What, together), func(edge string) bool {
		_, there := arguments[Case{What: edge}.Parameter()]
		return !there
	})
	if len(left) == 0 {
		return Case{c.What, value}
	}
	return Case{strings.Join(left, together), value}
}

// together stands between the edges of one value.
const together = "; "

// Maker makes cases up from one schema. It is for one goroutine.
type Maker struct {
	schema    map[string]any
	consensus *jsonschema.Consensus
	dice      *rand.Rand
	arguments bool // what the contract leaves open of arguments is not broken
	plain     any

	edges, broken func() []Case // each worked out once
}

// ForArguments makes cases of a tool's arguments from its inputSchema. A schema that cannot be read, or for which no
// value could be generated, is an error.
func ForArguments(schema map[string]any, dice *rand.Rand) (*Maker, error) {
	return newMaker(schema, dice, true)
}

// Taken is m for those parameters whose plain value the tool takes: a site may refuse what its schema allows. It is nil
// where the tool takes nothing that could be generated.
func (m *Maker) Taken(takes func(arguments any) bool) *Maker {
	if takes(m.plain) {
		return m
	}
	all, properties, kept := m.plain.(map[string]any), map[string]any{}, map[string]any{}
	required := namesIn(m.schema["required"])
	for _, name := range slices.Concat(required, sorted(all)) {
		if _, there := kept[name]; there {
			continue
		}
		kept[name] = all[name]
		if !slices.Contains(required, name) && !takes(kept) {
			delete(kept, name)
		}
	}
	if len(kept) == 0 || !takes(kept) {
		return nil
	}
	shown, _ := m.schema["properties"].(map[string]any)
	for name := range kept {
		properties[name] = shown[name]
	}
	fewer, err := ForArguments(exact.With(m.schema, "properties", properties), m.dice)
	if err != nil {
		return nil
	}
	return fewer
}

// With is m with other dice.
func (m *Maker) With(dice *rand.Rand) *Maker {
	other := *m
	other.dice = dice
	return &other
}

// ForResult makes cases of a tool's result from its outputSchema.
func ForResult(schema map[string]any, dice *rand.Rand) (*Maker, error) {
	return newMaker(schema, dice, false)
}

func newMaker(schema map[string]any, dice *rand.Rand, arguments bool) (*Maker, error) {
	consensus, err := jsonschema.Agree(schema, jsonschema.Draft7)
	if err != nil {
		return nil, err
	}
	inlined, _ := jsonschema.Inlined(schema).(map[string]any)
	m := &Maker{schema: inlined, consensus: consensus, dice: dice, arguments: arguments}
	if m.plain = m.example(); m.plain == nil || !consensus.Takes(m.plain) {
		return nil, fmt.Errorf("no value that fits could be generated")
	}
	near := edges
	if arguments {
		near = argumentEdges
	}
	m.edges = sync.OnceValue(func() []Case { return m.keep(m.variations(m.plain, picker{"nothing", near}), consensus.Takes) })
	m.broken = sync.OnceValue(func() []Case { return m.BrokenFrom(m.plain) })
	return m, nil
}

// example is a plain value that fits, with every top-level property that can be generated.
func (m *Maker) example() any {
	if !m.arguments {
		return Example(m.schema)
	}
	arguments := map[string]any{}
	properties, _ := m.schema["properties"].(map[string]any)
	for _, name := range namesIn(m.schema["required"]) {
		arguments[name] = Example(properties[name])
	}
	for _, name := range sorted(properties) {
		if _, there := arguments[name]; there {
			continue
		}
		if arguments[name] = Example(properties[name]); arguments[name] == nil || !m.consensus.Takes(arguments) {
			delete(arguments, name)
		}
	}
	return arguments
}

// Plain is a value that fits, with every top-level property that one could be generated for.
func (m *Maker) Plain() any { return m.plain }

// Fits reports whether all agree that a value fits.
func (m *Maker) Fits(value any) bool { return m.consensus.Takes(value) }

// Breaks reports whether all agree that a value does not fit.
func (m *Maker) Breaks(value any) bool { return m.consensus.Refuses(value) }

// BreaksAside is Breaks for a validator that does not read some keywords.
func (m *Maker) BreaksAside(keywords ...string) func(value any) bool {
	read := sync.OnceValue(func() *jsonschema.Consensus {
		consensus, err := jsonschema.Agree(aside(m.schema, keywords...).(map[string]any), jsonschema.Draft7)
		if err != nil { // one that refers to what is gone
			return m.consensus
		}
		return consensus
	})
	return func(value any) bool { return read().Refuses(value) }
}

// aside is a schema without some keywords, and without parameters that are named so.
func aside(schema any, keywords ...string) any {
	return exact.Mapped(schema, func(v any) any {
		object, _ := v.(map[string]any)
		for _, keyword := range keywords {
			delete(object, keyword)
		}
		return v
	})
}

// Fault says what is wrong with a value, as `at /path: …`.
func (m *Maker) Fault(value any) string { return m.consensus.Fault(value) }

// Edges are values that just fit: each at one edge in one place.
func (m *Maker) Edges() []Case { return slices.Clone(m.edges()) }

// EdgesTogether are those of Edges, as many in one value as are of different parameters and fit together.
func (m *Maker) EdgesTogether() []Case {
	var all []Case
	var taken []map[string]bool // the parameters of each that are at an edge
	for _, edge := range m.edges() {
		name := edge.Parameter()
		at := 0
		for ; at < len(all); at++ {
			if both := withMember(all[at].Value.(map[string]any), name, edge.Value.(map[string]any)); !taken[at][name] && m.Fits(both) {
				all[at] = Case{all[at].What + together + edge.What, both}
				break
			}
		}
		if at == len(all) {
			all, taken = append(all, edge), append(taken, map[string]bool{})
		}
		taken[at][name] = true
	}
	return all
}

// withMember is an object with a member as it is in another: absent where it is absent there.
func withMember(object map[string]any, name string, other map[string]any) map[string]any {
	if value, there := other[name]; there {
		return exact.With(object, name, value)
	}
	return exact.Without(object, name)
}

// Broken are values that break one keyword in one place, for each that the schema has.
func (m *Maker) Broken() []Case { return slices.Clone(m.broken()) }

// BrokenFrom are values that break one keyword in one place of a value that fits.
func (m *Maker) BrokenFrom(value any) []Case {
	broken := m.keep(m.variations(value, picker{"required", faults}), m.consensus.Refuses)
	if !m.arguments && m.consensus.Refuses(nil) {
		broken = append(broken, Case{"type", nil})
	}
	return broken
}

// attempts is how often a value is drawn before that is given up.
const attempts = 8

// Drawn is a value that fits, drawn at random; ok is false where none came up.
func (m *Maker) Drawn() (value any, ok bool) {
	for range attempts {
		d := drawing{m.dice, mostDrawn}
		if value = d.value(m.schema, 0); value != nil && m.consensus.Takes(value) {
			return value, true
		}
	}
	return nil, false
}

// DrawnBroken is a value drawn at random that breaks one keyword in one place; ok is false where none came up.
func (m *Maker) DrawnBroken() (c Case, ok bool) {
	value, ok := m.Drawn()
	if !ok {
		return Case{}, false
	}
	all := m.variations(value, picker{"required", faults})
	for range min(attempts, len(all)) {
		if c = all[m.dice.IntN(len(all))]; m.consensus.Refuses(c.Value) {
			return c, true
		}
	}
	return Case{}, false
}

// mostCost bounds what the cases of a schema cost to test: many parameters make many cases, each of many parameters.
const mostCost = 1 << 19

// keep tests the cases, one in several where all would cost too much.
func (m *Maker) keep(all []Case, test func(any) bool) []Case {
	var kept []Case
	every, left := 1+len(all)*m.consensus.Cost(m.plain)/mostCost, mostCost
	for i, c := range all {
		if i%every != 0 {
			continue
		}
		if every > 1 {
			left -= m.consensus.Cost(c.Value)
		}
		if left < 0 {
			break
		}
		if test(c.Value) {
			kept = append(kept, c)
		}
	}
	return kept
}

// variations are a value with something else in one place of it, everywhere.
func (m *Maker) variations(value any, pick picker) []Case {
	if !m.arguments {
		return vary(m.schema, value, "", pick)
	}
	arguments, _ := value.(map[string]any)
	all := leftOut(arguments, "", pick)
	for _, name := range namesIn(m.schema["required"]) { // null for an optional one is not tested
		all = append(all, Case{pick.absent + " but null at " + exact.At("", name), exact.With(arguments, name, nil)})
	}
	return append(all, varyMembers(m.schema, arguments, "", pick)...)
}

// picker lists what may stand in place of a value of the schema; absent is what it means that a member is left out.
type picker struct {
	absent string
	of     func(schema map[string]any, value any) []Case
}

// vary lists a value with something else in one place, the value itself among those.
func vary(schema, value any, at string, pick picker) []Case {
	s := effective(schema)
	var all []Case
	for _, c := range pick.of(s, value) {
		all = append(all, Case{c.What + " at " + at, c.Value})
	}
	switch v := value.(type) {
	case map[string]any:
		all = append(all, leftOut(v, at, pick)...)
		all = append(all, varyMembers(s, v, at, pick)...)
	case []any:
		for _, i := range ends(v) {
			for _, c := range vary(itemSchema(s, i), v[i], at+"/"+strconv.Itoa(i), pick) {
				all = append(all, Case{c.What, replaced(v, i, c.Value)})
			}
		}
	}
	return all
}

// leftOut lists an object without one of its members each: required ones as a fault, others as an edge. The test of
// the whole says which is which.
func leftOut(object map[string]any, at string, pick picker) []Case {
	var all []Case
	for _, name := range sorted(object) {
		all = append(all, Case{pick.absent + " at " + exact.At(at, name), exact.Without(object, name)})
	}
	return all
}

func varyMembers(s, object map[string]any, at string, pick picker) []Case {
	var all []Case
	for _, name := range sorted(object) {
		for _, c := range vary(memberSchema(s, name), object[name], exact.At(at, name), pick) {
			all = append(all, Case{c.What, exact.With(object, name, c.Value)})
		}
	}
	return all
}

// ends are the places of a list at which things are varied: the first and the last.
func ends(list []any) []int {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return []int{0}
	}
	return []int{0, len(list) - 1}
}

func replaced(list []any, i int, value any) []any {
	changed := append([]any{}, list...)
	changed[i] = value
	return changed
}

func whole(n int) json.Number { return json.Number(strconv.Itoa(n)) }
