package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Where MCP says what a server breaks, or who refuses what it shows.
const (
	buffered  = "Streamable HTTP of 2026-07-28, Receiving Messages: servers SHOULD send X-Accel-Buffering: no with an event stream"
	origins   = "Transports, Security Warning: servers MUST validate the Origin header on all incoming connections"
	notFound  = "schema, CallToolResult.isError: an error in finding the tool should be reported as an MCP error response; Tools, Error Handling: unknown tools are protocol errors"
	cursors   = "Pagination, Error Handling: an invalid cursor SHOULD result in -32602"
	toolNames = "Tools, Tool Names: names SHOULD have no character but A-Z a-z 0-9 _ - ."
	ended     = "Transports, Session Management: after it has terminated a session the server MUST respond to requests with its id with 404"
	versions  = "Transports, Protocol Version Header: a server that receives an invalid or unsupported MCP-Protocol-Version MUST respond with 400"
	doubles   = "RFC 8259, 6: a program that reads numbers as doubles loses what they do not hold; the contract: a value reaches the other side as it is"
	atTheRoot = "no clause of MCP: the threads that profile/no-root-combinator cites"
)

// standing is a server that others wrote, and the clauses that it breaks, each with the place that says so.
type standing struct {
	name   string
	start  func(*testing.T, string) (args []string) // of the run that tests it
	claims string
	allow  map[string]string // the arguments of the tools that may be run
	breaks map[string]string
}

const goSDK = "github.com/modelcontextprotocol/go-sdk/"

// What versions 1 and 2 of the TypeScript SDK break, over HTTP and on stdio.
var (
	ofTypeScript = map[string]string{"mcp/origin": origins, "mcp/unknown-tool-error": notFound, "mcp/invalid-cursor": cursors}
	onStdio      = map[string]string{"mcp/unknown-tool-error": notFound, "mcp/invalid-cursor": cursors}
	ofTwo        = map[string]string{"mcp/origin": origins, "mcp/invalid-cursor": cursors}
)

var zoo = []standing{
	{name: goSDK + "examples/server/everything", start: startGo, allow: map[string]string{"greet": `{"name":"Ann"}`},
		breaks: map[string]string{"mcp/origin": origins, "mapping/name-portable": toolNames}},
	{name: goSDK + "examples/server/memory", start: startGo, allow: map[string]string{"read_graph": `{}`}, breaks: map[string]string{"mcp/origin": origins}},
	{name: goSDK + "examples/server/sequentialthinking", start: startGo, breaks: map[string]string{"mcp/origin": origins}},
	{name: goSDK + "conformance/everything-server", start: startGo, claims: ",mcp-2026,mcp-list-changed", allow: map[string]string{"test_simple_text": `{}`},
		breaks: map[string]string{"mcp/origin": origins, "profile/no-root-combinator": atTheRoot, "mcp/stream-unbuffered": buffered}},
	{name: "mcp-go", start: startMCPGo, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: map[string]string{"mcp/origin": origins, "mcp/session": ended}},
	{name: "simpleStreamableHttp", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: ofTypeScript},
	{name: "simpleStatelessStreamableHttp", start: startNode, breaks: ofTypeScript},
	{name: "jsonResponseStreamableHttp", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: ofTypeScript},
	{name: "honoWebStandardStreamableHttp", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: ofTypeScript},
	{name: "elicitationFormExample", start: startNode, breaks: ofTypeScript},
	{name: "simpleTaskInteractive", start: startNode, breaks: ofTwo},
	{name: "sseAndStreamableHttpCompatibleServer", start: startNode, breaks: ofTypeScript},
	{name: "ssePollingExample", start: startNode, breaks: ofTypeScript},
	{name: "server.mjs", start: startNode, claims: ",mcp-2026", allow: map[string]string{"greet": `{"name":"Ann"}`, "add": `{"a":1,"b":2}`}, breaks: ofTwo},
	{name: "tmcp.mjs", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: map[string]string{"mcp/origin": origins,
		"mcp/bad-version-header": versions, "mcp/session": ended, "mcp/unknown-tool-error": notFound, "mcp/invalid-cursor": cursors}},
	{name: "fastmcp.mjs", start: startNode, allow: map[string]string{"greet": `{"name":"Ann"}`}, breaks: ofTwo},
	{name: "fastmcp.mjs stdio", start: onStdin, breaks: map[string]string{"mcp/invalid-cursor": cursors}},
	{name: bin("mcp-server-everything") + " streamableHttp", start: startNode, allow: map[string]string{"echo": `{"message":"hello"}`},
		breaks: map[string]string{"mcp/origin": origins, "mcp/unknown-tool-error": notFound, "mcp/invalid-cursor": cursors, "mcp/session": ended}},
	{name: bin("mcp-server-everything") + " stdio", start: onStdin, allow: map[string]string{"echo": `{"message":"hello"}`}, breaks: onStdio},
	{name: bin("mcp-server-filesystem") + " .", start: onStdin, allow: map[string]string{"list_allowed_directories": `{}`}, breaks: onStdio},
	{name: bin("mcp-server-memory"), start: onStdin, allow: map[string]string{"read_graph": `{}`}, breaks: onStdio},
	{name: bin("mcp-server-sequential-thinking"), start: onStdin, breaks: onStdio},
	{name: bin("supergateway") + " --outputTransport streamableHttp --stateful --stdio", start: gateway, breaks: ofTypeScript},
	{name: bin("supergateway") + " --outputTransport streamableHttp --stdio", start: gateway, breaks: ofTypeScript},
	{name: bin("mcp-proxy") + " --server stream --shell --", start: gateway, claims: ",mcp-2026", breaks: ofTypeScript},
}

// TestServersOfOthersBreakNothingElse runs the clauses that apply over MCP alone against servers that others wrote: what fails is
// what they break by the specification, and nothing more. Not among them are examples without tools.
func TestServersOfOthersBreakNothingElse(t *testing.T) {
	for _, server := range zoo {
		t.Run(server.name[strings.LastIndex(server.name, "/")+1:], func(t *testing.T) {
			settings := map[string]any{}
			for _, tool := range slices.Sorted(maps.Keys(server.allow)) {
				all, _ := settings["invocations"].([]any)
				settings["invocations"] = append(all, map[string]any{"tool": tool, "arguments": fixtures.Raw(server.allow[tool])})
			}
			tested := breaks(t, server.breaks, settings, append(server.start(t, server.name), "--capabilities", "mcp,-tools,-naming-id,-exposure-attribute"+server.claims))
			if strings.Contains(server.claims, "mcp-list-changed") && tested < 60 {
				t.Errorf("%d clauses apply, want 60 at least", tested)
			}
		})
	}
}

// TestGatewaysBeforeTheReference tests the reference bridge on stdio behind gateways: what fails is what the gateway breaks.
func TestGatewaysBeforeTheReference(t *testing.T) {
	broken := map[string]string{"mcp/origin": origins, "mapping/properties-complete": doubles, "invoke/arguments-forwarded": doubles, "invoke/integral-number": doubles}
	for _, name := range []string{
		"supergateway --outputTransport streamableHttp --stateful --port ${BRIDGE_LISTEN##*:} --stdio",
		"mcp-proxy --server stream --shell --port ${BRIDGE_LISTEN##*:} --",
	} {
		t.Run(strings.Fields(name)[0], func(t *testing.T) {
			installed(t)
			script := filepath.Join(t.TempDir(), "gateway.sh")
			command := fmt.Sprintf("export DRUPAL_USER=service DRUPAL_PASSWORD=service-pass\nexec %s %s '%s bridge --stdio --discovery-ttl 2s'\n", node22, bin(name), program.Build(t))
			must.Do(t, os.WriteFile(script, []byte(command), 0o600))
			breaks(t, broken, map[string]any{}, []string{"--exec", "sh " + script, "--discovery-ttl", "2s", "--capabilities", "mcp,-tools,auth-service"})
		})
	}
}

// breaks runs the program against a server, and compares what fails or warns with what the server breaks. It gives how many
// clauses apply.
func breaks(t *testing.T, expected map[string]string, settings map[string]any, args []string) (tested int) {
	t.Helper()
	dir := t.TempDir()
	config, err := json.Marshal(settings) // which is YAML
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "bridgecheck.yaml"), config, 0o600)
	}
	must.Do(t, err)
	cmd := exec.CommandContext(within(t, 5*time.Minute), program.Build(t), append([]string{"run", "--quiet", "--contract", "draft", "--report-dir", dir, "--config", filepath.Join(dir, "bridgecheck.yaml")}, args...)...)
	out, _ := cmd.CombinedOutput() // fails with what the server breaks: the report counts
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	must.Assert(t, err == nil, "%v: %s", err, out)
	var report reports.Report
	must.Do(t, json.Unmarshal(data, &report))
	failed, untested := map[string]string{}, map[string]string{}
	for _, r := range report.Results {
		switch r.Verdict {
		case reports.NotTestable:
			untested[r.ID] = r.Message
		case reports.Fail, reports.Warn, reports.Error:
			failed[r.ID] = r.Message + ": " + r.Actual
		case reports.NotApplicable:
			continue
		}
		tested++
	}
	s := report.Summary
	t.Logf("%d passed, %d failed, %d warned, %d not testable; %d requests in %d ms", s.Pass, s.Fail, s.Warn, s.NotTestable, report.Cost.Requests, report.DurationMS)
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		must.Expect(t, expected[id] != "", "a false alarm, or a fault that the table does not have: %s: %s", id, failed[id])
	}
	for id, place := range expected {
		switch {
		case untested[id] != "": // on a busy machine
			t.Logf("%s was not tested: %s", id, untested[id])
		case failed[id] == "":
			t.Errorf("%s passes; take it out of the table (%s)", id, place)
		}
	}
	return tested
}

// bin is a program of an installed package.
func bin(name string) string { return modules + "/.bin/" + name }

// onStdin tests a server of Node that speaks on stdin and stdout.
func onStdin(t *testing.T, name string) []string {
	t.Helper()
	installed(t)
	return []string{"--mcp-stdio", node22 + " " + name}
}

// gateway starts a gateway before the server everything on stdio.
func gateway(t *testing.T, name string) []string {
	t.Helper()
	installed(t)
	address := program.Address(t)
	_, port, _ := net.SplitHostPort(address)
	words := strings.Fields(name)
	words = slices.Insert(words, len(words)-1, "--port", port)
	return serving(t, address, exec.CommandContext(within(t, 5*time.Minute), node22, append(words, node22+" "+bin("mcp-server-everything")+" stdio")...))
}

// startMCPGo builds a small server with mcp-go, which is a module of its own, and starts it.
func startMCPGo(t *testing.T, _ string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short: no server of others is built")
	}
	server := filepath.Join(t.TempDir(), "mcpgo")
	build := exec.Command("go", "build", "-o", server, ".")
	build.Dir = "testdata/mcpgo"
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: mcp-go does not build, most likely for want of its module: %v: %s", err, out)
	}
	return atAddress(t, server)
}

// startGo builds a server of the Go SDK and starts it.
func startGo(t *testing.T, name string) []string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(name))
	out, err := exec.Command("go", "build", "-o", program, name).CombinedOutput()
	must.Assert(t, err == nil, "%v: %s", err, out)
	return atAddress(t, program)
}

// atAddress starts a server that is told where to listen by -http.
func atAddress(t *testing.T, server string) []string {
	t.Helper()
	address := program.Address(t)
	return serving(t, address, exec.CommandContext(within(t, 5*time.Minute), server, "-http", address))
}

// serving starts a server, and goes on when it listens.
func serving(t *testing.T, address string, cmd *exec.Cmd) []string {
	t.Helper()
	cmd.Stderr = t.Output()
	must.Do(t, cmd.Start())
	endsWith(t, cmd)
	answering(t, address)
	return []string{"--url", "http://" + address}
}

// answering waits until something listens at an address.
func answering(t *testing.T, address string) {
	t.Helper()
	must.Become(t, time.Minute, func() bool { return freeport.Listens(address) }, "nothing listens on %s", address)
}

// startNode starts a server of Node with what follows its file: a file of this directory, a program of a package, or an example of
// version 1 of the TypeScript SDK.
func startNode(t *testing.T, name string) []string {
	t.Helper()
	installed(t)
	words := strings.Fields(name)
	if filepath.Base(words[0]) == words[0] && filepath.Ext(words[0]) == "" {
		words[0] = modules + "/@modelcontextprotocol/sdk/dist/esm/examples/server/" + name + ".js"
	}
	cmd := exec.CommandContext(within(t, 5*time.Minute), node22, append([]string{"--import", "./listen.mjs"}, words...)...)
	cmd.Stderr = t.Output()
	address := program.Listening(t, cmd)
	endsWith(t, cmd)
	return []string{"--url", "http://" + address}
}

// endsWith ends a server with the test.
func endsWith(t *testing.T, cmd *exec.Cmd) {
	t.Cleanup(func() {
		cmd.Cancel() //nolint:errcheck // it may have ended by itself
		cmd.Wait()   //nolint:errcheck // killed
	})
}
