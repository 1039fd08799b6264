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

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
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

var _ = Area("fresh", func(b *Bridge) {
	b.Check("fresh/cache-hit", func(ctx SpecContext) {
		who := b.Drupal.NewUser(b.Permissions(Agent)...)
		for attempt := range 3 {
			b.expire()
			began := time.Now()
			known := b.KnownTool(ctx)
			b.As(who).List(ctx).MustSucceed()
			b.As(who).Describe(ctx, known).MustSucceed()
			b.As(who).Describe(ctx, noSuchTool)
			b.Drupal.Mark()
			for range 5 {
				b.As(who).List(ctx)
				b.As(who).Describe(ctx, known)
				b.As(who).Describe(ctx, noSuchTool)
			}
			if b.DiscoveryTTL > 0 && time.Since(began) > b.DiscoveryTTL*3/4 {
				if attempt == 2 {
					NotTestable("fifteen cached requests took longer than the TTL: give the bridge a longer one")
				}
				continue
			}
			asked := len(b.Drupal.DiscoveriesFor(who))
			Expect(asked).To(BeZero(), "list and describe within the TTL: expected no discovery request, got %d", asked)
			return
		}
	})

	b.Check("fresh/ttl-expiry", func(ctx SpecContext) {
		gone := b.leaving()
		before := b.As(Agent).MustListAll(ctx).Names()
		if !contains(before, b.ToolName(gone)) {
			NotTestable("the list does not hold " + gone + " to begin with")
		}
		b.Replace(ctx, b.Drupal.with(arrivalOld, gone))
		var listed Listing
		var names []string
		var described *Answer
		look := func() bool {
			listed = b.As(Agent).ListAll(ctx)
			names = listed.Names()
			described = b.As(Agent).Describe(ctx, b.ToolName(gone))
			return contains(names, b.ToolName(arrival)) && !contains(names, b.ToolName(gone)) && described.Status == http.StatusNotFound
		}
		b.busy(func() { look() })
		b.poll(ctx, look)
		listed.pageOf(b.ToolName(gone)).blame()
		Expect(contains(names, b.ToolName(arrival))).To(BeTrue(), "list %v after a module was enabled: expected %s in it, got %d tools without it", b.patience(), arrival, len(names))
		Expect(contains(names, b.ToolName(gone))).To(BeFalse(), "list %v after a module was disabled: expected no %s, got it still", b.patience(), gone)
		Expect(described).To(BeRefusedWith(404), "%v after its module was disabled", b.patience())
	})

	b.Check("fresh/invalidate", func(ctx SpecContext) {
		if b.invalidate == nil {
			NotTestable("how the bridge's cache is emptied is unknown: give the setting `invalidate` (method, path, identity)")
		}
		ask := Request{Method: b.invalidate.Method, Path: b.invalidate.Path, Header: http.Header{"Content-Type": {"application/json"}}}
		b.As(Agent).MustListAll(ctx)
		b.Replace(ctx, b.Drupal.with(arrivalOld, ""))
		for _, who := range []Identity{Outsider, Anonymous} {
			b.For(who, "", func() { Expect(b.As(who).Send(ctx, ask)).To(BeRefusedWith(401, 403), "without the right to call it") })
		}
		Expect(b.As(b.invalidate.Identity).Send(ctx, ask)).To(BeSuccess())
		Expect(contains(b.As(Agent).ListAll(ctx).Names(), b.ToolName(arrival))).To(BeTrue(), "the next list after the invalidation: expected %s in it, got a list without it", arrival)
	})

	b.Check("fresh/single-flight", func(ctx SpecContext) {
		b.As(Agent).List(ctx).MustSucceed()
		for range 3 {
			who := b.Drupal.NewUser(b.Permissions(Agent)...)
			caller := b.As(who)
			b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: "methods", User: string(who), Delay: 50 * time.Millisecond})
			b.Drupal.Mark()
			began := time.Now()
			atOnce(100, func(int) { caller.List(ctx) })
			asked := len(b.Drupal.DiscoveriesFor(who))
			most := 1
			if b.DiscoveryTTL > 0 { // what was discovered runs out meanwhile
				most += int(time.Since(began) / (b.DiscoveryTTL * 3 / 4))
			}
			if most > 10 {
				continue // a bridge that asks once for each of its workers would pass
			}
			Expect(asked).To(BeNumerically("<=", most), "100 lists at once on a cold cache: expected at most one discovery request in a TTL, got %d in %v", asked, time.Since(began).Round(time.Millisecond))
			caller.List(ctx).MustSucceed()
			return
		}
		NotTestable("100 lists at once took many times the TTL: give the bridge a longer one (--discovery-ttl)")
	})

	b.Check("fresh/stale-on-error", func(ctx SpecContext) {
		good := b.As(Agent).List(ctx).MustSucceed()
		b.As(Agent).List(ctx).MustMeet(EqualAnswer(good))
		stranger := b.Drupal.NewUser(b.Permissions(Agent)...)
		b.Drupal.Arm(mockdrupal.Fault{Kind: fault.Status, Route: "methods", Status: http.StatusInternalServerError})
		var stale *Answer
		b.Await(ctx, func() bool {
			stale = b.As(Agent).List(ctx)
			return stale.Status != good.Status || stale.Header.Get("Age") != "" || strings.HasPrefix(stale.Header.Get("Warning"), "110")
		})
		b.Row(Agent, "", "while the site's discovery fails", func() {
			Expect(stale).To(EqualAnswer(good))
			Expect(stale).To(Meet("the mark `Warning: 110` or `Age`", func(a *Answer) string {
				if a.Header.Get("Age") != "" || strings.HasPrefix(a.Header.Get("Warning"), "110") {
					return ""
				}
				return "neither"
			}))
		})
		b.Row(stranger, "", "with no good list", func() { Expect(b.As(stranger).List(ctx)).To(BeRefusedWith(502, 503)) })
	})

	b.Check("fresh/schema-change", func(ctx SpecContext) {
		b.arrive(ctx)
		half := b.DiscoveryTTL/2 + time.Millisecond
		if b.advance != nil || half < 5*time.Second { // a description that is half a TTL younger than the list
			b.pass(ctx, 2*half)
			b.As(Agent).List(ctx)
			b.pass(ctx, half)
			b.As(Agent).Describe(ctx, b.ToolName(arrival))
			b.Drupal.mock.SetSite(b.Drupal.with(arrivalNew, ""))
			b.pass(ctx, half)
			b.poll(ctx, func() bool { return b.shows(ctx, Agent, arrivalNew) })
		}
		b.Drupal.mock.SetSite(b.Drupal.with(arrivalNew, ""))
		if !b.shows(ctx, Agent, arrivalNew) {
			b.awaitSchema(ctx, arrivalNew)
		}

		Expect(b.As(Agent).Describe(ctx, b.ToolName(arrival))).To(Meet("the schema that list shows", func(a *Answer) string {
			return schemaFault(a.Tool(), arrivalNew)
		}))
		Expect(b.As(Agent).Invoke(ctx, b.ToolName(arrival), Args{arrivalParam: "new"})).To(HaveResult())
		Expect(b.As(Agent).Invoke(ctx, b.ToolName(arrival), Args{arrivalParam: "old"})).To(BeRefused(400, "invalid_params"))
	})

	b.Check("fresh/removed-tool", func(ctx SpecContext) {
		b.Replace(ctx, b.Drupal.with(arrivalOld, ""))
		b.awaitSchema(ctx, arrivalOld)
		b.As(Agent).Invoke(ctx, b.ToolName(arrival), Args{arrivalParam: "both"}).MustSucceed()
		b.Drupal.mock.SetSite(b.Drupal.with("", arrival))

		Expect(b.As(Agent).Invoke(ctx, b.ToolName(arrival), Args{arrivalParam: "both"})).To(BeRefusedWith(404), "right after the method went")
		b.Await(ctx, func() bool { return !contains(b.As(Agent).ListAll(ctx).Names(), b.ToolName(arrival)) })
		Expect(b.As(Agent).Invoke(ctx, b.ToolName(arrival), Args{arrivalParam: "both"})).To(BeRefusedWith(404), "once the list has lost it")
	})

	b.Check("fresh/version", func(ctx SpecContext) {
		first := b.As(Agent).List(ctx).MustSucceed()
		tag := first.Header.Get("ETag")
		Expect(first).To(HaveETag())
		Expect(b.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"If-None-Match": {tag}}})).To(HaveStatus(304))
		tools := b.agentTools()
		onPage := slices.IndexFunc(tools, func(m *fixtures.Method) bool { return contains(first.names(), b.ToolName(m.ID)) })
		if onPage < 0 {
			NotTestable("the first page holds no tool that the agent may run")
		}
		b.Replace(ctx, b.Drupal.with(arrivalOld, tools[onPage].ID)) // a page may have a version of its own
		b.Await(ctx, func() bool { return b.As(Agent).List(ctx).Header.Get("ETag") != tag })
		changed := b.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"If-None-Match": {tag}}})
		Expect(changed).To(HaveStatus(200), "If-None-Match with the old version after a change")
		b.awaitSchema(ctx, arrivalOld)
		page, cursor := b.pageOf(ctx, b.ToolName(arrival))
		b.Drupal.mock.SetSite(b.Drupal.with(arrivalNew, ""))
		b.awaitSchema(ctx, arrivalNew)
		changed = b.As(Agent).Send(ctx, Request{Path: ListPath, Query: cursor, Header: http.Header{"If-None-Match": {page.Header.Get("ETag")}}})
		Expect(changed).NotTo(HaveStatus(304), "If-None-Match with the old version after a change of a schema alone")
	})

	b.Check("fresh/per-user-ttl", func(ctx SpecContext) {
		one, other := b.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools), b.Drupal.NewUser(fixtures.UseJSONRPC, fixtures.DiscoverTools)
		gained := b.DeniedTool(one, Agent)
		sees := func(who Identity) bool { return contains(b.As(who).MustListAll(ctx).Names(), gained) }
		describes := func(who Identity) bool { return b.As(who).Describe(ctx, gained).Status == http.StatusOK }
		if sees(one) || sees(other) || describes(one) {
			NotTestable("a caller sees a tool without its permission (access/filtered-by-method judges that)")
		}
		within := fmt.Sprintf("within %v", b.patience())

		b.Drupal.Permit(one, b.Permissions(Agent)...)
		Expect(b.Await(ctx, func() bool { sees(other); return sees(one) && describes(one) })).To(BeTrue(),
			"a permission given: expected %s in list and describe %s, got neither or one", gained, within)
		Expect(sees(other)).To(BeFalse(), "the caller who was given nothing: expected no %s, got it in the list", gained)

		b.Drupal.Permit(one, fixtures.UseJSONRPC, fixtures.DiscoverTools)
		Expect(b.Await(ctx, func() bool { sees(other); return !sees(one) && !describes(one) })).To(BeTrue(),
			"a permission taken: expected no %s in list and describe %s, got it still", gained, within)
	})

	b.Check("fresh/schema-mismatch", func(ctx SpecContext) {
		for _, tool := range b.samples(Agent, fixtures.Fail) {
			if tool.fails().Code == rpcInvalidParams {
				b.As(Agent).Invoke(ctx, tool.Name, tool.Arguments).MustMeet(BeRefused(400, "invalid_params"))
			}
		}
		b.arrive(ctx)
		b.Drupal.mock.SetSite(b.Drupal.with(arrivalNew, ""))

		Expect(b.As(Agent).Invoke(ctx, b.ToolName(arrival), Args{arrivalParam: "old"})).To(BeRefused(400, "invalid_params"))
		Eventually(func() string { return schemaFault(b.As(Agent).Describe(ctx, b.ToolName(arrival)).Tool(), arrivalNew) }).
			WithContext(ctx).WithTimeout(b.patience()).WithPolling(20*time.Millisecond).Should(BeEmpty(), "describe after the site refused what the old schema takes: expected the new schema")
	})
})

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
func (b *Bridge) Permissions(who Identity) []string {
	site := b.Drupal.Site()
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
func (b *Bridge) leaving() string {
	tools := b.agentTools()
	return tools[len(tools)-1].ID
}

// arrive has the arriving method come to the site as a tool that takes `old`. Where the bridge does not describe it, run
// it, and refuse it with what it does not take, the check is not testable: other clauses judge that.
func (b *Bridge) arrive(ctx SpecContext) {
	b.Replace(ctx, b.Drupal.with(arrivalOld, ""))
	b.awaitSchema(ctx, arrivalOld)
	name := b.ToolName(arrival)
	b.As(Agent).Describe(ctx, name).MustMeet(Meet("the schema that list shows", func(a *Answer) string { return schemaFault(a.Tool(), arrivalOld) }))
	b.As(Agent).Invoke(ctx, name, Args{arrivalParam: "old"}).MustMeet(HaveResult())
	b.As(Agent).Invoke(ctx, name, Args{arrivalParam: "new"}).MustMeet(BeRefused(400, "invalid_params"))
}

// awaitSchema waits until list shows the arriving method with the schema, to the agent and to others.
func (b *Bridge) awaitSchema(ctx context.Context, schema string, others ...Identity) {
	for _, who := range append([]Identity{Agent}, others...) {
		b.awaitShown(ctx, "a method that came or changed", func() bool { return b.shows(ctx, who, schema) })
	}
}

// shows tells whether list shows a caller the arriving method with the schema.
func (b *Bridge) shows(ctx context.Context, who Identity, schema string) bool {
	tool, ok := b.As(who).ListAll(ctx).Find(b.ToolName(arrival))
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
func (b *Bridge) expire() {
	if b.advance != nil {
		b.advance(b.DiscoveryTTL + time.Millisecond)
	}
}

// pageOf finds the page of the agent's list that holds a tool, and the query that asks for it.
func (b *Bridge) pageOf(ctx context.Context, name string) (*Answer, url.Values) {
	var query url.Values
	for _, page := range b.As(Agent).MustListAll(ctx).Pages {
		if contains(page.names(), name) {
			return page, query
		}
		query = url.Values{"cursor": {page.NextCursor()}}
	}
	NotTestable("the list holds no " + name)
	return nil, nil
}

// busy has the caller ask again and again while the TTL runs out, where the run has a clock to move: what is asked for all
// the time must run out as well.
func (b *Bridge) busy(ask func()) {
	if b.advance == nil {
		return // then the wait for the change does so
	}
	ask()
	for range 5 {
		b.advance(b.DiscoveryTTL/4 + time.Millisecond)
		ask()
	}
}

// atOnce runs n calls at the same time and waits for all.
func atOnce(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer GinkgoRecover()
			call(i)
		})
	}
	all.Wait()
}

// BeSuccess matches any 2xx without an error in it.
func BeSuccess() OmegaMatcher {
	return judging("a 2xx", (*Answer).Succeeded)
}

// HaveETag matches an answer that carries a version.
func HaveETag() OmegaMatcher {
	return Meet("an ETag", func(a *Answer) string {
		if a.Header.Get("ETag") == "" {
			return "none"
		}
		return ""
	})
}
