package bridgetests

import (
	"cmp"
	"net/http"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/bridgetest"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// reference stands in for your bridge.
func reference(t testing.TB, site string) http.Handler {
	b, err := bridge.New(bridge.Options{Drupal: site,
		DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: bridgetest.DiscoveryTTL}, CallOptions: bridge.CallOptions{UpstreamTimeout: bridgetest.UpstreamTimeout}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Runs are independent of each other: several bridges are tested at once.
func TestTwoBridges(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand := bridgetest.Start(t, bridgetest.Handler(reference))
			o := stand.Options()
			o.Only = []string{"describe/missing-name", "list/*"}
			suites.RunT(t, stand.Target(), o)
		})
	}
}

// The kit's clients and the matchers serve tests of your own.
func TestUnknownTool(t *testing.T) {
	stand := bridgetest.Start(t, bridgetest.Handler(reference))
	agent := stand.As(suites.Agent)
	NewWithT(t).Expect(agent.Invoke(t.Context(), "result.string", check.Args{})).To(match.HaveStatus(200))
	NewWithT(t).Expect(agent.Invoke(t.Context(), "no.such.tool", check.Args{})).To(match.BeRefused(404, "tool_not_found"))
}

// Each clause is a subtest: go test -run TestBridge/acme
func TestBridge(t *testing.T) {
	stand := bridgetest.Start(t, bridgetest.Handler(reference))
	o := stand.Options()
	o.Extra, o.Only = Checks, []string{"acme", "describe/missing-name", "list/names-unique"}
	if file := cmp.Or(os.Getenv("BASELINE"), "known-failures.yaml"); file != "none" {
		known, err := baseline.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		o.Baseline = known
	}
	report := suites.RunT(t, stand.Target(), o)

	// report.html, junit.xml, report.sarif and the others; `bridgecheck checks explain acme/described` reads it, too.
	if dir := os.Getenv("REPORT_DIR"); dir != "" {
		if err := format.WriteAll(report, dir); err != nil {
			t.Fatal(err)
		}
	}
}
