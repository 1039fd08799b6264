package selftest_test

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// slowSite makes a bridge's way to its site slow, so that checks send the rows of their tables side by side.
type slowSite struct {
	inTurn bool // one request after the other, as a site with one process
	site   http.RoundTripper

	turn       sync.Mutex
	open, most atomic.Int64 // requests
}

func (s *slowSite) RoundTrip(r *http.Request) (*http.Response, error) {
	open := s.open.Add(1)
	defer s.open.Add(-1)
	for most := s.most.Load(); open > most && !s.most.CompareAndSwap(most, open); most = s.most.Load() {
	}
	if s.inTurn {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	select {
	case <-time.After(160 * time.Millisecond):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return s.site.RoundTrip(r)
}

// runBeforeSlowSite tests a mutant by some clauses, and gives how many requests the site had at a time.
func runBeforeSlowSite(t *testing.T, m mutants.Mutant, inTurn bool, only ...string) (verdicts map[string]reports.Verdict, most int64) {
	t.Helper()
	slow := &slowSite{inTurn: inTurn}
	between := m.Transport
	m.Transport = func(site http.RoundTripper) http.RoundTripper {
		slow.site = site
		if between != nil {
			slow.site = between(site)
		}
		return slow
	}
	report := must.Get(selftest.Run(t.Context(), m, engine.Options{Contract: contract.Draft, Only: only, Cases: 8}, nil))(t)
	for _, r := range report.Results {
		t.Logf("%s: %s %s", r.ID, r.Verdict, r.Message)
	}
	return report.ByClause(), slow.most.Load()
}

// A mutant fails before a slow site what it fails before a fast one, and the reference bridge nothing.
func TestRowsSideBySide(t *testing.T) {
	must.Need(t, !testing.Short(), "it waits for a slow site")
	killed := []string{"arguments-through-float64", "result-scalars-wrapped", "empty-arguments-500", "error-data-lost",
		"invalid-arguments-422", "error-is-a-string", "message-names-no-parameter"}
	var clauses []string
	for _, name := range killed {
		m, ok := mutants.Find(name)
		must.Assert(t, ok, "there is no mutant %s", name)
		clauses = append(clauses, m.Breaks...)
		t.Run(name, func(t *testing.T) {
			verdicts, _ := runBeforeSlowSite(t, m, false, m.Breaks...)
			for _, id := range m.Breaks {
				v := verdicts[id]
				must.Expect(t, v == reports.Fail || v == reports.Warn, "%s is %s", id, v)
			}
		})
	}
	t.Run("reference", func(t *testing.T) {
		slices.Sort(clauses)
		verdicts, most := runBeforeSlowSite(t, mutants.Mutant{}, false, slices.Compact(clauses)...)
		for id, v := range verdicts {
			must.Expect(t, v == reports.Pass, "%s is %s", id, v)
		}
		must.Expect(t, most >= 8, "the site had %d requests at a time, want many", most)
	})
	t.Run("reference before a site with one process", func(t *testing.T) {
		verdicts, most := runBeforeSlowSite(t, mutants.Mutant{}, true, "invoke/error-data-kept")
		for id, v := range verdicts {
			must.Expect(t, v == reports.Pass, "%s is %s", id, v)
		}
		must.Expect(t, most <= 8, "the site had %d requests at a time, which it serves no faster than one after the other", most)
	})
}
