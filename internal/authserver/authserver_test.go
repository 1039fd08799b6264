package authserver_test

import (
	"context"
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

// document reads a JSON document of the server, and the status that it came with.
func document(t *testing.T, address string) (int, map[string]any) {
	t.Helper()
	resp := must.Get(http.Get(address))(t)
	defer resp.Body.Close()
	var into map[string]any
	json.NewDecoder(resp.Body).Decode(&into) //nolint:errcheck // an error response has no document
	return resp.StatusCode, into
}

func kids(t *testing.T, s *authserver.Server) []string {
	t.Helper()
	_, published := document(t, s.URL+authserver.KeysPath)
	var ids []string
	for _, key := range published["keys"].([]any) {
		ids = append(ids, key.(map[string]any)["kid"].(string))
	}
	return ids
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

func TestKeysRotate(t *testing.T) {
	s := listen(t, authserver.Options{})
	first := s.Key()
	second := s.Rotate()
	got := kids(t, s)
	must.Expect(t, len(got) == 2 && s.Key() == second, "the keys are %v", got)
	s.Retire(first)
	got = kids(t, s)
	must.Expect(t, len(got) == 1 && got[0] == second.ID, "the keys are %v, want %s", got, second.ID)
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

func TestMetadataAndMisbehaviour(t *testing.T) {
	s, other := listen(t, authserver.Options{}), listen(t, authserver.Options{})
	for _, path := range []string{authserver.MetadataPath, authserver.OpenIDPath} {
		status, doc := document(t, s.URL+path)
		must.Expect(t, status == 200 && doc["issuer"] == s.URL && doc["jwks_uri"] == s.URL+authserver.KeysPath, "%s: %d %v", path, status, doc)
	}
	s.NameOtherIssuer(other)
	_, doc := document(t, s.URL+authserver.MetadataPath)
	must.Expect(t, doc["issuer"] != s.URL && doc["jwks_uri"] == other.URL+authserver.KeysPath, "another issuer: %v", doc)
	s.Misbehave(authserver.Down)
	status, _ := document(t, s.URL+authserver.KeysPath)
	must.Expect(t, status == http.StatusServiceUnavailable, "down: %d", status)
	s.Misbehave(authserver.Hangs)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, s.URL+authserver.KeysPath, nil))(t)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("it hangs: %s", resp.Status)
	}
	s.Misbehave(authserver.None)
	status, _ = document(t, s.URL+authserver.KeysPath)
	must.Expect(t, status == http.StatusOK, "well again: %d", status)
	n := s.Requests(authserver.KeysPath)
	must.Expect(t, n == 3, "%d requests for the keys, want 3", n)
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
