package attacks

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
)

// asAttackersDo has the rest of a goroutine run at the lowest priority, as the attackers' process does. Its thread ends with it.
func asAttackersDo() {
	runtime.LockOSThread()
	syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), 19) //nolint:errcheck // then the siege is harder
}

// rotation sends each of the answers in turn.
type rotation struct{ sent atomic.Int64 }

func (a *rotation) send(w http.ResponseWriter) {
	asAttackersDo()
	n := a.sent.Add(1)
	answers[int(n)%len(answers)].send(w, n)
}

// TestSiegeOfPeers has honest callers at a bridge of which a peer attacks it for SIEGE_TIME: the site, with the store that
// replicas share, or the authorization server. Each sends all that it has in its table.
func TestSiegeOfPeers(t *testing.T) {
	lasts := siegeTime(t)
	limitMemory(t)
	// The system ends the bridge with the thread that started it, so attackers must not have that one.
	// callers make the peer attack, so many at a time.
	callers := func(send func(ctx context.Context, i int)) func(during func()) {
		return func(during func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					asAttackersDo()
					for ctx.Err() == nil {
						send(ctx, i)
					}
				})
			}
			during()
			cancel()
			wg.Wait()
		}
	}
	unmeasured := func(a *rotation) string {
		if t.Logf("%d hostile responses were sent", a.sent.Load()); a.sent.Load() == 0 {
			t.Error("nothing was attacked")
		}
		return "peers, attackers, callers and the bridge share the processors, and a bridge that reads what does not end takes its share"
	}

	t.Run("site and store", func(t *testing.T) {
		runtime.LockOSThread()
		t.Setenv("BRIDGE_SESSION_KEYS", "the bridge under attack encrypts with this key")
		s, store, a, admin := newSite(t), redistest.NewFake(t), &rotation{}, program.Address(t)
		s.takes = siteTakes
		others := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, _, _ := r.BasicAuth(); user == "mallory" || user == "trudy" && r.URL.Path != "/jsonrpc/methods" {
				a.send(w)
				return
			}
			others.ServeHTTP(w, r)
		})
		g := &siege{process: start(t, s, "--upstream-timeout", "3s", "--shared", store.Address, "--rate-limit", "1000", "--rate-burst", "1000", "--admin-listen", admin), admin: admin}
		g.besiege(t, lasts, func(during func()) string {
			odd := 0
			callers(func(ctx context.Context, i int) {
				if i == 0 {
					odd++
					attack := storeReplies[odd%len(storeReplies)]
					store.Reply(attack.operation, attack.reply)
					sleep(ctx, 100*time.Millisecond)
					store.Reply(attack.operation, "")
					return
				}
				g.call(ctx, []string{"mallory", "trudy"}[i%2], "content.echo", `{"v":1}`)
			})(during)
			return unmeasured(a)
		})
		g.bounded(peerLimit)
	})

	t.Run("authorization server", func(t *testing.T) {
		runtime.LockOSThread()
		s, server, a, admin := newSite(t), newJWKSServer(t), &rotation{}, program.Address(t)
		s.takes = siteTakes
		var hostile atomic.Bool
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hostile.Load() {
				a.send(w)
				return
			}
			server.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		server.URL = front.URL
		p := launch(t, s, "--oauth-issuer", front.URL, "--oauth-resource", jwksResource, "--oauth-jwks", front.URL+authserver.KeysPath, "--upstream-timeout", "3s", "--admin-listen", admin)
		p.authorization = "Bearer " + server.Issue("7", jwksResource)
		g := &siege{process: p, admin: admin}
		g.besiege(t, lasts, func(during func()) string {
			hostile.Store(true)
			callers(func(ctx context.Context, i int) {
				g.send(ctx, fmt.Sprintf("127.0.3.%d", i+1), "", "GET", "/mcp/tools/list", "", http.Header{"Authorization": {"Bearer " + invented(server, i)}})
				sleep(ctx, 10*time.Millisecond)
			})(during)
			hostile.Store(false)
			return unmeasured(a)
		})
		g.bounded(peerLimit)
	})
}
