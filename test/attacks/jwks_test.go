package attacks

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// newJWKSServer starts an authorization server.
func newJWKSServer(t *testing.T) *authserver.Server {
	a := must.Get(authserver.Listen("127.0.0.1:0", authserver.Options{}))(t)
	t.Cleanup(a.Close)
	return a
}

const jwksResource = "http://127.0.0.1/mcp"

// invented is a token of the server's under the name of a key that it never had.
func invented(a *authserver.Server, i int) string {
	return a.Sign(authserver.Token{Claims: a.Claims("7", jwksResource), Header: map[string]any{"kid": fmt.Sprint("invented-", i)}})
}

// jwksSite is a site that takes every token.
func jwksSite(t *testing.T) string {
	site := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, identityTools) })) //nolint:errcheck // the bridge complains
	return site.URL
}

func jwksBridge(t *testing.T, a *authserver.Server) (base string, ahead *atomic.Int64) {
	ahead = &atomic.Int64{}
	return identityBridge(t, jwksSite(t), func(o *bridge.Options) {
		o.OAuthIssuer, o.OAuthResource, o.OAuthJWKS = a.URL, jwksResource, a.URL+authserver.KeysPath
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
// with unknown keys keep coming; those wait for a bounded time, and together
// ask the server.
func TestJWKSServerThatHangs(t *testing.T) {
	a := newJWKSServer(t)
	base, ahead := jwksBridge(t, a)
	good := a.Issue("7", jwksResource)
	status, _ := jwksList(t, base, good)
	must.Assert(t, status == 200, "a good token: %d", status)
	a.Misbehave(authserver.Hangs)
	before := a.Requests(authserver.KeysPath)
	for _, later := range []time.Duration{15 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		ahead.Add(int64(later))
		for range 5 {
			status, took := jwksList(t, base, good)
			must.Expect(t, status == 200 && took <= 2*time.Second, "a known key, %s later: %d after %s", later, status, took)
		}
	}
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			status, took := jwksList(t, base, invented(a, i))
			must.Expect(t, (status == 401 || status == 503) && took <= 8*time.Second, "an unknown key: %d after %s", status, took)
		})
		group.Go(func() {
			status, took := jwksList(t, base, good)
			must.Expect(t, status == 200 && took <= 2*time.Second, "a known key, among unknown ones: %d after %s", status, took)
		})
	}
	group.Wait()
	n := a.Requests(authserver.KeysPath) - before
	must.Expect(t, n <= 3, "the server was asked %d times", n)
}

// Tokens with invented keys do not send the bridge to the authorization server for each, and those of other issuers not
// at all.
func TestJWKSFloodOfInventedKeys(t *testing.T) {
	a := newJWKSServer(t)
	base, ahead := jwksBridge(t, a)
	if status, _ := jwksList(t, base, a.Issue("7", jwksResource, map[string]any{"iss": "https://other.example"})); status != 401 || a.Requests("") != 0 {
		t.Errorf("another issuer's token: %d, the keys were asked for %d times", status, a.Requests(""))
	}
	status, _ := jwksList(t, base, a.Issue("7", jwksResource))
	must.Assert(t, status == 200, "a good token: %d", status)
	ahead.Add(int64(time.Minute))
	before := a.Requests(authserver.KeysPath)
	for i := range 200 {
		status, _ := jwksList(t, base, invented(a, i))
		must.Expect(t, status == 401, "an invented key: %d", status)
	}
	n := a.Requests(authserver.KeysPath) - before
	must.Expect(t, n <= 1, "200 invented keys within a moment: the keys were asked for %d times", n)
	a.Rotate()
	ahead.Add(int64(6 * time.Second))
	status, _ = jwksList(t, base, a.Issue("7", jwksResource))
	must.Expect(t, status == 200, "a key that is new: %d", status)
}
