package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/starter"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// plan is what a run does, settled from flags and configuration.
type plan struct {
	target engine.Target
	started
	mockListen string
	moreURLs   []string // of replicas beside the target
	proxy      recording
	withModule string // version of the MCP module whose endpoints the mock has; "": none
	reportDir  string
	baseline   *baseline.File  // nil: none
	previous   *reports.Report // nil: none
	legs       []leg
	filtered   bool   // --only or --skip, or the configuration's, leave clauses out
	rerunOf    string // the report whose failed clauses alone are tested; "": all are
	shard      shard
	warnings   io.Writer
	lacks      []string // what the machine is short of, and what the run does about it
	failFast   bool
	keepUp     bool             // the stages stay up after the run
	kept       []*keptStage     // those that are up
	keys       *authserver.Keys // of the stages
	file       *settings.File   // the configuration; empty where none was given
}

// started is the bridge that the run starts.
type started struct {
	exec         string
	replicas     int      // that exec starts
	alone        bool     // one process of it at a time, as the user says
	mcpStdio     string   // command that is the bridge on stdio; "": none
	stdioAlone   bool     // the bridge is on stdio and nowhere else
	env          []string // names of variables that the bridge receives
	readyTimeout time.Duration
	group        *processtree.Group // the bridges of --exec, of all workers; nil: none are started
	aside        func(*bridgeLog)   // takes the log of a worker, a file without a name; nil: log is in reportDir
	log          *bridgeLog         // of the bridges of --exec; nil: none was started
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
	if err := f.unnamed(cmd); err != nil {
		return nil, err
	}
	file := &settings.File{}
	var err error
	if f.Config != "" {
		if file, err = settings.Load(f.Config); err != nil {
			return nil, usageError(err)
		}
	}
	if err := f.fits(file); err != nil {
		return nil, err
	}
	given := cmd.Flags().Changed
	v, err := settings.Resolve(file, &f.Values, given)
	if err != nil {
		return nil, err
	}
	p := &plan{
		target: v.Target(), mockListen: v.MockListen, moreURLs: v.MoreURLs, failFast: v.FailFast, withModule: v.WithModule, reportDir: v.ReportDir, file: &v.File,
		started:  started{exec: v.Exec, replicas: v.Replicas, alone: v.Jobs == 1, mcpStdio: v.MCPStdio, readyTimeout: time.Duration(v.ReadyTimeout)},
		warnings: cmd.ErrOrStderr(), keys: &authserver.Keys{},
	}
	if err := p.checkTarget(v, given); err != nil {
		return nil, err
	}
	p.warnAboutPlainHTTP(cmd)
	if req, err := http.NewRequest(http.MethodGet, p.target.URL, nil); err == nil && v.Proxy == "" {
		if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy != nil {
			cmd.PrintErrf("bridgecheck: the requests to the bridge go through the proxy %s of the environment\n", terminal.Escape(proxy.Redacted()))
		}
	}
	if err := p.setSite(v); err != nil {
		return nil, err
	}
	if err := p.checkName(given); err != nil {
		return nil, err
	}
	if v.Previous != "" {
		// Before the run deletes what an earlier one left in its directory.
		if p.previous, err = readReport(v.Previous); err != nil {
			return nil, err
		}
	}
	if v.Baseline != "" {
		if p.baseline, err = readBaseline(v.Baseline); err != nil {
			return nil, usageError(err)
		}
	}
	if err := f.selectFailed(cmd, p, v); err != nil {
		return nil, err
	}
	if err := p.addLegs(cmd, v); err != nil {
		return nil, err
	}
	if err := p.checkFilters(); err != nil {
		return nil, err
	}
	if err := f.selectShard(p); err != nil {
		return nil, err
	}
	if what := p.shared(); what != "" && f.Jobs > 1 {
		return nil, usagef("--jobs is %d, and the workers would share %s: leave --jobs out", f.Jobs, what)
	}
	if tls := p.legs[0].options.Connection.TLS; tls != nil && tls.InsecureSkipVerify {
		cmd.PrintErrln("bridgecheck: warning: the bridge's certificate is not checked (tls.insecure)")
	}
	return p, nil
}

// checkTarget settles how the bridge is reached, and refuses flags that do not go together.
func (p *plan) checkTarget(v *settings.Values, given func(flag string) bool) error {
	switch {
	case p.mcpStdio != "" && p.exec == "" && (p.target.URL != "" || p.mockListen != "" || v.Drupal != ""):
		return usagef("--mcp-stdio starts the bridge of --exec for stdio, or alone a bridge that has nothing else: " +
			"give --exec too, or --mcp-stdio without --url, --mock-listen and --drupal")
	case p.withModule != "" && (v.Drupal != "" || p.exec == "" && p.mcpStdio == "" && p.mockListen == ""):
		return usagef("--with-module is for the mock Drupal behind a bridge: give --exec, --mcp-stdio or --mock-listen, and no --drupal")
	case given("env") && p.exec == "" && p.mcpStdio == "":
		return usagef("--env is for a bridge that --exec or --mcp-stdio starts: give one of them")
	}
	if p.stdioAlone = p.mcpStdio != "" && p.exec == ""; p.stdioAlone {
		p.target.URL = stdioURL
	}
	if err := p.checkReplicas(); err != nil {
		return err
	}
	switch {
	case len(v.LogIn) == 0 && (v.Device || v.ClientID != "" || v.Issuer != ""):
		return usagef("--device, --client-id and --issuer say how --login logs in: give --login too")
	case len(v.LogIn) > 0 && (p.target.URL == "" || p.exec != "" || p.mockListen != "" || p.stdioAlone):
		return usagef("--login logs in at a bridge that is running, with an authorization server of its own: give --url, and neither --exec nor --mock-listen")
	}
	if p.exec != "" || p.stdioAlone {
		p.env, p.group = v.Env, processtree.NewGroup()
		if err := checkEnvironment(p.env); err != nil {
			return err
		}
	}
	return nil
}

// setSite settles what stands behind the bridge.
func (p *plan) setSite(v *settings.Values) error {
	var err error
	if p.proxy, err = recordingOf(v.DrupalProxy, v.Drupal); err != nil {
		return err
	}
	if p.proxy.control = v.Control; p.proxy.control != "" && p.proxy.listen == "" {
		return usagef("--control changes the real site behind a recording proxy: give --drupal and --drupal-proxy too")
	}
	if err := p.proxy.fits(p); err != nil {
		return err
	}
	if p.mockListen != "" && p.target.URL == "" && p.exec == "" {
		return usagef("--mock-listen puts the mock Drupal behind a bridge: name it by --url or --exec")
	}
	if p.keepUp = v.Keep; p.keepUp && (p.proxy.site != nil || p.target.URL != "" && p.mockListen == "") {
		return usagef("--keep keeps a bridge running with the mock Drupal behind it: give --exec or --mock-listen")
	}
	return nil
}

// addLegs settles the passes: one for each profile of the reference bridge, one for any other.
func (p *plan) addLegs(cmd *cobra.Command, v *settings.Values) error {
	profiles := []testbed.Profile{{Capabilities: engine.DefaultCapabilities}}
	if p.target.URL == "" && p.exec == "" {
		profiles = testbed.Profiles()
	}
	makers, wrong := &generate.Makers{}, &atomic.Int32{}
	for i, profile := range profiles {
		l, err := legOf(cmd, v, profile)
		if err != nil {
			return err
		}
		l.options.Pass.Makers, l.options.Pass.Wrong = makers, wrong
		if p.exec != "" && l.options.Bridge.UpstreamTimeout%time.Second != 0 {
			return usagef("the upstream time-out is %s: a bridge of --exec receives whole seconds, give for example --upstream-timeout 2s",
				l.options.Bridge.UpstreamTimeout)
		}
		if p.stdioAlone && slices.ContainsFunc(l.options.Capabilities, func(c string) bool { return c == "tools" || c == check.OAuth }) {
			return usagef("a bridge of --mcp-stdio alone has neither the three endpoints nor tokens: give --capabilities mcp,-tools")
		}
		p.filtered = len(l.options.Only)+len(l.options.Skip) > 0
		elsewhere, err := inVersion(l.options.Contract, profile.Skip)
		if err != nil {
			return err
		}
		l.options.Skip = append(slices.Clone(l.options.Skip), elsewhere...)
		if l.checks, err = engine.Checks(l.options); err != nil {
			return err
		}
		if i == 0 || len(l.checks) > 0 {
			p.legs = append(p.legs, l)
		}
	}
	return nil
}

// checkFilters refuses filters that leave no clause, and says what those that are left lack if none applies.
func (p *plan) checkFilters() error {
	if len(p.checks()) > 0 {
		return nil
	}
	unclaimed, err := engine.Unclaimed(p.legs[0].options)
	switch {
	case err != nil:
		return err
	case len(unclaimed) == 0:
		return usagef("no clause is left to test: --only, --skip, --short and --sample leave out all")
	}
	var needs []string
	for _, name := range slices.Sorted(maps.Keys(unclaimed)) {
		needs = append(needs, fmt.Sprintf("%s (%d)", name, unclaimed[name]))
	}
	fmt.Fprintf(p.warnings, "bridgecheck: the selected clauses need capabilities that are not claimed: %s; give what the bridge has by --capabilities\n",
		strings.Join(needs, ", "))
	return nil
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

// checkName refuses a name for the reference bridge, which has its own.
func (p *plan) checkName(given func(flag string) bool) error {
	for _, flag := range []string{"implementation", "implementation-version", "organisation", "contact"} {
		if given(flag) && p.target.URL == "" && p.exec == "" {
			return usagef("--%s describes the bridge of --url or --exec: give one of them", flag)
		}
	}
	return nil
}

// legOf settles one pass. What the user gives overrides the profile.
func legOf(cmd *cobra.Command, v *settings.Values, profile testbed.Profile) (leg, error) {
	o := engine.Options{Capabilities: profile.Capabilities, Tool: thisTool()}
	if profile.Run != nil {
		profile.Run(&o)
	}
	o.Bridge.UpstreamTimeout = profile.UpstreamTimeout
	o, err := v.Options(cmd.Context(), o)
	if err != nil && cmd.Context().Err() == nil { // else the run that follows reports that it was interrupted
		return leg{}, usageError(errors.Join(err, undo(cmd.Context(), &v.File, v.ReportDir, v.Sessions())))
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
	case changed("rerun-failed") && changed("only"):
		return usagef("--rerun-failed and --only both say which clauses are tested: give one of the two")
	}
	return nil
}

// unnamed looks for a configuration in the working directory that the command line does not name: an author who expects it to be
// read would take the verdict on the reference bridge for that on his own.
func (f *runFlags) unnamed(cmd *cobra.Command) error {
	if _, err := os.Stat(starter.Config); err != nil || f.Config != "" {
		return nil
	}
	if f.URL == "" && f.Exec == "" && f.MCPStdio == "" {
		return usagef("%s is here, and without a target %s tests the reference bridge: give --config %[1]s to test the bridge that it "+
			"describes, or change to another directory", starter.Config, cmd.Name())
	}
	if !f.Quiet && !f.JSON {
		cmd.PrintErrf("bridgecheck: %s is here and is not read: add --config %[1]s to read it\n", starter.Config)
	}
	return nil
}

// fits refuses a configuration that describes a bridge but names none: the run would test the reference bridge instead.
func (f *runFlags) fits(file *settings.File) error {
	if f.Config == "" || f.URL != "" || f.Exec != "" || f.MCPStdio != "" || file.URL != "" || file.Exec != "" || file.MCPStdio != "" {
		return nil
	}
	if key := file.ForOneBridge(); key != "" {
		return usagef("%s describes a bridge by %s and does not name it: give url, exec or mcp_stdio there, or --url, --exec or --mcp-stdio", f.Config, key)
	}
	return nil
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
	if _, ok := errors.AsType[*engine.UsageError](err); ok {
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
	case len(args) == 1 && f.RerunFailed == inReportDir:
		f.RerunFailed = args[0]
		return nil
	}
	instead := "see " + cmd.CommandPath() + " --help"
	if f.URL == "" && f.Exec == "" && f.MCPStdio == "" && f.Config == "" && f.RerunFailed == "" { // it is the bridge, most likely
		instead = fmt.Sprintf("write --exec '%s', --url or --config", strings.Join(args, " "))
		if _, err := engine.BaseURL(args[0]); err == nil {
			instead = "write --url " + args[0]
		} else if ext := filepath.Ext(args[0]); ext == ".yaml" || ext == ".yml" {
			instead = "write --config " + args[0]
		}
	}
	return usagef("%s takes no arguments, got %q: %s", cmd.CommandPath(), args[0], instead)
}

// selectFailed reads the report of --rerun-failed and makes its failed clauses those of --only.
func (f *runFlags) selectFailed(cmd *cobra.Command, p *plan, v *settings.Values) error {
	if f.RerunFailed == "" {
		return nil
	}
	p.rerunOf = f.RerunFailed
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
	for _, id := range failedClauses(report, v.Strict) {
		if !slices.ContainsFunc(known, func(c contract.Clause) bool { return c.ID == id }) {
			cmd.PrintErrf("bridgecheck: warning: %s of %s is no clause of this contract: it is not tested\n", terminal.Escape(id), terminal.Escape(p.rerunOf))
			continue
		}
		f.Only = append(f.Only, id) // of the workers, too
	}
	v.Only = f.Only
	if len(f.Only) == 0 {
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
		if r.During != "" && !slices.Contains(ids, r.During) {
			ids = append(ids, r.During)
		}
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
	if strings.HasSuffix(strings.TrimRight(site.Path, "/"), "/jsonrpc") {
		return recording{}, usagef("--drupal is the address of the site: leave /jsonrpc out")
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
