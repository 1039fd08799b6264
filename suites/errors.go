package suites

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// checks__errors__errors are the checks of this file.
var checks__errors__errors = []Check{
	{ID: "errors/envelope", Sees: Front, Run: chk__errors__envelope},
	{ID: "errors/code-stable", Sees: Front, Run: chk__errors__codeStable},
	{ID: "errors/status-agrees", Sees: Front, Run: chk__errors__statusAgrees},
	{ID: "errors/message-helps", Sees: Front, Run: chk__errors__messageHelps},
	{ID: "errors/precedence", Sees: Site, Run: chk__errors__precedence},
}

func chk__errors__envelope(ctx context.Context, t *T) {
	for _, refused := range t.refuseAll(ctx) {
		t.Row(refused.who, "", refused.what, func() { t.Expect(refused.Response).To(KeepEnvelope()) })
	}
	if large := t.As(Agent).sendHuge(ctx); large.IsError() && large.Err == nil {
		t.Row(Agent, "", "invoke with 64 MiB", func() { t.Expect(large).To(KeepEnvelope()) })
	}
}

func chk__errors__codeStable(ctx context.Context, t *T) {
	type kind struct {
		cause
		status int
	}
	first := map[kind]asked{}
	for _, refused := range t.refuseAll(ctx) {
		if refused.errorObject()["code"] == nil {
			continue // errors/envelope judges that
		}
		t.Row(refused.who, "", refused.what, func() {
			t.Expect(refused.Response).To(HaveWordAsCode())
			if codesOfCause[refused.cause] != nil {
				t.Expect(refused.Response).To(HaveDocumentedCode())
			}
		})
		k := kind{refused.cause, refused.Status}
		before, met := first[k]
		switch {
		case refused.cause == other:
		case met: // told once a cause, for nobody knows which of the codes is the right one
			t.Row(refused.who, "", string(refused.cause), func() { t.Expect(refused.Response).To(HaveCode(before.Code(), before.what)) })
		default:
			first[k] = refused
		}
	}
}

func chk__errors__statusAgrees(ctx context.Context, t *T) {
	for _, a := range t.askAll(ctx) {
		t.Row(a.who, "", a.what, func() { t.Expect(a.Response).To(AgreeWithStatus()) })
	}
	answers := []*Response{t.As(Agent).List(ctx), t.As(Agent).Describe(ctx, t.KnownTool(ctx))}
	if t.Drupal != nil {
		for _, tool := range t.plain() {
			answers = append(answers, t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments))
		}
		for _, tool := range t.failing() {
			answers = append(answers, t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments))
		}
	}
	t.each(answers, func(a *Response) { t.Expect(a).To(AgreeWithStatus()) })
}

func chk__errors__messageHelps(ctx context.Context, t *T) {
	t.As(Agent).List(ctx).MustSucceed()
	agent := t.As(Agent)
	for _, c := range []struct {
		what, names string
		answer      *Response
	}{
		{"describe of an unknown tool", noSuchTool, agent.Describe(ctx, noSuchTool)},
		{"invoke of an unknown tool", noSuchTool, agent.Invoke(ctx, noSuchTool, Args{})},
		{"describe without a name", "name", agent.Send(ctx, Request{Path: DescribePath})},
		{"invoke without a name", "name", agent.InvokeBody(ctx, []byte(`{"arguments":{"x":1}}`))},
		{"invoke without arguments", "arguments", agent.InvokeBody(ctx, []byte(`{"name":"`+noSuchTool+`"}`))},
	} {
		if c.answer.Message() == "" || c.answer.Status == http.StatusNotFound && c.names != noSuchTool {
			continue // errors/envelope judges the first, errors/precedence the second
		}
		t.Row(Agent, "", c.what, func() { t.Expect(c.answer).To(SayInMessage(c.names)) })
	}
	if t.Drupal == nil {
		return
	}
	tools := t.strictTools(ctx, well...)
	for _, tool := range tools[:min(len(tools), 5)] {
		for _, broken := range tool.wrongTypes() {
			t.For(Agent, tool.Name, func() {
				if r := agent.Invoke(ctx, tool.Name, broken.Value); r.Status == http.StatusBadRequest && r.Message() != "" {
					t.Expect(r).To(SayInMessage(broken.Parameter()), broken.What)
				}
			})
		}
	}
}

func chk__errors__precedence(ctx context.Context, t *T) {
	t.As(Agent).Invoke(ctx, t.KnownTool(ctx), Args{}).MustSucceed()
	tools := t.stand(ctx)
	judged := 0
	for _, c := range precedences {
		alone, ok := t.answerTo(ctx, tools, c.who, c.alone)
		if !ok || !slices.Contains(c.statuses, alone.Status) {
			continue // another clause judges what it gets alone
		}
		together, ok := t.answerTo(ctx, tools, c.who, c.together)
		if !ok {
			continue
		}
		judged++
		t.Row(c.who, "", c.what, func() { t.Expect(together).To(HaveStatus(alone.Status)) })
	}
	if judged == 0 {
		NotTestable("none of the faults is refused when it stands alone")
	}
}

// precedence is a request with two faults, and one that has the graver of them alone: both must be refused for it.
type precedence struct {
	what            string
	who             Identity
	statuses        []int  // that the graver fault gets
	alone, together string // an invoke's body, or, where it starts with ?, a describe's query
}

var precedences = []precedence{
	{"permission before shape: describe without a name", Outsider, []int{403}, "?name={known}", "?"},
	{"permission before existence: describe of an unknown tool", Outsider, []int{403}, "?name={known}", "?name=" + noSuchTool},
	{"permission before shape: a body that is no JSON", NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"name":`},
	{"permission before shape: no name", NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"arguments":{}}`},
	{"permission before existence: an unknown tool", NoRPC, []int{401, 403}, `{"name":"{known}","arguments":{}}`, `{"name":"` + noSuchTool + `","arguments":{}}`},
	{"shape before existence: arguments that are no object", Agent, []int{400}, `{"name":"{known}","arguments":"x"}`, `{"name":"` + noSuchTool + `","arguments":"x"}`},
	{"shape before existence: no arguments", Agent, []int{400}, `{"name":"{known}"}`, `{"name":"` + noSuchTool + `"}`},
	{"existence before arguments: a method that is no tool", Agent, []int{404}, `{"name":"{hidden}","arguments":{}}`, `{"name":"{hidden}","arguments":{"unexpected":[1]}}`},
	{"permission before arguments: a tool that the caller may not run", Discoverer, []int{403, 404}, `{"name":"{denied}","arguments":{}}`, `{"name":"{denied}","arguments":{"page":"x"}}`},
	{"arguments before execution: a method that fails", Agent, []int{400}, `{"name":"{strict}","arguments":{"{words}":5}}`, `{"name":"{picky}","arguments":{"{text}":5}}`},
}

// answerTo sends one side of a precedence; ok is false where this run cannot.
func (t *T) answerTo(ctx context.Context, tools stands, who Identity, what string) (a *Response, ok bool) {
	what, ok = tools.in(what)
	if !ok || !t.Knows(who) {
		return nil, false
	}
	if query, describe := strings.CutPrefix(what, "?"); describe {
		return t.As(who).Send(ctx, Request{Path: DescribePath, Raw: query}), true
	}
	return t.As(who).InvokeBody(ctx, []byte(what)), true
}

// KeepEnvelope matches a refusal that is the contract's JSON and nothing beside it.
func KeepEnvelope() OmegaMatcher {
	return Meet(`JSON {"error": {"code": string, "message": non-empty string}}`, func(a *Response) string {
		if a.Status == http.StatusRequestURITooLong || a.Status == http.StatusRequestHeaderFieldsTooLarge {
			return "" // refused before routing
		}
		if t, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); t != "application/json" && !strings.HasSuffix(t, "+json") {
			return fmt.Sprintf("%d with Content-Type %q: %s", a.Status, a.Header.Get("Content-Type"), exact.Cut(oneLine(string(a.Body)), 120))
		}
		v, err := a.JSON()
		if err != nil {
			return fmt.Sprintf("%d with a body that %v", a.Status, err)
		}
		object, _ := v.(map[string]any)
		refused, ok := object["error"].(map[string]any)
		if !ok {
			return a.Outcome()
		}
		if _, ok := refused["code"].(string); !ok {
			return "no string as code: " + a.Outcome()
		}
		if message, ok := refused["message"].(string); !ok || strings.TrimSpace(message) == "" {
			return "no message: " + a.Outcome()
		}
		for _, name := range []string{"result", "tool", "tools"} {
			if _, there := object[name]; there {
				return fmt.Sprintf("`%s` beside the error: %s", name, a.Outcome())
			}
		}
		return ""
	})
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// HaveWordAsCode matches a refusal whose code is a lower-case snake_case word.
func HaveWordAsCode() OmegaMatcher {
	return Meet("a lower-case snake_case word as code", func(a *Response) string {
		if snakeCase.MatchString(a.Code()) {
			return ""
		}
		return exact.Short(a.errorObject()["code"])
	})
}

// HaveDocumentedCode matches a refusal whose code is one of the documented set. It is for causes whose code a clause
// names; for all others the set is the reference bridge's own.
func HaveDocumentedCode() OmegaMatcher {
	return Meet("a code of the documented set", func(a *Response) string {
		if a.t.contract.DocumentedCode(a.Code()) {
			return ""
		}
		return fmt.Sprintf("%q", a.Code())
	})
}

// HaveCode matches a refusal with the code that the same cause had elsewhere.
func HaveCode(code, elsewhere string) OmegaMatcher {
	return Meet(fmt.Sprintf("the code %s, as for %s", code, elsewhere), func(a *Response) string {
		if a.Code() == code {
			return ""
		}
		return fmt.Sprintf("%q", a.Code())
	})
}

// AgreeWithStatus matches an answer whose body says the same as its status: an error is a 4xx or 5xx, a result is not,
// and a documented code stands under a status of its own class.
func AgreeWithStatus() OmegaMatcher {
	return Meet("a body that agrees with the status", func(a *Response) string {
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
		for status, codes := range inOrder(a.t.contract.Codes) {
			if slices.Contains(codes, a.Code()) && status/100 != a.Status/100 {
				return fmt.Sprintf("the code of a %d under %s", status, a.Outcome())
			}
		}
		return ""
	})
}
