package config

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"bridgecheck/suites"
	"bridgecheck/suites/ledger"
)

// maxFile bounds a configuration, in bytes.
const maxFile = 1 << 20

// Load reads and checks a configuration. Nothing is connected to and no secret is read yet.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the text of a configuration; name stands for it in errors, and relative paths in it start at its folder.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d KiB: no configuration", name, maxFile>>10)
	}
	f := &File{path: name}
	var err error
	if f.lines, err = decode(name, data, f); err != nil {
		return nil, err
	}
	return f, f.check()
}

// roles are the identities that checks sign in as.
var roles = []string{string(suites.Agent), string(suites.Agent2), string(suites.Discoverer), string(suites.Outsider), string(suites.NoRPC),
	string(suites.Blocked), string(suites.Service), string(suites.Admin)}

// fault is a mistake at a key.
func (f *File) fault(key, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", f.path, f.lines[key], fmt.Errorf(format, args...))
}

// check refuses what cannot be, key by key.
func (f *File) check() error {
	switch {
	case f.URL != "" && f.Exec != "":
		return f.fault("exec", "url names a bridge that is up, exec starts one: give one of the two")
	case f.DrupalProxy != "" && f.Drupal == "":
		return f.fault("drupal_proxy", "drupal_proxy stands before a real site: say which by drupal")
	case f.DrupalProxy != "" && f.MockListen != "":
		return f.fault("drupal_proxy", "drupal_proxy and mock_listen both stand behind the bridge: give one of the two")
	case (f.TLS.Cert == "") != (f.TLS.Key == ""):
		return f.fault("tls", "tls.cert and tls.key go together")
	case f.Rate < 0:
		return f.fault("rate", "rate is %v: give requests a second, more than 0", f.Rate)
	case f.Cases < 0:
		return f.fault("cases", "cases is %d: give 1 or more", f.Cases)
	case f.Settings.PageSize < 0 || f.Settings.RateLimit < 0:
		return f.fault("settings", "settings.page_size and settings.rate_limit cannot be negative")
	case f.Settings.Invalidate != nil && !strings.HasPrefix(f.Settings.Invalidate.Path, "/"):
		return f.fault("settings.invalidate.path", "settings.invalidate.path is %q: give a path such as /mcp/admin/invalidate", f.Settings.Invalidate.Path)
	}
	if err := f.noSecretInAddresses(); err != nil {
		return err
	}
	for name, identity := range f.Identities {
		if !slices.Contains(roles, name) {
			return f.fault("identities."+name, "identities: no check signs in as %s; the nearest is %s, and allowed are %s", name, ledger.Nearest(name, roles), strings.Join(roles, ", "))
		}
		if err := identity.check(); err != nil {
			return f.fault("identities."+name, "identities.%s: %v", name, err)
		}
	}
	for i, call := range f.Invocations {
		if call.Tool == "" {
			return f.fault(fmt.Sprintf("invocations[%d]", i), "invocations: entry %d names no tool", i+1)
		}
		if call.Identity != "" && call.Identity != "anonymous" && !f.has(call.Identity) {
			return f.fault(fmt.Sprintf("invocations[%d]", i), "invocations: entry %d is for %s, who is none of the identities", i+1, call.Identity)
		}
	}
	return nil
}

// noSecretInAddresses refuses an address with a password in it.
func (f *File) noSecretInAddresses() error {
	type address struct{ key, value, instead string }
	addresses := []address{
		{"url", f.URL, "sign the agent in under identities"},
		{"drupal", f.Drupal, "a proxy passes on what callers send, and signs in nobody itself"},
		{"proxy", f.Proxy, "leave proxy out and set HTTP_PROXY or HTTPS_PROXY in the environment"},
	}
	for name, i := range f.Identities {
		if i.Login != nil {
			addresses = append(addresses, address{"identities." + name + ".login.url", i.Login.URL, "give user and password as login has them"})
		}
		if i.ClientCredentials != nil {
			addresses = append(addresses, address{"identities." + name + ".client_credentials.token_url", i.ClientCredentials.TokenURL, "give client_id and client_secret"})
		}
	}
	for _, a := range addresses {
		if u, err := url.Parse(a.value); err == nil && u.User != nil {
			return f.fault(a.key, "%s: a secret may not stand in this file, and there is a user in the address: %s", a.key, a.instead)
		}
	}
	return nil
}

func (f *File) has(identity string) bool {
	_, ok := f.Identities[identity]
	return ok
}

func (i Identity) check() error {
	ways := 0
	for _, given := range []bool{i.Basic != nil, i.Bearer != nil, i.Login != nil, i.ClientCredentials != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return fmt.Errorf("give one of basic, bearer, login and client_credentials")
	case ways == 0 && len(i.Headers) == 0:
		return fmt.Errorf("say how it signs in: basic, bearer, login, client_credentials or headers")
	case i.Basic != nil && i.Basic.User == "":
		return fmt.Errorf("basic needs a user")
	case i.Login != nil && i.Login.User == "":
		return fmt.Errorf("login needs a user")
	case i.ClientCredentials != nil && (i.ClientCredentials.TokenURL == "" || i.ClientCredentials.ID == ""):
		return fmt.Errorf("client_credentials needs a token_url and a client_id")
	}
	return nil
}

// Target is the bridge as the suites take it.
func (f *File) Target() suites.Target {
	return suites.Target{URL: f.URL, Name: f.Implementation.Name, Version: f.Implementation.Version,
		Organisation: f.Implementation.Organisation, Contact: f.Implementation.Contact}
}

// Options fills in what the configuration says and leaves the rest of o as it is. It reads the secrets, and signs in
// where an identity logs in or fetches a token.
func (f *File) Options(ctx context.Context, o suites.Options) (suites.Options, error) {
	var err error
	if o.Capabilities, err = suites.Claim(o.Capabilities, strings.Join(f.Capabilities, ",")); err != nil {
		return o, f.fault("capabilities", "capabilities: %w", err)
	}
	if o.TLS, err = f.tls(); err != nil {
		return o, err
	}
	if o.Proxy, err = f.proxy(); err != nil {
		return o, err
	}
	s := f.Settings
	o.PageSize = cmp.Or(s.PageSize, o.PageSize)
	o.DiscoveryTTL = cmp.Or(time.Duration(s.DiscoveryTTL), o.DiscoveryTTL)
	o.UpstreamTimeout = cmp.Or(time.Duration(s.UpstreamTimeout), o.UpstreamTimeout)
	o.RateLimit = cmp.Or(s.RateLimit, o.RateLimit)
	o.Timeout, o.RunTimeout = cmp.Or(time.Duration(f.Timeout), o.Timeout), cmp.Or(time.Duration(f.RunTimeout), o.RunTimeout)
	o.Only, o.Skip = append(o.Only, f.Only...), append(o.Skip, f.Skip...)
	o.Strict, o.Rate, o.Seed = o.Strict || f.Strict, cmp.Or(f.Rate, o.Rate), cmp.Or(f.Seed, o.Seed)
	o.Cases = cmp.Or(f.Cases, o.Cases)
	if s.Include != nil || s.Exclude != nil {
		o.Patterns = &suites.Patterns{Include: s.Include, Exclude: s.Exclude}
	}
	if i := s.Invalidate; i != nil {
		o.Invalidate = &suites.Invalidate{Method: cmp.Or(i.Method, http.MethodPost), Path: i.Path, Identity: identityNamed(i.Identity)}
	}
	if o.Invocations, err = f.invocations(); err != nil {
		return o, err
	}
	o.Credentials, err = f.credentials(ctx, o)
	o.Secrets = append(o.Secrets, f.resolved...)
	return o, err
}

func identityNamed(name string) suites.Identity {
	if name == "anonymous" {
		return suites.Anonymous
	}
	return suites.Identity(name)
}

// proxy is the way by which requests to the bridge go; nil for the environment's.
func (f *File) proxy() (func(*http.Request) (*url.URL, error), error) {
	if f.Proxy == "" {
		return nil, nil
	}
	proxy, err := url.Parse(f.Proxy)
	if err != nil || proxy.Host == "" {
		return nil, f.fault("proxy", "proxy: that is no address of a proxy: write for example http://proxy:3128") // there may be a password in it
	}
	return http.ProxyURL(proxy), nil
}

func (f *File) tls() (*tls.Config, error) {
	t := f.TLS
	if t == (TLS{}) {
		return nil, nil
	}
	settings := &tls.Config{InsecureSkipVerify: t.Insecure} //nolint:gosec // asked for by the user, who is warned
	if t.CA != "" {
		pem, err := os.ReadFile(f.beside(t.CA))
		if err != nil {
			return nil, f.fault("tls.ca", "tls.ca: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, f.fault("tls.ca", "tls.ca: %s holds no certificate in PEM form", t.CA)
		}
		settings.RootCAs = pool
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.beside(t.Cert), f.beside(t.Key))
		if err != nil {
			return nil, f.fault("tls.cert", "tls.cert and tls.key: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// beside makes a relative path start at the configuration's folder.
func (f *File) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.path), path)
}

// BaselinePath is the baseline that the configuration names; "" for none.
func (f *File) BaselinePath() string {
	if f.Baseline == "" {
		return ""
	}
	return f.beside(f.Baseline)
}

func (f *File) invocations() ([]suites.Invocation, error) {
	var calls []suites.Invocation
	for i, c := range f.Invocations {
		call := suites.Invocation{Tool: c.Tool, Identity: identityNamed(cmp.Or(c.Identity, string(suites.Agent))), Status: cmp.Or(c.Expect.Status, http.StatusOK)}
		var err error
		if call.Arguments, err = document(c.Arguments); err == nil {
			call.Result, err = document(c.Expect.Result)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: invocations: entry %d: %w", f.path, c.Arguments.Line, i+1, err)
		}
		if call.Arguments != nil && !bytes.HasPrefix(call.Arguments, []byte("{")) {
			return nil, fmt.Errorf("%s:%d: invocations: entry %d: arguments must be a mapping", f.path, c.Arguments.Line, i+1)
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// document turns a YAML value into JSON; nil for none.
func document(node yaml.Node) (json.RawMessage, error) {
	if node.IsZero() {
		return nil, nil
	}
	var v any
	if err := node.Decode(&v); err != nil {
		return nil, err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("it has no form in JSON: %w", err)
	}
	return data, nil
}

func (f *File) credentials(ctx context.Context, o suites.Options) (map[suites.Identity]suites.Credentials, error) {
	all := map[suites.Identity]suites.Credentials{}
	for name, identity := range f.Identities {
		creds, err := f.signIn(ctx, identity, o)
		if err != nil {
			return nil, f.fault("identities."+name, "identities.%s: %w", name, err)
		}
		all[identityNamed(name)] = creds
	}
	return all, nil
}

func (f *File) signIn(ctx context.Context, i Identity, o suites.Options) (suites.Credentials, error) {
	creds := suites.Credentials{Header: map[string]string{}}
	var err error
	for header, secret := range i.Headers {
		if creds.Header[header], err = f.secret(secret); err != nil {
			return creds, err
		}
	}
	switch {
	case i.Basic != nil:
		creds.User = i.Basic.User
		creds.Password, err = f.secret(i.Basic.Password)
	case i.Bearer != nil:
		creds.Token, err = f.secret(*i.Bearer)
	case i.Login != nil:
		creds.Cookie, err = f.logIn(ctx, *i.Login, o)
	case i.ClientCredentials != nil:
		creds.Token, err = f.fetchToken(ctx, *i.ClientCredentials, o)
	}
	return creds, err
}

func (f *File) secret(s Secret) (string, error) {
	switch {
	case s.Env != "" && s.File != "":
		return "", fmt.Errorf("a secret comes from env or from file, not from both")
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok || value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", s.Env)
		}
		f.resolved = append(f.resolved, value)
		return value, nil
	case s.File != "":
		data, err := os.ReadFile(f.beside(s.File))
		if err != nil {
			return "", fmt.Errorf("read the secret: %w", err)
		}
		value := strings.TrimRight(string(data), "\r\n")
		f.resolved = append(f.resolved, value)
		return value, nil
	}
	return "", fmt.Errorf("a secret is missing: write {env: VARIABLE} or {file: PATH}")
}

// logIn opens a session on a Drupal site and returns its cookie.
func (f *File) logIn(ctx context.Context, l Login, o suites.Options) (string, error) {
	password, err := f.secret(l.Password)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]string{"name": l.User, "pass": password})
	if err != nil {
		return "", err
	}
	site := strings.TrimSuffix(cmp.Or(l.URL, f.URL), "/")
	resp, err := f.post(ctx, site+"/user/login?_format=json", http.Header{"Content-Type": {"application/json"}}, body, o)
	if err != nil {
		return "", err
	}
	for _, cookie := range resp.cookies {
		if strings.HasPrefix(cookie.Name, "SESS") || strings.HasPrefix(cookie.Name, "SSESS") {
			session := cookie.Name + "=" + cookie.Value
			var login struct {
				Logout string `json:"logout_token"`
			}
			_ = json.Unmarshal(resp.body, &login) // without a token the site may still take the logout
			f.sessions = append(f.sessions, Session{Site: site, Cookie: session, Token: login.Logout})
			f.resolved = append(f.resolved, login.Logout)
			return session, nil
		}
	}
	return "", fmt.Errorf("%s answered the login of %s with %d and no session cookie", site, l.User, resp.status)
}

// fetchToken asks a token endpoint for a bearer token.
func (f *File) fetchToken(ctx context.Context, c Client, o suites.Options) (string, error) {
	secret, err := f.secret(c.Secret)
	if err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.Scope != "" {
		form.Set("scope", c.Scope)
	}
	send := func(header http.Header, form url.Values) (token, error) {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := f.post(ctx, c.TokenURL, header, []byte(form.Encode()), o)
		t := token{status: resp.status}
		_ = json.Unmarshal(resp.body, &t) // no JSON gives no token
		return t, err
	}
	// RFC 6749 §2.3.1: every server takes Basic, with both parts encoded as a form has them; some take the body alone.
	basic := &http.Request{Header: http.Header{}}
	basic.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(secret))
	t, err := send(basic.Header, form)
	if err == nil && t.Access == "" && (t.status == http.StatusBadRequest || t.status == http.StatusUnauthorized) {
		form.Set("client_id", c.ID)
		form.Set("client_secret", secret)
		t, err = send(http.Header{}, form)
	}
	switch {
	case err != nil:
		return "", err
	case t.Access == "" && t.Error != "":
		return "", fmt.Errorf("%s answered the request for a token with %d %s", c.TokenURL, t.status, t.Error)
	case t.Access == "":
		return "", fmt.Errorf("%s answered the request for a token with %d and no access_token", c.TokenURL, t.status)
	}
	return t.Access, nil
}

// token is a token endpoint's answer.
type token struct {
	status int
	Access string `json:"access_token"`
	Error  string `json:"error"` // a code of RFC 6749 §5.2
}

type reply struct {
	status  int
	cookies []*http.Cookie
	body    []byte
}

// post sends a request of our own, no faster than the configuration's rate.
func (f *File) post(ctx context.Context, to string, header http.Header, body []byte, o suites.Options) (reply, error) {
	if o.Rate > 0 {
		select {
		case <-time.After(time.Duration(float64(time.Second) / o.Rate)):
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, 10*time.Second))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("sign in: %w", err)
	}
	req.Header = header
	transport := &http.Transport{TLSClientConfig: o.TLS, Proxy: http.ProxyFromEnvironment}
	if o.Proxy != nil {
		transport.Proxy = o.Proxy
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return reply{}, fmt.Errorf("sign in: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFile))
	if err != nil {
		return reply{}, fmt.Errorf("sign in: %w", err)
	}
	return reply{resp.StatusCode, resp.Cookies(), data}, nil
}
