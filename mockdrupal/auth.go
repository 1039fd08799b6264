package mockdrupal

import (
	"cmp"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/mockdrupal/credentials"
)

// identify finds out who makes the request, before Drupal routes it. The first provider that recognises its kind of
// credentials decides, as in Drupal: Basic, then bearer, then the session cookie. A bad bearer token ends the request;
// other wrong credentials leave the caller anonymous.
func (x *request) identify() *Response {
	name, password, basic := credentials.ReadBasic(x.Request.Header)
	token, bearer := credentials.ReadBearer(x.Request.Header)
	var user *fixtures.User
	var scopes []string
	switch {
	case basic:
		x.caller.sent = authkind.Basic
		user = x.checkPassword(name, password)
	case bearer && x.takesBearer():
		x.caller.sent = authkind.Bearer
		who, problem := x.checkToken(token)
		if problem != "" {
			return x.badToken(problem)
		}
		user, scopes = who.user, who.scopes
	case credentials.HasSession(x.Request):
		x.caller.sent = authkind.Cookie
		if open := x.d.session.find(x.Request); open != nil {
			user = x.active(open.user)
		}
	}
	if user != nil {
		x.caller = caller{user: user, sent: x.caller.sent, scheme: x.caller.sent, scopes: scopes}
	}
	return nil
}

// filter refuses credentials of a kind that the route does not accept, valid or not: their sender stays anonymous.
func (x *request) filter(schemes []string) *Response {
	if x.caller.sent == "" || slices.Contains(schemes, x.caller.sent) {
		return nil
	}
	anonymous, _ := x.state.site.User(fixtures.Anonymous)
	x.caller = caller{user: anonymous, sent: x.caller.sent}
	return x.denied("The used authentication method is not allowed on this route.")
}

// active returns the account with this name unless it is unknown or blocked.
func (x *request) active(name string) *fixtures.User {
	if u := x.state.account(name); u != nil && !u.Blocked {
		return u
	}
	return nil
}

// checkPassword returns the account that these credentials authenticate, nil when there is none.
func (x *request) checkPassword(name, password string) *fixtures.User {
	now, flood := x.d.Now(), &x.d.flood
	address := attempt{basicAddress, "", clientAddress(x.Request)}
	if u := x.active(name); u != nil && !flood.locked(address, now) {
		account := attempt{basicUser, u.Name, address.address}
		switch {
		case flood.locked(account, now):
		case samePassword(u, password):
			flood.succeeded(account)
			return u
		default:
			flood.failed(account, now)
		}
	}
	flood.failed(address, now) // also for accounts that do not exist, and when it is locked
	return nil
}

// LogsIn reports whether the credentials are those of an account that may log in, for a login elsewhere that the site trusts.
func (d *Drupal) LogsIn(name, password string) bool {
	u, ok := d.Site().User(name)
	return ok && !u.Blocked && samePassword(u, password)
}

// samePassword compares in constant time. The site file holds passwords as they are, so there is nothing to hash. As in Drupal
// an account without a password has none that is right, not the empty one either.
func samePassword(u *fixtures.User, password string) bool {
	return password != "" && subtle.ConstantTimeCompare([]byte(u.Password), []byte(password)) == 1
}

// unauthorized ends a request that a route's permission refused: with a Basic challenge for those who sent no
// credentials at all where Basic is accepted, with 403 for all others.
func (x *request) unauthorized(schemes []string, permission string) *Response {
	if x.caller.sent != "" || !slices.Contains(schemes, authkind.Basic) {
		return x.denied(permissionRequired(permission))
	}
	a := x.refuse(refusal{http.StatusUnauthorized, "Unauthorized", "No authentication credentials provided."})
	a.Header["WWW-Authenticate"] = []string{`Basic realm="` + escaped.Replace(cmp.Or(x.state.site.Title, "Access restricted")) + `"`}
	return a
}

// escaped escapes a text as Drupal's markup does.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#039;")

// guard ends a request whose credentials were refused, or whose caller lacks the route's permission; nil when it may go on.
func (x *request) guard(schemes []string, permission string) *Response {
	if x.rejected != nil {
		return x.rejected
	}
	if !x.state.holds(x.caller, permission) {
		return x.unauthorized(schemes, permission)
	}
	return nil
}
