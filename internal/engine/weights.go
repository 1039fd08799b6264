package engine

import (
	"cmp"
	_ "embed" // weights.json
	"encoding/json"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/suites/areas"
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
		panic("internal/engine/weights.json: " + err.Error()) // a test reads it
	}
	return all
})

// heavier compares clauses: the one that takes longest first, by name where two take the same. Without a moving clock the real
// time counts.
func heavier(x, y string, inProcess bool) int {
	return cmp.Or(cmp.Compare(Weights()[y].Of(inProcess), Weights()[x].Of(inProcess)), cmp.Compare(x, y))
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

// Leads gives the clause in whose bundle a clause is tested: that whose requests its check looks at, too, or itself.
func Leads(clause string) string { return cmp.Or(beside()[clause], clause) }

var beside = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, c := range areas.Checks() {
		all[c.ID] = c.Beside
	}
	return all
})

// IsLast reports whether a clause is of the area that is tested last.
func IsLast(clause string) bool { return strings.HasPrefix(clause, areas.Last+"/") }
