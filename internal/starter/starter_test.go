package starter

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Each directory is a starter, and holds what every starter has.
func TestStartersAreComplete(t *testing.T) {
	entries := must.Get(files.ReadDir("."))(t)
	var directories []string
	for _, entry := range entries {
		directories = append(directories, entry.Name())
	}
	got, want := slices.Sorted(slices.Values(Languages())), directories
	must.Expect(t, slices.Equal(got, want), "the languages are %v, the directories %v", got, want)
	for _, s := range All() {
		names := must.Get(s.Write(filepath.Join(t.TempDir(), "a", "b")))(t)
		for _, want := range []string{"README.md", "bridgecheck.yaml", ".gitignore", ".github/workflows/bridge.yml"} {
			must.Expect(t, slices.Contains(names, want), "the starter %s has no %s: %v", s.Language, want, names)
		}
		for _, name := range names {
			for _, left := range []string{"bridgecheck-report", "node_modules", "__pycache__"} {
				must.Expect(t, !strings.Contains(name, left), "the starter %s has %s, which a run left there: remove it", s.Language, name)
			}
		}
	}
}

// The workflows give the action only inputs that it has, and run the starter's own tests.
func TestWorkflows(t *testing.T) {
	var action struct{ Inputs map[string]any }
	data, err := os.ReadFile("../../action.yml")
	if err == nil {
		err = yaml.Unmarshal(data, &action)
	}
	must.Assert(t, err == nil && action.Inputs["exec"] != nil, "action.yml has the inputs %v: %v", action.Inputs, err)
	for _, s := range All() {
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Uses, Run string
					With      map[string]any
				}
			}
		}
		data, err := files.ReadFile(s.Language + "/.github/workflows/bridge.yml")
		if err == nil {
			err = yaml.Unmarshal(data, &workflow)
		}
		if err != nil {
			t.Errorf("%s: %v", s.Language, err)
			continue
		}
		tested, ran := false, false
		for _, step := range workflow.Jobs["bridge"].Steps {
			ran = ran || step.Run == s.Test
			if !strings.Contains(step.Uses, "/bridgecheck@") {
				continue
			}
			tested = true
			for input := range step.With {
				must.Expect(t, action.Inputs[input] != nil, "%s: the action has no input %s", s.Language, input)
			}
		}
		must.Expect(t, ran && tested, "%s: the workflow has to run %q and the action", s.Language, s.Test)
	}
}

// What is in the way stays as it is, and nothing is written beside it.
func TestWriteLeavesTheDirectoryAsItWas(t *testing.T) {
	s, _ := Find("node")
	for name, prepare := range map[string]func(dir string) error{
		"a file":                    func(dir string) error { return os.WriteFile(filepath.Join(dir, "site.js"), []byte("mine"), 0o600) },
		"a link that leads nowhere": func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "site.js")) },
		"a file for a directory":    func(dir string) error { return os.WriteFile(filepath.Join(dir, ".github"), []byte("mine"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, prepare(dir))
			before := tree(t, dir)
			names, err := s.Write(dir)
			must.Assert(t, err != nil, "want an error, it wrote %v", names)
			if exists := (*ExistsError)(nil); name != "a file for a directory" && (!errors.As(err, &exists) || exists.Name != filepath.Join(dir, "site.js")) {
				t.Errorf("want an ExistsError of site.js, got %v", err)
			}
			after := tree(t, dir)
			must.Expect(t, slices.Equal(before, after), "the directory had %v, and has %v", before, after)
		})
	}
	t.Run("none", func(t *testing.T) { // the positive control
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
		names := must.Get(s.Write(dir))(t)
		for _, name := range append(names, "mine") {
			_, err := os.Stat(filepath.Join(dir, name))
			must.Expect(t, err == nil, "%v", err)
		}
	})
}

// tree lists all that is below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	must.Do(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		all = append(all, name)
		return err
	}))
	return all
}
