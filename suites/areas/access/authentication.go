package access

import (
	"fmt"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

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
