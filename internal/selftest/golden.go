package selftest

import (
	"bufio"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
)

// goldenFiles hold one file for each area and in it one line for each mutant: its name and the clauses that fail, without
// those that may fail.
//
//go:embed testdata/golden
var goldenFiles embed.FS

const goldenDir = "testdata/golden"

// Sets are golden sets: by the name of a mutant the clauses that fail, first that which its report begins with.
type Sets map[string][]string

// first is the clause that the report of a mutant begins with; "" where nothing fails but by chance.
func (s Sets) first(mutant string) string {
	if len(s[mutant]) == 0 {
		return ""
	}
	return s[mutant][0]
}

// figures is the line of the page on trust that says how many reports begin with what is broken.
func (s Sets) figures() string {
	all, right := mutants.Mutants(), 0
	for _, m := range all {
		right += count(slices.Contains(m.Breaks, s.first(m.Name)))
	}
	return fmt.Sprintf("Of %d mutants, the reports of %d begin with a clause that the mutant breaks.", len(all), right)
}

// inTrustPage finds the line.
var inTrustPage = regexp.MustCompile(`(?m)^Of \d+ mutants, the reports .*$`)

// trustPage is the page on trust, in the source tree.
const trustPage = "docs/trust.md"

// Golden returns the golden sets that this program was built with.
func Golden() (Sets, error) {
	dir, err := fs.Sub(goldenFiles, goldenDir)
	if err != nil {
		return nil, err
	}
	return readGolden(dir)
}

// readGolden reads the golden sets in a directory.
func readGolden(dir fs.FS) (Sets, error) {
	files, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	sets := Sets{}
	for _, name := range files {
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read the golden sets: %w", err)
		}
		lines := bufio.NewScanner(strings.NewReader(string(data)))
		for lines.Scan() {
			mutant, ids, ok := strings.Cut(lines.Text(), ":")
			if !ok {
				return nil, fmt.Errorf("read the golden sets: %s: %q is not NAME: CLAUSES", name, lines.Text())
			}
			sets[mutant] = strings.Fields(ids)
		}
	}
	return sets, nil
}

// files returns the content of the golden files by name, with the mutants in the order of their entries. What belongs to
// no mutant is left out.
func (s Sets) files() map[string]string {
	files := map[string]string{}
	for _, area := range mutants.Areas() {
		var b strings.Builder
		for _, m := range area.Mutants {
			if ids, ok := s[m.Name]; ok {
				fmt.Fprintf(&b, "%s: %s\n", m.Name, strings.Join(ids, " "))
			}
		}
		files[area.Name+".txt"] = b.String()
	}
	return files
}

// write writes the golden files into a directory.
func (s Sets) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the golden sets: %w", err)
	}
	for name, text := range s.files() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the golden sets: %w", err)
		}
	}
	return nil
}

// setsOf returns the golden sets of the mutants among the rows.
func setsOf(rows []Row) Sets {
	sets := Sets{}
	for _, r := range rows {
		if !r.Correct {
			sets[r.Name] = r.golden()
		}
	}
	return sets
}

// WriteGolden writes the golden sets of a matrix into a directory.
func (m Matrix) WriteGolden(dir string) error { return setsOf(m.Rows).write(dir) }

// The reasons why Update writes nothing.
var (
	ErrNoSourceTree = errors.New("the working directory is not in the source tree of bridgecheck")
	ErrSurvivor     = errors.New("a mutant that is not killed has no golden set")
)

// Update writes the golden sets of the rows, and with them the kill matrix and the figures, into the source tree around the working
// directory. The golden sets of other mutants stay as they are. Without rows it brings the kill matrix up to date. Its
// errors wrap ErrNoSourceTree, ErrSurvivor, or an error of the file system.
func Update(rows ...Row) error {
	root, err := sourceTree()
	if err != nil {
		return err
	}
	for _, r := range rows {
		if !r.Correct && !r.Killed() {
			return fmt.Errorf("update %s: %w: %s", r.Name, ErrSurvivor, cmp.Or(r.Problem, strings.Join(r.Missed(), " ")+" did not fail"))
		}
	}
	dir := filepath.Join(root, "internal", "selftest", goldenDir)
	sets, err := readGolden(os.DirFS(dir))
	if err != nil {
		return err
	}
	maps.Copy(sets, setsOf(rows))
	if err := sets.write(dir); err != nil {
		return err
	}
	var page strings.Builder
	if err := writeKillMatrix(&page, sets); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, killMatrix), []byte(page.String()), 0o644); err != nil {
		return fmt.Errorf("write the kill matrix: %w", err)
	}
	trust, err := os.ReadFile(filepath.Join(root, trustPage))
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return os.WriteFile(filepath.Join(root, trustPage), inTrustPage.ReplaceAll(trust, []byte(sets.figures())), 0o644)
}

// sourceTree returns the root of the source tree around the working directory.
func sourceTree() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "internal", "selftest", goldenDir)); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNoSourceTree
		}
		dir = parent
	}
}

// Drift returns a line for each mutant whose outcome differs from its golden set.
func (m Matrix) Drift(golden Sets) []string {
	var lines []string
	for _, r := range m.Rows {
		want, ok := golden[r.Name]
		switch {
		case r.Correct:
		case !ok:
			lines = append(lines, fmt.Sprintf("%s has no golden set: %s", r.Name, updateCommand(r.Name)))
		case !r.matches(want):
			lines = append(lines, fmt.Sprintf("%s: %v failed, the golden set says %v; if this is right: %s", r.Name, r.Failed, want, updateCommand(r.Name)))
		}
	}
	return lines
}

// updateCommand is the command that updates the golden set of a mutant and the kill matrix.
func updateCommand(mutant string) string {
	return "go run ./cmd/bridgecheck selftest --mutant " + mutant + " --update"
}

// asExpected reports whether no clause failed of a correct variant, or the clauses of its golden set of a mutant.
func (r Row) asExpected(golden Sets) bool {
	if r.Correct {
		return !r.FalseAlarm()
	}
	return r.Killed() && r.matches(golden[r.Name])
}

// outdated returns a line for each way in which the golden sets do not fit the entries, with the command that fixes it.
func (s Sets) outdated() []string {
	var lines []string
	entries := map[string]bool{}
	for _, m := range mutants.Mutants() {
		entries[m.Name] = true
		set, ok := s[m.Name]
		switch missing := except(m.Breaks, set); {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s has no golden set: %s", m.Name, updateCommand(m.Name)))
		case len(missing) > 0:
			lines = append(lines, fmt.Sprintf("%s breaks %s, which its golden set lacks: %s", m.Name, strings.Join(missing, " "), updateCommand(m.Name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !entries[name] {
			lines = append(lines, fmt.Sprintf("the golden sets hold %s, which is no mutant: %s", name, killMatrixCommand))
		}
	}
	return lines
}
