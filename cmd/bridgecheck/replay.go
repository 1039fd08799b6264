package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// columnWidth is how wide each of the two responses stands on the screen, in characters.
const columnWidth = 58

// requestTimeout is how long the response to a request that is sent again may take, unless --timeout says otherwise.
const requestTimeout = 10 * time.Second

func newReplay() *cobra.Command {
	o := engine.ReplayOptions{Getenv: os.Getenv}
	r := restart{}
	cmd := &cobra.Command{
		Use:   "replay REPORT CLAUSE",
		Short: "Send the request of a failure again and show its responses then and now side by side",
		Long: `replay sends the request that caused a clause's failure again, once. It sends it to the report's
target and nowhere else; --to names another bridge to send it to.

A report may come from anybody, so credentials go without a question to this machine and to the
bridge of your own --config alone. To any other host replay names the host, the identity and the
header, and asks; where there is no terminal to ask on, give --to URL --yes.

The credentials come from environment variables, and replay reads no others. Their names are an
identity (AGENT, AGENT2, DISCOVERER, OUTSIDER, NORPC, BLOCKED, SERVICE, ADMIN), an underscore, and
PASSWORD for HTTP Basic, TOKEN for a bearer token, COOKIE for a session, or the name of any other
header: for example AGENT_PASSWORD or SERVICE_X_API_KEY.

If run --exec started the bridge, replay starts it again with a new mock Drupal behind it and uses
the mock's credentials; accounts that the check created are created again. A report may come from
anybody, so its command is only started with --yes, which also passes the variables that its --env
named; --exec names another command.

Exit codes: 0 the response is the same as in the report, so the failure is still there · 1 it is
different. The last line says it in words.`,
		Example: `  bridgecheck replay bridgecheck-report describe/unknown-404
  bridgecheck replay bridgecheck-report describe/unknown-404 --exec 'node bridge.js'
  bridgecheck replay bridgecheck-report describe/unknown-404 --to http://127.0.0.1:8081`,
		Args:              someArguments(2, 2, "a report.json or a directory with one, and a clause"),
		ValidArgsFunction: completeReplay,
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
	cmd.Flags().DurationVar(&o.Timeout, "timeout", requestTimeout, "time limit of the request")
	cmd.Flags().StringVar(&o.To, "to", "", "base `URL` of the bridge to send to, in place of the report's target")
	cmd.Flags().StringVar(&r.command, "exec", "", "`command` that starts a bridge, with a mock Drupal behind it, to send to in place of the report's target")
	cmd.Flags().StringArrayVar(&r.env, "env", nil, "with --exec: `name` of an environment variable to pass to the bridge; repeatable")
	cmd.Flags().StringVar(&r.config, "config", "", "your configuration `file`: its url receives credentials without a question")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "start the command that the report names, if run --exec started the bridge; with --to, send credentials there without a question")
	return cmd
}

// writeColumns writes the two responses side by side.
func writeColumns(w io.Writer, r *engine.Replayed, width int) error {
	if _, err := fmt.Fprintf(w, "%s\n%s\n\n", r.Clause, terminal.Escape(r.Line)); err != nil {
		return err
	}
	left, right := columnOf("then, "+r.Old.At.Format(time.RFC3339), r.Old, width), columnOf("now", r.New, width)
	for i := range max(len(left), len(right)) {
		if _, err := fmt.Fprintf(w, "%s | %s\n", padded(lineAt(left, i), width), lineAt(right, i)); err != nil {
			return err
		}
	}
	verdict := "the response is the same as in the report: the failure is still there (exit code 0)"
	if !r.Same {
		verdict = "the response is different from the one in the report: run the clause to see whether it passes now (exit code 1)"
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
	for part := range strings.SplitSeq(strings.Join(text, "\n"), "\n") {
		letters := []rune(terminal.Escape(part))
		for len(letters) > width {
			lines = append(lines, terminal.Escape(string(letters[:width]))) // a cut may have made a command of it
			letters = letters[width:]
		}
		lines = append(lines, terminal.Escape(string(letters)))
	}
	return lines
}

func padded(s string, width int) string { return s + strings.Repeat(" ", max(0, width-len([]rune(s)))) }

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// The settings in report.json that say how a bridge of --exec was started.
const (
	execSetting = "exec" // the command
	envSetting  = "env"  // the names of the variables that it received, never their values
	siteSetting = "site" // the built-in site of the mock

	configSetting = "config" // the file that the run read
)

// mockSite is the built-in site that a run serves behind a bridge.
const mockSite = "default"

// noteCommand notes in the report how the bridge of --exec was started, without secrets.
func (p *plan) noteCommand(report *reports.Report, o engine.Options) {
	if p.exec == "" || p.proxy.site != nil {
		return
	}
	report.Settings[execSetting] = o.Redactor().Text(p.exec)
	report.Settings[siteSetting] = mockSite
	if len(p.env) > 0 {
		report.Settings[envSetting] = p.env
	}
}

// restart are the flags of replay that start a bridge.
type restart struct {
	command string
	env     []string
	yes     bool
	config  string // a file; "": none
}

// replay sends the request of a failure again: to the target of the report, or to a bridge that it starts.
func (r *restart) replay(cmd *cobra.Command, o engine.ReplayOptions) (*engine.Replayed, error) {
	noted, _ := o.Report.Settings[execSetting].(string)
	changed := cmd.Flags().Changed
	switch {
	case changed("exec") && r.command == "":
		return nil, usagef("--exec is empty: give a value, or leave the flag out")
	case r.yes && changed("exec"):
		return nil, usagef("--yes starts the command of the report, --exec another: give one of the two")
	case o.To != "" && changed("exec"):
		return nil, usagef("--to names a running bridge, --exec starts one: give one of the two")
	case r.yes && o.To == "" && noted == "":
		return nil, usagef("--yes: the report has no command: give one by --exec")
	case len(r.env) > 0 && !changed("exec"):
		return nil, usagef("--env is for a bridge that --exec starts: give --exec too")
	case o.To != "" || noted == "" && !changed("exec"):
		if err := r.consent(cmd, o); err != nil {
			return nil, err
		}
		return engine.Replay(cmd.Context(), o)
	}
	if err := engine.Restageable(o.Report, o.Clause); err != nil {
		return nil, usagef("%v; run the clause instead, and look at what it leaves: %s", err, instead(o))
	}
	if !r.yes && !changed("exec") {
		variables := ""
		if names := notedNames(o.Report); len(names) > 0 {
			variables = fmt.Sprintf(" with the variables %q", names)
		}
		return nil, usagef("the bridge of this report was started by %q%s: give --yes to start that, --exec with a command of yours, or --to", noted, variables)
	}
	if r.yes {
		if strings.Contains(noted, redact.Mark) {
			return nil, usagef("the report does not contain the secret in its command: give the command by --exec")
		}
		r.command, r.env = noted, notedNames(o.Report)
	}
	return r.start(cmd, o)
}

// consent asks before credentials go to a host that is not the user's own: neither this machine nor the bridge of --config.
func (r *restart) consent(cmd *cobra.Command, o engine.ReplayOptions) error {
	result, _ := o.Report.Result(o.Clause) // without one Replay says what is wrong
	blamed, ok := result.Blamed()
	to, err := url.Parse(cmp.Or(o.To, blamed.Request.URL))
	if !ok || err != nil || len(blamed.Credentials) == 0 || loopback.Is(to.Hostname()) || r.yes && o.To != "" {
		return nil
	}
	if r.config != "" {
		file, err := settings.Load(r.config)
		if err != nil {
			return usageError(err)
		}
		if own, err := url.Parse(file.URL); err == nil && own.Scheme == to.Scheme && own.Host == to.Host {
			return nil
		}
	}
	var headers []string
	for _, c := range blamed.Credentials {
		headers = append(headers, c.Header)
	}
	sends := fmt.Sprintf("replay sends the credentials of %q (the header %s) to %s", blamed.Identity, strings.Join(headers, ", "), to.Host)
	if in, isFile := cmd.InOrStdin().(*os.File); isFile && term.IsTerminal(int(in.Fd())) {
		cmd.PrintErrf("%s. Is that host yours? [y/N] ", terminal.Line(sends, 500))
		var answer string
		_, _ = fmt.Fscanln(in, &answer) // no answer is no
		if strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes") {
			return nil
		}
		return usagef("nothing was sent to %s", to.Host)
	}
	return usagef("%s: if that host is yours, give --to %s://%s --yes, or --config with the file that names it", sends, to.Scheme, to.Host)
}

// completeReplay proposes files for the report, and for the clause those of the report that have a request to send again.
func completeReplay(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, map[bool]cobra.ShellCompDirective{true: cobra.ShellCompDirectiveDefault, false: cobra.ShellCompDirectiveNoFileComp}[len(args) == 0]
	}
	var clauses []string
	if report, err := reports.ReadFile(args[0]); err == nil {
		for _, result := range report.Results {
			if _, ok := result.Blamed(); ok {
				clauses = append(clauses, result.ID+"\t"+terminal.Line(result.Message, 100))
			}
		}
	}
	return clauses, cobra.ShellCompDirectiveNoFileComp
}

// instead is the command that tests the clause again. Without the configuration the run would claim other capabilities.
func instead(o engine.ReplayOptions) string {
	flags := "--exec …"
	if config, _ := o.Report.Settings[configSetting].(string); config != "" {
		flags = "--config " + shellWord(config) + " …"
	}
	return fmt.Sprintf("bridgecheck run %s --only %s --keep", flags, o.Clause)
}

// notedNames are the names of variables that the bridge of a report received.
func notedNames(report *reports.Report) []string {
	var names []string
	list, _ := report.Settings[envSetting].([]any)
	for _, name := range list {
		if text, ok := name.(string); ok {
			names = append(names, text)
		}
	}
	return names
}

// start starts the bridge and a mock, brings that into the state of the check, and sends the request.
func (r *restart) start(cmd *cobra.Command, o engine.ReplayOptions) (*engine.Replayed, error) {
	if site, noted := o.Report.Settings[siteSetting]; noted && site != mockSite {
		return nil, usagef("the report is of the site %v, and replay has only %s: run the clause instead: %s", site, mockSite, instead(o))
	}
	if err := checkEnvironment(r.env); err != nil {
		return nil, err
	}
	logs, err := os.MkdirTemp("", "bridgecheck-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the log of the bridge: %w", err)
	}
	defer os.RemoveAll(logs)
	options, err := settingsOf(o.Report)
	if err != nil {
		return nil, err
	}
	p := &plan{reportDir: logs, started: started{exec: r.command, env: r.env, readyTimeout: readyTime, group: processtree.NewGroup()}}
	defer p.closeGroup(cmd.Context())
	stage, err := p.stage(cmd.Context(), leg{options: options})
	if err != nil {
		return nil, err
	}
	defer stage.close()
	created, err := engine.Restage(o.Report, o.Clause, stage.drupal)
	if err != nil {
		return nil, err
	}
	o.To, o.Getenv, o.Accounts = stage.target.URL, secretsOf(stage.drupal), created
	return engine.Replay(cmd.Context(), o)
}

// settingsOf are the settings of a report that a bridge of --exec receives.
func settingsOf(report *reports.Report) (engine.Options, error) {
	o := engine.Options{Bridge: engine.Bridge{PageSize: 50}, Capabilities: report.Capabilities}
	if n, ok := report.Settings["page_size"].(json.Number); ok {
		size, err := n.Int64()
		if err != nil || size < 1 || size > 1<<20 {
			return o, usagef("the report has the page size %s", n)
		}
		o.Bridge.PageSize = int(size)
	}
	for name, kept := range map[string]*time.Duration{"discovery_ttl": &o.Bridge.DiscoveryTTL, "upstream_timeout": &o.Bridge.UpstreamTimeout} {
		text, ok := report.Settings[name].(string)
		if !ok {
			continue
		}
		var err error
		if *kept, err = time.ParseDuration(text); err != nil || *kept < 0 {
			return o, usagef("the report has the setting %s %q, which is not a duration", name, text)
		}
	}
	return o, nil
}
