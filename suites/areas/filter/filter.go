// Package filter checks which methods become tools by include and exclude patterns, and the bridge's rate limit.
package filter

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area filter.
var Checks = []check.Check{
	{ID: "filter/include-exclude", Sees: check.Site, ByMCP: true, Run: includeExclude, WithoutSite: includeExcludeAsItIs},
	{ID: "filter/defaults-safe", Sees: check.Discovery, Run: defaultsSafe},
	{ID: "filter/invoke-guarded", Sees: check.Site, Run: invokeGuarded},
	{ID: "filter/rate-limit", Sees: check.Site, Run: rateLimit},
}

func includeExclude(ctx context.Context, t *check.T) {
	service := t.As(check.Service)
	if near := nearMisses(t); slices.ContainsFunc(near, func(m fixtures.Method) bool { return t.Exposed(&m) }) {
		site := t.Drupal.Site().Clone()
		site.Methods = append(near, site.Methods...)
		t.ChangeSite(ctx, site, func() bool { return slices.ContainsFunc(service.ListAll(ctx).Names(), isNearMiss) })
	}
	listed := service.MustListAll(ctx).Names()
	want := t.Visible(check.Service)
	for _, name := range match.Union(want, listed) {
		t.For(check.Service, name, func() {
			t.Expect(listed).To(ContainElement(name), check.Mismatch("list as service", fmt.Sprintf("%q, which the patterns include", name), fmt.Sprintf("%d tools without it", len(listed))))
			t.Expect(want).To(ContainElement(name), check.Mismatch("list as service", fmt.Sprintf("no %q, which the patterns do not include", name), "it in the list"))
		})
	}

	included := 0
	for _, m := range t.Drupal.Site().Methods {
		name, isIncluded := t.ToolName(m.ID), t.PatternsInUse().Exposes(m.ID)
		if isIncluded {
			included++
			if !isNearMiss(m.ID) && slices.Contains(listed, name) {
				continue // describe/answers-tool describes what is listed
			}
		}
		t.For(check.Service, name, func() {
			r := service.Describe(ctx, name)
			if isIncluded {
				t.Expect(r).To(match.BeTool(name), "the patterns include it")
				return
			}
			t.Expect(r).To(match.BeRefusedWith(404), "the patterns do not include it")
			t.Expect(service.Invoke(ctx, name, check.Args{})).To(match.BeRefusedWith(404), "the patterns do not include it")
			t.Expect(t.Drupal.Runs(m.ID)).To(BeEmpty(), check.Mismatch(fmt.Sprintf("%s, which the patterns do not include", m.ID), "no run", "one"))
		})
	}
	t.Expect(included).To(BeNumerically(">", 0), check.Mismatch("the patterns", "a method that they include", "none"))
}

func defaultsSafe(ctx context.Context, t *check.T) {
	mustKnowPatterns(t)
	if !slices.Equal(t.PatternsInUse().Include, check.DefaultPatterns.Include) || !slices.Equal(t.PatternsInUse().Exclude, check.DefaultPatterns.Exclude) {
		check.NotTestable("the bridge does not run with the default patterns: give it no others, and test again")
	}
	who := broadest(t)
	listed := t.As(who).MustListAll(ctx).Names()
	included := 0
	for _, m := range t.Site.Methods() {
		if t.Drupal == nil && !t.Site.MayRun(who, &m) {
			continue
		}
		group, _, _ := strings.Cut(m.ID, ".")
		safe := slices.Contains([]string{"content", "search", "taxonomy", "media"}, group) && !strings.Contains(m.ID, ".admin.")
		unsafe := slices.Contains([]string{"system.cache_clear", "user.login", "node.delete"}, m.ID) || strings.Contains(m.ID, ".admin.")
		switch {
		case safe:
			included++
			t.For(who, t.ToolName(m.ID), func() {
				t.Expect(listed).To(ContainElement(t.ToolName(m.ID)), check.Mismatch("list as "+who.String(), fmt.Sprintf("%q, which the default patterns include", t.ToolName(m.ID)), fmt.Sprintf("%d tools without it", len(listed))))
			})
		case unsafe:
			t.For(who, t.ToolName(m.ID), func() {
				t.Expect(listed).NotTo(ContainElement(t.ToolName(m.ID)), check.Mismatch("list as "+who.String(), fmt.Sprintf("no %q, which the default patterns exclude", t.ToolName(m.ID)), "it in the list"))
			})
		}
	}
	if t.Drupal == nil && included == 0 && !t.HasFindings() {
		check.NotTestable("the default patterns include no method of the site " + t.Site.Name())
	}
	t.Expect(included).To(BeNumerically(">", 0), check.Mismatch("the default patterns", "methods that they include", "none"))
}

func invokeGuarded(ctx context.Context, t *check.T) {
	service := t.As(check.Service)
	included, excluded := includedMethod(t), excludedMethod(t)
	service.Invoke(ctx, t.ToolName(included), check.Args{}).MustSucceed("invoke/answers-result")
	t.Drupal.Mark()

	for _, name := range []string{excluded, strings.ToUpper(excluded), " " + excluded, excluded + " ", "./" + excluded, included + "/../" + excluded, excluded + "\x00", included + "," + excluded,
		strings.ReplaceAll(excluded, ".", "_"), strings.ReplaceAll(excluded, ".", "%2E"), strings.ReplaceAll(excluded, ".", "\u2024")} {
		t.For(check.Service, name, func() {
			t.Expect(service.Invoke(ctx, name, check.Args{})).To(match.BeClientError(), "a spelling of "+excluded)
		})
	}
	batch := fmt.Sprintf(`[{"name":%[1]q,"arguments":{}},{"jsonrpc":"2.0","method":%[1]q,"id":1}]`, excluded)
	t.Row(check.Service, "", "a batch", func() { t.Expect(service.InvokeBody(ctx, []byte(batch))).To(match.BeClientError()) })
	for _, body := range []string{ // what the filter reads may differ from what the call uses; any response is allowed
		`{"name":%[1]q,"method":%[2]q,"jsonrpc":"2.0","arguments":{},"params":{"method":%[2]q}}`,
		`{"name":%[1]q,"name":%[2]q,"arguments":{}}`,
		`{"name":%[2]q,"name":%[1]q,"arguments":{}}`,
	} {
		service.InvokeBody(ctx, []byte(fmt.Sprintf(body, t.ToolName(included), excluded)))
	}
	if t.HasFindings() {
		return
	}
	t.Expect(t.Drupal.Runs(excluded)).To(BeEmpty(), check.Mismatch(fmt.Sprintf("%s, which the patterns do not include", excluded), "no run, whatever the request", "one"))
}

// measuredCalls are as many in a row as a bridge of unknown limit gets.
const measuredCalls = 1000

func rateLimit(ctx context.Context, t *check.T) {
	most := 3 * t.RateLimit
	if t.Measures() {
		most = max(most, measuredCalls)
	} else if most == 0 {
		check.NotTestable("the bridge's rate limit is unknown: give the setting `rate_limit`")
	}
	known := scenario.KnownTool(ctx, t)
	users := t.Drupal.NewUsers(2, t.Permissions(check.Agent)...)
	busy, calm := t.As(users[0]).WithoutWaiting(), t.As(users[1]).WithoutWaiting()
	calm.Invoke(ctx, known, check.Args{}).MustSucceed("invoke/answers-result")
	var session *check.Session
	byMCP := false
	if t.Claims("mcp") && !t.Alone() && !t.Claims("replicas") { // which may each have a limit
		session, byMCP = busy.AnyMCP(ctx)
	}
	t.Drupal.Mark()
	header := map[string]string{}
	maps.Copy(header, busy.Creds.Header)
	busy.Creds.Header = header
	var limited *check.Response
	sent := 0
	patience := 3 * t.Timeout
	began := time.Now()
	for ; sent < most && limited == nil && time.Since(began) < patience; sent++ {
		header["X-Forwarded-For"] = fmt.Sprintf("192.0.2.%d", 1+sent%250) // which any caller can write
		header["Accept-Language"] = []string{"en", "de", "fr", "fy"}[sent%4]
		if r := busy.Invoke(ctx, known, check.Args{}); r.Status != http.StatusOK {
			limited = r
		}
	}
	switch {
	case limited != nil && t.Measures() && limited.Throttled():
		t.NoteRateLimit(sent - 1)
	case limited == nil && t.RateLimit == 0:
		check.NotTestable(fmt.Sprintf("%d calls of one caller in a row have met no limit of the rate: give the setting `rate_limit` where it is higher", sent))
	case limited == nil && !exceeds(sent, t.RateLimit, began):
		t.TooSlow(fmt.Sprintf("the calls are too slow to exceed the rate limit of %d, which may fill up again within a second: %d in %v", t.RateLimit, sent,
			time.Since(began).Round(10*time.Millisecond)))
	}
	t.Expect(limited).NotTo(BeNil(), check.Mismatch(fmt.Sprintf("%d calls of one caller where %d are allowed", sent, t.RateLimit), "429", "results only"))
	t.Expect(limited).To(match.BeRefused(429))
	t.Expect(limited).To(match.BeEnvelope())
	t.Expect(limited).To(haveRetryAfter)
	t.Expect(len(t.Drupal.Calls())).To(Equal(sent-1), check.Mismatch("a call over the rate", "it to reach no method", "it at the site"))
	t.Unrecorded(func() { // whether the limit lets it pass by then depends on how soon it comes
		if again := busy.Invoke(ctx, known, check.Args{}); again.Status == http.StatusTooManyRequests {
			t.Expect(again).To(haveRetryAfter, "the next call over the rate")
		}
	})
	if byMCP {
		refused, exceeded := false, false
		t.Unrecorded(func() { // how many there are depends on how soon the limit lets the next one pass
			began := time.Now()
			for n := 0; n < most && !refused; n++ {
				ran, _ := match.BeToolResult().Match(session.CallTool(ctx, known, check.Args{}))
				refused, exceeded = !ran, exceeds(n, sent, began)
			}
		})
		if refused || exceeded {
			t.Row(busy.Who, known, "by tools/call", func() {
				t.Expect(refused).To(BeTrue(), check.Mismatch(fmt.Sprintf("%d tools/call over the rate", most), "a refusal", "results only"))
			})
		}
	}
	t.Expect(calm.Invoke(ctx, known, check.Args{})).To(match.HaveStatus(http.StatusOK), "another caller meanwhile")
}

// exceeds reports whether so many calls since then are more than a limit lets pass: what is left of it may fill up again within a second.
func exceeds(calls, limit int, since time.Time) bool {
	return float64(calls) > float64(limit)*(1+time.Since(since).Seconds())
}

var haveRetryAfter = match.Conform("a Retry-After of seconds or a date", func(r *check.Response) string {
	after := r.Header.Get("Retry-After")
	_, noSeconds := strconv.ParseUint(after, 10, 32)
	if _, noDate := http.ParseTime(after); noSeconds != nil && noDate != nil {
		return fmt.Sprintf("%q", after)
	}
	return ""
})

// nearby is part of every id of nearMisses.
const nearby = "nearby"

// nearMisses returns methods whose ids match a pattern or almost do: an id matches by mistake if the pattern is not anchored
// at both ends, or if its dot stands for any character, and is missed if its star stops at a dot.
func nearMisses(t *check.T) []fixtures.Method {
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
	for _, pattern := range t.PatternsInUse().Include {
		for _, id := range variations(pattern) {
			add(id)
		}
	}
	wildcard := slices.IndexFunc(t.PatternsInUse().Include, func(pattern string) bool { return strings.Contains(pattern, "*") })
	for _, pattern := range t.PatternsInUse().Exclude {
		for _, id := range variations(pattern) {
			if add(id); wildcard >= 0 { // included, if the exclude pattern does not match
				add(strings.Replace(t.PatternsInUse().Include[wildcard], "*", id, 1))
			}
		}
	}
	return methods
}

// variations returns ids that match a pattern and ids that almost do.
func variations(pattern string) []string {
	full := strings.ReplaceAll(pattern, "*", nearby)
	return []string{full, full + ".and.more", "x" + full, full + "x", "other." + full, strings.Replace(full, ".", "x", 1), strings.ReplaceAll(full, ".", "x")}
}

func isNearMiss(name string) bool { return strings.Contains(name, nearby) }

// includedMethod returns a method that the patterns include and that runs without arguments.
func includedMethod(t *check.T) string {
	for _, m := range t.Drupal.Site().Methods {
		if t.PatternsInUse().Exposes(m.ID) && scenario.RunsPlainly(&m) {
			return m.ID
		}
	}
	check.NotTestable("the patterns include no method that runs without arguments")
	return ""
}

// excludedMethod returns a method that the patterns do not include and that runs without arguments.
func excludedMethod(t *check.T) string {
	for _, m := range t.Drupal.Site().Methods {
		if !t.PatternsInUse().Exposes(m.ID) && scenario.RunsPlainly(&m) {
			return m.ID
		}
	}
	check.NotTestable("the patterns include every method that runs without arguments")
	return ""
}
