package selftest_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// killedOnARealSite are mutants that a run which only reads the site kills, by a clause of each kind: names, texts, schemas,
// who sees what, describe, calls, errors and the site side.
var killedOnARealSite = []string{
	"name-with-hyphens", "description-cut", "title-missing", "annotations-hints-only", "output-schema-objects-only", "one-parameter-lost", "required-missing",
	"factory-class-shown", "by-position-list", "describe-hidden-403", "describe-denied-shown", "every-tool-for-everyone",
	"arguments-empty-object-as-list", "result-scalars-wrapped", "failure-as-result", "hidden-method-runs", "denied-runs-then-403",
	"result-of-another-under-load", "any-id-will-do", "per-tool-id-of-its-own", "per-tool-any-method", "per-tool-denied-200",
}

// startBefore starts a mutant before a recording proxy, which it makes the run's recorder. siteOf returns the URL of the site
// behind the proxy, from that of the testbed's mock.
func startBefore(t *testing.T, m mutants.Mutant, o *engine.Options, p proxy.Options, siteOf func(mock string) string) *testbed.Testbed {
	t.Helper()
	options := m.Testbed()
	settings, front := options.Bridge, options.Middleware
	var site string // as the bridge reaches it
	options.Bridge = func(b *bridge.Options) {
		b.UpstreamTimeout = cmp.Or(o.Bridge.UpstreamTimeout, b.UpstreamTimeout)
		if settings != nil {
			settings(b)
		}
		address := must.Get(url.Parse(siteOf(b.Drupal)))(t)
		o.Site.Recorder = must.Get(proxy.New(address, p))(t)
		server := must.Get(o.Site.Recorder.Listen("127.0.0.1:0"))(t)
		t.Cleanup(func() { server.Close() })
		site, b.Drupal = server.URL, server.URL
	}
	options.Middleware = func(b testbed.Backends, handler http.Handler) http.Handler {
		b.SiteURL = site
		if front == nil {
			return handler
		}
		return front(b, handler)
	}
	bed := must.Get(testbed.Start(options))(t)
	t.Cleanup(bed.Close)
	return bed
}

// runBeforeRealSite runs the suites against a mutant before a site that they can only read: only what a Drupal serves passes
// through to the mock, and a recording proxy stands before it.
func runBeforeRealSite(t *testing.T, m mutants.Mutant, o engine.Options) *reports.Report {
	t.Helper()
	bed := startBefore(t, m, &o, proxy.Options{}, func(mock string) string {
		drupal := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/jsonrpc") {
				http.NotFound(w, r)
				return
			}
			forward(w, r, mock)
		}))
		return drupal.URL
	})
	o.Capabilities = must.Get(engine.Claim(bed.Profile.Capabilities, m.Claims))(t)
	o.Capabilities = slices.DeleteFunc(o.Capabilities, func(c string) bool { return strings.HasPrefix(c, "mcp") })
	o.Callers.Credentials = map[check.Identity]check.Credentials{}
	for _, name := range []check.Identity{check.Agent, check.Agent2, check.Discoverer, check.Outsider, check.NoRPC, check.Blocked, check.Service, check.Admin} {
		o.Callers.Credentials[name] = check.Credentials{User: string(name), Password: string(name) + "-pass"}
	}
	o.Callers.Invocations = []check.Invocation{
		{Tool: "result.string", Identity: check.Agent, Result: fixtures.Raw(`"pong"`)},
		{Tool: "content.count", Identity: check.Agent2},
		{Tool: "shape.required", Identity: check.Agent, Arguments: fixtures.Raw(`{"message":"text"}`)},
		{Tool: "echo", Identity: check.Agent},
		{Tool: "access.unexposed", Identity: check.Agent, Status: http.StatusNotFound},
		{Tool: "access.fixture", Identity: check.Agent},
		{Tool: "access.open", Identity: check.Agent},
	}
	o.Bridge.UpstreamTimeout = testbed.UpstreamTimeout
	return must.Get(engine.Run(t.Context(), engine.Target{URL: bed.URL, Name: m.Name}, o))(t)
}

func forward(w http.ResponseWriter, r *http.Request, to string) {
	base, err := url.Parse(to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(base) }}).ServeHTTP(w, r)
}

// missedBeforeRealSite says which of the clauses that a mutant breaks it does not fail before such a site.
func missedBeforeRealSite(t *testing.T, m mutants.Mutant) (missed []string) {
	t.Helper()
	failed := 0
	for _, r := range runBeforeRealSite(t, m, engine.Options{Only: m.Breaks, Cases: 12}).Results {
		switch r.Verdict {
		case reports.Fail, reports.Warn:
			failed++
		case reports.NotTestable:
			t.Logf("%s: %s", r.ID, r.Message)
		default:
			missed = append(missed, fmt.Sprintf("%s is %s: the mutant breaks it", r.ID, r.Verdict))
		}
	}
	if failed == 0 {
		missed = append(missed, "no clause fails")
	}
	return missed
}

// A mutant fails the same clauses before a real site that is only read as over the mock, as far as they can be tested there.
func TestMutantsBeforeARealSite(t *testing.T) {
	must.Need(t, !testing.Short(), "it runs the suites once for each of the mutants")
	for _, name := range killedOnARealSite {
		t.Run(name, func(t *testing.T) {
			m, ok := mutants.Find(name)
			must.Assert(t, ok, "there is no mutant %s", name)
			missed := missedBeforeRealSite(t, m)
			if len(missed) > 0 { // as in the selftest: a busy machine may serve too few at once for a fault that shows under load
				missed = missedBeforeRealSite(t, m)
			}
			for _, what := range missed {
				t.Error(what)
			}
		})
	}
}

// The reference bridge with an endpoint for each tool fails nothing there.
func TestTheReferenceBeforeARealSite(t *testing.T) {
	variant, ok := mutants.Find("one-endpoint-a-tool")
	must.Assert(t, ok, "there is no variant one-endpoint-a-tool")
	report := runBeforeRealSite(t, variant, engine.Options{})
	for _, r := range report.Results {
		must.Expect(t, r.Verdict != reports.Fail && r.Verdict != reports.Warn && r.Verdict != reports.Error,
			"%s is %s: %s", r.ID, r.Verdict, r.Message)
	}
	must.Expect(t, report.Summary.Pass >= 100, "only %d clauses pass", report.Summary.Pass)
}
