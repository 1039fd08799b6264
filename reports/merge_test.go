package reports_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestMergeKeepsTheGravestVerdict(t *testing.T) {
	for name, c := range map[string]struct{ first, second, want reports.Verdict }{
		"tested in one, not applicable in the other": {reports.Pass, reports.NotApplicable, reports.Pass},
		"tested in one, not testable in the other":   {reports.NotTestable, reports.Pass, reports.Pass},
		"failed in one":                           {reports.Pass, reports.Fail, reports.Fail},
		"failed in the first":                     {reports.Fail, reports.Pass, reports.Fail},
		"warned in one":                           {reports.Pass, reports.Warn, reports.Warn},
		"tested in none":                          {reports.NotApplicable, reports.NotTestable, reports.NotTestable},
		"an error in one, a failure in the other": {reports.Error, reports.Fail, reports.Fail},
		"an error in one":                         {reports.Pass, reports.Error, reports.Error},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(v reports.Verdict, capability string) *reports.Report {
				return &reports.Report{Capabilities: []string{"tools", capability}, DurationMS: 5, Filtered: true, Ledger: reports.Ledger{Checked: 1},
					Settings: map[string]any{"skip": "x", "page_size": 50},
					Results:  []reports.Result{{ID: "list/page-size", Level: reports.MUST, Verdict: v, DurationMS: 2}}}
			}
			first := run(c.first, "naming-id")
			got := must.Get(reports.Merge(first, run(c.second, "naming-underscore")))(t)
			must.Expect(t, len(got.Results) == 1 && got.Results[0].Verdict == c.want,
				"results %+v, want the one clause as %s", got.Results, c.want)
			must.Expect(t, got.Results[0].DurationMS == 4 && got.DurationMS == 10 && len(got.Capabilities) == 3 && got.Summary.Total == 1,
				"times %v and %v, capabilities %v, total %d", got.Results[0].DurationMS, got.DurationMS, got.Capabilities, got.Summary.Total)
			if _, skips := got.Settings["skip"]; skips || got.Filtered || got.Settings["page_size"] != 50 {
				t.Errorf("filtered %v, settings %v: what one setup leaves to another is no filter", got.Filtered, got.Settings)
			}
			must.Expect(t, first.Results[0].DurationMS == 2 && len(first.Settings) == 2 && len(first.Capabilities) == 2,
				"merging changed a report")
		})
	}
}

// The time of a merged report is the wall's: shards run side by side, passes one after the other.
func TestMergeCountsTheWallOnce(t *testing.T) {
	for name, c := range map[string]struct {
		starts, took []int64 // in seconds
		began, want  int64
	}{
		"one after the other": {[]int64{10, 20}, []int64{5, 5}, 10, 10},
		"side by side":        {[]int64{20, 10, 21}, []int64{5, 30, 4}, 10, 30},
		"overlapping":         {[]int64{10, 13, 15}, []int64{5, 5, 1}, 10, 8},
		"one after, beside":   {[]int64{10, 100, 101}, []int64{5, 4, 10}, 10, 16},
	} {
		var runs []*reports.Report
		for i, at := range c.starts {
			runs = append(runs, &reports.Report{Started: time.Unix(at, 0), DurationMS: 1000 * c.took[i]})
		}
		if got, err := reports.Merge(runs...); err != nil || got.Started.Unix() != c.began || got.DurationMS != 1000*c.want {
			t.Errorf("%s: %v, began %v, took %d ms", name, err, got.Started.Unix(), got.DurationMS)
		}
	}
}

func TestMergeRanksEveryVerdict(t *testing.T) {
	for _, v := range reports.Verdicts() {
		must.Expect(t, reports.Gravity(v) >= 0, "%s has no rank: add it to the list in gravity, in merge.go", v)
	}
	must.Refuse(reports.Merge())(t, "", "nothing is merged")
	verdicts := reports.Verdicts()
	must.Expect(t, len(slices.Compact(slices.Sorted(slices.Values(verdicts)))) == len(verdicts), "a verdict is listed twice")
}

func TestMergeShards(t *testing.T) {
	shard := func(edit func(*reports.Report), results ...reports.Result) *reports.Report {
		r := sample.Kept()
		r.Results = results
		r.Filtered = true
		r.Ledger.Checked = 2
		if edit != nil {
			edit(r)
		}
		return r
	}
	a, b := reports.Result{ID: "list/a", Level: reports.MUST, Area: "list", Verdict: reports.Pass}, reports.Result{ID: "list/b", Level: reports.MUST, Area: "list", Verdict: reports.Pass}
	broken := a
	broken.Verdict = reports.Fail
	for _, c := range []struct {
		name      string
		reports   []*reports.Report
		headlines string
		err       string
	}{
		{"all shards", []*reports.Report{shard(nil, a), shard(nil, b)}, "conformant: 2 clauses kept", ""},
		{"a shard is missing", []*reports.Report{shard(nil, a)}, "partial: filters left clauses out", ""},
		{"the count of clauses is unknown", []*reports.Report{shard(func(r *reports.Report) { r.Ledger.Checked = 0 }, a), shard(nil, b)}, "partial: filters left clauses out", ""},
		{"a clause in two shards fails in one", []*reports.Report{shard(nil, a), shard(nil, broken, b)}, "not conformant: 1 clause fails", ""},
		{"the same the other way round", []*reports.Report{shard(nil, broken, b), shard(nil, a)}, "not conformant: 1 clause fails", ""},
		{"a shard was cut short", []*reports.Report{shard(nil, a), shard(func(r *reports.Report) { r.CutShort = "timeout" }, b)}, "partial: the run was cut short (timeout)", ""},
		{"two bridges", []*reports.Report{sample.Kept(), shard(func(r *reports.Report) { r.Target.Name = "Other" }, a)}, "conformant: 2 clauses kept|partial: filters left clauses out", ""},
		{"other ledgers", []*reports.Report{shard(nil, a), shard(func(r *reports.Report) { r.Ledger.Revision = "next" }, b)}, "", "merge Example bridge 2.3: the reports are of the revisions 2026-11-21 and next"},
		{"other versions", []*reports.Report{shard(nil, a), shard(func(r *reports.Report) { r.Ledger.Version = "1.1" }, b)}, "", "of the versions (none) and 1.1"},
		{"other capabilities", []*reports.Report{shard(nil, a), shard(func(r *reports.Report) { r.Capabilities = []string{"mcp"} }, b)}, "", "the shards claim"},
		{"one is strict", []*reports.Report{shard(nil, a), shard(func(r *reports.Report) { r.Strict = true }, b)}, "", "one report is strict"},
		{"nothing", nil, "", "there is no report to merge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			merged, err := reports.MergeShards(c.reports)
			if c.err != "" {
				must.Expect(t, err != nil && strings.Contains(err.Error(), c.err), "error is %v, want %q", err, c.err)
				return
			}
			must.Do(t, err)
			var headlines []string
			for _, r := range merged {
				headlines = append(headlines, r.Headline())
			}
			must.Equal(t, strings.Join(headlines, "|"), c.headlines, "merged")
		})
	}
}
