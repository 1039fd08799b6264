package settings_test

import (
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
)

func TestExposed(t *testing.T) {
	file := must.Get(settings.Parse("x.yaml", []byte(`
url: http://bridge.example.org/base
identities:
  agent: {basic: {user: agent, password: {env: A}}}
  agent2: {login: {url: http://drupal.example.org, user: agent2, password: {env: A}}}
  outsider: {login: {user: outsider, password: {env: A}}}
  service: {client_credentials: {token_url: "http://127.0.0.1/token", client_id: a, client_secret: {env: A}}}
  admin: {client_credentials: {token_url: "https://drupal.example.org/token", client_id: a, client_secret: {env: A}}}
`)))(t)
	got, want := file.Exposed(), []string{"http://bridge.example.org/base", "http://drupal.example.org"}
	must.Expect(t, slices.Equal(got, want), "Exposed() = %q, expected %q", got, want)
	none, err := settings.Parse("x.yaml", []byte("url: http://bridge.example.org\n"))
	must.Expect(t, err == nil && none.Exposed() == nil, "without secrets Exposed() = %q (%v), expected none", none.Exposed(), err)
}

func TestExposes(t *testing.T) {
	for address, want := range map[string]bool{
		"http://bridge.example.org": true, "HTTP://192.0.2.1:8080/x": true, "http://[2001:db8::1]": true, "http://localhost.example.org": true, "http://127.0.0.1.example.org": true,
		"https://bridge.example.org": false, "http://localhost:8080": false, "http://LocalHost.": false, "http://a.localhost": false, "http://127.8.9.1": false, "http://[::1]:80": false, "": false, "%": false,
	} {
		must.Equal(t, settings.Exposes(address), want, "Exposes(%q)", address)
	}
}
