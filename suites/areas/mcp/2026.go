package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/mcpschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// wrongHeader is a header of the stateless revision that disagrees with the body, or is missing.
type wrongHeader struct {
	what, name, value string // value "": the header is left out
	code              string // of the error; "": any, because a bridge may follow the header and refuse for another reason
}

var wrongHeaders = []wrongHeader{
	{"another method", "Mcp-Method", "tools/call", "-32020"},
	{"the method in another case", "Mcp-Method", "Tools/List", "-32020"},
	{"no method", "Mcp-Method", "", "-32020"},
	{"another version", "MCP-Protocol-Version", string(check.MCP2025November), ""},
}

func stateless2026(ctx context.Context, t *check.T) {
	s := t.As(check.Agent).MCP(ctx, check.MCP2026July)
	t.Expect(s.Opened).To(match.Conform("server/discover with supportedVersions, the tools capability and resultType", discoverFault))
	t.Expect(s.Opened).To(BeValid(check.MCP2026July, mcpschema.Discover))
	mustList(ctx, s)
	scopes, hint := []any{"private"}, "resultType complete, cacheScope private and a ttlMs of 0 or more"
	all := check.ListAllTools(ctx, s)
	if sameForEveryone(ctx, t, all.Names()) {
		scopes, hint = []any{"private", "public"}, "resultType complete, cacheScope private or public, and a ttlMs of 0 or more"
	}
	for _, page := range all.Pages {
		t.Expect(page).To(match.Conform(hint, func(a *check.Response) string { return cacheFault(a, scopes) }))
		t.Expect(page).To(BeValid(check.MCP2026July, mcpschema.ListTools))
	}
	for _, w := range wrongHeaders {
		h := s.Headers("tools/list", nil)
		h.Del(w.name)
		if w.value != "" {
			h.Set(w.name, w.value)
		}
		t.Row(check.Agent, "", "headers that disagree with the body: "+w.what, func() {
			r := s.Send(ctx, s.Message(1, "tools/list", map[string]any{}), h)
			t.Expect(r).To(match.BeRefusedWith(400))
			if w.code != "" {
				t.Expect(r).To(match.BeProtocolError(w.code))
			}
		})
	}
	t.Row(check.Agent, "", "another version in the body", func() {
		meta := map[string]any{client.MetaVersion: string(check.MCP2025November), client.MetaCapabilities: map[string]any{}}
		t.Expect(s.Send(ctx, s.Message(1, "tools/list", map[string]any{"_meta": meta}), s.Headers("tools/list", nil))).To(match.BeRefusedWith(400))
	})
	for what, meta := range check.InOrder(map[string]map[string]any{
		"no _meta": nil, "a _meta without the version": {client.MetaCapabilities: map[string]any{}}, "a _meta without the client's capabilities": {client.MetaVersion: string(check.MCP2026July)},
	}) {
		params := map[string]any{}
		if meta != nil {
			params["_meta"] = meta
		}
		t.Row(check.Agent, "", what, func() {
			bare := s.Send(ctx, map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params}, s.Headers("tools/list", nil))
			t.Expect(bare).To(match.BeRefusedWith(400))
			t.Expect(bare).To(match.BeProtocolError("-32602"))
		})
	}

	future := &check.Session{Client: s.Client, Revision: "2999-01-01"}
	t.Row(check.Agent, "", "an unknown revision", func() {
		refused := future.ListTools(ctx, "")
		t.Expect(refused).To(match.BeRefusedWith(400))
		t.Expect(refused).To(match.BeProtocolError("-32022"))
		t.Expect(refused).To(match.MatchRPCWhere("data.supported with the revisions that the bridge supports", func(a *check.Response) bool {
			failure, _ := a.RPC()["error"].(map[string]any)
			data, _ := failure["data"].(map[string]any)
			supported, _ := data["supported"].([]any)
			return holds(supported, string(check.MCP2026July))
		}))
	})
	t.Row(check.Agent, "", "an unknown method", func() {
		unknown := s.Call(ctx, "no/such/method", map[string]any{})
		t.Expect(unknown).To(match.BeRefusedWith(404))
		t.Expect(unknown).To(match.BeProtocolError("-32601"))
	})
	if t.Drupal != nil {
		namedByHeader(ctx, t, s)
	}
	if t.Claims("mcp-list-changed") && declaresListChanged(s) {
		subscribed(ctx, t)
	}
}

// subscribed tests that the first message of subscriptions/listen acknowledges it and names the notifications to come.
func subscribed(ctx context.Context, t *check.T) {
	l := listen(ctx, t.As(check.Agent), check.MCP2026July, toolChanges)
	t.Await(ctx, func() bool { return len(l.Messages()) > 0 })
	messages := l.Messages()
	t.Expect(messages).NotTo(BeEmpty(), check.Mismatch("subscriptions/listen", acknowledged, "nothing"))
	t.Expect(l.subscriptionFault()).To(BeEmpty(), "subscriptions/listen")
	t.Expect(mcpschema.Fault(string(check.MCP2026July), mcpschema.Acknowledged, messages[0])).To(BeEmpty(), check.Mismatch(acknowledged, "a valid notification", ""))
	params, _ := messages[0]["params"].(map[string]any)
	t.Expect(params["notifications"]).To(HaveKeyWithValue("toolsListChanged", true), check.Mismatch(acknowledged, "toolsListChanged, which was requested and is declared", exact.Short(messages[0])))
}

// streamUnbuffered looks at the streams that a client meets: of a list, where it comes as one, and of a subscription.
func streamUnbuffered(ctx context.Context, t *check.T) {
	s := MustMCP(ctx, t.As(check.Agent), check.MCP2026July)
	streams := 0
	unbuffered := func(what string, h http.Header) {
		if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind != "text/event-stream" {
			return
		}
		streams++
		t.Row(check.Agent, "", what, func() {
			got := h.Get("X-Accel-Buffering")
			t.Expect(strings.EqualFold(got, "no")).To(BeTrue(), check.Mismatch("the event stream of "+what, "X-Accel-Buffering: no", fmt.Sprintf("%q", got)))
		})
	}
	unbuffered("tools/list", s.ListTools(ctx, "").Header)
	if t.Claims("mcp-list-changed") && declaresListChanged(s) {
		if resp, err := s.Client.OpenStream(ctx, streamRequest(s, toolChanges)); err == nil {
			resp.Body.Close()
			unbuffered("subscriptions/listen", resp.Header)
		}
	}
	if streams == 0 {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge sends no event stream"}})
	}
}

// namedByHeader tests that the header Mcp-Name of tools/call must agree with the body.
func namedByHeader(ctx context.Context, t *check.T, s *check.Session) {
	known := scenario.KnownTool(ctx, t)
	params := map[string]any{"name": known, "arguments": map[string]any{}}
	called := s.Call(ctx, "tools/call", params)
	t.Expect(called).To(match.BeToolResult())
	t.Expect(called).To(BeComplete(), "tools/call")
	if failing := anyFailing(t); failing != "" {
		t.Expect(s.CallTool(ctx, failing, check.Args{})).To(BeComplete(), "tools/call of a method that fails")
	}
	h := s.Headers("tools/call", params)
	h.Set("Mcp-Name", "=?base64?"+base64.StdEncoding.EncodeToString([]byte(known))+"?=")
	t.Row(check.Agent, "", "Mcp-Name in base64", func() { t.Expect(s.Send(ctx, s.Message(3, "tools/call", params), h)).To(match.BeToolResult()) })
	wrong := map[string][]string{"Mcp-Name of another tool": {known + "x"}, "no Mcp-Name": nil}
	if loud := strings.ToUpper(known); loud != known {
		wrong["Mcp-Name in another case"] = []string{loud}
	}
	for what, name := range check.InOrder(wrong) {
		h["Mcp-Name"] = name
		t.Row(check.Agent, "", what, func() {
			t.Drupal.Mark()
			r := s.Send(ctx, s.Message(4, "tools/call", params), h)
			t.Expect(r).To(match.BeRefusedWith(400))
			t.Expect(r).To(match.BeProtocolError("-32020"))
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
}

// BeComplete matches a result with resultType complete, and any protocol error, which has no resultType.
func BeComplete() OmegaMatcher {
	return match.Conform("resultType complete", func(a *check.Response) string {
		if result := a.RPCResult(); result != nil && result["resultType"] != "complete" {
			return "resultType " + exact.Short(result["resultType"])
		}
		return ""
	})
}

// anyFailing names a tool that the agent may run without arguments and that fails; "" without one.
func anyFailing(t *check.T) string {
	for _, m := range scenario.AgentTools(t) {
		if m.Behaviour.Kind == fixtures.Fail && m.Behaviour.Sleep == 0 && len(m.Params) == 0 {
			return t.ToolName(m.ID)
		}
	}
	return ""
}

func discoverFault(a *check.Response) string {
	result := a.RPCResult()
	versions, _ := result["supportedVersions"].([]any)
	capabilities, _ := result["capabilities"].(map[string]any)
	if _, tools := capabilities["tools"].(map[string]any); !tools || !holds(versions, string(check.MCP2026July)) || result["resultType"] != "complete" {
		return a.RPCOutcome()
	}
	return ""
}

// sameForEveryone reports whether a list does not depend on the caller: that of a server without a Drupal site that is known,
// where the others see the same, also without credentials.
func sameForEveryone(ctx context.Context, t *check.T, names []string) bool {
	if !t.Foreign() {
		return false
	}
	for _, who := range t.Callers(check.Outsider, check.Discoverer, check.Agent2, check.NoRPC, check.Blocked, check.Anonymous) {
		l := check.ListAllTools(ctx, t.As(who).Session(ctx, check.MCP2026July))
		if !slices.Equal(l.Names(), names) {
			return false
		}
	}
	return true
}

func cacheFault(a *check.Response, scopes []any) string {
	result := a.RPCResult()
	ttl, isNumber := result["ttlMs"].(json.Number)
	switch {
	case result["resultType"] != "complete":
		return "resultType " + exact.Short(result["resultType"])
	case !slices.Contains(scopes, result["cacheScope"]):
		return "cacheScope " + exact.Short(result["cacheScope"])
	case !isNumber || strings.HasPrefix(ttl.String(), "-"):
		return "ttlMs " + exact.Short(result["ttlMs"])
	}
	return ""
}

func holds(list []any, s string) bool { return slices.Contains(list, any(s)) }
