package check

import (
	"context"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"

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

// Check is the check of one clause. The contract says what must be; the check says how that is seen.
type Check struct {
	ID          string // of the clause
	Sees        Sees
	Generated   bool                            // it sends many generated cases, as many as Options.Cases at most
	Costly      bool                            // it sends so much that the selftest runs it only where it matters
	Run         func(ctx context.Context, t *T) // the check
	WithoutSite func(ctx context.Context, t *T) // for a run that does not see what Run has to see; nil: not testable there
	ByMCP       bool                            // of the three endpoints, and it can be tested by MCP where that is the only interface
}

// Check registers the spec of one check. The contract decides whether it applies: a capability that is not claimed makes
// it not applicable, a site that cannot be seen makes it not testable.
func (r *Environment) Check(c Check, decorators ...any) {
	clause, ok := r.Contract.Clause(c.ID)
	if !ok {
		panic(c.ID + " is not in the contract")
	}
	labels := ginkgo.Label(string(clause.Level), "wire:"+string(clause.Wire))
	if clause.Needs != "" {
		labels = append(labels, "needs:"+clause.Needs)
	}
	ginkgo.It(c.ID, labels, decorators, func(ctx ginkgo.SpecContext) {
		if !r.Takes(c.ID) {
			Ending{Kind: Elsewhere}.note()
			return // End takes a stack, and a worker meets most checks so
		}
		t := r.begin(c.ID)
		defer t.cleansUp()
		t.gate(clause, c)
		defer func() {
			if t.HasFindings() || t.failed != nil {
				t.excuseChange()
			}
		}()
		run := c.Run
		if c.Sees != Front && t.Drupal == nil {
			run = t.withoutMock(c)
		}
		run(ctx, t)
		if t.HasFindings() {
			t.Findings.summed = true
			ginkgo.Fail("parts of it are wrong")
		}
	})
}

// gate ends the running spec where its clause does not apply or cannot be tested.
func (t *T) gate(clause contract.Clause, c Check) {
	if t.Context.Err() != nil {
		t.cutShort()
	}
	if needs := t.Lacks(clause, c); needs != "" {
		End(Ending{Kind: Inapplicable, Why: Finding{Subject: "the bridge does not claim the capability " + needs}})
	}
	if who := strings.Fields(clause.Clients); len(who) > 0 && t.Clients != nil && !slices.ContainsFunc(who, func(c string) bool { return slices.Contains(t.Clients, c) }) {
		End(Ending{Kind: Inapplicable, Why: Finding{Subject: "it matters to " + strings.Join(who, " and ") + ", and the run is for " + strings.Join(t.Clients, " and ")}})
	}
	if t.NotABridge != "" {
		t.Fail(Finding{Subject: t.NotABridge})
	}
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
