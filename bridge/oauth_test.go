package bridge_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// authority is an authorization server small enough to read: it publishes keys and signs whatever it is given.
type authority struct {
	*httptest.Server
	asked atomic.Int64 // requests for the keys

	mu   sync.Mutex
	keys []any
	down bool
}

const resource = "http://127.0.0.1/mcp" // a name only: nobody connects to it

// rsaKey is slow to make, and the same will do for all tests.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newAuthority(t *testing.T) *authority {
	a := &authority{}
	public := rsaKey().PublicKey
	a.publish(map[string]any{"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "n": encoded(public.N.Bytes()), "e": encoded(big.NewInt(int64(public.E)).Bytes())})
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case a.down:
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, a.URL, a.URL+"/jwks")
		case r.URL.Path == "/jwks":
			a.asked.Add(1)
			json.NewEncoder(w).Encode(map[string]any{"keys": a.keys}) //nolint:errcheck // the bridge complains
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (a *authority) publish(keys ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = append(a.keys, keys...)
}

func (a *authority) fail(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// sign makes a token that is good but for the changes: of claims, and of its header.
func (a *authority) sign(t *testing.T, method jwt.SigningMethod, key crypto.PrivateKey, claims, header map[string]any) string {
	t.Helper()
	all := jwt.MapClaims{"iss": a.URL, "sub": "7", "client_id": "c", "aud": resource, "exp": time.Now().Add(time.Minute).Unix(), "scope": "content:read"}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	token := jwt.NewWithClaims(method, all)
	token.Header["kid"] = "one"
	for name, value := range header {
		if token.Header[name] = value; value == nil {
			delete(token.Header, name)
		}
	}
	return must.Get(token.SignedString(key))(t)
}

func (a *authority) token(t *testing.T, claims map[string]any) string {
	return a.sign(t, jwt.SigningMethodRS256, rsaKey(), claims, nil)
}

// guarded puts a bridge with OAuth before a site with a tool that asks for a scope.
func guarded(t *testing.T, a *authority, change ...func(*bridge.Options)) (*site, *httptest.Server) {
	s := newSite(t, echo, `{"id":"content.write","attributes":{"usage":"Writes","mcpTool":{"annotations":{"auth":{"scopes":["content:write","content:read"]}}}}}`)
	return s, start(t, s, append([]func(*bridge.Options){func(o *bridge.Options) { o.OAuthIssuer, o.OAuthResource = a.URL, resource }}, change...)...)
}

// as sends a request with a token; "" goes without.
func as(t *testing.T, front *httptest.Server, token, path, body string, headers ...string) reply {
	t.Helper()
	if token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	method := "POST"
	if body == "" {
		method = "GET"
	}
	return send(t, front, "", method, path, body, headers...)
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

func listed(t *testing.T, front *httptest.Server, token string) reply {
	t.Helper()
	return as(t, front, token, "/mcp", listTools, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
}

func TestGoodTokensOfAllKinds(t *testing.T) {
	a := newAuthority(t)
	ec := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	point := must.Get(ec.PublicKey.Bytes())(t)
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	a.publish(map[string]any{"kty": "EC", "kid": "ec", "crv": "P-256", "x": encoded(point[1:33]), "y": encoded(point[33:])},
		map[string]any{"kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": encoded(edPublic)},
		map[string]any{"kty": "oct", "kid": "secret", "k": "AA"}, map[string]any{"kty": "EC", "kid": "odd", "crv": "P-256", "x": "AA", "y": "AA"}, "nonsense")
	s, front := guarded(t, a)
	for name, token := range map[string]string{
		"RS256":             a.token(t, nil),
		"several audiences": a.token(t, map[string]any{"aud": []string{"https://other.example", resource}}),
		"scopes as a list":  a.token(t, map[string]any{"scope": []string{"content:read"}}),
		"no scopes":         a.token(t, map[string]any{"scope": nil}),
		"an access token":   a.sign(t, jwt.SigningMethodRS256, rsaKey(), nil, map[string]any{"typ": "at+jwt"}),
		"ES256":             a.sign(t, jwt.SigningMethodES256, ec, nil, map[string]any{"kid": "ec"}),
		"EdDSA":             a.sign(t, jwt.SigningMethodEdDSA, ed, nil, map[string]any{"kid": "ed"}),
	} {
		if got := listed(t, front, token); got.Status != 200 || !strings.Contains(got.Body, "content.echo") {
			t.Errorf("%s: got %d %s %s", name, got.Status, got.Header.Get("WWW-Authenticate"), got.Body)
		}
		must.Expect(t, s.lastAuth == "Bearer "+token, "%s: the site got another credential", name)
	}
}

func TestTheMetadataSaysWhatIsWanted(t *testing.T) {
	a := newAuthority(t)
	_, front := guarded(t, a)
	listed(t, front, a.token(t, nil))
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		got := send(t, front, "", "GET", path, "")
		want := fmt.Sprintf(`{"resource":%q,"authorization_servers":[%q],"scopes_supported":["content:read","content:write"],"bearer_methods_supported":["header"],"resource_name":"Drupal tools"}`, resource, a.URL)
		if got.Status != 200 || got.Body != want || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %d %v %s, want %s", path, got.Status, got.Header, got.Body, want)
		}
		send(t, front, "", "DELETE", path, "").expect(t, 405, "DELETE %s", path)
	}
	must.Has(t, listed(t, front, "").Header.Get("WWW-Authenticate"), `scope="content:read content:write"`, "the challenge to a request without a token")
	send(t, start(t, newSite(t, echo)), "", "GET", "/.well-known/oauth-protected-resource/mcp", "").expect(t, 404, "without OAuth")
}

func TestKeysAreAskedForWhenNeeded(t *testing.T) {
	a := newAuthority(t)
	now := &atomic.Int64{}
	_, front := guarded(t, a, func(o *bridge.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(now.Load())) }
	})
	later := func(d time.Duration) { now.Add(int64(d)) }
	token := func() string { return a.token(t, map[string]any{"exp": time.Now().Add(10 * time.Hour).Unix()}) }

	a.fail(true)
	listed(t, front, token()).expect(t, 503, "no keys yet")
	a.fail(false)
	later(6 * time.Second)
	got := listed(t, front, token())
	must.Assert(t, got.Status == 200, "the server is back: got %d %s", got.Status, got.Body)
	asked := a.asked.Load()
	for range 20 {
		listed(t, front, token())
		listed(t, front, a.sign(t, jwt.SigningMethodRS256, rsaKey(), nil, map[string]any{"kid": "invented"}))
	}
	if got := a.asked.Load() - asked; got > 1 {
		t.Errorf("20 tokens with invented keys: the keys were asked for %d times", got)
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	a.publish(map[string]any{"kty": "OKP", "kid": "fresh", "crv": "Ed25519", "x": encoded(fresh.Public().(ed25519.PublicKey))})
	later(6 * time.Second)
	rotated := a.sign(t, jwt.SigningMethodEdDSA, fresh, map[string]any{"exp": time.Now().Add(10 * time.Hour).Unix()}, map[string]any{"kid": "fresh"})
	listed(t, front, rotated).expect(t, 200, "a new key")
	a.fail(true)
	later(30 * time.Minute)
	listed(t, front, token()).expect(t, 200, "the server is down for half an hour")
	later(time.Hour)
	listed(t, front, token()).expect(t, 503, "the keys are too old")
}

func TestASessionOutlivesItsToken(t *testing.T) {
	a := newAuthority(t)
	_, front := guarded(t, a)
	id := as(t, front, a.token(t, nil), "/mcp", initialize).Header.Get("Mcp-Session-Id")
	for name, c := range map[string]struct {
		claims map[string]any
		want   int
	}{
		"a newer token of the same holder": {map[string]any{"jti": "2", "scope": "content:write"}, 200},
		"another's":                        {map[string]any{"sub": "8"}, 404},
		"through another client":           {map[string]any{"client_id": "d"}, 404},
	} {
		as(t, front, a.token(t, c.claims), "/mcp", ping, "Mcp-Session-Id", id).expect(t, c.want, "%s", name)
	}
}

func TestOAuthIsConfiguredStrictly(t *testing.T) {
	good := bridge.Options{Drupal: "http://127.0.0.1:1", OAuthOptions: bridge.OAuthOptions{
		OAuthIssuer: "https://as.example", OAuthResource: "https://bridge.example/mcp"}}
	must.Do(t, good.Check())
	for says, change := range map[string]func(*bridge.Options){
		"without oauth_issuer": func(o *bridge.Options) { o.OAuthIssuer = "" },
		"needs oauth_resource": func(o *bridge.Options) { o.OAuthResource = "" },
		"must be https":        func(o *bridge.Options) { o.OAuthIssuer = "http://as.example" },
		"oauth_resource":       func(o *bridge.Options) { o.OAuthResource = "bridge.example" },
		"oauth_jwks":           func(o *bridge.Options) { o.OAuthJWKS = "http://as.example/jwks" },
		"two ways in": func(o *bridge.Options) {
			o.ServiceUser, o.ServicePassword, o.ServiceTokens = "s", "p", []caller.Secret{"t"}
		},
		"without a user, a quer": func(o *bridge.Options) { o.OAuthIssuer = "https://u:p@as.example" },
	} {
		o := good
		change(&o)
		must.Say(t, o.Check(), says)
	}
}

func TestStdioNeedsNoToken(t *testing.T) {
	a := newAuthority(t)
	s, _ := guarded(t, a)
	b := must.Get(bridge.New(bridge.Options{Drupal: s.URL, OAuthOptions: bridge.OAuthOptions{OAuthIssuer: a.URL, OAuthResource: resource}}))(t)
	defer b.Close()
	in := initialize + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"content.write"}}`
	var out strings.Builder
	must.Do(t, b.ServeStdio(t.Context(), strings.NewReader(in), &out, "agent", "agent-pass"))
	must.Expect(t, strings.Contains(out.String(), `"id":2,"result":{"content"`), "got %s", out.String())
}
