package suites_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// A mock that is a handler of another's own server can close no port: what it cannot show fails nothing.
func TestAMockThatDoesNotListenShowsWhatItCan(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	const timeout = 500 * time.Millisecond
	reference := must.Get(bridge.New(bridge.Options{Drupal: serveAt(t, drupal), CallOptions: bridge.CallOptions{UpstreamTimeout: timeout}}))(t)
	defer reference.Close()
	report := must.Get(suites.Run(t.Context(), suites.Target{URL: serveAt(t, reference)}, suites.Options{Site: suites.Site{Drupal: drupal}, Bridge: suites.Bridge{UpstreamTimeout: timeout}, Only: []string{"upstream/timeout", "upstream/down-and-up"}}))(t)
	want := map[string]reports.Verdict{"upstream/timeout": reports.Pass, "upstream/down-and-up": reports.NotTestable}
	for _, r := range report.Results {
		must.Expect(t, r.Verdict == want[r.ID], "%s: expected %s, got %s: %s", r.ID, want[r.ID], r.Verdict, r.Message)
		must.Expect(t, r.Verdict != reports.NotTestable || strings.Contains(r.Message, "Listen"),
			"%s: the message does not say what the mock needs: %s", r.ID, r.Message)
	}
	must.Expect(t, len(report.Results) == len(want), "%d results", len(report.Results))
}
