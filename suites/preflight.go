package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// secondTries is how often a list without an answer is asked for again before the target counts as dead.
const secondTries = 2

// preflight finds out, before a hundred checks fail for it, whether anything answers and whether it shows any sign of
// being a bridge. Nothing at all is an *UnreachableError; a target without a sign of life fails every clause.
func (b *Bridge) preflight(ctx context.Context) error {
	agent := b.As(Agent)
	list := agent.List(ctx)
	if ctx.Err() != nil {
		return nil
	}
	for try := 0; list.Status == 0 && try < secondTries && (try == 0 || list.Err != errTimeout); try++ {
		list = agent.List(ctx) // a network that loses an answer now and then is no dead target
	}
	if ctx.Err() != nil {
		return nil
	}
	if list.Status == 0 {
		return &UnreachableError{URL: b.url, Reason: errors.New(b.redact.Text(list.Err.Error()))}
	}
	if err := b.signsIn(ctx); err != nil {
		return err
	}
	if !b.Claims("tools") || hasMember(list, "tools") {
		b.met = hasMember(list, "tools")
		return nil
	}
	seen := []*Answer{list}
	if b.Drupal != nil {
		name := b.ToolName(b.simplest())
		describe, invoke := agent.Describe(ctx, name), agent.Invoke(ctx, name, Args{})
		if hasMember(describe, "tool") || hasMember(invoke, "result") {
			return nil
		}
		seen = append(seen, describe, invoke)
	}
	if b.Drupal == nil && (list.Status == http.StatusUnauthorized || list.Status == http.StatusForbidden) && list.Code() != "" {
		return nil // it refuses in the contract's own words: a bridge that does not know us
	}
	b.lifeless = fmt.Sprintf("the target shows no sign of a bridge: expected a list of tools at %s, got %s", ListPath, alike(seen))
	switch {
	case list.Status == http.StatusProxyAuthRequired:
		b.lifeless += "; a proxy on the way wants a user and a password: HTTP_PROXY or HTTPS_PROXY in the environment may hold them"
	case list.Status == http.StatusNotFound && strings.Contains(b.url, "/mcp"):
		b.lifeless += "; the URL is that of the bridge, without " + b.url[strings.LastIndex(b.url, "/mcp"):]
	}
	if list.Status == http.StatusUnauthorized || list.Status == http.StatusForbidden {
		b.lifeless += "; if it is a bridge, it does not take these credentials, or not by this scheme (Basic, bearer, login), or their account may not discover tools"
	}
	return nil
}

// discoverers are the identities who see a list of tools; one who may discover and not use JSON-RPC may be refused it.
var discoverers = []Identity{Discoverer, Agent, Agent2, Service, Admin}

// signsIn tries the credentials that the run was given: those that are refused would fail a hundred checks.
func (b *Bridge) signsIn(ctx context.Context) error {
	wrong := Credentials{User: "bridgecheck-nobody", Password: "no-such-password"}
	for _, who := range slices.Sorted(maps.Keys(b.credentials)) {
		if b.credentials[who].empty() || !b.Claims("tools") {
			continue
		}
		r := b.As(who).List(ctx)
		switch {
		case r.Status == http.StatusUnauthorized:
			return usage("the bridge refuses the credentials of %s: %s", who, b.redact.Text(r.Outcome()))
		case b.Drupal == nil && r.Status == http.StatusForbidden && r.Code() != "" && slices.Contains(discoverers, who) && sameBody(r, b.With("nobody", wrong).List(ctx)):
			return usage("the bridge answers %s as it answers wrong credentials: they are wrong, or the account may not discover tools: %s", who, b.redact.Text(r.Outcome()))
		}
	}
	return nil
}

// simplest is the first method of the site that the agent may run as a tool and that answers at once to a call without
// arguments; "" on a site without one.
func (b *Bridge) simplest() string {
	for _, m := range b.agentTools() {
		if runsPlainly(m) {
			return m.ID
		}
	}
	return ""
}

// agentTools are the methods that are tools and that the agent may run, in the site's order.
func (b *Bridge) agentTools() []*fixtures.Method {
	var tools []*fixtures.Method
	site := b.Drupal.Site()
	for i := range site.Methods {
		if m := &site.Methods[i]; b.exposed(m) && site.MayRun(userOf(site, Agent), m) {
			tools = append(tools, m)
		}
	}
	return tools
}

func hasMember(a *Answer, name string) bool {
	_, ok := a.Member(name)
	return a.Status == http.StatusOK && ok
}

// alike tells what a target says to everything, or to the first request where the answers differ.
func alike(answers []*Answer) string {
	first := answers[0]
	for _, a := range answers[1:] {
		if a.Status != first.Status || string(a.Body) != string(first.Body) {
			return first.Outcome()
		}
	}
	what := "JSON without tools"
	if to := first.Header.Get("Location"); to != "" && first.Status/100 == 3 {
		return fmt.Sprintf("%d, a redirect to %s", first.Status, exact.Cut(oneLine(first.bridge.redact.Text(to)), 120))
	}
	switch contentType := first.Header.Get("Content-Type"); {
	case strings.Contains(contentType, "html"):
		what = "an HTML page"
	case len(first.Body) == 0:
		what = "no body"
	case first.Object() == nil:
		what = "no JSON object"
	}
	if len(answers) == 1 {
		return fmt.Sprintf("%d with %s: %s", first.Status, what, exact.Cut(oneLine(string(first.Body)), 120))
	}
	return fmt.Sprintf("%d with %s to every request: %s", first.Status, what, exact.Cut(oneLine(string(first.Body)), 120))
}
