// Package repo holds the tests of the repository as a whole: which package imports which, and that the two guides for
// contributors say what is true.
//
// It tests no behaviour. Its tests read the source tree, so that they also run in a copy of it without git.
package repo

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// root is the repository, from this package.
const root = "../.."

// modulePath is the path of the module in go.mod.
func modulePath(t *testing.T) string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(root, "go.mod")))(t)
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	t.Fatal("go.mod names no module")
	return ""
}

// untracked are what builds and runs leave behind, as .gitignore has it: in the root, and in every directory.
var (
	untracked           = []string{"bin", "dist", "bridgecheck-report"}
	untrackedEverywhere = []string{".git", "node_modules"}
)

// files lists every file of the repository by its path from the root, with slashes.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	must.Do(t, fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(untracked, name) || slices.Contains(untrackedEverywhere, d.Name()) { // a worktree has .git as a file
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			all = append(all, name)
		}
		return nil
	}))
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(root, filepath.FromSlash(name))))(t)
	return string(data)
}

// source is a Go file of the repository.
type source struct {
	Name    string // its path from the root
	Package string // its directory from the root
	Imports []string
	Test    bool
}

// sources lists the Go files of the module. Imports of the module's own packages are paths from the root.
func sources(t *testing.T) []source {
	t.Helper()
	module := modulePath(t) + "/"
	var all []source
	for _, name := range files(t) {
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		text := read(t, name)
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly))(t)
		s := source{Name: name, Package: path.Dir(name), Test: strings.HasSuffix(name, "_test.go")}
		for _, spec := range file.Imports {
			imported := must.Get(strconv.Unquote(spec.Path.Value))(t)
			s.Imports = append(s.Imports, strings.TrimPrefix(imported, module))
		}
		all = append(all, s)
	}
	must.Assert(t, len(all) >= 100, "%s has only %d Go files: the tests of this package would prove nothing", root, len(all))
	return all
}

// packages lists the directories that hold Go files.
func packages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, s := range sources(t) {
		all = append(all, s.Package)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
