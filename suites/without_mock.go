package suites

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// What makes a clause of both wires testable where the mock is not behind the bridge.
const (
	needsUpstream = "it needs to see the site behind the bridge: put the mock Drupal there (--mock-listen or --exec)"
	needsRecorder = "it needs to see what reaches the site: put the mock Drupal behind the bridge (--mock-listen or --exec), or a recording proxy before the site (--drupal-proxy)"
	needsSite     = "the site's methods are not known: put the mock Drupal there (--mock-listen or --exec)"
)

// withoutMock gives what checks a clause in a run without a mock. Where nothing does, the clause is not testable.
func (t *T) withoutMock(c Check) func(context.Context, *T) {
	switch {
	case c.WithoutSite != nil:
		return c.WithoutSite
	case t.Upstream != nil && c.Sees == Journal:
		return c.Run
	case c.Sees == Journal:
		NotTestable(needsRecorder)
	case t.Upstream != nil:
		NotTestable(needsSite)
	}
	NotTestable(needsUpstream)
	return nil
}

// mustSeeCalls makes the check not testable where nobody sees what reaches the site.
func (t *T) mustSeeCalls() {
	if t.Upstream == nil {
		NotTestable(needsRecorder)
	}
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
func (t *T) allowed() []Invocation {
	calls := slices.DeleteFunc(slices.Clone(t.invocable), func(i Invocation) bool { return !i.succeeds() })
	if len(calls) == 0 {
		NotTestable("it would have to run an existing tool: allow one under `invocations`")
	}
	return calls
}

// mustReach makes a call that has to succeed and gives the methods that it called on the site.
func (t *T) mustReach(ctx context.Context, call Invocation) []mockdrupal.Call {
	t.Upstream.Mark()
	t.make(ctx, call).MustSucceed()
	calls := t.Upstream.Calls()
	if len(calls) == 0 {
		NotTestable("an invoke that succeeded did not come by the recording proxy: point the bridge at it")
	}
	return calls
}

func answersAsConfigured(ctx context.Context, t *T) {
	if len(t.invocable) == 0 {
		NotTestable("it would have to run an existing tool: allow one under `invocations`, with what it must answer under `expect`")
	}
	for _, call := range t.invocable {
		t.For(call.Identity, call.Tool, func() { t.Expect(t.make(ctx, call)).To(AnswerAs(call)) })
	}
}

// refusesBrokenArguments breaks the arguments of the allowed calls in one place each, as far as the inputSchema that the
// bridge shows can be broken.
func refusesBrokenArguments(ctx context.Context, t *T) {
	judged := 0
	for _, call := range t.allowed() {
		shown, ok := t.As(call.Identity).MustListAll(ctx).Find(call.Tool)
		made := t.makers.ForArguments(shown.Input())
		arguments := must(exact.Parse([]byte(cmp.Or(string(call.Arguments), "{}"))))
		if !ok || made == nil || !made.Fits(arguments) {
			continue
		}
		t.make(ctx, call).MustSucceed()
		for _, c := range made.BrokenFrom(arguments) {
			if judged++; judged > t.cases {
				return
			}
			refusal := BeRefused(400, "invalid_params")
			if len(c.Value.(map[string]any)) == 0 {
				refusal = HaveStatus(400)
			}
			t.For(call.Identity, call.Tool, func() {
				t.Expect(t.As(call.Identity).Invoke(ctx, call.Tool, c.Value)).To(refusal, c.What)
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

func runsAllowedOnce(ctx context.Context, t *T) {
	t.mustSeeCalls()
	for _, call := range t.allowed() {
		t.mustReach(ctx, call)
		for _, f := range afterTheRun {
			f.fault.Route, f.fault.Run = mockdrupal.RouteJSONRPC, true
			t.Row(call.Identity, call.Tool, "the site gives "+f.name, func() {
				defer t.Upstream.Arm(f.fault)()
				t.Upstream.Mark()
				t.Expect(t.make(ctx, call)).To(CallOnce())
			})
			t.recovered(ctx, call)
		}
	}
}

// CallOnce matches an answer during which, since the last Mark, one method call reached the site.
func CallOnce() OmegaMatcher {
	return Meet("one method call to reach the site", func(a *Response) string {
		if calls := a.t.Upstream.Calls(); len(calls) != 1 {
			return fmt.Sprintf("%s, and %d calls", a.Outcome(), len(calls))
		}
		return ""
	})
}

func runsAllowedAgain(ctx context.Context, t *T) {
	t.mustSeeCalls()
	for _, call := range t.allowed() {
		first := t.mustReach(ctx, call)
		again := t.make(ctx, call).MustSucceed()
		t.For(call.Identity, call.Tool, func() {
			t.Expect(again).To(Meet(fmt.Sprintf("two equal invokes to make %d calls", 2*len(first)), func(*Response) string {
				if n := len(t.Upstream.Calls()); n != 2*len(first) {
					return fmt.Sprintf("%d calls at the site", n)
				}
				return ""
			}))
			t.Expect(again).To(ForbidStoring())
		})
	}
}

// callsAsTheCaller holds the account of every call against the credentials of the caller, as far as a recording proxy
// can read them.
func callsAsTheCaller(ctx context.Context, t *T) {
	t.mustSeeCalls()
	calls := t.allowed()
	if !slices.ContainsFunc(calls, func(i Invocation) bool { return i.Identity != calls[0].Identity }) {
		NotTestable("it needs two callers: allow a call of a second identity under `invocations`")
	}
	for range 2 { // each before and after the others
		for _, call := range calls {
			t.mustReach(ctx, call)
			header := http.Header{}
			creds, _ := t.credentialsOf(call.Identity)
			creds.apply(header)
			who := mockdrupal.CredentialName(header)
			for _, entry := range t.Upstream.Journal() {
				if len(entry.Calls) == 0 {
					continue
				}
				t.For(call.Identity, call.Tool, func() {
					t.Expect(entry.User).To(Equal(who), mismatch(fmt.Sprintf("the call of %s for %s", call.Tool, call.Identity), "the caller's own credentials at the site", fmt.Sprintf("those of %q", entry.User)))
				})
			}
		}
	}
}

func callsInValidJSONRPC(ctx context.Context, t *T) {
	t.mustSeeCalls()
	for _, call := range t.allowed() {
		called := t.mustReach(ctx, call)
		t.For(call.Identity, call.Tool, func() {
			for _, entry := range t.Upstream.Journal() {
				if len(entry.Calls) > 0 {
					t.mustBeValidCall(entry)
				}
			}
			if t.Claims("naming-id") {
				t.Expect(methodsOf(called)).To(ContainElement(call.Tool), mismatch(fmt.Sprintf("the invoke of %s", call.Tool), "a call of exactly that method id", fewOf(methodsOf(called))))
			}
		})
	}
}
