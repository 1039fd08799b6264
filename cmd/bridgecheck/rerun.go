package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// inReportDir is the value of --rerun-failed where the user gives none: the report in the report directory.
const inReportDir = "--report-dir"

// arguments takes the report of --rerun-failed as an argument of its own, too: a flag with an optional value leaves it there.
func (f *runFlags) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1 && f.rerunFailed == inReportDir:
		f.rerunFailed = args[0]
		return nil
	}
	return usagef("%s takes no arguments, got %q: see %[1]s --help", cmd.CommandPath(), args[0])
}

// selectFailed reads the report of --rerun-failed and makes its failed clauses those of --only.
func (f *runFlags) selectFailed(cmd *cobra.Command, p *plan) error {
	if f.rerunFailed == "" {
		return nil
	}
	p.rerunOf = f.rerunFailed
	if p.rerunOf == inReportDir {
		p.rerunOf = p.reportDir
	}
	report, err := readReport(p.rerunOf)
	if err != nil {
		return err
	}
	known, err := suites.Checked()
	if err != nil {
		return err
	}
	for _, id := range failedClauses(report, f.strict || p.file.Strict) {
		if !slices.ContainsFunc(known, func(c contract.Clause) bool { return c.ID == id }) {
			cmd.PrintErrf("bridgecheck: warning: %s of %s is no clause of this contract: it is not tested\n", terminal.Escape(id), terminal.Escape(p.rerunOf))
			continue
		}
		f.only = append(f.only, id)
	}
	if len(f.only) == 0 {
		return usagef("no clause failed in %s: there is nothing to test again", p.rerunOf)
	}
	return nil
}

// failedClauses lists the clauses of a report that --rerun-failed tests.
func failedClauses(report *reports.Report, strict bool) []string {
	verdicts := []reports.Verdict{reports.Fail, reports.Error, reports.NotTestable}
	if strict || report.Strict {
		verdicts = append(verdicts, reports.Warn)
	}
	var ids []string
	for _, r := range report.With(verdicts...) {
		ids = append(ids, r.ID)
	}
	return ids
}
