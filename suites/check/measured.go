package check

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// Measuring is how long a run waits for what it measures: for a change of the site to show, and for a bridge to give a hanging
// site up.
const Measuring = 75 * time.Second

// measures are what a run measures of a bridge that it has not started, as what it was given of it may be a guess. The run
// changes the site when it begins, for accounts of its own that no check uses, and looks between checks whether they see
// that: while there is something else to test the wait costs nothing. T.TTL waits for the rest of it.
type measures struct {
	t             *T
	marker        fixtures.Method // that came with the change, for those who may administer the site
	lister        Identity
	waiting       map[Identity]string // those who do not see the change yet, and what that is
	changed       time.Time
	looked        time.Duration // after the change
	unseen        time.Duration // after the change, when the lister did not see it
	least         time.Duration // after the change, when the last did not see it
	ttl           time.Duration // after which all saw it; 0: they do not yet
	over          bool          // nothing more is waited for
	currentForNew bool          // a caller that is new to the bridge sees the site as it is
	listsSite     bool          // of a bridge whose new callers do not: its list has a method of the site with its usage
	rows          []reports.Measurement
}

// Measures reports whether the run measures what it was given of a bridge. How it has started one itself, it knows.
func (c *Config) Measures() bool { return !c.Owned && c.Advance == nil }

// markerName is the id of the method with which runs change the site that they measure by.
const markerName = "content.measured"

// markerUsage begins the usage of that method; the name of the run comes next.
const markerUsage = "Came with the run"

// Marks reports whether a tool is of the method that says which run changed the site. What a bridge that is up shows of it to a caller
// whom it knows may be what another run left, from before this one or beside it.
func (t *T) Marks(tool string) bool { return t.measures != nil && tool == t.ToolName(markerName) }

// StartMeasures changes the site of a run that measures, and notes who saw what before. Where the bridge lists nothing,
// nothing is measured. The caller puts the site back by undo. The error says that the bridge refuses everybody that it does not
// know, for so long that nothing can be tested.
func (e *Environment) StartMeasures(ctx context.Context) (undo func(), err error) {
	undo = func() {}
	if !e.Measures() || e.Drupal == nil {
		return undo, nil
	}
	t := NewT(e)
	m := &measures{t: t, waiting: map[Identity]string{}, marker: fixtures.Method{
		ID: markerName, Usage: markerUsage + t.Drupal.Prefix + "to measure how soon a change shows", Access: []string{fixtures.AdministerSite},
		MCP: &fixtures.Tool{Title: "Measured"}, Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw("1")}}}
	if !t.Exposed(&m.marker) {
		return undo, nil
	}
	e.Drupal.NumberAccountsFrom(int64(len(e.Contract.IDs())) * accountsPerCheck)
	able := append(t.Permissions(Agent), fixtures.AdministerSite)
	m.lister = t.Drupal.NewUser(able...)
	m.waiting[m.lister], m.waiting[t.Drupal.NewUser(t.Permissions(Agent)...)] = "a changed method", "a granted permission"
	if e.Claims("discovery-permission") {
		m.waiting[t.Drupal.NewUser(fixtures.UseJSONRPC)] = "the permission to discover, granted to a caller who was refused"
	}
	for who := range InOrder(m.waiting) {
		list := t.As(who).WithoutWaiting().List(ctx)
		if pause, _ := list.Busy(); list.Throttled() && pause > time.Minute {
			return undo, fmt.Errorf("the bridge refuses callers that it does not know for %s (429), most likely after the wrong credentials of earlier runs from this address: test again then, or raise that limit of the bridge while it is tested", patience.Rounded(pause))
		}
		if list.Status == 0 {
			return undo, nil
		}
	}
	m.serve(func(methods []fixtures.Method) []fixtures.Method {
		return append([]fixtures.Method{m.marker}, methods...)
	})
	for who := range InOrder(m.waiting) {
		t.Drupal.Permit(who, able...)
	}
	m.changed, e.measures = time.Now(), m
	return func() {
		m.serve(func(methods []fixtures.Method) []fixtures.Method {
			return slices.DeleteFunc(slices.Clone(methods), func(other fixtures.Method) bool { return other.ID == m.marker.ID })
		})
	}, nil
}

// serve changes the methods of the site.
func (m *measures) serve(change func([]fixtures.Method) []fixtures.Method) {
	site := *m.t.Drupal.Site()
	site.Methods = change(site.Methods)
	m.t.Drupal.Mock.SetSite(&site)
}

// MeasureNow measures what needs no wait: whether a caller that is new to the bridge sees the site as it is, and the page size.
// The error says that the bridge stands before another site.
func (e *Environment) MeasureNow(ctx context.Context) error {
	if m := e.measures; m != nil {
		able := append(m.t.Permissions(Agent), fixtures.AdministerSite)
		m.currentForNew, _ = m.sees(ctx, m.t.Drupal.NewUser(able...))
		m.look(ctx)
		if !m.currentForNew {
			if err := e.elsewhere(ctx); err != nil {
				return err
			}
		}
		if e.NotABridge != "" || e.Unforwarded || !m.currentForNew && len(m.t.Upstream.Entries(0)) == 0 { // it has no site, or asks this one nothing
			m.over = true
		}
		if m.listsSite = !m.currentForNew && !m.over && m.showsSite(ctx); !m.listsSite {
			e.AwaitChange(ctx)
		}
	}
	switch {
	case e.Measures():
		e.measurePageSize(ctx)
	case e.Owned && e.Drupal != nil && e.Alone(): // a server of MCP that others wrote for something else knows no DRUPAL_URL
		return e.elsewhere(ctx)
	}
	return nil
}

// AwaitChange waits where a caller who is new to the bridge sees an older site, until it shows the present one: no check that looks
// at the site could be right before.
func (e *Environment) AwaitChange(ctx context.Context) {
	m := e.measures
	if m == nil || m.currentForNew || m.over || m.waiting[m.lister] == "" {
		return
	}
	if e.Waiting != nil {
		e.Waiting(fmt.Sprintf("waiting for the bridge to show a change of the site, at most %v: a new caller sees the site as it was before; let the bridge cache for 1s while it is tested", Measuring))
	}
	for m.waiting[m.lister] != "" && !m.over {
		m.wait(ctx)
		m.over = m.over || m.drops()
	}
}

// showsSite reports whether the bridge lists a method of the site to the agent as it is, so that what its list does not show of the
// change may be in a cache.
func (m *measures) showsSite(ctx context.Context) (shown bool) {
	protect(func() {
		list := m.t.As(Agent).ListAll(ctx)
		shown = slices.ContainsFunc(m.t.Site.Methods(), func(method fixtures.Method) bool {
			tool, listed := list.Find(m.t.ToolName(method.ID))
			return listed && method.Usage != "" && tool["description"] == method.Usage
		})
	})
	return shown
}

// drops reports whether the bridge's list loses the change: the site showed it to a caller of the bridge long ago, and no method of
// the site is in the list as it is.
func (m *measures) drops() bool {
	long := cmp.Or(3*m.t.DiscoveryTTL, soon)
	return !m.listsSite && slices.ContainsFunc(m.t.Upstream.Entries(0), func(e journal.Entry) bool {
		return e.Route == route.Methods && e.Status == http.StatusOK && e.Start.After(m.changed) && time.Since(e.End) > long && m.t.Drupal.Made(Identity(e.User))
	})
}

// elsewhere is why the bridge stands before another site: it lists tools, and has sent this site no request for its methods, not
// even for a caller whom it cannot know. Where its tools have the names of this site's methods, as before another mock, one is
// called to make sure.
func (e *Environment) elsewhere(ctx context.Context) error {
	t := NewT(e)
	tools := t.As(Agent).List(ctx).Names()
	methods := []string{route.Methods, route.Method, route.JSONRPC, route.MCPList, route.MCPPost} // a server may log in to whatever site it has
	asked := func() bool {
		return ctx.Err() != nil || slices.ContainsFunc(t.Upstream.Entries(0), func(e journal.Entry) bool { return slices.Contains(methods, e.Route) })
	}
	if len(tools) == 0 || asked() {
		return nil
	}
	called := ""
	for _, method := range t.Site.Methods() {
		name := t.ToolName(method.ID)
		if !slices.Contains(tools, name) {
			continue // a tool of a site that nobody knows is not run
		}
		if called = name; method.Behaviour.Kind == fixtures.Value && len(method.Params) == 0 {
			break
		}
	}
	why := fmt.Sprintf("lists tools such as %s, which the mock Drupal of the run does not have, and asks it for no methods", exact.Cut(t.Redact.Text(tools[0]), 60))
	if called != "" {
		mock, own := t.Drupal.Mock.(interface{ Listened() bool })
		if !own || !mock.Listened() { // of several processes of Ginkgo one has the mock that is behind the bridge
			return nil
		}
		if r := t.As(Agent).Invoke(ctx, called, Args{}); r.Status == 0 || r.Status >= http.StatusInternalServerError || asked() {
			return nil
		}
		why = fmt.Sprintf("asks the mock Drupal of the run for no methods, not even for a call of %s, so that another one is behind it", called)
	}
	instead := "start it anew where it remembers another site"
	if e.StdioAlone {
		instead = "leave auth-service out of --capabilities, which tests it without a site"
	}
	return fmt.Errorf("the bridge %s: point the bridge at the mock (DRUPAL_URL, or as its own settings call it), or %s", why, instead)
}

// measurePageSize goes by the agent's first page, or where all its tools are on that, by that of a site with many. A page that
// has one more or one less than the run was told is a fault to be found, not another setting.
func (e *Environment) measurePageSize(ctx context.Context) {
	t, m := NewT(e), e.measures
	page := t.As(Agent).List(ctx)
	if page.NextCursor() == "" && m != nil && m.currentForNew {
		before := t.Drupal.Site()
		many, err := fixtures.Builtin(fmt.Sprintf("bulk-%d", max(manyTools, 10*e.PageSize+1)))
		if err != nil {
			return
		}
		for i := range many.Methods {
			many.Methods[i].ID = fmt.Sprintf("content.paged.%05d", i)
		}
		m.serve(func([]fixtures.Method) []fixtures.Method { return many.Methods })
		page = t.As(t.Drupal.NewUser(t.Permissions(Agent)...)).List(ctx)
		m.serve(func([]fixtures.Method) []fixtures.Method { return before.Methods })
	}
	n := len(page.Tools())
	if page.NextCursor() == "" || n == 0 {
		return
	}
	row := reports.Measurement{Setting: "page_size", What: "tools on a full page", Given: fmt.Sprint(e.PageSize), Measured: fmt.Sprint(n)}
	if n < e.PageSize-1 || n > e.PageSize+1 {
		row.Warning = fmt.Sprintf("a full page of the bridge has %d tools, not %d (--page-size): the checks go by %d", n, e.PageSize, n)
		e.PageSize = n
	}
	row.Used = fmt.Sprint(e.PageSize)
	e.measuredPages = &row
}

// manyTools are more than most pages hold.
const manyTools = 501

// sees reports whether the caller's list shows the change, and whether it came whole: one that was refused or not finished, as of
// a busy machine, does not show that the bridge keeps what was before.
func (m *measures) sees(ctx context.Context, who Identity) (shown, whole bool) {
	protect(func() { // a bridge whose list cannot be followed is for the checks
		list := m.t.As(who).ListAll(ctx)
		tool, listed := list.Find(m.t.ToolName(m.marker.ID))
		text, _ := tool["description"].(string)
		foreign := strings.Contains(text, markerUsage) && !strings.Contains(text, m.marker.Usage) // another run left it
		shown, whole = listed && !foreign, list.Fault.IsZero()
	})
	return shown, whole
}

// look asks those who have not seen the change whether they do now.
func (m *measures) look(ctx context.Context) {
	for who, what := range InOrder(m.waiting) {
		asked := time.Since(m.changed)
		shown, whole := m.sees(ctx, who)
		if !shown && who == m.lister && m.looked == 0 { // a process that was not asked before may show it
			shown = !m.t.Everywhere(func() bool { shown, _ := m.sees(ctx, who); return !shown })
		}
		if shown && !m.t.Everywhere(func() bool { again, whole := m.sees(ctx, who); return again || !whole }) { // another process has it from before
			m.t.several, shown = true, false
		}
		if shown {
			m.rows = append(m.rows, reports.Measurement{What: "until the bridge shows " + what, Measured: patience.Rounded(asked)})
			delete(m.waiting, who)
			m.ttl = max(m.ttl, asked, m.sinceFetch())
		} else if whole {
			m.least = asked
			if who == m.lister {
				m.unseen = asked
			}
		}
	}
	m.looked = time.Since(m.changed)
	m.over = m.over || len(m.waiting) == 0 || m.looked > Measuring
}

// sinceFetch is how long before the first fetch of the site's methods after the change the one before it was, of a bridge that
// fetches them for all callers and at times of its own, so that it may show a change early.
func (m *measures) sinceFetch() time.Duration {
	if m.currentForNew {
		return 0
	}
	var before time.Time
	for _, e := range m.t.Upstream.Entries(0) {
		switch {
		case e.Route != route.Methods || m.t.Drupal.Made(Identity(e.User)):
		case e.Start.Before(m.changed):
			before = e.Start
		case !before.IsZero():
			return e.Start.Sub(before)
		}
	}
	return 0
}

// wait looks once more after a pause.
func (m *measures) wait(ctx context.Context) {
	select {
	case <-time.After(m.pause()):
		m.look(ctx)
	case <-ctx.Done():
		m.over = true
	}
}

// pause is how long to wait between two looks, so that what is measured is right by a twentieth.
func (m *measures) pause() time.Duration { return max(20*time.Millisecond, m.looked/20) }

// LookBetweenChecks looks whether the bridge shows the change by now, if it is time.
func (e *Environment) LookBetweenChecks(ctx context.Context) {
	if m := e.measures; m != nil && !m.over && !m.hidden() && time.Since(m.changed) > m.looked+m.pause() {
		m.look(ctx)
	}
}

// hidden reports whether a check has put a site in place that has not what the bridge is to show.
func (m *measures) hidden() bool {
	site := m.t.Drupal.Site()
	_, there := site.Method(m.marker.ID)
	_, known := site.User(string(m.lister))
	return !there || !known
}

// AllowTime lets the requests take longer until it is undone.
func (e *Environment) AllowTime(limit time.Duration) (undo func()) {
	before := e.Timeout
	e.Timeout = max(before, limit)
	return func() { e.Timeout = before }
}

// NoteUpstreamTimeout notes after which time the bridge gave a hanging site up; 0: it did not as long as the run waited. It
// returns the time-out that the checks go by; 0: it is unknown.
func (e *Environment) NoteUpstreamTimeout(measured time.Duration) time.Duration {
	given := e.UpstreamTimeout
	row := reports.Measurement{Setting: "upstream_timeout", What: "until the bridge gives a hanging site up", Given: shownDuration(given), Measured: shownDuration(measured)}
	switch {
	case measured == 0:
		row.Measured = "more than " + Measuring.String()
		e.UpstreamTimeout = 0
	case given == 0 || (measured-given).Abs() > slackOf(given):
		e.UpstreamTimeout = measured
	}
	if given > 0 && e.UpstreamTimeout != given {
		row.Warning = fmt.Sprintf("--upstream-timeout is %s, and the bridge gave a hanging site up after %s: %s", given, row.Measured, goBy(e.UpstreamTimeout))
	}
	row.Used = shownDuration(e.UpstreamTimeout)
	e.SiteLimit, e.measuredUpstream = e.UpstreamTimeout, &row
	return e.UpstreamTimeout
}

// NoteRateLimit notes how many calls of one caller in a row the bridge accepted. Meanwhile its bucket has filled up a little.
func (e *Environment) NoteRateLimit(measured int) {
	given := e.RateLimit
	row := reports.Measurement{Setting: "rate_limit", What: "calls in a row of one caller before 429", Measured: fmt.Sprint(measured)}
	if given > 0 {
		row.Given = fmt.Sprint(given)
	}
	if given == 0 || measured < given/2 || measured > 2*given {
		e.RateLimit = max(measured, 1)
	}
	if row.Used = fmt.Sprint(e.RateLimit); given > 0 && given != e.RateLimit {
		row.Warning = fmt.Sprintf("the setting rate_limit is %d, and the bridge refused after %d calls: the checks go by that", given, measured)
	}
	e.measuredRate = &row
}

// Measured lists what the run has measured.
func (e *Environment) Measured() []reports.Measurement {
	var rows []reports.Measurement
	if m := e.measures; m != nil {
		given, used := e.DiscoveryTTL, m.used(e.DiscoveryTTL)
		row := reports.Measurement{Setting: "discovery_ttl", What: "until the bridge shows a change to all", Given: shownDuration(given),
			Used: shownDuration(used), Measured: patience.Rounded(m.ttl)}
		if len(m.waiting) > 0 {
			row.Measured = "more than " + patience.Rounded(m.looked)
		}
		seen := len(m.waiting) == 0
		if given > 0 && (seen && m.least > given+given/10+500*time.Millisecond || seen && m.early(given) || !seen && m.looked > given+slackOf(given)) {
			row.Warning = fmt.Sprintf("--discovery-ttl is %s, and the bridge showed a change of the site after %s: %s", given, row.Measured, goBy(used))
		}
		rows = append(append(rows, row), m.rows...)
	}
	if sent := e.Wrong.Load(); e.Spares() && sent > 0 {
		rows = append(rows, reports.Measurement{What: "requests with wrong credentials", Measured: fmt.Sprintf("%d of at most %d", min(sent, MostWrong), MostWrong)})
	}
	if e.LimitsCalls() {
		rows = append(rows, reports.Measurement{What: "generated cases of a check, as the bridge limits how often a caller calls", Measured: fmt.Sprintf("at most %d", e.Cases)})
	}
	for _, row := range []*reports.Measurement{e.measuredPages, e.measuredUpstream, e.measuredRate} {
		if row != nil {
			rows = append(rows, *row)
		}
	}
	return rows
}

// slackOf is by how much what is measured may differ from what was given on a busy machine.
func slackOf(given time.Duration) time.Duration { return 1500*time.Millisecond + given/10 }

func goBy(used time.Duration) string {
	if used == 0 {
		return "checks that need it are not testable"
	}
	return "the checks go by " + patience.Rounded(used)
}

func shownDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return patience.Rounded(d)
}
