package engine

import (
	"slices"
	"testing"
)

func TestEveryCheckHasAWeight(t *testing.T) {
	checks, err := Checked()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range checks {
		known[c.ID] = true
		if w := Weights()[c.ID]; w.InProcess <= 0 || w.RealTime <= 0 {
			t.Errorf("%s has the weight %+v: go run ./internal/workers/weigh adds it, make weights measures all", c.ID, w)
		}
	}
	for id := range Weights() {
		if !known[id] {
			t.Errorf("%s has a weight and no check: go run ./internal/workers/weigh takes it out", id)
		}
	}
}

func TestHeaviestBeginsWithTheLongest(t *testing.T) {
	ids := []string{"list/answers-json", "upstream/timeout", "access/no-cross-talk"}
	Heaviest(ids, false)
	if ids[0] != "upstream/timeout" || !slices.IsSortedFunc(ids, func(x, y string) int { return Weights()[y].RealTime - Weights()[x].RealTime }) {
		t.Errorf("the order is %v", ids)
	}
}
