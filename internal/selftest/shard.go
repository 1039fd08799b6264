package selftest

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
)

// Shard returns the entries of one shard of several, from 1, and the others: all shards take about as long, and each entry is in
// one of them. full is whether the selftest is.
func Shard(all []mutants.Mutant, golden Sets, index, of int, full bool) (mine, others []mutants.Mutant, err error) {
	checked, err := engine.Checked()
	if err != nil {
		return nil, nil, err
	}
	narrower, err := NewNarrower(golden, full)
	if err != nil {
		return nil, nil, err
	}
	weights := map[string]int{}
	for _, m := range all {
		var o engine.Options
		narrower.Narrow(&o, m)
		for _, c := range checked {
			if !slices.Contains(o.Skip, c.ID) && (o.Only == nil || slices.Contains(o.Only, c.ID)) {
				weights[m.Name] += engine.Weights()[c.ID].Of(true)
			}
		}
	}
	share := engine.Share(weights, index, of)
	for _, m := range all {
		if share[m.Name] {
			mine = append(mine, m)
		} else {
			others = append(others, m)
		}
	}
	return mine, others, nil
}

// Complete makes the matrix of a shard good exactly where nothing in it keeps the matrix of all from being good: the entries of
// other shards count as their golden sets say, which their own shards test.
func (m *Matrix) Complete(others []mutants.Mutant, golden Sets) {
	rows := make([]Row, len(others))
	for i, o := range others {
		rows[i] = newRow(o)
		rows[i].Failed = golden[o.Name]
		rows[i].First = golden.first(o.Name)
	}
	m.others = newMatrix(rows, nil).Figures
	m.Unproven = slices.DeleteFunc(m.Unproven, func(id string) bool {
		return slices.ContainsFunc(rows, func(r Row) bool { return slices.Contains(r.Expected, id) && slices.Contains(r.Failed, id) })
	})
}
