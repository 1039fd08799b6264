package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// plan is what a run does, settled from flags and configuration.
type plan struct {
	target           engine.Target
	exec, mockListen string
	moreURLs         []string // of replicas beside the target
	replicas         int      // that exec starts
	proxy            recording
	mcpStdio         string   // command that is the bridge on stdio; "": none
	env              []string // names of variables that the bridge of --exec receives
	readyTimeout     time.Duration
	reportDir        string
	baseline         *baseline.File  // nil: none
	previous         *reports.Report // nil: none
	legs             []leg
	filtered         bool   // --only or --skip, or the configuration's, leave clauses out
	rerunOf          string // the report whose failed clauses alone are tested; "": all are
	shard            shard
	log              *bridgeLog // of the bridges of --exec; nil: none was started
	failFast         bool
	keepUp           bool            // the stages stay up after the run
	kept             []*keptStage    // those that are up
	keys             authserver.Keys // of the stages, one after the other
	file             *settings.File  // the configuration; empty where none was given
}

// leg is one pass over the checks. The reference bridge is tested in each of its profiles, any other bridge once.
type leg struct {
	profile string // of the reference bridge; "" for another bridge
	options engine.Options
	checks  []contract.Clause // that the pass runs
}

// plan settles what the run does. It reports every mistake that can be found without a request to the target.
func (f *runFlags) plan(cmd *cobra.Command) (*plan, error) {
	if err := f.check(cmd); err != nil {
		return nil, err
	}
	file := &settings.File{}
	var err error
	if f.config != "" {
		if file, err = settings.Load(f.config); err != nil {
			return nil, usageError(err)
		}
	}
	if err := f.fits(file); err != nil {
		return nil, err
	}
	p := &plan{
		target: file.Target(), exec: pick(cmd, "exec", f.exec, file.Exec), mockListen: pick(cmd, "mock-listen", f.mockListen, file.MockListen),
		moreURLs: f.moreURLs, replicas: f.replicas, failFast: f.failFast,
		mcpStdio: f.mcpStdio, readyTimeout: f.readyTimeout, reportDir: pick(cmd, "report-dir", f.reportDir, file.ReportDir),
	}
	switch changed := cmd.Flags().Changed; {
	case changed("url"):
		p.target.URL, p.exec = f.url, ""
	case changed("exec"):
		p.target.URL = ""
	}
	if p.mcpStdio != "" && p.exec == "" {
		return nil, usagef("--mcp-stdio starts the bridge of --exec for stdio: give --exec too")
	}
	if err := p.checkReplicas(); err != nil {
		return nil, err
	}
	if p.env, err = f.environment(p.exec, file); err != nil {
		return nil, err
	}
	p.file = file
	file.URL = p.target.URL // where identities log in by default
	p.warnAboutPlainHTTP(cmd)
	if p.proxy, err = recordingOf(pick(cmd, "drupal-proxy", f.drupalProxy, file.DrupalProxy), pick(cmd, "drupal", f.drupal, file.Drupal)); err != nil {
		return nil, err
	}
	if p.proxy.control = f.control; p.proxy.control != "" && p.proxy.listen == "" {
		return nil, usagef("--control changes the real site behind a recording proxy: give --drupal and --drupal-proxy too")
	}
	if err := p.proxy.fits(p); err != nil {
		return nil, err
	}
	if p.mockListen != "" && p.target.URL == "" && p.exec == "" {
		return nil, usagef("--mock-listen puts the mock Drupal behind a bridge: name it by --url or --exec")
	}
	if p.keepUp = f.keepUp; p.keepUp && (p.proxy.site != nil || p.target.URL != "" && p.mockListen == "") {
		return nil, usagef("--keep keeps a bridge running with the mock Drupal behind it: give --exec or --mock-listen")
	}
	if err := p.name(cmd, f.implementation); err != nil {
		return nil, err
	}
	if f.previous != "" {
		// Before the run deletes what an earlier one left in its directory.
		if p.previous, err = readReport(f.previous); err != nil {
			return nil, err
		}
	}
	if path := pick(cmd, "baseline", f.baseline, file.BaselinePath()); path != "" {
		var err error
		if p.baseline, err = readBaseline(path); err != nil {
			return nil, usageError(err)
		}
	}
	if err := f.selectFailed(cmd, p); err != nil {
		return nil, err
	}
	profiles := []testbed.Profile{{Capabilities: engine.DefaultCapabilities}}
	if p.target.URL == "" && p.exec == "" {
		profiles = testbed.Profiles()
	}
	for i, profile := range profiles {
		l, err := f.leg(cmd, file, profile)
		if err != nil {
			return nil, err
		}
		if p.exec != "" && l.options.Bridge.UpstreamTimeout%time.Second != 0 {
			return nil, usagef("the upstream time-out is %s: a bridge of --exec receives whole seconds, give for example --upstream-timeout 2s", l.options.Bridge.UpstreamTimeout)
		}
		p.filtered = len(l.options.Only)+len(l.options.Skip) > 0
		elsewhere, err := inVersion(l.options.Contract, profile.Skip)
		if err != nil {
			return nil, err
		}
		l.options.Skip = append(slices.Clone(l.options.Skip), elsewhere...)
		if l.checks, err = engine.Checks(l.options); err != nil {
			return nil, err
		}
		if i == 0 || len(l.checks) > 0 {
			p.legs = append(p.legs, l)
		}
	}
	if err := f.selectShard(p); err != nil {
		return nil, err
	}
	if what := p.shared(); what != "" && f.jobs > 1 {
		return nil, usagef("--jobs is %d, and the workers would share %s: leave --jobs out", f.jobs, what)
	}
	if tls := p.legs[0].options.Connection.TLS; tls != nil && tls.InsecureSkipVerify {
		cmd.PrintErrln("bridgecheck: warning: the bridge's certificate is not checked (tls.insecure)")
	}
	return p, nil
}

// inVersion keeps the globs that match a clause of a version of the contract: a profile skips clauses of later ones, too.
func inVersion(version string, globs []string) ([]string, error) {
	all, err := contract.Load()
	if err != nil {
		return nil, err
	}
	at, err := all.At(version)
	if err != nil {
		return nil, usageError(err)
	}
	return slices.DeleteFunc(slices.Clone(globs), func(glob string) bool {
		ids, err := at.Match(glob)
		return err == nil && len(ids) == 0
	}), nil
}

// warnAboutPlainHTTP warns where a secret is about to cross a network unencrypted.
func (p *plan) warnAboutPlainHTTP(cmd *cobra.Command) {
	exposed := p.file.Exposed()
	if u, err := url.Parse(p.target.URL); err == nil && u.User != nil && settings.Exposes(p.target.URL) {
		u.User = nil
		if address := u.String(); !slices.Contains(exposed, address) {
			exposed = append(exposed, address)
		}
	}
	for _, address := range exposed {
		cmd.PrintErrf("bridgecheck: warning: credentials go to %s unencrypted: use https\n", terminal.Escape(address))
	}
}

// name settles how the report names the bridge. The reference bridge has its name.
func (p *plan) name(cmd *cobra.Command, given engine.Target) error {
	for flag, value := range map[string]struct {
		given string
		kept  *string
	}{
		"implementation":         {given.Name, &p.target.Name},
		"implementation-version": {given.Version, &p.target.Version},
		"organisation":           {given.Organisation, &p.target.Organisation},
		"contact":                {given.Contact, &p.target.Contact},
	} {
		if cmd.Flags().Changed(flag) && p.target.URL == "" && p.exec == "" {
			return usagef("--%s describes the bridge of --url or --exec: give one of them", flag)
		}
		*value.kept = pick(cmd, flag, value.given, *value.kept)
	}
	return nil
}

// leg settles one pass. A flag overrides the configuration, and that overrides the profile.
func (f *runFlags) leg(cmd *cobra.Command, file *settings.File, profile testbed.Profile) (leg, error) {
	o := engine.Options{Capabilities: profile.Capabilities, Tool: thisTool()}
	if profile.Run != nil {
		profile.Run(&o)
	}
	o, err := file.Options(cmd.Context(), o)
	if err != nil && cmd.Context().Err() == nil { // else the run that follows reports that it was interrupted
		return leg{}, usageError(errors.Join(err, undo(cmd.Context(), file, f.reportDir, file.Sessions())))
	}
	if f.mcpStdio != "" {
		o.Capabilities = append(slices.Clone(o.Capabilities), "mcp-stdio")
	}
	o.Capabilities = append(slices.Clone(o.Capabilities), f.claimedByReplicas()...)
	if o.Capabilities, err = engine.Claim(o.Capabilities, f.capabilities); err != nil {
		return leg{}, err
	}
	o.Bridge.PageSize = pick(cmd, "page-size", f.pageSize, o.Bridge.PageSize)
	o.Bridge.DiscoveryTTL = pick(cmd, "discovery-ttl", f.discoveryTTL, o.Bridge.DiscoveryTTL)
	if profile.UpstreamTimeout > 0 {
		o.Bridge.UpstreamTimeout = profile.UpstreamTimeout
	}
	o.Bridge.UpstreamTimeout = pick(cmd, "upstream-timeout", f.upstreamTimeout, o.Bridge.UpstreamTimeout)
	o.Connection.Timeout = pick(cmd, "timeout", f.timeout, o.Connection.Timeout)
	o.RunTimeout = pick(cmd, "run-timeout", f.runTimeout, o.RunTimeout)
	o.Seed = pick(cmd, "seed", f.seed, o.Seed)
	o.Cases = pick(cmd, "cases", f.cases, o.Cases)
	o.Contract = pick(cmd, "contract", f.contract, o.Contract)
	o.Strict = pick(cmd, "strict", f.strict, o.Strict)
	if f.clients != nil {
		o.Clients = f.clients
	}
	if o.Wire = contract.Wire(pick(cmd, "wire", f.side, string(o.Wire))); o.Wire != "" && o.Wire != contract.Front {
		return leg{}, usagef("--wire is %q: give front, or leave it out to count both sides", o.Wire)
	}
	if f.only != nil {
		o.Only = f.only
	}
	if f.skip != nil {
		o.Skip = f.skip
	}
	return leg{profile: profile.Name, options: o}, nil
}

// check refuses flags that contradict each other or have no effect.
func (f *runFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	empty := ""
	cmd.Flags().Visit(func(flag *pflag.Flag) { // an unset variable of a script must not select another bridge
		if flag.Value.Type() == "string" && flag.Value.String() == "" {
			empty = flag.Name
		}
	})
	if empty != "" {
		return usagef("--%s is empty: give a value, or leave the flag out", empty)
	}
	switch {
	case changed("url") && changed("exec"):
		return usagef("--url names a running bridge, --exec starts one: give one of the two")
	case f.pageSize < 1:
		return usagef("--page-size is %d: give 1 or more", f.pageSize)
	case f.jobs < 0:
		return usagef("--jobs is %d: give 1 or more, or 0 for as many as help", f.jobs)
	case f.cases < 1:
		return usagef("--cases is %d: give 1 or more", f.cases)
	case f.discoveryTTL < 0:
		return usagef("--discovery-ttl is %s: give 0 or more, for example 1s", f.discoveryTTL)
	case f.upstreamTimeout < 0:
		return usagef("--upstream-timeout is %s: give 0 or more, for example 2s", f.upstreamTimeout)
	case changed("rerun-failed") && changed("only"):
		return usagef("--rerun-failed and --only both say which clauses are tested: give one of the two")
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

// fits refuses a configuration that describes a bridge but names none: the run would test the reference bridge instead.
func (f *runFlags) fits(file *settings.File) error {
	if f.config == "" || f.url != "" || f.exec != "" || file.URL != "" || file.Exec != "" {
		return nil
	}
	if key := file.ForOneBridge(); key != "" {
		return usagef("%s describes a bridge by %s and does not name it: give url or exec there, or --url or --exec", f.config, key)
	}
	return nil
}

// pick returns the value of a flag that was given, else that of the configuration, else the default of the flag.
func pick[T comparable](cmd *cobra.Command, flag string, given, configured T) T {
	if cmd.Flags().Changed(flag) {
		return given
	}
	return cmp.Or(configured, given)
}

// readBaseline reads a baseline and checks its clauses against the contract.
func readBaseline(path string) (*baseline.File, error) {
	file, err := baseline.Read(path)
	if err != nil {
		return nil, err
	}
	contract, err := contract.Load()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range contract.Clauses {
		ids = append(ids, c.ID)
	}
	return file, file.Check(ids)
}

// usageError turns an error in the input of a command into one with the exit code for usage.
func usageError(err error) error {
	var usage *engine.UsageError
	if errors.As(err, &usage) {
		return err
	}
	if unreachable := (*engine.UnreachableError)(nil); errors.As(err, &unreachable) {
		return err
	}
	return &engine.UsageError{Reason: err.Error()}
}

// inReportDir is the value of --rerun-failed where the user gives none: the report in the report directory.
const inReportDir = "--report-dir"

// arguments takes the report of --rerun-failed as an argument of its own, too: a flag with an optional value leaves it there.
func (f *runFlags) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1 && f.rerunFailed == inReportDir:
		f.rerunFailed = args[0]
		return nil
	}
	return usagef("%s takes no arguments, got %q: see %[1]s --help", cmd.CommandPath(), args[0])
}

// selectFailed reads the report of --rerun-failed and makes its failed clauses those of --only.
func (f *runFlags) selectFailed(cmd *cobra.Command, p *plan) error {
	if f.rerunFailed == "" {
		return nil
	}
	p.rerunOf = f.rerunFailed
	if p.rerunOf == inReportDir {
		p.rerunOf = p.reportDir
	}
	report, err := readReport(p.rerunOf)
	if err != nil {
		return err
	}
	known, err := engine.Checked()
	if err != nil {
		return err
	}
	for _, id := range failedClauses(report, f.strict || p.file.Strict) {
		if !slices.ContainsFunc(known, func(c contract.Clause) bool { return c.ID == id }) {
			cmd.PrintErrf("bridgecheck: warning: %s of %s is no clause of this contract: it is not tested\n", terminal.Escape(id), terminal.Escape(p.rerunOf))
			continue
		}
		f.only = append(f.only, id)
	}
	if len(f.only) == 0 {
		return usagef("no clause failed in %s: there is nothing to test again", p.rerunOf)
	}
	return nil
}

// failedClauses lists the clauses of a report that --rerun-failed tests.
func failedClauses(report *reports.Report, strict bool) []string {
	verdicts := []reports.Verdict{reports.Fail, reports.Error, reports.NotTestable}
	if strict || report.Strict {
		verdicts = append(verdicts, reports.Warn)
	}
	var ids []string
	for _, r := range report.With(verdicts...) {
		ids = append(ids, r.ID)
	}
	return ids
}

// recording is the real site behind the bridge, and where a recording proxy before it listens; the zero value is none.
type recording struct {
	listen  string // "": there is no proxy
	site    *url.URL
	control string // URL of the site's control plane; "": it is only read
}

// recordingOf reads the two flags. A proxy needs its site.
func recordingOf(listen, drupal string) (recording, error) {
	switch {
	case listen == "" && drupal == "":
		return recording{}, nil
	case drupal == "":
		return recording{}, usagef("--drupal-proxy is a proxy in front of a real site: give its URL by --drupal")
	}
	site, err := url.Parse(drupal)
	if err != nil || site.Scheme != "http" && site.Scheme != "https" || site.Host == "" {
		return recording{}, usagef("--drupal is no http or https address: give for example https://drupal.example.org")
	}
	return recording{listen: listen, site: site}, nil
}

// fits refuses a plan in which the proxy has no place.
func (r recording) fits(p *plan) error {
	switch {
	case r.site == nil:
		return nil
	case p.mockListen != "":
		return usagef("--drupal and --mock-listen are both the site behind the bridge: give one of the two")
	case p.target.URL == "" && p.exec == "":
		return usagef("--drupal needs a bridge in front of the site: name it by --url or --exec")
	}
	if r.control == "" {
		return nil
	}
	if err := p.file.CheckAccounts(); err != nil {
		return usageError(err)
	}
	return nil
}

// real takes the real site as the one behind the bridge, starts the proxy before it if there is one, and returns the URL for
// the bridge.
func (s *stage) real(ctx context.Context, r recording) (string, error) {
	s.site = r.site
	if r.listen == "" {
		return r.site.String(), nil
	}
	return s.record(ctx, r)
}

// record starts the proxy and returns its URL. A site that takes no connections ends the run before it begins.
func (s *stage) record(ctx context.Context, r recording) (string, error) {
	if err := s.controlled(ctx, r.control); err != nil {
		return "", err
	}
	var o proxy.Options
	if s.control != nil {
		o.Accepts = s.control.Accepts
	}
	proxy, err := proxy.New(r.site, o)
	if err != nil {
		return "", usageError(err)
	}
	if err := proxy.Reachable(ctx); err != nil {
		return "", &engine.UnreachableError{URL: r.site.Redacted(), Reason: err}
	}
	server, err := proxy.Listen(r.listen)
	if err != nil {
		return "", cannotListen("drupal-proxy", r.listen, err)
	}
	s.recorder = proxy
	s.stops = append(s.stops, func() { server.Close() })
	return reachable(server.URL), nil
}
