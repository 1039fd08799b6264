package login

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// person logs in as agent at an address, without a browser.
func person(t *testing.T) func(string) {
	return func(address string) {
		form := url.Values{"account": {"agent"}, "password": {"agent-pass"}, "decision": {"allow"}}
		if page, code, device := strings.Cut(address, " and type in the code "); device {
			address = page
			form.Set("user_code", code)
		}
		go func() {
			resp, err := http.PostForm(address, form)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			must.Expect(t, resp.StatusCode == http.StatusOK, "the login ends with %d", resp.StatusCode)
		}()
	}
}

// bed starts a bridge behind OAuth, with changes of its responses.
func bed(t *testing.T, change func(r *http.Request, w *httptest.ResponseRecorder)) (*testbed.Testbed, Options) {
	t.Helper()
	b := must.Get(testbed.Start(testbed.Options{Profile: testbed.OAuth, Middleware: func(_ testbed.Backends, bridge http.Handler) http.Handler {
		if change == nil {
			return bridge
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			bridge.ServeHTTP(rec, r)
			rec.Header().Del("Content-Length")
			change(r, rec)
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			w.Write(rec.Body.Bytes()) //nolint:errcheck // the client has gone
		})
	}}))(t)
	t.Cleanup(b.Close)
	return b, Options{Resource: b.URL + "/mcp", Show: person(t)}
}

// broken are the faults that Diagnose finds in steps.
func broken(steps []Step) []string {
	var all []string
	for _, s := range steps {
		if s.State == Fails || s.State == Warns {
			all = append(all, s.Fault)
		}
	}
	return all
}

func TestACorrectServerPassesEveryLayer(t *testing.T) {
	b, o := bed(t, nil)
	document := ""                                                                                                        // of a client whose id is its address
	host := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, document) })) //nolint:errcheck // a test
	document = `{"client_id": "` + host.URL + `/client", "redirect_uris": ["http://127.0.0.1/callback"]}`
	for name, change := range map[string]func(*Options){
		"registers": func(*Options) {},
		"a device":  func(o *Options) { o.Device = true },
		"client id": func(o *Options) { o.ClientID = host.URL + "/client" },
		"issuer":    func(o *Options) { o.Issuer = b.Authority.URL },
		"scopes":    func(o *Options) { o.Scope = "content:read content:write" },
		"a person waits": func(o *Options) {
			show := o.Show
			o.Show = func(a string) { time.Sleep(50 * time.Millisecond); show(a) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Show = person(t)
			change(&o)
			steps := New(o).Diagnose(t.Context(), true)
			for i, s := range steps {
				must.Expect(t, s.State == OK || o.Device && s.Layer == atPKCE && s.State == Skipped, "%+v", s)
				must.Expect(t, slices.Contains(Layers, s.Layer) && i < len(Layers),
					"the layer %q is not of the list, or seen twice", s.Layer)
			}
			must.Expect(t, len(steps) == len(Layers), "%d steps, expected %d", len(steps), len(Layers))
		})
	}
	steps := New(o).Diagnose(t.Context(), false)
	must.Expect(t, broken(steps) == nil && steps[len(steps)-1].Saw == "it needs a person: --login", "without a person: %+v", steps)
	o.ClientID, o.ClientSecret, o.Issuer = "registered", "the-secret", b.Authority.URL
	must.Expect(t, broken(New(o).Diagnose(t.Context(), false)) == nil, "the secret may go to the issuer that is named")
}

// Each misconfiguration is named, alone.
func TestEveryMisconfigurationIsNamed(t *testing.T) {
	mcp := func(change func(r *http.Request, w *httptest.ResponseRecorder)) func(*http.Request, *httptest.ResponseRecorder) {
		return func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.URL.Path == "/mcp" && w.Code == http.StatusUnauthorized {
				change(r, w)
			}
		}
	}
	metadata := func(change func(w *httptest.ResponseRecorder, document map[string]any)) func(*http.Request, *httptest.ResponseRecorder) {
		return func(r *http.Request, w *httptest.ResponseRecorder) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") && w.Code == http.StatusOK {
				var document map[string]any
				if json.Unmarshal(w.Body.Bytes(), &document) == nil {
					change(w, document)
					w.Body.Reset()
					json.NewEncoder(w.Body).Encode(document) //nolint:errcheck // a map of texts
				}
			}
		}
	}
	for want, row := range map[string]struct {
		bridge func(*http.Request, *httptest.ResponseRecorder)
		server authserver.Misbehaviour
		change func(*Options)
	}{
		"no-401": {bridge: mcp(func(_ *http.Request, w *httptest.ResponseRecorder) { w.Code = http.StatusForbidden })},
		"no-challenge": {bridge: mcp(func(_ *http.Request, w *httptest.ResponseRecorder) {
			w.Header().Set("WWW-Authenticate", "Basic realm=x")
		})},
		"no-metadata-address": {bridge: mcp(func(_ *http.Request, w *httptest.ResponseRecorder) { w.Header().Set("WWW-Authenticate", "Bearer") })},
		"no-resource-metadata": {bridge: func(r *http.Request, w *httptest.ResponseRecorder) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				w.Code = http.StatusNotFound
			}
		}},
		"resource-metadata-unclear": {bridge: func(r *http.Request, w *httptest.ResponseRecorder) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), "{", `{"authorization_servers":["https://attacker.example"],`, 1))
			}
		}},
		"other-resource":          {bridge: metadata(func(_ *httptest.ResponseRecorder, d map[string]any) { d["resource"] = "https://bridge.example/mcp" })},
		"no-authorization-server": {bridge: metadata(func(_ *httptest.ResponseRecorder, d map[string]any) { d["authorization_servers"] = []string{} })},
		"no-server-metadata":      {server: authserver.NoMetadata},
		"server-metadata-unclear": {server: authserver.MetadataTwice},
		"other-issuer":            {server: authserver.OtherIssuer},
		"no-pkce":                 {server: authserver.NoPKCE},
		"no-registration":         {server: authserver.NoRegistration},
		"registration-refused":    {server: authserver.RefusesClients},
		"client-id-not-taken":     {server: authserver.NoRegistration, change: func(o *Options) { o.ClientID = "https://client.example/id" }},
		"issuer-not-listed":       {change: func(o *Options) { o.Issuer = "https://auth.example" }},
		"secret-without-issuer":   {change: func(o *Options) { o.ClientID, o.ClientSecret, o.Device = "registered", "the-secret", true }},
		"login-refused":           {server: authserver.RefusesLogins},
		"other-state":             {server: authserver.OtherState},
		"other-responder":         {server: authserver.OtherResponder},
		"token-refused":           {server: authserver.NoTokens},
		"other-token-type":        {server: authserver.OtherTokenType},
		"other-audience":          {server: authserver.OtherAudience},
		"token-not-accepted":      {server: authserver.ForeignKey},
		"fewer-scopes":            {server: authserver.FewerScopes, change: func(o *Options) { o.Scope = "content:read" }},
		"insufficient-scope": {bridge: func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.URL.Path == "/mcp" && r.Header.Get("Authorization") != "" {
				w.Code = http.StatusForbidden
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="content:read"`)
			}
		}},
		"no-refresh-token":       {server: authserver.NoRefresh},
		"refresh-refused":        {server: authserver.RefusesRefresh},
		"refreshed-not-accepted": {server: authserver.RefreshesElsewhere},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b, o := bed(t, row.bridge)
			b.Authority.Misbehave(row.server)
			if row.change != nil {
				row.change(&o)
			}
			steps := New(o).Diagnose(t.Context(), true)
			got := broken(steps)
			must.Assert(t, slices.Equal(got, []string{want}), "the faults are %q: %+v", got, steps)
			for _, s := range steps {
				must.Expect(t, s.Fault != want || s.Clause != "" && s.Remedy != "" && s.Saw != "" && s.Layer == faults[want].layer,
					"the step is not complete: %+v", s)
			}
		})
	}
}

// Every fault of the table is complete, and its clause is one of the contract or a section of a standard.
func TestFaultsAreComplete(t *testing.T) {
	for name, f := range faults {
		s := f.step(name, Fails, "x")
		must.Expect(t, s.Remedy != "" && slices.Contains(Layers, s.Layer), "%s: %+v", name, s)
	}
}

func TestNoStepShowsASecret(t *testing.T) {
	_, o := bed(t, func(r *http.Request, w *httptest.ResponseRecorder) { // a bridge that repeats the token
		if sent := r.Header.Get("Authorization"); sent != "" {
			w.Code = http.StatusUnauthorized
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+sent+`"`)
		}
	})
	steps := New(o).Diagnose(t.Context(), true)
	must.Assert(t, broken(steps)[0] == "token-not-accepted", "%+v", steps)
	shown, err := json.Marshal(steps)
	must.Expect(t, err == nil && !strings.Contains(string(shown), "eyJ") && strings.Contains(string(shown), "[redacted]"), "%s %v", shown, err)
}

func TestAddresses(t *testing.T) {
	for given, want := range map[string]string{
		"https://drupal.example": "https://drupal.example/mcp", "https://drupal.example/": "https://drupal.example/mcp",
		"https://drupal.example/tools/mcp": "https://drupal.example/tools/mcp", "http://127.0.0.1:8081/mcp": "http://127.0.0.1:8081/mcp", "http://localhost": "http://localhost/mcp",
	} {
		got, err := Address(given)
		must.Expect(t, err == nil && got == want, "%s: %s %v", given, got, err)
	}
	for _, given := range []string{"drupal.example", "ftp://drupal.example", "http://drupal.example/mcp", "https://a:b@drupal.example/mcp", "https://drupal.example/mcp?x=1", "http://127.0.0.1.example/mcp"} {
		must.Refuse(Address(given))(t, "", given)
	}
}

// A person logs in by the page of the authorization server, in a browser.
func TestLoginInABrowser(t *testing.T) {
	parent := chrome.Start(t)
	for _, device := range []bool{false, true} {
		_, o := bed(t, nil)
		shown := make(chan string, 1)
		o.Device, o.Show = device, func(address string) { shown <- address }
		done := make(chan error, 1)
		go func() {
			got, err := New(o).LogIn(t.Context())
			must.Expect(t, err != nil || got.Access != "" && got.Refresh != "", "the token lacks a part")
			done <- err
		}()
		address, code, _ := strings.Cut(<-shown, " and type in the code ")
		b := chrome.OpenAnywhere(t, parent, address, 390, 700)
		if device {
			b.Run(chromedp.SendKeys(`[name=user_code]`, code))
		}
		b.Run(chromedp.SendKeys(`[name=account]`, "agent"), chromedp.SendKeys(`[name=password]`, "wrong"), chromedp.Click(`[value=allow]`), chromedp.WaitReady(`[role=alert]`))
		if device {
			b.Run(chromedp.SetValue(`[name=user_code]`, code))
		}
		b.Run(chromedp.SendKeys(`[name=account]`, "agent"), chromedp.SendKeys(`[name=password]`, "agent-pass"), chromedp.Click(`[value=allow]`))
		err := <-done
		must.Expect(t, err == nil, "%v", err)
		b.Run(chromedp.WaitReady(`body:not(:has(form)) p`))
	}
}

func TestATokenIsKeptAndRenewed(t *testing.T) {
	b, o := bed(t, nil)
	store := t.TempDir() + "/config/logins.json"
	warn := func(err error) { t.Error(err) }
	first := must.Get(Open(t.Context(), o, "agent", store, warn))(t)
	if info, err := os.Stat(store); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the tokens: %v %v", info, err)
	}
	o.Show = func(string) { t.Error("a person is asked again") }
	again, err := Open(t.Context(), o, "agent", store, warn)
	must.Assert(t, err == nil && again.Token(t.Context()) == first.Token(t.Context()), "the token that was kept is not used: %v", err)
	b.Advance(3 * time.Hour)
	renewed, err := Open(t.Context(), o, "agent", store, warn)
	must.Assert(t, err == nil && renewed.Token(t.Context()) != first.Token(t.Context()), "the expired token is not renewed: %v", err)
	before := renewed.Token(t.Context())
	renewed.renewAt = time.Now().Add(-time.Second) // during a run
	after := renewed.Token(t.Context())
	must.Expect(t, after != before && after == renewed.Token(t.Context()), "the token is not renewed in use, or each time")

	// Where it is not renewed, the run goes on with the old one and says so once; a person is asked again.
	b.Authority.Misbehave(authserver.RefusesRefresh)
	var warned []string
	renewed.warn = func(err error) { warned = append(warned, err.Error()) }
	renewed.renewAt = time.Now().Add(-time.Second)
	if before = renewed.Token(t.Context()); before != renewed.Token(t.Context()) || len(warned) != 1 || !strings.Contains(warned[0], "the token of agent is not renewed") {
		t.Errorf("warned %q", warned)
	}
	b.Advance(3 * time.Hour)
	asked := false
	o.Show = func(address string) { asked = true; person(t)(address) }
	_, err = Open(t.Context(), o, "agent", store, warn)
	must.Expect(t, err == nil && asked, "asked %t: %v", asked, err)

	// Another resource, another caller and another issuer get none of it.
	data := must.Get(os.ReadFile(store))(t)
	other, o2 := bed(t, nil)
	moved := strings.ReplaceAll(string(data), o.Resource, o2.Resource)
	must.Do(t, os.WriteFile(store, []byte(moved), 0o600))
	asked = false
	o2.Show = func(address string) { asked = true; person(t)(address) }
	_, err = Open(t.Context(), o2, "agent", store, warn)
	must.Expect(t, err == nil && asked && other.Authority.Requests(authserver.TokenPath) == 1, "asked %t: %v", asked, err)
	must.Do(t, os.Chmod(store, 0o640))
	must.Refuse(Open(t.Context(), o2, "agent", store, warn))(t, "chmod 600", "a file that others may read")
}

func FuzzAudienceOf(f *testing.F) {
	for _, payload := range []string{`{"aud":"https://a.example/mcp"}`, `{"aud":["a","b"]}`, `{"aud":"a","aud":"b"}`, `{`, `[]`} {
		f.Add("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".x")
	}
	f.Fuzz(func(t *testing.T, token string) {
		aud, known := audienceOf(token)
		must.Expect(t, known || len(aud) == 0 || strings.Count(token, ".") == 2, "%q has the audience %q", token, aud)
	})
}

// Whatever the bridge and the authorization server say, tokens go to secure addresses, and what is sent as a token is one.
func FuzzDocuments(f *testing.F) {
	var document []byte
	var challenge string
	server := must.Serve(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(bytes.ReplaceAll(document, []byte("HERE"), []byte("http://"+r.Host))) //nolint:errcheck // it shows below
	}))
	f.Add("Bearer", []byte(`{"resource":"HERE/mcp","authorization_servers":["HERE"],"issuer":"HERE","authorization_endpoint":"HERE/a","token_endpoint":"HERE/t",
		"code_challenge_methods_supported":["S256"],"access_token":"t","token_type":"bearer","expires_in":1e9,"refresh_token":"r","scope":"a"}`))
	f.Add(`Bearer resource_metadata="http://127.0.0.1:1/x", scope="a b"`, []byte(`{"resource":"HERE/mcp","authorization_servers":[1]}`))
	f.Fuzz(func(t *testing.T, said string, sent []byte) {
		challenge, document = said, sent
		flow := New(Options{Resource: server.URL + "/mcp", Timeout: time.Second, Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) { // whatever host is named
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			},
		}})
		defer flow.Transport.CloseIdleConnections()
		if err := flow.discover(t.Context()); err != nil {
			return
		}
		must.Expect(t, secure(flow.server["token_endpoint"]) && secure(flow.issuer),
			"tokens would go to %v of %q", flow.server["token_endpoint"], flow.issuer)
		if token, err := flow.token(t.Context(), url.Values{}, "code"); err == nil && !plain(token.Access) {
			t.Errorf("the token is %q", token.Access)
		}
	})
}
