package mockdrupal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

const agentBasic = "Basic YWdlbnQ6YWdlbnQtcGFzcw=="

func TestFrozenMethodsGoOnStepByStep(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	s.Freeze("test.whoami")
	done := make(chan string, 2)
	for range 2 {
		go func() {
			_, body := call(t, s, "agent", whoami)
			done <- body
		}()
	}
	waitUntil(t, func() bool { return s.Waiting() == 2 }, "two calls wait")
	_, body := call(t, s, "agent", `{"jsonrpc":"2.0","id":1,"method":"test.count"}`)
	must.Expect(t, strings.Contains(body, `"result":1`), "another method waits too: %s", body)
	must.Equal(t, s.Step(1), 1, "calls that went on")
	<-done
	must.Equal(t, s.Waiting(), 1, "calls that wait")
	s.Freeze("")
	must.Has(t, <-done, `"name":"agent"`, "after thawing")
}

func TestSlowMethodsFollowTheSitesClock(t *testing.T) {
	site := smallSite()
	site.Methods[3].Behaviour.Sleep = time.Hour
	s := start(t, site, mockdrupal.Options{})
	done := make(chan string, 1)
	go func() {
		_, body := call(t, s, "agent", whoami)
		done <- body
	}()
	waitUntil(t, func() bool { return s.Waiting() == 1 }, "the call sleeps")
	s.Advance(time.Hour)
	must.Has(t, <-done, `"name":"agent"`, "an hour later")
}

// waitUntil looks again and again until it is so; a test that never gets there fails.
func waitUntil(t *testing.T, so func() bool, what string) {
	t.Helper()
	must.Become(t, 5*time.Second, so, "it never came that %s", what)
}

func TestJournalFiltersAndForgets(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{JournalLimit: 3})
	call(t, s, "agent", whoami)
	call(t, s, "agent", `[{"jsonrpc":"2.0","id":"a","method":"test.count"},{"jsonrpc":"2.0","method":"test.echo","params":{"x":1.0}}]`)
	call(t, s, "", whoami)
	j := s.Journal()
	for _, c := range []struct {
		name   string
		filter journal.Filter
		want   int
	}{
		{"all", journal.Filter{}, 3},
		{"after", journal.Filter{After: 1}, 2},
		{"user", journal.Filter{User: "agent"}, 2},
		{"anonymous", journal.Filter{User: fixtures.Anonymous}, 1},
		{"method", journal.Filter{Method: "test.e*"}, 1},
		{"status", journal.Filter{Status: 401}, 1},
		{"ran", journal.Filter{Ran: true}, 2},
		{"limit", journal.Filter{Limit: 1}, 1},
	} {
		must.Equal(t, len(j.Select(c.filter)), c.want, "entries, %s", c.name)
	}
	batch := j.Select(journal.Filter{Method: "test.e*"})[0]
	if len(batch.Calls) != 2 || !batch.Calls[1].Notification || !batch.Calls[1].Ran || string(batch.Calls[1].Params) != `{"x":1.0}` || string(batch.Calls[0].ID) != `"a"` {
		t.Errorf("calls of the batch: %+v", batch.Calls)
	}
	must.Expect(t, !batch.End.Before(batch.Start) && batch.BytesOut != 0 && batch.Conn != 0 && batch.User == "agent" && batch.Scheme == "basic",
		"entry %+v", batch)
	call(t, s, "agent", whoami)
	first := j.Entries(0)[0].Seq
	must.Expect(t, first == 2 && j.Dropped() == 1, "the journal begins with %d and dropped %d, want 2 and 1", first, j.Dropped())
	j.Clear()
	must.Expect(t, len(j.Entries(0)) == 0 && j.Last() == 4, "after clearing: %d entries, last %d", len(j.Entries(0)), j.Last())
}

func get(t *testing.T, s *mockdrupal.Server, query string) string {
	t.Helper()
	_, body := do(t, "GET", s.URL+"/jsonrpc?query="+url.QueryEscape(query), "", "Authorization", agentBasic)
	return body
}

func TestQuirksChangeWhatTheyName(t *testing.T) {
	site := smallSite()
	s := start(t, site, mockdrupal.Options{})
	ask := func() string { get(t, s, "nope"); return get(t, s, whoami) }
	must.Has(t, ask(), `"name":"agent"`, "without the quirk")
	must.Do(t, s.SetQuirk(quirk.StickyGet, true))
	must.Has(t, ask(), "invalid input data", "with %s", quirk.StickyGet)
	s.ClearCaches()
	must.Has(t, get(t, s, whoami), `"name":"agent"`, "after clearing the caches")
	got := s.ActiveQuirks()
	must.Expect(t, len(got) == 1 && got[0] == quirk.StickyGet, "active quirks %v", got)
	must.Say(t, s.SetQuirk("odd", true), "odd", "an unknown quirk")
	must.Refuse(mockdrupal.New(site, mockdrupal.Options{Quirks: []string{"odd"}}))(t, "", "a mock starts with an unknown quirk")
}

func TestPatchIsWholeOrNothing(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	blocked := true
	err := s.Patch(patch.Patch{
		Users: map[string]patch.User{"agent": {Blocked: &blocked}},
		Roles: map[string]patch.Role{"nobody": {Grant: []string{"access content"}}},
	})
	must.Assert(t, err != nil, "a patch of an unknown role is taken")
	status, _ := call(t, s, "agent", whoami)
	must.Expect(t, status == 200, "half of the bad patch was applied: %d", status)
	must.Do(t, s.Patch(patch.Patch{
		Roles:   map[string]patch.Role{"agent": {Grant: []string{"administer site configuration"}}},
		Methods: map[string]patch.Method{"test.echo": {Access: &[]string{"access content"}}},
	}))
	for method, holds := range map[string]string{"test.admin": "secret", "test.echo": "access content"} {
		_, body := call(t, s, "agent", `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
		must.Expect(t, strings.Contains(body, holds), "%s after the patch: %s, want %s", method, body, holds)
	}
}

func TestLargeSiteLoadsAndServes(t *testing.T) {
	const methods, limit = 100_000, 3 * time.Second
	site := must.Get(fixtures.Builtin("bulk-100000"))(t)
	begin := time.Now()
	s := start(t, site, mockdrupal.Options{})
	status, _ := call(t, s, "agent", `{"jsonrpc":"2.0","id":1,"method":"bulk.99999","params":{"n":1}}`)
	must.Assert(t, status == http.StatusOK, "the large site responds with %d", status)
	loaded := time.Since(begin)
	must.Expect(t, loaded <= limit, "loading took %v, want less than %v", loaded, limit)
	t.Logf("%d methods loaded in %v", methods, loaded)
}
