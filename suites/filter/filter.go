// Package filter checks which methods become tools by pattern, and the bridge's rate limit.
package filter

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
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area filter.
var Checks = []harness.Check{
	{ID: "filter/include-exclude", Sees: harness.Site, Run: includeExclude},
	{ID: "filter/defaults-safe", Sees: harness.Site, Run: defaultsSafe},
	{ID: "filter/invoke-guarded", Sees: harness.Site, Run: invokeGuarded},
	{ID: "filter/rate-limit", Sees: harness.Site, Run: rateLimit},
}

func includeExclude(ctx context.Context, t *harness.T) {
	service := t.As(harness.Service)
	if near := nearMisses(t); slices.ContainsFunc(near, func(m fixtures.Method) bool { return t.Exposed(&m) }) {
		site := t.Drupal.Site().Clone()
		site.Methods = append(near, site.Methods...)
		t.ChangeSite(ctx, site, func() bool { return slices.ContainsFunc(service.ListAll(ctx).Names(), isNearMiss) })
	}
	listed := service.MustListAll(ctx).Names()
	want := t.Visible(harness.Service)
	for _, name := range match.Union(want, listed) {
		t.For(harness.Service, name, func() {
			t.Expect(listed).To(ContainElement(name), harness.Mismatch("list as service", fmt.Sprintf("%q, which the patterns let in", name), fmt.Sprintf("%d tools without it", len(listed))))
			t.Expect(want).To(ContainElement(name), harness.Mismatch("list as service", fmt.Sprintf("no %q, which the patterns keep out", name), "it in the list"))
		})
	}

	shown := 0
	for _, m := range t.Drupal.Site().Methods {
		name, in := t.ToolName(m.ID), t.Patterns.Exposes(m.ID)
		if in {
			shown++
		}
		t.For(harness.Service, name, func() {
			r := service.Describe(ctx, name)
			if in {
				t.Expect(r).To(match.BeTool(name), "the patterns let it in")
				return
			}
			t.Expect(r).To(match.BeRefusedWith(404), "the patterns keep it out")
			t.Expect(service.Invoke(ctx, name, harness.Args{})).To(match.BeRefusedWith(404), "the patterns keep it out")
			t.Expect(t.Drupal.Runs(m.ID)).To(BeEmpty(), harness.Mismatch(fmt.Sprintf("%s is kept out by the patterns", m.ID), "no run", "one"))
		})
	}
	t.Expect(shown).To(BeNumerically(">", 0), harness.Mismatch("the patterns", "a method that they let in", "none"))
}

func defaultsSafe(ctx context.Context, t *harness.T) {
	if !slices.Equal(t.Patterns.Include, harness.DefaultPatterns.Include) || !slices.Equal(t.Patterns.Exclude, harness.DefaultPatterns.Exclude) {
		harness.NotTestable("the bridge does not run with the default patterns")
	}
	listed := t.As(harness.Service).MustListAll(ctx).Names()
	in := 0
	for _, m := range t.Drupal.Site().Methods {
		group, _, _ := strings.Cut(m.ID, ".")
		safe := slices.Contains([]string{"content", "search", "taxonomy", "media"}, group) && !strings.Contains(m.ID, ".admin.")
		unsafe := slices.Contains([]string{"system.cache_clear", "user.login", "node.delete"}, m.ID) || strings.Contains(m.ID, ".admin.")
		switch {
		case safe:
			in++
			t.For(harness.Service, t.ToolName(m.ID), func() {
				t.Expect(listed).To(ContainElement(t.ToolName(m.ID)), harness.Mismatch("list as service", fmt.Sprintf("%q, which the default patterns let in", t.ToolName(m.ID)), fmt.Sprintf("%d tools without it", len(listed))))
			})
		case unsafe:
			t.For(harness.Service, t.ToolName(m.ID), func() {
				t.Expect(listed).NotTo(ContainElement(t.ToolName(m.ID)), harness.Mismatch("list as service", fmt.Sprintf("no %q, which the default patterns keep out", t.ToolName(m.ID)), "it in the list"))
			})
		}
	}
	t.Expect(in).To(BeNumerically(">", 0), harness.Mismatch("the default patterns", "methods that they let in", "none"))
}

func invokeGuarded(ctx context.Context, t *harness.T) {
	service := t.As(harness.Service)
	open, kept := openTool(t), keptOut(t)
	service.Invoke(ctx, t.ToolName(open), harness.Args{}).MustSucceed()
	t.Drupal.Mark()

	for _, name := range []string{kept, strings.ToUpper(kept), " " + kept, kept + " ", "./" + kept, open + "/../" + kept, kept + "\x00", open + "," + kept,
		strings.ReplaceAll(kept, ".", "_"), strings.ReplaceAll(kept, ".", "%2E"), strings.ReplaceAll(kept, ".", "\u2024")} {
		t.For(harness.Service, name, func() {
			t.Expect(service.Invoke(ctx, name, harness.Args{})).To(match.BeClientError(), "a way to name "+kept)
		})
	}
	batch := fmt.Sprintf(`[{"name":%[1]q,"arguments":{}},{"jsonrpc":"2.0","method":%[1]q,"id":1}]`, kept)
	t.Row(harness.Service, "", "a batch", func() { t.Expect(service.InvokeBody(ctx, []byte(batch))).To(match.BeClientError()) })
	both := fmt.Sprintf(`{"name":%q,"method":%[2]q,"jsonrpc":"2.0","arguments":{},"params":{"method":%[2]q}}`, t.ToolName(open), kept)
	service.InvokeBody(ctx, []byte(both))
	if t.HasFindings() {
		return
	}
	t.Expect(t.Drupal.Runs(kept)).To(BeEmpty(), harness.Mismatch(fmt.Sprintf("%s is kept out by the patterns", kept), "no run whatever the request", "one"))
}

func rateLimit(ctx context.Context, t *harness.T) {
	if t.RateLimit == 0 {
		harness.NotTestable("how many calls the bridge allows is unknown: give the setting `rate_limit`")
	}
	known := scenario.KnownTool(ctx, t)
	users := t.Drupal.NewUsers(2, t.Permissions(harness.Agent)...)
	busy, calm := t.As(users[0]), t.As(users[1])
	calm.Invoke(ctx, known, harness.Args{}).MustSucceed()
	t.Drupal.Mark()
	var limited *harness.Response
	sent := 0
	for began := time.Now(); sent < 3*t.RateLimit && limited == nil && time.Since(began) < t.Timeout; sent++ {
		if r := busy.Invoke(ctx, known, harness.Args{}); r.Status != http.StatusOK {
			limited = r
		}
	}
	if limited == nil && sent <= t.RateLimit {
		harness.NotTestable(fmt.Sprintf("the calls take too long to come to more than the %d that are allowed: %d in %v", t.RateLimit, sent, t.Timeout))
	}
	t.Expect(limited).NotTo(BeNil(), harness.Mismatch(fmt.Sprintf("%d calls of one caller where %d are allowed", sent, t.RateLimit), "429", "results only"))
	t.Expect(limited).To(match.BeRefused(429))
	t.Expect(limited).To(match.BeEnvelope())
	t.Expect(limited).To(match.Conform("a Retry-After of seconds or a date", func(a *harness.Response) string {
		after := a.Header.Get("Retry-After")
		_, noSeconds := strconv.ParseUint(after, 10, 32)
		if _, noDate := http.ParseTime(after); noSeconds != nil && noDate != nil {
			return fmt.Sprintf("%q", after)
		}
		return ""
	}))
	t.Expect(len(t.Drupal.Calls())).To(Equal(sent-1), harness.Mismatch("a call over the rate", "it to reach no method", "it at the site"))
	t.Expect(calm.Invoke(ctx, known, harness.Args{})).To(match.HaveStatus(http.StatusOK), "another caller meanwhile")
}

// nearby is the word in the ids of nearMisses.
const nearby = "nearby"

// nearMisses are methods whose ids are made from the patterns: such as match one, and such as nearly do, where it is not
// held to both ends, takes a dot for any character, or a star for less than a run of characters with dots.
func nearMisses(t *harness.T) []fixtures.Method {
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
	for _, pattern := range t.Patterns.Include {
		for _, id := range variations(pattern) {
			add(id)
		}
	}
	open := slices.IndexFunc(t.Patterns.Include, func(pattern string) bool { return strings.Contains(pattern, "*") })
	for _, pattern := range t.Patterns.Exclude {
		for _, id := range variations(pattern) {
			if add(id); open >= 0 { // let in, but for the exclude pattern
				add(strings.Replace(t.Patterns.Include[open], "*", id, 1))
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
func openTool(t *harness.T) string {
	for _, m := range t.Drupal.Site().Methods {
		if t.Patterns.Exposes(m.ID) && scenario.RunsPlainly(&m) {
			return m.ID
		}
	}
	harness.NotTestable("the patterns let no method in that runs without arguments")
	return ""
}

// keptOut is a method that the patterns keep out and that would run without arguments.
func keptOut(t *harness.T) string {
	for _, m := range t.Drupal.Site().Methods {
		if !t.Patterns.Exposes(m.ID) && scenario.RunsPlainly(&m) {
			return m.ID
		}
	}
	harness.NotTestable("the patterns keep no method out that runs without arguments")
	return ""
}
