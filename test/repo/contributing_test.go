package repo

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

const contributing = "docs/contributing.md"

// edit is a change that the guide describes: text goes into a file after the line that holds a mark, or to its end.
type edit struct {
	file, after, text string
}

// walk is a walk-through of the guide.
type walk struct {
	edits    []edit
	commands []string
}

var (
	anEdit    = regexp.MustCompile("(?s)(?:Add\\s+to|Append\\s+to|Create)\\s+`([^`]+)`(?:\\s+after\\s+`([^`]+)`)?:\n\n```\\w+\n(.*?)```\n")
	someLines = regexp.MustCompile("(?s)\n```sh\n(.*?)```\n")
)

// readGuide returns the walk-throughs of the guide by title.
func readGuide(t *testing.T) map[string]walk {
	t.Helper()
	walks := map[string]walk{}
	for _, section := range strings.Split(read(t, contributing), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		var w walk
		for _, m := range anEdit.FindAllStringSubmatch(text, -1) {
			w.edits = append(w.edits, edit{m[1], m[2], m[3]})
		}
		for _, m := range someLines.FindAllStringSubmatch(text, -1) {
			w.commands = append(w.commands, strings.Split(strings.TrimSpace(m[1]), "\n")...)
		}
		if blocks := strings.Count(text, "```") / 2; blocks != len(w.edits)+len(someLines.FindAllString(text, -1)) {
			t.Errorf("%s, %q: of its %d blocks, some say neither where they go nor that they are commands", contributing, title, blocks)
		}
		walks[title] = w
	}
	return walks
}

// apply changes the file of a copy of the tree.
func (e edit) apply(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, filepath.FromSlash(e.file))
	old, err := os.ReadFile(name)
	switch {
	case os.IsNotExist(err) && e.after == "": // a new file
	case err != nil:
		t.Fatal(err)
	}
	text := string(old) + e.text
	if e.after != "" {
		before, rest, ok := strings.Cut(string(old), e.after)
		must.Assert(t, ok && !strings.Contains(rest, e.after),
			"%s: %s does not hold %q once: name another line in the guide", contributing, e.file, e.after)
		line, rest, _ := strings.Cut(rest, "\n")
		text = before + e.after + line + "\n" + e.text + rest
	}
	must.Do(t, os.WriteFile(name, []byte(text), 0o644))
}

// copyTree copies the repository.
func copyTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files(t) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must.Do(t, os.WriteFile(to, []byte(read(t, name)), 0o644))
	}
	return dir
}

// inTree runs a command line in a copy of the tree.
func inTree(t *testing.T, dir, line string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), guideFlags(t)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// guideFlags are the flags that the guide sets first. The Makefile has the same: with them the build cache knows the packages
// from make, and from other copies of the tree.
func guideFlags(t *testing.T) []string {
	t.Helper()
	m := regexp.MustCompile(`\nexport (CGO_ENABLED=\d) GOFLAGS='([^'\n]+)'\n`).FindStringSubmatch(read(t, contributing))
	must.Assert(t, m != nil, "%s does not export CGO_ENABLED and GOFLAGS", contributing)
	return []string{m[1], "GOFLAGS=" + m[2]}
}

func TestTheGuideHasTheFlagsOfMake(t *testing.T) {
	flags, makefile := guideFlags(t), read(t, "Makefile")
	for _, line := range []string{"\nFLAGS := " + strings.TrimPrefix(flags[1], "GOFLAGS=") + "\n", "\nexport CGO_ENABLED := " + strings.TrimPrefix(flags[0], "CGO_ENABLED=") + "\n"} {
		must.Expect(t, strings.Contains(makefile, line), "the Makefile has no line %q, which %s has", strings.TrimSpace(line), contributing)
	}
}

func TestTheGuideNamesLinesThatAreThere(t *testing.T) {
	guide, dir := readGuide(t), copyTree(t)
	for _, title := range slices.Sorted(maps.Keys(guide)) {
		for _, e := range guide[title].edits {
			e.apply(t, dir)
		}
	}
}

// A fork moves the module by the line of the guide.
func TestAMovedModuleResolves(t *testing.T) {
	must.Need(t, !testing.Short(), "THE MODULE WAS NOT MOVED: -short is set")
	for _, tool := range []string{"sed", "grep", "xargs", "gofmt"} {
		_, err := exec.LookPath(tool)
		must.Need(t, err == nil, "SKIPPED: the module was not moved: %v", err)
	}
	dir, old := copyTree(t), modulePath(t)
	for _, line := range readGuide(t)["Your own module path"].commands {
		out, err := inTree(t, dir, line)
		must.Assert(t, err == nil, "%s: %v\n%s", line, err, out)
	}
	out, err := inTree(t, dir, "grep -rlI '"+old+"' .")
	must.Expect(t, err != nil, "these still name %s:\n%s", old, out)
	// A move changes imports alone: that each is found, in tests as well, says what a build would in a hundredth of the time.
	out, err = inTree(t, dir, "go list -m && go list -test -deps ./... >/dev/null")
	must.Expect(t, err == nil && strings.HasPrefix(out, "example.org/you/bridgecheck\n"), "the moved module does not resolve: %v\n%s", err, out)
}

// The tests that report what was forgotten: they are cheap and part of every `go test`. The second ones are for what only
// shows once there is a check and a mutant.
const (
	alwaysRun = `go test -run 'TestChecksAndClausesAgree|TestReleasedIDsStay|TestEveryMustHasAMutant|TestEveryKindOfFaultHasItsTest|` +
		`TestEveryFieldTypeHasAFixture|TestTheTablesAreDocumented|TestAuthenticationKindsAgree|TestEveryFormatIsComplete|TestFormatsAgree/lines' ` +
		`./suites/areas ./suites/contract ./internal/selftest/mutants ./mockdrupal ./test/repo ./bridge ./reports/format`
	alwaysRunOnMutants = `go test -run 'TestChecksAndClausesAgree|TestGoldenSetsAreUpToDate|TestKillMatrixIsUpToDate' ./suites/areas ./internal/selftest`
)

// The guide's walk-throughs are applied to one copy of the tree: first in part, then as a whole, then with their commands.
// What is missing is reported each time, with the line or the command that fixes it.
func TestWalkThroughs(t *testing.T) {
	must.Need(t, !testing.Short(), "NO WALK-THROUGH OF docs/contributing.md WAS TRIED: -short is set")
	guide := readGuide(t)
	titles := []string{"A check", "A mutant", "A fault of the site", "A field type", "A report format"}
	for _, title := range titles {
		w := guide[title]
		must.Assert(t, len(w.edits) > 0 && len(w.commands) > 0, "%s has no complete walk-through %q", contributing, title)
	}
	dir := copyTree(t)
	// reported expects that these tests fail, each once and no others, and what they say.
	reported := func(line string, tests []string, says ...string) {
		t.Helper()
		output, err := inTree(t, dir, line)
		var failed []string
		for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindAllStringSubmatch(output, -1) {
			failed = append(failed, m[1])
		}
		if slices.Sort(failed); !slices.Equal(failed, slices.Sorted(slices.Values(tests))) {
			t.Errorf("%s fails in %v, expected one failure for each omission: %v", line, failed, tests)
		}
		must.Expect(t, err != nil, "%s passes although something is missing", line)
		for _, text := range says {
			must.Expect(t, strings.Contains(output, text), "%s does not say %q:\n%s", line, text, output)
		}
	}

	const unread = "Verdicts: linesVerdicts"
	started := map[string]int{"A check": 2, "A fault of the site": 2, "A field type": 1, "A report format": 2} // edits
	for title, n := range started {
		for _, e := range guide[title].edits[:n] {
			e.text = strings.Replace(e.text, ", "+unread, "", 1)
			e.apply(t, dir)
		}
	}
	const capability = "  auth-key: callers authenticate by a key\n"
	edit{"suites/contract/contract.yaml", "  auth-cookie: callers", capability}.apply(t, dir)
	reported(alwaysRun,
		[]string{"TestAuthenticationKindsAgree", "TestChecksAndClausesAgree", "TestReleasedIDsStay", "TestEveryMustHasAMutant", "TestEveryKindOfFaultHasItsTest",
			"TestEveryFieldTypeHasAFixture", "TestTheTablesAreDocumented", "TestEveryFormatIsComplete", "TestFormatsAgree"},
		"nothing knows key: add `{Name: \"key\", Header: …, Secret: …},` to Kinds in internal/authkind/authkind.go",
		"the clause describe/only-tool has no check: add `{ID: \"describe/only-tool\"",
		"describe/only-tool is not in testdata/ids.txt: go test ./suites/contract -update",
		"MUST describe/only-tool: no mutant breaks it: add one to internal/selftest/mutants/describe.go",
		"no test sees the fault no-content-type on the connection: add a row for it to faultCases in mockdrupal/fault_test.go",
		"the field type color is on no site: add `color: {drupal: color}`",
		"go generate ./bridge",
		"format \"lines\": add `Verdicts: linesVerdicts`",
		"format \"lines\": add this row to docs/report-formats.md",
		"add `\"lines\": holds(")

	replace(t, dir, "suites/contract/contract.yaml", capability, "")
	for _, title := range titles {
		for _, e := range guide[title].edits[started[title]:] {
			e.apply(t, dir)
		}
	}
	replace(t, dir, "reports/format/format.go", "Write: writeLines", "Write: writeLines, "+unread)
	const noClause = "\t{ID: \"describe/no-clause\", Run: onlyTool},\n"
	edit{"suites/areas/describe/describe.go", `ID: "describe/only-tool"`, noClause}.apply(t, dir)
	reported(alwaysRunOnMutants, []string{"TestChecksAndClausesAgree", "TestGoldenSetsAreUpToDate", "TestKillMatrixIsUpToDate"},
		"the check describe/no-clause has no clause; the nearest is",
		"describe-adds-a-status has no golden set: go run ./cmd/bridgecheck selftest --mutant describe-adds-a-status --update",
		"docs/kill-matrix.md does not fit the mutants and their golden sets: go run ./cmd/bridgecheck selftest --markdown --update")
	replace(t, dir, "suites/areas/describe/describe.go", noClause, "")

	for _, title := range titles {
		for _, line := range guide[title].commands {
			output, err := inTree(t, dir, line)
			must.Expect(t, err == nil, "%s, %q: %s: %v\n%s", contributing, title, line, err, output)
		}
	}
	generated := []string{"suites/contract/testdata/ids.txt", "suites/conformance/specs_test.go", "internal/selftest/testdata/golden/describe.txt", "docs/kill-matrix.md", "docs/trust.md",
		"docs/reference-bridge-tables.md"}
	written := slices.Clone(generated)
	for _, title := range titles {
		for _, e := range guide[title].edits {
			written = append(written, e.file)
		}
	}
	slices.Sort(written)
	changed := changedFiles(t, dir)
	must.Expect(t, slices.Equal(changed, slices.Compact(written)), "the walk-throughs changed %v, the guide and its commands name %v", changed, written)
}

// Adding a check touches one file of the area, the contract with its reasons, and the mutants; commands write the rest.
func TestACheckTouchesFewFiles(t *testing.T) {
	guide := readGuide(t)
	var touched []string
	for _, title := range []string{"A check", "A mutant"} {
		for _, e := range guide[title].edits {
			touched = append(touched, e.file)
		}
	}
	slices.Sort(touched)
	want := []string{"internal/selftest/mutants/describe.go", "suites/areas/describe/describe.go", "suites/contract/contract.yaml", "suites/contract/reasons/describe.yaml"}
	touched = slices.Compact(touched)
	must.Expect(t, slices.Equal(touched, want), "a check touches %v, not %v", touched, want)
}

func replace(t *testing.T, dir, file, old, with string) {
	t.Helper()
	name := filepath.Join(dir, filepath.FromSlash(file))
	text := must.Get(os.ReadFile(name))(t)
	must.Assert(t, bytes.Count(text, []byte(old)) == 1, "%s does not hold %q once", file, old)
	must.Do(t, os.WriteFile(name, bytes.Replace(text, []byte(old), []byte(with), 1), 0o644))
}

// changedFiles lists the files of a copy that differ from the tree's, and those that are new.
func changedFiles(t *testing.T, dir string) []string {
	t.Helper()
	var changed []string
	must.Do(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		old, err := os.ReadFile(filepath.Join(root, file))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if err != nil || !bytes.Equal(old, text) {
			changed = append(changed, filepath.ToSlash(file))
		}
		return nil
	}))
	slices.Sort(changed)
	return changed
}
