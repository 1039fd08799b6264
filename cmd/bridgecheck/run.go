package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bridgecheck/reports"
	"bridgecheck/suites"
	"bridgecheck/suites/ledger"
)

// runFlags is all that `run` can be told.
type runFlags struct {
	url, exec, mockListen     string
	readyTimeout              time.Duration
	capabilities              string
	pageSize                  int
	discoveryTTL              time.Duration
	only, skip                []string
	strict, quiet, list, json bool
	reportDir                 string
	timeout, runTimeout       time.Duration
	seed                      int64
}

func newRun() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Judge a bridge and write the report",
		Long: `run judges a bridge and writes the report. Which bridge:

  bridgecheck run                               the reference bridge, in this process, over the mock Drupal
  bridgecheck run --url URL --mock-listen ADDR  a bridge that is up already, with the mock Drupal at ADDR behind it
  bridgecheck run --exec 'CMD'                  a bridge that run starts and ends, with the mock Drupal behind it
  bridgecheck run --url URL                     a bridge, with nothing known of the site behind it; invokes no tool

CMD finds in its environment: DRUPAL_URL (the mock), BRIDGE_LISTEN (HOST:PORT to listen on), BRIDGE_DISCOVERY_TTL,
BRIDGE_PERMISSION_TTL and BRIDGE_UPSTREAM_TIMEOUT (seconds), BRIDGE_PAGE_SIZE, and DRUPAL_USER and DRUPAL_PASSWORD
(an account that may do everything, for bridges that want one).`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "base `URL` of the bridge; user:password in it signs the agent in")
	flags.StringVar(&f.exec, "exec", "", "`command` that is the bridge, split into words as a shell does")
	flags.StringVar(&f.mockListen, "mock-listen", "", "`HOST:PORT` for the mock Drupal behind the bridge")
	flags.DurationVar(&f.readyTimeout, "ready-timeout", 30*time.Second, "how long a bridge of --exec may take to answer")
	flags.StringVar(&f.capabilities, "capabilities", "", "what the bridge claims: `a,b,-c` adds a and b to the default and takes c away")
	flags.IntVar(&f.pageSize, "page-size", 50, "tools on a full page")
	flags.DurationVar(&f.discoveryTTL, "discovery-ttl", 0, "how long the bridge may show a changed site's old state; 0: unknown (1s with --exec)")
	flags.StringArrayVar(&f.only, "only", nil, "judge only the clauses that this `glob` matches; repeatable")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave out the clauses that this `glob` matches; repeatable")
	flags.BoolVar(&f.strict, "strict", false, "warnings fail the run, too")
	flags.StringVar(&f.reportDir, "report-dir", "bridgecheck-report", "`directory` for the report")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "of one request")
	flags.DurationVar(&f.runTimeout, "run-timeout", 10*time.Minute, "of the whole run")
	flags.Int64Var(&f.seed, "seed", 1, "of generated cases")
	flags.BoolVar(&f.quiet, "quiet", false, "print the verdict alone")
	flags.BoolVar(&f.list, "list", false, "print the checks that would run, and run none")
	addJSON(cmd, &f.json)
	return cmd
}

// check refuses flags that contradict each other or mean nothing.
func (f *runFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("url") && changed("exec"):
		return usagef("--url names a bridge that is up, --exec starts one: give one of the two")
	case changed("url") && f.url == "":
		return usagef("--url is empty: give for example --url http://127.0.0.1:8081")
	case changed("mock-listen") && !changed("url") && !changed("exec"):
		return usagef("--mock-listen puts the mock Drupal behind a bridge: say which by --url or --exec")
	case changed("ready-timeout") && !changed("exec"):
		return usagef("--ready-timeout is for a bridge of --exec")
	case f.pageSize < 1:
		return usagef("--page-size is %d: give 1 or more", f.pageSize)
	case f.discoveryTTL < 0:
		return usagef("--discovery-ttl is %s: give 0 or more, for example 1s", f.discoveryTTL)
	case f.reportDir == "":
		return usagef("--report-dir is empty: name a directory")
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"timeout", f.timeout}, {"run-timeout", f.runTimeout}, {"ready-timeout", f.readyTimeout}} {
		if d.value <= 0 {
			return usagef("--%s is %s: give more than 0, for example 10s", d.flag, d.value)
		}
	}
	return nil
}

func (f *runFlags) run(cmd *cobra.Command) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	checks, err := suites.Checks(o)
	if err != nil {
		return err
	}
	if f.list {
		return listChecks(cmd.OutOrStdout(), checks, f.json)
	}
	if err := prepare(f.reportDir); err != nil {
		return err
	}
	report, err := f.judge(cmd.Context(), o, len(checks))
	if err != nil {
		return err
	}
	if err := reports.WriteAll(report, f.reportDir); err != nil {
		return err
	}
	if err := f.show(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	if code := report.ExitCode(); code != exitOK {
		return exitCode(code)
	}
	return nil
}

// options are the options of the suites as far as they do not depend on what is set up.
func (f *runFlags) options() (suites.Options, error) {
	claimed := suites.DefaultCapabilities
	if f.url == "" && f.exec == "" {
		claimed = referenceCapabilities
	}
	claimed, err := suites.Claim(claimed, f.capabilities)
	if err != nil {
		return suites.Options{}, err
	}
	return suites.Options{
		Capabilities: claimed, PageSize: f.pageSize, DiscoveryTTL: f.discoveryTTL, Only: f.only, Skip: f.skip, Strict: f.strict,
		Timeout: f.timeout, RunTimeout: f.runTimeout, Seed: f.seed, Tool: thisTool(),
	}, nil
}

// judge sets the target up, runs the suites against it and takes it down.
func (f *runFlags) judge(ctx context.Context, o suites.Options, checks int) (*reports.Report, error) {
	stage, err := f.stage(ctx)
	if err != nil {
		return nil, err
	}
	defer stage.close()
	o.Drupal, o.Advance, o.UpstreamTimeout = stage.drupal, stage.advance, stage.upstreamTimeout
	if o.DiscoveryTTL == 0 {
		o.DiscoveryTTL = stage.discoveryTTL
	}
	console := reports.NewConsole(os.Stderr, os.Getenv)
	if !f.quiet {
		done := 0
		o.Progress = func(r reports.Result) {
			done++
			console.Progress(done, checks, r)
		}
	}
	report, err := suites.Run(ctx, stage.target, o)
	console.ClearProgress()
	if stage.bridge != nil && stage.bridge.ended() != "" && !f.quiet {
		fmt.Fprintf(os.Stderr, "bridgecheck: the bridge ended during the run: %s%s\n", stage.bridge.ended(), stage.bridge.tail())
	}
	return report, err
}

// show prints the result: the report as JSON, its headline, or the summary.
func (f *runFlags) show(out io.Writer, report *reports.Report) error {
	switch {
	case f.json:
		return reports.WriteJSON(out, report)
	case f.quiet:
		_, err := fmt.Fprintln(out, report.Headline())
		return err
	}
	console := &reports.Console{Out: out}
	if file, ok := out.(*os.File); ok {
		console = reports.NewConsole(file, os.Getenv)
	}
	return console.Summary(report, f.reportDir)
}

// prepare makes the report directory and takes away the report of an earlier run, so that nobody reads that as this
// one's when this one cannot be judged.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return unwritable(dir, err)
	}
	for _, form := range reports.Forms() {
		if err := os.Remove(filepath.Join(dir, form.File)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return unwritable(dir, err)
		}
	}
	probe, err := os.CreateTemp(dir, ".bridgecheck-*")
	if err != nil {
		return unwritable(dir, err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

func unwritable(dir string, err error) error {
	return usagef("the report directory %s cannot be written: %s; give another by --report-dir", dir, reason(err))
}

func listChecks(out io.Writer, checks []ledger.Clause, asJSON bool) error {
	if asJSON {
		return writeJSON(out, checks)
	}
	w := newTable(out)
	for _, c := range checks {
		w.row(c.ID, string(c.Level), capability(c))
	}
	return w.Flush()
}
