package selftest

import (
	"bufio"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// goldenSets hold, one file an area and one line a mutant, the clauses that fall: the meant ones and all others
// but those that chance decides.
//
//go:embed testdata/golden
var goldenSets embed.FS

const goldenDir = "testdata/golden"

// Golden gives the checked-in set of falling clauses of every mutant that has one.
func Golden() (map[string][]string, error) {
	files, err := goldenSets.ReadDir(goldenDir)
	if err != nil {
		return nil, err
	}
	sets := map[string][]string{}
	for _, f := range files {
		data, err := goldenSets.ReadFile(path.Join(goldenDir, f.Name()))
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(strings.NewReader(string(data)))
		for lines.Scan() {
			name, ids, ok := strings.Cut(lines.Text(), ":")
			if !ok {
				return nil, fmt.Errorf("%s: %q is not NAME: CLAUSES", f.Name(), lines.Text())
			}
			sets[name] = strings.Fields(ids)
		}
	}
	return sets, nil
}

// Drift says in a line each which mutants fall otherwise than their golden sets say, leaving to chance what may fall.
func (m Matrix) Drift(golden map[string][]string) []string {
	var lines []string
	for _, r := range m.Rows {
		want, ok := golden[r.Name]
		switch {
		case r.Correct:
		case !ok:
			lines = append(lines, r.Name+": has no golden set")
		case !r.fellAs(want):
			lines = append(lines, fmt.Sprintf("%s: fell %v, the golden set says %v", r.Name, r.Fell, want))
		}
	}
	return lines
}

// fellAs tells whether a mutant fell as its golden set says.
func (r Row) fellAs(golden []string) bool {
	return slices.Equal(except(golden, r.Free), except(r.Fell, r.Free))
}

// asExpected tells whether a correct variant was left in peace, or a mutant fell as its golden set says.
func (r Row) asExpected(golden map[string][]string) bool {
	if r.Correct {
		return !r.FalseAlarm()
	}
	return r.Killed() && r.fellAs(golden[r.Name])
}

// WriteGolden writes the golden sets of a matrix below dir.
func (m Matrix) WriteGolden(dir string) error {
	byArea := map[string]*strings.Builder{}
	for _, r := range m.Rows {
		if r.Correct {
			continue
		}
		area, _, _ := strings.Cut(r.Meant[0], "/")
		if byArea[area] == nil {
			byArea[area] = &strings.Builder{}
		}
		fmt.Fprintf(byArea[area], "%s: %s\n", r.Name, strings.Join(except(r.Fell, r.Free), " "))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the golden sets: %w", err)
	}
	for area, b := range byArea {
		if err := os.WriteFile(filepath.Join(dir, area+".txt"), []byte(b.String()), 0o644); err != nil {
			return fmt.Errorf("write the golden sets: %w", err)
		}
	}
	return nil
}
