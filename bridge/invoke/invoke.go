// Package invoke runs a tool for a caller: it finds the tool among those that the caller has, checks the arguments,
// calls the site, and says in the bridge's own words what came of it. It knows neither HTTP nor MCP; both fronts use
// it. The caller's arguments and the site's result pass through as the bytes that they are.
package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/bridgecheck/bridgecheck/bridge/audit"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/filter"
	"github.com/bridgecheck/bridgecheck/bridge/oauth"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// OutputCheck says what happens to a result that breaks its tool's output schema.
type OutputCheck string

// The ways: hand it on unchecked, hand it on and log it, or refuse it.
const (
	OutputPass   OutputCheck = "pass"
	OutputWarn   OutputCheck = "warn"
	OutputRefuse OutputCheck = "refuse"
)

// Invoker runs tools. All fields but Limits, Guard and Observe are needed.
type Invoker struct {
	Discovery *discovery.Engine
	Site      *upstream.Client
	Limits    *filter.Limits // of calls; nil: none
	Guard     *oauth.Guard   // of tokens; nil: the site alone says what a token may
	Output    OutputCheck
	Audit     *audit.Log // nil: none
	Logger    *slog.Logger
	Observe   func(kind string) // told of arguments and results that break their schemas: input, output; nil: nobody
}

// Invoke runs the tool of that name with arguments that are a JSON object. view is what the caller may see.
// Faults, in this order: ToolNotFound, AccessDenied by Permit, RateLimited, InvalidParams; then whatever the site did with the call.
func (in *Invoker) Invoke(ctx context.Context, who upstream.Caller, view discovery.View, name string, arguments json.RawMessage) (json.RawMessage, error) {
	tool, err := view.Tool(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := in.Permit(who, tool); err != nil {
		return nil, err
	}
	if in.Limits != nil {
		if err := in.Limits.Allow(who.Account(), name); err != nil {
			return nil, err
		}
	}
	if err := in.check(tool, arguments); err != nil {
		return nil, err
	}
	params, err := parameters(tool, arguments)
	if err != nil {
		return nil, err
	}
	result, err := in.Site.Call(ctx, who, tool.Method, params)
	if err != nil {
		return nil, in.explain(ctx, who, tool, err)
	}
	return in.checkResult(tool, result)
}

// Permit is an AccessDenied fault where the caller's token lacks a scope that the tool asks for.
func (in *Invoker) Permit(who upstream.Caller, tool *catalog.Tool) error {
	if in.Guard == nil || who.Grant.Holder == "" { // on stdio no token is asked for
		return nil
	}
	for _, scope := range tool.Scopes() {
		if !slices.Contains(who.Grant.Scopes, scope) {
			return in.Guard.Insufficient(tool.Name, tool.Scopes())
		}
	}
	return nil
}

// check holds the arguments to the tool's input schema, before the site is called.
func (in *Invoker) check(tool *catalog.Tool, arguments json.RawMessage) error {
	input, err := tool.Input()
	if err != nil {
		// The schema was checked when the tool was listed; if it still cannot be compiled, the site decides.
		in.Logger.Error("input schema cannot be compiled", "tool", tool.Name, "error", err)
		return nil
	}
	value, err := schema.Decode(arguments)
	if err != nil {
		return fault.New(fault.InvalidParams, "The arguments of %s cannot be read.", tool.Name).Because(err)
	}
	if members, ok := value.(map[string]any); ok {
		dropOptionalNulls(members, tool.Required)
	}
	violations := input.Validate(value)
	if len(violations) == 0 {
		return nil
	}
	in.observe("input")
	return invalidArguments(tool.Name, violations)
}

// dropOptionalNulls takes null for an optional parameter as Drupal does: it is not there.
func dropOptionalNulls(members map[string]any, required []string) {
next:
	for name, v := range members {
		if v != nil {
			continue
		}
		for _, r := range required {
			if r == name {
				continue next
			}
		}
		delete(members, name)
	}
}

// checkResult holds a result to the tool's output schema, where that is asked for.
func (in *Invoker) checkResult(tool *catalog.Tool, result json.RawMessage) (json.RawMessage, error) {
	if in.Output != OutputWarn && in.Output != OutputRefuse {
		return result, nil
	}
	output, err := tool.Output()
	if err != nil || output == nil {
		return result, nil
	}
	conforming, violations := output.Conform(result)
	if len(violations) == 0 {
		return conforming, nil
	}
	in.observe("output")
	in.Logger.Warn("result breaks the output schema", "tool", tool.Name, "parameter", violations[0].Parameter, "expected", violations[0].Expected)
	if in.Output == OutputWarn {
		return result, nil
	}
	e := fault.New(fault.ExecutionError, "The result of %s does not conform to its output schema: %s", tool.Name, sentence(violations))
	e.Data = violationData(violations)
	return nil, e
}

func (in *Invoker) observe(kind string) {
	if in.Observe != nil {
		in.Observe(kind)
	}
}

// parameters gives the arguments as the method takes them: by name as they are, by position in the method's order.
func parameters(tool *catalog.Tool, arguments json.RawMessage) ([]byte, error) {
	if tool.Positional == nil {
		return arguments, nil
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &byName); err != nil {
		return nil, fmt.Errorf("cannot read checked arguments: %w", err)
	}
	params, missing := []byte{'['}, ""
	for i, name := range tool.Positional {
		value, ok := byName[name]
		switch {
		case !ok:
			if missing == "" {
				missing = name
			}
			continue
		case missing != "":
			return nil, invalidArguments(tool.Name, []schema.Violation{{
				Parameter: missing, Expected: "a value, for " + name + " follows it by position", Received: "nothing",
			}})
		case i > 0:
			params = append(params, ',')
		}
		params = append(params, value...)
	}
	return append(params, ']'), nil
}
