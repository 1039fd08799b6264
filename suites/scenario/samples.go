// Package scenario holds what several areas check with: tools of the site by what they do, generated arguments for them,
// requests that must be refused, sequences of requests, and sites that change. It sends requests and waits; what must come
// of them is for the area to say.
package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// JSON-RPC codes that mean something to a bridge.
const (
	RPCDenied         = -32600
	rpcMethodNotFound = -32601
	RPCInvalidParams  = -32602
	RPCInternalError  = -32603
)

// InvokeWith gives the function that invokes a tool by name with the arguments.
func InvokeWith(c check.Client, arguments any) func(ctx context.Context, name string) *check.Response {
	return func(ctx context.Context, name string) *check.Response { return c.Invoke(ctx, name, arguments) }
}

// Fails is the JSON-RPC error with which the method fails: its own, or what Drupal makes of an exception.
func (s Sample) Fails() fixtures.RPCError {
	if s.Behaviour.Kind == fixtures.Throw {
		return fixtures.RPCError{Code: RPCInternalError, Message: "Internal Error"}
	}
	return *s.Behaviour.Error
}

// Failing lists the agent's tools that fail with a code that says nothing but that they failed.
func Failing(t *check.T) []Sample {
	return slices.DeleteFunc(MustFind(t, check.Agent, fixtures.Fail, fixtures.Throw), func(s Sample) bool {
		switch s.Fails().Code {
		case RPCDenied, rpcMethodNotFound, RPCInvalidParams:
			return true
		}
		return false
	})
}

// NoSuchTool is a name that no tool has.
const NoSuchTool = "no.such.tool"

// Sample is a method of the site with the name under which the bridge lists it and the least arguments that it takes.
type Sample struct {
	*fixtures.Method
	Name      string
	Arguments map[string]any
}

// Samples lists the tools that the caller sees and that do one of the kinds, in site order: those that response at once,
// take arguments by name, and whose required ones a value can be generated for. Left out are those that refuse even an
// empty params object, that the caller sees and may not run, and whose name cannot be foretold.
func Samples(t *check.T, who check.Identity, kinds ...fixtures.Kind) []Sample {
	site := t.Drupal.Site()
	user, visible := check.UserOf(site, who), t.Visible(who)
	if !site.Holds(user, fixtures.UseJSONRPC) {
		return nil
	}
	var found []Sample
	for i := range site.Methods {
		m := &site.Methods[i]
		name := t.ToolName(m.ID)
		if !slices.Contains(kinds, m.Behaviour.Kind) || m.Behaviour.Sleep > 0 || m.Unchecked || m.ByPosition || m.NullParams ||
			!site.MayRun(user, m) || CountRuns(visible, name) != 1 {
			continue
		}
		if arguments, ok := leastArguments(m); ok {
			found = append(found, Sample{m, name, arguments})
		}
	}
	return found
}

// Sampled are the rows that a run with --sample tests, spread over all; else all.
func Sampled[T any](t *check.T, all []T) []T {
	n := t.Sample
	if n == 0 || len(all) <= n {
		return all
	}
	some := make([]T, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}

func CountRuns(list []string, s string) int {
	n := 0
	for _, item := range list {
		if item == s {
			n++
		}
	}
	return n
}

// MustFind is samples for checks that need one at least.
func MustFind(t *check.T, who check.Identity, kinds ...fixtures.Kind) []Sample {
	found := Samples(t, who, kinds...)
	if len(found) == 0 {
		check.NotTestable(fmt.Sprintf("the site %s has no tool of the kind that it needs (%v) for %s", t.Drupal.Site().Name, kinds, who))
	}
	return found
}

// InvokeEach is the table of invokes of each tool with the least arguments that it takes.
func InvokeEach(ctx context.Context, t *check.T, who check.Identity, tools []Sample) *check.Table {
	return t.Table(len(tools), func(i int) *check.Response { return t.As(who).Invoke(ctx, tools[i].Name, tools[i].Arguments) }).
		Shared(func(i int) string {
			return fmt.Sprintf("%s %s %s", who, tools[i].Name, client.Encode(tools[i].Arguments))
		})
}

// SucceedingKinds are the kinds of behaviour that succeed whatever valid arguments they get.
var SucceedingKinds = []fixtures.Kind{fixtures.Echo, fixtures.Value, fixtures.Count, fixtures.Runs, fixtures.WhoAmI, fixtures.Lookup,
	fixtures.Pick, fixtures.Types, fixtures.Concat}

// leastArguments generates the required arguments of a method.
func leastArguments(m *fixtures.Method) (map[string]any, bool) {
	arguments := map[string]any{}
	for _, p := range m.Params {
		if !p.Required {
			continue
		}
		schema, err := exact.Parse(p.Resolved())
		if err != nil || p.Drupal != nil {
			return nil, false
		}
		arguments[p.Name] = generate.Example(schema)
	}
	return arguments, true
}

// echoing is a tool of the agent's that gives back its arguments, and one required string parameter of it.
type echoing struct {
	fixtures.Method
	Param string
}

func (e echoing) Arguments(value any) check.Args { return check.Args{e.Param: value} }

// EchoTool is findEcho for checks that need one.
func EchoTool(t *check.T) echoing {
	tool, ok := FindEcho(t)
	if !ok {
		check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that echoes one required string")
	}
	return tool
}

// FindEcho finds a tool that echoes and has exactly one required parameter, a plain string.
func FindEcho(t *check.T) (tool echoing, ok bool) {
	for _, m := range AgentTools(t) {
		var required []fixtures.Param
		for _, p := range m.Params {
			if p.Required {
				required = append(required, p)
			}
		}
		if m.Behaviour.Kind == fixtures.Echo && !m.ByPosition && len(required) == 1 &&
			strings.ReplaceAll(string(required[0].Schema), " ", "") == `{"type":"string"}` {
			return echoing{*m, required[0].Name}, true
		}
	}
	return echoing{}, false
}

// FailingTool finds a tool that the agent may run without arguments and that fails with a JSON-RPC code of its own.
func FailingTool(t *check.T) *fixtures.Method {
	for _, m := range AgentTools(t) {
		if m.Behaviour.Kind == fixtures.Fail && m.Behaviour.Sleep == 0 && len(m.Params) == 0 && m.Behaviour.Error.Code != -32602 &&
			m.Behaviour.Error.Code != -32600 && m.Behaviour.Error.Code != -32601 && m.Behaviour.Error.Code != -32603 && m.Behaviour.Error.Data == nil {
			return m
		}
	}
	check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that fails with a code of its own")
	return nil
}

// HarmlessCall is a call that may be made and has to succeed: with a mock the known tool, without one the first invocation
// that the configuration allows.
func HarmlessCall(ctx context.Context, t *check.T) (call check.Invocation, ok bool) {
	switch {
	case t.Drupal != nil:
		return check.Invocation{Tool: KnownTool(ctx, t), Identity: check.Agent}, true
	}
	i := slices.IndexFunc(t.Invocations, check.Invocation.Succeeds)
	if i < 0 {
		return check.Invocation{}, false
	}
	return t.Invocations[i], true
}

// MustRun returns a harmless call; without one the check is not testable.
func MustRun(ctx context.Context, t *check.T) check.Invocation {
	call, ok := HarmlessCall(ctx, t)
	if !ok {
		check.NotTestable("it would have to run an existing tool: allow one under `invocations`")
	}
	return call
}

// ListOfObjects is a tool of the agent's that needs no arguments, whose result is a list of objects without members that are required;
// nil: there is none.
func ListOfObjects(t *check.T) *fixtures.Method {
	tools := AgentTools(t)
	i := slices.IndexFunc(tools, func(m *fixtures.Method) bool {
		if m.Output == nil || slices.ContainsFunc(m.Params, func(p fixtures.Param) bool { return p.Required }) {
			return false
		}
		output, _ := exact.MustParse(m.Output).(map[string]any)
		items, _ := output["items"].(map[string]any)
		return output["type"] == "array" && items["type"] == "object" && items["required"] == nil
	})
	if i < 0 {
		return nil
	}
	return tools[i]
}
