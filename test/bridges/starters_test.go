package bridges

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/starter"
	"github.com/bridgecheck/bridgecheck/reports"
)

// toolchains say, by language, with which command a machine shows that it can run the starter.
var toolchains = map[string][]string{
	"php":    {"php", "-r", "exit(PHP_VERSION_ID < 80200 || !extension_loaded('curl') || !extension_loaded('pcntl') ? 1 : 0);"},
	"node":   {"node", "-e", "const [major, minor] = process.versions.node.split('.'); process.exit(major > 20 || major == 20 && minor >= 3 ? 0 : 1)"},
	"go":     {"go", "version"},
	"python": {"python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"},
}

// TestStarters writes each starter as a user does, and runs the two commands that init prints.
func TestStarters(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the starters are not run")
	binary := program.Build(t)
	for _, s := range starter.All() {
		t.Run(s.Language, func(t *testing.T) {
			probe := toolchains[s.Language]
			must.Assert(t, probe != nil, "add the starter %s to toolchains", s.Language)
			if out, err := exec.Command(probe[0], probe[1:]...).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: the %s starter is not run: %q: %v: %s", s.Language, probe, err, out)
			}
			directory := filepath.Join(t.TempDir(), "bridge")
			out, err := exec.Command(binary, "init", s.Language, directory).CombinedOutput()
			must.Assert(t, err == nil, "init: %v: %s", err, out)
			words := strings.Fields(s.Test)
			own := exec.Command(words[0], words[1:]...)
			own.Dir = directory
			out, err = own.CombinedOutput()
			must.Expect(t, err == nil, "%s: %v\n%s", s.Test, err, out)
			want, more := reports.Conformant, []string{"--ready-timeout", "2m"} // go run compiles first
			if !slices.ContainsFunc(bridges, func(b bridge) bool { return b.isStarter() && b.directory == s.Language }) {
				more = append(more, "--cases", "40")
				if !*full { // load is half of what a run computes; the bridges are tested by it
					want, more = reports.Partial, append(more, "--skip", "load")
				}
			}
			report, printed := run(t, binary, directory, "3", more...)
			got := report.State()
			must.Expect(t, got == want && report.ExitCode() == 0, "want %s, saw %s\n%s", want, got, printed)
			readme := must.Get(os.ReadFile(filepath.Join(directory, "README.md")))(t)
			_, leftOut, _ := strings.Cut(string(readme), "bridgecheck warns of")
			for _, result := range report.Results {
				warns, named := result.Verdict == reports.Warn, strings.Contains(leftOut, "`"+result.ID+"`")
				must.Expect(t, warns == named, "%s: the verdict is %s, and README.md names the warnings%s\n%s", result.ID, result.Verdict, leftOut, printed)
			}
		})
	}
}
