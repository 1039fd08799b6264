package mockdrupal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"sync"

	"github.com/bridgecheck/bridgecheck/mockdrupal/credentials"
)

// session is one login by cookie.
type session struct {
	user   string
	csrf   string
	logout string
}

// sessions are the open logins, by cookie value.
type sessions struct {
	mu   sync.Mutex
	open map[string]*session
}

// maxSessions bounds what is kept; beyond it all are logged out.
const maxSessions = 100_000

// sessionCookie is the cookie's name: like Drupal's, it depends on the host.
func sessionCookie(host string) string {
	sum := sha256.Sum256([]byte(host))
	return "SESS" + hex.EncodeToString(sum[:])[:32]
}

// find returns the session of the request's cookie, nil when there is none.
func (s *sessions) find(r *http.Request) *session {
	values := credentials.ReadSessions(r)
	if len(values) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		if found := s.open[value]; found != nil {
			return found
		}
	}
	return nil
}

func (s *sessions) start(user string) (value string, opened *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil || len(s.open) >= maxSessions {
		s.open = map[string]*session{}
	}
	value, opened = randomToken(), &session{user: user, csrf: randomToken(), logout: randomToken()}
	s.open[value] = opened
	return value, opened
}

func (s *sessions) end(ended *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for value, open := range s.open {
		if open == ended {
			delete(s.open, value)
		}
	}
}

// randomToken is 43 characters, as Drupal's own.
func randomToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// OpenSession logs an account in without its password and returns the session's cookie, `NAME=VALUE`.
func (d *Drupal) OpenSession(user string) string {
	value, _ := d.session.start(user)
	return sessionCookie(user) + "=" + value
}

// EndSessions ends all sessions of an account, as a changed password does.
func (d *Drupal) EndSessions(user string) {
	d.session.mu.Lock()
	defer d.session.mu.Unlock()
	maps.DeleteFunc(d.session.open, func(_ string, open *session) bool { return open.user == user })
}
