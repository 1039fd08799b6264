package suites_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// witness notes what could run a tool: requests to invoke, to MCP or to a tool's own address that name one, whatever
// the verb.
type witness struct {
	http.Handler
	tools []string

	mu    sync.Mutex
	named map[string]string // tool → the first request that named it
	seen  int
}

func watch(drupal *mockdrupal.Drupal) *witness {
	w := &witness{Handler: drupal, named: map[string]string{}}
	for _, m := range drupal.Site().Methods {
		w.tools = append(w.tools, m.ID)
	}
	return w
}

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(out, "unreadable", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	query, _ := url.QueryUnescape(r.URL.RawQuery)                   // one that cannot be read names nobody
	text := string(bytes.ReplaceAll(body, []byte("xxxxxxxx"), nil)) // what fills large bodies, which would take long to look through
	w.mu.Lock()
	w.seen++
	for _, tool := range w.tools {
		quoted := fmt.Sprintf("%q", tool)
		runs := strings.HasPrefix(r.URL.Path, "/mcp/tools/invoke") && (strings.Contains(text, quoted) || strings.Contains(query, tool)) ||
			r.URL.Path == "/mcp" && (strings.Contains(text, quoted) || strings.Contains(r.Header.Get("Mcp-Name"), tool)) || r.URL.Path == "/mcp/tools/"+tool
		if runs && w.named[tool] == "" {
			w.named[tool] = fmt.Sprintf("%s %s %.200s", r.Method, r.URL.RequestURI(), body)
		}
	}
	w.mu.Unlock()
	w.Handler.ServeHTTP(out, r)
}

// allCapabilities are all that do not exclude each other.
func allCapabilities(t *testing.T) []string {
	t.Helper()
	all := must.Get(contract.Load())(t)
	claimed := suites.DefaultCapabilities()
	for _, c := range all.Capabilities {
		for _, family := range []string{"naming-", "exposure-", "visibility-"} {
			if strings.HasPrefix(c.Name, family) {
				c.Name = ""
			}
		}
		if c.Name != "" && !slices.Contains(claimed, c.Name) {
			claimed = append(claimed, c.Name)
		}
	}
	return claimed
}

func TestWithoutAMockNoExistingToolIsNamedOnInvoke(t *testing.T) {
	accounts := passwords(suites.Agent, suites.Agent2, suites.Outsider, suites.Service, suites.Admin)
	for _, version := range []string{module.V13, module.V14} {
		for what, allowed := range map[string][]suites.Invocation{
			"nothing allowed":  nil,
			"one tool allowed": {{Tool: "result.string", Identity: suites.Agent}},
		} {
			t.Run(version+" "+what, func(t *testing.T) {
				drupal := moduleSite(t, version)
				seen := watch(drupal)
				report := run(t, serveAt(t, seen), suites.Options{Bridge: suites.Bridge{Patterns: &suites.Patterns{Include: []string{"*"}}, RateLimit: 5, Invalidate: &suites.Invalidate{Method: "POST", Path: "/mcp/admin/invalidate", Identity: suites.Admin}}, Callers: suites.Callers{Credentials: accounts, Invocations: allowed}, Capabilities: allCapabilities(t)})
				must.Assert(t, seen.seen >= 100 && report.Summary.Pass != 0,
					"only %d requests came, and %d clauses pass: this proves nothing", seen.seen, report.Summary.Pass)
				for tool, request := range seen.named {
					must.Expect(t, slices.ContainsFunc(allowed, func(i suites.Invocation) bool { return i.Tool == tool }), "%s was named: %s", tool, request)
				}
				if len(allowed) > 0 && version == module.V13 && seen.named[allowed[0].Tool] == "" {
					t.Errorf("%s is allowed, and was never invoked", allowed[0].Tool)
				}
				for _, entry := range drupal.Journal().Entries(0) {
					for _, call := range entry.Calls {
						if call.Ran && !slices.ContainsFunc(allowed, func(i suites.Invocation) bool { return i.Tool == call.Method }) {
							t.Errorf("%s ran: %s %s", call.Method, entry.HTTPMethod, entry.Path)
						}
					}
				}
			})
		}
	}
}

// seenInLists are the clauses of both sides that lists of enough tools show without the site.
var seenInLists = []string{"list/page-size", "list/page-boundary-exact", "list/cursor-other-caller"}

func TestWithoutAMockTheFrontIsTestedAndTheRestSaysWhatWouldHelp(t *testing.T) {
	site := serveAt(t, defaultSite(t, mockdrupal.Options{}, nil))
	report := run(t, referenceAt(t, site, "/base/path"), suites.Options{Callers: suites.Callers{Credentials: passwords(suites.Agent)}})
	all := must.Get(contract.Load())(t)
	passed := 0
	for _, r := range report.Results {
		clause, _ := all.Clause(r.ID)
		switch {
		case r.Verdict == reports.Fail || r.Verdict == reports.Error || r.Verdict == reports.Warn:
			t.Errorf("%s is %s: %s", r.ID, r.Verdict, r.Message)
		case r.Verdict == reports.NotTestable && len(r.Message) < 20:
			t.Errorf("%s is not testable, and does not say why: %q", r.ID, r.Message)
		case r.Verdict == reports.Pass && clause.Wire == contract.Both && !slices.Contains(seenInLists, r.ID):
			t.Errorf("%s passes, and nobody has seen the site", r.ID)
		case r.Verdict == reports.Pass:
			passed++
		}
	}
	must.Expect(t, passed >= 40 && !report.Summary.Conformant, "%d clauses pass, conformant is %v", passed, report.Summary.Conformant)
}

func TestInvocationsAreTestedAgainstWhatTheyExpect(t *testing.T) {
	site := serveAt(t, defaultSite(t, mockdrupal.Options{}, nil))
	at := referenceAt(t, site, "")
	for what, c := range map[string]struct {
		call    suites.Invocation
		verdict reports.Verdict
	}{
		"any result":           {suites.Invocation{Tool: "result.string", Identity: suites.Agent}, reports.Pass},
		"the right result":     {suites.Invocation{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pong"`)}, reports.Pass},
		"another result":       {suites.Invocation{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pang"`)}, reports.Fail},
		"a refusal that comes": {suites.Invocation{Tool: "no.such.tool", Identity: suites.Agent, Status: 404}, reports.Pass},
		"a refusal that fails": {suites.Invocation{Tool: "result.string", Identity: suites.Agent, Status: 403}, reports.Fail},
		"nothing at all":       {suites.Invocation{}, reports.NotTestable},
	} {
		t.Run(what, func(t *testing.T) {
			o := suites.Options{Callers: suites.Callers{Credentials: passwords(suites.Agent)}, Only: []string{"invoke/answers-result"}}
			if c.call.Tool != "" {
				o.Callers.Invocations = []suites.Invocation{c.call}
			}
			report := run(t, at, o)
			r := report.Results[0]
			must.Expect(t, r.Verdict == c.verdict, "the verdict is %s (%s), want %s", r.Verdict, r.Message, c.verdict)
		})
	}
}

// A run that counts what the front side shows can be green from outside alone, says so, and lists what it has not seen.
func TestARunOfTheFrontSide(t *testing.T) {
	at := referenceAt(t, serveAt(t, defaultSite(t, mockdrupal.Options{}, nil)), "")
	o := suites.Options{Callers: suites.Callers{Credentials: passwords(suites.Agent, suites.Outsider), Invocations: []suites.Invocation{{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pong"`)}}}, Wire: contract.Front}
	report := run(t, at, o)
	for _, r := range report.Blocked() {
		t.Errorf("%s is of the front side and was not tested: %s", r.ID, r.Message)
	}
	must.Expect(t, report.State() == reports.ConformantFront && report.ExitCode() == 0 && !report.Summary.Conformant,
		"the run is %s with exit code %d, conformant %t", report.Headline(), report.ExitCode(), report.Summary.Conformant)
	unseen := report.Unseen()
	must.Expect(t, len(unseen) >= 10, "only %d MUSTs are listed as not seen", len(unseen))
	for _, r := range unseen {
		if !wouldHelp.MatchString(r.Message) && !strings.Contains(r.Message, "put the mock Drupal") && !strings.Contains(r.Message, "--drupal") {
			t.Errorf("%s does not say what would help: %s", r.ID, r.Message)
		}
	}

	o.Wire = ""
	report = run(t, at, o)
	must.Expect(t, report.State() == reports.Partial && report.ExitCode() == 4,
		"without --wire front the run is %s with exit code %d, want partial with 4", report.Headline(), report.ExitCode())
}
