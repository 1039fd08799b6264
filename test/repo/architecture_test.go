package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

const architecture = "docs/architecture.md"

var quoted = regexp.MustCompile("`([^`]+)`")

func TestEveryPackageIsOnTheMap(t *testing.T) {
	_, rows, ok := strings.Cut(read(t, architecture), "## Map\n")
	must.Assert(t, ok, "%s has no map", architecture)
	rows, _, _ = strings.Cut(rows, "\n## ")
	var shown []string
	for line := range strings.Lines(rows) {
		if strings.HasPrefix(line, "| `") {
			shown = append(shown, quoted.FindStringSubmatch(line)[1])
		}
	}
	all := packages(t)
	for _, name := range all {
		must.Expect(t, slices.Contains(shown, name),
			"%s is not on the map: add \"| `%s` | what it holds |\" to %s", name, name, architecture)
	}
	for _, name := range shown {
		must.Expect(t, slices.Contains(all, name), "%s shows the package %s, which does not exist", architecture, name)
	}
	must.Expect(t, len(shown) == len(slices.Compact(slices.Sorted(slices.Values(shown)))), "%s shows a package twice", architecture)
}

// A step of a walk names a file, then what in it the step is about.
func TestTheWalksNameWhatExists(t *testing.T) {
	_, walks, ok := strings.Cut(read(t, architecture), "\n## A call through the bridge\n")
	must.Assert(t, ok, "%s has no walk through the bridge", architecture)
	steps := regexp.MustCompile(`(?m)^\d+\. `).Split(walks, -1)[1:]
	must.Expect(t, len(steps) >= 15, "the walks have %d steps", len(steps))
	for _, step := range steps {
		step, _, _ = strings.Cut(step, "\n## ")
		file, names := "", 0
		for _, m := range quoted.FindAllStringSubmatch(step, -1) {
			switch {
			case path.Ext(m[1]) == ".go":
				if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
					t.Errorf("%s names the file %s: %v", architecture, m[1], err)
				} else {
					file = m[1]
				}
			case file == "":
				t.Errorf("a step names %s and no file before it: %s", m[1], step)
			case !slices.Contains(declared(t, file), m[1]):
				t.Errorf("%s has no %s, which a step of %s names", file, m[1], architecture)
			default:
				names++
			}
		}
		must.Expect(t, names != 0, "a step names nothing: %s", step)
	}
}

// declared lists the top-level names of a file, methods as Type.Method.
func declared(t *testing.T, name string) []string {
	t.Helper()
	file := must.Get(parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution))(t)
	var names []string
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, strings.TrimPrefix(receiver(d)+"."+d.Name.Name, "."))
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver names the type that a method is of; a function has none.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	return strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")
}
