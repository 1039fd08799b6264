package harness

import (
	"github.com/onsi/gomega/types"
)

// MustSucceed is for the positive control of a refusal: the smallest request that has to succeed, so that a bridge that refuses
// everything does not pass. If the positive control itself fails, the check is blocked by the clauses that test it; without
// clauses, by any clause that fails.
func (a *Response) MustSucceed(clauses ...string) *Response {
	if !a.Succeeded() {
		a.Blame()
		BlockedBy(Mismatch(a.Subject(), "a success", a.Outcome()).About("the positive control"), clauses...)
	}
	return a
}

// MustMeet is MustSucceed for a positive control that has to match more than a success.
func (a *Response) MustMeet(want types.GomegaMatcher, clauses ...string) *Response {
	if ok, err := want.Match(a); err != nil || !ok {
		BlockedBy(want.(Finder).Finding(a, false).About("the positive control"), clauses...)
	}
	return a
}
