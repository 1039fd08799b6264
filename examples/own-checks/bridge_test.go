package bridgetests

import (
	"cmp"
	"net/http"
	"os"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/bridgetest"
)

// The reference bridge stands in for yours. Each clause is a subtest: go test -run TestBridge/acme
func TestBridge(t *testing.T) {
	stand := bridgetest.Start(t, bridgetest.Handler(func(t testing.TB, site string) http.Handler {
		b, err := bridge.New(bridge.Options{Drupal: site, DiscoveryTTL: bridgetest.DiscoveryTTL, UpstreamTimeout: bridgetest.UpstreamTimeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}))
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
