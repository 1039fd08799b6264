// Package clients holds the bridge to the MCP clients that people have: the Inspector, the SDKs, libraries that agents are built
// with and the official conformance suite, at the versions in package.json; and the responses of the three endpoints to their
// OpenAPI document, by public tools for that. It holds the suites to servers and gateways that others wrote. Nothing of it is used
// by the bridge itself.
package clients

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

const (
	modules = "node_modules"
	node22  = modules + "/node/bin/node" // the conformance suite needs it
	ttl     = 100 * time.Millisecond
)

// installed skips a test, loudly, where the clients are not installed.
func installed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short: no real MCP client is started")
	}
	if _, err := os.Stat(node22); err != nil {
		t.Skip("SKIPPED: the real MCP clients are not installed; run `make clients`, which needs npm")
	}
}

// serve puts a bridge before a site, and gives the bridge's and the site's address.
func serve(t *testing.T, site *fixtures.Site) (drupal *mockdrupal.Drupal, bridgeURL, siteURL string) {
	t.Helper()
	drupal = must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	upstream := must.Serve(t, drupal)
	b := must.Get(bridge.New(bridge.Options{Drupal: upstream.URL, DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: ttl, PermissionTTL: ttl}, ToolOptions: bridge.ToolOptions{PageSize: 20}}))(t)
	t.Cleanup(b.Close)
	front := httptest.NewServer(b)
	t.Cleanup(front.CloseClientConnections)
	return drupal, front.URL, upstream.URL
}

func builtin(t *testing.T, name string) *fixtures.Site {
	t.Helper()
	return must.Get(fixtures.Builtin(name))(t)
}

// agent is the Authorization header of the account agent.
var agent = "Basic " + base64.StdEncoding.EncodeToString([]byte("agent:agent-pass"))

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// heard is a line that talk.mjs prints.
type heard struct {
	Tools, Changed []string
	Result, Bad    *struct {
		IsError           bool
		Content           []struct{ Type, Text string }
		StructuredContent any
	}
	Listening bool
	Text      string
}

// conversation is a client at work.
type conversation struct {
	t     *testing.T
	lines *bufio.Scanner
}

func talk(t *testing.T, sdk, era, url string, call ...string) conversation {
	t.Helper()
	return converse(t, append([]string{"talk.mjs", sdk, era, url + "/mcp", agent}, call...)...)
}

// converse starts a client of Node.
func converse(t *testing.T, args ...string) conversation {
	t.Helper()
	cmd := exec.CommandContext(within(t, time.Minute), node22, args...)
	cmd.Stderr = t.Output()
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Cancel() //nolint:errcheck // it has most likely ended
		cmd.Wait()   //nolint:errcheck // its lines show what it did
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	return conversation{t, lines}
}

func (c conversation) next() heard {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("the client ended early: %v", c.lines.Err())
	}
	var h heard
	if err := json.Unmarshal(c.lines.Bytes(), &h); err != nil {
		c.t.Fatalf("the client printed %s", c.lines.Text())
	}
	return h
}

var typescript = []struct{ sdk, era string }{{"v1", "legacy"}, {"v2", "legacy"}, {"v2", "modern"}}

func TestTypeScriptClientsPageCallAndHearOfChanges(t *testing.T) {
	installed(t)
	for _, client := range typescript {
		t.Run(client.sdk+" "+client.era, func(t *testing.T) {
			t.Parallel()
			site := builtin(t, "default")
			user, _ := site.User("agent")
			drupal, url, _ := serve(t, site)
			c := talk(t, client.sdk, client.era, url, "content.search", `{"query":"article"}`, `{"query":5}`)
			tools := c.next().Tools
			must.Expect(t, len(tools) > 20 && slices.Contains(tools, "content.search"),
				"tools over all pages: expected more than a page of 20, with content.search, got %d: %v", len(tools), tools)
			for _, id := range site.VisibleTo(user) {
				must.Expect(t, slices.Contains(tools, id), "tools over all pages: expected %s among them", id)
			}
			r := c.next().Result
			must.Expect(t, !r.IsError && r.StructuredContent != nil && len(r.Content) != 0, "content.search: expected a structured result, got %+v", r)
			r = c.next().Bad
			must.Expect(t, r.IsError && strings.Contains(r.Content[0].Text, "query"), "bad arguments: expected isError with the parameter's name, got %+v", r)
			must.Expect(t, c.next().Listening, "expected the client to listen")
			changed := drupal.Site().Clone()
			added := changed.Methods[slices.IndexFunc(changed.Methods, func(m fixtures.Method) bool { return m.ID == "content.search" })]
			added.ID = "content.search_again"
			changed.Methods = append(changed.Methods, added)
			drupal.SetSite(changed)
			now := c.next().Changed
			must.Expect(t, slices.Contains(now, added.ID), "after the change: expected %s among the tools, got %v", added.ID, now)
		})
	}
}

// Libraries list the tools over all pages and call one, from the reference and from a gateway before it.
func TestLibrariesListAndCall(t *testing.T) {
	installed(t)
	site := builtin(t, "default")
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool { return strings.HasPrefix(m.ID, "id.") }) // of which two are one tool for a client that knows no dot
	_, url, siteURL := serve(t, site)
	address := program.Address(t)
	proxy := exec.CommandContext(within(t, 5*time.Minute), node22, bin("mcp-proxy"), "--server", "stream", "--port", address[strings.LastIndex(address, ":")+1:], "--", program.Build(t), "bridge", "--stdio")
	proxy.Env = append(os.Environ(), "DRUPAL_URL="+siteURL, "DRUPAL_USER=agent", "DRUPAL_PASSWORD=agent-pass")
	for name, at := range map[string]string{"the reference": url, "mcp-proxy": serving(t, address, proxy)[1]} {
		for _, library := range []string{"ai-sdk", "langchain", "openai-agents"} {
			t.Run(library+" with "+name, func(t *testing.T) {
				c := converse(t, "libraries.mjs", library, at+"/mcp", agent, "content.search", `{"query":"article"}`)
				if tools := c.next().Tools; len(tools) <= 20 || !slices.Contains(tools, "content.search") && !slices.Contains(tools, "content_search") {
					t.Errorf("expected more than a page of 20 tools, with content.search, got %d: %v", len(tools), tools)
				}
				must.Has(t, c.next().Text, "First article", "content.search")
			})
		}
		t.Run("the Go SDK with "+name, func(t *testing.T) {
			ctx := within(t, time.Minute)
			client := mcp.NewClient(&mcp.Implementation{Name: "bridgecheck-clients", Version: "1"}, nil)
			s := must.Get(client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: at + "/mcp", HTTPClient: &http.Client{Transport: asAgent{}}}, nil))(t)
			defer s.Close()
			tools := 0
			for _, err := range s.Tools(ctx, nil) {
				if tools++; err != nil {
					t.Fatal(err)
				}
			}
			r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "content.search", Arguments: map[string]any{"query": "article"}})
			must.Expect(t, err == nil && !r.IsError && tools > 20, "expected more than a page of 20 tools and a result, got %d and %v, %v", tools, r, err)
		})
	}
}

// asAgent sends requests with the credentials of the account agent.
type asAgent struct{}

func (asAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", agent)
	return http.DefaultTransport.RoundTrip(r)
}

// A client that is given bad tools drops the whole list: of what the site describes wrongly nothing may reach it.
func TestOnePoisonedToolNeverCostsTheOthers(t *testing.T) {
	installed(t)
	site := builtin(t, "poisoned")
	var good []string
	for i := range site.Methods {
		if m := &site.Methods[i]; m.MCP != nil && !m.Unchecked {
			good = append(good, m.ID)
		}
	}
	bad := len(site.Methods) - len(good)
	must.Assert(t, bad >= 23 && len(good) != 0, "the site poisoned: expected 23 bad methods beside good ones, got %d beside %d", bad, len(good))
	for _, client := range typescript {
		t.Run(client.sdk+" "+client.era, func(t *testing.T) {
			t.Parallel()
			_, url, _ := serve(t, site.Clone())
			c := talk(t, client.sdk, client.era, url, good[0], `{"message":"hello"}`, `{}`)
			tools := c.next().Tools
			for _, id := range good {
				must.Expect(t, slices.Contains(tools, id), "expected the good tool %s, got %v", id, tools)
			}
			r := c.next().Result
			must.Expect(t, !r.IsError, "%s: expected a result, got %+v", good[0], r)
		})
	}
}

func TestInspectorListsAndCalls(t *testing.T) {
	installed(t)
	_, url, siteURL := serve(t, builtin(t, "default"))
	stdio := program.Build(t)
	targets := map[string][]string{
		"http": {"--server-url", url + "/mcp", "--transport", "http", "--header", "Authorization: " + agent},
		"stdio": {"-e", "DRUPAL_URL=" + siteURL, "-e", "DRUPAL_USER=agent", "-e", "DRUPAL_PASSWORD=agent-pass",
			"--", stdio, "bridge", "--stdio"},
	}
	calls := map[string][]string{
		"tools/list": {"--method", "tools/list"},
		"tools/call": {"--method", "tools/call", "--tool-name", "content.search", "--tool-arg", "query=article"},
	}
	for transport, target := range targets {
		for _, era := range []string{"legacy", "modern"} {
			for method, call := range calls {
				t.Run(transport+" "+era+" "+method, func(t *testing.T) {
					args := slices.Concat([]string{"--cli", "--protocol-era", era}, call, target)
					cmd := exec.CommandContext(within(t, time.Minute), filepath.Join(modules, ".bin", "mcp-inspector"), args...)
					cmd.Env = append(os.Environ(), "MCP_CATALOG_PATH="+filepath.Join(t.TempDir(), "mcp.json"))
					cmd.Stderr = t.Output()
					out, err := cmd.Output()
					must.Expect(t, err == nil && strings.Contains(string(out), "article"), "expected a result that says of articles, got %v: %.500s", err, out)
				})
			}
		}
	}
}
