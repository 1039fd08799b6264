package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/machine"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/patience"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// settleTime is how long a busy machine is left alone before the first request is sent again.
const settleTime = time.Second

// preflight finds out, before a hundred checks fail for it, whether anything responds and whether it shows any sign of
// being a bridge. Nothing at all is an *UnreachableError; a target without a sign of life fails every clause.
func preflight(ctx context.Context, t *check.T) error {
	agent, since := t.As(check.Agent), t.Upstream.Last()
	list := firstList(ctx, t, agent)
	if ctx.Err() != nil {
		return nil
	}
	if errors.Is(list.Err, client.ErrTimeout) && responds(agent.Describe(ctx, scenario.NoSuchTool)) {
		t.Responded = true
		return nil // it is a bridge, which hangs on its list: a clause says so
	}
	if list.Status == 0 {
		return &UnreachableError{URL: t.URL, Reason: byProxy(t, whyNoResponse(t, list))}
	}
	if list.Status >= http.StatusBadGateway && list.Code() != "" {
		if err := siteDown(t, list); err != nil {
			return err
		}
	}
	if list.Status >= http.StatusBadGateway && list.MadeBy() != nil && !responds(agent.Describe(ctx, scenario.NoSuchTool)) {
		return &UnreachableError{URL: t.URL, Reason: errors.New(t.Redact.Text(fmt.Sprintf("%d: %s", list.Status, list.WhoMade())))}
	}
	if err := tryCredentials(ctx, t); err != nil {
		return err
	}
	if err := otherSite(t, list.Names()); err != nil {
		return err
	}
	if err := unknownCall(ctx, t, list.Names()); err != nil {
		return err
	}
	if !hasMember(list, "tools") {
		if err := mcpInstead(ctx, t, list); err != nil {
			return err
		}
	}
	if !t.Claims("tools") || hasMember(list, "tools") {
		t.Responded = hasMember(list, "tools")
		if t.WaitOut {
			stranger := t.With("nobody", patience.WrongCredentials).List(ctx)
			t.Strangers = stranger.Status != 0 && !client.Failing(stranger.Status)
		}
		return nil
	}
	seen := []*check.Response{list}
	if t.Drupal != nil {
		name := t.ToolName(scenario.Simplest(t))
		describe, invoke := agent.Describe(ctx, name), agent.Invoke(ctx, name, check.Args{})
		t.Unforwarded = asksWithoutCaller(t, since)
		if hasMember(describe, "tool") || hasMember(invoke, "result") || t.Unforwarded {
			return nil
		}
		seen = append(seen, describe, invoke)
	}
	if scenario.RefusesKnown(ctx, t, list, check.Agent) && list.Code() != "" {
		return nil
	}
	if t.Drupal == nil && refusesCaller(list) && list.Code() != "" {
		t.Unauthenticated = true
		return nil // it refuses with an error of the contract: a bridge that does not know the caller
	}
	t.NotABridge = whyNoBridge(ctx, t, seen)
	return nil
}

// mcpInstead says that what has no list serves MCP, at the URL itself or without being claimed: then the run was told the wrong thing.
func mcpInstead(ctx context.Context, t *check.T, list *check.Response) error {
	agent := t.As(check.Agent)
	base, itself := strings.CutSuffix(t.URL, check.MCPPath)
	missing := list.Status == http.StatusNotFound || list.Status == http.StatusMethodNotAllowed
	agent.Base = base
	switch {
	case !missing, !itself && (list.Code() != "" || t.Claims("mcp")), agent.MCP(ctx, check.MCP2025November).Opened.RPCResult() == nil:
		return nil
	case itself:
		return usage("the URL is the base of the bridge, to which %s is added, and MCP responds at %s itself: give %s", check.MCPPath, t.URL, base)
	}
	return &UnreachableError{Reason: fmt.Errorf("%s has no list at %s, and serves MCP at %s: give --capabilities mcp,-tools if it serves that alone",
		base, check.ListPath, check.MCPPath)}
}

// firstList asks for the list, again where a network lost the response or the machine was busy with starting all this.
func firstList(ctx context.Context, t *check.T, agent check.Client) *check.Response {
	list := agent.List(ctx)
	for try := 0; ctx.Err() == nil && list.Status == 0 && try < patience.SecondTries; try++ {
		if errors.Is(list.Err, syscall.ECONNREFUSED) || try > 0 && list.Err == client.ErrTimeout {
			break
		}
		list = agent.List(ctx) // a network that loses a response now and then is no dead target
	}
	for try := 0; list.Status >= http.StatusBadGateway && try < patience.SecondTries; try++ {
		if why, bySite := t.Exemption(); (why == "" || bySite) && list.MadeBy() == nil {
			break
		}
		select {
		case <-time.After(settleTime):
		case <-ctx.Done():
			return list
		}
		list = agent.List(ctx)
	}
	return list
}

// whyNoResponse is why the target did not respond to the request for the list, as the user may change it.
func whyNoResponse(t *check.T, list *check.Response) error {
	if !errors.Is(list.Err, client.ErrTimeout) {
		return errors.New(t.Redact.Text(list.Err.Error()))
	}
	if why := t.SiteFailure(0, t.Timeout/2); why != "" {
		return fmt.Errorf("%s: give a longer --timeout, and the bridge a longer one for its site, if the site is that slow", why)
	}
	return fmt.Errorf("no response to GET %s within %v: give a longer --timeout if the bridge or its site is that slow", check.ListPath, t.Timeout)
}

// whyNoBridge says what a target responded with that is no bridge, to the request for the list first, and what may be the cause.
func whyNoBridge(ctx context.Context, t *check.T, seen []*check.Response) string {
	list := seen[0]
	why := fmt.Sprintf("the target shows no sign of a bridge: expected a list of tools at %s, got %s", check.ListPath, alike(t, seen))
	if t.Drupal != nil && list.Code() != "" && len(t.Upstream.Entries(0)) == 0 {
		why += "; it has asked the site nothing that the run has put there: point it at that (DRUPAL_URL, or as its own settings call it)"
	}
	switch {
	case list.Status == http.StatusProxyAuthRequired:
		why += "; a proxy on the way requires a user and a password: HTTP_PROXY or HTTPS_PROXY in the environment may hold them"
	case list.Status == http.StatusNotFound && strings.Contains(t.URL, "/mcp"):
		why += "; the URL is that of the bridge, without " + t.URL[strings.LastIndex(t.URL, "/mcp"):]
	}
	why += frontOf(ctx, t, list)
	if refusesCaller(list) {
		why += "; if it is a bridge, it does not take these credentials, or not by this scheme (Basic, bearer, login), or their account may not discover tools"
	}
	return why
}

func refusesCaller(r *check.Response) bool {
	return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
}

// frontOf says what a proxy in front of the bridge has to do with a response, with a semicolon before it; "": nothing that is known.
func frontOf(ctx context.Context, t *check.T, r *check.Response) string {
	if t.Spares() {
		t.LookForFront(ctx)
	}
	if why := cmp.Or(r.WhoMade(), t.Suspects("", r)); why != "" {
		return "; " + t.Redact.Text(why)
	}
	return ""
}

// byProxy names the proxy that stands between the run and a bridge that cannot be reached.
func byProxy(t *check.T, reason error) error {
	req, err := http.NewRequest(http.MethodGet, t.URL, nil)
	if err != nil || t.Transport.Proxy == nil {
		return reason
	}
	proxy, err := t.Transport.Proxy(req)
	if err != nil || proxy == nil {
		return reason
	}
	return fmt.Errorf("%w; the requests go through the proxy %s: NO_PROXY in the environment names hosts that are reached without it", reason, proxy.Redacted())
}

// otherSite says that no tool of a list is a method of the real site that the run was given, in whatever spelling: then another is
// behind the bridge, which is not to blame.
func otherSite(t *check.T, tools []string) error {
	if t.Drupal != nil || t.Site == nil || len(tools) == 0 || len(t.Site.Methods()) == 0 {
		return nil
	}
	spelled := func(name string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, name)
	}
	listed := make([]string, len(tools))
	for i, tool := range tools {
		listed[i] = spelled(tool)
	}
	for _, method := range t.Site.Methods() {
		id := spelled(method.ID)
		if slices.ContainsFunc(listed, func(tool string) bool { return strings.Contains(tool, id) }) {
			return nil
		}
	}
	return usage("the bridge lists tools such as %s, and none is a method of the site of --drupal: give the site that is behind the bridge",
		exact.Cut(t.Redact.Text(tools[0]), 60))
}

// unknownCall names an allowed call of a tool that the bridge shows its caller neither in the list nor by describe. It is a wrong
// name in the configuration, for which clauses would fail.
func unknownCall(ctx context.Context, t *check.T, listed []string) error {
	if t.Drupal != nil || !t.Claims("tools") || len(listed) == 0 {
		return nil
	}
	for _, call := range t.Invocations {
		if !call.Succeeds() || slices.Contains(listed, call.Tool) {
			continue
		}
		if r := t.As(call.Identity).Describe(ctx, call.Tool); r.Status == http.StatusNotFound && r.Code() == "tool_not_found" {
			shown := "it lists tools such as " + strings.Join(listed[:min(3, len(listed))], ", ")
			if near := suggest.Near(call.Tool, listed); near != "" {
				shown = "did you mean " + near + "?"
			}
			return usage("invocations: the bridge shows %s no tool %q; %s", call.Identity, call.Tool, t.Redact.Text(exact.Cut(client.OneLine(shown), 200)))
		}
	}
	return nil
}

// asksWithoutCaller reports whether the bridge has asked the site what only a bridge asks, and never with the agent's
// credentials. Then it is a bridge that the site refuses: access/credentials-forwarded says why.
func asksWithoutCaller(t *check.T, since int64) bool {
	asked := scenario.ForCallers(t, t.Upstream.Entries(since))
	ofAgent := func(e journal.Entry) bool { return e.User == string(check.Agent) }
	return t.Claims("auth-passthrough") && len(asked) > 0 && !slices.ContainsFunc(asked, ofAgent)
}

// responds reports whether a response is one of a bridge, by the contract's words.
func responds(r *check.Response) bool {
	return r.Err == nil && r.Status < http.StatusBadGateway && (r.Code() != "" || hasMember(r, "tool"))
}

// siteDown says why a bridge that refuses its list with 502, 503 or 504 and an error of the contract cannot be tested: the
// bridge responds, its site does not. It is nil where a mock is behind the bridge and has received the bridge's requests.
func siteDown(t *check.T, list *check.Response) error {
	reason := fmt.Errorf("the bridge responds, its site does not, or not with a list: %s", t.Redact.Text(list.Outcome()))
	if why, _ := t.Exemption(); why != "" {
		reason = fmt.Errorf("%s; the bridge says %s", why, t.Redact.Text(list.Outcome()))
	} else if t.Upstream != nil && len(t.Upstream.Journal()) > 0 {
		if t.Drupal != nil {
			return nil
		}
		how, entries := "does not respond", t.Upstream.Journal()
		if last := entries[len(entries)-1]; last.Status == http.StatusNotFound {
			how = fmt.Sprintf("responds to %s %s with 404: --drupal is the address of its front page, and its modules jsonrpc and jsonrpc_discovery have to be installed", last.HTTPMethod, last.Path)
		}
		reason = fmt.Errorf("the bridge responds, and its requests reach the recording proxy, but the site behind it %s; the bridge says %s", how, t.Redact.Text(list.Outcome()))
	} else if why := machine.FewPorts(); t.Upstream != nil && why != "" {
		return fmt.Errorf("the bridge reaches no site: %s; the bridge says %s", why, t.Redact.Text(list.Outcome()))
	} else if t.Upstream != nil {
		reason = fmt.Errorf("the bridge responds, but none of its requests reaches the site that the run has put there; point the bridge at it, or start it anew where it has given its site up: %s", t.Redact.Text(list.Outcome()))
	}
	return &UnreachableError{URL: t.URL, Reason: reason}
}

// discoverers are the identities that see a list of tools; one that may discover and not use JSON-RPC may be refused it.
var discoverers = []check.Identity{check.Discoverer, check.Agent, check.Agent2, check.Service, check.Admin}

// tryCredentials reports credentials of the run that the bridge refuses: they would make a hundred checks fail.
func tryCredentials(ctx context.Context, t *check.T) error {
	for _, who := range slices.Sorted(maps.Keys(t.Credentials)) {
		if t.Credentials[who].Empty() || !t.Claims("tools") {
			continue
		}
		r := t.As(who).List(ctx)
		switch {
		case scenario.RefusesKnown(ctx, t, r, who): // which is its own fault
		case r.Status == http.StatusUnauthorized:
			return usage("the bridge refuses the credentials of %s: %s%s", who, t.Redact.Text(r.Outcome()), frontOf(ctx, t, r))
		case who == check.NoRPC || who == check.Blocked: // the site refuses them as it does wrong credentials
		case t.Drupal != nil || r.Status != http.StatusForbidden || r.Code() == "" || !match.SameBody(r, t.With("nobody", check.WrongCredentials).List(ctx)):
		case slices.Contains(discoverers, who):
			return usage("the bridge responds to %s as it does to wrong credentials: they are wrong, or the account may not discover tools: %s", who, t.Redact.Text(r.Outcome()))
		case who == check.Outsider && t.Claims("discovery-permission"): // who may use JSON-RPC: the site tells such a caller what is missing
			return usage("the bridge responds to %s as it does to wrong credentials: they are wrong, or the account may not use JSON-RPC: %s", who, t.Redact.Text(r.Outcome()))
		}
	}
	return nil
}

func hasMember(a *check.Response, name string) bool {
	_, ok := a.Member(name)
	return a.Status == http.StatusOK && ok
}

// alike describes the response to every request, or to the first one where the responses differ.
func alike(t *check.T, responses []*check.Response) string {
	first := responses[0]
	for _, a := range responses[1:] {
		if a.Status != first.Status || string(a.Body) != string(first.Body) {
			return first.Outcome()
		}
	}
	what := "JSON without tools"
	if to := first.Header.Get("Location"); to != "" && first.Status/100 == 3 {
		return fmt.Sprintf("%d, a redirect to %s", first.Status, exact.Cut(client.OneLine(t.Redact.Text(to)), 120))
	}
	switch contentType := first.Header.Get("Content-Type"); {
	case strings.Contains(contentType, "html"):
		what = "an HTML page"
	case len(first.Body) == 0:
		what = "no body"
	case first.Object() == nil:
		what = "no JSON object"
	}
	if len(responses) == 1 {
		return fmt.Sprintf("%d with %s: %s", first.Status, what, exact.Cut(client.OneLine(string(first.Body)), 120))
	}
	return fmt.Sprintf("%d with %s to every request: %s", first.Status, what, exact.Cut(client.OneLine(string(first.Body)), 120))
}
