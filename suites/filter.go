package suites

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Patterns say which method ids are tools where no attribute does: those that match an include pattern and no exclude
// pattern. `*` stands for any run of characters, dots as well.
type Patterns struct {
	Include, Exclude []string
}

// DefaultPatterns are those of clause filter/defaults-safe.
var DefaultPatterns = Patterns{
	Include: []string{"content.*", "search.*", "taxonomy.*", "media.*"},
	Exclude: []string{"system.*", "user.*", "node.delete", "*.admin.*"},
}

// Exposes tells whether the patterns make a tool of the method.
func (p Patterns) Exposes(id string) bool {
	matches := func(pattern string) bool { return matchesRun(pattern, id) }
	return slices.ContainsFunc(p.Include, matches) && !slices.ContainsFunc(p.Exclude, matches)
}

// matchesRun matches a pattern in which only `*` is special.
func matchesRun(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// checks__filter__filter are the checks of this file.
var checks__filter__filter = []Check{
	{ID: "filter/include-exclude", Sees: Site, Run: chk__filter__includeExclude},
	{ID: "filter/defaults-safe", Sees: Site, Run: chk__filter__defaultsSafe},
	{ID: "filter/invoke-guarded", Sees: Site, Run: chk__filter__invokeGuarded},
	{ID: "filter/rate-limit", Sees: Site, Run: chk__filter__rateLimit},
}

func chk__filter__includeExclude(ctx context.Context, t *T) {
	service := t.As(Service)
	if near := t.nearMisses(); slices.ContainsFunc(near, func(m fixtures.Method) bool { return t.exposed(&m) }) {
		site := t.Drupal.Site().Clone()
		site.Methods = append(near, site.Methods...)
		t.ChangeSite(ctx, site, func() bool { return slices.ContainsFunc(service.ListAll(ctx).Names(), isNearMiss) })
	}
	listed := service.MustListAll(ctx).Names()
	want := t.Visible(Service)
	for _, name := range union(want, listed) {
		t.For(Service, name, func() {
			t.Expect(listed).To(ContainElement(name), mismatch("list as service", fmt.Sprintf("%q, which the patterns let in", name), fmt.Sprintf("%d tools without it", len(listed))))
			t.Expect(want).To(ContainElement(name), mismatch("list as service", fmt.Sprintf("no %q, which the patterns keep out", name), "it in the list"))
		})
	}

	shown := 0
	for _, m := range t.Drupal.Site().Methods {
		name, in := t.ToolName(m.ID), t.patterns.Exposes(m.ID)
		if in {
			shown++
		}
		t.For(Service, name, func() {
			r := service.Describe(ctx, name)
			if in {
				t.Expect(r).To(BeTheTool(name), "the patterns let it in")
				return
			}
			t.Expect(r).To(BeRefusedWith(404), "the patterns keep it out")
			t.Expect(service.Invoke(ctx, name, Args{})).To(BeRefusedWith(404), "the patterns keep it out")
			t.Expect(t.Drupal.Runs(m.ID)).To(BeEmpty(), mismatch(fmt.Sprintf("%s is kept out by the patterns", m.ID), "no run", "one"))
		})
	}
	t.Expect(shown).To(BeNumerically(">", 0), mismatch("the patterns", "a method that they let in", "none"))
}

func chk__filter__defaultsSafe(ctx context.Context, t *T) {
	if !slices.Equal(t.patterns.Include, DefaultPatterns.Include) || !slices.Equal(t.patterns.Exclude, DefaultPatterns.Exclude) {
		NotTestable("the bridge does not run with the default patterns")
	}
	listed := t.As(Service).MustListAll(ctx).Names()
	in := 0
	for _, m := range t.Drupal.Site().Methods {
		group, _, _ := strings.Cut(m.ID, ".")
		safe := slices.Contains([]string{"content", "search", "taxonomy", "media"}, group) && !strings.Contains(m.ID, ".admin.")
		unsafe := slices.Contains([]string{"system.cache_clear", "user.login", "node.delete"}, m.ID) || strings.Contains(m.ID, ".admin.")
		switch {
		case safe:
			in++
			t.For(Service, t.ToolName(m.ID), func() {
				t.Expect(listed).To(ContainElement(t.ToolName(m.ID)), mismatch("list as service", fmt.Sprintf("%q, which the default patterns let in", t.ToolName(m.ID)), fmt.Sprintf("%d tools without it", len(listed))))
			})
		case unsafe:
			t.For(Service, t.ToolName(m.ID), func() {
				t.Expect(listed).NotTo(ContainElement(t.ToolName(m.ID)), mismatch("list as service", fmt.Sprintf("no %q, which the default patterns keep out", t.ToolName(m.ID)), "it in the list"))
			})
		}
	}
	t.Expect(in).To(BeNumerically(">", 0), mismatch("the default patterns", "methods that they let in", "none"))
}

func chk__filter__invokeGuarded(ctx context.Context, t *T) {
	service := t.As(Service)
	open, kept := t.openTool(), t.keptOut()
	service.Invoke(ctx, t.ToolName(open), Args{}).MustSucceed()
	t.Drupal.Mark()

	for _, name := range []string{kept, strings.ToUpper(kept), " " + kept, kept + " ", "./" + kept, open + "/../" + kept, kept + "\x00", open + "," + kept,
		strings.ReplaceAll(kept, ".", "_"), strings.ReplaceAll(kept, ".", "%2E"), strings.ReplaceAll(kept, ".", "\u2024")} {
		t.For(Service, name, func() { t.Expect(service.Invoke(ctx, name, Args{})).To(BeClientError(), "a way to name "+kept) })
	}
	batch := fmt.Sprintf(`[{"name":%[1]q,"arguments":{}},{"jsonrpc":"2.0","method":%[1]q,"id":1}]`, kept)
	t.Row(Service, "", "a batch", func() { t.Expect(service.InvokeBody(ctx, []byte(batch))).To(BeClientError()) })
	both := fmt.Sprintf(`{"name":%q,"method":%[2]q,"jsonrpc":"2.0","arguments":{},"params":{"method":%[2]q}}`, t.ToolName(open), kept)
	service.InvokeBody(ctx, []byte(both))
	if t.wrong() {
		return
	}
	t.Expect(t.Drupal.Runs(kept)).To(BeEmpty(), mismatch(fmt.Sprintf("%s is kept out by the patterns", kept), "no run whatever the request", "one"))
}

func chk__filter__rateLimit(ctx context.Context, t *T) {
	if t.rateLimit == 0 {
		NotTestable("how many calls the bridge allows is unknown: give the setting `rate_limit`")
	}
	known := t.KnownTool(ctx)
	users := t.Drupal.NewUsers(2, t.Permissions(Agent)...)
	busy, calm := t.As(users[0]), t.As(users[1])
	calm.Invoke(ctx, known, Args{}).MustSucceed()
	t.Drupal.Mark()
	var limited *Response
	sent := 0
	for began := time.Now(); sent < 3*t.rateLimit && limited == nil && time.Since(began) < t.timeout; sent++ {
		if r := busy.Invoke(ctx, known, Args{}); r.Status != http.StatusOK {
			limited = r
		}
	}
	if limited == nil && sent <= t.rateLimit {
		NotTestable(fmt.Sprintf("the calls take too long to come to more than the %d that are allowed: %d in %v", t.rateLimit, sent, t.timeout))
	}
	t.Expect(limited).NotTo(BeNil(), mismatch(fmt.Sprintf("%d calls of one caller where %d are allowed", sent, t.rateLimit), "429", "results only"))
	t.Expect(limited).To(BeRefused(429))
	t.Expect(limited).To(BeEnvelope())
	t.Expect(limited).To(Meet("a Retry-After of seconds or a date", func(a *Response) string {
		after := a.Header.Get("Retry-After")
		_, noSeconds := strconv.ParseUint(after, 10, 32)
		if _, noDate := http.ParseTime(after); noSeconds != nil && noDate != nil {
			return fmt.Sprintf("%q", after)
		}
		return ""
	}))
	t.Expect(len(t.Drupal.Calls())).To(Equal(sent-1), mismatch("a call over the rate", "it to reach no method", "it at the site"))
	t.Expect(calm.Invoke(ctx, known, Args{})).To(HaveStatus(http.StatusOK), "another caller meanwhile")
}

// nearby is the word in the ids of nearMisses.
const nearby = "nearby"

// nearMisses are methods whose ids are made from the patterns: such as match one, and such as nearly do, where it is not
// held to both ends, takes a dot for any character, or a star for less than a run of characters with dots.
func (t *T) nearMisses() []fixtures.Method {
	ids := map[string]bool{}
	var methods []fixtures.Method
	add := func(id string) {
		if !strings.Contains(id, nearby) {
			id += nearby
		}
		if !ids[id] {
			ids[id] = true
			methods = append(methods, fixtures.Method{ID: id, Usage: "Nearly matches", Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw("true")}})
		}
	}
	for _, pattern := range t.patterns.Include {
		for _, id := range variations(pattern) {
			add(id)
		}
	}
	open := slices.IndexFunc(t.patterns.Include, func(pattern string) bool { return strings.Contains(pattern, "*") })
	for _, pattern := range t.patterns.Exclude {
		for _, id := range variations(pattern) {
			if add(id); open >= 0 { // let in, but for the exclude pattern
				add(strings.Replace(t.patterns.Include[open], "*", id, 1))
			}
		}
	}
	return methods
}

// variations are an id that matches a pattern, and such as do not, or only with more in the place of its stars.
func variations(pattern string) []string {
	full := strings.ReplaceAll(pattern, "*", nearby)
	return []string{full, full + ".and.more", "x" + full, full + "x", "other." + full, strings.Replace(full, ".", "x", 1), strings.ReplaceAll(full, ".", "x")}
}

func isNearMiss(name string) bool { return strings.Contains(name, nearby) }

// openTool is a method that the patterns let in and that runs without arguments.
func (t *T) openTool() string {
	for _, m := range t.Drupal.Site().Methods {
		if t.patterns.Exposes(m.ID) && runsPlainly(&m) {
			return m.ID
		}
	}
	NotTestable("the patterns let no method in that runs without arguments")
	return ""
}

// keptOut is a method that the patterns keep out and that would run without arguments.
func (t *T) keptOut() string {
	for _, m := range t.Drupal.Site().Methods {
		if !t.patterns.Exposes(m.ID) && runsPlainly(&m) {
			return m.ID
		}
	}
	NotTestable("the patterns keep no method out that runs without arguments")
	return ""
}

// runsPlainly tells whether a method answers at once to a call without arguments.
func runsPlainly(m *fixtures.Method) bool {
	return !slices.ContainsFunc(m.Params, func(p fixtures.Param) bool { return p.Required }) && m.Behaviour.Kind != fixtures.Fail &&
		m.Behaviour.Kind != fixtures.Throw && m.Behaviour.Sleep == 0
}
