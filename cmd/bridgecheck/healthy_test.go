package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
)

// What tests count at the mock is not changed by health checks of its container.
func TestAHealthCheckLeavesNothingInTheMock(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	server := must.Get(drupal.Listen("127.0.0.1:0"))(t)
	defer server.Close()
	must.Get(drupal.Arm(mockdrupal.Fault{Kind: fault.Status, Status: 503, Count: 1}))(t)
	for range 3 {
		healthy(t, 0, strings.TrimPrefix(server.URL, "http://"))
	}
	must.Equal(t, len(drupal.Journal().Entries(0)), 0, "entries of the journal")
	healthy(t, 1, server.URL) // a request, by contrast, takes the fault and is recorded
	must.Equal(t, len(drupal.Journal().Entries(0)), 1, "entries of the journal after a request")
}

// A certificate names the bridge's public address, which a loopback address is not.
func TestAHealthCheckOfTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Redirect(w, r, "/healthz", http.StatusFound)
		}
	}))
	defer server.Close()
	healthy(t, 0, server.URL+"/healthz")
	healthy(t, 1, server.URL+"/elsewhere")
}

func healthy(t *testing.T, want int, address string) {
	t.Helper()
	o := command(t, "healthy", address)
	must.Expect(t, o.code == want, "healthy %s: exit code %d, expected %d: %s", address, o.code, want, o.stderr)
}
