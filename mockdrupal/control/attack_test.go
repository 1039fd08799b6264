package control_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
)

// attack is a request to the control plane as an attacker's web page, or a program, sends it.
type attack struct {
	name       string
	verb, path string
	header     http.Header // "Host" sets the request's host; OWN stands for the control plane's address
	body       string
	status     int // 2xx: a positive control
}

const aFault = `{"kind":"hang"}`

// attacks are sent to a control plane without a token, on this machine.
var attacks = []attack{
	{"a program's GET", "GET", "faults", nil, "", 200},
	{"a program's POST without an Origin", "POST", "faults", http.Header{"Content-Type": {"application/json"}}, aFault, 200},
	{"JSON with a charset", "POST", "faults", http.Header{"Content-Type": {"application/json; charset=utf-8"}}, aFault, 200},
	{"localhost", "GET", "faults", http.Header{"Host": {"localhost:1234"}}, "", 200},
	{"the loopback of IPv6", "GET", "faults", http.Header{"Host": {"[::1]:1234"}}, "", 200},
	{"a site file as YAML", "PUT", "site", http.Header{"Content-Type": {"application/yaml"}}, "title: X\n", 204},
	{"the own origin", "POST", "faults", http.Header{"Content-Type": {"application/json"}, "Origin": {"http://OWN"}, "Sec-Fetch-Site": {"same-origin"}}, aFault, 200},
	{"an address typed into a browser", "GET", "faults", http.Header{"Sec-Fetch-Site": {"none"}}, "", 200},

	{"DNS rebinding: a name that points here", "GET", "site", http.Header{"Host": {"rebound.attacker.example"}}, "", 403},
	{"DNS rebinding with a port and the own origin", "POST", "faults", http.Header{"Content-Type": {"application/json"}, "Host": {"rebound.attacker.example:8082"}, "Origin": {"http://rebound.attacker.example:8082"}}, aFault, 403},
	{"a name that begins like this machine's", "GET", "site", http.Header{"Host": {"localhost.attacker.example"}}, "", 403},
	{"a name that begins like an address", "GET", "site", http.Header{"Host": {"127.0.0.1.attacker.example"}}, "", 403},
	{"the address of another machine", "GET", "site", http.Header{"Host": {"192.0.2.1"}}, "", 403},
	{"another site's origin", "POST", "faults", http.Header{"Content-Type": {"application/json"}, "Origin": {"https://attacker.example"}}, aFault, 403},
	{"another port of this machine as origin", "POST", "faults", http.Header{"Content-Type": {"application/json"}, "Origin": {"http://127.0.0.1:1"}}, aFault, 403},
	{"an opaque origin", "POST", "faults", http.Header{"Content-Type": {"application/json"}, "Origin": {"null"}}, aFault, 403},
	{"two origins", "POST", "faults", http.Header{"Content-Type": {"application/json"}, "Origin": {"http://OWN", "https://attacker.example"}}, aFault, 403},
	{"an image of another site", "GET", "site", http.Header{"Sec-Fetch-Site": {"cross-site"}}, "", 403},
	{"a form as text/plain", "POST", "faults", http.Header{"Content-Type": {"text/plain"}}, aFault, 415},
	{"a form", "POST", "faults", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, aFault, 415},
	{"text/plain that mentions JSON", "POST", "faults", http.Header{"Content-Type": {"text/plain; application/json"}}, aFault, 415},
	{"no type", "POST", "faults", nil, aFault, 415},
	{"YAML in place of JSON", "POST", "faults", http.Header{"Content-Type": {"application/yaml"}}, aFault, 415},
	{"a site as text/plain", "PUT", "site", http.Header{"Content-Type": {"text/plain"}}, "title: X\n", 415},
}

// send sends an attack to a control plane's address.
func (a attack) send(t *testing.T, address string) *http.Response {
	t.Helper()
	r := must.Get(http.NewRequest(a.verb, "http://"+address+control.Prefix+a.path, strings.NewReader(a.body)))(t)
	for name, values := range a.header {
		for _, v := range values {
			r.Header.Add(name, strings.ReplaceAll(v, "OWN", address))
		}
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	res := must.Get(http.DefaultClient.Do(r))(t)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func listening(t *testing.T, token string) (*mockdrupal.Drupal, string) {
	t.Helper()
	d := must.Get(mockdrupal.New(&fixtures.Site{Title: "Small"}, mockdrupal.Options{}))(t)
	server, addr, err := d.ListenControl("127.0.0.1:0", token)
	must.Do(t, err)
	t.Cleanup(func() { server.Close() })
	return d, addr.String()
}

func TestWebPagesCannotUseTheControlPlane(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			d, address := listening(t, "")
			before := d.Site()
			res := a.send(t, address)
			body, _ := io.ReadAll(res.Body)
			must.Expect(t, res.StatusCode == a.status, "got %d %s, want %d", res.StatusCode, body, a.status)
			if a.status < 300 {
				return
			}
			must.Expect(t, d.Site() == before && len(d.Faults()) <= 0 && strings.Contains(string(body), `"error"`) && !strings.Contains(string(body), "Small"),
				"the attack changed or read the mock: %s", body)
		})
	}
}

// TestWithATokenANameIsAllowedAndPagesAreNot: in a compose file the mock has a name, and a page does not know the token.
func TestWithATokenANameIsAllowedAndPagesAreNot(t *testing.T) {
	_, address := listening(t, "s3cret")
	for _, a := range []attack{
		{"a name, with the token", "GET", "faults", http.Header{"Host": {"mock:8082"}, "Authorization": {"Bearer s3cret"}}, "", 200},
		{"a name, without the token", "GET", "faults", http.Header{"Host": {"mock:8082"}}, "", 401},
		{"another site's origin, with the token", "GET", "faults", http.Header{"Origin": {"https://attacker.example"}, "Authorization": {"Bearer s3cret"}}, "", 403},
		{"text/plain, with the token", "POST", "faults", http.Header{"Content-Type": {"text/plain"}, "Authorization": {"Bearer s3cret"}}, aFault, 415},
	} {
		res := a.send(t, address)
		must.Expect(t, res.StatusCode == a.status, "%s: got %d, want %d", a.name, res.StatusCode, a.status)
	}
}

func TestControlPlaneShowsNoCredential(t *testing.T) {
	s, c := remote(t)
	secrets := []string{"agent-pass", "YWdlbnQ6YWdlbnQtcGFzcw==", "agent-token", "the-session", "the-csrf", "role_agent-secret"}
	for _, header := range []http.Header{
		{"Authorization": {"Basic YWdlbnQ6YWdlbnQtcGFzcw=="}}, {"Authorization": {"Bearer agent-token"}},
		{"Cookie": {"SESSabc=the-session"}, "X-Csrf-Token": {"the-csrf"}},
	} {
		for path, body := range map[string]string{
			"/jsonrpc":                 `{"jsonrpc":"2.0","id":1,"method":"content.list"}`,
			"/user/login?_format=json": `{"name":"agent","pass":"agent-pass"}`,
			"/oauth/token":             "grant_type=client_credentials&client_id=agent&client_secret=agent-pass",
			"/oauth/revoke":            "token=agent-token",
			"/user/logout?token=the-session&access_token=agent-token": "",
		} {
			r := must.Get(http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body)))(t)
			r.Header = header.Clone()
			res := must.Get(http.DefaultClient.Do(r))(t)
			res.Body.Close()
		}
	}
	r := must.Get(http.NewRequest(http.MethodGet, s.URL+control.Prefix+"journal", nil))(t)
	r.Header.Set("Authorization", "Bearer s3cret")
	res := must.Get(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	shown := must.Get(io.ReadAll(res.Body))(t)
	for _, secret := range secrets {
		must.Expect(t, !strings.Contains(string(shown), secret), "the journal shows %q", secret)
	}
	page, err := c.Journal(t.Context(), journal.Filter{})
	must.Assert(t, err == nil && len(page.Entries) == 15 && page.Lost == 0,
		"%d entries, %d lost (%v); want 15 and none", len(page.Entries), page.Lost, err)
	for _, e := range page.Entries {
		must.Expect(t, e.Route != "jsonrpc" || strings.Contains(string(e.Body), "content.list"), "the body of a call is hidden: %s", e.Body)
		must.Expect(t, e.Route != "login" && e.Route != "token" || !strings.Contains(string(e.Body), "agent"),
			"the body with credentials is shown: %s", e.Body)
	}
}

// Whatever is at the address of a control plane, its client gives an error or a value.
func FuzzResponses(f *testing.F) {
	f.Add(uint16(0), []byte(`{"entries":[{"seq":1,"user":"a"}],"last":1}`))
	f.Add(uint16(0), []byte(`{"runs":1,"id":1}`))
	f.Add(uint16(0), []byte(`[{"id":1,"fault":{"kind":"status"}}]`))
	f.Add(uint16(200), []byte(`{"error":"x"}`))
	f.Add(uint16(200), []byte(`{"error":"`+strings.Repeat("x", 3000)+`"}`))
	f.Add(uint16(204), []byte("\x1b]0;t\a"))
	var status int
	var body []byte
	server := must.Serve(f, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write(body) //nolint:errcheck // it shows below
	}))
	c := must.Get(control.New(server.URL, ""))(f)
	f.Fuzz(func(t *testing.T, code uint16, sent []byte) {
		status, body = 200+int(code%400), sent
		_, siteErr := c.Site(t.Context())
		_, journalErr := c.Journal(t.Context(), journal.Filter{})
		_, runsErr := c.Runs(t.Context(), "x")
		_, faultsErr := c.Faults(t.Context())
		for _, err := range []error{siteErr, journalErr, runsErr, faultsErr} {
			must.Expect(t, err != nil || status < 400, "%d is no error", status)
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
	})
}
