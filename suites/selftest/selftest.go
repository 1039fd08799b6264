package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// All lists the whole zoo and all correct variants.
func All() []Mutant { return append(Zoo(), Variants()...) }

// JudgeRow runs the suites against one mutant in this process and sums the report up. Ginkgo runs one tree at a time in
// a process, so mutants side by side need processes of their own.
func JudgeRow(ctx context.Context, m Mutant, o suites.Options) Row {
	if len(o.Only) == 0 {
		o.Skip = append(slices.Clone(o.Skip), m.spared()...)
	}
	if len(m.Breaks) > 0 && !slices.ContainsFunc(m.Breaks, madeUp) {
		o.Cases = fewCases
	}
	report, err := Judge(ctx, m, o)
	var dead *suites.UnreachableError
	switch {
	case errors.As(err, &dead):
		return Row{Name: m.Name, Correct: len(m.Breaks) == 0, Meant: m.Breaks, Fell: []string{}, Problem: err.Error()}
	case err != nil:
		return Row{Name: m.Name, Correct: len(m.Breaks) == 0, Meant: m.Breaks, Fell: []string{}, Problem: "harness: " + err.Error()}
	}
	return rowOf(m, report)
}

// Worker judges one mutant, usually in another process.
type Worker func(ctx context.Context, m Mutant) (Row, error)

// fewCases are those made up where a mutant is about something else: that a check of it runs shows with these, too.
const fewCases = 12

// madeUp tells which clauses are judged by many made-up cases.
func madeUp(id string) bool {
	return slices.Contains([]string{"invoke/invalid-arguments-400", "invoke/arguments-forwarded", "invoke/output-matches-schema", "upstream/eager-validation",
		"describe/answers-tool", "describe/equals-list", "list/order-stable", "access/no-cross-talk"}, id)
}

// spared are the clauses that a bridge is not judged by, for they cost much: those of load judge the mutants that are
// about load, and the reference; of the others that send much, each judges the mutants that are about it, and every
// correct bridge.
func (m Mutant) spared() []string {
	var ids []string
	if !slices.ContainsFunc(m.Breaks, func(id string) bool { return strings.HasPrefix(id, "load/") }) {
		ids = append(ids, "load/*")
	}
	for _, id := range []string{"invoke/large-body", "fresh/single-flight", "upstream/pooled"} {
		if len(m.Breaks) > 0 && !slices.Contains(m.Breaks, id) && !slices.Contains(m.Free, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Selftest has all the mutants judged, so many at a time, and gives the matrix in their order. What comes out otherwise
// than it should on the busy machine is judged once more, alone. progress is told of each row as it comes; nil: nobody.
// An error of a worker ends the whole.
func Selftest(ctx context.Context, all []Mutant, parallel int, judge Worker, progress func(Row)) (Matrix, error) {
	contract, err := contract.Load()
	if err != nil {
		return Matrix{}, err
	}
	golden, err := Golden()
	if err != nil {
		return Matrix{}, err
	}
	start := time.Now()
	rows := make([]Row, len(all))
	done := make(chan Row)
	group, together := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for row := range done {
			if progress != nil {
				progress(row)
			}
		}
	}()
	for i, m := range slices.Backward(all) { // the correct ones come last, and take longest
		group.Go(func() error {
			row, err := judge(together, m)
			if err != nil {
				return fmt.Errorf("judge %s: %w", m.Name, err)
			}
			rows[i] = row
			done <- row
			return nil
		})
	}
	err = group.Wait()
	close(done)
	<-told
	if err != nil {
		return Matrix{}, err
	}
	again := 0
	for i, m := range all {
		if rows[i].asExpected(golden) {
			continue
		}
		again++
		if rows[i], err = judge(ctx, m); err != nil {
			return Matrix{}, fmt.Errorf("judge %s again: %w", m.Name, err)
		}
	}
	matrix := newMatrix(rows, claimedClauses(contract, rows))
	matrix.Figures.Again = again
	matrix.DurationMS = time.Since(start).Milliseconds()
	return matrix, nil
}

// claimedClauses lists the clauses that at least one of the judged bridges was held to.
func claimedClauses(all *contract.Contract, rows []Row) []contract.Clause {
	judged := map[string]bool{}
	for _, r := range rows {
		for _, id := range r.Judged {
			judged[id] = true
		}
	}
	var clauses []contract.Clause
	for _, c := range all.Clauses {
		if judged[c.ID] {
			clauses = append(clauses, c)
		}
	}
	return clauses
}
