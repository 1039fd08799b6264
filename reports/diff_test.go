package reports

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestCompareSortsChanges(t *testing.T) {
	one := func(v Verdict) []Result {
		return []Result{{ID: "list/x", Level: MUST, Area: "list", Verdict: v, Text: "as it was"}}
	}
	reworded := one(Fail)
	reworded[0].Text = "as it is now"
	relevelled := one(Fail)
	relevelled[0].Level = SHOULD
	for _, c := range []struct {
		name     string
		old, new []Result
		filtered string // which side is filtered
		group    string // the one that holds the clause; empty: none
		code     int
	}{
		{"still kept", one(Pass), one(Pass), "", "", 0},
		{"broken", one(Pass), one(Fail), "", "Newly failing", 1},
		{"broken after a warning", one(Warn), one(Fail), "", "Newly failing", 1},
		{"broken where it could not be tested", one(NotTestable), one(Fail), "", "Newly failing", 1},
		{"broken by a new claim", one(NotApplicable), one(Fail), "", "Newly failing", 1},
		{"repaired", one(Fail), one(Pass), "", "Fixed", 0},
		{"repaired while excused", one(Known), one(Fixed), "", "Fixed", 0},
		{"still broken", one(Fail), one(Fail), "", "Still failing", 0},
		{"broken and excused now", one(Fail), one(Known), "", "Still failing", 0},
		{"broken and no longer excused", one(Known), one(Fail), "", "Still failing", 0},
		{"warned", one(Pass), one(Warn), "", "Other verdict", 0},
		{"broken but excused", one(Pass), one(Known), "", "Other verdict", 0},
		{"no longer testable", one(Fail), one(NotTestable), "", "Other verdict", 0},
		{"harness error", one(Pass), one(Error), "", "Other verdict", 0},
		{"new in the ledger", nil, one(Fail), "", "The contract changed", 0},
		{"gone from the ledger", one(Fail), nil, "", "The contract changed", 0},
		{"reworded", one(Pass), reworded, "", "The contract changed", 0},
		{"another level", one(Pass), relevelled, "", "The contract changed", 0},
		{"filtered out before", nil, one(Fail), "old", "Not in both runs", 0},
		{"filtered out now", one(Pass), nil, "new", "Not in both runs", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			comparison := Compare(&Report{Results: c.old, Filtered: c.filtered == "old"}, &Report{Results: c.new, Filtered: c.filtered == "new"})
			groups := comparison.Groups()
			switch {
			case c.group == "" && len(groups) == 0:
			case len(groups) == 1 && groups[0].Title == c.group && len(groups[0].Changes) == 1 && groups[0].Changes[0].ID == "list/x":
			default:
				t.Errorf("groups are %+v, want one clause in %q", groups, c.group)
			}
			if got := comparison.ExitCode(); got != c.code {
				t.Errorf("exit code is %d, want %d", got, c.code)
			}
		})
	}
}

func TestComparisonAsText(t *testing.T) {
	text := string(written(t, func(b *bytes.Buffer) error { return Compare(kept(), every()).WriteText(b) }))
	for _, want := range []string{
		"old  Example bridge 2.3, 2026-11-21 07:30 UTC, ledger 2026-11-21: conformant: 2 clauses kept\n",
		"The contract changed (9)\n  list/description-not-empty SHOULD: absent → warn (tool content.get has an empty description)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("text lacks %q:\n%s", want, text)
		}
	}
	same := string(written(t, func(b *bytes.Buffer) error { return Compare(kept(), kept()).WriteText(b) }))
	if !strings.HasSuffix(same, "\nno difference\n") {
		t.Errorf("two equal reports differ:\n%s", same)
	}
}

func TestMerge(t *testing.T) {
	shard := func(edit func(*Report), results ...Result) *Report {
		r := kept()
		r.Results = results
		r.Filtered = true
		r.Ledger.Checked = 2
		if edit != nil {
			edit(r)
		}
		return r
	}
	a, b := Result{ID: "list/a", Level: MUST, Area: "list", Verdict: Pass}, Result{ID: "list/b", Level: MUST, Area: "list", Verdict: Pass}
	broken := a
	broken.Verdict = Fail
	for _, c := range []struct {
		name      string
		reports   []*Report
		headlines string
		err       string
	}{
		{"all shards", []*Report{shard(nil, a), shard(nil, b)}, "conformant: 2 clauses kept", ""},
		{"a shard is missing", []*Report{shard(nil, a)}, "partial: filters left clauses out", ""},
		{"the count of clauses is not told", []*Report{shard(func(r *Report) { r.Ledger.Checked = 0 }, a), shard(nil, b)}, "partial: filters left clauses out", ""},
		{"a clause in two shards fails in one", []*Report{shard(nil, a), shard(nil, broken, b)}, "not conformant: 1 clause fails", ""},
		{"the same the other way round", []*Report{shard(nil, broken, b), shard(nil, a)}, "not conformant: 1 clause fails", ""},
		{"a shard was cut short", []*Report{shard(nil, a), shard(func(r *Report) { r.CutShort = "timeout" }, b)}, "partial: the run was cut short (timeout)", ""},
		{"two bridges", []*Report{kept(), shard(func(r *Report) { r.Target.Name = "Other" }, a)}, "conformant: 2 clauses kept|partial: filters left clauses out", ""},
		{"other ledgers", []*Report{shard(nil, a), shard(func(r *Report) { r.Ledger.Revision = "next" }, b)}, "", "merge Example bridge 2.3: the shards have the ledgers 2026-11-21 and next"},
		{"other capabilities", []*Report{shard(nil, a), shard(func(r *Report) { r.Capabilities = []string{"mcp"} }, b)}, "", "the shards claim"},
		{"one is strict", []*Report{shard(nil, a), shard(func(r *Report) { r.Strict = true }, b)}, "", "one shard is strict"},
		{"nothing", nil, "", "there is no report to merge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			merged, err := Merge(c.reports)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var headlines []string
			for _, r := range merged {
				headlines = append(headlines, r.Headline())
			}
			if got := strings.Join(headlines, "|"); got != c.headlines {
				t.Errorf("merged is %q, want %q", got, c.headlines)
			}
		})
	}
}

func TestMergeAddsTimes(t *testing.T) {
	early, late := kept(), kept()
	early.Started = started.Add(-time.Hour)
	merged, err := Merge([]*Report{late, early})
	if err != nil {
		t.Fatal(err)
	}
	if r := merged[0]; !r.Started.Equal(early.Started) || r.DurationMS != 2*1234 {
		t.Errorf("merged started %s and took %d ms", r.Started, r.DurationMS)
	}
	if !late.Started.Equal(started) || late.DurationMS != 1234 {
		t.Error("merging changed a shard")
	}
}

func TestTableSetsBridgesSideBySide(t *testing.T) {
	table := Tabulate([]*Report{kept(), every()})
	markdown := string(written(t, func(b *bytes.Buffer) error { return table.WriteMarkdown(b) }))
	for _, want := range []string{
		"| Example bridge 2.3 | conformant: 2 clauses kept | 2 | 0 | 0 | 2026-11-21 |\n",
		"| mapping/no-params-object | MUST | | ❌ fail |\n",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("the table lacks %q:\n%s", want, markdown)
		}
	}
	if strings.Contains(markdown, "list/answers-json") {
		t.Error("a clause that all pass has a row")
	}
	page := string(written(t, func(b *bytes.Buffer) error { return table.WriteHTML(b) }))
	if n := strings.Count(page, `<th scope="row"`); n != 11 {
		t.Errorf("the page has %d rows, want 11", n)
	}
}
