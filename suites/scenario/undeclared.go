package scenario

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// undeclared is the name of an argument that no schema declares.
const undeclared = "bridgecheck_undeclared"

// Undeclared is a call whose arguments fit the tool's inputSchema, and the same with one that a closed schema does not
// declare.
type Undeclared struct {
	Tool  string
	Where string // which object is closed: "the arguments", or a parameter
	Valid map[string]any
	Extra map[string]any
}

// UndeclaredArguments are the calls with an undeclared argument of the tools that the agent may call: for each object that
// an inputSchema closes by `additionalProperties: false`, the arguments themselves and those of its parameters that are
// objects. Without a closed schema the check does not apply.
func UndeclaredArguments(t *check.T, tools []check.Tool) []Undeclared {
	samples, extra := MustFind(t, check.Agent, SucceedingKinds...), []any{"x", nil} // null may stand for a member that is not there
	var calls []Undeclared
	for _, tool := range tools {
		i := slices.IndexFunc(samples, func(s Sample) bool { return s.Name == tool.Name() })
		if i < 0 {
			continue
		}
		valid, input := samples[i].Arguments, tool.Input()
		if isClosed(input) {
			calls = append(calls, Undeclared{tool.Name(), "the arguments", valid, exact.With(valid, undeclared, "x")})
		}
		properties, _ := input["properties"].(map[string]any)
		for name, property := range check.InOrder(properties) {
			schema, _ := property.(map[string]any)
			if object, ok := generate.Example(property).(map[string]any); ok && isClosed(schema) {
				calls = append(calls, Undeclared{tool.Name(), name, exact.With(valid, name, object), exact.With(valid, name, exact.With(object, undeclared, extra[len(calls)%len(extra)]))})
			}
		}
	}
	if len(calls) == 0 {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "no inputSchema of a tool that may be called has additionalProperties false"}})
	}
	return calls
}

// isClosed reports whether an object schema by itself refuses a member that it does not declare.
func isClosed(schema map[string]any) bool {
	return exact.Equal(schema["additionalProperties"], false) && schema["patternProperties"] == nil
}
