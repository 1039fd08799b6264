package repo

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// An authentication kind that a bridge may claim is known to site files, the harness, the mock and the reference bridge.
func TestAuthenticationKindsAgree(t *testing.T) {
	clauses, err := contract.Load()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range clauses.Capabilities {
		kind, ok := strings.CutPrefix(c.Name, "auth-")
		if !ok || kind == "passthrough" { // which says where the credentials go
			continue
		}
		kinds = append(kinds, kind)
		t.Run(kind, func(t *testing.T) { testAuthenticationKind(t, kind) })
	}
	for _, kind := range authkind.Kinds {
		if !slices.Contains(kinds, kind.Name) {
			t.Errorf("no bridge can claim %s: add the capability auth-%s to suites/contract/contract.yaml", kind.Name, kind.Name)
		}
	}
}

func testAuthenticationKind(t *testing.T, kind string) {
	if _, err := fixtures.Parse("site.yaml", []byte("auth: {jsonrpc: ["+kind+"]}\n")); err != nil {
		t.Errorf("site files do not know it: add %q to Kinds in internal/authkind/authkind.go: %v", kind, err)
	}
	for _, s := range bridge.Settings() {
		if err := s.Set(&bridge.Options{}, kind); s.Name == "credentials" && err != nil {
			t.Errorf("the reference bridge does not forward it: add it to Kinds in internal/authkind/authkind.go: %v", err)
		}
	}

	site, err := fixtures.Builtin("default")
	if err != nil {
		t.Fatal(err)
	}
	site.Auth.JSONRPC = []string{kind}
	mock, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mock)
	defer server.Close()
	caller := check.T{Environment: &check.Environment{Config: check.Config{Claimed: []string{"auth-" + kind}, Redact: &redact.Redactor{}},
		Behind: check.Behind{Drupal: &site.Drupal{Upstream: &site.Upstream{Recorder: mock}, Mock: mock}}}}
	credentials, _ := caller.CredentialsOf(check.Agent)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/jsonrpc/methods", nil)
	if err != nil {
		t.Fatal(err)
	}
	credentials.Apply(request.Header)
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	entry := mock.Journal().Entries(0)[0]
	if response.StatusCode != http.StatusOK || entry.User != string(check.Agent) || entry.Scheme != kind {
		t.Errorf("the agent who claims auth-%s is %q by %q at the mock, with %d: send it in credentialsOf in suites/check/client.go and Credentials.Apply in suites/client/identity.go, read it in mockdrupal/credentials and request.identify in mockdrupal/auth.go",
			kind, entry.User, entry.Scheme, response.StatusCode)
	}
}
