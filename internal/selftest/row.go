package selftest

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Row is the outcome of one mutant or correct variant.
type Row struct {
	Name        string         `json:"name"`
	Correct     bool           `json:"correct"`                // a correct variant: no clause may fail
	Origin      mutants.Origin `json:"origin,omitempty"`       // of a mutant
	Expected    []string       `json:"expected,omitempty"`     // the clauses that must fail
	MayFail     []string       `json:"may_fail,omitempty"`     // the clauses that may fail
	Failed      []string       `json:"failed"`                 // the clauses that failed, warned, or ended with an error
	First       string         `json:"first,omitempty"`        // the one of them that the report begins with
	NotTestable []string       `json:"not_testable,omitempty"` // the clauses that were not testable
	Tested      []string       `json:"tested"`                 // the clauses that applied
	DurationMS  int64          `json:"duration_ms"`
	Again       bool           `json:"tested_again,omitempty"` // because its first outcome was not the expected
	Problem     string         `json:"problem,omitempty"`      // why there is no verdict; "" when there is one
}

// newRow returns the row of a mutant that was not run.
func newRow(m mutants.Mutant) Row {
	return Row{Name: m.Name, Correct: len(m.Breaks) == 0, Origin: m.Origin, Expected: m.Breaks, MayFail: m.MayFail, Failed: []string{}}
}

// add adds the results of a run.
func (r *Row) add(report *reports.Report) {
	r.DurationMS = report.DurationMS
	for _, result := range report.Results {
		if result.Verdict != reports.NotApplicable {
			r.Tested = append(r.Tested, result.ID)
		}
		switch result.Verdict {
		case reports.Fail, reports.Warn, reports.Error:
			r.Failed = append(r.Failed, result.ID)
		case reports.NotTestable:
			r.NotTestable = append(r.NotTestable, result.ID)
		}
	}
	if len(r.Failed) > 0 {
		r.First = r.Failed[0]
	}
	if len(r.Failed) > 1 { // the groups of a report cost too much to ask them which comes first of one
		if first, there := report.First(); there { // none of warnings alone
			r.First = first.ID
		}
	}
}

// Misled reports whether the report of a mutant begins with a clause that the mutant leaves whole.
func (r Row) Misled() bool {
	return !r.Correct && r.First != "" && !slices.Contains(r.Expected, r.First) && !slices.Contains(r.MayFail, r.First)
}

// Missed returns the expected clauses that did not fail.
func (r Row) Missed() []string { return except(r.Expected, r.Failed) }

// Unexpected returns the clauses that failed and were not expected to. Of a correct variant a clause that was not
// testable counts, too: it would keep a good bridge from being found conformant.
func (r Row) Unexpected() []string {
	failed := r.Failed
	if r.Correct {
		failed = slices.Concat(r.Failed, r.NotTestable)
	}
	return except(except(failed, r.Expected), r.MayFail)
}

// Killed reports whether all expected clauses of a mutant failed.
func (r Row) Killed() bool { return !r.Correct && r.Problem == "" && len(r.Missed()) == 0 }

// Clean reports whether a mutant was killed and no other clause failed.
func (r Row) Clean() bool { return r.Killed() && len(r.Unexpected()) == 0 }

// FalseAlarm reports whether anything failed of a correct variant.
func (r Row) FalseAlarm() bool { return r.Correct && (r.Problem != "" || len(r.Unexpected()) > 0) }

// golden returns the clauses for the golden set: those that failed, that which the report begins with before all others, without
// what depends on chance.
func (r Row) golden() []string {
	failed := except(r.Failed, r.MayFail)
	slices.SortStableFunc(failed, func(a, b string) int { return count(b == r.First) - count(a == r.First) })
	return failed
}

// matches reports whether the clauses that failed are those of the golden set, without what depends on chance.
func (r Row) matches(golden []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(except(golden, r.MayFail))), slices.Sorted(slices.Values(r.golden())))
}

// except returns all but those taken.
func except(all, taken []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(taken, s) })
}
