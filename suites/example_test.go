package suites_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites"
)

// A bridge is tested by its URL; the mock Drupal is what it takes for its site.
func ExampleRun() {
	site, err := fixtures.Builtin("default")
	if err != nil {
		panic(err)
	}
	drupal, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		panic(err)
	}
	siteServer := httptest.NewServer(drupal)
	defer siteServer.Close()

	mine, err := bridge.New(bridge.Options{Drupal: siteServer.URL}) // your bridge here
	if err != nil {
		panic(err)
	}
	defer mine.Close()
	server := httptest.NewServer(mine)
	defer server.Close()

	report, err := suites.Run(context.Background(), suites.Target{URL: server.URL}, suites.Options{Site: suites.Site{Drupal: drupal}, Only: []string{"describe/missing-name"}})
	if err != nil {
		panic(err)
	}
	for _, r := range report.Results {
		fmt.Println(r.ID, r.Level, r.Verdict)
	}
	// Output: describe/missing-name MUST pass
}
