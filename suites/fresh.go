package suites

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
)

// The method that checks of freshness add to the site, and what it takes before and after a change.
const (
	arrival      = "content.arrival"
	arrivalOld   = `{"type":"string","enum":["old","both"]}`
	arrivalNew   = `{"type":"string","enum":["new","both"]}`
	arrivalParam = "kind"
)

// checks__fresh__fresh are the checks of this file.
var checks__fresh__fresh = []Check{
	{ID: "fresh/cache-hit", Sees: Site, Run: chk__fresh__cacheHit},
	{ID: "fresh/ttl-expiry", Sees: Site, Run: chk__fresh__ttlExpiry},
	{ID: "fresh/invalidate", Sees: Site, Run: chk__fresh__invalidate},
	{ID: "fresh/single-flight", Sees: Site, Costly: true, Run: chk__fresh__singleFlight},
	{ID: "fresh/stale-on-error", Sees: Site, Run: chk__fresh__staleOnError},
	{ID: "fresh/schema-change", Sees: Site, Run: chk__fresh__schemaChange},
	{ID: "fresh/removed-tool", Sees: Site, Run: chk__fresh__removedTool},
	{ID: "fresh/version", Sees: Site, Run: chk__fresh__version},
	{ID: "fresh/per-user-ttl", Sees: Site, Run: chk__fresh__perUserTTL},
	{ID: "fresh/schema-mismatch", Sees: Site, Run: chk__fresh__schemaMismatch},
}

func chk__fresh__cacheHit(ctx context.Context, t *T) {
	who := t.Drupal.NewUser(t.Permissions(Agent)...)
	for attempt := range 3 {
		t.expire()
		began := time.Now()
		known := t.KnownTool(ctx)
		t.As(who).List(ctx).MustSucceed()
		t.As(who).Describe(ctx, known).MustSucceed()
		t.As(who).Describe(ctx, noSuchTool)
		t.Drupal.Mark()
		for range 5 {
			t.As(who).List(ctx)
			t.As(who).Describe(ctx, known)
			t.As(who).Describe(ctx, noSuchTool)
		}
		if t.DiscoveryTTL > 0 && time.Since(began) > t.DiscoveryTTL*3/4 {
			if attempt == 2 {
				NotTestable("fifteen cached requests took longer than the TTL: give the bridge a longer one")
			}
			continue
		}
		asked := len(t.Drupal.DiscoveriesFor(who))
		t.Expect(asked).To(BeZero(), mismatch("list and describe within the TTL", "no discovery request", fmt.Sprintf("%d", asked)))
		return
	}
}

func chk__fresh__ttlExpiry(ctx context.Context, t *T) {
	gone := t.leaving()
	before := t.As(Agent).MustListAll(ctx).Names()
	if !slices.Contains(before, t.ToolName(gone)) {
		NotTestable("the list does not hold " + gone + " to begin with")
	}
	t.Replace(ctx, t.Drupal.with(arrivalOld, gone))
	var listed Listing
	var names []string
	var described *Response
	look := func() bool {
		listed = t.As(Agent).ListAll(ctx)
		names = listed.Names()
		described = t.As(Agent).Describe(ctx, t.ToolName(gone))
		return slices.Contains(names, t.ToolName(arrival)) && !slices.Contains(names, t.ToolName(gone)) && described.Status == http.StatusNotFound
	}
	t.busy(func() { look() })
	t.poll(ctx, look)
	listed.pageOf(t.ToolName(gone)).Blame()
	t.Expect(slices.Contains(names, t.ToolName(arrival))).To(BeTrue(), mismatch(fmt.Sprintf("list %v after a module was enabled", t.patience()), fmt.Sprintf("%s in it", arrival), fmt.Sprintf("%d tools without it", len(names))))
	t.Expect(slices.Contains(names, t.ToolName(gone))).To(BeFalse(), mismatch(fmt.Sprintf("list %v after a module was disabled", t.patience()), fmt.Sprintf("no %s", gone), "it still"))
	t.Expect(described).To(BeRefusedWith(404), "%v after its module was disabled", t.patience())
}

func chk__fresh__invalidate(ctx context.Context, t *T) {
	if t.invalidate == nil {
		NotTestable("how the bridge's cache is emptied is unknown: give the setting `invalidate` (method, path, identity)")
	}
	ask := Request{Method: t.invalidate.Method, Path: t.invalidate.Path, Header: http.Header{"Content-Type": {"application/json"}}}
	t.As(Agent).MustListAll(ctx)
	t.Replace(ctx, t.Drupal.with(arrivalOld, ""))
	for _, who := range []Identity{Outsider, Anonymous} {
		t.For(who, "", func() { t.Expect(t.As(who).Send(ctx, ask)).To(BeRefusedWith(401, 403), "without the right to call it") })
	}
	t.Expect(t.As(t.invalidate.Identity).Send(ctx, ask)).To(BeSuccess())
	t.Expect(slices.Contains(t.As(Agent).ListAll(ctx).Names(), t.ToolName(arrival))).To(BeTrue(), mismatch("the next list after the invalidation", fmt.Sprintf("%s in it", arrival), "a list without it"))
}

func chk__fresh__singleFlight(ctx context.Context, t *T) {
	t.As(Agent).List(ctx).MustSucceed()
	for range 3 {
		who := t.Drupal.NewUser(t.Permissions(Agent)...)
		caller := t.As(who)
		t.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultDelay, Route: "methods", User: string(who), Delay: 50 * time.Millisecond})
		t.Drupal.Mark()
		began := time.Now()
		atOnce(100, func(int) { caller.List(ctx) })
		asked := len(t.Drupal.DiscoveriesFor(who))
		most := 1
		if t.DiscoveryTTL > 0 { // what was discovered runs out meanwhile
			most += int(time.Since(began) / (t.DiscoveryTTL * 3 / 4))
		}
		if most > 10 {
			continue // a bridge that asks once for each of its workers would pass
		}
		t.Expect(asked).To(BeNumerically("<=", most), mismatch("100 lists at once on a cold cache", "at most one discovery request in a TTL", fmt.Sprintf("%d in %v", asked, time.Since(began).Round(time.Millisecond))))
		caller.List(ctx).MustSucceed()
		return
	}
	NotTestable("100 lists at once took many times the TTL: give the bridge a longer one (--discovery-ttl)")
}

func chk__fresh__staleOnError(ctx context.Context, t *T) {
	good := t.As(Agent).List(ctx).MustSucceed()
	t.As(Agent).List(ctx).MustMeet(EqualAnswer(good))
	stranger := t.Drupal.NewUser(t.Permissions(Agent)...)
	t.Drupal.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Route: "methods", Status: http.StatusInternalServerError})
	var stale *Response
	t.Await(ctx, func() bool {
		stale = t.As(Agent).List(ctx)
		return stale.Status != good.Status || stale.Header.Get("Age") != "" || strings.HasPrefix(stale.Header.Get("Warning"), "110")
	})
	t.Row(Agent, "", "while the site's discovery fails", func() {
		t.Expect(stale).To(EqualAnswer(good))
		t.Expect(stale).To(Meet("the mark `Warning: 110` or `Age`", func(a *Response) string {
			if a.Header.Get("Age") != "" || strings.HasPrefix(a.Header.Get("Warning"), "110") {
				return ""
			}
			return "neither"
		}))
	})
	t.Row(stranger, "", "with no good list", func() { t.Expect(t.As(stranger).List(ctx)).To(BeRefusedWith(502, 503)) })
}

func chk__fresh__schemaChange(ctx context.Context, t *T) {
	t.arrive(ctx)
	half := t.DiscoveryTTL/2 + time.Millisecond
	if t.advance != nil || half < 5*time.Second { // a description that is half a TTL younger than the list
		t.pass(ctx, 2*half)
		t.As(Agent).List(ctx)
		t.pass(ctx, half)
		t.As(Agent).Describe(ctx, t.ToolName(arrival))
		t.Drupal.mock.SetSite(t.Drupal.with(arrivalNew, ""))
		t.pass(ctx, half)
		t.poll(ctx, func() bool { return t.shows(ctx, Agent, arrivalNew) })
	}
	t.Drupal.mock.SetSite(t.Drupal.with(arrivalNew, ""))
	if !t.shows(ctx, Agent, arrivalNew) {
		t.awaitSchema(ctx, arrivalNew)
	}

	t.Expect(t.As(Agent).Describe(ctx, t.ToolName(arrival))).To(Meet("the schema that list shows", func(a *Response) string {
		return schemaFault(a.Tool(), arrivalNew)
	}))
	t.Expect(t.As(Agent).Invoke(ctx, t.ToolName(arrival), Args{arrivalParam: "new"})).To(HaveResult())
	t.Expect(t.As(Agent).Invoke(ctx, t.ToolName(arrival), Args{arrivalParam: "old"})).To(BeRefused(400, "invalid_params"))
}

func chk__fresh__removedTool(ctx context.Context, t *T) {
	t.Replace(ctx, t.Drupal.with(arrivalOld, ""))
	t.awaitSchema(ctx, arrivalOld)
	t.As(Agent).Invoke(ctx, t.ToolName(arrival), Args{arrivalParam: "both"}).MustSucceed()
	t.Drupal.mock.SetSite(t.Drupal.with("", arrival))

	t.Expect(t.As(Agent).Invoke(ctx, t.ToolName(arrival), Args{arrivalParam: "both"})).To(BeRefusedWith(404), "right after the method went")
	t.Await(ctx, func() bool { return !slices.Contains(t.As(Agent).ListAll(ctx).Names(), t.ToolName(arrival)) })
	t.Expect(t.As(Agent).Invoke(ctx, t.ToolName(arrival), Args{arrivalParam: "both"})).To(BeRefusedWith(404), "once the list has lost it")
}

func chk__fresh__version(ctx context.Context, t *T) {
	first := t.As(Agent).List(ctx).MustSucceed()
	tag := first.Header.Get("ETag")
	t.Expect(first).To(HaveETag())
	t.Expect(t.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"If-None-Match": {tag}}})).To(HaveStatus(304))
	tools := t.agentTools()
	onPage := slices.IndexFunc(tools, func(m *fixtures.Method) bool { return slices.Contains(first.names(), t.ToolName(m.ID)) })
	if onPage < 0 {
		NotTestable("the first page holds no tool that the agent may run")
	}
	t.Replace(ctx, t.Drupal.with(arrivalOld, tools[onPage].ID)) // a page may have a version of its own
	t.Await(ctx, func() bool { return t.As(Agent).List(ctx).Header.Get("ETag") != tag })
	changed := t.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"If-None-Match": {tag}}})
	t.Expect(changed).To(HaveStatus(200), "If-None-Match with the old version after a change")
	t.awaitSchema(ctx, arrivalOld)
	page, cursor := t.pageOf(ctx, t.ToolName(arrival))
	t.Drupal.mock.SetSite(t.Drupal.with(arrivalNew, ""))
	t.awaitSchema(ctx, arrivalNew)
	changed = t.As(Agent).Send(ctx, Request{Path: ListPath, Query: cursor, Header: http.Header{"If-None-Match": {page.Header.Get("ETag")}}})
	t.Expect(changed).NotTo(HaveStatus(304), "If-None-Match with the old version after a change of a schema alone")
}

func chk__fresh__perUserTTL(ctx context.Context, t *T) {
	one, other := t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools), t.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools)
	gained := t.DeniedTool(one, Agent)
	sees := func(who Identity) bool { return slices.Contains(t.As(who).MustListAll(ctx).Names(), gained) }
	describes := func(who Identity) bool { return t.As(who).Describe(ctx, gained).Status == http.StatusOK }
	if sees(one) || sees(other) || describes(one) {
		NotTestable("a caller sees a tool without its permission (access/filtered-by-method judges that)")
	}
	within := fmt.Sprintf("within %v", t.patience())

	t.Drupal.Permit(one, t.Permissions(Agent)...)
	t.Expect(t.Await(ctx, func() bool { sees(other); return sees(one) && describes(one) })).To(BeTrue(),
		mismatch("a permission given", fmt.Sprintf("%s in list and describe %s", gained, within), "neither or one"))
	t.Expect(sees(other)).To(BeFalse(), mismatch("the caller who was given nothing", fmt.Sprintf("no %s", gained), "it in the list"))

	t.Drupal.Permit(one, fixtures.UseJSONRPC, fixtures.DiscoverTools)
	t.Expect(t.Await(ctx, func() bool { sees(other); return !sees(one) && !describes(one) })).To(BeTrue(),
		mismatch("a permission taken", fmt.Sprintf("no %s in list and describe %s", gained, within), "it still"))
}

func chk__fresh__schemaMismatch(ctx context.Context, t *T) {
	for _, tool := range t.samples(Agent, fixtures.Fail) {
		if tool.fails().Code == rpcInvalidParams {
			t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustMeet(BeRefused(400, "invalid_params"))
		}
	}
	t.arrive(ctx)
	t.Drupal.mock.SetSite(t.Drupal.with(arrivalNew, ""))

	t.Expect(t.As(Agent).Invoke(ctx, t.ToolName(arrival), Args{arrivalParam: "old"})).To(BeRefused(400, "invalid_params"))
	fault := ""
	t.poll(ctx, func() bool {
		fault = schemaFault(t.As(Agent).Describe(ctx, t.ToolName(arrival)).Tool(), arrivalNew)
		return fault == ""
	})
	t.Expect(fault).To(BeEmpty(), mismatch("describe after the site refused what the old schema takes", "the new schema", fault))
}

// Discoveries lists the discovery requests in the journal.
func (d *Drupal) Discoveries() []mockdrupal.Entry {
	return slices.DeleteFunc(d.Journal(), func(e mockdrupal.Entry) bool { return !strings.HasPrefix(e.Path, "/jsonrpc/methods") })
}

// DiscoveriesFor lists those that a caller may have caused: their own, and a service account's. A bridge may look up
// again for other callers meanwhile, unasked.
func (d *Drupal) DiscoveriesFor(who Identity) []mockdrupal.Entry {
	return slices.DeleteFunc(d.Discoveries(), func(e mockdrupal.Entry) bool {
		return e.User != string(who) && e.User != string(Service)
	})
}

// with is the site as it is, with the arriving method taking a parameter of the schema ("" for no such method) and
// without the method that leaves.
func (d *Drupal) with(schema, leaving string) *fixtures.Site {
	site := d.Site().Clone()
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool { return m.ID == leaving || m.ID == arrival })
	if schema != "" {
		site.Methods = append([]fixtures.Method{{ID: arrival, Usage: "Has just arrived", Access: []string{fixtures.AccessContent}, MCP: &fixtures.Tool{Title: "Arrival"},
			Params:    []fixtures.Param{{Name: arrivalParam, Schema: fixtures.Raw(schema), Required: true, Description: "What it takes"}},
			Behaviour: fixtures.Behaviour{Kind: fixtures.Echo}}}, site.Methods...)
	}
	return site
}

// Permissions are those that an account of the site holds through its roles.
func (t *T) Permissions(who Identity) []string {
	site := t.Drupal.Site()
	user := userOf(site, who)
	var held []string
	for _, role := range site.Roles {
		for _, p := range role.Permissions {
			if site.Holds(user, p) && !slices.Contains(held, p) {
				held = append(held, p)
			}
		}
	}
	return held
}

// leaving is a tool of the agent's that a check may take from the site.
func (t *T) leaving() string {
	tools := t.agentTools()
	return tools[len(tools)-1].ID
}

// arrive has the arriving method come to the site as a tool that takes `old`. Where the bridge does not describe it, run
// it, and refuse it with what it does not take, the check is not testable: other clauses judge that.
func (t *T) arrive(ctx context.Context) {
	t.Replace(ctx, t.Drupal.with(arrivalOld, ""))
	t.awaitSchema(ctx, arrivalOld)
	name := t.ToolName(arrival)
	t.As(Agent).Describe(ctx, name).MustMeet(Meet("the schema that list shows", func(a *Response) string { return schemaFault(a.Tool(), arrivalOld) }))
	t.As(Agent).Invoke(ctx, name, Args{arrivalParam: "old"}).MustMeet(HaveResult())
	t.As(Agent).Invoke(ctx, name, Args{arrivalParam: "new"}).MustMeet(BeRefused(400, "invalid_params"))
}

// awaitSchema waits until list shows the arriving method with the schema, to the agent and to others.
func (t *T) awaitSchema(ctx context.Context, schema string, others ...Identity) {
	for _, who := range append([]Identity{Agent}, others...) {
		t.awaitShown(ctx, "a method that came or changed", func() bool { return t.shows(ctx, who, schema) })
	}
}

// shows tells whether list shows a caller the arriving method with the schema.
func (t *T) shows(ctx context.Context, who Identity, schema string) bool {
	tool, ok := t.As(who).ListAll(ctx).Find(t.ToolName(arrival))
	return ok && schemaFault(tool, schema) == ""
}

// schemaFault says where a tool's schema of the arriving parameter differs in its values; "" when it does not.
func schemaFault(tool Tool, schema string) string {
	property, _ := jsonschema.At(map[string]any(tool.Input()), "/properties/"+arrivalParam)
	want, err := exact.Parse([]byte(schema))
	if err != nil {
		return err.Error()
	}
	return exact.Diff(want.(map[string]any)["enum"], property["enum"])
}

// expire lets everything cached run out where the run has a clock to move.
func (t *T) expire() {
	if t.advance != nil {
		t.advance(t.DiscoveryTTL + time.Millisecond)
	}
}

// pageOf finds the page of the agent's list that holds a tool, and the query that asks for it.
func (t *T) pageOf(ctx context.Context, name string) (*Response, url.Values) {
	var query url.Values
	for _, page := range t.As(Agent).MustListAll(ctx).Pages {
		if slices.Contains(page.names(), name) {
			return page, query
		}
		query = url.Values{"cursor": {page.NextCursor()}}
	}
	NotTestable("the list holds no " + name)
	return nil, nil
}

// busy has the caller ask again and again while the TTL runs out, where the run has a clock to move: what is asked for all
// the time must run out as well.
func (t *T) busy(ask func()) {
	if t.advance == nil {
		return // then the wait for the change does so
	}
	ask()
	for range 5 {
		t.advance(t.DiscoveryTTL/4 + time.Millisecond)
		ask()
	}
}

// atOnce runs n calls at the same time and waits for all.
func atOnce(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer Recover()
			call(i)
		})
	}
	all.Wait()
}

// BeSuccess matches any 2xx without an error in it.
func BeSuccess() OmegaMatcher {
	return matching("a 2xx", (*Response).Succeeded)
}

// HaveETag matches an answer that carries a version.
func HaveETag() OmegaMatcher {
	return Meet("an ETag", func(a *Response) string {
		if a.Header.Get("ETag") == "" {
			return "none"
		}
		return ""
	})
}
