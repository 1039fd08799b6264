package format

import (
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

// A run of a few clauses is no step of a trend, and does not stand for its bridge.
func TestFilteredRunsDoNotStandForABridge(t *testing.T) {
	at := func(hours int, filtered bool, verdicts ...reports.Verdict) Run {
		r := sample.Kept()
		r.Started, r.Filtered, r.Results = sample.Started.Add(time.Duration(hours)*time.Hour), filtered, nil
		for i, v := range verdicts {
			r.Results = append(r.Results, reports.Result{ID: "list/" + string(rune('a'+i)), Level: reports.MUST, Area: "list", Verdict: v})
		}
		return Run{ID: r.Started.Format("15:04"), Report: r}
	}
	bridges := bridgesOf([]Run{at(3, true, reports.Pass), at(2, false, reports.Pass, reports.Pass), at(1, true, reports.Fail), at(0, false, reports.Pass, reports.Fail)}, []string{"list"})
	must.Assert(t, len(bridges) == 1 && bridges[0].Latest.ID == "09:30" && len(bridges[0].Runs) == 4, "the bridges are %+v", bridges)
	if b := bridges[0]; b.Trend != "0.0,15.0 100.0,1.0" || b.Kept != 2 || b.Apply != 2 || b.Cells[0].Kept != 2 {
		t.Errorf("the bridge keeps %d of %d, its trend is %q", b.Kept, b.Apply, b.Trend)
	}
	alone := bridgesOf([]Run{at(0, true, reports.Pass)}, nil)
	must.Expect(t, alone[0].Latest.ID == "07:30", "a bridge with filtered runs only has %+v", alone[0].Latest)
}
