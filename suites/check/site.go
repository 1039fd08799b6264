package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// ChangeSite puts another site behind the bridge for the rest of the running check and waits until the bridge shows it: it
// calls seen until that returns true, at most for the discovery TTL and some slack. If the bridge still shows the old site
// then, the check is not testable: fresh/ttl-expiry tests that.
func (t *T) ChangeSite(ctx context.Context, other *fixtures.Site, seen func() bool) {
	t.Replace(ctx, other)
	t.AwaitShown(ctx, "the site "+other.Name, seen, nil)
}

// ShowSite is ChangeSite for a check that goes on as the viewer, whom it returns.
func (t *T) ShowSite(ctx context.Context, other *fixtures.Site, seen func(Client) bool) Client {
	t.ReplaceForNewcomers(ctx, other)
	viewer := t.Viewer()
	t.AwaitShown(ctx, "the site "+other.Name, func() bool { return seen(viewer) }, nil)
	return viewer
}

// Replace puts another site behind the bridge and does not wait. The old site comes back when the check ends. If it is
// unknown how long the bridge may cache the old one, the check is not testable.
func (t *T) Replace(ctx context.Context, other *fixtures.Site) {
	t.MustKnowTTL()
	t.replace(ctx, other)
}

// ReplaceForNewcomers is Replace for a check whose callers are all new to the bridge: where such a caller sees the site as it is,
// nothing needs to be known of the cache.
func (t *T) ReplaceForNewcomers(ctx context.Context, other *fixtures.Site) {
	if t.measures != nil && t.measures.currentForNew {
		t.replace(ctx, other)
		return
	}
	t.Replace(ctx, other)
}

// Viewer is who sees a changed site first: a caller with the agent's permissions who is new to the bridge, where such a caller
// sees the site as it is, else the agent.
func (t *T) Viewer() Client {
	if t.measures != nil && t.measures.currentForNew {
		return t.As(t.Drupal.NewUser(t.Permissions(Agent)...))
	}
	return t.As(Agent)
}

func (t *T) replace(ctx context.Context, other *fixtures.Site) {
	if t.replaced { // the site that was there first comes back in the end, and that is waited for
		t.setSite(other)
		return
	}
	before, listed := t.Drupal.Site(), t.listedNames(ctx, Client.ListShared)
	t.replaced = true
	t.Cleanup(func(ctx context.Context) { // also where the control plane's response is lost, and the other site is there
		t.replaced = false
		if ended, failed := protect(func() { t.Drupal.Mock.SetSite(before) }).(Ending); failed {
			t.Environment.End(fmt.Errorf("the site could not be put back as it was: %s", ended.Why.Subject))
			return
		}
		t.AwaitBack(ctx, func() bool { return sameInAnyOrder(t.ListedNames(ctx), listed) })
	})
	t.setSite(other)
}

// setSite puts a site in place whose callers authenticate as before.
func (t *T) setSite(other *fixtures.Site) {
	t.Drupal.Use()
	same := *other
	same.Auth = t.Drupal.Site().Auth
	t.Drupal.Mock.SetSite(&same)
}

// ListedNames names the tools that the bridge shows the agent now, by MCP if that is its only interface; none if it has no list.
func (t *T) ListedNames(ctx context.Context) []string { return t.listedNames(ctx, Client.ListAll) }

func (t *T) listedNames(ctx context.Context, list func(Client, context.Context) Listing) []string {
	if !t.Claims("tools") {
		return t.As(Agent).ListedByMCP(ctx)
	}
	return list(t.As(Agent), ctx).Names()
}

// ExposureMCP is the capability of a bridge whose tools are those of the Drupal module mcp, under the names that it gives.
const ExposureMCP = "exposure-mcp-module"

// Marked reports whether the bridge's tools are the methods with the McpTool attribute, which the mock's module mcp offers, too.
func (t *T) Marked() bool { return t.Claims("exposure-attribute") || t.Claims(ExposureMCP) }

// CallPath is the address of the site at which methods are called.
func (t *T) CallPath() string {
	if t.Claims(ExposureMCP) {
		return route.MCPPostPath
	}
	return "/jsonrpc"
}

// ToolName is the name under which the bridge must list a method. The contract determines no name for ids that collide
// when underscored: mapping/name-underscored tests those.
func (t *T) ToolName(id string) string {
	if t.Claims(ExposureMCP) {
		return route.MCPToolName(id)
	}
	if !t.Claims("naming-underscore") {
		return id
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, id)
}

// UserOf looks an account up that is known to exist.
func UserOf(other *fixtures.Site, who Identity) *fixtures.User {
	user, _ := other.User(string(who))
	return user
}

// sameInAnyOrder reports whether two lists hold the same names.
func sameInAnyOrder(one, two []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(two)))
}

// Permissions are those that an account of the site holds through its roles.
func (t *T) Permissions(who Identity) []string {
	now := t.Drupal.Site()
	return site.Permissions(now, UserOf(now, who))
}

// Exposed reports whether a method is a tool: by the patterns where the bridge goes by those, by its attribute, or, where a
// real site shows no attributes, because the bridge lists it to one of the callers.
func (t *T) Exposed(m *fixtures.Method) bool {
	switch {
	case !t.exposureKnown():
		return t.listedToAny()[t.ToolName(m.ID)]
	case t.Claims("exposure-patterns"):
		return t.PatternsInUse().Exposes(m.ID)
	}
	return m.MCP != nil
}

// exposureKnown reports whether it is known, without the bridge's list, which methods are tools.
func (t *T) exposureKnown() bool {
	if t.Claims("exposure-patterns") {
		return t.Drupal != nil || t.Patterns != nil
	}
	return t.Site.Marks()
}

// listedToAny are the names that the bridge lists to the callers of the run.
func (t *T) listedToAny() map[string]bool {
	if t.listed == nil {
		t.listed = map[string]bool{}
		for _, who := range t.Callers(Agent, Discoverer, Admin, Service) {
			for _, name := range t.As(who).ListAll(t.Context).Names() {
				t.listed[name] = true
			}
		}
	}
	return t.listed
}

// The ways in which a bridge that claims none shows tools.
type visibility int

const (
	unknownVisibility visibility = iota
	showsOwn                     // to each caller those that it may run
	showsAll                     // all to every caller
)

// ShowsAll reports whether the bridge shows all tools to every caller: it claims that, or one account, which may run all, acts for
// all of them, or it claims nothing and shows the agent of a known site a tool that the agent may not run.
func (t *T) ShowsAll() bool {
	switch {
	case t.OneAccount(), t.Claims("visibility-broad"):
		return true
	case t.Claims("visibility-filtered"), t.Drupal == nil:
		return false
	}
	if t.visibility == unknownVisibility {
		denied := map[string]bool{}
		for _, m := range t.Site.Methods() {
			if t.Exposed(&m) && !t.Site.MayRun(Agent, &m) {
				denied[t.ToolName(m.ID)] = true
			}
		}
		t.Unrecorded(func() {
			listed := t.As(Agent).ListAll(t.Context)
			switch {
			case slices.ContainsFunc(listed.Names(), func(name string) bool { return denied[name] }):
				t.visibility = showsAll
			case listed.Fault.IsZero() && len(denied) > 0:
				t.visibility = showsOwn
			}
		})
	}
	return t.visibility == showsAll
}

// Visible lists the names of the tools that the bridge must show the caller, in the site's order.
func (t *T) Visible(who Identity) []string {
	var names []string
	methods := t.Site.Methods()
	for i := range methods {
		m := &methods[i]
		if t.Exposed(m) && (t.Site.MayRun(who, m) || t.ShowsAll()) {
			names = append(names, t.ToolName(m.ID))
		}
	}
	return names
}

// Method is the site's method with an id.
func (t *T) Method(id string) (*fixtures.Method, bool) {
	methods := t.Site.Methods()
	i := slices.IndexFunc(methods, func(m fixtures.Method) bool { return m.ID == id })
	if i < 0 {
		return nil, false
	}
	return &methods[i], true
}

// MustMark ends a check that needs the McpTool attributes where the site does not show them.
func (t *T) MustMark() {
	if !t.Site.Marks() {
		NotTestable(fmt.Sprintf("the site %s does not show the McpTool attributes of its methods: put the mock Drupal there (--mock-listen or --exec)", t.Site.Name()))
	}
}

// exemptIfChanged exempts the running check where a real site has changed since it was read.
func (t *T) exemptIfChanged() {
	if real, ok := t.Site.(*site.Real); ok && real.Changed() {
		t.Exempt(fmt.Sprintf("the methods that the site %s shows have changed during the run: run again while nobody changes them", real.Name()))
	}
}
