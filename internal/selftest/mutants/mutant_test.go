package mutants

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

func TestEntriesAreWellFormed(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	words, seen := regexp.MustCompile(`^[a-z0-9]+(-[A-Za-z0-9]+)*$`), map[string]bool{}
	for _, area := range Areas() {
		for _, m := range slices.Concat(area.Mutants, area.Variants) {
			must.Expect(t, !seen[m.Name], "%s: two entries have this name", m.Name)
			seen[m.Name] = true
			must.Expect(t, words.MatchString(m.Name), "%s: a name is words joined by hyphens", m.Name)
			for _, id := range slices.Concat(m.Breaks, m.MayFail) {
				_, ok := clauses.Clause(id)
				must.Expect(t, ok, "%s: %s is not in the contract; the nearest is %s", m.Name, id, suggest.Nearest(id, clauses.IDs()))
			}
			_, err := engine.Claim(testbed.Profiles()[0].Capabilities, m.Claims)
			must.Expect(t, err == nil, "%s: %v", m.Name, err)
		}
		for _, m := range area.Mutants {
			if len(m.Breaks) == 0 || m.Origin == "" {
				t.Errorf("%s: a mutant needs Breaks and Origin", m.Name)
			} else if !strings.HasPrefix(m.Breaks[0], area.Name+"/") {
				t.Errorf("%s: its first clause is %s: move it from %s to the file of that area", m.Name, m.Breaks[0], area.File)
			}
		}
		for _, m := range area.Variants {
			must.Expect(t, len(m.Breaks) == 0 && m.Origin == "" && m.Why != "",
				"%s: a correct variant breaks nothing, has no Origin, and says in Why what room of the contract it uses", m.Name)
		}
	}
}

func TestEveryMustHasAMutant(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	files, broken := map[string]string{}, map[string]bool{}
	for _, area := range Areas() {
		files[area.Name] = area.File
		for _, m := range area.Mutants {
			for _, id := range m.Breaks {
				broken[id] = true
			}
		}
	}
	for _, c := range clauses.Clauses {
		file, ok := files[c.Area]
		switch {
		case !ok:
			t.Errorf("the area %s has no mutants: add it to Areas in internal/selftest/mutants/mutant.go", c.Area)
		case c.Level != contract.MAY && !broken[c.ID]:
			t.Errorf("%s %s: no mutant breaks it: add one to internal/selftest/mutants/%s", c.Level, c.ID, file)
		}
	}
}

// A mutant that was tested before must behave as one that was not.
func TestEntriesShareNoState(t *testing.T) {
	list := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"tools":[]}`) })
	var statuses []int
	for range 2 {
		m, ok := Find("cursor-works-once")
		must.Assert(t, ok, "the mutant is gone")
		handler := m.Middleware(list)
		for range 2 {
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, httptest.NewRequest("GET", "/mcp/tools/list?cursor=NTA=", nil))
			statuses = append(statuses, rec.Code)
		}
	}
	want := []int{200, 400, 200, 400}
	must.Expect(t, slices.Equal(statuses, want), "the statuses are %v, not %v", statuses, want)
}
