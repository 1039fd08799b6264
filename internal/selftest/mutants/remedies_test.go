package mutants_test

import (
	"flag"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// neighbours are the clauses that see most of what a remedy of an area changes: they are tested beside the area itself.
var neighbours = map[string][]string{
	"list":      {"describe/answers-tool", "describe/equals-list", "http/*", "errors/envelope"},
	"describe":  {"errors/*", "http/*", "access/describe-403"},
	"mapping":   {"schema/*", "profile/*", "list/tool-*", "describe/equals-list"},
	"schema":    {"mapping/*", "profile/*", "describe/equals-list"},
	"profile":   {"mapping/*", "schema/*", "describe/equals-list"},
	"translate": {"mapping/*", "schema/*", "profile/*", "describe/equals-list"},
	"invoke":    {"errors/*"},
	"errors":    {"http/*", "describe/*"},
	"access":    {"errors/*", "http/*"},
	"http":      {"errors/*", "list/answers-json", "describe/answers-tool"},
	"filter":    {"errors/*", "invoke/answers-result"},
	"fresh":     {"list/answers-json", "errors/*"},
	"upstream":  {"errors/*", "invoke/answers-result", "invoke/denied"},
	"per-tool":  {"errors/*"},
	"mcp":       {"errors/envelope"},
	"auth":      {"mcp/initialize"},
}

// costly are the checks that take most of the time and see what cheaper ones see, too. They run where a remedy is for them,
// where the mutant fails them, and with -full.
var costly = []string{"access/no-cross-talk", "errors/message-helps", "filter/include-exclude", "filter/rate-limit", "fresh/notify",
	"invoke/arguments-forwarded", "invoke/invalid-arguments-400", "invoke/large-body", "invoke/output-matches-schema", "invoke/runs-once", "list/order-stable",
	"mapping/long-names", "mcp/parity", "mcp/stdio", "upstream/timeout", "upstream/huge-answer", "auth/server-*", "auth/token-secret", "auth/no-passthrough"}

var full = flag.Bool("full", false, "test each remedy by the costly checks of its area, too (minutes)")

// A bridge that breaks a clause and then does what its fix says keeps the clause, and breaks no other that it kept before.
func TestRemediesFixTheFault(t *testing.T) {
	must.Need(t, !testing.Short(), "takes a minute")
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // memory is cheaper than collecting it
	golden := must.Get(selftest.Golden())(t)
	makers, keys := &generate.Makers{}, &authserver.Keys{}
	for _, r := range mutants.Remedies() {
		t.Run(r.Clause, func(t *testing.T) {
			m, ok := mutants.Find(r.Mutant)
			must.Assert(t, ok && slices.Contains(golden[r.Mutant], r.Clause),
				"the mutant %s does not break this clause by its golden set", r.Mutant)
			area, _, _ := strings.Cut(r.Clause, "/")
			o := engine.Options{Pass: engine.Pass{Makers: makers}, Only: slices.Concat([]string{area + "/*"}, neighbours[area], golden[r.Mutant])}
			if !*full {
				o.Skip = slices.DeleteFunc(slices.Clone(costly), func(id string) bool { return slices.Contains(golden[r.Mutant], id) })
			}
			known := func(id string) bool {
				return id != r.Clause && (slices.Contains(golden[r.Mutant], id) || slices.Contains(m.MayFail, id))
			}
			row := selftest.Evaluate(t.Context(), r.Apply(m), o, keys)
			if row.Problem != "" || slices.ContainsFunc(row.Failed, func(id string) bool { return !known(id) }) {
				row = selftest.Evaluate(t.Context(), r.Apply(m), o, keys) // a busy machine fails a clause by chance, as in the selftest
			}
			broken := slices.DeleteFunc(row.Failed, known)
			switch {
			case row.Problem != "":
				t.Errorf("no verdict: %s", row.Problem)
			case slices.Contains(broken, r.Clause):
				t.Errorf("the mutant %s breaks the clause with the remedy, too: correct the remedy, or the fix in suites/contract/reasons/%s.yaml if it says no more", r.Mutant, area)
			case !slices.Contains(row.Tested, r.Clause) || slices.Contains(row.NotTestable, r.Clause):
				t.Errorf("the clause was not tested")
			}
			if others := slices.DeleteFunc(broken, func(id string) bool { return id == r.Clause }); len(others) > 0 {
				t.Errorf("the remedy breaks %v: the fix in suites/contract/reasons/%s.yaml contradicts theirs, or leaves out what they say", others, area)
			}
		})
	}
}
