package suites

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/generate"
)

// Arguments that break what the tool shows as its inputSchema.
// checks__invoke__invoke_arguments are the checks of this file.
var checks__invoke__invoke_arguments = []Check{
	{ID: "invoke/invalid-arguments-400", Sees: Site, Generated: true, Run: chk__invoke__invalidArguments400, WithoutSite: refusesBrokenArguments},
	{ID: "invoke/invalid-arguments-named", Sees: Site, Run: chk__invoke__invalidArgumentsNamed},
}

func chk__invoke__invalidArguments400(ctx context.Context, t *T) {
	for _, c := range t.brokenArguments(ctx) {
		refusal := BeRefused(400, "invalid_params")
		if len(c.Value.(map[string]any)) == 0 {
			refusal = HaveStatus(400) // invoke/empty-arguments judges the code for {}
		}
		kind := func(v any) bool { arguments, ok := v.(map[string]any); return ok && len(arguments) > 0 && c.Breaks(v) }
		t.For(Agent, c.Name, func() {
			put := t.putArguments(ctx, c.Name)
			r, note := t.smallest(c.Case, kind, c.Fault, put(c.Value), put, refusal)
			t.Expect(r).To(refusal, note)
			t.Expect(r).To(HaveRunNothing(), note)
		})
	}
}

func chk__invoke__invalidArgumentsNamed(ctx context.Context, t *T) {
	var single, several []toolCase
	for _, tool := range t.strictTools(ctx, well...) {
		wrong := tool.wrongTypes()
		for _, c := range wrong {
			single = append(single, toolCase{tool, c})
		}
		if len(wrong) > 1 {
			several = append(several, toolCase{tool, generate.Case{What: severalAtOnce, Value: tool.allBroken(wrong)}})
		}
	}
	judged := 0
	for _, c := range slices.Concat(t.fairly(single, t.cases*4/5), t.fairly(several, t.cases/5)) {
		t.For(Agent, c.Name, func() {
			r := t.As(Agent).Invoke(ctx, c.Name, c.Value)
			if r.Status != 400 {
				return // invoke/invalid-arguments-400 judges that
			}
			judged++
			told := NameParameter(c.Parameter())
			if c.What == severalAtOnce {
				told = NameAll(c.wrongNames())
			}
			t.Expect(r).To(told, c.What)
		})
	}
	if judged == 0 {
		NotTestable("no invalid argument is refused with 400 (invoke/invalid-arguments-400 judges that)")
	}
}

// severalAtOnce is what is wrong with arguments of which several parameters are.
const severalAtOnce = "several at once"

// wrongTypes are the invalid arguments in which one parameter as a whole has a wrong type, once for each parameter.
func (t strictTool) wrongTypes() []generate.Case {
	var wrong []generate.Case
	for _, c := range t.Broken() {
		if strings.HasPrefix(c.What, "type ") && strings.Count(c.What, "/") == 1 && (len(wrong) == 0 || wrong[len(wrong)-1].Parameter() != c.Parameter()) {
			wrong = append(wrong, c)
		}
	}
	return wrong
}

// allBroken are arguments in which every parameter that can have a wrong type has one.
func (t strictTool) allBroken(wrong []generate.Case) map[string]any {
	arguments := maps.Clone(t.Plain().(map[string]any))
	for _, c := range wrong {
		arguments[c.Parameter()] = c.Value.(map[string]any)[c.Parameter()]
	}
	return arguments
}

// wrongNames are the parameters that can have a wrong type.
func (t strictTool) wrongNames() []string {
	var names []string
	for _, c := range t.wrongTypes() {
		names = append(names, c.Parameter())
	}
	return names
}

// NameParameter matches a refusal whose error.data says which parameter was wrong, what was expected and what was
// received: as an object of these members, or a list of such.
func NameParameter(name string) OmegaMatcher {
	return Meet(fmt.Sprintf("error.data {parameter: %q, expected, received}", name), func(a *Response) string {
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
	return Meet(fmt.Sprintf("error.data to name %s", strings.Join(names, ", ")), func(a *Response) string {
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
		for name, member := range inOrder(v) {
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
