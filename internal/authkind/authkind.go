// Package authkind is the table of the ways in which callers authenticate. Site files, the mock, the reference bridge, the
// suites and reports read it, so that a kind has the same name, header and challenge everywhere. It knows no secrets and
// checks none.
package authkind

import (
	"net/http"
	"slices"
)

// Names of the kinds, as in site files, journals, settings, and after `auth-` in capabilities.
const (
	Basic  = "basic"
	Bearer = "bearer"
	Cookie = "cookie"
)

// Kind is a way to authenticate.
type Kind struct {
	Name      string
	Header    string // of requests, which carries the credentials
	Scheme    string // what stands before the credentials in Header; "": nothing
	Challenge string // by which WWW-Authenticate asks for them; "": never
	Secret    string // what messages and environment variables call the secret
}

// Kinds are all of them, in the order in which Drupal looks for them.
var Kinds = []Kind{
	{Name: Basic, Header: "Authorization", Scheme: "Basic", Challenge: `Basic realm="Drupal"`, Secret: "password"},
	{Name: Bearer, Header: "Authorization", Scheme: "Bearer", Challenge: "Bearer", Secret: "token"},
	{Name: Cookie, Header: "Cookie", Secret: "cookie"},
}

// Names lists the names of Kinds, in their order.
func Names() []string {
	var names []string
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

// Of returns the kind with a name; the zero value has none.
func Of(name string) Kind {
	if i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return Kinds[i]
	}
	return Kind{}
}

// Apply puts credentials of this kind on a request, in place of others in the same header.
func (k Kind) Apply(h http.Header, credentials string) {
	if k.Scheme != "" {
		credentials = k.Scheme + " " + credentials
	}
	h.Set(k.Header, credentials)
}
