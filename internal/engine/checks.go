package engine

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/suites/areas"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Checks lists the clauses that a run with these options tests, in the order of the contract: each has a check, is
// selected by Only and Skip, and stands under a capability that is claimed. It runs nothing. The error is a *UsageError.
func Checks(o Options) ([]contract.Clause, error) {
	r, err := newRun(Target{URL: "http://listed.invalid"}, o)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(checked(r.Contract, o.Extra), func(c contract.Clause) bool {
		declared, _ := declaredIn(c.ID, o.Extra)
		return !r.Selected(c.ID) || r.Lacks(c, declared) != ""
	}), nil
}

// Selected lists the clauses that have a check and that Only and Skip select, whether or not they apply to the bridge.
func Selected(o Options) ([]string, error) {
	r, err := newRun(Target{URL: "http://listed.invalid"}, o)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, clause := range checked(r.Contract, o.Extra) {
		if r.Selected(clause.ID) {
			ids = append(ids, clause.ID)
		}
	}
	return ids, nil
}

// Unclaimed counts for each capability that is not claimed the selected clauses that do not apply for want of it.
func Unclaimed(o Options) (map[string]int, error) {
	r, err := newRun(Target{URL: "http://listed.invalid"}, o)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, clause := range checked(r.Contract, o.Extra) {
		declared, _ := declaredIn(clause.ID, o.Extra)
		if lacks := r.Lacks(clause, declared); lacks != "" && r.Selected(clause.ID) {
			count[lacks]++
		}
	}
	return count, nil
}

// Checked lists every clause that has a check, in the order of the contract.
func Checked() ([]contract.Clause, error) {
	all, err := contract.Load()
	if err != nil {
		return nil, err
	}
	return checked(all, nil), nil
}

// checked lists the clauses that have a check.
func checked(all *contract.Contract, extra []check.Check) []contract.Clause {
	return slices.DeleteFunc(slices.Clone(all.Clauses), func(c contract.Clause) bool { return !hasCheck(c.ID, extra) })
}

// allChecks are the checks of the contract, and those that were added.
func allChecks(extra []check.Check) []check.Check {
	all := areas.Checks()
	for _, c := range extra {
		all = append(all, named(c))
	}
	return all
}

// named is an added check with the id of its clause.
func named(c check.Check) check.Check {
	if c.Clause != nil {
		c.ID = c.Clause.ID
	}
	return c
}

// extraClauses are the clauses that added checks bring. A check that sees the site has a clause of both sides.
func extraClauses(extra []check.Check) []contract.Clause {
	var clauses []contract.Clause
	for _, c := range extra {
		clause := contract.Clause{ID: c.ID}
		if c.Clause != nil {
			clause = *c.Clause
		}
		if clause.Wire == "" && c.Sees != check.Front {
			clause.Wire = contract.Both
		}
		clauses = append(clauses, clause)
	}
	return clauses
}

func declaredIn(id string, extra []check.Check) (check.Check, bool) {
	if i := slices.IndexFunc(extra, func(c check.Check) bool { return named(c).ID == id }); i >= 0 {
		return named(extra[i]), true
	}
	return areas.Check(id)
}

func hasCheck(id string, extra []check.Check) bool {
	_, ok := declaredIn(id, extra)
	return ok
}
