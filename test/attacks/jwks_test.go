package attacks

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// jwksServer is an authorization server that can hang, and counts how often it is asked.
type jwksServer struct {
	*httptest.Server
	asked, running, most atomic.Int64
	hang                 atomic.Pointer[chan struct{}] // nil: it responds

	mu   sync.Mutex
	keys map[string]ed25519.PrivateKey
}

func newJWKSServer(t *testing.T) *jwksServer {
	a := &jwksServer{keys: map[string]ed25519.PrivateKey{}}
	a.add(t, "one")
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *jwksServer) add(t *testing.T, id string) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[id] = private
}

func (a *jwksServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked.Add(1)
	if n := a.running.Add(1); n > a.most.Load() {
		a.most.Store(n)
	}
	defer a.running.Add(-1)
	if hang := a.hang.Load(); hang != nil {
		select {
		case <-*hang:
		case <-r.Context().Done():
			return
		}
	}
	var keys []string
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, private := range a.keys {
		keys = append(keys, fmt.Sprintf(`{"kty":"OKP","kid":%q,"crv":"Ed25519","x":%q}`, id, base64.RawURLEncoding.EncodeToString(private.Public().(ed25519.PublicKey))))
	}
	io.WriteString(w, `{"keys":[`+strings.Join(keys, ",")+`]}`) //nolint:errcheck // the bridge complains
}

const jwksResource = "http://127.0.0.1/mcp"

// token signs a token by a key of the server's, under the name of another where kid is not empty.
func (a *jwksServer) token(t *testing.T, key, kid, issuer string) string {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": issuer, "sub": "7", "aud": jwksResource, "exp": time.Now().Add(10 * time.Hour).Unix()})
	token.Header["kid"] = key
	if kid != "" {
		token.Header["kid"] = kid
	}
	text := must.Get(token.SignedString(a.keys[key]))(t)
	return text
}

// jwksSite is a site that takes every token.
func jwksSite(t *testing.T) string {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, identityTools) })) //nolint:errcheck // the bridge complains
	t.Cleanup(site.Close)
	return site.URL
}

func jwksBridge(t *testing.T, a *jwksServer) (base string, ahead *atomic.Int64) {
	ahead = &atomic.Int64{}
	return identityBridge(t, jwksSite(t), func(o *bridge.Options) {
		o.OAuthIssuer, o.OAuthResource, o.OAuthJWKS = a.URL, jwksResource, a.URL+"/jwks"
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}), ahead
}

func jwksList(t *testing.T, base, token string) (status int, took time.Duration) {
	t.Helper()
	start := time.Now()
	r := identitySend(t, "GET", base+"/mcp/tools/list", "", "Authorization", "Bearer "+token)
	return r.status, time.Since(start)
}

// While the authorization server hangs, callers with a known key do not notice, even though the keys are due and tokens
// with unknown keys keep coming; those wait for a bounded time, and the server is asked once at a time.
func TestJWKSServerThatHangs(t *testing.T) {
	a := newJWKSServer(t)
	base, ahead := jwksBridge(t, a)
	good := a.token(t, "one", "", a.URL)
	if status, _ := jwksList(t, base, good); status != 200 {
		t.Fatalf("a good token: %d", status)
	}
	hang := make(chan struct{})
	a.hang.Store(&hang)
	defer close(hang)
	before := a.asked.Load()
	for _, later := range []time.Duration{15 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		ahead.Add(int64(later))
		for range 5 {
			if status, took := jwksList(t, base, good); status != 200 || took > 2*time.Second {
				t.Errorf("a known key, %s later: %d after %s", later, status, took)
			}
		}
	}
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			status, took := jwksList(t, base, a.token(t, "one", fmt.Sprint("invented-", i), a.URL))
			if status != 401 && status != 503 || took > 8*time.Second {
				t.Errorf("an unknown key: %d after %s", status, took)
			}
		})
		group.Go(func() {
			if status, took := jwksList(t, base, good); status != 200 || took > 2*time.Second {
				t.Errorf("a known key, among unknown ones: %d after %s", status, took)
			}
		})
	}
	group.Wait()
	if a.most.Load() > 1 || a.asked.Load()-before > 3 {
		t.Errorf("the server was asked %d times, %d at a time", a.asked.Load()-before, a.most.Load())
	}
}

// Tokens with invented keys do not send the bridge to the authorization server for each, and those of other issuers not
// at all.
func TestJWKSFloodOfInventedKeys(t *testing.T) {
	a := newJWKSServer(t)
	base, ahead := jwksBridge(t, a)
	if status, _ := jwksList(t, base, a.token(t, "one", "", "https://other.example")); status != 401 || a.asked.Load() != 0 {
		t.Errorf("another issuer's token: %d, the keys were asked for %d times", status, a.asked.Load())
	}
	if status, _ := jwksList(t, base, a.token(t, "one", "", a.URL)); status != 200 {
		t.Fatalf("a good token: %d", status)
	}
	ahead.Add(int64(time.Minute))
	before := a.asked.Load()
	for i := range 200 {
		if status, _ := jwksList(t, base, a.token(t, "one", fmt.Sprint("invented-", i), a.URL)); status != 401 {
			t.Errorf("an invented key: %d", status)
		}
	}
	if n := a.asked.Load() - before; n > 1 {
		t.Errorf("200 invented keys within a moment: the keys were asked for %d times", n)
	}
	a.add(t, "two")
	ahead.Add(int64(6 * time.Second))
	if status, _ := jwksList(t, base, a.token(t, "two", "", a.URL)); status != 200 {
		t.Errorf("a key that is new: %d", status)
	}
}
