package suites

import (
	"cmp"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// The target of `go test ./suites -args …` and `ginkgo ./suites -- …`; each flag has an environment variable that
// stands in for it, and means what the flag of the same name means to `bridgecheck run`.
var (
	bridgeURL    = flag.String("bridge-url", os.Getenv("BRIDGE_URL"), "base URL of the bridge to test (BRIDGE_URL)")
	mockListen   = flag.String("mock-listen", os.Getenv("BRIDGE_MOCK_LISTEN"), "HOST:PORT for the mock Drupal behind the bridge (BRIDGE_MOCK_LISTEN)")
	capabilities = flag.String("capabilities", os.Getenv("BRIDGE_CAPABILITIES"), "what the bridge claims: a,b,-c (BRIDGE_CAPABILITIES)")
	pageSize     = flag.String("page-size", cmp.Or(os.Getenv("BRIDGE_PAGE_SIZE"), "50"), "tools on a full page (BRIDGE_PAGE_SIZE)")
	discoveryTTL = flag.String("discovery-ttl", cmp.Or(os.Getenv("BRIDGE_DISCOVERY_TTL"), "0s"), "how long the bridge may show a changed site's old state, as 1s or in seconds (BRIDGE_DISCOVERY_TTL)")
	only         = flag.String("only", os.Getenv("BRIDGE_ONLY"), "test only the clauses that these globs match, separated by commas (BRIDGE_ONLY)")
	skipped      = flag.String("skip", os.Getenv("BRIDGE_SKIP"), "leave out the clauses that these globs match, separated by commas (BRIDGE_SKIP)")
)

// TestBridge runs the checks through Ginkgo against a bridge that is up, with Ginkgo's own output and flags.
func TestBridge(t *testing.T) {
	if *bridgeURL == "" {
		t.Skip("NO BRIDGE WAS TESTED: give its URL by `go test ./suites -args -bridge-url URL` or BRIDGE_URL")
	}
	o := Options{Only: commaSeparated(*only), Skip: commaSeparated(*skipped), Tool: reports.Tool{Name: "go test"}}
	var err error
	if o.PageSize, err = strconv.Atoi(*pageSize); err != nil {
		t.Fatalf("-page-size: %v", err)
	}
	if o.DiscoveryTTL, err = duration(*discoveryTTL); err != nil {
		t.Fatalf("-discovery-ttl: %v", err)
	}
	if o.Capabilities, err = Claim(DefaultCapabilities, *capabilities); err != nil {
		t.Fatal(err)
	}
	if *mockListen != "" {
		o.Drupal = mockAt(t, *mockListen)
	}
	suite, reporter := ginkgo.GinkgoConfiguration()
	report, err := run(t.Context(), Target{URL: *bridgeURL}, o, suite, reporter)
	if err != nil {
		t.Fatal(err)
	}
	if report.ExitCode() != 0 {
		t.Fatal(report.Headline())
	}
	t.Log(report.Headline())
}

// mockAt serves the default site at addr for the rest of the test.
func mockAt(t *testing.T, addr string) *mockdrupal.Drupal {
	site, err := fixtures.Builtin("default")
	if err != nil {
		t.Fatal(err)
	}
	drupal, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := drupal.Listen(addr)
	if err != nil {
		t.Fatalf("-mock-listen: %v", err)
	}
	t.Cleanup(func() { server.Close() })
	return drupal
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
