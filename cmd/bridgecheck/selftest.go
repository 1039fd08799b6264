package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/generate"
	"github.com/bridgecheck/bridgecheck/suites/selftest"
)

// selftestFlags are what selftest can be told.
type selftestFlags struct {
	mutant   string
	json     bool
	markdown bool
	golden   string
	judge    bool
}

func newSelftest() *cobra.Command {
	var f selftestFlags
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Judge the checks: every broken bridge must fail, every correct one must pass",
		Long: `selftest runs the suites against deliberately broken bridges, each of which must fail the clauses meant for it,
and against correct bridges that differ from the reference, which must fail nothing. It prints what needs attention.

Exit codes: 0 every mutant was killed, every clause that binds is proven, no correct bridge was blamed,
at least 95 of 100 mutants fell by the meant clauses alone, and all fell as the golden sets say · 1 not so · 4 no verdict.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSelftest(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mutant, "mutant", "", "test this mutant or correct variant alone")
	flags.BoolVar(&f.markdown, "markdown", false, "print the kill matrix of the golden sets as a page of the documentation; nothing is run")
	flags.StringVar(&f.golden, "write-golden", "", "write the golden sets into this directory in place of comparing with them")
	flags.BoolVar(&f.judge, "judge", false, "judge the mutants whose names come on stdin, one a line, and write a line of JSON on each: what selftest runs several of")
	_ = flags.MarkHidden("judge")
	addJSON(cmd, &f.json)
	return cmd
}

func runSelftest(cmd *cobra.Command, f selftestFlags) error {
	switch {
	case f.judge:
		o := suites.Options{Tool: thisTool(), Makers: &generate.Makers{}}
		return selftest.JudgeAsAsked(cmd.InOrStdin(), cmd.OutOrStdout(), func(m selftest.Mutant) selftest.Row {
			return selftest.JudgeRow(cmd.Context(), m, o)
		})
	case f.mutant != "":
		return selftestOne(cmd, f)
	case f.markdown:
		return selftest.WriteMarkdown(cmd.OutOrStdout())
	}
	all := selftest.All()
	tell, end := counter(cmd.ErrOrStderr(), len(all))
	self, err := os.Executable()
	if err != nil {
		return err
	}
	judges := selftest.NewJudges(cmd.Context(), workers(), func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, self, "selftest", "--judge")
	})
	matrix, err := selftest.Selftest(cmd.Context(), all, workers(), judges.Judge, tell)
	judges.Close()
	end()
	if err != nil {
		return err
	}
	return printMatrix(cmd, f, matrix)
}

// counter shows on a terminal how many mutants are done.
func counter(out io.Writer, all int) (tell func(selftest.Row), end func()) {
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func() {}
	}
	done := 0
	tell = func(selftest.Row) {
		done++
		fmt.Fprintf(out, "\r%d of %d", done, all)
	}
	return tell, func() { fmt.Fprintln(out) }
}

func printMatrix(cmd *cobra.Command, f selftestFlags, matrix selftest.Matrix) error {
	out := cmd.OutOrStdout()
	var err error
	if f.json {
		err = writeJSON(out, matrix)
	} else {
		err = matrix.WriteText(out)
	}
	if err != nil {
		return err
	}
	if f.golden != "" {
		return matrix.WriteGolden(f.golden)
	}
	golden, err := selftest.Golden()
	if err != nil {
		return err
	}
	drift := matrix.Drift(golden)
	for _, line := range drift {
		fmt.Fprintln(cmd.ErrOrStderr(), line)
	}
	if len(drift) > 0 || !matrix.Good() {
		return exitCode(1)
	}
	return nil
}

// selftestOne judges one mutant in this process.
func selftestOne(cmd *cobra.Command, f selftestFlags) error {
	m, ok := selftest.Find(f.mutant)
	if !ok {
		var names []string
		for _, m := range selftest.All() {
			names = append(names, m.Name)
		}
		return usagef("there is no mutant %q; did you mean %s?", f.mutant, contract.Nearest(f.mutant, names))
	}
	row := selftest.JudgeRow(cmd.Context(), m, suites.Options{Tool: thisTool()})
	if f.json {
		return writeJSON(cmd.OutOrStdout(), row)
	}
	w := newTable(cmd.OutOrStdout())
	w.row("meant", strings.Join(row.Meant, " "))
	w.row("fell", strings.Join(row.Fell, " "))
	w.row("missed", strings.Join(row.Missed(), " "))
	w.row("stray", strings.Join(row.Stray(), " "))
	if row.Problem != "" {
		w.row("problem", row.Problem)
	}
	return w.Flush()
}

// workers is how many mutants are judged side by side: many checks wait, so there are more than processors.
func workers() int { return 4 * runtime.NumCPU() }
