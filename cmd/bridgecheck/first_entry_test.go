package main

import (
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Of the clauses that fail of a mutant, by the golden sets, the report puts one first that the mutant breaks: a reader who
// begins there looks at the fault. The others fail because of it.
func TestTheFirstEntryIsTheFault(t *testing.T) {
	const least = 98 // percent
	golden := must.Get(selftest.Golden())(t)
	known := must.Get(contract.Load())(t)
	tested, right := 0, 0
	for _, m := range mutants.All() {
		report := &reports.Report{}
		for _, clause := range known.Clauses { // in the order of a report
			if !slices.Contains(golden[m.Name], clause.ID) {
				continue
			}
			verdict := reports.Fail
			if clause.Level != contract.MUST {
				verdict = reports.Warn
			}
			report.Results = append(report.Results, reports.Result{ID: clause.ID, Level: reports.Level(clause.Level), Area: clause.Area, Verdict: verdict, Message: clause.ID})
		}
		first, fails := report.First()
		if !fails || len(m.Breaks) == 0 {
			continue
		}
		tested++
		if slices.Contains(m.Breaks, first.ID) {
			right++
		} else {
			t.Logf("%s breaks %v, and %s comes first", m.Name, m.Breaks, first.ID)
		}
	}
	must.Expect(t, tested >= 500 && 100*right >= least*tested,
		"of %d mutants that fail, %d begin with a clause that they break: expected %d %%", tested, right, least)
}
