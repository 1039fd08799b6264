// Package replicas checks several replicas of a bridge: whichever a load balancer chooses, callers must see one bridge. The
// first replica is the target of the run, which all other areas test; the others are compared with it.
package replicas

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area replicas.
var Checks = []check.Check{
	{ID: "replicas/cursor", Sees: check.Front, Run: cursor},
	{ID: "replicas/lists-agree", Sees: check.Front, Run: listsAgree},
	{ID: "replicas/versions-agree", Sees: check.Front, Run: versionsAgree},
	{ID: "replicas/mcp-session", Sees: check.Front, Run: mcpSession},
	{ID: "replicas/mcp-session-owner", TellsApart: true, Sees: check.Front, Run: mcpSessionOwner},
	{ID: "replicas/changes", Sees: check.Site, Run: changes},
	{ID: "replicas/list-changed", Sees: check.Site, Run: listChanged},
	{ID: "replicas/permission-revoked", TellsApart: true, Sees: check.Site, Run: permissionRevoked},
	{ID: "replicas/runs-once", Sees: check.Site, Run: runsOnce},
	{ID: "replicas/restart", Sees: check.Site, Run: restart},
	{ID: "replicas/shared-session-end", Sees: check.Front, Run: sessionEnd},
	{ID: "replicas/shared-rate-limit", Sees: check.Site, Run: rateLimit},
}

// others are the replicas beside the first.
func others(t *check.T) []int {
	if len(t.Replicas) < 2 {
		check.NotTestable("the run knows one replica: give --url for each, or --replicas with --exec")
	}
	all := []int{}
	for i := range t.Replicas[1:] {
		all = append(all, i+1)
	}
	return all
}

// settle waits until no replica shows what an earlier check changed on the site. Whether all show the same is for the checks
// to say.
func settle(ctx context.Context, t *check.T) {
	compared := others(t)
	if t.Drupal == nil {
		return
	}
	same := func() bool {
		first := agent(t, 0).ListAll(ctx).Names()
		return !slices.ContainsFunc(compared, func(replica int) bool {
			return match.OtherNames(first, agent(t, replica).ListAll(ctx).Names()) != ""
		})
	}
	if !same() {
		t.ExpireCaches()
		check.Within(ctx, t.ChangeLimit(), same)
	}
}

// each is a row for each replica beside the first.
func each(t *check.T, what string, test func(replica int)) {
	for _, replica := range others(t) {
		t.Row(check.Agent, "", fmt.Sprintf("%s replica %d", what, replica+1), func() { test(replica) })
	}
}

// agent is the agent's client for a replica.
func agent(t *check.T, replica int) check.Client { return t.As(check.Agent).On(replica) }

// cursor follows the first replica's cursors on the others, and theirs on the first.
func cursor(ctx context.Context, t *check.T) {
	settle(ctx, t)
	first := agent(t, 0).List(ctx).MustSucceed("list/answers-json")
	if first.NextCursor() == "" {
		check.NotTestable("the list has one page: there is no cursor")
	}
	follow := func(from, to int) {
		given := agent(t, from).List(ctx).MustSucceed("list/answers-json").NextCursor()
		expected := agent(t, from).List(ctx, given).MustSucceed("list/cursor-walks-on", "list/answers-json")
		got := agent(t, to).List(ctx, given)
		t.Expect(got).To(match.BeSuccess(), "with a cursor that replica %d gave", from+1)
		difference := match.OtherNames(expected.Names(), got.Names())
		t.Expect(difference).To(BeEmpty(), check.Mismatch(fmt.Sprintf("the page of a cursor that replica %d gave", from+1), "the tools that it shows there", difference))
	}
	each(t, "a cursor of the first on", func(replica int) { follow(0, replica) })
	each(t, "on the first, a cursor of", func(replica int) { follow(replica, 0) })
}

// listsAgree compares whole tools, in their order.
func listsAgree(ctx context.Context, t *check.T) {
	settle(ctx, t)
	expected := agent(t, 0).MustListAll(ctx).Tools()
	each(t, "the list of", func(replica int) {
		got := agent(t, replica).MustListAll(ctx)
		difference := differenceOf(expected, got.Tools())
		t.Expect(difference).To(BeEmpty(), check.Mismatch(fmt.Sprintf("the list of replica %d", replica+1), "that of the first", difference))
	})
}

func differenceOf(expected, got []check.Tool) string {
	for i := range min(len(expected), len(got)) {
		if d := match.Difference(map[string]any(expected[i]), map[string]any(got[i])); d != "" {
			return fmt.Sprintf("%s: %s", expected[i].Name(), d)
		}
	}
	if len(expected) != len(got) {
		return fmt.Sprintf("%d tools, not %d", len(got), len(expected))
	}
	return ""
}

func versionsAgree(ctx context.Context, t *check.T) {
	settle(ctx, t)
	first := agent(t, 0).List(ctx).MustSucceed("list/answers-json")
	tag := first.Header.Get("ETag")
	if tag == "" {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "lists have no ETag"}})
	}
	conditional := check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {tag}}}
	t.As(check.Agent).Send(ctx, conditional).MustMeet(match.HaveStatus(304), "fresh/version")
	each(t, "If-None-Match with the version of the first at", func(replica int) {
		t.Expect(agent(t, replica).Send(ctx, conditional)).To(match.HaveStatus(304))
	})
}

// permissionRevoked takes a tool from a caller who has used it on every replica.
func permissionRevoked(ctx context.Context, t *check.T) {
	others(t)
	who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	tool := scenario.DeniedTool(t, t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools), check.Agent)
	shows := func(replica int) bool {
		return slices.Contains(t.As(who).On(replica).ListAll(ctx).Names(), tool)
	}
	for replica := range t.Replicas {
		if !shows(replica) {
			check.BlockedBy(check.Mismatch(fmt.Sprintf("the list of replica %d", replica+1), fmt.Sprintf("the tool %q", tool), "a list without it"), "access/filtered-by-method", "replicas/lists-agree")
		}
		granted := t.As(who).On(replica).Invoke(ctx, tool, check.Args{})
		if granted.Is(http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound) {
			check.BlockedBy(check.Mismatch(granted.Subject(), "no refusal of a caller with the permission", granted.Outcome()), "access/*", "invoke/*")
		}
	}
	t.Drupal.Permit(who, fixtures.UseJSONRPC, fixtures.DiscoverTools)
	t.ExpireCaches()
	for replica := range t.Replicas {
		t.Row(who, tool, fmt.Sprintf("after the permission was revoked, replica %d", replica+1), func() {
			t.Expect(t.Poll(ctx, func() bool { return !shows(replica) })).To(BeTrue(), check.Mismatch(fmt.Sprintf("the list of replica %d %v after a permission was revoked", replica+1, t.ChangeLimit()), fmt.Sprintf("no tool %q", tool), "the tool"))
			t.Drupal.Mark()
			t.Expect(t.As(who).On(replica).Invoke(ctx, tool, check.Args{})).To(match.BeRefusedWith(401, 403, 404))
			t.Expect(t.Drupal.Runs()).To(BeEmpty(), "no method may run")
		})
	}
}

// changes adds a tool to the site, which every replica has to show in time.
func changes(ctx context.Context, t *check.T) {
	others(t)
	if t.TTL() == 0 {
		check.NotTestable("the check changes the site, and how long the bridge may cache its tools is unknown: give --discovery-ttl")
	}
	for replica := range t.Replicas {
		agent(t, replica).List(ctx).MustSucceed("list/answers-json") // fills its cache
	}
	t.Cleanup(func(context.Context) { t.ExpireCaches() }) // of all replicas, when the site is as before
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, ""))
	if t.Invalidate != nil && t.Claims("invalidation") { // at one replica; the others have their TTL
		call := check.Request{Method: t.Invalidate.Method, Path: t.Invalidate.Path, Header: http.Header{"Content-Type": {"application/json"}}}
		t.As(t.Invalidate.Identity).Send(ctx, call).MustMeet(match.BeSuccess(), "fresh/invalidate")
	}
	t.ExpireCaches()
	for replica := range t.Replicas {
		t.Row(check.Agent, "", fmt.Sprintf("after a change, replica %d", replica+1), func() {
			shown := t.Poll(ctx, func() bool {
				return slices.Contains(agent(t, replica).ListAll(ctx).Names(), t.ToolName(scenario.Arrival))
			})
			t.Expect(shown).To(BeTrue(), check.Mismatch(fmt.Sprintf("the list of replica %d %v after a module was enabled", replica+1, t.ChangeLimit()), fmt.Sprintf("the tool %q", scenario.Arrival), "a list without it"))
		})
	}
}

// tooSlow is how long the calls may take: a bucket of some hundred fills up again in seconds. On a calm machine they take half of one.
const tooSlow = 3 * time.Second

// rateLimit spreads the calls of one caller over the replicas, as many as exceed the limit of one.
func rateLimit(ctx context.Context, t *check.T) {
	others(t)
	if !t.Claims("rate-limit") {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge does not claim the capability rate-limit"}})
	}
	if t.RateLimit == 0 {
		check.NotTestable("the bridge's rate limit is unknown: give the setting `rate_limit`, or test filter/rate-limit too")
	}
	known := scenario.KnownTool(ctx, t)
	users := t.Drupal.NewUsers(2, t.Permissions(check.Agent)...)
	call := func(who check.Identity, replica int) *check.Response {
		return t.As(who).WithoutWaiting().On(replica).Invoke(ctx, known, check.Args{})
	}
	t.As(users[1]).Invoke(ctx, known, check.Args{}).MustSucceed("invoke/answers-result", "filter/rate-limit") // who is refused always is not limited
	// Both callers keep the same pace, as a limit that fills up bears more calls on a slow machine. Replicas that count alone
	// refuse the second after twice as many calls as the first.
	calls, alone, over, began := 2*t.RateLimit, false, (*check.Response)(nil), time.Now()
	for n := 0; n < calls && over == nil; n++ {
		if !alone && call(users[0], 0).Is(http.StatusTooManyRequests) {
			alone, calls = true, n+n/2+1
		}
		if r := call(users[1], n%len(t.Replicas)); r.Is(http.StatusTooManyRequests) {
			over = r
		}
	}
	if !alone && over == nil {
		if took := time.Since(began).Round(time.Second); took >= tooSlow {
			t.TooSlow(fmt.Sprintf("the calls are too slow to exceed the rate limit of %d: %d in %v", t.RateLimit, calls, took))
		}
		check.BlockedBy(check.Mismatch(fmt.Sprintf("%d calls of one caller at one replica", calls), "429", "none"), "filter/rate-limit")
	}
	t.Expect(over).NotTo(BeNil(), check.Mismatch(fmt.Sprintf("%d calls of one caller, in turn at %d replicas, where %d are allowed", calls, len(t.Replicas), t.RateLimit), "429", "none"))
}
