// Package specs adds the checks to a Ginkgo suite: one spec for each, in the tree of the caller. The specs run the same
// checks as suites.Run, and reach the same verdicts; Ginkgo's filters, reports, time-outs and processes work on them as on
// any other spec.
//
// A spec that only looks at the bridge's URL runs on any process. One that looks at the site, or changes it, is Serial:
// processes share the site. A broken MUST fails, a broken SHOULD passes with a visible report entry (it fails where
// Options.Strict is set), and what does not apply or cannot be tested is skipped with the reason. After the suite the one
// verdict is printed; where no spec failed and the verdict is not conformant, the suite fails by it, as it does where filters
// leave no spec at all.
package specs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Suite is what Register adds.
type Suite struct {
	Target  suites.Target
	Options suites.Options // which clauses there are is read when the tree is built, the rest when the first spec runs

	// Before, if not nil, is called on each process before its first spec. It may start the bridge and the site and fill in
	// the target and the options; an error aborts the suite.
	Before func(ctx context.Context, s *Suite) error

	// After, if not nil, receives the report of the whole suite, on the first process.
	After func(report *reports.Report)
}

// partEntry names the report entry that carries what a spec found to the first process.
const partEntry = "bridgecheck"

// Register adds a container for each area, in the order of the contract, with a spec for each check. Call it at
// the top level (`var _ = specs.Register(…)`, or before RunSpecs), since it reports after the suite. Options that name no clause, or
// that are wrong, panic as a malformed tree does.
func Register(s Suite) bool {
	specs, err := New(s)
	if err != nil {
		panic("specs.Register: " + err.Error())
	}
	for area, listed := range specs.Areas() {
		ginkgo.Describe(area, func() {
			for _, l := range listed {
				ginkgo.It(l.Clause.ID, specs.Spec(l.Clause.ID))
			}
		})
	}
	ginkgo.ReportAfterSuite("bridgecheck", specs.AfterSuite)
	return true
}

// Specs are the specs of a suite, for a tree that is written out, where `ginkgo outline` and `ginkgo labels` see them:
//
//	It("list/names-unique", Label("area:list", "MUST"), specs.Spec("list/names-unique"))
//
// Such a tree needs ReportAfterSuite("bridgecheck", specs.AfterSuite). The session begins with the first spec of a process.
type Specs struct {
	suite   Suite
	listed  []engine.Listing
	once    sync.Once
	session *engine.Session
	err     error
}

// New prepares the specs of a suite. The error says what is wrong with the options.
func New(s Suite) (*Specs, error) {
	listed, err := engine.Listed(s.Options)
	if err != nil {
		return nil, err
	}
	return &Specs{suite: s, listed: listed}, nil
}

// Areas lists the clauses of each area, in the order of the contract, the area of a site that fails last.
func (r *Specs) Areas() iter.Seq2[string, []engine.Listing] {
	return func(yield func(string, []engine.Listing) bool) {
		for listed := r.listed; len(listed) > 0; {
			area := listed[0].Clause.Area
			n := slices.IndexFunc(listed, func(l engine.Listing) bool { return l.Clause.Area != area })
			if n < 0 {
				n = len(listed)
			}
			if !yield(area, listed[:n]) {
				return
			}
			listed = listed[n:]
		}
	}
}

// begin opens the session of this process.
func (r *Specs) begin() error {
	r.once.Do(func() {
		ctx := context.Background() // the session lasts longer than the spec
		if r.suite.Before != nil {
			if r.err = r.suite.Before(ctx, &r.suite); r.err != nil {
				return
			}
		}
		if r.suite.Options.Pass.Waiting == nil {
			r.suite.Options.Pass.Waiting = func(why string) { ginkgo.GinkgoWriter.Println(settings.AsOptions(why)) }
		}
		r.session, r.err = engine.Open(ctx, r.suite.Target, r.suite.Options)
	})
	return r.err
}

// Spec returns the decorators and the body of the spec of a clause: its labels, the place where its check is declared, Serial
// where the check sees more than the bridge's URL, and a low priority for the area of a site that fails, so that it comes
// last also where the order is random: a bridge that does not get over such a site spoils what follows.
func (r *Specs) Spec(id string) []any {
	i := slices.IndexFunc(r.listed, func(l engine.Listing) bool { return l.Clause.ID == id })
	if i < 0 {
		return []any{func() { ginkgo.Skip("the options leave it out") }}
	}
	l := r.listed[i]
	file, line := l.Check.Place()
	decorators := []any{Labels(l.Check, l.Clause), types.CodeLocation{FileName: file, LineNumber: line}}
	if l.Check.Sees != check.Front || l.Check.ByMock {
		decorators = append(decorators, ginkgo.Serial)
	}
	if engine.IsLast(id) {
		decorators = append(decorators, ginkgo.SpecPriority(-1))
	}
	return append(decorators, func(ctx ginkgo.SpecContext) {
		if err := r.begin(); err != nil {
			ginkgo.AbortSuite("no clause was tested: " + settings.AsOptions(err.Error()))
		}
		result, ran := r.session.TestShown(ctx, l.Check)
		if !ran {
			ginkgo.Skip("the run ended before this was tested")
		}
		if parallel() {
			ginkgo.AddReportEntry(partEntry, r.session.PartOf(l.Check.ID), ginkgo.ReportEntryVisibilityNever)
		}
		r.conclude(result)
	})
}

// conclude ends the running spec by the verdict on its clause.
func (r *Specs) conclude(result reports.Result) {
	for _, f := range engine.Found(result) { // for the JSON report: the console has the failure's message
		ginkgo.AddReportEntry("finding", f, ginkgo.ReportEntryVisibilityNever)
	}
	switch v := result.Verdict; {
	case v == reports.NotApplicable, v == reports.NotTestable:
		ginkgo.Skip(strings.TrimSpace(string(v) + ": " + settings.AsOptions(result.Message)))
	case v == reports.Fail, v == reports.Error, v == reports.Warn && r.suite.Options.Strict:
		ginkgo.Fail(engine.Account(result))
	case v != reports.Pass:
		ginkgo.AddReportEntry(string(v), engine.Account(result), ginkgo.ReportEntryVisibilityAlways)
	}
}

// Labels are those of a spec: `area:list`, the level, `wire:front` or `wire:both`, `sees:front`, `sees:discovery`,
// `sees:journal` or `sees:site`, `needs:CAPABILITY` for each capability that the clause stands under, and `costly`.
func Labels(c check.Check, clause contract.Clause) ginkgo.Labels {
	labels := ginkgo.Labels{"area:" + clause.Area, string(clause.Level), "wire:" + string(clause.Wire), "sees:" + c.Sees.String()}
	if clause.Needs != "" {
		labels = append(labels, "needs:"+clause.Needs)
	}
	if c.Costly {
		labels = append(labels, "costly")
	}
	return labels
}

func parallel() bool {
	suite, _ := ginkgo.GinkgoConfiguration()
	return suite.ParallelTotal > 1
}

// AfterSuite makes the one verdict of what all processes found, and prints it. It is for ReportAfterSuite.
func (r *Specs) AfterSuite(ran ginkgo.Report) {
	if ran.SuiteConfig.DryRun || r.err != nil {
		return
	}
	report, err := r.report(ran)
	if err != nil {
		ginkgo.Fail("bridgecheck: " + err.Error())
	}
	if report == nil {
		if ran.PreRunStats.SpecsThatWillRun == 0 {
			var areas []string
			for area := range r.Areas() {
				areas = append(areas, area)
			}
			ginkgo.Fail("bridgecheck: no clause ran: the filters of Ginkgo match no spec; the areas are " + strings.Join(areas, ", "))
		}
		return
	}
	if r.suite.After != nil {
		r.suite.After(report)
	}
	verdict := settings.AsOptions(engine.Verdict(report))
	for _, m := range report.Measured {
		if m.Warning != "" {
			fmt.Println("\nbridgecheck: warning: " + settings.AsOptions(m.Warning))
		}
	}
	fmt.Println("\nbridgecheck: " + verdict)
	if report.ExitCode() == 0 || !ran.SuiteSucceeded {
		return
	}
	for _, result := range report.Results { // those that only the whole suite shows, by the culprit rule
		if result.Verdict == reports.Fail {
			verdict += "\n\n" + result.ID + ": " + engine.Account(result)
		}
	}
	ginkgo.Fail(verdict)
}

// report joins what the specs found; nil where none of them ran.
func (r *Specs) report(ran ginkgo.Report) (*reports.Report, error) {
	var parts []*engine.Part
	began := map[string]bool{}
	for _, spec := range ran.SpecReports {
		if !spec.StartTime.IsZero() && spec.RunTime > 0 {
			began[spec.LeafNodeText] = true
		}
		for _, entry := range slices.Backward(spec.ReportEntries) { // with --flake-attempts a spec has several: the last counts
			if entry.Name != partEntry {
				continue
			}
			part, err := partOf(entry)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
			break
		}
	}
	if len(parts) == 0 && r.session == nil {
		return nil, nil
	}
	cut := ran.SpecialSuiteFailureReasons
	if ran.SuiteConfig.FailFast && !ran.SuiteSucceeded {
		cut = append(cut, "fail fast")
	}
	if r.session != nil {
		defer r.session.Close()
		if len(cut) > 0 {
			r.session.End(errors.New(strings.Join(cut, ", ")))
		}
		if len(parts) == 0 {
			parts = append(parts, r.session.Part())
		}
	}
	for _, p := range parts {
		if len(cut) == 0 {
			p.KeepOnly(func(id string) bool { return began[id] })
		} else {
			p.Report.CutShort = cmp.Or(p.Report.CutShort, strings.Join(cut, ", ")) // other processes do not know it
		}
	}
	return r.suite.Options.Report(parts...)
}

// partOf reads the entry of a spec, which another process may have written.
func partOf(entry types.ReportEntry) (*engine.Part, error) {
	if part, ok := entry.Value.GetRawValue().(*engine.Part); ok {
		return part, nil
	}
	part := &engine.Part{}
	if err := json.Unmarshal([]byte(entry.Value.AsJSON), part); err != nil {
		return nil, fmt.Errorf("read what another process found: %w", err)
	}
	return part, nil
}
