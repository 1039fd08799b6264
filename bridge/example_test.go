package bridge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// A bridge is an http.Handler in front of a Drupal site; here the site is a mock.
func Example() {
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

	b, err := bridge.New(bridge.Options{Drupal: siteServer.URL})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	request := httptest.NewRequest(http.MethodGet, "/mcp/tools/describe?name=no.such.tool", nil)
	request.SetBasicAuth("agent", "agent-pass")
	response := httptest.NewRecorder()
	b.ServeHTTP(response, request)
	fmt.Println(response.Code)
	// Output: 404
}
