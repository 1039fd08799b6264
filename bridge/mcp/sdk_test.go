package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// reasons are why the server is not the official SDK's: what its server, with one tool and settings that a bridge would
// use, does that a clause forbids. When one of them holds no longer this test fails; when few do, the SDK is worth
// another look.
var reasons = []struct {
	name   string
	method string
	params string // beside _meta
	header map[string]string
	broken func(status int, body string) bool
}{
	{"a result may be kept by a shared cache", "tools/list", ``, nil,
		func(_ int, body string) bool { return strings.Contains(body, `"cacheScope":"public"`) }},
	{"a cursor says the name of the last tool, which may be hidden from who sends it", "tools/list", ``, nil,
		func(_ int, body string) bool {
			return strings.Contains(body, `"nextCursor":"`) && !strings.Contains(body, `"nextCursor":"MQ=="`)
		}},
	{"Mcp-Name in base64 is refused", "tools/call", `"name":"first","arguments":{},`, map[string]string{"Mcp-Name": "=?base64?Zmlyc3Q=?="},
		func(status int, _ string) bool { return status == http.StatusBadRequest }},
	{"a raw tool's arguments are not validated", "tools/call", `"name":"first","arguments":{"n":"no number"},`, map[string]string{"Mcp-Name": "first"},
		func(_ int, body string) bool { return strings.Contains(body, "ran") }},
	{"prompts are listed without the capability", "prompts/list", ``, nil,
		func(status int, body string) bool {
			return status == http.StatusOK && strings.Contains(body, `"prompts":[]`)
		}},
	{"a foreign Origin is served", "tools/list", ``, map[string]string{"Origin": "http://evil.example"},
		func(status int, _ string) bool { return status == http.StatusOK }},
	{"hints that nobody gave are sent", "tools/list", ``, nil,
		func(_ int, body string) bool { return strings.Contains(body, `"idempotentHint":false`) }},
}

// bareSDK is a server of the official SDK with tools that nothing is checked of.
func bareSDK() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, &sdk.ServerOptions{PageSize: 1})
	for _, name := range []string{"first", "second"} {
		server.AddTool(&sdk.Tool{Name: name, Description: "Runs", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "ran"}}}, nil
			})
	}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

func TestWhyTheServerIsNotTheSDKs(t *testing.T) {
	front := must.Serve(t, bareSDK())
	for _, reason := range reasons {
		t.Run(reason.name, func(t *testing.T) {
			status, body := ask(t, front.URL, reason.method, reason.params, reason.header)
			must.Expect(t, reason.broken(status, body), "no longer so: %d %s", status, body)
		})
	}
}

// ask sends a request of the stateless revision. params are members of it beside _meta, each with a comma behind it.
func ask(t *testing.T, url, method, params string, header map[string]string) (status int, body string) {
	t.Helper()
	message := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message)))(t)
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
		r.Header.Set(name, value)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	read := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(read)
}
