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

// columnWidth is how wide each of the two responses stands on the screen, in characters.
const columnWidth = 58

// requestTimeout is how long the response to a request that is sent again may take, unless --timeout says otherwise.
const requestTimeout = 10 * time.Second

func newReplay() *cobra.Command {
	o := suites.ReplayOptions{Getenv: os.Getenv}
	r := restart{}
	cmd := &cobra.Command{
		Use:   "replay REPORT CLAUSE",
		Short: "Send the request of a failure again and show its responses then and now side by side",
		Long: `replay sends the request that a clause's failure blames again, once. It sends it to the report's target and nowhere
else; --to names another bridge to send it to.

The credentials come from environment variables, of which replay reads no others: the identity (AGENT, AGENT2, DISCOVERER,
OUTSIDER, NORPC, BLOCKED, SERVICE, ADMIN), an underscore, and PASSWORD for HTTP Basic, TOKEN for a bearer token, COOKIE for
a session, or the name of any other header, for example AGENT_PASSWORD or SERVICE_X_API_KEY.

Where run --exec started the bridge, replay starts it again with a new mock Drupal behind it, whose accounts it has the
credentials of; accounts that the check created are created again. A report may come from anybody, so that its command
is only started with --yes, which also passes the variables that its --env named; --exec names another command.

Exit codes: 0 the response is the same as in the report · 1 it is different.`,
		Example: `  bridgecheck replay bridgecheck-report describe/unknown-404
  bridgecheck replay bridgecheck-report describe/unknown-404 --exec 'node bridge.js'
  bridgecheck replay bridgecheck-report describe/unknown-404 --to http://127.0.0.1:8081`,
		Args: someArguments(2, 2, "a report.json or a directory with one, and a clause"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Report, err = readReport(args[0]); err != nil {
				return err
			}
			o.Clause = args[1]
			replayed, err := r.replay(cmd, o)
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
	cmd.Flags().DurationVar(&o.Timeout, "timeout", requestTimeout, "of the request")
	cmd.Flags().StringVar(&o.To, "to", "", "base `URL` of the bridge to send to, in place of the report's target")
	cmd.Flags().StringVar(&r.command, "exec", "", "`command` that is the bridge: it is started, with a mock Drupal behind it, in place of the report's target")
	cmd.Flags().StringArrayVar(&r.env, "env", nil, "with --exec: `name` of a variable of this environment that the bridge receives; repeatable")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "start the command that the report holds, if run --exec started the bridge")
	return cmd
}

// writeColumns writes the two responses side by side.
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
	verdict := "the response is the same"
	if !r.Same {
		verdict = "the response is different"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict)
	return err
}

// columnOf is a response as lines of at most a width, in characters.
func columnOf(title string, e reports.Exchange, width int) []string {
	text := []string{title}
	switch {
	case e.Response == nil:
		text = append(text, "no response: "+e.Error)
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
