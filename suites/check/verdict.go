package check

import (
	"strings"

	"github.com/onsi/ginkgo/v2"
)

// Ending says why a check ended without a verdict of its own.
type Ending struct {
	Kind     EndingKind
	Why      Finding
	Culprits []string // of BlockedByBridge: the clauses that the bridge breaks so that this one cannot be tested; nil: not known
}

// EndingKind names the kind of an ending.
type EndingKind string

// The kinds of endings.
const (
	Inapplicable    EndingKind = "not applicable"
	Missing         EndingKind = "not testable" // what the check needs is not there, and the bridge is not to blame
	BlockedByBridge EndingKind = "blocked"      // the bridge did not do what the check builds on
	CutShort        EndingKind = "cut short"    // the whole run ended
	Elsewhere       EndingKind = "elsewhere"    // another process tests it
)

// NotTestable ends the running check without a verdict: what it needs is not there, and the bridge is not to blame. The
// reason says what is missing, or what would make the clause testable.
func NotTestable(reason string) { End(Ending{Kind: Missing, Why: Finding{Subject: reason}}) }

// BlockedBy ends the running check because the bridge did not do what the check builds on. The clauses are those that
// test exactly that. Where none of them fails in this run, the running check's clause fails itself, with the finding.
func BlockedBy(why Finding, clauses ...string) {
	if len(clauses) > 0 {
		tested := strings.Join(clauses, " and ") + " tests that"
		if len(clauses) > 1 {
			tested = strings.Join(clauses, " and ") + " test that"
		}
		why = why.About(tested)
	}
	End(Ending{Kind: BlockedByBridge, Why: why, Culprits: clauses})
}

// End ends the running check without a verdict.
func End(e Ending) {
	e.note()
	ginkgo.Skip(e.Why.String())
}

// note keeps the ending for the report of the run.
func (e Ending) note() {
	ginkgo.AddReportEntry(string(e.Kind), ginkgo.ReportEntryVisibilityNever, e)
}

// cutShort ends the running check because the whole run has ended.
func (t *T) cutShort() {
	if t.inCheck {
		End(Ending{Kind: CutShort, Why: Finding{Subject: "the run ended before this was tested"}})
	}
}
