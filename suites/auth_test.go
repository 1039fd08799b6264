package suites_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// runForeign tests the reference bridge as one with an authorization server that is not the run's own: the agent has a
// token, and the configuration some that must be refused.
func runForeign(t *testing.T, o testbed.Options, wrong bool) map[string]reports.Verdict {
	t.Helper()
	o.Profile = testbed.OAuth
	bed := must.Get(testbed.Start(o))(t)
	defer bed.Close()
	as, resource := bed.Authority, bed.URL+"/mcp"
	options := suites.Options{Callers: suites.Callers{Credentials: map[suites.Identity]suites.Credentials{suites.Agent: {Token: as.Issue("agent", resource)}}}, Contract: contract.Draft, Capabilities: []string{"mcp", "mcp-2026", "oauth"}, Only: []string{"auth/*"}}
	if wrong {
		options.Callers.WrongTokens = map[string]string{
			"expired": as.Issue("agent", resource, map[string]any{"exp": as.Ago(time.Hour)}), "not_yet_valid": as.Issue("agent", resource, map[string]any{"nbf": as.Ago(-time.Hour)}),
			"other_issuer": as.Issue("agent", resource, map[string]any{"iss": "https://other.example"}), "other_audience": as.Issue("agent", "https://other.example/mcp"),
		}
	}
	report := run(t, bed.URL, options)
	for _, r := range report.Results {
		must.Expect(t, (r.Verdict != reports.NotTestable || r.Message != "") && (r.Verdict != reports.Fail || o.Middleware != nil),
			"%s: %s: %s %v", r.ID, r.Verdict, r.Message, r.Findings)
	}
	return report.ByClause()
}

func TestAForeignAuthorizationServer(t *testing.T) {
	given := []string{"auth/token-expired", "auth/token-not-yet-valid", "auth/token-issuer", "auth/token-audience"}
	forged := []string{"auth/right-token", "auth/metadata", "auth/challenge", "auth/every-request", "auth/query-token", "auth/token-malformed", "auth/token-signature", "auth/token-unsigned", "auth/token-unknown-key"}
	without, with := runForeign(t, testbed.Options{}, false), runForeign(t, testbed.Options{}, true)
	for _, id := range forged {
		must.Expect(t, without[id] == reports.Pass && with[id] == reports.Pass,
			"%s: %s without tokens of the configuration, %s with them", id, without[id], with[id])
	}
	for _, id := range given {
		must.Expect(t, without[id] == reports.NotTestable && with[id] == reports.Pass,
			"%s: %s without tokens of the configuration, %s with them", id, without[id], with[id])
	}
}

// A bridge that takes every token for the agent's fails by the tokens of the configuration, and by those that are forged.
func TestAForeignBridgeThatChecksNothing(t *testing.T) {
	got := runForeign(t, testbed.Options{Middleware: func(b testbed.Backends, bridge http.Handler) http.Handler {
		token := "Bearer " + b.Authority.Issue("agent", b.Resource)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
				r.Header.Set("Authorization", token)
			}
			bridge.ServeHTTP(w, r)
		})
	}}, true)
	for _, id := range []string{"auth/token-expired", "auth/token-not-yet-valid", "auth/token-issuer", "auth/token-audience", "auth/token-malformed", "auth/token-signature", "auth/token-unsigned", "auth/token-unknown-key"} {
		must.Expect(t, got[id] == reports.Fail, "%s: %s", id, got[id])
	}
}
