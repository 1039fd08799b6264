package bridge_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// broadSite is a site on which the account sees two tools and everybody else one, and that notes who asked for what.
type broadSite struct {
	*site
	mu    sync.Mutex
	asked []string // user, and what for
}

func newBroadSite(t *testing.T) *broadSite {
	b := &broadSite{site: newSite(t)}
	note := func(r *http.Request, what string) string {
		user, _, _ := r.BasicAuth()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked = append(b.asked, user+" "+what)
		return user
	}
	b.list = func(w http.ResponseWriter, r *http.Request) {
		switch user := note(r, "methods"); user {
		case "":
			w.WriteHeader(401)
		case "norpc":
			w.WriteHeader(403)
		case "account":
			fmt.Fprintf(w, `{"data":[%s,%s,{"id":"cache.rebuild"}],"meta":{"mcp":{"discovery":true}}}`, echo, method("content.secret"))
		default:
			fmt.Fprintf(w, `{"data":[%s],"meta":{"mcp":{"discovery":%t}}}`, echo, user != "outsider")
		}
	}
	b.response = func(w http.ResponseWriter, r *http.Request, c rpc) {
		if note(r, c.Method); c.Method == "content.secret" {
			io.WriteString(w, `{"error":{"code":-32600,"message":"Invalid Request","data":"Access Denied"},"id":null}`)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":true}`, c.ID)
	}
	return b
}

// seen returns and forgets who asked for what.
func (b *broadSite) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

func broadly(o *bridge.Options) {
	o.Visibility, o.ServiceUser, o.ServicePassword = bridge.VisibilityBroad, "account", "canary-pass"
}

func TestOneAccountDiscoversForAll(t *testing.T) {
	s := newBroadSite(t)
	front := start(t, s.site, broadly)
	for user, want := range map[string]int{"agent": 200, "other": 200, "outsider": 403, "norpc": 403, "": 401} {
		l, d := list(t, front, user), send(t, front, user, "GET", "/mcp/tools/describe?name=content.secret", "")
		must.Expect(t, l.Status == want && d.Status == want && strings.Contains(l.Body+d.Body, "content.secret") == (want == 200),
			"%q: list %d, describe %d, want %d: %s", user, l.Status, d.Status, want, l.Body)
	}
	must.Equal(t, len(slices.DeleteFunc(s.seen(), func(a string) bool { return a != "account methods" })), 1, "requests of the account")

	denied := call(t, front, "agent", "content.secret", "{}")
	must.Expect(t, denied.Status == 403 && denied.Code() == "access_denied",
		"a tool that is shown and denied: %d %s", denied.Status, denied.Body)
	call(t, front, "outsider", "content.echo", "{}").expect(t, 200, "who may run and not discover")
	for _, asked := range s.seen() {
		must.Expect(t, !strings.HasPrefix(asked, "account"), "on behalf of a call: %s", asked)
	}
	r := send(t, front, "agent", "POST", "/mcp/admin/invalidate", "")
	must.Expect(t, r.Status == 403, "what the account may administer, a caller may: %d", r.Status)
}

func TestTheAccountsPasswordIsNoLoginForOthers(t *testing.T) {
	s := newBroadSite(t)
	front := start(t, s.site, broadly)
	if r := list(t, front, "account"); r.Status != 200 || !strings.Contains(r.Body, "content.secret") {
		t.Errorf("the account as a caller of its own: %d %s", r.Status, r.Body)
	}
	good := s.list
	s.change(func() {
		s.list = func(w http.ResponseWriter, r *http.Request) {
			if user, _, _ := r.BasicAuth(); user == "account" {
				w.WriteHeader(401)
				return
			}
			good(w, r)
		}
	})
	r := list(t, front, "agent")
	must.Expect(t, r.Status == 200, "with what is known: %d %s", r.Status, r.Body) // the account's last response still holds
	fresh := start(t, s.site, broadly)
	if r := list(t, fresh, "agent"); r.Status != 502 || r.Header.Get("WWW-Authenticate") != "" || !strings.Contains(r.Body, "service_password") {
		t.Errorf("an account that the site refuses: %d %v %s", r.Status, r.Header, r.Body)
	}
}

// Callers are asked about after permission_ttl, the account after discovery_ttl; what is shown is never older.
func TestTheAccountIsAskedLessOften(t *testing.T) {
	s := newBroadSite(t)
	c := &clock{}
	front := start(t, s.site, broadly, func(o *bridge.Options) { o.Now = c.now })
	for _, step := range []struct {
		after time.Duration
		user  string
		asked string
	}{
		{0, "agent", "[agent methods account methods]"},
		{30 * time.Second, "agent", "[]"},
		{31 * time.Second, "agent", "[agent methods]"},
		{200 * time.Second, "other", "[other methods]"},
		{40 * time.Second, "other", "[other methods account methods]"}, // 40 s after its own, 301 s after the account's
	} {
		c.advance(step.after)
		list(t, front, step.user)
		must.Equal(t, fmt.Sprint(s.seen()), step.asked, "requests, %s after %s", step.user, step.after)
	}
}

func TestLookUpsAreTheCallersOwn(t *testing.T) {
	const reference = `{"id":"content.create","attributes":{"usage":"u","params":{"type":{"schema":{"type":"entity_reference","settings":{"target_type":"node_type"}}}},"mcpTool":{}}}`
	s := newBroadSite(t)
	s.list = func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		visible := []string{reference}
		if user != "reader" {
			visible = append(visible, `{"id":"node_type.list","attributes":{}}`)
		}
		fmt.Fprintf(w, `{"data":[%s],"meta":{"mcp":{"discovery":true}}}`, strings.Join(visible, ","))
	}
	s.response = func(w http.ResponseWriter, r *http.Request, c rpc) {
		user, _, _ := r.BasicAuth()
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":[{"id":%q}]}`, c.ID, "of-"+user)
	}
	front := start(t, s.site, broadly)
	for user, want := range map[string]string{"agent": `"enum":["of-agent"]`, "editor": `"enum":["of-editor"]`, "reader": `{"type":"string"}`} {
		r := list(t, front, user)
		must.Expect(t, strings.Contains(r.Body, want), "%s: want %s in %s", user, want, r.Body)
	}
}

func TestTheAccountDescribesWhereSchemasAreLazy(t *testing.T) {
	s := newBroadSite(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/jsonrpc/methods/{id}", func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "account" {
			w.WriteHeader(403)
			return
		}
		fmt.Fprintf(w, `{"id":%q,"attributes":{"usage":"whole"}}`, r.PathValue("id"))
	})
	mux.Handle("/", s.site)
	s.Config.Handler = mux
	front := start(t, s.site, broadly, func(o *bridge.Options) { o.LazySchemas = true })
	r := list(t, front, "agent")
	must.Expect(t, r.Status == 200 && strings.Count(r.Body, "whole") == 2, "%d %s", r.Status, r.Body)
}

func TestWhatTheSiteContradictsIsAskedOfTheAccount(t *testing.T) {
	s := newBroadSite(t)
	front := start(t, s.site, broadly)
	list(t, front, "agent")
	s.change(func() {
		s.response = func(w http.ResponseWriter, r *http.Request, c rpc) {
			fmt.Fprintf(w, `{"id":%s,"error":{"code":-32601,"message":"Method Not Found"}}`, c.ID)
		}
	})
	s.seen()
	call(t, front, "agent", "content.echo", "{}").expect(t, 404, "the response")
	must.Equal(t, fmt.Sprint(s.seen()), "[agent methods account methods]", "requests, asked again")
}
