package harness

import (
	"github.com/onsi/ginkgo/v2"
)

// NotTestable ends the running check without a verdict: what it needs is not there. The reason says what is missing,
// or what would make the clause testable.
func NotTestable(reason string) { Skip(notTestable, Finding{Subject: reason}) }

// NotTestableBecause is NotTestable for what a finding explains; the reason stands before it.
func NotTestableBecause(reason string, why Finding) {
	why.Subject = reason + why.Subject
	Skip(notTestable, why)
}

// skipKind tells the collector of results why a spec ended without a verdict.
type skipKind string

const (
	NotApplicable skipKind = "not applicable"
	notTestable   skipKind = "not testable"
	wasCutShort   skipKind = "cut short"
)

func Skip(kind skipKind, why Finding) {
	ginkgo.AddReportEntry(string(kind), ginkgo.ReportEntryVisibilityNever, why)
	ginkgo.Skip(why.String())
}

// cutShort ends the running check because the whole run has ended.
func (t *T) cutShort() {
	if t.inCheck {
		Skip(wasCutShort, Finding{Subject: "the run ended before this was judged"})
	}
}
