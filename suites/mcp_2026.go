package suites

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/mcpschema"
)

// wrongHeader is a header of the stateless revision that disagrees with the body, or is missing.
type wrongHeader struct {
	what, name, value string // value "": the header is left out
	code              string // of the error; "": any, for a bridge may go by the header to what refuses it
}

var wrongHeaders = []wrongHeader{
	{"another method", "Mcp-Method", "tools/call", "-32020"},
	{"no method", "Mcp-Method", "", "-32020"},
	{"another version", "MCP-Protocol-Version", string(MCP2025November), ""},
}

// checks__mcp__mcp_2026 are the checks of this file.
var checks__mcp__mcp_2026 = []Check{
	{ID: "mcp/stateless-2026", Sees: Front, Run: chk__mcp__stateless2026},
}

func chk__mcp__stateless2026(ctx context.Context, t *T) {
	s := t.As(Agent).MCP(ctx, MCP2026July)
	t.Expect(s.Opened).To(Meet("server/discover with supportedVersions, the tools capability and resultType", discoverFault))
	t.Expect(s.Opened).To(BeValid(MCP2026July, mcpschema.Discover))
	first := s.ListTools(ctx, "")
	t.Expect(first).To(HaveTools())
	for _, page := range s.ListAllTools(ctx).Pages {
		t.Expect(page).To(Meet("resultType complete, cacheScope private and a ttlMs of 0 or more", cacheFault))
		t.Expect(page).To(BeValid(MCP2026July, mcpschema.ListTools))
	}
	for _, w := range wrongHeaders {
		h := s.headers("tools/list", nil)
		h.Del(w.name)
		if w.value != "" {
			h.Set(w.name, w.value)
		}
		t.Row(Agent, "", "headers that disagree with the body: "+w.what, func() {
			r := s.send(ctx, s.message(1, "tools/list", map[string]any{}), h)
			t.Expect(r).To(BeRefusedWith(400))
			if w.code != "" {
				t.Expect(r).To(BeProtocolError(w.code))
			}
		})
	}
	for what, meta := range inOrder(map[string]map[string]any{
		"no _meta": nil, "a _meta without the version": {metaCapabilities: map[string]any{}}, "a _meta without the client's capabilities": {metaVersion: string(MCP2026July)},
	}) {
		params := map[string]any{}
		if meta != nil {
			params["_meta"] = meta
		}
		t.Row(Agent, "", what, func() {
			bare := s.send(ctx, map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params}, s.headers("tools/list", nil))
			t.Expect(bare).To(BeRefusedWith(400))
			t.Expect(bare).To(BeProtocolError("-32602"))
		})
	}

	future := &Session{Client: s.Client, Revision: "2999-01-01"}
	t.Row(Agent, "", "a revision that nobody knows", func() {
		refused := future.ListTools(ctx, "")
		t.Expect(refused).To(BeRefusedWith(400))
		t.Expect(refused).To(BeProtocolError("-32022"))
		t.Expect(refused).To(Meet("data.supported with the revisions that it knows", func(a *Response) string {
			failure, _ := a.RPC()["error"].(map[string]any)
			data, _ := failure["data"].(map[string]any)
			if supported, _ := data["supported"].([]any); !holds(supported, string(MCP2026July)) {
				return a.rpcOutcome()
			}
			return ""
		}))
	})
	t.Row(Agent, "", "a method that nobody has", func() {
		unknown := s.Call(ctx, "no/such/method", map[string]any{})
		t.Expect(unknown).To(BeRefusedWith(404))
		t.Expect(unknown).To(BeProtocolError("-32601"))
	})
	if t.Drupal != nil {
		t.namedByHeader(ctx, s)
	}
	if t.Claims("mcp-list-changed") && s.declaresListChanged() {
		t.subscribed(ctx)
	}
}

// subscribed holds subscriptions/listen to its form: it is acknowledged before all else, with what will be told of.
func (t *T) subscribed(ctx context.Context) {
	l := t.As(Agent).listen(ctx, MCP2026July, toolChanges)
	t.Await(ctx, func() bool { return len(l.messages()) > 0 })
	messages := l.messages()
	t.Expect(messages).NotTo(BeEmpty(), mismatch("subscriptions/listen", acknowledged, "nothing"))
	t.Expect(l.subscriptionFault()).To(BeEmpty(), "subscriptions/listen")
	t.Expect(mcpschema.Fault(string(MCP2026July), mcpschema.Acknowledged, messages[0])).To(BeEmpty(), mismatch(acknowledged, "a valid notification", ""))
	params, _ := messages[0]["params"].(map[string]any)
	t.Expect(params["notifications"]).To(HaveKeyWithValue("toolsListChanged", true), mismatch(acknowledged, "toolsListChanged, which was asked for and is declared", exact.Short(messages[0])))
}

// namedByHeader holds tools/call against the header that names the tool.
func (t *T) namedByHeader(ctx context.Context, s *Session) {
	known := t.KnownTool(ctx)
	params := map[string]any{"name": known, "arguments": map[string]any{}}
	called := s.Call(ctx, "tools/call", params)
	t.Expect(called).To(BeToolResult())
	t.Expect(called).To(BeComplete(), "tools/call")
	if failing := t.anyFailing(); failing != "" {
		t.Expect(s.CallTool(ctx, failing, Args{})).To(BeComplete(), "tools/call of a method that fails")
	}
	h := s.headers("tools/call", params)
	h.Set("Mcp-Name", "=?base64?"+base64.StdEncoding.EncodeToString([]byte(known))+"?=")
	t.Row(Agent, "", "Mcp-Name in base64", func() { t.Expect(s.send(ctx, s.message(3, "tools/call", params), h)).To(BeToolResult()) })
	wrong := map[string][]string{"Mcp-Name of another tool": {known + "x"}, "no Mcp-Name": nil}
	if loud := strings.ToUpper(known); loud != known {
		wrong["Mcp-Name in another case"] = []string{loud}
	}
	for what, name := range inOrder(wrong) {
		h["Mcp-Name"] = name
		t.Row(Agent, "", what, func() {
			t.Drupal.Mark()
			r := s.send(ctx, s.message(4, "tools/call", params), h)
			t.Expect(r).To(BeRefusedWith(400))
			t.Expect(r).To(BeProtocolError("-32020"))
			t.Expect(r).To(HaveRunNothing())
		})
	}
}

// BeComplete matches a result with the resultType of one that is all there is. Errors of the protocol have none.
func BeComplete() OmegaMatcher {
	return Meet("resultType complete", func(a *Response) string {
		if result := a.RPCResult(); result != nil && result["resultType"] != "complete" {
			return "resultType " + exact.Short(result["resultType"])
		}
		return ""
	})
}

// anyFailing names a tool that the agent may run without arguments and that fails; "" without one.
func (t *T) anyFailing() string {
	for _, m := range t.agentTools() {
		if m.Behaviour.Kind == fixtures.Fail && m.Behaviour.Sleep == 0 && len(m.Params) == 0 {
			return t.ToolName(m.ID)
		}
	}
	return ""
}

func discoverFault(a *Response) string {
	result := a.RPCResult()
	versions, _ := result["supportedVersions"].([]any)
	capabilities, _ := result["capabilities"].(map[string]any)
	if _, tools := capabilities["tools"].(map[string]any); !tools || !holds(versions, string(MCP2026July)) || result["resultType"] != "complete" {
		return a.rpcOutcome()
	}
	return ""
}

func cacheFault(a *Response) string {
	result := a.RPCResult()
	ttl, isNumber := result["ttlMs"].(json.Number)
	switch {
	case result["resultType"] != "complete":
		return "resultType " + exact.Short(result["resultType"])
	case result["cacheScope"] != "private":
		return "cacheScope " + exact.Short(result["cacheScope"])
	case !isNumber || strings.HasPrefix(ttl.String(), "-"):
		return "ttlMs " + exact.Short(result["ttlMs"])
	}
	return ""
}

func holds(list []any, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}
