package scenario

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// Shrinkings is how many requests the search for the smallest failing case may take.
const Shrinkings = 60

// Random are the run's for one purpose: the same seed throws the same, whatever else was drawn before.
func Random(t *check.T, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(uint64(t.Seed), h.Sum64()))
}

// StrictTool is a tool that takes arguments generated for its inputSchema.
type StrictTool struct {
	Sample
	*generate.Maker
}

// ToolCase is a case generated for one of the tools.
type ToolCase struct {
	StrictTool
	generate.Case
}

// StrictTools lists the agent's tools of the kinds that take the plain arguments generated for the inputSchema they show:
// the positive controls of all that break it. There are no more of them than there may be cases. What a tool takes is asked once a
// run, and of the first one each time again, for it shows that the bridge still takes any.
func StrictTools(ctx context.Context, t *check.T, kinds ...fixtures.Kind) []StrictTool {
	var tools []StrictTool
	able := RandomSubset(Random(t, "strict"), describedTools(ctx, t, kinds), t.Cases)
	first := t.Table(len(able), func(i int) *check.Response { return t.As(check.Agent).Invoke(ctx, able[i].Name, able[i].Plain()) })
	for i, tool := range able {
		key := check.TakenBy{Tool: tool.Name, Made: tool.Maker}
		taken, asked := t.Taken[key]
		ask := func() {
			if taken = tool.Maker; first.Response(i).IsError() {
				taken = tool.Taken(func(arguments any) bool { return !t.As(check.Agent).Invoke(ctx, tool.Name, arguments).IsError() })
			}
			t.Taken[key] = taken
		}
		if len(tools) == 0 {
			ask()
		} else if !asked {
			t.Unrecorded(ask)
		}
		if taken != nil {
			tools = append(tools, StrictTool{tool.Sample, taken.With(Random(t, tool.Name))})
		}
	}
	if len(tools) == 0 {
		check.NotTestable("no tool takes valid arguments generated for its inputSchema")
	}
	return tools
}

// describedTools are the agent's tools of the kinds for whose inputSchema arguments can be generated.
func describedTools(ctx context.Context, t *check.T, kinds []fixtures.Kind) []StrictTool {
	listed := t.As(check.Agent).MustListShared(ctx)
	var tools []StrictTool
	for _, s := range Samples(t, check.Agent, kinds...) {
		if shown, ok := listed.Find(s.Name); ok && len(s.Params) > 0 {
			made, err := t.Makers.ForArguments(shown.Input())
			if t.LeaveOut(s.Name, "inputSchema", err); err == nil {
				tools = append(tools, StrictTool{s, made})
			}
		}
	}
	return tools
}

// RefusedArguments are the plain arguments that StrictTools found refused, of those kinds. The site may be right to refuse them.
func RefusedArguments(ctx context.Context, t *check.T, kinds ...fixtures.Kind) []ToolCase {
	var refused []ToolCase
	for _, tool := range describedTools(ctx, t, kinds) {
		if taken, asked := t.Taken[check.TakenBy{Tool: tool.Name, Made: tool.Maker}]; asked && taken != tool.Maker {
			refused = append(refused, ToolCase{tool, generate.Case{What: "arguments that fit", Value: tool.Plain()}})
		}
	}
	return refused
}

// EveryCase gathers what can be given of each tool's schema, of every keyword alike up to nineteen twentieths of --cases, and adds what
// is drawn, one tool after the other: a twentieth.
func EveryCase(t *check.T, tools []StrictTool, broken func(StrictTool) []generate.Case, drawn func(StrictTool) (generate.Case, bool)) []ToolCase {
	var all []ToolCase
	for _, tool := range tools {
		for _, c := range broken(tool) {
			all = append(all, ToolCase{tool, c})
		}
	}
	all = SampleEvenly(t, all, t.Cases*19/20)
	for n := range min(t.Cases-len(all), (t.Cases+19)/20) {
		if c, ok := drawn(tools[n%len(tools)]); ok {
			all = append(all, ToolCase{tools[n%len(tools)], c})
		}
	}
	return all
}

// InvokeCases is the table of the agent's invokes with generated arguments.
func InvokeCases(ctx context.Context, t *check.T, cases []ToolCase) *check.Table {
	return t.Table(len(cases), func(i int) *check.Response { return t.As(check.Agent).Invoke(ctx, cases[i].Name, cases[i].Value) }).
		Shared(func(i int) string {
			return fmt.Sprintf("%s %s %s", check.Agent, cases[i].Name, client.Encode(cases[i].Value))
		})
}

// BrokenArguments are generated for the tools that the agent may run, each breaking the inputSchema in one place.
func BrokenArguments(ctx context.Context, t *check.T) []ToolCase {
	broken := EveryCase(t, StrictTools(ctx, t, SucceedingKinds...), func(tool StrictTool) []generate.Case { return tool.Broken() }, StrictTool.DrawnBroken)
	if len(broken) == 0 {
		check.NotTestable("the bridge lists no tool whose inputSchema can be broken")
	}
	return broken
}

// SampleEvenly are n of all the cases in their order: of every keyword as many as there are or as many as of the others, first
// those that differ in more than the place where they stand; which ones, the seed says.
func SampleEvenly(t *check.T, all []ToolCase, n int) []ToolCase {
	if len(all) <= n {
		return all
	}
	fresh, repeated, seen := map[string][]int{}, map[string][]int{}, map[string]bool{}
	for _, at := range Random(t, "pick").Perm(len(all)) {
		keyword, kind := all[at].kind()
		if key := keyword + kind; seen[key] {
			repeated[keyword] = append(repeated[keyword], at)
		} else {
			seen[key] = true
			fresh[keyword] = append(fresh[keyword], at)
		}
	}
	var picked []int
	for _, groups := range []map[string][]int{fresh, repeated} {
		for round, left := 0, true; left && len(picked) < n; round++ {
			left = false
			for _, group := range check.InOrder(groups) {
				if round < len(group) && len(picked) < n {
					picked, left = append(picked, group[round]), true
				}
			}
		}
	}
	slices.Sort(picked)
	chosen := make([]ToolCase, n)
	for i, at := range picked {
		chosen[i] = all[at]
	}
	return chosen
}

// kind is the keyword that a case is about, with what stands where a plain value of which type stood.
func (c ToolCase) kind() (keyword, value string) {
	keyword, place, _ := strings.Cut(c.What, " at ")
	if slices.ContainsFunc(c.Params, func(p fixtures.Param) bool { // which a bridge may put in the place of what is missing
		if c.What != "required at /"+p.Name && c.What != "required but null at /"+p.Name {
			return false
		}
		schema, _ := exact.Parse(p.Schema)
		_, has := exact.Lookup(schema, "/default")
		return has
	}) {
		return "default", ""
	}
	if keyword, value, _ = strings.Cut(keyword, " "); keyword == "null" {
		return keyword, ""
	}
	is, _ := exact.Lookup(c.Value, place)
	was, _ := exact.Lookup(c.Plain(), place)
	if list, ok := is.([]any); ok && len(list) > 0 && strings.HasSuffix(value, "in the last of many items") {
		is = list[len(list)-1] // which items are before it makes no other kind
	}
	if _, truth := is.(bool); truth && (keyword == "enum" || keyword == "const") && fmt.Sprintf("%T", is) != fmt.Sprintf("%T", was) {
		keyword += " loosely" // a group of its own, so that true in place of 1 is always drawn
	}
	if list, ok := is.([]any); ok && len(list) == 1 && reflect.DeepEqual(list[0], was) {
		return keyword, fmt.Sprintf("%T as a list of it", was)
	}
	if list, ok := was.([]any); ok && len(list) > 0 && reflect.DeepEqual(list[0], is) {
		return keyword, fmt.Sprintf("%T in place of a list of it", is)
	}
	return keyword, fmt.Sprintf("%s %T %s", value, was, client.Encode(is))
}

// WrongTypes are the invalid arguments in which one parameter as a whole has a wrong type, once for each parameter.
func (t StrictTool) WrongTypes() []generate.Case { return WrongTypes(t.Broken()) }

// WrongTypes are those of a tool's invalid arguments in which one parameter as a whole has a wrong type, once for each parameter.
func WrongTypes(broken []generate.Case) []generate.Case {
	var wrong []generate.Case
	for _, c := range broken {
		if strings.HasPrefix(c.What, "type ") && strings.Count(c.What, "/") == 1 && (len(wrong) == 0 || wrong[len(wrong)-1].Parameter() != c.Parameter()) {
			wrong = append(wrong, c)
		}
	}
	return wrong
}

// ofOneParameter are keywords by which a value is wrong by itself, and not what it holds.
var ofOneParameter = []string{"required", "enum", "const", "minimum", "maximum",
	"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
	"minItems", "maxItems", "uniqueItems"}

// OfOneParameter reports whether the value of one parameter is wrong as a whole, so that an error can name nothing else.
func (c ToolCase) OfOneParameter() bool {
	keyword, _, _ := strings.Cut(c.What, " ")
	return slices.Contains(ofOneParameter, keyword) && strings.Count(c.What, "/") == 1
}
