package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/curl"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// keptStage is a stage that --keep leaves up, with the report of its pass.
type keptStage struct {
	*stage
	profile string // of the reference bridge; "" for another bridge
	report  *reports.Report
}

// closeKept stops what --keep left up.
func (p *plan) closeKept() {
	for _, k := range p.kept {
		k.close()
	}
}

// hold prints what is up and waits: Enter on stdin sends the blamed request of each failed clause again, q ends, and so
// does the end of the command's context. After stdin has ended it waits for that alone.
func (p *plan) hold(cmd *cobra.Command, whole *reports.Report) error {
	ctx, out := cmd.Context(), cmd.ErrOrStderr()
	if ctx.Err() != nil {
		return nil
	}
	for _, k := range p.kept {
		if err := k.describe(out); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "Enter sends the request of each failed clause again; q and Enter, or Ctrl-C, ends.")
	lines := make(chan string)
	go func() { // it ends with the process where nobody types
		typed := bufio.NewScanner(cmd.InOrStdin())
		for typed.Scan() {
			select {
			case lines <- typed.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-lines:
			if strings.TrimSpace(line) == "q" {
				return nil
			}
			sent := 0
			for _, k := range p.kept {
				sent += k.resend(cmd, whole)
			}
			if sent == 0 {
				fmt.Fprintln(out, "no clause failed: there is no request to send again")
			}
		}
	}
}

// describe prints the addresses of a kept stage and the accounts of its mock. It opens the control plane.
func (k *keptStage) describe(out io.Writer) error {
	plane, addr, err := k.drupal.ListenControl("127.0.0.1:0", "")
	if err != nil {
		return fmt.Errorf("open the control plane: %w", err)
	}
	k.stops = append(k.stops, func() { plane.Close() })
	site := k.siteURL
	if site == "" { // the reference bridge has its site in this process
		server, err := k.drupal.Listen("127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("serve the mock Drupal: %w", err)
		}
		k.stops = append(k.stops, func() { server.Close() })
		site = server.URL
	}
	name := "the bridge"
	if k.profile != "" {
		name = "the reference bridge, profile " + k.profile
	}
	fmt.Fprintf(out, "\n%s is up:\n  bridge         %s\n  mock Drupal    %s\n  control plane  http://%s%s\n  accounts\n", name, terminal.Escape(k.target.URL), site, addr, control.Prefix)
	t := newTable(out)
	for _, u := range k.drupal.Site().Users {
		if u.Password == "" {
			continue
		}
		token := ""
		if len(u.Tokens) > 0 {
			token = "token " + u.Tokens[0].Value
		}
		t.row("    "+u.Name, u.Password, token)
	}
	return t.Flush()
}

// resend sends the blamed request of each clause that failed on k again and prints the results. It returns their number.
func (k *keptStage) resend(cmd *cobra.Command, whole *reports.Report) int {
	failed := map[string]bool{}
	for _, r := range whole.With(reports.Fail, reports.Warn, reports.Error) { // not those that a baseline excuses
		failed[r.ID] = true
	}
	sent := 0
	for _, r := range k.report.With(reports.Fail, reports.Warn, reports.Error) {
		if !failed[r.ID] {
			continue
		}
		sent++
		result := ""
		replayed, err := engine.Replay(cmd.Context(), engine.ReplayOptions{
			Report: k.report, Clause: r.ID, Accounts: accountsOf(k.drupal), Getenv: secretsOf(k.drupal), Timeout: requestTimeout,
		})
		if err != nil {
			result = "not sent: " + strings.TrimPrefix(err.Error(), r.ID+": ")
		} else {
			result = fmt.Sprintf("%s: %s\n  %s", map[bool]string{true: "the same response", false: "another response"}[replayed.Same],
				inOneLine(replayed.New), replayed.Line)
		}
		for i, line := range strings.Split(r.ID+": "+result, "\n") {
			if i > 0 && strings.TrimSpace(line) == "" {
				continue // no curl line holds this request
			}
			fmt.Fprintln(cmd.ErrOrStderr(), terminal.Escape(line))
		}
	}
	return sent
}

// inOneLine is the response of an exchange, cut to a line.
func inOneLine(e reports.Exchange) string {
	if e.Response == nil {
		return "no response: " + e.Error
	}
	return fmt.Sprintf("%d %s %s", e.Response.Status, http.StatusText(e.Response.Status), terminal.Line(e.Response.Body, 200))
}

// accountsOf lists the accounts of a mock.
func accountsOf(drupal *mockdrupal.Drupal) []check.Identity {
	var all []check.Identity
	for _, u := range drupal.Site().Users {
		all = append(all, check.Identity(u.Name))
	}
	return all
}

// secretsOf stands in for the environment: it has the variables of a mock's accounts and no others.
func secretsOf(drupal *mockdrupal.Drupal) func(string) string {
	return func(variable string) string {
		for _, u := range drupal.Site().Users {
			switch variable {
			case curl.Name(u.Name + "_password"):
				return u.Password
			case curl.Name(u.Name + "_cookie"):
				return drupal.OpenSession(u.Name)
			case curl.Name(u.Name + "_token"):
				if len(u.Tokens) > 0 {
					return u.Tokens[0].Value
				}
			}
		}
		return ""
	}
}
