package attacks

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Drupal's own limits, below which the bridge must keep what the site sees of it (user.flood).
const (
	throttleDrupalUser    = 5  // failures of an account in 6 hours
	throttleDrupalAddress = 50 // failures from one address, which is the bridge's, in an hour
)

// throttleGuess asks as an account with a password, by one of the bridge's interfaces.
func throttleGuess(t testing.TB, base, front, user, password string, headers ...string) identityReply {
	t.Helper()
	return throttleAsk(t, base, front, append(headers, "Authorization", identityBasic(user, password))...)
}

// throttleAsk sends the request of one of the bridge's interfaces.
func throttleAsk(t testing.TB, base, front string, headers ...string) identityReply {
	t.Helper()
	switch front {
	case "list":
		return identitySend(t, "GET", base+"/mcp/tools/list", "", headers...)
	case "describe":
		return identitySend(t, "GET", base+"/mcp/tools/describe?name=content.echo", "", headers...)
	case "invoke":
		return identitySend(t, "POST", base+"/mcp/tools/invoke", identityCall, headers...)
	case "admin":
		return identitySend(t, "POST", base+"/mcp/admin/invalidate", "", headers...)
	}
	return identitySend(t, "POST", base+"/mcp", identityInitialize, headers...)
}

var throttleFronts = []string{"list", "describe", "invoke", "admin", "mcp"}

// Guessing one account's password from many clients does not lock the account at the site, and who is known keeps
// working.
func TestThrottleGuessesOfOneAccount(t *testing.T) {
	site := newIdentitySite(t)
	base := identityBridge(t, site.URL, func(o *bridge.Options) { o.TrustedProxies = []string{"127.0.0.1"} })
	r := throttleGuess(t, base, "list", "user1", "user1-pass")
	must.Assert(t, r.status == 200, "the right password: %d %s", r.status, r.body)
	limited := 0
	for i := range 60 {
		name := []string{"user1", "USER1", " user1", "Üser1"}[i%3]
		r := throttleGuess(t, base, throttleFronts[i%len(throttleFronts)], name, fmt.Sprint("guess", i), "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
		if r.status != 429 {
			continue
		}
		limited++
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		must.Expect(t, err == nil && wait >= 1 && wait <= 6*3600, "Retry-After %q", r.header.Get("Retry-After"))
	}
	n := site.counts().refused
	must.Expect(t, n != 0 && n < throttleDrupalUser && limited >= 50, "the site refused %d guesses of one account, %d got 429", n, limited)
	for _, front := range throttleFronts[:3] {
		r := throttleGuess(t, base, front, "user1", "user1-pass")
		must.Expect(t, r.status == 200, "%s with the right password, known good: %d %s", front, r.status, r.body)
	}
	throttleGuess(t, base, "list", "user2", "user2-pass").expect(t, 200, "another account")
}

// One wrong password keeps nobody out.
func TestThrottleOneWrongPassword(t *testing.T) {
	base := identityBridge(t, newIdentitySite(t).URL)
	throttleGuess(t, base, "list", "user1", "wrong").expect(t, 403, "the wrong password")
	r := throttleGuess(t, base, "list", "user1", "user1-pass")
	must.Expect(t, r.status == 200, "the right one after it: %d %s", r.status, r.body)
}

// Guessing over many accounts does not lock the bridge's address at the site, from one client or from many.
func TestThrottleGuessesOfManyAccounts(t *testing.T) {
	for name, address := range map[string]func(int) string{
		"one client":           func(int) string { return "198.51.100.1" },
		"one client of IPv6":   func(i int) string { return fmt.Sprintf("2001:db8::%x", i) },
		"a client for each":    func(i int) string { return fmt.Sprintf("198.51.%d.%d", i/250, i%250) },
		"forged hops before":   func(i int) string { return fmt.Sprintf("203.0.113.%d, 198.51.100.1", i) },
		"forged hops, no list": func(i int) string { return fmt.Sprintf("x%d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			site := newIdentitySite(t)
			base := identityBridge(t, site.URL, func(o *bridge.Options) { o.TrustedProxies = []string{"127.0.0.0/8"} })
			throttleGuess(t, base, "list", "user1", "user1-pass")
			var limited atomic.Int64
			crowd(8, func(worker int) {
				for i := range 40 {
					n := worker*40 + i
					if r := throttleGuess(t, base, "list", fmt.Sprint("user", n), "wrong", "X-Forwarded-For", address(n)); r.status == 429 && r.header.Get("Retry-After") != "" {
						limited.Add(1)
					}
				}
			})()
			n := site.counts().refused
			must.Expect(t, n != 0 && n < throttleDrupalAddress && limited.Load() >= 200, "the site refused %d, %d got 429", n, limited.Load())
			throttleGuess(t, base, "invoke", "user1", "user1-pass", "X-Forwarded-For", address(1)).expect(t, 200, "who is known")
		})
	}
}

// A client that keeps trying the wrong password is refused from memory, as the site did; it does not use up what others
// may get wrong.
func TestThrottleTheSameWrongPassword(t *testing.T) {
	site := newIdentitySite(t)
	now := atomic.Int64{}
	base := identityBridge(t, site.URL, func(o *bridge.Options) {
		o.Now = func() time.Time { return time.Unix(1_700_000_000, now.Load()) }
	})
	for i := range 50 {
		throttleGuess(t, base, "list", "user1", "wrong").expect(t, 403, "try %d", i)
		now.Add(int64(time.Minute))
	}
	n := site.counts().refused
	must.Expect(t, n < throttleDrupalUser, "the site refused %d", n)
	now.Add(int64(7 * time.Hour))
	r := throttleGuess(t, base, "list", "user1", "user1-pass")
	must.Expect(t, r.status == 200, "the right one, hours later: %d %s", r.status, r.body)
}

// Tokens are guessed as little as passwords.
func TestThrottleGuessesOfTokens(t *testing.T) {
	site := newIdentitySite(t)
	base := identityBridge(t, site.URL)
	known := []string{"Authorization", "Bearer good-1"}
	identitySend(t, "GET", base+"/mcp/tools/list", "", known...)
	limited := 0
	for i := range 100 {
		if r := identitySend(t, "GET", base+"/mcp/tools/list", "", "Authorization", fmt.Sprint("Bearer bad-", i)); r.status == 429 {
			limited++
		}
	}
	n := site.counts().refused
	must.Expect(t, n != 0 && n <= 50 && limited >= 50, "the site refused %d, %d got 429", n, limited)
	identitySend(t, "GET", base+"/mcp/tools/list", "", known...).expect(t, 200, "who is known")
}

// Who guesses the tokens that the bridge itself compares, those of its service account and of its operators, is held back
// as well, and then the right guess gets the same response as a wrong one.
func TestThrottleGuessesOfTheBridgesTokens(t *testing.T) {
	service := func(o *bridge.Options) {
		o.ServiceUser, o.ServicePassword, o.ServiceTokens = "user1", "user1-pass", []caller.Secret{"token-in-use", "token-unused"}
	}
	operator := func(o *bridge.Options) { o.AdminTokens = []caller.Secret{"token-in-use", "token-unused"} }
	for name, c := range map[string]struct {
		fronts []string
		change []func(*bridge.Options)
	}{
		"service":                 {[]string{"list", "describe", "invoke", "mcp"}, []func(*bridge.Options){service}},
		"operator":                {[]string{"admin"}, []func(*bridge.Options){operator}},
		"operator, Basic only":    {[]string{"admin"}, []func(*bridge.Options){operator, func(o *bridge.Options) { o.Credentials = []caller.Scheme{caller.Basic} }}},
		"operator beside service": {[]string{"admin"}, []func(*bridge.Options){service, operator, func(o *bridge.Options) { o.ServiceTokens = []caller.Secret{"other"} }}},
	} {
		t.Run(name, func(t *testing.T) {
			site := newIdentitySite(t)
			base := identityBridge(t, site.URL, append(c.change, func(o *bridge.Options) { o.TrustedProxies = []string{"127.0.0.1"} })...)
			ask := func(i int, token, from string) identityReply {
				return throttleAsk(t, base, c.fronts[i%len(c.fronts)], "Authorization", "Bearer "+token, "X-Forwarded-For", from)
			}
			const attacker, other = "198.51.100.1", "198.51.100.2"
			r := ask(0, "token-in-use", attacker)
			must.Assert(t, r.status == 200, "a token, before the guesses: %d %s", r.status, r.body)
			compared := 0
			for i := range 60 {
				switch r := ask(i, fmt.Sprint("guess", i), attacker); {
				case r.status == 401:
					compared++
				case r.status != 429 || r.header.Get("Retry-After") == "":
					t.Errorf("guess %d: %d %s", i, r.status, r.body)
				}
			}
			n := site.counts().refused
			must.Expect(t, compared != 0 && compared <= 20 && n <= 20, "%d guesses were compared, %d refused by the site", compared, n)
			wrong, right := ask(0, "guess-more", attacker), ask(0, "token-unused", attacker)
			must.Expect(t, right.status == 429 && right.body == wrong.body,
				"the right guess: %d %s; a wrong one: %d %s", right.status, right.body, wrong.status, wrong.body)
			ask(0, "token-in-use", attacker).expect(t, 200, "a token in use, from the same address")
			ask(0, "token-unused", other).expect(t, 200, "a token from another address")
		})
	}
}

// Guesses that come all at once, before the first is refused, meet the same limits, while known callers are served.
func TestThrottleGuessesAtOnce(t *testing.T) {
	site := newIdentitySite(t)
	base := identityBridge(t, site.URL, func(o *bridge.Options) { o.PermissionTTL = time.Millisecond })
	throttleGuess(t, base, "list", "user1", "user1-pass")
	release := make(chan struct{})
	site.count(func() { site.slow = release })
	wait := crowd(100, func(i int) { throttleGuess(t, base, "list", "user1", fmt.Sprint("guess", i)) })
	must.Become(t, 5*time.Second, func() bool { return site.counts().asked >= 4 }, "no guess reaches the site")
	n := site.counts().refused
	must.Expect(t, n < throttleDrupalUser, "%d guesses are at the site at once", n)
	throttleGuess(t, base, "invoke", "user1", "user1-pass").expect(t, 200, "who is known, meanwhile")
	close(release)
	wait()
	n = site.counts().refused
	must.Expect(t, n < throttleDrupalUser, "the site refused %d", n)
}

// The site gets the client's address where it is asked to count by that, and never one that a client wrote.
func TestThrottleForwardsTheClientsAddress(t *testing.T) {
	for _, c := range []struct {
		trusted []string
		forward bool
		want    string
	}{{nil, false, ""}, {nil, true, "127.0.0.1"}, {[]string{"127.0.0.1"}, true, "198.51.100.7"}, {[]string{"127.0.0.1"}, false, ""}, {[]string{"10.0.0.0/8"}, true, "127.0.0.1"}} {
		site := newIdentitySite(t)
		base := identityBridge(t, site.URL, func(o *bridge.Options) { o.TrustedProxies, o.ForwardAddress = c.trusted, c.forward })
		throttleGuess(t, base, "invoke", "user1", "user1-pass", "X-Forwarded-For", "1.2.3.4, 198.51.100.7")
		site.count(func() {
			must.Expect(t, len(site.forwarded) == 1 && site.forwarded[c.want],
				"trusted %v, forward %v: the site got %v, want %q", c.trusted, c.forward, site.forwarded, c.want)
		})
	}
}

// A reload neither forgets who is known nor gives guessers another hour's worth.
func TestThrottleOverAReload(t *testing.T) {
	site := newIdentitySite(t)
	b, base := identityServe(t, site.URL)
	throttleGuess(t, base, "list", "user1", "user1-pass")
	for i := range 10 {
		throttleGuess(t, base, "list", "user1", fmt.Sprint("guess", i))
	}
	before := site.counts()
	must.Do(t, b.Reload(bridge.Options{Drupal: site.URL}))
	for i := range 10 {
		throttleGuess(t, base, "list", "user1", fmt.Sprint("more", i))
	}
	throttleGuess(t, base, "list", "user1", "user1-pass").expect(t, http.StatusOK, "who is known")
	n := site.counts().refused - before.refused
	must.Expect(t, n <= 0, "after a reload the site refused %d more guesses", n)
}

// The response to a throttled caller shows neither names nor passwords, nor whether the account exists.
func TestThrottleRevealsNothing(t *testing.T) {
	base := identityBridge(t, newIdentitySite(t).URL)
	said := map[string]string{}
	for _, name := range []string{"user1", "nobody"} {
		for i := range 8 {
			if r := throttleGuess(t, base, "list", name, fmt.Sprint("canary", i)); r.status == 429 {
				said[name] = r.body
			}
		}
	}
	if said["user1"] == "" || said["user1"] != said["nobody"] || strings.Contains(said["user1"], "user1") || strings.Contains(said["user1"], "canary") {
		t.Errorf("said: %v", said)
	}
}

// Callers make the bridge fail as often as they like, for the site is down: of that it logs a part.
func TestFailuresInTheLog(t *testing.T) {
	s := newSite(t)
	p := start(t, s)
	s.Close()
	crowd(8, func(n int) {
		for i := range 400 {
			token := fmt.Sprint("Bearer ", n, "-", i)
			p.send(context.Background(), "127.0.0.1", "", "GET", "/mcp/tools/list", "", http.Header{"Authorization": {token}, "Traceparent": {strings.Repeat("x", 4<<10)}})
		}
	})()
	log := p.output.String()
	must.Expect(t, strings.Contains(log, "msg=request ") && strings.Contains(log, "unlogged="), "the log does not say what failed, and how often: %.1000s", log)
	p.bounded(150)
}
