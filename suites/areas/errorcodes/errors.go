// Package errorcodes checks the error envelope: its form, its codes and statuses, and which of several faults of a request is
// reported first. Its requests are the refusals of package scenario.
package errorcodes

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area errors.
var Checks = []check.Check{
	{ID: "errors/envelope", ByMock: true, Sees: check.Front, Guesses: 3, Run: envelope, OfOne: func(_ *check.T, a *check.Response) types.GomegaMatcher {
		if a.Status < http.StatusBadRequest || a.Status == http.StatusRequestURITooLong || a.Status == http.StatusRequestHeaderFieldsTooLarge {
			return nil
		}
		return match.KeepEnvelope()
	}},
	{ID: "errors/code-stable", Beside: "errors/envelope", ByMock: true, Sees: check.Front, Guesses: 3, Run: codeStable, OfOne: func(_ *check.T, a *check.Response) types.GomegaMatcher {
		if a.ErrorObject()["code"] == nil {
			return nil
		}
		return haveWordAsCode()
	}},
	{ID: "errors/status-agrees", Beside: "errors/envelope", ByMock: true, Sees: check.Front, Guesses: 3, Run: statusAgrees, OfOne: func(t *check.T, _ *check.Response) types.GomegaMatcher {
		return agreeWithStatus(t.Contract)
	}},
	{ID: "errors/message-helps", Beside: "invoke/invalid-arguments-400", Sees: check.Front, Run: messageHelps},
	{ID: "errors/precedence", Sees: check.Site, Guesses: 1, Run: precedence},
}

func envelope(ctx context.Context, t *check.T) {
	for _, refused := range refuseAll(ctx, t) {
		t.Row(refused.Who, "", refused.What, func() { t.Expect(refused.Response).To(match.KeepEnvelope()) })
	}
	if large := refusedHuge(ctx, t); large != nil {
		t.Row(check.Agent, "", "invoke with 64 MiB", func() { t.Expect(large).To(match.KeepEnvelope()) })
		if large.MadeBy() != nil { // which may refuse much smaller ones, too, that the bridge takes
			if r := scenario.SendLarge(ctx, t.As(check.Agent)); r.IsError() && r.Err == nil {
				t.Row(check.Agent, "", "invoke with 1.5 MiB", func() { t.Expect(r).To(match.KeepEnvelope()) })
			}
		}
	}
}

// refusedHuge is the refusal of an invoke with 64 MiB; nil: there is none. It is sent once for the checks beside errors/envelope.
func refusedHuge(ctx context.Context, t *check.T) *check.Response {
	send := func(int) *check.Response { return scenario.SendHuge(ctx, t.As(check.Agent), true) }
	if r := t.Table(1, send).Shared(func(int) string { return "invoke with 64 MiB" }).Response(0); r.IsError() && r.Err == nil {
		return r
	}
	return nil
}

func codeStable(ctx context.Context, t *check.T) {
	type kind struct {
		scenario.Cause
		Status int
	}
	first := map[kind]scenario.SentRefusal{}
	for _, refused := range refuseAll(ctx, t) {
		if refused.ErrorObject()["code"] == nil {
			continue // errors/envelope tests that
		}
		t.Row(refused.Who, "", refused.What, func() {
			t.Expect(refused.Response).To(haveWordAsCode())
			if t.Contract.Codes[refused.Status] != nil { // of other statuses the table names no code
				t.Expect(refused.Response).To(match.HaveDocumentedCode(t.Contract))
			}
		})
		k := kind{refused.Cause, refused.Status}
		before, known := first[k]
		switch {
		case refused.Cause == scenario.Other:
		case known: // one finding per cause: it is not known which of the codes is right
			t.Row(refused.Who, "", string(refused.Cause), func() { t.Expect(refused.Response).To(haveCode(before.Code(), before.What)) })
		default:
			first[k] = refused
		}
	}
	if large := refusedHuge(ctx, t); large != nil && large.MadeBy() == nil && large.ErrorObject()["code"] != nil {
		t.Row(check.Agent, "", "invoke with 64 MiB", func() {
			t.Expect(large).To(haveWordAsCode())
			if t.Contract.Codes[large.Status] != nil {
				t.Expect(large).To(match.HaveDocumentedCode(t.Contract))
			}
		})
	}
}

func statusAgrees(ctx context.Context, t *check.T) {
	for _, refused := range scenario.SendRefusals(ctx, t) {
		t.Row(refused.Who, "", refused.What, func() { t.Expect(refused.Response).To(agreeWithStatus(t.Contract)) })
	}
	responses := []*check.Response{t.As(check.Agent).List(ctx), t.As(check.Agent).Describe(ctx, scenario.KnownTool(ctx, t))}
	if t.Drupal != nil {
		tools := slices.Concat(scenario.Sampled(t, scenario.Plain(t)), scenario.Sampled(t, scenario.Failing(t)))
		invoked := scenario.InvokeEach(ctx, t, check.Agent, tools)
		for i := range tools {
			responses = append(responses, invoked.Response(i))
		}
	}
	t.Each(responses, func(r *check.Response) { t.Expect(r).To(agreeWithStatus(t.Contract)) })
}

func messageHelps(ctx context.Context, t *check.T) {
	t.As(check.Agent).List(ctx).MustSucceed()
	agent := t.As(check.Agent)
	for _, c := range []struct {
		what, named string
		response    *check.Response
	}{
		{"describe of an unknown tool", scenario.NoSuchTool, agent.Describe(ctx, scenario.NoSuchTool)},
		{"invoke of an unknown tool", scenario.NoSuchTool, agent.Invoke(ctx, scenario.NoSuchTool, check.Args{})},
		{"describe without a name", "name", agent.Send(ctx, check.Request{Path: check.DescribePath})},
		{"invoke without a name", "name", agent.InvokeBody(ctx, []byte(`{"arguments":{"x":1}}`))},
		{"invoke without arguments", "arguments", agent.InvokeBody(ctx, []byte(`{"name":"`+scenario.NoSuchTool+`"}`))},
	} {
		if c.response.Message() == "" || c.response.Status == http.StatusNotFound && c.named != scenario.NoSuchTool {
			continue // errors/envelope tests the first, errors/precedence the second
		}
		t.Row(check.Agent, "", c.what, func() { t.Expect(c.response).To(match.HaveMessageWith(c.named)) })
	}
	if t.Drupal == nil {
		return
	}
	placeholders := scenario.FillPlaceholders(ctx, t)
	if body, ok := placeholders.In(`{"name":"{strict}","arguments":{}}`); ok {
		missing, _ := placeholders.In("{words}")
		t.Row(check.Agent, "", "invoke with a parameter missing", func() {
			if r := agent.InvokeBody(ctx, []byte(body)); r.Status == http.StatusBadRequest && r.Message() != "" {
				t.Expect(r).To(match.HaveMessageWith(missing))
			}
		})
	}
	tools := scenario.StrictTools(ctx, t, scenario.SucceedingKinds...)
	var cases []scenario.ToolCase
	for _, tool := range tools[:min(len(tools), 5)] {
		for _, broken := range tool.WrongTypes() {
			cases = append(cases, scenario.ToolCase{StrictTool: tool, Case: broken})
		}
	}
	for _, c := range scenario.BrokenArguments(ctx, t) {
		if c.OfOneParameter() {
			cases = append(cases, c)
		}
	}
	responses := scenario.InvokeCases(ctx, t, cases)
	for i, c := range cases {
		t.For(check.Agent, c.Name, func() {
			if r := responses.Response(i); r.Status == http.StatusBadRequest && r.Message() != "" {
				t.Expect(r).To(match.HaveMessageWith(c.Parameter()), c.What)
			}
		})
	}
}

func precedence(ctx context.Context, t *check.T) {
	t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{}).MustSucceed()
	tools := scenario.FillPlaceholders(ctx, t)
	sent, tested := 0, 0
	for _, c := range precedences {
		alone, ok := send(ctx, t, tools, c.who, c.alone)
		if !ok {
			continue
		}
		sent++
		if !slices.Contains(c.statuses, alone.Status) {
			continue // another clause tests the response to this fault alone
		}
		together, ok := send(ctx, t, tools, c.who, c.together)
		if !ok {
			continue
		}
		tested++
		t.Row(c.who, "", c.what, func() { t.Expect(together).To(match.HaveStatus(alone.Status)) })
	}
	if sent > 0 && tested == 0 {
		check.BlockedBy(check.Finding{Subject: "none of the faults is refused when it is the only one"}, "access/describe-403", "access/route-permission", "invoke/missing-arguments", "invoke/unknown-404")
	}
	if tested == 0 {
		check.NotTestable("it needs a caller without a permission, or a site whose tools are known")
	}
}

// precedenceCase is a request with two faults, and one with only the fault that decides: both must get its status.
type precedenceCase struct {
	what            string
	who             check.Identity
	statuses        []int  // that the graver fault gets
	alone, together string // an invoke's body; a describe's query after ?, a list's query after list?
}

var precedences = []precedenceCase{
	{"permission before shape: describe without a name", check.Outsider, []int{403}, "?name={known}", "?"},
	{"permission before existence: describe of an unknown tool", check.Outsider, []int{403}, "?name={known}", "?name=" + scenario.NoSuchTool},
	{"permission before shape: a body that is no JSON", check.NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"name":`},
	{"permission before shape: no name", check.NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"arguments":{}}`},
	{"permission before existence: an unknown tool", check.NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"permission before shape: a list with a malformed cursor", check.Outsider, []int{403}, "list?", "list?cursor=%00%FF"},
	{"permission before shape: describe without a name, by an anonymous caller", check.Anonymous, []int{401, 403}, "?name={known}", "?"},
	{"permission before shape: a body that is no JSON, by an anonymous caller", check.Anonymous, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"name":`},
	{"permission before shape: no body, by an anonymous caller", check.Anonymous, []int{401, 403}, `{"name":"{known}","arguments":{}}`, ` `},
	{"permission before shape: describe without a name, by an anonymous caller", check.Anonymous, []int{401, 403}, "?name={known}", "?"},
	{"shape before existence: arguments that are no object", check.Agent, []int{400}, `{"name":"{known}","arguments":"x"}`, `{"name":"` + scenario.NoSuchTool + `","arguments":"x"}`},
	{"shape before existence: no arguments", check.Agent, []int{400}, `{"name":"{known}"}`, `{"name":"` + scenario.NoSuchTool + `"}`},
	{"existence before arguments: a method that is no tool", check.Agent, []int{404}, `{"name":"{hidden}","arguments":{}}`, `{"name":"{hidden}","arguments":{"unexpected":[1]}}`},
	{"permission before arguments: a tool that the caller may not run", check.Discoverer, []int{403, 404}, `{"name":"{denied}","arguments":{}}`, `{"name":"{denied}","arguments":{"page":"x"}}`},
	{"arguments before execution: a method that fails", check.Agent, []int{400}, `{"name":"{strict}","arguments":{"{words}":5}}`, `{"name":"{picky}","arguments":{"{text}":5}}`},
}

// send sends one of the requests of a precedenceCase; ok is false if this run cannot.
func send(ctx context.Context, t *check.T, tools scenario.Placeholders, who check.Identity, what string) (r *check.Response, ok bool) {
	what, ok = tools.In(what)
	if !ok || !t.Knows(who) {
		return nil, false
	}
	if query, list := strings.CutPrefix(what, "list?"); list {
		return t.As(who).Send(ctx, check.Request{Path: check.ListPath, Raw: query}), true
	}
	if query, describe := strings.CutPrefix(what, "?"); describe {
		return t.As(who).Send(ctx, check.Request{Path: check.DescribePath, Raw: query}), true
	}
	return t.As(who).InvokeBody(ctx, []byte(what)), true
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// haveWordAsCode matches a refusal whose code is a lower-case snake_case word.
func haveWordAsCode() OmegaMatcher {
	return match.Conform("a lower-case snake_case word as code", func(r *check.Response) string {
		if snakeCase.MatchString(r.Code()) {
			return ""
		}
		return exact.Short(r.ErrorObject()["code"])
	})
}

// haveCode matches a refusal with the code of another refusal with the same cause.
func haveCode(code, elsewhere string) OmegaMatcher {
	return match.Conform(fmt.Sprintf("the code %s, as for %s", code, elsewhere), func(r *check.Response) string {
		if r.Code() == code {
			return ""
		}
		return fmt.Sprintf("%q", r.Code())
	})
}

// agreeWithStatus matches a response whose body agrees with its status: an error has a 4xx or 5xx, a result does not,
// and a documented code has a status of its class.
func agreeWithStatus(all *contract.Contract) OmegaMatcher {
	return match.Conform("a body that agrees with the status", func(r *check.Response) string {
		object := r.Object()
		if object["error"] != nil && r.Status >= 200 && r.Status < 300 {
			return "an error under " + r.Outcome()
		}
		if r.Status < 400 {
			return ""
		}
		for _, name := range []string{"result", "tool", "tools"} {
			if object[name] != nil && object["error"] == nil {
				return fmt.Sprintf("`%s` under %s", name, r.Outcome())
			}
		}
		for status, codes := range check.InOrder(all.Codes) {
			if slices.Contains(codes, r.Code()) && status/100 != r.Status/100 {
				return fmt.Sprintf("the code of a %d under %s", status, r.Outcome())
			}
		}
		return ""
	})
}

// refuseAll sends every refusal that this run can send and returns the responses that refuse. Its positive control is a
// list that works.
func refuseAll(ctx context.Context, t *check.T) []scenario.SentRefusal {
	var all []scenario.SentRefusal
	for _, r := range scenario.SendRefusals(ctx, t) {
		if r.Status >= 400 {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		check.BlockedBy(check.Finding{Subject: "the bridge refuses none of the requests that must be refused"}, "errors/status-agrees", "invoke/malformed-json", "invoke/unknown-404")
	}
	return all
}
