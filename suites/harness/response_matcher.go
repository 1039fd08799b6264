package harness

import (
	"github.com/onsi/gomega/types"
)

// MustSucceed is for the positive control of a refusal: the smallest request that has to succeed, so that a bridge that refuses
// everything does not pass. Where the positive control itself fails, nothing can be said of the refusal: the check is not testable,
// and the clause that tests the positive control fails.
func (a *Response) MustSucceed() *Response {
	if !a.Succeeded() {
		a.Blame()
		BlockedBy(Mismatch(a.Subject(), "a success", a.Outcome()).About("the positive control"))
	}
	return a
}

// MustMeet is MustSucceed for a positive control that has to be met in a way of its own.
func (a *Response) MustMeet(want types.GomegaMatcher) *Response {
	if ok, err := want.Match(a); err != nil || !ok {
		BlockedBy(want.(Finder).Finding(a, false).About("the positive control"))
	}
	return a
}
