package suites

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
)

// stepsDrawn is how many steps a drawn sequence has at most.
const stepsDrawn = 80

// deed is what a step does.
type deed string

const (
	listing       deed = "list"
	describing    deed = "describe"
	invoking      deed = "invoke"
	invokingBadly deed = "invoke with arguments that are no object"
	asking        deed = "ask for an unknown tool"
	changing      deed = "change the site"
)

// step is one step of a drawn sequence.
type step struct {
	who  Identity
	does deed
	tool string
}

func (s step) String() string {
	switch s.does {
	case changing:
		return string(s.does)
	case listing, asking:
		return fmt.Sprintf("%s as %s", s.does, s.who)
	}
	return fmt.Sprintf("%s %s as %s", s.does, s.tool, s.who)
}

// actors are who takes the steps of a sequence, and what they may touch: every tool that is named may be run.
type actors struct {
	callers []Identity
	shown   []string // tools to describe
	runs    []Invocation
	changes int // of the site, at most
	steps   int // of a sequence
}

// agents are the actors of sequences that need no special callers. Without a mock they run what the configuration allows.
func (t *T) agents(ctx context.Context) actors {
	a := actors{callers: []Identity{Agent}, shown: t.As(Agent).MustListAll(ctx).Names(), steps: t.steps()}
	if t.Drupal == nil {
		a.runs = t.invocable
		if t.Knows(Agent2) {
			a.callers = append(a.callers, Agent2)
		}
		if len(a.shown)+len(a.runs) == 0 {
			NotTestable("the agent sees no tool: it needs one")
		}
		return a
	}
	a.callers = append(a.callers, Agent2)
	for _, s := range t.samples(Agent, well...) {
		a.runs = append(a.runs, Invocation{Tool: s.Name, Arguments: encode(s.Arguments)})
	}
	switch {
	case t.advance != nil:
		a.changes = 3
	case t.DiscoveryTTL > 0:
		a.changes = 1 // it takes the TTL
	}
	if a.changes == 0 {
		a.callers = append(a.callers, Discoverer) // who does not see what arrives, so that nobody can tell when it has
	}
	return a
}

// steps is how many steps a drawn sequence has: no more than there may be cases.
func (t *T) steps() int { return min(stepsDrawn, t.cases) }

// sequence draws the steps of a sequence.
func (a actors) sequence(dice *rand.Rand) []step {
	focus := some(dice, a.shown, 3)
	runs := some(dice, a.runs, 3)
	for _, call := range runs { // what was run is what is looked at
		focus = append(focus, call.Tool)
	}
	steps := make([]step, a.steps)
	for i := range steps {
		s := step{who: a.callers[dice.IntN(len(a.callers))], tool: focus[dice.IntN(len(focus))]}
		switch n := dice.IntN(10); {
		case n < 3:
			s.does = listing
		case n < 6:
			s.does = describing
		case n < 7 || len(runs) == 0:
			s.does = asking
		case n < 9:
			s.does, s.tool = invoking, runs[dice.IntN(len(runs))].Tool
		default:
			s.does, s.tool = invokingBadly, runs[dice.IntN(len(runs))].Tool
		}
		steps[i] = s
	}
	for range a.changes {
		steps[dice.IntN(len(steps))] = step{does: changing}
	}
	return steps
}

// some are n of all in their order; which ones, the dice say.
func some[T any](dice *rand.Rand, all []T, n int) []T {
	if n >= len(all) {
		return slices.Clone(all)
	}
	var chosen []T
	for _, i := range slices.Sorted(slices.Values(dice.Perm(len(all))[:n])) {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// take does a step that is one request.
func (t *T) take(ctx context.Context, s step, a actors) *Response {
	return t.accepted(ctx, func() *Response { return t.send(ctx, s, a) })
}

func (t *T) send(ctx context.Context, s step, a actors) *Response {
	caller := t.As(s.who)
	switch s.does {
	case describing:
		return caller.Describe(ctx, s.tool)
	case invoking:
		i := slices.IndexFunc(a.runs, func(call Invocation) bool { return call.Tool == s.tool })
		return caller.InvokeBody(ctx, a.runs[i].body())
	case invokingBadly:
		return caller.InvokeBody(ctx, encode(map[string]any{"name": s.tool, "arguments": "none"}))
	case asking:
		return caller.Invoke(ctx, noSuchTool, Args{})
	}
	return caller.List(ctx)
}

// mismade is what was wrong at the end of a sequence.
type mismade struct {
	actual any
	must   types.GomegaMatcher
	trail  string
	last   step
}

// faultOf is mismade where the matcher says no; nil where it says yes.
func faultOf(actual any, must types.GomegaMatcher) *mismade {
	if ok, err := must.Match(actual); ok && err == nil {
		return nil
	}
	return &mismade{actual: actual, must: must}
}

// walk runs a sequence; judge does one step and says what is wrong after it. Where something is, the sequence is run
// again with ever fewer steps, and what the shortest shows is given.
func (t *T) walk(steps []step, fresh func() (judge func(step) *mismade)) *mismade {
	run := func(steps []step) (*mismade, []step) {
		judge := fresh()
		for i, s := range steps {
			if wrong := judge(s); wrong != nil {
				wrong.last = s
				return wrong, steps[:i+1]
			}
		}
		return nil, nil
	}
	wrong, taken := run(steps)
	if wrong == nil {
		return nil
	}
	tries := shrinkings / 4
	if t.wrong() {
		tries = 0 // there is a simpler fault to begin with
	}
	for left, size := tries, len(taken)/2; size >= 1 && left > 0; size /= 2 {
		for at := 0; at < len(taken)-1 && left > 0; left-- {
			fewer := slices.Concat(taken[:at], taken[min(at+size, len(taken)-1):])
			if again, shorter := run(fewer); again != nil {
				wrong, taken = again, shorter
			} else {
				at += size
			}
		}
	}
	last := make([]string, len(taken))
	for i, s := range taken {
		last[i] = s.String()
	}
	wrong.trail = fmt.Sprintf("after %s, drawn with seed %d", strings.Join(last, "; "), t.seed)
	return wrong
}

// changer gives what a step of changing does: the arriving method takes other values each time, and the wait is over
// when the list shows them.
func (t *T) changer(ctx context.Context, a actors) func() {
	if a.changes == 0 {
		return func() {}
	}
	t.Replace(ctx, t.Drupal.with(arrivalOld, ""))
	t.awaitSchema(ctx, arrivalOld, a.callers...)
	next := arrivalNew
	return func() {
		t.Drupal.mock.SetSite(t.Drupal.with(next, ""))
		t.awaitSchema(ctx, next, a.callers...)
		if next == arrivalNew {
			next = arrivalOld
		} else {
			next = arrivalNew
		}
	}
}

// goOn does a step that is not judged itself. A change makes what was listed before worth nothing.
func (t *T) goOn(ctx context.Context, s step, a actors, change func(), listed map[Identity]Listing) {
	if s.does == changing {
		change()
		clear(listed)
		return
	}
	t.take(ctx, s, a)
}
