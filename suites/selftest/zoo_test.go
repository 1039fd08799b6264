package selftest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/generate"
)

var (
	full   = flag.Bool("full", false, "judge every mutant and variant by every clause, in parallel processes (minutes)")
	update = flag.Bool("update", false, "with -full: write the golden sets anew")
)

// In the environment of a judge that a test started: the clauses to judge by, or that it is the meant ones.
const (
	judgesBy  = "BRIDGECHECK_TEST_JUDGES_BY"
	meantOnes = "meant"
	allOfThem = "all"
)

func TestMain(m *testing.M) {
	by := os.Getenv(judgesBy)
	if by == "" {
		os.Exit(m.Run())
	}
	makers := &generate.Makers{}
	if err := JudgeAsAsked(os.Stdin, os.Stdout, func(m Mutant) Row {
		o := suites.Options{Makers: makers}
		switch by {
		case allOfThem:
		case meantOnes:
			o.Only = m.Breaks
		default:
			o.Only = strings.Fields(by)
		}
		return JudgeRow(context.Background(), m, o)
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// judges are processes of this test that judge mutants.
func judges(t *testing.T, by string) *Judges {
	t.Helper()
	j := NewJudges(t.Context(), side, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), judgesBy+"="+by)
		return cmd
	})
	t.Cleanup(j.Close)
	return j
}

// side is how many judges work side by side: many checks wait, so there are more than processors.
var side = 4 * runtime.NumCPU()

func loadContract(t *testing.T) *contract.Contract {
	t.Helper()
	all, err := contract.Load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEntriesAreWellFormed(t *testing.T) {
	ledger, seen := loadContract(t), map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] {
			t.Errorf("%s: two entries have this name", m.Name)
		}
		seen[m.Name] = true
		if !regexp.MustCompile(`^[a-z0-9]+(-[A-Za-z0-9]+)*$`).MatchString(m.Name) {
			t.Errorf("%s: a name is words joined by hyphens", m.Name)
		}
		for _, id := range slices.Concat(m.Breaks, m.Free) {
			if _, ok := ledger.Clause(id); !ok {
				t.Errorf("%s: %s is not in the ledger; the nearest is %s", m.Name, id, suggest.Nearest(id, ledger.IDs()))
			}
		}
		if _, err := suites.Claim(Claimed(), m.Claims); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	for _, m := range Zoo() {
		if len(m.Breaks) == 0 || m.Origin == "" {
			t.Errorf("%s: a mutant says what it breaks and where it was met", m.Name)
		}
	}
	for _, m := range Variants() {
		if len(m.Breaks) > 0 || m.Why == "" {
			t.Errorf("%s: a correct variant breaks nothing and says what room it uses", m.Name)
		}
	}
}

// The areas whose mutants are all there, and the capabilities that no bridge of the zoo has.
var (
	areas     = []string{"list", "mapping", "schema", "describe", "invoke", "errors", "access", "http", "mcp"}
	unclaimed = []string{"languages"}
)

func TestEveryBindingClauseHasAMutant(t *testing.T) {
	meant := map[string]bool{}
	for _, m := range Zoo() {
		for _, id := range m.Breaks {
			meant[id] = true
		}
	}
	for _, c := range loadContract(t).Clauses {
		if slices.Contains(areas, c.Area) && c.Level != reports.MAY && !meant[c.ID] && !slices.Contains(unclaimed, c.Needs) {
			t.Errorf("%s: no mutant breaks it", c.ID)
		}
	}
}

// judgeAll has mutants judged side by side. What is not as it should be on the busy machine is judged once more, alone.
func judgeAll(t *testing.T, all []Mutant, by string, asItShould func(Row) bool) []Row {
	t.Helper()
	judge := judges(t, by).Judge
	rows := make([]Row, len(all))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(side)
	for i, m := range all {
		group.Go(func() (err error) {
			rows[i], err = judge(ctx, m)
			return err
		})
	}
	err := group.Wait()
	for i := 0; err == nil && i < len(rows); i++ {
		if !asItShould(rows[i]) {
			rows[i], err = judge(t.Context(), all[i])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestMeantClausesFall judges each mutant by the clauses that it is meant to break.
func TestMeantClausesFall(t *testing.T) {
	for _, row := range judgeAll(t, Zoo(), meantOnes, func(r Row) bool { return r.Problem == "" && len(r.Missed()) == 0 }) {
		if row.Problem != "" {
			t.Errorf("%s: %s", row.Name, row.Problem)
		}
		for _, id := range row.Missed() {
			t.Errorf("%s: %s did not fall", row.Name, id)
		}
	}
}

// TestMatrix judges everything by everything.
func TestMatrix(t *testing.T) {
	if !*full {
		t.Skip("the full kill matrix takes minutes: go test ./suites/selftest -run TestMatrix -args -full, or make selftest")
	}
	matrix, err := Selftest(t.Context(), All(), side, judges(t, allOfThem).Judge, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := matrix.WriteText(t.Output()); err != nil {
		t.Fatal(err)
	}
	if !matrix.Good() {
		t.Error("something survived, is unproven, or was blamed without reason")
	}
	if *update {
		if err := matrix.WriteGolden(goldenDir); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := Golden()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range matrix.Drift(golden) {
		t.Error(line)
	}
}

// TestVariantsFailNothing judges the correct variants by every clause that is not about time and load.
func TestVariantsFailNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	var only []string
	for _, area := range areas {
		only = append(only, area+"/*")
	}
	for _, row := range judgeAll(t, Variants(), strings.Join(only, " "), func(r Row) bool { return r.Problem == "" && len(r.Stray()) == 0 }) {
		if row.Problem != "" {
			t.Errorf("%s: %s", row.Name, row.Problem)
		}
		for _, id := range row.Stray() {
			t.Errorf("%s: %s was not kept, or could not be judged", row.Name, id)
		}
	}
}
