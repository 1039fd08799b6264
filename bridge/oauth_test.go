package bridge_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
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
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// signText signs a header and claims as they are written, which may be no JSON.
func signText(t *testing.T, header, claims string) string {
	t.Helper()
	text := encoded([]byte(header)) + "." + encoded([]byte(claims))
	signature, err := jwt.SigningMethodRS256.Sign(text, rsaKey())
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encoded(signature)
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

func TestHostileTokensGoNoFurther(t *testing.T) {
	a := newAuthority(t)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := rsaKey().PublicKey
	good := a.token(t, nil)
	head, rest, _ := strings.Cut(good, ".")
	payload, _, _ := strings.Cut(rest, ".")
	confused := encoded([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + payload
	mac := hmac.New(sha256.New, public.N.Bytes())
	io.WriteString(mac, confused)
	rs := func(claims, header map[string]any) string {
		return a.sign(t, jwt.SigningMethodRS256, rsaKey(), claims, header)
	}
	past, soon := time.Now().Add(-time.Minute).Unix(), time.Now().Add(time.Minute).Unix()
	const plainHeader = `{"alg":"RS256","kid":"one"}`
	claims := func(more string) string {
		return fmt.Sprintf(`{"iss":%q,"sub":"low","client_id":"c","aud":%q,"scope":"content:read"%s}`, a.URL, resource, more)
	}
	if _, front := guarded(t, a); listed(t, front, signText(t, plainHeader, claims(fmt.Sprintf(`,"exp":%d`, soon)))).Status != 200 {
		t.Fatal("a token with claims as this test writes them is refused")
	}
	for name, token := range map[string]string{
		"alg none":              a.sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil),
		"alg None":              encoded([]byte(`{"alg":"None"}`)) + "." + payload + ".",
		"signed with a secret":  confused + "." + encoded(mac.Sum(nil)),
		"another algorithm":     a.sign(t, jwt.SigningMethodRS512, rsaKey(), nil, nil),
		"another signer":        a.sign(t, jwt.SigningMethodRS256, stranger, nil, nil),
		"another audience":      rs(map[string]any{"aud": "https://other.example/mcp"}, nil),
		"audiences, not ours":   rs(map[string]any{"aud": []string{"a", resource + "/"}}, nil),
		"no audience":           rs(map[string]any{"aud": nil}, nil),
		"another issuer":        rs(map[string]any{"iss": "https://other.example"}, nil),
		"no issuer":             rs(map[string]any{"iss": nil}, nil),
		"expired":               rs(map[string]any{"exp": past}, nil),
		"never expires":         rs(map[string]any{"exp": nil}, nil),
		"not valid yet":         rs(map[string]any{"nbf": soon}, nil),
		"unknown kid":           rs(nil, map[string]any{"kid": "two"}),
		"an ID token's type":    rs(nil, map[string]any{"typ": "logout+jwt"}),
		"critical header":       rs(nil, map[string]any{"crit": []string{"exp"}}),
		"scope is a number":     rs(map[string]any{"scope": 5}, nil),
		"ended, but for EXP":    signText(t, plainHeader, claims(fmt.Sprintf(`,"exp":%d,"EXP":%d`, past, soon))),
		"an end twice":          signText(t, plainHeader, claims(fmt.Sprintf(`,"exp":%d,"exp":%d`, past, soon))),
		"a subject twice":       signText(t, plainHeader, claims(fmt.Sprintf(`,"sub":"admin","exp":%d`, soon))),
		"an end as a text":      signText(t, plainHeader, claims(fmt.Sprintf(`,"exp":"%d"`, soon))),
		"claims and more":       signText(t, plainHeader, claims(fmt.Sprintf(`,"exp":%d`, soon))+`{}`),
		"an algorithm twice":    signText(t, `{"alg":"none","alg":"RS256","kid":"one"}`, claims(fmt.Sprintf(`,"exp":%d`, soon))),
		"crit is null":          signText(t, `{"alg":"RS256","kid":"one","crit":null}`, claims(fmt.Sprintf(`,"exp":%d`, soon))),
		"no token":              "x",
		"two parts":             head + "." + payload,
		"no signature":          head + "." + payload + ".",
		"a broken signature":    good[:len(good)-4] + "AAAA",
		"opaque":                "agent-token",
		"long":                  strings.Repeat("x", 20<<10),
		"a key in the header":   rs(nil, map[string]any{"jwk": map[string]any{"kty": "oct", "k": "AA"}, "kid": "mine"}),
		"a key at the signer's": rs(nil, map[string]any{"jku": "http://evil.example/jwks", "kid": "mine"}),
	} {
		t.Run(name, func(t *testing.T) {
			s, front := guarded(t, a)
			if control := listed(t, front, good); control.Status != 200 {
				t.Fatalf("a good token: got %d %s", control.Status, control.Body)
			}
			before := s.discoveries.Load()
			for path, got := range map[string]reply{
				"/mcp": listed(t, front, token), "list": as(t, front, token, "/mcp/tools/list", ""),
				"invoke": as(t, front, token, "/mcp/tools/invoke", `{"name":"content.echo","arguments":{}}`),
				"admin":  as(t, front, token, "/mcp/admin/diagnostics", ""),
			} {
				challenge := got.Header.Get("WWW-Authenticate")
				if got.Status != 401 || !strings.Contains(challenge, `error="invalid_token"`) || !strings.Contains(challenge, `resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource/mcp"`) {
					t.Errorf("%s: got %d %s %s", path, got.Status, challenge, got.Body)
				}
				if len(token) > 20 && strings.Contains(got.Body+challenge, token) {
					t.Errorf("%s: the token is in the response", path)
				}
			}
			if s.discoveries.Load() != before || s.calls.Load() > 0 {
				t.Error("the site was asked")
			}
		})
	}
}

func TestGoodTokensOfAllKinds(t *testing.T) {
	a := newAuthority(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
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
		if s.lastAuth != "Bearer "+token {
			t.Errorf("%s: the site got another credential", name)
		}
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
		if got := send(t, front, "", "DELETE", path, ""); got.Status != 405 {
			t.Errorf("DELETE %s: got %d", path, got.Status)
		}
	}
	if challenge := listed(t, front, "").Header.Get("WWW-Authenticate"); !strings.Contains(challenge, `scope="content:read content:write"`) {
		t.Errorf("a request without a token receives %s", challenge)
	}
	if got := send(t, start(t, newSite(t, echo)), "", "GET", "/.well-known/oauth-protected-resource/mcp", ""); got.Status != 404 {
		t.Errorf("without OAuth: got %d", got.Status)
	}
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
	if got := listed(t, front, token()); got.Status != 503 {
		t.Errorf("no keys yet: got %d %s", got.Status, got.Body)
	}
	a.fail(false)
	later(6 * time.Second)
	if got := listed(t, front, token()); got.Status != 200 {
		t.Fatalf("the server is back: got %d %s", got.Status, got.Body)
	}
	asked := a.asked.Load()
	for range 20 {
		listed(t, front, token())
		listed(t, front, a.sign(t, jwt.SigningMethodRS256, rsaKey(), nil, map[string]any{"kid": "invented"}))
	}
	if got := a.asked.Load() - asked; got > 1 {
		t.Errorf("20 tokens with invented keys: the keys were asked for %d times", got)
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.publish(map[string]any{"kty": "OKP", "kid": "fresh", "crv": "Ed25519", "x": encoded(fresh.Public().(ed25519.PublicKey))})
	later(6 * time.Second)
	rotated := a.sign(t, jwt.SigningMethodEdDSA, fresh, map[string]any{"exp": time.Now().Add(10 * time.Hour).Unix()}, map[string]any{"kid": "fresh"})
	if got := listed(t, front, rotated); got.Status != 200 {
		t.Errorf("a new key: got %d %s", got.Status, got.Body)
	}
	a.fail(true)
	later(30 * time.Minute)
	if got := listed(t, front, token()); got.Status != 200 {
		t.Errorf("the server is down for half an hour: got %d %s", got.Status, got.Body)
	}
	later(time.Hour)
	if got := listed(t, front, token()); got.Status != 503 {
		t.Errorf("the keys are too old: got %d %s", got.Status, got.Body)
	}
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
		if got := as(t, front, a.token(t, c.claims), "/mcp", ping, "Mcp-Session-Id", id); got.Status != c.want {
			t.Errorf("%s: got %d %s, want %d", name, got.Status, got.Body, c.want)
		}
	}
}

func TestOAuthIsConfiguredStrictly(t *testing.T) {
	good := bridge.Options{Drupal: "http://127.0.0.1:1", OAuthOptions: bridge.OAuthOptions{
		OAuthIssuer: "https://as.example", OAuthResource: "https://bridge.example/mcp"}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
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
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("expected an error with %q, got %v", says, err)
		}
	}
}

func TestStdioNeedsNoToken(t *testing.T) {
	a := newAuthority(t)
	s, _ := guarded(t, a)
	b, err := bridge.New(bridge.Options{Drupal: s.URL, OAuthOptions: bridge.OAuthOptions{OAuthIssuer: a.URL, OAuthResource: resource}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	in := initialize + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"content.write"}}`
	var out strings.Builder
	if err := b.ServeStdio(t.Context(), strings.NewReader(in), &out, "agent", "agent-pass"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"id":2,"result":{"content"`) {
		t.Errorf("got %s", out.String())
	}
}
