package selftest

import (
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
)

// The first mutant of each mechanism and every correct variant are tested by all clauses, the others by those that fail.
func TestNarrowKeepsTheFirstOfEachMechanismWhole(t *testing.T) {
	golden := loadGolden(t)
	narrower := must.Get(NewNarrower(golden))(t)
	whole := map[mutants.Mechanism]int{}
	for _, m := range mutants.Mutants() {
		var o engine.Options
		narrower.Narrow(&o, m)
		ids := o.Only
		if len(ids) == 0 {
			whole[m.Mechanism()]++
			continue
		}
		must.Expect(t, whole[m.Mechanism()] != 0, "%s is tested by %v before any of its mechanism is tested by all clauses", m.Name, ids)
		for _, id := range slices.Concat(m.Breaks, golden[m.Name]) {
			must.Expect(t, slices.Contains(ids, id), "%s is not tested by %s, which fails of it", m.Name, id)
		}
	}
	areas := map[string]bool{}
	for mechanism, n := range whole {
		areas[mechanism.Area] = true
		must.Expect(t, n == 1, "%d mutants of %+v are tested by all clauses", n, mechanism)
	}
	for _, a := range mutants.Areas() {
		must.Expect(t, areas[a.Name], "no mutant of %s is tested by all clauses", a.Name)
	}
	generous := 0
	for _, v := range mutants.Variants() {
		var o engine.Options
		narrower.Narrow(&o, v)
		must.Expect(t, len(o.Only) == 0, "the correct variant %s is tested only by %v", v.Name, o.Only)
		if o.Cases == 0 {
			generous++
		}
	}
	must.Expect(t, generous >= 5, "%d correct variants are tested by all generated cases", generous)
}
