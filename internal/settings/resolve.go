package settings

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
	"github.com/bridgecheck/bridgecheck/internal/yamlfile"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// maxFile bounds a configuration, in bytes.
const maxFile = 1 << 20

// Load reads and checks a configuration. Nothing is connected to and no secret is read yet.
func Load(path string) (*File, error) {
	data, err := wholefile.Read(path, maxFile)
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
	if f.lines, err = yamlfile.Decode(name, data, f, "identities"); err != nil {
		return nil, err
	}
	return f, f.check()
}

// roles are the identities whose credentials checks use.
var roles = []string{string(check.Agent), string(check.Agent2), string(check.Discoverer), string(check.Outsider), string(check.NoRPC),
	string(check.Blocked), string(check.Service), string(check.Admin)}

// fault is a mistake at a key.
func (f *File) fault(key, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", f.path, f.lines[key], fmt.Errorf(format, args...))
}

// check refuses what cannot be, key by key.
func (f *File) check() error {
	switch {
	case f.URL != "" && f.Exec != "":
		return f.fault("exec", "url names a running bridge, exec starts one: give one of the two")
	case f.DrupalProxy != "" && f.Drupal == "":
		return f.fault("drupal_proxy", "drupal_proxy is a proxy in front of a real site: give its URL by drupal")
	case f.DrupalProxy != "" && f.MockListen != "":
		return f.fault("drupal_proxy", "drupal_proxy and mock_listen are both the site behind the bridge: give one of the two")
	case f.Wire != "" && f.Wire != string(contract.Front):
		return f.fault("wire", "wire: %q is unknown: give front, or leave it out to count both sides", f.Wire)
	case (f.TLS.Cert == "") != (f.TLS.Key == ""):
		return f.fault("tls", "tls.cert and tls.key go together")
	case f.given("rate") && (!(f.Rate > 0) || math.IsInf(f.Rate, 1)): // the first is so of what is no number, too
		return f.fault("rate", "rate is %v: give requests a second, more than 0, or leave it out for no limit", f.Rate)
	case f.Settings.Invalidate != nil && !strings.HasPrefix(f.Settings.Invalidate.Path, "/"):
		return f.fault(f.firstGiven("settings.invalidate.path", "settings.invalidate"), "settings.invalidate.path is %q: give a path such as /mcp/admin/invalidate", f.Settings.Invalidate.Path)
	}
	for _, setting := range Table() {
		if setting.Key == "" || setting.at == nil || !f.given(setting.Key) {
			continue
		}
		if fault := setting.fault(&Values{File: *f}); fault != "" {
			return f.fault(setting.Key, "%s is %s", setting.Key, fault)
		}
	}
	if err := f.checkAddresses(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Identities)) {
		identity := f.Identities[name]
		if !slices.Contains(roles, name) {
			return f.fault("identities."+name, "identities: no check uses the identity %s; %s", name, suggest.Among(name, roles))
		}
		if err := identity.check(); err != nil {
			return f.fault("identities."+name, "identities.%s: %v", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.WrongTokens)) {
		if !slices.Contains(engine.WrongTokens, name) {
			return f.fault("wrong_tokens", "wrong_tokens: no check sends a token %s; %s", name, suggest.Among(name, engine.WrongTokens))
		}
	}
	for i, call := range f.Invocations {
		if call.Tool == "" {
			return f.fault(fmt.Sprintf("invocations[%d]", i), "invocations: entry %d names no tool", i+1)
		}
		if call.Identity != "" && call.Identity != "anonymous" && call.Identity != string(check.Agent) && !f.has(call.Identity) {
			return f.fault(fmt.Sprintf("invocations[%d]", i), "invocations: entry %d is for %s, who is not among the identities: add %s there, or leave identity out for agent", i+1, call.Identity, call.Identity)
		}
		if key := fmt.Sprintf("invocations[%d].expect.status", i); f.given(key) && (call.Expect.Status < 100 || call.Expect.Status > 599) {
			return f.fault(key, "%s is %d: give an HTTP status, 100 to 599", key, call.Expect.Status)
		}
	}
	return nil
}

// CheckAccounts refuses identities of other accounts than those of their names, which the checks of a controlled site change.
func (f *File) CheckAccounts() error {
	for _, name := range slices.Sorted(maps.Keys(f.Identities)) {
		account := name
		switch i := f.Identities[name]; {
		case i.Basic != nil:
			account = i.Basic.User
		case i.Login != nil:
			account = i.Login.User
		}
		if account != name {
			return f.fault("identities."+name, "identities.%s has the credentials of %s, but with --control the checks change the site's account %s: leave identities out", name, account, name)
		}
	}
	return nil
}

// checkAddresses refuses an address that is none, and one with a password in it.
func (f *File) checkAddresses() error {
	type address struct{ key, value, instead string }
	addresses := []address{
		{"url", f.URL, "give the credentials of the agent under identities"},
		{"drupal", f.Drupal, "a proxy passes on what callers send, and has no credentials of its own"},
		{"proxy", f.Proxy, "leave proxy out and set HTTP_PROXY or HTTPS_PROXY in the environment"},
	}
	for _, name := range slices.Sorted(maps.Keys(f.Identities)) {
		i := f.Identities[name]
		if i.Login != nil {
			addresses = append(addresses, address{"identities." + name + ".login.url", i.Login.URL, "give user and password as login has them"})
		}
		if i.ClientCredentials != nil {
			addresses = append(addresses, address{"identities." + name + ".client_credentials.token_url", i.ClientCredentials.TokenURL, "give client_id and client_secret"})
		}
	}
	for _, a := range addresses {
		if !f.given(a.key) {
			continue
		}
		schemes, example := []string{"http", "https"}, "https://drupal.example.org"
		if a.key == "proxy" {
			schemes, example = append(schemes, "socks5", "socks5h"), "http://proxy:3128"
		}
		u, err := url.Parse(strings.TrimSpace(a.value))
		switch {
		case err == nil && u.User != nil:
			return f.fault(a.key, "%s: a secret may not stand in this file, and there is a user in the address: %s", a.key, a.instead)
		case err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "": // there may be a password in it
			return f.fault(a.key, "%s: that is no %s address: write for example %s", a.key, strings.Join(schemes, " or "), example)
		}
	}
	if f.given("url") {
		if _, err := engine.BaseURL(f.URL); err != nil {
			return f.fault("url", "url: %w", err)
		}
	}
	return nil
}

// given reports whether a key stands in the file.
func (f *File) given(key string) bool { return f.lines[key] > 0 }

// firstGiven is the first of the keys that stands in the file.
func (f *File) firstGiven(keys ...string) string {
	for _, key := range keys {
		if f.given(key) {
			return key
		}
	}
	return ""
}

func (f *File) has(identity string) bool {
	_, ok := f.Identities[identity]
	return ok
}

// headerLetters are what the name of a header may consist of (RFC 9110 §5.6.2).
const headerLetters = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

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
		return fmt.Errorf("say how it authenticates: basic, bearer, login, client_credentials or headers; of a bridge without authentication leave identities out")
	case i.Basic != nil && i.Basic.User == "":
		return fmt.Errorf("basic needs a user")
	case i.Basic != nil && strings.Contains(i.Basic.User, ":"):
		return fmt.Errorf("a user of basic has no colon in its name: all after it would be the password")
	case i.Login != nil && i.Login.User == "":
		return fmt.Errorf("login needs a user")
	case i.ClientCredentials != nil && (i.ClientCredentials.TokenURL == "" || i.ClientCredentials.ID == ""):
		return fmt.Errorf("client_credentials needs a token_url and a client_id")
	}
	for _, name := range slices.Sorted(maps.Keys(i.Headers)) {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(headerLetters, r) }) {
			return fmt.Errorf("headers: %q is no name of a header", name)
		}
	}
	return nil
}

// Target is the bridge as the suites take it.
func (f *File) Target() engine.Target {
	return engine.Target{URL: f.URL, Name: f.Implementation.Name, Version: f.Implementation.Version,
		Organisation: f.Implementation.Organisation, Contact: f.Implementation.Contact}
}

// Options fills in what the configuration says and leaves the rest of o as it is. It reads the secrets, opens
// sessions and fetches tokens.
func (f *File) Options(ctx context.Context, o engine.Options) (engine.Options, error) {
	var err error
	if o.Capabilities, err = engine.Claim(o.Capabilities, strings.Join(f.Capabilities, ",")); err != nil {
		return o, f.fault("capabilities", "capabilities: %w", err)
	}
	if o.Connection.TLS, err = f.tls(); err != nil {
		return o, err
	}
	if o.Connection.Proxy, err = f.proxy(); err != nil {
		return o, err
	}
	(&Values{File: *f}).apply(&o)
	s := f.Settings
	if s.Include != nil || s.Exclude != nil {
		patterns := check.DefaultPatterns
		if s.Include != nil {
			patterns.Include = s.Include
		}
		if s.Exclude != nil {
			patterns.Exclude = s.Exclude
		}
		o.Bridge.Patterns = &patterns
	}
	if i := s.Invalidate; i != nil {
		o.Bridge.Invalidate = &check.Invalidate{Method: cmp.Or(i.Method, http.MethodPost), Path: i.Path, Identity: IdentityNamed(i.Identity)}
	}
	if o.Callers.Invocations, err = f.invocations(); err != nil {
		return o, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.WrongTokens)) {
		if o.Callers.WrongTokens == nil {
			o.Callers.WrongTokens = map[string]string{}
		}
		if o.Callers.WrongTokens[name], err = f.secret(f.WrongTokens[name]); err != nil {
			return o, f.fault("wrong_tokens", "wrong_tokens.%s: %w", name, err)
		}
	}
	o.Callers.Credentials, err = f.credentials(ctx, o)
	o.Callers.Secrets = append(o.Callers.Secrets, f.resolved...)
	return o, err
}

// IdentityNamed is the identity of a name in a configuration.
func IdentityNamed(name string) check.Identity {
	if name == "anonymous" {
		return check.Anonymous
	}
	return check.Identity(name)
}

// proxy is the way by which requests to the bridge go; nil for the environment's.
func (f *File) proxy() (func(*http.Request) (*url.URL, error), error) {
	if f.Proxy == "" {
		return nil, nil
	}
	proxy, err := url.Parse(f.Proxy)
	if err != nil {
		return nil, f.fault("proxy", "proxy: that is no address of a proxy") // there may be a password in it
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
		pem, err := wholefile.Read(f.beside(t.CA), maxFile)
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

func (f *File) invocations() ([]check.Invocation, error) {
	var calls []check.Invocation
	for i, c := range f.Invocations {
		call := check.Invocation{Tool: c.Tool, Identity: IdentityNamed(cmp.Or(c.Identity, string(check.Agent))), Status: cmp.Or(c.Expect.Status, http.StatusOK)}
		var err error
		if call.Arguments, err = document(&c.Arguments); err != nil {
			return nil, fmt.Errorf("%s:%w (invocations[%d].arguments)", f.path, err, i)
		}
		if call.Result, err = document(&c.Expect.Result); err != nil {
			return nil, fmt.Errorf("%s:%w (invocations[%d].expect.result)", f.path, err, i)
		}
		if call.Arguments != nil && !bytes.HasPrefix(call.Arguments, []byte("{")) {
			return nil, fmt.Errorf("%s:%d: invocations: entry %d: arguments must be a mapping", f.path, c.Arguments.Line, i+1)
		}
		calls = append(calls, call)
	}
	return calls, nil
}
