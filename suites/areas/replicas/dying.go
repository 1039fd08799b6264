package replicas

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// The last replica is the one that dies.
func dying(t *check.T) int {
	all := others(t)
	last := all[len(all)-1]
	if t.Replicas[last].Kill == nil {
		check.NotTestable("the run cannot end a replica: give --exec with --replicas")
	}
	return last
}

// revive starts a replica again; a bridge that does not start fails the check.
func revive(ctx context.Context, t *check.T, replica int) {
	if err := t.Replicas[replica].Start(ctx); err != nil {
		t.Fail(check.Mismatch(fmt.Sprintf("the start of replica %d", replica+1), "a bridge that serves", err.Error()))
	}
}

// How the check of a call whose replica dies waits.
const (
	running = 400 * time.Millisecond // how long the method takes
	settled = 600 * time.Millisecond // after it: for a replica that takes the call over
)

// runsOnce ends a replica while the site runs a method for it.
func runsOnce(ctx context.Context, t *check.T) {
	replica := dying(t)
	tool := scenario.MustFind(t, check.Agent, fixtures.Count)[0]
	t.Drupal.Mark()
	agent(t, replica).Invoke(ctx, tool.Name, tool.Arguments).MustMeet(match.HaveRun(t.Upstream, tool.ID, 1), "invoke/runs-once", "invoke/answers-result")
	t.Drupal.Mark()
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Method: tool.ID, Delay: running, Run: true, Count: 1})
	var lost *check.Response
	called := make(chan struct{})
	go func() {
		defer close(called)
		defer t.Recover()
		lost = agent(t, replica).Invoke(ctx, tool.Name, tool.Arguments)
	}()
	time.Sleep(running / 2)
	if err := t.Replicas[replica].Kill(); err != nil {
		check.NotTestable(fmt.Sprintf("replica %d cannot be ended: %v", replica+1, err))
	}
	<-called
	time.Sleep(running/2 + settled)
	disarm()
	ran := len(t.Drupal.Runs(tool.ID))
	revive(ctx, t, replica)
	switch {
	case lost.Succeeded():
		check.NotTestable("the replica had responded before it was ended")
	case ran == 0:
		check.NotTestable("the call had not reached the site before the replica was ended")
	}
	for other := range t.Replicas {
		if other == replica {
			continue
		}
		t.Row(check.Agent, "", fmt.Sprintf("after one died, replica %d", other+1), func() {
			t.Expect(agent(t, other).List(ctx)).To(match.BeSuccess())
		})
	}
	ran = max(ran, len(t.Drupal.Runs(tool.ID)))
	t.Expect(ran).To(BeNumerically("<=", 1), check.Mismatch(fmt.Sprintf("a call of %s whose replica died", tool.Name), "one run at most", fmt.Sprintf("%d runs", ran)))
}

// restart ends a replica and starts it again: its first responses must be those of the others.
func restart(ctx context.Context, t *check.T) {
	replica := dying(t)
	settle(ctx, t)
	call := check.AsAgent(scenario.KnownTool(ctx, t))
	expected := agent(t, 0).MustListAll(ctx).Names()
	agent(t, replica).Invoke(ctx, call.Tool, check.Args{}).MustSucceed("invoke/answers-result")
	var s *check.Session // nil: the bridge has none
	if t.Claims("mcp") {
		s = opened(ctx, t, replica)
	}
	if err := t.Replicas[replica].Kill(); err != nil {
		check.NotTestable(fmt.Sprintf("replica %d cannot be ended: %v", replica+1, err))
	}
	revive(ctx, t, replica)
	name := fmt.Sprintf("right after it started, replica %d", replica+1)
	t.Row(check.Agent, "", name, func() {
		list := agent(t, replica).List(ctx)
		t.Expect(list).To(match.HaveStatus(http.StatusOK))
		difference := match.OtherNames(expected, agent(t, replica).ListAll(ctx).Names())
		t.Expect(difference).To(BeEmpty(), check.Mismatch(name, "the list of the first replica", difference))
	})
	t.Row(check.Agent, call.Tool, name, func() {
		t.Expect(agent(t, replica).Invoke(ctx, call.Tool, check.Args{})).To(match.HaveResult())
	})
	if s != nil {
		t.Row(check.Agent, "", "its session, "+name, func() { t.Expect(on(s, replica).ListTools(ctx, "")).To(goOn()) })
	}
}
