package suites

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Checks lists the clauses that a run with these options judges, in the order of the contract: each has a check, is
// selected by Only and Skip, and stands under a capability that is claimed. It runs nothing. The error is a *UsageError.
func Checks(o Options) ([]contract.Clause, error) {
	r, err := newRun(Target{URL: "http://listed.invalid"}, o)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(r.checked(), func(c contract.Clause) bool { return !r.selected(c.ID) || r.lacks(c) != "" }), nil
}

// Checked lists every clause that has a check, in the order of the contract.
func Checked() ([]contract.Clause, error) {
	all, err := contract.Load()
	if err != nil {
		return nil, err
	}
	return (&Environment{contract: all}).checked(), nil
}

// checked lists the clauses that have a check.
func (r *Environment) checked() []contract.Clause {
	return slices.DeleteFunc(slices.Clone(r.contract.Clauses), func(c contract.Clause) bool { return !hasCheck(c.ID) })
}

func hasCheck(id string) bool {
	for _, area := range areas {
		if slices.ContainsFunc(area.checks, func(c Check) bool { return c.ID == id }) {
			return true
		}
	}
	return false
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
