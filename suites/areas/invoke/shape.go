package invoke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func malformedJSON(ctx context.Context, t *check.T) {
	mustAcceptInvokes(ctx, t)

	for _, c := range malformedBodies {
		t.Row(check.Agent, "", c.name, func() {
			t.Expect(t.As(check.Agent).InvokeBody(ctx, []byte(c.body))).To(match.BeRefused(400, "invalid_json"))
		})
	}
	t.Row(check.Agent, "", "plain JSON under Content-Encoding: gzip", func() { // to ignore the header is lenient, and no fault
		plain := `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`
		t.Expect(t.As(check.Agent).Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Header: http.Header{"Content-Encoding": {"gzip"}},
			Body: strings.NewReader(plain), Show: plain})).To(match.BeClientError())
	})
	for _, who := range t.Callers(check.Anonymous, check.NoRPC, check.Outsider) {
		for _, c := range []wrongBody{{"an empty body", ""}, {"a body cut short", `{"name":`}} {
			t.Row(who, "", c.name, func() {
				t.Expect(t.As(who).InvokeBody(ctx, []byte(c.body))).To(match.BeRefusedWith(400, 401, 403)) // errors/precedence tests which
			})
		}
	}
}

func bodyNotObject(ctx context.Context, t *check.T) {
	mustAcceptInvokes(ctx, t)

	for _, c := range notObjects {
		t.Row(check.Agent, "", c.name, func() {
			t.Expect(t.As(check.Agent).InvokeBody(ctx, []byte(c.body))).To(match.BeRefused(400, "invalid_json", "missing_parameter"))
		})
	}
}

func missingName(ctx context.Context, t *check.T) {
	mustAcceptInvokes(ctx, t)

	for _, c := range notNames {
		t.Row(check.Agent, "", c.name, func() {
			t.Expect(t.As(check.Agent).InvokeBody(ctx, []byte(c.body))).To(match.BeRefused(400, "missing_parameter"))
		})
	}
	t.Row(check.Agent, "", "the name in the query alone", func() {
		body := `{"arguments":{}}`
		t.Expect(t.As(check.Agent).Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Raw: "name=" + scenario.NoSuchTool,
			Body: strings.NewReader(body), Show: body})).To(match.BeRefused(400, "missing_parameter"))
	})
	t.Row(check.Agent, "", "an empty name", func() {
		empty := t.As(check.Agent).InvokeBody(ctx, []byte(`{"name":"","arguments":{}}`))
		t.Expect(empty).To(match.MatchWhere("400 missing_parameter, or 404", func(r *check.Response) bool {
			return r.Status == http.StatusNotFound || r.Status == http.StatusBadRequest && r.Code() == "missing_parameter"
		}))
	})
}

func missingArguments(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()

	for _, c := range notArguments {
		body := strings.ReplaceAll(c.body, `"TOOL"`, string(client.Encode(call.Tool)))
		t.Row(call.Identity, "", c.name, func() {
			t.Expect(t.As(call.Identity).InvokeBody(ctx, []byte(body))).To(match.BeRefused(400, "missing_parameter", "invalid_params"))
		})
	}
}

func unknown404(ctx context.Context, t *check.T) {
	mustAcceptInvokes(ctx, t)

	t.For(check.Agent, scenario.NoSuchTool, func() {
		t.Expect(t.As(check.Agent).Invoke(ctx, scenario.NoSuchTool, check.Args{})).To(match.BeRefused(404, "tool_not_found"))
	})
	t.Row(check.Agent, "", "half of a surrogate pair", func() {
		t.Expect(t.As(check.Agent).InvokeBody(ctx, []byte(`{"name":"\ud83d","arguments":{}}`))).To(match.BeClientError())
	})
	call, ok := scenario.HarmlessCall(ctx, t)
	if !ok {
		return // a name that is close to that of an existing tool could run it
	}
	listed := t.As(check.Agent).MustListShared(ctx).Names()
	for spelling, name := range check.InOrder(scenario.OtherSpellings(call.Tool)) {
		if !slices.Contains(listed, name) {
			t.Row(call.Identity, "", spelling, func() {
				t.Expect(t.As(call.Identity).Invoke(ctx, name, check.Args{})).To(match.BeRefused(404, "tool_not_found"))
			})
		}
	}
	if name := scenario.Hyphenated(listed); name != "" && t.Drupal != nil {
		t.Row(call.Identity, "", "hyphens in place of underscores", func() {
			t.Expect(t.As(call.Identity).Invoke(ctx, name, check.Args{})).To(match.BeRefused(404, "tool_not_found"))
		})
	}
	for spelling, name := range check.InOrder(scenario.UncleanSpellings(call.Tool)) {
		t.Row(call.Identity, "", spelling, func() { t.Expect(t.As(call.Identity).Invoke(ctx, name, check.Args{})).To(match.BeClientError()) })
	}
	for _, name := range scenario.OddNames {
		if !slices.Contains(listed, name) {
			t.For(call.Identity, name, func() {
				t.Expect(t.As(call.Identity).Invoke(ctx, name, check.Args{})).To(match.BeRefused(404, "tool_not_found"))
			})
		}
	}
}

func postOnly(ctx context.Context, t *check.T) {
	mustAcceptInvokes(ctx, t)
	name := scenario.NoSuchTool
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		name = call.Tool
	}
	for _, verb := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE"} {
		body := string(client.Encode(map[string]any{"name": name, "arguments": check.Args{}}))
		for what, r := range check.InOrder(map[string]check.Request{
			"without a body": {Raw: "name=" + url.QueryEscape(name) + "&arguments=%7B%7D"},
			"with a body":    {Body: strings.NewReader(body), Show: body},
			"with a body, and headers that ask for POST": {Body: strings.NewReader(body), Show: body, Raw: "_method=POST",
				Header: http.Header{"X-Http-Method-Override": {"POST"}, "X-Http-Method": {"POST"}, "X-Method-Override": {"POST"}}},
		}) {
			r.Method, r.Path = verb, check.InvokePath
			t.Row(check.Agent, "", verb+" "+what, func() {
				t.Mark()
				response := t.As(check.Agent).Send(ctx, r)
				if response.PermittedToProxy() {
					return
				}
				t.Expect(response).To(match.HaveStatus(405))
				t.Expect(response).To(match.HaveRunNothing(t.Upstream))
			})
		}
	}
}

func largeBody(ctx context.Context, t *check.T) {
	mustAcceptInvokes(ctx, t)
	agent := t.As(check.Agent)
	const mega = 1 << 20

	tool, parameter := broadTool(ctx, t)
	large := func() *check.Response {
		return agent.Invoke(ctx, tool, check.Args{parameter: [][]string{{strings.Repeat("x", mega)}}})
	}
	r := large()
	for range 2 {
		if r.Status == http.StatusGatewayTimeout { // the site was too slow for it
			r = large()
		}
	}
	t.Row(check.Agent, "", "1 MiB of arguments", func() {
		t.Expect(r).To(beAcceptedOrTooLarge(tool))
		if r.Succeeded() { // then it is of a method that returns its arguments
			t.Expect(len(r.Body)).To(BeNumerically(">", mega), check.Mismatch(r.Subject(), "the 1 MiB that the method returns", fmt.Sprintf("%d bytes", len(r.Body))))
		}
	})
	mustAcceptInvokes(ctx, t)

	for name, announced := range check.InOrder(map[string]bool{"64 MiB": true, "64 MiB in chunks": false}) {
		t.Row(check.Agent, "", name, func() {
			t.Expect(scenario.SendHuge(ctx, agent, announced)).To(beRefusedForSize(announced))
			t.Expect(faultOfInvoke(ctx, t)).To(check.BeNone(), "the next request")
		})
		mustAcceptInvokes(ctx, t)
	}

	const deep = 10_000
	for what, value := range check.InOrder(map[string]string{
		"lists":   strings.Repeat("[", deep) + strings.Repeat("]", deep),
		"objects": strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep),
	}) {
		nested := `{"name":` + string(client.Encode(tool)) + `,"arguments":{` + string(client.Encode(parameter)) + `:` + value + `}}`
		t.Row(check.Agent, "", what+" nested 10,000 deep", func() {
			t.Expect(agent.Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Body: strings.NewReader(nested), Show: nested})).
				To(match.BeClientError())
			t.Expect(faultOfInvoke(ctx, t)).To(check.BeNone(), "the next request")
		})
	}
}

func duplicateMembers(ctx context.Context, t *check.T) {
	mustAcceptInvokes(ctx, t)

	name := string(client.Encode(scenario.NoSuchTool))
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		name = string(client.Encode(call.Tool))
	}
	for what, body := range check.InOrder(map[string]string{
		"two names":              `{"name":"` + scenario.NoSuchTool + `","name":` + name + `,"arguments":{}}`,
		"two names, one escaped": `{"name":"` + scenario.NoSuchTool + `","n\u0061me":` + name + `,"arguments":{}}`,
		"two equal names":        `{"name":` + name + `,"name":` + name + `,"arguments":{}}`,
		"two arguments":          `{"name":` + name + `,"arguments":{"a":1},"arguments":{}}`,
	}) {
		t.Row(check.Agent, "", what, func() { t.Expect(t.As(check.Agent).InvokeBody(ctx, []byte(body))).To(match.HaveStatus(400)) })
	}
	if t.Drupal == nil {
		return
	}
	const value = `{"a":[{"b":2}]}`
	tool, parameter, ok := scenario.ToolTaking(t, t.As(check.Agent).MustListShared(ctx), value)
	if !ok {
		return
	}
	invoke := func(argument string) *check.Response {
		return t.As(check.Agent).InvokeBody(ctx, []byte(`{"name":`+string(client.Encode(tool.Name))+`,"arguments":{`+string(client.Encode(parameter))+`:`+argument+`}}`))
	}
	invoke(value).MustSucceed()
	for what, argument := range check.InOrder(map[string]string{
		"two members of an argument":                   `{"a":1,"\u0061":[{"b":2}]}`,
		"two equal members of an object within a list": `{"a":[{"b":1,"b":1}]}`,
	}) {
		t.Row(check.Agent, "", what, func() { t.Expect(invoke(argument)).To(match.HaveStatus(400)) })
	}
}

// wrongBody is the body of a request, named after its fault.
type wrongBody struct{ name, body string }

// malformedBodies are bodies that are not JSON.
var malformedBodies = []wrongBody{
	{"an empty body", ""},
	{"white space", " \n"},
	{"words", "name=" + scenario.NoSuchTool},
	{"a body cut short", `{"name":"` + scenario.NoSuchTool + `","arguments":{}`},
	{"a body cut in a string", `{"name":"no.su`},
	{"trailing garbage", `{"name":"` + scenario.NoSuchTool + `","arguments":{}} x`},
	{"a semicolon behind it", `{"name":"` + scenario.NoSuchTool + `","arguments":{}};`},
	{"two documents", `{"name":"` + scenario.NoSuchTool + `","arguments":{}}{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a byte order mark", "\xef\xbb\xbf" + `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"UTF-16", "\xff\xfe" + strings.Join(strings.Split(`{"name":"`+scenario.NoSuchTool+`","arguments":{}}`, ""), "\x00") + "\x00"},
	{"invalid UTF-8 in the name", `{"name":"no.such.` + "\xff\xfe" + `","arguments":{}}`},
	{"invalid UTF-8 in the arguments", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":"` + "\xc3\x28" + `"}}`},
	{"a surrogate in UTF-8", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":"` + "\xed\xa0\x80" + `"}}`},
	{"a character in more bytes than it needs", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":"` + "\xc1\xa1" + `"}}`},
	{"single quotes", `{'name':'` + scenario.NoSuchTool + `','arguments':{}}`},
	{"a trailing comma", `{"name":"` + scenario.NoSuchTool + `","arguments":{},}`},
	{"NaN", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":NaN}}`},
	{"a comment", `{"name":"` + scenario.NoSuchTool + `",/* none */"arguments":{}}`},
	{"a comment in the arguments", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":[1,/* none */2]}}`},
	{"a trailing comma in the arguments", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":[1,]}}`},
	{"an escape that JSON does not have", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":"\q"}}`},
	{"a line of comment", `{"name":"` + scenario.NoSuchTool + `",` + "\n// none\n" + `"arguments":{}}`},
	{"a member name without quotes", `{name:"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a line break within a string", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":"a` + "\n" + `b"}}`},
	{"a number that starts with a zero", `{"name":"` + scenario.NoSuchTool + `","arguments":{"x":007}}`},
	{"a vertical tab before it", "\v" + `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a NUL behind it", `{"name":"` + scenario.NoSuchTool + `","arguments":{}}` + "\x00"},
}

// notObjects are JSON documents that are not objects.
var notObjects = []wrongBody{
	{"an empty list", `[]`},
	{"a list of calls", `[{"name":"` + scenario.NoSuchTool + `","arguments":{}}]`},
	{"a string", `"name"`},
	{"a number", `5`},
	{"true", `true`},
	{"null", `null`},
}

// notNames are calls without a valid `name`.
var notNames = []wrongBody{
	{"no name", `{"arguments":{}}`},
	{"an empty object", `{}`},
	{"other members", `{"tool":"` + scenario.NoSuchTool + `","Name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a call of MCP", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + scenario.NoSuchTool + `","arguments":{}}}`},
	{"a number", `{"name":5,"arguments":{}}`},
	{"zero", `{"name":0,"arguments":{}}`},
	{"null", `{"name":null,"arguments":{}}`},
	{"a list", `{"name":["` + scenario.NoSuchTool + `"],"arguments":{}}`},
	{"an empty list", `{"name":[],"arguments":{}}`},
	{"an object", `{"name":{"name":"` + scenario.NoSuchTool + `"},"arguments":{}}`},
	{"true", `{"name":true,"arguments":{}}`},
	{"false", `{"name":false,"arguments":{}}`},
}

// notArguments are calls of TOOL without valid `arguments`.
var notArguments = []wrongBody{
	{"no arguments", `{"name":"TOOL"}`},
	{"other members", `{"name":"TOOL","Arguments":{},"params":{},"input":{}}`},
	{"null", `{"name":"TOOL","arguments":null}`},
	{"a string", `{"name":"TOOL","arguments":"{}"}`},
	{"an empty string", `{"name":"TOOL","arguments":""}`},
	{"a number", `{"name":"TOOL","arguments":5}`},
	{"zero", `{"name":"TOOL","arguments":0}`},
	{"true", `{"name":"TOOL","arguments":true}`},
	{"false", `{"name":"TOOL","arguments":false}`},
	{"a list", `{"name":"TOOL","arguments":["x",2]}`},
}

// broadTool returns a tool that may be run and a parameter of it that accepts any value; without one, an unknown tool.
func broadTool(ctx context.Context, t *check.T) (name, parameter string) {
	if t.Drupal != nil {
		if tool, parameter, ok := scenario.ToolTaking(t, t.As(check.Agent).MustListShared(ctx), `[["x"]]`); ok {
			return tool.Name, parameter
		}
	}
	return scenario.NoSuchTool, "x"
}

// beAcceptedOrTooLarge matches the response to a large invoke: a success (404 for an unknown tool), or 413.
func beAcceptedOrTooLarge(tool string) OmegaMatcher {
	return match.MatchWhere("a success or 413", func(r *check.Response) bool {
		return r.Status == http.StatusRequestEntityTooLarge || r.Status != 0 && !r.IsError() ||
			tool == scenario.NoSuchTool && r.Status == http.StatusNotFound
	})
}

// refusesLong reports whether a bridge takes bodies of this length for too large, which it may up to 1 MiB, too.
func refusesLong(r *check.Response) bool {
	return r.Status == http.StatusRequestEntityTooLarge && len(r.Shown) > 64<<10
}

// beRefusedForSize matches the response to a body that is far too large: 413, 400, or a closed connection; to one in chunks, which
// a bridge need not take, 411 and 501, too.
func beRefusedForSize(announced bool) OmegaMatcher {
	statuses, expected := []int{413, 400}, "413, 400 or a closed connection"
	if !announced {
		statuses, expected = append(statuses, 411, 501), "413, 400, 411, 501 or a closed connection"
	}
	return match.MatchWhere(expected, func(r *check.Response) bool {
		return slices.Contains(statuses, r.Status) || r.Status == 0 && !errors.Is(r.Err, client.ErrTimeout) || r.PermittedToProxy()
	})
}
