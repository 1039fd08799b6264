package selftest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
)

func loadGolden(t *testing.T) Sets {
	t.Helper()
	return must.Get(Golden())(t)
}

func TestGoldenSetsAreUpToDate(t *testing.T) {
	golden := loadGolden(t)
	lines := golden.outdated()
	for _, line := range lines {
		t.Error(line)
	}
	if len(lines) > 0 {
		return
	}
	want, have := golden.files(), map[string]string{}
	files := must.Get(fs.Glob(goldenFiles, goldenDir+"/*"))(t)
	for _, name := range files {
		text := must.Get(fs.ReadFile(goldenFiles, name))(t)
		have[filepath.Base(name)] = string(text)
	}
	must.Expect(t, maps.Equal(have, want), "the golden files are not one for each area in the order of the entries: %s", killMatrixCommand)
}

func TestKillMatrixIsUpToDate(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join("..", "..", killMatrix)))(t)
	var want strings.Builder
	must.Do(t, WriteKillMatrix(&want))
	must.Expect(t, string(page) == want.String(), "%s does not fit the mutants and their golden sets: %s", killMatrix, killMatrixCommand)
	page = must.Get(os.ReadFile(filepath.Join("..", "..", trustPage)))(t)
	line := loadGolden(t).figures()
	must.Expect(t, strings.Contains(string(page), line+"\n"), "%s lacks %q: %s", trustPage, line, killMatrixCommand)
}

// Every way to forget the golden set of a mutant ends in the command that fixes it.
func TestOutdatedGoldenSetsNameTheCommand(t *testing.T) {
	first := mutants.Mutants()[0]
	for _, c := range []struct {
		name   string
		change func(Sets)
		line   string
	}{
		{"a mutant without a set", func(s Sets) { delete(s, first.Name) },
			first.Name + " has no golden set: go run ./cmd/bridgecheck selftest --mutant " + first.Name + " --update"},
		{"a mutant that breaks more", func(s Sets) { s[first.Name] = nil },
			first.Name + " breaks " + strings.Join(first.Breaks, " ") + ", which its golden set lacks: go run ./cmd/bridgecheck selftest --mutant " + first.Name + " --update"},
		{"a set without a mutant", func(s Sets) { s["gone"] = []string{"list/page-size"} },
			"the golden sets hold gone, which is no mutant: go run ./cmd/bridgecheck selftest --markdown --update"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sets := Sets{}
			for _, m := range mutants.Mutants() {
				sets[m.Name] = m.Breaks
			}
			c.change(sets)
			lines := sets.outdated()
			must.Expect(t, slices.Equal(lines, []string{c.line}), "the lines are %q, not %q", lines, c.line)
		})
	}
}

// An update writes the set of the mutant and the kill matrix, and leaves the sets of all others.
func TestUpdateOfOneMutant(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "internal", "selftest", goldenDir)
	must.Do(t, os.CopyFS(dir, os.DirFS(goldenDir)))
	must.Do(t, os.Mkdir(filepath.Join(root, "docs"), 0o755))
	must.Do(t, os.WriteFile(filepath.Join(root, trustPage), []byte("Of 0 mutants, the reports are old.\n"), 0o644))
	t.Chdir(dir)
	m := mutants.Mutants()[0]
	row := newRow(m)
	if err := Update(row); !errors.Is(err, ErrSurvivor) {
		t.Errorf("the error on a survivor is %v", err)
	}
	row.Failed = slices.Concat(m.Breaks, []string{"mcp/ping"})
	must.Do(t, Update(row))
	sets := must.Get(readGolden(os.DirFS(dir)))(t)
	want := maps.Clone(loadGolden(t))
	want[m.Name] = row.Failed
	must.Expect(t, maps.EqualFunc(sets, want, slices.Equal), "the sets are %v", sets)
	page, err := os.ReadFile(filepath.Join(root, killMatrix))
	must.Expect(t, err == nil && strings.Contains(string(page), m.Name), "the kill matrix lacks %s: %v", m.Name, err)
}

func TestUpdateOutsideTheSourceTree(t *testing.T) {
	t.Chdir(t.TempDir())
	err := Update()
	must.Expect(t, errors.Is(err, ErrNoSourceTree), "the error is %v", err)
}
