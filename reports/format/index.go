package format

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/reports"
)

// Run is a report in a folder of reports.
type Run struct {
	ID     string // stands for the path in addresses
	Path   string // below the folder
	Report *reports.Report
	Err    error // why the file cannot be read; Report is nil then
}

// Bridge is the name that the runs of one bridge have in common, or the address where there is none.
func (r Run) Bridge() string { return cmp.Or(r.Report.Target.Name, r.Report.Target.URL) }

// WriteIndex writes a page on runs, the newest first: each bridge's newest run by area, its trend and all its runs, then
// the files that cannot be read.
func WriteIndex(w io.Writer, runs, unreadable []Run) error {
	var areas []string
	for _, run := range runs {
		for _, area := range run.Report.Areas() {
			if !slices.Contains(areas, area) {
				areas = append(areas, area)
			}
		}
	}
	return pages.ExecuteTemplate(w, "index.gohtml", struct {
		document
		Areas      []string
		Bridges    []bridgeView
		Unreadable []Run
	}{newDocument("bridgecheck: reports"), areas, bridgesOf(runs, areas), unreadable})
}

// bridgeView is one bridge on the index: its newest report by area, and its runs over time.
type bridgeView struct {
	Name   string
	Latest Run        // the newest run that was not filtered or cut short; the newest where all were
	Cells  []areaCell // in the order of the index's areas
	Kept   int        // clauses, in the newest report
	Apply  int        // clauses that apply
	Runs   []Run      // newest first
	Trend  string     // points of a line: kept clauses of those that apply, oldest first
}

// bridgesOf groups reports, newest first, by bridge: its name where it has one, else its address.
func bridgesOf(read []Run, areas []string) []bridgeView {
	var bridges []bridgeView
	for _, f := range read {
		name := f.Bridge()
		i := slices.IndexFunc(bridges, func(b bridgeView) bool { return b.Name == name })
		if i < 0 {
			i = len(bridges)
			bridges = append(bridges, bridgeView{Name: name, Latest: f})
		}
		bridges[i].Runs = append(bridges[i].Runs, f)
	}
	for i := range bridges {
		b := &bridges[i]
		if whole := slices.IndexFunc(b.Runs, func(run Run) bool { return run.Report.Whole() }); whole >= 0 {
			b.Latest = b.Runs[whole]
		}
		for _, area := range areas {
			b.Cells = append(b.Cells, cellOf(b.Latest.Report, area, ""))
		}
		newest := b.Latest.Report.Counted()
		b.Kept, b.Apply = newest.Pass, newest.Total-newest.NotApplicable
		b.Trend = trend(b.Runs)
	}
	return bridges
}

// trend returns the points of a line in a box of 100 × 30: the share of the clauses that apply and pass, oldest run first.
// Runs that left clauses out cannot be compared with the others, and are no part of it.
func trend(runs []Run) string {
	runs = slices.DeleteFunc(slices.Clone(runs), func(run Run) bool { return !run.Report.Whole() })
	if len(runs) < 2 {
		return ""
	}
	var points []string
	for i, f := range slices.Backward(runs) {
		s := f.Report.Counted()
		share := 0.0
		if apply := s.Total - s.NotApplicable; apply > 0 {
			share = float64(s.Pass) / float64(apply)
		}
		x := 100 * float64(len(runs)-1-i) / float64(len(runs)-1)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, 29-28*share))
	}
	return strings.Join(points, " ")
}
