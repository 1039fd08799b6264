package format

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Console shows a run to a person at a terminal. The zero value with an Out is plain text of 100 columns without live
// progress, as CI logs want it.
type Console struct {
	Out   io.Writer
	Color bool
	Width int  // columns; 0 means 100
	Live  bool // rewrite one line with the progress
}

// NewConsole fits a console to f: colour and live progress on a terminal that can do them, neither elsewhere. Getenv
// is os.Getenv or a stand-in; it follows NO_COLOR, TERM=dumb and CI.
func NewConsole(f *os.File, getenv func(string) string) *Console {
	c := &Console{Out: f}
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || getenv("TERM") == "dumb" {
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
	reports.Pass: "32", reports.Fail: "1;31", reports.Warn: "33", reports.Known: "36", reports.Fixed: "1;35", reports.NotTestable: "33", reports.NotApplicable: "2", reports.Error: "1;31",
}

// Progress shows that done of total clauses are tested, the last of them with this result. A failure stays on the screen; all else is
// one line that the next call rewrites. Without Live it shows nothing.
func (c *Console) Progress(done, total int, last reports.Result) {
	if !c.Live {
		return
	}
	c.ClearProgress()
	if last.Verdict == reports.Fail || last.Verdict == reports.Error {
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

// Summary shows what a person can act on after a run whose report was written to dir: each failure, warning and
// untested MUST with its details, the counts, and the outcome as the last line.
func (c *Console) Summary(r *reports.Report, dir string) error {
	var b strings.Builder
	c.entries(&b, entriesOf(r, append(r.With(reports.Fail, reports.Error, reports.Fixed), r.With(reports.Warn)...)), dir)
	c.entries(&b, entriesOf(r, r.Blocked()), dir)
	for _, result := range r.Unseen() {
		fmt.Fprintf(&b, "%s  %s  %s\n", c.paint(colours[reports.NotTestable], "NOT SEEN"), c.paint("1", result.ID), terminal.Escape(result.Message))
	}
	for _, p := range r.BaselineProblems {
		fmt.Fprintf(&b, "%s %s:%d: %s: %s\n\n", c.paint(colours[reports.Fail], "BASELINE"), terminal.Escape(p.File), p.Line, terminal.Escape(p.Clause), terminal.Escape(p.Text))
	}
	s := r.Counted()
	var counts []string
	for _, v := range []reports.Verdict{reports.Pass, reports.Fail, reports.Error, reports.Fixed, reports.Warn, reports.Known, reports.NotTestable, reports.NotApplicable} {
		if n := s.Count(v); n > 0 {
			counts = append(counts, c.paint(colours[v], fmt.Sprintf("%d %s", n, words[v])))
		}
	}
	fmt.Fprintf(&b, "%s in %.2f s · %s · seed %d\n", strings.Join(counts, ", "), float64(r.DurationMS)/1000, terminal.Escape(r.Target.Title()), r.Seed)
	if dir != "" {
		fmt.Fprintf(&b, "report: %s\n", filepath.Join(dir, "report.html"))
	}
	if cause, ok := r.FirstCause(); ok {
		fmt.Fprintf(&b, "fix this first: %s\n", terminal.Escape(cause.Explains(r)))
	}
	if first, ok := r.First(); ok {
		fmt.Fprintf(&b, "begin with: %s · bridgecheck checks explain %[1]s\n", first.ID)
	}
	colour := map[reports.State]string{reports.Conformant: "1;32", reports.Partial: "1;33", reports.NotConformant: "1;31"}[r.State().Kind()]
	fmt.Fprintln(&b, c.paint(colour, r.Headline()))
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
		fmt.Fprintf(b, "%s  %s%s  %s\n", c.paint(colours[r.Verdict], strings.ToUpper(words[r.Verdict])), c.paint("1", r.ID), e.more(), c.fit(r.Message, utf8.RuneCountInString(head)))
	}
	if len(entries) > wholeFindings {
		b.WriteString("\n")
	}
}

func (c *Console) finding(b *strings.Builder, e entry, dir string) {
	r := e.Result
	fmt.Fprintf(b, "%s  %s  %s\n", c.paint(colours[r.Verdict], strings.ToUpper(words[r.Verdict])), c.paint("1", r.ID), r.Level)
	if r.Text != "" {
		c.field(b, "", c.wrap(terminal.Line(r.Text, valueBytes)))
	}
	c.field(b, "", c.wrap(terminal.Escape(terminal.Clip(r.Subject(), valueBytes))))
	c.field(b, "expected", terminal.Escape(terminal.Clip(r.Expected, valueBytes)))
	c.field(b, "got", terminal.Escape(terminal.Clip(r.Actual, valueBytes)))
	c.field(b, "to do", c.wrapped(terminal.Escape(terminal.Clip(r.Remedy, valueBytes)), fieldIndent))
	if len(r.Curl) <= curlBytes {
		c.field(b, "repeat", terminal.Escape(r.Curl))
	}
	if dir != "" && len(r.Evidence) > 0 {
		c.field(b, "evidence", filepath.Join(dir, "report.html")+"#"+r.ID)
	}
	if len(e.same) > 0 {
		c.field(b, "same", c.wrapped(terminal.Escape(e.cause)+", also of "+strings.Join(e.same, ", "), fieldIndent))
	}
	b.WriteString("\n")
}

// field writes a named value, indented; a value of many lines is cut.
func (c *Console) field(b *strings.Builder, name, value string) {
	if value == "" {
		return
	}
	lines := strings.Split(strings.TrimRight(value, "\n"), "\n")
	if over := len(lines) - valueLines; over > 0 {
		lines = append(lines[:valueLines], fmt.Sprintf("… %d more", over))
	}
	indent := "  "
	if name != "" {
		indent = strings.Repeat(" ", fieldIndent)
		fmt.Fprintf(b, "  %s", c.paint("2", fmt.Sprintf("%-10s", name)))
		b.WriteString(lines[0] + "\n")
		lines = lines[1:]
	}
	for _, l := range lines {
		fmt.Fprintf(b, "%s%s\n", indent, l)
	}
}

// wrap makes one paragraph of text and breaks it at blanks so that it fits the width with the smallest indent.
func (c *Console) wrap(s string) string {
	return c.wrapped(strings.Join(strings.Fields(s), " "), 2)
}

// wrapped breaks each line of s at blanks so that it fits the width with its indent.
func (c *Console) wrapped(s string, indent int) string {
	width := max(c.width()-indent-2, 20)
	var b strings.Builder
	for i, paragraph := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		column := 0
		for j, word := range strings.Fields(paragraph) {
			n := utf8.RuneCountInString(word)
			switch {
			case j == 0:
			case column+1+n > width:
				b.WriteString("\n")
				column = 0
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
		return 100
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
