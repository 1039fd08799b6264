package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

func TestCulpritRule(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	const blocked, culprit, other = "invoke/answers-result", "list/answers-json", "list/has-tools-array"
	type verdicts = map[string]reports.Verdict
	type blocks = map[string][]string
	for _, c := range []struct {
		name    string
		ran     verdicts
		blocked blocks
		cut     bool
		exempt  []string
		want    reports.Verdict
	}{
		{"the culprit fails", verdicts{culprit: reports.Fail}, blocks{blocked: {culprit}}, false, nil, reports.NotTestable},
		{"a glob names the culprit", verdicts{culprit: reports.Fail}, blocks{blocked: {"list/*"}}, false, nil, reports.NotTestable},
		{"the culprit passes", verdicts{culprit: reports.Pass}, blocks{blocked: {culprit}}, false, nil, reports.Fail},
		{"another clause fails", verdicts{culprit: reports.Pass, other: reports.Fail}, blocks{blocked: {culprit}}, false, nil, reports.Fail},
		{"the culprit only warns", verdicts{culprit: reports.Warn}, blocks{blocked: {culprit}}, false, nil, reports.Fail},
		{"the culprit is not selected", nil, blocks{blocked: {"list/names-unique"}}, false, nil, reports.Fail},
		{"the culprit is itself", nil, blocks{blocked: {blocked}}, false, nil, reports.Fail},
		{"the culprit is blocked by one that fails", verdicts{culprit: reports.NotTestable, other: reports.Fail}, blocks{blocked: {culprit}, culprit: {other}}, false, nil, reports.NotTestable},
		{"the culprit is blocked by one that passes, and so fails", verdicts{culprit: reports.NotTestable, other: reports.Pass}, blocks{blocked: {culprit}, culprit: {other}}, false, nil, reports.NotTestable},
		{"no culprit is known and one fails", verdicts{other: reports.Fail}, blocks{blocked: {}}, false, nil, reports.NotTestable},
		{"no culprit is known and none fails", verdicts{other: reports.Pass}, blocks{blocked: {}}, false, nil, reports.Fail},
		{"the run ended before the culprit", nil, blocks{blocked: {culprit}}, true, nil, reports.NotTestable},
		{"the run ended before some other", nil, blocks{blocked: {}}, true, nil, reports.NotTestable},
		{"the run ended after the culprit passed", verdicts{culprit: reports.Pass}, blocks{blocked: {culprit}}, true, nil, reports.Fail},
		{"the run ended, and the culprit is not selected", nil, blocks{blocked: {"list/names-unique"}}, true, nil, reports.Fail},
		{"the machine kept the culprit from being tested", verdicts{culprit: reports.NotTestable}, blocks{blocked: {"list/*"}}, false, []string{culprit}, reports.NotTestable},
		{"the machine kept some other from being tested", verdicts{other: reports.NotTestable}, blocks{blocked: {}}, false, []string{other}, reports.NotTestable},
		{"the machine kept another than the culprit from being tested", verdicts{culprit: reports.Pass, other: reports.NotTestable}, blocks{blocked: {culprit}}, false, []string{other}, reports.Fail},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := outcome{
				contract: clauses, selected: []string{culprit, other, blocked}, cut: c.cut,
				results: map[string]reports.Result{},
				exempt:  c.exempt,
			}
			for id, verdict := range c.ran {
				r.results[id] = reports.Result{ID: id, Level: reports.MUST, Verdict: verdict, BlockedBy: c.blocked[id]}
			}
			r.results[blocked] = reports.Result{ID: blocked, Level: reports.MUST, Verdict: reports.NotTestable, BlockedBy: c.blocked[blocked],
				Findings: []reports.Finding{{Message: "list (" + culprit + " tests that)"}}}
			r.settle()
			passes := strings.Contains(r.results[blocked].Message, culprit+" tests that, and passes)")
			must.Equal(t, passes, c.ran[culprit] == reports.Pass && slices.Contains(c.blocked[blocked], culprit), "whether the message says that the culprit passes")
			must.Equal(t, r.results[blocked].Verdict, c.want, "the verdict")
		})
	}
}

// Clauses that wait for each other do not excuse each other.
func TestCulpritRuleOfACircle(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	const a, b = "list/answers-json", "invoke/answers-result"
	r := outcome{contract: clauses, selected: []string{a, b}, results: map[string]reports.Result{
		a: {ID: a, Level: reports.MUST, Verdict: reports.NotTestable, BlockedBy: []string{b}},
		b: {ID: b, Level: reports.MUST, Verdict: reports.NotTestable, BlockedBy: []string{a}},
	}}
	r.settle()
	must.Expect(t, r.results[a].Verdict == reports.Fail && r.results[b].Verdict == reports.NotTestable,
		"the first is %s and the second %s, want one that fails and explains the other", r.results[a].Verdict, r.results[b].Verdict)
}

// What does not apply needs no test: a run that ends early leaves it not applicable, as a whole run does.
func TestWhatWasNotReachedAndDoesNotApply(t *testing.T) {
	o := outcome{
		contract: must.Get(contract.Load())(t), claims: []string{"tools", "mcp"},
		selected: []string{"list/answers-json", "mcp/initialize", "auth/right-token"},
	}
	var got []reports.Verdict
	for _, r := range o.inOrder() {
		got = append(got, r.Verdict)
	}
	want := []reports.Verdict{reports.NotTestable, reports.NotTestable, reports.NotApplicable}
	must.Expect(t, slices.Equal(got, want), "the verdicts are %v, want %v", got, want)
}
