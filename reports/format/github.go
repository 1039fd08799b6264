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

// writeAnnotations writes r's failures and warnings as GitHub workflow commands, to be printed by a step. GitHub shows
// ten of each kind, so the tenth says how many more there are.
func writeAnnotations(w io.Writer, r *reports.Report) error {
	var b strings.Builder
	annotate(&b, "error", r.With(reports.Fail, reports.Error, reports.Fixed))
	annotate(&b, "warning", append(r.With(reports.Warn), r.Blocked()...))
	for _, p := range r.BaselineProblems[:min(len(r.BaselineProblems), annotationLimit)] {
		fmt.Fprintf(&b, "::error file=%s,line=%d,title=%s::%s\n", commandProperty(p.File), p.Line, commandProperty(p.Clause), commandText(terminal.Line(p.Text, 1000)))
	}
	fmt.Fprintf(&b, "::notice title=bridgecheck::%s\n", commandText(r.Headline()))
	_, err := io.WriteString(w, b.String())
	return err
}

func annotate(b *strings.Builder, kind string, results []reports.Result) {
	for i, result := range results {
		if i == annotationLimit-1 && len(results) > annotationLimit {
			fmt.Fprintf(b, "::%s title=bridgecheck::%d more, see the job summary\n", kind, len(results)-i)
			return
		}
		fmt.Fprintf(b, "::%s title=%s::%s\n", kind, commandProperty(result.ID+" ("+string(result.Level)+")"), commandText(terminal.Clip(details(result), 2<<10)))
	}
}

// commandText escapes a workflow command's message, commandProperty one of its properties.
func commandText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(terminal.Escape(s))
}

func commandProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandText(s))
}
