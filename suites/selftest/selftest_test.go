package selftest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// What a busy machine may have spoilt is judged once more, when nothing else runs; what is as expected is not.
func TestTheUnexpectedIsJudgedAgain(t *testing.T) {
	asked := map[string]int{}
	judge := func(ctx context.Context, m Mutant) (Row, error) {
		asked[m.Name]++
		row := Row{Name: m.Name, Correct: true, Fell: []string{}}
		if m.Name == "blamed once" && asked[m.Name] == 1 {
			row.Fell = []string{"list/order-stable"}
		}
		return row, ctx.Err()
	}
	matrix, err := Selftest(t.Context(), []Mutant{{Name: "left in peace"}, {Name: "blamed once"}}, 1, judge, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := matrix.Figures; f.FalseAlarms != 0 || f.Again != 1 {
		t.Errorf("%d false alarms and %d judged again, not 0 and 1", f.FalseAlarms, f.Again)
	}
	if asked["left in peace"] != 1 || asked["blamed once"] != 2 {
		t.Errorf("asked %v, not the blamed one alone twice", asked)
	}
}

// A known fault of one tool, caller or row must not hide another one's.
func TestTwoFaultsOfOneClauseAreBothTold(t *testing.T) {
	for _, c := range []struct {
		clause string
		front  front
		told   []reports.Finding // without messages
	}{
		{"list/pages-cover-all-once", onList(func(p *page) {
			p.Tools = slices.DeleteFunc(p.Tools, func(v any) bool {
				name := v.(map[string]any)["name"]
				return name == "whoami" || name == "content.list" && caller(p.Request) == "admin"
			})
		}), []reports.Finding{{Tool: "whoami"}, {Tool: "whoami", Identity: "discoverer"}, {Tool: "content.list", Identity: "admin"}, {Tool: "whoami", Identity: "admin"}}},
		{"access/bad-credentials", onAnswer(toList, func(x *exchange) {
			if _, password, _ := x.Request.BasicAuth(); password == "" && x.Status == http.StatusUnauthorized {
				x.Status = http.StatusInternalServerError
			}
		}), []reports.Finding{{Identity: "a digest"}, {Identity: "an unknown scheme"}, {Identity: "no scheme"}}},
		{"errors/status-agrees", onRefusal(func(x *exchange) {
			if who := caller(x.Request); who == "outsider" || who == "norpc" {
				x.Status = http.StatusOK
			}
		}), []reports.Finding{{Identity: "outsider"}, {Identity: "outsider"}, {Identity: "norpc"}}},
	} {
		report, err := Judge(t.Context(), Mutant{Front: c.front}, suites.Options{Only: []string{c.clause}})
		if err != nil {
			t.Fatal(err)
		}
		var told []reports.Finding
		for _, f := range report.Results[0].Findings {
			told = append(told, reports.Finding{Tool: f.Tool, Identity: f.Identity})
		}
		if !slices.Equal(told, c.told) {
			t.Errorf("%s: told of %v, not of %v", c.clause, told, c.told)
		}
	}
}

// What a check sends to clean up, behind the fault, shows nothing of it.
func TestTheCurlLineLeadsToTheAnswerThatShowsTheFault(t *testing.T) {
	m, ok := Find("circular-reference-as-it-is")
	if !ok {
		t.Fatal("the mutant is gone")
	}
	report, err := Judge(t.Context(), m, suites.Options{Only: m.Breaks})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Results[0]
	if !slices.ContainsFunc(r.Evidence, func(e reports.Exchange) bool {
		return strings.Contains(r.Curl, e.Request.URL) && e.Response != nil && strings.Contains(e.Response.Body, "bad.cyclic_ref")
	}) {
		t.Errorf("%s: %s leads to an answer without it", r.Message, r.Curl)
	}
}
