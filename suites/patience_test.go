package suites_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/harness"
)

// A bridge that hangs on one route gets a verdict with the right culprit, and few of its requests are waited for.
func TestABridgeThatHangsOnOneRouteGetsAVerdict(t *testing.T) {
	for area, route := range map[string]string{"describe/": harness.DescribePath, "invoke/": harness.InvokePath} {
		t.Run(route, func(t *testing.T) {
			drupal := defaultSite(t, mockdrupal.Options{}, nil)
			const timeout = 500 * time.Millisecond
			reference, err := bridge.New(bridge.Options{Drupal: serveAt(t, drupal), UpstreamTimeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			defer reference.Close()
			var hung atomic.Int64
			url := serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == route {
					hung.Add(1)
					io.Copy(io.Discard, r.Body) //nolint:errcheck // the server sees a caller go only when the body is read
					<-r.Context().Done()
					return
				}
				reference.ServeHTTP(w, r)
			}))
			report, err := suites.Run(t.Context(), suites.Target{URL: url}, suites.Options{
				Drupal: drupal, Timeout: time.Second, UpstreamTimeout: timeout, DiscoveryTTL: time.Second, Only: []string{area + "*", "errors/*"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := hung.Load(); n > 20 {
				t.Errorf("%d requests were sent to the route that hangs", n)
			}
			culprit := false
			for _, r := range report.Results {
				culprit = culprit || r.Verdict == reports.Fail && strings.HasPrefix(r.ID, area)
			}
			if !culprit || report.CutShort != "" {
				t.Errorf("no clause of %s fails; cut short: %q", area, report.CutShort)
			}
		})
	}
}

// A bridge that ends while it is tested is named once, and the run ends.
func TestABridgeThatEndsEndsTheRun(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	reference, err := bridge.New(bridge.Options{Drupal: serveAt(t, drupal)})
	if err != nil {
		t.Fatal(err)
	}
	defer reference.Close()
	var asked atomic.Int64
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 40 {
			server.Listener.Close()
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Connection", "close")
		reference.ServeHTTP(w, r)
	}))
	defer server.Close()
	report, err := suites.Run(t.Context(), suites.Target{URL: server.URL}, suites.Options{Drupal: drupal, Only: []string{"list/*", "describe/*"}})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, r := range report.Results {
		if r.Verdict == reports.Fail {
			failed++
		}
	}
	if failed != 1 || !strings.Contains(report.CutShort, "accepts no connections") {
		t.Errorf("%d clauses failed, want the one that ran; cut short: %q", failed, report.CutShort)
	}
}
