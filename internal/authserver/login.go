package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
)

// The ways in which the server fails when a person logs in.
const (
	NoMetadata         Misbehaviour = "no-metadata"         // 404 at both places
	MetadataTwice      Misbehaviour = "metadata-twice"      // the metadata name the token endpoint twice
	NoPKCE             Misbehaviour = "no-pkce"             // the metadata do not offer S256
	NoRegistration     Misbehaviour = "no-registration"     // neither registration nor client id metadata
	RefusesClients     Misbehaviour = "refuses-clients"     // registration gives 400
	RefusesLogins      Misbehaviour = "refuses-logins"      // every authorization ends with an error
	OtherState         Misbehaviour = "other-state"         // the authorization response has another state
	OtherResponder     Misbehaviour = "other-responder"     // the authorization response has another iss
	NoTokens           Misbehaviour = "no-tokens"           // 400 to every code
	OtherTokenType     Misbehaviour = "other-token-type"    // the type of tokens is mac
	OtherAudience      Misbehaviour = "other-audience"      // tokens are for another resource, whatever is asked
	ForeignKey         Misbehaviour = "foreign-key"         // tokens are signed by a key that is not published
	FewerScopes        Misbehaviour = "fewer-scopes"        // tokens lack the scopes that were asked for
	NoRefresh          Misbehaviour = "no-refresh"          // no refresh token
	RefusesRefresh     Misbehaviour = "refuses-refresh"     // 400 to every refresh token
	RefreshesElsewhere Misbehaviour = "refreshes-elsewhere" // a refreshed token is for another resource
)

const (
	registerPath         = "/register"
	deviceEndpointPath   = "/device_authorization"
	devicePath           = "/device"
	grantCode            = "authorization_code"
	grantRefresh         = "refresh_token"
	grantDevice          = "urn:ietf:params:oauth:grant-type:device_code"
	grantLife            = 10 * time.Minute
	refreshLife          = 24 * time.Hour
	maxClients           = 1000
	offAudience          = "https://other.example/mcp"
	deviceSecondsBetween = 1
)

// grant is what a person agrees to: the tokens that a client gets, and for what.
type grant struct {
	account, client, redirect, challenge, resource, scope string
	user                                                  string // code that the person types in, of a device
	decided, denied                                       bool   // by the person, of a device
	until                                                 time.Time
}

// logins are the clients that registered, and the grants under way by their codes.
type logins struct {
	clients                 map[string][]string // addresses to which a client may be sent back
	codes, refresh, devices map[string]*grant
}

func newLogins() logins {
	return logins{map[string][]string{}, map[string]*grant{}, map[string]*grant{}, map[string]*grant{}}
}

// keep stores a grant under a new code.
func (s *Server) keep(into map[string]*grant, g grant, life time.Duration) string {
	code := rand.Text()
	g.until = s.options.Now().Add(life)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(into, func(_ string, old *grant) bool { return s.options.Now().After(old.until) })
	into[code] = &g
	return code
}

// take gives a grant away, once.
func (s *Server) take(from map[string]*grant, code string) (grant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := from[code]
	delete(from, code)
	if !ok || s.options.Now().After(g.until) {
		return grant{}, false
	}
	return *g, true
}

// register takes a client (RFC 7591) that is sent back to this machine, or by https.
func (s *Server) register(w http.ResponseWriter, r *http.Request, fails Misbehaviour) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	document, parseErr := exact.Parse(data)
	redirects := redirectsOf(document)
	if err != nil || parseErr != nil || len(redirects) == 0 || fails == RefusesClients {
		write(w, http.StatusBadRequest, map[string]any{"error": "invalid_redirect_uri"})
		return
	}
	id := "client-" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= maxClients {
		write(w, http.StatusTooManyRequests, map[string]any{"error": "temporarily_unavailable"})
		return
	}
	s.clients[id] = redirects
	write(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": redirects, "token_endpoint_auth_method": "none",
		"grant_types": []string{grantCode, grantRefresh, grantDevice}, "response_types": []string{"code"}})
}

// redirectsOf are the addresses in the metadata of a client; nil where one of them is not allowed.
func redirectsOf(document any) []string {
	object, _ := document.(map[string]any)
	list, _ := object["redirect_uris"].([]any)
	var all []string
	for _, item := range list {
		text, _ := item.(string)
		u, err := url.Parse(text)
		if err != nil || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Hostname())) {
			return nil
		}
		all = append(all, text)
	}
	return all
}

// redirects are the addresses of a client: of one that registered, or in the document that its id is the address of.
func (s *Server) redirects(ctx context.Context, id string) []string {
	s.mu.Lock()
	known, ok := s.clients[id]
	s.mu.Unlock()
	u, err := url.Parse(id)
	if ok || err != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Hostname())) {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // a redirect is no document
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	document, parseErr := exact.Parse(data)
	object, _ := document.(map[string]any)
	if err != nil || parseErr != nil || resp.StatusCode != http.StatusOK || object["client_id"] != id {
		return nil
	}
	return redirectsOf(document)
}

// sameRedirect compares addresses; on loopback any port will do (RFC 8252 7.3).
func sameRedirect(registered, sent string) bool {
	a, errA := url.Parse(registered)
	b, errB := url.Parse(sent)
	if errA != nil || errB != nil {
		return false
	}
	if a.Scheme == "http" && loopback.Is(a.Hostname()) && a.Hostname() == b.Hostname() {
		b.Host = a.Host
	}
	return a.String() == b.String()
}

var page = template.Must(template.New("").Parse(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Log in</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><style>:root{color-scheme:light dark}body{font:1rem system-ui;max-width:26rem;margin:3rem auto;padding:0 1rem}
label{display:block;margin:.8rem 0}input{font:inherit;width:100%;box-sizing:border-box}button{font:inherit;padding:.3rem 1rem}</style>
<h1>{{.Title}}</h1>{{with .Wrong}}<p role="alert">{{.}}</p>{{end}}{{with .Text}}<p>{{.}}</p>{{end}}{{if .Form}}<form method="post">
{{range $name, $value := .Hidden}}<input type="hidden" name="{{$name}}" value="{{$value}}">{{end}}
{{if .Device}}<label>Code <input name="user_code" required value="{{.Code}}" autocomplete="off"></label>{{end}}
<label>Account <input name="account" autocomplete="username"></label><label>Password <input name="password" type="password" autocomplete="current-password"></label>
<button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></form>{{end}}</html>`))

type pageContent struct {
	Title, Text, Wrong string
	Form, Device       bool
	Code               string
	Hidden             map[string]string
}

func show(w http.ResponseWriter, status int, p pageContent) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	page.Execute(w, p) //nolint:errcheck // the browser has gone
}

// readForm reads the form of a request, or shows why it cannot.
func readForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	err := r.ParseForm()
	if err != nil {
		show(w, http.StatusBadRequest, pageContent{Title: "This form cannot be read"})
	}
	return err == nil
}

// asked are the parameters of an authorization request that the page sends again.
var asked = []string{"response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method", "resource", "scope"}

// authorize is the authorization endpoint: a page with a login, and back to the client with a code for S256.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, fails Misbehaviour) {
	if !readForm(w, r) {
		return
	}
	g := grant{client: r.Form.Get("client_id"), redirect: r.Form.Get("redirect_uri"), challenge: r.Form.Get("code_challenge"), resource: r.Form.Get("resource"), scope: r.Form.Get("scope")}
	back, err := url.Parse(g.redirect)
	if err != nil || !slices.ContainsFunc(s.redirects(r.Context(), g.client), func(registered string) bool { return sameRedirect(registered, g.redirect) }) {
		show(w, http.StatusBadRequest, pageContent{Title: "This client is not known, or not at that address"})
		return
	}
	result := url.Values{"state": {r.Form.Get("state")}, "iss": {s.URL}}
	switch fails {
	case OtherState:
		result.Set("state", rand.Text())
	case OtherResponder:
		result.Set("iss", "https://other.example")
	}
	send := func(name, value string) {
		result.Set(name, value)
		back.RawQuery = result.Encode()
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, back.String(), http.StatusSeeOther)
	}
	switch {
	case fails == RefusesLogins:
		send("error", "server_error")
	case r.Form.Get("response_type") != "code":
		send("error", "unsupported_response_type")
	case r.Form.Get("code_challenge_method") != "S256" || g.challenge == "":
		send("error", "invalid_request")
	case g.resource == "":
		send("error", "invalid_target")
	case r.PostForm.Get("decision") == "deny":
		send("error", "access_denied")
	case r.Method == http.MethodPost && s.logsIn(r, &g):
		send("code", s.keep(s.codes, g, grantLife))
	default:
		p := pageContent{Title: "Log in", Text: g.client + " wants to use " + g.resource + " as you.", Form: true, Hidden: map[string]string{}}
		if r.Method == http.MethodPost {
			p.Wrong = "The account or the password is wrong."
		}
		for _, name := range asked {
			p.Hidden[name] = r.Form.Get(name)
		}
		show(w, http.StatusOK, p)
	}
}

// logsIn reports whether a form has the right password, and notes whose.
func (s *Server) logsIn(r *http.Request, g *grant) bool {
	g.account = r.PostForm.Get("account")
	return s.options.Login != nil && s.options.Login(g.account, r.PostForm.Get("password"))
}

// startDevice is the device authorization endpoint (RFC 8628).
func (s *Server) startDevice(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil || r.PostForm.Get("client_id") == "" {
		write(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	user := rand.Text()[:4] + "-" + rand.Text()[:4]
	code := s.keep(s.devices, grant{client: r.PostForm.Get("client_id"), resource: r.PostForm.Get("resource"), scope: r.PostForm.Get("scope"), user: user}, grantLife)
	write(w, http.StatusOK, map[string]any{"device_code": code, "user_code": user, "verification_uri": s.URL + devicePath,
		"verification_uri_complete": s.URL + devicePath + "?user_code=" + user, "expires_in": int(grantLife / time.Second), "interval": deviceSecondsBetween})
}

// decideDevice is the page on which a person types in the code of a device.
func (s *Server) decideDevice(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r) {
		return
	}
	var login grant
	deny := r.PostForm.Get("decision") == "deny"
	if r.Method == http.MethodPost && (deny || s.logsIn(r, &login)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, g := range s.devices {
			if g.user == strings.ToUpper(strings.TrimSpace(r.PostForm.Get("user_code"))) && !g.decided {
				g.account, g.decided, g.denied = login.account, true, deny
				show(w, http.StatusOK, pageContent{Title: "Done", Text: "You can close this page."})
				return
			}
		}
	}
	p := pageContent{Title: "Log in a device", Form: true, Device: true, Code: r.Form.Get("user_code")}
	if r.Method == http.MethodPost {
		p.Wrong = "The code, the account or the password is wrong."
	}
	show(w, http.StatusOK, p)
}

// issueGranted is the token endpoint for what a person agreed to; false for other grants.
func (s *Server) issueGranted(w http.ResponseWriter, r *http.Request, fails Misbehaviour) bool {
	refuse := func(code string) { write(w, http.StatusBadRequest, map[string]any{"error": code}) }
	var g grant
	ok := false
	switch kind := r.PostForm.Get("grant_type"); kind {
	case grantCode:
		g, ok = s.take(s.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		ok = ok && fails != NoTokens && g.redirect == r.PostForm.Get("redirect_uri") && g.challenge == base64.RawURLEncoding.EncodeToString(sum[:])
	case grantRefresh:
		g, ok = s.take(s.refresh, r.PostForm.Get("refresh_token"))
		ok = ok && fails != RefusesRefresh
	case grantDevice:
		s.mu.Lock()
		pending := s.devices[r.PostForm.Get("device_code")]
		waits, denied := pending != nil && !pending.decided && s.options.Now().Before(pending.until), pending != nil && pending.denied
		s.mu.Unlock()
		switch {
		case waits:
			refuse("authorization_pending")
			return true
		case denied:
			refuse("access_denied")
			return true
		}
		g, ok = s.take(s.devices, r.PostForm.Get("device_code"))
	default:
		return false
	}
	resource := r.PostForm.Get("resource")
	switch id, _ := client(r); {
	case !ok || g.client != id:
		refuse("invalid_grant")
		return true
	case resource != "" && resource != g.resource:
		refuse("invalid_target")
		return true
	}
	g.redirect, g.challenge = "", ""
	token, life := Token{Claims: s.Claims(g.account, g.resource)}, Lifetime
	if s.options.Lifetime > 0 {
		life = s.options.Lifetime
		token.Claims["exp"] = s.options.Now().Add(life).Unix()
	}
	token.Claims["client_id"], token.Claims["scope"] = g.client, g.scope
	if g.scope == "" || fails == FewerScopes {
		delete(token.Claims, "scope")
	}
	if fails == OtherAudience || fails == RefreshesElsewhere && r.PostForm.Get("grant_type") == grantRefresh {
		token.Claims["aud"] = offAudience
	}
	if fails == ForeignKey {
		token.Key = (&Keys{}).take()
	}
	response := map[string]any{"access_token": s.Sign(token), "token_type": "Bearer", "expires_in": int(life / time.Second), "scope": token.Claims["scope"]}
	if fails == FewerScopes {
		response["scope"] = ""
	}
	if fails == OtherTokenType {
		response["token_type"] = "mac"
	}
	if fails != NoRefresh {
		response["refresh_token"] = s.keep(s.refresh, g, refreshLife)
	}
	write(w, http.StatusOK, without(response))
	return true
}

// loginMetadata are the members of the metadata by which people log in.
func (s *Server) loginMetadata(fails Misbehaviour) map[string]any {
	m := map[string]any{
		"authorization_endpoint": s.URL + authorizePath, "device_authorization_endpoint": s.URL + deviceEndpointPath, "registration_endpoint": s.URL + registerPath,
		"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"}, "authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported": true,
	}
	switch fails {
	case NoPKCE:
		m["code_challenge_methods_supported"] = []string{"plain"}
	case NoRegistration:
		m["registration_endpoint"], m["client_id_metadata_document_supported"] = nil, nil
	}
	return m
}

// twice writes a document that has a member again, with another value.
func twice(w http.ResponseWriter, document map[string]any) {
	data, err := json.Marshal(document)
	if err != nil {
		panic(err) // strings and lists of them
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append([]byte(`{"token_endpoint":"https://other.example/token",`), data[1:]...)) //nolint:errcheck // the client has gone
}
