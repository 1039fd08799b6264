package caller

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
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
	Tokens   []Secret // with which callers authenticate at the bridge and act as the account
}

// AccountRefused is the message where the site refuses the account.
const AccountRefused = "The site refuses the bridge's own account: service_user or service_password is wrong, or the account lacks a permission."

// exchange turns a front-end token into the account's own credential. The token identifies the caller.
func (cs Callers) exchange(r *http.Request, c *Caller) error {
	refusal := fault.New(fault.AuthRequired, "This bridge takes a bearer token of its own.")
	refusal.Challenge = []string{"Bearer"}
	token := BearerToken(r.Header)
	if token == "" {
		return refusal
	}
	if MatchesSecret(token, cs.Service.Tokens) {
		refusal = nil
	}
	if err := cs.CountToken(r, token, refusal); err != nil {
		return err
	}
	c.as, c.account, c.credentials = token, accountKey(cs.Service.User), []credential{cs.Service.credential()}
	return nil
}

// CountToken counts a token that the bridge itself compared, so that guessing is bounded: refusal is nil for a right
// one. It returns the refusal, or RateLimited for an address that sent too many wrong ones.
func (cs Callers) CountToken(r *http.Request, token string, refusal *fault.Error) error {
	if cs.Attempts != nil {
		a := throttle.Attempt{Credential: sha256.Sum256([]byte("a token of the bridge\x00" + token)), Address: cs.Proxies.client(r)}
		return cs.Attempts.Check(r.Context(), a, refusal)
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

// BearerToken is the request's one bearer token; "" where it has none, or several credentials, of which nobody could say
// which is intended.
func BearerToken(h http.Header) string {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, rest, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, string(Bearer)) {
		return ""
	}
	return strings.Trim(rest, " \t")
}

// For returns the account as a caller who asks in place of another, in the language and on the trace of that one. Nobody
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

// MatchesSecret reports whether given is one of the secrets, in constant time.
func MatchesSecret(given string, secrets []Secret) bool {
	sum, found := sha256.Sum256([]byte(given)), 0
	for _, s := range secrets {
		want := sha256.Sum256([]byte(s))
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	return found == 1 && given != ""
}
