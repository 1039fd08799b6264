package mcp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// unknownVersions are values of MCP-Protocol-Version without a revision: dates before, after and between them, and no date.
var unknownVersions = []string{"1999-01-01", "2999-01-01", "2025-06-19", "latest", "2025-11-25-draft"}

func badVersionHeader(ctx context.Context, t *check.T) {
	spoken := revisions(ctx, t)
	for _, revision := range spoken {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		mustList(ctx, s)
		for _, version := range spot(spoken, revision, unknownVersions) {
			h := s.Headers("tools/list", nil)
			h.Set("MCP-Protocol-Version", version)
			t.Row(check.Agent, "", fmt.Sprintf("MCP-Protocol-Version: %s in %s", version, revision), func() {
				t.Expect(s.Send(ctx, s.Message(77, "tools/list", map[string]any{}), h)).To(match.BeRefusedWith(400))
			})
		}
		if revision != spoken[0] || revision.Stateless() {
			continue
		}
		h := s.Headers("notifications/initialized", nil)
		h.Set("MCP-Protocol-Version", unknownVersions[0])
		t.Row(check.Agent, "", "a notification with MCP-Protocol-Version: "+unknownVersions[0], func() {
			t.Expect(s.Send(ctx, s.Message(nil, "notifications/initialized", nil), h)).To(match.BeRefusedWith(400))
		})
		known := scenario.KnownTool(ctx, t)
		if t.Drupal != nil && s.CallTool(ctx, known, check.Args{}).RPCResult() != nil { // else mcp/parity fails
			h = s.Headers("tools/call", nil)
			h.Set("MCP-Protocol-Version", unknownVersions[0])
			t.Row(check.Agent, "", "a call with MCP-Protocol-Version: "+unknownVersions[0], func() {
				t.Expect(s.Send(ctx, s.Message(78, "tools/call", map[string]any{"name": known, "arguments": check.Args{}}), h)).To(match.BeRefusedWith(400))
			})
		}
		unknown := &check.Session{Client: s.Client, Revision: check.Revision(unknownVersions[0]), ID: s.ID}
		t.Row(check.Agent, "", "GET with MCP-Protocol-Version: "+unknownVersions[0], func() { expectNoStream(ctx, t, unknown, "a version that does not exist") })
		t.Row(check.Agent, "", "DELETE with MCP-Protocol-Version: "+unknownVersions[0], func() {
			t.Expect(deleted(ctx, unknown)).To(beRefusal())
		})
	}
}

// expectNoStream tests that GET opens no stream of notifications; a bridge need not have any.
func expectNoStream(ctx context.Context, t *check.T, s *check.Session, with string) {
	t.Expect(offersStream(ctx, s)).To(BeFalse(), check.Mismatch(fmt.Sprintf("GET %s with %s", check.MCPPath, with), "a refusal", "the stream of notifications"))
}

// deleted is the response to DELETE, which ends the session.
func deleted(ctx context.Context, s *check.Session) *check.Response {
	return s.Client.Send(ctx, check.Request{Method: http.MethodDelete, Path: check.MCPPath, Header: s.Headers("", nil)})
}

// beRefusal matches a refusal of DELETE, which does not end the session.
func beRefusal() OmegaMatcher {
	return match.MatchWhere("a refusal, which does not end the session", func(r *check.Response) bool { return r.Status >= http.StatusBadRequest })
}

func origin(ctx context.Context, t *check.T) {
	spoken, origins := revisions(ctx, t), foreignOrigins(t)
	send := func(h http.Header) *check.Response {
		s := MustMCP(ctx, t.As(check.Agent), spoken[0])
		maps.Copy(h, s.Headers("tools/list", map[string]any{}))
		return s.Send(ctx, s.Message(79, "tools/list", map[string]any{}), h)
	}
	pages := map[string]http.Header{} // those of other hosts than the bridge's URL has, by their origins
	for _, page := range []http.Header{scenario.LookalikePage(t, ".evil.example", send), scenario.SuffixPage(t, "evil", send)} {
		if page != nil {
			pages[page.Get("Origin")] = page
			origins = append(origins, page.Get("Origin"))
		}
	}
	for _, revision := range spoken {
		s := opened(t.As(check.Agent).MCP(ctx, revision)) // which the check may end
		mustList(ctx, s)
		refused := []int{403}
		if revision == check.MCP2025June { // which names no status
			refused = []int{400, 401, 403, 404, 421}
		}
		refuse := func(s *check.Session, method string, params map[string]any, origin string) {
			h := s.Headers(method, params)
			h.Set("Origin", origin)
			maps.Copy(h, pages[origin])
			t.Row(check.Agent, "", fmt.Sprintf("%s with Origin: %s in %s", method, origin, revision), func() {
				t.Mark()
				r := s.Send(ctx, s.Message(78, method, params), h)
				t.Expect(r).To(match.BeRefusedWith(refused...))
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
			})
		}
		for _, origin := range spot(spoken, revision, origins) {
			refuse(s, "tools/list", map[string]any{}, origin)
		}
		call := map[string]any{"name": callable(t), "arguments": map[string]any{}}
		if s.Call(ctx, "tools/call", call).Status == http.StatusOK { // else the refusal is not for the origin
			refuse(s, "tools/call", call, origins[0])
		}
		opening := &check.Session{Client: s.Client, Revision: revision}
		method, params := opening.Opening()
		refuse(opening, method, params, origins[0])
		guardsSession(ctx, t, s, origins[0])
	}
}

func session(ctx context.Context, t *check.T) {
	revisions := sessionRevisions(ctx, t)
	if len(revisions) == 0 {
		untestedRevision(ctx, t)
		check.BlockedBy(check.Finding{Subject: "the bridge opens no session in any revision"}, "mcp/initialize")
	}
	for _, revision := range revisions {
		s := opened(t.As(check.Agent).MCP(ctx, revision)) // which the check may end
		mustList(ctx, s)
		if s.ID == "" {
			continue // sessions are optional
		}
		stranger := &check.Session{Client: s.Client, Revision: revision, ID: altered(s.ID)}
		call := map[string]any{"name": callable(t), "arguments": map[string]any{}}
		refused := match.BeRefusedWith(404)
		closed := func(s *check.Session, what string) {
			t.Row(check.Agent, "", what, func() {
				t.Mark()
				t.Expect(s.ListTools(ctx, "")).To(refused)
				t.Expect(s.Call(ctx, "ping", nil)).To(refused)
				r := s.Call(ctx, "tools/call", call)
				t.Expect(r).To(refused)
				t.Expect(r).To(match.HaveRunNothing(t.Upstream))
				if !t.Foreign() {
					t.Expect(sendNotification(ctx, s, "notifications/cancelled")).To(refused)
				}
				if revision == revisions[0] {
					expectNoStream(ctx, t, s, what)
				}
			})
		}
		if !t.Foreign() { // the specification speaks of sessions that have ended
			closed(stranger, "an unknown session")
		}
		for _, who := range t.Callers(check.Discoverer, check.Anonymous) {
			t.For(who, "", func() { notLent(ctx, t, s, who) })
		}
		s = &check.Session{Client: s.Client, Revision: s.Revision, ID: s.ID} // it is not opened again
		for _, who := range t.Callers(check.Discoverer) {
			notEndedBy(ctx, t, s, who)
		}
		if deleted(ctx, s).Status >= http.StatusBadRequest {
			continue // a bridge need not let clients end a session: it refuses with 405, or has no such route
		}
		if over := func() bool { return s.ListTools(ctx, "").Status == http.StatusNotFound }; t.Several() {
			check.Within(ctx, check.EndTime, func() bool { return over() && t.Everywhere(over) })
		}
		closed(s, "an ended session")
	}
}

// altered is the id of no session. It begins and ends as the one that was given, if that is too long to be counted up. The digit
// that differs is none of those by which a UUID says of which kind it is.
func altered(id string) string {
	at := len(id)/2 + 3
	switch {
	case len(id) < 16:
		return "00000000-0000-4000-8000-000000000000"
	case id[at] == '0':
		return id[:at] + "1" + id[at+1:]
	}
	return id[:at] + "0" + id[at+1:]
}

func notification202(ctx context.Context, t *check.T) {
	for _, revision := range revisions(ctx, t) {
		s := MustMCP(ctx, t.As(check.Agent), revision)
		mustList(ctx, s)
		methods := []string{"notifications/initialized", "notifications/cancelled"}
		if revision.Stateless() {
			methods = methods[1:]
		}
		for _, method := range methods {
			t.Row(check.Agent, "", fmt.Sprintf("%s in %s", method, revision), func() {
				t.Expect(sendNotification(ctx, s, method)).To(match.MatchWhere("202 without a body", func(a *check.Response) bool {
					refused := revision.Stateless() && a.Status >= 400 && a.Status < 500
					return refused || a.Status == http.StatusAccepted && len(a.Body) == 0
				}))
				t.Expect(s.ListTools(ctx, "")).To(HaveTools(), "the request after it")
			})
		}
	}
}

// foreignOrigins are the origins of web pages that are not the bridge's: of other hosts, of which some end like the bridge's
// own, of a sandbox, of a file and of a browser's extension.
func foreignOrigins(t *check.T) []string {
	scheme, _, _ := strings.Cut(t.URL, "://")
	return []string{"http://evil.example", "http://localhost.evil.example",
		"chrome-extension://" + strings.Repeat("a", 32), "file://", scheme + "://evil" + t.Hostname(), scheme + "://evil" + t.Host(),
		"null"}
}

// callable names a tool that the agent can call without arguments; without a mock, none that exists, so that nothing runs.
func callable(t *check.T) string {
	if t.Drupal != nil {
		if found := scenario.Samples(t, check.Agent, fixtures.WhoAmI); len(found) > 0 {
			return found[0].Name
		}
	}
	return scenario.NoSuchTool
}

// guardsSession tests that a web page of another origin can neither open the stream of a session nor end the session.
func guardsSession(ctx context.Context, t *check.T, s *check.Session, origin string) {
	if s.ID == "" {
		return
	}
	if offersStream(ctx, s) {
		t.Row(check.Agent, "", fmt.Sprintf("GET with Origin: %s in %s", origin, s.Revision), func() {
			t.Expect(offersStream(ctx, s, origin)).To(BeFalse(), check.Mismatch(fmt.Sprintf("GET %s in %s with Origin: %s", check.MCPPath, s.Revision, origin), "a refusal", "the stream of notifications"))
		})
	}
	h := s.Headers("", nil)
	h.Set("Origin", origin)
	r := s.Client.Send(ctx, check.Request{Method: http.MethodDelete, Path: check.MCPPath, Header: h})
	t.Row(check.Agent, "", fmt.Sprintf("DELETE with Origin: %s in %s", origin, s.Revision), func() { // a list would open an ended session again
		t.Expect(r).To(beRefusal())
	})
}

// sendNotification sends a notification that the bridge can accept.
func sendNotification(ctx context.Context, s *check.Session, method string) *check.Response {
	var params map[string]any
	if method == "notifications/cancelled" {
		params = map[string]any{"requestId": 999_999}
	}
	return s.Send(ctx, s.Message(nil, method, params), s.Headers(method, params))
}

// notLent uses a session as another caller: that must be refused, or show the sender's own tools.
func notLent(ctx context.Context, t *check.T, s *check.Session, who check.Identity) {
	var own []string
	if opened := t.As(who).MCP(ctx, s.Revision); opened.Opened.RPCResult() != nil {
		own = check.ListAllTools(ctx, opened).Names()
	}
	borrowed := &check.Session{Client: t.As(who), Revision: s.Revision, ID: s.ID}
	t.Expect(borrowed.ListTools(ctx, "")).To(match.Conform("a refusal, or the sender's own tools", func(a *check.Response) string {
		tools, _ := a.RPCResult()["tools"].([]any)
		for _, item := range tools {
			if item, ok := item.(map[string]any); ok && !slices.Contains(own, check.Tool(item).Name()) {
				return "the tool " + check.Tool(item).Name() + " of the caller who opened it"
			}
		}
		return ""
	}), "the session of another caller, as %s", who)
	if t.Drupal == nil {
		return
	}
	for _, tool := range scenario.Samples(t, s.Client.Who, fixtures.WhoAmI) {
		t.Drupal.Mark()
		borrowed.CallTool(ctx, tool.Name, check.Args{})
		t.Expect(ranAs(t, s.Client.Who)).To(BeFalse(), check.Mismatch(fmt.Sprintf("tools/call by %s in the session of %s", who, s.Client.Who), fmt.Sprintf("nothing to run as %s", s.Client.Who), "a run"))
	}
}

// notEndedBy deletes a session as another caller: the bridge must refuse that, or leave the session open.
func notEndedBy(ctx context.Context, t *check.T, s *check.Session, who check.Identity) {
	other := t.As(who)
	if slices.Equal(check.ListAllTools(ctx, other.MCP(ctx, s.Revision)).Names(), check.ListAllTools(ctx, s).Names()) {
		return // the bridge may act as one account whoever calls
	}
	lasting := opened(s.Client.MCP(ctx, s.Revision))                              // which has not ended by itself
	own := &check.Session{Client: s.Client, Revision: s.Revision, ID: lasting.ID} // it is not opened again
	deleted(ctx, &check.Session{Client: other, Revision: own.Revision, ID: own.ID})
	t.Row(s.Client.Who, "", "after DELETE by another caller", func() { t.Expect(own.ListTools(ctx, "")).To(HaveTools()) })
}

// ranAs reports whether a method ran for an account since the last Mark.
func ranAs(t *check.T, who check.Identity) bool {
	for _, entry := range t.Drupal.Journal() {
		for _, call := range entry.Calls {
			if call.Ran && entry.User == string(who) {
				return true
			}
		}
	}
	return false
}
