package suites

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/extensions/globals"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/harness"
)

// running lets one run at a time use Ginkgo's process-wide tree.
var running sync.Mutex

// Run tests the target and reports every clause that has a check exactly once. The error is a *UsageError, an
// *UnreachableError, or a defect of the harness; a run that ctx or the run time-out ends early has a report that says so.
func Run(ctx context.Context, target Target, o Options) (*reports.Report, error) {
	return inGinkgo(o, func(suite types.SuiteConfig, reporter types.ReporterConfig) (*reports.Report, error) {
		return run(ctx, target, o, suite, reporter)
	})
}

// RunPart is Run for the checks that o.Take lets this process test. Join makes the report.
func RunPart(ctx context.Context, target Target, o Options) (*Part, error) {
	return inGinkgo(o, func(suite types.SuiteConfig, reporter types.ReporterConfig) (*Part, error) {
		return runPart(ctx, target, o, suite, reporter)
	})
}

// inGinkgo calls run with the configuration of Ginkgo, which prints nothing meanwhile.
func inGinkgo[T any](o Options, run func(types.SuiteConfig, types.ReporterConfig) (T, error)) (T, error) {
	running.Lock()
	defer running.Unlock()
	output := formatter.ColorableStdOut
	formatter.ColorableStdOut = io.Discard
	defer func() { formatter.ColorableStdOut = output }()
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.RandomSeed = defaulted(o.Seed, 1)
	suite.GracePeriod = time.Second
	reporter.NoColor = true
	return run(suite, reporter)
}

// run makes the report of a pass that this process makes alone.
func run(ctx context.Context, target Target, o Options, suite types.SuiteConfig, reporter types.ReporterConfig) (*reports.Report, error) {
	part, err := runPart(ctx, target, o, suite, reporter)
	if err != nil {
		return nil, err
	}
	return Join(o.Progress, part)
}

// runPart registers the checks in a fresh tree and runs it under the given Ginkgo configuration.
func runPart(ctx context.Context, target Target, o Options, suite types.SuiteConfig, reporter types.ReporterConfig) (*Part, error) {
	r, err := newRun(target, o)
	if err != nil {
		return nil, err
	}
	defer r.Transport.CloseIdleConnections()
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, defaulted(o.RunTimeout, runTimeout), errRunTimeout)
	defer cancel()
	ctx, r.End = context.WithCancelCause(ctx)
	defer r.End(nil)
	r.Context = ctx
	go r.WatchLag(ctx)
	if o.Drupal != nil {
		defer prepare(o.Drupal)()
	}
	readSite(r, o)
	if err := preflight(ctx, (&harness.T{Environment: r})); err != nil {
		return nil, err
	}
	c := &collector{run: r, independent: o.Independent, outlook: newOutlook(r, started, defaulted(o.RunTimeout, runTimeout)), progress: o.Progress, stopAfter: o.StopAfter, results: map[string]reports.Result{}, blocked: map[string][]string{}}
	globals.Reset()
	r.Takes = func(clause string) bool {
		if ctx.Err() != nil || o.Take != nil && !o.Take(clause) {
			return false
		}
		if o.Started != nil {
			o.Started(clause)
		}
		return true
	}
	if o.Take == nil {
		register(r)
	} else {
		registerByWeight(r)
	}
	ginkgo.ReportAfterEach(c.collect)
	ginkgo.RunSpecs(failed{}, "bridgecheck", suite, reporter)

	report := &reports.Report{
		Schema: reports.SchemaVersion, Tool: o.Tool, Started: started.UTC(), DurationMS: time.Since(started).Milliseconds(),
		Ledger:       reports.Ledger{Version: r.Contract.Version, Revision: r.Contract.Revision, Checked: len(checked(r)), Unchecked: unchecked(r)},
		Environment:  reports.CurrentEnvironment(os.Getenv),
		Target:       reports.Target{URL: r.URL, Name: target.Name, Version: target.Version, Organisation: target.Organisation, Contact: target.Contact},
		Capabilities: r.Claimed, Settings: settings(r, o), Seed: suite.RandomSeed, Strict: o.Strict, Wire: reports.Wire(o.Wire),
		Filtered: len(o.Only)+len(o.Skip) > 0, Results: c.inOrder(),
	}
	report.NoBridge = r.Redact.Text(r.NotABridge)
	if ctx.Err() != nil {
		report.CutShort = cutShortReason(ctx)
		if errors.Is(context.Cause(ctx), errRunTimeout) {
			report.CutShort += c.outlook.afterRunTimeout()
		}
	}
	return newPart(r, o, report, c), nil
}

// readSite reads the methods of the real site behind the bridge, where there is one.
func readSite(r *harness.Environment, o Options) {
	site := o.Site
	if site == nil && o.Recorder != nil {
		site = o.Recorder.Site()
	}
	if r.Drupal != nil || site == nil {
		return
	}
	known, err := harness.NewRealSite(site, newTransport(o.TLS, nil, nil), r)
	if err != nil {
		r.SiteUnknown = err.Error()
		return
	}
	r.Site = known
}

var errRunTimeout = errors.New("the run time-out (--run-timeout) passed")

func cutShortReason(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
		return cause.Error()
	}
	return "interrupted"
}

func settings(e *harness.Environment, o Options) map[string]any {
	s := map[string]any{"page_size": e.PageSize, "timeout": e.Timeout.String(), "mock": o.Drupal != nil}
	if e.Upstream != nil && e.Upstream.Proxy {
		s["recording_proxy"] = true
	}
	if o.Control != nil {
		s["control"] = true
	}
	if e.Site != nil && e.Drupal == nil {
		s["site_methods"] = true
	}
	if e.UpstreamTimeout > 0 {
		s["upstream_timeout"] = e.UpstreamTimeout.String()
	}
	if e.DiscoveryTTL > 0 {
		s["discovery_ttl"] = e.DiscoveryTTL.String()
	}
	if len(o.Only) > 0 {
		s["only"] = o.Only
	}
	if len(o.Skip) > 0 {
		s["skip"] = o.Skip
	}
	if o.Clients != nil {
		s["clients"] = o.Clients
	}
	return s
}

// register builds the tree: a container an area, in the order of the contract.
func register(r *harness.Environment) {
	order := r.Contract.Areas()
	sorted := slices.Clone(areas)
	slices.SortStableFunc(sorted, func(x, y area) int { return slices.Index(order, x.name) - slices.Index(order, y.name) })
	for _, area := range sorted {
		var priority ginkgo.SpecPriority
		if area.name == lastArea {
			priority = -1
		}
		ginkgo.Describe(area.name, priority, func() {
			for _, c := range area.checks {
				if r.Selected(c.ID) {
					r.Check(c)
				}
			}
		})
	}
}

// unchecked lists the clauses that no check is written for.
func unchecked(r *harness.Environment) []string {
	ids := []string{}
	for _, c := range r.Contract.Clauses {
		if !hasCheck(c.ID) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// failed takes Ginkgo's overall outcome, which the verdicts already say.
type failed struct{}

func (failed) Fail() {}

// collector turns Ginkgo's reports of specs into results.
type collector struct {
	run       *harness.Environment
	progress  func(reports.Result)
	stopAfter func(reports.Result) string
	results   map[string]reports.Result
	blocked   map[string][]string // by clause: those that the bridge breaks so that it cannot be tested
	outlook   outlook
	unsettled []string // clauses that what ran beside them may explain

	independent bool
	carried     string // why what a check found may depend on those before it, or on what else runs; "": it does not
}

// result is what the contract says of a clause, before anything is tested.
func result(clause contract.Clause) reports.Result {
	return reports.Result{ID: clause.ID, Level: reports.Level(clause.Level), Area: clause.Area, Text: clause.Text, Source: clause.Source,
		Capability: harness.Requires(clause), Wire: reports.Wire(clause.Wire), Why: clause.Why, Remedy: clause.Fix.String()}
}

func (c *collector) collect(spec types.SpecReport) {
	clause, ok := c.run.Contract.Clause(spec.LeafNodeText)
	if !ok {
		return
	}
	if ending, _ := endingOf(spec); ending.Kind == harness.Elsewhere {
		c.outlook.left--
		return
	}
	r := result(clause)
	r.DurationMS = harness.Milliseconds(spec.RunTime)
	t := c.run.Running
	var why harness.Finding
	r.Verdict, why = verdict(t, clause, spec)
	why = t.Redacted(why)
	found := t.Reported(spec)
	if cutOff(spec) && len(found) == 0 {
		return // as if it had not begun
	}
	if len(found) > 0 { // which count, though what came after them could not be tested
		r.Verdict = broken(clause)
	}
	wrong := r.Verdict != reports.Pass && r.Verdict != reports.NotApplicable
	excuse, bySite := t.Excused()
	if wrong && excuse != "" {
		r.Verdict, found, why = reports.NotTestable, nil, harness.Finding{Subject: excuse}
	}
	var at func(*harness.Response) *int
	r.Evidence, at = t.Evidence(wrong)
	switch {
	case len(found) > 0:
		r.Findings = t.AsReported(found, at)
	case wrong && excuse != "":
		r.Message = excuse
	case wrong && (why.Expected != "" || at(why.Response) != nil || r.Verdict == broken(clause)):
		r.Findings = t.AsReported([]harness.Finding{why}, at)
	case wrong: // nothing of the bridge was seen
		r.Message = why.String()
	}
	r.Conclude()
	for _, p := range t.Findings.Tested {
		r.Tested = append(r.Tested, reports.Part{Tool: p.Tool, Identity: p.Identity})
	}
	if r.Verdict == reports.NotTestable || r.Verdict == reports.Error {
		r.Remedy = "" // of a fault that nobody has seen
	}
	c.results[clause.ID] = r
	settled := r.Verdict == reports.Pass || r.Verdict == reports.NotApplicable || r.Verdict == reports.NotTestable && len(r.Evidence) == 0
	if c.run.Sharers > 1 && (!settled || t.Unserved()) {
		c.unsettled = append(c.unsettled, clause.ID)
	}
	if ending, ok := endingOf(spec); ok && excuse == "" && r.Verdict == reports.NotTestable && ending.Kind == harness.BlockedByBridge && !t.Blamed().Throttled() {
		c.blocked[clause.ID] = ending.Culprits
		if c.run.Alone() && len(ending.Culprits) > 0 { // the clauses on the three endpoints do not apply: a failed clause on MCP explains it
			c.blocked[clause.ID] = append(slices.Clone(ending.Culprits), "mcp/*")
		}
	}
	if c.progress != nil {
		c.progress(r)
	}
	if c.run.Context.Err() != nil {
		return
	}
	if c.carried = cmp.Or(c.carried, c.run.Carried(), excuse); c.independent && c.carried != "" {
		c.run.End(errors.New(c.carried))
		return
	}
	reason := c.outlook.hopeless(excuse, bySite)
	if reason == "" && c.stopAfter != nil {
		reason = c.stopAfter(r)
	}
	if reason != "" {
		c.run.End(errors.New(reason))
	}
}

// broken is the verdict on a clause that is not kept: a SHOULD or MAY gives a warning.
func broken(clause contract.Clause) reports.Verdict {
	if clause.Level == contract.MUST {
		return reports.Fail
	}
	return reports.Warn
}

// verdict reads a finished spec, and why it ended so.
func verdict(t *harness.T, clause contract.Clause, spec types.SpecReport) (reports.Verdict, harness.Finding) {
	why := func(format string, args ...any) harness.Finding {
		return harness.Finding{Subject: harness.OneLine(fmt.Sprintf(format, args...))}
	}
	switch spec.State {
	case types.SpecStatePassed:
		return reports.Pass, harness.Finding{}
	case types.SpecStateFailed:
		return broken(clause), t.Failure(spec)
	case types.SpecStateSkipped:
		if ending, ok := endingOf(spec); ok && ending.Kind == harness.Inapplicable {
			return reports.NotApplicable, ending.Why
		} else if ok {
			if ending.Kind == harness.BlockedByBridge {
				ending.Why.Response = t.Blamed()
			}
			return reports.NotTestable, ending.Why
		}
		return reports.NotTestable, why("%s", spec.Failure.Message)
	case types.SpecStateInterrupted, types.SpecStateAborted: // cutOff
		return reports.NotTestable, why("the run ended while this was tested")
	case types.SpecStateTimedout:
		return reports.Error, why("the check did not end within its time: %s", spec.Failure.Message)
	case types.SpecStatePanicked:
		return reports.Error, why("the check itself broke: %s: %s", spec.Failure.Message, spec.Failure.ForwardedPanic)
	}
	return reports.Error, why("the check ended as %s", spec.State)
}

// cutOff reports whether the end of the run ended a check.
func cutOff(spec types.SpecReport) bool {
	ending, _ := endingOf(spec)
	return ending.Kind == harness.CutShort || spec.State.Is(types.SpecStateInterrupted|types.SpecStateAborted)
}

// endingOf is why a check ended without a verdict of its own.
func endingOf(spec types.SpecReport) (harness.Ending, bool) {
	for _, entry := range spec.ReportEntries {
		if ending, ok := entry.Value.GetRawValue().(harness.Ending); ok {
			return ending, true
		}
	}
	return harness.Ending{}, false
}

// inOrder lists the results in the order of the contract.
func (c *collector) inOrder() []reports.Result {
	results := []reports.Result{}
	for _, clause := range c.run.Contract.Clauses {
		if r, ok := c.results[clause.ID]; ok {
			results = append(results, r)
		}
	}
	return results
}
