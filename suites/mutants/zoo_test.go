package mutants

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bridgecheck/reports"
	"bridgecheck/suites"
	"bridgecheck/suites/ledger"
)

var (
	full   = flag.Bool("full", false, "judge every mutant and variant by every clause, in parallel processes (minutes)")
	update = flag.Bool("update", false, "with -full: write the golden sets anew")
)

// What a process that a test started has to judge: the mutant's name, and the clauses where not all.
const (
	workerFor  = "BRIDGECHECK_TEST_MUTANT"
	workerOnly = "BRIDGECHECK_TEST_ONLY"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(workerFor); name != "" {
		mutant, _ := Find(name)
		if err := json.NewEncoder(os.Stdout).Encode(JudgeRow(context.Background(), mutant, suites.Options{Only: strings.Fields(os.Getenv(workerOnly))})); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func contract(t *testing.T) *ledger.Ledger {
	t.Helper()
	contract, err := ledger.Load()
	if err != nil {
		t.Fatal(err)
	}
	return contract
}

func TestEntriesAreWellFormed(t *testing.T) {
	ledger, seen := contract(t), map[string]bool{}
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
				t.Errorf("%s: %s is not in the ledger; the nearest is %s", m.Name, id, ledger.Nearest(id))
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
	for _, c := range contract(t).Clauses {
		if slices.Contains(areas, c.Area) && c.Level != reports.MAY && !meant[c.ID] && !slices.Contains(unclaimed, c.Needs) {
			t.Errorf("%s: no mutant breaks it", c.ID)
		}
	}
}

// TestMeantClausesFall judges each mutant by the clauses that it is meant to break.
func TestMeantClausesFall(t *testing.T) {
	for _, m := range Zoo() {
		t.Run(m.Name, func(t *testing.T) {
			row := JudgeRow(t.Context(), m, suites.Options{Only: m.Breaks})
			if row.Problem != "" {
				t.Fatal(row.Problem)
			}
			for _, id := range row.Missed() {
				t.Errorf("%s did not fall", id)
			}
		})
	}
}

// judgeElsewhere judges a mutant in a process of its own: Ginkgo runs one tree at a time in a process.
func judgeElsewhere(ctx context.Context, m Mutant, only ...string) (Row, error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), workerFor+"="+m.Name, workerOnly+"="+strings.Join(only, " "), "GOGC=400")
	out, err := cmd.Output()
	if err != nil {
		return Row{}, err
	}
	var row Row
	return row, json.Unmarshal(out, &row)
}

// TestMatrix judges everything by everything.
func TestMatrix(t *testing.T) {
	if !*full {
		t.Skip("the full kill matrix takes minutes: go test ./suites/mutants -run TestMatrix -args -full, or make selftest")
	}
	worker := func(ctx context.Context, m Mutant) (Row, error) { return judgeElsewhere(ctx, m) }
	matrix, err := Selftest(t.Context(), All(), 2*runtime.NumCPU(), worker, nil)
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
	for _, m := range Variants() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			row, err := judgeElsewhere(t.Context(), m, only...)
			if err != nil || row.Problem != "" {
				t.Fatal(err, row.Problem)
			}
			for _, id := range row.Stray() {
				t.Errorf("%s was not kept, or could not be judged", id)
			}
		})
	}
}
