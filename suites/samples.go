package suites

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/generate"
)

// noSuchTool is a name that no tool has.
const noSuchTool = "no.such.tool"

// sample is a method of the site with the name under which the bridge lists it and the least arguments that it takes.
type sample struct {
	*fixtures.Method
	Name      string
	Arguments map[string]any
}

// samples lists the tools that the caller sees and that do one of the kinds, in site order: those that answer at once,
// take arguments by name, and whose required ones a value can be made up for. Left out are those that refuse even an
// empty params object, that the caller sees and may not run, and whose name cannot be foretold.
func (t *T) samples(who Identity, kinds ...fixtures.Kind) []sample {
	site := t.Drupal.Site()
	user, visible := userOf(site, who), t.Visible(who)
	if !site.Holds(user, fixtures.UseJSONRPC) {
		return nil
	}
	var found []sample
	for i := range site.Methods {
		m := &site.Methods[i]
		name := t.ToolName(m.ID)
		if !slices.Contains(kinds, m.Behaviour.Kind) || m.Behaviour.Sleep > 0 || m.Unchecked || m.ByPosition || m.NullParams ||
			!site.MayRun(user, m) || count(visible, name) != 1 {
			continue
		}
		if arguments, ok := leastArguments(m); ok {
			found = append(found, sample{m, name, arguments})
		}
	}
	return found
}

func count(list []string, s string) int {
	n := 0
	for _, item := range list {
		if item == s {
			n++
		}
	}
	return n
}

// mustFind is samples for checks that need one at least.
func (t *T) mustFind(who Identity, kinds ...fixtures.Kind) []sample {
	found := t.samples(who, kinds...)
	if len(found) == 0 {
		NotTestable(fmt.Sprintf("the site %s has no tool of the kind that it needs (%v) for %s", t.Drupal.Site().Name, kinds, who))
	}
	return found
}

// well are the kinds of behaviour that succeed whatever valid arguments they get.
var well = []fixtures.Kind{fixtures.Echo, fixtures.Value, fixtures.Count, fixtures.Runs, fixtures.WhoAmI, fixtures.Lookup, fixtures.Pick, fixtures.Types, fixtures.Concat}

// leastArguments makes up the required arguments of a method.
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
	param string
}

func (e echoing) arguments(value any) Args { return Args{e.param: value} }

// echoTool is findEcho for checks that need one.
func (t *T) echoTool() echoing {
	tool, ok := t.findEcho()
	if !ok {
		NotTestable("the site " + t.Drupal.Site().Name + " has no tool that echoes one required string")
	}
	return tool
}

// findEcho finds a tool that echoes and has exactly one required parameter, a plain string.
func (t *T) findEcho() (tool echoing, ok bool) {
	for _, m := range t.agentTools() {
		var required []fixtures.Param
		for _, p := range m.Params {
			if p.Required {
				required = append(required, p)
			}
		}
		if m.Behaviour.Kind == fixtures.Echo && !m.ByPosition && len(required) == 1 && strings.ReplaceAll(string(required[0].Schema), " ", "") == `{"type":"string"}` {
			return echoing{*m, required[0].Name}, true
		}
	}
	return echoing{}, false
}

// failingTool finds a tool that the agent may run without arguments and that fails with a JSON-RPC code of its own.
func (t *T) failingTool() *fixtures.Method {
	for _, m := range t.agentTools() {
		if m.Behaviour.Kind == fixtures.Fail && m.Behaviour.Sleep == 0 && len(m.Params) == 0 && m.Behaviour.Error.Code != -32602 &&
			m.Behaviour.Error.Code != -32600 && m.Behaviour.Error.Code != -32601 && m.Behaviour.Error.Code != -32603 && m.Behaviour.Error.Data == nil {
			return m
		}
	}
	NotTestable("the site " + t.Drupal.Site().Name + " has no tool that fails with a code of its own")
	return nil
}

// harmless is a call that may be made and has to succeed: with a mock the known tool, without one the first invocation
// that the configuration allows.
func (t *T) harmless(ctx context.Context) (call Invocation, ok bool) {
	switch {
	case t.Drupal != nil:
		return Invocation{Tool: t.KnownTool(ctx), Identity: Agent}, true
	}
	i := slices.IndexFunc(t.invocable, Invocation.succeeds)
	if i < 0 {
		return Invocation{}, false
	}
	return t.invocable[i], true
}

// mustRun gives a harmless call; without one the check is not testable.
func (t *T) mustRun(ctx context.Context) Invocation {
	call, ok := t.harmless(ctx)
	if !ok {
		NotTestable("it would have to run an existing tool: allow one under `invocations`")
	}
	return call
}

// make invokes as the call says.
func (t *T) make(ctx context.Context, call Invocation) *Response {
	return t.As(call.Identity).InvokeBody(ctx, call.body())
}

// mustTakeInvokes is the twin of every invoke that is malformed: a well-formed one gets through to the tools.
func (t *T) mustTakeInvokes(ctx context.Context) {
	if fault := t.servesOn(ctx); !fault.none() {
		Untestable("its twin, a well-formed invoke, failed: ", fault)
	}
}

// servesOn makes a well-formed invoke and says what is wrong with the answer; "" when it gets through to the tools.
// Where no tool may be run, it must get as far as a tool that is not there.
func (t *T) servesOn(ctx context.Context) Finding {
	if call, ok := t.harmless(ctx); ok {
		if r := t.make(ctx, call); r.Status != http.StatusOK {
			return mismatch(r.Subject(), "a success", r.Outcome())
		}
		return Finding{}
	}
	if r := t.As(Agent).Invoke(ctx, noSuchTool, Args{}); r.Status != http.StatusNotFound {
		return mismatch(r.Subject(), "404", r.Outcome())
	}
	return Finding{}
}

// mark makes Runs and Calls forget what came before, where there is a site to see.
func (t *T) mark() {
	if t.Upstream != nil {
		t.Upstream.Mark()
	}
}
