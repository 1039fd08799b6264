// Package authserver is an OAuth 2 authorization server for tests of a resource server: metadata (RFC 8414), keys (RFC
// 7517), a token endpoint, introspection (RFC 7662), logins of people by a page (RFC 6749 with PKCE, registration by RFC
// 7591 or by client id metadata, devices by RFC 8628), and tokens of any content, signed with any key. It publishes new
// keys, withdraws old ones and misbehaves on demand. It keeps no users, and decides nothing about the resource server.
//
// Its invariant: what it serves is what the last call of Rotate, Retire or Misbehave says, from the next request on.
//
// A test asks Issue or Sign for a token; the resource server under test reads the metadata and the keys over HTTP. Account
// is for a site behind it, which trusts the same server.
package authserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Lifetime is how long the tokens of Issue and of the token endpoint are valid.
const Lifetime = 2 * time.Hour

// The client that may exchange tokens and ask about them: the bridge under test.
const (
	Client       = "bridge"
	ClientSecret = "bridge-secret"
)

// grantExchange is the grant of RFC 8693.
const grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

// The paths of the server.
const (
	MetadataPath = "/.well-known/oauth-authorization-server"
	OpenIDPath   = "/.well-known/openid-configuration" // the same document, at OpenID Connect's older place
	KeysPath     = "/jwks"
	TokenPath    = "/token"

	authorizePath  = "/authorize"
	introspectPath = "/introspect"
)

// Misbehaviour is a way in which the server fails.
type Misbehaviour string

// The ways in which the server fails.
const (
	None        Misbehaviour = ""
	Down        Misbehaviour = "down"         // 503 to every request
	Hangs       Misbehaviour = "hangs"        // no response to any request
	NoExchange  Misbehaviour = "no-exchange"  // every exchange of a token is refused
	OtherIssuer Misbehaviour = "other-issuer" // the metadata name another issuer, see NameOtherIssuer
)

// Options are the settings of a server. The zero value has the wall clock and no logins.
type Options struct {
	Now   func() time.Time                  // nil: the wall clock
	Login func(account, secret string) bool // who gets a token from the token endpoint, and who may log in; nil: nobody
	Keys  *Keys                             // where its keys and those of its strangers come from; nil: from no other server

	Lifetime time.Duration // of the tokens of people who log in; 0: the constant
}

// Server is an authorization server that listens. It is safe for use by many goroutines.
type Server struct {
	URL string // of the server, which is also the issuer of its tokens

	options Options
	server  *http.Server
	closed  chan struct{}

	mu        sync.Mutex
	made      []*Key // all of its own
	keys      []*Key // published; the last one signs
	retired   []*Key
	fails     Misbehaviour
	changed   chan struct{} // closed when fails changes
	rogueKeys string        // the jwks_uri of the metadata while they name another issuer
	requests  map[string]int
	logins
}

// Listen starts a server at an address such as 127.0.0.1:0. Close ends it.
func Listen(addr string, o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Keys = cmp.Or(o.Keys, &Keys{})
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("start the authorization server: %w", err)
	}
	s := &Server{URL: "http://" + listener.Addr().String(), options: o, closed: make(chan struct{}), changed: make(chan struct{}), requests: map[string]int{}, logins: newLogins()}
	signs := o.Keys.take()
	s.made = []*Key{o.Keys.take(), signs} // the first signs nothing, and is in common to what is published before and after a rotation
	s.keys = slices.Clone(s.made)
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}
	go s.server.Serve(listener) //nolint:errcheck // it ends with Close
	return s, nil
}

// Close ends the server and its connections.
func (s *Server) Close() {
	close(s.closed)
	s.server.Close() //nolint:errcheck // nothing depends on it any more
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Keys.giveBack(s.made)
	s.made = nil
}

// Stranger starts another server, which shares with s, where there is one, only where keys come from.
func (s *Server) Stranger() (*Server, error) {
	var o Options
	if s != nil {
		o.Keys = s.options.Keys
	}
	return Listen("127.0.0.1:0", o)
}

// Key is the key that the server signs with now.
func (s *Server) Key() *Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[len(s.keys)-1]
}

// Rotate publishes a new key beside the old ones and signs with it from now on.
func (s *Server) Rotate() *Key {
	key := s.options.Keys.take()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, key)
	s.keys = append(s.keys, key)
	return key
}

// Retire withdraws a key: it is published no longer.
func (s *Server) Retire(key *Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(s.keys, func(k *Key) bool { return k == key })
	s.retired = append(s.retired, key)
}

// Publish publishes a key, also one that was withdrawn, and signs with it from now on.
func (s *Server) Publish(key *Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(k *Key) bool { return k == key }
	s.keys, s.retired = append(slices.DeleteFunc(s.keys, same), key), slices.DeleteFunc(s.retired, same)
}

// Misbehave makes the server fail in a way until the next call. Requests that hang end with it.
func (s *Server) Misbehave(how Misbehaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = how
	close(s.changed)
	s.changed = make(chan struct{})
}

// Hanging reports whether the server, if there is one, was made to hang.
func (s *Server) Hanging() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails == Hangs
}

// NameOtherIssuer makes the metadata name another server as the issuer, and that server's keys, until Misbehave(None).
func (s *Server) NameOtherIssuer(other *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.rogueKeys = OtherIssuer, other.URL+KeysPath
}

// Requests is how many requests for a path the server has received; "" counts all.
func (s *Server) Requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path != "" {
		return s.requests[path]
	}
	all := 0
	for _, n := range s.requests {
		all += n
	}
	return all
}

// ServeHTTP responds to one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.URL.Path]++
	fails, rogueKeys, changed := s.fails, s.rogueKeys, s.changed
	s.mu.Unlock()
	switch fails {
	case Down:
		http.Error(w, "the authorization server is down", http.StatusServiceUnavailable)
		return
	case Hangs:
		select {
		case <-r.Context().Done():
		case <-changed:
		case <-s.closed:
		}
		panic(http.ErrAbortHandler)
	}
	switch r.Method + " " + r.URL.Path {
	case "GET " + MetadataPath, "GET " + OpenIDPath:
		document := without(s.metadata(fails))
		switch fails {
		case OtherIssuer:
			document["issuer"], document["jwks_uri"] = "https://other.example", rogueKeys
		case NoMetadata:
			http.NotFound(w, r)
			return
		case MetadataTwice:
			twice(w, document)
			return
		}
		write(w, http.StatusOK, document)
	case "GET " + KeysPath:
		write(w, http.StatusOK, map[string]any{"keys": s.published()})
	case "POST " + TokenPath:
		s.issueToken(w, r, fails)
	case "POST " + introspectPath:
		s.introspect(w, r)
	case "GET " + authorizePath, "POST " + authorizePath:
		s.authorize(w, r, fails)
	case "POST " + registerPath:
		s.register(w, r, fails)
	case "POST " + deviceEndpointPath:
		s.startDevice(w, r)
	case "GET " + devicePath, "POST " + devicePath:
		s.decideDevice(w, r)
	default:
		http.NotFound(w, r)
	}
}

// metadata is the document of RFC 8414.
func (s *Server) metadata(fails Misbehaviour) map[string]any {
	m := map[string]any{
		"issuer": s.URL, "token_endpoint": s.URL + TokenPath, "jwks_uri": s.URL + KeysPath, "introspection_endpoint": s.URL + introspectPath,
		"grant_types_supported":                 []string{"client_credentials", grantExchange, grantCode, grantRefresh, grantDevice},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
	}
	maps.Copy(m, s.loginMetadata(fails))
	return m
}

func (s *Server) published() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := []map[string]any{}
	for _, key := range s.keys {
		keys = append(keys, key.JWK())
	}
	return keys
}

// issueToken is the token endpoint: the grant client_credentials, where the client is an account of the site, and token
// exchange (RFC 8693) for Client. The parameter resource (RFC 8707) is the audience, in an exchange also audience.
func (s *Server) issueToken(w http.ResponseWriter, r *http.Request, fails Misbehaviour) {
	refuse := func(status int, code string) { write(w, status, map[string]any{"error": code}) }
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		refuse(http.StatusBadRequest, "invalid_request")
		return
	}
	if s.issueGranted(w, r, fails) {
		return
	}
	account, secret := client(r)
	audience := cmp.Or(r.PostForm.Get("resource"), r.PostForm.Get("audience"))
	switch {
	case r.PostForm.Get("grant_type") == grantExchange:
		subject := r.PostForm.Get("subject_token")
		of, ok := s.Account(subject)
		switch {
		case account != Client || secret != ClientSecret:
			refuse(http.StatusUnauthorized, "invalid_client")
		case !ok || fails == NoExchange:
			refuse(http.StatusBadRequest, "invalid_request")
		case audience == "":
			refuse(http.StatusBadRequest, "invalid_target")
		default:
			write(w, http.StatusOK, map[string]any{
				"access_token": s.Issue(of, audience, map[string]any{"act": map[string]any{"sub": Client}}), "token_type": "Bearer",
				"issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "expires_in": int(Lifetime / time.Second),
			})
		}
	case r.PostForm.Get("grant_type") != "client_credentials":
		refuse(http.StatusBadRequest, "unsupported_grant_type")
	case s.options.Login == nil || !s.options.Login(account, secret):
		refuse(http.StatusUnauthorized, "invalid_client")
	case r.PostForm.Get("resource") == "":
		refuse(http.StatusBadRequest, "invalid_target")
	default:
		changes := map[string]any{}
		if scope := r.PostForm.Get("scope"); scope != "" {
			changes["scope"] = scope
		}
		write(w, http.StatusOK, map[string]any{
			"access_token": s.Issue(account, r.PostForm.Get("resource"), changes), "token_type": "Bearer", "expires_in": int(Lifetime / time.Second),
		})
	}
}

// client is who sends a form.
func client(r *http.Request) (name, secret string) {
	if name, secret, ok := r.BasicAuth(); ok {
		return name, secret
	}
	return r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
}

// introspect says whether a token is valid now, for Client alone. It knows those that one of the published keys signed.
func (s *Server) introspect(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		write(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	if name, secret := client(r); name != Client || secret != ClientSecret {
		write(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	s.mu.Lock()
	keys := slices.Clone(s.keys)
	s.mu.Unlock()
	claims := jwt.MapClaims{}
	if err := s.verify(r.PostForm.Get("token"), claims, keys); err != nil {
		write(w, http.StatusOK, map[string]any{"active": false})
		return
	}
	claims["active"], claims["token_type"] = true, "Bearer"
	write(w, http.StatusOK, claims)
}

// verify reads the claims of a token that one of the keys signed and that is valid now.
func (s *Server) verify(token string, claims jwt.Claims, keys []*Key) error {
	_, err := jwt.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical {
			return nil, errors.New("a critical header is not known")
		}
		for _, key := range keys {
			if t.Header["kid"] == key.ID {
				return key.Public(), nil
			}
		}
		return nil, errors.New("the key is not known")
	}, jwt.WithValidMethods([]string{algorithm}), jwt.WithIssuer(s.URL), jwt.WithTimeFunc(s.options.Now))
	return err
}

// Account is whose token it is, for a site that trusts every token which the server signed, whatever it is for; false for
// a text that is none of the server's tokens, and for a token that has expired.
func (s *Server) Account(token string) (string, bool) {
	s.mu.Lock()
	keys := slices.Concat(s.keys, s.retired)
	s.mu.Unlock()
	var claims jwt.RegisteredClaims
	err := s.verify(token, &claims, keys)
	return claims.Subject, err == nil && claims.Subject != ""
}

func write(w http.ResponseWriter, status int, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has gone
}

// Now is the time on the server's clock.
func (s *Server) Now() time.Time { return s.options.Now() }
