// Package translate checks how the Drupal field types of parameters become JSON Schema, and that a method that cannot be
// translated removes no other tool.
package translate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area translate.
var Checks = []check.Check{
	{ID: "translate/entity-reference", Sees: check.Site, ByMCP: true, Run: entityReference},
	{ID: "translate/datetime", Sees: check.Site, ByMCP: true, Run: datetime},
	{ID: "translate/text-formatted", Sees: check.Site, ByMCP: true, Run: textFormatted},
	{ID: "translate/file", Sees: check.Site, ByMCP: true, Run: file},
	{ID: "translate/boolean-integer-decimal-list", Sees: check.Site, ByMCP: true, Run: booleanIntegerDecimalList},
	{ID: "translate/required-default", Sees: check.Site, ByMCP: true, Run: requiredDefault},
	{ID: "translate/custom-type", Sees: check.Site, ByMCP: true, Run: customType},
	{ID: "translate/unknown-type", Sees: check.Site, ByMCP: true, Run: unknownType},
	{ID: "translate/one-bad-tool", Sees: check.Site, ByMCP: true, Run: oneBadTool},
}

// fieldCase is a Drupal field of the built-in site `types` and JSON values that its schema must accept and reject.
type fieldCase struct {
	tool, param      string
	accepts, rejects []string
}

// simpleFields are the cases of translate/boolean-integer-decimal-list.
var simpleFields = []fieldCase{
	{"type.numbers", "boolean", []string{`true`, `false`}, []string{`"yes"`, `[]`, `1`}},
	{"type.numbers", "integer", []string{`1`, `100`}, []string{`0`, `101`, `1.5`, `"1"`}},
	{"type.numbers", "unsigned", []string{`0`, `7`, `4294967295`}, []string{`-1`, `0.5`, `"x"`}},
	{"type.numbers", "above", []string{`5`, `4294967295`}, []string{`4`, `-1`}},
	{"type.numbers", "none", []string{`0`, `-7`}, []string{`1`}},
	{"type.numbers", "decimal", []string{`0`, `9.99`}, []string{`-0.01`, `10`, `{}`}},
	{"type.numbers", "float", []string{`-1.5`, `0.25`, `1.5`}, []string{`1.6`, `-2`, `"x"`}},
	{"type.texts", "string", []string{`"short"`, `""`, `"` + strings.Repeat("é", 64) + `"`}, []string{`5`, `"` + strings.Repeat("x", 65) + `"`}},
	{"type.texts", "string_long", []string{`"long"`, `"` + strings.Repeat("long ", 1000) + `"`}, []string{`5`, `{}`}},
	{"type.texts", "email", []string{`"a@example.com"`}, []string{`5`, `"no address"`}},
	{"type.texts", "uri", []string{`"https://example.com/a"`, `"urn:isbn:0451450523"`}, []string{`5`, `"no address"`}},
	{"type.timestamp", "value", []string{`1700000000`, `4102444800`}, []string{`"yesterday"`, `1.5`}},
	{"type.choices", "list_string", []string{`"draft"`, `"published"`}, []string{`"Draft"`, `"other"`, `1`}},
	{"type.choices", "numbered", []string{`"1"`, `"02"`}, []string{`1`, `"2"`}},
	{"type.choices", "list_integer", []string{`0`, `1`, `2`}, []string{`3`, `"One"`, `"1"`}},
	{"type.multiple", "any_number", []string{`[]`, `["a","b","c","d"]`, `["a","a"]`}, []string{`"a"`, `[1]`}},
	{"type.multiple", "up_to_three", []string{`[0,1,2]`}, []string{`[0,1,2,3]`, `[-1]`, `5`}},
	{"type.multiple", "one", []string{`"a"`}, []string{`["a"]`}},
}

func entityReference(ctx context.Context, t *check.T) {
	t.Drupal.Mark()
	types := fieldTypes(ctx, t)
	t.Row(types.viewer.Who, "", "who asks for the values", func() {
		asked := map[string]bool{} // the accounts that asked for the methods
		for _, e := range t.Drupal.Journal() {
			if e.Route == route.Methods {
				asked[e.User] = true
			}
			if len(asked) > 0 && slices.ContainsFunc(e.Calls, func(c mockdrupal.Call) bool { return c.Method == "node_type.list" }) {
				t.Expect(asked).To(HaveKey(e.User), check.Mismatch("a call of node_type.list for a list", "it as the account that asks for the methods", "it as "+cmp.Or(e.User, "nobody")))
			}
		}
	})
	types.forProperty("type.entity_reference", "bundle", func(property map[string]any) {
		values, _ := property["enum"].([]any)
		t.Expect(values).To(ConsistOf(types.values("node_type")), check.Mismatch("the enum of a reference to node_type", "the site's values", exact.Short(property)))
		t.Expect(property["type"]).To(Equal("string"), check.Mismatch("a reference to node_type", "a string", exact.Short(property)))
	})
	types.test(fieldCase{"type.entity_references", "vocabularies", []string{`["tags"]`, `["tags","topics"]`}, []string{`"tags"`, `["nothing"]`}})
	t.Row(types.viewer.Who, t.ToolName("type.entity_reference"), "after a type of content was added", func() {
		site := t.Drupal.Site().Clone()
		site.Content = maps.Clone(site.Content)
		site.Content["node_type"] = append(slices.Clone(site.Content["node_type"]), fixtures.Raw(`{"id":"arrived","label":"Arrived"}`))
		t.Drupal.Mock.SetSite(site)
		var property map[string]any
		shown := t.Await(ctx, func() bool {
			tool, _ := types.viewer.ListAll(ctx).Find(t.ToolName("type.entity_reference"))
			input, _ := jsonschema.Inlined(map[string]any(tool.Input())).(map[string]any)
			property, _ = jsonschema.At(input, "/properties/bundle")
			values, _ := property["enum"].([]any)
			return slices.Contains(values, any("arrived"))
		})
		t.Expect(shown).To(BeTrue(), check.Mismatch("the enum of a reference to node_type", "the type of content that was added", exact.Short(property)))
	})
}

func datetime(ctx context.Context, t *check.T) {
	fieldTypes(ctx, t).forProperty("type.datetime", "value", func(property map[string]any) {
		t.Expect(property["type"]).To(Equal("string"), check.Mismatch("a datetime", "a string", exact.Short(property)))
		t.Expect(property["format"]).To(Equal("date-time"), check.Mismatch("a datetime", "the format date-time", exact.Short(property)))
	})
}

func textFormatted(ctx context.Context, t *check.T) {
	types := fieldTypes(ctx, t)
	types.forProperty("type.text_formatted", "value", func(property map[string]any) {
		parts, _ := property["properties"].(map[string]any)
		for _, part := range []string{"value", "format"} {
			t.Expect(parts).To(HaveKey(part), check.Mismatch("formatted text", fmt.Sprintf("a `%s`", part), exact.Short(property)))
		}
	})
	types.test(fieldCase{"type.text_formatted", "value", []string{`{"value":"x"}`, `{"value":"x","format":"basic_html"}`}, []string{`{"format":"basic_html"}`, `{"value":5}`, `5`}})
}

func file(ctx context.Context, t *check.T) {
	fieldTypes(ctx, t).forProperty("type.file", "value", func(property map[string]any) {
		shown := exact.Short(property)
		text := string(client.Encode(property))
		t.Expect(property["type"]).To(BeElementOf("object", "string", "integer"), check.Mismatch("a file", "a reference", shown))
		for _, extension := range []string{"txt", "pdf"} {
			named := strings.Contains(strings.ToLower(text), extension) || patternNames(property, extension)
			t.Expect(named).To(BeTrue(), check.Mismatch("a file", fmt.Sprintf("the extension %s among its constraints", extension), shown))
		}
		sizes := []string{"2097152", "2000000", "2 MB", "2MB", "2 MiB"}
		t.Expect(slices.ContainsFunc(sizes, func(s string) bool { return strings.Contains(text, s) })).To(BeTrue(),
			check.Mismatch("a file", "its size of 2 MB among its constraints", shown))
	})
}

// patternNames reports whether a pattern in the property accepts files with this extension and refuses others: `[tT][xX][tT]` names txt.
func patternNames(property map[string]any, extension string) bool {
	patterns := []any{property["pattern"]}
	parts, _ := property["properties"].(map[string]any)
	for _, part := range parts {
		if part, ok := part.(map[string]any); ok {
			patterns = append(patterns, part["pattern"])
		}
	}
	return slices.ContainsFunc(patterns, func(pattern any) bool {
		text, _ := pattern.(string)
		re, err := regexp.Compile(text)
		return text != "" && err == nil && re.MatchString("a."+extension) && !re.MatchString("a.exe")
	})
}

func booleanIntegerDecimalList(ctx context.Context, t *check.T) {
	types := fieldTypes(ctx, t)
	for _, c := range simpleFields {
		types.test(c)
	}
}

func requiredDefault(ctx context.Context, t *check.T) {
	types := fieldTypes(ctx, t)
	const tool = "type.required_default"
	t.Row(check.Agent, t.ToolName(tool), "required", func() {
		required, _ := types.input(tool)["required"].([]any)
		t.Expect(required).To(ConsistOf("status", "title"), check.Mismatch(fmt.Sprintf("`required` of %s", tool), "status and title", exact.Short(required)))
	})
	const several = "type.multiple"
	t.Row(check.Agent, t.ToolName(several), "required", func() {
		required, _ := types.input(several)["required"].([]any)
		t.Expect(required).To(ConsistOf("any_number"), check.Mismatch(fmt.Sprintf("`required` of %s", several), "any_number", exact.Short(required)))
	})
	types.forProperty(tool, "status", func(status map[string]any) {
		t.Expect(status).NotTo(HaveKeyWithValue("required", BeAssignableToTypeOf(true)), check.Mismatch(fmt.Sprintf("status of %s", tool), "no boolean `required` beside the type", exact.Short(status)))
	})
	const within = "type.required_within"
	if _, listed := types.listing.Find(t.ToolName(within)); listed { // its schema is of Draft 3: a bridge may leave it out
		types.test(fieldCase{within, "address", []string{`{"street":"Main Road"}`}, []string{`{"city":"Bern"}`}})
		types.test(fieldCase{within, "others", []string{`[{"street":"Main Road"}]`}, []string{`[{}]`}})
	}
	for _, m := range types.site.Methods {
		for _, p := range m.Params {
			if m.MCP == nil || p.Drupal == nil || p.Description == "" && p.Default == nil {
				continue
			}
			types.forProperty(m.ID, p.Name, func(property map[string]any) {
				description, _ := property["description"].(string) // with more in it, where that says what the settings say
				t.Expect(description).To(ContainSubstring(p.Description),
					check.Mismatch(p.Name+" of "+m.ID, fmt.Sprintf("the description %q", p.Description), exact.Short(property)))
				if p.Default != nil {
					t.Expect(exact.Short(property["default"])).To(Equal(exact.Short(exact.MustParse(p.Default))),
						check.Mismatch(p.Name+" of "+m.ID, "the default "+string(p.Default), exact.Short(property)))
				}
			})
		}
	}
}

func customType(ctx context.Context, t *check.T) {
	types := fieldTypes(ctx, t)
	types.test(fieldCase{"type.custom", "value", []string{`{"lat":52.5,"lon":13.4}`}, []string{`"52.5 13.4"`, `{"lat":"x","lon":13.4}`}})
	types.test(fieldCase{"type.custom", "places", []string{`[{"lat":52.5,"lon":13.4},{"lat":0,"lon":-1}]`}, []string{`["52.5 13.4"]`, `[{"lat":"x","lon":13.4}]`}})
}

func unknownType(ctx context.Context, t *check.T) {
	t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{}).MustMeet(match.HaveResult(), "invoke/answers-result")
	types := fieldTypes(ctx, t)
	types.test(fieldCase{tool: "type.unknown", param: "value", accepts: []string{`"x"`, `5`, `{"a":1}`, `[1]`, `true`}})
	t.Row(check.Agent, t.ToolName("type.unknown"), "an unknown field type", func() {
		t.Expect(types.viewer.Invoke(ctx, t.ToolName("type.unknown"), check.Args{"value": "x"})).To(match.HaveResult())
	})
}

func oneBadTool(ctx context.Context, t *check.T) {
	site, err := fixtures.Builtin("poisoned")
	t.Expect(err).NotTo(HaveOccurred())
	group := ""
	if t.Claims("exposure-patterns") {
		group, site.Extensions = "content.", false // without the attribute, the patterns include these
	}
	var want []string
	for i := range site.Methods {
		m := &site.Methods[i]
		m.ID = group + m.ID
		if strings.HasPrefix(m.ID, group+"good.") && t.Exposed(m) && site.MayRun(check.UserOf(site, check.Agent), m) {
			want = append(want, t.ToolName(m.ID))
		}
	}
	for _, tool := range t.As(check.Agent).MustListAll(ctx).Tools() {
		if fault := scenario.ToolFault(tool); fault != "" {
			check.BlockedBy(check.Mismatch(tool.Name(), "a tool that clients can read", fault), "list/*", "mapping/*", "schema/*")
		}
	}
	good := site.Clone()
	good.Methods = slices.DeleteFunc(good.Methods, func(m fixtures.Method) bool {
		return !slices.Contains(want, t.ToolName(m.ID)) || t.ToolName(m.ID) == want[0]
	})
	var listing check.Listing
	var longest time.Duration // that a page has taken
	list := func(viewer check.Client) []string {
		listing = viewer.ListAll(ctx)
		for _, page := range listing.Pages {
			longest = max(longest, page.Took)
		}
		return listing.Names()
	}
	t.ShowSite(ctx, good, func(viewer check.Client) bool {
		names := list(viewer) // of the new site, but possibly not all
		return len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return n == want[0] || !slices.Contains(want, n) })
	})
	slow := max(t.Timeout/2, 4*longest)

	site.Auth = t.Drupal.Site().Auth // callers authenticate as before
	t.Drupal.Mock.SetSite(site)
	viewer := t.Viewer()
	fetch := func() time.Duration {
		longest = 0
		t.Await(ctx, func() bool { return slices.Contains(list(viewer), want[0]) })
		return longest
	}
	if took := fetch(); took > slow && t.OutlastTTL(ctx, 5*time.Second) { // once it may be the machine
		took = min(took, fetch())
		t.Expect(took > slow).To(BeFalse(), check.Mismatch("list of a site with methods that cannot be translated, twice",
			"the good tools about as soon as without the others",
			fmt.Sprintf("at least %v for a page", took.Round(100*time.Millisecond))))
	}
	t.Expect(listing.Fault).To(check.BeNone(), "a site with methods that cannot be translated")
	for _, name := range want {
		t.For(check.Agent, name, func() {
			t.Blame(listing.PageOf(name))
			t.Expect(listing.Names()).To(ContainElement(name), check.Mismatch("list of a site with methods that cannot be translated", fmt.Sprintf("the good tool %q", name), fmt.Sprintf("%d tools without it", len(listing.Names()))))
			t.Expect(viewer.Describe(ctx, name)).To(match.HaveStatus(200), "a good tool beside bad ones")
			tool, _ := listing.Find(name)
			fault := scenario.ToolFault(tool)
			t.Expect(fault).To(BeEmpty(), check.Mismatch(name, "a tool that clients can read, because its method is valid", fmt.Sprintf("one that they cannot: %s", fault)))
		})
	}
	saysWhatIsLeftOut(ctx, t, site, listing)
	if s, opened := t.MCPBeside(ctx, scenario.NewCaller(t).Who); opened { // whom nobody notifies of the usual site that comes back
		for _, tool := range check.ListAllTools(ctx, s).Tools {
			t.Row(s.Client.Who, tool.Name(), "by tools/list", func() {
				fault := cmp.Or(scenario.ToolFault(tool), scenario.HintFault(tool))
				t.Expect(fault).To(BeEmpty(), check.Mismatch(tool.Name(), "a tool that clients can read, or none", fault))
			})
		}
	}
	for _, tool := range listing.Tools() {
		t.For(check.Agent, tool.Name(), func() {
			fault := scenario.ToolFault(tool)
			for _, member := range []string{"inputSchema", "outputSchema"} {
				if depth := jsonschema.Depth(tool[member]); fault == "" && depth > 60 {
					fault = fmt.Sprintf("its %s has %d levels", member, depth)
				}
				if size := jsonschema.Size(tool[member]); fault == "" && size > 1<<20 {
					fault = fmt.Sprintf("its %s has %d bytes", member, size)
				}
			}
			t.Blame(listing.PageOf(tool.Name()))
			t.Expect(fault).To(BeEmpty(), check.Mismatch(tool.Name(), "a tool that clients can read, or none", fmt.Sprintf("one that they cannot: %s", fault)))
		})
	}
}

// saysWhatIsLeftOut tests the log of a bridge that the run has started. A bridge that prints nothing at all logs elsewhere.
func saysWhatIsLeftOut(ctx context.Context, t *check.T, site *fixtures.Site, listing check.Listing) {
	var leftOut []string
	for i := range site.Methods {
		m := &site.Methods[i]
		if t.Exposed(m) && site.MayRun(check.UserOf(site, check.Agent), m) && !slices.Contains(listing.Names(), t.ToolName(m.ID)) {
			leftOut = append(leftOut, m.ID)
		}
	}
	if t.Log == nil || len(leftOut) == 0 || t.Log() == "" {
		return
	}
	t.Row(check.Agent, "", "the log of the bridge", func() {
		var missing []string
		t.Await(ctx, func() bool { // the bridge may write its log after the response
			words := map[string]bool{}
			for _, word := range notOfIDs.Split(t.Log(), -1) {
				words[strings.Trim(word, ".")] = true
			}
			missing = slices.DeleteFunc(slices.Clone(leftOut), func(id string) bool { return words[id] || words[t.ToolName(id)] || notOfIDs.MatchString(id) })
			return len(missing) == 0
		})
		t.Expect(missing).To(BeEmpty(), check.Mismatch("what the bridge has printed (bridge.log)", "the id of each method that it has left out", "nothing of "+match.Abbreviate(missing)))
	})
}

// notOfIDs is what parts the ids of methods in a log. An id with such characters may be escaped there.
var notOfIDs = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// fieldSite is the site `types` as the bridge shows it to the viewer.
type fieldSite struct {
	listing check.Listing
	viewer  check.Client
	site    *fixtures.Site
	t       *check.T
}

// fieldTypes puts the site `types` behind the bridge.
func fieldTypes(ctx context.Context, t *check.T) fieldSite {
	site, err := fixtures.Builtin("types")
	t.Expect(err).NotTo(HaveOccurred())
	if m, ok := site.Method("type.numbers"); !ok || !t.Exposed(m) {
		check.NotTestable("the patterns include no method with Drupal field types")
	}
	viewer := t.ShowSite(ctx, site, func(viewer check.Client) bool {
		return slices.Contains(viewer.List(ctx).Names(), t.ToolName("type.numbers"))
	})
	return fieldSite{viewer.MustListAll(ctx), viewer, site, t}
}

// input returns the tool's inputSchema with its references inlined.
func (f fieldSite) input(id string) map[string]any {
	tool, ok := f.listing.Find(f.t.ToolName(id))
	f.t.Blame(f.listing.PageOf(tool.Name()))
	f.t.Expect(ok).To(BeTrue(), check.Mismatch("list of a site with Drupal field types", fmt.Sprintf("the tool %s", id), "none"))
	input, _ := jsonschema.Inlined(map[string]any(tool.Input())).(map[string]any)
	return input
}

// property returns the schema of one parameter.
func (f fieldSite) property(id, param string) map[string]any {
	input := f.input(id)
	property, ok := jsonschema.At(input, "/properties/"+param)
	f.t.Expect(ok).To(BeTrue(), check.Mismatch(id, fmt.Sprintf("a schema for %s", param), exact.Short(input)))
	return property
}

// values returns the valid values of a reference to the target: the ids of the site's items.
func (f fieldSite) values(target string) []any {
	var ids []any
	for _, raw := range f.site.Content[target] {
		item, err := exact.Parse(raw)
		f.t.Expect(err).NotTo(HaveOccurred())
		ids = append(ids, item.(map[string]any)["id"])
	}
	return ids
}

// forProperty runs a test of one parameter's property as a row of its own.
func (f fieldSite) forProperty(id, param string, test func(property map[string]any)) {
	f.t.Row(check.Agent, f.t.ToolName(id), param, func() { test(f.property(id, param)) })
}

// test tests a property against the values that it must accept and reject.
func (f fieldSite) test(c fieldCase) {
	f.forProperty(c.tool, c.param, func(property map[string]any) {
		field := fmt.Sprintf("%s of %s", c.param, c.tool)
		schema, err := jsonschema.Compile(property, jsonschema.Draft7)
		f.t.Expect(err).NotTo(HaveOccurred(), check.Mismatch(field, "a valid schema", exact.Short(property)))
		for _, value := range c.accepts {
			f.t.Expect(schema.Fault(exact.MustParse(value))).To(BeEmpty(),
				check.Mismatch(field, fmt.Sprintf("a schema that accepts %s", exact.Cut(value, 80)), exact.Short(property)))
		}
		for _, value := range c.rejects {
			f.t.Expect(schema.Fault(exact.MustParse(value))).NotTo(BeEmpty(),
				check.Mismatch(field, fmt.Sprintf("a schema that rejects %s", exact.Cut(value, 80)), exact.Short(property)))
		}
	})
}
