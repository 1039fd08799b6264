package suites

import (
	"encoding/base64"
	"net/http"
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

// Credentials sign a caller in. Exactly one of Token, Cookie and User is set; the zero value signs nobody in.
type Credentials struct {
	User, Password string            // HTTP Basic
	Token          string            // bearer
	Cookie         string            // a session cookie, `NAME=VALUE`
	Header         map[string]string // sent with every request of the caller
}

func (c Credentials) apply(h http.Header) {
	switch {
	case c.Token != "":
		h.Set("Authorization", "Bearer "+c.Token)
	case c.Cookie != "":
		h.Set("Cookie", c.Cookie)
	case c.User != "":
		h.Set("Authorization", "Basic "+basic(c.User, c.Password))
	}
	for name, value := range c.Header {
		h.Set(name, value)
	}
}

func (c Credentials) empty() bool {
	return c.Token == "" && c.Cookie == "" && c.User == "" && len(c.Header) == 0
}

// secrets lists every form in which the credentials travel.
func (c Credentials) secrets() []string {
	var all []string
	for _, s := range []string{c.Password, c.Token, c.Cookie} {
		if s != "" {
			all = append(all, s)
		}
	}
	if c.User != "" {
		all = append(all, basic(c.User, c.Password))
	}
	for _, value := range c.Header {
		all = append(all, value)
	}
	return all
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}
