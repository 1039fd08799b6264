package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
)

// The verdict does not depend on a file: what cannot be written is said, and the failures and the outcome stand on stdout.
func TestTheVerdictNeedsNoFile(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_STEP_SUMMARY", t.TempDir()) // no file either
	dir := filepath.Join(t.TempDir(), "report")
	must.Do(t, os.WriteFile(dir, nil, 0o600))
	report := &reports.Report{Results: []reports.Result{{ID: "list/x", Level: reports.MUST, Area: "list", Verdict: reports.Fail, Message: "it is wrong"}}}
	unwritten := format.WriteAll(report, dir)
	must.Assert(t, unwritten != nil, "a file counts as a directory")
	for name, c := range map[string]struct {
		flags runFlags
		want  []string
	}{
		"summary": {runFlags{}, []string{"report in " + dir + " cannot be written: not a directory\n", "FAILED  list/x", "\nnot conformant: 1 clause fails\n"}},
		"verbose": {runFlags{Values: settings.Values{Command: settings.Command{Verbose: true}}}, []string{"cannot be written", "FAILED  list/x", "\nnot conformant: 1 clause fails\n"}},
		"quiet":   {runFlags{Values: settings.Values{Command: settings.Command{Quiet: true}}}, []string{"not conformant: 1 clause fails\n"}},
		"json":    {runFlags{Values: settings.Values{Command: settings.Command{JSON: true}}}, []string{`"id": "list/x"`}},
	} {
		cmd := newRun()
		var out, errs bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		err := c.flags.show(cmd, report, dir, unwritten)
		must.Expect(t, err == nil, "%s: %v", name, err)
		for _, want := range c.want {
			must.Expect(t, strings.Contains(out.String(), want), "%s: stdout lacks %q:\n%s", name, want, &out)
		}
		must.Expect(t, !strings.Contains(out.String(), "report: ") && strings.Contains(errs.String(), "cannot be written: not a directory"),
			"%s: stdout\n%sstderr\n%s", name, &out, &errs)
	}
}
