// Package errors checks the error envelope: its form, its codes and statuses, and which of several faults of a request is
// reported first. Its requests are the refusals of package scenario.
package errors

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area errors.
var Checks = []harness.Check{
	{ID: "errors/envelope", Sees: harness.Front, Run: envelope},
	{ID: "errors/code-stable", Sees: harness.Front, Run: codeStable},
	{ID: "errors/status-agrees", Sees: harness.Front, Run: statusAgrees},
	{ID: "errors/message-helps", Sees: harness.Front, Run: messageHelps},
	{ID: "errors/precedence", Sees: harness.Site, Run: precedence},
}

func envelope(ctx context.Context, t *harness.T) {
	for _, refused := range refuseAll(ctx, t) {
		t.Row(refused.Who, "", refused.What, func() { t.Expect(refused.Response).To(match.KeepEnvelope()) })
	}
	if large := scenario.SendHuge(ctx, t.As(harness.Agent)); large.IsError() && large.Err == nil {
		t.Row(harness.Agent, "", "invoke with 64 MiB", func() { t.Expect(large).To(match.KeepEnvelope()) })
	}
}

func codeStable(ctx context.Context, t *harness.T) {
	type kind struct {
		scenario.Cause
		Status int
	}
	first := map[kind]scenario.SentRefusal{}
	for _, refused := range refuseAll(ctx, t) {
		if refused.ErrorObject()["code"] == nil {
			continue // errors/envelope judges that
		}
		t.Row(refused.Who, "", refused.What, func() {
			t.Expect(refused.Response).To(HaveWordAsCode())
			if codesOfCause[refused.Cause] != nil {
				t.Expect(refused.Response).To(HaveDocumentedCode())
			}
		})
		k := kind{refused.Cause, refused.Status}
		before, met := first[k]
		switch {
		case refused.Cause == scenario.Other:
		case met: // told once a cause, for nobody knows which of the codes is the right one
			t.Row(refused.Who, "", string(refused.Cause), func() { t.Expect(refused.Response).To(HaveCode(before.Code(), before.What)) })
		default:
			first[k] = refused
		}
	}
}

func statusAgrees(ctx context.Context, t *harness.T) {
	for _, a := range scenario.SendRefusals(ctx, t) {
		t.Row(a.Who, "", a.What, func() { t.Expect(a.Response).To(AgreeWithStatus()) })
	}
	answers := []*harness.Response{t.As(harness.Agent).List(ctx), t.As(harness.Agent).Describe(ctx, scenario.KnownTool(ctx, t))}
	if t.Drupal != nil {
		for _, tool := range scenario.Plain(t) {
			answers = append(answers, t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments))
		}
		for _, tool := range scenario.Failing(t) {
			answers = append(answers, t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments))
		}
	}
	t.Each(answers, func(a *harness.Response) { t.Expect(a).To(AgreeWithStatus()) })
}

func messageHelps(ctx context.Context, t *harness.T) {
	t.As(harness.Agent).List(ctx).MustSucceed()
	agent := t.As(harness.Agent)
	for _, c := range []struct {
		what, names string
		answer      *harness.Response
	}{
		{"describe of an unknown tool", scenario.NoSuchTool, agent.Describe(ctx, scenario.NoSuchTool)},
		{"invoke of an unknown tool", scenario.NoSuchTool, agent.Invoke(ctx, scenario.NoSuchTool, harness.Args{})},
		{"describe without a name", "name", agent.Send(ctx, harness.Request{Path: harness.DescribePath})},
		{"invoke without a name", "name", agent.InvokeBody(ctx, []byte(`{"arguments":{"x":1}}`))},
		{"invoke without arguments", "arguments", agent.InvokeBody(ctx, []byte(`{"name":"`+scenario.NoSuchTool+`"}`))},
	} {
		if c.answer.Message() == "" || c.answer.Status == http.StatusNotFound && c.names != scenario.NoSuchTool {
			continue // errors/envelope judges the first, errors/precedence the second
		}
		t.Row(harness.Agent, "", c.what, func() { t.Expect(c.answer).To(match.HaveMessageWith(c.names)) })
	}
	if t.Drupal == nil {
		return
	}
	tools := scenario.StrictTools(ctx, t, scenario.SucceedingKinds...)
	for _, tool := range tools[:min(len(tools), 5)] {
		for _, broken := range tool.WrongTypes() {
			t.For(harness.Agent, tool.Name, func() {
				if r := agent.Invoke(ctx, tool.Name, broken.Value); r.Status == http.StatusBadRequest && r.Message() != "" {
					t.Expect(r).To(match.HaveMessageWith(broken.Parameter()), broken.What)
				}
			})
		}
	}
}

func precedence(ctx context.Context, t *harness.T) {
	t.As(harness.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), harness.Args{}).MustSucceed()
	tools := scenario.FillPlaceholders(ctx, t)
	judged := 0
	for _, c := range precedences {
		alone, ok := answerTo(ctx, t, tools, c.who, c.alone)
		if !ok || !slices.Contains(c.statuses, alone.Status) {
			continue // another clause judges what it gets alone
		}
		together, ok := answerTo(ctx, t, tools, c.who, c.together)
		if !ok {
			continue
		}
		judged++
		t.Row(c.who, "", c.what, func() { t.Expect(together).To(match.HaveStatus(alone.Status)) })
	}
	if judged == 0 {
		harness.NotTestable("none of the faults is refused when it stands alone")
	}
}

// precedence is a request with two faults, and one that has the graver of them alone: both must be refused for it.
type precedenceCase struct {
	what            string
	who             harness.Identity
	statuses        []int  // that the graver fault gets
	alone, together string // an invoke's body, or, where it starts with ?, a describe's query
}

var precedences = []precedenceCase{
	{"permission before shape: describe without a name", harness.Outsider, []int{403}, "?name={known}", "?"},
	{"permission before existence: describe of an unknown tool", harness.Outsider, []int{403}, "?name={known}", "?name=" + scenario.NoSuchTool},
	{"permission before shape: a body that is no JSON", harness.NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"name":`},
	{"permission before shape: no name", harness.NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"arguments":{}}`},
	{"permission before existence: an unknown tool", harness.NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"shape before existence: arguments that are no object", harness.Agent, []int{400}, `{"name":"{known}","arguments":"x"}`, `{"name":"` + scenario.NoSuchTool + `","arguments":"x"}`},
	{"shape before existence: no arguments", harness.Agent, []int{400}, `{"name":"{known}"}`, `{"name":"` + scenario.NoSuchTool + `"}`},
	{"existence before arguments: a method that is no tool", harness.Agent, []int{404}, `{"name":"{hidden}","arguments":{}}`, `{"name":"{hidden}","arguments":{"unexpected":[1]}}`},
	{"permission before arguments: a tool that the caller may not run", harness.Discoverer, []int{403, 404}, `{"name":"{denied}","arguments":{}}`, `{"name":"{denied}","arguments":{"page":"x"}}`},
	{"arguments before execution: a method that fails", harness.Agent, []int{400}, `{"name":"{strict}","arguments":{"{words}":5}}`, `{"name":"{picky}","arguments":{"{text}":5}}`},
}

// answerTo sends one side of a precedence; ok is false where this run cannot.
func answerTo(ctx context.Context, t *harness.T, tools scenario.Placeholders, who harness.Identity, what string) (a *harness.Response, ok bool) {
	what, ok = tools.In(what)
	if !ok || !t.Knows(who) {
		return nil, false
	}
	if query, describe := strings.CutPrefix(what, "?"); describe {
		return t.As(who).Send(ctx, harness.Request{Path: harness.DescribePath, Raw: query}), true
	}
	return t.As(who).InvokeBody(ctx, []byte(what)), true
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// HaveWordAsCode matches a refusal whose code is a lower-case snake_case word.
func HaveWordAsCode() OmegaMatcher {
	return match.Conform("a lower-case snake_case word as code", func(a *harness.Response) string {
		if snakeCase.MatchString(a.Code()) {
			return ""
		}
		return exact.Short(a.ErrorObject()["code"])
	})
}

// HaveDocumentedCode matches a refusal whose code is one of the documented set. It is for causes whose code a clause
// names; for all others the set is the reference bridge's own.
func HaveDocumentedCode() OmegaMatcher {
	return match.Conform("a code of the documented set", func(a *harness.Response) string {
		if a.T.Contract.DocumentedCode(a.Code()) {
			return ""
		}
		return fmt.Sprintf("%q", a.Code())
	})
}

// HaveCode matches a refusal with the code that the same cause had elsewhere.
func HaveCode(code, elsewhere string) OmegaMatcher {
	return match.Conform(fmt.Sprintf("the code %s, as for %s", code, elsewhere), func(a *harness.Response) string {
		if a.Code() == code {
			return ""
		}
		return fmt.Sprintf("%q", a.Code())
	})
}

// AgreeWithStatus matches an answer whose body says the same as its status: an error is a 4xx or 5xx, a result is not,
// and a documented code stands under a status of its own class.
func AgreeWithStatus() OmegaMatcher {
	return match.Conform("a body that agrees with the status", func(a *harness.Response) string {
		object := a.Object()
		if object["error"] != nil && a.Status >= 200 && a.Status < 300 {
			return "an error under " + a.Outcome()
		}
		if a.Status < 400 {
			return ""
		}
		for _, name := range []string{"result", "tool", "tools"} {
			if object[name] != nil && object["error"] == nil {
				return fmt.Sprintf("`%s` under %s", name, a.Outcome())
			}
		}
		for status, codes := range harness.InOrder(a.T.Contract.Codes) {
			if slices.Contains(codes, a.Code()) && status/100 != a.Status/100 {
				return fmt.Sprintf("the code of a %d under %s", status, a.Outcome())
			}
		}
		return ""
	})
}

// codesOfCause are the codes that the contract names for a cause.
var codesOfCause = map[scenario.Cause][]string{
	scenario.MissingName:  {"missing_parameter"},
	scenario.UnknownTool:  {"tool_not_found"},
	scenario.MalformedDoc: {"invalid_json"},
	scenario.BrokenRule:   {"invalid_params"},
	scenario.FailedMethod: {"execution_error"},
}

// refuseAll sends every refusal that this run can send and gives the answers that refuse. Its twin is a list that works.
func refuseAll(ctx context.Context, t *harness.T) []scenario.SentRefusal {
	var all []scenario.SentRefusal
	for _, a := range scenario.SendRefusals(ctx, t) {
		if a.Status >= 400 {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		harness.NotTestable("the bridge refuses nothing")
	}
	return all
}
