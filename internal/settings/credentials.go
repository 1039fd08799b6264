package settings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

func (f *File) credentials(ctx context.Context, o engine.Options) (map[check.Identity]check.Credentials, error) {
	var wrong []error
	names := slices.Sorted(maps.Keys(f.Identities))
	for _, name := range names { // before any of them is used
		for _, s := range f.Identities[name].secrets() {
			if _, err := f.secret(s); err != nil {
				wrong = append(wrong, f.fault("identities."+name, "identities.%s: %w", name, err))
			}
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	all := map[check.Identity]check.Credentials{}
	for _, name := range names {
		creds, err := f.authenticate(ctx, f.Identities[name], o)
		if err != nil {
			return nil, f.fault("identities."+name, "identities.%s: %w", name, err)
		}
		all[IdentityNamed(name)] = creds
	}
	return all, nil
}

// maxSecret bounds a secret, in bytes: a longer one fits no header.
const maxSecret = 16 << 10

// secret reads a secret from where it is kept. Line ends after it, and the mark that some editors put before a text, are
// no part of it. The error shows nothing of it.
func (f *File) secret(s Secret) (string, error) {
	var value, from string
	switch {
	case s.Env != "" && s.File != "":
		return "", fmt.Errorf("a secret comes from env or from file, not from both")
	case s.Env != "":
		from, value = "the environment variable "+s.Env, os.Getenv(s.Env)
		if bare := strings.Trim(s.Env, "${}"); value == "" && bare != s.Env {
			return "", fmt.Errorf("%s is not set: write the name alone, {env: %s}", from, bare)
		}
		if _, set := os.LookupEnv(s.Env); !set {
			return "", fmt.Errorf("%s is not set", from)
		}
	case s.File != "":
		from = f.beside(s.File)
		data, err := wholefile.Read(from, maxSecret)
		if err != nil {
			return "", fmt.Errorf("read the secret: %w", err)
		}
		value = string(data)
	default:
		return "", fmt.Errorf("a secret is missing: write {env: VARIABLE} or {file: PATH}")
	}
	value = strings.TrimPrefix(strings.TrimRight(value, "\r\n"), "\ufeff")
	switch {
	case value == "":
		return "", fmt.Errorf("%s is empty: a secret should stand there", from)
	case len(value) > maxSecret:
		return "", fmt.Errorf("%s is longer than %d KiB: that is no secret", from, maxSecret>>10)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", fmt.Errorf("%s holds a line break or another control character: no header can", from)
	}
	f.resolved = append(f.resolved, value)
	return value, nil
}

// secrets are all that an identity authenticates with.
func (i Identity) secrets() []Secret {
	var all []Secret
	for _, name := range slices.Sorted(maps.Keys(i.Headers)) {
		all = append(all, i.Headers[name])
	}
	switch {
	case i.Basic != nil:
		all = append(all, i.Basic.Password)
	case i.Bearer != nil:
		all = append(all, *i.Bearer)
	case i.Login != nil:
		all = append(all, i.Login.Password)
	case i.ClientCredentials != nil:
		all = append(all, i.ClientCredentials.Secret)
	}
	return all
}

func (f *File) authenticate(ctx context.Context, i Identity, o engine.Options) (check.Credentials, error) {
	creds := check.Credentials{Header: map[string]string{}}
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

// logIn opens a session on a Drupal site and returns its cookie.
func (f *File) logIn(ctx context.Context, l Login, o engine.Options) (string, error) {
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
	if l.URL == "" && (resp.status == http.StatusNotFound || resp.status == http.StatusMethodNotAllowed) {
		return "", fmt.Errorf("%s has no login page (%d): it is the bridge and not the Drupal site; give the site's address as login.url", site, resp.status)
	}
	return "", fmt.Errorf("%s refused the login of %s with %d and no session cookie", site, l.User, resp.status)
}

// fetchToken asks a token endpoint for a bearer token.
func (f *File) fetchToken(ctx context.Context, c Client, o engine.Options) (string, error) {
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
		return "", fmt.Errorf("%s refused the request for a token with %d %s", c.TokenURL, t.status, t.Error)
	case t.Access == "":
		return "", fmt.Errorf("%s refused the request for a token with %d and no access_token", c.TokenURL, t.status)
	}
	return t.Access, nil
}

// token is the response of a token endpoint.
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
func (f *File) post(ctx context.Context, to string, header http.Header, body []byte, o engine.Options) (reply, error) {
	if o.Connection.Rate > 0 {
		select {
		case <-time.After(time.Duration(float64(time.Second) / o.Connection.Rate)):
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Connection.Timeout, 10*time.Second))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("authenticate: %w", err)
	}
	req.Header = header
	transport := &http.Transport{TLSClientConfig: o.Connection.TLS, Proxy: http.ProxyFromEnvironment}
	if o.Connection.Proxy != nil {
		transport.Proxy = o.Connection.Proxy
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return reply{}, &engine.UnreachableError{URL: req.URL.Redacted(), Reason: client.NoResponse(ctx, err)}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFile))
	if err != nil {
		return reply{}, &engine.UnreachableError{URL: req.URL.Redacted(), Reason: client.NoResponse(ctx, err)}
	}
	return reply{resp.StatusCode, resp.Cookies(), data}, nil
}
