package suites_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// overheard is a bridge on stdin and stdout; what is written to it is kept.
type overheard struct {
	*io.PipeReader
	stdin *io.PipeWriter
	mu    *sync.Mutex
	said  *bytes.Buffer
}

func (o overheard) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.said.Write(p)
	o.mu.Unlock()
	return o.stdin.Write(p)
}

func (o overheard) Close() error { return errors.Join(o.stdin.Close(), o.PipeReader.Close()) }

// TestWithoutAMockNoToolRunsByWhateverWay tests a bridge that has every way to run a tool (invoke, MCP, stdio), with all
// capabilities claimed and with generated cases and sequences, and counts what reaches the site.
func TestWithoutAMockNoToolRunsByWhateverWay(t *testing.T) {
	t.Parallel() // it waits most of the time
	takesArguments := []suites.Invocation{{Tool: "content.search", Identity: suites.Agent, Arguments: fixtures.Raw(`{"query":"w"}`)}}
	for what, c := range map[string]struct {
		allowed  []suites.Invocation
		recorded bool
		alone    bool // with MCP as the only interface
	}{
		"nothing allowed":                {},
		"allowed, and a recording proxy": {allowed: takesArguments, recorded: true},
		"MCP alone, nothing allowed":     {alone: true},
	} {
		t.Run(what, func(t *testing.T) {
			drupal := defaultSite(t, mockdrupal.Options{}, nil)
			o := suites.Options{Bridge: suites.Bridge{Patterns: &suites.Patterns{Include: []string{"*"}}, RateLimit: 5, Invalidate: &suites.Invalidate{Method: "POST", Path: "/mcp/admin/invalidate", Identity: suites.Admin}}, Callers: suites.Callers{Invocations: c.allowed,
				Credentials: passwords(suites.Agent, suites.Agent2, suites.Discoverer, suites.Outsider, suites.NoRPC, suites.Service, suites.Admin)}, Capabilities: allCapabilities(t), Cases: 20, Skip: []string{"upstream/huge-answer"}}
			proves := []string{"mcp/stdio", "mcp/unknown-tool", "list/order-stable", "describe/equals-list"}
			if c.alone {
				o.Capabilities = slices.DeleteFunc(o.Capabilities, func(name string) bool { return name == "tools" })
				proves = []string{"mcp/stdio", "mcp/unknown-tool", "list/names-unique", "schema/input-valid"}
			}
			site := serveAt(t, drupal)
			if c.recorded {
				site = recorded(t, site, &o)
			}
			b := reference(t, bridge.Options{Drupal: site})
			var mu sync.Mutex
			var said bytes.Buffer
			o.Bridge.Stdio = func(context.Context) (io.ReadWriteCloser, error) {
				in, toBridge := io.Pipe()
				fromBridge, out := io.Pipe()
				go func() { out.CloseWithError(b.ServeStdio(context.Background(), in, out, "service", "service-pass")) }()
				return overheard{fromBridge, toBridge, &mu, &said}, nil
			}
			seen := watch(drupal)
			seen.Handler = b
			report := run(t, serveAt(t, seen), o)

			mayBeNamed := func(tool string) bool {
				return slices.ContainsFunc(c.allowed, func(i suites.Invocation) bool { return i.Tool == tool })
			}
			for tool, request := range seen.named {
				must.Expect(t, mayBeNamed(tool), "%s was named: %s", tool, request)
			}
			for _, tool := range seen.tools {
				must.Expect(t, !strings.Contains(said.String(), `"`+tool+`"`) || mayBeNamed(tool), "%s was named over stdio", tool)
			}
			called := 0
			for _, entry := range drupal.Journal().Entries(0) {
				for _, call := range entry.Calls {
					if called++; !mayBeNamed(call.Method) {
						t.Errorf("a call of %s reached the site: %s %s", call.Method, entry.HTTPMethod, entry.Path)
					}
				}
			}
			must.Expect(t, len(c.allowed) == 0 || called >= 10,
				"only %d calls reached the site: what is allowed was not made use of", called)
			results := verdicts(report)
			for _, id := range proves {
				r := results[id]
				must.Expect(t, r.Verdict == reports.Pass, "%s is %s, so that this proves nothing of it: %s", id, r.Verdict, r.Message)
			}
			if r := results["invoke/invalid-arguments-400"]; len(c.allowed) > 0 && r.Verdict != reports.Pass {
				t.Errorf("no case was generated for what is allowed: %s (%s)", r.Verdict, r.Message)
			}
		})
	}
}
