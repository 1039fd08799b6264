package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Token is what a login gives.
type Token struct {
	Access  string
	Refresh string    // "": none
	Expires time.Time // zero: not known
	scope   string
}

const (
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
	patience    = 5 * time.Minute // for a person
)

// LogIn asks a person to log in, and returns the token that the bridge accepted.
func (f *Flow) LogIn(ctx context.Context) (Token, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.discover(ctx); err != nil {
		return Token{}, err
	}
	got := f.authorize
	if f.Device {
		got = f.authorizeDevice
	}
	t, err := got(ctx)
	if err != nil {
		return Token{}, err
	}
	return t, f.accepted(ctx, t)
}

// Diagnose tries each layer. Where no person is to log in, it ends with the registration.
func (f *Flow) Diagnose(ctx context.Context, person bool) []Step {
	why := "an earlier step failed"
	if person {
		if t, err := f.LogIn(ctx); err == nil {
			_, _ = f.Renew(ctx, t)
		}
	} else if f.discover(ctx) == nil && f.register(ctx, "http://127.0.0.1/callback") == nil {
		why = "it needs a person: --login"
	}
	seen := map[string]bool{}
	for _, s := range f.Steps {
		seen[s.Layer] = true
	}
	for _, layer := range Layers {
		if !seen[layer] {
			f.note(Step{Layer: layer, State: Skipped, Saw: why})
		}
	}
	return f.Steps
}

// scopes are those to ask for.
func (f *Flow) scopes() string {
	wanted := strings.Fields(cmp.Or(f.Scope, f.asked))
	if slices.Contains(texts(f.server["scopes_supported"]), "offline_access") && !slices.Contains(wanted, "offline_access") {
		wanted = append(wanted, "offline_access")
	}
	return strings.Join(wanted, " ")
}

// authorize gets a token by an authorization code, which comes to an address on this machine.
func (f *Flow) authorize(ctx context.Context) (Token, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Token{}, fmt.Errorf("listen for the end of the login: %w", err)
	}
	came := make(chan url.Values, 1)
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/callback" || r.Method != http.MethodGet || r.Host != listener.Addr().String() {
			http.NotFound(w, r)
			return
		}
		select {
		case came <- r.URL.Query():
		default: // the first one counts
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		fmt.Fprint(w, `<!DOCTYPE html><html lang="en"><title>bridgecheck</title><link rel="icon" href="data:,"><p>The login is over: see the terminal. You can close this page.</p></html>`)
	})}
	go server.Serve(listener) //nolint:errcheck // it ends below
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the page is being sent
		defer cancel()
		server.Shutdown(end) //nolint:errcheck // nothing depends on it any more
	}()
	redirect := "http://" + listener.Addr().String() + "/callback"
	if err := f.register(ctx, redirect); err != nil {
		return Token{}, err
	}
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	f.secrets.Add(verifier)
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{"response_type": {"code"}, "client_id": {f.id}, "redirect_uri": {redirect}, "state": {state}, "resource": {f.Resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	if wanted := f.scopes(); wanted != "" {
		query.Set("scope", wanted)
	}
	address, _ := url.Parse(text(f.server["authorization_endpoint"]))
	maps.Copy(query, address.Query())
	address.RawQuery = query.Encode()
	f.Show(address.String())
	var back url.Values
	select {
	case back = <-came:
	case <-ctx.Done():
		return Token{}, f.fail("login-refused", "nobody logged in: %v", context.Cause(ctx))
	}
	promised := f.server["authorization_response_iss_parameter_supported"] == true
	switch {
	case back.Get("state") != state:
		return Token{}, f.fail("other-state", "the authorization response has another `state` than the request")
	case back.Has("iss") && back.Get("iss") != f.issuer, promised && !back.Has("iss"):
		return Token{}, f.fail("other-responder", "`iss` is %q in the authorization response, expected %s", back.Get("iss"), f.issuer)
	case back.Has("error"):
		return Token{}, f.fail("login-refused", "%s", exact.Cut(client.OneLine(back.Get("error")+" "+back.Get("error_description")), 200))
	case back.Get("code") == "":
		return Token{}, f.fail("login-refused", "the authorization response has no `code`")
	}
	f.secrets.Add(back.Get("code"))
	f.ok(atAuthorization, "rfc6749 4.1.2; rfc9207 2.4", "a code, with our state")
	return f.token(ctx, url.Values{"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "redirect_uri": {redirect}, "code_verifier": {verifier}}, "token")
}

// authorizeDevice gets a token while a person types a code into a browser elsewhere.
func (f *Flow) authorizeDevice(ctx context.Context) (Token, error) {
	if err := f.register(ctx, "http://127.0.0.1/callback"); err != nil {
		return Token{}, err
	}
	endpoint := text(f.server["device_authorization_endpoint"])
	if !secure(endpoint) {
		return Token{}, f.fail("no-device-endpoint", "`device_authorization_endpoint` is %s", exact.Short(f.server["device_authorization_endpoint"]))
	}
	form := url.Values{"resource": {f.Resource}}
	if wanted := f.scopes(); wanted != "" {
		form.Set("scope", wanted)
	}
	a := f.post(ctx, endpoint, form)
	v, unclear := a.JSON()
	object, _ := v.(map[string]any)
	code, page := text(object["device_code"]), text(object["verification_uri"])
	if a.Status != http.StatusOK || unclear != nil || code == "" || !secure(page) {
		return Token{}, f.fail("login-refused", "%s gives %s", endpoint, refusal(a))
	}
	f.secrets.Add(code)
	f.Show(page + " and type in the code " + text(object["user_code"]))
	wait := max(time.Second, seconds(object["interval"], 5*time.Second))
	for {
		if !sleep(ctx, wait) {
			return Token{}, f.fail("login-refused", "nobody logged in: %v", context.Cause(ctx))
		}
		form := url.Values{"grant_type": {deviceGrant}, "device_code": {code}}
		a := f.post(ctx, text(f.server["token_endpoint"]), form)
		v, _ := a.JSON()
		object, _ := v.(map[string]any)
		switch why := text(object["error"]); {
		case why == "authorization_pending", a.Status == 0 && ctx.Err() == nil:
		case why == "slow_down":
			wait += 5 * time.Second
		case why == "access_denied", why == "expired_token":
			return Token{}, f.fail("login-refused", "%s", refusal(a))
		default:
			f.ok(atAuthorization, "rfc8628 3.5", "a person typed the code in")
			return f.read(a, "token")
		}
	}
}

// post sends a form as the client that f is, with the resource (RFC 8707).
func (f *Flow) post(ctx context.Context, endpoint string, form url.Values) *client.Response {
	h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	form.Set("resource", f.Resource)
	switch {
	case f.secret != "" && f.inHeader:
		h.Set("Authorization", "Basic "+client.Basic(url.QueryEscape(f.id), url.QueryEscape(f.secret)))
	default:
		form.Set("client_id", f.id)
		if f.secret != "" {
			form.Set("client_secret", f.secret)
		}
	}
	return f.Send(ctx, client.Request{Method: http.MethodPost, Address: endpoint, Header: h, Body: strings.NewReader(form.Encode())})
}

func (f *Flow) token(ctx context.Context, form url.Values, layer string) (Token, error) {
	return f.read(f.post(ctx, text(f.server["token_endpoint"]), form), layer)
}

// read reads the response of the token endpoint: to a code, or to a refresh token.
func (f *Flow) read(a *client.Response, prefix string) (Token, error) {
	v, unclear := a.JSON()
	object, _ := v.(map[string]any)
	t := Token{Access: text(object["access_token"]), Refresh: text(object["refresh_token"])}
	f.secrets.Add(t.Access, t.Refresh)
	scope, named := object["scope"].(string)
	switch wanted := f.scopes(); {
	case a.Status != http.StatusOK:
		return t, f.fail(prefix+"-refused", "the token endpoint gives %s", refusal(a))
	case unclear != nil || !plain(t.Access):
		return t, f.fail("token-unclear", "the response has no `access_token` that can be read")
	case !strings.EqualFold(text(object["token_type"]), "bearer"):
		return t, f.fail("other-token-type", "`token_type` is %s", exact.Short(object["token_type"]))
	case named:
		t.scope = scope
	default:
		t.scope = wanted
	}
	if life := seconds(object["expires_in"], 0); life > 0 {
		t.Expires = time.Now().Add(life)
	}
	return t, nil
}

// plain reports whether a text can be a token in a header.
func plain(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func seconds(v any, otherwise time.Duration) time.Duration {
	number, _ := v.(json.Number)
	n, err := number.Int64()
	if err != nil || n <= 0 || n > 1<<31 {
		return otherwise
	}
	return time.Duration(n) * time.Second
}

// accepted sends the token to the bridge, and names what is wrong with it where the bridge refuses it.
func (f *Flow) accepted(ctx context.Context, t Token) error {
	f.ok(atToken, faults["token-refused"].clause, "a bearer token")
	wanted, granted := strings.Fields(f.scopes()), strings.Fields(t.scope)
	missing := slices.DeleteFunc(wanted, func(s string) bool { return s == "offline_access" || slices.Contains(granted, s) })
	a := f.show(ctx, t.Access)
	params := a.Bearer()
	shown := fmt.Sprintf("%d %s", a.Status, exact.Cut(params["error"]+" "+params["error_description"], 200))
	aud, known := audienceOf(t.Access)
	fits := !known || slices.Contains(aud, f.Resource)
	switch {
	case a.Status == http.StatusUnauthorized && !fits:
		return f.fail("other-audience", "the bridge refuses the token: `aud` is %q, expected %s", aud, f.Resource)
	case a.Status == http.StatusForbidden && params["error"] == "insufficient_scope":
		return f.fail("insufficient-scope", "the bridge requires the scopes %q, the token has %q", params["scope"], t.scope)
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return f.fail("token-not-accepted", "the bridge refuses the token: %s", shown)
	case a.Status == 0 || a.Status >= http.StatusInternalServerError:
		return f.fail("token-not-accepted", "the bridge neither accepts nor refuses the token: %s", a.Outcome())
	case !fits:
		f.note(faults["other-audience"].step("other-audience", Warns, fmt.Sprintf("the bridge accepts a token whose `aud` is %q; expected %s, unless its settings name another audience", aud, f.Resource)))
	default:
		f.ok(atAudience, "auth/right-token; auth/token-audience", fmt.Sprintf("the bridge accepts the token (%d)", a.Status))
	}
	if len(missing) > 0 {
		_ = f.fail("fewer-scopes", "asked for %q, the token lacks %q", f.scopes(), strings.Join(missing, " "))
	} else {
		f.ok(atScope, "rfc6749 3.3", cmp.Or(t.scope, "none were asked for"))
	}
	return nil
}

// show sends a token to the bridge. One that the bridge cannot check at once, as it fetches keys or is busy, is sent again.
func (f *Flow) show(ctx context.Context, token string) *client.Response {
	a := f.open(ctx, token)
	for range 3 {
		if pause, busy := a.Busy(); !busy && a.Status < http.StatusInternalServerError {
			break
		} else if !sleep(ctx, min(max(pause, time.Second), 5*time.Second)) {
			break
		}
		a = f.open(ctx, token)
	}
	return a
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// audienceOf is the `aud` of a token that is a JWT; false for one that is not, or that has none.
func audienceOf(token string) ([]string, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, false
	}
	v, err := exact.Parse(payload)
	claims, _ := v.(map[string]any)
	if one := text(claims["aud"]); one != "" {
		return []string{one}, err == nil
	}
	return texts(claims["aud"]), err == nil && claims["aud"] != nil
}

// Renew gets another token by the refresh token.
func (f *Flow) Renew(ctx context.Context, t Token) (Token, error) {
	if t.Refresh == "" {
		s := faults["no-refresh-token"].step("no-refresh-token", Warns, "the token endpoint gave no refresh token")
		return t, &Error{f.note(s)}
	}
	renewed, err := f.token(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}}, "refresh")
	if err != nil {
		return t, err
	}
	renewed.Refresh = cmp.Or(renewed.Refresh, t.Refresh)
	if a := f.show(ctx, renewed.Access); a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden || a.Status == 0 || a.Status >= http.StatusInternalServerError {
		return t, f.fail("refreshed-not-accepted", "the bridge refuses the refreshed token: %d", a.Status)
	}
	f.ok(atRefresh, "rfc6749 6", "another token, which the bridge accepts")
	return renewed, nil
}
