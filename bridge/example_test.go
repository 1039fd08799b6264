package bridge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// A bridge is an http.Handler over the URL of a Drupal site; here the site is the mock.
func Example() {
	site, err := fixtures.Builtin("default")
	if err != nil {
		fmt.Println(err)
		return
	}
	drupal, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	upstream := httptest.NewServer(drupal)
	defer upstream.Close()

	b, err := bridge.New(bridge.Options{Drupal: upstream.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	front := httptest.NewServer(b)
	defer front.Close()

	req, _ := http.NewRequest(http.MethodGet, front.URL+"/mcp/tools/describe?name=content.get", nil)
	req.SetBasicAuth("agent", "agent-pass")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, resp.Header.Get("Content-Type"))
	// Output: 200 application/json
}
