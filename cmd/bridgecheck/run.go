package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgecheck/bridgecheck/internal/curl"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/machine"
	"github.com/bridgecheck/bridgecheck/internal/processor"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/internal/workers"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// runFlags are the flags of run, as the table of settings has them. The configuration supplies the values of flags that are not given.
type runFlags struct {
	settings.Values
	seen  func(reports.Result) // receives each verdict; nil: nobody
	alone string               // why one worker tests all; "": it need not, or is asked to
	again string               // the command that tests the same bridge
}

func newRun() *cobra.Command { return (&runFlags{}).command() }

func (f *runFlags) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Test a bridge and write the report",
		Long: `run tests a bridge and writes the report. It tests

  bridgecheck run
      the reference bridge, in this process, over the mock Drupal
  bridgecheck run --url URL --mock-listen ADDR
      a bridge that is running, with the mock Drupal at ADDR behind it
  bridgecheck run --exec 'CMD'
      a bridge that run starts and stops, with the mock Drupal behind it
  bridgecheck run --mcp-stdio 'CMD' --capabilities mcp,-tools
      a bridge that speaks MCP on stdin and stdout alone, with DRUPAL_URL, DRUPAL_USER and
      DRUPAL_PASSWORD of a mock Drupal in its environment
  bridgecheck run --url URL --url URL2 …, or --exec 'CMD' --replicas N
      the same, with several replicas of the bridge, which are one bridge to callers
  bridgecheck run --url URL
      a bridge with an unknown site behind it; no tool is invoked
  bridgecheck run --url URL --drupal SITE
      a bridge in front of your own Drupal, whose methods are read
  bridgecheck run --url URL --drupal SITE --drupal-proxy ADDR
      the same, with a recording proxy at ADDR between
  bridgecheck run --url URL --login
      a bridge behind OAuth, with the token that you get by a login in your browser
  bridgecheck run --config FILE
      any of these, as a YAML file says, with credentials for each identity

CMD gets these environment variables: DRUPAL_URL (the mock), BRIDGE_LISTEN (HOST:PORT to listen on),
BRIDGE_DISCOVERY_TTL, BRIDGE_PERMISSION_TTL and BRIDGE_UPSTREAM_TIMEOUT (seconds), BRIDGE_CLOCK (a
file with seconds: where the bridge adds them to the age of its cache, no TTL is waited for),
BRIDGE_PAGE_SIZE, BRIDGE_AUTH_ADDRESS_FAILURES and BRIDGE_AUTH_TOTAL_FAILURES (refused credentials
before a bridge may throttle), and DRUPAL_USER and DRUPAL_PASSWORD (an account with all permissions,
for bridges that need one); with the capability oauth BRIDGE_OAUTH_ISSUER (an authorization server)
and BRIDGE_OAUTH_RESOURCE (the URL of its /mcp); with token-exchange or token-introspection
BRIDGE_OAUTH_CLIENT and BRIDGE_OAUTH_CLIENT_SECRET, with the first also BRIDGE_OAUTH_EXCHANGE (the
site as that server knows it); with --replicas BRIDGE_SESSION_KEYS (a secret, the same for all) and,
if your environment has it, BRIDGE_SHARED (a store that they share, such as redis://127.0.0.1:6379);
then the run claims replicas-shared. Of your environment it gets PATH, HOME, LANG, TMPDIR and the
variables that --env names, nothing else.

If stderr is no terminal, run writes a line there every 10 s with the checks that are running;
--quiet turns that off.`,
		Example: `  bridgecheck run --exec 'node bridge.js' --upstream-timeout 5s
  bridgecheck run --exec 'node bridge.js' --fail-fast      end after the first MUST that fails
  bridgecheck run --exec 'node bridge.js' --rerun-failed   test again what failed in the last run
  bridgecheck run --exec 'node bridge.js' --rerun-failed old/report.json
  bridgecheck run --exec 'node bridge.js' --only describe/unknown-404 --keep
  bridgecheck run --exec 'node bridge.js' --watch          test again whenever a file changes`,
		Args: f.arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !signal.Ignored(syscall.SIGHUP) { // as under nohup
				ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
				defer stop()
				cmd.SetContext(ctx)
			}
			return f.run(cmd)
		},
	}
	settings.AddFlags(cmd.Flags(), &f.Values)
	cmd.Flags().Lookup("rerun-failed").NoOptDefVal = inReportDir
	cmd.Flags().Lookup("watch").NoOptDefVal = commandsFiles
	cmd.Flags().Lookup("login").NoOptDefVal = string(check.Agent)
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command) error {
	defer machine.CollectLess(48 << 20)()
	switch {
	case f.Cleanup:
		return f.cleanUp(cmd)
	case f.ConfigSchema:
		schema, err := settings.Schema()
		if err != nil {
			return err
		}
		return deliver(cmd, "", schema)
	}
	if len(f.Watch) > 0 {
		return f.watch(cmd)
	}
	p, err := f.plan(cmd)
	if err != nil {
		return err
	}
	defer func() {
		if err := undo(cmd.Context(), p.file, p.reportDir, p.file.Sessions()); err != nil {
			cmd.PrintErrf("bridgecheck: %s: try again by %s run --cleanup\n", terminal.Escape(err.Error()), program)
		}
	}()
	if f.List {
		return listChecks(cmd.OutOrStdout(), p.checks(), f.JSON)
	}
	if err := p.logIn(cmd, &f.Values); err != nil {
		return err
	}
	if err := prepare(p.reportDir, cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := p.lookAtMachine(); err != nil {
		return err
	}
	if err := remember(p.reportDir, p.file.Sessions()); err != nil {
		return err
	}
	defer p.closeLog()
	defer p.closeGroup(cmd.Context())
	defer p.closeKept()
	report, err := f.test(cmd, p)
	if err != nil {
		return err
	}
	if p.baseline != nil {
		p.baseline.Apply(report, time.Now())
	}
	if p.previous != nil {
		report.Since = reports.Compare(p.previous, report)
	}
	unwritten := format.WriteAll(report, p.reportDir)
	if err := f.show(cmd, report, p.reportDir, unwritten); err != nil {
		return err
	}
	if err := f.writeKnown(cmd, report); err != nil {
		return err
	}
	if p.keepUp {
		if err := p.hold(cmd, report); err != nil {
			return err
		}
	}
	return endWith(report.ExitCode())
}

// lookAtMachine says what the machine is short of before the run meets it. The error says that nothing can be tested for it.
func (p *plan) lookAtMachine() error {
	log.SetOutput(io.Discard) // net/http writes there what a site does wrong on purpose, and what the machine refuses
	lacks, fatal, noLoopback := machine.Lacks(p.reportDir, os.TempDir())
	p.lacks = lacks
	if p.target.URL == "" || p.mockListen != "" { // else the bridge may be elsewhere
		fatal = cmp.Or(fatal, noLoopback)
	}
	if fatal != "" {
		return fmt.Errorf("nothing can be tested: %s", fatal)
	}
	for _, lack := range p.lacks {
		fmt.Fprintf(p.warnings, "bridgecheck: %s\n", terminal.Escape(lack))
	}
	return nil
}

// test runs every pass of the plan, in workers where that helps, and makes one report of them.
func (f *runFlags) test(cmd *cobra.Command, p *plan) (*reports.Report, error) {
	cleared := sync.OnceValue(func() error { return removeReport(p.reportDir) })
	began := time.Now()
	own, bridges := processor.Used()
	bundles, err := p.bundles()
	if err != nil {
		return nil, err
	}
	parts, err := f.inWorkers(cmd, p, bundles, cleared)
	if err == nil && parts == nil {
		parts, err = f.inTurn(cmd, p, bundles, cleared)
		if err == nil && f.alone != "" {
			cmd.PrintErrf("bridgecheck: one worker tested all, because %s\n", terminal.Escape(f.alone))
		}
	}
	if err == nil {
		err = cleared()
	}
	if err != nil {
		return nil, err
	}
	for _, pass := range parts {
		for _, part := range pass {
			p.noteCommand(part.Report, p.legs[0].options)
		}
	}
	whole, err := p.whole(parts)
	if err != nil {
		return nil, err
	}
	whole.Started, whole.DurationMS = began.UTC(), time.Since(began).Milliseconds()
	whole.Cost = costSince(own, bridges, whole)
	if whole.Environment != nil {
		whole.Environment.Lacks = p.lacks
	}
	if f.Config != "" && p.exec != "" { // not before the parts are joined: shards may name the file by different paths
		whole.Settings[configSetting] = p.legs[0].options.Redactor().Text(f.Config)
	}
	if p.rerunOf != "" {
		whole.Settings["rerun_failed"] = p.rerunOf
	}
	return whole, nil
}

// costSince is what a run took since so much of the processor was used by this process, and by bridges that have ended.
func costSince(own, bridges time.Duration, report *reports.Report) *reports.Cost {
	nowOwn, nowBridges := processor.Used()
	c := &reports.Cost{CPUMS: (nowOwn - own).Milliseconds(), BridgeCPUMS: (nowBridges - bridges).Milliseconds()}
	for _, r := range report.Results {
		c.Requests += r.Requests
	}
	return c
}

// whole makes one report of the parts of each pass. Those of a shard are written, for report merge.
func (p *plan) whole(parts [][]*engine.Part) (*reports.Report, error) {
	if p.shard.of > 0 {
		s := &engine.Shard{Run: p.shard.run, Index: p.shard.index, Of: p.shard.of, Passes: parts}
		if p.filtered {
			s.Filters = slices.Concat(p.legs[0].options.Only, p.legs[0].options.Skip)
		}
		if err := s.Write(p.reportDir); err != nil {
			return nil, unwritable(p.reportDir, err)
		}
		return s.Report(p.shard.clauses)
	}
	var passes []*reports.Report
	for i, pass := range parts {
		if len(pass) == 0 { // the run ended before it
			continue
		}
		report, err := engine.Join(nil, pass...)
		if err != nil {
			return nil, err
		}
		passes = append(passes, report)
		if p.keepUp {
			p.kept[i].report = report
		}
	}
	return engine.Whole(passes, p.filtered)
}

// inTurn runs the bundles in this process, one after the other.
func (f *runFlags) inTurn(cmd *cobra.Command, p *plan, bundles []workers.Bundle, cleared func() error) ([][]*engine.Part, error) {
	shown := f.progress(cmd, p, bundles)
	defer shown.stop()
	parts := make([][]*engine.Part, len(p.legs))
	for _, b := range bundles {
		began, l := time.Now(), p.legs[b.Pass]
		l.options.Pass.Started = func(clause string) {
			_ = cleared() // an error is returned by test
			shown.started(clause)
		}
		l.options.Progress = shown.finished
		if f.FailFast {
			l.options.Pass.StopAfter = p.firstFailure
		}
		if !b.Shared || p.shard.of > 0 {
			l.options.Pass.Take = func(clause string) bool { _, ours := b.Checks[clause]; return ours }
		}
		part, err := p.part(cmd.Context(), l)
		shown.clear()
		if err != nil {
			return nil, err
		}
		parts[b.Pass] = append(parts[b.Pass], part)
		p.spend(time.Since(began))
		if cut := part.Report.CutShort; cut != "" && cut != bridgeEnded { // another bundle has another bridge
			break
		}
	}
	return parts, nil
}

// firstFailure says why --fail-fast ends the run after a result; "": it goes on.
func (p *plan) firstFailure(r reports.Result) string {
	r.Findings = slices.Clone(r.Findings)
	one := &reports.Report{Results: []reports.Result{r}}
	if p.baseline != nil {
		p.baseline.Apply(one, time.Now())
	}
	if one.Results[0].Verdict != reports.Fail {
		return ""
	}
	return "--fail-fast: " + r.ID + " failed"
}

// writeKnown writes the failures as a baseline, if one is requested.
func (f *runFlags) writeKnown(cmd *cobra.Command, report *reports.Report) error {
	switch {
	case f.WriteBaseline == "":
		return nil
	case report.NoBridge != "":
		cmd.PrintErrf("bridgecheck: no baseline is written: %s\n", terminal.Escape(report.NoBridge))
		return nil
	case report.CutShort != "":
		cmd.PrintErrf("bridgecheck: no baseline is written: the run was cut short (%s)\n", terminal.Escape(report.CutShort))
		return nil
	}
	var text bytes.Buffer
	if err := baseline.From(report).Write(&text); err != nil {
		return err
	}
	if err := os.WriteFile(f.WriteBaseline, text.Bytes(), 0o644); err != nil {
		return usagef("the baseline %s cannot be written: %s; give another by --write-baseline", f.WriteBaseline, reason(err))
	}
	cmd.PrintErrf("bridgecheck: %s has what fails now: give it as --baseline from now on\n", terminal.Escape(f.WriteBaseline))
	return nil
}

// show prints the result: the report as JSON, its headline, the details or the summary. On GitHub the findings become
// annotations, and the job gets its summary. The verdict depends on no file: if the report could not be written, unwritten
// says why, and it stands there with the reason.
func (f *runFlags) show(cmd *cobra.Command, report *reports.Report, dir string, unwritten error) error {
	out := cmd.OutOrStdout()
	if unwritten != nil {
		missing := fmt.Sprintf("the report in %s cannot be written: %s", dir, reason(unwritten))
		cmd.PrintErrf("bridgecheck: %s\n", terminal.Escape(missing))
		if dir = ""; !f.JSON && !f.Quiet {
			fmt.Fprintln(out, terminal.Escape(missing))
		}
	}
	for _, m := range report.Measured {
		if m.Warning != "" {
			cmd.PrintErrf("bridgecheck: warning: %s\n", terminal.Escape(m.Warning))
		}
	}
	f.again = again(cmd)
	if err := f.showOn(out, report, dir); err != nil {
		if f.JSON && report.ExitCode() == exitOK { // who reads the document must not take a part of it for the whole
			return err
		}
		cmd.PrintErrf("bridgecheck: the standard output cannot be written: %s; %s\n", terminal.Escape(reason(err)), terminal.Escape(report.Headline()))
	}
	if err := format.GitHub(cmd.ErrOrStderr(), report, os.Getenv); err != nil {
		cmd.PrintErrf("bridgecheck: %s\n", terminal.Escape(err.Error()))
	}
	return nil
}

// passwordOfURL finds the password in a URL, by itself or within a command.
var passwordOfURL = regexp.MustCompile(`(://[^\s/:@]*:)[^\s/@]*@`)

// again is the command of a run with what says which bridge is tested, and how.
func again(cmd *cobra.Command) string {
	words := []string{program, "run"}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if slices.Contains([]string{"config", "url", "exec", "mcp-stdio", "env", "mock-listen", "drupal", "drupal-proxy", "capabilities", "contract"}, flag.Name) {
			value := flag.Value.String()
			if list, several := flag.Value.(pflag.SliceValue); several {
				value = strings.Join(list.GetSlice(), ",")
			}
			words = append(words, "--"+flag.Name, curl.Quote(passwordOfURL.ReplaceAllString(value, "${1}"+redact.Mark+"@")))
		}
	})
	return strings.Join(words, " ")
}

func (f *runFlags) showOn(out io.Writer, report *reports.Report, dir string) error {
	switch {
	case f.JSON:
		var b bytes.Buffer
		if err := reports.WriteJSON(&b, report); err != nil {
			return err
		}
		_, err := out.Write(terminal.JSON(b.Bytes()))
		return err
	case f.Quiet:
		for _, failed := range report.With(reports.Fail) {
			fmt.Fprintln(out, failed.ID)
		}
		_, err := fmt.Fprintln(out, report.Headline())
		return err
	}
	c := console(out)
	c.Again = f.again
	if f.RerunFailed != "" {
		c.Next = "the same command without --rerun-failed, which tests every clause"
	}
	if f.Verbose {
		return c.Details(report, dir)
	}
	return c.Summary(report, dir)
}

// checks lists the clauses that the passes of the plan test, each once.
func (p *plan) checks() []contract.Clause {
	var all []contract.Clause
	for _, l := range p.legs {
		for _, c := range l.checks {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

func listChecks(out io.Writer, checks []contract.Clause, asJSON bool) error {
	if asJSON {
		return writeJSON(out, checks)
	}
	w := newTable(out)
	for _, c := range checks {
		w.row(c.ID, string(c.Level), capability(c))
	}
	return w.Flush()
}
