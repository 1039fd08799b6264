package suites

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"bridgecheck/suites/exact"
)

// Arguments that break what the tool shows as its inputSchema.
var _ = Area("invoke", func(b *Bridge) {
	b.Check("invoke/invalid-arguments-400", func(ctx SpecContext) {
		judged := 0
		for _, tool := range b.strictTools(ctx) {
			for _, broken := range tool.invalid {
				judged++
				b.Drupal.Mark()
				r := b.As(Agent).Invoke(ctx, tool.Name, broken.value)
				if len(broken.value.(map[string]any)) > 0 {
					Expect(r).To(BeRefused(400, "invalid_params"), broken.what)
				} else {
					Expect(r).To(HaveStatus(400), broken.what) // invoke/empty-arguments judges the code for {}
				}
				Expect(r).To(HaveRunNothing(), broken.what)
			}
		}
		if judged == 0 {
			NotTestable("the bridge lists no tool whose inputSchema can be broken")
		}
	})

	b.Check("invoke/invalid-arguments-named", func(ctx SpecContext) {
		judged := 0
		for _, tool := range b.strictTools(ctx) {
			for _, broken := range tool.wrongTypes() {
				r := b.As(Agent).Invoke(ctx, tool.Name, broken.value)
				if r.Status != 400 {
					continue // invoke/invalid-arguments-400 judges that
				}
				judged++
				Expect(r).To(NameParameter(broken.parameter), broken.what)
			}
			if all, names := tool.allBroken(); len(names) > 1 {
				r := b.As(Agent).Invoke(ctx, tool.Name, all)
				if r.Status != 400 {
					continue
				}
				judged++
				Expect(r).To(NameAll(names), "several at once")
			}
		}
		if judged == 0 {
			NotTestable("no invalid argument is refused with 400 (invoke/invalid-arguments-400 judges that)")
		}
	})
})

// strictTool is a tool that takes generated arguments, and those that break its inputSchema.
type strictTool struct {
	sample
	generated
}

// strictTools lists the agent's tools that take the valid arguments made up for their inputSchema: the twins of those
// that break it.
func (b *Bridge) strictTools(ctx SpecContext) []strictTool {
	listed := b.As(Agent).MustListAll(ctx)
	var tools []strictTool
	for _, s := range b.samples(Agent, well...) {
		shown, ok := listed.Find(s.Name)
		if !ok || len(s.Params) == 0 {
			continue
		}
		g, ok := generate(shown.Input())
		if !ok || len(g.invalid) == 0 || b.As(Agent).Invoke(ctx, s.Name, g.valid).IsError() {
			continue
		}
		tools = append(tools, strictTool{s, g})
	}
	if len(tools) == 0 {
		NotTestable("no tool takes valid arguments made up for its inputSchema")
	}
	return tools
}

// wrongTypes are the invalid arguments in which one parameter as a whole has a wrong type, once for each parameter.
func (t strictTool) wrongTypes() []breakage {
	var wrong []breakage
	for _, b := range t.invalid {
		if strings.HasPrefix(b.what, "type ") && strings.Count(b.what, "/") == 1 && (len(wrong) == 0 || wrong[len(wrong)-1].parameter != b.parameter) {
			wrong = append(wrong, b)
		}
	}
	return wrong
}

// allBroken are arguments in which every parameter that can have a wrong type has one.
func (t strictTool) allBroken() (arguments map[string]any, names []string) {
	arguments = maps.Clone(t.valid)
	for _, broken := range t.wrongTypes() {
		if object, ok := broken.value.(map[string]any); ok {
			arguments[broken.parameter] = object[broken.parameter]
			names = append(names, broken.parameter)
		}
	}
	return arguments, names
}

// NameParameter matches a refusal whose error.data says which parameter was wrong, what was expected and what was
// received: as an object of these members, or a list of such.
func NameParameter(name string) OmegaMatcher {
	return Meet(fmt.Sprintf("error.data {parameter: %q, expected, received}", name), func(a *Answer) string {
		for _, detail := range details(a.ErrorData()) {
			said, _ := detail["parameter"].(string)
			_, expected := detail["expected"]
			_, received := detail["received"]
			if strings.Contains(said, name) && expected && received {
				return ""
			}
		}
		return "error.data " + exact.Short(a.ErrorData())
	})
}

// details are all objects in an error's data, itself first.
func details(data any) []map[string]any {
	switch data := data.(type) {
	case map[string]any:
		all := []map[string]any{data}
		for _, name := range slices.Sorted(maps.Keys(data)) {
			all = append(all, details(data[name])...)
		}
		return all
	case []any:
		var all []map[string]any
		for _, item := range data {
			all = append(all, details(item)...)
		}
		return all
	}
	return nil
}

// NameAll matches a refusal whose error.data names every one of the parameters.
func NameAll(names []string) OmegaMatcher {
	return Meet(fmt.Sprintf("error.data to name %s", strings.Join(names, ", ")), func(a *Answer) string {
		said := texts(a.ErrorData())
		for _, name := range names {
			if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, name) }) {
				return fmt.Sprintf("nothing of %s in %s", name, exact.Short(a.ErrorData()))
			}
		}
		return ""
	})
}

// texts are all strings in a document, names of members too.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case json.Number:
		return []string{string(v)}
	case map[string]any:
		var all []string
		for name, member := range v {
			all = append(append(all, name), texts(member)...)
		}
		return all
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, texts(item)...)
		}
		return all
	}
	return nil
}
