package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// stepsDrawn is how many steps a drawn sequence has at most.
const stepsDrawn = 40

// deed is what a step does.
type deed string

const (
	Listing       deed = "list"
	Describing    deed = "describe"
	Invoking      deed = "invoke"
	invokingBadly deed = "invoke with arguments that are no object"
	asking        deed = "ask for an unknown tool"
	changing      deed = "change the site"
)

// Step is one step of a drawn sequence.
type Step struct {
	Who  check.Identity
	Does deed
	Tool string
}

func (s Step) String() string {
	switch s.Does {
	case changing:
		return string(s.Does)
	case Listing, asking:
		return fmt.Sprintf("%s as %s", s.Does, s.Who)
	}
	return fmt.Sprintf("%s %s as %s", s.Does, s.Tool, s.Who)
}

// Actors are who takes the steps of a sequence, and what they may touch: every tool that is named may be run.
type Actors struct {
	Callers []check.Identity
	Shown   []string // tools to describe
	Runs    []check.Invocation
	changes int // of the site, at most
	Steps   int // of a sequence
}

// agents are the actors of sequences that need no special callers. Without a mock they run what the configuration allows.
func agents(ctx context.Context, t *check.T) Actors {
	a := Actors{Callers: []check.Identity{check.Agent}, Shown: t.As(check.Agent).MustListShared(ctx).Names(), Steps: Steps(t)}
	if t.Drupal == nil {
		a.Runs = t.Invocations
		if t.Knows(check.Agent2) {
			a.Callers = append(a.Callers, check.Agent2)
		}
		if len(a.Shown)+len(a.Runs) == 0 {
			check.NotTestable("the agent sees no tool: it needs one")
		}
		return a
	}
	a.Callers = append(a.Callers, check.Agent2)
	for _, s := range Samples(t, check.Agent, SucceedingKinds...) {
		a.Runs = append(a.Runs, check.Invocation{Tool: s.Name, Arguments: client.Encode(s.Arguments)})
	}
	switch {
	case t.Advance != nil:
		a.changes = 3
	case t.ShowsSoon():
		a.changes = 1 // it takes the TTL
	}
	if a.changes == 0 {
		a.Callers = append(a.Callers, check.Discoverer) // who does not see what arrives, so that nobody knows when it has
	}
	return a
}

// Steps is how many steps a drawn sequence has: no more than there may be cases.
func Steps(t *check.T) int { return min(stepsDrawn, t.Cases) }

// Sequence draws the steps of a sequence.
func (a Actors) Sequence(dice *rand.Rand) []Step {
	focus := RandomSubset(dice, a.Shown, 3)
	runs := RandomSubset(dice, a.Runs, 3)
	for _, call := range runs { // what was run is what is looked at
		focus = append(focus, call.Tool)
	}
	steps := make([]Step, a.Steps)
	for i := range steps {
		s := Step{Who: a.Callers[dice.IntN(len(a.Callers))], Tool: focus[dice.IntN(len(focus))]}
		switch n := dice.IntN(10); {
		case n < 2:
			s.Does = Listing
		case n < 6:
			s.Does = Describing
		case n < 7 || len(runs) == 0:
			s.Does = asking
		case n < 9:
			s.Does, s.Tool = Invoking, runs[dice.IntN(len(runs))].Tool
		default:
			s.Does, s.Tool = invokingBadly, runs[dice.IntN(len(runs))].Tool
		}
		steps[i] = s
	}
	for range a.changes {
		steps[dice.IntN(len(steps))] = Step{Does: changing}
	}
	return steps
}

// RandomSubset are n of all in their order; which ones, the dice say.
func RandomSubset[T any](dice *rand.Rand, all []T, n int) []T {
	if n >= len(all) {
		return slices.Clone(all)
	}
	var chosen []T
	for _, i := range slices.Sorted(slices.Values(dice.Perm(len(all))[:n])) {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// SendStep does a step that is one request.
func SendStep(ctx context.Context, t *check.T, s Step, a Actors) *check.Response {
	return Delivered(ctx, t, func() *check.Response { return send(ctx, t, s, a) })
}

func send(ctx context.Context, t *check.T, s Step, a Actors) *check.Response {
	caller := t.As(s.Who)
	switch s.Does {
	case Describing:
		return caller.Describe(ctx, s.Tool)
	case Invoking:
		i := slices.IndexFunc(a.Runs, func(call check.Invocation) bool { return call.Tool == s.Tool })
		return caller.InvokeBody(ctx, a.Runs[i].Body())
	case invokingBadly:
		return caller.InvokeBody(ctx, client.Encode(map[string]any{"name": s.Tool, "arguments": "none"}))
	case asking:
		return caller.Invoke(ctx, NoSuchTool, check.Args{})
	}
	return caller.List(ctx)
}

// Counterexample is what was wrong at the end of a sequence.
type Counterexample struct {
	Actual any
	Must   types.GomegaMatcher
	Trail  string
	Last   Step
}

// Falsify is mismade where the matcher says no; nil where it says yes.
func Falsify(actual any, must types.GomegaMatcher) *Counterexample {
	if ok, err := must.Match(actual); ok && err == nil {
		return nil
	}
	return &Counterexample{Actual: actual, Must: must}
}

// RunSequence runs a sequence; test does one step and says what is wrong after it. Where something is, the sequence is run
// again with ever fewer steps, and what the shortest shows is given.
func RunSequence(t *check.T, steps []Step, fresh func() (test func(Step) *Counterexample)) *Counterexample {
	run := func(steps []Step) (*Counterexample, []Step) {
		test := fresh()
		for i, s := range steps {
			if wrong := test(s); wrong != nil {
				wrong.Last = s
				return wrong, steps[:i+1]
			}
		}
		return nil, nil
	}
	wrong, taken := run(steps)
	if wrong == nil {
		return nil
	}
	tries := Shrinkings / 4
	if t.HasFindings() {
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
	wrong.Trail = fmt.Sprintf("after %s, drawn with seed %d", strings.Join(last, "; "), t.Seed)
	return wrong
}

// siteChanger returns what a step of changing does: the arriving method takes other values each time, and the wait is over
// when the list shows them.
func siteChanger(ctx context.Context, t *check.T, a Actors) func() {
	if a.changes == 0 {
		return func() {}
	}
	t.Replace(ctx, WithArrival(t.Drupal, ArrivalOld, ""))
	AwaitSchema(ctx, t, ArrivalOld, a.Callers...)
	next := ArrivalNew
	return func() {
		t.Drupal.Mock.SetSite(WithArrival(t.Drupal, next, ""))
		AwaitSchema(ctx, t, next, a.Callers...)
		if next == ArrivalNew {
			next = ArrivalOld
		} else {
			next = ArrivalNew
		}
	}
}

// ListsAndDescribes lets agents take a drawn sequence of steps, and compares each list with the caller's last one (list/order-stable) and
// each describe with the list (describe/equals-list). It returns what is wrong for one of the two clauses. A sequence in which nothing
// was wrong for either is sent once, and is evidence for neither.
func ListsAndDescribes(ctx context.Context, t *check.T, clause string) *Counterexample {
	if !t.Steady {
		t.Unrecorded(func() {
			steps, begin := listsAndDescribes(ctx, t, func(string) bool { return true })
			step := begin()
			t.Steady = !slices.ContainsFunc(steps, func(s Step) bool { return step(s) != nil })
		})
	}
	if t.Steady {
		return nil
	}
	steps, begin := listsAndDescribes(ctx, t, func(of string) bool { return of == clause })
	return RunSequence(t, steps, begin)
}

// listsAndDescribes draws the steps; what begin returns does one and says what is wrong for a clause that it concerns.
func listsAndDescribes(ctx context.Context, t *check.T, concerns func(clause string) bool) (steps []Step, begin func() func(Step) *Counterexample) {
	who := agents(ctx, t)
	change := siteChanger(ctx, t, who)
	wrongFor := func(clause string, wrong *Counterexample) *Counterexample {
		if !concerns(clause) {
			return nil
		}
		return wrong
	}
	return who.Sequence(Random(t, "lists and describes")), func() func(Step) *Counterexample {
		lists := map[check.Identity]check.Listing{}
		return func(s Step) *Counterexample {
			last := lists[s.Who]
			if s.Does == Listing || s.Does == Describing && last.Pages == nil {
				lists[s.Who] = t.As(s.Who).MustListAll(ctx)
			}
			switch s.Does {
			case Listing:
				if last.Pages != nil {
					return wrongFor("list/order-stable", Falsify(lists[s.Who], match.ListSame(last)))
				}
			case Describing:
				described := SendStep(ctx, t, s, who)
				if listed, ok := lists[s.Who].Find(s.Tool); ok && described.Tool() != nil && !t.Found(s.Who, s.Tool) {
					return wrongFor("describe/equals-list", Falsify(described, match.IncludeAll(listed)))
				}
			case changing: // what was listed before is worth nothing
				change()
				clear(lists)
			default:
				SendStep(ctx, t, s, who)
			}
			return nil
		}
	}
}
