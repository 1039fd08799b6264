package selftest

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Row is what the suites said of one mutant or correct variant.
type Row struct {
	Name       string   `json:"name"`
	Correct    bool     `json:"correct"`            // a correct variant: nothing may fall
	Origin     Origin   `json:"origin,omitempty"`   // of a mutant
	Meant      []string `json:"meant,omitempty"`    // the clauses that have to fall
	Free       []string `json:"free,omitempty"`     // the clauses that may fall
	Fell       []string `json:"fell"`               // the clauses that failed, warned, or could not be judged for an error
	Unjudged   []string `json:"unjudged,omitempty"` // the clauses that were not testable
	Judged     []string `json:"judged"`             // the clauses that applied
	DurationMS int64    `json:"duration_ms"`
	Problem    string   `json:"problem,omitempty"` // why there is no verdict at all
}

// rowOf reads the report on a mutant.
func rowOf(m Mutant, r *reports.Report) Row {
	row := Row{Name: m.Name, Correct: len(m.Breaks) == 0, Origin: m.Origin, Meant: m.Breaks, Free: m.Free, Fell: []string{}, DurationMS: r.DurationMS}
	for _, result := range r.Results {
		if result.Verdict != reports.NotApplicable {
			row.Judged = append(row.Judged, result.ID)
		}
		switch result.Verdict {
		case reports.Fail, reports.Warn, reports.Error:
			row.Fell = append(row.Fell, result.ID)
		case reports.NotTestable:
			row.Unjudged = append(row.Unjudged, result.ID)
		}
	}
	return row
}

// Missed lists the meant clauses that did not fall.
func (r Row) Missed() []string {
	return except(r.Meant, r.Fell)
}

// Stray lists the clauses that fell and were not meant. Of a correct variant a clause that could not be judged is one,
// too: it would keep a good bridge from being found conformant.
func (r Row) Stray() []string {
	stray := r.Fell
	if r.Correct {
		stray = slices.Concat(r.Fell, r.Unjudged)
	}
	return except(except(stray, r.Meant), r.Free)
}

// Killed tells whether all that a mutant is meant to break fell.
func (r Row) Killed() bool { return !r.Correct && r.Problem == "" && len(r.Missed()) == 0 }

// Clean tells whether a mutant was killed by the meant clauses alone.
func (r Row) Clean() bool { return r.Killed() && len(r.Stray()) == 0 }

// FalseAlarm tells whether anything was said against a correct variant.
func (r Row) FalseAlarm() bool { return r.Correct && (r.Problem != "" || len(r.Stray()) > 0) }

func except(all, taken []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(taken, s) })
}

// Matrix is the kill matrix: every mutant and correct variant against every clause that was judged.
type Matrix struct {
	Rows       []Row    `json:"rows"`
	Unkilled   []string `json:"unkilled"` // clauses with a check that bind and that no mutant meant for them dies of
	DurationMS int64    `json:"duration_ms"`
	Figures    Figures  `json:"figures"`
}

// Figures sums a matrix up.
type Figures struct {
	Mutants     int `json:"mutants"`
	Killed      int `json:"killed"`
	Clean       int `json:"clean"`
	Survivors   int `json:"survivors"`
	Variants    int `json:"variants"`
	FalseAlarms int `json:"false_alarms"`
	Again       int `json:"judged_again"` // alone, after an outcome that was not expected
}

// newMatrix sums rows up. judged are the clauses that have a check.
func newMatrix(rows []Row, judged []contract.Clause) Matrix {
	m := Matrix{Rows: rows, Unkilled: []string{}}
	killed := map[string]bool{}
	for _, r := range rows {
		if r.Correct {
			m.Figures.Variants++
			m.Figures.FalseAlarms += count(r.FalseAlarm())
			continue
		}
		m.Figures.Mutants++
		m.Figures.Killed += count(r.Killed())
		m.Figures.Clean += count(r.Clean())
		for _, id := range r.Meant {
			killed[id] = killed[id] || slices.Contains(r.Fell, id)
		}
	}
	m.Figures.Survivors = m.Figures.Mutants - m.Figures.Killed
	for _, c := range judged {
		if c.Level != reports.MAY && !killed[c.ID] {
			m.Unkilled = append(m.Unkilled, c.ID)
		}
	}
	return m
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// cleanly is how many mutants of a hundred have to fall by the meant clauses alone: more than one fault in a report hides
// the one that has to be mended.
const cleanly = 95

// Good tells whether nothing survived, no clause is a guess, no correct bridge was blamed, and enough kills were clean.
func (m Matrix) Good() bool {
	f := m.Figures
	return f.Survivors == 0 && f.FalseAlarms == 0 && len(m.Unkilled) == 0 && f.Clean*100 >= cleanly*f.Mutants
}

// WriteText writes what needs attention, and the figures.
func (m Matrix) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, r := range m.Rows {
		switch {
		case r.Problem != "":
			fmt.Fprintf(&b, "no verdict   %s: %s\n", r.Name, r.Problem)
		case r.FalseAlarm():
			fmt.Fprintf(&b, "false alarm  %s: %s\n", r.Name, strings.Join(r.Stray(), " "))
		case len(r.Missed()) > 0:
			fmt.Fprintf(&b, "survivor     %s: %s did not fall\n", r.Name, strings.Join(r.Missed(), " "))
		}
		if !r.Correct && len(r.Stray()) > 0 {
			fmt.Fprintf(&b, "not clean    %s: %s fell too\n", r.Name, strings.Join(r.Stray(), " "))
		}
	}
	for _, id := range m.Unkilled {
		fmt.Fprintf(&b, "unproven     %s: no mutant dies of it\n", id)
	}
	f := m.Figures
	fmt.Fprintf(&b, "%d mutants: %d killed, %d cleanly, %d survived; %d correct variants: %d false alarms; %d clauses unproven; %d judged again; %.1f s\n",
		f.Mutants, f.Killed, f.Clean, f.Survivors, f.Variants, f.FalseAlarms, len(m.Unkilled), f.Again, float64(m.DurationMS)/1000)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the kill matrix as a page of the documentation, from the golden sets: for each clause the mutants
// that are meant for it and die of it, then what the correct variants use of the contract's room.
func WriteMarkdown(w io.Writer) error {
	contract, err := contract.Load()
	if err != nil {
		return err
	}
	golden, err := Golden()
	if err != nil {
		return err
	}
	killers, clean := map[string][]string{}, 0
	for _, m := range Zoo() {
		clean += count(len(except(except(golden[m.Name], m.Breaks), m.Free)) == 0)
		for _, id := range m.Breaks {
			if slices.Contains(golden[m.Name], id) {
				killers[id] = append(killers[id], m.Name)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Kill matrix\n\nGenerated by `bridgecheck selftest --markdown` from the golden sets; do not edit.\n\n")
	fmt.Fprintf(&b, "%d broken bridges die of the clauses meant for them, %d of these alone. %d correct ones fail nothing.\n\n",
		len(Zoo()), clean, len(Variants()))
	b.WriteString("| clause | level | mutants that die of it |\n|---|---|---|\n")
	for _, c := range contract.Clauses {
		if names := killers[c.ID]; len(names) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.ID, c.Level, strings.Join(names, ", "))
		}
	}
	b.WriteString("\n## Correct variants\n\n")
	for _, v := range Variants() {
		fmt.Fprintf(&b, "- %s: %s\n", v.Name, v.Why)
	}
	_, err = io.WriteString(w, b.String())
	return err
}
