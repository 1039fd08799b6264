package access

import (
	"fmt"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// authentication is one kind of credentials that the bridge claims.
type authentication struct {
	name string
	of   func(harness.Identity) harness.Credentials // the credentials of an account of the site
}

// authentications returns every kind of credentials that the bridge claims and the site accepts; the run's own without any.
func authentications(t *harness.T) []authentication {
	var all []authentication
	usable := func(scheme string) bool {
		return t.Drupal != nil && t.Claims("auth-"+scheme) && slices.Contains(t.Drupal.Site().Auth.JSONRPC, scheme)
	}
	if usable("basic") {
		all = append(all, authentication{"a password", func(who harness.Identity) harness.Credentials {
			return harness.Credentials{User: string(who), Password: harness.UserOf(t.Drupal.Site(), who).Password}
		}})
	}
	if usable("bearer") {
		all = append(all, authentication{"a token", func(who harness.Identity) harness.Credentials {
			return harness.Credentials{Token: harness.UserOf(t.Drupal.Site(), who).Tokens[0].Value}
		}})
	}
	if usable("cookie") {
		all = append(all, authentication{"a session", func(who harness.Identity) harness.Credentials {
			return harness.Credentials{Cookie: t.Drupal.Session(who)}
		}})
	}
	if len(all) == 0 {
		all = append(all, authentication{"its credentials", func(who harness.Identity) harness.Credentials {
			creds, _ := t.CredentialsOf(who)
			return creds
		}})
	}
	return all
}

// client returns a client of an account that authenticates in this way.
func (a authentication) client(t *harness.T, who harness.Identity) harness.Client {
	return t.With(who, a.of(who))
}

// altered returns credentials with one more character, which are nobody's.
func altered(creds harness.Credentials) harness.Credentials {
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
func expectCallsOf(t *harness.T, who harness.Identity) {
	others := accountsExcept(t, who)
	t.Expect(others).To(BeEmpty(), harness.Mismatch(fmt.Sprintf("calls to the site for %s", who), "none of another account", "calls of "+match.Abbreviate(others)))
}

// accountsExcept are the accounts other than who whose method calls reached the site.
func accountsExcept(t *harness.T, who harness.Identity) []string {
	var names []string
	for _, entry := range t.Drupal.Journal() {
		if len(entry.Calls) > 0 && entry.User != string(who) {
			names = append(names, harness.Identity(entry.User).String())
		}
	}
	return names
}
