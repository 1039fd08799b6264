package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// columnWidth is how wide each of the two answers stands on the screen, in characters.
const columnWidth = 58

func newReplay() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "replay REPORT CLAUSE",
		Short: "Send the request of a failure again, and set its answers then and now side by side",
		Long: `replay sends the request that a clause's failure blames again: the one of the curl line in the report. The
credentials come from the environment variables that the line names, for example AGENT_PASSWORD.

Exit codes: 0 the answer is the same as in the report · 1 it is another.`,
		Args: someArguments(2, 2, "a report.json or a directory with one, and a clause"),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := readReport(args[0])
			if err != nil {
				return err
			}
			replayed, err := suites.Replay(cmd.Context(), report, args[1], os.Getenv, timeout)
			if err != nil {
				return err
			}
			if err := writeColumns(cmd.OutOrStdout(), replayed, columnWidth); err != nil {
				return err
			}
			if !replayed.Same {
				return exitCode(1)
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "of the request")
	return cmd
}

// writeColumns writes the two answers side by side.
func writeColumns(w io.Writer, r *suites.Replayed, width int) error {
	if _, err := fmt.Fprintf(w, "%s\n%s\n\n", r.Clause, terminal.Escape(r.Line)); err != nil {
		return err
	}
	left, right := columnOf("then, "+r.Old.At.Format(time.RFC3339), r.Old, width), columnOf("now", r.New, width)
	for i := range max(len(left), len(right)) {
		if _, err := fmt.Fprintf(w, "%s | %s\n", padded(lineAt(left, i), width), lineAt(right, i)); err != nil {
			return err
		}
	}
	verdict := "the answer is the same"
	if !r.Same {
		verdict = "the answer is another"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict)
	return err
}

// columnOf is an answer as lines of at most a width, in characters.
func columnOf(title string, e reports.Exchange, width int) []string {
	text := []string{title}
	switch {
	case e.Response == nil:
		text = append(text, "no answer: "+e.Error)
	default:
		text = append(text, fmt.Sprintf("%d %s", e.Response.Status, http.StatusText(e.Response.Status)))
		if kind := e.Response.Header["Content-Type"]; kind != "" {
			text = append(text, "Content-Type: "+kind)
		}
		text = append(text, "", e.Response.Body)
		if e.Response.Truncated > 0 {
			text = append(text, fmt.Sprintf("… and %d bytes more", e.Response.Truncated))
		}
	}
	var lines []string
	for _, part := range strings.Split(strings.Join(text, "\n"), "\n") {
		letters := []rune(terminal.Escape(part))
		for len(letters) > width {
			lines = append(lines, terminal.Escape(string(letters[:width]))) // a cut may have made a command of it
			letters = letters[width:]
		}
		lines = append(lines, terminal.Escape(string(letters)))
	}
	return lines
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-len([]rune(s))))
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
