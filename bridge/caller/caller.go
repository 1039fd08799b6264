// Package caller identifies the caller of a request: credential, address, language and account. It decides nothing about
// tools and sends nothing. Its invariant: a credential leaves it only on a request to the site, by Caller.Sign; everything
// else sees a digest.
package caller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
)

// Identity identifies a caller: two requests with the same identity carry the same credential in the same language.
// It is a digest, so that no cache key, log line or error can give a credential away.
type Identity [sha256.Size]byte

// String is a short form for logs.
func (i Identity) String() string { return hex.EncodeToString(i[:6]) }

// Caller is the sender of a request: the credential that is forwarded to the site, and the language of the responses.
// The zero value is the anonymous caller.
type Caller struct {
	Identity    Identity
	Trace       Trace
	Grant       Grant      // of a token that was checked
	Address     netip.Addr // of the client; the zero value where there is none, as on stdio
	language    string
	account     string // the name that Basic credentials are for, as accountKey folds it
	user        string // the name of the caller in the audit log
	as          string // the front-end token by which the caller uses the service account; never logged
	forward     bool   // the site is sent the client's address
	credentials []credential
}

// Grant is what a verified token grants. The zero value grants nothing.
type Grant struct {
	Holder  string // whose it is, the same over all tokens that replace each other
	Subject string // the account that it stands for
	Scopes  []string
	Expires time.Time // zero: never
}

// Owner identifies a caller over several requests, for what belongs to the caller or is counted: a caller may come with a
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

// Account is what calls are counted by: the account where the credential names one, however it is spelt, else the owner.
func (c Caller) Account() Identity {
	if c.account == "" {
		return c.Owner()
	}
	return sha256.Sum256([]byte("account\x00" + c.account))
}

// User is the name that the caller goes by, where its credential has one; "" for others and for anonymous callers.
func (c Caller) User() string { return c.user }

// Language is the one that the caller asks in; "" is the site's own.
func (c Caller) Language() string { return c.language }

// WithoutLanguage is the same caller who asks in the site's own language.
func (c Caller) WithoutLanguage() Caller {
	c.language = ""
	c.Identity = c.digest("")
	return c
}

// Network is where the caller is, as far as one client has it for itself: an IPv4 address, or 64 bits of IPv6.
func (c Caller) Network() string { return throttle.Network(c.Address) }

// Shared reports whether the caller acts as an account of the bridge's own.
func (c Caller) Shared() bool { return c.as != "" }

// Attempt is what counts where the site refuses the caller. The bridge's own account is nobody's guess: no client's
// address is charged with it.
func (c Caller) Attempt() throttle.Attempt {
	a := throttle.Attempt{Credential: c.Owner(), Account: c.account, Address: c.Address}
	if c.Grant.Holder != "" {
		a.Credential = c.digest("")
	}
	if c.Shared() {
		a.Address = netip.Addr{}
	}
	return a
}

// Anonymous reports whether the caller brought no credential.
func (c Caller) Anonymous() bool { return len(c.credentials) == 0 }

// Size is about how many bytes the caller takes.
func (c Caller) Size() int {
	n := len(c.Grant.Holder) + len(c.Grant.Subject)
	for _, scope := range c.Grant.Scopes {
		n += 16 + len(scope)
	}
	for _, cred := range c.credentials {
		n += len(cred.value) + len(cred.key)
	}
	return n
}

// LogValue shows the identity's digest and nothing else.
func (c Caller) LogValue() slog.Value { return slog.StringValue(c.Identity.String()) }

// String shows the identity's digest and nothing else.
func (c Caller) String() string { return c.Identity.String() }

// Sign puts the caller's own credential, language and trace on a request to the site.
func (c Caller) Sign(h http.Header) {
	for _, cred := range c.credentials {
		h.Set(cred.name, cred.value)
	}
	if c.forward && c.Address.IsValid() {
		h["X-Forwarded-For"] = []string{c.Address.String()}
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

// Scheme is a way to authenticate that the bridge passes on.
type Scheme string

// The schemes. A real site's /jsonrpc takes Basic and Bearer and refuses session cookies.
const (
	Basic  Scheme = authkind.Basic
	Bearer Scheme = authkind.Bearer
	Cookie Scheme = authkind.Cookie
)

// Callers reads callers off requests. Only schemes on its list go on to the site; all else that could authenticate anyone
// stays here.
type Callers struct {
	Schemes   []Scheme
	Service   *ServiceAccount   // nil: the caller's own credentials go on
	Verify    Verify            // nil: the site alone checks tokens
	Asks      bool              // Verify asks the authorization server about each token
	Exchange  Exchange          // exchanges a verified token for one of the site; nil: verified tokens are forwarded
	Languages Languages         // of the site; nil: all that there are
	Proxies   Proxies           // whose X-Forwarded-For is trusted
	Forward   bool              // the site is sent the client's address in X-Forwarded-For
	Attempts  *throttle.Limiter // counts wrong tokens of those that the bridge itself compares or asks about; nil: any number
}

// Verify checks a bearer token, "" where a request has none, before it goes anywhere. The error is a fault.
type Verify func(ctx context.Context, token string) (Grant, error)

// Exchange returns the token that is forwarded to the site in place of a caller's. The error is a fault.
type Exchange func(ctx context.Context, token string, grant Grant) (string, error)

// From reads the caller of a request. A credential that is malformed, of another scheme, or one of several, is an
// AuthRequired fault: it must not pass for an anonymous call, and never for another user's. Where tokens are checked
// they are the only way in.
func (cs Callers) From(r *http.Request) (Caller, error) {
	c := Caller{
		Trace: traceOf(r.Header), Address: cs.Proxies.client(r), forward: cs.Forward,
		language: cs.Languages.Choose(r.Header.Get("Accept-Language")),
	}
	var err error
	switch {
	case cs.Verify != nil:
		err = cs.verified(r, &c)
	case cs.Service != nil:
		err = cs.exchange(r, &c)
	default:
		err = cs.passThrough(r.Header, &c)
	}
	if err != nil {
		return Caller{}, err
	}
	c.Identity = c.digest(c.language)
	return c, nil
}

// verified accepts a token whose audience is the bridge, and nothing else.
func (cs Callers) verified(r *http.Request, c *Caller) error {
	token := BearerToken(r.Header)
	var err error
	if c.Grant, err = cs.verify(r, token, c.Address); err != nil {
		return err
	}
	onward := token
	if cs.Exchange != nil {
		if onward, err = cs.Exchange(r.Context(), token, c.Grant); err != nil {
			return err
		}
	}
	c.user = c.Grant.Subject
	c.credentials = []credential{{"Authorization", "Bearer " + onward, "bearer\x00" + token}}
	return nil
}

// verify checks a token. Where the authorization server is asked about it, wrong ones are counted by address: a flood of random
// tokens must not become a flood of questions. A token that was good before has only ended, and is no guess.
func (cs Callers) verify(r *http.Request, token string, from netip.Addr) (Grant, error) {
	if !cs.Asks || cs.Attempts == nil || token == "" {
		return cs.Verify(r.Context(), token)
	}
	attempt := throttle.Attempt{Credential: sha256.Sum256([]byte("a token to ask about\x00" + token)), Address: from}
	trial, err := cs.Attempts.Try(r.Context(), attempt)
	if err != nil {
		return Grant{}, err
	}
	grant, err := cs.Verify(r.Context(), token)
	switch {
	case err == nil:
		trial.Accepted()
	case fault.Is(err, fault.AuthRequired) && !trial.WasGood():
		trial.Refused(fault.From(err))
	default:
		trial.Abandoned()
	}
	return grant, err
}

// passThrough takes the caller's own credential. One in Authorization decides, as at the site: a cookie beside it would
// change nothing there.
func (cs Callers) passThrough(h http.Header, c *Caller) error {
	switch values := h.Values("Authorization"); len(values) {
	case 0:
	case 1:
		scheme, _, _ := strings.Cut(values[0], " ")
		if !cs.takes(Scheme(scheme)) {
			return cs.unauthorized("This bridge takes no credentials of that kind.")
		}
		cred, account, ok := authorization(values[0])
		if !ok {
			return cs.unauthorized("The credentials are malformed.")
		}
		c.credentials, c.account, c.user = []credential{cred}, account, account
		return nil
	default:
		return cs.unauthorized("A request may carry one Authorization header, not several.")
	}
	if !cs.takes(Cookie) {
		return nil
	}
	session, ok := sessionCookie(h)
	switch {
	case !ok:
		return cs.unauthorized("A request may carry one session cookie, and that as the site wrote it.")
	case session != "":
		c.credentials = append(c.credentials, credential{"Cookie", session, "cookie\x00" + session})
		if token := h.Get("X-CSRF-Token"); token != "" && len(token) <= longestCSRF {
			c.credentials = append(c.credentials, credential{"X-CSRF-Token", token, ""})
		}
	}
	return nil
}

// BySession reports whether the request would be authenticated by a cookie that a browser sends unasked.
func (cs Callers) BySession(h http.Header) bool {
	if !cs.takes(Cookie) {
		return false
	}
	session, ok := sessionCookie(h)
	return session != "" || !ok
}

// takes reports whether a scheme is forwarded to the site; headers may spell it in any case.
func (cs Callers) takes(s Scheme) bool {
	return s != "" && slices.ContainsFunc(cs.Schemes, func(have Scheme) bool { return strings.EqualFold(string(have), string(s)) })
}

func (cs Callers) unauthorized(message string) *fault.Error {
	e := fault.New(fault.AuthRequired, "%s", message)
	for _, kind := range authkind.Kinds {
		if kind.Challenge != "" && cs.takes(Scheme(kind.Name)) {
			e.Challenge = append(e.Challenge, kind.Challenge)
		}
	}
	return e
}

// digest folds what identifies a caller into one key: the credentials, how the caller uses them, and a language. The zero
// byte, which no header holds, separates them, so that two different lists never give the same bytes.
func (c Caller) digest(language string) Identity {
	b := make([]byte, 0, 256)
	b = append(append(append(append(b, c.as...), 0), language...), 0)
	for _, cred := range c.credentials {
		if cred.key == "" {
			continue // a CSRF token belongs to the session, and changes nothing about who asks
		}
		b = append(append(b, cred.key...), 0)
	}
	return sha256.Sum256(b)
}

// Holder is the account of a caller's memory: the owner of the credentials or, without any, the client's network.
func (c Caller) Holder() fair.Key {
	if c.Anonymous() {
		return fair.Network(c.Address)
	}
	return c.Owner()
}
