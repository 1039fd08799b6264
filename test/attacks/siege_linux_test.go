package attacks

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
)

// front is a peer's address: what is behind it may become hostile.
type front struct {
	sane    http.Handler
	hostile func(*http.Request) bool
	peer    atomic.Pointer[string] // nil: all is sane
}

// ServeHTTP has the hostile peer respond. The kernel moves its bytes: they cost this process, where the honest callers are, nothing.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := f.peer.Load()
	if peer == nil || !f.hostile(r) {
		f.sane.ServeHTTP(w, r)
		return
	}
	io.Copy(io.Discard, r.Body)
	to, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer to.Close()
	from, err := net.Dial("tcp", *peer)
	if err != nil {
		return
	}
	defer from.Close()
	fmt.Fprint(from, "GET / HTTP/1.1\r\nHost: peer\r\nConnection: close\r\n\r\n")
	io.Copy(to, from)
}

// during has a peer be hostile for a while.
func (f *front) during(peer string, while func()) {
	f.peer.Store(&peer)
	while()
	f.peer.Store(nil)
}

// TestSiegeOfPeers has honest callers at a bridge of which a peer attacks it for SIEGE_TIME: the site, with the store that
// replicas share, or the authorization server. Each sends all that it has in its table.
func TestSiegeOfPeers(t *testing.T) {
	lasts := siegeTime(t)
	limitMemory(t)
	t.Run("site and store", func(t *testing.T) {
		t.Setenv("BRIDGE_SESSION_KEYS", "the bridge under attack encrypts with this key")
		s, store, admin := newSite(t), redistest.NewFake(t), program.Address(t)
		s.takes = siteTakes
		f := &front{sane: s.Config.Handler, hostile: func(r *http.Request) bool {
			user, _, _ := r.BasicAuth()
			return user == "mallory" || user == "trudy" && r.URL.Path != "/jsonrpc/methods"
		}}
		s.Config.Handler = f
		g := &siege{process: start(t, s, "--upstream-timeout", "3s", "--shared", store.Address, "--rate-limit", "1000", "--rate-burst", "1000", "--admin-listen", admin), admin: admin}
		h := g.besiege(t, lasts, "site", func(a *hostiles, during func()) {
			var storing sync.WaitGroup
			ended := make(chan struct{})
			storing.Go(func() {
				for odd := 0; ; odd++ {
					attack := storeReplies[odd%len(storeReplies)]
					store.Reply(attack.operation, attack.reply)
					select {
					case <-time.After(100 * time.Millisecond):
						store.Reply(attack.operation, "")
					case <-ended:
						store.Reply(attack.operation, "")
						return
					}
				}
			})
			f.during(a.peer, during)
			close(ended)
			storing.Wait()
		})
		must.Expect(t, h.Sent != 0, "nothing was attacked")
		g.bounded(peerLimit)
	})

	t.Run("authorization server", func(t *testing.T) {
		s, server, admin := newSite(t), newJWKSServer(t), program.Address(t)
		s.takes = siteTakes
		f := &front{sane: server, hostile: func(*http.Request) bool { return true }}
		at := must.Serve(t, f)
		server.URL = at.URL
		p := launch(t, s, "--oauth-issuer", at.URL, "--oauth-resource", jwksResource, "--oauth-jwks", at.URL+authserver.KeysPath, "--upstream-timeout", "3s", "--admin-listen", admin)
		p.authorization = "Bearer " + server.Issue("7", jwksResource)
		g := &siege{process: p, admin: admin, issuer: server}
		h := g.besiege(t, lasts, "issuer", func(a *hostiles, during func()) { f.during(a.peer, during) })
		must.Expect(t, h.Sent != 0, "nothing was attacked")
		g.bounded(peerLimit)
	})
}
