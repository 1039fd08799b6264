package bridge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// asking puts an endpoint beside an authority, and a bridge that asks it before a site.
type asking struct {
	*authority
	site  *site
	front *httptest.Server
	asked atomic.Int64
	reply atomic.Value // http.HandlerFunc
	now   atomic.Int64 // by how much the bridge's clock is ahead
}

// newAsking publishes the endpoint in the authority's metadata under a name.
func newAsking(t *testing.T, name string, reply http.HandlerFunc, change func(*bridge.Options)) *asking {
	x := &asking{authority: newAuthority(t)}
	x.reply.Store(reply)
	known := x.Config.Handler
	x.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,%q:%q}`, x.URL, x.URL+"/jwks", name, x.URL+"/asked")
		case "/asked":
			x.asked.Add(1)
			x.reply.Load().(http.HandlerFunc)(w, r)
		default:
			known.ServeHTTP(w, r)
		}
	})
	x.site, x.front = guarded(t, x.authority, func(o *bridge.Options) {
		o.OAuthClient, o.OAuthClientSecret = "the bridge", "s:cret"
		o.Now = func() time.Time { return time.Now().Add(time.Duration(x.now.Load())) }
		change(o)
	})
	return x
}

func (x *asking) replies(reply http.HandlerFunc) { x.reply.Store(reply) }

func newExchanging(t *testing.T) (x *asking) {
	x = newAsking(t, "token_endpoint", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("site-token-%d", x.asked.Load()), "token_type": "bearer", "expires_in": 600}) //nolint:errcheck // the bridge complains
	}, func(o *bridge.Options) { o.OAuthExchange = "https://site.example" })
	return x
}

func TestTokensAreExchanged(t *testing.T) {
	x := newExchanging(t)
	token := x.token(t, map[string]any{"exp": time.Now().Add(time.Hour).Unix()})
	var form, client string
	plain := x.reply.Load().(http.HandlerFunc)
	x.replies(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm() //nolint:errcheck // then the form is empty
		user, password, _ := r.BasicAuth()
		form, client = r.PostForm.Encode(), user+"/"+password
		plain(w, r)
	})
	for range 3 {
		got := listed(t, x.front, token)
		must.Assert(t, got.Status == 200 && x.site.lastAuth == "Bearer site-token-1", "got %d %s, and the site got %s", got.Status, got.Body, x.site.lastAuth)
	}
	want := "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token" +
		"&resource=https%3A%2F%2Fsite.example&subject_token=" + token + "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
	must.Expect(t, form == want && client == "the+bridge/s%3Acret" && x.asked.Load() == 1,
		"%d exchanges, by %s: %s", x.asked.Load(), client, form)
	x.now.Store(int64(580 * time.Second)) // the token in exchange is about to end
	if got := as(t, x.front, token, "/mcp/tools/invoke", `{"name":"content.echo","arguments":{}}`); got.Status != 200 || x.site.lastAuth != "Bearer site-token-2" {
		t.Errorf("later: got %d %s, and the site got %s", got.Status, got.Body, x.site.lastAuth)
	}
}

func TestWhatIsNotExchangedGoesNoFurther(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   int
	}{
		"the token is refused":                  {400, `{"error":"invalid_request"}`, 401},
		"the bridge is refused":                 {401, `{"error":"invalid_client"}`, 503},
		"it is down":                            {503, ``, 503},
		"no JSON":                               {200, `<html>`, 503},
		"no token":                              {200, `{"token_type":"Bearer"}`, 503},
		"a token of a kind that cannot be sent": {200, `{"access_token":"x","token_type":"N_A"}`, 503},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchanging(t)
			x.replies(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			token := x.token(t, nil)
			got := listed(t, x.front, token)
			must.Expect(t, got.Status == c.want && x.site.discoveries.Load() <= 0,
				"got %d %s, and %d requests to the site", got.Status, got.Body, x.site.discoveries.Load())
			must.Expect(t, !strings.Contains(got.Body, "s:cret") && !strings.Contains(got.Body, token),
				"a secret is in the response: %s", got.Body)
		})
	}
}

func TestExchangeIsConfiguredStrictly(t *testing.T) {
	good := bridge.Options{Drupal: "http://127.0.0.1:1", OAuthOptions: bridge.OAuthOptions{
		OAuthIssuer: "https://as.example", OAuthResource: "https://bridge.example/mcp",
		OAuthExchange: "site", OAuthClient: "c", OAuthClientSecret: "s"}}
	must.Do(t, good.Check())
	for name, change := range map[string]func(*bridge.Options){
		"no issuer":           func(o *bridge.Options) { o.OAuthIssuer, o.OAuthResource = "", "" },
		"no client":           func(o *bridge.Options) { o.OAuthClient = "" },
		"no secret":           func(o *bridge.Options) { o.OAuthClientSecret = "" },
		"no site":             func(o *bridge.Options) { o.OAuthExchange = "" },
		"no client to ask as": func(o *bridge.Options) { o.OAuthExchange, o.OAuthClient, o.OAuthIntrospect = "", "", true },
		"no issuer to ask": func(o *bridge.Options) {
			o.OAuthIssuer, o.OAuthResource, o.OAuthExchange, o.OAuthIntrospect = "", "", "", true
		},
	} {
		o := good
		change(&o)
		must.Say(t, o.Check(), "oauth_exchange", name)
	}
}
