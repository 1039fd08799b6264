package upstream

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// Secret is a text that shows nowhere: not in a log, not in an error, not in JSON or YAML.
type Secret string

// String hides the secret from every way of printing it.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON, YAML and log encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ServiceAccount is one account at the site for all callers: for all that they do, by front-end tokens of the bridge's
// own, or for what they are shown only.
type ServiceAccount struct {
	User     string
	Password Secret
	Tokens   []Secret // with which callers authenticate at the bridge and act as the account; without one of them nobody does
}

// exchange turns a front-end token into the account's own credential, and gives the token as what says callers apart.
func (a *ServiceAccount) exchange(h http.Header) (cred credential, token string, err error) {
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if len(h.Values("Authorization")) != 1 || !strings.EqualFold(scheme, "Bearer") || !MatchesSecret(token, a.Tokens) {
		e := fault.New(fault.AuthRequired, "This bridge takes a bearer token of its own.")
		e.Challenge = []string{"Bearer"}
		return credential{}, "", e
	}
	return a.credential(), token, nil
}

// For gives the account as a caller who asks in place of another, in the language and on the trace of that one. Nobody
// who authenticates at the front side has its identity.
func (a *ServiceAccount) For(c Caller) Caller {
	account := Caller{Trace: c.Trace, language: c.language, account: accountKey(a.User), as: "the bridge's own account",
		credentials: []credential{a.credential()}}
	account.Identity = account.digest(c.language)
	return account
}

func (a *ServiceAccount) credential() credential {
	pair := base64.StdEncoding.EncodeToString([]byte(a.User + ":" + string(a.Password)))
	return credential{"Authorization", "Basic " + pair, "basic\x00" + pair}
}

// MatchesSecret reports whether given is one of the secrets, in a time that says nothing about them.
func MatchesSecret(given string, secrets []Secret) bool {
	sum, found := sha256.Sum256([]byte(given)), 0
	for _, s := range secrets {
		want := sha256.Sum256([]byte(s))
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	return found == 1 && given != ""
}
