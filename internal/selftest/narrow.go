package selftest

import (
	"maps"
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/suites/areas"
)

// Narrower says what an entry is tested by. A mutant is tested by all but the longest checks, and by these where the golden sets
// name them; of a selftest that is not full only the first of a mechanism and of an area is, for what such a change can touch shows
// there, and the others by the clauses that fail of them, as the golden sets say. A correct variant is tested by everything; where
// the selftest is not full, by all but the longest checks and by a few generated cases, several variants in one bridge. The first of
// each mechanism is then in a bridge of its own, and tested by all generated cases.
type Narrower struct {
	golden Sets
	full   bool
	long   []string        // the clauses whose checks take or send most
	first  map[string]bool // by name
}

// longest is how many milliseconds the longest checks take. The 31 that take as long are 36 % of the processor time of a mutant that
// is tested by every clause (45 mutants).
const longest = 70

// NewNarrower returns one for golden sets.
func NewNarrower(golden Sets, full bool) (*Narrower, error) {
	all, err := engine.Checked()
	if err != nil {
		return nil, err
	}
	n := &Narrower{golden: golden, full: full, first: map[string]bool{}}
	for _, c := range all {
		if check, _ := areas.Check(c.ID); check.Costly || engine.Weights()[c.ID].Of(true) >= longest {
			n.long = append(n.long, c.ID)
		}
	}
	for _, all := range [][]mutants.Mutant{mutants.Mutants(), mutants.Variants()} {
		mechanisms, areas := map[mutants.Mechanism]bool{}, map[string]bool{}
		for _, m := range all {
			n.first[m.Name] = !mechanisms[m.Mechanism()] || !areas[m.Area()]
			mechanisms[m.Mechanism()], areas[m.Area()] = true, true
		}
	}
	return n, nil
}

// Narrow narrows the options.
func (n *Narrower) Narrow(o *engine.Options, m mutants.Mutant) {
	switch correct, whole := len(m.Breaks) == 0, n.full || n.first[m.Name]; {
	case correct:
		if !n.full {
			o.Skip = n.long
		}
		if !whole {
			o.Cases = fewCases
		}
	case whole:
		o.Skip = except(n.long, slices.Concat(Expected(m, n.golden), m.MayFail))
	default:
		o.Only = Expected(m, n.golden)
	}
}

// inOneBridge is how many correct variants are tested in one bridge.
const inOneBridge = 6

// Unit is what is tested by one run.
type Unit struct {
	Entries []mutants.Mutant // in one bridge
	Places  int64            // how many of those that are tested at a time it counts for
}

// wholePlaces is how many places a run by nearly all clauses takes: more of them at once find the machine overloaded.
const wholePlaces = 2

// Units returns the entries in the units that are tested first: each alone, but for the correct variants that are tested by a few
// generated cases and can be in one bridge. Neighbours, which often change the same, are in different ones.
func (n *Narrower) Units(all []mutants.Mutant) []Unit {
	var units []Unit
	add := func(entries ...mutants.Mutant) {
		places := int64(1)
		if first := entries[0]; len(first.Breaks) == 0 || n.full || n.first[first.Name] {
			places = wholePlaces
		}
		units = append(units, Unit{entries, places})
	}
	shared := map[string][]mutants.Mutant{}
	for _, m := range all {
		if place := m.Place(); place == "" || n.full || n.first[m.Name] {
			add(m)
		} else {
			shared[place] = append(shared[place], m)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(shared)) {
		bridges := make([][]mutants.Mutant, (len(shared[place])+inOneBridge-1)/inOneBridge)
		for i, m := range shared[place] {
			bridges[i%len(bridges)] = append(bridges[i%len(bridges)], m)
		}
		for _, entries := range bridges {
			add(entries...)
		}
	}
	return units
}

// Expected are the clauses that fail of a mutant, as it says itself and as its golden set says; of a correct variant none.
func Expected(m mutants.Mutant, golden Sets) []string {
	if len(m.Breaks) == 0 {
		return nil
	}
	expected := slices.Concat(m.Breaks, golden[m.Name])
	slices.Sort(expected)
	return slices.Compact(expected)
}
