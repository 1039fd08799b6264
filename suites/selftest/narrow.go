package selftest

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/selftest/mutants"
)

// Narrow narrows the options to what a selftest that is not full tests an entry by. The first mutant and the first correct
// variant of a mechanism are tested by everything: what such a change can touch shows there. Of the others a mutant is
// tested by the clauses that fail of it, as the golden sets say, and a variant by a few generated cases and not by the
// checks that send most.
func Narrow(o *suites.Options, m mutants.Mutant, golden Sets) error {
	switch correct := len(m.Breaks) == 0; {
	case correct && !isFirst(m, mutants.Variants()):
		costly, err := Costly()
		o.Skip, o.Cases = append(o.Skip, costly...), fewCases
		return err
	case !correct && !isFirst(m, mutants.Mutants()):
		o.Only = Expected(m, golden)
	}
	return nil
}

// Costly are the clauses whose checks send most.
func Costly() ([]string, error) {
	all, err := suites.Checked()
	var ids []string
	for _, c := range all {
		if check, _ := suites.Declared(c.ID); check.Costly {
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

// isFirst reports whether m is the first of its mechanism.
func isFirst(m mutants.Mutant, all []mutants.Mutant) bool {
	return slices.IndexFunc(all, func(o mutants.Mutant) bool { return o.Mechanism() == m.Mechanism() }) ==
		slices.IndexFunc(all, func(o mutants.Mutant) bool { return o.Name == m.Name })
}
