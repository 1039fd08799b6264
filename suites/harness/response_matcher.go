package harness

import (
	"github.com/onsi/gomega/types"
)

// MustSucceed is for the twin of a refusal: the smallest request that has to succeed, so that a bridge that refuses
// everything does not pass. Where the twin itself fails, nothing can be said of the refusal: the check is not testable,
// and the clause that judges the twin fails.
func (a *Response) MustSucceed() *Response {
	if !a.Succeeded() {
		a.Blame()
		NotTestableBecause("its twin, which must succeed, failed: ", Mismatch(a.Subject(), "a success", a.Outcome()))
	}
	return a
}

// MustMeet is MustSucceed for a twin that has to be answered in a way of its own.
func (a *Response) MustMeet(want types.GomegaMatcher) *Response {
	if ok, err := want.Match(a); err != nil || !ok {
		NotTestableBecause("its twin failed: ", want.(Finder).Finding(a, false))
	}
	return a
}
