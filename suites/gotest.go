package suites

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/reports"
)

// RunT is Run in a Go test. Each clause that applies to the bridge is a subtest with its id as name: one that is broken
// fails, one that is not testable is skipped, a warning is logged and fails with o.Strict. The test fails where the run is
// not conformant, for whatever reason, and ends at once where nothing could be tested.
func RunT(t *testing.T, target Target, o Options) *reports.Report {
	t.Helper()
	report, err := Run(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Verdict == reports.NotApplicable {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			switch {
			case r.Verdict == reports.NotTestable:
				t.Skip(r.Message)
			case r.Verdict == reports.Fail, r.Verdict == reports.Error, r.Verdict == reports.Warn && o.Strict:
				t.Error(account(r))
			case r.Verdict == reports.Warn:
				t.Log("warning: " + account(r))
			}
		})
	}
	if report.ExitCode() != 0 {
		t.Error(report.Headline())
	} else {
		t.Log(report.Headline())
	}
	return report
}

// account is what a developer needs to fix a failure.
func account(r reports.Result) string {
	var b strings.Builder
	b.WriteString(r.Text)
	for _, part := range []struct{ label, text string }{
		{"", r.Message}, {"expected ", r.Expected}, {"got      ", r.Actual}, {"repeat   ", r.Curl},
		{"explain  ", "bridgecheck checks explain " + r.ID},
	} {
		if part.text != "" {
			b.WriteString("\n  " + part.label + part.text)
		}
	}
	return b.String()
}
