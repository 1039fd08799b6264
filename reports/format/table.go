package format

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Table sets several bridges side by side: a column a report, a row a clause.
type Table struct {
	Columns []Column   `json:"columns"`
	Rows    []TableRow `json:"rows"`
}

// Column is one report of a table.
type Column struct {
	Target   reports.Target  `json:"target"`
	Ledger   string          `json:"ledger"`
	State    reports.State   `json:"state"`
	Headline string          `json:"headline"`
	Summary  reports.Summary `json:"summary"`
}

// TableRow is one clause with its verdict in each column; empty where a report does not have it.
type TableRow struct {
	ID       string            `json:"id"`
	Level    reports.Level     `json:"level"`
	Area     string            `json:"area"`
	Verdicts []reports.Verdict `json:"verdicts"`
}

// Tabulate sets reports side by side, clauses in the order in which they first come.
func Tabulate(all []*reports.Report) *Table {
	t := &Table{Columns: []Column{}, Rows: []TableRow{}}
	at := map[string]int{}
	for column, r := range all {
		r = r.Escaped()
		t.Columns = append(t.Columns, Column{r.Target, r.Ledger.Name(), r.State(), r.Headline(), r.Counted()})
		for _, result := range r.Results {
			i, ok := at[result.ID]
			if !ok {
				i = len(t.Rows)
				at[result.ID] = i
				t.Rows = append(t.Rows, TableRow{result.ID, result.Level, result.Area, make([]reports.Verdict, len(all))})
			}
			t.Rows[i].Verdicts[column] = result.Verdict
		}
	}
	return t
}

// WriteMarkdown writes t with a line a bridge, then a row a clause that is not the same pass or not applicable in all.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| bridge | outcome | passed | failed | warned | contract |\n| --- | --- | ---: | ---: | ---: | --- |\n")
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = Inline(terminal.VisibleLine(c.Target.Title(), 200))
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s |\n", names[i], Inline(c.Headline), c.Summary.Pass, c.Summary.Fail, c.Summary.Warn,
			Inline(terminal.VisibleLine(c.Ledger, 100)))
	}
	fmt.Fprintf(&b, "\n| clause | level | %s |\n| --- | --- |%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)))
	for _, row := range t.Rows {
		if row.plain() {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |", row.ID, row.Level)
		for _, v := range row.Verdicts {
			if v == "" {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %s %s |", icons[v], v)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// plain reports a row that says nothing: every bridge passes, or it applies to none.
func (r TableRow) plain() bool {
	distinct := slices.Compact(slices.Sorted(slices.Values(r.Verdicts)))
	return len(distinct) == 1 && (distinct[0] == reports.Pass || distinct[0] == reports.NotApplicable)
}

// WriteHTML writes t as one self-contained page, every clause in it.
func (t *Table) WriteHTML(w io.Writer) error {
	return pages.ExecuteTemplate(w, "table.gohtml", struct {
		document
		*Table
	}{newDocument("bridgecheck: bridges side by side"), t})
}
