package mapping

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// delicate is a method with what a bridge easily loses: texts that look like times, numbers or other literals, line ends,
// blanks, null, empty objects, decimals of 16 digits, names that languages reserve, and keywords that few schemas have.
var delicate = fixtures.Method{
	ID:     "content.delicate",
	Usage:  "2024-05-06T07:08:09+02:00",
	Access: []string{fixtures.AdministerSite},
	MCP: &fixtures.Tool{Title: "00123", Annotations: fixtures.Raw(`{"since":"2024-05-06T07:08:09.100+02:00","version":"1.10","stable":"no",
		"empty":{},"none":[],"nested":{"empty":{},"zero":0,"text":"0x1F"},"nothing":"null","unset":null,"escaped":"a\/b\u0026"}`)},
	Output: fixtures.Raw(`{"type":"object","properties":{"when":{"type":"string","default":"2024-05-06T07:08:09+02:00"},"__proto__":{"type":"string","enum":["1","01","1e1"]},
		"options":{"type":"object","default":{}},"mail":{"type":"string","format":"email","maxLength":80},
		"either":{"oneOf":[{"type":"integer","minimum":1},{"type":"null"}]},"list":{"type":"array","items":{"type":"string","pattern":"^a"},"maxItems":3}},
		"additionalProperties":false}`),
	Params: []fixtures.Param{
		{Name: "since", Schema: fixtures.Raw(`{"type":"string","format":"machine-name","default":"2024-05-06T07:08:09.100+02:00"}`), Description: "1e3"},
		{Name: "code", Schema: fixtures.Raw(`{"type":"string","enum":["1","01","1.0","true","null","1e1","0x1F"]}`), Description: "First line\r\nsecond line,  two blanks"},
		{Name: "mixed", Schema: fixtures.Raw(`{"enum":[1,"1","01",0,"0",false,"",true,"true"]}`)},
		{Name: "__proto__", Schema: fixtures.Raw(`{"type":"string","const":"2024-05-06"}`), Description: "true"},
		{Name: "constructor", Schema: fixtures.Raw(`{"type":"object","default":{}}`)},
		{Name: "pair", Schema: fixtures.Raw(`{"type":"array","items":[{"type":"integer"},{"type":"string"}],"additionalItems":false}`)},
		{Name: "some", Schema: fixtures.Raw(`{"type":"array","contains":{"type":"integer"}}`)},
		{Name: "linked", Schema: fixtures.Raw(`{"type":"object","properties":{"a":{},"b":{}},"dependencies":{"a":["b"]},"additionalProperties":{}}`)},
		{Name: "rows", Schema: fixtures.Raw(`{"type":"array","items":{"type":"object","properties":{},"additionalProperties":false}}`)},
		{Name: "either", Schema: fixtures.Raw(`{"anyOf":[{"type":"string"},{"type":"object","properties":{}}]}`)},
		{Name: "share", Schema: fixtures.Raw(`{"type":"number","minimum":0.1234567890123456,"default":1234567.890123456}`)},
		{Name: "2024", Schema: fixtures.Raw(`{"type":"array","default":[]}`), Required: true},
	},
	Behaviour: fixtures.Behaviour{Kind: fixtures.Echo},
}

// plainLines has line ends and blanks in its usage, and elsewhere the text 0, which languages take for none. PHP does so as well:
// Drupal publishes it neither as a usage nor as a parameter's description.
var plainLines = fixtures.Method{ID: "content.lines", Usage: "First line\r\nsecond line,  two blanks", Access: []string{fixtures.AdministerSite},
	MCP: &fixtures.Tool{Title: "0"}, Params: []fixtures.Param{{Name: "text", Schema: fixtures.Raw(`{"type":"object","properties":{"inner":{"type":"string","title":"0","description":"0"}}}`)}},
	Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw("1")}}

// worded are methods of texts that programs change: one in each place that a method has for texts.
func worded() []fixtures.Method {
	all := make([]fixtures.Method, len(traps.Words))
	for i, words := range traps.Words {
		all[i] = fixtures.Method{ID: fmt.Sprintf("content.worded.%d", i+1), Usage: words, Access: []string{fixtures.AdministerSite},
			MCP: &fixtures.Tool{Title: words}, Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw("1")},
			Params: []fixtures.Param{{Name: "text", Schema: schema("type", "object", "properties", map[string]any{"inner": map[string]any{"type": "string", "description": words}}), Description: words}}}
	}
	all[0].MCP.Annotations = fixtures.Raw(`{"document":` + traps.Document + `}`)
	all[0].Output = schema("type", "object", "properties", map[string]any{"text": map[string]any{"description": traps.Text + traps.Sensitive, "enum": traps.Listed()}})
	all[1].Params = append(all[1].Params,
		fixtures.Param{Name: "chosen", Schema: schema("enum", traps.Listed())}, fixtures.Param{Name: "many", Schema: schema("enum", traps.Long())},
		fixtures.Param{Name: "matching", Schema: schema("type", "string", "pattern", "^("+regexp.QuoteMeta(traps.Short+traps.Sensitive)+")?$")})
	for i, pattern := range traps.Patterns {
		all[1].Params = append(all[1].Params, fixtures.Param{Name: fmt.Sprintf("matching_%d", i+1), Schema: schema("type", "string", "pattern", pattern)})
	}
	all[2].Unchecked = true // a default may have a member $ref, which is no reference there
	all[2].Params = append(all[2].Params, fixtures.Param{Name: "usual", Schema: fixtures.Raw(`{"default":` + traps.InSchema + `}`)})
	properties := map[string]any{}
	all[3].ID, all[3].Behaviour = scenario.EveryName, fixtures.Behaviour{Kind: fixtures.Echo} // invoke/arguments-forwarded calls it
	for i, name := range slices.Sorted(maps.Keys(traps.Object())) {
		if name != "" {
			all[3].Params = append(all[3].Params, fixtures.Param{Name: name, Schema: schema("type", "integer", "minimum", i)})
			properties[name] = map[string]any{"type": "integer", "minimum": i}
		}
	}
	all[4].Params = append(all[4].Params, fixtures.Param{Name: "object", Schema: schema("type", "object", "properties", properties)})
	return all
}

// schema writes a schema of keywords and their values.
func schema(pairs ...any) fixtures.Raw {
	keywords := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		keywords[pairs[i].(string)] = pairs[i+1]
	}
	return fixtures.Raw(client.Encode(keywords))
}

// added are the methods that eachMethodAndDelicate compares. Most callers may not run them, and so see nothing of them.
var added = sync.OnceValue(func() []fixtures.Method { return append([]fixtures.Method{delicate, plainLines}, worded()...) })

// Prepare adds the delicate methods to the site of a run before its bridge is tested: a check that adds them has to wait
// until the bridge shows them. The caller removes them by undo.
func Prepare(site site.Controlled) (undo func()) {
	before := site.Site().Methods
	site.SetSite(withMethods(site.Site(), slices.Concat(added(), before)))
	return func() { site.SetSite(withMethods(site.Site(), before)) }
}

func withMethods(site *fixtures.Site, methods []fixtures.Method) *fixtures.Site {
	changed := *site
	changed.Methods = methods
	return &changed
}

// eachMethodAndDelicate is eachMethod, and then compares the delicate methods, where the run may change the site.
func eachMethodAndDelicate(ctx context.Context, t *check.T, expected string, fault func(m *fixtures.Method, tool check.Tool) string) {
	eachMethod(ctx, t, expected, fault)
	if t.Drupal == nil || !t.Changeable() || t.HasFindings() {
		return
	}
	if _, prepared := t.Method(delicate.ID); !prepared {
		t.Replace(ctx, withMethods(t.Drupal.Site(), slices.Concat(added(), t.Drupal.Site().Methods)))
	}
	caller := t.As(t.Drupal.NewUser(append(t.Permissions(check.Agent), fixtures.AdministerSite)...))
	var list check.Listing
	t.AwaitShown(ctx, "methods for those who administer the site", func() bool {
		list = caller.MustListAll(ctx)
		return slices.ContainsFunc(added(), func(m fixtures.Method) bool { return slices.Contains(list.Names(), t.ToolName(m.ID)) })
	}, nil)
	for _, m := range added() {
		name := t.ToolName(m.ID)
		tool, listed := list.Find(name)
		t.For(caller.Who, name, func() {
			t.Expect(listed).To(BeTrue(), check.Mismatch("list as a caller who administers the site", fmt.Sprintf("the tool %q", name), fmt.Sprintf("%d tools without it", len(list.Names()))))
			t.Expect(list.PageOf(name)).To(match.HaveTool(tool, expected, func(tool check.Tool) string { return fault(&m, tool) }))
		})
	}
}
