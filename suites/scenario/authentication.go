package scenario

import (
	"fmt"
	"slices"

	"github.com/bridgecheck/bridgecheck/suites/check"
)

// Authentication is one kind of credentials that the bridge claims.
type Authentication struct {
	Name string
	Of   func(check.Identity) check.Credentials // the credentials of an account of the site
}

// Password is the name of the kind that HTTP Basic is.
const Password = "a password"

// Authentications returns every kind of credentials that the bridge claims and the site accepts; the run's own without any.
func Authentications(t *check.T) []Authentication {
	var all []Authentication
	usable := func(scheme string) bool {
		return t.Drupal != nil && t.Claims("auth-"+scheme) && slices.Contains(t.Drupal.Site().Auth.JSONRPC, scheme)
	}
	if usable("basic") {
		all = append(all, Authentication{Password, func(who check.Identity) check.Credentials {
			return check.Credentials{User: string(who), Password: check.UserOf(t.Drupal.Site(), who).Password}
		}})
	}
	if usable("bearer") {
		all = append(all, Authentication{"a token", func(who check.Identity) check.Credentials {
			return check.Credentials{Token: check.UserOf(t.Drupal.Site(), who).Tokens[0].Value}
		}})
	}
	if usable("cookie") {
		all = append(all, Authentication{"a session", func(who check.Identity) check.Credentials {
			return check.Credentials{Cookie: t.Drupal.Session(who)}
		}})
	}
	if len(all) == 0 {
		all = append(all, Authentication{"its credentials", func(who check.Identity) check.Credentials {
			creds, _ := t.CredentialsOf(who)
			return creds
		}})
	}
	return all
}

// Client returns a client of an account that authenticates in this way.
func (a Authentication) Client(t *check.T, who check.Identity) check.Client {
	return t.With(who, a.Of(who)).Waiting()
}

// Way is how a tool is called: by whom and with which credentials.
type Way struct {
	check.Client
	Name string
}

// OtherWays are the ways to call a tool other than as the agent with its usual credentials: by the other kinds of credentials that
// the bridge claims, as an account that it has not seen before, and as accounts with other permissions.
func OtherWays(t *check.T) []Way {
	ways := OtherCredentials(t)
	if t.Drupal != nil {
		ways = append(ways, Way{NewCaller(t), "a new account"})
	}
	for _, who := range t.Callers(check.Admin, check.Discoverer) {
		ways = append(ways, Way{t.As(who), "another account"})
	}
	return ways
}

// OtherCredentials are the agent's other ways.
func OtherCredentials(t *check.T) []Way {
	var ways []Way
	usual, _ := t.CredentialsOf(check.Agent)
	for _, a := range Authentications(t) {
		if fmt.Sprint(a.Of(check.Agent)) != fmt.Sprint(usual) {
			ways = append(ways, Way{a.Client(t, check.Agent), "authenticated by " + a.Name})
		}
	}
	return ways
}
