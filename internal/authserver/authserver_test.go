package authserver_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func listen(t *testing.T, o authserver.Options) *authserver.Server {
	t.Helper()
	s := must.Get(authserver.Listen("127.0.0.1:0", o))(t)
	t.Cleanup(s.Close)
	return s
}

func TestTokensAreOfItsKeys(t *testing.T) {
	s := listen(t, authserver.Options{})
	text := s.Issue("agent", "https://bridge.example/mcp", map[string]any{"scope": "content:read", "jti": nil})
	var claims jwt.MapClaims
	token, err := jwt.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return s.Key().Public(), nil },
		jwt.WithIssuer(s.URL), jwt.WithAudience("https://bridge.example/mcp"), jwt.WithExpirationRequired())
	must.Expect(t, err == nil && claims["sub"] == "agent" && claims["scope"] == "content:read" && claims["jti"] == nil,
		"%v: %v", err, claims)
	must.Expect(t, token.Header["kid"] == s.Key().ID && token.Header["typ"] == "at+jwt", "the header is %v", token.Header)
	account, ok := s.Account(text)
	must.Expect(t, ok && account == "agent", "the account is %q %v", account, ok)
	for name, wrong := range map[string]string{
		"expired":      s.Issue("agent", "x", map[string]any{"exp": s.Ago(time.Minute)}),
		"no token":     "x",
		"unsigned":     s.Sign(authserver.Token{Claims: s.Claims("agent", "x"), Method: "none"}),
		"a secret's":   s.Sign(authserver.Token{Claims: s.Claims("agent", "x"), Secret: s.Key().PublicKeys()["the PEM file"]}),
		"of another":   listen(t, authserver.Options{}).Issue("agent", "x"),
		"of no issuer": s.Issue("agent", "x", map[string]any{"iss": nil}),
	} {
		account, ok := s.Account(wrong)
		must.Expect(t, !ok, "%s: it counts as a token of %q", name, account)
	}
}

// Servers that are open at the same time have keys of their own; a closed one leaves its keys to the next.
func TestKeysAreUsedAgainAfterClose(t *testing.T) {
	o := authserver.Options{Keys: &authserver.Keys{}}
	listen := func() *authserver.Server {
		return must.Get(authserver.Listen("127.0.0.1:0", o))(t)
	}
	first := listen()
	defer first.Close()
	other := must.Get(first.Stranger())(t)
	rotated := first.Rotate()
	used := other.Key()
	for _, key := range []*authserver.Key{first.Key(), rotated} {
		must.Expect(t, !key.Public().Equal(used.Public()), "two open servers have one key")
	}
	other.Close()
	next := listen()
	defer next.Close()
	must.Expect(t, next.Key().Public().Equal(used.Public()), "the key of a closed server is not used again")
	must.Expect(t, next.Key().ID != used.ID, "it has the same id again")
}

// Who asks at OpenID Connect's place gets the metadata too. What a bridge sees at the other one is tested by the mutants of auth/*.
func TestMetadataAtBothPlaces(t *testing.T) {
	s := listen(t, authserver.Options{})
	for _, path := range []string{authserver.MetadataPath, authserver.OpenIDPath} {
		resp := must.Get(http.Get(s.URL + path))(t)
		defer resp.Body.Close()
		var doc map[string]any
		must.Do(t, json.NewDecoder(resp.Body).Decode(&doc))
		must.Expect(t, doc["issuer"] == s.URL && doc["jwks_uri"] == s.URL+authserver.KeysPath, "%s: %s %v", path, resp.Status, doc)
	}
}

func TestTokenEndpoint(t *testing.T) {
	s := listen(t, authserver.Options{Login: func(account, secret string) bool { return account == "agent" && secret == "right" }})
	good := url.Values{"grant_type": {"client_credentials"}, "client_id": {"agent"}, "client_secret": {"right"}, "resource": {"https://bridge.example/mcp"}, "scope": {"content:read"}}
	for _, c := range []struct {
		change, value, wants string
	}{
		{"", "", `"access_token":"ey`},
		{"client_secret", "wrong", "invalid_client"},
		{"grant_type", "password", "unsupported_grant_type"},
		{"resource", "", "invalid_target"},
	} {
		form := url.Values{}
		maps.Copy(form, good)
		if c.change != "" {
			form.Set(c.change, c.value)
		}
		resp := must.Get(http.PostForm(s.URL+authserver.TokenPath, form))(t)
		var b strings.Builder
		resp.Write(&b) //nolint:errcheck // a builder takes everything
		resp.Body.Close()
		must.Expect(t, strings.Contains(b.String(), c.wants), "%s=%s: %s", c.change, c.value, b.String())
	}
}
