package format

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// GitHub reports r to a GitHub Actions job: annotations to out, which is the job's log, and summary.md to its summary.
// Elsewhere, by what getenv says (os.Getenv or a stand-in), it does nothing.
func GitHub(out io.Writer, r *reports.Report, getenv func(string) string) error {
	if getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	r = r.Escaped()
	if err := writeAnnotations(out, r); err != nil {
		return fmt.Errorf("annotate: %w", err)
	}
	path := getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the job summary: %w", err)
	}
	return errors.Join(writeMarkdown(f, r), f.Close())
}

// annotationLimit is how many annotations of one kind GitHub shows for a step.
const annotationLimit = 10

// writeAnnotations writes r's failures and warnings as GitHub workflow commands, one a cause, to be printed by a step.
// GitHub shows ten of each kind, so the tenth says how many more there are; the log has those as plain lines.
func writeAnnotations(w io.Writer, r *reports.Report) error {
	var b strings.Builder
	annotate(&b, "error", entriesOf(r, r.With(reports.Fail, reports.Error, reports.Fixed)))
	annotate(&b, "warning", entriesOf(r, append(r.With(reports.Warn), r.Blocked()...)))
	for _, p := range r.BaselineProblems[:min(len(r.BaselineProblems), annotationLimit)] {
		fmt.Fprintf(&b, "::error file=%s,line=%d,title=%s::%s\n", commandProperty(p.File), p.Line, commandProperty(p.Clause),
			commandText(terminal.Line(p.Text, 1000)))
	}
	if cause, ok := r.FirstCause(); ok {
		fmt.Fprintf(&b, "::notice title=fix this first::%s\n", commandText(cause.Explains(r)+": "+strings.Join(cause.Clauses, ", ")))
	}
	fmt.Fprintf(&b, "::notice title=bridgecheck::%s\n", commandText(r.Headline()))
	_, err := io.WriteString(w, b.String())
	return err
}

func annotate(b *strings.Builder, kind string, entries []entry) {
	for i, e := range entries {
		if i == annotationLimit-1 && len(entries) > annotationLimit {
			fmt.Fprintf(b, "::%s title=bridgecheck::%d more, see the log and the job summary\n", kind, len(entries)-i)
			for _, e := range entries[i:] {
				fmt.Fprintf(b, "%s: %s%s: %s\n", kind, e.ID, e.more(), terminal.Line(e.Message, 500))
			}
			return
		}
		text := details(e.Result)
		if len(e.same) > 0 {
			text = fmt.Sprintf("%s: also of %s\n%s", e.cause, strings.Join(e.same, ", "), text)
		}
		fmt.Fprintf(b, "::%s title=%s::%s\n", kind, commandProperty(e.ID+e.more()+" ("+string(e.Level)+")"), commandText(terminal.Clip(text, 2<<10)))
	}
}

// commandText escapes a workflow command's message, commandProperty one of its properties.
func commandText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func commandProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandText(s))
}
