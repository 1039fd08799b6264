package mockdrupal

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"bridgecheck/fixtures"
)

// Sign-in schemes, as the site file and the journal name them.
const (
	schemeBasic  = "basic"
	schemeBearer = "bearer"
	schemeCookie = "cookie"
)

// identify finds out who makes the request, from the credentials that it carries and the schemes that the route takes.
// The first provider that recognises its kind of credentials decides, as in Drupal: Basic, then bearer, then the
// session cookie. A non-nil answer ends the request.
func (x *exchange) identify(schemes []string) *answer {
	name, password, basic := basicCredentials(x.r)
	token, bearer := bearerToken(x.r)
	session := x.d.session.find(x.r)
	switch {
	case basic:
		x.signIn(schemeBasic, x.checkPassword(name, password), nil)
	case bearer && x.takesBearer():
		who, problem := x.checkToken(token)
		if problem != "" {
			return x.badToken(problem)
		}
		x.signIn(schemeBearer, who.user, who.scopes)
	case session != nil:
		x.signIn(schemeCookie, x.active(session.user), nil)
	}
	if c := x.caller; c.scheme != "" && !slices.Contains(schemes, c.scheme) {
		x.caller = x.anonymous(c.scheme)
		return x.denied("The used authentication method is not allowed on this route.")
	}
	if basic && x.caller.scheme == "" {
		x.caller.refused = schemeBasic
	}
	return nil
}

// anonymous is the caller whose credentials of this scheme were not taken.
func (x *exchange) anonymous(refused string) caller {
	u, _ := x.state.site.User(fixtures.Anonymous)
	return caller{user: u, refused: refused}
}

func (x *exchange) signIn(scheme string, u *fixtures.User, scopes []string) {
	if u != nil {
		x.caller = caller{user: u, scheme: scheme, scopes: scopes}
	}
}

// active returns the account with this name unless it is unknown or blocked.
func (x *exchange) active(name string) *fixtures.User {
	if u := x.state.users[name]; u != nil && !u.Blocked {
		return u
	}
	return nil
}

// basicCredentials reads Basic credentials as PHP and Symfony do: the scheme in any case, base64 with what is no base64
// left out, split at the first colon; without a colon there are none.
func basicCredentials(r *http.Request) (name, password string, ok bool) {
	scheme, rest, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, schemeBasic) {
		return "", "", false
	}
	rest = strings.Map(func(c rune) rune {
		if c == '+' || c == '/' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return -1
	}, rest)
	decoded, err := base64.RawStdEncoding.DecodeString(rest)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(decoded), ":")
}

// checkPassword returns the account that these credentials open, nil when there is none.
func (x *exchange) checkPassword(name, password string) *fixtures.User {
	u := x.active(name)
	if x.d.flood.locked(name, x.d.Now()) {
		return nil
	}
	if u == nil {
		return nil
	}
	if !samePassword(u, password) {
		x.d.flood.failed(name, x.d.Now())
		return nil
	}
	x.d.flood.succeeded(name)
	return u
}

// samePassword compares in constant time. The site file holds passwords as they are, so there is nothing to hash.
func samePassword(u *fixtures.User, password string) bool {
	return subtle.ConstantTimeCompare([]byte(u.Password), []byte(password)) == 1
}

// unauthorized ends a request that a route's permission refused: with a Basic challenge for those who sent no
// credentials at all where Basic is taken, with 403 for all others.
func (x *exchange) unauthorized(schemes []string, permission string) *answer {
	sent := x.caller.scheme != "" || x.caller.refused != "" || x.d.session.find(x.r) != nil
	if sent || !slices.Contains(schemes, schemeBasic) {
		return x.denied(permissionRequired(permission))
	}
	a := x.refuse(refusal{http.StatusUnauthorized, "Unauthorized", "No authentication credentials provided."})
	a.header["WWW-Authenticate"] = []string{`Basic realm="` + x.state.site.Title + `"`}
	return a
}

// guard ends a request whose credentials were refused, or whose caller lacks the route's permission; nil lets it pass.
func (x *exchange) guard(schemes []string, permission string) *answer {
	if x.rejected != nil {
		return x.rejected
	}
	if !x.state.holds(x.caller, permission) {
		return x.unauthorized(schemes, permission)
	}
	return nil
}
