package format

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Console shows a run to a person at a terminal. The zero value with an Out is plain text of 80 columns without live
// progress, as CI logs want it.
type Console struct {
	Out     io.Writer
	Color   bool
	Width   int    // columns; 0 means 80
	Live    bool   // rewrite one line with the progress
	Verbose bool   // keep each failure on the screen while the run goes on
	Next    string // what to run after a run without a fault; "": nothing
	Program string // as the user calls it, for the commands that are shown; "": bridgecheck
	Again   string // the command that tests the same bridge; "": none is shown
}

// NewConsole fits a console to f: colour and live progress on a terminal that can do them, neither elsewhere. Getenv
// is os.Getenv or a stand-in; it follows NO_COLOR, TERM=dumb, CI and, where there is no terminal, COLUMNS.
func NewConsole(f *os.File, getenv func(string) string) *Console {
	c := &Console{Out: f}
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || getenv("TERM") == "dumb" {
		if columns, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns >= 40 {
			c.Width = columns
		}
		return c
	}
	c.Color = getenv("NO_COLOR") == ""
	c.Live = getenv("CI") == ""
	if width, _, err := term.GetSize(fd); err == nil {
		c.Width = width
	}
	return c
}

// colours of the verdicts and of dim text, as SGR parameters.
var colours = map[reports.Verdict]string{
	reports.Pass: "32", reports.Fail: "1;31", reports.Warn: "33", reports.Known: "36", reports.Fixed: "1;35", reports.NotTestable: "33",
	reports.NotApplicable: "2", reports.Error: "1;31",
}

// Progress shows that done of total clauses are tested, the last of them with this result, in one line that the next
// call rewrites; with Verbose a failure stays on the screen. Without Live it shows nothing.
func (c *Console) Progress(done, total int, last reports.Result) {
	if !c.Live {
		return
	}
	c.ClearProgress()
	if c.Verbose && (last.Verdict == reports.Fail || last.Verdict == reports.Error) {
		fmt.Fprintf(c.Out, "%s %s %s\n", c.paint(colours[last.Verdict], strings.ToUpper(string(last.Verdict))), last.ID, c.fit(last.Message, len(last.ID)+8))
	}
	prefix := fmt.Sprintf("[%d/%d] ", done, total)
	fmt.Fprint(c.Out, prefix, c.fit(last.ID, len(prefix)))
}

// ClearProgress takes the progress line away.
func (c *Console) ClearProgress() {
	if c.Live {
		fmt.Fprint(c.Out, "\r\x1b[K")
	}
}

// summaryLines is how many lines a summary has at most, so that a screen shows all of it.
const summaryLines = 25

// leftOver is how many columns of two lines are for their indent, and for a word that does not fit at the end of the first.
const leftOver = 12

// summaryCauses is how many causes a summary shows.
const summaryCauses = 3

// Summary shows on one screen what a person has to know after a run whose report was written to dir (empty: to none): the
// gravest causes, the counts, whose fault it is, the next command, and the outcome as the last line. Details has the rest.
func (c *Console) Summary(r *reports.Report, dir string) error {
	r = r.Escaped()
	tail := c.outcome(r, dir)
	var causes []string
	for _, room := range []struct{ shown, most int }{{summaryCauses, 4}, {summaryCauses, 3}, {summaryCauses, 2}, {2, 2}, {1, 3}, {1, 2}, {1, 1}} {
		if causes = c.causes(r, room.shown, room.most); len(causes)+len(tail) <= summaryLines {
			break
		}
	}
	if over := len(causes) + len(tail) - summaryLines; over > 0 {
		causes = append(causes[:len(causes)-over-1], "… more in the report")
	}
	_, err := io.WriteString(c.Out, strings.Join(append(causes, tail...), "\n")+"\n")
	return err
}

// causes shows the first cause with what it takes to fix it, the next ones, up to so many, in three lines, and how many more there
// are. A text has at most most lines.
func (c *Console) causes(r *reports.Report, number, most int) []string {
	groups := distinct(r.Groups())
	var lines, shown []string
	for i, g := range groups[:min(len(groups), number)] {
		if slices.Contains(shown, g.Clause) { // by another cause
			g.Clause = g.Clauses[slices.IndexFunc(g.Clauses, func(id string) bool { return !slices.Contains(shown, id) })]
		}
		shown = append(shown, g.Clause)
		result, _ := r.Result(g.Clause)
		head := fmt.Sprintf("%s  %s  %s", c.paint(colours[result.Verdict], strings.ToUpper(words[result.Verdict])), c.paint("1", result.ID), result.Level)
		if n := len(g.Clauses) - 1; n > 0 {
			head += fmt.Sprintf("  and %d more", n)
		}
		lines = append(lines, head)
		if i > 0 {
			lines = append(lines, c.block("", result.BriefIn(2*c.width()-leftOver), 2)...)
			continue
		}
		lines = append(lines, c.block("", result.Text, most)...)
		lines = append(lines, c.block("", result.Subject(), most)...)
		lines = append(lines, c.block("expected", result.Expected, min(most, 2))...)
		lines = append(lines, c.block("got", result.Actual, min(most, 2))...)
		lines = append(lines, c.block("to do", g.Remedy, most)...)
	}
	if more := len(groups) - number; len(r.With(reports.Fail, reports.Error, reports.Fixed)) == 0 && len(r.Blocked()) == 0 {
		lines = append(lines, c.warned(r, shown)...)
	} else if more > 0 {
		noun := "causes"
		if more == 1 {
			noun = "cause"
		}
		lines = append(lines, fmt.Sprintf("… and %d more %s in the report", more, noun))
	}
	if n := len(r.Unseen()); n > 0 {
		lines = append(lines, fmt.Sprintf("%s  %d MUSTs need to see more than the front side", c.paint(colours[reports.NotTestable], "NOT SEEN"), n))
	}
	for _, p := range r.BaselineProblems[:min(len(r.BaselineProblems), 2)] {
		for i, line := range c.cutAt(c.wrapped(strings.TrimPrefix(baselineLine(p), baselineHead), len(baselineHead)), 2) {
			lines = append(lines, []string{baselineHead, strings.Repeat(" ", len(baselineHead))}[i]+line)
		}
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	return lines
}

// warned names the clauses with a warning beside those that are shown: where nothing else is wrong, there are few.
func (c *Console) warned(r *reports.Report, shown []string) []string {
	var ids []string
	for _, result := range r.With(reports.Warn) {
		if !slices.Contains(shown, result.ID) {
			ids = append(ids, result.ID)
		}
	}
	if ids == nil {
		return nil
	}
	return c.cutAt(c.wrapped("also "+words[reports.Warn]+": "+strings.Join(ids, ", "), 0), 6)
}

// distinct leaves out the groups whose clauses all stand in groups before them.
func distinct(groups []reports.Group) []reports.Group {
	seen := map[string]bool{}
	return slices.DeleteFunc(groups, func(g reports.Group) bool {
		is := false
		for _, clause := range g.Clauses {
			is = is || !seen[clause]
			seen[clause] = true
		}
		return !is
	})
}

const baselineHead = "BASELINE  "

func baselineLine(p reports.BaselineProblem) string {
	return fmt.Sprintf(baselineHead+"%s:%d: %s: %s", p.File, p.Line, p.Clause, p.Text)
}

// outcome is how a run ended: counts, report, whose fault it is, where to begin, and the verdict.
func (c *Console) outcome(r *reports.Report, dir string) []string {
	s := r.Counted()
	var counts []string
	for _, v := range []reports.Verdict{reports.Pass, reports.Fail, reports.Error, reports.Fixed, reports.Warn, reports.Known, reports.NotTestable, reports.NotApplicable} {
		if n := s.Count(v); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, words[v]))
		}
	}
	target := terminal.Line(r.Target.Title(), 100)
	if r.Target.Proxy != "" {
		target += " behind " + terminal.Line(r.Target.Proxy, 60)
	}
	lines := c.cutAt(c.wrapped(fmt.Sprintf("%s in %.2f s · %s · seed %d", strings.Join(counts, ", "), float64(r.DurationMS)/1000, target, r.Seed), 0), 3)
	if dir != "" {
		lines = append(lines, "report: "+filepath.Join(dir, "report.html"))
	}
	if fault := r.AtFault(); len(fault) > 0 {
		lines = append(lines, c.cutAt(c.wrapped("at fault: "+strings.Join(fault, ", "), 0), 2)...)
	}
	if cause, ok := r.FirstCause(); ok {
		lines = append(lines, c.cutAt(c.wrapped("fix this first: "+cause.Explains(r), 0), 2)...)
	}
	if first, ok := r.First(); ok && first.Verdict == reports.Fixed {
		lines = append(lines, "begin with: remove "+first.ID+" from the baseline")
	} else if ok {
		begin, explain := "begin with: "+first.ID+" ·", cmp.Or(c.Program, "bridgecheck")+" checks explain "+first.ID
		if c.Width == 0 || len(begin)+len(explain) < c.Width {
			begin, explain = begin+" "+explain, ""
		}
		lines = append(lines, begin)
		if explain != "" { // a command stays whole
			lines = append(lines, explain)
		}
		if c.Again != "" {
			again := "again: " + c.Again + " --only " + first.ID
			if first.During != "" {
				again += " --only " + first.During
			}
			lines = append(lines, again)
		}
	} else if c.Next != "" && r.ExitCode() == 0 {
		lines = append(lines, "next: "+c.Next)
	}
	colour := map[reports.State]string{reports.Conformant: "1;32", reports.Partial: "1;33", reports.NotConformant: "1;31"}[r.State().Kind()]
	return append(lines, c.paint(colour, r.Headline()))
}

// Details shows each failure, warning and untested MUST of a run with its details, and then how it ended. What fails stands
// last, next to the outcome, where a reader looks first.
func (c *Console) Details(r *reports.Report, dir string) error {
	r = r.Escaped()
	var b strings.Builder
	for _, result := range r.Unseen() {
		fmt.Fprintf(&b, "%s  %s  %s\n", c.paint(colours[reports.NotTestable], "NOT SEEN"), c.paint("1", result.ID), c.fit(result.Message, len(result.ID)+12))
	}
	c.entries(&b, entriesOf(r, r.Blocked()), dir)
	c.entries(&b, entriesOf(r, append(r.With(reports.Warn), r.With(reports.Fail, reports.Error, reports.Fixed)...)), dir)
	for _, p := range r.BaselineProblems {
		b.WriteString(c.wrapped(baselineLine(p), 2) + "\n\n")
	}
	for _, m := range r.Measured {
		b.WriteString(c.wrapped("MEASURED  "+m.String(), 2) + "\n")
	}
	b.WriteString(strings.Join(c.outcome(r, dir), "\n") + "\n")
	_, err := io.WriteString(c.Out, b.String())
	return err
}

// Bounds of what the terminal shows of one value; the report has it whole. A curl line is shown whole or not at all.
const (
	valueLines = 12
	valueBytes = 2 << 10
	curlBytes  = 1 << 10
)

// fieldIndent is the column at which a named value stands.
const fieldIndent = 12

// wholeFindings is how many entries of a kind are shown in full; the others have a line each.
const wholeFindings = 12

// entries writes each entry in full, and those beyond a number in one line.
func (c *Console) entries(b *strings.Builder, entries []entry, dir string) {
	for i, e := range entries {
		if i < wholeFindings {
			c.finding(b, e, dir)
			continue
		}
		r := e.Result
		head := fmt.Sprintf("%s  %s%s  ", strings.ToUpper(words[r.Verdict]), r.ID, e.more())
		fmt.Fprintf(b, "%s  %s%s  %s\n", c.paint(colours[r.Verdict], strings.ToUpper(words[r.Verdict])), c.paint("1", r.ID), e.more(),
			c.fit(r.Message, utf8.RuneCountInString(head)))
	}
	if len(entries) > wholeFindings {
		b.WriteString("\n")
	}
}

func (c *Console) finding(b *strings.Builder, e entry, dir string) {
	r := e.Result
	fmt.Fprintf(b, "%s  %s  %s\n", c.paint(colours[r.Verdict], strings.ToUpper(words[r.Verdict])), c.paint("1", r.ID), r.Level)
	c.field(b, "", r.Text)
	c.field(b, "", r.Subject())
	c.field(b, "expected", r.Expected)
	c.field(b, "got", r.Actual)
	c.field(b, "to do", r.Remedy)
	if r.Curl != "" && len(r.Curl) <= curlBytes {
		fmt.Fprintf(b, "  %s%s\n", c.paint("2", "repeat    "), r.Curl)
	}
	if dir != "" && len(r.Evidence) > 0 {
		c.field(b, "evidence", filepath.Join(dir, "report.html")+"#"+r.ID)
	}
	if len(e.same) > 0 {
		c.field(b, "same", e.cause+", also of "+strings.Join(e.same, ", "))
	}
	b.WriteString("\n")
}

func (c *Console) field(b *strings.Builder, name, value string) {
	for _, line := range c.block(name, value, valueLines) {
		b.WriteString(line + "\n")
	}
}

// block is a named value as lines of the width, indented, at most so many. Without a name it is one paragraph.
func (c *Console) block(name, value string, most int) []string {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	value = terminal.Clip(value, valueBytes)
	indent := strings.Repeat(" ", fieldIndent)
	if name == "" {
		indent, value = "  ", strings.Join(strings.Fields(value), " ")
	}
	lines := c.cutAt(c.wrapped(strings.TrimRight(value, "\n"), len(indent)), most)
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	if name != "" {
		lines[0] = "  " + c.paint("2", fmt.Sprintf("%-*s", fieldIndent-2, name)) + lines[0][fieldIndent:]
	}
	return lines
}

// cutAt splits text into at most most lines; the last one says that there is more.
func (c *Console) cutAt(text string, most int) []string {
	lines := strings.Split(text, "\n")
	if len(lines) <= most {
		return lines
	}
	lines = lines[:most]
	last := c.fit(lines[most-1], fieldIndent+2)
	if len(last) < len(lines[most-1]) { // between words, or where a long one has no letter
		if blank := strings.LastIndexByte(last, ' '); blank > len(last)/2 {
			last = last[:blank]
		} else if sign := strings.LastIndexFunc(last, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }); sign > len(last)/2 {
			last = last[:sign]
		}
	}
	lines[most-1] = strings.TrimRight(last, " ") + " …"
	return lines
}

// wrapped breaks each line of s that does not fit the width with its indent, at blanks; a word that is too long stays whole.
func (c *Console) wrapped(s string, indent int) string {
	width := max(c.width()-indent, 20)
	var b strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		if utf8.RuneCountInString(line) <= width {
			b.WriteString(line)
			continue
		}
		margin := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		column := len(margin)
		b.WriteString(margin)
		for j, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case j == 0:
			case column+1+n > width:
				b.WriteString("\n" + margin)
				column = len(margin)
			default:
				b.WriteString(" ")
				column++
			}
			b.WriteString(word)
			column += n
		}
	}
	return b.String()
}

// fit cuts s to what remains of one line after used columns.
func (c *Console) fit(s string, used int) string {
	runes := []rune(terminal.Line(s, 4*c.width()))
	if room := max(c.width()-used-1, 0); len(runes) > room {
		runes = runes[:room]
	}
	return string(runes)
}

func (c *Console) width() int {
	if c.Width == 0 {
		return 80
	}
	return c.Width
}

func (c *Console) paint(sgr, s string) string {
	if !c.Color {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

func writeConsole(w io.Writer, r *reports.Report) error { return (&Console{Out: w}).Summary(r, "") }
