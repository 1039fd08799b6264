package tokens

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// Middleware stands between the caller and the bridge.
type Middleware = func(bridge http.Handler) http.Handler

// onToken calls change before the bridge receives a request with a token.
func onToken(b testbed.Backends, change func(r *http.Request, t Sent)) Middleware {
	return func(bridge http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if text := Bearer(r); text != "" {
				change(r, Read(b, text))
			}
			bridge.ServeHTTP(w, r)
		})
	}
}

// Swap gives the bridge a right token for the account that a rule names, with the scopes of the token that was sent; ""
// leaves the request as it is.
func Swap(rule func(r *http.Request, t Sent) (account string)) func(testbed.Backends) Middleware {
	return func(b testbed.Backends) Middleware {
		var issued sync.Map // account, scopes and key → token: two tokens may be two callers to the bridge
		return onToken(b, func(r *http.Request, t Sent) {
			account := rule(r, t)
			if account == "" {
				return
			}
			scope := t.Claims["scope"]
			name := account + " " + strings.Join(Texts(scope), " ") + " " + b.Authority.Key().ID
			token, ok := issued.Load(name)
			if !ok {
				token, _ = issued.LoadOrStore(name, b.Authority.Issue(account, b.Resource, map[string]any{"scope": scope}))
			}
			r.Header.Set("Authorization", "Bearer "+token.(string))
		})
	}
}

// AcceptWhere accepts flawed tokens by any rule.
func AcceptWhere(rule func(t Sent) bool) func(testbed.Backends) Middleware {
	return Swap(func(_ *http.Request, t Sent) string {
		if len(t.Flaws) > 0 && rule(t) {
			return t.Subject()
		}
		return ""
	})
}

// Tolerate accepts tokens with no other flaws than those listed.
func Tolerate(flaws ...string) func(testbed.Backends) Middleware {
	return AcceptWhere(func(t Sent) bool { return t.Within(flaws...) })
}

// RefuseWhere makes the bridge refuse tokens by a rule, as if they were none.
func RefuseWhere(rule func(t Sent) bool) func(testbed.Backends) Middleware {
	return func(b testbed.Backends) Middleware {
		return onToken(b, func(r *http.Request, t Sent) {
			if rule(t) {
				r.Header.Set("Authorization", "Bearer refused")
			}
		})
	}
}

// WidenScope gives a right token all scopes where a rule says so.
func WidenScope(rule func(scopes []string) bool) func(testbed.Backends) Middleware {
	return Swap(func(_ *http.Request, t Sent) string {
		scope, _ := t.Claims["scope"].(string)
		if len(t.Flaws) > 0 || !rule(strings.Fields(scope)) {
			return ""
		}
		t.Claims["scope"] = "content:read content:write"
		return t.Subject()
	})
}

// Fetched is a JSON document of the authorization server, which is waited for as long as it takes.
func Fetched(address string) (document map[string]any, ok bool) {
	resp, err := http.Get(address) //nolint:noctx // that is the fault of the mutants that call it
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&document)
	return document, err == nil && resp.StatusCode == http.StatusOK
}
