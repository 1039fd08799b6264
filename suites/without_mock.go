package suites

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// What makes a clause of both wires testable where the mock is not behind the bridge.
const (
	needsUpstream = "it needs to see the site behind the bridge: put the mock Drupal there (--mock-listen or --exec)"
	needsRecorder = "it needs to see what reaches the site: put the mock Drupal behind the bridge (--mock-listen or --exec), or a recording proxy before the site (--drupal-proxy)"
	needsSite     = "the site's methods are not known: put the mock Drupal there (--mock-listen or --exec)"
)

// recordable are the clauses of both wires whose checks look at the journal and arm faults, and ask nothing of the site.
var recordable = []string{"upstream/post-only", "upstream/pooled", "upstream/http-error", "upstream/auth-error", "upstream/timeout",
	"upstream/cancel", "upstream/huge-answer"}

// smaller are checks of clauses of both wires that need less than the one with a mock: calls that the configuration
// allows, and, unless told otherwise, a recording proxy.
var smaller = map[string]struct {
	blind bool // needs no recording proxy
	judge func(b *Bridge, ctx SpecContext)
}{
	"invoke/answers-result":        {true, (*Bridge).answersAsConfigured},
	"invoke/invalid-arguments-400": {true, (*Bridge).refusesBrokenArguments},
	"invoke/runs-once":             {false, (*Bridge).runsAllowedOnce},
	"invoke/not-cached":            {false, (*Bridge).runsAllowedAgain},
	"access/credentials-forwarded": {false, (*Bridge).callsAsTheCaller},
	"upstream/valid-jsonrpc":       {false, (*Bridge).callsInValidJSONRPC},
}

// withoutMock gives the check of a clause of both wires for a run without a mock. Where there is none, the clause is
// not testable.
func (b *Bridge) withoutMock(id string, withMock func(SpecContext)) func(SpecContext) {
	lesser, ok := smaller[id]
	switch {
	case ok && (lesser.blind || b.Upstream != nil):
		return func(ctx SpecContext) { lesser.judge(b, ctx) }
	case b.Upstream != nil && slices.Contains(recordable, id):
		return withMock
	case ok || slices.Contains(recordable, id):
		NotTestable(needsRecorder)
	case b.Upstream != nil:
		NotTestable(needsSite)
	}
	NotTestable(needsUpstream)
	return nil
}

// succeeds tells whether the call is one that has to work.
func (i Invocation) succeeds() bool { return i.Status == 0 || i.Status == http.StatusOK }

// body is the call as invoke takes it.
func (i Invocation) body() []byte {
	arguments := json.RawMessage(i.Arguments)
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	return encode(map[string]any{"name": i.Tool, "arguments": arguments})
}

// asAgent is a call of the agent's without arguments.
func asAgent(tool string) Invocation { return Invocation{Tool: tool, Identity: Agent} }

// allowed are the calls that the configuration allows and that have to work; without any the check is not testable.
func (b *Bridge) allowed() []Invocation {
	calls := slices.DeleteFunc(slices.Clone(b.invocable), func(i Invocation) bool { return !i.succeeds() })
	if len(calls) == 0 {
		NotTestable("it would have to run an existing tool: allow one under `invocations`")
	}
	return calls
}

// mustReach makes a call that has to succeed and gives the methods that it called on the site.
func (b *Bridge) mustReach(ctx context.Context, call Invocation) []mockdrupal.Call {
	b.Upstream.Mark()
	b.make(ctx, call).MustSucceed()
	calls := b.Upstream.Calls()
	if len(calls) == 0 {
		NotTestable("an invoke that succeeded did not come by the recording proxy: point the bridge at it")
	}
	return calls
}

func (b *Bridge) answersAsConfigured(ctx SpecContext) {
	if len(b.invocable) == 0 {
		NotTestable("it would have to run an existing tool: allow one under `invocations`, with what it must answer under `expect`")
	}
	for _, call := range b.invocable {
		b.For(call.Identity, call.Tool, func() { Expect(b.make(ctx, call)).To(AnswerAs(call)) })
	}
}

// refusesBrokenArguments breaks the arguments of the allowed calls in one place each, as far as the inputSchema that the
// bridge shows can be broken.
func (b *Bridge) refusesBrokenArguments(ctx SpecContext) {
	judged := 0
	for _, call := range b.allowed() {
		shown, ok := b.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		made := b.makers.ForArguments(shown.Input())
		arguments := must(exact.Parse([]byte(cmp.Or(string(call.Arguments), "{}"))))
		if !ok || made == nil || !made.Fits(arguments) {
			continue
		}
		b.make(ctx, call).MustSucceed()
		for _, c := range made.BrokenFrom(arguments) {
			if judged++; judged > b.cases {
				return
			}
			refusal := BeRefused(400, "invalid_params")
			if len(c.Value.(map[string]any)) == 0 {
				refusal = HaveStatus(400)
			}
			b.For(call.Identity, call.Tool, func() {
				Expect(b.As(call.Identity).Invoke(ctx, call.Tool, c.Value)).To(refusal, c.What)
			})
		}
	}
	if judged == 0 {
		NotTestable("its inputSchema lets no argument of an allowed call break: allow one that takes some under `invocations`")
	}
}

// AnswerAs matches an invoke answer that is as the configuration says under `expect`.
func AnswerAs(call Invocation) OmegaMatcher {
	switch {
	case !call.succeeds():
		return HaveStatus(call.Status)
	case call.Result != nil:
		return GiveResult(string(call.Result))
	}
	return HaveResult()
}

func (b *Bridge) runsAllowedOnce(ctx SpecContext) {
	for _, call := range b.allowed() {
		b.mustReach(ctx, call)
		for _, f := range afterTheRun {
			f.fault.Route, f.fault.Run = route.JSONRPC, true
			b.Row(call.Identity, call.Tool, "the site gives "+f.name, func() {
				defer b.Upstream.Arm(f.fault)()
				b.Upstream.Mark()
				Expect(b.make(ctx, call)).To(CallOnce())
			})
			b.recovered(ctx, call)
		}
	}
}

// CallOnce matches an answer during which, since the last Mark, one method call reached the site.
func CallOnce() OmegaMatcher {
	return Meet("one method call to reach the site", func(a *Answer) string {
		if calls := a.bridge.Upstream.Calls(); len(calls) != 1 {
			return fmt.Sprintf("%s, and %d calls", a.Outcome(), len(calls))
		}
		return ""
	})
}

func (b *Bridge) runsAllowedAgain(ctx SpecContext) {
	for _, call := range b.allowed() {
		first := b.mustReach(ctx, call)
		again := b.make(ctx, call).MustSucceed()
		b.For(call.Identity, call.Tool, func() {
			Expect(again).To(Meet(fmt.Sprintf("two equal invokes to make %d calls", 2*len(first)), func(*Answer) string {
				if n := len(b.Upstream.Calls()); n != 2*len(first) {
					return fmt.Sprintf("%d calls at the site", n)
				}
				return ""
			}))
			Expect(again).To(ForbidStoring())
		})
	}
}

// callsAsTheCaller holds the account of every call against the credentials of the caller, as far as a recording proxy
// can read them.
func (b *Bridge) callsAsTheCaller(ctx SpecContext) {
	calls := b.allowed()
	if !slices.ContainsFunc(calls, func(i Invocation) bool { return i.Identity != calls[0].Identity }) {
		NotTestable("it needs two callers: allow a call of a second identity under `invocations`")
	}
	for range 2 { // each before and after the others
		for _, call := range calls {
			b.mustReach(ctx, call)
			header := http.Header{}
			creds, _ := b.credentialsOf(call.Identity)
			creds.apply(header)
			who := proxy.CallerName(header)
			for _, entry := range b.Upstream.Journal() {
				if len(entry.Calls) == 0 {
					continue
				}
				b.For(call.Identity, call.Tool, func() {
					Expect(entry.User).To(Equal(who), "the call of %s for %s: expected the caller's own credentials at the site, got those of %q", call.Tool, call.Identity, entry.User)
				})
			}
		}
	}
}

func (b *Bridge) callsInValidJSONRPC(ctx SpecContext) {
	for _, call := range b.allowed() {
		called := b.mustReach(ctx, call)
		b.For(call.Identity, call.Tool, func() {
			for _, entry := range b.Upstream.Journal() {
				if len(entry.Calls) > 0 {
					mustBeValidCall(entry)
				}
			}
			if b.Claims("naming-id") {
				Expect(methodsOf(called)).To(ContainElement(call.Tool), "the invoke of %s: expected a call of exactly that method id, got %s", call.Tool, fewOf(methodsOf(called)))
			}
		})
	}
}
