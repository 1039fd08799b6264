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
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// The clauses that an audit looks at, whatever the check is about.
const (
	runsOnce     = "invoke/runs-once"
	forwarded    = "access/credentials-forwarded"
	answers      = "invoke/answers-result"
	exactResult  = "invoke/result-exact"
	sameAsInvoke = "mcp/parity"
)

// Bounds of an audit.
const (
	mostAudited = 64 << 10        // bytes of a result
	lateRun     = 3 * time.Second // within which a call may run whose caller has gone
	slowRun     = time.Second     // a call for which a bridge may have given up
)

// noticed is what an audit found of a clause.
type noticed struct {
	clause string
	Finding
}

// audit compares the calls of the check with what the mock ran for them, whatever the check is about: a fault that depends on a
// condition shows wherever the condition is met, and not only where a check looks for it. It sends nothing. A call is left out
// beside which other requests were sent, after one whose caller left, and where the site had a fault.
func (t *T) audit() []noticed {
	t.mu.Lock()
	all := slices.Clone(t.exchanges)
	t.mu.Unlock()
	if t.Drupal == nil || t.Sharers > 1 || t.Upstream == nil || len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(x, y *exchange) int { return cmp.Compare(x.since, y.since) })
	entries := t.Upstream.Entries(all[0].since)
	after := func(seq int64) int {
		return sort.Search(len(entries), func(i int) bool { return entries[i].Seq > seq })
	}
	var found []noticed
	var until int64
	methods := map[*fixtures.Site]map[string]*fixtures.Method{}
	for i, e := range all {
		a := e.Response
		if a.Err != nil {
			t.Lost = a.At.Add(a.Took)
		}
		alone := e.since >= until && (i+1 == len(all) || all[i+1].since >= e.until)
		until = max(until, e.until)
		if !alone || e.site == nil || a.Err != nil || a.Method != http.MethodPost || e.until == e.since || e.caused != nil || a.At.Before(t.Lost.Add(lateRun)) {
			continue
		}
		if methods[e.site] == nil {
			methods[e.site] = t.byTool(e.site)
		}
		tool, _ := a.Invoked()
		if m := methods[e.site][tool]; m != nil && m.Behaviour.Kind != fixtures.Lookup { // whose items a bridge may look up for itself
			if n := audited(e, m, entries[after(e.since):after(e.until)]); n.clause != "" && !slices.ContainsFunc(found, func(other noticed) bool { return other.clause == n.clause }) {
				n.Response = a
				found = append(found, n)
			}
		}
	}
	return found
}

// audited compares one call of a tool with what the mock ran of its method meanwhile.
func audited(e *exchange, m *fixtures.Method, meanwhile []mockdrupal.Entry) noticed {
	a := e.Response
	var ran []mockdrupal.Call
	var last mockdrupal.Entry
	for _, entry := range meanwhile {
		if entry.Fault != "" || entry.End.IsZero() || entry.End.Sub(entry.Start) > slowRun {
			return noticed{}
		}
		for _, c := range entry.Calls {
			if c.Ran && c.Method == m.ID {
				ran, last = append(ran, c), entry
			}
		}
	}
	if len(ran) == 0 {
		return noticed{}
	}
	if len(ran) > 1 {
		return noticed{runsOnce, Finding{Subject: a.Subject(), Expected: "one run of " + m.ID, Actual: fmt.Sprintf("%d runs", len(ran))}}
	}
	if user, known := accountOf(e.site, a.Who); known && user != last.User {
		return noticed{forwarded, Finding{Subject: a.Subject(), Expected: "a call as " + a.Who.String(), Actual: "a call as " + Identity(last.User).String()}}
	}
	want, ok := resultOf(m, ran[0])
	if !ok || last.Status != http.StatusOK || len(want) > mostAudited || slices.Contains([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, a.Status) {
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
	schema, err := jsonschema.Compile(exact.MustParse(string(m.Output)), jsonschema.Draft7)
	return err == nil && schema.Fault(result) == ""
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

// auditResults makes results of what an audit found of clauses that the run tests.
func (t *T) auditResults(during string) []reports.Result {
	var all []reports.Result
	for _, n := range t.audit() {
		clause, ok := t.Contract.Clause(n.clause)
		if !ok || !t.Selected(n.clause) || t.Lacks(clause, Check{ID: n.clause}) != "" {
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
