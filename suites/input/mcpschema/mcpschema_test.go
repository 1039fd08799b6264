package mcpschema

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// official names the definition of each kind in the official schemas, which changed names over time.
var official = map[string]map[Kind]string{
	"2025-06-18": {Initialize: "InitializeResult", ListTools: "ListToolsResult", CallTool: "CallToolResult", Error: "JSONRPCError", ListChanged: "ToolListChangedNotification"},
	"2025-11-25": {Initialize: "InitializeResult", ListTools: "ListToolsResult", CallTool: "CallToolResult", Error: "JSONRPCErrorResponse", ListChanged: "ToolListChangedNotification"},
	"2026-07-28": {Discover: "DiscoverResult", ListTools: "ListToolsResult", CallTool: "CallToolResult", Error: "JSONRPCErrorResponse",
		ListChanged: "ToolListChangedNotification", Acknowledged: "SubscriptionsAcknowledgedNotification"},
}

// samples are good documents of each kind, in every revision.
var samples = map[Kind]string{
	Initialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"n","version":"1","title":"t"},"instructions":"i"}`,
	Discover:   `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":1,"cacheScope":"private","_meta":{}}`,
	ListTools: `{"resultType":"complete","ttlMs":0,"cacheScope":"private","nextCursor":"c","tools":[{"name":"n","title":"t","description":"d","_meta":{"a/b":1},
		"inputSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},"outputSchema":{"type":"object","properties":{"b":{}}},
		"annotations":{"title":"t","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}]}`,
	CallTool: `{"resultType":"complete","isError":false,"structuredContent":{"a":1},"content":[{"type":"text","text":"t"},{"type":"image","data":"AA==","mimeType":"image/png"},
		{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"a:b","text":"t"}},{"type":"resource_link","uri":"a:b","name":"n"}]}`,
	Error:        `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{}}}`,
	ListChanged:  `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`,
	Acknowledged: `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true}}}`,
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	must.Do(t, dec.Decode(&v))
	return v
}

func TestGoodMessagesPass(t *testing.T) {
	for revision, kinds := range official {
		for kind := range kinds {
			must.Equal(t, Fault(revision, kind, parsed(t, samples[kind])), "", "fault of %s in %s", kind, revision)
		}
	}
}

// What the official schemas refuse, ours refuse.
func TestTheOfficialSchemasRefuseNoMore(t *testing.T) {
	for revision, kinds := range official {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "mcp-schema", revision+".json"))
		must.Need(t, err == nil, "SKIPPED: the official schemas are not beside the checkout (../shared/mcp-schema): %v", err)
		at := "#/definitions/"
		if bytes.Contains(text, []byte(`"$defs"`)) {
			at = "#/$defs/"
		}
		for kind, name := range kinds {
			t.Run(revision+" "+string(kind), func(t *testing.T) {
				theirs := must.Get(Compile(text, at+name))(t)
				sample := parsed(t, samples[kind])
				err := theirs.Validate(sample)
				must.Assert(t, err == nil, "the sample is not valid by theirs: %v", err)
				rapid.Check(t, func(t *rapid.T) {
					document := spoiled(t, sample)
					if err := theirs.Validate(document); err != nil && Fault(revision, kind, document) == "" {
						text, _ := json.Marshal(document)
						t.Fatalf("they refuse %s, ours does not: %v", text, err)
					}
				})
			})
		}
	}
}

// spoiled is a copy of a document with one to three places changed.
func spoiled(t *rapid.T, v any) any {
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		v = spoil(t, v)
	}
	return v
}

var strangers = []any{nil, true, json.Number("1"), json.Number("-1"), json.Number("1.5"), "text", []any{}, map[string]any{}}

func spoil(t *rapid.T, v any) any {
	stop := rapid.IntRange(0, 4).Draw(t, "here") == 0
	switch v := v.(type) {
	case map[string]any:
		if stop || len(v) == 0 {
			break
		}
		key := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "member")
		copied := maps.Clone(v)
		if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
			delete(copied, key)
		} else {
			copied[key] = spoil(t, v[key])
		}
		return copied
	case []any:
		if stop || len(v) == 0 {
			break
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "item")
		copied := append([]any{}, v...)
		copied[i] = spoil(t, v[i])
		return copied
	}
	return rapid.SampledFrom(strangers).Draw(t, "value")
}
