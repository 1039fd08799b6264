package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// Change is what became of one clause between two reports.
type Change struct {
	ID      string  `json:"id"`
	Level   Level   `json:"level"`
	Old     Verdict `json:"old,omitempty"` // empty: the older report does not have the clause
	New     Verdict `json:"new,omitempty"` // empty: the newer report does not have the clause
	Message string  `json:"message,omitempty"`
}

// Comparison is the difference between two reports. Each clause that is not the same in both, or fails in both, stands in one list.
type Comparison struct {
	Old          Side     `json:"old"`
	New          Side     `json:"new"`
	NewlyFailing []Change `json:"newly_failing"` // fails now and did not: the regressions
	Fixed        []Change `json:"fixed"`         // failed, and is kept now
	StillFailing []Change `json:"still_failing"`
	Changed      []Change `json:"changed"`  // another verdict, neither of them a new failure nor a repair
	Unjudged     []Change `json:"unjudged"` // left out of one of the runs by filters or by its early end
	Ledger       []Change `json:"ledger"`   // the contract changed: added, dropped or reworded
}

// Side is one of the two reports of a comparison.
type Side struct {
	Target   Target `json:"target"`
	Ledger   string `json:"ledger"`
	Started  string `json:"started"`
	Headline string `json:"headline"`
}

// Compare finds what changed from old to new. It keeps apart what the contract changed and what the bridge changed: a
// clause that is new, gone or worded or levelled differently is never a regression.
func Compare(old, new *Report) *Comparison {
	c := &Comparison{
		Old: side(old), New: side(new),
		NewlyFailing: []Change{}, Fixed: []Change{}, StillFailing: []Change{}, Changed: []Change{}, Unjudged: []Change{}, Ledger: []Change{},
	}
	before := map[string]Result{}
	for _, r := range old.Results {
		before[r.ID] = r
	}
	for _, r := range new.Results {
		was, known := before[r.ID]
		delete(before, r.ID)
		if !known {
			was = Result{}
		}
		c.add(old, was, r)
	}
	for _, r := range old.Results {
		if _, gone := before[r.ID]; gone {
			c.drop(new, r)
		}
	}
	return c
}

func (c *Comparison) add(old *Report, was, is Result) {
	change := Change{ID: is.ID, Level: is.Level, Old: was.Verdict, New: is.Verdict, Message: terminal.VisibleLine(is.Brief(), 500)}
	failed, fails := was.Verdict == Fail || was.Verdict == Known, is.Verdict == Fail
	switch {
	case was.Verdict == "" && !old.Whole():
		c.Unjudged = append(c.Unjudged, change)
	case was.Verdict == "", was.Level != is.Level, was.Text != is.Text && was.Text != "":
		c.Ledger = append(c.Ledger, change)
	case failed && (fails || is.Verdict == Known):
		c.StillFailing = append(c.StillFailing, change)
	case fails:
		c.NewlyFailing = append(c.NewlyFailing, change)
	case failed && (is.Verdict == Pass || is.Verdict == Fixed):
		c.Fixed = append(c.Fixed, change)
	case was.Verdict != is.Verdict:
		c.Changed = append(c.Changed, change)
	}
}

func (c *Comparison) drop(new *Report, was Result) {
	change := Change{ID: was.ID, Level: was.Level, Old: was.Verdict}
	if !new.Whole() {
		c.Unjudged = append(c.Unjudged, change)
		return
	}
	c.Ledger = append(c.Ledger, change)
}

// Whole holds for a run that has every clause: no filter left one out, and it did not end early.
func (r *Report) Whole() bool { return !r.Filtered && r.Sample == 0 && r.CutShort == "" }

func side(r *Report) Side {
	return Side{Target: r.Target, Ledger: r.Ledger.Name(), Started: r.Started.UTC().Format("2006-01-02 15:04 MST"), Headline: r.Headline()}
}

// ExitCode is 1 when the newer report has a regression, else 0.
func (c *Comparison) ExitCode() int {
	if len(c.NewlyFailing) > 0 {
		return 1
	}
	return 0
}

// ChangeGroup is one list of a comparison with its title.
type ChangeGroup struct {
	Title   string
	Changes []Change
}

// Groups returns the lists that are not empty, regressions first.
func (c *Comparison) Groups() []ChangeGroup {
	var groups []ChangeGroup
	for _, g := range []ChangeGroup{
		{"Newly failing", c.NewlyFailing}, {"Fixed", c.Fixed}, {"Still failing", c.StillFailing},
		{"Other verdict", c.Changed}, {"Not in both runs", c.Unjudged}, {"The contract changed", c.Ledger},
	} {
		if len(g.Changes) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// Bounds of a comparison as text: a line fits a terminal, and each kind of change a screen.
const (
	diffWidth = 80
	diffLines = 50
)

// WriteText writes c for a terminal or a log, in lines of at most diffWidth characters but for names that are longer. It shows
// diffLines changes of a kind.
func (c *Comparison) WriteText(w io.Writer) error {
	c = c.Escaped()
	var b strings.Builder
	for _, s := range []struct {
		name string
		side Side
	}{{"old", c.Old}, {"new", c.New}} {
		fmt.Fprintf(&b, "%s  %s, %s\n     contract %s\n     %s\n", s.name, shortened(s.side.Target.Title(), diffWidth-30), s.side.Started,
			shortened(s.side.Ledger, diffWidth-15), shortened(s.side.Headline, diffWidth-6))
	}
	for _, g := range c.Groups() {
		fmt.Fprintf(&b, "\n%s (%d)\n", g.Title, len(g.Changes))
		for _, change := range g.Changes[:min(len(g.Changes), diffLines)] {
			fmt.Fprintf(&b, "  %s %s: %s → %s\n", change.ID, change.Level, cmp.Or(string(change.Old), "absent"), cmp.Or(string(change.New), "absent"))
			if change.Message != "" {
				fmt.Fprintf(&b, "    %s\n", shortened(terminal.Line(change.Message, 4*diffWidth), diffWidth-5))
			}
		}
		if more := len(g.Changes) - diffLines; more > 0 {
			fmt.Fprintf(&b, "  … and %d more; --json has all\n", more)
		}
	}
	if len(c.Groups()) == 0 {
		b.WriteString("\nno difference\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
