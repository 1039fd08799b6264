// Package power proves what the checks can distinguish. Its catalog holds what languages, frameworks and programmers who mean
// well do to texts, numbers and other values; its positions are the places of values that have to arrive as they were sent.
// For each transformation and each position the run has to send or serve a value that the transformation changes, and the
// clause of the position has to fail where it does. It tests no bridge but the reference bridge with one such fault.
//
// Invariant: a cell of the matrix is empty only where the contract leaves it open, by a sentence that stands there.
package power

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// catalog returns all transformations.
func catalog() []transformation { return slices.Concat(texts(), numbers(), others(), named()) }

func TestTheCatalogIsLarge(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range slices.Concat(texts(), numbers(), others()) {
		key := string(c.kind) + ": " + c.name
		must.Expect(t, !seen[key], "two transformations are %q", key)
		seen[key] = true
	}
	must.Expect(t, len(seen) >= 200, "the catalog has %d transformations, want 200 at least", len(seen))
	t.Logf("%d transformations, and those of texts for names", len(seen))
}

// values are different values of one position.
type seen struct {
	mu  sync.Mutex
	all map[string]any // by how they are written
}

func (s *seen) see(v any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[written(v)] = v
	return v
}

// changes reports whether a transformation changes a value that was seen.
func (s *seen) changes(by transformation) bool {
	for _, v := range s.all {
		if !exact.Equal(v, by.do(v)) {
			return true
		}
	}
	return false
}

// run tests a mutant by the clauses of a position.
func run(t *testing.T, m mutants.Mutant, clauses []string) *reports.Report {
	t.Helper()
	report := must.Get(selftest.Run(t.Context(), m, engine.Options{Contract: contract.Draft, Only: clauses}, nil))(t)
	return report
}

func failed(r *reports.Report, clauses []string) bool {
	return slices.ContainsFunc(r.Results, func(c reports.Result) bool {
		return slices.Contains(clauses, c.ID) && (c.Verdict == reports.Fail || c.Verdict == reports.Warn)
	})
}

// cells are the transformations that can occur at a position and that the contract does not leave open there.
func (p position) cells() []transformation {
	return slices.DeleteFunc(catalog(), func(c transformation) bool {
		return !slices.Contains(p.kinds, c.kind) || c.coerces && len(p.kinds) == 1 || slices.ContainsFunc(p.open, func(o opening) bool { return o.holds(c) })
	})
}

func (o opening) holds(c transformation) bool {
	return (o.kind == "" || o.kind == c.kind) && (len(o.transformations) == 0 || slices.ContainsFunc(o.transformations, func(w string) bool { return strings.Contains(c.name, w) }))
}

// TestOpeningsAreOfTheContract looks for the sentence of each opening in the contract.
func TestOpeningsAreOfTheContract(t *testing.T) {
	document := must.Get(os.ReadFile("../../docs/contract.md"))(t)
	said := string(document)
	all := must.Get(contract.Load())(t)
	for _, c := range all.Clauses {
		said += "\n" + c.Text
	}
	for _, p := range positions() {
		for _, o := range p.open {
			must.Expect(t, strings.Contains(said, o.sentence), "%s: the contract does not say %q", p.name, o.sentence)
			must.Expect(t, slices.ContainsFunc(catalog(), o.holds), "%s: no transformation is left open by %q", p.name, o.sentence)
		}
	}
}

// TestEveryTransformationMeetsAValue runs the clauses of each position against the reference bridge, and looks for a value
// that each transformation changes among those that it sent and served there.
func TestEveryTransformationMeetsAValue(t *testing.T) {
	for _, p := range positions() {
		t.Run(p.name, func(t *testing.T) {
			all := seen{all: map[string]any{}}
			report := run(t, p.mutant(all.see), p.clauses)
			for _, r := range report.Results {
				must.Assert(t, !slices.Contains(p.clauses, r.ID) || r.Verdict == reports.Pass,
					"%s: %s with the reference bridge: %s", r.ID, r.Verdict, exact.Cut(r.Message, 300))
			}
			var holes []string
			cells := p.cells()
			for _, c := range cells {
				if !all.changes(c) {
					holes = append(holes, string(c.kind)+": "+c.name)
				}
			}
			if len(holes) > 0 {
				t.Errorf("%d of %d transformations change none of the %d values there: add one to suites/input/traps, or name the sentence of the contract that leaves it open:\n  %s",
					len(holes), len(cells), len(all.all), strings.Join(holes, "\n  "))
			}
		})
	}
}

// TestEveryChangeIsFound puts transformations into the reference bridge, each at one position, and wants a clause of the
// position to fail. POWER=all tests every cell, POWER=n that many of each position, by default always the same few.
func TestEveryChangeIsFound(t *testing.T) {
	few := 3
	switch wanted := os.Getenv("POWER"); wanted {
	case "":
		if testing.Short() {
			few = 1
		}
	case "all":
		few = 1 << 20
	default:
		_, err := fmt.Sscan(wanted, &few)
		must.Assert(t, err == nil, "POWER=%s: want a number, or all", wanted)
	}
	for _, p := range positions() {
		t.Run(p.name, func(t *testing.T) {
			cells := p.cells()
			h := fnv.New64a()
			h.Write([]byte(p.name))
			dice := rand.New(rand.NewPCG(1, h.Sum64()))
			dice.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
			for _, c := range cells[:min(few, len(cells))] {
				if report := run(t, p.mutant(c.do), p.clauses); !failed(report, p.clauses) {
					t.Errorf("%s: %s goes unnoticed: none of %s fails", c.kind, c.name, strings.Join(p.clauses, ", "))
				}
			}
		})
	}
}
