package reports_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestCompareSortsChanges(t *testing.T) {
	one := func(v reports.Verdict) []reports.Result {
		return []reports.Result{{ID: "list/x", Level: reports.MUST, Area: "list", Verdict: v, Text: "as it was"}}
	}
	reworded := one(reports.Fail)
	reworded[0].Text = "as it is now"
	relevelled := one(reports.Fail)
	relevelled[0].Level = reports.SHOULD
	for _, c := range []struct {
		name     string
		old, new []reports.Result
		filtered string // which side is filtered
		group    string // the one that holds the clause; empty: none
		code     int
	}{
		{"still kept", one(reports.Pass), one(reports.Pass), "", "", 0},
		{"broken", one(reports.Pass), one(reports.Fail), "", "Newly failing", 1},
		{"broken after a warning", one(reports.Warn), one(reports.Fail), "", "Newly failing", 1},
		{"broken where it could not be tested", one(reports.NotTestable), one(reports.Fail), "", "Newly failing", 1},
		{"broken by a new claim", one(reports.NotApplicable), one(reports.Fail), "", "Newly failing", 1},
		{"repaired", one(reports.Fail), one(reports.Pass), "", "Fixed", 0},
		{"repaired while excused", one(reports.Known), one(reports.Fixed), "", "Fixed", 0},
		{"still broken", one(reports.Fail), one(reports.Fail), "", "Still failing", 0},
		{"broken and excused now", one(reports.Fail), one(reports.Known), "", "Still failing", 0},
		{"broken and no longer excused", one(reports.Known), one(reports.Fail), "", "Still failing", 0},
		{"warned", one(reports.Pass), one(reports.Warn), "", "Other verdict", 0},
		{"broken but excused", one(reports.Pass), one(reports.Known), "", "Other verdict", 0},
		{"no longer testable", one(reports.Fail), one(reports.NotTestable), "", "Other verdict", 0},
		{"harness error", one(reports.Pass), one(reports.Error), "", "Other verdict", 0},
		{"new in the ledger", nil, one(reports.Fail), "", "The contract changed", 0},
		{"gone from the ledger", one(reports.Fail), nil, "", "The contract changed", 0},
		{"reworded", one(reports.Pass), reworded, "", "The contract changed", 0},
		{"another level", one(reports.Pass), relevelled, "", "The contract changed", 0},
		{"filtered out before", nil, one(reports.Fail), "old", "Not in both runs", 0},
		{"filtered out now", one(reports.Pass), nil, "new", "Not in both runs", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			comparison := reports.Compare(&reports.Report{Results: c.old, Filtered: c.filtered == "old"}, &reports.Report{Results: c.new, Filtered: c.filtered == "new"})
			groups := comparison.Groups()
			switch {
			case c.group == "" && len(groups) == 0:
			case len(groups) == 1 && groups[0].Title == c.group && len(groups[0].Changes) == 1 && groups[0].Changes[0].ID == "list/x":
			default:
				t.Errorf("groups are %+v, want one clause in %q", groups, c.group)
			}
			must.Equal(t, comparison.ExitCode(), c.code, "exit code")
		})
	}
}

func TestComparisonAsText(t *testing.T) {
	text := string(sample.Written(t, func(b *bytes.Buffer) error { return reports.Compare(sample.Kept(), sample.Every()).WriteText(b) }))
	for _, want := range []string{
		"old  Example bridge 2.3, 2026-11-21 07:30 UTC\n     contract 2026-11-21\n     conformant: 2 clauses kept\n",
		"The contract changed (9)\n  list/description-not-empty SHOULD: absent → warn\n    tool content.get has an empty description\n",
	} {
		must.Expect(t, strings.Contains(text, want), "text lacks %q:\n%s", want, text)
	}
	long := sample.Kept()
	for i := range 60 {
		long.Results = append(long.Results, reports.Result{ID: fmt.Sprintf("list/case-%d", i), Level: reports.MUST, Verdict: reports.Fail, Message: strings.Repeat("word ", 200)})
	}
	text = string(sample.Written(t, func(b *bytes.Buffer) error { return reports.Compare(sample.Kept(), long).WriteText(b) }))
	for line := range strings.Lines(text) {
		must.Expect(t, utf8.RuneCountInString(line) <= 81, "a line has %d characters: %q", utf8.RuneCountInString(line), line)
	}
	must.Expect(t, strings.Contains(text, "\n  … and 10 more; --json has all\n"), "60 changes are not bounded:\n%s", text)
	same := string(sample.Written(t, func(b *bytes.Buffer) error { return reports.Compare(sample.Kept(), sample.Kept()).WriteText(b) }))
	must.Expect(t, strings.HasSuffix(same, "\nno difference\n"), "two equal reports differ:\n%s", same)
}
