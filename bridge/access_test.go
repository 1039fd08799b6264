package bridge_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
)

func TestCallersAreWhatTheSiteSaysTheyAre(t *testing.T) {
	s := newSite(t, echo)
	s.list = func(w http.ResponseWriter, r *http.Request) {
		switch user, _, _ := r.BasicAuth(); user {
		case "":
			w.Header().Set("WWW-Authenticate", `Basic realm="The site"`)
			w.WriteHeader(401)
			io.WriteString(w, "<html>canary</html>")
		case "norpc":
			w.WriteHeader(403)
		case "outsider":
			io.WriteString(w, `{"data":[`+echo+`],"meta":{"mcp":{"discovery":false}}}`)
		default:
			io.WriteString(w, `{"data":[`+echo+`],"meta":{"mcp":{"discovery":true}}}`)
		}
	}
	front := start(t, s)
	for _, c := range []struct {
		user             string
		list, desc, call int
	}{{"agent", 200, 200, 200}, {"outsider", 403, 403, 200}, {"norpc", 403, 403, 403}, {"", 401, 401, 401}} {
		l := list(t, front, c.user)
		d := send(t, front, c.user, "GET", "/mcp/tools/describe?name=content.echo", "")
		i := call(t, front, c.user, "content.echo", "{}")
		if l.Status != c.list || d.Status != c.desc || i.Status != c.call {
			t.Errorf("%q: list %d, describe %d, invoke %d; want %v", c.user, l.Status, d.Status, i.Status, c)
		}
		if c.list != 200 && strings.Contains(l.Body+d.Body, "content.echo") {
			t.Errorf("%q receives a tool's name: %s", c.user, l.Body)
		}
		if c.list == 401 && l.Header.Get("WWW-Authenticate") != `Basic realm="The site"` {
			t.Errorf("challenge %q", l.Header.Get("WWW-Authenticate"))
		}
	}
	// Permission comes before shape.
	if r := send(t, front, "norpc", "POST", "/mcp/tools/invoke", "{"); r.Status != 403 {
		t.Errorf("a broken body of a caller without permission: %d", r.Status)
	}
}

func TestOnlyListedCredentialsGoOn(t *testing.T) {
	s := newSite(t, echo)
	front := start(t, s)
	for _, scheme := range []string{"Digest username=x", "Negotiate abc", "token", ""} {
		before := s.discoveries.Load()
		r := send(t, front, "", "GET", "/mcp/tools/list", "", "Authorization", scheme)
		if scheme != "" && (r.Status != 401 || r.Header.Get("WWW-Authenticate") == "" || s.discoveries.Load() != before) {
			t.Errorf("%q: %d %v", scheme, r.Status, r.Header)
		}
	}
	if r := send(t, front, "", "GET", "/mcp/tools/list", "", "Authorization", "Bearer abc"); r.Status != 200 {
		t.Errorf("bearer: %d", r.Status)
	}
	s.change(func() {
		if s.lastAuth != "Bearer abc" {
			t.Errorf("the site got %q", s.lastAuth)
		}
	})
}

func TestServiceAccountNeedsAFrontEndToken(t *testing.T) {
	s := newSite(t, echo)
	front := start(t, s, func(o *bridge.Options) {
		o.ServiceUser, o.ServicePassword, o.ServiceTokens = "service", "canary-pass", []caller.Secret{"front"}
	})
	for auth, want := range map[string]int{"Bearer front": 200, "Bearer other": 401, "": 401, "Basic c2VydmljZTpjYW5hcnktcGFzcw==": 401} {
		r := send(t, front, "", "GET", "/mcp/tools/list", "", "Authorization", auth)
		if r.Status != want {
			t.Errorf("%q: %d, want %d", auth, r.Status, want)
		}
	}
	s.change(func() {
		if !strings.HasPrefix(s.lastAuth, "Basic ") {
			t.Errorf("the site got %q, want the account's own credential", s.lastAuth)
		}
	})
	if r := send(t, front, "", "POST", "/mcp/admin/invalidate", "", "Authorization", "Bearer front"); r.Status != 403 {
		t.Errorf("a front-end token administers the bridge: %d", r.Status)
	}
}

func TestAdministration(t *testing.T) {
	s := newSite(t, echo)
	s.list = func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		extra := ""
		if user == "admin" {
			extra = `,{"id":"cache.rebuild","attributes":{}},{"id":"bad","attributes":{"mcpTool":{},"params":{"p":{"schema":{"$ref":"http://x/"}}}}}`
		}
		io.WriteString(w, `{"data":[`+echo+extra+`],"meta":{"mcp":{"discovery":true}}}`)
	}
	front := start(t, s, func(o *bridge.Options) { o.AdminTokens = []caller.Secret{"operator"} })
	list(t, front, "admin")
	before := s.discoveries.Load()
	list(t, front, "admin")
	if s.discoveries.Load() != before {
		t.Fatal("the list is not remembered")
	}
	for who, want := range map[string]int{"agent": 403, "": 401, "admin": 200} {
		user := who
		if r := send(t, front, user, "POST", "/mcp/admin/invalidate", ""); r.Status != want && !(who == "" && r.Status == 403) {
			t.Errorf("%q invalidates: %d, want %d", who, r.Status, want)
		}
	}
	if r := send(t, front, "", "POST", "/mcp/admin/invalidate", "", "Authorization", "Bearer operator"); r.Status != 200 {
		t.Errorf("an operator's token: %d", r.Status)
	}
	before = s.discoveries.Load()
	list(t, front, "admin")
	if s.discoveries.Load() != before+1 {
		t.Error("after the invalidation the site was not asked")
	}
	if r := send(t, front, "admin", "GET", "/mcp/admin/diagnostics", ""); r.Status != 200 || !strings.Contains(r.Body, `"method":"bad"`) || !strings.Contains(r.Body, `"quarantined":true`) {
		t.Errorf("diagnostics: %d %s", r.Status, r.Body)
	}
}

func TestSessionCookiesAreGuardedAgainstOtherSites(t *testing.T) {
	front := start(t, newSite(t, echo), func(o *bridge.Options) { o.Credentials = []caller.Scheme{caller.Cookie} })
	const body = `{"name":"content.echo","arguments":{}}`
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"same origin":     {[]string{"Origin", front.URL}, 200},
		"no origin":       {nil, 200},
		"other origin":    {[]string{"Origin", "http://evil.example"}, 403},
		"with a token":    {[]string{"Origin", "http://evil.example", "X-CSRF-Token", "t"}, 403},
		"no content type": {[]string{"Content-Type", ""}, 415},
		"a form":          {[]string{"Content-Type", "text/plain"}, 415},
	} {
		r := send(t, front, "", "POST", "/mcp/tools/invoke", body, append(c.headers, "Cookie", "x=1; SESSabc=def")...)
		if r.Status != c.status {
			t.Errorf("%s: %d %s, want %d", name, r.Status, r.Body, c.status)
		}
	}
}
