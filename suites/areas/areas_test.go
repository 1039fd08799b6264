package areas

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Every clause has one check, and every check a clause.
func TestChecksAndClausesAgree(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	checked, folders := map[string]int{}, map[string]string{}
	for _, a := range All {
		folder := "suites/areas/" + folderOf(a.Name)
		folders[a.Name] = folder
		for _, c := range a.Checks {
			checked[c.ID]++
			if _, ok := clauses.Clause(c.ID); !ok {
				t.Errorf("the check %s has no clause; the nearest is %s: add `- {id: %s, level: MUST, wire: front, from: …, text: \"…\"}` to the area %s of suites/contract/contract.yaml",
					c.ID, suggest.Nearest(c.ID, clauses.IDs()), c.ID, a.Name)
			}
			must.Expect(t, c.Run != nil, "the check %s has no Run", c.ID)
		}
	}
	for _, c := range clauses.Clauses {
		switch folder := folders[c.Area]; {
		case folder == "":
			t.Errorf("the area %s of %s has no checks: add its package to areas in suites/areas/areas.go", c.Area, c.ID)
		case checked[c.ID] == 0:
			t.Errorf("the clause %s has no check: add `{ID: %q, Sees: check.Front, Run: …},` to Checks in %s", c.ID, c.ID, folder)
		case checked[c.ID] > 1:
			t.Errorf("the clause %s has %d checks: one clause has one check", c.ID, checked[c.ID])
		}
	}
}

// folderOf is the folder of an area: http and errors would shadow the standard library.
func folderOf(area string) string {
	switch area {
	case "http":
		return "protocol"
	case "errors":
		return "errorcodes"
	}
	return strings.ReplaceAll(area, "-", "")
}
