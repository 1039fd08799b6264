package selftest

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

var (
	standing = flag.Int("standing", 2, "how many mutants are tested as bridges that are up, and a tenth as many correct variants, 2 at least, which take a minute each")
	from     = flag.Int("from", 0, "with -standing: which mutants, beginning with this one")
)

// settings are mutants whose only fault is another setting than the run was told: it measures that of a bridge that is up.
var settings = []string{"ttls-three-times-as-long", "page-of-100"}

// guessed are mutants that few of the wrong credentials find which a bridge that is up gets.
var guessed = []string{"password-folded", "password-trimmed", "password-cut-at-72", "wrong-password-throttles-account"}

// TestStanding tests mutants and correct variants as bridges that are up, of which the run knows nothing, and as bridges that it
// has started itself, as with --exec: on the clauses that can be tested both ways the verdicts are the same.
func TestStanding(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no mutant is tested as a bridge that is up")
	keys := &authserver.Keys{}
	all := slices.Concat(evenly(mutants.Mutants(), *standing), evenly(mutants.Variants(), max(2, *standing/10)))
	for _, name := range guessed {
		if m, there := mutants.Find(name); there && !slices.ContainsFunc(all, func(other mutants.Mutant) bool { return other.Name == name }) {
			all = append(all, m)
		}
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			only := m.Breaks
			if only == nil {
				only = []string{"list/*", "access/*", "fresh/*", "upstream/timeout", "upstream/down-and-up"}
			}
			another, _ := mutants.Find(m.Name) // one may remember that its site was down
			started, up := testReal(t, m, only, keys, true), testReal(t, another, only, keys, false)
			for id, got := range up {
				want := started[id]
				switch {
				case got.Verdict == want.Verdict, got.Verdict == reports.NotTestable, want.Verdict == reports.NotTestable,
					slices.Contains(settings, m.Name) && got.Verdict == reports.Pass, slices.Contains(m.MayFail, id):
				default:
					t.Errorf("%s: %s where the run has started the bridge, %s where it is up: %s%s", id, want.Verdict, got.Verdict, want.Message, got.Message)
				}
			}
		})
	}
}

// evenly takes n of all, at even distances, beginning with -from.
func evenly(all []mutants.Mutant, n int) []mutants.Mutant {
	all = slices.DeleteFunc(all, func(m mutants.Mutant) bool { return m.Stdout != nil }) // of no bridge at a URL
	n = min(n, len(all))
	some := make([]mutants.Mutant, 0, n)
	for i := range n {
		some = append(some, all[(*from+i*len(all)/n)%len(all)])
	}
	return some
}

// testReal returns the results of a run against a mutant in real time, whose caches last for a second.
func testReal(t *testing.T, m mutants.Mutant, only []string, keys *authserver.Keys, owned bool) map[string]reports.Result {
	t.Helper()
	const ttl, limit = time.Second, 3 * time.Second // which a busy machine keeps
	own := m.Options
	m.Options = func(o *bridge.Options) {
		o.DiscoveryTTL, o.PermissionTTL, o.UpstreamTimeout = ttl, ttl, limit
		if own != nil {
			own(o)
		}
	}
	bed, target, o, err := start(m, engine.Options{Contract: contract.Draft, Only: only, Cases: fewCases}, keys)
	must.Do(t, err)
	defer bed.Close()
	o.Bridge.Advance, o.Bridge.Owned = nil, owned
	if owned {
		o.Bridge.DiscoveryTTL, o.Bridge.PermissionTTL = ttl, ttl
		o.Bridge.UpstreamTimeout = limit
	} else {
		o.Bridge.DiscoveryTTL, o.Bridge.PermissionTTL, o.Bridge.UpstreamTimeout = 0, 0, 0
		bed.Drupal.SetFlood(true) // as a real site has it
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	report, err := engine.Run(ctx, target, o)
	must.Assert(t, err == nil, "owned %v: %v", owned, err)
	results := map[string]reports.Result{}
	for _, r := range report.Results {
		results[r.ID] = r
	}
	return results
}
