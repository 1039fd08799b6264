package suites

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/onsi/ginkgo/v2/extensions/globals"

	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Checks lists the clauses that a run with these options judges, in the order of the ledger: each has a check, is
// selected by Only and Skip, and stands under a capability that is claimed. It runs nothing. The error is a *UsageError.
func Checks(o Options) ([]contract.Clause, error) {
	b, err := newBridge(Target{URL: "http://listed.invalid"}, o)
	if err != nil {
		return nil, err
	}
	var clauses []contract.Clause
	for _, clause := range checked(b) {
		if b.selected(clause.ID) && b.lacks(clause) == "" {
			clauses = append(clauses, clause)
		}
	}
	return clauses, nil
}

// Checked lists every clause that has a check, in the order of the ledger.
func Checked() ([]contract.Clause, error) {
	b, err := newBridge(Target{URL: "http://listed.invalid"}, Options{})
	if err != nil {
		return nil, err
	}
	return checked(b), nil
}

// checked registers every check without adding a spec, and lists what was registered.
func checked(b *Bridge) []contract.Clause {
	running.Lock()
	defer running.Unlock()
	defer globals.Reset() // an area's own set-up nodes
	selected := b.selected
	b.selected = func(string) bool { return false }
	for _, area := range areas {
		area.register(b)
	}
	b.selected = selected
	var clauses []contract.Clause
	for _, clause := range b.contract.Clauses {
		if b.judged[clause.ID] {
			clauses = append(clauses, clause)
		}
	}
	return clauses
}

// inOrder goes over a map by its sorted keys: requests in another order are another case, and give another verdict.
func inOrder[M ~map[K]V, K cmp.Ordered, V any](m M) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
