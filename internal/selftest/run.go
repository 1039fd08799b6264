// Package selftest tests the checks: it runs the suites against mutants, which must fail the clauses that they break, and
// against correct variants, which must fail nothing. The entries are in package mutants, the bridges in package testbed.
// It is no check itself, and `run` does not use it.
//
// Invariant: the outcome of a mutant depends on the mutant alone, not on what runs beside it. What differs from the
// expected on a busy machine is tested again, at last alone, before it counts.
//
// All tests several mutants at a time, each of which becomes a Row by Evaluate; correct variants may share a bridge.
// The rows become a Matrix, which is compared with the golden sets; these also make docs/kill-matrix.md.
package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/areas"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Run runs the suites against a mutant. Options may narrow the run; target, mock and clock are the testbed's.
func Run(ctx context.Context, m mutants.Mutant, o engine.Options, keys *authserver.Keys) (*reports.Report, error) {
	bed, target, o, err := start(m, o, keys)
	if err != nil {
		return nil, err
	}
	defer bed.Close()
	return engine.Run(ctx, target, o)
}

// start starts a testbed with a mutant in it, and returns the target and the options of a run against it.
func start(m mutants.Mutant, o engine.Options, keys *authserver.Keys) (*testbed.Testbed, engine.Target, engine.Options, error) {
	options := m.Testbed()
	options.Keys = keys
	bed, err := testbed.Start(options)
	if err != nil {
		return nil, engine.Target{}, o, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	if o.Capabilities, err = engine.Claim(bed.Profile.Capabilities, m.Claims); err != nil {
		bed.Close()
		return nil, engine.Target{}, o, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	if m.Name != "" && !m.MCP {
		o.Capabilities = slices.DeleteFunc(o.Capabilities, func(c string) bool { return strings.HasPrefix(c, "mcp") })
	}
	bed.Profile.Run(&o)
	o.Site.Drupal, o.Callers.Authority, o.Connection.Dial = bed.Drupal, bed.Authority, bed.Dial
	o.Bridge.Advance, o.Bridge.Stdio, o.Bridge.Replicas = bed.Advance, bed.Stdio, bed.Replicas()
	o.Bridge.DiscoveryTTL, o.Bridge.PermissionTTL, o.Bridge.UpstreamTimeout = testbed.TTL, testbed.PermissionTTL, testbed.UpstreamTimeout
	return bed, engine.Target{URL: bed.URL, Name: m.Name}, o, nil
}

// Evaluate runs the suites against a mutant and returns its row. Clauses that cost much and have nothing to do with the
// mutant are skipped, unless the options name clauses.
func Evaluate(ctx context.Context, m mutants.Mutant, o engine.Options, keys *authserver.Keys) Row {
	row := newRow(m)
	if len(o.Only) == 0 {
		costly, err := skipped(m)
		if err != nil {
			row.Problem = "harness: " + err.Error()
			return row
		}
		o.Skip = append(slices.Clone(o.Skip), costly...)
	}
	if len(m.Breaks) > 0 && !slices.ContainsFunc(m.Breaks, generated) {
		o.Cases = fewCases
	}
	o.Contract = contract.Draft // a clause is proven before its version is released
	report, err := Run(ctx, m, o, keys)
	var unreachable *engine.UnreachableError
	switch {
	case errors.As(err, &unreachable):
		row.Problem = err.Error()
	case err != nil:
		row.Problem = "harness: " + err.Error()
	default:
		row.add(report)
	}
	return row
}

// fewCases is how many cases are generated for a mutant that breaks no clause tested by generated cases: enough to see
// that such a check runs.
const fewCases = 12

// generated reports whether the check of a clause sends many generated cases.
func generated(id string) bool {
	check, _ := areas.Check(id)
	return check.Generated
}

// skipped returns the clauses that a mutant is not tested by because their checks cost much: those of load test only the
// mutants that break one of them; of the others each tests the mutants that break it, and every correct variant.
func skipped(m mutants.Mutant) ([]string, error) {
	all, err := engine.Checked()
	if err != nil {
		return nil, err
	}
	load := slices.ContainsFunc(m.Breaks, func(id string) bool { return strings.HasPrefix(id, "load/") })
	var ids []string
	for _, c := range all {
		check, _ := areas.Check(c.ID)
		switch {
		case !check.Costly, c.Area == "load" && load:
		case c.Area != "load" && (len(m.Breaks) == 0 || slices.Contains(m.Breaks, c.ID) || slices.Contains(m.MayFail, c.ID)):
		default:
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// Tester turns a mutant into its row. An error ends the selftest.
type Tester func(ctx context.Context, m mutants.Mutant) (Row, error)

// All tests units of mutants and variants on so many places, and returns the matrix with the rows in the order of the units. Units
// with an unexpected outcome are tested again, a few at a time; then each of their entries is, alone. progress, if not nil, receives
// each row as it comes, one at a time.
func All(ctx context.Context, units []Unit, places int64, test Tester, progress func(Row)) (Matrix, error) {
	clauses, err := contract.Load()
	if err != nil {
		return Matrix{}, err
	}
	golden, err := Golden()
	if err != nil {
		return Matrix{}, err
	}
	start := time.Now()
	rows := map[string]Row{}
	pending := slices.Clone(units)
	slices.SortStableFunc(pending, func(x, y Unit) int { return cmp.Compare(y.Places, x.Places) }) // what takes longest comes first
	for round, places := range []int64{places, max(1, places/4), 1} {
		var mu sync.Mutex
		group, whole := errgroup.WithContext(ctx)
		free := semaphore.NewWeighted(places)
		for _, unit := range pending {
			takes := min(unit.Places, places)
			if free.Acquire(whole, takes) != nil { // it has ended
				break
			}
			group.Go(func() error {
				defer free.Release(takes)
				together := mutants.Together(unit.Entries)
				row, err := test(whole, together)
				if err != nil {
					return fmt.Errorf("test %s: %w", together.Name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				row.Again = round > 0
				for _, m := range unit.Entries {
					row.Name = m.Name
					rows[m.Name] = row
					if progress != nil && round == 0 {
						progress(row)
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return Matrix{}, err
		}
		if err := ctx.Err(); err != nil { // what a run that was cut short did not find says nothing
			return Matrix{}, fmt.Errorf("the selftest was interrupted: %w", err)
		}
		var again []Unit
		for _, unit := range pending {
			switch {
			case rows[unit.Entries[0].Name].asExpected(golden): // then all are, for they have one outcome
			case round == 0:
				again = append(again, unit)
			default:
				for _, m := range unit.Entries {
					again = append(again, Unit{[]mutants.Mutant{m}, 1})
				}
			}
		}
		pending = again
	}
	var all []Row
	for _, unit := range units {
		for _, m := range unit.Entries {
			all = append(all, rows[m.Name])
		}
	}
	matrix := newMatrix(all, testedClauses(clauses, all))
	matrix.DurationMS = time.Since(start).Milliseconds()
	return matrix, nil
}

// testedClauses returns the clauses that were tested on at least one bridge.
func testedClauses(all *contract.Contract, rows []Row) []contract.Clause {
	tested := map[string]bool{}
	for _, r := range rows {
		for _, id := range r.Tested {
			tested[id] = true
		}
	}
	var clauses []contract.Clause
	for _, c := range all.Clauses {
		if tested[c.ID] {
			clauses = append(clauses, c)
		}
	}
	return clauses
}
