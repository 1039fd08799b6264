// Package credentials finds the credentials in a request as Drupal's authentication providers do. It does not check them.
//
// Its invariant: the first provider that recognises its kind of credentials decides (Basic, then bearer, then the session
// cookie), whether they are good or not.
package credentials

import (
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// ReadBasic reads Basic credentials as PHP and Symfony do: the scheme in any letter case, base64 split at the first colon;
// without a colon there are none.
func ReadBasic(h http.Header) (name, password string, ok bool) {
	scheme, rest, found := strings.Cut(h.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, authkind.Of(authkind.Basic).Scheme) {
		return "", "", false
	}
	return strings.Cut(php.Base64Decode(rest), ":")
}

// ReadBearer reads a bearer token: simple_oauth looks for the word Bearer in this letter case and no other, the resource
// server removes it where it comes first.
func ReadBearer(h http.Header) (token string, ok bool) {
	header := strings.TrimSpace(h.Get("Authorization"))
	token = header
	if rest := strings.TrimPrefix(header, "Bearer"); strings.TrimSpace(rest) != rest {
		token = strings.TrimSpace(rest)
	}
	return token, header == "Bearer" || strings.Contains(header, "Bearer ")
}

// ReadSessions returns the values of the session cookies in a request, valid or not.
func ReadSessions(r *http.Request) []string {
	if r.Header.Get("Cookie") == "" {
		return nil
	}
	var values []string
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, "SESS") || strings.HasPrefix(c.Name, "SSESS") {
			values = append(values, c.Value)
		}
	}
	return values
}

// HasSession reports whether a request carries a session cookie, valid or not.
func HasSession(r *http.Request) bool { return len(ReadSessions(r)) > 0 }
