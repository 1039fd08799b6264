package config_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridgecheck/fixtures"
	"bridgecheck/mockdrupal"
	"bridgecheck/suites"
	"bridgecheck/suites/config"
)

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"an empty file":                {"", "f.yaml: the file is empty"},
		"broken YAML":                  {"url: [", "f.yaml: line"},
		"an unknown key":               {"url: http://x\ncapabilites: [mcp]", "f.yaml:2: there is no key capabilites; the nearest is capabilities"},
		"an unknown nested key":        {"settings:\n  pagesize: 5", "f.yaml:2: there is no key settings.pagesize; the nearest is page_size"},
		"an unknown identity key":      {"identities:\n  agent:\n    bsic: {}", "f.yaml:3: there is no key identities.agent.bsic; the nearest is basic"},
		"a key twice":                  {"url: http://x\nurl: http://y", "f.yaml:2: the key url stands here and on line 1"},
		"a wrong type":                 {"strict: maybe", "a str `maybe` stands where there should be a bool"},
		"a duration without unit":      {"timeout: 10", "is no duration: write for example 1s"},
		"a secret in the file":         {"identities: {agent: {basic: {user: a, password: hunter2}}}", "a secret may not stand in this file"},
		"a password in the url":        {"strict: true\nurl: http://agent:hunter2@x", "f.yaml:2: url: a secret may not stand in this file"},
		"a password of a proxy":        {"proxy: http://me:hunter2@proxy:3128", "f.yaml:1: proxy: a secret may not stand in this file, and there is a user in the address: leave proxy out and set HTTP_PROXY"},
		"a password of the site":       {"drupal: http://me:hunter2@site\ndrupal_proxy: 127.0.0.1:0", "f.yaml:1: drupal: a secret may not"},
		"a password in a token URL":    {"identities:\n  agent:\n    client_credentials: {token_url: 'http://me:hunter2@site', client_id: a, client_secret: {env: A}}", "f.yaml:3: identities.agent.client_credentials.token_url: a secret may not"},
		"a password in a login":        {"identities:\n  agent:\n    login: {url: 'http://me:hunter2@site', user: a, password: {env: A}}", "f.yaml:3: identities.agent.login.url: a secret may not"},
		"a token in the file":          {"identities:\n  agent:\n    bearer: hunter2", "f.yaml: line 3: a secret may not stand in this file"},
		"a client secret in the file":  {"identities:\n  agent:\n    client_credentials: {token_url: 'http://x', client_id: a, client_secret: hunter2}", "line 3: a secret may not stand in this file"},
		"a header's value in the file": {"identities:\n  agent:\n    headers: {X-Key: hunter2}", "line 3: a secret may not stand in this file"},
		"two ways to sign in":          {"identities: {agent: {bearer: {env: A}, basic: {user: a, password: {env: B}}}}", "f.yaml:1: identities.agent: give one of"},
		"no way to sign in":            {"identities: {agent: {}}", "say how it signs in"},
		"two targets":                  {"url: http://x\nexec: y", "f.yaml:2: url names a bridge that is up, exec starts one: give one of the two"},
		"half a certificate":           {"tls: {cert: a.pem}", "go together"},
		"an invocation of nothing":     {"url: http://x\ninvocations:\n- arguments: {}", "f.yaml:3: invocations: entry 1 names no tool"},
		"an unknown role":              {"identities:\n  agnet: {bearer: {env: A}}", "f.yaml:2: identities: no check signs in as agnet; the nearest is agent"},
		"an unknown identity":          {"invocations: [{tool: a, identity: bob}]", "none of the identities"},
		"a proxy before no site":       {"drupal_proxy: 127.0.0.1:0", "say which by drupal"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("f.yaml", []byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Parse = %v, want an error with %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestOptionsTellWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"a variable that is not set": {"identities: {agent: {bearer: {env: BRIDGECHECK_NO_SUCH}}}", "identities.agent: the environment variable BRIDGECHECK_NO_SUCH is not set"},
		"a file that is not there":   {"identities: {agent: {bearer: {file: nowhere}}}", "identities.agent: read the secret"},
		"no source":                  {"identities: {agent: {bearer: {}}}", "write {env: VARIABLE} or {file: PATH}"},
		"an unknown capability":      {"capabilities: [mpc]", "the nearest is mcp"},
		"two of a kind":              {"capabilities: [naming-id, naming-underscore]", "cannot have both"},
		"a proxy that is none":       {"proxy: nowhere", "is no address of a proxy"},
		"a CA that is not there":     {"tls: {ca: nowhere.pem}", "tls.ca"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := config.Parse("f.yaml", []byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Options(context.Background(), suites.Options{}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Options = %v, want an error with %q", err, c.says)
			}
		})
	}
}

func TestOptionsSignIn(t *testing.T) {
	site, err := fixtures.Builtin("default")
	if err != nil {
		t.Fatal(err)
	}
	drupal, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := drupal.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENT_PASSWORD", "agent-pass")
	t.Setenv("API_KEY", "k-123")
	f, err := config.Parse(filepath.Join(dir, "f.yaml"), []byte(`
url: `+server.URL+`
identities:
  agent: {login: {user: agent, password: {env: AGENT_PASSWORD}}}
  discoverer: {basic: {user: discoverer, password: {env: AGENT_PASSWORD}}}
  service: {bearer: {file: token}, headers: {X-Api-Key: {env: API_KEY}}}
settings: {page_size: 20, discovery_ttl: 2s}
tls: {insecure: true}
invocations:
- tool: content.list
  arguments: {limit: 3, deep: {a: [1, true, null]}}
  expect: {result: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Options(context.Background(), suites.Options{Capabilities: suites.DefaultCapabilities})
	if err != nil {
		t.Fatal(err)
	}
	if c := o.Credentials["agent"].Cookie; !strings.HasPrefix(c, "SESS") {
		t.Errorf("the login gave the cookie %q, want a session", c)
	}
	if open := loggedIn(t, server.URL, o.Credentials["agent"].Cookie); !open {
		t.Error("the login opened no session")
	}
	if err := f.End(t.Context(), f.Sessions()...); err != nil || loggedIn(t, server.URL, o.Credentials["agent"].Cookie) {
		t.Errorf("End = %v, and the session is open still or an error came", err)
	}
	if err := f.End(t.Context(), f.Sessions()...); err != nil {
		t.Errorf("ending what is ended: %v", err)
	}
	if c := o.Credentials["discoverer"]; c.User != "discoverer" || c.Password != "agent-pass" {
		t.Errorf("basic gave %q", c.User)
	}
	if c := o.Credentials["service"]; c.Token != "from-a-file" || c.Header["X-Api-Key"] != "k-123" {
		t.Errorf("bearer and headers gave %+v", c)
	}
	if o.PageSize != 20 || o.DiscoveryTTL != 2*time.Second || o.TLS == nil || !o.TLS.InsecureSkipVerify {
		t.Errorf("settings gave page size %d, TTL %v, TLS %v", o.PageSize, o.DiscoveryTTL, o.TLS)
	}
	call := o.Invocations[0]
	if call.Identity != suites.Agent || call.Status != http.StatusOK || string(call.Arguments) != `{"deep":{"a":[1,true,null]},"limit":3}` || string(call.Result) != "[]" {
		t.Errorf("the invocation is %+v (%s, %s)", call, call.Arguments, call.Result)
	}
}

// loggedIn asks the site whether a cookie opens a session.
func loggedIn(t *testing.T, site, cookie string) bool {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, site+"/user/login_status?_format=json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body)) == "1"
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("url: http://x\nidentities: {a: {bearer: {env: T}}}"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("settings: {page_size: 1e9}\ninvocations: [{tool: t, arguments: {? [1] : 2}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Parse("f.yaml", data)
		if err == nil && file == nil {
			t.Error("neither a file nor an error")
		}
	})
}
