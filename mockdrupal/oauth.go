package mockdrupal

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/mockdrupal/credentials"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// oauth is the site's small OAuth 2 server: its signing key and the tokens that were revoked. The key is generated
// when it is first needed, because that takes a while.
type oauth struct {
	once    sync.Once
	key     *rsa.PrivateKey
	mu      sync.Mutex
	revoked map[string]time.Time // when a revoked token expires, by jti
}

// Settings of the OAuth 2 server.
const (
	keyBits       = 2048
	keyID         = "mock"
	tokenLifetime = 5 * time.Minute
	rolePrefix    = "role_" // the scope role_agent limits a token to the role agent
)

func (o *oauth) signingKey() *rsa.PrivateKey {
	o.once.Do(func() {
		key, err := rsa.GenerateKey(rand.Reader, keyBits)
		if err != nil {
			panic("mockdrupal: generating the signing key: " + err.Error()) // the machine has no randomness
		}
		o.key = key
	})
	return o.key
}

func (o *oauth) isRevoked(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, revoked := o.revoked[id]
	return revoked
}

// maxRevoked is how many revoked tokens are kept before those that have expired are dropped.
const maxRevoked = 1000

func (o *oauth) revoke(id string, expires, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.revoked) >= maxRevoked {
		maps.DeleteFunc(o.revoked, func(_ string, expires time.Time) bool { return !now.Before(expires) })
	}
	if o.revoked == nil {
		o.revoked = map[string]time.Time{}
	}
	o.revoked[id] = expires
}

// tokenClaims are those of the tokens that the endpoint issues.
type tokenClaims struct {
	jwt.RegisteredClaims
	Scopes []string `json:"scope"` // roles
}

// oauthAddresses exist on sites that take bearer tokens.
func oauthAddresses() []address {
	return []address{
		{path: "/oauth/token", verbs: []string{"POST"}, schemes: globalSchemes, handle: ifOAuth((*request).issueToken)},
		{path: "/oauth/revoke", verbs: []string{"POST"}, schemes: globalSchemes, handle: ifOAuth((*request).revokeToken)},
		{path: "/oauth/jwks", verbs: []string{"GET"}, schemes: globalSchemes, handle: ifOAuth((*request).jwks)},
		{path: "/.well-known/oauth-authorization-server", verbs: []string{"GET"}, schemes: globalSchemes, handle: ifOAuth((*request).authorizationServer)},
	}
}

func ifOAuth(handle func(*request) *Response) func(*request, map[string]string) *Response {
	return func(x *request, _ map[string]string) *Response {
		if !x.takesBearer() {
			return x.noRoute()
		}
		return handle(x)
	}
}

// takesBearer reports whether the site has OAuth at all: without it a bearer token is no credential.
func (x *request) takesBearer() bool {
	return slices.Contains(x.state.site.Auth.JSONRPC, authkind.Bearer) || slices.Contains(x.state.site.Auth.MCP, authkind.Bearer)
}

// What the resource server says of a token that it does not accept.
const (
	notThreeParts = "The JWT string must have two dots"
	notBase64     = "Error while decoding from Base64Url, invalid base64 characters detected"
	notJSON       = "Error while decoding from JSON"
	notVerified   = "Access token could not be verified"
	wasRevoked    = "Access token has been revoked"
)

// checkToken returns the caller of a bearer token, or what is wrong with it. It looks among the tokens of the site file
// first, then at those that the token endpoint signed.
func (x *request) checkToken(token string) (who caller, problem string) {
	fixed, known := x.state.tokens[token]
	switch {
	case !known && x.d.options.Trusted != nil:
		if account, ok := x.d.options.Trusted(token); ok {
			return x.trusted(account)
		}
		return x.checkSigned(token)
	case !known:
		return x.checkSigned(token)
	case !fixed.token.Expires.IsZero() && !x.d.Now().Before(fixed.token.Expires):
		return caller{}, notVerified
	case fixed.token.Revoked, fixed.user.Blocked:
		return caller{}, wasRevoked
	}
	return caller{user: fixed.user, scopes: fixed.token.Scopes}, ""
}

// trusted is the caller of a token of another authorization server: an account with all that it may do.
func (x *request) trusted(account string) (who caller, problem string) {
	u := x.active(account)
	if u == nil {
		return caller{}, wasRevoked
	}
	return caller{user: u}, ""
}

func (x *request) checkSigned(token string) (who caller, problem string) {
	if problem := malformed(token); problem != "" {
		return caller{}, problem
	}
	claims, err := x.readSigned(token)
	if err != nil {
		return caller{}, notVerified
	}
	u := x.accountByID(claims.Subject)
	if u == nil || u.Blocked || x.d.oauth.isRevoked(claims.ID) {
		return caller{}, wasRevoked
	}
	return caller{user: u, scopes: claims.Scopes}, ""
}

// readSigned returns the claims of a token that the endpoint signed and that has not expired.
func (x *request) readSigned(token string) (claims tokenClaims, err error) {
	_, err = jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return &x.d.oauth.signingKey().PublicKey, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Alg()}), jwt.WithTimeFunc(x.d.Now), jwt.WithExpirationRequired())
	return claims, err
}

func (x *request) accountByID(uid string) *fixtures.User {
	for i := range x.state.site.Users {
		if u := &x.state.site.Users[i]; strconv.Itoa(u.UID) == uid {
			return u
		}
	}
	return nil
}

// malformed says why a text cannot even be a token, as lcobucci/jwt's parser does.
func malformed(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return notThreeParts
	}
	for i, name := range []string{"Header", "Claim", "Signature"} {
		if parts[i] == "" {
			return "The JWT string is missing the " + name + " part"
		}
	}
	for i, name := range []string{"headers", "claims"} {
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(parts[i])
		if err != nil {
			return notBase64
		}
		doc, err := php.Decode(decoded)
		if err != nil {
			return notJSON
		}
		if _, ok := doc.(*php.Array); !ok {
			return name + " must be an array"
		}
	}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(parts[2]); err != nil {
		return notBase64
	}
	return ""
}

// badToken refuses a bearer token.
func (x *request) badToken(problem string) *Response {
	a := x.refuse(refusal{http.StatusUnauthorized, "Unauthorized", "The resource owner or authorization server denied the request."})
	a.Header["WWW-Authenticate"] = []string{`Bearer realm="OAuth", error="access_denied", error_description="` + problem + `"`}
	return a
}

// oauthError is an error response of the token endpoint.
func oauthError(status int, code, description string, more ...php.Pair) *Response {
	members := append([]php.Pair{{Name: "error", Value: code}, {Name: "error_description", Value: description}}, more...)
	return exchange.JSON(status, php.Map(append(members, php.Pair{Name: "message", Value: description})...))
}

// issueToken is POST /oauth/token with client_credentials: every account is a client, its password the secret.
func (x *request) issueToken() *Response {
	form, err := url.ParseQuery(string(x.Body))
	if err != nil {
		form = url.Values{}
	}
	if form.Get("grant_type") != "client_credentials" {
		return oauthError(http.StatusBadRequest, "unsupported_grant_type", "The authorization grant type is not supported by the authorization server.",
			php.Pair{Name: "hint", Value: "Check that all required parameters have been provided"})
	}
	id, secret, basic := credentials.ReadBasic(x.Request.Header)
	if !basic {
		id, secret = form.Get("client_id"), form.Get("client_secret")
	}
	u := x.active(id)
	if u == nil || !samePassword(u, secret) {
		return oauthError(http.StatusUnauthorized, "invalid_client", "Client authentication failed")
	}
	claims := tokenClaims{RegisteredClaims: jwt.RegisteredClaims{
		Issuer: x.base() + "/", Subject: strconv.Itoa(u.UID), Audience: jwt.ClaimStrings{u.Name}, ID: randomToken(),
		IssuedAt: jwt.NewNumericDate(x.d.Now()), ExpiresAt: jwt.NewNumericDate(x.d.Now().Add(tokenLifetime)),
	}}
	for scope := range strings.FieldsSeq(form.Get("scope")) {
		role := strings.TrimPrefix(scope, rolePrefix)
		if !slices.ContainsFunc(x.state.site.Roles, func(r fixtures.Role) bool { return r.ID == role }) {
			return oauthError(http.StatusBadRequest, "invalid_scope", "The requested scope is invalid, unknown, or malformed",
				php.Pair{Name: "hint", Value: "Check the `" + scope + "` scope"})
		}
		claims.Scopes = append(claims.Scopes, role)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = keyID
	signed, err := token.SignedString(x.d.oauth.signingKey())
	if err != nil {
		return x.unexpected()
	}
	return exchange.JSON(http.StatusOK, php.Map(
		php.Pair{Name: "token_type", Value: "Bearer"},
		php.Pair{Name: "expires_in", Value: int64(tokenLifetime / time.Second)},
		php.Pair{Name: "access_token", Value: signed},
	))
}

// revokeToken is POST /oauth/revoke (RFC 7009) for the tokens that the endpoint issued: 200, known or not.
func (x *request) revokeToken() *Response {
	form, err := url.ParseQuery(string(x.Body))
	if err != nil {
		return oauthError(http.StatusBadRequest, "invalid_request", "The body is no form")
	}
	if claims, err := x.readSigned(form.Get("token")); err == nil {
		x.d.oauth.revoke(claims.ID, claims.ExpiresAt.Time, x.d.Now())
	}
	return exchange.NewResponse(http.StatusOK, exchange.JSONType, nil)
}

func (x *request) jwks() *Response {
	public := x.d.oauth.signingKey().PublicKey
	encode := base64.RawURLEncoding.EncodeToString
	return exchange.JSON(http.StatusOK, php.Map(php.Pair{Name: "keys", Value: php.List(php.Map(
		php.Pair{Name: "kty", Value: "RSA"},
		php.Pair{Name: "use", Value: "sig"},
		php.Pair{Name: "alg", Value: "RS256"},
		php.Pair{Name: "kid", Value: keyID},
		php.Pair{Name: "n", Value: encode(public.N.Bytes())},
		php.Pair{Name: "e", Value: encode(big.NewInt(int64(public.E)).Bytes())},
	))}))
}

// authorizationServer is the metadata document of RFC 8414.
func (x *request) authorizationServer() *Response {
	scopes := &php.Array{}
	for _, r := range x.state.site.Roles {
		scopes.Append(rolePrefix + r.ID)
	}
	base := x.base()
	a := exchange.JSON(http.StatusOK, php.Map(
		php.Pair{Name: "issuer", Value: base + "/"},
		php.Pair{Name: "token_endpoint", Value: base + "/oauth/token"},
		php.Pair{Name: "jwks_uri", Value: base + "/oauth/jwks"},
		php.Pair{Name: "revocation_endpoint", Value: base + "/oauth/revoke"},
		php.Pair{Name: "oauth_authorization_server_metadata_endpoint", Value: base + "/.well-known/oauth-authorization-server"},
		php.Pair{Name: "response_types_supported", Value: &php.Array{}},
		php.Pair{Name: "grant_types_supported", Value: php.List("client_credentials")},
		php.Pair{Name: "scopes_supported", Value: scopes},
		php.Pair{Name: "token_endpoint_auth_methods_supported", Value: php.List("client_secret_post", "client_secret_basic")},
		php.Pair{Name: "token_endpoint_auth_signing_alg_values_supported", Value: php.List("RS256")},
		php.Pair{Name: "service_documentation", Value: "https://www.drupal.org/project/simple_oauth"},
	))
	a.Header.Set("Access-Control-Allow-Origin", "*")
	a.Header.Set("Access-Control-Allow-Methods", "GET")
	return a
}
