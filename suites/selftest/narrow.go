package selftest

import (
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/selftest/mutants"
)

// Narrow returns the clauses that a selftest which is not full tests a mutant by; none: all of them. A mutant whose golden
// set another mutant before it has too is tested by the areas of that set alone: that its fault breaks nothing elsewhere
// was seen of the other one.
func Narrow(m mutants.Mutant, golden Sets) ([]string, error) {
	set := golden[m.Name]
	if len(m.Breaks) == 0 || len(set) == 0 || !repeats(m, set, golden) {
		return nil, nil
	}
	costly, err := skipped(m)
	if err != nil {
		return nil, err
	}
	areas := map[string]bool{}
	for _, id := range slices.Concat(set, m.Breaks, m.MayFail) {
		area, _, _ := strings.Cut(id, "/")
		areas[area] = true
	}
	all, err := suites.Checked()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range all {
		if areas[c.Area] && !slices.Contains(costly, c.ID) {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// repeats reports whether a mutant before m has the same golden set.
func repeats(m mutants.Mutant, set []string, golden Sets) bool {
	for _, other := range mutants.Mutants() {
		if other.Name == m.Name {
			return false
		}
		if slices.Equal(golden[other.Name], set) {
			return true
		}
	}
	return false
}
