package bridges

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/starter"
	"github.com/bridgecheck/bridgecheck/reports"
)

// toolchains say, by language, with which command a machine shows that it can run the starter.
var toolchains = map[string][]string{
	"node":   {"node", "-e", "const [major, minor] = process.versions.node.split('.'); process.exit(major > 20 || major == 20 && minor >= 3 ? 0 : 1)"},
	"go":     {"go", "version"},
	"python": {"python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"},
}

// leftOut are the clauses that starters do not keep, as the README.md of each says.
var leftOut = []string{"load/large-catalogue", "invoke/invalid-arguments-named"}

// TestStarters writes each starter as a user does, and runs the two commands that init prints.
func TestStarters(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the starters are not run")
	}
	binary := build(t)
	for _, s := range starter.All() {
		t.Run(s.Language, func(t *testing.T) {
			probe := toolchains[s.Language]
			if probe == nil {
				t.Fatalf("add the starter %s to toolchains", s.Language)
			}
			if out, err := exec.Command(probe[0], probe[1:]...).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: the %s starter is not run: %q: %v: %s", s.Language, probe, err, out)
			}
			t.Parallel()
			directory := filepath.Join(t.TempDir(), "bridge")
			if out, err := exec.Command(binary, "init", s.Language, directory).CombinedOutput(); err != nil {
				t.Fatalf("init: %v: %s", err, out)
			}
			words := strings.Fields(s.Test)
			own := exec.Command(words[0], words[1:]...)
			own.Dir = directory
			if out, err := own.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", s.Test, err, out)
			}
			report, printed := run(t, binary, directory, "--cases", "40")
			if got := report.State(); got != "conformant" {
				t.Errorf("want conformant, saw %s\n%s", got, printed)
			}
			for _, result := range report.Results {
				if result.Verdict == reports.Warn && !slices.Contains(leftOut, result.ID) {
					t.Errorf("%s warns, and README.md does not say so\n%s", result.ID, printed)
				}
			}
		})
	}
}
