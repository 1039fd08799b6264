package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// The clauses that an audit looks at, whatever the check is about.
const (
	runsOnce     = "invoke/runs-once"
	forwarded    = "access/credentials-forwarded"
	answers      = "invoke/answers-result"
	exactResult  = "invoke/result-exact"
	asSent       = "invoke/arguments-forwarded"
	sameAsInvoke = "mcp/parity"
)

// Bounds of an audit.
const (
	mostAudited = 64 << 10        // bytes of a result
	lateRun     = 3 * time.Second // within which a call may run whose caller has gone
	slowRun     = time.Second     // a call for which a bridge may have given up
)

// excused are statuses of calls that ran, for which other clauses say when they are wrong.
var excused = []int{http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// noticed is what an audit found of a clause.
type noticed struct {
	clause string
	Finding
}

// auditCalls compares the calls of the check with what the mock ran for them, whatever the check is about: a fault that depends on a
// condition shows wherever the condition is met, and not only where a check looks for it. It sends nothing. A call is left out
// beside which the same was called, after one of the tool whose caller left, and where the site had a fault.
func (t *T) auditCalls(all []*exchange) (found []noticed) {
	if t.Drupal == nil || t.Upstream == nil || len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(x, y *exchange) int { return cmp.Compare(x.since, y.since) })
	var until int64
	methods := map[*fixtures.Site]map[string]*fixtures.Method{}
	if t.lost == nil {
		t.lost = map[string]time.Time{}
	}
	calls := make([]called, len(all))
	for i, e := range all {
		calls[i] = calledBy(e.Response)
	}
	if !slices.ContainsFunc(calls, func(c called) bool { return c.tool != "" }) {
		return nil
	}
	entries := t.Upstream.Entries(all[0].since)
	after := func(seq int64) int {
		return sort.Search(len(entries), func(i int) bool { return entries[i].Seq > seq })
	}
	for i, e := range all {
		a, c := e.Response, calls[i]
		if a.Err != nil {
			t.lost[c.tool] = a.At.Add(a.Took)
		}
		alone := e.since >= until && (i+1 == len(all) || all[i+1].since >= e.until)
		until = max(until, e.until)
		late := a.At.Before(t.lost[c.tool].Add(lateRun))
		if late || e.site == nil || a.Err != nil || c.tool == "" || c.sent == nil || e.until == e.since || e.caused != nil {
			continue
		}
		if methods[e.site] == nil {
			methods[e.site] = t.byTool(e.site)
		}
		m := methods[e.site][c.tool]
		meanwhile := entries[after(e.since):after(e.until)]
		if m == nil || m.Behaviour.Kind == fixtures.Lookup && looksUp(meanwhile, m.ID) {
			continue
		}
		ran, clear := runsOf(m, meanwhile)
		if !alone { // then its arguments tell it from the others
			ran = slices.DeleteFunc(ran, func(r run) bool { return !exact.Equal(r.params, c.sent) })
		}
		if !clear || len(ran) == 0 || !alone && calledBeside(all, calls, i) {
			continue
		}
		if n := audited(e, m, c.sent, ran); n.clause != "" {
			n.Response = a
			found = append(found, n)
		}
	}
	return found
}

// called is what a request calls.
type called struct {
	tool string // "": none
	sent any    // its arguments; nil where they are no JSON
}

// calledBeside reports whether another exchange called the same while one did.
func calledBeside(all []*exchange, calls []called, one int) bool {
	e, c := all[one], calls[one]
	for i, other := range all {
		if i != one && other.since < e.until && e.since < other.until && calls[i].tool == c.tool && exact.Equal(calls[i].sent, c.sent) {
			return true
		}
	}
	return false
}

func calledBy(a *Response) called {
	if a.Method != http.MethodPost {
		return called{}
	}
	tool, arguments := a.Invoked()
	if arguments == nil {
		arguments = json.RawMessage("{}") // which may be left out
	}
	sent, err := exact.Parse(arguments)
	if err != nil {
		return called{tool: tool}
	}
	return called{tool, sent}
}

// looksUp reports whether a bridge may have looked up the items of a method for itself meanwhile: it discovers then, or looks up
// those of other methods, too.
func looksUp(meanwhile []mockdrupal.Entry, method string) bool {
	return slices.ContainsFunc(meanwhile, func(e mockdrupal.Entry) bool {
		return len(e.Calls) == 0 || slices.ContainsFunc(e.Calls, func(c mockdrupal.Call) bool { return c.Method != method })
	})
}

// run is one of a method.
type run struct {
	mockdrupal.Call
	in     mockdrupal.Entry
	params any
}

// runsOf are the runs of a method. They are not clear where the site had a fault, or took long.
func runsOf(m *fixtures.Method, meanwhile []mockdrupal.Entry) (ran []run, clear bool) {
	for _, entry := range meanwhile {
		if entry.Fault != "" || entry.End.IsZero() || entry.End.Sub(entry.Start) > slowRun {
			return nil, false
		}
		for _, c := range entry.Calls {
			if !c.Ran || c.Method != m.ID {
				continue
			}
			params := any(map[string]any{})
			if c.Params != nil {
				params, _ = exact.Parse(c.Params) // an error shows as others than those that were sent
			}
			ran = append(ran, run{c, entry, params})
		}
	}
	return ran, true
}

// audited compares one call of a tool with what the mock ran of its method meanwhile.
func audited(e *exchange, m *fixtures.Method, sent any, ran []run) noticed {
	a := e.Response
	if len(ran) > 1 {
		return noticed{runsOnce, Finding{Subject: a.Subject(), Expected: "one run of " + m.ID, Actual: fmt.Sprintf("%d runs", len(ran))}}
	}
	last := ran[0].in
	if user, known := accountOf(e.site, a.Who); known && user != last.User {
		return noticed{forwarded, Finding{Subject: a.Subject(), Expected: "a call as " + a.Who.String(), Actual: "a call as " + Identity(last.User).String()}}
	}
	if d := exact.Diff(sent, ran[0].params); d != "" {
		return noticed{asSent, Finding{Subject: a.Subject(), Expected: "the arguments to reach " + m.ID + " as they were sent", Actual: "others " + d}}
	}
	want, ok := resultOf(m, ran[0].Call)
	if !ok || last.Status != http.StatusOK || len(want) > mostAudited || slices.Contains(excused, a.Status) {
		return noticed{}
	}
	parsed, err := exact.Parse(want)
	if err != nil {
		return noticed{}
	}
	if a.Asked != nil {
		return ofTool(a, m, parsed)
	}
	got, there := a.Member("result")
	switch {
	case a.Path != client.InvokePath, a.Status == http.StatusOK && there && exact.Equal(got, parsed), !conforms(m, parsed):
		return noticed{}
	case a.Status != http.StatusOK || !there:
		return noticed{answers, Finding{Subject: a.Subject(), Expected: "200 with the result of " + m.ID, Actual: a.Outcome()}}
	}
	return noticed{exactResult, Finding{Subject: a.Subject(), Expected: exact.Cut(string(want), 200), Actual: a.Outcome()}}
}

// ofTool compares the result of tools/call.
func ofTool(a *Response, m *fixtures.Method, want any) noticed {
	result := a.RPCResult()
	got, structured := result["structuredContent"]
	wrapped, _ := got.(map[string]any)
	if result != nil && result["isError"] != true && (!structured || exact.Equal(got, want) || len(wrapped) == 1 && exact.Equal(wrapped["result"], want)) {
		return noticed{}
	}
	if result == nil && a.RPC() == nil || !conforms(m, want) {
		return noticed{}
	}
	return noticed{sameAsInvoke, Finding{Subject: a.Subject(), Expected: "the result of " + m.ID + ": " + exact.Cut(string(client.Encode(want)), 200), Actual: a.RPCOutcome()}}
}

// conforms reports whether a bridge has to return a result as it is: it conforms to the tool's outputSchema, if there is one, and
// has no empty list, which may be PHP's empty map.
func conforms(m *fixtures.Method, result any) bool {
	if m.Output == nil {
		return true
	}
	for v := range exact.Values(result) {
		if list, is := v.([]any); is && len(list) == 0 {
			return false
		}
	}
	return jsonschema.Fits(m.Output, result)
}

// byTool are the methods of a site by the names of their tools.
func (t *T) byTool(site *fixtures.Site) map[string]*fixtures.Method {
	all := map[string]*fixtures.Method{}
	for i := range site.Methods {
		all[t.ToolName(site.Methods[i].ID)] = &site.Methods[i]
	}
	return all
}

// accountOf is the name of the account that a caller is.
func accountOf(site *fixtures.Site, who Identity) (name string, known bool) {
	if who == Anonymous {
		return "", true
	}
	_, known = site.User(string(who))
	return string(who), known
}

// resultOf is what a method returns that always returns the same for the same arguments.
func resultOf(m *fixtures.Method, c mockdrupal.Call) (json.RawMessage, bool) {
	switch b := m.Behaviour; {
	case b.Kind == fixtures.Value && b.Class == "":
		return json.RawMessage(b.Value), true
	case b.Kind == fixtures.Echo && strings.HasPrefix(string(c.Params), "{"):
		return json.RawMessage(c.Params), true
	}
	return nil, false
}

// Shown is a clause that one exchange keeps or breaks.
type Shown struct {
	contract.Clause
	Wrong string // what breaks it; "": the exchange keeps it
	found Finding
}

// ShownBy are the clauses that a response of the three endpoints or of MCP keeps or breaks by itself. What a proxy made, or a bridge
// that limits how often it is called, shows none, nor does the response to HEAD, which has no body.
func (t *T) ShownBy(a *Response) []Shown {
	var all []Shown
	shows := slices.Contains([]string{client.ListPath, client.DescribePath, client.InvokePath, client.MCPPath}, a.Path)
	if !shows || a.Status == 0 || a.Throttled() || a.MadeBy() != nil || a.Method == http.MethodHead {
		return nil
	}
	for _, c := range t.OfOne {
		clause, there := t.Contract.Clause(c.ID)
		if !there || (clause.Area == "mcp") != (a.Path == client.MCPPath) || t.Lacks(clause, c) != "" {
			continue
		}
		must := c.OfOne(t, a)
		if must == nil {
			continue
		}
		shown := Shown{Clause: clause}
		if kept, err := must.Match(a); err != nil {
			shown.Wrong = t.Redact.Text(err.Error())
		} else if !kept {
			shown.Wrong, shown.found = t.Redact.Text(must.FailureMessage(a)), t.Expect(a).finding(must, true, nil)
		}
		all = append(all, shown)
	}
	return all
}

// auditResponses finds what the responses of the check break by themselves.
func (t *T) auditResponses(all []*exchange) (found []noticed) {
	for _, e := range all {
		for _, s := range t.ShownBy(e.Response) {
			if !s.found.IsZero() {
				found = append(found, noticed{s.ID, s.found})
			}
		}
	}
	return found
}

// auditResults makes results of what an audit found of clauses that the run tests. What a bridge does beside other workers proves
// nothing: a check that fails there is repeated alone.
func (t *T) auditResults(during string) []reports.Result {
	if t.Sharers > 1 {
		return nil
	}
	t.mu.Lock()
	sent := slices.Clone(t.exchanges)
	t.mu.Unlock()
	readable := slices.DeleteFunc(slices.Clone(sent), func(e *exchange) bool {
		a := e.Response // a server in front of the bridge may refuse other verbs and hosts, and a compressed body that a check asked for is not decoded
		return a.Err != nil || a.IsView() || a.Elsewhere || a.Method != http.MethodGet && a.Method != http.MethodPost || a.Header.Get("Content-Encoding") != ""
	})
	var all []reports.Result
	for _, n := range slices.Concat(t.auditResponses(readable), t.auditLists(readable), t.auditCalls(sent)) {
		clause, ok := t.Contract.Clause(n.clause)
		again := slices.ContainsFunc(all, func(r reports.Result) bool { return r.ID == n.clause })
		if again || !ok || !t.Selected(n.clause) || t.Lacks(clause, Check{ID: n.clause}) != "" {
			continue
		}
		n.Subject += " (while " + during + " was tested)"
		o := Outcome{Result: NewResult(clause)}
		o.Result.Verdict, o.Result.During = Broken(clause), during
		t.findings, t.blamed = findings{}, n.Response
		t.report(&o, []Finding{t.redacted(n.Finding)}, Finding{})
		all = append(all, o.Result)
	}
	return all
}
