// Package oauth makes the bridge a resource server of OAuth 2, as MCP's authorization asks: callers bring access tokens
// of one authorization server, JSON Web Tokens (RFC 9068) that are checked here by its published keys, or opaque ones that
// it introspects (RFC 7662); its metadata (RFC 9728) tells clients what it requires.
//
// Its invariant: a token that was not issued for this bridge, or is not valid now, goes no further. The package issues no
// tokens, and keeps only those that it got in exchange for the site.
package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/origin"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
)

// Options name the issuer whose tokens are accepted, and their audience.
type Options struct {
	Issuer       string   // of the authorization server, exactly as its tokens name it
	Resource     string   // the address of /mcp as clients know it
	Base         string   // the path below which a proxy serves the bridge; "": none
	Audience     []string // what a token's aud must hold one of; nil: Resource
	Keys         string   // where the issuer's keys are; "": where its metadata says
	Exchange     string   // the site, as the authorization server knows it: tokens are exchanged for its own; "": they go on as they are
	Introspect   bool     // the authorization server is asked about every token, which may be opaque
	Client       string   // as which the bridge exchanges tokens and asks about them
	ClientSecret caller.Secret
	Wait         time.Duration     // how long a caller may wait for the authorization server; 0: as long as the bridge does by itself
	Scopes       func() []string   // those that the tools ask for, as far as they are known
	Transport    http.RoundTripper // how the authorization server is reached; nil: as usual
	Now          func() time.Time
}

// Guard checks tokens.
type Guard struct {
	o         Options
	resource  *url.URL
	keys      *keys
	validator *jwt.Validator // of claims
	exchange  *exchange      // nil: tokens go on to the site as they are
	asks      *introspection // nil: tokens are checked by the issuer's keys
}

// algorithms are those with a public key; with any other, whoever knows that key could sign.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

const (
	leeway    = 10 * time.Second // by which the clocks may differ
	maxToken  = 16 << 10         // bytes
	maxClaims = 8 << 10          // bytes of the claims that are read; they are kept for each caller
	maxName   = 1 << 10          // bytes of the subject and of the client
)

// New makes a guard. It does not ask the authorization server anything; the first token does.
func New(o Options) (*Guard, error) {
	resource, err := Address("oauth_resource", o.Resource)
	if err != nil {
		return nil, err
	}
	if _, err := Address("oauth_issuer", o.Issuer); err != nil {
		return nil, err
	}
	if o.Keys != "" {
		if _, err := Address("oauth_jwks", o.Keys); err != nil {
			return nil, err
		}
	}
	if len(o.Audience) == 0 {
		o.Audience = []string{o.Resource}
	}
	g := &Guard{o: o, resource: resource, keys: newKeys(o), validator: jwt.NewValidator(
		jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience...), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(o.Now),
	)}
	if o.Exchange != "" {
		g.exchange = newExchange(o, g.keys)
	}
	if o.Introspect {
		g.asks = newIntrospection(o, g.keys, g.validator)
	}
	return g, nil
}

// Address reads an address of OAuth, which must be https: else anybody on the way could read tokens, or serve false keys. On
// this machine http will do. name is what messages call it.
func Address(name, text string) (*url.URL, error) {
	u, err := origin.ParseAddress(text)
	if parsed, bad := url.Parse(text); bad == nil && parsed.User != nil {
		text = parsed.Redacted()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %.200q must be an address like https://example.com/path, without a user, a query or a fragment: %w", name, text, err)
	case u.Scheme == "https", u.Scheme == "http" && loopback.Is(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%s: %.200q must be https; http is for addresses of this machine only", name, text)
}

// Verify checks a bearer token; "" is a request without one. AuthRequired faults say in the challenge what is wrong;
// UpstreamUnavailable says that the keys to check it by cannot be had.
func (g *Guard) Verify(ctx context.Context, token string) (caller.Grant, error) {
	if token == "" {
		return caller.Grant{}, g.unauthorized("", "An access token is required.")
	}
	if len(token) > maxToken {
		return caller.Grant{}, g.unauthorized("invalid_token", "The access token is too long.")
	}
	c, err := g.claimsOf(ctx, token)
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return caller.Grant{}, f
		}
		return caller.Grant{}, g.unauthorized("invalid_token", problem(err)).Because(err)
	}
	client := cmp.Or(c.ClientID, c.Party)
	if c.size() > maxClaims || len(c.Subject) > maxName || len(client) > maxName {
		return caller.Grant{}, g.unauthorized("invalid_token", "The claims of the access token are too long.")
	}
	return caller.Grant{
		Holder: strings.Join([]string{c.Issuer, c.Subject, client}, "\x00"), Subject: c.Subject, Scopes: c.Scope, Expires: c.ExpiresAt.Add(leeway),
	}, nil
}

func (g *Guard) claimsOf(ctx context.Context, token string) (claims, error) {
	if g.asks != nil {
		return g.asks.claimsOf(ctx, token)
	}
	return g.signed(ctx, token)
}

// problems words what is wrong with a token for its holder.
var problems = []struct {
	err     error
	message string
}{
	{jwt.ErrTokenExpired, "The access token has expired."},
	{jwt.ErrTokenNotValidYet, "The access token is not valid yet."},
	{jwt.ErrTokenInvalidAudience, "The access token is for another resource."},
	{jwt.ErrTokenInvalidIssuer, "The access token is of another issuer."},
	{errInactive, "The access token is not valid."},
	{jwt.ErrTokenMalformed, "The access token is no JSON Web Token."},
}

func problem(err error) string {
	for _, p := range problems {
		if errors.Is(err, p.err) {
			return p.message
		}
	}
	return "The access token cannot be verified."
}

func (g *Guard) unauthorized(code, message string) *fault.Error {
	f := fault.New(fault.AuthRequired, "%s", message)
	var wanted []string
	if code == "" {
		wanted = g.o.Scopes()
	}
	f.Challenge = []string{g.challenge(code, message, wanted)}
	return f
}

// Insufficient is the refusal of a token without the scopes that a tool asks for.
func (g *Guard) Insufficient(tool string, wanted []string) *fault.Error {
	f := fault.New(fault.AccessDenied, "The access token lacks a scope: %s needs %s.", tool, strings.Join(wanted, " "))
	f.Challenge = []string{g.challenge("insufficient_scope", "The tool needs more scopes.", wanted)}
	return f
}

// Challenge returns the values of WWW-Authenticate that go with a fault: its own, where it has any that lead a client on.
// A site's 401 says nothing of where tokens for the bridge are had. Without a guard there is always some value, for a
// 401 without one would break HTTP.
func (g *Guard) Challenge(f *fault.Error) []string {
	switch {
	case g != nil && f.Code == fault.AuthRequired && (len(f.Challenge) == 0 || !strings.Contains(f.Challenge[0], "resource_metadata=")):
		return []string{g.challenge("invalid_token", "The site does not take the access token.", nil)}
	case len(f.Challenge) > 0:
		return f.Challenge
	}
	return []string{`Basic realm="Drupal"`}
}

// challenge is a value of WWW-Authenticate (RFC 6750, RFC 9728).
func (g *Guard) challenge(code, description string, wanted []string) string {
	params := []string{`resource_metadata="` + g.MetadataAddress() + `"`}
	if speakable := speakable(wanted); len(speakable) > 0 {
		params = append(params, `scope="`+strings.Join(speakable, " ")+`"`)
	}
	if code != "" {
		params = append([]string{`error="` + code + `"`, `error_description="` + description + `"`}, params...)
	}
	return "Bearer " + strings.Join(params, ", ")
}

// speakable are the scopes that RFC 6749 §3.3 permits; no token has another.
func speakable(scopes []string) []string {
	unwritable := func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == "" || strings.ContainsFunc(s, unwritable) })
}
