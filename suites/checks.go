package suites

import (
	"slices"

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
	return slices.DeleteFunc(checked(r), func(c contract.Clause) bool {
		check, _ := Declared(c.ID)
		return !r.Selected(c.ID) || r.Lacks(c, check) != ""
	}), nil
}

// Selected lists the clauses that have a check and that Only and Skip select, whether or not they apply to the bridge.
func Selected(o Options) ([]string, error) {
	r, err := newRun(Target{URL: "http://listed.invalid"}, o)
	if err != nil {
		return nil, err
	}
	return selectedOf(r), nil
}

func selectedOf(r *check.Environment) []string {
	ids := []string{}
	for _, clause := range checked(r) {
		if r.Selected(clause.ID) {
			ids = append(ids, clause.ID)
		}
	}
	return ids
}

// Checked lists every clause that has a check, in the order of the contract.
func Checked() ([]contract.Clause, error) {
	all, err := contract.Load()
	if err != nil {
		return nil, err
	}
	return checked((&check.Environment{Contract: all})), nil
}

// checked lists the clauses that have a check.
func checked(r *check.Environment) []contract.Clause {
	return slices.DeleteFunc(slices.Clone(r.Contract.Clauses), func(c contract.Clause) bool { return !hasCheck(c.ID) })
}

// Declared returns the declaration of the check of a clause. False: it has none.
func Declared(id string) (check.Check, bool) {
	for _, area := range areas {
		if i := slices.IndexFunc(area.checks, func(c check.Check) bool { return c.ID == id }); i >= 0 {
			return area.checks[i], true
		}
	}
	return check.Check{}, false
}

func hasCheck(id string) bool {
	_, ok := Declared(id)
	return ok
}
