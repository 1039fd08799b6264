package reports

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStateAndExitCode(t *testing.T) {
	must := func(v Verdict) Result { return Result{ID: "list/x", Level: MUST, Area: "list", Verdict: v} }
	should := func(v Verdict) Result { return Result{ID: "list/x", Level: SHOULD, Area: "list", Verdict: v} }
	unclaimed := must(NotTestable)
	unclaimed.Capability = "mcp"
	claimed := must(NotTestable)
	claimed.Capability = "tools"

	for _, c := range []struct {
		name     string
		report   *Report
		state    State
		code     int
		headline string
	}{
		{"all kept", kept(), Conformant, 0, "conformant: 2 clauses kept"},
		{"a warning", keptWith(should(Warn)), Conformant, 0, "conformant: 2 clauses kept, 1 warning"},
		{"a warning under strict", strict(keptWith(should(Warn))), NotConformant, 1, "1 warning counts under --strict"},
		{"a failure", keptWith(must(Fail)), NotConformant, 1, "1 clause fails"},
		{"a failure in a filtered run", filtered(keptWith(must(Fail))), NotConformant, 1, "1 clause fails, filters left clauses out"},
		{"a failure in a run cut short", cut(keptWith(must(Fail))), NotConformant, 1, "cut short"},
		{"a stale baseline", keptWith(must(Fixed)), NotConformant, 1, "passes now"},
		{"a baseline entry that does not hold", withProblem(kept()), NotConformant, 1, "1 baseline entry does not hold"},
		{"an excused failure", keptWith(must(Known)), Partial, 0, "1 failure is excused by the baseline"},
		{"an excused warning", keptWith(should(Known)), Conformant, 0, "conformant"},
		{"an excused warning under strict", strict(keptWith(should(Known))), Partial, 0, "excused"},
		{"a harness error", keptWith(must(Error)), Partial, 4, "1 check ended in an error of the harness"},
		{"an untestable MUST", keptWith(must(NotTestable)), Partial, 4, "1 MUST could not be tested"},
		{"an untestable MUST of a claimed capability", keptWith(claimed), Partial, 4, "1 MUST could not be tested"},
		{"an untestable MUST of no claimed capability", keptWith(unclaimed), Conformant, 0, "conformant"},
		{"an untestable SHOULD", keptWith(should(NotTestable)), Conformant, 0, "conformant"},
		{"a clause that does not apply", keptWith(must(NotApplicable)), Conformant, 0, "conformant"},
		{"filters", filtered(kept()), Partial, 0, "partial: filters left clauses out"},
		{"cut short", cut(kept()), Partial, 4, "the run was cut short (interrupted)"},
		{"nothing", &Report{}, Partial, 4, "no check ran"},
		{"nothing that applies", &Report{Results: []Result{must(NotApplicable)}}, Partial, 4, "no check ran"},
		{"nothing but what filters leave", filtered(&Report{Results: []Result{must(NotApplicable)}}), Partial, 4, "no check ran"},
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

func strict(r *Report) *Report   { r.Strict = true; return r }
func filtered(r *Report) *Report { r.Filtered = true; return r }
func cut(r *Report) *Report      { r.CutShort = "interrupted"; return r }
func withProblem(r *Report) *Report {
	r.BaselineProblems = []BaselineProblem{{File: "baseline.yaml", Line: 3, Clause: "list/x", Text: "expired on 2026-01-01"}}
	return r
}

// TestConformantIsSaidOfCleanRunsOnly draws runs and holds the state against the design's sentence.
func TestConformantIsSaidOfCleanRunsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Report{
			Strict:   rapid.Bool().Draw(t, "strict"),
			Filtered: rapid.Bool().Draw(t, "filtered"),
			CutShort: rapid.SampledFrom([]string{"", "interrupted"}).Draw(t, "cut short"),
		}
		ran, clean := 0, !r.Filtered && r.CutShort == ""
		for _, v := range rapid.SliceOfN(rapid.SampledFrom(Verdicts()), 0, 4).Draw(t, "verdicts") {
			level := rapid.SampledFrom([]Level{MUST, SHOULD}).Draw(t, "level")
			r.Results = append(r.Results, Result{Verdict: v, Level: level})
			switch v {
			case Pass:
				ran++
			case Fail, Error, Fixed:
				clean = false
			case Warn:
				ran++
				clean = clean && !r.Strict
			case Known:
				ran++
				clean = clean && level != MUST && !r.Strict
			case NotTestable:
				clean = clean && level != MUST
			}
		}
		r.Summarize()
		if want := clean && ran > 0; r.Summary.Conformant != want {
			t.Fatalf("conformant is %v, want %v: %s", r.Summary.Conformant, want, r.Headline())
		}
		if r.Summary.Conformant && r.ExitCode() != 0 {
			t.Fatalf("a conformant run exits %d", r.ExitCode())
		}
	})
}
