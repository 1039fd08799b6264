package check

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Sees is what of a target a check has to observe.
type Sees int

// What checks observe.
const (
	Front     Sees = iota // the bridge's URL alone
	Discovery             // and the site's methods as each caller sees them: a mock, or a real site that is read
	Journal               // and the requests that reach the site, and faults on their way: a mock or a recording proxy
	Site                  // and the site itself, which it may change: a mock
)

// String is the name of what is seen: front, discovery, journal or site.
func (s Sees) String() string { return [...]string{"front", "discovery", "journal", "site"}[s] }

// Check is the check of one clause. The contract says what must be; the check says how that is seen.
type Check struct {
	ID        string // of the clause
	Sees      Sees
	ByMock    bool   // of Front: where a mock stands behind the bridge, it looks at that or changes it, too
	Generated bool   // it sends many generated cases, as many as Options.Cases at most
	Costly    bool   // it sends so much that the selftest runs it only where it matters
	HTTP      bool   // it is about MCP over HTTP, and does not apply to a bridge on stdio alone
	ByMCP     bool   // of the three endpoints, and it can be tested by MCP where that is the only interface
	Beside    string // the clause whose requests it looks at, too, so that one worker tests both; "": it has its own

	Run         func(ctx context.Context, t *T) // the check
	WithoutSite func(ctx context.Context, t *T) // for a run that does not see what Run has to see; nil: not testable there

	// Clause is that of a check which somebody adds to those of the contract, see contract.Contract.With; nil: the contract has it.
	Clause *contract.Clause
	// Guesses is how many callers it sends that a bridge may count as wrong credentials, and then refuse all that it does not
	// know: those that send most come last.
	Guesses int
	// TellsApart is set where it compares callers: it does not apply where one account acts for all of them.
	TellsApart bool
	// Waits is set where it waits for a change of the site to show to a caller whom the bridge knows: it comes late, when the run
	// may know how long that takes.
	Waits bool
	// OfOne is what any response of the three endpoints, or of MCP in its area, must meet by itself; nil, or none for a
	// response: one exchange does not show whether the clause is kept.
	OfOne func(t *T, a *Response) types.GomegaMatcher
}

// Place is where the function of the check is declared.
func (c Check) Place() (file string, line int) {
	f := runtime.FuncForPC(reflect.ValueOf(c.Run).Pointer())
	return f.FileLine(f.Entry())
}

// Outcome is what the check of one clause found. Only the culprit rule, which looks at all clauses, changes its verdict later.
type Outcome struct {
	Result    reports.Result
	CutOff    bool             // the end of the run ended it before it found anything: it counts as not begun
	Exemption string           // why something else than the bridge may be to blame; "": nothing is
	BySite    bool             // of Exemption: the site fails
	Unserved  bool             // the bridge did not serve a request of the check
	AtSite    bool             // the check looked at the site or changed it
	Noticed   []reports.Result // of other clauses, which its calls broke: see audit
}

// casesInPlaces is how many cases a check generates at most for a bridge that limits how often a caller calls: at one call in a
// second they fit into the time that a check waits.
const casesInPlaces = 40

// Test runs one check and returns what it found. The contract decides whether the clause applies: a capability that is not
// claimed makes it not applicable, a site that cannot be seen makes it not testable.
func (e *Environment) Test(ctx context.Context, c Check) Outcome {
	clause, ok := e.Contract.Clause(c.ID)
	if !ok {
		panic(c.ID + " is not in the contract")
	}
	if e.LimitsCalls() {
		e.Cases = min(e.Cases, casesInPlaces)
	}
	t := e.begin(c.ID)
	ended := t.run(ctx, func(ctx context.Context) {
		t.gate(clause, c)
		t.meetClock(ctx)
		defer func() {
			if t.HasFindings() || t.failed != nil {
				t.exemptIfChanged()
			}
		}()
		run := c.Run
		if c.Sees != Front && t.Drupal == nil {
			run = t.withoutMock(c)
		}
		run(ctx, t)
	})
	o := t.outcome(clause, ended)
	if o.Exemption == "" && !t.runEnded() {
		o.Noticed = t.auditResults(c.ID)
	}
	return o
}

// outcome reads why a check ended, and what it found until then.
func (t *T) outcome(clause contract.Clause, ended any) Outcome {
	o := Outcome{Result: NewResult(clause), Unserved: t.Unserved(), AtSite: t.Upstream.Used()}
	r := &o.Result
	r.DurationMS = Milliseconds(time.Since(t.Began()))
	requests, waited := t.Cost()
	r.Requests, r.WaitedMS = requests, Milliseconds(waited)
	ending, isEnding := ended.(Ending)
	if t.runEnded() && ended != nil && ending.Kind != Inapplicable { // what the end of the run interrupted has found nothing
		ending, isEnding = Ending{Kind: CutShort, Why: Finding{Subject: "the run ended while this was tested"}}, true
		ended = ending
	}
	found := t.reported(ended)
	o.CutOff = isCutShort(ended) && len(found) == 0
	verdict, why := t.verdict(clause, ended)
	why = t.redacted(why)
	if len(found) > 0 { // which count, though what came after them could not be tested
		verdict = Broken(clause)
	}
	wrong := verdict != reports.Pass && verdict != reports.NotApplicable
	if wrong {
		t.ExemptIfClockJumped()
	}
	o.Exemption, o.BySite = t.Exemption()
	if wrong && o.Exemption != "" {
		verdict, found, why = reports.NotTestable, nil, Finding{Subject: o.Exemption}
	}
	if wrong && t.Spares() {
		t.LookForFront(t.Context)
	}
	r.Verdict = verdict
	t.report(&o, found, why)
	if isEnding && o.Exemption == "" && verdict == reports.NotTestable && ending.Kind == BlockedByBridge && !t.Blamed().Throttled() {
		r.BlockedBy = append([]string{}, ending.Culprits...)
		if t.Alone() && len(ending.Culprits) > 0 { // the clauses on the three endpoints do not apply: a failed clause on MCP explains it
			r.BlockedBy = append(r.BlockedBy, "mcp/*")
		}
	}
	return o
}

// verdict is what the end of a check says of its clause, and why.
func (t *T) verdict(clause contract.Clause, ended any) (reports.Verdict, Finding) {
	switch e := ended.(type) {
	case failed:
		return Broken(clause), *t.failed
	case stopped:
		return Broken(clause), e.Finding
	case broke:
		return reports.Error, Finding{Subject: client.OneLine(fmt.Sprintf("the check itself broke: %v (%s)", e.value, e.where))}
	case Ending:
		why := e.Why
		switch e.Kind {
		case Inapplicable:
			return reports.NotApplicable, why
		case BlockedByBridge:
			if why.Response != nil {
				t.Blame(why.Response)
			}
			why.Response = t.Blamed()
		case Missing:
			why = why.About(t.findings.leftOut)
		}
		return reports.NotTestable, why
	}
	if why := t.findings.leftOut; why != "" {
		return reports.NotTestable, Finding{Subject: why}
	}
	return reports.Pass, Finding{}
}

// report puts the evidence, the findings and the remedy into the result of a check whose verdict is settled.
func (t *T) report(o *Outcome, found []Finding, why Finding) {
	r := &o.Result
	wrong := r.Verdict != reports.Pass && r.Verdict != reports.NotApplicable
	var at func(*Response) *int
	r.Evidence, at = t.evidence(wrong)
	broken := r.Verdict == reports.Fail || r.Verdict == reports.Warn
	switch {
	case len(found) > 0:
		r.Findings = t.asReported(r.ID, found, at)
	case wrong && o.Exemption != "":
		r.Message = o.Exemption
	case wrong && (why.Expected != "" || at(why.Response) != nil || broken):
		r.Findings = t.asReported(r.ID, []Finding{why}, at)
	case wrong: // nothing of the bridge was seen
		r.Message = why.String()
	}
	r.Conclude()
	if lead, ok := r.Lead(); ok && lead.Proxy != "" {
		r.Remedy = reports.AtTheProxy
	}
	for _, p := range t.findings.tested {
		r.Tested = append(r.Tested, reports.Part{Tool: p.Tool, Identity: p.Identity})
	}
	if r.Verdict == reports.NotTestable || r.Verdict == reports.Error {
		r.Remedy = "" // of a fault that nobody has seen
	}
}

// NewResult is what the contract says of a clause, before anything is tested.
func NewResult(clause contract.Clause) reports.Result {
	return reports.Result{ID: clause.ID, Level: reports.Level(clause.Level), Area: clause.Area, Text: clause.Text, Source: clause.Source,
		Capability: Requires(clause), Wire: reports.Wire(clause.Wire), Why: clause.Why, Remedy: clause.Fix.String()}
}

// Broken is the verdict on a clause that is not kept: a SHOULD or MAY gives a warning.
func Broken(clause contract.Clause) reports.Verdict {
	if clause.Level == contract.MUST {
		return reports.Fail
	}
	return reports.Warn
}

// gate ends the running check where its clause does not apply or cannot be tested.
func (t *T) gate(clause contract.Clause, c Check) {
	if t.Context.Err() != nil {
		t.cutShort()
	}
	if c.TellsApart && t.OneAccount() {
		End(Ending{Kind: Inapplicable, Why: Finding{Subject: "one account of the site acts for all callers (auth-service)"}})
	}
	if c.HTTP && t.StdioAlone {
		End(Ending{Kind: Inapplicable, Why: Finding{Subject: "the bridge speaks MCP on stdio alone"}})
	}
	if needs := t.Lacks(clause, c); needs != "" {
		End(Ending{Kind: Inapplicable, Why: Finding{Subject: NotClaimed(needs)}})
	}
	if who := strings.Fields(clause.Clients); len(who) > 0 && t.Clients != nil &&
		!slices.ContainsFunc(who, func(c string) bool { return slices.Contains(t.Clients, c) }) {
		End(Ending{Kind: Inapplicable, Why: Finding{Subject: "it matters to " + strings.Join(who, " and ") + ", and the run is for " + strings.Join(t.Clients, " and ")}})
	}
	if t.NotABridge != "" {
		t.Fail(Finding{Subject: t.NotABridge})
	}
}

// NotClaimed is why a clause that needs the capability does not apply.
func NotClaimed(capability string) string {
	return "the bridge does not claim the capability " + capability
}

// Requires is the capability that a clause stands under. Clauses on the three endpoints that name none need those.
func Requires(c contract.Clause) string {
	if c.Needs == "" {
		return "tools"
	}
	return c.Needs
}

// overMCP reports whether a capability is seen through MCP alone.
func overMCP(capability string) bool {
	return strings.HasPrefix(capability, "mcp") || slices.Contains([]string{OAuth, TokenExchange, TokenIntrospection}, capability)
}

// Lacks names a capability without which a clause does not apply and that the bridge does not claim; "" when it has all.
// What is not of MCP is seen through the three endpoints, or by MCP where the check allows that.
func (e *Environment) Lacks(clause contract.Clause, c Check) string {
	switch needs := Requires(clause); {
	case e.Alone() && c.ByMCP && (needs == "tools" || e.Claims(needs)):
		if !e.Claims("mcp") {
			return "mcp"
		}
	case !e.Claims(needs):
		return needs
	case e.Alone() && !overMCP(needs):
		return "tools"
	}
	return ""
}
