package selftest

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/suites/areas"
)

// Narrower says what an entry is tested by. Of a selftest that is not full, the first mutant and the first correct variant of a
// mechanism are tested by everything: what such a change can touch shows there. Of the others a mutant is tested by the clauses
// that fail of it, as the golden sets say, and a variant by a few generated cases and not by the longest checks. A full one tests
// each mutant by all but the longest checks, and by these where the golden sets name them, and each variant by everything.
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
	case n.full && !correct:
		o.Skip = except(n.long, slices.Concat(Expected(m, n.golden), m.MayFail))
	case n.full || n.first[m.Name]:
	case correct:
		o.Skip, o.Cases = n.long, fewCases
	default:
		o.Only = Expected(m, n.golden)
	}
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
