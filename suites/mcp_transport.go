package suites

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// unknownVersions are values of MCP-Protocol-Version that no revision has: before, after and between them, and no date.
var unknownVersions = []string{"1999-01-01", "2999-01-01", "2025-06-19", "latest"}

// checks__mcp__mcp_transport are the checks of this file.
var checks__mcp__mcp_transport = []Check{
	{ID: "mcp/bad-version-header", Sees: Front, Run: chk__mcp__badVersionHeader},
	{ID: "mcp/origin", Sees: Front, Run: chk__mcp__origin},
	{ID: "mcp/session", Sees: Front, Run: chk__mcp__session},
	{ID: "mcp/notification-202", Sees: Front, Run: chk__mcp__notification202},
}

func chk__mcp__badVersionHeader(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		t.Expect(s.ListTools(ctx, "")).To(HaveTools())
		for _, version := range unknownVersions {
			h := s.headers("tools/list", nil)
			h.Set("MCP-Protocol-Version", version)
			t.Row(Agent, "", fmt.Sprintf("MCP-Protocol-Version: %s in %s", version, revision), func() {
				t.Expect(s.send(ctx, s.message(77, "tools/list", map[string]any{}), h)).To(BeRefusedWith(400))
			})
		}
	}
}

func chk__mcp__origin(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		t.Expect(s.ListTools(ctx, "")).To(HaveTools())
		refused := []int{403}
		if revision == MCP2025June { // which does not say how
			refused = []int{400, 401, 403, 404, 421}
		}
		for _, origin := range t.foreignOrigins() {
			h := s.headers("tools/list", nil)
			h.Set("Origin", origin)
			t.Row(Agent, "", fmt.Sprintf("Origin: %s in %s", origin, revision), func() {
				t.Expect(s.send(ctx, s.message(78, "tools/list", map[string]any{}), h)).To(BeRefusedWith(refused...))
			})
		}
		t.guardsSession(ctx, s, t.foreignOrigins()[0])
	}
}

func chk__mcp__session(ctx context.Context, t *T) {
	revisions := t.sessionRevisions(ctx)
	if len(revisions) == 0 {
		NotTestable("the bridge opens a session in no revision (mcp/initialize judges that)")
	}
	for _, revision := range revisions {
		s := t.As(Agent).MustMCP(ctx, revision)
		t.Expect(s.ListTools(ctx, "")).To(HaveTools())
		if s.ID == "" {
			continue // a bridge may do without sessions
		}
		stranger := &Session{Client: s.Client, Revision: revision, ID: "00000000-0000-4000-8000-000000000000"}
		t.Row(Agent, "", "a session that nobody opened", func() { t.Expect(stranger.ListTools(ctx, "")).To(BeRefusedWith(404)) })
		for _, who := range t.callers(Discoverer, Anonymous) {
			t.For(who, "", func() { t.notLent(ctx, s, who) })
		}
		ended := s.Client.Send(ctx, Request{Method: http.MethodDelete, Path: MCPPath, Header: s.headers("", nil)})
		if ended.Status == http.StatusMethodNotAllowed {
			continue // a bridge may refuse that clients end a session
		}
		t.Row(Agent, "", "a session that was ended", func() { t.Expect(s.ListTools(ctx, "")).To(BeRefusedWith(404)) })
	}
}

func chk__mcp__notification202(ctx context.Context, t *T) {
	for _, revision := range t.revisions(ctx) {
		s := t.As(Agent).MustMCP(ctx, revision)
		methods := []string{"notifications/initialized", "notifications/cancelled"}
		if revision.stateless() {
			methods = methods[1:]
		}
		for _, method := range methods {
			t.Row(Agent, "", fmt.Sprintf("%s in %s", method, revision), func() {
				t.Expect(s.notify(ctx, method)).To(Meet("202 without a body", func(a *Response) string {
					if a.Status != http.StatusAccepted || len(a.Body) > 0 {
						return a.Outcome()
					}
					return ""
				}))
			})
		}
	}
}

// foreignOrigins are those of pages that are none of the bridge's: of another host, also where it begins or ends like
// the bridge's own, and of a sandbox.
func (t *T) foreignOrigins() []string {
	scheme, _, _ := strings.Cut(t.url, "://")
	return []string{"http://evil.example", scheme + "://" + t.hostname() + ".evil.example", scheme + "://evil" + t.hostname(), "null"}
}

// guardsSession holds a session's other requests, for its stream and for its end, to what its messages are held to: a
// page of another origin gets neither.
func (t *T) guardsSession(ctx context.Context, s *Session, origin string) {
	if s.ID == "" {
		return
	}
	if s.offersStream(ctx) {
		t.Row(Agent, "", fmt.Sprintf("GET with Origin: %s in %s", origin, s.Revision), func() {
			t.Expect(s.offersStream(ctx, origin)).To(BeFalse(), mismatch(fmt.Sprintf("GET %s in %s with Origin: %s", MCPPath, s.Revision, origin), "a refusal", "the stream of notifications"))
		})
	}
	h := s.headers("", nil)
	h.Set("Origin", origin)
	s.Client.Send(ctx, Request{Method: http.MethodDelete, Path: MCPPath, Header: h})
	t.Row(Agent, "", fmt.Sprintf("DELETE with Origin: %s in %s", origin, s.Revision), func() {
		t.Expect(s.ListTools(ctx, "")).To(HaveTools(), "after DELETE %s from a page that must not end the session", MCPPath)
	})
}

// notify sends a notification that the bridge can accept.
func (s *Session) notify(ctx context.Context, method string) *Response {
	var params map[string]any
	if method == "notifications/cancelled" {
		params = map[string]any{"requestId": 999_999}
	}
	return s.send(ctx, s.message(nil, method, params), s.headers(method, params))
}

// notLent tries a session as somebody else: that must be refused, or give what is the sender's own.
func (t *T) notLent(ctx context.Context, s *Session, who Identity) {
	var own []string
	if opened := t.As(who).MCP(ctx, s.Revision); opened.Opened.RPCResult() != nil {
		own = opened.ListAllTools(ctx).names()
	}
	borrowed := &Session{Client: t.As(who), Revision: s.Revision, ID: s.ID}
	t.Expect(borrowed.ListTools(ctx, "")).To(Meet("a refusal, or the sender's own tools", func(a *Response) string {
		tools, _ := a.RPCResult()["tools"].([]any)
		for _, item := range tools {
			if item, ok := item.(map[string]any); ok && !slices.Contains(own, Tool(item).Name()) {
				return "the tool " + Tool(item).Name() + " of the caller who opened it"
			}
		}
		return ""
	}), "the session of another caller, as %s", who)
	if t.Drupal == nil {
		return
	}
	for _, tool := range t.samples(s.Client.who, fixtures.WhoAmI) {
		t.Drupal.Mark()
		borrowed.CallTool(ctx, tool.Name, Args{})
		t.Expect(t.ranAs(s.Client.who)).To(BeFalse(), mismatch(fmt.Sprintf("tools/call by %s in the session of %s", who, s.Client.who), fmt.Sprintf("nothing to run as %s", s.Client.who), "a run"))
	}
}

// ranAs tells whether a method ran for an account since the last Mark.
func (t *T) ranAs(who Identity) bool {
	for _, entry := range t.Drupal.Journal() {
		for _, call := range entry.Calls {
			if call.Ran && entry.User == string(who) {
				return true
			}
		}
	}
	return false
}

// callByMCP runs a tool over MCP in the newest revision that opens; nil where none does.
func (c Client) callByMCP(ctx context.Context, name string, arguments any) *Response {
	s := c.anyMCP(ctx)
	if s == nil {
		return nil
	}
	return s.CallTool(ctx, name, arguments)
}

// refusedByMCP are what MCP says to the agent where something is wrong: with the tool, the arguments, the cursor and the
// call. There are none where the bridge does not claim MCP.
func (t *T) refusedByMCP(ctx context.Context) []*Response {
	s := t.As(Agent).anyMCP(ctx)
	if !t.Claims("mcp") || s == nil {
		return nil
	}
	answers := []*Response{s.Opened, s.ListTools(ctx, ""), s.ListTools(ctx, "!no-cursor!"), s.CallTool(ctx, noSuchTool, Args{})}
	for _, tool := range t.samples(Agent, fixtures.Fail) {
		answers = append(answers, s.CallTool(ctx, tool.Name, tool.Arguments))
	}
	if echo, ok := t.findEcho(); ok {
		answers = append(answers, s.CallTool(ctx, t.ToolName(echo.ID), echo.arguments(5)))
	}
	return answers
}

// anyMCP opens a session in one of the revisions; nil where none opens.
func (c Client) anyMCP(ctx context.Context) *Session {
	for _, revision := range []Revision{MCP2025November, MCP2025June, MCP2026July} {
		if revision.stateless() && !c.t.Claims("mcp-2026") {
			continue
		}
		if s := c.MCP(ctx, revision); s.Opened.RPCResult() != nil {
			return s
		}
	}
	return nil
}

// notToldByMCP holds tools/call of tools that a caller may not know of against that of names that nobody has.
func (t *T) notToldByMCP(ctx context.Context, who Identity, names []string) {
	s := t.As(who).anyMCP(ctx)
	if s == nil {
		return
	}
	ask := func(ctx context.Context, name string) *Response {
		params := map[string]any{"name": name, "arguments": Args{}}
		return s.send(ctx, s.message(5, "tools/call", params), s.headers("tools/call", params))
	}
	for _, name := range slices.Compact(names) {
		t.For(who, name, func() { t.Expect(ask(ctx, name)).To(BeLikeUnknown(ask, ctx, name), "tools/call") })
	}
}
