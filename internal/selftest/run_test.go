package selftest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// What failed on a busy machine is tested once more when nothing else runs; what is as expected is not.
func TestUnexpectedOutcomesAreTestedAgain(t *testing.T) {
	runs := map[string]int{}
	test := func(ctx context.Context, m mutants.Mutant) (Row, error) {
		runs[m.Name]++
		row := newRow(m)
		if m.Name == "blamed once" && runs[m.Name] == 1 {
			row.Failed = []string{"list/order-stable"}
		}
		return row, ctx.Err()
	}
	matrix := must.Get(All(t.Context(), []Unit{{[]mutants.Mutant{{Name: "never blamed"}}, 1}, {[]mutants.Mutant{{Name: "blamed once"}}, 1}}, 1, test, nil))(t)
	f := matrix.Figures
	must.Expect(t, f.FalseAlarms == 0 && f.Again == 1, "%d false alarms and %d tested again, not 0 and 1", f.FalseAlarms, f.Again)
	must.Expect(t, runs["never blamed"] == 1 && runs["blamed once"] == 2, "the runs are %v, not 1 and 2", runs)
}

// A selftest that is interrupted has no verdict: a mutant of which nothing failed by then is no survivor.
func TestAnInterruptedSelftestHasNoVerdict(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	late := []Unit{{[]mutants.Mutant{{Name: "nothing failed", Breaks: []string{"list/order-stable"}}}, 1}}
	_, err := All(ctx, late, 1, func(_ context.Context, m mutants.Mutant) (Row, error) {
		interrupt()
		return newRow(m), nil
	}, nil)
	must.Expect(t, errors.Is(err, context.Canceled), "got %v", err)
}

// A body of which the report has only the beginning cannot be sent again by curl, so no line claims to.
func TestNoCurlLineRepeatsABodyThatIsNotWhole(t *testing.T) {
	m, ok := mutants.Find("announced-body-unbounded")
	must.Assert(t, ok, "the mutant is gone")
	report := must.Get(Run(t.Context(), m, engine.Options{Only: m.Breaks}, nil))(t)
	r := report.Results[0]
	must.Expect(t, slices.ContainsFunc(r.Evidence, func(e reports.Exchange) bool { return e.Request.Truncated >= 64<<20 }),
		"%s: no request is marked as one of 64 MiB", r.Message)
	must.Expect(t, r.Curl == "", "%s: %s sends other bytes", r.Message, r.Curl)
}

func TestTheCurlLineLeadsToTheResponseWithTheFault(t *testing.T) {
	m, ok := mutants.Find("circular-reference-as-it-is")
	must.Assert(t, ok, "the mutant is gone")
	report := must.Get(Run(t.Context(), m, engine.Options{Only: m.Breaks}, nil))(t)
	r := report.Results[0]
	must.Expect(t, slices.ContainsFunc(r.Evidence, func(e reports.Exchange) bool {
		return strings.Contains(r.Curl, e.Request.URL) && e.Response != nil && strings.Contains(e.Response.Body, "bad.cyclic_ref")
	}), "%s: %s leads to a response without it", r.Message, r.Curl)
}

// The first mutant of each mechanism and area and every correct variant are tested by all clauses, the others by those that fail.
func TestNarrowKeepsTheFirstOfEachMechanismAndAreaWhole(t *testing.T) {
	golden := loadGolden(t)
	narrower := must.Get(NewNarrower(golden, false))(t)
	mechanisms, areas := map[mutants.Mechanism]bool{}, map[string]bool{}
	for _, m := range mutants.Mutants() {
		var o engine.Options
		narrower.Narrow(&o, m)
		ids := o.Only
		if len(ids) == 0 {
			must.Expect(t, !mechanisms[m.Mechanism()] || !areas[m.Area()], "%s is tested by all clauses, as another of its mechanism and area is", m.Name)
			mechanisms[m.Mechanism()], areas[m.Area()] = true, true
			continue
		}
		must.Expect(t, mechanisms[m.Mechanism()] && areas[m.Area()], "%s is tested by %v before any of its mechanism and area is tested by all clauses", m.Name, ids)
		for _, id := range slices.Concat(m.Breaks, golden[m.Name]) {
			must.Expect(t, slices.Contains(ids, id), "%s is not tested by %s, which fails of it", m.Name, id)
		}
	}
	for _, a := range mutants.Areas() {
		must.Expect(t, areas[a.Name], "no mutant of %s is tested by all clauses", a.Name)
	}
	generous := 0
	for _, v := range mutants.Variants() {
		var o engine.Options
		narrower.Narrow(&o, v)
		must.Expect(t, len(o.Only) == 0, "the correct variant %s is tested only by %v", v.Name, o.Only)
		if o.Cases == 0 {
			generous++
		}
	}
	must.Expect(t, generous >= 5, "%d correct variants are tested by all generated cases", generous)
}

func TestNullTargetsPassNothing(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	for _, target := range nullTargets() {
		for how, mock := range map[string]*mockdrupal.Drupal{"with a mock": drupal, "black box": nil} {
			t.Run(target.Name+" "+how, func(t *testing.T) {
				url, stop := target.Start()
				defer stop()
				o := engine.Options{Site: engine.Site{Drupal: mock}, Bridge: engine.Bridge{DiscoveryTTL: testbed.TTL}, Connection: engine.Connection{Timeout: target.Timeout}, Capabilities: testbed.Profiles()[0].Capabilities}
				report, err := engine.Run(t.Context(), engine.Target{URL: url}, o)
				if _, ok := errors.AsType[*engine.UnreachableError](err); ok {
					return // reported in one sentence, and nothing was tested
				}
				must.Do(t, err)
				for _, r := range report.Results {
					must.Expect(t, r.Verdict != reports.Pass, "%s passes", r.ID)
				}
				must.Expect(t, !report.Summary.Conformant && len(report.Results) > 0, "the summary is %+v", report.Summary)
			})
		}
	}
}
