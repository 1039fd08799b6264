// Package invoke runs a tool for a caller: it finds the tool among those that the caller has, checks the arguments,
// calls the site, and says in the bridge's own words what came of it. It knows neither HTTP nor MCP; both fronts use
// it. The caller's arguments, but for integers in the spelling of other numbers, and the site's result pass through as the bytes
// that they are.
package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/oauth"
	"github.com/bridgecheck/bridgecheck/bridge/observe"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
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

// resultPause is how long a result waits before it asks again for a place to be checked, where too many wait already.
const resultPause = 20 * time.Millisecond

// Invoker runs tools. All fields but Rates, Work, Validator, Guard and Observe are needed.
type Invoker struct {
	Discovery *discovery.Engine
	Site      *upstream.Client
	Rates     *throttle.Rates   // of calls; nil: none
	Work      *fair.Work        // on long documents; nil: any amount
	Validator *schema.Validator // of arguments and results; nil: each is bounded by itself only
	Guard     *oauth.Guard      // of tokens; nil: the site alone says what a token may
	Output    OutputCheck
	Audit     *observe.Audit // nil: none
	Logger    *slog.Logger
	Observe   func(kind string) // receives arguments and results that break their schemas: input, output; nil: none
}

// Invoke runs the tool of that name with arguments that are a JSON object. view is what the caller may see.
// Faults, in this order: ToolNotFound, AccessDenied by Permit, RateLimited, InvalidParams; then whatever the site did with the call.
func (in *Invoker) Invoke(ctx context.Context, who caller.Caller, view discovery.View, name string, arguments json.RawMessage) (json.RawMessage, error) {
	tool, err := view.Tool(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := in.Permit(who, tool); err != nil {
		return nil, err
	}
	if in.Rates != nil {
		if err := in.Rates.Allow(who.Account(), name); err != nil {
			return nil, err
		}
	}
	if arguments, err = in.check(ctx, who, tool, arguments); err != nil {
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
	return in.checkResult(ctx, who, tool, result)
}

// Permit is an AccessDenied fault where the caller's token lacks a scope that the tool asks for.
func (in *Invoker) Permit(who caller.Caller, tool *catalog.Tool) error {
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

// check checks the arguments against the tool's input schema, before the site is called, and gives them as the site takes them.
func (in *Invoker) check(ctx context.Context, who caller.Caller, tool *catalog.Tool, arguments json.RawMessage) (json.RawMessage, error) {
	input, err := tool.Input()
	if err != nil {
		// The schema was checked when the tool was listed; if it still cannot be compiled, the site decides.
		in.Logger.Error("input schema cannot be compiled", "tool", tool.Name, "error", err)
		return arguments, nil
	}
	taken, violations, err := in.Validator.ValidateArguments(ctx, who.Owner(), input, arguments, tool.Required)
	switch {
	case errors.Is(err, schema.ErrTooMuch):
		violations = tooMuch
	case err != nil:
		return nil, unchecked(err)
	case len(violations) == 0:
		return taken, nil
	}
	in.observe("input")
	return nil, invalidArguments(tool.Name, violations)
}

// Turn waits until a document of so many bytes may be taken apart; done must be called when it is. Long documents take turns
// among themselves, so that they leave processors to the others.
func (in *Invoker) Turn(ctx context.Context, who caller.Caller, bytes int) (done func(), err error) {
	if done, err = in.Work.Enter(ctx, who.Owner(), bytes); err != nil {
		return nil, unchecked(err)
	}
	return done, nil
}

// tooMuch is the violation of a value that would take too long to check.
var tooMuch = []schema.Violation{{
	Expected: "a value that can be checked in bounded time", Received: "one that is too large or too deep for its schema",
}}

// unchecked says why a value was not checked.
func unchecked(err error) error {
	if errors.Is(err, fair.ErrFull) {
		e := fault.New(fault.Overloaded, "Too many large values wait to be checked; retry in 1 s.").Because(err)
		e.RetryAfter = time.Second
		return e
	}
	return fault.New(fault.Overloaded, "The caller went away while the arguments were checked.").Because(err)
}

// checkResult checks a result against the tool's output schema, where that is asked for.
func (in *Invoker) checkResult(ctx context.Context, who caller.Caller, tool *catalog.Tool, result json.RawMessage) (json.RawMessage, error) {
	if in.Output != OutputWarn && in.Output != OutputRefuse {
		return result, nil
	}
	conforming, violations, err := in.Conform(ctx, who, tool, result)
	if err != nil {
		return nil, err
	}
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

// Conform checks a result against the tool's output schema; one without a schema conforms. It gives the result in which
// PHP's [] stands for no object. It waits for its turn for as long as ctx lasts.
func (in *Invoker) Conform(ctx context.Context, who caller.Caller, tool *catalog.Tool, result json.RawMessage) (json.RawMessage, []schema.Violation, error) {
	output, err := tool.Output()
	if err != nil || output == nil {
		return result, nil, nil
	}
	conforming, violations, err := in.Validator.Conform(ctx, who.Owner(), output, result)
	for errors.Is(err, fair.ErrFull) && ctx.Err() == nil { // the method has run: a caller who is told to come again runs it twice
		select {
		case <-ctx.Done():
		case <-time.After(resultPause):
		}
		conforming, violations, err = in.Validator.Conform(ctx, who.Owner(), output, result)
	}
	switch {
	case errors.Is(err, schema.ErrTooMuch):
		return result, tooMuch, nil
	case err != nil:
		return nil, nil, unchecked(err)
	}
	return conforming, violations, nil
}

func (in *Invoker) observe(kind string) {
	if in.Observe != nil {
		in.Observe(kind)
	}
}

// parameters returns the arguments as the method takes them: by name as they are, by position in the method's order.
func parameters(tool *catalog.Tool, arguments json.RawMessage) ([]byte, error) {
	if tool.Positional == nil {
		return arguments, nil
	}
	byName, err := jsondoc.Members(arguments, tool.Positional)
	if err != nil {
		return nil, fmt.Errorf("cannot read checked arguments: %w", err)
	}
	params, missing := []byte{'['}, ""
	for i, name := range tool.Positional {
		value, ok := byName[name]
		switch {
		case !ok:
			missing = cmp.Or(missing, name)
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
