// Package specs adds the checks to a Ginkgo suite: one spec for each, in the tree of the caller. The specs run the same
// checks as suites.Run, and reach the same verdicts; Ginkgo's filters, reports, time-outs and processes work on them as on
// any other spec.
//
// A spec that only looks at the bridge's URL runs on any process. One that looks at the site, or changes it, is Serial:
// processes share the site. A broken MUST fails, a broken SHOULD passes with a visible report entry (it fails where
// Options.Strict is set), and what does not apply or cannot be tested is skipped with the reason. After the suite the one
// verdict is printed; where no spec failed and the verdict is not conformant, the suite fails by it.
package specs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/bridgecheck/bridgecheck/internal/engine"
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

// Register adds a container for each area, in the order of the contract, with a spec for each check. Call it where a
// Describe may stand: at the top level of a file (`var _ = specs.Register(…)`), or in a container. Options that name no
// clause, or that are wrong, panic as a malformed tree does.
func Register(s Suite) bool {
	listed, err := engine.Listed(s.Options)
	if err != nil {
		panic("specs.Register: " + err.Error())
	}
	r := &registered{suite: s}
	for len(listed) > 0 {
		area := listed[0].Clause.Area
		n := slices.IndexFunc(listed, func(l engine.Listing) bool { return l.Clause.Area != area })
		if n < 0 {
			n = len(listed)
		}
		var last ginkgo.SpecPriority
		if engine.IsLast(listed[0].Clause.ID) {
			last = -1 // also where the order is random: a bridge that does not get over a site that failed spoils what follows
		}
		ofArea := listed[:n] // the container is built when the whole tree is
		ginkgo.Describe(area, last, func() {
			for _, l := range ofArea {
				r.spec(l)
			}
		})
		listed = listed[n:]
	}
	ginkgo.ReportAfterSuite("bridgecheck", r.afterSuite)
	return true
}

// registered is a suite in a tree. Its session begins with the first spec of the process.
type registered struct {
	suite   Suite
	once    sync.Once
	session *engine.Session
	err     error
}

// begin opens the session of this process.
func (r *registered) begin() error {
	r.once.Do(func() {
		ctx := context.Background() // the session lasts longer than the spec
		if r.suite.Before != nil {
			if r.err = r.suite.Before(ctx, &r.suite); r.err != nil {
				return
			}
		}
		r.session, r.err = engine.Open(ctx, r.suite.Target, r.suite.Options)
	})
	return r.err
}

func (r *registered) spec(l engine.Listing) {
	file, line := l.Check.Place()
	decorators := []any{Labels(l.Check, l.Clause), types.CodeLocation{FileName: file, LineNumber: line}}
	if l.Check.Sees != check.Front {
		decorators = append(decorators, ginkgo.Serial)
	}
	ginkgo.It(l.Clause.ID, append(decorators, func(ctx ginkgo.SpecContext) {
		if err := r.begin(); err != nil {
			ginkgo.AbortSuite("no clause was tested: " + engine.ForOptions(err.Error()))
		}
		result, part := r.session.TestAlone(ctx, l.Check)
		if part == nil {
			ginkgo.Skip("the run ended before this was tested")
		}
		if parallel() {
			ginkgo.AddReportEntry(partEntry, part, ginkgo.ReportEntryVisibilityNever)
		}
		r.conclude(result)
	})...)
}

// conclude ends the running spec by the verdict on its clause.
func (r *registered) conclude(result reports.Result) {
	for _, f := range engine.Found(result) {
		ginkgo.AddReportEntry("finding", f, ginkgo.ReportEntryVisibilityFailureOrVerbose)
	}
	switch v := result.Verdict; {
	case v == reports.NotApplicable, v == reports.NotTestable:
		ginkgo.Skip(strings.TrimSpace(string(v) + ": " + engine.ForOptions(result.Message)))
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

// afterSuite makes the one verdict of what all processes found, and prints it.
func (r *registered) afterSuite(ran ginkgo.Report) {
	if ran.SuiteConfig.DryRun || r.err != nil {
		return
	}
	report, err := r.report(ran)
	if err != nil {
		ginkgo.Fail("bridgecheck: " + err.Error())
	}
	if report == nil {
		return
	}
	if r.suite.After != nil {
		r.suite.After(report)
	}
	verdict := engine.ForOptions(engine.Verdict(report))
	fmt.Println("\nbridgecheck: " + verdict)
	if report.ExitCode() != 0 && ran.SuiteSucceeded {
		ginkgo.Fail(verdict)
	}
}

// report joins what the specs found; nil where none of them ran.
func (r *registered) report(ran ginkgo.Report) (*reports.Report, error) {
	var parts []*engine.Part
	began := map[string]bool{}
	for _, spec := range ran.SpecReports {
		if !spec.StartTime.IsZero() && spec.RunTime > 0 {
			began[spec.LeafNodeText] = true
		}
		for _, entry := range spec.ReportEntries {
			if entry.Name != partEntry {
				continue
			}
			part, err := partOf(entry)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 && r.session == nil {
		return nil, nil
	}
	cut := ran.SpecialSuiteFailureReasons
	if ran.SuiteConfig.FailFast && !ran.SuiteSucceeded {
		cut = append(cut, "--fail-fast")
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
	if len(cut) == 0 {
		for _, p := range parts {
			p.KeepOnly(func(id string) bool { return began[id] })
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
