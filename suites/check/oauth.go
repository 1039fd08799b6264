package check

import (
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
)

// The capabilities of a bridge that takes tokens of an authorization server.
const (
	OAuth              = "oauth"
	TokenExchange      = "token-exchange"
	TokenIntrospection = "token-introspection"
)

// Resource is the bridge's MCP endpoint as tokens name it: their audience.
func (t *T) Resource() string { return t.URL + MCPPath }

// tokens are those that accounts use in a run: each account has one until it is about to expire or the key changes,
// because bridges may take two tokens for two callers.
type tokens struct {
	mu  sync.Mutex
	all map[Identity]token
}

type token struct {
	text    string
	expires time.Time
	key     *authserver.Key
}

// token is the account's token of the run's authorization server.
func (t *T) token(who Identity) string {
	t.tokens.mu.Lock()
	defer t.tokens.mu.Unlock()
	now := t.Authority.Now()
	if known, ok := t.tokens.all[who]; ok && known.key == t.Authority.Key() {
		if left := known.expires.Round(0).Sub(now.Round(0)); left > authserver.Lifetime/2 && left <= authserver.Lifetime { // by the wall clock, which may jump
			return known.text
		}
	}
	if t.tokens.all == nil {
		t.tokens.all = map[Identity]token{}
	}
	issued := token{t.Authority.Issue(string(who), t.Resource()), now.Add(authserver.Lifetime), t.Authority.Key()}
	t.tokens.all[who] = issued
	t.Redact.Add(issued.text)
	return issued.text
}
