package selftest

import (
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

func TestShardsHoldEachEntryOnce(t *testing.T) {
	golden := must.Get(Golden())(t)
	all := mutants.All()
	for _, full := range []bool{false, true} {
		times, sizes := map[string]int{}, []int{}
		for i := range 3 {
			mine, others, err := Shard(all, golden, i+1, 3, full)
			must.Do(t, err)
			must.Expect(t, len(mine)+len(others) == len(all),
				"shard %d has %d entries and leaves %d of %d", i+1, len(mine), len(others), len(all))
			for _, m := range mine {
				times[m.Name]++
			}
			sizes = append(sizes, len(mine))
		}
		for _, m := range all {
			must.Expect(t, times[m.Name] == 1, "%s is in %d shards", m.Name, times[m.Name])
		}
		must.Expect(t, slices.Min(sizes) >= len(all)/5, "the shards have %v entries", sizes)
	}
}

// The shards of a selftest are good together where the whole is, and one of them is not where the whole is not.
func TestShardsAreGoodWhereTheWholeIs(t *testing.T) {
	golden := must.Get(Golden())(t)
	clauses := must.Get(engine.Checked())(t)
	all := mutants.All()
	survivor := mutants.Mutants()[0].Name
	var only contract.Clause // that no mutant breaks
	only.ID, only.Level = "list/nobody-breaks-it", contract.MUST
	for name, c := range map[string]struct {
		change func(*Row)
		tested []contract.Clause
		good   bool
	}{
		"as the golden sets say": {func(*Row) {}, clauses, true},
		"a survivor": {func(r *Row) {
			if r.Name == survivor {
				r.Failed = []string{}
			}
		}, clauses, false},
		"a false alarm": {func(r *Row) {
			if r.Name == mutants.Variants()[0].Name {
				r.Failed = []string{clauses[0].ID}
			}
		}, clauses, false},
		"an unproven clause": {func(*Row) {}, append(slices.Clone(clauses), only), false},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := func(entries []mutants.Mutant) Matrix {
				var rows []Row
				for _, m := range entries {
					r := newRow(m)
					if !r.Correct {
						r.Failed = golden[m.Name]
					}
					c.change(&r)
					rows = append(rows, r)
				}
				return newMatrix(rows, c.tested)
			}
			whole := outcome(all)
			must.Expect(t, whole.Good() == c.good, "the whole is good: %t, with %v unproven and %+v", whole.Good(), whole.Unproven, whole.Figures)
			good := true
			for i := range 4 {
				mine, others, err := Shard(all, golden, i+1, 4, false)
				must.Do(t, err)
				m := outcome(mine)
				m.Complete(others, golden)
				good = good && m.Good()
			}
			must.Expect(t, good == c.good, "the shards are good: %t", good)
		})
	}
}

// What other shards hold does not excuse what this one finds.
func TestCompleteKeepsFigures(t *testing.T) {
	golden := must.Get(Golden())(t)
	mine, others, err := Shard(mutants.All(), golden, 1, 2, false)
	must.Do(t, err)
	rows := make([]Row, len(mine))
	for i, m := range mine {
		rows[i] = newRow(m)
	}
	m := newMatrix(rows, nil)
	before := m.Figures
	m.Complete(others, golden)
	must.Expect(t, m.Figures == before && !m.Good(),
		"a shard in which nothing failed is good: %t, with %+v in place of %+v", m.Good(), m.Figures, before)
}
