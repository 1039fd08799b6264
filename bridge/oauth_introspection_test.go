package bridge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// active is the authorization server's word on a good token.
func active(change map[string]any) map[string]any {
	said := map[string]any{"active": true, "sub": "agent", "aud": resource, "exp": time.Now().Add(time.Hour).Unix(), "token_type": "Bearer"}
	for name, value := range change {
		if value == nil {
			delete(said, name)
		} else {
			said[name] = value
		}
	}
	return said
}

func newIntrospecting(t *testing.T) (*asking, *site, func(token string) reply) {
	x := newAsking(t, "introspection_endpoint", saying(active(nil)), func(o *bridge.Options) { o.OAuthIntrospect = true })
	return x, x.site, func(token string) reply { return listed(t, x.front, token) }
}

func saying(document any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(document) } //nolint:errcheck // the bridge complains
}

func TestOpaqueTokensAreIntrospected(t *testing.T) {
	x, site, list := newIntrospecting(t)
	var sent, client string
	x.replies(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		sent, client = r.PostFormValue("token"), user+"/"+password
		json.NewEncoder(w).Encode(active(nil)) //nolint:errcheck // the bridge complains
	})
	for range 3 {
		got := list("opaque-1")
		must.Assert(t, got.Status == 200 && site.lastAuth == "Bearer opaque-1", "got %d %s, and the site got %s", got.Status, got.Body, site.lastAuth)
	}
	must.Expect(t, sent == "opaque-1" && client == "the+bridge/s%3Acret" && x.asked.Load() == 1,
		"%d questions, by %s, about %s", x.asked.Load(), client, sent)
	x.replies(saying(map[string]any{"active": false})) // it is revoked
	got := list("opaque-1")
	must.Expect(t, got.Status == 200 && x.asked.Load() == 1, "at once: got %d, after %d questions", got.Status, x.asked.Load())
	x.now.Store(int64(31 * time.Second))
	list("opaque-1").expect(t, 401, "half a minute after")
}

func TestWhatIsNotActiveGoesNoFurther(t *testing.T) {
	now := time.Now().Unix()
	for name, c := range map[string]struct {
		status int
		said   any
		want   int
	}{
		"not active":                   {200, map[string]any{"active": false}, 401},
		"no word":                      {200, map[string]any{"sub": "agent", "aud": resource, "exp": now + 60}, 401},
		"active as a text":             {200, active(map[string]any{"active": "true"}), 503},
		"for another resource":         {200, active(map[string]any{"aud": "https://other.example/mcp"}), 401},
		"for nobody":                   {200, active(map[string]any{"aud": nil}), 401},
		"of another issuer":            {200, active(map[string]any{"iss": "https://other.example"}), 401},
		"expired":                      {200, active(map[string]any{"exp": now - 60}), 401},
		"without an end":               {200, active(map[string]any{"exp": nil}), 401},
		"not yet valid":                {200, active(map[string]any{"nbf": now + 60}), 401},
		"bound to a key":               {200, active(map[string]any{"token_type": "DPoP"}), 401},
		"of nobody":                    {200, active(map[string]any{"sub": nil}), 503},
		"the bridge is refused":        {401, map[string]any{"error": "invalid_client"}, 503},
		"the bridge has no permission": {403, active(nil), 503},
		"it is down":                   {503, active(nil), 503},
		"a list":                       {200, []any{active(nil)}, 503},
		"Active, not active":           {200, json.RawMessage(`{"active":false,"Active":true,"ACTIVE":true,"sub":"agent","aud":"` + resource + fmt.Sprintf(`","exp":%d}`, now+60)), 401},
		"active twice":                 {200, json.RawMessage(`{"active":false,"active":true,"sub":"agent","aud":"` + resource + fmt.Sprintf(`","exp":%d}`, now+60)), 503},
	} {
		t.Run(name, func(t *testing.T) {
			x, site, list := newIntrospecting(t)
			x.replies(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				json.NewEncoder(w).Encode(c.said) //nolint:errcheck // the bridge complains
			})
			got := list("opaque-canary")
			must.Expect(t, got.Status == c.want && site.discoveries.Load() <= 0,
				"got %d %s, want %d, and %d requests to the site", got.Status, got.Body, c.want, site.discoveries.Load())
			must.Expect(t, !strings.Contains(got.Body, "s:cret") && !strings.Contains(got.Body, "opaque-canary"),
				"a secret is in the response: %s", got.Body)
			x.replies(saying(active(nil)))
			x.now.Store(int64(10 * time.Second)) // a refusal is kept for some seconds
			list("opaque-canary").expect(t, 200, "the positive control, after that")
		})
	}
}

// A flood of random tokens from one address does not become a flood of questions; callers from elsewhere, and those whose
// token was good, are served.
func TestAFloodOfTokensIsNotPassedOn(t *testing.T) {
	x := newAsking(t, "introspection_endpoint", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(active(map[string]any{"active": strings.HasPrefix(r.PostFormValue("token"), "good")})) //nolint:errcheck // the bridge complains
	}, func(o *bridge.Options) { o.OAuthIntrospect, o.TrustedProxies = true, []string{"127.0.0.1"} })
	list := func(token, from string) int {
		return as(t, x.front, token, "/mcp/tools/list", "", "X-Forwarded-For", from).Status
	}
	got := list("good-1", "203.0.113.7")
	must.Assert(t, got == 200, "a good token: got %d", got)
	statuses := map[int]int{}
	for i := range 300 {
		statuses[list(fmt.Sprint("random-", i), "203.0.113.7")]++
	}
	if asked := x.asked.Load(); asked > 25 || statuses[401] > 25 || statuses[401]+statuses[429] != 300 {
		t.Errorf("300 random tokens are %d questions and get %v", asked, statuses)
	}
	x.now.Store(int64(time.Minute)) // the word on good-1 is old
	for token, from := range map[string]string{"good-1": "203.0.113.7", "good-2": "203.0.113.8"} {
		must.Equal(t, list(token, from), 200, "%s from %s, beside the flood", token, from)
	}
	before := x.asked.Load()
	for range 100 {
		list("ended", "203.0.113.9")
	}
	asked := x.asked.Load() - before
	must.Expect(t, asked <= 2, "one token 100 times is %d questions", asked)
	// Tokens that ended by themselves are no guesses: their address stays open.
	for i := range 30 {
		list(fmt.Sprint("good-old-", i), "203.0.113.10")
	}
	x.now.Store(int64(2 * time.Hour))
	for i := range 30 {
		list(fmt.Sprint("good-old-", i), "203.0.113.10")
	}
	got = list("good-new", "203.0.113.10")
	must.Expect(t, got == 401, "a token that has ended, after 30 others: got %d, want 401", got) // it ended an hour ago, too
}
