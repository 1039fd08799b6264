package mockdrupal_test

import (
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
)

// A test starts a site, makes it fail once, and reads in the journal what a client did about it.
func Example() {
	site, err := fixtures.Builtin("default")
	if err != nil {
		log.Fatal(err)
	}
	drupal, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := drupal.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	if _, err := drupal.Arm(mockdrupal.Fault{Kind: fault.Status, Status: 503, Method: "content.*", Count: 1}); err != nil {
		log.Fatal(err)
	}

	for range 2 {
		call := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"content.list"}`)
		req, err := http.NewRequest(http.MethodPost, server.URL+"/jsonrpc", call)
		if err != nil {
			log.Fatal(err)
		}
		req.SetBasicAuth("agent", "agent-pass")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
	}

	for _, e := range drupal.Journal().Entries(0) {
		fmt.Printf("request %d of %s: status %d, fault %q\n", e.Seq, e.User, e.Status, e.Fault)
		for _, c := range e.Calls {
			fmt.Printf("  %s ran: %v\n", c.Method, c.Ran)
		}
	}
	// Output:
	// request 1 of agent: status 503, fault "status"
	// request 2 of agent: status 200, fault ""
	//   content.list ran: true
}
