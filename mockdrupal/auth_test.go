package mockdrupal_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// do sends a request with headers (name, value, …) and returns response and body.
func do(t testing.TB, verb, address, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r := must.Get(http.NewRequest(verb, address, strings.NewReader(body)))(t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res := must.Get(http.DefaultTransport.RoundTrip(r))(t)
	defer res.Body.Close()
	b := must.Get(io.ReadAll(res.Body))(t)
	return res, string(b)
}

func TestCookieLoginAndLogout(t *testing.T) {
	site := smallSite()
	site.Auth.JSONRPC = []string{"cookie"}
	s := start(t, site, mockdrupal.Options{})
	res, body := do(t, "POST", s.URL+"/user/login?_format=json", `{"name":"agent","pass":"agent-pass"}`)
	var login struct {
		User   struct{ UID, Name string } `json:"current_user"`
		CSRF   string                     `json:"csrf_token"`
		Logout string                     `json:"logout_token"`
	}
	err := json.Unmarshal([]byte(body), &login)
	must.Assert(t, err == nil && login.User.UID == "2" && login.CSRF != "" && login.Logout != "", "login: %s %v", body, err)
	cookie := strings.SplitN(res.Header.Get("Set-Cookie"), ";", 2)[0]
	_, body = do(t, "POST", s.URL+"/jsonrpc", whoami, "Cookie", cookie)
	must.Expect(t, strings.Contains(body, `"name":"agent"`), "with the cookie: %s", body)
	_, token := do(t, "GET", s.URL+"/session/token", "", "Cookie", cookie)
	must.Expect(t, token == login.CSRF, "session token %s, want %s", token, login.CSRF)
	for _, c := range []struct {
		name, query string
		status      int
		says        string
	}{
		{"no token", "", 403, "is missing"},
		{"wrong token", "&token=x", 403, "is invalid"},
		{"right token", "&token=" + url.QueryEscape(login.Logout), 204, ""},
		{"logged out already", "&token=" + url.QueryEscape(login.Logout), 403, "authenticated users"},
	} {
		res, body := do(t, "POST", s.URL+"/user/logout?_format=json"+c.query, "", "Cookie", cookie)
		must.Expect(t, res.StatusCode == c.status && strings.Contains(body, c.says),
			"logout with %s: %d %s, want %d %s", c.name, res.StatusCode, body, c.status, c.says)
	}
	res, _ = do(t, "POST", s.URL+"/jsonrpc", whoami, "Cookie", cookie)
	must.Expect(t, res.StatusCode == 403, "after logging out: %d, want 403", res.StatusCode)
}

func TestSchemesOfARouteAreTheSitesData(t *testing.T) {
	basic := "Basic YWdlbnQ6YWdlbnQtcGFzcw=="
	for _, c := range []struct {
		name    string
		schemes []string
		header  string
		status  int
	}{
		{"basic where it is taken", []string{"basic"}, basic, 200},
		{"basic where it is not", []string{"bearer"}, basic, 403},
		{"bearer where it is taken", []string{"bearer"}, "Bearer agent-token", 200},
		{"bearer where there is no OAuth", []string{"basic"}, "Bearer agent-token", 401},
		{"bearer after another word", []string{"basic", "bearer"}, "x Bearer agent-token", 401},
		{"bearer after blanks", []string{"bearer"}, "Bearer   agent-token", 200},
		{"bearer in lower case is no credential", []string{"basic", "bearer"}, "bearer agent-token", 401},
		{"basic without a colon is none", []string{"basic"}, "Basic YWdlbnQ=", 401},
		{"basic scheme in any case", []string{"basic"}, "bAsIc YWdlbnQ6YWdlbnQtcGFzcw==", 200},
		{"account in any case", []string{"basic"}, "Basic QUdFTlQ6YWdlbnQtcGFzcw==", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := smallSite()
			site.Auth.JSONRPC = c.schemes
			s := start(t, site, mockdrupal.Options{})
			res, body := do(t, "POST", s.URL+"/jsonrpc", whoami, "Authorization", c.header)
			must.Expect(t, res.StatusCode == c.status, "%d %s, want %d", res.StatusCode, body, c.status)
		})
	}
}

func TestTokensOfATrustedServer(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{Trusted: func(token string) (string, bool) {
		account, ok := strings.CutPrefix(token, "trusted.")
		return account, ok
	}})
	for token, status := range map[string]int{"trusted.agent": 200, "agent-token": 200, "trusted.blocked": 401, "trusted.nobody": 401, "agent": 401} {
		res, body := do(t, "POST", s.URL+"/jsonrpc", whoami, "Authorization", "Bearer "+token)
		must.Expect(t, res.StatusCode == status, "%s: %d %s, want %d", token, res.StatusCode, body, status)
	}
}

func TestBearerTokensOfTheSiteFile(t *testing.T) {
	site := smallSite()
	site.Users[1].Tokens = append(site.Users[1].Tokens,
		fixtures.Token{Value: "scoped", Scopes: []string{"agent"}},
		fixtures.Token{Value: "empty", Scopes: []string{}},
		fixtures.Token{Value: "short-lived", Expires: time.Now().Add(time.Hour)},
		fixtures.Token{Value: "revoked", Revoked: true})
	site.Users[3].Tokens = []fixtures.Token{{Value: "blocked"}}
	s := start(t, site, mockdrupal.Options{})
	for _, c := range []struct {
		name, token string
		advance     time.Duration
		status      int
		challenge   string
	}{
		{"whole", "agent-token", 0, 200, ""},
		{"cut down to a role", "scoped", 0, 200, ""},
		{"cut down to nothing", "empty", 0, 403, ""},
		{"not yet expired", "short-lived", 0, 200, ""},
		{"expired", "short-lived", 2 * time.Hour, 401, "could not be verified"},
		{"revoked", "revoked", 0, 401, "has been revoked"},
		{"of a blocked account", "blocked", 0, 401, "has been revoked"},
		{"no token at all", "abc", 0, 401, "must have two dots"},
		{"not base64", "a b.c!.d", 0, 401, "Base64Url"},
		{"unsigned", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.", 0, 401, "missing the Signature part"},
		{"signed with another key", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.AAAA", 0, 401, "could not be verified"},
		{"no claims", "eyJhbGciOiJub25lIn0..AAAA", 0, 401, "missing the Claim part"},
		{"headers that are none", "MQ.eyJzdWIiOiIxIn0.AAAA", 0, 401, "headers must be an array"},
		{"claims that are no JSON", "eyJhbGciOiJub25lIn0.e30x.AAAA", 0, 401, "decoding from JSON"},
		{"bits to spare", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.AAB", 0, 401, "Base64Url"},
	} {
		s.Advance(c.advance)
		res, body := do(t, "POST", s.URL+"/jsonrpc", whoami, "Authorization", "Bearer "+c.token)
		must.Expect(t, res.StatusCode == c.status && strings.Contains(res.Header.Get("WWW-Authenticate"), c.challenge),
			"%s: %d %q %s, want %d with %q", c.name, res.StatusCode, res.Header.Get("WWW-Authenticate"), body, c.status, c.challenge)
	}
}

func TestTokenEndpoint(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	form := func(values ...string) (int, map[string]any) {
		v := url.Values{"grant_type": {"client_credentials"}, "client_id": {"agent"}, "client_secret": {"agent-pass"}}
		for i := 0; i < len(values); i += 2 {
			v.Set(values[i], values[i+1])
		}
		res, body := do(t, "POST", s.URL+"/oauth/token", v.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		var doc map[string]any
		err := json.Unmarshal([]byte(body), &doc)
		must.Assert(t, err == nil, "%s: %v", body, err)
		return res.StatusCode, doc
	}
	for _, c := range []struct {
		name, key, value string
		status           int
		code             string
	}{
		{"wrong secret", "client_secret", "x", 401, "invalid_client"},
		{"unknown client", "client_id", "nobody", 401, "invalid_client"},
		{"blocked client", "client_id", "blocked", 401, "invalid_client"},
		{"other grant", "grant_type", "password", 400, "unsupported_grant_type"},
		{"unknown scope", "scope", "role_king", 400, "invalid_scope"},
	} {
		status, doc := form(c.key, c.value)
		must.Expect(t, status == c.status && doc["error"] == c.code, "%s: %d %v, want %d %s", c.name, status, doc, c.status, c.code)
	}
	status, doc := form("scope", "role_agent")
	token, _ := doc["access_token"].(string)
	must.Assert(t, status == 200 && token != "" && doc["token_type"] == "Bearer", "token: %d %v", status, doc)
	use := func() (int, string) {
		res, body := do(t, "POST", s.URL+"/jsonrpc", whoami, "Authorization", "Bearer "+token)
		return res.StatusCode, body + res.Header.Get("WWW-Authenticate")
	}
	if status, body := use(); status != 200 || !strings.Contains(body, `"name":"agent"`) {
		t.Errorf("with the token: %d %s", status, body)
	}
	for _, path := range []string{"/oauth/jwks", "/.well-known/oauth-authorization-server"} {
		res, body := do(t, "GET", s.URL+path, "")
		must.Expect(t, res.StatusCode == 200 && json.Valid([]byte(body)), "%s: %d %s", path, res.StatusCode, body)
	}
	s.Advance(time.Hour)
	status, body := use()
	must.Expect(t, status == 401 && strings.Contains(body, "could not be verified"), "an hour later: %d %s", status, body)
	s.Advance(-time.Hour)
	do(t, "POST", s.URL+"/oauth/revoke", "token="+token)
	status, body = use()
	must.Expect(t, status == 401 && strings.Contains(body, "revoked"), "revoked: %d %s", status, body)
}

func TestFloodControlLocksAnAccount(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{Flood: true})
	try := func(user, password string) int {
		r, _ := http.NewRequest("POST", s.URL+"/jsonrpc", strings.NewReader(whoami))
		r.SetBasicAuth(user, password)
		res := must.Get(http.DefaultClient.Do(r))(t)
		res.Body.Close()
		return res.StatusCode
	}
	for range 5 {
		status := try("agent", "wrong")
		must.Assert(t, status == 403, "wrong password: %d, want 403", status)
	}
	must.Equal(t, try("agent", "agent-pass"), 403, "the right password after five failures")
	must.Equal(t, try("admin", "admin-pass"), 200, "another account")
	s.Advance(7 * time.Hour)
	must.Equal(t, try("agent", "agent-pass"), 200, "after the window")
	for range 50 {
		try("nobody", "wrong")
	}
	must.Equal(t, try("admin", "admin-pass"), 403, "after 50 failures of the address")
	s.Advance(time.Hour)
	must.Equal(t, try("admin", "admin-pass"), 200, "an hour later")
	for range 5 {
		try("agent", "wrong")
	}
	s.SetFlood(false)
	must.Equal(t, try("agent", "agent-pass"), 200, "with flood control off")
}
