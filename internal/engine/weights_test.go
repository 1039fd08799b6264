package engine

import (
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestACheckThatWasNotMeasuredHasAWeight(t *testing.T) {
	var w Weight
	must.Expect(t, w.Of(true) == unmeasured && w.Of(false) == unmeasured,
		"the weights are %d and %d ms, expected %d", w.Of(true), w.Of(false), unmeasured)
}

func TestHeaviestBeginsWithTheLongest(t *testing.T) {
	ids := []string{"list/answers-json", "upstream/timeout", "access/no-cross-talk"}
	slices.SortFunc(ids, func(x, y string) int { return heavier(x, y, false) })
	must.Expect(t, ids[0] == "upstream/timeout" && slices.IsSortedFunc(ids, func(x, y string) int { return Weights()[y].RealTime - Weights()[x].RealTime }),
		"the order is %v", ids)
}
