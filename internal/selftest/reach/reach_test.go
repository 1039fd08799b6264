package reach_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/selftest/reach"
)

var every = flag.Int("every", 8, "look at one in this many mutants: 1 takes a minute")

// What fails of a mutant that is tested by every clause is within its reach, and of some mutants most is beyond it.
func TestWhatFailsIsWithinReach(t *testing.T) {
	if testing.Short() {
		t.Skip("records three runs")
	}
	golden := must.Get(selftest.Golden())(t)
	recordings := reach.Record(t.Context())
	looked, far := 0, 0
	for i, m := range mutants.Mutants() {
		if i%*every != 0 {
			continue
		}
		beyond := must.Get(recordings.Beyond(t.Context(), m))(t)
		looked++
		if len(beyond) > 50 {
			far++
		}
		for _, id := range slices.Concat(golden[m.Name], m.MayFail) {
			must.Expect(t, !slices.Contains(beyond, id), "%s: %s fails and is beyond its reach", m.Name, id)
		}
	}
	must.Expect(t, far >= looked/3, "more than 50 clauses are beyond the reach of %d of %d mutants, not of a third", far, looked)
}

// Those that wait for no recording are last, and none is lost.
func TestLast(t *testing.T) {
	all := mutants.All()
	reach.Last(all)
	must.Assert(t, len(all) == len(mutants.All()), "%d entries of %d", len(all), len(mutants.All()))
	waits := true
	for _, m := range all {
		recorded := reach.Recorded(m)
		must.Assert(t, !recorded || waits, "%s comes after entries that wait for no recording", m.Name)
		waits = recorded
	}
	must.Expect(t, !waits && reach.Recorded(all[0]), "all entries wait, or none")
}
