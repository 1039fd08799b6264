package suites

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bridgecheck/bridgecheck/reports"
)

// Combine makes one report of the runs of one bridge in several setups: every clause once. A clause that was judged in
// several has the gravest verdict; one that could be judged in none keeps why. The first report's target stands for all.
func Combine(runs ...*reports.Report) *reports.Report {
	whole := *runs[0]
	whole.Results = slices.Clone(whole.Results)
	whole.Capabilities = slices.Clone(whole.Capabilities)
	for _, run := range runs[1:] {
		for _, c := range run.Capabilities {
			if !slices.Contains(whole.Capabilities, c) {
				whole.Capabilities = append(whole.Capabilities, c)
			}
		}
		for _, r := range run.Results {
			i := slices.IndexFunc(whole.Results, func(w reports.Result) bool { return w.ID == r.ID })
			if i < 0 {
				whole.Results = append(whole.Results, r)
				continue
			}
			if gravity(r.Verdict) > gravity(whole.Results[i].Verdict) {
				r.DurationMS += whole.Results[i].DurationMS
				whole.Results[i] = r
			} else {
				whole.Results[i].DurationMS += r.DurationMS
			}
		}
		whole.DurationMS += run.DurationMS
		if whole.CutShort == "" {
			whole.CutShort = run.CutShort
		}
		whole.NoBridge = cmp.Or(whole.NoBridge, run.NoBridge)
	}
	// What one setup leaves to another is no filter.
	if whole.Filtered = len(whole.Results) < whole.Ledger.Checked; !whole.Filtered {
		whole.Settings = maps.Clone(whole.Settings)
		delete(whole.Settings, "skip")
	}
	whole.Summarize()
	return &whole
}

// gravity orders verdicts: what was judged in one setup counts before what could not be judged in another.
func gravity(v reports.Verdict) int {
	return slices.Index([]reports.Verdict{reports.NotApplicable, reports.NotTestable, reports.Pass, reports.Known, reports.Warn, reports.Fixed, reports.Fail, reports.Error}, v)
}
