package clients

import (
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Where MCP says what a server breaks, or who refuses what it shows.
const (
	buffered  = "Streamable HTTP of 2026-07-28, Receiving Messages: servers SHOULD send X-Accel-Buffering: no with an event stream"
	origins   = "Transports, Security Warning: servers MUST validate the Origin header on all incoming connections"
	notFound  = "schema, CallToolResult.isError: an error in finding the tool should be reported as an MCP error response; Tools, Error Handling: unknown tools are protocol errors"
	cursors   = "Pagination, Error Handling: an invalid cursor SHOULD result in -32602"
	toolNames = "Tools, Tool Names: names SHOULD have no character but A-Z a-z 0-9 _ - ."
	promised  = "Lifecycle, Operation: both parties MUST use capabilities alone that were negotiated; Prompts, Capabilities: a server that supports prompts MUST declare it"
	atTheRoot = "no clause of MCP: the threads that profile/no-root-combinator cites"
)

// exampleServer is an example of an SDK, and the clauses that it breaks, each with the place that says so.
type exampleServer struct {
	name   string
	start  func(*testing.T, string) (url string)
	claims string
	allow  map[string]string // the arguments of the tools that may be run
	breaks map[string]string
}

const goSDK = "github.com/modelcontextprotocol/go-sdk/"

var ofTypeScript = map[string]string{"mcp/origin": origins, "mcp/unknown-tool": notFound, "mcp/invalid-cursor": cursors}

var exampleServers = []exampleServer{
	{name: goSDK + "examples/server/everything", start: startGo, allow: map[string]string{"greet": `{"name":"Ann"}`},
		breaks: map[string]string{"mcp/origin": origins, "mapping/name-portable": toolNames}},
	{name: goSDK + "examples/server/memory", start: startGo, allow: map[string]string{"read_graph": `{}`},
		breaks: map[string]string{"mcp/origin": origins, "mcp/initialize": promised}},
	{name: goSDK + "examples/server/sequentialthinking", start: startGo,
		breaks: map[string]string{"mcp/origin": origins, "mcp/initialize": promised}},
	{name: goSDK + "conformance/everything-server", start: startGo, claims: "mcp-2026,mcp-list-changed", allow: map[string]string{"test_simple_text": `{}`},
		breaks: map[string]string{"mcp/origin": origins, "profile/no-root-combinator": atTheRoot, "mcp/stream-unbuffered": buffered}},
	{name: "simpleStreamableHttp", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: ofTypeScript},
	{name: "simpleStatelessStreamableHttp", start: startNode, breaks: ofTypeScript},
	{name: "jsonResponseStreamableHttp", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: ofTypeScript},
	{name: "honoWebStandardStreamableHttp", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: ofTypeScript},
	{name: "elicitationFormExample", start: startNode, breaks: ofTypeScript},
	{name: "simpleTaskInteractive", start: startNode, breaks: ofTypeScript},
	{name: "sseAndStreamableHttpCompatibleServer", start: startNode, breaks: ofTypeScript},
	{name: "ssePollingExample", start: startNode, breaks: ofTypeScript},
	{name: "server.mjs", start: startNode, claims: "mcp-2026", allow: map[string]string{"greet": `{"name":"Ann"}`, "add": `{"a":1,"b":2}`},
		breaks: map[string]string{"mcp/origin": origins, "mcp/invalid-cursor": cursors}},
}

// TestExampleServersBreakNothingElse runs the clauses that apply over MCP alone against the SDKs' own servers: what fails is
// what they break by the specification, and nothing more. Not among them are examples without tools.
func TestExampleServersBreakNothingElse(t *testing.T) {
	for _, server := range exampleServers {
		t.Run(server.name[strings.LastIndex(server.name, "/")+1:], func(t *testing.T) {
			claimed, err := suites.Claim(suites.DefaultCapabilities(), "mcp,-tools,-naming-id,-exposure-attribute,"+server.claims)
			if err != nil {
				t.Fatal(err)
			}
			o := suites.Options{Contract: contract.Draft, Capabilities: claimed}
			for tool, args := range server.allow {
				o.Callers.Invocations = append(o.Callers.Invocations, suites.Invocation{Tool: tool, Identity: suites.Agent, Arguments: fixtures.Raw(args)})
			}
			report, err := suites.Run(within(t, time.Minute), suites.Target{URL: server.start(t, server.name)}, o)
			if err != nil {
				t.Fatal(err)
			}
			tested := map[reports.Verdict]int{}
			failed := map[string]string{}
			for _, r := range report.Results {
				tested[r.Verdict]++
				if r.Verdict == reports.Fail || r.Verdict == reports.Warn {
					failed[r.ID] = r.Message + ": " + r.Actual
				}
			}
			t.Logf("%d passed, %d failed, %d warned, %d not testable", tested[reports.Pass], tested[reports.Fail], tested[reports.Warn], tested[reports.NotTestable])
			if apply := len(report.Results) - tested[reports.NotApplicable]; strings.Contains(server.claims, "mcp-2026") && apply < 60 {
				t.Errorf("%d clauses apply, want 60 at least", apply)
			}
			for _, id := range slices.Sorted(maps.Keys(failed)) {
				if server.breaks[id] == "" {
					t.Errorf("a false alarm, or a fault that the table does not have: %s: %s", id, failed[id])
				}
			}
			for id, place := range server.breaks {
				if failed[id] == "" {
					t.Errorf("%s passes; take it out of the table (%s)", id, place)
				}
			}
		})
	}
}

// startGo builds a server of the Go SDK and starts it.
func startGo(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(name))
	if out, err := exec.Command("go", "build", "-o", program, name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address, release, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	cmd := exec.CommandContext(within(t, 2*time.Minute), program, "-http", address)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended(t, cmd)
	ctx := within(t, 20*time.Second)
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return "http://" + address
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not listen on %s", name, address)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startNode starts a server of a TypeScript SDK: a file of this directory, or an example of v1.
func startNode(t *testing.T, name string) string {
	t.Helper()
	installed(t)
	file := "./" + name
	if filepath.Ext(name) == "" {
		file = modules + "/@modelcontextprotocol/sdk/dist/esm/examples/server/" + name + ".js"
	}
	cmd := exec.CommandContext(within(t, 2*time.Minute), node22, "--import", "./listen.mjs", file)
	cmd.Stderr = t.Output()
	address := program.Listening(t, cmd)
	ended(t, cmd)
	return "http://" + address
}

// ended ends a server with the test.
func ended(t *testing.T, cmd *exec.Cmd) {
	t.Cleanup(func() {
		cmd.Cancel() //nolint:errcheck // it may have ended by itself
		cmd.Wait()   //nolint:errcheck // killed
	})
}
