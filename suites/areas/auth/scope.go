package auth

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// The methods that the checks of scopes add to the site. Each names scopeNames, and the last requires none.
const (
	scoped         = "content.scoped"
	scopedPlainly  = "content.scoped_plainly" // without a level
	scopedOptional = "content.scoped_optional"
)

var scopeNames = []string{"content:read", "content:write"}

// withScopes adds a tool to the site that requires scopes, and waits until a token with them runs it.
func withScopes(ctx context.Context, t *check.T) *door {
	d := open(ctx, t)
	d.authority()
	site := t.Drupal.Site().Clone()
	for id, level := range check.InOrder(map[string]string{scoped: `"level":"required",`, scopedPlainly: "", scopedOptional: `"level":"optional",`}) {
		site.Methods = append(site.Methods, fixtures.Method{ID: id, Usage: "Names scopes", Access: []string{fixtures.AccessContent},
			Output:    fixtures.Raw(`{"type":"string"}`),
			MCP:       &fixtures.Tool{Title: "Scoped", Annotations: fixtures.Raw(`{"auth":{` + level + `"scopes":["content:read","content:write"]}}`)},
			Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`"done"`)}})
	}
	enough := d.scopes(ctx, strings.Join(scopeNames, " "))
	t.ChangeSite(ctx, site, func() bool { return d.served(enough.CallTool(ctx, t.ToolName(scoped), check.Args{})) })
	return d
}

// scopes is a session of the agent's that a token with these scopes opens; nil: the claim is missing.
func (d *door) scopes(ctx context.Context, scope any) *check.Session {
	return d.own(ctx, check.Credentials{Token: d.Authority.Issue(string(check.Agent), d.Resource(), map[string]any{"scope": scope})})
}

// tooFew are scopes with which the tool must not run.
var tooFew = map[string]any{
	"no scopes": nil, "one of two scopes": "content:read", "other scopes": "content:delete openid",
	"scopes that begin like right": "content:read content:writer", "scopes in other letters": "content:read CONTENT:WRITE",
}

func scopeEnforced(ctx context.Context, t *check.T) {
	d := withScopes(ctx, t)
	for name, scope := range check.InOrder(tooFew) {
		s := d.scopes(ctx, scope)
		d.Row(check.Agent, "", name+", a tool that requires none", func() { d.Expect(d.use(ctx, s)).To(d.beServed()) })
		d.Row(check.Agent, scoped, name, func() {
			d.Mark()
			r := s.CallTool(ctx, d.ToolName(scoped), check.Args{})
			d.Expect(r).To(match.HaveStatus(http.StatusForbidden), "with "+name)
			d.Expect(r).To(match.HaveRun(d.Upstream, scoped, 0), "with "+name)
		})
	}
	few, both := d.scopes(ctx, "content:read"), d.scopes(ctx, strings.Join(scopeNames, " "))
	d.Row(check.Agent, scoped, "one of two scopes, in a session that a token with both has opened", func() {
		d.Mark()
		r := (&check.Session{Client: few.Client, Revision: both.Revision, ID: both.ID}).CallTool(ctx, d.ToolName(scoped), check.Args{})
		d.Expect(r).To(match.BeRefusedWith(http.StatusForbidden, http.StatusNotFound))
		d.Expect(r).To(match.HaveRun(d.Upstream, scoped, 0))
	})
	d.Row(check.Agent, scopedPlainly, "one of two scopes, and no level", func() {
		d.Expect(few.CallTool(ctx, d.ToolName(scopedPlainly), check.Args{})).To(match.HaveStatus(http.StatusForbidden))
	})
	d.Row(check.Agent, scopedOptional, "one of two scopes, and the level optional", func() {
		d.Expect(few.CallTool(ctx, d.ToolName(scopedOptional), check.Args{})).To(d.beServed())
	})
	for name, scope := range check.InOrder(map[string]any{"in another order": "content:write content:read", "among others": "openid content:read profile content:write"}) {
		d.Row(check.Agent, scoped, "both scopes "+name, func() {
			d.Expect(d.scopes(ctx, scope).CallTool(ctx, d.ToolName(scoped), check.Args{})).To(d.beServed(), "both scopes "+name)
		})
	}
	// Last, as a bridge may end a session in which another token is used.
	d.Row(check.Agent, scoped, "one of two scopes, in its own session, in which a token with both was used", func() {
		(&check.Session{Client: both.Client, Revision: few.Revision, ID: few.ID}).CallTool(ctx, d.ToolName(scoped), check.Args{}) // a bridge may refuse it there
		d.Mark()
		r := few.CallTool(ctx, d.ToolName(scoped), check.Args{})
		d.Expect(r).To(match.BeRefusedWith(http.StatusForbidden, http.StatusNotFound))
		d.Expect(r).To(match.HaveRun(d.Upstream, scoped, 0))
	})
}

func insufficientScope(ctx context.Context, t *check.T) {
	d := withScopes(ctx, t)
	for name, scope := range check.InOrder(map[string]any{"no scopes": nil, "one of two scopes": "content:read"}) {
		d.Row(check.Agent, scoped, name, func() {
			r := d.scopes(ctx, scope).CallTool(ctx, d.ToolName(scoped), check.Args{})
			if r.Status != http.StatusForbidden {
				return // auth/scope-enforced tests that
			}
			d.Expect(r).To(match.Conform(`a Bearer challenge with error="insufficient_scope", the scope that is missing and resource_metadata`, func(a *check.Response) string {
				params := a.Bearer()
				named := strings.Fields(params["scope"])
				lacks := slices.ContainsFunc(scopeNames, func(s string) bool { return !slices.Contains(named, s) && (scope == nil || s != scope) })
				if params["error"] != "insufficient_scope" || lacks || !match.IsAddress(params["resource_metadata"]) {
					return a.Challenges()
				}
				return ""
			}), "with "+name)
		})
	}
}

func challengeScope(ctx context.Context, t *check.T) {
	d := withScopes(ctx, t)
	d.Expect(opens(ctx, d, check.Credentials{})).To(match.Conform("a challenge that names scopes, as a tool requires some", func(a *check.Response) string {
		if a.Status == http.StatusUnauthorized && a.Bearer() != nil && strings.TrimSpace(a.Bearer()["scope"]) == "" {
			return fmt.Sprintf("%s, without scope", a.Challenges())
		}
		return ""
	}))
}
