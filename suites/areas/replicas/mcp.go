package replicas

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// open is opened for a clause that does not apply without sessions.
func open(ctx context.Context, t *check.T, replica int) *check.Session {
	others(t)
	if !t.Claims("mcp") {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge does not claim the capability mcp"}})
	}
	s := opened(ctx, t, replica)
	if s == nil {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge gives no Mcp-Session-Id"}})
	}
	return s
}

// opened opens a session on a replica; nil where no revision has any.
func opened(ctx context.Context, t *check.T, replica int) *check.Session {
	var last *check.Session
	for _, revision := range []check.Revision{check.MCP2025November, check.MCP2025June} {
		last = agent(t, replica).MCP(ctx, revision)
		if last.Opened.RPCResult() != nil && last.ID != "" {
			if on(last, replica).ListTools(ctx, "").RPCResult() == nil { // the positive control
				check.BlockedBy(check.Finding{Subject: "tools/list fails in a session on the replica that opened it"}, "mcp/initialize", "mcp/tools-list")
			}
			return last
		}
	}
	if last.Opened.RPCResult() == nil {
		check.BlockedBy(check.Finding{Subject: "no MCP session opens: " + last.Opened.Outcome()}, "mcp/initialize")
	}
	return nil
}

// on is the session at another replica.
func on(s *check.Session, replica int) *check.Session {
	return &check.Session{Client: s.Client.On(replica), Revision: s.Revision, ID: s.ID}
}

// goOn matches a response to tools/list with tools.
func goOn() OmegaMatcher {
	return match.MatchRPCWhere("tools", func(r *check.Response) bool {
		tools, _ := r.RPCResult()["tools"].([]any)
		return len(tools) > 0
	})
}

func mcpSession(ctx context.Context, t *check.T) {
	s := open(ctx, t, 0)
	known := scenario.KnownTool(ctx, t)
	each(t, "a session of the first on", func(replica int) {
		t.Expect(on(s, replica).ListTools(ctx, "")).To(goOn())
		called := on(s, replica).CallTool(ctx, known, check.Args{})
		t.Expect(called).To(match.HaveRPCResult("a result"))
	})
	each(t, "on the first, a session of", func(replica int) {
		t.Expect(on(open(ctx, t, replica), 0).ListTools(ctx, "")).To(goOn())
	})
}

// mcpSessionOwner sends the session of one caller with the credentials of another, to another replica.
func mcpSessionOwner(ctx context.Context, t *check.T) {
	s := open(ctx, t, 0)
	each(t, "the session of another caller on", func(replica int) {
		on(s, replica).ListTools(ctx, "").MustMeet(goOn(), "replicas/mcp-session")
		for _, who := range t.Callers(check.Discoverer, check.Anonymous) {
			stranger := &check.Session{Client: t.As(who).On(replica), Revision: s.Revision, ID: s.ID}
			got := stranger.ListTools(ctx, "")
			own := []string{}
			if mine := t.As(who).On(replica).MCP(ctx, s.Revision); mine.Opened.RPCResult() != nil {
				own = check.ListAllTools(ctx, mine).Names()
			}
			t.Expect(got).To(match.Conform("a refusal, or the sender's own tools", func(r *check.Response) string {
				tools, _ := r.RPCResult()["tools"].([]any)
				for _, tool := range tools {
					name, _ := tool.(map[string]any)["name"].(string)
					if !slices.Contains(own, name) {
						return fmt.Sprintf("the tool %q, which %s does not have", name, who)
					}
				}
				return ""
			}))
		}
	})
}

// sessionEnd ends sessions on one replica that the others have served.
func sessionEnd(ctx context.Context, t *check.T) {
	each(t, "a session that the first ended, on", func(replica int) {
		s := open(ctx, t, 0)
		on(s, replica).ListTools(ctx, "").MustMeet(goOn(), "replicas/mcp-session")
		ended := s.Client.Send(ctx, check.Request{Method: http.MethodDelete, Path: check.MCPPath, Header: s.Headers("", nil)})
		if ended.Status == http.StatusMethodNotAllowed {
			check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "clients cannot end a session (405)"}})
		}
		ended.MustMeet(match.BeSuccess(), "mcp/session")
		var after *check.Response
		check.Within(ctx, check.EndTime, func() bool {
			after = on(s, replica).ListTools(ctx, "")
			return after.Status == http.StatusNotFound
		})
		t.Expect(after).To(match.BeRefusedWith(404), "%v after the session was ended", check.EndTime)
	})
}

// listChanged listens on every replica, each in a session of its own.
func listChanged(ctx context.Context, t *check.T) {
	others(t)
	if !t.Claims("mcp-list-changed") {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge does not claim the capability mcp-list-changed"}})
	}
	if t.TTL() == 0 {
		check.NotTestable("the check changes the site, and how long the bridge may cache its tools is unknown: give --discovery-ttl")
	}
	listeners := make([]*scenario.Stream, len(t.Replicas))
	for replica := range t.Replicas {
		listeners[replica] = listen(ctx, open(ctx, t, replica))
	}
	t.Cleanup(func(context.Context) { t.ExpireCaches() }) // of all replicas, when the site is as before
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, ""))
	t.Await(ctx, func() bool {
		return !slices.ContainsFunc(listeners, func(l *scenario.Stream) bool { return l.Changes() == 0 })
	})
	for replica, l := range listeners {
		t.Row(check.Agent, "", fmt.Sprintf("a stream of replica %d", replica+1), func() {
			t.Expect(l.Changes()).NotTo(BeZero(), check.Mismatch("the tools changed", fmt.Sprintf("%s within %v on a stream of replica %d", scenario.ListChanged, t.ChangeLimit(), replica+1), "none"))
		})
	}
}

// listen opens the stream of a session and waits until it is open. It ends with the check.
func listen(ctx context.Context, s *check.Session) *scenario.Stream {
	h := s.Headers("", nil)
	h.Set("Accept", "text/event-stream")
	stream, _ := scenario.OpenStream(ctx, s.Client, check.Request{Path: check.MCPPath, Header: h})
	if stream == nil {
		check.BlockedBy(check.Finding{Subject: "the stream of notifications of a session does not open"}, "fresh/notify")
	}
	return stream
}
