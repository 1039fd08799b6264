package suites

import (
	"cmp"
	_ "embed" // weights.json
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"

	"github.com/bridgecheck/bridgecheck/suites/harness"
)

//go:embed weights.json
var weightsJSON []byte

// Weight is how long the check of a clause takes.
type Weight struct {
	InProcess int `json:"in_process"` // milliseconds, with the reference bridge, whose clock a check can move
	RealTime  int `json:"real_time"`  // milliseconds, with a bridge of --exec, where checks wait; more, where its share is larger before a slow site
}

// Weights are the measured weights by clause. Only the order in which checks begin, and which shard tests them, depends on
// them. make weights measures them again.
var Weights = sync.OnceValue(func() map[string]Weight {
	all := map[string]Weight{}
	if err := json.Unmarshal(weightsJSON, &all); err != nil {
		panic("suites/weights.json: " + err.Error()) // a test reads it
	}
	return all
})

// Heaviest sorts clauses: the one that takes longest first, by name where two take the same. Without a moving clock the
// real time counts.
func Heaviest(ids []string, inProcess bool) {
	slices.SortFunc(ids, func(x, y string) int {
		return cmp.Or(cmp.Compare(Weights()[y].Of(inProcess), Weights()[x].Of(inProcess)), cmp.Compare(x, y))
	})
}

// unmeasured is the weight of a check that weights.json does not have yet.
const unmeasured = 100

// Of is the weight in milliseconds.
func (w Weight) Of(inProcess bool) int {
	if inProcess {
		return cmp.Or(w.InProcess, unmeasured)
	}
	return cmp.Or(w.RealTime, unmeasured)
}

// registerByWeight builds a tree without containers, in which the check that takes longest comes first. Those of a site
// that fails come last, as in the other tree.
func registerByWeight(r *harness.Environment) {
	checks := map[string]harness.Check{}
	var ids []string
	for _, area := range areas {
		for _, c := range area.checks {
			if r.Selected(c.ID) {
				checks[c.ID] = c
				ids = append(ids, c.ID)
			}
		}
	}
	Heaviest(ids, r.Advance != nil)
	for i, id := range ids {
		priority := len(ids) - i
		if IsLast(id) {
			priority -= len(ids)
		}
		r.Check(checks[id], ginkgo.SpecPriority(priority))
	}
}

// lastArea is tested last: a bridge that does not get over a site that failed would be blamed for all that follows.
const lastArea = "upstream"

// IsLast reports whether a clause is of that area.
func IsLast(clause string) bool { return strings.HasPrefix(clause, lastArea+"/") }
