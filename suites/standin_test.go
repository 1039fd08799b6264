package suites_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// realSite is a site as a run meets one that it knows nothing of: it serves what a Drupal serves, and no control plane.
func realSite(t *testing.T, change func(*fixtures.Site)) string {
	t.Helper()
	site := defaultSite(t, mockdrupal.Options{}, change)
	return serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/jsonrpc") && !strings.HasPrefix(r.URL.Path, "/user/") && !strings.HasPrefix(r.URL.Path, "/oauth/") {
			http.NotFound(w, r)
			return
		}
		site.ServeHTTP(w, r)
	}))
}

// beforeRealSite tests the reference bridge before such a site, with a recording proxy between.
func beforeRealSite(t *testing.T, site string, o suites.Options, settings bridge.Options) *reports.Report {
	t.Helper()
	settings.Drupal = recorded(t, site, &o)
	settings.UpstreamTimeout = 500 * time.Millisecond
	o.Bridge.UpstreamTimeout = settings.UpstreamTimeout
	o.Callers.Credentials = passwords(suites.Agent, suites.Agent2, suites.Discoverer, suites.Outsider, suites.NoRPC, suites.Blocked, suites.Service, suites.Admin)
	o.Callers.Invocations = []suites.Invocation{
		{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pong"`)},
		{Tool: "result.string", Identity: suites.Agent2},
		{Tool: "content.search", Identity: suites.Agent, Arguments: fixtures.Raw(`{"query":"article"}`)},
		{Tool: "shape.required", Identity: suites.Agent, Arguments: fixtures.Raw(`{"message":"text"}`)},
		{Tool: "access.unexposed", Identity: suites.Agent, Status: http.StatusNotFound},
	}
	return run(t, serveAt(t, reference(t, settings)), o)
}

// Before a real site that is only read, so many MUSTs at most may stay not testable. The numbers fall, but
// for new clauses that change the site.
func TestBeforeARealSite(t *testing.T) {
	all := must.Get(contract.Load())(t)
	for name, c := range map[string]struct {
		site     func(*fixtures.Site)
		settings bridge.Options
		claims   string
		patterns *suites.Patterns
		most     int // MUSTs that are not testable
	}{
		"that shows the McpTool attribute": {nil, bridge.Options{ToolOptions: bridge.ToolOptions{PageSize: 29}}, "", nil, 6},
		"that does not":                    {func(s *fixtures.Site) { s.Extensions = false }, bridge.Options{ToolOptions: bridge.ToolOptions{Include: []string{"content.*", "result.*", "shape.*"}}}, "-discovery-permission", nil, 10},
		"that does not, with patterns":     {func(s *fixtures.Site) { s.Extensions = false }, bridge.Options{ToolOptions: bridge.ToolOptions{Include: []string{"content.*", "result.*", "shape.*"}}}, "exposure-patterns,-discovery-permission", &suites.Patterns{Include: []string{"content.*", "result.*", "shape.*"}, Exclude: check.DefaultPatterns.Exclude}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			claimed := must.Get(suites.Claim(suites.DefaultCapabilities(), c.claims))(t)
			report := beforeRealSite(t, realSite(t, c.site), suites.Options{Bridge: suites.Bridge{Patterns: c.patterns, PageSize: c.settings.PageSize}, Capabilities: claimed}, c.settings)
			var untestable []string
			for _, r := range report.Results {
				clause, _ := all.Clause(r.ID)
				switch {
				case r.Verdict == reports.Fail || r.Verdict == reports.Warn || r.Verdict == reports.Error:
					t.Errorf("%s is %s: %s", r.ID, r.Verdict, r.Message)
				case r.Verdict == reports.NotTestable && !wouldHelp.MatchString(r.Message):
					t.Errorf("%s is not testable, and does not say what would help: %s", r.ID, r.Message)
				case r.Verdict == reports.NotTestable && clause.Level == contract.MUST && !strings.HasPrefix(r.Message, "the machine is overloaded"):
					untestable = append(untestable, r.ID+": "+r.Message)
				}
			}
			must.Expect(t, len(untestable) <= c.most,
				"%d MUSTs are not testable, at most %d may be:\n%s", len(untestable), c.most, strings.Join(untestable, "\n"))
		})
	}
}
