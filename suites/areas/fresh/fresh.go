// Package fresh checks the cache of discovery: how soon the bridge shows a change of the site, and that it sends the site no
// more discovery requests than it needs.
package fresh

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Checks of the area fresh.
var Checks = []check.Check{
	{ID: "fresh/cache-hit", Sees: check.Site, ByMCP: true, Run: cacheHit},
	{ID: "fresh/ttl-expiry", Sees: check.Site, ByMCP: true, Run: ttlExpiry},
	{ID: "fresh/invalidate", Sees: check.Site, Run: invalidate},
	{ID: "fresh/single-flight", Sees: check.Site, ByMCP: true, Costly: true, Run: singleFlight},
	{ID: "fresh/stale-on-error", Sees: check.Site, Run: staleOnError},
	{ID: "fresh/schema-change", Sees: check.Site, ByMCP: true, Run: schemaChange},
	{ID: "fresh/removed-tool", Sees: check.Site, ByMCP: true, Run: removedTool},
	{ID: "fresh/version", Sees: check.Site, Run: version},
	{ID: "fresh/per-user-ttl", TellsApart: true, Sees: check.Site, ByMCP: true, Run: perUserTTL},
	{ID: "fresh/schema-mismatch", Sees: check.Site, ByMCP: true, Run: schemaMismatch},
}

func cacheHit(ctx context.Context, t *check.T) {
	const attempts = 3
	var filled time.Time // not later than the cache was
	for attempt := range attempts {
		t.ExpireCaches()
		who := t.Drupal.NewUser(t.Permissions(check.Agent)...) // with a cache of its own, where callers have one
		began := time.Now()
		known := scenario.KnownTool(ctx, t)
		t.Drupal.Mark()
		first := t.As(who).List(ctx).MustSucceed("list/answers-json")
		if len(discoveriesFor(t.Drupal, who)) > 0 {
			filled = began
		}
		t.As(who).Describe(ctx, known).MustSucceed("describe/answers-tool", "describe/after-error")
		t.As(who).Describe(ctx, scenario.NoSuchTool)
		session := byMCP(ctx, t, who) // which may have a cache of its own
		t.Drupal.Mark()
		marked := time.Now()
		for i := range 5 {
			if t.Alone() {
				t.As(who).List(ctx)
				t.As(who).Describe(ctx, known)
			} else { // a parameter that the bridge does not know is no part of the cache's key, nor what client asks
				t.As(who).Send(ctx, check.Request{Path: check.ListPath, Raw: fmt.Sprintf("unknown=%d", i)})
				t.As(who).Send(ctx, check.Request{Path: check.DescribePath, Query: url.Values{"name": {known}},
					Header: http.Header{"User-Agent": {fmt.Sprintf("client/%d", i)}, "Accept": {[]string{"application/json", "*/*"}[i%2]}}})
			}
			t.As(who).Describe(ctx, fmt.Sprintf("%s.%d", scenario.NoSuchTool, i)) // a cache by name does not know it
		}
		if !t.Alone() {
			t.As(who).Send(ctx, check.Request{Method: http.MethodHead, Path: check.ListPath})
		}
		if first.NextCursor() != "" {
			t.As(who).List(ctx, first.NextCursor())
		}
		if session != nil {
			session.ListTools(ctx, "")
		}
		if t.Advance != nil && attempt < attempts-1 { // nothing expires much earlier than it may; a slow bridge needs the whole time
			t.Advance(t.KeepsFor() / 2)
			t.As(who).List(ctx)
			filled = filled.Add(-t.KeepsFor() / 2)
		}
		sent := len(discoveriesFor(t.Drupal, who))
		if kept := t.KeepsFor(); kept > 0 && sent > 0 && time.Since(filled) > kept*3/4 { // what was cached may have expired
			if attempt == attempts-1 {
				t.TooSlow("sixteen cached requests took longer than the TTL: give the bridge a longer one (--discovery-ttl)")
			}
			filled = marked
			continue
		}
		t.Expect(sent).To(BeZero(), check.Mismatch("list and describe within the TTL", "no discovery request", fmt.Sprintf("%d", sent)))
		return
	}
}

// byMCP is a session in which a caller has listed the tools; nil where the bridge has none beside the three endpoints.
func byMCP(ctx context.Context, t *check.T, who check.Identity) *check.Session {
	s, opened := t.MCPBeside(ctx, who)
	if !opened {
		return nil
	}
	s.ListTools(ctx, "")
	return s
}

func ttlExpiry(ctx context.Context, t *check.T) {
	removed := scenario.WithoutMethod(t)
	if t.Advance != nil {
		t.Advance(4 * t.DiscoveryTTL) // so that what is cached now is new, whatever the bridge's TTL is
	}
	before := t.As(check.Agent).MustListAll(ctx).Names()
	if !slices.Contains(before, t.ToolName(removed)) {
		check.BlockedBy(check.Mismatch("list as agent", fmt.Sprintf("the tool %q", t.ToolName(removed)), fmt.Sprintf("%d tools without it", len(before))), "list/pages-cover-all-once", "access/filtered-by-method", "filter/include-exclude")
	}
	arrived := t.ToolName(scenario.Arrival)
	t.As(check.Agent).Invoke(ctx, arrived, check.Args{scenario.ArrivalParam: "old"})
	session, overMCP := t.MCPBeside(ctx, check.Agent)
	if overMCP {
		session.CallTool(ctx, arrived, check.Args{scenario.ArrivalParam: "old"})
	}
	other := scenario.NewCaller(t) // who lists before the change, and then invokes
	other.List(ctx)
	views := viewsOf(ctx, t)
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, removed))
	var listed check.Listing
	var names []string
	var described *check.Response
	look := func() bool {
		listed = t.As(check.Agent).ListAll(ctx)
		names = listed.Names()
		described = t.As(check.Agent).Describe(ctx, t.ToolName(removed))
		return slices.Contains(names, t.ToolName(scenario.Arrival)) && !slices.Contains(names, t.ToolName(removed)) && described.Is(http.StatusNotFound)
	}
	requestDuringTTL(t, func() { look() })
	t.Poll(ctx, look)
	t.Blame(listed.PageOf(t.ToolName(removed)))
	t.Expect(slices.Contains(names, t.ToolName(scenario.Arrival))).To(BeTrue(),
		check.Mismatch(fmt.Sprintf("list %v after a module was enabled", t.ChangeLimit()), fmt.Sprintf("the tool %q", scenario.Arrival),
			fmt.Sprintf("%d tools without it", len(names))))
	t.Expect(slices.Contains(names, t.ToolName(removed))).To(BeFalse(),
		check.Mismatch(fmt.Sprintf("list %v after a module was disabled", t.ChangeLimit()), fmt.Sprintf("no tool %q", removed), "the tool"))
	t.Expect(described).To(match.BeRefusedWith(404), "%v after its module was disabled", t.ChangeLimit())
	for _, c := range []check.Client{t.As(check.Agent), other} { // a remembered refusal may expire later than the list
		var invoked *check.Response
		t.Poll(ctx, func() bool {
			invoked = c.Invoke(ctx, arrived, check.Args{scenario.ArrivalParam: "old"})
			return invoked.Status == 0 || invoked.Status >= 500 || !invoked.IsError()
		})
		t.Expect(invoked).NotTo(match.BeClientError(), "%v after its module was enabled", t.ChangeLimit())
	}
	allShow(ctx, t, views, scenario.ArrivalOld, fmt.Sprintf("%v after its module was enabled", t.ChangeLimit()), t.Poll)
	if overMCP {
		var called *check.Response
		t.Poll(ctx, func() bool {
			called = session.CallTool(ctx, arrived, check.Args{scenario.ArrivalParam: "old"})
			ran, _ := match.BeToolResult().Match(called)
			return ran
		})
		t.Expect(called).To(match.BeToolResult(), "%v after its module was enabled", t.ChangeLimit())
	}
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, "", removed))
	if t.OutlastTTL(ctx, 4*time.Second) { // who refreshes a list behind the response shows the first who asks an old one
		t.Expect(t.As(check.Agent).ListAll(ctx).Names()).NotTo(ContainElement(arrived),
			check.Mismatch("the first list after more than a TTL in which nobody asked", fmt.Sprintf("no tool %q, whose module was disabled before that", arrived), "the tool"))
	}
}

func invalidate(ctx context.Context, t *check.T) {
	if t.Invalidate == nil {
		check.NotTestable("the call that empties the bridge's cache is unknown: give the setting `invalidate` (method, path, identity)")
	}
	call := check.Request{Method: t.Invalidate.Method, Path: t.Invalidate.Path, Header: http.Header{"Content-Type": {"application/json"}}}
	before := t.As(check.Agent).MustListAll(ctx)
	views := viewsOf(ctx, t)
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, ""))
	for _, who := range []check.Identity{check.Outsider, check.Anonymous} {
		t.For(who, "", func() {
			t.Expect(t.As(who).Send(ctx, call)).To(match.BeRefusedWith(401, 403), "without the permission for it")
		})
	}
	t.Expect(t.As(t.Invalidate.Identity).Send(ctx, call)).To(match.BeSuccess())
	after := t.As(check.Agent).ListAll(ctx)
	t.Expect(slices.Contains(after.Names(), t.ToolName(scenario.Arrival))).To(BeTrue(),
		check.Mismatch("the next list after the invalidation", fmt.Sprintf("the tool %q", scenario.Arrival), "a list without it"))
	t.EachTool(before, func(_ *check.Response, tool check.Tool) {
		now, _ := after.Find(tool.Name())
		if tool.Name() != t.ToolName(scenario.Arrival) {
			t.Expect(after.PageOf(tool.Name())).To(match.HaveTool(now, "the tool as it was before the invalidation, which nothing has changed", func(now check.Tool) string {
				return match.Difference(map[string]any(tool), map[string]any(now))
			}))
		}
	})
	allShow(ctx, t, views, scenario.ArrivalOld, "after the invalidation", once)
	invalidateMeanwhile(ctx, t, call)
}

// invalidateMeanwhile changes the site and invalidates while a list is under way that has the tools of before: it must not become
// that of whoever lists after the invalidation.
func invalidateMeanwhile(ctx context.Context, t *check.T, call check.Request) {
	t.As(t.Invalidate.Identity).Send(ctx, call)
	defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "methods", Delay: underWay(t), Count: 1})()
	t.Drupal.Mark()
	listed := make(chan struct{})
	go func() {
		defer t.Recover()
		defer close(listed)
		t.As(check.Agent).List(ctx)
	}()
	check.Within(ctx, t.Timeout/2, func() bool { return len(discoveriesFor(t.Drupal, check.Agent)) > 0 })
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, "", ""))
	t.As(t.Invalidate.Identity).Send(ctx, call)
	for i, what := range []string{"the next list after an invalidation during a list", "the next list after both"} {
		if i > 0 {
			<-listed
		}
		t.Expect(t.As(check.Agent).ListAll(ctx).Names()).NotTo(ContainElement(t.ToolName(scenario.Arrival)),
			check.Mismatch(what, fmt.Sprintf("no tool %q, which the site had no longer when it was invalidated", scenario.Arrival), "the tool"))
	}
}

// underWay is how long the site takes for discovery that is to be seen under way: less than the bridge waits for it.
func underWay(t *check.T) time.Duration {
	const long = 500 * time.Millisecond
	if t.UpstreamTimeout == 0 { // unknown
		return long
	}
	return min(long, t.UpstreamTimeout/3)
}

// manyProcesses is how many may be behind one URL: a bridge without a single flight sends more requests than that.
const manyProcesses = 8

func singleFlight(ctx context.Context, t *check.T) {
	t.As(check.Agent).List(ctx).MustSucceed("list/answers-json")
	for try := range 3 {
		who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
		caller := t.As(who)
		t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "methods", User: string(who), Delay: underWay(t)})
		t.Drupal.Mark()
		began := time.Now()
		check.AtOnce(100, func(int) { caller.List(ctx) })
		discoveries := discoveriesFor(t.Drupal, who)
		sent, together, flights := len(discoveries), underWayTogether(discoveries), 1
		if t.Several() { // each fetches for itself
			flights = manyProcesses
		}
		most := flights
		if kept := t.KeepsFor(); kept > 0 { // the cached list may expire meanwhile
			most *= 1 + int(time.Since(began)/(kept*3/4))
		}
		tooSlow := most > 10                                    // a bridge with one discovery request for each of its workers would pass
		again := (sent > most || together > flights) && try < 2 // a discovery was late or failed, or the bridge has only now seen an earlier change of the site
		if tooSlow || again {
			continue
		}
		t.Expect(together).To(BeNumerically("<=", flights),
			check.Mismatch("100 lists at once on a cold cache", "at most one discovery request at a time", fmt.Sprintf("%d", together)))
		t.Expect(sent).To(BeNumerically("<=", most), check.Mismatch("100 lists at once on a cold cache", "at most one discovery request in a TTL", fmt.Sprintf("%d in %v", sent, time.Since(began).Round(time.Millisecond))))
		caller.List(ctx).MustSucceed("list/answers-json")
		return
	}
	t.TooSlow("100 lists at once took many times the TTL: give the bridge a longer one (--discovery-ttl)")
}

// underWayTogether is how many of the requests were under way at one time, at most.
func underWayTogether(requests []mockdrupal.Entry) (most int) {
	for _, one := range requests {
		n := 0
		for _, other := range requests {
			if !other.Start.After(one.Start) && (other.End.IsZero() || other.End.After(one.Start)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func staleOnError(ctx context.Context, t *check.T) {
	good := t.As(check.Agent).List(ctx).MustSucceed("list/answers-json")
	t.As(check.Agent).List(ctx).MustMeet(match.EqualResponse(good), "list/order-stable", "list/answers-json", "mapping/*")
	var second *check.Response
	if good.NextCursor() != "" {
		second = t.As(check.Agent).List(ctx, good.NextCursor())
	}
	beStale := func(r, good *check.Response) {
		t.Expect(r).To(match.EqualResponse(good))
		t.Expect(r).To(match.MatchWhere("the header `Warning: 110` or `Age`", isMarkedStale))
		t.Expect(r).To(scenario.ExcludeSharedCaches(), "with the last good list (http/no-shared-cache)")
	}
	newcomer := t.Drupal.NewUser(t.Permissions(check.Agent)...)
	for i, failure := range failedDiscoveries {
		disarm := t.Drupal.Arm(failure.Fault)
		var stale *check.Response
		t.Await(ctx, func() bool {
			stale = t.As(check.Agent).List(ctx)
			return stale.Status != good.Status || isMarkedStale(stale)
		})
		lists := []*check.Response{stale}
		if !t.Several() { // each of several may have fetched the list at another time
			lists = append(lists, t.As(check.Agent).List(ctx)) // for which the bridge may not ask the site again
		}
		t.Row(check.Agent, "", failure.Name, func() {
			for _, r := range lists {
				beStale(r, good)
			}
		})
		if cursor := lists[len(lists)-1].NextCursor(); i == 0 && second != nil && cursor != "" && !t.Several() {
			t.Row(check.Agent, "", failure.Name+", the second page", func() { beStale(t.As(check.Agent).List(ctx, cursor), second) })
		}
		t.Row(newcomer, "", failure.Name+", without a good list", func() { t.Expect(t.As(newcomer).List(ctx)).To(match.BeRefusedWith(500, 502, 503)) })
		disarm()
		if !t.Await(ctx, func() bool { r := t.As(check.Agent).List(ctx); return r.Succeeded() && !isMarkedStale(r) }) {
			return // upstream/down-and-up tests the recovery
		}
	}
	if !t.OneAccount() {
		alone := failedDiscoveries[0].Fault
		alone.User = string(newcomer)
		disarm := t.Drupal.Arm(alone)
		t.Row(newcomer, "", "discovery with status 500 for this caller alone", func() { t.Expect(t.As(newcomer).List(ctx)).To(match.BeRefusedWith(500, 502, 503)) })
		disarm()
	}
	otherJSON := mockdrupal.Fault{Kind: fault.Status, Route: "methods", Status: http.StatusOK, ContentType: "application/json", Body: `{"message":"offline"}`}
	defer t.Drupal.Arm(otherJSON)()
	t.Row(newcomer, "", "discovery with other JSON and status 200, without a good list", func() {
		t.Expect(t.As(newcomer).List(ctx)).To(match.BeRefusedWith(500, 502, 503))
	})
}

// failedDiscoveries are ways in which the site fails a discovery request.
var failedDiscoveries = []scenario.SiteFailure{
	{Name: "discovery with status 500", Fault: mockdrupal.Fault{Kind: fault.Status, Route: "methods", Status: http.StatusInternalServerError}},
	{Name: "discovery with a page of HTML and status 200", Fault: mockdrupal.Fault{Kind: fault.HTML, Route: "methods", Status: http.StatusOK}},
	{Name: "discovery with a reset connection", Fault: mockdrupal.Fault{Kind: fault.Reset, Route: "methods"}},
}

// isMarkedStale reports whether a list says that it is not current.
func isMarkedStale(r *check.Response) bool {
	return r.Header.Get("Age") != "" || strings.HasPrefix(r.Header.Get("Warning"), "110")
}

func schemaChange(ctx context.Context, t *check.T) {
	half := t.TTL()/2 + time.Millisecond // which is not measured while another site is in place
	addArrival(ctx, t)
	views := viewsOf(ctx, t)
	if t.Advance != nil || half < 5*time.Second { // so that the description is half a TTL younger than the list
		t.AdvanceClock(ctx, 2*half)
		t.As(check.Agent).List(ctx)
		t.AdvanceClock(ctx, half)
		look(views)
		t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, scenario.ArrivalNew, ""))
		t.AdvanceClock(ctx, half)
		t.Poll(ctx, func() bool { return scenario.Shows(ctx, t, check.Agent, scenario.ArrivalNew) })
	}
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, scenario.ArrivalNew, ""))
	if !scenario.Shows(ctx, t, check.Agent, scenario.ArrivalNew) {
		scenario.AwaitSchema(ctx, t, scenario.ArrivalNew)
	}

	t.Expect(t.As(check.Agent).Describe(ctx, t.ToolName(scenario.Arrival))).To(match.Conform("the schema that list shows", func(r *check.Response) string {
		return scenario.SchemaFault(r.Tool(), scenario.ArrivalNew)
	}))
	t.Expect(t.As(check.Agent).Invoke(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "new"})).To(match.HaveResult())
	t.Expect(t.As(check.Agent).Invoke(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "old"})).To(match.BeRefused(400, "invalid_params"))
	if t.Advance != nil { // what others have asked for is half a TTL old; to ask must not make it younger
		look(views)
		t.Advance(half)
	}
	allShow(ctx, t, views, scenario.ArrivalNew, "after list showed a change", t.Poll)
	membersAlone(ctx, t)
}

// membersAlone changes of each of four tools one member alone, the annotations, title, description or output schema: a bridge that
// keeps translated tools by some of their members would show the others as they were.
func membersAlone(ctx context.Context, t *check.T) {
	site := scenario.WithArrival(t.Drupal, scenario.ArrivalNew, "")
	changes := map[string][]string{}
	own := t.Claims("exposure-attribute") // other bridges may have titles and annotations of their own
	if own {
		site.Methods[0].MCP = &fixtures.Tool{Title: site.Methods[0].MCP.Title, Annotations: fixtures.Raw(`{"idempotentHint":false}`)}
		changes[scenario.Arrival] = []string{"annotations"}
	}
	tools := scenario.AgentTools(t)
	alone := func(member string, change func(m *fixtures.Method) (changed bool)) {
		for i := range site.Methods {
			m := &site.Methods[i]
			shown := m.ID != scenario.Arrival && slices.ContainsFunc(tools, func(tool *fixtures.Method) bool { return tool.ID == m.ID })
			if shown && changes[m.ID] == nil && change(m) {
				changes[m.ID] = []string{member}
				return
			}
		}
	}
	alone("title", func(m *fixtures.Method) bool {
		if !own || m.MCP == nil || m.MCP.Title == "" {
			return false
		}
		m.MCP = &fixtures.Tool{Title: m.MCP.Title + " (changed)", Annotations: m.MCP.Annotations}
		return true
	})
	alone("description", func(m *fixtures.Method) bool {
		defer func() { m.Usage += " (changed)" }()
		return m.Usage != ""
	})
	alone("outputSchema", func(m *fixtures.Method) bool {
		output, isObject := exact.MustParse(cmp.Or(string(m.Output), "null")).(map[string]any)
		if isObject {
			output["description"] = "Changed"
			m.Output = fixtures.Raw(client.Encode(output))
		}
		return isObject
	})
	describe := func(method string) check.Tool { return t.As(check.Agent).Describe(ctx, t.ToolName(method)).Tool() }
	before := map[string]check.Tool{}
	for method := range changes {
		before[method] = describe(method)
	}
	zipped := func() *check.Response {
		return t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"Accept-Encoding": {"gzip"}}})
	}
	if !t.Alone() {
		zipped() // which a bridge may keep
	}
	t.Drupal.Mock.SetSite(site)
	for method, members := range check.InOrder(changes) {
		var old string
		t.Await(ctx, func() bool {
			now := describe(method)
			old = strings.Join(slices.DeleteFunc(slices.Clone(members), func(member string) bool {
				was := before[method][member]
				return was == nil || now[member] != nil && !exact.Equal(was, now[member])
			}), " and ")
			return old == ""
		})
		t.Row(check.Agent, t.ToolName(method), "changed alone", func() {
			t.Expect(old).To(BeEmpty(), check.Mismatch("describe of "+method+" after a change", strings.Join(members, ", ")+" as the site has them now", old+" as before, or none"))
		})
	}
	if t.Alone() || t.HasFindings() {
		return
	}
	if plain, r := t.As(check.Agent).List(ctx), zipped(); scenario.Listed(r, "Content-Encoding") != nil { // a list may be too small for it
		t.Row(check.Agent, "", "compressed, after the changes", func() { t.Expect(r).To(scenario.DecodeTo(plain)) })
	}
}

func removedTool(ctx context.Context, t *check.T) {
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, ""))
	scenario.AwaitSchema(ctx, t, scenario.ArrivalOld)
	other := byMCP(ctx, t, scenario.NewCaller(t).Who)
	views := viewsOf(ctx, t)
	t.As(check.Agent).Invoke(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "both"}).MustSucceed("invoke/answers-result")
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, "", scenario.Arrival))

	t.Expect(t.As(check.Agent).Invoke(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "both"})).To(match.BeRefusedWith(404), "right after the method was removed")
	hiddenAfter := func(what string) {
		var names []string
		beforeTTL(t)(ctx, func() bool {
			names = t.As(check.Agent).ListAll(ctx).Names()
			return !slices.Contains(names, t.ToolName(scenario.Arrival))
		})
		t.Expect(names).NotTo(ContainElement(t.ToolName(scenario.Arrival)),
			check.Mismatch("list after the site refused "+what+" by -32601", "no tool "+scenario.Arrival, "the tool"))
		allShow(ctx, t, ofTheAgent(t, views), "", "after the site refused "+what+" by -32601", beforeTTL(t))
	}
	if !t.Several() {
		hiddenAfter("a call")
	}
	if other != nil {
		called := other.Call(ctx, "tools/call", map[string]any{"name": t.ToolName(scenario.Arrival), "arguments": check.Args{scenario.ArrivalParam: "both"},
			"_meta": map[string]any{"progressToken": "removed"}}) // for which a bridge may open a stream
		t.Expect(called).To(match.BeProtocolError("-32602"), "right after the method was removed")
	}
	t.Await(ctx, func() bool {
		return !slices.Contains(t.As(check.Agent).ListAll(ctx).Names(), t.ToolName(scenario.Arrival))
	})
	t.Expect(t.As(check.Agent).Invoke(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "both"})).To(match.BeRefusedWith(404), "after the tool left the list")

	if s, opened := t.MCPBeside(ctx, check.Agent); opened && !t.Several() { // by which a bridge may learn of it on another path
		t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, ""))
		scenario.AwaitSchema(ctx, t, scenario.ArrivalOld)
		look(views)
		t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, "", scenario.Arrival))
		called := s.CallTool(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "both"})
		t.Expect(called).To(match.BeProtocolError("-32602"), "a tools/call right after the method was removed")
		hiddenAfter("a tools/call")
	}
}

func version(ctx context.Context, t *check.T) {
	first := t.As(check.Agent).List(ctx).MustSucceed("list/answers-json")
	tag := first.Header.Get("ETag")
	t.Expect(first).To(haveETag())
	t.Expect(t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {tag}}})).To(match.HaveStatus(304))
	several := check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {`"an-older-one", ` + tag}}}
	t.Expect(t.As(check.Agent).Send(ctx, several)).To(match.HaveStatus(304), "If-None-Match with two versions")
	if other := t.As(check.Discoverer).List(ctx); other.Status == http.StatusOK && match.OtherNames(first.Names(), other.Names()) != "" {
		r := t.As(check.Discoverer).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {tag}}})
		t.Expect(r).NotTo(match.HaveStatus(304), "If-None-Match with the version of another caller's list")
	}
	tools := scenario.AgentTools(t)
	onPage := slices.IndexFunc(tools, func(m *fixtures.Method) bool { return slices.Contains(first.Names(), t.ToolName(m.ID)) })
	if onPage < 0 {
		check.BlockedBy(check.Mismatch(first.Subject(), "a tool that the agent may run", "none"), "access/filtered-by-method", "mapping/*")
	}
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, tools[onPage].ID)) // each page may have its own version
	var changed *check.Response                                                           // which the bridge has to look for where nobody asks for the list itself, too
	t.Await(ctx, func() bool {
		changed = t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {tag}}})
		return changed.Status != http.StatusNotModified
	})
	t.Expect(changed).To(match.HaveStatus(200), "If-None-Match with the old version after a change")
	scenario.AwaitSchema(ctx, t, scenario.ArrivalOld)
	page, cursor := pageOf(ctx, t, t.ToolName(scenario.Arrival))
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, scenario.ArrivalNew, ""))
	scenario.AwaitSchema(ctx, t, scenario.ArrivalNew)
	changed = t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Query: cursor, Header: http.Header{"If-None-Match": {page.Header.Get("ETag")}}})
	t.Expect(changed).NotTo(match.HaveStatus(304), "If-None-Match with the old version after a change of a schema alone")
	zipped := func() *check.Response {
		return t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Query: cursor, Header: http.Header{"Accept-Encoding": {"gzip"}}})
	}
	compressed := zipped()
	if tag := compressed.Header.Get("ETag"); tag != "" {
		r := t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Query: cursor, Header: http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {tag}}})
		t.Expect(r).To(match.HaveStatus(304), "If-None-Match with the version of a compressed list")
	}
	const rewordedFar = "Was there before"
	far := tools[len(tools)-1].ID
	farPage, _ := pageOf(ctx, t, t.ToolName(far))
	reworded := scenario.WithArrival(t.Drupal, scenario.ArrivalNew, "")
	reworded.Methods[0].Usage = "Arrived long ago" // as long as the text before
	reworded.Methods[slices.IndexFunc(reworded.Methods, func(m fixtures.Method) bool { return m.ID == far })].Usage = rewordedFar
	t.Drupal.Mock.SetSite(reworded)
	if t.Await(ctx, func() bool {
		tool := t.As(check.Agent).Describe(ctx, t.ToolName(scenario.Arrival)).Tool()
		return tool["description"] == reworded.Methods[0].Usage
	}) {
		_, cursor = pageOf(ctx, t, t.ToolName(scenario.Arrival)) // of the new list: a bridge may keep the old one for its later pages
		r := t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Query: cursor, Header: http.Header{"If-None-Match": {changed.Header.Get("ETag")}}})
		t.Expect(r).NotTo(match.HaveStatus(304), "If-None-Match with the old version after a change of a description alone")
		changed = r
		if now, query := pageOf(ctx, t, t.ToolName(far)); bytes.Contains(now.Body, []byte(rewordedFar)) { // pages may be cached apart
			later := t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Query: query, Header: http.Header{"If-None-Match": {farPage.Header.Get("ETag")}}})
			t.Expect(later).NotTo(match.HaveStatus(304), "If-None-Match with the old version of a later page after a change of a description on it alone")
		}
		if slices.Contains(scenario.Listed(compressed, "Content-Encoding"), "gzip") {
			t.Expect(zipped()).To(scenario.DecodeTo(r), "compressed, after a change of a description alone")
		}
	}
	if !t.Claims("exposure-attribute") { // then annotations may be the bridge's own
		return
	}
	reworded = reworded.Clone()
	reworded.Methods[0].MCP = &fixtures.Tool{Title: "Arrival", Annotations: fixtures.Raw(`{"idempotentHint":false}`)}
	t.Drupal.Mock.SetSite(reworded)
	if t.Await(ctx, func() bool {
		annotations, _ := t.As(check.Agent).Describe(ctx, t.ToolName(scenario.Arrival)).Tool()["annotations"].(map[string]any)
		return annotations["idempotentHint"] == false
	}) {
		r := t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Query: cursor, Header: http.Header{"If-None-Match": {changed.Header.Get("ETag")}}})
		t.Expect(r).NotTo(match.HaveStatus(304), "If-None-Match with the old version after a change of annotations alone")
	}
}

func perUserTTL(ctx context.Context, t *check.T) {
	if t.ShowsAll() { // broad lists
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the bridge shows all tools to every caller, whatever the permissions"}})
	}
	t.MoveApart(ctx)
	one, other := t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools), t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools)
	describer := t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools) // who never lists
	refused := t.Drupal.NewUser(fixtures.DiscoverTools)                        // the site itself refuses this one, by 403
	undiscovering := t.Drupal.NewUser(fixtures.UseJSONRPC)                     // the bridge refuses this one, where it claims discovery-permission
	gained := scenario.DeniedTool(t, one, check.Agent)
	sees := func(who check.Identity) bool {
		list := t.As(who).ListAll(ctx)
		if !list.Fault.IsZero() { // its permissions changed between two pages
			list = t.As(who).ListAll(ctx)
		}
		return slices.Contains(list.MustHold().Names(), gained)
	}
	describes := func(who check.Identity) bool { return t.As(who).Describe(ctx, gained).Is(http.StatusOK) }
	for range workers {
		if t.As(refused).List(ctx); t.Spares() { // it may take more for wrong credentials, and refuse every caller
			break
		}
	}
	if sees(one) || sees(other) || describes(one) || describes(describer) {
		check.BlockedBy(check.Finding{Subject: "a caller sees a tool without the permission for it"}, "access/filtered-by-method", "describe/inaccessible-404")
	}
	t.As(undiscovering).List(ctx)
	session := byMCP(ctx, t, one)
	showsByMCP := func() bool { return slices.Contains(check.ListAllTools(ctx, session).Names(), gained) }
	within := fmt.Sprintf("within %v", t.ChangeLimit())
	await := func(done func() bool) bool { return t.Await(ctx, done) }
	if t.Advance != nil { // the permission TTL alone passes, and not the one of discovery
		within = fmt.Sprintf("%v later, when the permission TTL is over", t.KeepsFor())
		await = func(done func() bool) bool {
			t.Advance(t.KeepsFor() + time.Millisecond)
			return t.Poll(ctx, done)
		}
	}

	t.Drupal.Permit(one, t.Permissions(check.Agent)...)
	t.Drupal.Permit(describer, t.Permissions(check.Agent)...)
	for _, who := range []check.Identity{refused, undiscovering} {
		t.Drupal.Permit(who, fixtures.UseJSONRPC, fixtures.DiscoverTools)
	}
	var listed, described bool
	look := func() { sees(other); listed, described = sees(one), describes(one) }
	where := func() string { return fmt.Sprintf("it in list: %t, in describe: %t", listed, described) }
	shown := await(func() bool { look(); return listed && described })
	t.Expect(shown).To(BeTrue(), check.Mismatch("after a permission was granted", fmt.Sprintf("%s in list and describe %s", gained, within), where()))
	t.Expect(t.Poll(ctx, func() bool { return describes(describer) })).To(BeTrue(),
		check.Mismatch("after a permission was granted to a caller who never lists", fmt.Sprintf("%s in describe %s", gained, within), "404"))
	if session != nil {
		t.Expect(t.Poll(ctx, showsByMCP)).To(BeTrue(),
			check.Mismatch("after a permission was granted, in an MCP session that was open before", gained+" in tools/list "+within, "a list without it"))
	}
	var list *check.Response
	tag := ""
	for who, permission := range check.InOrder(map[check.Identity]string{refused: fixtures.UseJSONRPC, undiscovering: fixtures.DiscoverTools}) {
		t.Expect(t.Await(ctx, func() bool { list = t.As(who).List(ctx); return list.Succeeded() })).To(BeTrue(),
			check.Mismatch(fmt.Sprintf("list after %q was granted to a caller without it", permission), "a list "+within, list.Outcome()))
		if who == refused {
			tag = list.Header.Get("ETag")
		}
	}
	t.Expect(sees(other)).To(BeFalse(), check.Mismatch("list of the caller without the permission", fmt.Sprintf("no %s", gained), "the tool"))

	t.Drupal.Permit(one, fixtures.UseJSONRPC, fixtures.DiscoverTools)
	t.Drupal.Permit(refused, fixtures.UseJSONRPC)
	hidden := await(func() bool { look(); return !listed && !described })
	t.Expect(hidden).To(BeTrue(), check.Mismatch("after a permission was revoked", fmt.Sprintf("no %s in list and describe %s", gained, within), where()))
	if session != nil {
		t.Expect(t.Poll(ctx, func() bool { return !showsByMCP() })).To(BeTrue(),
			check.Mismatch("after a permission was revoked, in an MCP session that was open before", "no "+gained+" in tools/list "+within, "the tool"))
	}
	if t.Claims("discovery-permission") {
		t.Expect(t.Await(ctx, func() bool { list = t.As(refused).List(ctx); return !list.Succeeded() })).To(BeTrue(),
			check.Mismatch(fmt.Sprintf("list after %q was revoked", fixtures.DiscoverTools), "a refusal "+within, list.Outcome()))
		if tag != "" {
			again := t.As(refused).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {tag}}})
			t.Expect(again).To(match.HaveStatus(list.Status), "with the ETag of a list before %q was revoked", fixtures.DiscoverTools)
		}
	}
}

// workers are so many processes of a bridge as each get a request where they take turns; after four refusals a bridge may lock an account.
const workers = 3

func schemaMismatch(ctx context.Context, t *check.T) {
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Fail) {
		if tool.Fails().Code == scenario.RPCInvalidParams {
			t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments).MustMeet(match.BeRefused(400, "invalid_params"), "invoke/*", "errors/*")
		}
	}
	addArrival(ctx, t)
	views := viewsOf(ctx, t)
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, scenario.ArrivalNew, ""))

	t.Expect(t.As(check.Agent).Invoke(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "old"})).To(match.BeRefused(400, "invalid_params"))
	allShow(ctx, t, ofTheAgent(t, views), scenario.ArrivalNew, "after the site refused what the old schema accepts", beforeTTL(t))

	if s, opened := t.MCPBeside(ctx, check.Agent); opened && !t.Several() { // by which a bridge may learn of it on another path
		addArrival(ctx, t)
		look(views)
		demanding := scenario.WithArrival(t.Drupal, scenario.ArrivalNew, "") // whose refusal has other words: a parameter is missing
		also := fixtures.Param{Name: "also", Schema: fixtures.Raw(`{"type":"string"}`), Required: true}
		demanding.Methods[0].Params = append([]fixtures.Param{also}, demanding.Methods[0].Params...)
		t.Drupal.Mock.SetSite(demanding)
		s.CallTool(ctx, t.ToolName(scenario.Arrival), check.Args{scenario.ArrivalParam: "old"}).MustMeet(match.Conform("a refusal", func(r *check.Response) string {
			if result := r.RPCResult(); result == nil || result["isError"] == true {
				return ""
			}
			return r.RPCOutcome()
		}), "mcp/*")
		allShow(ctx, t, ofTheAgent(t, views), scenario.ArrivalNew, "after the site refused a tools/call that the old schema accepts", beforeTTL(t))
	}
}

// beforeTTL asks until the TTL ends. After that any bridge is right: where it is short, only what shows before counts.
func beforeTTL(t *check.T) poll {
	return func(ctx context.Context, done func() bool) bool {
		expires := lastDiscovery(t.Drupal).Add(t.KeepsFor() * 3 / 4)
		if left := time.Until(expires); left > 0 {
			return check.Within(ctx, min(left, t.ChangeLimit()), done)
		}
		return t.Poll(ctx, done)
	}
}

// lastDiscovery is when the agent's methods were read last before now; long ago where they were not.
func lastDiscovery(d *site.Drupal) (at time.Time) {
	for _, e := range discoveriesFor(d, check.Agent) {
		at = e.Start
	}
	return at
}

// discoveriesFor returns the discovery requests that a caller may have caused: those with the caller's credentials and
// those of a service account. Meanwhile a bridge may refresh the lists of other callers in the background.
func discoveriesFor(d *site.Drupal, who check.Identity) []mockdrupal.Entry {
	return slices.DeleteFunc(d.Discoveries(), func(e mockdrupal.Entry) bool {
		return e.User != string(who) && e.User != string(check.Service)
	})
}

// addArrival adds scenario.Arrival to the site, as a tool that accepts `old`. It ends the check if the bridge does not
// describe it, run it and refuse invalid arguments for it: other clauses test that.
func addArrival(ctx context.Context, t *check.T) {
	t.Replace(ctx, scenario.WithArrival(t.Drupal, scenario.ArrivalOld, ""))
	scenario.AwaitSchema(ctx, t, scenario.ArrivalOld)
	name := t.ToolName(scenario.Arrival)
	t.As(check.Agent).Describe(ctx, name).MustMeet(match.Conform("the schema that list shows", func(r *check.Response) string { return scenario.SchemaFault(r.Tool(), scenario.ArrivalOld) }), "describe/*", "mapping/*", "fresh/*")
	t.As(check.Agent).Invoke(ctx, name, check.Args{scenario.ArrivalParam: "old"}).MustMeet(match.HaveResult(), "invoke/*", "fresh/ttl-expiry")
	t.As(check.Agent).Invoke(ctx, name, check.Args{scenario.ArrivalParam: "new"}).MustMeet(match.BeRefused(400, "invalid_params"), "invoke/*", "errors/*")
}

// pageOf returns the page of the agent's list that contains a tool, and the query for it.
func pageOf(ctx context.Context, t *check.T, name string) (*check.Response, url.Values) {
	var query url.Values
	for _, page := range t.As(check.Agent).MustListAll(ctx).Pages {
		if slices.Contains(page.Names(), name) {
			return page, query
		}
		query = url.Values{"cursor": {page.NextCursor()}}
	}
	check.BlockedBy(check.Mismatch("list as agent", fmt.Sprintf("the tool %q", name), "a list without it"), "list/pages-cover-all-once", "fresh/ttl-expiry")
	return nil, nil
}

// requestDuringTTL sends a request repeatedly while the TTL passes, if the run controls the clock: requests must not prolong
// the TTL.
func requestDuringTTL(t *check.T, send func()) {
	if t.Advance == nil {
		return // the wait for the change sends requests in the same way
	}
	send()
	for range 5 {
		t.Advance(t.DiscoveryTTL/4 + time.Millisecond)
		send()
	}
}

// haveETag matches a response with an ETag.
func haveETag() OmegaMatcher {
	return match.Conform("an ETag", func(r *check.Response) string {
		if r.Header.Get("ETag") == "" {
			return "none"
		}
		return ""
	})
}
