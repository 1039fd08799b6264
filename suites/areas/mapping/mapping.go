// Package mapping checks that a tool has the name, the description, the parameters and the schemas of its method on the
// site.
package mapping

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area mapping.
var Checks = []check.Check{
	{ID: "mapping/name-is-id", Sees: check.Discovery, ByMCP: true, Run: nameIsID},
	{ID: "mapping/name-underscored", Sees: check.Discovery, ByMCP: true, Run: nameUnderscored},
	{ID: "mapping/long-names", Sees: check.Site, ByMCP: true, Run: longNames},
	{ID: "mapping/name-portable", Sees: check.Front, ByMCP: true, Run: namePortable},
	{ID: "mapping/description-is-usage", Sees: check.Discovery, ByMCP: true, Run: descriptionIsUsage},
	{ID: "mapping/title-from-attribute", Sees: check.Discovery, ByMCP: true, Run: titleFromAttribute},
	{ID: "mapping/annotations-from-attribute", Sees: check.Discovery, Run: annotationsFromAttribute},
	{ID: "mapping/output-schema", Sees: check.Discovery, Run: outputSchema},
	{ID: "mapping/input-object", Sees: check.Front, ByMCP: true, Run: inputObject},
	{ID: "mapping/no-params-object", Sees: check.Discovery, ByMCP: true, Run: noParamsObject},
	{ID: "mapping/properties-complete", Sees: check.Discovery, ByMCP: true, Run: propertiesComplete},
	{ID: "mapping/param-description", Sees: check.Discovery, ByMCP: true, Run: paramDescription},
	{ID: "mapping/required-exact", Sees: check.Discovery, ByMCP: true, Run: requiredExact},
	{ID: "mapping/factory-params", Sees: check.Discovery, ByMCP: true, Run: factoryParams},
	{ID: "mapping/by-position", Sees: check.Discovery, ByMCP: true, Run: byPosition},
	{ID: "mapping/language", Sees: check.Site, Run: language},
}

func nameIsID(ctx context.Context, t *check.T) {
	list := scenario.AgentsTools(ctx, t)
	t.EachTool(list, func(page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "the id of its method as `name`", func(tool check.Tool) string {
			if _, ok := t.Method(tool.Name()); !ok && tool.Name() != "" {
				return "no such id"
			}
			return ""
		}))
	})
	for _, m := range scenario.MustShow(t, check.Agent) {
		t.For(check.Agent, m.ID, func() { t.Expect(list).To(haveIDAsName(t, m)) })
	}
}

func nameUnderscored(ctx context.Context, t *check.T) {
	list := scenario.AgentsTools(ctx, t)
	t.EachTool(list, func(page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "a method's id as `name`, with `_` in place of all characters but letters, digits, `_` and `-`", func(tool check.Tool) string { return underscoreFault(t, tool) }))
	})
	t.ExpireCaches()
	t.Expect(scenario.AllTools(ctx, t, t.As(check.Agent))).To(haveNamesOf(list))
	t.EachTool(list, func(_ *check.Response, tool check.Tool) {
		t.Expect(t.As(check.Agent).Describe(ctx, tool.Name())).To(match.BeTool(tool.Name()), "the listed name")
	})
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		t.For(call.Identity, call.Tool, func() { t.Expect(t.Call(ctx, call)).To(match.HaveResult(), "the listed name") })
	}
	if t.Drupal == nil {
		return // no tool may be run, and the site's methods stay in their order
	}
	colliding := map[string]*fixtures.Method{}
	for _, m := range scenario.Colliding(t) {
		if name := nameOf(t, list, m); name != "" && m.Behaviour.Kind == fixtures.Value {
			colliding[name] = m
			t.For(check.Agent, name, func() {
				t.Expect(list).To(match.ListOnce(name))
				t.Drupal.Mark()
				t.Expect(t.As(check.Agent).Invoke(ctx, name, check.Args{})).To(match.HaveRun(t.Upstream, m.ID, 1))
			})
		}
	}
	if len(colliding) < 2 || !t.ShowsSoon() {
		return // it is unknown when the bridge shows the new order
	}
	removed := scenario.WithoutMethod(t)
	other := scenario.WithArrival(t.Drupal, "", removed)
	slices.Reverse(other.Methods)
	t.Replace(ctx, other)
	if !t.Await(ctx, func() bool {
		names := t.ListedNames(ctx)
		return len(names) > 0 && !slices.Contains(names, t.ToolName(removed))
	}) {
		return // fresh/ttl-expiry tests that
	}
	for name, m := range check.InOrder(colliding) {
		t.For(check.Agent, name, func() {
			t.Drupal.Mark()
			t.Expect(t.As(check.Agent).Invoke(ctx, name, check.Args{})).To(match.HaveRun(t.Upstream, m.ID, 1), "after the site lists its methods in another order")
		})
	}
}

func namePortable(ctx context.Context, t *check.T) {
	t.EachTool(scenario.AgentsTools(ctx, t), func(page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "a `name` of 1 to 128 characters of [A-Za-z0-9_.-]", func(tool check.Tool) string {
			if portableName.MatchString(tool.Name()) || tool.Name() == "" || isID(t, tool.Name()) {
				return ""
			}
			return "another name"
		}))
	})
}

func descriptionIsUsage(ctx context.Context, t *check.T) {
	tested := 0
	eachMethodAndDelicate(ctx, t, "its usage as `description`", func(m *fixtures.Method, tool check.Tool) string {
		if m.Usage != "" {
			tested++
		}
		if m.Usage == "" || tool["description"] == nil || tool["description"] == m.Usage {
			return ""
		}
		return exact.Apart(m.Usage, tool["description"]) + match.DescribeMember(tool, "description") + " in place of " + exact.Short(m.Usage)
	})
	mustHaveTested(t, tested, "a usage")
}

func titleFromAttribute(ctx context.Context, t *check.T) {
	t.MustMark()
	tested := 0
	eachMethodAndDelicate(ctx, t, "its McpTool title as `title`", func(m *fixtures.Method, tool check.Tool) string {
		if m.MCP == nil || m.MCP.Title == "" {
			return ""
		}
		annotations, _ := tool["annotations"].(map[string]any)
		if tested++; tool["title"] == m.MCP.Title || t.Alone() && annotations["title"] == m.MCP.Title {
			return ""
		}
		return exact.Apart(m.MCP.Title, tool["title"]) + match.DescribeMember(tool, "title") + " in place of " + exact.Short(m.MCP.Title)
	})
	mustHaveTested(t, tested, "a title in its McpTool attribute")
}

func annotationsFromAttribute(ctx context.Context, t *check.T) {
	t.MustMark()
	tested := 0
	eachMethodAndDelicate(ctx, t, "all of its McpTool annotations in `annotations`", func(m *fixtures.Method, tool check.Tool) string {
		if m.MCP == nil || m.MCP.Annotations == nil {
			return "" // list/tool-optional-members tests that
		}
		tested++
		want, _ := match.Published(m.MCP.Annotations).(map[string]any)
		got, _ := tool["annotations"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			v, there := got[name]
			if !there {
				return fmt.Sprintf("no %q in %s", name, match.DescribeMember(tool, "annotations"))
			}
			if d := exact.Diff(want[name], v); d != "" {
				return fmt.Sprintf("a different %q: %s", name, d)
			}
		}
		return foreignAnnotation(t, want, got)
	})
	mustHaveTested(t, tested, "annotations in its McpTool attribute")
}

func outputSchema(ctx context.Context, t *check.T) {
	eachMethodAndDelicate(ctx, t, "its output schema as `outputSchema`, and none where it declares none", func(m *fixtures.Method, tool check.Tool) string {
		got, there := tool["outputSchema"].(map[string]any) // list/tool-optional-members tests its type
		want := match.Published(m.Output)
		switch {
		case m.Output != nil && len(match.StringsIn(want)) == 0: // {} is no schema to PHP
			return ""
		case m.Output == nil && !there:
			return ""
		case m.Output == nil || !there:
			return match.DescribeMember(tool, "outputSchema")
		}
		if d := jsonschema.Difference(want, got, ""); d != "" {
			return "a different one: " + d
		}
		return ""
	})
}

func inputObject(ctx context.Context, t *check.T) {
	scenario.EveryTool(ctx, t, func(_ check.Listing, page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, "an object schema as `inputSchema`", func(tool check.Tool) string {
			schema := tool.Input()
			if schema == nil {
				return "" // list/tool-required-members tests that
			}
			if schema["type"] != "object" {
				return "the type " + exact.Short(schema["type"])
			}
			if shown, there := schema["properties"]; there && properties(tool) == nil {
				return "the properties " + exact.Short(shown)
			}
			return ""
		}))
	})
}

func noParamsObject(ctx context.Context, t *check.T) {
	eachMethodAndDelicate(ctx, t, "an object as every `properties`, `{}` when it is empty", func(m *fixtures.Method, tool check.Tool) string {
		if m.ByPosition {
			return ""
		}
		for _, member := range []string{"inputSchema", "outputSchema"} {
			if f := listAsProperties(tool[member], member); f != "" {
				return f
			}
		}
		return ""
	})
}

func propertiesComplete(ctx context.Context, t *check.T) {
	tested := 0
	eachMethodAndDelicate(ctx, t, "one property for every parameter, with its schema", func(m *fixtures.Method, tool check.Tool) string {
		tested += len(m.Params)
		if m.ByPosition || tool.Input() == nil {
			return ""
		}
		declared := map[string]bool{}
		for _, p := range m.Params {
			declared[p.Name] = true
			if _, there := property(tool, p.Name); !there {
				return fmt.Sprintf("no property %q", p.Name)
			}
			if p.Factory != "" || p.Drupal != nil {
				continue // mapping/factory-params and the area translate test those
			}
			if f := propertyFault(tool, p); f != "" {
				return f
			}
		}
		for _, name := range slices.Sorted(maps.Keys(properties(tool))) {
			if !declared[name] {
				return fmt.Sprintf("the property %q, which is not a parameter", name)
			}
		}
		return ""
	})
	mustHaveTested(t, tested, "a parameter")
}

func paramDescription(ctx context.Context, t *check.T) {
	tested := 0
	eachMethodAndDelicate(ctx, t, "each parameter's description as that of its property", func(m *fixtures.Method, tool check.Tool) string {
		tested += len(m.Params)
		for _, p := range m.Params {
			property, there := property(tool, p.Name)
			if m.ByPosition || !there {
				continue
			}
			schema, _ := property.(map[string]any)
			got, described := schema["description"]
			if p.Description == "" && !described || p.Description != "" && got == p.Description {
				continue
			}
			own, _ := match.Published(p.Resolved()).(map[string]any)
			if inSchema, ok := own["description"]; p.Description == "" && ok && inSchema == got {
				continue // the schema has its own description
			}
			return fmt.Sprintf("%s%s for %q in place of %s", exact.Apart(p.Description, got), describedAs(got, described), p.Name, describedAs(p.Description, p.Description != ""))
		}
		return ""
	})
	mustHaveTested(t, tested, "a parameter")
}

func requiredExact(ctx context.Context, t *check.T) {
	eachMethodAndDelicate(ctx, t, "`required` to list its required parameters, and to be left out when there are none", func(m *fixtures.Method, tool check.Tool) string {
		if m.ByPosition || tool.Input() == nil {
			return ""
		}
		var want []any
		for _, p := range m.Params {
			if p.Required {
				want = append(want, p.Name)
			}
		}
		got, there := tool.Input()["required"]
		names, isList := got.([]any)
		if !there && len(want) == 0 || isList && len(want) > 0 && len(names) == len(want) && sameNames(want, names) {
			return ""
		}
		return fmt.Sprintf("%s in place of %s", describedAs(got, there), describedAs(want, len(want) > 0))
	})
}

func factoryParams(ctx context.Context, t *check.T) {
	tested := 0
	eachMethod(ctx, t, "the schema that the site publishes for each parameter of a factory, and no PHP class", func(m *fixtures.Method, tool check.Tool) string {
		for _, p := range m.Params {
			if p.Factory == "" || m.ByPosition {
				continue
			}
			tested++
			if f := propertyFault(tool, p); f != "" {
				return f
			}
			property, _ := property(tool, p.Name)
			for _, text := range match.StringsIn(property) {
				if text != p.Description && (strings.Contains(text, `Drupal\`) || strings.Contains(text, "ParameterFactory")) {
					return fmt.Sprintf("the class name in %q for the parameter %q", text, p.Name)
				}
			}
		}
		return ""
	})
	mustHaveTested(t, tested, "a parameter from a factory")
}

func byPosition(ctx context.Context, t *check.T) {
	if !slices.ContainsFunc(scenario.AgentTools(t), func(m *fixtures.Method) bool { return m.ByPosition }) {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the site " + t.Site.Name() + " has no tool with parameters by position"}})
	}
	eachMethod(ctx, t, "an object schema for parameters by position", func(m *fixtures.Method, tool check.Tool) string {
		if !m.ByPosition {
			return ""
		}
		schema := tool.Input() // mapping/input-object tests its type
		if shown, there := schema["properties"]; there && properties(tool) == nil {
			return "the properties " + exact.Short(shown)
		}
		required, _ := schema["required"].([]any)
		if slices.ContainsFunc(required, func(v any) bool { _, text := v.(string); return !text }) {
			return "required " + exact.Short(required)
		}
		return ""
	})
}

func language(ctx context.Context, t *check.T) {
	who, known := scenario.NewCaller(t), scenario.KnownTool(ctx, t)
	who.List(ctx).MustSucceed("list/answers-json")
	list := func(h http.Header) {
		who.Send(ctx, check.Request{Path: check.ListPath, Header: h}).MustSucceed("list/answers-json")
	}
	// asked are the languages of the discovery requests that a request of the caller causes.
	asked := func(header string, send func(h http.Header)) []string {
		t.Drupal.Mark()
		send(http.Header{"Accept-Language": {header}})
		sent := []string{}
		for _, entry := range t.Drupal.Discoveries() {
			if by := check.Identity(entry.User); by != who.Who && (by == check.Agent || t.Drupal.Made(by)) {
				continue // as a bridge asks for the callers of its open sessions
			}
			sent = append(sent, entry.Header.Get("Accept-Language"))
		}
		return sent
	}
	expect := func(row, header, language string, sent []string) {
		t.Row(who.Who, "", row, func() {
			forwarded := slices.ContainsFunc(sent, func(l string) bool {
				l = strings.ToLower(l) // tags have no case

				// A list with weights may be sent as it came.
				return strings.HasPrefix(l, language) || header != language && strings.Contains(l, language)
			})
			actual := "requests with the Accept-Language " + match.Abbreviate(sent)
			if len(sent) == 0 {
				actual = "no discovery request"
			}
			t.Expect(forwarded).To(BeTrue(), check.Mismatch(row+" with Accept-Language: "+header, "a discovery request in the language "+language, actual))
		})
	}
	forwards := func(row, header, language string, send func(h http.Header)) {
		expect(row, header, language, asked(header, send))
	}
	forwards("pt", "pt", "pt", list)
	forwards("a region of it", "pt-BR", "pt-br", list) // while the first is cached
	atOnce(ctx, t)
	list(http.Header{"Accept-Language": {"lb, cy;q=0.5"}}) // so that a list of the other of the same two is kept
	forwards("the second of two, which the caller prefers", "lb;q=0.5, cy", "cy", list)
	if t.OutlastTTL(ctx, 2*time.Second) {
		forwards("a language whose list has expired", "cy", "cy", list)
	}
	who = scenario.NewCaller(t)
	if sent := asked("", func(http.Header) { who.List(ctx) }); len(sent) > 0 {
		t.Row(who.Who, "", "no language, on the connection of a caller who asked for cy", func() {
			t.Expect(sent[0]).NotTo(ContainSubstring("cy"),
				check.Mismatch("list without Accept-Language", "a discovery request without the language of another caller", "one with Accept-Language: "+sent[0]))
		})
	}
	who = scenario.NewCaller(t) // no list of another language is cached
	if next := who.Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"Accept-Language": {"et"}}}).NextCursor(); next != "" {
		sent := asked("et", func(h http.Header) {
			who.Send(ctx, check.Request{Path: check.ListPath, Raw: "cursor=" + url.QueryEscape(next), Header: h})
		})
		if len(sent) > 0 { // else the page is of the list that is cached
			expect("the second page", "et", "et", sent)
		}
	}
	describe := func(h http.Header) {
		who.Send(ctx, check.Request{Path: check.DescribePath, Raw: "name=" + url.QueryEscape(known), Header: h})
	}
	forwards("describe", "is", "is", describe)
	forwards("the same tool in another language", "ga", "ga", describe)
	if !t.Claims("mcp") {
		return
	}
	if s := client.OpenMCP(ctx, speaker{who, "eu"}, check.MCP2025November); s.Opened.RPCResult() != nil {
		forwards("tools/list", "gl", "gl", func(h http.Header) {
			all := s.Headers("tools/list", map[string]any{})
			all["Accept-Language"] = h["Accept-Language"]
			s.Send(ctx, s.Message(80, "tools/list", map[string]any{}), all)
		})
	}
}

// A speaker asks for a language in each request that asks for none.
type speaker struct {
	check.Client
	language string
}

func (s speaker) Send(ctx context.Context, r check.Request) *check.Response {
	if r.Header.Get("Accept-Language") == "" {
		r.Header = r.Header.Clone()
		r.Header.Set("Accept-Language", s.language)
	}
	return s.Client.Send(ctx, r)
}

// atOnce tests that a caller who asks in two languages at the same time, with nothing cached, gets each of them.
func atOnce(ctx context.Context, t *check.T) {
	who := scenario.NewCaller(t)
	languages := []string{"sq", "mk"}
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.Methods, User: string(who.Who), Delay: 100 * time.Millisecond})
	defer disarm()
	t.Drupal.Mark()
	check.AtOnce(len(languages), func(i int) {
		who.Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"Accept-Language": {languages[i]}}})
	})
	var sent []string
	for _, entry := range t.Drupal.Discoveries() {
		sent = append(sent, entry.Header.Get("Accept-Language"))
	}
	t.Row(who.Who, "", "two languages at once", func() {
		for _, language := range languages {
			t.Expect(slices.ContainsFunc(sent, func(l string) bool { return strings.HasPrefix(l, language) })).To(BeTrue(),
				check.Mismatch("two lists at once, in sq and in mk", "a discovery request in "+language,
					"requests with the Accept-Language "+match.Abbreviate(sent)))
		}
	})
}

// foreignAnnotation finds an annotation that belongs to another method: a list, an object or a number with the name and
// the value that it has there, and absent from the tool's own attribute. A bridge may add other annotations itself. ""
// when there is none.
func foreignAnnotation(t *check.T, own, got map[string]any) string {
	for name, v := range check.InOrder(got) {
		switch v.(type) {
		case nil, string, bool:
			continue
		}
		if _, has := own[name]; has {
			continue
		}
		for _, other := range t.Site.Methods() {
			if other.MCP == nil || other.MCP.Annotations == nil {
				continue
			}
			annotations, _ := match.Published(other.MCP.Annotations).(map[string]any)
			if its, has := annotations[name]; has && exact.Equal(its, v) {
				return fmt.Sprintf("%q, which is an annotation of %s", name, other.ID)
			}
		}
	}
	return ""
}

// eachMethod compares every listed tool with its method on the site. It skips tools without a method (mapping/name-is-id
// tests those), tools that share a name (list/names-unique) and methods that need not be understood (the area translate).
// It ends the check if nothing is left.
func eachMethod(ctx context.Context, t *check.T, expected string, fault func(m *fixtures.Method, tool check.Tool) string) {
	compared := 0
	scenario.EveryTool(ctx, t, func(list check.Listing, page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, expected, func(tool check.Tool) string {
			m := scenario.MethodOf(t, tool.Name())
			if m == nil || t.Marks(tool.Name()) || !scenario.Translatable(t, m) || !list.Once(tool.Name()) {
				return ""
			}
			compared++
			return fault(m, tool)
		}))
	})
	if compared == 0 {
		check.BlockedBy(check.Finding{Subject: "no listed tool has the name of a method of the site"}, "mapping/name-is-id", "mapping/name-underscored")
	}
}

// mustHaveTested ends a check that found nothing to test.
func mustHaveTested(t *check.T, tested int, what string) {
	if tested == 0 && !t.HasFindings() {
		check.NotTestable("no tool of the agent's has " + what)
	}
}

func describedAs(v any, there bool) string {
	if !there {
		return "none"
	}
	return exact.Short(v)
}

func sameNames(want, got []any) bool {
	return !slices.ContainsFunc(want, func(name any) bool {
		return !slices.ContainsFunc(got, func(v any) bool { return exact.Equal(name, v) })
	})
}

// properties returns the `properties` of the tool's inputSchema; nil if they are not an object.
func properties(t check.Tool) map[string]any {
	properties, _ := t.Input()["properties"].(map[string]any)
	return properties
}

// property returns the schema of one parameter in the tool's inputSchema.
func property(t check.Tool, name string) (any, bool) {
	v, there := properties(t)[name]
	return v, there
}

// propertyFault returns where a property differs in meaning from the schema that the site publishes for the parameter; ""
// when it does not differ, or is absent.
func propertyFault(t check.Tool, p fixtures.Param) string {
	if _, there := property(t, p.Name); !there {
		return ""
	}
	at := exact.At("/properties", p.Name)
	if d := jsonschema.Difference(match.Published(p.Resolved()), map[string]any(t.Input()), at); d != "" {
		return fmt.Sprintf("a different schema for the parameter %q: %s", p.Name, d)
	}
	return ""
}
