package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// introspectionKept is how long the authorization server's response about a token is cached, and how long one that is revoked may
// still be used.
const introspectionKept = 30 * time.Second

// refusalKept is how long a token stays refused without another question: a client that repeats it costs the issuer nothing.
const refusalKept = 5 * time.Second

// introspection asks the issuer about each token (RFC 7662), for tokens that only the issuer can read. What it said of a
// token that is active is kept for a short time.
type introspection struct {
	endpoint  *endpoint
	validator *jwt.Validator
	kept      *memory[claims]
}

func newIntrospection(o Options, k *keys, validator *jwt.Validator) *introspection {
	return &introspection{
		endpoint:  &endpoint{o: o, keys: k, name: "introspection_endpoint", of: func(m issuerMetadata) string { return m.IntrospectionEndpoint }},
		kept:      newMemory(o.Now, claims.size),
		validator: validator,
	}
}

// errInactive says that the issuer knows of no such token that is valid now.
var errInactive = errors.New("the authorization server says that the token is not active")

// claimsOf are those of a token. What is active is checked as a signed token is: the issuer knows tokens of other
// resources, too.
func (x *introspection) claimsOf(ctx context.Context, token string) (claims, error) {
	c, err := x.kept.of(ctx, token, func(ctx context.Context) (claims, time.Time, error) {
		c, err := x.request(ctx, token)
		if err != nil && !errors.Is(err, errInactive) {
			f := fault.New(fault.UpstreamUnavailable, "The authorization server cannot be asked about the access token; try again later.").Because(err)
			f.RetryAfter = keysRetry
			return c, time.Time{}, f
		}
		if err == nil {
			err = x.validator.Validate(c)
		}
		kept := introspectionKept
		if err != nil {
			kept = refusalKept
		}
		return c, x.endpoint.o.Now().Add(kept), err
	})
	if err != nil {
		return claims{}, err
	}
	return c, x.validator.Validate(c) // it may have ended since it was kept
}

func (x *introspection) request(ctx context.Context, token string) (claims, error) {
	var c claims
	var active bool
	var kind string
	want := c.fields()
	want["active"], want["token_type"] = boolean(&active), optional(text(&kind))
	status, err := x.endpoint.post(ctx, url.Values{"token": {token}, "token_type_hint": {"access_token"}}, want)
	switch {
	case err != nil:
		return claims{}, err
	case status != http.StatusOK:
		return claims{}, fmt.Errorf("the introspection_endpoint responded with %d", status)
	case !active, kind != "" && !strings.EqualFold(kind, "Bearer"):
		return claims{}, errInactive
	}
	c.Issuer = cmp.Or(c.Issuer, x.endpoint.o.Issuer) // RFC 7662 leaves it out where it is the server's own
	if c.Subject == "" && c.ClientID == "" {
		return claims{}, errors.New("the introspection_endpoint does not say whose token it is: neither sub nor client_id")
	}
	return c, nil
}
