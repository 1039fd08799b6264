// Package invoke checks POST /mcp/tools/invoke: arguments, results, refusals, and that a method runs exactly once. Arguments
// and results are generated from the schemas of the site's methods.
package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Checks of the area invoke.
var Checks = []check.Check{
	{ID: "invoke/answers-result", Beside: "invoke/runs-once", Sees: check.Site, ByMCP: true, Run: returnsResult, WithoutSite: respondsAsConfigured, OfOne: func(_ *check.T, a *check.Response) types.GomegaMatcher {
		if a.Path != client.InvokePath || a.Status/100 != 2 || a.Object()["error"] != nil {
			return nil
		}
		return And(match.HaveResult(), match.BeJSON())
	}},
	{ID: "invoke/arguments-forwarded", Sees: check.Site, ByMCP: true, Generated: true, Run: argumentsForwarded, WithoutSite: allowedArgumentsForwarded},
	{ID: "invoke/result-exact", Beside: "invoke/runs-once", Sees: check.Site, Run: resultExact, WithoutSite: allowedResultsExact},
	{ID: "invoke/null-result", Sees: check.Site, ByMCP: true, Run: nullResult, WithoutSite: allowedNullResult},
	{ID: "invoke/empty-arguments", Beside: "invoke/runs-once", Sees: check.Front, ByMCP: true, Run: emptyArguments},
	{ID: "invoke/output-matches-schema", Sees: check.Site, Generated: true, Run: outputMatchesSchema},
	{ID: "invoke/invalid-arguments-400", Sees: check.Site, ByMCP: true, Generated: true, Run: invalidArguments400, WithoutSite: refusesInvalidAllowed},
	{ID: "invoke/integral-number", Sees: check.Site, ByMCP: true, Run: integralNumber},
	{ID: "invoke/undeclared-argument", Sees: check.Site, Run: undeclaredArgument},
	{ID: "invoke/invalid-arguments-named", Beside: "invoke/invalid-arguments-400", Sees: check.Site, Run: invalidArgumentsNamed},
	{ID: "invoke/hidden-404", Sees: check.Site, Run: hidden404, WithoutSite: allowedHidden404},
	{ID: "invoke/denied", TellsApart: true, Sees: check.Site, ByMCP: true, Run: denied, WithoutSite: allowedDenied},
	{ID: "invoke/denied-clear", TellsApart: true, Sees: check.Site, Run: deniedClear},
	{ID: "invoke/execution-error-500", Beside: "invoke/runs-once", Sees: check.Site, Run: executionError500, WithoutSite: allowedExecutionError},
	{ID: "invoke/error-data-kept", Beside: "invoke/runs-once", Sees: check.Site, Run: errorDataKept, WithoutSite: allowedErrorDataKept},
	{ID: "invoke/semantic-invalid-400", Sees: check.Site, Run: semanticInvalid400, WithoutSite: allowedSemanticInvalid},
	{ID: "invoke/no-trace-leak", Beside: "errors/envelope", Sees: check.Site, Guesses: 3, Run: noTraceLeak, WithoutSite: allowedNoTraceLeak},
	{ID: "invoke/runs-once", Sees: check.Site, ByMCP: true, Run: runsOnce, WithoutSite: runsAllowedOnce},
	{ID: "invoke/not-cached", Sees: check.Site, ByMCP: true, Run: notCached, WithoutSite: runsAllowedAgain},
	{ID: "invoke/malformed-json", Sees: check.Front, Guesses: 1, Run: malformedJSON},
	{ID: "invoke/body-not-object", Sees: check.Front, Run: bodyNotObject},
	{ID: "invoke/missing-name", Sees: check.Front, Run: missingName},
	{ID: "invoke/missing-arguments", Sees: check.Front, Run: missingArguments},
	{ID: "invoke/unknown-404", Sees: check.Front, Run: unknown404},
	{ID: "invoke/post-only", ByMock: true, Sees: check.Front, Run: postOnly},
	{ID: "invoke/large-body", Sees: check.Front, Costly: true, Run: largeBody},
	{ID: "invoke/duplicate-members", Sees: check.Front, Run: duplicateMembers},
}

// errorData is the error's data; nil without.
func errorData(r *check.Response) any { return r.ErrorObject()["data"] }

// smallest receives the response to a generated value. If must does not match it, smallest sends smaller values of the
// same kind, and returns the response to the smallest that fails, with a note on the value.
func smallest(t *check.T, c generate.Case, kind func(any) bool, fault func(any) string, r *check.Response, send func(any) *check.Response,
	must types.GomegaMatcher) (least *check.Response, note string) {
	matches := func(r *check.Response) bool { ok, err := must.Match(r); return ok && err == nil }
	note = fmt.Sprintf("%s, generated with seed %d", c.What, t.Seed)
	if matches(r) || t.HasFindings() { // there is a finding already
		return r, note
	}
	value := generate.Smallest(c.Value, scenario.Shrinkings, func(v any) bool { return kind(v) && !matches(send(v)) })
	note = fmt.Sprintf("%s, generated with seed %d", c.Of(value).What, t.Seed)
	if why := fault(value); why != "" {
		note = fmt.Sprintf("%s, generated with seed %d", why, t.Seed)
	}
	if least = send(value); matches(least) {
		return r, note // it does not always fail: the first failure counts
	}
	return least, note
}

// invokeWith returns a function that invokes the tool with generated arguments.
func invokeWith(ctx context.Context, t *check.T, tool string) func(any) *check.Response {
	return func(v any) *check.Response {
		t.Mark()
		return t.As(check.Agent).Invoke(ctx, tool, v)
	}
}

// drawValid draws arguments that fit the inputSchema at random.
func drawValid(t scenario.StrictTool) (generate.Case, bool) {
	v, ok := t.Drawn()
	return generate.Case{What: "a draw", Value: v}, ok
}

func returnsResult(ctx context.Context, t *check.T) {
	taking := slices.DeleteFunc(scenario.Samples(t, check.Agent, fixtures.Echo, fixtures.Lookup, fixtures.WhoAmI),
		func(s scenario.Sample) bool { return len(s.Arguments) == 0 })
	taking = scenario.Sampled(t, taking)
	taken := scenario.InvokeEach(ctx, t, check.Agent, taking)
	for i, tool := range taking {
		t.For(check.Agent, tool.Name, func() {
			r := taken.Response(i)
			t.Expect(r).To(match.HaveResult())
			t.Expect(r).To(match.BeJSON())
		})
	}
	plain := scenario.Sampled(t, scenario.Plain(t))
	given := scenario.InvokeEach(ctx, t, check.Agent, plain)
	for i, tool := range plain {
		t.For(check.Agent, tool.Name, func() {
			if r := given.Response(i); !r.IsError() { // invoke/empty-arguments tests that
				t.Expect(r).To(match.HaveInResult(tool.Behaviour.Value))
				t.Expect(r).To(match.BeJSON())
			}
		})
	}
	if t.Alone() || t.HasFindings() {
		return // MCP has no such body
	}
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Echo) {
		if len(tool.Arguments) > 0 {
			eachSpelling(ctx, t, tool)
			return
		}
	}
}

// eachSpelling sends a call that succeeds in other bytes that mean the same.
func eachSpelling(ctx context.Context, t *check.T, tool scenario.Sample) {
	name, arguments := string(client.Encode(tool.Name)), string(client.Encode(tool.Arguments))
	usual := `{"name":` + name + `,"arguments":` + arguments + `}`
	for _, s := range []struct{ what, contentType, body string }{
		{"the name first", "application/json", usual},
		{"the arguments first", "application/json", `{"arguments":` + arguments + `,"name":` + name + `}`},
		{"white space around every part", "application/json", "\r\n\t {\n  \"name\" : " + name + " ,\r\n\t\"arguments\" : " + arguments + "\n}\n"},
		{"escapes in the names of members", "application/json", `{"n\u0061me":` + name + `,"\u0061rguments":` + arguments + `}`},
		{"a charset in the Content-Type", "application/json; charset=utf-8", usual},
		{"a charset in quotes and capitals, without a blank", `application/json;charset="UTF-8"`, usual},
		{"the Content-Type in capitals", "Application/JSON", usual},
	} {
		t.Row(check.Agent, tool.Name, s.what, func() {
			t.Expect(t.As(check.Agent).Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath,
				Header: http.Header{"Content-Type": {s.contentType}}, Body: strings.NewReader(s.body), Show: s.body})).To(match.HaveResult())
		})
	}
}

func argumentsForwarded(ctx context.Context, t *check.T) {
	listed := t.As(check.Agent).MustListShared(ctx)
	type row struct {
		scenario.Sample
		what string
		sent map[string]any
	}
	var rows []row
	for _, c := range append(slices.Clone(exactValues), namedValue{"null", "null"}) {
		if tool, parameter, ok := scenario.ToolTaking(t, listed, c.value); ok {
			rows = append(rows, row{tool, c.name, map[string]any{parameter: json.RawMessage(c.value)}})
		}
	}
	if len(rows) == 0 {
		check.NotTestable("the bridge lists no tool that returns its arguments")
	}
	rows = scenario.Sampled(t, rows)
	exactly := t.Table(len(rows), func(i int) *check.Response { return t.As(check.Agent).Invoke(ctx, rows[i].Name, rows[i].sent) })
	for i, r := range rows {
		t.Row(check.Agent, r.Name, r.what, func() {
			if got := exactly.Response(i); !refusesLong(got) {
				t.Expect(got).To(match.HaveForwarded(t.Upstream, r.ID, client.Encode(r.sent)))
			}
		})
	}
	for i, way := range scenario.OtherWays(t) {
		r := rows[i%len(rows)]
		if !t.Site.MayRun(way.Who, r.Method) {
			continue
		}
		t.Row(way.Who, r.Name, r.what+", "+way.Name, func() {
			t.Mark()
			if got := way.Invoke(ctx, r.Name, r.sent); !refusesLong(got) {
				t.Expect(got).To(match.HaveForwarded(t.Upstream, r.ID, client.Encode(r.sent)))
			}
		})
	}
	if tool, parameter, ok := scenario.ToolTaking(t, listed, "1e400"); ok {
		t.Row(check.Agent, tool.Name, "a number that no double holds, 1e400", func() {
			t.Mark()
			sent := map[string]any{parameter: json.RawMessage("1e400")}
			if r := t.As(check.Agent).Invoke(ctx, tool.Name, sent); len(t.Upstream.Calls(tool.ID)) > 0 { // else it is refused, as it may be
				t.Expect(r).To(match.HaveForwarded(t.Upstream, tool.ID, client.Encode(sent)))
			}
		})
	}
	if tool, parameter, ok := scenario.ToolTaking(t, listed, `"text"`); ok {
		const contentType = "application/json; charset=iso-8859-1"
		t.Row(check.Agent, tool.Name, "a text beside another charset, "+contentType, func() {
			t.Mark()
			arguments := client.Encode(map[string]any{parameter: traps.Short})
			request := client.InvokeRequest(client.Encode(map[string]any{"name": tool.Name, "arguments": json.RawMessage(arguments)}))
			request.Header = http.Header{"Content-Type": {contentType}}
			r := t.As(check.Agent).Send(ctx, request)
			if len(t.Upstream.Calls(tool.ID)) > 0 { // else it is refused, as it may be
				t.Expect(r).To(match.HaveForwarded(t.Upstream, tool.ID, arguments))
			}
		})
	}
	if tool, parameters := mostAccepting(t, listed); len(parameters) > 1 {
		for values := range slices.Chunk(traps.Whole(), len(parameters)) {
			sent := map[string]any{}
			for i, v := range values {
				sent[parameters[i]] = json.RawMessage(v)
			}
			t.For(check.Agent, tool.Name, func() {
				t.Mark()
				t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, sent)).To(match.HaveForwarded(t.Upstream, tool.ID, client.Encode(sent)))
			})
		}
	}
	if wide, prepared := t.Method(scenario.EveryName); prepared && t.Knows(check.Admin) {
		sent := map[string]any{}
		for i, p := range wide.Params[1:] { // the first is an object
			sent[p.Name] = 1000 + i
		}
		t.For(check.Admin, t.ToolName(wide.ID), func() {
			t.Mark()
			r := t.As(check.Admin).Invoke(ctx, t.ToolName(wide.ID), sent)
			t.Expect(r).To(match.HaveForwarded(t.Upstream, wide.ID, client.Encode(sent)), "names that programs change")
		})
	}
	withDefault := slices.DeleteFunc(scenario.Samples(t, check.Agent, fixtures.Echo), func(s scenario.Sample) bool {
		_, shown := listed.Find(s.Name)
		return !shown || !hasDefault(s)
	})
	withDefault = scenario.Sampled(t, withDefault)
	left := scenario.InvokeEach(ctx, t, check.Agent, withDefault)
	for i, tool := range withDefault {
		t.For(check.Agent, tool.Name, func() {
			t.Expect(left.Response(i)).To(match.HaveForwarded(t.Upstream, tool.ID, client.Encode(tool.Arguments)), "a parameter with a default left out")
		})
	}
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Value) {
		if len(tool.Params) == 0 {
			t.For(check.Agent, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(check.Agent).Invoke(ctx, tool.Name, check.Args{})
				if r.Succeeded() { // invoke/empty-arguments tests that
					t.Expect(r).To(match.HaveForwarded(t.Upstream, tool.ID, []byte("{}")), "no arguments")
				}
			})
			break
		}
	}
	echoes := scenario.StrictTools(ctx, t, fixtures.Echo)
	plain := scenario.RefusedArguments(ctx, t, fixtures.Echo) // by the site, but not by the bridge
	for _, tool := range echoes {
		if c, ok := tool.Emptied(); ok {
			plain = append(plain, scenario.ToolCase{StrictTool: tool, Case: c})
		}
	}
	responses := scenario.InvokeCases(ctx, t, plain)
	for i, c := range plain {
		t.For(check.Agent, c.Name, func() { t.Expect(responses.Response(i)).To(haveForwardedTo(t.Upstream, c.ID), c.What) })
	}
	cases := scenario.EveryCase(t, echoes, scenario.StrictTool.EdgesTogether, func(tool scenario.StrictTool) (generate.Case, bool) { return drawValid(tool) })
	responses = scenario.InvokeCases(ctx, t, cases)
	for i, c := range cases {
		t.For(check.Agent, c.Name, func() {
			r, note := smallest(t, c.Case, c.Fits, c.Fault, responses.Response(i), invokeWith(ctx, t, c.Name), haveForwardedTo(t.Upstream, c.ID))
			t.Expect(r).To(haveForwardedTo(t.Upstream, c.ID), note)
		})
	}
}

// mostAccepting is the tool with the most parameters that take any value, all optional, and these parameters.
func mostAccepting(t *check.T, listed check.Listing) (tool scenario.Sample, parameters []string) {
	for _, s := range scenario.Samples(t, check.Agent, fixtures.Echo) {
		shown, ok := listed.Find(s.Name)
		if !ok || len(s.Arguments) > 0 {
			continue
		}
		schema, err := jsonschema.Compile(shown.Input(), jsonschema.Draft7)
		if err != nil {
			continue // schema/input-valid tests that
		}
		var open []string
		for _, p := range s.Params {
			takes := func(v any) bool { return schema.Fault(map[string]any{p.Name: v}) == "" }
			if takes("") && takes(false) && takes([]any{}) && takes(map[string]any{"": ""}) && takes(json.Number("-1.5")) {
				open = append(open, p.Name)
			}
		}
		if len(open) > len(parameters) {
			tool, parameters = s, open
		}
	}
	return tool, parameters
}

func resultExact(ctx context.Context, t *check.T) {
	scenario.MustGiveResults(ctx, t)
	returning := slices.DeleteFunc(scenario.MustFind(t, check.Agent, fixtures.Value), func(s scenario.Sample) bool { // invoke/null-result and invoke/output-matches-schema test the first two
		return string(s.Behaviour.Value) == "null" || !jsonschema.Fits(s.Output, exact.MustParse(s.Behaviour.Value)) || beyondPHP(s.Behaviour.Value)
	})
	returning = scenario.Sampled(t, returning)
	returned := scenario.InvokeEach(ctx, t, check.Agent, returning)
	for i, tool := range returning {
		t.For(check.Agent, tool.Name, func() { t.Expect(returned.Response(i)).To(match.GiveResult(string(tool.Behaviour.Value))) })
	}
	for i, way := range scenario.OtherWays(t) {
		given := slices.DeleteFunc(slices.Clone(returning), func(s scenario.Sample) bool { return !t.Site.MayRun(way.Who, s.Method) })
		if len(given) == 0 {
			continue
		}
		tool := given[i%len(given)]
		t.Row(way.Who, tool.Name, way.Name, func() {
			t.Expect(way.Invoke(ctx, tool.Name, tool.Arguments)).To(match.GiveResult(string(tool.Behaviour.Value)))
		})
	}
	if tool, sent := manyArguments(ctx, t); len(sent) > 0 {
		t.Row(check.Agent, tool.Name, "of several arguments", func() {
			t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, sent)).To(match.GiveResult(string(client.Encode(sent))))
		})
	}
	if failing := scenario.Failing(t); len(failing) > 0 && len(returning) > 0 {
		t.As(check.Agent).Invoke(ctx, failing[0].Name, failing[0].Arguments)
		t.Row(check.Agent, returning[0].Name, "after a call that failed", func() {
			t.Expect(t.As(check.Agent).Invoke(ctx, returning[0].Name, returning[0].Arguments)).To(match.GiveResult(string(returning[0].Behaviour.Value)))
		})
	}
	if m := scenario.ListOfObjects(t); m != nil {
		const given, repaired = `[[],{"n":9007199254740993,"d":1.10}]`, `[{},{"n":9007199254740993,"d":1.10}]`
		t.Row(check.Agent, t.ToolName(m.ID), "PHP's [] for an object beside numbers", func() {
			defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, Route: route.JSONRPC, Body: given})()
			r, want := t.As(check.Agent).Invoke(ctx, t.ToolName(m.ID), check.Args{}), given
			if got, _ := r.Member("result"); match.TypeOf(first(got)) == "an object" {
				want = repaired
			}
			t.Expect(r).To(match.GiveResult(want))
		})
	}
	untyped := untypedTools(ctx, t)
	if len(untyped) == 0 {
		return
	}
	t.Row(check.Agent, untyped[0].Name, "a number that no double holds, 1e400", func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, Body: `{"n":1e400}`})()
		r := t.As(check.Agent).Invoke(ctx, untyped[0].Name, untyped[0].Arguments)
		t.Expect(r).To(match.BeJSON())
		if !r.IsError() {
			t.Expect(r).To(match.GiveResult(`{"n":1e400}`))
		}
	})
	t.Row(check.Agent, untyped[0].Name, "a text without escapes", func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, Body: plainUTF8()})()
		plain := t.As(check.Agent).Invoke(ctx, untyped[0].Name, untyped[0].Arguments)
		t.Expect(plain).To(match.GiveResult(plainUTF8()))
		if t.Alone() {
			return
		}
		request := client.InvokeRequest(client.Encode(map[string]any{"name": untyped[0].Name, "arguments": untyped[0].Arguments}))
		request.Header = http.Header{"Accept-Encoding": {"gzip"}}
		zipped, must := t.As(check.Agent).Send(ctx, request), match.GiveResult(plainUTF8())
		if slices.Contains(scenario.Listed(zipped, "Content-Encoding"), "gzip") {
			must = scenario.DecodeTo(plain)
		}
		t.Expect(zipped).To(must, "with Accept-Encoding: gzip")
	})
	restoreBehaviours(t)
	for round := range slices.Chunk(slices.Concat(exactValues, resultValues, wholeResults()), len(untyped)) {
		values := map[string]any{}
		for i, v := range round {
			values[untyped[i].ID] = json.RawMessage(v.value)
		}
		setValues(t.Drupal, values)
		responses := scenario.InvokeEach(ctx, t, check.Agent, untyped[:len(round)])
		for i, v := range round {
			t.Row(check.Agent, untyped[i].Name, v.name, func() { t.Expect(responses.Response(i)).To(match.GiveResult(v.value)) })
		}
	}
}

// manyArguments are arguments for all parameters of an echo that take any value; none where there are less than three.
func manyArguments(ctx context.Context, t *check.T) (tool scenario.Sample, sent check.Args) {
	tool, parameters := mostAccepting(t, t.As(check.Agent).MustListShared(ctx))
	if len(parameters) < 3 {
		return tool, nil
	}
	sent = check.Args{}
	for i, p := range parameters {
		sent[p] = json.RawMessage([]string{`{"a":[1,{"b":[{"c":null}]}],"d":[],"e":{"f":{}}}`, `"a text"`, `[["ä",1.5],[true]]`}[i%3])
	}
	return tool, sent
}

// first is the first element of a list; nil of others.
func first(v any) any {
	if list, _ := v.([]any); len(list) > 0 {
		return list[0]
	}
	return nil
}

func nullResult(ctx context.Context, t *check.T) {
	if t.Drupal.Site().NullFails {
		check.NotTestable("on the site " + t.Drupal.Site().Name + " a method that returns null fails")
	}
	scenario.MustGiveResults(ctx, t)
	tested := 0
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Value) {
		if string(tool.Behaviour.Value) == "null" && jsonschema.Fits(tool.Output, nil) {
			tested++
			t.For(check.Agent, tool.Name, func() {
				t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(match.GiveResult("null"))
			})
		}
	}
	if tested == 0 {
		check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that returns null")
	}
}

func withoutArguments(c check.Invocation) bool { return string(c.Object()) == "{}" }

func emptyArguments(ctx context.Context, t *check.T) {
	if t.Drupal == nil {
		call := scenario.MustRun(ctx, t)
		if i := slices.IndexFunc(t.Invocations, func(c check.Invocation) bool { return c.Succeeds() && withoutArguments(c) }); i >= 0 {
			call = t.Invocations[i]
		}
		if !withoutArguments(call) { // who allows calls has said which tools exist for this run: none of them is the clause's subject
			check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "no tool that the run may call takes no arguments: allow one under `invocations` to test it"}})
		}
		t.Expect(t.Call(ctx, call)).To(match.BeSuccess())
		return
	}
	tools := slices.DeleteFunc(scenario.Samples(t, check.Agent, scenario.SucceedingKinds...), func(s scenario.Sample) bool {
		return len(s.Arguments) > 0 || s.Behaviour.Kind == fixtures.Value && !scenario.IsPlain(s.Behaviour.Value)
	})
	if len(tools) == 0 {
		check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool without required parameters")
	}
	tools = scenario.Sampled(t, tools)
	responses := scenario.InvokeEach(ctx, t, check.Agent, tools)
	for i, tool := range tools {
		t.For(check.Agent, tool.Name, func() { t.Expect(responses.Response(i)).To(match.BeSuccess()) })
	}
	if !t.Alone() {
		return // mcp/parity tests tools/call then
	}
	if s, opened := t.As(check.Agent).AnyMCP(ctx); opened {
		t.Row(check.Agent, tools[0].Name, "without `arguments`, which is optional in MCP", func() {
			t.Expect(s.Call(ctx, "tools/call", map[string]any{"name": tools[0].Name})).To(match.BeToolResult())
		})
	}
}

func outputMatchesSchema(ctx context.Context, t *check.T) {
	scenario.MustGiveResults(ctx, t)
	t.Drupal.LetResultsBreakOutput()
	broken := scenario.Failing(t)[0]
	if r := t.As(check.Agent).Invoke(ctx, broken.Name, broken.Arguments); r.Code() != "execution_error" || r.Status != http.StatusInternalServerError {
		check.BlockedBy(check.Finding{Subject: "a method that fails does not get 500 execution_error"}, "invoke/execution-error-500")
	}
	tested := 0
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Value) {
		given := exact.MustParse(tool.Behaviour.Value)
		if jsonschema.Fits(tool.Output, given) {
			continue
		}
		tested++
		must := match.BeRefused(500, "execution_error")
		if repaired := match.WithObjects(given, exact.MustParse(tool.Output)); jsonschema.Fits(tool.Output, repaired) {
			must = giveEither(given, repaired)
		}
		t.For(check.Agent, tool.Name, func() { t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(must) })
	}
	if tested == 0 {
		check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool whose result breaks its output schema")
	}
	if large := fmt.Sprintf(`{"large":%q}`, strings.Repeat("x", 200_000)); tested > 0 { // which a bridge may not take the time to check
		for _, tool := range scenario.MustFind(t, check.Agent, fixtures.Value) {
			if jsonschema.Fits(tool.Output, exact.MustParse(large)) {
				continue
			}
			t.Row(check.Agent, tool.Name, "a large result", func() {
				defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Result, Route: route.JSONRPC, Body: large})()
				t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(match.BeRefused(500, "execution_error"))
			})
			break
		}
	}
	restoreBehaviours(t)
	for _, round := range resultCases(t, resultTools(ctx, t)) {
		setResults(t, round)
		for _, c := range round {
			kind, must := c.Fits, match.HaveResult()
			if !c.fits {
				kind, must = c.Breaks, match.BeRefused(500, "execution_error")
			}
			t.For(check.Agent, c.Name, func() {
				r, note := smallest(t, c.Case, kind, c.Fault, t.As(check.Agent).Invoke(ctx, c.Name, c.Arguments), returnAndInvoke(ctx, t, c.resultTool), must)
				t.Expect(r).To(must, note)
			})
		}
	}
}

// giveEither matches a response to invoke with one of two results, such as [] or {}, which are both PHP's empty array.
func giveEither(one, other any) OmegaMatcher {
	return match.Conform("200 with the result "+exact.Short(one)+" or "+exact.Short(other), func(r *check.Response) string {
		result, there := r.Member("result")
		if r.Status == http.StatusOK && there && (exact.Equal(result, one) || exact.Equal(result, other)) {
			return ""
		}
		return r.Outcome()
	})
}

// hasDefault reports whether an optional parameter declares a default, which only the site may fill in.
func hasDefault(s scenario.Sample) bool {
	return slices.ContainsFunc(s.Params, func(p fixtures.Param) bool {
		schema, _ := match.Published(p.Resolved()).(map[string]any)
		return !p.Required && schema["default"] != nil
	})
}

// beyondPHP reports whether an integer in the value is larger than PHP, and so a real site, can return.
func beyondPHP(value fixtures.Raw) bool {
	v, err := exact.Parse(value)
	if err != nil {
		return false
	}
	for v := range exact.Values(v) {
		if n, ok := v.(json.Number); ok {
			if _, err := n.Int64(); err != nil && !strings.ContainsAny(string(n), ".eE") {
				return true
			}
		}
	}
	return false
}

// haveForwardedTo matches an invoke whose arguments, read from the request, reached the method unchanged.
func haveForwardedTo(at *site.Upstream, method string) OmegaMatcher {
	return match.Conform("the arguments to reach "+method+" as they were sent", func(r *check.Response) string {
		_, sent := r.Invoked()
		return match.ForwardFault(at, r, method, exact.MustParse(sent))
	})
}

// haveReachedOnce matches a response if exactly one call of the method reached the site since the last Mark, whether it
// succeeded there or not.
func haveReachedOnce(at *site.Upstream, method string) types.GomegaMatcher {
	return match.Conform("one call of "+method+" to reach the site", func(r *check.Response) string {
		if n := len(at.Calls(method)); n != 1 {
			return fmt.Sprintf("it %s, and %s", match.Times(n), r.Outcome()) // which may be long
		}
		return ""
	})
}

// callByMCP runs a tool over MCP; nil if no session opens.
func callByMCP(ctx context.Context, c check.Client, name string, arguments any) *check.Response {
	if s, opened := c.AnyMCP(ctx); opened {
		return s.CallTool(ctx, name, arguments)
	}
	return nil
}

// mustAcceptInvokes is the positive control of every malformed invoke: a well-formed one reaches the tools.
func mustAcceptInvokes(ctx context.Context, t *check.T) {
	if fault := faultOfInvoke(ctx, t); !fault.IsZero() {
		check.BlockedBy(fault.About("the positive control"), "invoke/answers-result", "invoke/empty-arguments", "invoke/unknown-404")
	}
}

// faultOfInvoke sends a well-formed invoke and returns what is wrong with the response; the zero Finding if it reaches the
// tools. If no tool may be run, it names an unknown one, which must get 404.
func faultOfInvoke(ctx context.Context, t *check.T) check.Finding {
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		if r := t.Call(ctx, call); r.Status != http.StatusOK {
			return check.Mismatch(r.Subject(), "a success", r.Outcome())
		}
		return check.Finding{}
	}
	if r := t.As(check.Agent).Invoke(ctx, scenario.NoSuchTool, check.Args{}); r.Status != http.StatusNotFound {
		return check.Mismatch(r.Subject(), "404", r.Outcome())
	}
	return check.Finding{}
}
