package access

import (
	"fmt"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// authentication is one kind of credentials that the bridge claims.
type authentication struct {
	name string
	of   func(check.Identity) check.Credentials // the credentials of an account of the site
}

// aPassword is the name of the kind that HTTP Basic is.
const aPassword = "a password"

// authentications returns every kind of credentials that the bridge claims and the site accepts; the run's own without any.
func authentications(t *check.T) []authentication {
	var all []authentication
	usable := func(scheme string) bool {
		return t.Drupal != nil && t.Claims("auth-"+scheme) && slices.Contains(t.Drupal.Site().Auth.JSONRPC, scheme)
	}
	if usable("basic") {
		all = append(all, authentication{aPassword, func(who check.Identity) check.Credentials {
			return check.Credentials{User: string(who), Password: check.UserOf(t.Drupal.Site(), who).Password}
		}})
	}
	if usable("bearer") {
		all = append(all, authentication{"a token", func(who check.Identity) check.Credentials {
			return check.Credentials{Token: check.UserOf(t.Drupal.Site(), who).Tokens[0].Value}
		}})
	}
	if usable("cookie") {
		all = append(all, authentication{"a session", func(who check.Identity) check.Credentials {
			return check.Credentials{Cookie: t.Drupal.Session(who)}
		}})
	}
	if len(all) == 0 {
		all = append(all, authentication{"its credentials", func(who check.Identity) check.Credentials {
			creds, _ := t.CredentialsOf(who)
			return creds
		}})
	}
	return all
}

// client returns a client of an account that authenticates in this way.
func (a authentication) client(t *check.T, who check.Identity) check.Client {
	return t.With(who, a.of(who)).Waiting()
}

// altered returns credentials with one more character, which are nobody's.
func altered(creds check.Credentials) check.Credentials {
	switch {
	case creds.User != "":
		creds.Password += "x"
	case creds.Token != "":
		creds.Token += "x"
	case creds.Cookie != "":
		creds.Cookie += "x"
	}
	return creds
}

// expectCallsOf fails if a method call reached the site as another account since the last Mark, whether it ran or not.
func expectCallsOf(t *check.T, who check.Identity) {
	others := accountsExcept(t, who)
	if who != check.Anonymous { // whose calls may be refused before they are read
		for _, entry := range t.Drupal.Journal() {
			if entry.Route == route.JSONRPC && entry.User == "" && len(entry.Calls) == 0 {
				others = append(others, check.Anonymous.String())
			}
		}
	}
	t.Expect(others).To(BeEmpty(), check.Mismatch(fmt.Sprintf("calls to the site for %s", who), "none of another account", "calls of "+match.Abbreviate(others)))
}

// accountsExcept are the accounts other than who whose method calls reached the site.
func accountsExcept(t *check.T, who check.Identity) []string {
	var names []string
	for _, entry := range t.Drupal.Journal() {
		if len(entry.Calls) > 0 && entry.User != string(who) {
			names = append(names, check.Identity(entry.User).String())
		}
	}
	return names
}
