package suites_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// ownSite runs the checks against the reference bridge before a site of its own, as users do who have a Drupal: seen
// through a recording proxy, or not at all. The test makes the site misbehave; the run knows of no fault.
func ownSite(t *testing.T, seen bool, o suites.Options, misbehave func(site *mockdrupal.Drupal), front func(http.Handler) http.Handler) (*reports.Report, error) {
	t.Helper()
	site := defaultSite(t, mockdrupal.Options{}, nil)
	server := must.Get(site.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	address := server.URL
	if seen {
		address = recorded(t, address, &o)
	}
	b := reference(t, bridge.Options{Drupal: address, DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: 50 * time.Millisecond, PermissionTTL: 50 * time.Millisecond}, CallOptions: bridge.CallOptions{UpstreamTimeout: time.Second}})
	o.Callers.Credentials = passwords(suites.Agent, suites.Agent2)
	o.Callers.Invocations = []suites.Invocation{{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pong"`)}}
	o.Bridge.UpstreamTimeout = time.Second
	var handler http.Handler = b
	if front != nil {
		handler = front(b)
	}
	misbehave(site)
	return suites.Run(t.Context(), suites.Target{URL: serveAt(t, handler)}, o)
}

// slow is a site that takes so long for each response.
func slow(d time.Duration) func(*mockdrupal.Drupal) {
	return func(site *mockdrupal.Drupal) { site.Arm(mockdrupal.Fault{Kind: fault.Delay, Delay: d}) } //nolint:errcheck // the run shows it
}

// A site that is dead, slow or flapping is named in one sentence, and so is a bridge that is slow by itself. None of it is
// counted as failures of the bridge.
func TestASiteThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	down := func(site *mockdrupal.Drupal, d time.Duration) {
		site.Arm(mockdrupal.Fault{Kind: fault.Refuse, Delay: d}) //nolint:errcheck // the run shows it
	}
	dead := func(site *mockdrupal.Drupal) { down(site, time.Hour) }
	dies := func(site *mockdrupal.Drupal) { time.AfterFunc(time.Second, func() { dead(site) }) }
	flaps := func(site *mockdrupal.Drupal) {
		const half = 1200 * time.Millisecond
		go func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(half):
				}
				down(site, half)
				time.Sleep(half)
			}
		}()
	}
	elsewhere := func(site *mockdrupal.Drupal) {
		site.Arm(mockdrupal.Fault{Kind: fault.Status, Status: http.StatusNotFound}) //nolint:errcheck // the run shows it
	}
	well := func(*mockdrupal.Drupal) {}
	slowList := func(bridge http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == check.ListPath {
				time.Sleep(700 * time.Millisecond)
			}
			bridge.ServeHTTP(w, r)
		})
	}
	for _, c := range []struct {
		name  string
		seen  bool
		site  func(*mockdrupal.Drupal)
		front func(http.Handler) http.Handler
		names string
	}{
		{"dead from the start, seen", true, dead, nil, "the site behind the bridge responds 502"},
		{"dead from the start, unseen", false, dead, nil, "the bridge responds, its site does not"},
		{"at another address, seen", true, elsewhere, nil, "responds to GET /jsonrpc/methods with 404: --drupal is"},
		{"dies, seen", true, dies, nil, "the site behind the bridge responds 502"},
		{"dies, unseen", false, dies, nil, "the site responds to everything with 503"},
		{"flaps, seen", true, flaps, nil, "the site behind the bridge responds 502"},
		{"flaps, unseen", false, flaps, nil, "the site "}, // fails now and then, or responds to everything with 503,
		{"slower than the bridge waits, seen", true, slow(1500 * time.Millisecond), nil, "the site behind the bridge is slow: "},
		{"slower than the bridge waits, unseen", false, slow(1500 * time.Millisecond), nil, "the bridge responds, its site does not"},
		{"slow, seen", true, slow(700 * time.Millisecond), nil, "the site behind the bridge is slow: "},
		{"slow, unseen", false, slow(700 * time.Millisecond), nil, "the bridge, or its site, is slow: "},
		{"a slow list of the bridge itself, seen", true, well, slowList, "the bridge is slow, not its site: GET /mcp/tools/list took "},
		{"a slow list of the bridge itself, unseen", false, well, slowList, "give a shorter --timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			report, err := ownSite(t, c.seen, suites.Options{Connection: suites.Connection{Timeout: 3 * time.Second, Rate: 60}, RunTimeout: 20 * time.Second}, c.site, c.front)
			var unreachable *suites.UnreachableError
			switch {
			case errors.As(err, &unreachable):
				must.Expect(t, strings.Contains(err.Error(), c.names), "want %q, got %v", c.names, err)
			case err != nil:
				t.Fatal(err)
			case !named(report, c.names) || report.Summary.Fail > 1:
				t.Errorf("want %q, got %q, %s", c.names, report.CutShort, report.Headline())
			case c.front != nil && report.Summary.Pass == 0:
				t.Errorf("nothing was tested beside the list that is slow: %s", report.Headline())
			}
		})
	}
}

// named reports whether a run says something of itself, or of a clause that it could not test.
func named(r *reports.Report, text string) bool {
	return strings.Contains(r.CutShort, text) || slices.ContainsFunc(r.Results, func(of reports.Result) bool {
		return of.Verdict == reports.NotTestable && strings.Contains(of.Message, text)
	})
}

// A mock that somebody has made slow is named, too: the bridge stops waiting for it.
func TestAMockThatIsSlowIsNamed(t *testing.T) {
	bed := must.Get(testbed.Start(testbed.Options{}))(t)
	defer bed.Close()
	slow(2 * testbed.UpstreamTimeout)(bed.Drupal)
	_, err := suites.Run(t.Context(), suites.Target{URL: bed.URL}, suites.Options{Site: suites.Site{Drupal: bed.Drupal}, Bridge: suites.Bridge{UpstreamTimeout: testbed.UpstreamTimeout}})
	must.Expect(t, err != nil && strings.Contains(err.Error(), "the site behind the bridge is slow: "),
		"want a sentence on the site, got %v", err)
}

// A mock that is a handler of another's own server can close no port: what it cannot show fails nothing.
func TestAMockThatDoesNotListenShowsWhatItCan(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	const timeout = 500 * time.Millisecond
	b := reference(t, bridge.Options{Drupal: serveAt(t, drupal), CallOptions: bridge.CallOptions{UpstreamTimeout: timeout}})
	report := run(t, serveAt(t, b), suites.Options{Site: suites.Site{Drupal: drupal}, Bridge: suites.Bridge{UpstreamTimeout: timeout}, Only: []string{"upstream/timeout", "upstream/down-and-up"}})
	want := map[string]reports.Verdict{"upstream/timeout": reports.Pass, "upstream/down-and-up": reports.NotTestable}
	for _, r := range report.Results {
		must.Expect(t, r.Verdict == want[r.ID], "%s: expected %s, got %s: %s", r.ID, want[r.ID], r.Verdict, r.Message)
		must.Expect(t, r.Verdict != reports.NotTestable || strings.Contains(r.Message, "Listen"),
			"%s: the message does not say what the mock needs: %s", r.ID, r.Message)
	}
	must.Expect(t, len(report.Results) == len(want), "%d results", len(report.Results))
}
