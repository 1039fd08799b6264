package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/reports"
)

// realSite is the reference bridge before a site, as a run meets them that knows nothing of either.
type realSite struct {
	drupal *mockdrupal.Drupal
	site   string // URL
	bridge http.Handler
}

func newRealSite(t *testing.T) *realSite {
	t.Helper()
	site := must.Get(fixtures.Builtin("default"))(t)
	site.Auth.JSONRPC = append(site.Auth.JSONRPC, "cookie")
	s := &realSite{}
	s.drupal = must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	server := must.Serve(t, s.drupal)
	s.site = server.URL
	b := must.Get(bridge.New(bridge.Options{Drupal: s.site, CallerOptions: bridge.CallerOptions{Credentials: append(bridge.Options{}.Credentials, "basic", "bearer", "cookie")}}))(t)
	t.Cleanup(func() { b.Close() })
	s.bridge = b
	return s
}

// others are the accounts beside the agent that the site has shown its methods since its journal was cleared.
func (s *realSite) others() []string {
	var names []string
	for _, e := range s.drupal.Journal().Entries(0) {
		if e.Route == route.Methods && e.Status == http.StatusOK && e.User != "agent" {
			names = append(names, e.User)
		}
	}
	return names
}

func served(t *testing.T, h http.Handler) string {
	t.Helper()
	server := must.Serve(t, h)
	return server.URL
}

// outcome is what a run ended with.
type outcome struct {
	code           int
	stdout, stderr string
	report         *reports.Report // nil: there is none
}

// command runs a command line in this process.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), args, &stdout, &stderr)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// runWith runs with a configuration in a folder of its own, which may hold other files.
func runWith(t *testing.T, dir, config string, args ...string) outcome {
	t.Helper()
	file := filepath.Join(dir, "bridge.yaml")
	must.Do(t, os.WriteFile(file, []byte(config), 0o600))
	report := filepath.Join(dir, "report")
	o := command(t, append([]string{"run", "--config", file, "--report-dir", report}, args...)...)
	if r, err := reports.ReadFile(report); err == nil {
		o.report = r
	}
	return o
}

func TestRealSitesAreLoggedInto(t *testing.T) {
	s := newRealSite(t)
	key := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // takes a header of its own
		r.Header.Del("Authorization")
		if r.Header.Get("X-Api-Key") == "key-of-agent" {
			r.SetBasicAuth("agent", "agent-pass")
		}
		s.bridge.ServeHTTP(w, r)
	})
	bodyAlone := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // takes no Basic
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			w.Write([]byte(`{"error":"invalid_client"}`))
			return
		}
		s.drupal.ServeHTTP(w, r)
	}))
	basicAlone := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ParseForm() == nil && r.PostForm.Has("client_secret") {
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"error":"invalid_request"}`))
			return
		}
		r.Body = http.NoBody
		body := r.PostForm.Encode()
		inner := httptest.NewRequestWithContext(r.Context(), http.MethodPost, "/oauth/token", strings.NewReader(body))
		inner.Header = r.Header
		s.drupal.ServeHTTP(w, inner)
	}))
	token := ""
	for _, u := range s.drupal.Site().Users {
		if u.Name == "agent" && len(u.Tokens) > 0 {
			token = u.Tokens[0].Value
		}
	}
	for name, c := range map[string]struct {
		bridge   http.Handler
		identity string
		secret   string // in the variable SECRET and in the file secret
		refused  string // what is said when the secret is wrong
	}{
		"basic":                          {s.bridge, "basic: {user: agent, password: {env: SECRET}}", "agent-pass", "agent"},
		"basic from a file":              {s.bridge, "basic: {user: agent, password: {file: secret}}", "agent-pass", "agent"},
		"bearer":                         {s.bridge, "bearer: {env: SECRET}", token, "agent"},
		"a session":                      {s.bridge, "login: {url: " + s.site + ", user: agent, password: {env: SECRET}}", "agent-pass", "identities.agent: " + s.site + " refused the login of agent with 400 and no session cookie"},
		"client credentials":             {s.bridge, "client_credentials: {token_url: " + s.site + "/oauth/token, client_id: agent, client_secret: {env: SECRET}}", "agent-pass", "identities.agent: " + s.site + "/oauth/token refused the request for a token with 401 invalid_client"},
		"client credentials in the body": {s.bridge, "client_credentials: {token_url: " + bodyAlone + "/oauth/token, client_id: agent, client_secret: {env: SECRET}}", "agent-pass", "401 invalid_client"},
		"client credentials by Basic":    {s.bridge, "client_credentials: {token_url: " + basicAlone + "/oauth/token, client_id: agent, client_secret: {env: SECRET}}", "agent-pass", "400 invalid_request"},
		"a header":                       {key, "headers: {X-Api-Key: {env: SECRET}}", "key-of-agent", "agent"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			config := "url: " + served(t, c.bridge) + "\nidentities:\n  agent: {" + c.identity + "}\nonly: [list/answers-json, describe/answers-tool]\n"
			keep := func(secret string) {
				t.Setenv("SECRET", secret)
				must.Do(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(secret+"\n"), 0o600))
			}
			keep(c.secret)
			s.drupal.Journal().Clear()
			if o := runWith(t, dir, config); o.code != exitOK || o.report.Summary.Pass != 2 {
				t.Fatalf("the run ended with %d: %s%s", o.code, o.stdout, o.stderr)
			}
			names := s.others()
			must.Expect(t, len(names) == 0, "the site has shown its methods to %v, want the agent alone", names)
			keep("wrong-" + c.secret)
			o := runWith(t, dir, config)
			must.Expect(t, o.code == exitUsage && strings.Contains(o.stderr, c.refused),
				"with a wrong secret the run ended with %d: %s%s, want %q", o.code, o.stdout, o.stderr, c.refused)
			must.Expect(t, !strings.Contains(o.stdout+o.stderr, "wrong-"+c.secret), "the secret is shown: %s%s", o.stdout, o.stderr)
		})
	}
}

// A Drupal reads 72 bytes of a password, and takes what differs behind them: no bridge is to blame for that.
func TestAPasswordLongerThanTheSiteReads(t *testing.T) {
	s := newRealSite(t)
	long := strings.Repeat("long", 20)
	bridge := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); strings.HasPrefix(password, long[:72]) {
			r.SetBasicAuth("agent", "agent-pass")
		}
		s.bridge.ServeHTTP(w, r)
	}))
	t.Setenv("SECRET", long)
	o := runWith(t, t.TempDir(), "url: "+bridge+"\nidentities:\n  agent: {basic: {user: agent, password: {env: SECRET}}}\nonly: [access/bad-credentials]\n")
	must.Expect(t, o.code == exitOK && o.report.Summary.Pass == 1, "the run ended with %d: %s%s", o.code, o.stdout, o.stderr)
}

func TestRealSitesBehindTLS(t *testing.T) {
	dir := t.TempDir()
	issue := func(name string, issuer *tls.Certificate) *tls.Certificate {
		return must.Certificate(t, filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"), issuer)
	}
	ca := issue("ca", nil)
	own := issue("server", ca)
	issue("client", ca)
	issue("stranger", nil)
	s := newRealSite(t)
	clients := x509.NewCertPool()
	clients.AddCert(ca.Leaf)
	serve := func(settings *tls.Config) string {
		server := httptest.NewUnstartedServer(s.bridge)
		server.TLS = settings
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		u := must.Get(url.Parse(server.URL))(t)
		return "https://localhost:" + u.Port()
	}
	plain := serve(&tls.Config{Certificates: []tls.Certificate{*own}})
	mutual := serve(&tls.Config{Certificates: []tls.Certificate{*own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients})
	t.Setenv("SECRET", "agent-pass")
	for name, c := range map[string]struct {
		url, tls string
		code     int
		says     string
	}{
		"a CA of its own":                {plain, "tls: {ca: ca.pem}", exitOK, ""},
		"no CA":                          {plain, "", exitUnreachable, "the TLS certificate is not trusted"},
		"another CA":                     {plain, "tls: {ca: stranger.pem}", exitUnreachable, "tls.ca in the configuration"},
		"insecure":                       {plain, "tls: {insecure: true}", exitOK, "warning: the bridge's certificate is not checked (tls.insecure)"},
		"a client certificate":           {mutual, "tls: {ca: ca.pem, cert: client.pem, key: client.key}", exitOK, ""},
		"no client certificate":          {mutual, "tls: {ca: ca.pem}", exitUnreachable, "tls.cert and tls.key in the configuration"},
		"a stranger's certificate":       {mutual, "tls: {ca: ca.pem, cert: stranger.pem, key: stranger.key}", exitUnreachable, "tls.cert and tls.key in the configuration"},
		"a key that does not fit":        {mutual, "tls: {ca: ca.pem, cert: client.pem, key: ca.key}", exitUsage, "bridge.yaml:4: tls.cert and tls.key"},
		"a CA file that is none":         {plain, "tls: {ca: bridge.yaml}", exitUsage, "bridge.yaml:4: tls.ca: bridge.yaml holds no certificate"},
		"TLS where there is none spoken": {strings.Replace(served(t, s.bridge), "http://", "https://", 1), "", exitUnreachable, "the server does not speak TLS on this port"},
	} {
		t.Run(name, func(t *testing.T) {
			o := runWith(t, dir, "url: "+c.url+"\nidentities: {agent: {basic: {user: agent, password: {env: SECRET}}}}\nonly: [list/answers-json]\n"+c.tls+"\n")
			must.Expect(t, o.code == c.code && strings.Contains(o.stderr, c.says),
				"the run ended with %d, want %d: %s%s, want %q", o.code, c.code, o.stdout, o.stderr, c.says)
		})
	}
}

func TestRealSitesBelowABasePathAndBehindAProxy(t *testing.T) {
	s := newRealSite(t)
	below := http.StripPrefix("/sub/path", s.bridge)
	inner := must.Get(url.Parse(served(t, below)))(t)
	var mu sync.Mutex
	asked := map[string]int{}
	proxy := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Host]++
		mu.Unlock()
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(inner) }}).ServeHTTP(w, r)
	}))
	t.Setenv("SECRET", "agent-pass")
	only := "\nidentities: {agent: {basic: {user: agent, password: {env: SECRET}}}}\nonly: [list/answers-json, describe/answers-tool, list/cursor-opaque-roundtrip]\n"
	if o := runWith(t, t.TempDir(), "url: "+inner.String()+"/sub/path/"+only); o.code != exitOK || o.report.Summary.Pass != 3 {
		t.Errorf("below a base path the run ended with %d: %s%s", o.code, o.stdout, o.stderr)
	}
	if o := runWith(t, t.TempDir(), "url: http://bridge.invalid/sub/path"+only+"proxy: "+proxy+"\n"); o.code != exitOK || o.report.Summary.Pass != 3 {
		t.Errorf("behind a proxy the run ended with %d: %s%s", o.code, o.stdout, o.stderr)
	}
	must.Expect(t, asked["bridge.invalid"] >= 10, "the proxy was asked for %v", asked)
	free, release, err := freeport.Address()
	must.Do(t, err)
	t.Cleanup(release)
	if o := runWith(t, t.TempDir(), "url: http://bridge.invalid/sub/path"+only+"proxy: http://"+free+"\n"); o.code != exitUnreachable || !strings.Contains(o.stderr, "cannot connect to the proxy") {
		t.Errorf("without its proxy the run ended with %d: %s%s", o.code, o.stdout, o.stderr)
	}
}

func TestARunKeepsToItsRate(t *testing.T) {
	s := newRealSite(t)
	var mu sync.Mutex
	var came []time.Time
	at := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		came = append(came, time.Now())
		mu.Unlock()
		s.bridge.ServeHTTP(w, r)
	}))
	t.Setenv("SECRET", "agent-pass")
	const rate = 50
	o := runWith(t, t.TempDir(), "url: "+at+"\nrate: 50\nidentities: {agent: {basic: {user: agent, password: {env: SECRET}}}}\nonly: [describe/answers-tool, http/keep-alive-after-error, list/cursor-malformed]\n")
	must.Assert(t, o.code == exitOK && len(came) >= rate,
		"the run ended with %d after %d requests: %s%s", o.code, len(came), o.stdout, o.stderr)
	// In any second no more than twice the rate: requests may be late on a busy machine and then come close together.
	for i := range came {
		n := 0
		for _, other := range came[i:] {
			if other.Sub(came[i]) < time.Second {
				n++
			}
		}
		must.Assert(t, n <= 2*rate, "%d requests came within a second, at a rate of %d", n, rate)
	}
}

func TestAConfiguredTimeoutHolds(t *testing.T) {
	s := newRealSite(t)
	slow := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(400 * time.Millisecond):
			s.bridge.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Setenv("SECRET", "agent-pass")
	config := "url: " + slow + "\nidentities: {agent: {basic: {user: agent, password: {env: SECRET}}}}\nonly: [list/answers-json]\n"
	if o := runWith(t, t.TempDir(), config+"timeout: 50ms\n"); o.code != exitUnreachable || !strings.Contains(o.stderr, "give a longer --timeout") {
		t.Errorf("with a short time-out the run ended with %d: %s%s", o.code, o.stdout, o.stderr)
	}
	o := runWith(t, t.TempDir(), config+"timeout: 1m\n")
	must.Expect(t, o.code == exitOK, "with a long time-out the run ended with %d: %s%s", o.code, o.stdout, o.stderr)
	if o := runWith(t, t.TempDir(), config+"run_timeout: 100ms\n"); o.code != exitNoVerdict || !strings.Contains(o.stdout, "run time-out") {
		t.Errorf("with a short time-out of the run it ended with %d: %s%s", o.code, o.stdout, o.stderr)
	}
}

// A live site becomes a site file that is valid and publishes the same methods.
func TestFixturesImport(t *testing.T) {
	site := unmarkedSite(t)
	t.Setenv("DRUPAL_USER", "agent")
	t.Setenv("DRUPAL_PASSWORD", "agent-pass")
	o := command(t, "fixtures", "import", "--url", site)
	must.Assert(t, o.code == exitOK, "exit code %d: %s", o.code, o.stderr)
	read := must.Get(fixtures.Parse("imported.yaml", []byte(o.stdout)))(t)
	original := must.Get(fixtures.Builtin("transcripts"))(t)
	agent, _ := original.User("agent")
	for i := range original.Methods {
		m := &original.Methods[i]
		_, ok := read.Method(m.ID)
		must.Expect(t, ok == original.MayRun(agent, m), "%s is in the site file: %t, and the agent may run it: %t", m.ID, ok, original.MayRun(agent, m))
	}
	m, ok := read.Method("fx.range")
	must.Expect(t, ok && len(m.Params) > 0, "fx.range is %+v", m)
	for name, args := range map[string][]string{"DRUPAL_USER": {"--url", site}, "https://drupal.example.org": {"--url", "site"}} {
		t.Setenv("DRUPAL_USER", "")
		o := command(t, append([]string{"fixtures", "import"}, args...)...)
		must.Expect(t, o.code == exitUsage && strings.Contains(o.stderr, name), "%v ended with %d: %s", args, o.code, o.stderr)
	}
}
