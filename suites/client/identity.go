package client

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/authkind"
)

// Identity is a caller by the name of its account. The zero value is the anonymous caller.
type Identity string

// The accounts of the default site, by what they hold.
const (
	Anonymous  Identity = ""
	Outsider   Identity = "outsider"   // may use JSON-RPC and read content, may not discover
	Discoverer Identity = "discoverer" // may discover and use JSON-RPC, holds nothing else
	Agent      Identity = "agent"      // may discover, use JSON-RPC, read content and run the fixtures
	Agent2     Identity = "agent2"     // another account with the permissions of Agent
	NoRPC      Identity = "norpc"      // may discover and read content, may not use JSON-RPC
	Blocked    Identity = "blocked"    // an account that is blocked
	Service    Identity = "service"    // holds every permission
	Admin      Identity = "admin"      // user 1
)

func (i Identity) String() string {
	if i == Anonymous {
		return "anonymous"
	}
	return string(i)
}

// Credentials authenticate a caller. Exactly one of Token, Cookie and User is set; the zero value authenticates nobody.
type Credentials struct {
	User, Password string            // HTTP Basic
	Token          string            // bearer
	Cookie         string            // a session cookie, `NAME=VALUE`
	Header         map[string]string // sent with every request of the caller
}

func (c Credentials) Apply(h http.Header) {
	switch {
	case c.Token != "":
		authkind.Of(authkind.Bearer).Apply(h, c.Token)
	case c.Cookie != "":
		authkind.Of(authkind.Cookie).Apply(h, c.Cookie)
	case c.User != "":
		authkind.Of(authkind.Basic).Apply(h, Basic(c.User, c.Password))
	}
	for name, value := range c.Header {
		h.Set(name, value)
	}
}

func (c Credentials) Empty() bool {
	return c.Token == "" && c.Cookie == "" && c.User == "" && len(c.Header) == 0
}

// Secrets lists what in the credentials nobody else may see, in the forms in which they travel. An account's name is
// none, nor is the scheme before a header's secret.
func (c Credentials) Secrets() []string {
	all := []string{c.Password, c.Token, c.Cookie}
	if _, value, ok := strings.Cut(c.Cookie, "="); ok {
		all = append(all, value)
	}
	if c.User != "" {
		all = append(all, Basic(c.User, c.Password))
	}
	for name, value := range c.Header {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			_, value, _ = strings.Cut(value, " ")
		}
		if _, err := netip.ParseAddr(value); err != nil { // an address is no secret, and the report is full of them
			all = append(all, value)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

func Basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}
