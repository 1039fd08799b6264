package clients

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// serveOAuth puts a bridge that takes access tokens alone before the default site.
func serveOAuth(t *testing.T) (as *authserver.Server, bridgeURL string) {
	t.Helper()
	as = must.Get(authserver.Listen("127.0.0.1:0", authserver.Options{Login: func(account, secret string) bool { return account == "agent" && secret == "agent-pass" }}))(t)
	t.Cleanup(as.Close)
	drupal := must.Get(mockdrupal.New(builtin(t, "default"), mockdrupal.Options{Trusted: as.Account}))(t)
	upstream := must.Serve(t, drupal)
	front := httptest.NewUnstartedServer(nil)
	bridgeURL = "http://" + front.Listener.Addr().String()
	b := must.Get(bridge.New(bridge.Options{Drupal: upstream.URL, OAuthOptions: bridge.OAuthOptions{OAuthIssuer: as.URL, OAuthResource: bridgeURL + "/mcp"}}))(t)
	t.Cleanup(b.Close)
	front.Config.Handler = b
	front.Start()
	t.Cleanup(front.CloseClientConnections)
	return as, bridgeURL
}

// TestTypeScriptClientsAuthorizeThemselves lets real clients find the way from the challenge to the metadata, from there to
// the authorization server, and back with a token.
func TestTypeScriptClientsAuthorizeThemselves(t *testing.T) {
	installed(t)
	for _, client := range typescript {
		t.Run(client.sdk+" "+client.era, func(t *testing.T) {
			t.Parallel()
			as, url := serveOAuth(t)
			authorize := func(secret string) (string, error) {
				cmd := exec.CommandContext(within(t, 30*time.Second), node22, "authorize.mjs", client.sdk, client.era, url+"/mcp", "agent", "content.search", `{"query":"article"}`)
				cmd.Env = append(os.Environ(), "CLIENT_SECRET="+secret)
				cmd.Stderr = t.Output()
				out, err := cmd.Output()
				return string(out), err
			}
			out, err := authorize("agent-pass")
			if err != nil || !strings.Contains(out, `"content.search"`) || !strings.Contains(out, "structuredContent") || strings.Contains(out, `"isError":true`) {
				t.Errorf("with the right secret: expected the tools and a result, got %v:\n%s", err, out)
			}
			n := as.Requests(authserver.TokenPath)
			must.Expect(t, n == 1, "expected one token to be asked for, got %d", n)
			out, err = authorize("wrong")
			must.Expect(t, err != nil && out == "", "with a wrong secret: expected an error and no tools, got:\n%s", out)
		})
	}
}

// TestTheOfficialSuiteHasNoAuthorizationOfServers holds why none is run: its scenarios about authorization test clients and
// authorization servers. A version that has one for servers fails the test.
func TestTheOfficialSuiteHasNoAuthorizationOfServers(t *testing.T) {
	installed(t)
	listed, err := exec.CommandContext(within(t, time.Minute), node22, modules+"/@modelcontextprotocol/conformance/dist/index.js", "list").CombinedOutput()
	must.Assert(t, err == nil, "%v\n%s", err, listed)
	about := regexp.MustCompile(`(?m)^  - \S*(?:auth|token|scope|protected)\S*`)
	of := func(title string) []string {
		_, rest, found := strings.Cut(string(listed), title+" scenarios")
		must.Assert(t, found, "expected scenarios named %q, got:\n%s", title, listed)
		rest, _, _ = strings.Cut(rest, "\n\n")
		return about.FindAllString(rest, -1)
	}
	server := of("Server")
	must.Expect(t, len(server) <= 0, "the suite tests the authorization of servers now; run these against the reference bridge: %q", server)
	must.Expect(t, len(of("Client")) != 0, "expected scenarios about authorization for clients: the words that find them find none")
}
