package suites

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/generate"
	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
)

// What comes back of a method, and what reaches it.
// checks__invoke__invoke are the checks of this file.
var checks__invoke__invoke = []Check{
	{ID: "invoke/answers-result", Sees: Site, Run: chk__invoke__answersResult, WithoutSite: answersAsConfigured},
	{ID: "invoke/arguments-forwarded", Sees: Site, Generated: true, Run: chk__invoke__argumentsForwarded},
	{ID: "invoke/result-exact", Sees: Site, Run: chk__invoke__resultExact},
	{ID: "invoke/null-result", Sees: Site, Run: chk__invoke__nullResult},
	{ID: "invoke/empty-arguments", Sees: Front, Run: chk__invoke__emptyArguments},
	{ID: "invoke/output-matches-schema", Sees: Site, Generated: true, Run: chk__invoke__outputMatchesSchema},
}

func chk__invoke__answersResult(ctx context.Context, t *T) {
	for _, tool := range t.samples(Agent, fixtures.Echo, fixtures.Lookup, fixtures.WhoAmI) {
		if len(tool.Arguments) > 0 {
			t.For(Agent, tool.Name, func() {
				r := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(HaveResult())
				t.Expect(r).To(BeJSON())
			})
		}
	}
	for _, tool := range t.plain() {
		t.For(Agent, tool.Name, func() {
			if r := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments); !r.IsError() { // invoke/empty-arguments judges that
				t.Expect(r).To(HoldInResult(tool.Behaviour.Value))
				t.Expect(r).To(BeJSON())
			}
		})
	}
}

func chk__invoke__argumentsForwarded(ctx context.Context, t *T) {
	listed := t.As(Agent).MustListAll(ctx)
	judged := 0
	for _, c := range forwarded {
		tool, parameter, ok := t.takerOf(listed, c.value)
		if !ok {
			continue
		}
		judged++
		t.Row(Agent, tool.Name, c.what, func() {
			sent := map[string]any{parameter: json.RawMessage(c.value)}
			t.Drupal.Mark()
			r := t.As(Agent).Invoke(ctx, tool.Name, sent)
			t.Expect(r).To(HaveForwarded(tool.ID, encode(sent)))
		})
	}
	if judged == 0 {
		NotTestable("the bridge lists no tool that gives back any argument")
	}
	for _, tool := range t.samples(Agent, fixtures.Echo) {
		if _, shown := listed.Find(tool.Name); shown && tool.hasDefault() {
			t.For(Agent, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(HaveForwarded(tool.ID, encode(tool.Arguments)), "a parameter with a default left out")
			})
		}
	}
	for _, tool := range t.samples(Agent, fixtures.Value) {
		if len(tool.Params) == 0 {
			t.For(Agent, tool.Name, func() {
				t.Drupal.Mark()
				r := t.As(Agent).Invoke(ctx, tool.Name, Args{})
				if !r.IsError() { // invoke/empty-arguments judges that
					t.Expect(r).To(HaveForwarded(tool.ID, []byte("{}")), "no arguments")
				}
			})
			break
		}
	}
	takers := t.strictTools(ctx, fixtures.Echo)
	for _, entry := range takers {
		if c, ok := entry.Emptied(); ok {
			t.For(Agent, entry.Name, func() { t.Expect(t.putArguments(ctx, entry.Name)(c.Value)).To(HaveForwardedTo(entry.ID), c.What) })
		}
	}
	for _, c := range t.everyCase(takers, strictTool.Edges, func(tool strictTool) (generate.Case, bool) { return tool.drawnValid() }) {
		t.For(Agent, c.Name, func() {
			put := t.putArguments(ctx, c.Name)
			r, note := t.smallest(c.Case, c.Fits, c.Fault, put(c.Value), put, HaveForwardedTo(c.ID))
			t.Expect(r).To(HaveForwardedTo(c.ID), note)
		})
	}
}

func chk__invoke__resultExact(ctx context.Context, t *T) {
	t.mustGiveResults(ctx)
	for _, tool := range t.mustFind(Agent, fixtures.Value) {
		if string(tool.Behaviour.Value) == "null" || !fits(tool.Output, tool.Behaviour.Value) || beyondPHP(tool.Behaviour.Value) {
			continue // invoke/null-result and invoke/output-matches-schema judge the first two
		}
		t.For(Agent, tool.Name, func() {
			t.Expect(t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(GiveResult(string(tool.Behaviour.Value)))
		})
	}
}

func chk__invoke__nullResult(ctx context.Context, t *T) {
	if t.Drupal.Site().NullFails {
		NotTestable("on the site " + t.Drupal.Site().Name + " a method that gives null fails")
	}
	t.mustGiveResults(ctx)
	judged := 0
	for _, tool := range t.samples(Agent, fixtures.Value) {
		if string(tool.Behaviour.Value) == "null" && fits(tool.Output, tool.Behaviour.Value) {
			judged++
			t.For(Agent, tool.Name, func() {
				t.Expect(t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(GiveResult("null"))
			})
		}
	}
	if judged == 0 {
		NotTestable("the site " + t.Drupal.Site().Name + " has no tool that gives null")
	}
}

func chk__invoke__emptyArguments(ctx context.Context, t *T) {
	if t.Drupal == nil {
		call := t.mustRun(ctx)
		if call.Arguments != nil && string(call.Arguments) != "{}" {
			NotTestable("it needs a tool that runs without arguments: allow one under `invocations`")
		}
		t.Expect(t.make(ctx, call)).To(BeSuccess())
		return
	}
	judged := 0
	for _, tool := range t.samples(Agent, well...) {
		if len(tool.Arguments) > 0 || tool.Behaviour.Kind == fixtures.Value && !isPlain(tool.Behaviour.Value) {
			continue
		}
		judged++
		t.For(Agent, tool.Name, func() { t.Expect(t.As(Agent).Invoke(ctx, tool.Name, Args{})).To(BeSuccess()) })
	}
	if judged == 0 {
		NotTestable("the site " + t.Drupal.Site().Name + " has no tool without required parameters")
	}
}

func chk__invoke__outputMatchesSchema(ctx context.Context, t *T) {
	t.mustGiveResults(ctx)
	broken := t.failing()[0]
	if r := t.As(Agent).Invoke(ctx, broken.Name, broken.Arguments); r.Code() != "execution_error" || r.Status != http.StatusInternalServerError {
		NotTestable("a method that fails is not answered with 500 execution_error either (invoke/execution-error-500 judges that)")
	}
	judged := 0
	for _, tool := range t.samples(Agent, fixtures.Value) {
		value := tool.Behaviour.Value
		if fits(tool.Output, value) {
			continue
		}
		judged++
		must := BeRefused(500, "execution_error")
		if string(value) == "[]" && fits(tool.Output, fixtures.Raw("{}")) {
			must = GiveEmpty()
		}
		t.For(Agent, tool.Name, func() { t.Expect(t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(must) })
	}
	if judged == 0 {
		NotTestable("the site " + t.Drupal.Site().Name + " has no tool whose result breaks its output schema")
	}
	t.Drupal.restoring()
	for _, round := range t.resultCases(t.resultTools(ctx)) {
		t.together(round)
		for _, c := range round {
			kind, must := c.Fits, HaveResult()
			if !c.fits {
				kind, must = c.Breaks, BeRefused(500, "execution_error")
			}
			t.For(Agent, c.Name, func() {
				r, note := t.smallest(c.Case, kind, c.Fault, t.As(Agent).Invoke(ctx, c.Name, c.Arguments), t.putResult(ctx, c.resultTool), must)
				t.Expect(r).To(must, note)
			})
		}
	}
}

// GiveEmpty matches an invoke answer with PHP's [] where an object is declared, as it came or as what it stands for.
func GiveEmpty() OmegaMatcher {
	return Meet("200 with the result [] or {}", func(a *Response) string {
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

// takerOf finds a tool that gives back its arguments and whose listed inputSchema takes the value alone in one of its
// parameters.
func (t *T) takerOf(listed Listing, value string) (tool sample, parameter string, ok bool) {
	v := must(exact.Parse([]byte(value)))
	for _, s := range t.samples(Agent, fixtures.Echo) {
		shown, listed := listed.Find(s.Name)
		if !listed || len(s.Arguments) > 0 {
			continue
		}
		schema, err := jsonschema.Compile(shown.Input(), jsonschema.Draft7)
		if err != nil {
			continue
		}
		for _, p := range s.Params {
			if schema.Fault(map[string]any{p.Name: v}) == "" {
				return s, p.Name, true
			}
		}
	}
	return sample{}, "", false
}

// hasDefault tells whether an optional parameter declares a default, which is the site's to fill in.
func (s sample) hasDefault() bool {
	return slices.ContainsFunc(s.Params, func(p fixtures.Param) bool {
		schema, _ := published(p.Resolved()).(map[string]any)
		return !p.Required && schema["default"] != nil
	})
}

// plain lists the agent's tools whose result is a text in which nothing can get lost.
func (t *T) plain() []sample {
	plain := slices.DeleteFunc(t.samples(Agent, fixtures.Value), func(s sample) bool { return !isPlain(s.Behaviour.Value) })
	if len(plain) == 0 {
		NotTestable("the site " + t.Drupal.Site().Name + " has no tool with a plain text as its result")
	}
	return plain
}

// mustGiveResults is the twin of all that looks into results: a plain one comes back, in whatever form.
func (t *T) mustGiveResults(ctx context.Context) {
	tool := t.plain()[0]
	judge := HoldInResult(tool.Behaviour.Value)
	r := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)
	if ok, err := judge.Match(r); err != nil || !ok {
		NotTestable("a plain result does not come back (invoke/answers-result judges that): " + judge.FailureMessage(r))
	}
}

// HoldInResult matches an invoke answer, 200 with a `result`, in which a text stands. Its form is judged elsewhere.
func HoldInResult(text fixtures.Raw) OmegaMatcher {
	want := fmt.Sprint(must(exact.Parse(text)))
	return Meet("200 with `result`, and "+string(text)+" in it", func(a *Response) string {
		result, there := a.Member("result")
		if _, err := a.JSON(); err != nil || a.Status != http.StatusOK || !there || !slices.ContainsFunc(texts(result), func(s string) bool { return strings.Contains(s, want) }) {
			return a.Outcome()
		}
		return ""
	})
}

// must is for documents that a check or the site file spells out.
func must(v any, err error) any {
	if err != nil {
		panic(fmt.Sprintf("a check's own document is no JSON: %v", err))
	}
	return v
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
		for _, member := range inOrder(v) {
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

// isPlain tells a text without anything in it that could get lost or changed.
func isPlain(value fixtures.Raw) bool {
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" || len(text) > 100 {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r > '~' || r < ' ' || strings.ContainsRune(`<>&"'\/{}`, r) })
}

// HaveForwardedTo matches an invoke whose arguments reached the method as HaveForwarded says, whatever they were.
func HaveForwardedTo(method string) OmegaMatcher {
	return Meet("the arguments to reach "+method+" as they were sent", func(a *Response) string {
		return forwardFault(a, method, must(exact.Parse(sentArguments(a))))
	})
}

// sentArguments are those in the body of an invoke.
func sentArguments(a *Response) []byte {
	var body struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(a.shown), &body); err != nil {
		panic(fmt.Sprintf("a check's own request is no JSON: %v", err))
	}
	return body.Arguments
}

// HaveForwarded matches an invoke whose arguments reached the method, in one call, equal to those sent.
func HaveForwarded(method string, sent []byte) OmegaMatcher {
	want := must(exact.Parse(sent))
	return Meet("the arguments to reach "+method+" as they were sent", func(a *Response) string { return forwardFault(a, method, want) })
}

// forwardFault says how the arguments of the last call of a method differ from what was sent; "" when they do not.
func forwardFault(a *Response, method string, want any) string {
	calls := a.t.Drupal.Calls(method)
	if len(calls) == 0 {
		return fmt.Sprintf("no call of it on the site, and %s", a.Outcome())
	}
	params := calls[len(calls)-1].Params
	if params == nil {
		params = fixtures.Raw("{}") // JSON-RPC lets them be left out
	}
	got, err := exact.Parse(params)
	if err != nil {
		return "params that " + err.Error()
	}
	if d := exact.Diff(want, got); d != "" {
		return "others " + d
	}
	return ""
}
