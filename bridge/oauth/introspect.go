package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// How the authorization server's word on tokens is kept. A token that is revoked may be used for introspectionKept more.
const (
	maxIntrospected   = 10_000
	introspectionKept = 30 * time.Second
)

// introspection asks the issuer about each token (RFC 7662), for tokens that only the issuer can read. What it said of a
// token that is active is kept for a short time, by a digest of the token.
type introspection struct {
	endpoint  *endpoint
	validator *jwt.Validator
	kept      *otter.Cache[[sha256.Size]byte, introspected]
	flights   singleflight.Group
}

type introspected struct {
	claims claims
	until  time.Time
}

func newIntrospection(o Options, k *keys) (*introspection, error) {
	kept, err := otter.New(&otter.Options[[sha256.Size]byte, introspected]{MaximumSize: maxIntrospected})
	if err != nil {
		return nil, fmt.Errorf("the cache of introspected tokens: %w", err)
	}
	return &introspection{
		endpoint: &endpoint{o: o, keys: k, name: "introspection_endpoint", of: func(m issuerMetadata) string { return m.IntrospectionEndpoint }},
		kept:     kept,
		validator: jwt.NewValidator(jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience...), jwt.WithExpirationRequired(),
			jwt.WithLeeway(leeway), jwt.WithTimeFunc(o.Now)),
	}, nil
}

// errInactive says that the issuer knows of no such token that is valid now.
var errInactive = errors.New("the authorization server says that the token is not active")

// claimsOf are those of a token. What is active is checked as a signed token is: the issuer knows tokens of other
// resources, too.
func (x *introspection) claimsOf(ctx context.Context, token string) (claims, error) {
	o := x.endpoint.o
	id := sha256.Sum256([]byte(token))
	if have, ok := x.kept.GetIfPresent(id); ok && o.Now().Before(have.until) {
		return have.claims, x.validator.Validate(have.claims)
	}
	made, err, _ := x.flights.Do(string(id[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientWait) // others wait for it, too
		defer cancel()
		return x.request(ctx, token)
	})
	if errors.Is(err, errInactive) {
		return claims{}, err
	}
	if err != nil {
		f := fault.New(fault.UpstreamUnavailable, "The authorization server cannot be asked about the access token; try again later.").Because(err)
		f.RetryAfter = keysRetry
		return claims{}, f
	}
	c := made.(claims)
	if err := x.validator.Validate(c); err != nil {
		return claims{}, err
	}
	x.kept.Set(id, introspected{c, o.Now().Add(introspectionKept)})
	return c, nil
}

func (x *introspection) request(ctx context.Context, token string) (claims, error) {
	var said struct {
		Active bool   `json:"active"`
		Type   string `json:"token_type"`
	}
	var document json.RawMessage
	status, err := x.endpoint.post(ctx, url.Values{"token": {token}, "token_type_hint": {"access_token"}}, &document)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the introspection_endpoint responded with %d", status)
	}
	if err == nil {
		err = json.Unmarshal(document, &said)
	}
	if err != nil {
		return claims{}, err
	}
	if !said.Active || said.Type != "" && !strings.EqualFold(said.Type, "Bearer") {
		return claims{}, errInactive
	}
	var c claims
	if err := json.Unmarshal(document, &c); err != nil {
		return claims{}, fmt.Errorf("the introspection_endpoint's response: %w", err)
	}
	if c.Issuer == "" {
		c.Issuer = x.endpoint.o.Issuer // RFC 7662 leaves it out where it is the server's own
	}
	if c.Subject == "" && c.ClientID == "" {
		return claims{}, errors.New("the introspection_endpoint does not say whose token it is: neither sub nor client_id")
	}
	return c, nil
}
