package baseline

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
)

var today = time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)

func TestParseReadsEntries(t *testing.T) {
	f := must.Get(Parse("b.yaml", []byte(`# why
known:
  - clause: describe/unknown-404
    tool: content.get
    identity: outsider
    reason: returns 200
    until: 2027-01-31
  - {clause: list/page-size, reason: "no pages"}
`)))(t)
	want := []Entry{
		{"describe/unknown-404", "content.get", "outsider", "returns 200", time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), 3},
		{"list/page-size", "", "", "no pages", time.Time{}, 8},
	}
	must.Expect(t, reflect.DeepEqual(f.Entries, want), "entries are %+v, want %+v", f.Entries, want)
}

func TestParseNamesTheMistakeAndItsLine(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"empty", "", "b.yaml: the file is empty"},
		{"a second document", "known: []\n---\nknown: []\n", "b.yaml:3: a second document"},
		{"a tab", "known:\n\t- {}", "b.yaml:2: found character that cannot start any token: YAML is indented by blanks"},
		{"no YAML", "known: [", "b.yaml:1: did not find"},
		{"a list", "- x", "b.yaml:1: the file should be a mapping with some of the keys contract, known, and is a list"},
		{"unknown top key", "knwon: []", "b.yaml:1: there is no key knwon; did you mean known?"},
		{"no list", "known: 3", "b.yaml:1: known should be a list"},
		{"no known", "{}", "b.yaml: the key known is missing"},
		{"merged keys", "known:\n- &a {clause: a/b, reason: x}\n- {<<: *a, tool: y}", "b.yaml:3: known[1]: keys are not merged"},
		{"unknown key", "known:\n- clause: a/b\n  reson: x", "b.yaml:3: there is no key known[0].reson; did you mean reason?"},
		{"key twice", "known:\n- clause: a/b\n  clause: a/c", "b.yaml:3: the key known[0].clause stands here and on line 2"},
		{"no clause", "known:\n- reason: x", "b.yaml:2: known[0] has no clause"},
		{"no reason", "known:\n- clause: a/b", "b.yaml:2: known[0] has no reason"},
		{"empty reason", "known:\n- clause: a/b\n  reason: ' '", "b.yaml:3: known[0].reason is empty"},
		{"null tool", "known:\n- {clause: a/b, reason: x, tool: }", "b.yaml:2: known[0].tool is empty"},
		{"list as clause", "known:\n- {clause: [a], reason: x}", "b.yaml:2: known[0].clause should be a text, and is a list"},
		{"bad date", "known:\n- {clause: a/b, reason: x, until: soon}", `b.yaml:2: known[0].until is "soon": it should be a date such as 2027-01-31`},
		{"alias", "known:\n- &a {clause: a/b, reason: x}\n- *a", "b.yaml:3: a/b is here already, on line 2"},
		{"entry twice", "known:\n- {clause: a/b, reason: x}\n- {clause: a/b, reason: y}", "b.yaml:3: a/b is here already, on line 2"},
		{"several mistakes", "known:\n- {clause: a/b}\n- {reason: y}", "b.yaml:3: known[1] has no clause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Refuse(Parse("b.yaml", []byte(c.yaml)))(t, c.want)
		})
	}
}

func TestCheckNamesUnknownClauses(t *testing.T) {
	f := &File{Path: "b.yaml", Entries: []Entry{{Clause: "list/page-size", Line: 2}, {Clause: "list/page-sise", Line: 5}}}
	err := f.Check([]string{"list/page-size", "list/empty-site"})
	want := `b.yaml:5: there is no clause "list/page-sise" (did you mean list/page-size?)`
	must.Expect(t, err != nil && err.Error() == want, "error is %v, want %s", err, want)
}

func result(v reports.Verdict, findings ...reports.Finding) reports.Result {
	return reports.Result{ID: "a/b", Area: "a", Level: reports.MUST, Verdict: v, Message: "wrong", Findings: findings}
}

// tested is r of a check that tests tools and callers one by one.
func tested(r reports.Result) reports.Result {
	r.Tested = []reports.Part{{Tool: "get", Identity: "agent"}, {Tool: "search", Identity: "agent"}, {Tool: "get", Identity: "admin"}}
	return r
}

func TestApplyNotesWhyAFaultIsKnown(t *testing.T) {
	f := &File{Path: "b.yaml", Entries: []Entry{{Clause: "a/b", Tool: "get", Reason: "issue 42", Line: 3}}}
	r := &reports.Report{Results: []reports.Result{result(reports.Fail, reports.Finding{Tool: "get", Message: "m"}, reports.Finding{Tool: "search", Message: "m"})}}
	f.Apply(r, today)
	found := r.Results[0].Findings
	must.Expect(t, found[0].KnownReason == "issue 42" && found[1].KnownReason == "", "the findings are %+v", found)
	var b bytes.Buffer
	must.Do(t, From(r).Write(&b))
	must.Expect(t, strings.Contains(b.String(), "reason: issue 42"), "a baseline that is written again has lost the reason:\n%s", &b)
}

func TestApply(t *testing.T) {
	get, search := reports.Finding{Tool: "get", Identity: "agent", Message: "get is wrong"}, reports.Finding{Tool: "search", Identity: "agent", Message: "search is wrong"}
	derived := result(reports.Fail)
	derived.Evidence = []reports.Exchange{
		{Identity: "agent", Request: reports.Message{Method: "GET", URL: "http://x/describe?name=get"}},
		{Identity: "outsider", Request: reports.Message{Method: "POST", URL: "http://x/invoke", Body: `{"name":"search"}`}},
	}
	for _, c := range []struct {
		name    string
		result  reports.Result
		entries []Entry
		verdict reports.Verdict
		message string
		problem string
		code    int
	}{
		{"fails as it says", result(reports.Fail), []Entry{{}}, reports.Known, "wrong", "", 0},
		{"warns as it says", result(reports.Warn), []Entry{{}}, reports.Known, "wrong", "", 0},
		{"passes", result(reports.Pass), []Entry{{}}, reports.Fixed, "b.yaml:7 says that this fails (r), and it passes", "", 1},
		{"another clause", result(reports.Fail), nil, reports.Fail, "wrong", "", 1},
		{"last day", result(reports.Fail), []Entry{{Until: today}}, reports.Known, "wrong", "", 0},
		{"expired", result(reports.Fail), []Entry{{Until: today.AddDate(0, 0, -1)}}, reports.Fail, "wrong", "expired on 2026-11-20", 1},
		{"does not apply", result(reports.NotApplicable), []Entry{{}}, reports.NotApplicable, "wrong", "does not apply", 1},
		{"could not be tested", result(reports.NotTestable), []Entry{{}}, reports.NotTestable, "wrong", "", 4},
		{"the tool", result(reports.Fail, get), []Entry{{Tool: "get"}}, reports.Known, "wrong", "", 0},
		{"the tool and the caller", result(reports.Fail, get), []Entry{{Tool: "get", Identity: "agent"}}, reports.Known, "wrong", "", 0},
		{"another caller", result(reports.Fail, get), []Entry{{Identity: "outsider"}}, reports.Fail, "wrong", "for the caller outsider does not fail in this way", 1},
		{"one tool of two", result(reports.Fail, get, search), []Entry{{Tool: "get"}}, reports.Fail, "search is wrong (not in the baseline; other faults that are: 1)", "", 1},
		{"both tools", result(reports.Fail, get, search), []Entry{{Tool: "get"}, {Tool: "search"}}, reports.Known, "wrong", "", 0},
		{"one tool repaired", tested(result(reports.Fail, get)), []Entry{{Tool: "get"}, {Tool: "search"}}, reports.Known, "wrong", "a/b for the tool search no longer fails: remove the entry", 1},
		{"one tool repaired, another broken", tested(result(reports.Fail, get)), []Entry{{Tool: "search"}}, reports.Fail, "wrong", "a/b for the tool search no longer fails", 1},
		{"one caller repaired", tested(result(reports.Fail, get)), []Entry{{Tool: "get"}, {Identity: "admin"}}, reports.Known, "wrong", "a/b for the caller admin no longer fails: remove the entry", 1},
		{"a tool that is not there", tested(result(reports.Fail, get)), []Entry{{Tool: "get"}, {Tool: "gone"}}, reports.Known, "wrong", "a/b for the tool gone was not tested", 1},
		{"several entries for what passes", result(reports.Pass), []Entry{{Tool: "get"}, {Tool: "search"}}, reports.Fixed, "b.yaml:7 and b.yaml:7 say that this fails for the tool get, the tool search (r)", "", 1},
		{"two tools of three", result(reports.Fail, get, search, reports.Finding{Tool: "third", Message: "third is wrong"}), []Entry{{Tool: "get"}}, reports.Fail,
			`search is wrong (not in the baseline, like 1 more: "third"; other faults that are: 1)`, "", 1},
		{"tool and caller by the last exchange", derived, []Entry{{Tool: "search", Identity: "outsider"}}, reports.Known, "wrong", "", 0},
		{"not the first exchange's tool", derived, []Entry{{Tool: "get"}}, reports.Fail, "wrong", "get does not fail", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &File{Path: "b.yaml"}
			for _, e := range c.entries {
				e.Clause, e.Line, e.Reason = "a/b", 7, "r"
				f.Entries = append(f.Entries, e)
			}
			r := &reports.Report{Results: []reports.Result{c.result}}
			f.Apply(r, today)
			if got := r.Results[0]; got.Verdict != c.verdict || !strings.Contains(got.Message, c.message) {
				t.Errorf("verdict is %s (%s), want %s (%s)", got.Verdict, got.Message, c.verdict, c.message)
			}
			var problems []string
			for _, p := range r.BaselineProblems {
				problems = append(problems, p.Text)
			}
			got := strings.Join(problems, "; ")
			must.Expect(t, (c.problem == "") == (got == "") && strings.Contains(got, c.problem), "problems are %q, want %q", got, c.problem)
			must.Equal(t, r.ExitCode(), c.code, "exit code, %s", r.Headline())
		})
	}
}

// TestWrittenBaselineExcusesExactlyItsRun writes the baseline of a drawn run and applies it to the same run.
func TestWrittenBaselineExcusesExactlyItsRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &reports.Report{}
		for i, v := range rapid.SliceOfN(rapid.SampledFrom([]reports.Verdict{reports.Pass, reports.Fail, reports.Warn}), 1, 6).Draw(t, "verdicts") {
			result := reports.Result{ID: "a/" + string(rune('a'+i)), Level: reports.MUST, Verdict: v, Message: rapid.String().Draw(t, "message")}
			if rapid.Bool().Draw(t, "by tool") {
				result.Findings = []reports.Finding{{Tool: "x: #y", Message: rapid.String().Draw(t, "fault")}, {Tool: "z", Message: "m"}}
			}
			r.Results = append(r.Results, result)
		}
		var b bytes.Buffer
		must.Do(t, From(r).Write(&b))
		f, err := Parse("b.yaml", b.Bytes())
		must.Assert(t, err == nil, "our own baseline does not parse: %v\n%s", err, &b)
		failing := len(r.With(reports.Fail))
		f.Apply(r, today)
		must.Assert(t, len(r.With(reports.Known)) == failing && r.Summary.Fail+r.Summary.Fixed+len(r.BaselineProblems) <= 0,
			"after its own baseline: %s, want %d known\n%s", r.Headline(), failing, &b)
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("known:\n- {clause: a/b, reason: x, until: 2027-01-31}\n"))
	f.Add([]byte("known: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("b.yaml", data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		must.Do(t, file.Write(&b))
		again, err := Parse("b.yaml", b.Bytes())
		must.Assert(t, err == nil && len(again.Entries) == len(file.Entries), "written and read again: %v\n%s", err, &b)
	})
}

func TestAFaultThatIsNotKnownIsShownWithItsOwnRequest(t *testing.T) {
	known := reports.Finding{Tool: "get", Subject: "get", Expected: "404", Actual: "200", Request: new(0)}
	fresh := reports.Finding{Tool: "search", Subject: "search", Expected: "404", Actual: "500", Request: new(1)}
	exchange := func(url string) reports.Exchange {
		return reports.Exchange{Request: reports.Message{Method: "GET", URL: url}}
	}
	result := reports.Result{ID: "a/b", Level: reports.MUST, Verdict: reports.Fail, Findings: []reports.Finding{known, fresh},
		Evidence: []reports.Exchange{exchange("http://b/get"), exchange("http://b/search")}}
	result.Conclude()
	r := &reports.Report{Results: []reports.Result{result}}
	(&File{Path: "b.yaml", Entries: []Entry{{Clause: "a/b", Tool: "get", Reason: "r"}}}).Apply(r, time.Now())
	got := r.Results[0]
	must.Expect(t, got.Verdict == reports.Fail && got.Actual == "500" && got.Curl == "curl -i http://b/search",
		"%s: %s, got %s by %s", got.Verdict, got.Message, got.Actual, got.Curl)
	if want := "search (not in the baseline; other faults that are: 1)"; got.Subject() != want {
		t.Errorf("the subject is %q, want %q", got.Subject(), want)
	}
	want := "search: expected 404, got 500 (not in the baseline; other faults that are: 1)"
	must.Expect(t, got.Message == want, "the message is %q, want %q", got.Message, want)
}

// What could not be tested because of a clause that the baseline excuses is known, too, and gets no entry of its own; what is
// untestable for another reason still counts.
func TestWhatAKnownFailureKeepsFromBeingTestedIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		by      []string
		culprit reports.Verdict
		want    reports.Verdict
	}{
		"its culprit is known":         {[]string{"list/page-size"}, reports.Fail, reports.Known},
		"one of several is":            {[]string{"list/paginates", "list/page-size"}, reports.Fail, reports.Known},
		"a glob names it":              {[]string{"list/page-*"}, reports.Fail, reports.Known},
		"its culprit passes":           {[]string{"list/page-size"}, reports.Pass, reports.NotTestable},
		"another culprit":              {[]string{"list/paginates"}, reports.Fail, reports.NotTestable},
		"something of the run is gone": {nil, reports.Fail, reports.NotTestable},
	} {
		blocked, chained := result(reports.NotTestable), result(reports.NotTestable)
		blocked.ID, blocked.Level, blocked.BlockedBy = "list/cursor-opaque", reports.MUST, c.by
		chained.ID, chained.Level, chained.BlockedBy = "list/cursor-unknown-400", reports.MUST, []string{"list/cursor-opaque"}
		culprit := result(c.culprit)
		culprit.ID, culprit.Level = "list/page-size", reports.MUST
		r := &reports.Report{Results: []reports.Result{chained, blocked, culprit}}
		f := &File{Entries: []Entry{{Clause: "list/page-size", Reason: "no pages"}}}
		f.Apply(r, today)
		must.Expect(t, r.Results[1].Verdict == c.want && r.Results[0].Verdict == c.want,
			"%s: the clauses are %s and %s, want %s", name, r.Results[1].Verdict, r.Results[0].Verdict, c.want)
		green := r.ExitCode() == 0
		must.Expect(t, green == (c.want == reports.Known), "%s: the exit code is %d", name, r.ExitCode())
		entries := From(r).Entries
		must.Expect(t, c.want != reports.Known || len(entries) == 1, "%s: the baseline that is written has %+v", name, entries)
	}
}
