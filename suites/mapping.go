package suites

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
)

// checks__mapping__mapping are the checks of this file.
var checks__mapping__mapping = []Check{
	{ID: "mapping/name-is-id", Sees: Site, Run: chk__mapping__nameIsID},
	{ID: "mapping/name-underscored", Sees: Site, Run: chk__mapping__nameUnderscored},
	{ID: "mapping/name-portable", Sees: Front, Run: chk__mapping__namePortable},
	{ID: "mapping/description-is-usage", Sees: Site, Run: chk__mapping__descriptionIsUsage},
	{ID: "mapping/title-from-attribute", Sees: Site, Run: chk__mapping__titleFromAttribute},
	{ID: "mapping/annotations-from-attribute", Sees: Site, Run: chk__mapping__annotationsFromAttribute},
	{ID: "mapping/output-schema", Sees: Site, Run: chk__mapping__outputSchema},
	{ID: "mapping/input-object", Sees: Front, Run: chk__mapping__inputObject},
	{ID: "mapping/no-params-object", Sees: Site, Run: chk__mapping__noParamsObject},
	{ID: "mapping/properties-complete", Sees: Site, Run: chk__mapping__propertiesComplete},
	{ID: "mapping/param-description", Sees: Site, Run: chk__mapping__paramDescription},
	{ID: "mapping/required-exact", Sees: Site, Run: chk__mapping__requiredExact},
	{ID: "mapping/factory-params", Sees: Site, Run: chk__mapping__factoryParams},
	{ID: "mapping/by-position", Sees: Site, Run: chk__mapping__byPosition},
	{ID: "mapping/language", Sees: Site, Run: chk__mapping__language},
}

func chk__mapping__nameIsID(ctx context.Context, t *T) {
	list := t.allTools(ctx, t.As(Agent))
	t.eachTool(list, func(page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, "the id of its method as `name`", func(tool Tool) string {
			if _, ok := t.Drupal.Site().Method(tool.Name()); !ok && tool.Name() != "" {
				return "no such id"
			}
			return ""
		}))
	})
	for _, m := range t.mustShow(Agent) {
		t.For(Agent, m.ID, func() { t.Expect(list).To(NameRight(t, m)) })
	}
}

func chk__mapping__nameUnderscored(ctx context.Context, t *T) {
	list := t.allTools(ctx, t.As(Agent))
	t.eachTool(list, func(page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, "a method's id with `_` for all but letters, digits, `_` and `-` as `name`", func(tool Tool) string { return t.underscoreFault(tool) }))
	})
	t.expire()
	t.Expect(t.allTools(ctx, t.As(Agent))).To(HaveNamesOf(list))
	t.eachTool(list, func(_ *Response, tool Tool) {
		t.Expect(t.As(Agent).Describe(ctx, tool.Name())).To(BeTheTool(tool.Name()), "the listed name")
	})
	known := t.KnownTool(ctx)
	t.For(Agent, known, func() { t.Expect(t.As(Agent).Invoke(ctx, known, Args{})).To(HaveResult(), "the listed name") })
	colliding := map[string]*fixtures.Method{}
	for _, m := range t.colliding() {
		if name := t.nameOf(list, m); name != "" && m.Behaviour.Kind == fixtures.Value {
			colliding[name] = m
			t.For(Agent, name, func() {
				t.Expect(list).To(HaveOnce(name))
				t.Drupal.Mark()
				t.Expect(t.As(Agent).Invoke(ctx, name, Args{})).To(HaveRun(m.ID, 1))
			})
		}
	}
	if len(colliding) < 2 || t.DiscoveryTTL == 0 {
		return // nobody knows when the bridge would show another order
	}
	gone := t.leaving()
	other := t.Drupal.with("", gone)
	slices.Reverse(other.Methods)
	t.Replace(ctx, other)
	if !t.Await(ctx, func() bool {
		names := t.listed(ctx)
		return len(names) > 0 && !slices.Contains(names, t.ToolName(gone))
	}) {
		return // fresh/ttl-expiry judges that
	}
	for name, m := range inOrder(colliding) {
		t.For(Agent, name, func() {
			t.Drupal.Mark()
			t.Expect(t.As(Agent).Invoke(ctx, name, Args{})).To(HaveRun(m.ID, 1), "once the site gives its methods in another order")
		})
	}
}

func chk__mapping__namePortable(ctx context.Context, t *T) {
	t.eachTool(t.allTools(ctx, t.As(Agent)), func(page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, "a `name` of 1 to 128 characters of [A-Za-z0-9_.-]", func(tool Tool) string {
			if portableName.MatchString(tool.Name()) || tool.Name() == "" || t.isID(tool.Name()) {
				return ""
			}
			return "another"
		}))
	})
}

func chk__mapping__descriptionIsUsage(ctx context.Context, t *T) {
	t.eachMethod(ctx, "its usage as `description`", func(m *fixtures.Method, tool Tool) string {
		if m.Usage == "" || tool["description"] == nil || tool["description"] == m.Usage {
			return ""
		}
		return memberOf(tool, "description") + fmt.Sprintf(" in place of %q", m.Usage)
	})
}

func chk__mapping__titleFromAttribute(ctx context.Context, t *T) {
	t.eachMethod(ctx, "its McpTool title as `title`", func(m *fixtures.Method, tool Tool) string {
		if m.MCP == nil || m.MCP.Title == "" || tool["title"] == m.MCP.Title {
			return ""
		}
		return memberOf(tool, "title") + fmt.Sprintf(" in place of %q", m.MCP.Title)
	})
}

func chk__mapping__annotationsFromAttribute(ctx context.Context, t *T) {
	t.eachMethod(ctx, "all of its McpTool annotations in `annotations`", func(m *fixtures.Method, tool Tool) string {
		if m.MCP == nil || m.MCP.Annotations == nil {
			return "" // list/tool-optional-members judges that
		}
		want, _ := published(m.MCP.Annotations).(map[string]any)
		got, _ := tool["annotations"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			v, there := got[name]
			if !there {
				return fmt.Sprintf("no %q in %s", name, memberOf(tool, "annotations"))
			}
			if d := exact.Diff(want[name], v); d != "" {
				return fmt.Sprintf("another %q: %s", name, d)
			}
		}
		return t.strangeNote(want, got)
	})
}

func chk__mapping__outputSchema(ctx context.Context, t *T) {
	t.eachMethod(ctx, "its output schema as `outputSchema`, and none where it declares none", func(m *fixtures.Method, tool Tool) string {
		got, there := tool["outputSchema"].(map[string]any) // another type is list/tool-optional-members' to judge
		want := published(m.Output)
		switch {
		case m.Output != nil && len(texts(want)) == 0: // {} is no schema to PHP
			return ""
		case m.Output == nil && !there:
			return ""
		case m.Output == nil || !there:
			return memberOf(tool, "outputSchema")
		}
		if d := jsonschema.Difference(want, got, ""); d != "" {
			return "another: " + d
		}
		return ""
	})
}

func chk__mapping__inputObject(ctx context.Context, t *T) {
	t.everyTool(ctx, func(_ Listing, page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, "an object schema as `inputSchema`", func(tool Tool) string {
			schema := tool.Input()
			if schema == nil {
				return "" // list/tool-required-members judges that
			}
			if schema["type"] != "object" {
				return "the type " + exact.Short(schema["type"])
			}
			if properties, there := schema["properties"]; there && tool.properties() == nil {
				return "the properties " + exact.Short(properties)
			}
			return ""
		}))
	})
}

func chk__mapping__noParamsObject(ctx context.Context, t *T) {
	t.eachMethod(ctx, "an object, `{}` when it is empty, wherever `properties` stands", func(m *fixtures.Method, tool Tool) string {
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

func chk__mapping__propertiesComplete(ctx context.Context, t *T) {
	t.eachMethod(ctx, "one property for every parameter, with its schema", func(m *fixtures.Method, tool Tool) string {
		if m.ByPosition || tool.Input() == nil {
			return ""
		}
		declared := map[string]bool{}
		for _, p := range m.Params {
			declared[p.Name] = true
			if _, there := tool.property(p.Name); !there {
				return fmt.Sprintf("no property %q", p.Name)
			}
			if p.Factory != "" || p.Drupal != nil {
				continue // mapping/factory-params and the area translate judge those
			}
			if f := tool.propertyFault(p); f != "" {
				return f
			}
		}
		for _, name := range slices.Sorted(maps.Keys(tool.properties())) {
			if !declared[name] {
				return fmt.Sprintf("the property %q, which is no parameter", name)
			}
		}
		return ""
	})
}

func chk__mapping__paramDescription(ctx context.Context, t *T) {
	t.eachMethod(ctx, "each parameter's description as that of its property", func(m *fixtures.Method, tool Tool) string {
		for _, p := range m.Params {
			property, there := tool.property(p.Name)
			if m.ByPosition || !there {
				continue
			}
			schema, _ := property.(map[string]any)
			got, described := schema["description"]
			if p.Description == "" && !described || p.Description != "" && got == p.Description {
				continue
			}
			own, _ := published(p.Resolved()).(map[string]any)
			if inSchema, ok := own["description"]; p.Description == "" && ok && inSchema == got {
				continue // the schema has one of its own
			}
			return fmt.Sprintf("%s for %q in place of %s", describedAs(got, described), p.Name, describedAs(p.Description, p.Description != ""))
		}
		return ""
	})
}

func chk__mapping__requiredExact(ctx context.Context, t *T) {
	t.eachMethod(ctx, "`required` to list its required parameters, and to be left out when there are none", func(m *fixtures.Method, tool Tool) string {
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

func chk__mapping__factoryParams(ctx context.Context, t *T) {
	judged := 0
	t.eachMethod(ctx, "the schema that the site publishes for each parameter of a factory, and no PHP class", func(m *fixtures.Method, tool Tool) string {
		for _, p := range m.Params {
			if p.Factory == "" || m.ByPosition {
				continue
			}
			judged++
			if f := tool.propertyFault(p); f != "" {
				return f
			}
			property, _ := tool.property(p.Name)
			for _, text := range texts(property) {
				if text != p.Description && (strings.Contains(text, `Drupal\`) || strings.Contains(text, "ParameterFactory")) {
					return fmt.Sprintf("the class name in %q for the parameter %q", text, p.Name)
				}
			}
		}
		return ""
	})
	if judged == 0 {
		NotTestable("no tool of the agent's has a parameter from a factory")
	}
}

func chk__mapping__byPosition(ctx context.Context, t *T) {
	site := t.Drupal.Site()
	if !slices.ContainsFunc(site.VisibleTo(userOf(site, Agent)), func(id string) bool { m, _ := site.Method(id); return m.ByPosition }) {
		NotTestable("the site " + site.Name + " has no tool with parameters by position")
	}
	t.eachMethod(ctx, "an object schema for parameters by position", func(m *fixtures.Method, tool Tool) string {
		if !m.ByPosition {
			return ""
		}
		schema := tool.Input() // its type is mapping/input-object's to judge
		if properties, there := schema["properties"]; there && tool.properties() == nil {
			return "the properties " + exact.Short(properties)
		}
		required, _ := schema["required"].([]any)
		if slices.ContainsFunc(required, func(v any) bool { _, text := v.(string); return !text }) {
			return "required " + exact.Short(required)
		}
		return ""
	})
}

func chk__mapping__language(ctx context.Context, t *T) {
	who := t.newcomer()
	for _, language := range []string{"mt", "is"} { // the second while the first is still remembered
		t.Drupal.Mark()
		r := who.Send(ctx, Request{Path: ListPath, Header: http.Header{"Accept-Language": {language}}})
		r.MustSucceed()
		t.Row(who.who, "", language, func() {
			t.Expect(r).To(Meet("the site to be asked in the language "+language, func(*Response) string {
				asked := []string{}
				for _, entry := range t.Drupal.Discoveries() {
					asked = append(asked, entry.Header.Get("Accept-Language"))
				}
				switch {
				case slices.ContainsFunc(asked, func(l string) bool { return strings.HasPrefix(l, language) }):
					return ""
				case len(asked) == 0:
					return "no request to it"
				}
				return "requests with the Accept-Language " + fewOf(asked)
			}))
		})
	}
}

// strangeNote says which of a tool's annotations is another method's: a list, an object or a number that stands under the
// same name there, and not in the tool's own attribute. Others a bridge may have added itself. "" where none is.
func (t *T) strangeNote(own, got map[string]any) string {
	for name, v := range inOrder(got) {
		switch v.(type) {
		case nil, string, bool:
			continue
		}
		if _, has := own[name]; has {
			continue
		}
		for _, other := range t.Drupal.Site().Methods {
			if other.MCP == nil || other.MCP.Annotations == nil {
				continue
			}
			notes, _ := published(other.MCP.Annotations).(map[string]any)
			if its, has := notes[name]; has && exact.Equal(its, v) {
				return fmt.Sprintf("%q, which is an annotation of %s", name, other.ID)
			}
		}
	}
	return ""
}

// eachMethod judges every listed tool beside the method that it belongs to. Tools of no method are left to
// mapping/name-is-id, those that share a name to list/names-unique, missing ones to list/pages-cover-all-once, methods that nobody need understand to the area
// translate; where nothing is left, the check is not testable.
func (t *T) eachMethod(ctx context.Context, expected string, fault func(m *fixtures.Method, tool Tool) string) {
	judged := 0
	t.everyTool(ctx, func(list Listing, page *Response, tool Tool) {
		t.Expect(page).To(HoldTool(tool, expected, func(tool Tool) string {
			m := t.methodOf(tool.Name())
			if m == nil || !translatable(t, m) || !list.Once(tool.Name()) {
				return ""
			}
			judged++
			return fault(m, tool)
		}))
	})
	if judged == 0 {
		NotTestable("no listed tool bears the name of a method of the site (mapping/name-is-id and mapping/name-underscored judge that)")
	}
}

// everyTool judges every tool that the agent sees, and those that only others of the mock's site see, each apart: it
// stands on a page of a list.
func (t *T) everyTool(ctx context.Context, judge func(list Listing, page *Response, tool Tool)) {
	own := t.allTools(ctx, t.As(Agent))
	t.eachTool(own, func(page *Response, tool Tool) { judge(own, page, tool) })
	shown := own.Names()
	for _, list := range t.listsOfOthers(ctx) {
		t.eachTool(list, func(page *Response, tool Tool) {
			if !slices.Contains(shown, tool.Name()) {
				judge(list, page, tool)
			}
		})
	}
}

// portableName is the form of a name that every MCP client takes.
var portableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// isID tells whether a name is a method's id, so that it could not be another. Without the site the claim counts.
func (t *T) isID(name string) bool {
	if !t.Claims("naming-id") {
		return false
	}
	if t.Drupal == nil {
		return true
	}
	_, ok := t.Drupal.Site().Method(name)
	return ok
}

// underscoreFault says what is wrong with a tool's name under naming-underscore.
func (t *T) underscoreFault(tool Tool) string {
	site := t.Drupal.Site()
	for i := range site.Methods {
		if t.ToolName(site.Methods[i].ID) == tool.Name() {
			return ""
		}
	}
	if t.collides(tool.Name()) && portableName.MatchString(tool.Name()) && !strings.Contains(tool.Name(), ".") {
		return ""
	}
	return "another"
}

// collides tells whether a name can be that of one of several methods whose underscored ids are the same: how they are
// told apart is the bridge's affair, as long as the common part stays.
func (t *T) collides(name string) bool {
	return t.Claims("naming-underscore") && slices.ContainsFunc(t.colliding(), func(m *fixtures.Method) bool { return strings.Contains(name, t.ToolName(m.ID)) })
}

// colliding lists the agent's methods that share their underscored id with another.
func (t *T) colliding() []*fixtures.Method {
	site := t.Drupal.Site()
	count := map[string]int{}
	for i := range site.Methods {
		count[t.ToolName(site.Methods[i].ID)]++
	}
	var found []*fixtures.Method
	for _, id := range site.VisibleTo(userOf(site, Agent)) {
		if m, _ := site.Method(id); count[t.ToolName(id)] > 1 {
			found = append(found, m)
		}
	}
	return found
}

// nameOf finds the name under which a method is listed by its usage; "" where none or several tools or methods have it.
func (t *T) nameOf(list Listing, m *fixtures.Method) string {
	alike := 0
	methods := t.Drupal.Site().Methods
	for i := range methods {
		if methods[i].Usage == m.Usage {
			alike++
		}
	}
	var names []string
	for _, tool := range list.Tools() {
		if tool["description"] == m.Usage {
			names = append(names, tool.Name())
		}
	}
	if m.Usage == "" || alike > 1 || len(names) != 1 {
		return ""
	}
	return names[0]
}

// NameRight matches a listing in which the tool that describes itself as the method does bears the method's id.
func NameRight(t *T, m *fixtures.Method) OmegaMatcher {
	return &listingMatcher{expected: fmt.Sprintf("the name %q for the tool %q", m.ID, m.Usage), judge: func(l Listing) string {
		if name := t.nameOf(l, m); name != "" && name != m.ID {
			return fmt.Sprintf("%q", name)
		}
		return ""
	}}
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
