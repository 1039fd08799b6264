package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func invalidArguments400(ctx context.Context, t *check.T) {
	cases := slices.DeleteFunc(scenario.BrokenArguments(ctx, t), func(c scenario.ToolCase) bool { return siteMayAccept(t, c.What, c.Value, c.BreaksAside(unread...)) })
	responses := scenario.InvokeCases(ctx, t, cases)
	for i, c := range cases {
		refusal := match.BeRefused(400, "invalid_params")
		if len(c.Value.(map[string]any)) == 0 {
			refusal = match.HaveStatus(400) // the code for {} is open: missing_parameter is one
		}
		kind := func(v any) bool {
			arguments, ok := v.(map[string]any)
			return ok && len(arguments) > 0 && c.Breaks(v) && !siteMayAccept(t, c.What, v, c.BreaksAside(unread...))
		}
		t.For(check.Agent, c.Name, func() {
			r, note := smallest(t, c.Case, kind, c.Fault, responses.Response(i), invokeWith(ctx, t, c.Name), refusal)
			t.Expect(r).To(refusal, note)
			t.Expect(r).To(match.HaveRunNothing(t.Upstream), note)
		})
	}
}

func undeclaredArgument(ctx context.Context, t *check.T) {
	if echo, ok := scenario.FindEcho(t); ok {
		wrong := t.As(check.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments(map[string]any{"no": "string"}))
		wrong.MustMeet(match.BeRefused(400, "invalid_params"), "invoke/invalid-arguments-400")
	}
	accepted := 0
	for _, call := range scenario.UndeclaredArguments(t, t.As(check.Agent).MustListShared(ctx).Tools()) {
		send := invokeWith(ctx, t, call.Tool)
		if send(call.Valid).Status != http.StatusOK {
			continue // invoke/answers-result and others test that
		}
		accepted++
		t.Row(check.Agent, call.Tool, "an argument that is not declared in "+call.Where, func() {
			t.Drupal.Mark()
			r := send(call.Extra)
			t.Expect(r).To(match.BeRefused(400, "invalid_params"))
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
	if accepted == 0 {
		check.BlockedBy(check.Finding{Subject: "no tool with a closed inputSchema accepts arguments that fit it"}, "invoke/answers-result", "invoke/arguments-forwarded")
	}
}

func invalidArgumentsNamed(ctx context.Context, t *check.T) {
	var missing, single, several []scenario.ToolCase
	sent := map[string][]generate.Case{} // by invoke/invalid-arguments-400, of each tool
	for _, c := range scenario.BrokenArguments(ctx, t) {
		if sent[c.Name] = append(sent[c.Name], c.Case); c.OfOneParameter() {
			single = append(single, c)
		}
	}
	for _, tool := range scenario.StrictTools(ctx, t, scenario.SucceedingKinds...) {
		for _, c := range tool.Broken() {
			if isMissing(c) {
				missing = append(missing, scenario.ToolCase{StrictTool: tool, Case: c})
			}
		}
		wrong := tool.WrongTypes()
		shared := scenario.WrongTypes(sent[tool.Name])
		if len(shared) == 0 {
			shared = wrong[:min(len(wrong), 1)]
		}
		for _, c := range shared {
			single = append(single, scenario.ToolCase{StrictTool: tool, Case: c})
		}
		if len(wrong) > 1 && t.Claims("eager-validation") { // Drupal's validator stops at the first
			several = append(several, scenario.ToolCase{StrictTool: tool, Case: generate.Case{What: severalAtOnce, Value: allBroken(tool, wrong)}})
		}
	}
	tested := 0
	cases := slices.Concat(missing[:min(len(missing), 1)], scenario.SampleEvenly(t, single, t.Cases*9/10),
		scenario.SampleEvenly(t, several, t.Cases/10), missingBeside(several))
	responses := scenario.InvokeCases(ctx, t, cases)
	for i, c := range cases {
		t.For(check.Agent, c.Name, func() {
			r := responses.Response(i)
			if r.Status != 400 {
				return // invoke/invalid-arguments-400 tests that
			}
			tested++
			named := nameParameter(c)
			if c.What == severalAtOnce {
				named = nameAll(wrongNames(c.StrictTool))
			}
			t.Expect(r).To(named, c.What)
		})
	}
	if tested == 0 {
		check.BlockedBy(check.Finding{Subject: "no invalid argument is refused with 400"}, "invoke/invalid-arguments-400")
	}
}

// severalAtOnce names the case of arguments with several invalid parameters.
const severalAtOnce = "several at once"

// allBroken returns arguments in which every parameter that can have a wrong type has one.
func allBroken(t scenario.StrictTool, wrong []generate.Case) map[string]any {
	arguments := maps.Clone(t.Plain().(map[string]any))
	for _, c := range wrong {
		arguments[c.Parameter()] = c.Value.(map[string]any)[c.Parameter()]
	}
	return arguments
}

// missingBeside is the case of a tool's arguments in which a required parameter is missing and others are wrong; none where there are
// too few. Some validators look no further where one is missing.
func missingBeside(several []scenario.ToolCase) []scenario.ToolCase {
	for _, c := range several {
		broken := c.Broken()
		if i := slices.IndexFunc(broken, isMissing); i >= 0 && len(c.WrongTypes()) > 2 {
			arguments := allBroken(c.StrictTool, c.WrongTypes())
			delete(arguments, broken[i].Parameter())
			c.Value = arguments
			return []scenario.ToolCase{c}
		}
	}
	return nil
}

// isMissing reports whether a case lacks a parameter that is required.
func isMissing(c generate.Case) bool {
	return strings.HasPrefix(c.What, "required at /") && strings.Count(c.What, "/") == 1
}

// wrongNames are the parameters that can have a wrong type.
func wrongNames(t scenario.StrictTool) []string {
	var names []string
	for _, c := range t.WrongTypes() {
		names = append(names, c.Parameter())
	}
	return names
}

// isAnother reports whether the type that a bridge says it has received is that of another scalar: what languages call lists, objects
// and null differs.
func isAnother(received, sent any) bool {
	own, number := "", "number integer"
	switch sent.(type) {
	case string:
		own = "string"
	case bool:
		own = "boolean"
	case json.Number:
		own = number
	}
	named, _ := received.(string)
	return own != "" && named != sent && slices.Contains(strings.Fields("string boolean "+number), named) && !strings.Contains(own, named)
}

// nameParameter matches a refusal whose error.data names the invalid parameter, what was expected and what was received:
// an object with these members, or a list of such objects. What was received may be the value itself; of a missing one there is none.
func nameParameter(c scenario.ToolCase) OmegaMatcher {
	name := c.Parameter()
	sent, given := c.Value.(map[string]any)[name]
	says := func(v any) bool { return v != nil && v != "" }
	return match.Conform(fmt.Sprintf("error.data {parameter: %q, expected, received}", name), func(r *check.Response) string {
		for v := range exact.Values(errorData(r)) {
			detail, _ := v.(map[string]any)
			parameter, _ := detail["parameter"].(string)
			received, shown := detail["received"]
			if isNamed(parameter, name) && isAnother(received, sent) {
				return fmt.Sprintf("received %q of %s", received, exact.Short(sent))
			}
			if isNamed(parameter, name) && says(detail["expected"]) && (!given || shown && (says(received) || !says(sent))) {
				return ""
			}
		}
		return "error.data " + exact.Short(errorData(r))
	})
}

// isNamed reports whether a text contains the name of a parameter, or a JSON pointer to it (RFC 6901).
func isNamed(text, name string) bool {
	return strings.Contains(text, name) || strings.Contains(ofPointer.Replace(text), name)
}

var ofPointer = strings.NewReplacer("~1", "/", "~0", "~")

// nameAll matches a refusal whose error.data names every one of the parameters.
func nameAll(names []string) OmegaMatcher {
	return match.Conform(fmt.Sprintf("error.data to name %s", strings.Join(names, ", ")), func(r *check.Response) string {
		texts := match.StringsIn(errorData(r))
		for _, name := range names {
			if !slices.ContainsFunc(texts, func(s string) bool { return isNamed(s, name) }) {
				return fmt.Sprintf("no %s in %s", name, exact.Short(errorData(r)))
			}
		}
		return ""
	})
}
