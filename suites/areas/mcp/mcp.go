// Package mcp checks the Model Context Protocol interface of a bridge, in the revisions that it claims, over HTTP and stdio.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/mcpschema"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area mcp.
var Checks = []check.Check{
	{ID: "mcp/initialize", Sees: check.Front, Run: initialize, OfOne: func(_ *check.T, a *check.Response) OmegaMatcher {
		if a.Asked == nil {
			return nil
		}
		return HaveSameID()
	}},
	{ID: "mcp/tools-list", Sees: check.Front, Run: toolsList, OfOne: ofResult("tools/list", mcpschema.ListTools)},
	{ID: "mcp/invalid-cursor", Sees: check.Front, Run: invalidCursor},
	{ID: "mcp/unknown-tool", ByMock: true, Sees: check.Front, Run: unknownTool},
	{ID: "mcp/unknown-tool-error", Sees: check.Front, Run: unknownToolError},
	{ID: "mcp/invalid-arguments", Sees: check.Front, Run: invalidArguments},
	{ID: "mcp/execution-error", Sees: check.Site, Run: executionError},
	{ID: "mcp/structured-content", Sees: check.Site, Run: structuredContent, OfOne: ofResult("tools/call", mcpschema.CallTool)},
	{ID: "mcp/structured-mismatch", Sees: check.Site, Run: structuredMismatch},
	{ID: "mcp/undeclared-argument", Sees: check.Site, Run: undeclaredArgument},
	{ID: "mcp/trace-context", Sees: check.Site, Run: traceContext},
	{ID: "mcp/order-stable", Sees: check.Front, Run: orderStable},
	{ID: "mcp/stream-unbuffered", Sees: check.Front, HTTP: true, Run: streamUnbuffered},
	{ID: "mcp/client-tolerance", Sees: check.Front, Run: clientTolerance},
	{ID: "mcp/empty-map", Sees: check.Site, Run: emptyMap},
	{ID: "mcp/stateless-2026", ByMock: true, Sees: check.Front, HTTP: true, Run: stateless2026},
	{ID: "fresh/notify", Sees: check.Site, Run: notify},
	{ID: "mcp/parity", ByMock: true, Sees: check.Front, Run: parity},
	{ID: "mcp/stdio", ByMock: true, Sees: check.Front, Run: stdio},
	{ID: "mcp/bad-version-header", Sees: check.Front, HTTP: true, Run: badVersionHeader},
	{ID: "mcp/origin", ByMock: true, Sees: check.Front, HTTP: true, Run: origin},
	{ID: "mcp/session", ByMock: true, Sees: check.Front, HTTP: true, Run: session},
	{ID: "mcp/notification-202", Sees: check.Front, HTTP: true, Run: notification202},
}

// shownFault is the first of shownFaults; "" when there is none.
func shownFault(t *check.T, who check.Identity, got []string) string {
	wrong := scenario.ShownFaults(t, who, got)
	if len(wrong) == 0 {
		return ""
	}
	return wrong[slices.Sorted(maps.Keys(wrong))[0]]
}

func initialize(ctx context.Context, t *check.T) {
	offered := sessionRevisions(ctx, t)
	if len(offered) == 0 {
		untestedRevision(ctx, t)
		t.Expect(offered).NotTo(BeEmpty(), check.Mismatch("initialize with 2025-11-25 and 2025-06-18", "one of them in the response",
			t.As(check.Agent).Session(ctx, check.MCP2025November).Opened.RPCOutcome()))
	}
	ids := traps.IDs
	nextID := func() (id any) {
		id, ids = ids[0], append(slices.Clone(ids[1:]), ids[0])
		return id
	}
	for i, revision := range offered {
		pairs := 7
		if i > 0 {
			pairs = 1
		}
		t.Row(check.Agent, "", string(revision), func() { opensWell(ctx, t, revision, pairs, nextID) })
	}
	for _, revision := range sessionsOf {
		if !slices.Contains(offered, revision) {
			t.Row(check.Agent, "", "asked for "+string(revision)+", which it does not agree to", func() { doesNotServe(ctx, t, revision) })
		}
	}
	opening := &check.Session{Client: t.As(check.Agent), Revision: check.MCP2025November}
	method, params := opening.Opening()
	for _, unknown := range unknownVersions {
		params["protocolVersion"] = unknown
		r := opening.Call(ctx, method, params)
		t.Row(check.Agent, "", "the unknown version "+unknown, func() {
			t.Expect(r).To(match.MatchRPCWhere("another version in the response, or an error", func(a *check.Response) bool {
				return a.RPCResult()["protocolVersion"] != unknown && a.RPC() != nil
			}))
		})
	}
}

// sessionsOf are the revisions with sessions, the newest first.
var sessionsOf = []check.Revision{check.MCP2025November, check.MCP2025June}

// doesNotServe tests that a bridge which responds to initialize with another revision than the one asked for does not serve the
// one asked for: it would have had to agree. A bridge that accepts any version in the header (mcp/bad-version-header) has not
// said that it does.
func doesNotServe(ctx context.Context, t *check.T, revision check.Revision) {
	s := t.As(check.Agent).MCP(ctx, revision)
	if s.Opened.RPCResult() == nil {
		return // an error is a refusal, too
	}
	list := func(version string) *check.Response {
		h := s.Headers("tools/list", nil)
		h.Set("MCP-Protocol-Version", version)
		return s.Send(ctx, s.Message(76, "tools/list", map[string]any{}), h)
	}
	if served := list(string(revision)); served.RPCResult() == nil || list(unknownVersions[2]).Status != http.StatusBadRequest {
		return
	}
	t.Blame(s.Opened)
	t.Fail(check.Mismatch("initialize with "+string(revision), fmt.Sprintf("the version %s in the response, as the bridge serves it: it accepts the header MCP-Protocol-Version: %[1]s, and refuses %s", revision, unknownVersions[2]),
		"the version "+string(s.Revision)))
}

func toolsList(ctx context.Context, t *check.T) {
	for _, revision := range revisions(ctx, t) {
		for _, who := range t.Callers(check.Agent, check.Discoverer) {
			t.For(who, "", func() { listsByMCP(ctx, t, revision, who) })
		}
		for _, who := range t.Callers(check.Outsider, check.NoRPC, check.Anonymous) {
			t.For(who, "", func() { notShown(ctx, t, revision, who) })
		}
	}
}

func invalidCursor(ctx context.Context, t *check.T) {
	for _, revision := range revisions(ctx, t) {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		mustList(ctx, s)
		t.Row(check.Agent, "", "in "+string(revision), func() { t.Expect(s.ListTools(ctx, "!no-cursor!")).To(match.BeProtocolError("-32602")) })
	}
}

func unknownTool(ctx context.Context, t *check.T) {
	spoken := revisions(ctx, t)
	for _, revision := range spoken {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		if t.Drupal != nil {
			denied := ""
			if !t.OneAccount() {
				denied = scenario.DeniedTool(t, check.Discoverer, check.Agent)
			}
			known := otherTool(t, denied)
			t.Expect(s.CallTool(ctx, known, check.Args{})).To(match.BeToolResult())
			refuses := func(s *check.Session, name, what string) {
				t.For(s.Client.Who, name, func() {
					t.Drupal.Mark()
					r := s.CallTool(ctx, name, check.Args{})
					t.Expect(r).To(match.BeProtocolError("-32602"), what)
					t.Expect(r).To(match.HaveRun(t.Upstream, name, 0), what)
				})
			}
			if loud := strings.ToUpper(known); !slices.Contains(t.Visible(check.Agent), loud) {
				refuses(s, loud, "a tool's name in another case")
			}
			if !revision.Stateless() { // whose header with the name has no blank at its end
				refuses(s, known+" ", "a tool's name with a blank behind it")
			}
			if revision == spoken[0] {
				refuses(s, "mcp__drupal__"+known, "a tool's name as clients show it, behind that of the server")
				if near := strings.ReplaceAll(known, ".", "_"); !slices.Contains(t.Visible(check.Agent), near) {
					refuses(s, near, "a tool's name with _ in place of its dots")
				}
			}
			refuses(s, scenario.HiddenMethods(t)[0], "a method that is no tool")
			if denied != "" {
				refuses(MustMCP(ctx, t.As(check.Discoverer), revision), denied, "a tool that the caller may not run")
				deniedSince(ctx, t, revision, denied)
			}
		} else {
			MustListTools(ctx, s)
		}
		t.For(check.Agent, scenario.NoSuchTool, func() {
			unknown := s.CallTool(ctx, scenario.NoSuchTool, check.Args{})
			if t.Foreign() {
				t.Expect(unknown).To(match.Conform("a protocol error, or a result with isError", func(a *check.Response) string { return notRefused(a.RPC()) }), "an unknown tool")
				return
			}
			t.Expect(unknown).To(match.BeProtocolError("-32602"), "an unknown tool")
			t.Expect(unknown).To(BeValid(revision, mcpschema.Error))
		})
	}
}

// notRefused is what came of a call instead of a refusal, in any form that the revisions know; "": it was refused.
func notRefused(message map[string]any) string {
	result, _ := message["result"].(map[string]any)
	if codeOf(message) != "" || result["isError"] == true {
		return ""
	}
	return exact.Short(message)
}

func unknownToolError(ctx context.Context, t *check.T) {
	for _, revision := range revisions(ctx, t)[:1] {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		MustListTools(ctx, s)
		t.Expect(s.CallTool(ctx, scenario.NoSuchTool, check.Args{})).To(match.MatchRPCWhere("a protocol error", func(a *check.Response) bool {
			return a.RPCCode() != ""
		}), "an unknown tool")
	}
}

func invalidArguments(ctx context.Context, t *check.T) {
	if t.Drupal == nil {
		check.NotTestable("the check needs a known tool of the site: put the mock Drupal behind the bridge")
	}
	echo := scenario.EchoTool(t)
	for _, revision := range revisions(ctx, t) {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		t.Expect(s.CallTool(ctx, t.ToolName(echo.ID), echo.Arguments("positive control"))).To(match.BeToolResult())
		r := s.CallTool(ctx, t.ToolName(echo.ID), echo.Arguments(map[string]any{"no": "string"}))
		if revision == check.MCP2025June && r.RPCCode() == "-32602" {
			continue
		}
		t.Row(check.Agent, t.ToolName(echo.ID), "in "+string(revision), func() { t.Expect(r).To(BeToolError(echo.Param), "arguments that break the inputSchema") })
	}
}

func executionError(ctx context.Context, t *check.T) {
	failing := scenario.FailingTool(t)
	for _, revision := range revisions(ctx, t) {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		t.Expect(s.CallTool(ctx, scenario.KnownTool(ctx, t), check.Args{})).To(match.BeToolResult())
		t.Row(check.Agent, t.ToolName(failing.ID), "in "+string(revision), func() {
			failed := s.CallTool(ctx, t.ToolName(failing.ID), check.Args{})
			t.Expect(failed).To(BeToolError(failing.Behaviour.Error.Message), "a method that fails")
			t.Expect(failed).To(BeValid(revision, mcpschema.CallTool), "a method that fails")
		})
		for _, tool := range scenario.Samples(t, check.Agent, fixtures.Fail) {
			if tool.Fails().Code != scenario.RPCInvalidParams || revision == check.MCP2025June { // in which mcp/invalid-arguments lets -32602 be
				continue
			}
			t.Row(check.Agent, tool.Name, "a method that refuses its arguments, in "+string(revision), func() {
				t.Expect(s.CallTool(ctx, tool.Name, tool.Arguments)).To(BeToolError(), "a method that refuses its arguments")
			})
		}
	}
	before := t.Drupal.Site()
	worded := before.Clone()
	if m, ok := worded.Method(failing.ID); ok {
		e := *failing.Behaviour.Error
		e.Message = traps.Said
		m.Behaviour.Error = &e
	}
	t.Cleanup(func(context.Context) { t.Drupal.Mock.SetSite(before) })
	t.Drupal.Mock.SetSite(worded)
	for _, revision := range revisions(ctx, t)[:1] {
		t.Row(check.Agent, t.ToolName(failing.ID), "a message that programs change", func() {
			t.Expect(MustMCP(ctx, t.As(check.Agent), revision).CallTool(ctx, t.ToolName(failing.ID), check.Args{})).To(BeToolError(traps.Said))
		})
	}
}

func structuredContent(ctx context.Context, t *check.T) {
	for _, revision := range revisions(ctx, t) {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		l := MustListTools(ctx, s)
		tested := 0
		for _, m := range scenario.AgentTools(t) {
			tool, listed := find(l, t.ToolName(m.ID))
			if !listed || m.Output == nil || m.Behaviour.Kind != fixtures.Value || m.Behaviour.Sleep > 0 || len(m.Params) > 0 || !conforms(m) || beyondDouble(exact.MustParse(m.Behaviour.Value)) {
				continue
			}
			if t.Drupal.Site().NullFails && string(m.Behaviour.Value) == "null" {
				continue
			}
			tested++
			t.For(check.Agent, tool.Name(), func() {
				called := s.CallTool(ctx, t.ToolName(m.ID), check.Args{})
				t.Expect(called).To(GiveStructured(m, tool, revision))
				t.Expect(called).To(BeValid(revision, mcpschema.CallTool))
			})
		}
		if tested == 0 {
			check.NotTestable("no tool with an outputSchema and a fixed result is listed")
		}
	}
}

func clientTolerance(ctx context.Context, t *check.T) {
	for _, revision := range revisions(ctx, t) {
		for _, tool := range MustListTools(ctx, MustMCP(ctx, t.As(check.Agent), revision)).Tools {
			t.For(check.Agent, tool.Name(), func() {
				for _, fault := range []string{clientFault(tool, revision), mcpschema.Fault(string(revision), mcpschema.Tool, map[string]any(tool))} {
					t.Expect(fault).To(BeEmpty(), check.Mismatch(fmt.Sprintf("%s in %s", tool.Name(), revision), "a tool that strict clients accept", fmt.Sprintf("one that they reject: %s", fault)))
				}
			})
		}
	}
}

func emptyMap(ctx context.Context, t *check.T) {
	tested := 0
	for _, revision := range revisions(ctx, t) {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		for _, m := range scenario.AgentTools(t) {
			if m.Behaviour.Kind != fixtures.Value || m.Output == nil {
				continue
			}
			value := exact.MustParse(m.Behaviour.Value)
			want := match.WithObjects(value, exact.MustParse(m.Output))
			if exact.Equal(want, value) {
				continue
			}
			tested++
			t.For(check.Agent, t.ToolName(m.ID), func() {
				t.Expect(s.CallTool(ctx, t.ToolName(m.ID), check.Args{})).To(match.MatchRPCWhere("structuredContent "+exact.Short(want), func(a *check.Response) bool {
					r := toolResultOf(a)
					return r.has && exact.Equal(r.structured, want)
				}), "PHP's [] for an object, in %s", revision)
			})
		}
	}
	if tested == 0 {
		check.NotTestable("the site has no tool that returns [] for an object")
	}
	emptyMapInList(ctx, t)
}

// emptyMapInList lets a method that returns a list of objects return [] for the first of them.
func emptyMapInList(ctx context.Context, t *check.T) {
	tool := scenario.ListOfObjects(t)
	if tool == nil || t.Alone() { // a bridge with MCP alone may reach the site by other means
		return
	}
	name := t.ToolName(tool.ID)
	t.For(check.Agent, name, func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, Route: route.JSONRPC, Body: `[[],{}]`})()
		s := MustMCP(ctx, t.As(check.Agent), revisions(ctx, t)[0])
		want := []any{map[string]any{}, map[string]any{}}
		t.Expect(s.CallTool(ctx, name, check.Args{})).To(match.MatchRPCWhere("structuredContent with "+exact.Short(want), func(a *check.Response) bool {
			r := toolResultOf(a)
			return r.has && (exact.Equal(r.structured, want) || exact.Equal(client.Unwrapped(r.structured), want))
		}), "PHP's [] for an object in a list")
	})
}

// opensWell tests initialize and the first requests of a session against a revision, so many pairs of them with a result and an error.
func opensWell(ctx context.Context, t *check.T, revision check.Revision, pairs int, nextID func() any) {
	s := t.As(check.Agent).MCP(ctx, revision)
	call := func(method string, params map[string]any) (*check.Response, any) {
		id := nextID()
		return s.Send(ctx, s.Message(id, method, params), s.Headers(method, params)), id
	}
	t.Expect(s.Opened).To(match.Conform("the tools capability, a serverInfo and the version "+string(revision), initializeFault(revision)))
	if t.Claims("mcp-list-changed") && !declaresListChanged(s) {
		t.Expect(offersStream(ctx, s)).To(BeFalse(), check.Mismatch(fmt.Sprintf("initialize in %s", revision), "tools with listChanged, because there is a stream of notifications", exact.Short(s.Opened.RPCResult())))
	}
	t.Expect(s.Opened).To(BeValid(revision, mcpschema.Initialize))
	declared, _ := s.Opened.RPCResult()["capabilities"].(map[string]any)
	pong, id := call("ping", nil)
	t.Expect(pong).To(match.HaveRPCResult("an empty result to ping"), "the id %#v", id)
	mustList(ctx, s)
	unknown := map[string]any{"name": scenario.NoSuchTool, "arguments": check.Args{}}
	method, params := s.Opening()
	opening := &check.Session{Client: s.Client, Revision: revision}
	t.Expect(opening.Send(ctx, opening.Message("an id", method, params), opening.Headers(method, params))).To(
		match.HaveRPCResult("a result with the request's id"), "the id %q", "an id")
	pong, id = call("ping", nil)
	t.Expect(pong).To(HaveSameID(), "the id %#v of a ping", id)
	t.Expect(s.Send(ctx, s.Message(0, "ping", nil), s.Headers("ping", nil))).To(HaveSameID(), "the id 0 of a ping")
	for range pairs {
		page, id := call("tools/list", map[string]any{})
		t.Expect(page).To(HaveTools(), "the id %#v", id)
		refused, id := call("tools/call", unknown)
		t.Expect(refused).To(HaveSameID(), "an error to the id %#v", id)
	}
	for _, o := range optional {
		response, _ := call(o.method, o.params)
		if _, has := declared[o.capability]; !has && !t.Foreign() {
			t.Expect(response).To(match.BeProtocolError("-32601"), "%s is not declared", o.capability)
		} else if has && o.needed {
			t.Expect(response).NotTo(match.BeProtocolError("-32601"), "%s is declared", o.capability)
		}
	}
}

// listsByMCP tests all pages of tools/list against what the caller must see.
func listsByMCP(ctx context.Context, t *check.T, revision check.Revision, who check.Identity) {
	s := MustMCP(ctx, t.As(who), revision)
	l := check.ListAllTools(ctx, s)
	t.Expect(l.Fault).To(check.BeNone(), "tools/list in %s as %s", revision, who)
	t.Expect(s.Call(ctx, "tools/list", nil)).To(HaveTools(), "tools/list without params in %s as %s", revision, who)
	for name, value := range check.InOrder(map[string]string{"Content-Type": "application/json; charset=utf-8", "Accept": "text/event-stream, application/json"}) {
		h := s.Headers("tools/list", map[string]any{})
		h.Set(name, value)
		t.Expect(s.Send(ctx, s.Message(79, "tools/list", map[string]any{}), h)).To(HaveTools(), "tools/list with %s: %s in %s as %s", name, value, revision, who)
	}
	for _, page := range l.Pages {
		if !revision.Stateless() { // mcp/stateless-2026 tests those
			t.Expect(page).To(BeValid(revision, mcpschema.ListTools))
		}
		t.Expect(page).To(match.Conform("`_meta` with keys in the form of the specification: labels and a slash or nothing, then a name of letters, digits, - _ and .", func(a *check.Response) string { return metaKeyFault(a.RPCResult()) }))
	}
	last := l.Pages[len(l.Pages)-1]
	t.Expect(last).To(match.Conform("no `nextCursor` on the last page", func(a *check.Response) string {
		if cursor, there := a.RPCResult()["nextCursor"]; there {
			return "nextCursor " + exact.Short(cursor)
		}
		return ""
	}))
	switch {
	case t.Claims("tools"):
		own := t.As(who).MustListAll(ctx).Names()
		t.Blame(last)
		t.Expect(l.Names()).To(ConsistOf(own), check.Mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), fmt.Sprintf("the tools of %s", check.ListPath), match.OtherNames(slices.Sorted(slices.Values(own)), slices.Sorted(slices.Values(l.Names())))))
	case t.Drupal != nil:
		t.Blame(last)
		t.Expect(shownFault(t, who, l.Names())).To(BeEmpty(), check.Mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), "exactly what the caller may see", ""))
	}
	t.Expect(match.Repeated(l.Names())).To(BeEmpty(), check.Mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), "each tool once", fmt.Sprintf("several of %s", match.Abbreviate(match.Repeated(l.Names())))))
}

// metaKey matches a key of `_meta`: labels, a slash and a name, or the name alone.
var metaKey = regexp.MustCompile(`^([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)

// metaKeyFault names an invalid key in the `_meta` of a page or of one of its tools; "" when all are valid.
func metaKeyFault(page map[string]any) string {
	tools, _ := page["tools"].([]any)
	for _, holder := range append([]any{page}, tools...) {
		object, _ := holder.(map[string]any)
		meta, _ := object["_meta"].(map[string]any)
		for key := range check.InOrder(meta) {
			if !metaKey.MatchString(key) {
				return fmt.Sprintf("the key %q", key)
			}
		}
	}
	return ""
}

// optional are the methods of capabilities that a bridge need not have. A bridge that declares the capability has the
// methods that are needed.
var optional = []struct {
	capability, method string
	needed             bool
	params             map[string]any
}{
	{"prompts", "prompts/list", true, map[string]any{}}, {"resources", "resources/list", true, map[string]any{}},
	{"resources", "resources/templates/list", false, map[string]any{}},
	{"prompts", "prompts/get", false, map[string]any{"name": "none"}}, {"resources", "resources/read", false, map[string]any{"uri": "file:///none"}},
	{"completions", "completion/complete", true, map[string]any{}}, {"logging", "logging/setLevel", true, map[string]any{}},
}

// deniedSince calls a tool whose permission the caller has just lost, which the bridge may not know yet: the call must be
// refused all the same.
func deniedSince(ctx context.Context, t *check.T, revision check.Revision, tool string) {
	who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	t.For(who, tool, func() {
		s := MustMCP(ctx, t.As(who), revision)
		s.CallTool(ctx, tool, check.Args{}).MustMeet(match.BeToolResult())
		t.Drupal.Permit(who, fixtures.UseJSONRPC, fixtures.DiscoverTools)
		t.Drupal.Mark()
		r := s.CallTool(ctx, tool, check.Args{})
		t.Expect(r).To(match.MatchRPCWhere("a protocol error, and no result", func(a *check.Response) bool {
			return a.RPCResult() == nil && (a.RPCCode() != "" || a.Status >= 400)
		}), "a tool whose permission has just been revoked")
		t.Expect(r).To(match.HaveRun(t.Upstream, tool, 0), "a tool whose permission has just been revoked")
	})
}

// otherTool names a tool that the agent may run without arguments, other than the one given: the site may record the
// positive control's run late.
func otherTool(t *check.T, not string) string {
	for _, m := range scenario.AgentTools(t) {
		if name := t.ToolName(m.ID); scenario.RunsPlainly(m) && name != not {
			return name
		}
	}
	check.NotTestable("the site has only one tool that runs without arguments")
	return ""
}

// notShown tests tools/list for callers without permission: a caller who may not list by the three endpoints sees no
// tool; on a bridge with MCP alone, an anonymous caller sees no tool that it may not run.
func notShown(ctx context.Context, t *check.T, revision check.Revision, who check.Identity) {
	if t.Claims("tools") && t.As(who).List(ctx).Status == http.StatusOK {
		return // mcp/parity compares the two
	}
	s := t.As(who).MCP(ctx, revision)
	t.Expect(s.Opened).To(match.HaveChallengeIf401())
	if s.Opened.RPCResult() == nil {
		return
	}
	l := check.ListAllTools(ctx, s)
	shown := l.Names()
	t.Expect(l.Pages[0]).To(match.HaveChallengeIf401())
	if l.Pages[0].Status == http.StatusUnauthorized {
		t.Expect(s.CallTool(ctx, callable(t), check.Args{})).To(match.HaveChallengeIf401())
	}
	switch {
	case t.Claims("tools"):
		t.Expect(shown).To(BeEmpty(), check.Mismatch(fmt.Sprintf("tools/list in %s as %s, who is refused by %s", revision, who, check.ListPath), "no tool", match.Abbreviate(shown)))
	case t.Drupal != nil && who == check.Anonymous:
		visible := t.Visible(who)
		more := match.Minus(shown, visible)
		t.Expect(more).To(BeEmpty(), check.Mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), "nothing that the caller may not run", match.Abbreviate(more)))
	}
}

// revisions are the revisions that the bridge claims and offers.
func revisions(ctx context.Context, t *check.T) []check.Revision {
	offered := sessionRevisions(ctx, t)
	if t.Claims("mcp-2026") {
		offered = append(offered, check.MCP2026July)
	}
	if len(offered) == 0 {
		untestedRevision(ctx, t)
		check.BlockedBy(check.Finding{Subject: "the bridge opens no session in any revision"}, "mcp/initialize")
	}
	return offered
}

// untestedRevision ends the check of a foreign server that agrees to an older revision alone, which is no fault by the specification.
func untestedRevision(ctx context.Context, t *check.T) {
	agreed, _ := t.As(check.Agent).Session(ctx, check.MCP2025November).Opened.RPCResult()["protocolVersion"].(string)
	if t.Foreign() && agreed != "" && agreed < string(check.MCP2025June) {
		check.NotTestable(fmt.Sprintf("the server agrees to MCP %s alone, and the checks speak %s and later", exact.Cut(agreed, 40), check.MCP2025June))
	}
}

// spot is what is sent in a revision of what could be: everything in the newest with sessions and in the one without them, and the
// first in an older one, which a bridge serves by the same code.
func spot[V any](spoken []check.Revision, revision check.Revision, all []V) []V {
	if revision == spoken[0] || revision.Stateless() {
		return all
	}
	return all[:1]
}

// sessionRevisions are the revisions with sessions that the bridge agrees to.
func sessionRevisions(ctx context.Context, t *check.T) []check.Revision {
	var offered []check.Revision
	for _, revision := range sessionsOf {
		if version, _ := t.As(check.Agent).Session(ctx, revision).Opened.RPCResult()["protocolVersion"].(string); version == string(revision) {
			offered = append(offered, revision)
		}
	}
	return offered
}

func initializeFault(revision check.Revision) func(a *check.Response) string {
	return func(a *check.Response) string {
		result := a.RPCResult()
		capabilities, _ := result["capabilities"].(map[string]any)
		_, declared := capabilities["tools"].(map[string]any)
		info, _ := result["serverInfo"].(map[string]any)
		name, _ := info["name"].(string)
		switch {
		case a.Status != http.StatusOK || result == nil:
			return a.RPCOutcome()
		case result["protocolVersion"] != string(revision):
			return "protocolVersion " + exact.Short(result["protocolVersion"])
		case !declared:
			return "capabilities " + exact.Short(result["capabilities"])
		case name == "":
			return "serverInfo " + exact.Short(result["serverInfo"])
		}
		return ""
	}
}

// HaveTools matches a response to tools/list.
func HaveTools() OmegaMatcher {
	return match.MatchRPCWhere("a page of tools", func(a *check.Response) bool {
		_, ok := a.RPCResult()["tools"].([]any)
		return ok
	})
}

// HaveSameID matches any response with the id of its request. An integer must be written as one: clients whose ids are integers
// read no other.
func HaveSameID() OmegaMatcher {
	return match.Conform("a response with the request's id", func(a *check.Response) string {
		response := a.RPC()
		if response == nil && a.Status < 400 {
			return a.RPCOutcome()
		}
		if id := a.Object()["id"]; a.Status >= 400 && id != nil && !client.SameID(a.Asked, id) { // a refusal may have none
			return "a refusal with the id " + exact.Short(id)
		}
		if id, isNumber := response["id"].(json.Number); isNumber && strings.ContainsAny(string(id), ".eE") {
			return fmt.Sprintf("the id written as %s", id)
		}
		return ""
	})
}

// clientFault says what in a tool makes a strict client reject the whole list; "" when nothing does.
func clientFault(t check.Tool, revision check.Revision) string {
	for name, value := range check.InOrder(t) {
		if value == nil {
			return "`" + name + "` is null"
		}
	}
	if fault := scenario.ToolFault(t); fault != "" {
		return fault
	}
	for _, name := range []string{"title", "description"} {
		if text, there := t[name]; there {
			if _, ok := text.(string); !ok {
				return fmt.Sprintf("`%s` is %s", name, exact.Short(text))
			}
		}
	}
	properties, there := t.Input()["properties"]
	if members, ok := properties.(map[string]any); there && !ok {
		return "`properties` is " + exact.Short(properties)
	} else if revision == check.MCP2025June || revision == check.MCP2025November {
		for name, property := range check.InOrder(members) {
			if _, ok := property.(map[string]any); !ok {
				return fmt.Sprintf("the property %q is %s", name, exact.Short(property))
			}
		}
	}
	if output, there := t["outputSchema"].(map[string]any); there && !revision.Stateless() && output["type"] != "object" {
		return "the outputSchema's type is " + exact.Short(output["type"])
	}
	return scenario.HintFault(t)
}
