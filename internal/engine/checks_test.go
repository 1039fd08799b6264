package engine_test

import (
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/areas"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// What the contract says must be seen of a bridge is what its check sees.
func TestChecksSeeWhatTheContractSays(t *testing.T) {
	all := must.Get(contract.Load())(t)
	for _, c := range all.Clauses {
		declared, ok := areas.Check(c.ID)
		if !ok {
			continue // TestChecksAndClausesAgree reports it
		}
		must.Expect(t, (declared.Sees == check.Front) == (c.Wire == contract.Front),
			"%s: the contract says %q, its check sees %d", c.ID, c.Wire, declared.Sees)
		must.Expect(t, declared.WithoutSite == nil || declared.Sees != check.Front,
			"%s needs no site: it has no use for a check without one", c.ID)
	}
}

// Of a server that speaks MCP alone, everything is tested that does not need the three endpoints.
func TestMostOfASiteIsTestedByMCPAlone(t *testing.T) {
	all := must.Get(engine.Checks(engine.Options{Contract: "draft", Capabilities: append(slices.Clone(engine.DefaultCapabilities[1:]), "mcp", "mcp-2026")}))(t)
	must.Expect(t, engine.DefaultCapabilities[0] == "tools" && len(all) >= 60, "%d clauses apply, want 60 at least", len(all))
}
