package settings_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"an empty file":                {"", "f.yaml: the file is empty"},
		"broken YAML":                  {"url: [", "f.yaml:1: did not find"},
		"an unknown key":               {"url: http://x\ncapabilites: [mcp]", "f.yaml:2: there is no key capabilites; did you mean capabilities?"},
		"an unknown nested key":        {"settings:\n  pagesize: 5", "f.yaml:2: there is no key settings.pagesize; did you mean page_size?"},
		"an unknown identity key":      {"identities:\n  agent:\n    bsic: {}", "f.yaml:3: there is no key identities.agent.bsic; did you mean basic?"},
		"a key twice":                  {"url: http://x\nurl: http://y", "f.yaml:2: the key url stands here and on line 1"},
		"a wrong type":                 {"strict: maybe", `f.yaml:1: strict should be true or false, and is "maybe"`},
		"a duration without unit":      {"timeout: 10", "is no duration: write for example 1s"},
		"a secret in the file":         {"identities: {agent: {basic: {user: a, password: hunter2}}}", "a secret may not stand in this file"},
		"a password in the url":        {"strict: true\nurl: http://agent:hunter2@x", "f.yaml:2: url: a secret may not stand in this file"},
		"a password of a proxy":        {"proxy: http://me:hunter2@proxy:3128", "f.yaml:1: proxy: a secret may not stand in this file, and there is a user in the address: leave proxy out and set HTTP_PROXY"},
		"a password of the site":       {"drupal: http://me:hunter2@site\ndrupal_proxy: 127.0.0.1:0", "f.yaml:1: drupal: a secret may not"},
		"a password in a token URL":    {"identities:\n  agent:\n    client_credentials: {token_url: 'http://me:hunter2@site', client_id: a, client_secret: {env: A}}", "f.yaml:3: identities.agent.client_credentials.token_url: a secret may not"},
		"a password in a login":        {"identities:\n  agent:\n    login: {url: 'http://me:hunter2@site', user: a, password: {env: A}}", "f.yaml:3: identities.agent.login.url: a secret may not"},
		"a token in the file":          {"identities:\n  agent:\n    bearer: hunter2", "f.yaml:3: identities.agent.bearer: a secret may not stand in this file"},
		"a client secret in the file":  {"identities:\n  agent:\n    client_credentials: {token_url: 'http://x', client_id: a, client_secret: hunter2}", "a secret may not stand in this file"},
		"a header's value in the file": {"identities:\n  agent:\n    headers: {X-Key: hunter2}", "a secret may not stand in this file"},
		"two ways to authenticate":     {"identities: {agent: {bearer: {env: A}, basic: {user: a, password: {env: B}}}}", "f.yaml:1: identities.agent: give one of"},
		"no credentials":               {"identities: {agent: {}}", "say how it authenticates: basic, bearer, login, client_credentials or headers; of a bridge without authentication leave identities out"},
		"two targets":                  {"url: http://x\nexec: y", "f.yaml:2: url names a running bridge, exec starts one: give one of the two"},
		"half a certificate":           {"tls: {cert: a.pem}", "go together"},
		"an invocation of nothing":     {"url: http://x\ninvocations:\n- arguments: {}", "f.yaml:3: invocations: entry 1 names no tool"},
		"an unknown role":              {"identities:\n  agnet: {bearer: {env: A}}", "f.yaml:2: identities: no check uses the identity agnet; did you mean agent?"},
		"an unknown wrong token":       {"url: http://x\nwrong_tokens:\n  expried: {env: A}", "f.yaml:2: wrong_tokens: no check sends a token expried; did you mean expired?"},
		"an unknown identity":          {"invocations: [{tool: a, identity: bob}]", "not among the identities: add bob there, or leave identity out for agent"},
		"a proxy before no site":       {"drupal_proxy: 127.0.0.1:0", "give its URL by drupal"},
		"nothing but null":             {"~", "f.yaml: the file is empty"},
		"a text":                       {"hello", "f.yaml:1: the file should be a mapping with some of the keys url, exec"},
		"a second document":            {"url: http://x\n---\nstrict: true", "f.yaml:3: a second document"},
		"a tab":                        {"settings:\n\tpage_size: 3", "f.yaml:2: found character that cannot start any token: YAML is indented by blanks, not by tabs"},
		"a key without a value":        {"strict: true\nurl:", "f.yaml:2: url is empty: give a value, or leave the key out"},
		"an empty value":               {"exec: ' '", "f.yaml:1: exec is empty"},
		"a fraction":                   {"settings: {page_size: 2.5}", `f.yaml:1: settings.page_size should be a whole number, and is "2.5"`},
		"a list for a mapping":         {"identities: [agent]", "f.yaml:1: identities should be a mapping, and is a list"},
		"a text for a mapping":         {"tls: yes", `f.yaml:1: tls should be a mapping with some of the keys ca, cert, key, insecure, and is "yes"`},
		"a text for a list":            {"only: list/*", `f.yaml:1: only should be a list, and is "list/*"`},
		"a password for an identity":   {"identities: {agent: hunter2}", "f.yaml:1: identities.agent should be a mapping"},
		"a key twice in a mapping":     {"identities:\n  agent: {bearer: {env: A}}\n  agent: {bearer: {env: B}}", "f.yaml:3: the key identities.agent stands here and on line 2"},
		"an unknown key by an alias":   {"tls: {ca: &x {a: b}}\nimplementation: *x", "f.yaml:1: there is no key implementation.a"},
		"a merge":                      {"identities:\n  agent: &a {bearer: {env: A}}\n  agent2: {<<: *a}", "f.yaml:3: identities.agent2: keys are not merged"},
		"an unknown key of a call":     {"invocations:\n- tool: a\n- tol: b", "f.yaml:3: there is no key invocations[1].tol; did you mean tool?"},
		"a negative page size":         {"url: http://x\nsettings:\n  page_size: -1", "f.yaml:3: settings.page_size is -1: give 1 or more"},
		"no cases":                     {"cases: 0", "f.yaml:1: cases is 0: give 1 or more"},
		"a time-out of none":           {"timeout: 0s", "f.yaml:1: timeout: \"0s\" is no duration"},
		"a rate that is no number":     {"rate: .nan", "f.yaml:1: rate is NaN: give requests a second"},
		"a rate without end":           {"rate: .inf", "f.yaml:1: rate is +Inf"},
		"a status that is none":        {"invocations:\n- tool: a\n  expect: {status: 9999}", "f.yaml:3: invocations[0].expect.status is 9999: give an HTTP status"},
		"a URL without a scheme":       {"url: 127.0.0.1:8081", "f.yaml:1: url: that is no http or https address"},
		"a URL with a query":           {"url: http://x/?a=b", "f.yaml:1: url: the URL \"http://x/?a=b\" has a query"},
		"a proxy that is none":         {"proxy: nowhere", "f.yaml:1: proxy: that is no http or https or socks5 or socks5h address"},
		"a proxy of another kind":      {"proxy: ftp://proxy:21", "f.yaml:1: proxy: that is no http"},
		"a login nowhere":              {"identities:\n  agent:\n    login: {url: site/user, user: a, password: {env: A}}", "f.yaml:3: identities.agent.login.url: that is no http"},
		"a user with a colon":          {"identities: {agent: {basic: {user: 'a:b', password: {env: A}}}}", "has no colon in its name"},
		"a header that is none":        {"identities: {agent: {headers: {X Key: {env: A}}}}", `"X Key" is no name of a header`},
		"a half said invalidation":     {"settings:\n  invalidate: {method: POST}", "f.yaml:2: settings.invalidate.path"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settings.Parse("f.yaml", []byte(c.in))
			must.Expect(t, err != nil && strings.Contains(err.Error(), c.says), "Parse = %v, want an error with %q", err, c.says)
			must.Expect(t, err == nil || !strings.Contains(err.Error(), "hunter2"), "the error shows the secret: %v", err)
		})
	}
}

func TestOptionsNameWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"a variable that is not set": {"identities: {agent: {bearer: {env: BRIDGECHECK_NO_SUCH}}}", "identities.agent: the environment variable BRIDGECHECK_NO_SUCH is not set"},
		"a file that is not there":   {"identities: {agent: {bearer: {file: nowhere}}}", "identities.agent: read the secret"},
		"no source":                  {"identities: {agent: {bearer: {}}}", "write {env: VARIABLE} or {file: PATH}"},
		"an unknown capability":      {"capabilities: [mpc]", "did you mean mcp?"},
		"two of a kind":              {"capabilities: [naming-id, naming-underscore]", "cannot have both"},
		"a CA that is not there":     {"tls: {ca: nowhere.pem}", "tls.ca"},
		"every secret that is not":   {"identities:\n  agent: {bearer: {env: BRIDGECHECK_NO_A}}\n  agent2: {bearer: {env: BRIDGECHECK_NO_B}}", "BRIDGECHECK_NO_A is not set\nf.yaml:3: identities.agent2: the environment variable BRIDGECHECK_NO_B"},
		"a variable with its sign":   {"identities: {agent: {bearer: {env: $BRIDGECHECK_NO_SUCH}}}", "write the name alone, {env: BRIDGECHECK_NO_SUCH}"},
		"an empty secret":            {"identities: {agent: {bearer: {file: /dev/null}}}", "/dev/null is empty"},
		"a secret without end":       {"identities: {agent: {bearer: {file: /dev/zero}}}", "longer than 16 KiB"},
		"a secret of two lines":      {"identities: {agent: {bearer: {file: session.go}}}", "holds a line break"},
		"a number that JSON has not": {"url: http://x\ninvocations:\n- tool: a\n  arguments: {a: .nan}", "f.yaml:4: .nan is no number that JSON has (invocations[0].arguments)"},
		"aliases of aliases": {"url: http://x\ninvocations:\n- tool: a\n  arguments:\n    a: &a [x, x, x, x, x, x, x, x, x, x]\n    b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n" +
			"    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n    d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n    e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n    f: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]", "write fewer aliases of aliases"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := settings.Parse("f.yaml", []byte(c.in))
			if err == nil {
				_, err = f.Options(context.Background(), engine.Options{})
			}
			must.Expect(t, err != nil && strings.Contains(err.Error(), c.says), "Options = %v, want an error with %q", err, c.says)
		})
	}
}

func TestArgumentsStayAsWritten(t *testing.T) {
	f := must.Get(settings.Parse("f.yaml", []byte(`
invocations:
- tool: a
  arguments: {z: 12345678901234567890123, a: 1.10, day: 2024-01-01, yes: on, oct: 0o17, hex: 0x1F, point: .5, 1: "<&>", none: ~, list: &l [true], again: *l}
  identity: anonymous
- {tool: b, identity: agent}
`)))(t)
	o := must.Get(f.Options(t.Context(), engine.Options{}))(t)
	const want = `{"z":12345678901234567890123,"a":1.10,"day":"2024-01-01","yes":"on","oct":15,"hex":31,"point":0.5,"1":"<&>","none":null,"list":[true],"again":[true]}`
	must.Equal(t, string(o.Callers.Invocations[0].Arguments), want, "the arguments")
}

func TestASecretLosesWhatEditorsAdd(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "token"), []byte("\ufeffk-1 2\r\n\n"), 0o600))
	t.Setenv("API_KEY", "k-1 2\n")
	f := must.Get(settings.Parse(filepath.Join(dir, "f.yaml"), []byte("identities: {agent: {bearer: {file: token}}, agent2: {bearer: {env: API_KEY}}}")))(t)
	o := must.Get(f.Options(t.Context(), engine.Options{}))(t)
	for who, c := range o.Callers.Credentials {
		must.Expect(t, c.Token == "k-1 2", "%s has the token %q", who, c.Token)
	}
}

func TestOptionsAuthenticate(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	server := must.Get(drupal.Listen("127.0.0.1:0"))(t)
	defer server.Close()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "token"), []byte("from-a-file\n"), 0o600))
	t.Setenv("AGENT_PASSWORD", "agent-pass")
	t.Setenv("API_KEY", "k-123")
	f := must.Get(settings.Parse(filepath.Join(dir, "f.yaml"), []byte(`
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
`)))(t)
	o := must.Get(f.Options(context.Background(), engine.Options{Capabilities: engine.DefaultCapabilities}))(t)
	c := o.Callers.Credentials["agent"].Cookie
	must.Expect(t, strings.HasPrefix(c, "SESS"), "the login gave the cookie %q, want a session", c)
	open := loggedIn(t, server.URL, o.Callers.Credentials["agent"].Cookie)
	must.Expect(t, open, "the login opened no session")
	if err := f.End(t.Context(), f.Sessions()...); err != nil || loggedIn(t, server.URL, o.Callers.Credentials["agent"].Cookie) {
		t.Errorf("End = %v, and the session is open still or an error came", err)
	}
	err := f.End(t.Context(), f.Sessions()...)
	must.Expect(t, err == nil, "ending what is ended: %v", err)
	if c := o.Callers.Credentials["discoverer"]; c.User != "discoverer" || c.Password != "agent-pass" {
		t.Errorf("basic gave %q", c.User)
	}
	if c := o.Callers.Credentials["service"]; c.Token != "from-a-file" || c.Header["X-Api-Key"] != "k-123" {
		t.Errorf("bearer and headers gave %+v", c)
	}
	must.Expect(t, o.Bridge.PageSize == 20 && o.Bridge.DiscoveryTTL == 2*time.Second && o.Connection.TLS != nil && o.Connection.TLS.InsecureSkipVerify,
		"settings gave page size %d, TTL %v, TLS %v", o.Bridge.PageSize, o.Bridge.DiscoveryTTL, o.Connection.TLS)
	call := o.Callers.Invocations[0]
	if call.Identity != check.Agent || call.Status != http.StatusOK || string(call.Arguments) != `{"limit":3,"deep":{"a":[1,true,null]}}` || string(call.Result) != "[]" {
		t.Errorf("the invocation is %+v (%s, %s)", call, call.Arguments, call.Result)
	}
}

// loggedIn asks the site whether a cookie opens a session.
func loggedIn(t *testing.T, site, cookie string) bool {
	t.Helper()
	req := must.Get(http.NewRequest(http.MethodGet, site+"/user/login_status?_format=json", nil))(t)
	req.Header.Set("Cookie", cookie)
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	return strings.TrimSpace(string(body)) == "1"
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("url: http://x\nidentities: {a: {bearer: {env: T}}}"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("settings: {page_size: 1e9}\ninvocations: [{tool: t, arguments: {? [1] : 2}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := settings.Parse("f.yaml", data)
		must.Expect(t, err != nil || file != nil, "neither a file nor an error")
	})
}
