package selftest

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Matrix is the outcome of a selftest: every mutant and correct variant against every clause.
type Matrix struct {
	Rows       []Row    `json:"rows"`
	Unproven   []string `json:"unproven"` // clauses that bind, were tested, and that no mutant was killed by
	DurationMS int64    `json:"duration_ms"`
	Figures    Figures  `json:"figures"`

	others Figures // of the other shards, where this is the matrix of one
}

// Figures are the totals of a matrix.
type Figures struct {
	Mutants     int `json:"mutants"`
	Killed      int `json:"killed"`
	Clean       int `json:"clean"`
	Misled      int `json:"misled"` // whose report begins with a clause that they leave whole
	Survivors   int `json:"survivors"`
	Variants    int `json:"variants"`
	FalseAlarms int `json:"false_alarms"`
	Again       int `json:"tested_again"` // after an unexpected outcome
}

// newMatrix makes a matrix of the rows. tested are the clauses that were tested on any of them.
func newMatrix(rows []Row, tested []contract.Clause) Matrix {
	m := Matrix{Rows: rows, Unproven: []string{}}
	kills := map[string]bool{} // clauses that a mutant was killed by
	for _, r := range rows {
		m.Figures.Again += count(r.Again)
		if r.Correct {
			m.Figures.Variants++
			m.Figures.FalseAlarms += count(r.FalseAlarm())
			continue
		}
		m.Figures.Mutants++
		m.Figures.Killed += count(r.Killed())
		m.Figures.Clean += count(r.Clean())
		m.Figures.Misled += count(r.Misled())
		for _, id := range r.Expected {
			kills[id] = kills[id] || slices.Contains(r.Failed, id)
		}
	}
	m.Figures.Survivors = m.Figures.Mutants - m.Figures.Killed
	for _, c := range tested {
		if c.Level != contract.MAY && !kills[c.ID] {
			m.Unproven = append(m.Unproven, c.ID)
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

// minClean is the percentage of the mutants that only expected clauses must fail for: other failures in a report hide
// the fault that has to be fixed.
const minClean = 95

// mostMisled is the percentage of the mutants whose report may begin with a clause that they leave whole: who reads it begins
// at the wrong end.
const mostMisled = 2

// Good reports whether no mutant survived, every clause is proven, no correct variant was blamed, enough kills were
// clean and enough reports begin with what is broken.
func (m Matrix) Good() bool {
	f := m.Figures
	all := f.Mutants + m.others.Mutants
	return f.Survivors == 0 && f.FalseAlarms == 0 && len(m.Unproven) == 0 && (f.Clean+m.others.Clean)*100 >= minClean*all &&
		(f.Misled+m.others.Misled)*100 <= mostMisled*all
}

// WriteText writes a line for each row and clause that needs attention, then the figures.
func (m Matrix) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, r := range m.Rows {
		switch {
		case r.Problem != "":
			fmt.Fprintf(&b, "no verdict   %s: %s\n", r.Name, r.Problem)
		case r.FalseAlarm():
			fmt.Fprintf(&b, "false alarm  %s: %s\n", r.Name, strings.Join(r.Unexpected(), " "))
		case len(r.Missed()) > 0:
			fmt.Fprintf(&b, "survivor     %s: %s did not fail\n", r.Name, strings.Join(r.Missed(), " "))
		}
		if !r.Correct && len(r.Unexpected()) > 0 {
			fmt.Fprintf(&b, "not clean    %s: %s failed too\n", r.Name, strings.Join(r.Unexpected(), " "))
		}
		if r.Misled() {
			fmt.Fprintf(&b, "misled       %s: the report begins with %s\n", r.Name, r.First)
		}
	}
	for _, id := range m.Unproven {
		fmt.Fprintf(&b, "unproven     %s: it kills no mutant\n", id)
	}
	f := m.Figures
	fmt.Fprintf(&b, "%d mutants: %d killed, %d cleanly, %d survived; %d correct variants: %d false alarms; ",
		f.Mutants, f.Killed, f.Clean, f.Survivors, f.Variants, f.FalseAlarms)
	fmt.Fprintf(&b, "%d clauses unproven; %d reports begin with another clause; %d tested again; %.1f s\n",
		len(m.Unproven), f.Misled, f.Again, float64(m.DurationMS)/1000)
	_, err := io.WriteString(w, b.String())
	return err
}
