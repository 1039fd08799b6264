package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// ListsOfOthers are the lists of callers of a known site who see more and fewer tools than the agent, where they may
// list at all.
func ListsOfOthers(ctx context.Context, t *check.T) []check.Listing {
	if t.Site == nil {
		return nil
	}
	var lists []check.Listing
	for _, who := range t.Callers(check.Discoverer, check.Admin) {
		if list := t.As(who).ListShared(ctx); list.Pages[0].Status == http.StatusOK {
			lists = append(lists, list)
		}
	}
	return lists
}

// AllTools lists all that the caller sees. Where the list fails, is empty or cannot be followed to its end, the check
// is not testable: other clauses test that.
func AllTools(ctx context.Context, t *check.T, caller check.Client) check.Listing {
	return mustHoldTools(t, caller.MustListAll(ctx))
}

// AgentsTools is AllTools of the agent for checks of what stands there: see check.Client.ListShared.
func AgentsTools(ctx context.Context, t *check.T) check.Listing {
	return mustHoldTools(t, t.As(check.Agent).MustListShared(ctx))
}

func mustHoldTools(t *check.T, list check.Listing) check.Listing {
	if len(list.Tools()) == 0 {
		if t.Drupal == nil {
			check.NotTestable(fmt.Sprintf("%s sees no tool: it needs one", list.Last().Who))
		}
		check.BlockedBy(check.Mismatch(list.Pages[0].Subject(), "tools", "none"), "list/pages-cover-all-once", "access/*", "filter/*")
	}
	return list
}

// MustBeReadable makes the check not testable where pages do not hold tools or a cursor in a form that can be used.
func MustBeReadable(list check.Listing) {
	for _, page := range list.Pages {
		if tools, _ := page.Member("tools"); page.Status == http.StatusOK && match.TypeOf(tools) != "an array" {
			check.BlockedBy(check.Finding{Subject: "the list cannot be read: its `tools` is " + match.TypeOf(tools)}, "list/has-tools-array")
		}
	}
	if cursor, _ := list.Last().Member("nextCursor"); cursor != nil && cursor != false && match.TypeOf(cursor) != "a string" {
		check.BlockedBy(check.Finding{Subject: "the list cannot be followed: its `nextCursor` is " + match.TypeOf(cursor)}, "list/next-cursor-type")
	}
}

// NewCaller returns a new caller with the agent's permissions, unknown to the bridge; without a site, the agent itself.
func NewCaller(t *check.T) check.Client {
	if t.Drupal == nil {
		return t.As(check.Agent)
	}
	return t.As(t.Drupal.NewUser(t.Permissions(check.Agent)...))
}

// MustShow are the methods that the caller must find in the list. Not among them are those that a bridge may leave out
// or whose name the contract does not foretell. Without a site, or with exposure by patterns, nobody knows any.
func MustShow(t *check.T, who check.Identity) []*fixtures.Method {
	if t.Site == nil || !t.Marked() {
		return nil
	}
	var methods []*fixtures.Method
	for _, name := range t.Visible(who) {
		if m := MethodOf(t, name); m != nil && !m.ByPosition && Translatable(t, m) {
			methods = append(methods, m)
		}
	}
	return methods
}

// Translatable reports whether the bridge has to understand the method's schemas.
func Translatable(t *check.T, m *fixtures.Method) bool {
	if m.Unchecked {
		return false
	}
	return t.Claims("drupal-types") || !slices.ContainsFunc(m.Params, func(p fixtures.Param) bool { return p.Drupal != nil })
}

// MethodOf is the site's method that a tool's name belongs to; nil where there is none, or more than one.
func MethodOf(t *check.T, name string) *fixtures.Method {
	var found *fixtures.Method
	methods, length := t.Site.Methods(), utf8.RuneCountInString(name)
	renamed := t.Claims(check.ExposureMCP) // else an id has as many characters as its name
	for i := range methods {
		if (renamed || utf8.RuneCountInString(methods[i].ID) == length) && t.ToolName(methods[i].ID) == name {
			if found != nil {
				return nil
			}
			found = &methods[i]
		}
	}
	return found
}

// Serve puts these methods in place of the site's for the rest of the running check: see Present.
func Serve(ctx context.Context, t *check.T, methods []fixtures.Method) check.Client {
	t.ReplaceForNewcomers(ctx, t.Drupal.Site())
	return Present(ctx, t, methods)
}

// Present puts a site with the same accounts and other methods behind the bridge, waits until the bridge no longer
// shows the old ones, and returns a new caller with the agent's permissions. T.Replace must have been called before, so
// that the old site comes back.
func Present(ctx context.Context, t *check.T, methods []fixtures.Method) check.Client {
	caller := NewCaller(t)
	old := t.Visible(caller.Who)
	site := t.Drupal.Site().ClonePeople()
	site.Methods = methods
	t.Drupal.Mock.SetSite(site)
	t.AwaitShown(ctx, "that methods went", func() bool { return !ShowsAny(caller.List(ctx), old) }, nil)
	return caller
}

func ShowsAny(page *check.Response, names []string) bool {
	return slices.ContainsFunc(page.Tools(), func(t check.Tool) bool { return slices.Contains(names, t.Name()) })
}

// ManyMethods are n exposed methods that ask for no permission, named with the prefix.
func ManyMethods(prefix string, n int) []fixtures.Method {
	site, err := fixtures.Builtin(fmt.Sprintf("bulk-%d", n))
	if err != nil {
		panic(fmt.Sprintf("a check cannot make its own site: %v", err))
	}
	for i := range site.Methods {
		site.Methods[i].ID = fmt.Sprintf("%s%05d", prefix, i)
	}
	return site.Methods
}

// EveryTool tests every tool that the agent sees, and those of which others of the mock's site see another definition, or
// which they alone see, each apart: it stands on a page of a list.
func EveryTool(ctx context.Context, t *check.T, test func(list check.Listing, page *check.Response, tool check.Tool)) {
	own := AgentsTools(ctx, t)
	t.EachTool(own, func(page *check.Response, tool check.Tool) { test(own, page, tool) })
	shown := map[string]check.Tool{}
	for _, tool := range own.Tools() {
		shown[tool.Name()] = tool
	}
	for _, list := range ListsOfOthers(ctx, t) {
		t.EachTool(list, func(page *check.Response, tool check.Tool) {
			if !exact.Equal(map[string]any(shown[tool.Name()]), map[string]any(tool)) {
				test(list, page, tool)
			}
		})
	}
}

// Collides reports whether a name can be that of one of several methods whose underscored ids are the same: the bridge
// chooses how their names differ, as long as they contain the common part.
func Collides(t *check.T, name string) bool {
	return t.Claims("naming-underscore") && slices.ContainsFunc(Colliding(t), func(m *fixtures.Method) bool { return strings.Contains(name, t.ToolName(m.ID)) })
}

// Colliding lists the agent's methods that share their underscored id with another.
func Colliding(t *check.T) []*fixtures.Method {
	methods := t.Site.Methods()
	count := map[string]int{}
	for i := range methods {
		count[t.ToolName(methods[i].ID)]++
	}
	var found []*fixtures.Method
	for i := range methods {
		m := &methods[i]
		if count[t.ToolName(m.ID)] > 1 && t.Site.MayRun(check.Agent, m) && (m.MCP != nil || !t.Site.Marks()) {
			found = append(found, m)
		}
	}
	return found
}

// ShownFaults says of each name that is missing or too many among those that the caller is shown what is wrong.
func ShownFaults(t *check.T, who check.Identity, got []string) map[string]string {
	want := t.Visible(who)
	wrong := map[string]string{}
	loose := map[string]bool{}
	for i, name := range want {
		if slices.Contains(want[:i], name) {
			loose[name] = true
		}
	}
	for _, m := range t.Site.Methods() {
		if m.ByPosition || m.Unchecked {
			loose[t.ToolName(m.ID)] = true
		}
	}
	for _, name := range want {
		if !loose[name] && !slices.Contains(got, name) {
			wrong[name] = fmt.Sprintf("%d tools without %q", len(got), name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) && !match.StartsWithAny(name, loose) {
			wrong[name] = fmt.Sprintf("%q among %d tools", name, len(got))
		}
	}
	return wrong
}
