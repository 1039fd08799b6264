package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/machine"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// selftestFlags are the flags of selftest.
type selftestFlags struct {
	mutant   string
	json     bool
	markdown bool
	update   bool
	golden   string
	full     bool
	shard    string // I/N; "": all
}

func newSelftest() *cobra.Command {
	var f selftestFlags
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Test the checks: every mutant must fail, every correct variant must pass",
		Example: `  bridgecheck selftest
  bridgecheck selftest --mutant describe-any-case --update
  bridgecheck selftest --full --shard 1/3`,
		Long: `selftest runs the suites against mutants, which are bridges with one fault each and must fail the
clauses that they break, and against correct variants, which differ from the reference bridge and
must fail nothing. It prints what needs attention. Of mutants that differ from the reference in the
same way, or that break clauses of one area, the first is tested by every clause but the longest,
and by these where it fails, the others by those that they fail; correct variants are tested by all
but the longest, several in one bridge, and each alone where that is blamed. --full tests every
mutant as the first, and every variant alone and by every clause. With --shard I/N machines share
the mutants and variants: if all N shards end with 0, so does the whole.

Exit codes: 0 every mutant was killed, every clause that binds is proven, no correct variant was
blamed, at least 95 of 100 mutants failed only what they break, the reports of 98 of 100 begin with
that, and all failed as the golden sets say · 1 not so · 4 no verdict.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSelftest(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mutant, "mutant", "", "`name` of a mutant or correct variant to test alone: a mutant by the clauses that fail of it, unless --full is given")
	flags.BoolVar(&f.markdown, "markdown", false, "print the kill matrix of the golden sets as a page of the documentation; nothing is tested")
	flags.BoolVar(&f.update, "update", false, "write the golden sets of what was tested, and docs/kill-matrix.md, into the source tree around the working directory")
	flags.BoolVar(&f.full, "full", false, "test every mutant by all but the longest checks, and by these where they fail; --update and --write-golden test it by all")
	flags.StringVar(&f.shard, "shard", "", "test only the mutants and correct variants of shard `I/N`, as 1/3")
	flags.StringVar(&f.golden, "write-golden", "", "write the golden sets into this `directory` instead of comparing with them")
	addJSON(cmd, &f.json)
	return cmd
}

func runSelftest(cmd *cobra.Command, f selftestFlags) error {
	defer machine.CollectLess(2 << 30)() // ten runs at a time
	log.SetOutput(io.Discard)            // net/http writes there what the site does wrong, which it does here on purpose
	switch {
	case f.update && f.golden != "":
		return usagef("--update and --write-golden both write the golden sets: give one of them")
	case f.shard != "" && (f.update || f.golden != "" || f.mutant != "" || f.markdown):
		return usagef("--shard is a part of what is tested and compared with the golden sets: give it without --mutant, --update, --write-golden and --markdown")
	case f.mutant != "":
		return selftestOne(cmd, f)
	case f.markdown && f.update:
		return updateGolden()
	case f.markdown:
		return selftest.WriteKillMatrix(cmd.OutOrStdout())
	}
	return selftestAll(cmd, f)
}

// selftestAll tests all mutants and variants, several at a time.
func selftestAll(cmd *cobra.Command, f selftestFlags) error {
	golden, err := selftest.Golden()
	if err != nil {
		return err
	}
	all, others := mutants.All(), []mutants.Mutant(nil)
	if f.shard != "" {
		index, of, err := parseShard(f.shard)
		if err != nil {
			return err
		}
		if all, others, err = selftest.Shard(all, golden, index, of, f.full); err != nil {
			return err
		}
	}
	progress, end := counter(cmd.ErrOrStderr(), len(all))
	narrower, err := selftest.NewNarrower(golden, f.full || f.golden != "" || f.update)
	if err != nil {
		return err
	}
	makers, keys := &generate.Makers{}, &authserver.Keys{}
	test := func(ctx context.Context, m mutants.Mutant) (selftest.Row, error) {
		o := engine.Options{Pass: engine.Pass{Makers: makers}, Tool: thisTool()}
		if f.golden == "" && !f.update {
			narrower.Narrow(&o, m)
		}
		return selftest.Evaluate(ctx, m, o, keys), nil
	}
	matrix, err := selftest.All(cmd.Context(), narrower.Units(all), places(), test, progress)
	end()
	if err != nil {
		return err
	}
	matrix.Complete(others, golden)
	if f.json {
		err = writeJSON(cmd.OutOrStdout(), matrix)
	} else {
		err = matrix.WriteText(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return err
	case f.golden != "":
		return matrix.WriteGolden(f.golden)
	case f.update:
		return updateGolden(matrix.Rows...)
	}
	return compareWithGolden(cmd, matrix, golden)
}

// updateGolden writes the golden sets of the rows and the kill matrix into the source tree.
func updateGolden(rows ...selftest.Row) error {
	err := selftest.Update(rows...)
	if errors.Is(err, selftest.ErrNoSourceTree) {
		return usagef("%v: run --update there", err)
	}
	return err
}

// compareWithGolden prints what differs from the golden sets.
func compareWithGolden(cmd *cobra.Command, matrix selftest.Matrix, golden selftest.Sets) error {
	drift := matrix.Drift(golden)
	for _, line := range drift {
		fmt.Fprintln(cmd.ErrOrStderr(), line)
	}
	if len(drift) > 0 || !matrix.Good() {
		return exitCode(1)
	}
	return nil
}

// counter shows on a terminal how many mutants are done.
func counter(out io.Writer, all int) (progress func(selftest.Row), end func()) {
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func() {}
	}
	done := 0
	progress = func(selftest.Row) {
		done++
		fmt.Fprintf(out, "\r%d of %d", done, all)
	}
	return progress, func() { fmt.Fprintln(out) }
}

// selftestOne tests one mutant in this process.
func selftestOne(cmd *cobra.Command, f selftestFlags) error {
	m, ok := mutants.Find(f.mutant)
	if !ok {
		return usagef("there is no mutant %q; %s", f.mutant, suggest.Or(f.mutant, mutantNames(), "selftest --markdown lists all"))
	}
	o := engine.Options{Tool: thisTool()}
	if !f.full && !f.update {
		golden, err := selftest.Golden()
		if err != nil {
			return err
		}
		o.Only = selftest.Expected(m, golden)
	}
	row := selftest.Evaluate(cmd.Context(), m, o, nil)
	if err := printRow(cmd, f, row); err != nil {
		return err
	}
	if f.update {
		return updateGolden(row)
	}
	return nil
}

func printRow(cmd *cobra.Command, f selftestFlags, row selftest.Row) error {
	if f.json {
		return writeJSON(cmd.OutOrStdout(), row)
	}
	w := newTable(cmd.OutOrStdout())
	w.row("expected", strings.Join(row.Expected, " "))
	w.row("failed", strings.Join(row.Failed, " "))
	w.row("missed", strings.Join(row.Missed(), " "))
	w.row("unexpected", strings.Join(row.Unexpected(), " "))
	w.row("first", row.First)
	if len(row.NotTestable) > 0 { // as on a machine that is overloaded
		w.row("not testable", strings.Join(row.NotTestable, " "))
	}
	if row.Problem != "" {
		w.row("problem", row.Problem)
	}
	return w.Flush()
}

// places is how many mutants are tested at a time, where each is tested by few clauses: many checks wait, so there are more than
// processors.
func places() int64 { return 6 * int64(runtime.NumCPU()) }
