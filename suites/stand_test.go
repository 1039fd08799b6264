package suites_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// defaultSite is the built-in site as a mock serves it, changed as wanted.
func defaultSite(t *testing.T, o mockdrupal.Options, change func(*fixtures.Site)) *mockdrupal.Drupal {
	t.Helper()
	site := must.Get(fixtures.Builtin("default"))(t)
	if change != nil {
		change(site)
	}
	return must.Get(mockdrupal.New(site, o))(t)
}

// moduleSite is a site with the Drupal module in a version: it checks no argument, and v1.3 runs tools on GET, too.
func moduleSite(t *testing.T, version string) *mockdrupal.Drupal {
	t.Helper()
	extension := must.Get(module.New(version))(t)
	return defaultSite(t, mockdrupal.Options{Extensions: []mockdrupal.Extension{extension}}, func(s *fixtures.Site) { s.Auth.MCP = []string{"basic", "cookie"} })
}

// serveAt serves a handler for the rest of the test and returns its URL.
func serveAt(t *testing.T, h http.Handler) string {
	t.Helper()
	server := must.Serve(t, h)
	return server.URL
}

// reference is the reference bridge with some options, before the site that they name.
func reference(t *testing.T, o bridge.Options) *bridge.Bridge {
	t.Helper()
	b := must.Get(bridge.New(o))(t)
	t.Cleanup(b.Close)
	return b
}

// referenceAt serves the reference bridge before a site, below a base path.
func referenceAt(t *testing.T, site, base string) string {
	t.Helper()
	return serveAt(t, http.StripPrefix(base, reference(t, bridge.Options{Drupal: site}))) + base
}

// recorded puts a recording proxy before a site, which the run gets, too, and returns its URL.
func recorded(t *testing.T, site string, o *suites.Options) string {
	t.Helper()
	o.Site.Recorder = must.Get(proxy.New(must.Get(url.Parse(site))(t), proxy.Options{}))(t)
	server := must.Get(o.Site.Recorder.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	return server.URL
}

// passwords are the credentials of accounts of the default site.
func passwords(accounts ...suites.Identity) map[suites.Identity]suites.Credentials {
	all := map[suites.Identity]suites.Credentials{}
	for _, name := range accounts {
		all[name] = suites.Credentials{User: string(name), Password: string(name) + "-pass"}
	}
	return all
}

// run tests the bridge at a URL.
func run(t *testing.T, url string, o suites.Options) *reports.Report {
	t.Helper()
	return must.Get(suites.Run(t.Context(), suites.Target{URL: url}, o))(t)
}

func verdicts(r *reports.Report) map[string]reports.Result {
	all := map[string]reports.Result{}
	for _, result := range r.Results {
		all[result.ID] = result
	}
	return all
}
