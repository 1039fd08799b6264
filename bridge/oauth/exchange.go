package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// The URNs of token exchange (RFC 8693).
const (
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
)

// exchangeSpare is how long before its end a token is exchanged again.
const exchangeSpare = 30 * time.Second

// exchange gets tokens for the site in place of those of callers, at the issuer's token endpoint, and keeps them while
// both are valid.
type exchange struct {
	o        Options
	endpoint *endpoint
	kept     *memory[string]
}

func newExchange(o Options, k *keys) *exchange {
	return &exchange{
		o: o, kept: newMemory(o.Now, func(token string) int { return len(token) }),
		endpoint: &endpoint{o: o, keys: k, name: "token_endpoint", of: func(m issuerMetadata) string { return m.TokenEndpoint }},
	}
}

// For returns a token for the site in place of a caller's, which was verified. AuthRequired says that the authorization
// server does not exchange it, UpstreamUnavailable that it cannot at present.
func (g *Guard) For(ctx context.Context, token string, grant caller.Grant) (string, error) {
	x := g.exchange
	if x == nil {
		return token, nil
	}
	made, err := x.kept.of(ctx, token, func(ctx context.Context) (string, time.Time, error) {
		made, until, err := x.request(ctx, token)
		if err != nil {
			return "", time.Time{}, err
		}
		if end := grant.Expires; !end.IsZero() && end.Before(until) {
			until = end
		}
		return made, until, nil
	})
	var refused *refusedError
	switch {
	case errors.As(err, &refused) && !refused.client:
		return "", g.unauthorized("invalid_token", "The authorization server gives no token for the site in exchange.").Because(err)
	case err != nil:
		f := fault.New(fault.UpstreamUnavailable, "The access token cannot be exchanged for one of the site; try again later.").Because(err)
		f.RetryAfter = keysRetry
		return "", f
	}
	return made, nil
}

// isToken are the bearer tokens of RFC 6750.
var isToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// refusedError is an error response of the token endpoint.
type refusedError struct {
	code   string
	client bool // it refuses the bridge, and not the token
}

func (e *refusedError) Error() string { return "the token endpoint refuses the exchange: " + e.code }

// request asks the token endpoint for a token; until is how long it can be used.
func (x *exchange) request(ctx context.Context, token string) (made string, until time.Time, err error) {
	form := url.Values{"grant_type": {grantExchange}, "subject_token": {token}, "subject_token_type": {accessTokenType}, "requested_token_type": {accessTokenType}}
	if strings.Contains(x.o.Exchange, "://") {
		form.Set("resource", x.o.Exchange)
	} else {
		form.Set("audience", x.o.Exchange)
	}
	asked := x.o.Now()
	var given, kind, refusal string
	var lasts int64 // seconds
	status, err := x.endpoint.post(ctx, form, fields{
		"access_token": text(&given), "token_type": text(&kind), "expires_in": optional(integer(&lasts)), "error": optional(text(&refusal))})
	switch {
	case err != nil:
		return "", until, err
	case status != http.StatusOK:
		ofClient := slices.Contains([]string{"invalid_client", "unauthorized_client", "unsupported_grant_type"}, refusal)
		return "", until, &refusedError{code: fault.Clip(refusal, 80), client: ofClient}
	case !isToken.MatchString(given) || len(given) > maxToken || given == token || !strings.EqualFold(kind, "Bearer"):
		return "", until, errors.New("the token endpoint gave no other bearer token")
	}
	lasts = max(0, min(lasts, int64(keysStale/time.Second))) // a duration must not overflow
	return given, asked.Add(time.Duration(lasts)*time.Second - exchangeSpare), nil
}
