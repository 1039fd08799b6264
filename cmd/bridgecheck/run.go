package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/internal/workers"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// runFlags are the flags of run. The configuration supplies the values of flags that are not given.
type runFlags struct {
	config                    string
	url, exec, mockListen     string
	moreURLs                  []string // of further replicas
	replicas                  int      // that --exec starts
	drupal, drupalProxy       string
	control                   string
	mcpStdio                  string
	env                       []string
	readyTimeout              time.Duration
	capabilities              string
	pageSize                  int
	discoveryTTL              time.Duration
	upstreamTimeout           time.Duration
	only, skip                []string
	rerunFailed               string // a report or inReportDir; "": not given
	failFast, keepUp          bool
	jobs                      int    // 0: as many as help
	worker                    bool   // one of another run
	alone                     string // why one worker tests all; "": it need not, or is asked to
	shard, runID              string
	contract                  string // a version
	side                      string // that counts; "": both
	strict, quiet, list, json bool
	verbose                   bool // show each failure with its details
	clients                   []string
	cleanup, configSchema     bool
	reportDir                 string
	timeout, runTimeout       time.Duration
	seed                      int64
	cases                     int
	baseline, writeBaseline   string
	previous                  string
	implementation            engine.Target // of it name, version, organisation and contact
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
  bridgecheck run --url URL --url URL2 …, or --exec 'CMD' --replicas N
      the same, with several replicas of the bridge, which are one bridge to callers
  bridgecheck run --url URL
      a bridge with an unknown site behind it; no tool is invoked
  bridgecheck run --url URL --drupal SITE
      a bridge in front of your own Drupal, whose methods are read
  bridgecheck run --url URL --drupal SITE --drupal-proxy ADDR
      the same, with a recording proxy at ADDR between
  bridgecheck run --config FILE
      any of these, as a YAML file says, with credentials for each identity

CMD gets these environment variables: DRUPAL_URL (the mock), BRIDGE_LISTEN (HOST:PORT to listen on),
BRIDGE_DISCOVERY_TTL, BRIDGE_PERMISSION_TTL and BRIDGE_UPSTREAM_TIMEOUT (seconds), BRIDGE_PAGE_SIZE,
BRIDGE_AUTH_ADDRESS_FAILURES and BRIDGE_AUTH_TOTAL_FAILURES (refused credentials before a bridge may
throttle), and DRUPAL_USER and DRUPAL_PASSWORD (an account with all permissions, for bridges that
need one); with the capability oauth BRIDGE_OAUTH_ISSUER (an authorization server) and
BRIDGE_OAUTH_RESOURCE (the URL of its /mcp); with token-exchange or token-introspection
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
  bridgecheck run --exec 'node bridge.js' --only describe/unknown-404 --keep`,
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
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "YAML `file` with the values of flags, and more; a flag overrides it")
	flags.Var(&urls{&f.url, &f.moreURLs}, "url", "base `URL` of the bridge; user:password in it are the credentials of the agent; again for each further replica of it")
	flags.IntVar(&f.replicas, "replicas", 1, "with --exec: how many replicas of the bridge are started; more than 1 claims replicas")
	flags.StringVar(&f.exec, "exec", "", "`command` that starts the bridge, split into words as a shell does")
	flags.StringVar(&f.mockListen, "mock-listen", "", "`HOST:PORT` for the mock Drupal behind the bridge")
	flags.StringVar(&f.drupalProxy, "drupal-proxy", "", "`HOST:PORT` for a recording proxy between the bridge and the site of --drupal; point the bridge at it")
	flags.StringVar(&f.drupal, "drupal", "", "`URL` of the real Drupal behind the bridge; its methods are read as each identity, and nothing is changed")
	flags.StringVar(&f.control, "control", "", "`URL` of the control plane of the site of --drupal, with its token in "+controlTokenEnv+"; checks change that site. Needs --drupal-proxy")
	flags.StringVar(&f.mcpStdio, "mcp-stdio", "", "with --exec: `command` that starts the bridge on stdin and stdout, with the same environment; claims mcp-stdio")
	flags.StringArrayVar(&f.env, "env", nil, "with --exec: `name` of an environment variable to pass to the bridge; repeatable")
	flags.DurationVar(&f.readyTimeout, "ready-timeout", readyTime, "with --exec: how long the bridge may take until its first response")
	flags.StringVar(&f.capabilities, "capabilities", "", "what the bridge claims: `a,b,-c` adds a and b to the default and removes c")
	flags.IntVar(&f.pageSize, "page-size", 50, "tools on a full page")
	flags.DurationVar(&f.discoveryTTL, "discovery-ttl", 0, "how long the bridge may show old tools after the site changed; 0: unknown (1s with --exec)")
	flags.DurationVar(&f.upstreamTimeout, "upstream-timeout", 0, "how long the bridge waits for the site; 0: unknown (2s with --exec, in whole seconds there)")
	flags.StringArrayVar(&f.only, "only", nil, "test only the clauses that this `glob` matches; repeatable")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave out the clauses that this `glob` matches; repeatable")
	flags.StringVar(&f.rerunFailed, "rerun-failed", "", "test only the clauses that failed in this `report.json`, or in a directory with one; without a value, that of --report-dir")
	flags.Lookup("rerun-failed").NoOptDefVal = inReportDir
	flags.BoolVar(&f.failFast, "fail-fast", false, "end the run after the first MUST that fails and is not excused by the baseline")
	flags.IntVar(&f.jobs, "jobs", 0, "`number` of workers, each with a bridge and a mock Drupal of its own, or all at the bridge of --url; 0: as many as help, at most 12")
	flags.StringVar(&f.shard, "shard", "", "test only the clauses of shard `I/N`, as 1/3; report merge makes one report of all")
	flags.StringVar(&f.runID, "run-id", "", "with --shard: `name` of the run, the same for all its shards (default that of the CI run)")
	flags.BoolVar(&f.keepUp, "keep", false, "after the run, keep the bridge and the mock Drupal running until Ctrl-C, and print their addresses and accounts on stderr")
	flags.StringVar(&f.contract, "contract", "", "`version` of the contract (default the latest released; draft: also clauses that are not released)")
	flags.StringVar(&f.side, "wire", "", "front: MUSTs that need to see more than the `side` of the callers do not count while they cannot be tested")
	flags.StringSliceVar(&f.clients, "client", nil, "of what MCP `clients` and model providers refuse, test what these do: claude, openai, gemini; without it, all")
	flags.BoolVar(&f.strict, "strict", false, "warnings fail the run, too")
	flags.StringVar(&f.reportDir, "report-dir", "bridgecheck-report", "`directory` for the report")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "time limit of one request")
	flags.DurationVar(&f.runTimeout, "run-timeout", 10*time.Minute, "time limit of the whole run")
	flags.Int64Var(&f.seed, "seed", 1, "seed of the generated cases")
	flags.IntVar(&f.cases, "cases", 400, "maximum of generated cases, and of tools to describe, in one check")
	flags.StringVar(&f.baseline, "baseline", "", "`file` of known failures; each must still fail as the file says")
	flags.StringVar(&f.writeBaseline, "write-baseline", "", "write the failures to this `file`, as a first baseline")
	flags.StringVar(&f.previous, "previous", "", "earlier `report.json`, or a directory with one; the report lists what changed since")
	flags.StringVar(&f.implementation.Name, "implementation", "", "`name` of the bridge, for the report")
	flags.StringVar(&f.implementation.Version, "implementation-version", "", "`version` of the bridge, for the report")
	flags.StringVar(&f.implementation.Organisation, "organisation", "", "`name` of the organisation that makes the bridge, for the report")
	flags.StringVar(&f.implementation.Contact, "contact", "", "contact `address` of the bridge's makers, for the report")
	flags.BoolVar(&f.quiet, "quiet", false, "print only the verdict")
	flags.BoolVar(&f.verbose, "verbose", false, "print every failure, warning and untested MUST with its details, not a summary of one screen")
	flags.BoolVar(&f.list, "list", false, "list the checks that would run, and run none")
	flags.BoolVar(&f.cleanup, "cleanup", false, "end the sessions that a crashed run left open, and test nothing")
	flags.BoolVar(&f.configSchema, "config-schema", false, "print the JSON Schema of the file of --config, for editors, and test nothing")
	flags.BoolVar(&f.worker, "worker", false, "do the job that comes on stdin")
	_ = flags.MarkHidden("worker") // it exists
	addJSON(cmd, &f.json)
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command) error {
	collectLess()
	switch {
	case f.worker:
		return serveRun(cmd)
	case f.cleanup:
		return f.cleanUp(cmd)
	case f.configSchema:
		schema, err := settings.Schema()
		if err != nil {
			return err
		}
		return deliver(cmd, "", schema)
	}
	p, err := f.plan(cmd)
	if err != nil {
		return err
	}
	defer func() {
		if err := undo(cmd.Context(), p.file, p.reportDir, p.file.Sessions()); err != nil {
			cmd.PrintErrf("bridgecheck: %s: try again by bridgecheck run --cleanup\n", terminal.Escape(err.Error()))
		}
	}()
	if f.list {
		return listChecks(cmd.OutOrStdout(), p.checks(), f.json)
	}
	if err := prepare(p.reportDir, cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := remember(p.reportDir, p.file.Sessions()); err != nil {
		return err
	}
	defer p.closeLog()
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
	if code := report.ExitCode(); code != exitOK {
		return exitCode(code)
	}
	return nil
}

// collectLess takes up to 512 MiB, which are cheaper than collecting them, unless the environment says otherwise.
func collectLess() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(512 << 20)
	}
}

// test runs every pass of the plan, in workers where that helps, and makes one report of them.
func (f *runFlags) test(cmd *cobra.Command, p *plan) (*reports.Report, error) {
	cleared := sync.OnceValue(func() error { return removeReport(p.reportDir) })
	began := time.Now()
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
	if p.rerunOf != "" {
		whole.Settings["rerun_failed"] = p.rerunOf
	}
	return whole, nil
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
		if f.failFast {
			l.options.Pass.StopAfter = p.firstFailure
		}
		if !b.Shared || p.shard.of > 0 {
			l.options.Pass.Take = func(clause string) bool { _, ours := b.Checks[clause]; return ours }
		}
		part, err := p.part(cmd, l)
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
	case f.writeBaseline == "":
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
	if err := os.WriteFile(f.writeBaseline, text.Bytes(), 0o644); err != nil {
		return usagef("the baseline %s cannot be written: %s; give another by --write-baseline", f.writeBaseline, reason(err))
	}
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
		if dir = ""; !f.json && !f.quiet {
			fmt.Fprintln(out, terminal.Escape(missing))
		}
	}
	if err := f.showOn(out, report, dir); err != nil {
		return err
	}
	if err := format.GitHub(cmd.ErrOrStderr(), report, os.Getenv); err != nil {
		cmd.PrintErrf("bridgecheck: %s\n", terminal.Escape(err.Error()))
	}
	return nil
}

func (f *runFlags) showOn(out io.Writer, report *reports.Report, dir string) error {
	switch {
	case f.json:
		var b bytes.Buffer
		if err := reports.WriteJSON(&b, report); err != nil {
			return err
		}
		_, err := out.Write(terminal.JSON(b.Bytes()))
		return err
	case f.quiet:
		_, err := fmt.Fprintln(out, report.Headline())
		return err
	case f.verbose:
		return console(out).Details(report, dir)
	}
	return console(out).Summary(report, dir)
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
