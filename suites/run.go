// Package suites holds any bridge to the contract. Run judges a bridge by its URL, with the mock Drupal behind it or
// without, and reports every clause exactly once, with evidence. The checks are Ginkgo specs, one file an area; they
// reach a bridge through its URL only. No verdict is decided in a check: a check says what must be.
package suites

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/extensions/globals"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// running lets one run at a time use Ginkgo's process-wide tree.
var running sync.Mutex

// Run judges the target and reports every clause that has a check exactly once. The error is a *UsageError, an
// *UnreachableError, or a defect of the harness; a run that ctx or the run time-out ends early has a report that says so.
func Run(ctx context.Context, target Target, o Options) (*reports.Report, error) {
	running.Lock()
	defer running.Unlock()
	output := formatter.ColorableStdOut
	formatter.ColorableStdOut = io.Discard
	defer func() { formatter.ColorableStdOut = output }()
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.RandomSeed = defaulted(o.Seed, 1)
	suite.GracePeriod = time.Second
	reporter.NoColor = true
	return run(ctx, target, o, suite, reporter)
}

// run registers the checks in a fresh tree and runs it under the given Ginkgo configuration.
func run(ctx context.Context, target Target, o Options, suite types.SuiteConfig, reporter types.ReporterConfig) (*reports.Report, error) {
	b, err := newBridge(target, o)
	if err != nil {
		return nil, err
	}
	defer b.transport.CloseIdleConnections()
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, defaulted(o.RunTimeout, 10*time.Minute), errRunTimeout)
	defer cancel()
	ctx, b.end = context.WithCancelCause(ctx)
	defer b.end(nil)
	b.ctx = ctx
	if err := b.preflight(ctx); err != nil {
		return nil, err
	}
	c := &collector{bridge: b, progress: o.Progress, results: map[string]reports.Result{}}
	globals.Reset()
	gomega.RegisterFailHandler(ginkgo.Fail)
	b.register()
	ginkgo.ReportAfterEach(c.collect)
	ginkgo.RunSpecs(failed{}, "bridgecheck", suite, reporter)

	report := &reports.Report{
		Schema: reports.SchemaVersion, Tool: o.Tool, Started: started.UTC(), DurationMS: time.Since(started).Milliseconds(),
		Ledger:       reports.Ledger{Revision: b.contract.Revision, Checked: len(b.judged), Unchecked: b.unchecked()},
		Environment:  reports.CurrentEnvironment(os.Getenv),
		Target:       reports.Target{URL: b.url, Name: target.Name, Version: target.Version, Organisation: target.Organisation, Contact: target.Contact},
		Capabilities: b.claimed, Settings: settings(b, o), Seed: suite.RandomSeed, Strict: o.Strict,
		Filtered: len(o.Only)+len(o.Skip) > 0, Results: c.inOrder(),
	}
	report.NoBridge = b.redact.Text(b.lifeless)
	if ctx.Err() != nil {
		report.CutShort = cutShortReason(ctx)
	}
	report.Summarize()
	return report, nil
}

var errRunTimeout = errors.New("the run time-out (--run-timeout) passed")

func cutShortReason(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
		return cause.Error()
	}
	return "interrupted"
}

func settings(b *Bridge, o Options) map[string]any {
	s := map[string]any{"page_size": b.PageSize, "timeout": b.timeout.String(), "mock": b.Drupal != nil}
	if b.Upstream != nil && b.Drupal == nil {
		s["recording_proxy"] = true
	}
	if b.DiscoveryTTL > 0 {
		s["discovery_ttl"] = b.DiscoveryTTL.String()
	}
	if len(o.Only) > 0 {
		s["only"] = o.Only
	}
	if len(o.Skip) > 0 {
		s["skip"] = o.Skip
	}
	return s
}

// register builds the tree: a container an area, in the order of the ledger.
func (b *Bridge) register() {
	order := b.contract.Areas()
	sorted := slices.Clone(areas)
	slices.SortStableFunc(sorted, func(x, y areaFunc) int { return slices.Index(order, x.name) - slices.Index(order, y.name) })
	for _, area := range sorted {
		var order ginkgo.SpecPriority
		if area.name == "upstream" {
			order = -1 // last: a bridge that does not get over a site that failed would be blamed for all that follows
		}
		ginkgo.Describe(area.name, order, func() { area.register(b) })
	}
}

func (b *Bridge) unchecked() []string {
	ids := []string{}
	for _, c := range b.contract.Clauses {
		if !b.judged[c.ID] {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// failed takes Ginkgo's overall outcome, which the verdicts already tell.
type failed struct{}

func (failed) Fail() {}

// collector turns Ginkgo's reports of specs into results.
type collector struct {
	bridge   *Bridge
	progress func(reports.Result)
	results  map[string]reports.Result
}

// result is what the ledger says of a clause, before anything is judged.
func result(clause contract.Clause) reports.Result {
	return reports.Result{ID: clause.ID, Level: clause.Level, Area: clause.Area, Text: clause.Text, Source: clause.Source,
		Capability: requires(clause), Why: clause.Why, Remedy: clause.Fix.String()}
}

func (c *collector) collect(spec types.SpecReport) {
	clause, ok := c.bridge.contract.Clause(spec.LeafNodeText)
	if !ok {
		return
	}
	r := result(clause)
	r.DurationMS = ms(spec.RunTime)
	r.Verdict, r.Message = verdict(clause, spec)
	r.Message = c.bridge.redact.Text(sentence(r.Message))
	found := c.bridge.found(spec)
	if len(found) > 0 { // which count, though what came after them could not be judged
		r.Verdict = broken(clause)
	}
	wrong := r.Verdict != reports.Pass && r.Verdict != reports.NotApplicable
	var at func(*Answer) *int
	r.Evidence, at = c.bridge.evidence(wrong)
	switch {
	case len(found) > 0:
		r.Findings = c.bridge.reported(found, at)
	case wrong:
		r.Findings = c.bridge.reported([]finding{{message: r.Message, answer: c.bridge.blamedNow()}}, at)
	}
	r.Conclude()
	for _, p := range c.bridge.findings.judged {
		r.Tested = append(r.Tested, reports.Part{Tool: p.tool, Identity: p.identity})
	}
	if r.Verdict == reports.NotTestable || r.Verdict == reports.Error {
		r.Remedy = "" // of a fault that nobody has seen
	}
	c.results[clause.ID] = r
	if c.progress != nil {
		c.progress(r)
	}
}

// sentence is a failure's message as one line: the line in the form of mismatch where there is one, with the short
// explanation before it as its note. Where the explanation says what was expected and Gomega shows a text, that is what
// was got. Else it is all of the message.
func sentence(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	if len(lines) > 1 && strings.HasPrefix(lines[0], "Timed out") {
		lines = lines[1:]
	}
	first := strings.TrimSpace(lines[0])
	for i, line := range lines {
		line = strings.TrimSpace(line)
		shown, isText := strings.CutPrefix(line, "<string>: ")
		expected, _ := splitMismatch(shown)
		switch {
		case expected != "" && (i == 0 || first == "Expected"):
			return shown
		case expected != "":
			return about(shown, first)
		case isText && strings.Contains(first, ": expected "):
			return first + ", got " + shown
		case isText && i > 1:
			return first + ": " + shown
		}
	}
	return oneLine(message)
}

// about puts a note on the subject of a message that does not speak of it yet.
func about(message, note string) string {
	subject, rest, found := strings.Cut(message, ": expected ")
	switch {
	case note == "" || strings.Contains(" "+subject+" ", " "+note+" "):
		return message
	case !found:
		return note + ": " + message
	}
	if noted, ok := strings.CutSuffix(subject, ")"); ok {
		return fmt.Sprintf("%s, %s): expected %s", noted, note, rest)
	}
	return fmt.Sprintf("%s (%s): expected %s", subject, note, rest)
}

// broken is the verdict on a clause that is not kept: a SHOULD or MAY gives a warning.
func broken(clause contract.Clause) reports.Verdict {
	if clause.Level == reports.MUST {
		return reports.Fail
	}
	return reports.Warn
}

// verdict reads a finished spec.
func verdict(clause contract.Clause, spec types.SpecReport) (reports.Verdict, string) {
	switch spec.State {
	case types.SpecStatePassed:
		return reports.Pass, ""
	case types.SpecStateFailed:
		return broken(clause), spec.Failure.Message
	case types.SpecStateSkipped:
		if hasEntry(spec, notApplicable) {
			return reports.NotApplicable, spec.Failure.Message
		}
		return reports.NotTestable, spec.Failure.Message
	case types.SpecStateInterrupted, types.SpecStateAborted:
		return reports.NotTestable, "the run ended before this was judged"
	case types.SpecStateTimedout:
		return reports.Error, "the check did not end within its time: " + spec.Failure.Message
	case types.SpecStatePanicked:
		return reports.Error, fmt.Sprintf("the check itself broke: %s: %s", spec.Failure.Message, spec.Failure.ForwardedPanic)
	}
	return reports.Error, fmt.Sprintf("the check ended as %s", spec.State)
}

func hasEntry(spec types.SpecReport, kind skipKind) bool {
	return slices.ContainsFunc(spec.ReportEntries, func(e types.ReportEntry) bool { return e.Name == string(kind) })
}

// inOrder lists the results in the order of the ledger. A selected check that never ran has one too.
func (c *collector) inOrder() []reports.Result {
	results := []reports.Result{}
	for _, clause := range c.bridge.contract.Clauses {
		r, ok := c.results[clause.ID]
		if !ok && c.bridge.judged[clause.ID] && c.bridge.selected(clause.ID) {
			r, ok = result(clause), true
			r.Verdict, r.Message, r.Evidence = reports.NotTestable, "the run ended before this was judged", []reports.Exchange{}
			r.Remedy = ""
		}
		if ok {
			results = append(results, r)
		}
	}
	return results
}
