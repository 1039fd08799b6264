package suites

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/reports"
)

func TestCombineKeepsTheGravestVerdict(t *testing.T) {
	for name, c := range map[string]struct{ first, second, want reports.Verdict }{
		"judged in one, not applicable in the other": {reports.Pass, reports.NotApplicable, reports.Pass},
		"judged in one, not testable in the other":   {reports.NotTestable, reports.Pass, reports.Pass},
		"failed in one":       {reports.Pass, reports.Fail, reports.Fail},
		"failed in the first": {reports.Fail, reports.Pass, reports.Fail},
		"warned in one":       {reports.Pass, reports.Warn, reports.Warn},
		"judged in none":      {reports.NotApplicable, reports.NotTestable, reports.NotTestable},
		"broken in one":       {reports.Error, reports.Fail, reports.Error},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(v reports.Verdict, capability string) *reports.Report {
				return &reports.Report{Capabilities: []string{"tools", capability}, DurationMS: 5,
					Results: []reports.Result{{ID: "list/page-size", Level: reports.MUST, Verdict: v, DurationMS: 2}}}
			}
			got := Combine(run(c.first, "naming-id"), run(c.second, "naming-underscore"))
			if len(got.Results) != 1 || got.Results[0].Verdict != c.want {
				t.Errorf("results %+v, want the one clause as %s", got.Results, c.want)
			}
			if got.Results[0].DurationMS != 4 || got.DurationMS != 10 || len(got.Capabilities) != 3 || got.Summary.Total != 1 {
				t.Errorf("times %v and %v, capabilities %v, total %d", got.Results[0].DurationMS, got.DurationMS, got.Capabilities, got.Summary.Total)
			}
		})
	}
}
