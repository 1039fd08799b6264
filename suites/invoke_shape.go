package suites

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// What a body must be, and by which verb it must come.
// checks__invoke__invoke_shape are the checks of this file.
var checks__invoke__invoke_shape = []Check{
	{ID: "invoke/malformed-json", Sees: Front, Run: chk__invoke__malformedJSON},
	{ID: "invoke/body-not-object", Sees: Front, Run: chk__invoke__bodyNotObject},
	{ID: "invoke/missing-name", Sees: Front, Run: chk__invoke__missingName},
	{ID: "invoke/missing-arguments", Sees: Front, Run: chk__invoke__missingArguments},
	{ID: "invoke/unknown-404", Sees: Front, Run: chk__invoke__unknown404},
	{ID: "invoke/post-only", Sees: Front, Run: chk__invoke__postOnly},
	{ID: "invoke/large-body", Sees: Front, Costly: true, Run: chk__invoke__largeBody},
	{ID: "invoke/duplicate-members", Sees: Front, Run: chk__invoke__duplicateMembers},
}

func chk__invoke__malformedJSON(ctx context.Context, t *T) {
	t.mustTakeInvokes(ctx)

	for _, c := range malformedBodies {
		t.Row(Agent, "", c.what, func() { t.Expect(t.As(Agent).InvokeBody(ctx, []byte(c.body))).To(BeRefused(400, "invalid_json")) })
	}
}

func chk__invoke__bodyNotObject(ctx context.Context, t *T) {
	t.mustTakeInvokes(ctx)

	for _, c := range notObjects {
		t.Row(Agent, "", c.what, func() {
			t.Expect(t.As(Agent).InvokeBody(ctx, []byte(c.body))).To(BeRefused(400, "invalid_json", "missing_parameter"))
		})
	}
}

func chk__invoke__missingName(ctx context.Context, t *T) {
	t.mustTakeInvokes(ctx)

	for _, c := range notNames {
		t.Row(Agent, "", c.what, func() { t.Expect(t.As(Agent).InvokeBody(ctx, []byte(c.body))).To(BeRefused(400, "missing_parameter")) })
	}
	t.Row(Agent, "", "an empty name", func() {
		empty := t.As(Agent).InvokeBody(ctx, []byte(`{"name":"","arguments":{}}`))
		t.Expect(empty).To(matching("400 missing_parameter, or 404", func(a *Response) bool {
			return a.Status == http.StatusNotFound || a.Status == http.StatusBadRequest && a.Code() == "missing_parameter"
		}))
	})
}

func chk__invoke__missingArguments(ctx context.Context, t *T) {
	call := t.mustRun(ctx)
	t.make(ctx, call).MustSucceed()

	for _, c := range notArguments {
		body := strings.ReplaceAll(c.body, `"TOOL"`, string(encode(call.Tool)))
		t.Row(call.Identity, "", c.what, func() {
			t.Expect(t.As(call.Identity).InvokeBody(ctx, []byte(body))).To(BeRefused(400, "missing_parameter", "invalid_params"))
		})
	}
}

func chk__invoke__unknown404(ctx context.Context, t *T) {
	t.mustTakeInvokes(ctx)

	t.For(Agent, noSuchTool, func() { t.Expect(t.As(Agent).Invoke(ctx, noSuchTool, Args{})).To(BeRefused(404, "tool_not_found")) })
	call, ok := t.harmless(ctx)
	if !ok {
		return // a name close to that of an existing tool may run it
	}
	listed := t.As(Agent).MustListAll(ctx).Names()
	for what, name := range inOrder(otherSpellings(call.Tool)) {
		if !slices.Contains(listed, name) {
			t.Row(call.Identity, "", what, func() {
				t.Expect(t.As(call.Identity).Invoke(ctx, name, Args{})).To(BeRefused(404, "tool_not_found"))
			})
		}
	}
	for what, name := range inOrder(uncleanSpellings(call.Tool)) {
		t.Row(call.Identity, "", what, func() { t.Expect(t.As(call.Identity).Invoke(ctx, name, Args{})).To(BeClientError()) })
	}
	for _, name := range oddNames {
		if !slices.Contains(listed, name) {
			t.For(call.Identity, name, func() {
				t.Expect(t.As(call.Identity).Invoke(ctx, name, Args{})).To(BeRefused(404, "tool_not_found"))
			})
		}
	}
}

func chk__invoke__postOnly(ctx context.Context, t *T) {
	t.mustTakeInvokes(ctx)
	name := noSuchTool
	if call, ok := t.harmless(ctx); ok {
		name = call.Tool
	}
	for _, verb := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE"} {
		body := string(encode(map[string]any{"name": name, "arguments": Args{}}))
		for what, r := range inOrder(map[string]Request{
			"without a body": {Raw: "name=" + url.QueryEscape(name) + "&arguments=%7B%7D"},
			"with a body":    {Body: strings.NewReader(body), Show: body},
		}) {
			r.Method, r.Path = verb, InvokePath
			t.Row(Agent, "", verb+" "+what, func() {
				t.mark()
				answer := t.As(Agent).Send(ctx, r)
				t.Expect(answer).To(HaveStatus(405))
				t.Expect(answer).To(HaveRunNothing())
			})
		}
	}
}

func chk__invoke__largeBody(ctx context.Context, t *T) {
	t.mustTakeInvokes(ctx)
	agent := t.As(Agent)
	const mega = 1 << 20

	tool, parameter := t.broadTool(ctx)
	large := func() *Response {
		return agent.Invoke(ctx, tool, Args{parameter: [][]string{{strings.Repeat("x", mega)}}})
	}
	r := large()
	for range 2 {
		if r.Status == http.StatusGatewayTimeout { // the site took too long for it
			r = large()
		}
	}
	t.Row(Agent, "", "1 MiB of arguments", func() { t.Expect(r).To(BeTakenOrTooLarge(tool)) })
	t.mustTakeInvokes(ctx)

	t.Row(Agent, "", "64 MiB", func() {
		t.Expect(agent.sendHuge(ctx)).To(BeTurnedAwayForSize())
		t.Expect(t.servesOn(ctx)).To(BeNone(), "the next request")
	})
	t.mustTakeInvokes(ctx)

	const deep = 10_000
	nested := `{"name":` + string(encode(tool)) + `,"arguments":{` + string(encode(parameter)) + `:` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}}`
	t.Row(Agent, "", "arguments nested 10,000 deep", func() {
		t.Expect(agent.Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Body: strings.NewReader(nested), Show: exact.Cut(nested, 200)})).
			To(BeClientError())
		t.Expect(t.servesOn(ctx)).To(BeNone(), "the next request")
	})
}

func chk__invoke__duplicateMembers(ctx context.Context, t *T) {
	t.mustTakeInvokes(ctx)

	name := string(encode(noSuchTool))
	if call, ok := t.harmless(ctx); ok {
		name = string(encode(call.Tool))
	}
	for what, body := range inOrder(map[string]string{
		"two names":     `{"name":"` + noSuchTool + `","name":` + name + `,"arguments":{}}`,
		"one escaped":   `{"name":"` + noSuchTool + `","n\u0061me":` + name + `,"arguments":{}}`,
		"two arguments": `{"name":` + name + `,"arguments":{"a":1},"arguments":{}}`,
	}) {
		t.Row(Agent, "", what, func() { t.Expect(t.As(Agent).InvokeBody(ctx, []byte(body))).To(HaveStatus(400)) })
	}
	if t.Drupal == nil {
		return
	}
	tool, parameter, ok := t.takerOf(t.As(Agent).MustListAll(ctx), `{"a":2}`)
	if !ok {
		return
	}
	within := `{"name":` + string(encode(tool.Name)) + `,"arguments":{` + string(encode(parameter)) + `:{DUPLICATE"a":2}}}`
	t.As(Agent).InvokeBody(ctx, []byte(strings.Replace(within, "DUPLICATE", "", 1))).MustSucceed()
	t.Row(Agent, "", "two members of an argument", func() {
		t.Expect(t.As(Agent).InvokeBody(ctx, []byte(strings.Replace(within, "DUPLICATE", `"a":1,`, 1)))).To(HaveStatus(400))
	})
}

// wrongBody is a request's body by what is wrong with it.
type wrongBody struct{ what, body string }

// malformedBodies are bodies that are no JSON.
var malformedBodies = []wrongBody{
	{"an empty body", ""},
	{"blanks alone", " \n"},
	{"words", "name=" + noSuchTool},
	{"a body cut short", `{"name":"` + noSuchTool + `","arguments":{}`},
	{"a body cut in a string", `{"name":"no.su`},
	{"trailing garbage", `{"name":"` + noSuchTool + `","arguments":{}} x`},
	{"two documents", `{"name":"` + noSuchTool + `","arguments":{}}{"name":"` + noSuchTool + `","arguments":{}}`},
	{"a byte order mark", "\xef\xbb\xbf" + `{"name":"` + noSuchTool + `","arguments":{}}`},
	{"invalid UTF-8 in the name", `{"name":"no.such.` + "\xff\xfe" + `","arguments":{}}`},
	{"invalid UTF-8 in the arguments", `{"name":"` + noSuchTool + `","arguments":{"x":"` + "\xc3\x28" + `"}}`},
	{"single quotes", `{'name':'` + noSuchTool + `','arguments':{}}`},
	{"a trailing comma", `{"name":"` + noSuchTool + `","arguments":{},}`},
	{"NaN", `{"name":"` + noSuchTool + `","arguments":{"x":NaN}}`},
	{"a comment", `{"name":"` + noSuchTool + `",/* none */"arguments":{}}`},
	{"a line of comment", `{"name":"` + noSuchTool + `",` + "\n// none\n" + `"arguments":{}}`},
	{"a member name without quotes", `{name:"` + noSuchTool + `","arguments":{}}`},
	{"a line break within a string", `{"name":"` + noSuchTool + `","arguments":{"x":"a` + "\n" + `b"}}`},
	{"a number that starts with a zero", `{"name":"` + noSuchTool + `","arguments":{"x":007}}`},
	{"a no-break space before it", "\u00a0" + `{"name":"` + noSuchTool + `","arguments":{}}`},
	{"a NUL behind it", `{"name":"` + noSuchTool + `","arguments":{}}` + "\x00"},
}

// notObjects are JSON documents that are no object.
var notObjects = []wrongBody{
	{"an empty list", `[]`},
	{"a list of calls", `[{"name":"` + noSuchTool + `","arguments":{}}]`},
	{"a string", `"name"`},
	{"a number", `5`},
	{"true", `true`},
	{"null", `null`},
}

// notNames are calls without a name that could be one.
var notNames = []wrongBody{
	{"no name", `{"arguments":{}}`},
	{"an empty object", `{}`},
	{"another member", `{"tool":"` + noSuchTool + `","arguments":{}}`},
	{"a number", `{"name":5,"arguments":{}}`},
	{"zero", `{"name":0,"arguments":{}}`},
	{"null", `{"name":null,"arguments":{}}`},
	{"a list", `{"name":["` + noSuchTool + `"],"arguments":{}}`},
	{"an empty list", `{"name":[],"arguments":{}}`},
	{"an object", `{"name":{"name":"` + noSuchTool + `"},"arguments":{}}`},
	{"true", `{"name":true,"arguments":{}}`},
	{"false", `{"name":false,"arguments":{}}`},
}

// notArguments are calls of TOOL without arguments that could be some.
var notArguments = []wrongBody{
	{"no arguments", `{"name":"TOOL"}`},
	{"null", `{"name":"TOOL","arguments":null}`},
	{"a string", `{"name":"TOOL","arguments":"{}"}`},
	{"an empty string", `{"name":"TOOL","arguments":""}`},
	{"a number", `{"name":"TOOL","arguments":5}`},
	{"zero", `{"name":"TOOL","arguments":0}`},
	{"true", `{"name":"TOOL","arguments":true}`},
	{"false", `{"name":"TOOL","arguments":false}`},
	{"a list", `{"name":"TOOL","arguments":["x",2]}`},
}

// sendHuge invokes no tool with 64 MiB of arguments, on a connection of its own.
func (c Client) sendHuge(ctx context.Context) *Response {
	head, tail := `{"name":"`+noSuchTool+`","arguments":{"x":"`, `"}}`
	body := io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, 64<<20), strings.NewReader(tail))
	return c.Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Body: body, Show: head + "… (64 MiB)", Fresh: true})
}

// letters reads as the letter x without end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// broadTool is a tool that may be run and a parameter of it that takes any value; where there is none, a tool that does
// not exist.
func (t *T) broadTool(ctx context.Context) (name, parameter string) {
	if t.Drupal != nil {
		if tool, parameter, ok := t.takerOf(t.As(Agent).MustListAll(ctx), `[["x"]]`); ok {
			return tool.Name, parameter
		}
	}
	return noSuchTool, "x"
}

// BeTakenOrTooLarge matches the answer to a large invoke: it works (a tool that is not there is told so), or 413.
func BeTakenOrTooLarge(tool string) OmegaMatcher {
	return matching("a success or 413", func(a *Response) bool {
		return a.Status == http.StatusRequestEntityTooLarge || a.Status != 0 && !a.IsError() ||
			tool == noSuchTool && a.Status == http.StatusNotFound
	})
}

// BeTurnedAwayForSize matches the answer to a body that is far too large: 413, 400, or a connection that was closed.
func BeTurnedAwayForSize() OmegaMatcher {
	return matching("413, 400 or a closed connection", func(a *Response) bool {
		return a.Status == http.StatusRequestEntityTooLarge || a.Status == http.StatusBadRequest ||
			a.Status == 0 && !errors.Is(a.Err, errTimeout)
	})
}
