package suites_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// A bridge that ends while it is tested is named once, and the run ends.
func TestABridgeThatEndsEndsTheRun(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	reference := must.Get(bridge.New(bridge.Options{Drupal: serveAt(t, drupal)}))(t)
	defer reference.Close()
	var asked atomic.Int64
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == client.DescribePath && asked.Add(1) == 8 { // which nothing but a check sends
			server.Listener.Close()
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Connection", "close")
		reference.ServeHTTP(w, r)
	}))
	defer server.Close()
	o := suites.Options{Site: suites.Site{Drupal: drupal}, Only: []string{"list/*", "describe/*"}}
	o.Bridge.DiscoveryTTL = time.Minute
	report := must.Get(suites.Run(t.Context(), suites.Target{URL: server.URL}, o))(t)
	failed := 0
	for _, r := range report.Results {
		if r.Verdict == reports.Fail {
			failed++
		}
	}
	must.Expect(t, failed == 1 && strings.Contains(report.CutShort, "accepts no connections"),
		"%d clauses failed, want the one that ran; cut short: %q", failed, report.CutShort)
}
