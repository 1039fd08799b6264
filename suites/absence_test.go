package suites_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// frontOf is the reference bridge before the default site, with nothing behind it that a run could see.
func frontOf(t *testing.T) http.Handler {
	t.Helper()
	return referenceBefore(t, defaultSite(t, mockdrupal.Options{}, nil))
}

// runFront tests what a URL shows of a few clauses.
func runFront(t *testing.T, url string, only ...string) *reports.Report {
	t.Helper()
	if only == nil {
		only = []string{"list/*", "describe/*"}
	}
	report := must.Get(suites.Run(t.Context(), suites.Target{URL: strings.Replace(url, "http://", "http://agent:agent-pass@", 1)},
		suites.Options{Connection: suites.Connection{Timeout: 2 * time.Second}, Only: only}))(t)
	return report
}

func wantNothingBlamed(t *testing.T, r *reports.Report) {
	t.Helper()
	for _, result := range r.Results {
		must.Expect(t, result.Verdict != reports.Fail && result.Verdict != reports.Warn && result.Verdict != reports.Error,
			"%s is %s: %s", result.ID, result.Verdict, result.Message)
	}
}

func TestASiteThatLimitsTheRateIsWaitedFor(t *testing.T) {
	front, left := frontOf(t), atomic.Int64{}
	var refused atomic.Int64
	url := serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) < 0 {
			left.Store(300) // it has waited: the next ones pass
			refused.Add(1)
			w.Header().Set("Retry-After", "0")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		front.ServeHTTP(w, r)
	}))
	report := runFront(t, url)
	wantNothingBlamed(t, report)
	must.Expect(t, refused.Load() != 0 && report.CutShort == "" && report.Summary.Pass != 0,
		"%d refused, cut short %q, %d passes: want refusals that were waited for", refused.Load(), report.CutShort, report.Summary.Pass)
}

func TestAFrontThatGoesAwayIsNotBlamed(t *testing.T) {
	for name, c := range map[string]struct {
		gone http.HandlerFunc
		says string
	}{
		"maintenance": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "300")
			http.Error(w, "Site under maintenance", http.StatusServiceUnavailable)
		}, "the site responds to everything with 503 since "},
		"a rate that stays exceeded": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			http.Error(w, "come back tomorrow", http.StatusTooManyRequests)
		}, "Retry-After 86400: come back tomorrow"},
	} {
		t.Run(name, func(t *testing.T) {
			front := frontOf(t)
			var seen atomic.Int64
			report := runFront(t, serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if seen.Add(1) > 40 {
					c.gone(w, r)
					return
				}
				front.ServeHTTP(w, r)
			})))
			wantNothingBlamed(t, report)
			must.Expect(t, strings.Contains(report.CutShort, c.says) && report.ExitCode() == 4,
				"cut short for %q with exit code %d, want %q and 4", report.CutShort, report.ExitCode(), c.says)
		})
	}
}

// One request that is refused with 503, while others are served, is the bridge's own doing.
func TestA503OfOneRequestFails(t *testing.T) {
	front := frontOf(t)
	report := runFront(t, serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "!!!!" {
			w.Header().Set("Retry-After", "0")
			http.Error(w, "overloaded by a cursor", http.StatusServiceUnavailable)
			return
		}
		front.ServeHTTP(w, r)
	})), "list/cursor-malformed")
	v := report.Results[0].Verdict
	must.Expect(t, v == reports.Fail && report.CutShort == "", "list/cursor-malformed is %s, cut short %q: want fail and a whole run", v, report.CutShort)
}

func TestALostFirstResponseDoesNotMakeTheTargetUnreachable(t *testing.T) {
	front := frontOf(t)
	var seen atomic.Int64
	report := runFront(t, serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1) <= 2 {
			panic(http.ErrAbortHandler)
		}
		front.ServeHTTP(w, r)
	})))
	wantNothingBlamed(t, report)
}

func TestASiteWithoutToolsBreaksNoCheck(t *testing.T) {
	report := runFront(t, serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != check.ListPath {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error": {"code": "tool_not_found", "message": "There is no such tool."}}`))
			return
		}
		_, _ = w.Write([]byte(`{"tools": []}`))
	})))
	wantNothingBlamed(t, report)
}
