package format

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

// crashes is a report in which a closed connection fails three clauses, and a fourth fails by itself.
func crashes() *reports.Report {
	r := &reports.Report{Started: sample.Started}
	for i := range 4 {
		e := reports.Exchange{At: sample.Started, Request: reports.Message{Method: "GET", URL: "http://b/x"}, Error: "the connection was closed"}
		if i == 0 {
			e.Error, e.Response = "", &reports.Message{Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: "{}"}
		}
		result := reports.Result{ID: fmt.Sprintf("list/case-%d", i), Level: reports.MUST, Area: "list", Verdict: reports.Fail,
			Findings: []reports.Finding{{Subject: fmt.Sprintf("case %d", i), Expected: "404", Actual: fmt.Sprint("other ", i), Request: new(0)}}, Evidence: []reports.Exchange{e}}
		result.Conclude()
		r.Results = append(r.Results, result)
	}
	return r
}

func TestEveryFormatShowsACauseOnce(t *testing.T) {
	const first = "no response: the connection was closed: explains 3 of 4 failures"
	for name, want := range map[string][]string{
		"console":     {"\nfix this first: " + first + "\n", "\nbegin with: list/case-1 ·", "FAILED  list/case-1  MUST  and 2 more\n"},
		"annotations": {"::notice title=fix this first::" + first + ": list/case-1, list/case-2, list/case-3\n", "::error title=list/case-1 and 2 more (MUST)::"},
		"markdown":    {"**Fix this first.** " + first + ".\n", "- no response: the connection was closed (3): `list/case-1`, `list/case-2`, `list/case-3`\n"},
		"html":        {`<p class="cause"><bdi>` + first, `<li><a href="#list%2fcase-2">list/case-2</a></li><li><a href="#list%2fcase-3">list/case-3</a></li></ul>`},
		"json":        {`"cause": "no response: the connection was closed",`, `"failing": 3,`},
	} {
		f := must.Get(Named(name))(t)
		text := string(sample.Written(t, func(b *bytes.Buffer) error { return f.Write(b, crashes()) }))
		for _, part := range want {
			must.Expect(t, strings.Count(text, part) == 1, "%s has %d times %q:\n%s", name, strings.Count(text, part), part, text)
		}
		if own := "list/case-2 (MUST)"; strings.Contains(text, own) || strings.Contains(text, "FAILED  list/case-2") {
			t.Errorf("%s shows list/case-2 as an entry of its own:\n%s", name, text)
		}
	}
}
