// Package conformance is the Ginkgo suite that tests a bridge, and nothing else:
//
//	ginkgo ./suites/conformance -- --bridge-url http://127.0.0.1:8081 --mock-listen 127.0.0.1:8080
//	go test ./suites/conformance -args -bridge-url http://127.0.0.1:8081 -mock-listen 127.0.0.1:8080
//
// Each flag has an environment variable that stands in for it. What a flag means is what the flag of the same name means to
// `bridgecheck run`.
package conformance

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/specs"
)

var (
	bridgeURL       = text("bridge-url", "BRIDGE_URL", "", "base URL of the bridge to test")
	mockListen      = text("mock-listen", "BRIDGE_MOCK_LISTEN", "", "HOST:PORT for the mock Drupal behind the bridge")
	capabilities    = text("capabilities", "BRIDGE_CAPABILITIES", "", "what the bridge claims: a,b,-c")
	pageSize        = text("page-size", "BRIDGE_PAGE_SIZE", "50", "tools on a full page")
	discoveryTTL    = text("discovery-ttl", "BRIDGE_DISCOVERY_TTL", "0s", "how long the bridge may show a changed site's old state, as 1s or in seconds")
	upstreamTimeout = text("upstream-timeout", "BRIDGE_UPSTREAM_TIMEOUT", "0s", "how long the bridge waits for the site, as 1s or in seconds")
	only            = text("only", "BRIDGE_ONLY", "", "test only the clauses that these globs match, separated by commas")
	skipped         = text("skip-clauses", "BRIDGE_SKIP", "", "leave out the clauses that these globs match, separated by commas")
	strict          = flag.Bool("strict", os.Getenv("BRIDGE_STRICT") != "", "a SHOULD that is not kept fails (BRIDGE_STRICT)")
)

func text(name, variable, otherwise, usage string) *string {
	return flag.String(name, cmp.Or(os.Getenv(variable), otherwise), usage+" ("+variable+")")
}

// TestConformance runs the suite. Without a bridge it says loudly that nothing was tested.
func TestConformance(t *testing.T) {
	suite, reporter := GinkgoConfiguration()
	if *bridgeURL == "" && !suite.DryRun {
		t.Skip("NO BRIDGE WAS TESTED: give its URL by `ginkgo ./suites/conformance -- --bridge-url URL` or BRIDGE_URL")
	}
	RegisterFailHandler(Fail)
	if err := prepare(); err != nil {
		t.Fatal(err)
	}
	RunSpecs(t, "bridge conformance", suite, reporter)
}

// clause is the spec of a clause: its decorators and its body.
func clause(id string) []any { return bridgeSpecs.Spec(id) }

var bridgeSpecs *specs.Specs

// prepare reads the flags. The first process serves the mock. The specs of the others look at the bridge's URL alone, and need
// to know the site's accounts: they have a mock that nobody reaches.
func prepare() error {
	s, err := target()
	if err != nil {
		return err
	}
	if *mockListen != "" {
		drupal, err := newMock()
		if err != nil {
			return err
		}
		s.Options.Site.Drupal = drupal
		SynchronizedBeforeSuite(func() {
			server, err := drupal.Listen(*mockListen)
			Expect(err).NotTo(HaveOccurred(), "--mock-listen")
			DeferCleanup(server.Close)
		}, func() {})
	}
	if bridgeSpecs, err = specs.New(*s); err != nil {
		return err
	}
	ReportAfterSuite("bridgecheck", bridgeSpecs.AfterSuite)
	return nil
}

// target reads the flags.
func target() (*specs.Suite, error) {
	s := &specs.Suite{Target: suites.Target{URL: *bridgeURL}, Options: suites.Options{
		Only: commaSeparated(*only), Skip: commaSeparated(*skipped), Strict: *strict, Short: testing.Short(), Tool: reports.Tool{Name: "ginkgo"},
	}}
	var errs [4]error
	s.Options.Bridge.PageSize, errs[0] = strconv.Atoi(*pageSize)
	s.Options.Bridge.DiscoveryTTL, errs[1] = duration(*discoveryTTL)
	s.Options.Bridge.UpstreamTimeout, errs[2] = duration(*upstreamTimeout)
	s.Options.Capabilities, errs[3] = suites.Claim(suites.DefaultCapabilities(), *capabilities)
	for i, name := range []string{"page-size", "discovery-ttl", "upstream-timeout", "capabilities"} {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("--%s: %w", name, errs[i])
		}
	}
	return s, errors.Join(errs[:]...)
}

// newMock makes the mock of the default site.
func newMock() (*mockdrupal.Drupal, error) {
	site, err := fixtures.Builtin("default")
	if err != nil {
		return nil, err
	}
	return mockdrupal.New(site, mockdrupal.Options{})
}

func commaSeparated(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// duration reads `1s`, and bare seconds as a bridge's own environment has them.
func duration(s string) (time.Duration, error) {
	if seconds, err := strconv.Atoi(s); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	return time.ParseDuration(s)
}
