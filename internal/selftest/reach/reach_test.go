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
			if slices.Contains(beyond, id) {
				t.Errorf("%s: %s fails and is beyond its reach", m.Name, id)
			}
		}
	}
	if far < looked/3 {
		t.Errorf("more than 50 clauses are beyond the reach of %d of %d mutants, not of a third", far, looked)
	}
}

// Those that wait for no recording are last, and none is lost.
func TestLast(t *testing.T) {
	all := mutants.All()
	reach.Last(all)
	if len(all) != len(mutants.All()) {
		t.Fatalf("%d entries of %d", len(all), len(mutants.All()))
	}
	waits := true
	for _, m := range all {
		recorded := reach.Recorded(m)
		if recorded && !waits {
			t.Fatalf("%s comes after entries that wait for no recording", m.Name)
		}
		waits = recorded
	}
	if waits || !reach.Recorded(all[0]) {
		t.Error("all entries wait, or none")
	}
}
