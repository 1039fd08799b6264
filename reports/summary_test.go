package reports_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestStateAndExitCode(t *testing.T) {
	must := func(v reports.Verdict) reports.Result {
		return reports.Result{ID: "list/x", Level: reports.MUST, Area: "list", Verdict: v}
	}
	should := func(v reports.Verdict) reports.Result {
		return reports.Result{ID: "list/x", Level: reports.SHOULD, Area: "list", Verdict: v}
	}
	unclaimed := must(reports.NotTestable)
	unclaimed.Capability = "mcp"
	claimed := must(reports.NotTestable)
	claimed.Capability = "tools"

	for _, c := range []struct {
		name     string
		report   *reports.Report
		state    reports.State
		code     int
		headline string
	}{
		{"all kept", sample.Kept(), reports.Conformant, 0, "conformant: 2 clauses kept"},
		{"a warning", sample.KeptWith(should(reports.Warn)), reports.Conformant, 0, "conformant: 2 clauses kept, 1 warning"},
		{"a warning under strict", sample.Strict(sample.KeptWith(should(reports.Warn))), reports.NotConformant, 1, "1 warning counts under --strict"},
		{"a failure", sample.KeptWith(must(reports.Fail)), reports.NotConformant, 1, "1 clause fails"},
		{"a failure in a filtered run", sample.Filtered(sample.KeptWith(must(reports.Fail))), reports.NotConformant, 1, "1 clause fails, filters left clauses out"},
		{"a failure in a run cut short", sample.CutShort(sample.KeptWith(must(reports.Fail))), reports.NotConformant, 1, "cut short"},
		{"a stale baseline", sample.KeptWith(must(reports.Fixed)), reports.NotConformant, 1, "passes now"},
		{"a baseline entry that does not hold", sample.WithProblem(sample.Kept()), reports.NotConformant, 1, "1 baseline entry no longer applies"},
		{"an excused failure", sample.KeptWith(must(reports.Known)), reports.Partial, 0, "1 failure is excused by the baseline"},
		{"an excused warning", sample.KeptWith(should(reports.Known)), reports.Conformant, 0, "conformant"},
		{"an excused warning under strict", sample.Strict(sample.KeptWith(should(reports.Known))), reports.Partial, 0, "excused"},
		{"a harness error", sample.KeptWith(must(reports.Error)), reports.Partial, 4, "1 check ended in an error of its own"},
		{"an untestable MUST", sample.KeptWith(must(reports.NotTestable)), reports.Partial, 4, "1 MUST could not be tested"},
		{"an untestable MUST of a claimed capability", sample.KeptWith(claimed), reports.Partial, 4, "1 MUST could not be tested"},
		{"an untestable MUST of no claimed capability", sample.KeptWith(unclaimed), reports.Conformant, 0, "conformant"},
		{"an untestable SHOULD", sample.KeptWith(should(reports.NotTestable)), reports.Conformant, 0, "conformant"},
		{"a clause that does not apply", sample.KeptWith(must(reports.NotApplicable)), reports.Conformant, 0, "conformant"},
		{"filters", sample.Filtered(sample.Kept()), reports.Partial, 0, "partial: filters left clauses out"},
		{"a sample", sample.Sampled(sample.Kept()), reports.Partial, 0, "partial: a sample was tested: at most 10 tools and cases in one check, and not the checks that send most"},
		{"cut short", sample.CutShort(sample.Kept()), reports.Partial, 4, "the run was cut short (interrupted)"},
		{"nothing", &reports.Report{}, reports.Partial, 4, "no check ran"},
		{"nothing that applies", &reports.Report{Results: []reports.Result{must(reports.NotApplicable)}}, reports.Partial, 4, "no check ran"},
		{"nothing but what filters leave", sample.Filtered(&reports.Report{Results: []reports.Result{must(reports.NotApplicable)}}), reports.Partial, 4, "no check ran"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.report.State(); got != c.state {
				t.Errorf("state is %q, want %q", got, c.state)
			}
			if got := c.report.ExitCode(); got != c.code {
				t.Errorf("exit code is %d, want %d", got, c.code)
			}
			if got := c.report.Headline(); !strings.HasPrefix(got, string(c.state)+": ") || !strings.Contains(got, c.headline) {
				t.Errorf("headline is %q, want %q in it", got, c.headline)
			}
		})
	}
}

// What a proxy did is no fault of the bridge, and without a failure there is none "above".
func TestWhoIsAtFault(t *testing.T) {
	byProxy := reports.Result{Verdict: reports.Fail, Findings: []reports.Finding{{Proxy: "the proxy, not the bridge"}}}
	untested := reports.Result{Verdict: reports.NotTestable, Level: reports.MUST, Message: "it needs to know the site's methods"}
	for want, results := range map[string][]reports.Result{
		"[the bridge (1 failure) the proxy (1 failure) the settings of the run, or a failure above (1 MUST not tested)]": {byProxy, {Verdict: reports.Fail}, untested},
		"[the proxy (1 failure)]":                                                    {byProxy},
		"[the bridge (1 failure) a failure above (1 MUST not tested)]":               {{Verdict: reports.Fail}, {Verdict: reports.NotTestable, Level: reports.MUST, BlockedBy: []string{"invoke/unknown-404"}}},
		"[the site (1 MUST not tested) the settings of the run (1 MUST not tested)]": {untested, {Verdict: reports.NotTestable, Level: reports.MUST, Message: "the site was slow"}},
	} {
		must.Equal(t, fmt.Sprint((&reports.Report{Results: results}).AtFault()), want, "who is at fault")
	}
	warned := reports.Result{Verdict: reports.Warn}
	got := fmt.Sprint((&reports.Report{Strict: true, Results: []reports.Result{warned, {Verdict: reports.Fail}, warned}}).AtFault())
	must.Expect(t, got == "[the bridge (1 failure, 2 warnings)]", "strict: %s", got)
	must.Equal(t, fmt.Sprint((&reports.Report{Strict: true, Results: []reports.Result{warned}}).AtFault()), "[the bridge (1 warning)]", "strict, warnings alone")
}
