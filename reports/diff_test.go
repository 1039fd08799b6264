package reports

import (
	"bytes"
	"strings"
	"testing"
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
