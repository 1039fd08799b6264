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
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/generate"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area invoke.
var Checks = []harness.Check{
	{ID: "invoke/answers-result", Sees: harness.Site, Run: answersResult, WithoutSite: answersAsConfigured},
	{ID: "invoke/arguments-forwarded", Sees: harness.Site, Generated: true, Run: argumentsForwarded},
	{ID: "invoke/result-exact", Sees: harness.Site, Run: resultExact},
	{ID: "invoke/null-result", Sees: harness.Site, Run: nullResult},
	{ID: "invoke/empty-arguments", Sees: harness.Front, Run: emptyArguments},
	{ID: "invoke/output-matches-schema", Sees: harness.Site, Generated: true, Run: outputMatchesSchema},
	{ID: "invoke/invalid-arguments-400", Sees: harness.Site, Generated: true, Run: invalidArguments400, WithoutSite: refusesBrokenArguments},
	{ID: "invoke/invalid-arguments-named", Sees: harness.Site, Run: invalidArgumentsNamed},
	{ID: "invoke/hidden-404", Sees: harness.Site, Run: hidden404},
	{ID: "invoke/denied", Sees: harness.Site, Run: denied},
	{ID: "invoke/denied-clear", Sees: harness.Site, Run: deniedClear},
	{ID: "invoke/execution-error-500", Sees: harness.Site, Run: executionError500},
	{ID: "invoke/error-data-kept", Sees: harness.Site, Run: errorDataKept},
	{ID: "invoke/semantic-invalid-400", Sees: harness.Site, Run: semanticInvalid400},
	{ID: "invoke/no-trace-leak", Sees: harness.Site, Run: noTraceLeak},
	{ID: "invoke/runs-once", Sees: harness.Site, Run: runsOnce, WithoutSite: runsAllowedOnce},
	{ID: "invoke/not-cached", Sees: harness.Site, Run: notCached, WithoutSite: runsAllowedAgain},
	{ID: "invoke/malformed-json", Sees: harness.Front, Run: malformedJSON},
	{ID: "invoke/body-not-object", Sees: harness.Front, Run: bodyNotObject},
	{ID: "invoke/missing-name", Sees: harness.Front, Run: missingName},
	{ID: "invoke/missing-arguments", Sees: harness.Front, Run: missingArguments},
	{ID: "invoke/unknown-404", Sees: harness.Front, Run: unknown404},
	{ID: "invoke/post-only", Sees: harness.Front, Run: postOnly},
	{ID: "invoke/large-body", Sees: harness.Front, Costly: true, Run: largeBody},
	{ID: "invoke/duplicate-members", Sees: harness.Front, Run: duplicateMembers},
}

// ErrorData is the error's data; nil without.
func ErrorData(a *harness.Response) any { return a.ErrorObject()["data"] }

// smallest takes the answer to a made-up value. Where it is not as it must be, it puts smaller values of the same kind to
// the bridge, and gives the answer to the smallest that fails, with a note on the value.
func smallest(t *harness.T, c generate.Case, kind func(any) bool, fault func(any) string, a *harness.Response, put func(any) *harness.Response, must types.GomegaMatcher) (least *harness.Response, note string) {
	holds := func(a *harness.Response) bool { ok, err := must.Match(a); return ok && err == nil }
	note = fmt.Sprintf("%s, made up with seed %d", c.What, t.Seed)
	if holds(a) || t.HasFindings() { // there is a small one to begin with
		return a, note
	}
	value := generate.Smallest(c.Value, scenario.Shrinkings, func(v any) bool { return kind(v) && !holds(put(v)) })
	if why := fault(value); why != "" {
		note = fmt.Sprintf("%s, made up with seed %d", why, t.Seed)
	}
	if least = put(value); holds(least) {
		return a, note // it fails now and then: the first failure counts
	}
	return least, note
}

// putArguments invokes the tool with made-up arguments.
func putArguments(ctx context.Context, t *harness.T, tool string) func(any) *harness.Response {
	return func(v any) *harness.Response {
		t.Mark()
		return t.As(harness.Agent).Invoke(ctx, tool, v)
	}
}

// drawnValid are arguments that fit, drawn at random.
func drawnValid(t scenario.StrictTool) (generate.Case, bool) {
	v, ok := t.Drawn()
	return generate.Case{What: "a draw", Value: v}, ok
}

// What comes back of a method, and what reaches it.
func answersResult(ctx context.Context, t *harness.T) {
	for _, tool := range scenario.Samples(t, harness.Agent, fixtures.Echo, fixtures.Lookup, fixtures.WhoAmI) {
		if len(tool.Arguments) > 0 {
			t.For(harness.Agent, tool.Name, func() {
				r := t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(match.HaveResult())
				t.Expect(r).To(match.BeJSON())
			})
		}
	}
	for _, tool := range scenario.Plain(t) {
		t.For(harness.Agent, tool.Name, func() {
			if r := t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments); !r.IsError() { // invoke/empty-arguments judges that
				t.Expect(r).To(match.HaveInResult(tool.Behaviour.Value))
				t.Expect(r).To(match.BeJSON())
			}
		})
	}
}

func argumentsForwarded(ctx context.Context, t *harness.T) {
	listed := t.As(harness.Agent).MustListAll(ctx)
	judged := 0
	for _, c := range forwarded {
		tool, parameter, ok := scenario.ToolTaking(t, listed, c.value)
		if !ok {
			continue
		}
		judged++
		t.Row(harness.Agent, tool.Name, c.what, func() {
			sent := map[string]any{parameter: json.RawMessage(c.value)}
			t.Drupal.Mark()
			r := t.As(harness.Agent).Invoke(ctx, tool.Name, sent)
			t.Expect(r).To(match.HaveForwarded(tool.ID, harness.Encode(sent)))
		})
	}
	if judged == 0 {
		harness.NotTestable("the bridge lists no tool that gives back any argument")
	}
	for _, tool := range scenario.Samples(t, harness.Agent, fixtures.Echo) {
		if _, shown := listed.Find(tool.Name); shown && hasDefault(tool) {
			t.For(harness.Agent, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(match.HaveForwarded(tool.ID, harness.Encode(tool.Arguments)), "a parameter with a default left out")
			})
		}
	}
	for _, tool := range scenario.Samples(t, harness.Agent, fixtures.Value) {
		if len(tool.Params) == 0 {
			t.For(harness.Agent, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(harness.Agent).Invoke(ctx, tool.Name, harness.Args{})
				if !r.IsError() { // invoke/empty-arguments judges that
					t.Expect(r).To(match.HaveForwarded(tool.ID, []byte("{}")), "no arguments")
				}
			})
			break
		}
	}
	takers := scenario.StrictTools(ctx, t, fixtures.Echo)
	for _, entry := range takers {
		if c, ok := entry.Emptied(); ok {
			t.For(harness.Agent, entry.Name, func() { t.Expect(putArguments(ctx, t, entry.Name)(c.Value)).To(HaveForwardedTo(entry.ID), c.What) })
		}
	}
	for _, c := range scenario.EveryCase(t, takers, scenario.StrictTool.Edges, func(tool scenario.StrictTool) (generate.Case, bool) { return drawnValid(tool) }) {
		t.For(harness.Agent, c.Name, func() {
			put := putArguments(ctx, t, c.Name)
			r, note := smallest(t, c.Case, c.Fits, c.Fault, put(c.Value), put, HaveForwardedTo(c.ID))
			t.Expect(r).To(HaveForwardedTo(c.ID), note)
		})
	}
}

func resultExact(ctx context.Context, t *harness.T) {
	scenario.MustGiveResults(ctx, t)
	for _, tool := range scenario.MustFind(t, harness.Agent, fixtures.Value) {
		if string(tool.Behaviour.Value) == "null" || !fits(tool.Output, tool.Behaviour.Value) || beyondPHP(tool.Behaviour.Value) {
			continue // invoke/null-result and invoke/output-matches-schema judge the first two
		}
		t.For(harness.Agent, tool.Name, func() {
			t.Expect(t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(match.GiveResult(string(tool.Behaviour.Value)))
		})
	}
}

func nullResult(ctx context.Context, t *harness.T) {
	if t.Drupal.Site().NullFails {
		harness.NotTestable("on the site " + t.Drupal.Site().Name + " a method that gives null fails")
	}
	scenario.MustGiveResults(ctx, t)
	judged := 0
	for _, tool := range scenario.Samples(t, harness.Agent, fixtures.Value) {
		if string(tool.Behaviour.Value) == "null" && fits(tool.Output, tool.Behaviour.Value) {
			judged++
			t.For(harness.Agent, tool.Name, func() {
				t.Expect(t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(match.GiveResult("null"))
			})
		}
	}
	if judged == 0 {
		harness.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that gives null")
	}
}

func emptyArguments(ctx context.Context, t *harness.T) {
	if t.Drupal == nil {
		call := scenario.MustRun(ctx, t)
		if call.Arguments != nil && string(call.Arguments) != "{}" {
			harness.NotTestable("it needs a tool that runs without arguments: allow one under `invocations`")
		}
		t.Expect(t.Call(ctx, call)).To(match.BeSuccess())
		return
	}
	judged := 0
	for _, tool := range scenario.Samples(t, harness.Agent, scenario.SucceedingKinds...) {
		if len(tool.Arguments) > 0 || tool.Behaviour.Kind == fixtures.Value && !scenario.IsPlain(tool.Behaviour.Value) {
			continue
		}
		judged++
		t.For(harness.Agent, tool.Name, func() { t.Expect(t.As(harness.Agent).Invoke(ctx, tool.Name, harness.Args{})).To(match.BeSuccess()) })
	}
	if judged == 0 {
		harness.NotTestable("the site " + t.Drupal.Site().Name + " has no tool without required parameters")
	}
}

func outputMatchesSchema(ctx context.Context, t *harness.T) {
	scenario.MustGiveResults(ctx, t)
	broken := scenario.Failing(t)[0]
	if r := t.As(harness.Agent).Invoke(ctx, broken.Name, broken.Arguments); r.Code() != "execution_error" || r.Status != http.StatusInternalServerError {
		harness.BlockedBy(harness.Finding{Subject: "a method that fails is not answered with 500 execution_error either"}, "invoke/execution-error-500")
	}
	judged := 0
	for _, tool := range scenario.Samples(t, harness.Agent, fixtures.Value) {
		value := tool.Behaviour.Value
		if fits(tool.Output, value) {
			continue
		}
		judged++
		must := match.BeRefused(500, "execution_error")
		if string(value) == "[]" && fits(tool.Output, fixtures.Raw("{}")) {
			must = GiveEmpty()
		}
		t.For(harness.Agent, tool.Name, func() { t.Expect(t.As(harness.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(must) })
	}
	if judged == 0 {
		harness.NotTestable("the site " + t.Drupal.Site().Name + " has no tool whose result breaks its output schema")
	}
	restoring(t.Drupal)
	for _, round := range resultCases(t, resultTools(ctx, t)) {
		together(t, round)
		for _, c := range round {
			kind, must := c.Fits, match.HaveResult()
			if !c.fits {
				kind, must = c.Breaks, match.BeRefused(500, "execution_error")
			}
			t.For(harness.Agent, c.Name, func() {
				r, note := smallest(t, c.Case, kind, c.Fault, t.As(harness.Agent).Invoke(ctx, c.Name, c.Arguments), putResult(ctx, t, c.resultTool), must)
				t.Expect(r).To(must, note)
			})
		}
	}
}

// GiveEmpty matches an invoke answer with PHP's [] where an object is declared, as it came or as what it stands for.
func GiveEmpty() OmegaMatcher {
	return match.Conform("200 with the result [] or {}", func(a *harness.Response) string {
		result, there := a.Member("result")
		if a.Status == http.StatusOK && there && (exact.Equal(result, []any{}) || exact.Equal(result, map[string]any{})) {
			return ""
		}
		return a.Outcome()
	})
}

// forwarded are values that a careless bridge changes on the way to the site.
var forwarded = []struct{ what, value string }{
	{"a text", `"plain"`},
	{"an empty text", `""`},
	{"a text of digits", `"007"`},
	{"Unicode", `"é ß 日本語 עברית 🚀👩‍🚀 \u2028 \u0007 e\u0301"`},
	{"markup", `"<b>&amp; \"it's\" </script> \\ / {{ x }} %20 + ${y}"`},
	{"lines", `"a\r\n\tb\n"`},
	{"a long text", `"` + strings.Repeat("0123456789abcdef", 8<<10) + `"`},
	{"true", `true`},
	{"false", `false`},
	{"zero", `0`},
	{"an integer beyond 2^53", `9007199254740993`},
	{"a negative integer beyond 2^53", `-9007199254740993`},
	{"2^63-1", `9223372036854775807`},
	{"a decimal", `0.1`},
	{"a small decimal", `-1.5e-10`},
	{"a decimal of many digits", `3.141592653589793`},
	{"an empty object", `{}`},
	{"an empty list", `[]`},
	{"empty ones in others", `{"object":{},"list":[],"objects":[{}],"lists":[[]]}`},
	{"null in an object", `{"a":null,"b":[null]}`},
	{"nested values", `{"a":{"b":{"c":[1,{"d":[true,"x",{"e":0.5}]}]}}}`},
	{"an integer beyond 2^53 in a list", `[{"id":9007199254740993},9007199254740995]`},
	{"names that mean something elsewhere", `{"":1,"0":2,"1":3,"a.b":4,"__proto__":{"x":5},"name":"6","arguments":{},"jsonrpc":"1.0","id":7,"$ref":"#"}`},
	{"a list of lists", `[[1,2],[3],[]]`},
	{"an object with the keys of a list", `{"0":"a","1":"b"}`},
	{"a list of one, and one in no order", `[["x"],[3,1,2]]`},
	{"a text with a NUL", `"a\u0000b"`},
	{"texts that mean something elsewhere", `["true","null","1e3","[1]","{\"a\":1}","\ufeffx","2024-01-31T10:00:00+02:00","%2E"]`},
}

// hasDefault tells whether an optional parameter declares a default, which is the site's to fill in.
func hasDefault(s scenario.Sample) bool {
	return slices.ContainsFunc(s.Params, func(p fixtures.Param) bool {
		schema, _ := match.Published(p.Resolved()).(map[string]any)
		return !p.Required && schema["default"] != nil
	})
}

// beyondPHP tells whether an integer in the value is larger than any that PHP, and so a real site, can give.
func beyondPHP(value fixtures.Raw) bool {
	v, err := exact.Parse(value)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(numbersIn(v), func(n json.Number) bool {
		_, err := n.Int64()
		return err != nil && !strings.ContainsAny(string(n), ".eE")
	})
}

// numbersIn are all numbers in a document.
func numbersIn(v any) []json.Number {
	var all []json.Number
	switch v := v.(type) {
	case json.Number:
		return []json.Number{v}
	case map[string]any:
		for _, member := range harness.InOrder(v) {
			all = append(all, numbersIn(member)...)
		}
	case []any:
		for _, item := range v {
			all = append(all, numbersIn(item)...)
		}
	}
	return all
}

// fits tells whether a value keeps a schema; none takes everything.
func fits(schema, value fixtures.Raw) bool {
	if schema == nil {
		return true
	}
	s, err := exact.Parse(schema)
	if err != nil {
		return true
	}
	v, err := exact.Parse(value)
	if err != nil {
		return false
	}
	check, err := jsonschema.Compile(s, jsonschema.Draft7)
	return err != nil || check.Fault(v) == ""
}

// HaveForwardedTo matches an invoke whose arguments reached the method as HaveForwarded says, whatever they were.
func HaveForwardedTo(method string) OmegaMatcher {
	return match.Conform("the arguments to reach "+method+" as they were sent", func(a *harness.Response) string {
		return match.ForwardFault(a, method, match.Must(exact.Parse(sentArguments(a))))
	})
}

// sentArguments are those in the body of an invoke.
func sentArguments(a *harness.Response) []byte {
	var body struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(a.Shown), &body); err != nil {
		panic(fmt.Sprintf("a check's own request is no JSON: %v", err))
	}
	return body.Arguments
}

// HaveReachedOnce matches an answer during which, since the last Mark, exactly one call of the method reached the site,
// whatever became of it there.
func HaveReachedOnce(method string) types.GomegaMatcher {
	return match.Conform("one call of "+method+" to reach the site", func(a *harness.Response) string {
		if n := len(a.T.Upstream.Calls(method)); n != 1 {
			return fmt.Sprintf("%s, and %s reached it %s", a.Outcome(), method, match.Times(n))
		}
		return ""
	})
}

// callByMCP runs a tool over MCP in the newest revision that opens; nil where none does.
func callByMCP(ctx context.Context, c harness.Client, name string, arguments any) *harness.Response {
	s := c.AnyMCP(ctx)
	if s == nil {
		return nil
	}
	return s.CallTool(ctx, name, arguments)
}

// mustTakeInvokes is the twin of every invoke that is malformed: a well-formed one gets through to the tools.
func mustTakeInvokes(ctx context.Context, t *harness.T) {
	if fault := servesOn(ctx, t); !fault.IsZero() {
		harness.BlockedBy(fault.About("the positive control"))
	}
}

// servesOn makes a well-formed invoke and says what is wrong with the answer; "" when it gets through to the tools.
// Where no tool may be run, it must get as far as a tool that is not there.
func servesOn(ctx context.Context, t *harness.T) harness.Finding {
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		if r := t.Call(ctx, call); r.Status != http.StatusOK {
			return harness.Mismatch(r.Subject(), "a success", r.Outcome())
		}
		return harness.Finding{}
	}
	if r := t.As(harness.Agent).Invoke(ctx, scenario.NoSuchTool, harness.Args{}); r.Status != http.StatusNotFound {
		return harness.Mismatch(r.Subject(), "404", r.Outcome())
	}
	return harness.Finding{}
}
