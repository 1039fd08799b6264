package engine_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Shards come from other machines. What is read of one is written again as it was, and merged or refused.
func FuzzShard(f *testing.F) {
	const part = `{"contract":"1.1","selected":["list/answers-json"],"report":{"schema":"1","tool":{"name":"bridgecheck","version":"devel"},
		"ledger":{"version":"1.1","revision":"2026-11-21","clauses":209},"target":{"url":"http://127.0.0.1:1"},"started":"2026-11-22T00:00:00Z",
		"duration_ms":1,"capabilities":["tools"],"seed":1,"summary":{"pass":1},"results":[{"id":"list/answers-json","level":"MUST","verdict":"pass","duration_ms":1}]}}`
	f.Add([]byte(`{"schema":"1","run":"r","index":1,"of":1,"passes":[[` + part + `]]}`))
	f.Add([]byte(`{"schema":"1","run":"r","index":1,"of":2,"passes":[[]]}`))
	f.Add([]byte(`{"passes":[[{"selected":null,"report":null}]]}`))
	f.Add([]byte(`{"passes":[null,[null]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &engine.Shard{}
		if json.Unmarshal(data, s) != nil {
			return
		}
		if _, err := engine.JoinShards([]*engine.Shard{s}); err != nil {
			return
		}
		written := must.Get(json.Marshal(s))(t)
		again := &engine.Shard{}
		err := json.Unmarshal(written, again)
		must.Assert(t, err == nil, "%v in %s", err, written)
		must.Expect(t, reflect.DeepEqual(len(s.Passes), len(again.Passes)) && s.Run == again.Run,
			"read %+v, written and read again %+v", s, again)
	})
}

// What the check of another clause noticed counts where the clause's own check, in whatever process, found nothing.
func TestWhatOtherChecksNoticeIsJoined(t *testing.T) {
	at := must.Get(must.Get(contract.Load())(t).At("1.1"))(t)
	part := func(verdict reports.Verdict, id string, noticed ...reports.Result) *engine.Part {
		return &engine.Part{Contract: "1.1", Selected: []string{"invoke/runs-once", "invoke/denied"}, Noticed: noticed,
			Report: &reports.Report{Schema: reports.SchemaVersion, Ledger: reports.Ledger{Revision: at.Revision},
				Results: []reports.Result{{ID: id, Level: reports.MUST, Verdict: verdict, Message: "own"}}}}
	}
	seen := reports.Result{ID: "invoke/runs-once", Level: reports.MUST, Verdict: reports.Fail, Message: "noticed"}
	for own, want := range map[reports.Verdict]string{reports.Pass: "noticed", reports.Fail: "own", reports.NotTestable: "own"} {
		other := part(reports.Pass, "invoke/denied", seen, seen) // by two checks
		again := &engine.Part{}
		must.Do(t, json.Unmarshal(must.Get(json.Marshal(other))(t), again))
		joined := must.Get(engine.Join(nil, part(own, "invoke/runs-once"), again))(t)
		i := slices.IndexFunc(joined.Results, func(r reports.Result) bool { return r.ID == seen.ID })
		must.Expect(t, joined.Results[i].Message == want, "%s of its own: %s, want what is %s", own, joined.Results[i].Message, want)
	}
}

// A run that ends while bundles are tested again has of each clause what was found last.
func TestWhatWasFoundFirstCountsWhereTheSecondTimeIsCutShort(t *testing.T) {
	part := func(cut string, results ...reports.Result) *engine.Part {
		return &engine.Part{Report: &reports.Report{CutShort: cut, Results: results}}
	}
	for _, c := range []struct{ why, again, want string }{{"", "", ""}, {"terminated", "", "terminated"}, {"", "time-out", "time-out"}} {
		first := part("", reports.Result{ID: "list/a", Verdict: reports.Fail}, reports.Result{ID: "list/b", Verdict: reports.Fail})
		cut := first.CutShort(c.why, []*engine.Part{part(c.again, reports.Result{ID: "list/a", Verdict: reports.Pass})})
		must.Expect(t, cut == (c.want != "") && first.Report.CutShort == c.want && len(first.Report.Results) == 1 && first.Report.Results[0].ID == "list/b",
			"ended by %q and %q, it is cut short: %t, by %q, with %v", c.why, c.again, cut, first.Report.CutShort, first.Report.Results)
	}
}

// Where a site that went away ended the run, its 503 breaks no clause.
func TestASiteThatWentAwayBreaksNoClause(t *testing.T) {
	at := must.Get(must.Get(contract.Load())(t).At("1.1"))(t)
	for why, want := range map[string]reports.Verdict{
		"the site responds to everything with 503 since 12:00:00 UTC": reports.NotTestable, "interrupted": reports.Fail,
	} {
		r := reports.Result{ID: "list/answers-json", Level: reports.MUST, Verdict: reports.Fail,
			Findings: []reports.Finding{{Subject: "list", Expected: "200", Actual: "503", Request: new(0)}},
			Evidence: []reports.Exchange{{Response: &reports.Message{Status: 503}}}}
		joined := must.Get(engine.Join(nil, &engine.Part{Contract: "1.1", Selected: []string{r.ID},
			Report: &reports.Report{Ledger: reports.Ledger{Revision: at.Revision}, CutShort: why, Results: []reports.Result{r}}}))(t)
		must.Expect(t, len(joined.Results) == 1 && joined.Results[0].Verdict == want, "cut short since %s: %+v", why, joined.Results)
	}
}
