package bridges

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/yamlfile"
	"github.com/bridgecheck/bridgecheck/reports"
)

// A bridge was written from the contract alone.
type bridge struct {
	directory   string
	source      string   // the bridge in PHP is the starter of init
	interpreter string   // without it the tests of the bridge are skipped
	probe       []string // arguments with which the interpreter says whether it has all that the bridge needs
}

// isStarter reports whether a bridge is what init writes, which TestStarters tests by all clauses.
func (b bridge) isStarter() bool { return b.source != b.directory }

// Each source holds a bridge with its bridgecheck.yaml, which says by which command it starts and what it claims. The
// directory here holds faults.yaml: replacements in its source, and the clauses that fail for each. Where variants.yaml is
// beside it, no clause fails for the replacements in that: the contract leaves open what they change.
var bridges = []bridge{
	{"php", "../../internal/starter/php", "php", []string{"-r", "exit(PHP_VERSION_ID < 80200 || !extension_loaded('curl') || !extension_loaded('pcntl') ? 1 : 0);"}},
	{"python", "python", "python3", []string{"-c", "import sys, starlette, uvicorn, httptools, aiohttp, jsonschema; sys.exit(sys.version_info < (3, 11))"}},
	{"ruby", "ruby", "ruby", []string{"-e", "exit((RUBY_VERSION.split('.').map(&:to_i) <=> [3, 1]) >= 0)"}},
}

var full = flag.Bool("full", false, "put every fault into the bridges; else 20 into each")

// usual is how many faults a bridge is tested with unless all are.
const usual = 20

// A fault is one replacement in the source of a bridge.
type fault struct {
	Name    string   `yaml:"name"`
	Why     string   `yaml:"why"` // what its author believed
	File    string   `yaml:"file"`
	Replace string   `yaml:"replace"` // occurs once
	By      string   `yaml:"by"`
	Fails   []string `yaml:"fails"` // these clauses, and no other is run; none for a variant
}

func TestBridges(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the independent bridges are not run")
	binary := program.Build(t)
	for _, b := range bridges {
		t.Run(b.directory, func(t *testing.T) {
			err := exec.Command(b.interpreter, b.probe...).Run()
			must.Need(t, err == nil, "SKIPPED: the %s bridge is not run: %s %q: %v", b.directory, b.interpreter, b.probe, err)
			if !b.isStarter() {
				t.Run("conformant", func(t *testing.T) {
					t.Parallel()
					report, printed := run(t, binary, copied(t, b.source), "3")
					must.Equal(t, report.State(), "conformant", "the state, of %s", printed)
				})
			}
			for _, v := range variants(t, b.directory) {
				t.Run(v.Name, func(t *testing.T) {
					t.Parallel()
					changed := copied(t, b.source)
					must.Do(t, v.apply(changed))
					report, printed := run(t, binary, changed, "3")
					got := report.State()
					must.Expect(t, got == "conformant", "want conformant, saw %s\n%s", got, printed)
				})
			}
			all := faults(t, b.directory)
			for i, f := range all {
				if left(i, len(all), usual) {
					continue
				}
				t.Run(f.Name, func(t *testing.T) {
					t.Parallel()
					broken := copied(t, b.source)
					must.Do(t, f.apply(broken))
					var only []string
					for _, id := range f.Fails {
						only = append(only, "--only", id)
					}
					report, printed := run(t, binary, broken, "2", only...) // with one it would be the only process
					for _, id := range f.Fails {
						if got := verdict(report, id); got != reports.Fail && got != reports.Warn { // a SHOULD warns
							t.Errorf("want %s to fail, saw %q\n%s", id, got, printed)
						}
					}
				})
			}
		})
	}
}

// left reports whether the entry i of n is left out of this test: those that are not are from all parts of the file.
func left(i, n, tested int) bool { return !*full && (i+1)*tested/n == i*tested/n }

// faults reads the faults of a bridge.
func faults(t *testing.T, directory string) []fault {
	t.Helper()
	var file struct {
		Faults []fault `yaml:"faults"`
	}
	name := read(t, directory, "faults.yaml", &file)
	must.Expect(t, len(file.Faults) >= usual, "%s: want %d faults or more, saw %d", name, usual, len(file.Faults))
	for i, f := range file.Faults {
		must.Expect(t, f.Name != "" && f.Why != "" && f.File != "" && f.Replace != f.By && len(f.Fails) > 0,
			"%s: fault %d %q lacks name, why, file, a replacement or the clauses that fail", name, i+1, f.Name)
	}
	return file.Faults
}

// variants reads the correct variants of a bridge that has any, all with -full and else one: each is tested by all clauses.
func variants(t *testing.T, directory string) []fault {
	t.Helper()
	var file struct {
		Variants []fault `yaml:"variants"`
	}
	if _, err := os.Stat(filepath.Join(directory, "variants.yaml")); err != nil {
		return nil
	}
	name := read(t, directory, "variants.yaml", &file)
	for i, v := range file.Variants {
		must.Expect(t, v.Name != "" && v.Why != "" && v.File != "" && v.Replace != v.By && len(v.Fails) == 0,
			"%s: variant %d %q lacks name, why, file or a replacement, or names clauses that fail", name, i+1, v.Name)
	}
	if *full {
		return file.Variants
	}
	return file.Variants[:1]
}

// read decodes a file of a bridge and returns its name.
func read(t *testing.T, directory, file string, into any) string {
	t.Helper()
	name := filepath.Join(directory, file)
	data := must.Get(os.ReadFile(name))(t)
	must.Get(yamlfile.Decode(name, data, into))(t)
	return name
}

// apply puts the fault into the bridge in the directory.
func (f fault) apply(directory string) error {
	name := filepath.Join(directory, f.File)
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if n := strings.Count(string(source), f.Replace); f.Replace == "" || n != 1 {
		return fmt.Errorf("%s occurs %d times in %s, want once", f.Replace, n, f.File)
	}
	return os.WriteFile(name, []byte(strings.Replace(string(source), f.Replace, f.By, 1)), 0o600)
}

// copied returns a copy of the directory that a test may change.
func copied(t *testing.T, directory string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "bridge")
	must.Do(t, os.CopyFS(to, os.DirFS(directory)))
	return to
}

// run tests the bridge in the directory with so many workers and returns the report and what was printed.
func run(t *testing.T, binary, directory, jobs string, more ...string) (*reports.Report, string) {
	t.Helper()
	cmd := exec.Command(binary, slices.Concat([]string{"run", "--config", "bridgecheck.yaml", "--jobs", jobs, "--report-dir", "report"}, more)...)
	cmd.Dir = directory
	printed, err := cmd.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	must.Assert(t, err == nil || errors.As(err, &exit), "%v", err)
	data, err := os.ReadFile(filepath.Join(directory, "report", "report.json"))
	must.Assert(t, err == nil, "%v\n%s", err, printed)
	report := &reports.Report{}
	must.Do(t, json.Unmarshal(data, report))
	return report, string(printed)
}

// verdict returns the verdict on a clause, or "".
func verdict(r *reports.Report, id string) reports.Verdict {
	for _, result := range r.Results {
		if result.ID == id {
			return result.Verdict
		}
	}
	return ""
}

// The example of the npm package, which people copy, controls a mock, whichever of its two lines comes first.
func TestTheMockOfTheNpmPackage(t *testing.T) {
	node, err := exec.LookPath("node")
	must.Need(t, err == nil, "SKIPPED: node is not installed")
	late := filepath.Join(t.TempDir(), "late")
	script := "#!/bin/bash\nexec '" + program.Build(t) + `' "$@" 2> >(sleep 0.3; cat >&2)` + "\n"
	must.Do(t, os.WriteFile(late, []byte(script), 0o700))
	for name, binary := range map[string]string{"as it is": program.Build(t), "with a late stderr": late} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(node, "--test", "--test-timeout=20000", "example/")
			cmd.Dir = "../../packaging/npm"
			cmd.Env = append(os.Environ(), "BRIDGECHECK="+binary)
			out, err := cmd.CombinedOutput()
			must.Expect(t, err == nil, "%v\n%s", err, out)
		})
	}
}
