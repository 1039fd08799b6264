package selftest

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/suites/areas"
)

// Narrower says what a selftest that is not full tests an entry by. The first mutant and the first correct variant of a
// mechanism are tested by everything: what such a change can touch shows there. Of the others a mutant is tested by the
// clauses that fail of it, as the golden sets say, and a variant by a few generated cases and not by the checks that send most.
type Narrower struct {
	golden Sets
	costly []string
	first  map[string]bool // by name
}

// NewNarrower returns one for golden sets.
func NewNarrower(golden Sets) (*Narrower, error) {
	costly, err := Costly()
	if err != nil {
		return nil, err
	}
	n := &Narrower{golden, costly, map[string]bool{}}
	for _, all := range [][]mutants.Mutant{mutants.Mutants(), mutants.Variants()} {
		seen := map[mutants.Mechanism]bool{}
		for _, m := range all {
			n.first[m.Name] = !seen[m.Mechanism()]
			seen[m.Mechanism()] = true
		}
	}
	return n, nil
}

// Narrow narrows the options.
func (n *Narrower) Narrow(o *engine.Options, m mutants.Mutant) {
	switch correct := len(m.Breaks) == 0; {
	case n.first[m.Name]:
	case correct:
		o.Skip, o.Cases = slices.Concat(o.Skip, n.costly), fewCases
	default:
		o.Only = Expected(m, n.golden)
	}
}

// Costly are the clauses whose checks send most.
func Costly() ([]string, error) {
	all, err := engine.Checked()
	var ids []string
	for _, c := range all {
		if check, _ := areas.Check(c.ID); check.Costly {
			ids = append(ids, c.ID)
		}
	}
	return ids, err
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
