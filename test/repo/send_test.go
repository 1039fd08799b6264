package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A request passes each file once on its way to the bridge: in each package that it goes through, no file that it has left
// is entered again. TestImportRules holds the order of the packages.
func TestSendPassesEachFileOnce(t *testing.T) {
	for _, stop := range []struct{ dir, of, method string }{
		{"suites/check", "Client", "Send"}, {"suites/patience", "Client", "Send"}, {"suites/client", "Client", "Exchange"},
	} {
		calls := callsBetweenFiles(t, stop.dir, stop.of, stop.method)
		must.Expect(t, len(calls) > 0, "%s: %s.%s calls nothing", stop.dir, stop.of, stop.method)
		for _, file := range slices.Sorted(maps.Keys(calls)) {
			way := wayBack(calls, file, file, nil)
			must.Expect(t, way == nil, "%s: a request of %s.%s enters %s again: %s", stop.dir, stop.of, stop.method, file, strings.Join(way, ", then "))
		}
	}
}

// call is a function of another file that a file calls.
type call struct{ function, file string }

// callsBetweenFiles follows the calls of a method within its package, and returns by file the functions of other files that
// are called there.
func callsBetweenFiles(t *testing.T, dir, of, method string) map[string][]call {
	t.Helper()
	set := token.NewFileSet()
	parsed := must.Get(filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go")))(t)
	var files []*ast.File
	for _, name := range parsed {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(set, name, nil, 0))(t)
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	// What other packages declare is unknown, which leaves errors: the package's own calls are all that counts.
	(&types.Config{Importer: unknown{}, Error: func(error) {}}).Check(dir, set, files, info)
	bodies := map[types.Object]*ast.FuncDecl{}
	var next []types.Object
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				bodies[info.Defs[f.Name]] = f
				if f.Name.Name == method && receiver(f) == of {
					next = append(next, info.Defs[f.Name])
				}
			}
		}
	}
	calls, seen := map[string][]call{}, map[types.Object]bool{}
	for len(next) > 0 {
		function := next[0]
		next = next[1:]
		if seen[function] {
			continue
		}
		seen[function] = true
		from := filepath.Base(set.Position(bodies[function].Pos()).Filename)
		ast.Inspect(bodies[function], func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if !ok || bodies[info.Uses[name]] == nil {
				return true
			}
			called := info.Uses[name]
			next = append(next, called)
			if to := filepath.Base(set.Position(bodies[called].Pos()).Filename); to != from {
				calls[from] = append(calls[from], call{name.Name, to})
			}
			return true
		})
	}
	return calls
}

// wayBack is a way by which calls that leave a file come to another one.
func wayBack(calls map[string][]call, from, to string, seen []string) []string {
	for _, c := range calls[from] {
		step := from + " calls " + c.function + " of " + c.file
		if c.file == to {
			return []string{step}
		}
		if slices.Contains(seen, c.file) {
			continue
		}
		seen = append(seen, c.file)
		if rest := wayBack(calls, c.file, to, seen); rest != nil {
			return append([]string{step}, rest...)
		}
	}
	return nil
}

// unknown imports packages without what they declare.
type unknown struct{}

func (unknown) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, name[strings.LastIndex(name, "/")+1:])
	p.MarkComplete()
	return p, nil
}
