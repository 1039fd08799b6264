package suites

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/mcpschema"
)

// checks__mcp__mcp are the checks of this file.
var checks__mcp__mcp = []Check{
	{ID: "mcp/initialize", Sees: Front, Run: chk__mcp__initialize},
	{ID: "mcp/tools-list", Sees: Front, Run: chk__mcp__toolsList},
	{ID: "mcp/invalid-cursor", Sees: Front, Run: chk__mcp__invalidCursor},
	{ID: "mcp/unknown-tool", Sees: Front, Run: chk__mcp__unknownTool},
	{ID: "mcp/invalid-arguments", Sees: Front, Run: chk__mcp__invalidArguments},
	{ID: "mcp/execution-error", Sees: Site, Run: chk__mcp__executionError},
	{ID: "mcp/structured-content", Sees: Site, Run: chk__mcp__structuredContent},
	{ID: "mcp/client-tolerance", Sees: Front, Run: chk__mcp__clientTolerance},
	{ID: "mcp/empty-map", Sees: Site, Run: chk__mcp__emptyMap},
}

func chk__mcp__initialize(ctx context.Context, t *T) {
	offered := t.sessionRevisions(ctx)
	t.Expect(offered).NotTo(BeEmpty(), mismatch("initialize with 2025-11-25 and 2025-06-18", "one of them in the answer", "neither"))
	for _, revision := range offered {
		t.Row(Agent, "", string(revision), func() { t.opensWell(ctx, revision) })
	}
	unknown := t.As(Agent).MCP(ctx, "1999-01-01")
	t.Row(Agent, "", "a version that nobody knows", func() {
		t.Expect(unknown.Opened).To(Meet("another version in the answer, or an error", func(a *Response) string {
			if version, _ := a.RPCResult()["protocolVersion"].(string); version == "1999-01-01" || a.RPC() == nil {
				return a.rpcOutcome()
			}
			return ""
		}))
	})
}

func chk__mcp__toolsList(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		for _, who := range t.callers(Agent, Discoverer) {
			t.For(who, "", func() { t.listsByMCP(ctx, revision, who) })
		}
		for _, who := range t.callers(Outsider, NoRPC, Anonymous) {
			t.For(who, "", func() { t.notShown(ctx, revision, who) })
		}
	}
}

func chk__mcp__invalidCursor(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		t.Expect(s.ListTools(ctx, "")).To(HaveTools())
		t.Row(Agent, "", "in "+string(revision), func() { t.Expect(s.ListTools(ctx, "!no-cursor!")).To(BeProtocolError("-32602")) })
	}
}

func chk__mcp__unknownTool(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		if t.Drupal != nil {
			denied := t.DeniedTool(Discoverer, Agent)
			known := t.otherTool(denied)
			t.Expect(s.CallTool(ctx, known, Args{})).To(BeToolResult())
			refuses := func(s *Session, name, what string) {
				t.For(s.Client.who, name, func() {
					t.Drupal.Mark()
					r := s.CallTool(ctx, name, Args{})
					t.Expect(r).To(BeProtocolError("-32602"), what)
					t.Expect(r).To(HaveRun(name, 0), what)
				})
			}
			if loud := strings.ToUpper(known); !slices.Contains(t.Visible(Agent), loud) {
				refuses(s, loud, "a tool's name in another case")
			}
			refuses(s, t.HiddenMethods()[0], "a method that is no tool")
			refuses(t.As(Discoverer).MustMCP(ctx, revision), denied, "a tool that the caller may not run")
			t.deniedSince(ctx, revision, denied)
		} else {
			s.MustListTools(ctx)
		}
		t.For(Agent, noSuchTool, func() {
			nobodys := s.CallTool(ctx, noSuchTool, Args{})
			t.Expect(nobodys).To(BeProtocolError("-32602"), "a tool that nobody has")
			t.Expect(nobodys).To(BeValid(revision, mcpschema.Error))
		})
	}
}

func chk__mcp__invalidArguments(ctx context.Context, t *T) {
	if t.Drupal == nil {
		NotTestable("it names a tool of the site: put the mock Drupal behind the bridge")
	}
	echo := t.echoTool()
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		t.Expect(s.CallTool(ctx, t.ToolName(echo.ID), echo.arguments("twin"))).To(BeToolResult())
		r := s.CallTool(ctx, t.ToolName(echo.ID), echo.arguments(map[string]any{"no": "string"}))
		if revision == MCP2025June && r.RPCCode() == "-32602" {
			continue
		}
		t.Row(Agent, t.ToolName(echo.ID), "in "+string(revision), func() { t.Expect(r).To(BeToolError(echo.param), "arguments that break the inputSchema") })
	}
}

func chk__mcp__executionError(ctx context.Context, t *T) {
	failing := t.failingTool()
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		t.Expect(s.CallTool(ctx, t.KnownTool(ctx), Args{})).To(BeToolResult())
		t.Row(Agent, t.ToolName(failing.ID), "in "+string(revision), func() {
			failed := s.CallTool(ctx, t.ToolName(failing.ID), Args{})
			t.Expect(failed).To(BeToolError(failing.Behaviour.Error.Message), "a method that fails")
			t.Expect(failed).To(BeValid(revision, mcpschema.CallTool), "a method that fails")
		})
	}
}

func chk__mcp__structuredContent(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		l := s.MustListTools(ctx)
		judged := 0
		for _, m := range t.agentTools() {
			tool, listed := l.find(t.ToolName(m.ID))
			if !listed || m.Output == nil || m.Behaviour.Kind != fixtures.Value || m.Behaviour.Sleep > 0 || len(m.Params) > 0 || !conforms(m) || beyondDouble(parsed(string(m.Behaviour.Value))) {
				continue
			}
			judged++
			t.For(Agent, tool.Name(), func() {
				called := s.CallTool(ctx, t.ToolName(m.ID), Args{})
				t.Expect(called).To(GiveStructured(m, tool, revision))
				t.Expect(called).To(BeValid(revision, mcpschema.CallTool))
			})
		}
		if judged == 0 {
			NotTestable("no tool with an outputSchema and a fixed result is listed")
		}
	}
}

func chk__mcp__clientTolerance(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		for _, tool := range t.As(Agent).MustMCP(ctx, revision).MustListTools(ctx).Tools {
			t.For(Agent, tool.Name(), func() {
				for _, fault := range []string{clientFault(tool, revision), mcpschema.Fault(string(revision), mcpschema.Tool, map[string]any(tool))} {
					t.Expect(fault).To(BeEmpty(), mismatch(fmt.Sprintf("%s in %s", tool.Name(), revision), "a tool that strict clients read", fmt.Sprintf("one that they do not: %s", fault)))
				}
			})
		}
	}
}

func chk__mcp__emptyMap(ctx context.Context, t *T) {
	judged := 0
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		for _, m := range t.agentTools() {
			if m.Behaviour.Kind != fixtures.Value || !isEmptyList(m.Behaviour.Value) || !wantsObject(m.Output) {
				continue
			}
			judged++
			t.For(Agent, t.ToolName(m.ID), func() {
				t.Expect(s.CallTool(ctx, t.ToolName(m.ID), Args{})).To(Meet("structuredContent {}", func(a *Response) string {
					if r := a.toolResult(); !r.has || !exact.Equal(r.structured, map[string]any{}) {
						return a.rpcOutcome()
					}
					return ""
				}), "PHP's [] for an object, in %s", revision)
			})
		}
	}
	if judged == 0 {
		NotTestable("the site has no tool that gives [] for an object")
	}
}

// opensWell holds a session's opening, and the form of what comes after it, to a revision.
func (t *T) opensWell(ctx context.Context, revision Revision) {
	s := t.As(Agent).MCP(ctx, revision)
	t.Expect(s.Opened).To(Meet("the tools capability, a serverInfo and the version "+string(revision), initializeFault(revision)))
	if t.Claims("mcp-list-changed") && !s.declaresListChanged() {
		t.Expect(s.offersStream(ctx)).To(BeFalse(), mismatch(fmt.Sprintf("initialize in %s", revision), "tools with listChanged, for there is a stream of notifications", exact.Short(s.Opened.RPCResult())))
	}
	t.Expect(s.Opened).To(BeValid(revision, mcpschema.Initialize))
	declared, _ := s.Opened.RPCResult()["capabilities"].(map[string]any)
	t.Expect(s.ListTools(ctx, "")).To(HaveTools())
	t.Expect(s.Call(ctx, "ping", nil)).To(Meet("an empty result to ping", func(a *Response) string {
		if a.RPCResult() == nil {
			return a.rpcOutcome()
		}
		return ""
	}))
	nobodys := map[string]any{"name": noSuchTool, "arguments": Args{}}
	for _, id := range ids {
		t.Expect(s.send(ctx, s.message(id, "tools/list", map[string]any{}), s.headers("tools/list", nil))).To(HaveTools(), "the id %#v", id)
		t.Expect(s.send(ctx, s.message(id, "tools/call", nobodys), s.headers("tools/call", nobodys))).To(BeAnswered(), "an error to the id %#v", id)
	}
	for _, o := range optional {
		answer := s.Call(ctx, o.method, map[string]any{})
		if _, has := declared[o.capability]; !has {
			t.Expect(answer).To(BeProtocolError("-32601"), "%s is not declared", o.capability)
		} else if o.needed {
			t.Expect(answer).NotTo(BeProtocolError("-32601"), "%s is declared", o.capability)
		}
	}
}

// listsByMCP holds what tools/list pages to against what the caller must see.
func (t *T) listsByMCP(ctx context.Context, revision Revision, who Identity) {
	l := t.As(who).MustMCP(ctx, revision).ListAllTools(ctx)
	t.Expect(l.Fault).To(BeNone(), "tools/list in %s as %s", revision, who)
	for _, page := range l.Pages {
		if !revision.stateless() { // mcp/stateless-2026 judges those
			t.Expect(page).To(BeValid(revision, mcpschema.ListTools))
		}
		t.Expect(page).To(Meet("`_meta` with keys as the specification forms them", func(a *Response) string { return metaKeyFault(a.RPCResult()) }))
	}
	last := l.Pages[len(l.Pages)-1]
	t.Expect(last).To(Meet("no `nextCursor` on the last page", func(a *Response) string {
		if cursor, there := a.RPCResult()["nextCursor"]; there {
			return "nextCursor " + exact.Short(cursor)
		}
		return ""
	}))
	switch {
	case t.Claims("tools"):
		own := t.As(who).MustListAll(ctx).Names()
		last.Blame()
		t.Expect(l.names()).To(ConsistOf(own), mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), fmt.Sprintf("the tools of %s", ListPath), otherNames(slices.Sorted(slices.Values(own)), slices.Sorted(slices.Values(l.names())))))
	case t.Drupal != nil:
		last.Blame()
		t.Expect(t.shownFault(who, l.names())).To(BeEmpty(), mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), "exactly what the caller may see", ""))
	}
	t.Expect(repeated(l.names())).To(BeEmpty(), mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), "each tool once", fmt.Sprintf("several of %s", fewOf(repeated(l.names())))))
}

// metaKey is what a key of `_meta` looks like: labels, a slash and a name, or the name alone.
var metaKey = regexp.MustCompile(`^([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)

// metaKeyFault says which key of a page's `_meta`, or of that of one of its tools, is none; "" when all are.
func metaKeyFault(page map[string]any) string {
	tools, _ := page["tools"].([]any)
	for _, holder := range append([]any{page}, tools...) {
		object, _ := holder.(map[string]any)
		meta, _ := object["_meta"].(map[string]any)
		for key := range inOrder(meta) {
			if !metaKey.MatchString(key) {
				return fmt.Sprintf("the key %q", key)
			}
		}
	}
	return ""
}

// ids are what a request may be called by, beside a small number: what PHP takes for nothing, text, and the time in
// milliseconds.
var ids = []any{0, "0", "", "a-b c", 1_700_000_000_123}

// optional are methods that stand under a capability which a bridge need not have; who declares it has those that are
// needed.
var optional = []struct {
	capability, method string
	needed             bool
}{
	{"prompts", "prompts/list", true}, {"resources", "resources/list", true}, {"resources", "resources/templates/list", false},
	{"completions", "completion/complete", true}, {"logging", "logging/setLevel", true},
}

// deniedSince holds the call of a tool whose permission has just been taken, and which the bridge may think is still the
// caller's, to that of one that never was.
func (t *T) deniedSince(ctx context.Context, revision Revision, tool string) {
	who := t.Drupal.NewUser(t.Permissions(Agent)...)
	t.For(who, tool, func() {
		s := t.As(who).MustMCP(ctx, revision)
		s.CallTool(ctx, tool, Args{}).MustMeet(BeToolResult())
		t.Drupal.Permit(who, fixtures.UseJSONRPC, fixtures.DiscoverTools)
		t.Drupal.Mark()
		r := s.CallTool(ctx, tool, Args{})
		t.Expect(r).To(Meet("a protocol error, and no result", func(a *Response) string {
			if a.RPCResult() != nil || a.RPCCode() == "" && a.Status < 400 {
				return a.rpcOutcome()
			}
			return ""
		}), "a tool whose permission has just been taken")
		t.Expect(r).To(HaveRun(tool, 0), "a tool whose permission has just been taken")
	})
}

// otherTool names a tool that the agent may run without arguments, but not the one given: the site may write the twin's
// run down late.
func (t *T) otherTool(not string) string {
	for _, m := range t.agentTools() {
		if name := t.ToolName(m.ID); runsPlainly(m) && name != not {
			return name
		}
	}
	NotTestable("the site has but one tool that runs without arguments")
	return ""
}

// notShown holds tools/list against what the caller is refused elsewhere: who may not list by the three endpoints is
// shown nothing, and where there is MCP alone, anonymous callers nothing that they may not run.
func (t *T) notShown(ctx context.Context, revision Revision, who Identity) {
	if t.Claims("tools") && t.As(who).List(ctx).Status == http.StatusOK {
		return // mcp/parity compares the two
	}
	s := t.As(who).MCP(ctx, revision)
	if s.Opened.RPCResult() == nil {
		return
	}
	shown := s.ListAllTools(ctx).names()
	switch {
	case t.Claims("tools"):
		t.Expect(shown).To(BeEmpty(), mismatch(fmt.Sprintf("tools/list in %s as %s, whom %s refuses", revision, who, ListPath), "no tool", fewOf(shown)))
	case t.Drupal != nil && who == Anonymous:
		visible := t.Visible(who)
		more := minus(shown, visible)
		t.Expect(more).To(BeEmpty(), mismatch(fmt.Sprintf("tools/list in %s as %s", revision, who), "nothing that the caller may not run", fewOf(more)))
	}
}

// revisions are those that the bridge offers, of those that it claims.
func (t *T) revisions(ctx context.Context) []Revision {
	offered := t.sessionRevisions(ctx)
	if t.Claims("mcp-2026") {
		offered = append(offered, MCP2026July)
	}
	if len(offered) == 0 {
		NotTestable("the bridge opens a session in no revision (mcp/initialize judges that)")
	}
	return offered
}

// sessionRevisions are the revisions with sessions that the bridge agrees to.
func (t *T) sessionRevisions(ctx context.Context) []Revision {
	var offered []Revision
	for _, revision := range []Revision{MCP2025November, MCP2025June} {
		if version, _ := t.As(Agent).MCP(ctx, revision).Opened.RPCResult()["protocolVersion"].(string); version == string(revision) {
			offered = append(offered, revision)
		}
	}
	return offered
}

// callers are the identities that the run can sign in as.
func (t *T) callers(wanted ...Identity) []Identity {
	return slices.DeleteFunc(wanted, func(who Identity) bool { return !t.Knows(who) })
}

func initializeFault(revision Revision) func(a *Response) string {
	return func(a *Response) string {
		result := a.RPCResult()
		capabilities, _ := result["capabilities"].(map[string]any)
		_, declared := capabilities["tools"].(map[string]any)
		info, _ := result["serverInfo"].(map[string]any)
		name, _ := info["name"].(string)
		switch {
		case a.Status != http.StatusOK || result == nil:
			return a.rpcOutcome()
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
	return &responseMatcher{expected: "a page of tools", test: func(a *Response) (string, bool) {
		_, ok := a.RPCResult()["tools"].([]any)
		return a.rpcOutcome(), ok
	}}
}

// BeAnswered matches a response to what was asked, whatever it says.
func BeAnswered() OmegaMatcher {
	return Meet("a response by the request's id", func(a *Response) string {
		if a.RPC() == nil && a.Status < 400 {
			return a.rpcOutcome()
		}
		return ""
	})
}

// GiveStructured matches a result of tools/call whose structuredContent holds the method's result and fits the
// outputSchema that is shown, and stands in a text block as well.
func GiveStructured(m *fixtures.Method, tool Tool, revision Revision) OmegaMatcher {
	want := parsed(string(m.Behaviour.Value))
	return Meet("structuredContent with "+exact.Short(want)+" that fits the outputSchema, and the same as text", func(a *Response) string {
		r := a.toolResult()
		if !r.has || r.isError {
			return a.rpcOutcome()
		}
		if _, object := r.structured.(map[string]any); !object && !revision.stateless() {
			return "structuredContent that is no object: " + exact.Short(r.structured)
		}
		if !exact.Equal(want, r.structured) && !exact.Equal(want, unwrapped(r.structured)) {
			return "structuredContent " + exact.Short(r.structured)
		}
		schema, err := jsonschema.Compile(tool["outputSchema"], jsonschema.Draft2020_12)
		if err != nil {
			return "the outputSchema " + exact.Short(tool["outputSchema"]) + ", which " + err.Error()
		}
		if fault := schema.Fault(r.structured); fault != "" {
			return "structuredContent that breaks the outputSchema " + fault
		}
		for _, text := range r.text {
			v, err := exact.Parse([]byte(text))
			if text == want || err == nil && (exact.Equal(v, r.structured) || exact.Equal(v, want)) {
				return ""
			}
		}
		return "no text block with the same JSON: " + exact.Short(r.text)
	})
}

// conforms tells whether a method keeps its own output schema: what MCP makes of one that does not is nobody's clause.
func conforms(m *fixtures.Method) bool {
	schema, err := jsonschema.Compile(parsed(string(m.Output)), jsonschema.Draft7)
	return err == nil && schema.Fault(parsed(string(m.Behaviour.Value))) == ""
}

// beyondDouble tells whether a value holds a number that a double cannot: whoever speaks MCP in JavaScript has lost it,
// so that nobody can rely on it. invoke/result-exact and mcp/parity judge such numbers.
func beyondDouble(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), beyondDouble)
	case []any:
		return slices.ContainsFunc(v, beyondDouble)
	case json.Number:
		double, err := v.Float64()
		return err != nil || !exact.SameNumber(v.String(), strconv.FormatFloat(double, 'g', -1, 64))
	}
	return false
}

func isEmptyList(v fixtures.Raw) bool { return strings.ReplaceAll(string(v), " ", "") == "[]" }

func wantsObject(schema fixtures.Raw) bool {
	if schema == nil {
		return false
	}
	object, _ := parsed(string(schema)).(map[string]any)
	return object["type"] == "object"
}

// clientFault says what in a tool makes a strict client drop the whole list; "" when nothing does.
func clientFault(t Tool, revision Revision) string {
	for name, value := range inOrder(t) {
		if value == nil {
			return "`" + name + "` is null"
		}
	}
	if fault := toolFault(t); fault != "" {
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
	} else if revision == MCP2025June || revision == MCP2025November {
		for name, property := range inOrder(members) {
			if _, ok := property.(map[string]any); !ok {
				return fmt.Sprintf("the property %q is %s", name, exact.Short(property))
			}
		}
	}
	if output, there := t["outputSchema"].(map[string]any); there && !revision.stateless() && output["type"] != "object" {
		return "the outputSchema's type is " + exact.Short(output["type"])
	}
	notes, _ := t["annotations"].(map[string]any)
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if value, there := notes[hint]; there {
			if _, ok := value.(bool); !ok {
				return fmt.Sprintf("the hint %s is %s", hint, exact.Short(value))
			}
		}
	}
	return ""
}
