package mockdrupal

import (
	"net/http"
	"slices"
	"strings"
)

// oauth is what the site's OAuth 2 server keeps.
type oauth struct{}

// bearerToken reads a bearer token as simple_oauth does: the word Bearer in this case and no other.
func bearerToken(r *http.Request) (string, bool) {
	header := strings.TrimSpace(r.Header.Get("Authorization"))
	if header == "Bearer" {
		return "", true
	}
	_, token, ok := strings.Cut(header, "Bearer ")
	return strings.TrimSpace(token), ok
}

// takesBearer tells whether the site has OAuth at all: without it a bearer token is no credential.
func (x *exchange) takesBearer() bool {
	return slices.Contains(x.state.site.Auth.JSONRPC, schemeBearer) || slices.Contains(x.state.site.Auth.MCP, schemeBearer)
}

// checkToken returns who a bearer token stands for, or what is wrong with it.
func (x *exchange) checkToken(token string) (who caller, problem string) {
	fixed, known := x.state.tokens[token]
	switch {
	case !known && strings.Count(token, ".") != 2:
		return caller{}, "The JWT string must have two dots"
	case !known:
		return caller{}, "Access token could not be verified"
	case !fixed.token.Expires.IsZero() && x.d.Now().After(fixed.token.Expires):
		return caller{}, "Access token could not be verified"
	case fixed.token.Revoked, fixed.user.Blocked:
		return caller{}, "Access token has been revoked"
	}
	return caller{user: fixed.user, scopes: fixed.token.Scopes}, ""
}

// badToken refuses a bearer token.
func (x *exchange) badToken(problem string) *answer {
	x.caller = x.anonymous(schemeBearer)
	a := x.refuse(refusal{http.StatusUnauthorized, "Unauthorized", "The resource owner or authorization server denied the request."})
	a.header["WWW-Authenticate"] = []string{`Bearer realm="OAuth", error="access_denied", error_description="` + problem + `"`}
	return a
}
