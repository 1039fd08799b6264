package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// Identity tells callers apart: two requests with the same identity carry the same credential in the same language.
// It is a digest, so that no cache key, log line or error can give a credential away.
type Identity [sha256.Size]byte

// String is a short form for logs.
func (i Identity) String() string { return hex.EncodeToString(i[:6]) }

// Caller is who asks: the credential that goes on to the site, and the language of the answers.
// The zero value is the anonymous caller.
type Caller struct {
	Identity    Identity
	Trace       Trace
	Grant       Grant // of a token that was checked
	language    string
	as          string // the front-end token by which the caller uses the service account; never logged
	credentials []credential
}

// credential is a header that signs the caller in at the site. Its value never leaves this package but in a request
// to the site.
type credential struct{ name, value string }

// Grant is what a token says that was checked before it went on. The zero value says nothing.
type Grant struct {
	Holder  string // whose it is, the same over all tokens that replace each other
	Scopes  []string
	Expires time.Time // zero: never
}

// Owner tells callers apart over several requests, to whom something belongs or is counted: a caller may come with a
// newer token, and in another language.
func (c Caller) Owner() Identity {
	if c.Grant.Holder != "" {
		return sha256.Sum256([]byte(c.Grant.Holder))
	}
	if c.language == "" && c.Identity != (Identity{}) {
		return c.Identity // the same digest
	}
	return c.digest("")
}

// Trace is what a request carries from front to site so that both logs can be joined.
type Trace struct {
	RequestID string // X-Request-ID
	Parent    string // traceparent
	State     string // tracestate
}

// Anonymous tells whether the caller brought no credential.
func (c Caller) Anonymous() bool { return len(c.credentials) == 0 }

// LogValue shows the identity's digest and nothing else.
func (c Caller) LogValue() slog.Value { return slog.StringValue(c.Identity.String()) }

// String shows the identity's digest and nothing else.
func (c Caller) String() string { return c.Identity.String() }

// sign puts the caller's own credential, language and trace on a request to the site.
func (c Caller) sign(h http.Header) {
	for _, cred := range c.credentials {
		h.Set(cred.name, cred.value)
	}
	for _, extra := range [...]struct{ name, value string }{
		{"Accept-Language", c.language}, {"X-Request-Id", c.Trace.RequestID},
		{"Traceparent", c.Trace.Parent}, {"Tracestate", c.Trace.State},
	} {
		if extra.value != "" {
			h[extra.name] = []string{extra.value}
		}
	}
}

// Scheme is a way to sign in that the bridge passes on.
type Scheme string

// The schemes. A real site's /jsonrpc takes Basic and Bearer and refuses session cookies.
const (
	Basic  Scheme = "basic"
	Bearer Scheme = "bearer"
	Cookie Scheme = "cookie"
)

// Callers reads callers off requests. Only schemes on its list go on to the site; all else that could sign anyone in
// stays here.
type Callers struct {
	Schemes []Scheme
	Service *ServiceAccount // nil: the caller's own credentials go on
	Verify  Verify          // nil: the site alone checks tokens
}

// Verify checks a bearer token, "" where a request has none, before it goes anywhere. It refuses with a fault.
type Verify func(ctx context.Context, token string) (Grant, error)

// maxLanguage is the longest Accept-Language that is passed on: the value is part of the cache key.
const maxLanguage = 256

// From reads the caller of a request with these headers. A credential of another scheme, or more than one, is an
// AuthRequired fault: it must not pass for an anonymous call, and never for another user's. Where tokens are checked
// they are the only way in.
func (cs Callers) From(ctx context.Context, h http.Header) (Caller, error) {
	c := Caller{Trace: traceOf(h)}
	if l := h.Get("Accept-Language"); len(l) <= maxLanguage {
		c.language = l
	}
	if cs.Verify != nil {
		if err := cs.verified(ctx, h, &c); err != nil {
			return Caller{}, err
		}
	} else if cs.Service != nil {
		var cred credential
		var err error
		if cred, c.as, err = cs.Service.exchange(h); err != nil {
			return Caller{}, err
		}
		c.credentials = []credential{cred}
	} else if err := cs.passThrough(h, &c); err != nil {
		return Caller{}, err
	}
	c.Identity = c.digest(c.language)
	return c, nil
}

// verified takes a token that is meant for the bridge, and nothing else.
func (cs Callers) verified(ctx context.Context, h http.Header, c *Caller) error {
	values := h.Values("Authorization")
	if len(values) > 1 {
		values = nil // which of them would be meant?
	}
	var token string
	if len(values) == 1 {
		scheme, rest, _ := strings.Cut(values[0], " ")
		if strings.EqualFold(scheme, string(Bearer)) {
			token = strings.TrimSpace(rest)
		}
	}
	var err error
	if c.Grant, err = cs.Verify(ctx, token); err != nil {
		return err
	}
	c.credentials = []credential{{"Authorization", "Bearer " + token}}
	return nil
}

func (cs Callers) passThrough(h http.Header, c *Caller) error {
	switch values := h.Values("Authorization"); len(values) {
	case 0:
	case 1:
		scheme, _, _ := strings.Cut(values[0], " ")
		if !cs.takes(Scheme(scheme)) {
			return cs.unauthorized("This bridge takes no credentials of that kind.")
		}
		c.credentials = append(c.credentials, credential{"Authorization", values[0]})
	default:
		return cs.unauthorized("A request may carry one Authorization header, not several.")
	}
	if session := sessionCookies(h); session != "" && cs.takes(Cookie) {
		c.credentials = append(c.credentials, credential{"Cookie", session})
		if token := h.Get("X-CSRF-Token"); token != "" {
			c.credentials = append(c.credentials, credential{"X-CSRF-Token", token})
		}
	}
	return nil
}

// BySession tells whether the request would be signed in by a cookie that a browser sends unasked.
func (cs Callers) BySession(h http.Header) bool { return cs.takes(Cookie) && sessionCookies(h) != "" }

// takes tells whether a scheme goes on to the site; headers may spell it in any case.
func (cs Callers) takes(s Scheme) bool {
	for _, have := range cs.Schemes {
		if s != "" && strings.EqualFold(string(have), string(s)) {
			return true
		}
	}
	return false
}

func (cs Callers) unauthorized(message string) *fault.Error {
	e := fault.New(fault.AuthRequired, "%s", message)
	for _, c := range []struct {
		scheme    Scheme
		challenge string
	}{{Basic, `Basic realm="Drupal"`}, {Bearer, "Bearer"}} {
		if cs.takes(c.scheme) {
			e.Challenge = append(e.Challenge, c.challenge)
		}
	}
	return e
}

// sessionCookies picks Drupal's session cookies (SESS…, SSESS…) out of a request's cookies.
func sessionCookies(h http.Header) string {
	var kept []string
	for _, line := range h.Values("Cookie") {
		for _, pair := range strings.Split(line, ";") {
			pair = strings.TrimSpace(pair)
			if strings.HasPrefix(pair, "SESS") || strings.HasPrefix(pair, "SSESS") {
				kept = append(kept, pair)
			}
		}
	}
	return strings.Join(kept, "; ")
}

func traceOf(h http.Header) Trace {
	const longest = 512
	read := func(name string) string {
		if v := h.Get(name); len(v) <= longest {
			return v
		}
		return ""
	}
	return Trace{RequestID: read("X-Request-Id"), Parent: read("Traceparent"), State: read("Tracestate")}
}

// digest folds what tells callers apart into one key: credentials, as what they use those, and a language. The zero
// byte, which no header holds, keeps two different lists from running together.
func (c Caller) digest(language string) Identity {
	b := make([]byte, 0, 256)
	b = append(append(append(append(b, c.as...), 0), language...), 0)
	for _, cred := range c.credentials {
		if cred.name == "X-CSRF-Token" {
			continue // belongs to the session, and changes nothing about who asks
		}
		b = append(append(append(append(b, cred.name...), 0), cred.value...), 0)
	}
	return sha256.Sum256(b)
}
