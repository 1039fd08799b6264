// Package conformance is the Ginkgo suite that tests a bridge, and nothing else:
//
//	ginkgo ./suites/conformance -- --bridge-url http://127.0.0.1:8081 --mock-listen 127.0.0.1:8080
//	go test ./suites/conformance -args -bridge-url http://127.0.0.1:8081 -mock-listen 127.0.0.1:8080
//
// Each flag is that of `bridgecheck run` with the same name, -bridge-url is -url. An environment variable stands in for it,
// BRIDGE_PAGE_SIZE for -page-size; BRIDGE_URL for -url.
package conformance

import (
	"flag"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/specs"
)

var given = settings.Flags(flag.CommandLine)

// TestConformance runs the suite. Without a bridge it fails where somebody asked for it; a plain `go test ./...` skips it.
func TestConformance(t *testing.T) {
	suite, reporter := GinkgoConfiguration()
	g := must.Get(given(t.Context()))(t)
	if g.Target.URL == "" && !suite.DryRun {
		const why = "NO BRIDGE WAS TESTED: give its URL by `ginkgo ./suites/conformance -- --bridge-url URL` or BRIDGE_URL"
		must.Assert(t, !asked(), "%v", why)
		t.Skip(why)
	}
	gomega.RegisterFailHandler(Fail)
	must.Do(t, prepare(g))
	RunSpecs(t, "bridge conformance", suite, reporter)
}

// asked reports whether somebody wants this suite to run: there is a flag of ginkgo or of the suite, or BRIDGE_URL, even if empty.
func asked() bool {
	_, is := os.LookupEnv("BRIDGE_URL")
	flag.Visit(func(f *flag.Flag) { is = is || !strings.HasPrefix(f.Name, "test.") })
	return is
}

// clause is the spec of a clause: its decorators and its body.
func clause(id string) []any { return bridgeSpecs.Spec(id) }

var bridgeSpecs *specs.Specs

// prepare makes the specs. The first process serves the mock. The specs of the others look at the bridge's URL alone, and need
// to know the site's accounts: they have a mock that nobody reaches.
func prepare(g settings.Given) error {
	g.Options.Short, g.Options.Tool = testing.Short(), reports.Tool{Name: "ginkgo"}
	if g.MockListen != "" {
		drupal, err := newMock()
		if err != nil {
			return err
		}
		g.Options.Site.Drupal = drupal
		SynchronizedBeforeSuite(func() {
			server, err := drupal.Listen(g.MockListen)
			if err != nil {
				Fail("--mock-listen: " + err.Error())
			}
			DeferCleanup(server.Close)
		}, func() {})
	}
	var err error
	if bridgeSpecs, err = specs.New(specs.Suite{Target: g.Target, Options: g.Options}); err != nil {
		return err
	}
	ReportAfterSuite("bridgecheck", bridgeSpecs.AfterSuite)
	return nil
}

// newMock makes the mock of the default site.
func newMock() (*mockdrupal.Drupal, error) {
	site, err := fixtures.Builtin("default")
	if err != nil {
		return nil, err
	}
	return mockdrupal.New(site, mockdrupal.Options{})
}
