package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// parserName is how functions are called here that read texts of others.
var parserName = regexp.MustCompile(`^([pP]arse|[dD]ecode|[uU]nmarshal|[rR]ead)([A-Z]|d?$)`)

// unfuzzed are packages with such functions that need no fuzz target of their own, and why.
var unfuzzed = map[string]string{
	"internal/inmemory":                "what it reads it understands nothing of",
	"internal/starter/go":              "it is the user's own from the first day on, and its tests are part of it",
	"suites/areas/auth":                "it reads tokens that the run made, or that its user gave",
	"suites/contract":                  "it reads the contract, which is part of the program",
	"suites/input/traps":               "it reads its own values",
	"suites/scenario":                  "it reads what stands in the checks",
	"internal/selftest/mutants":        "it reads what the reference bridge says",
	"internal/selftest/mutants/tokens": "it reads tokens that the selftest made",
	"internal/selftest/reach":          "it reads what the selftest's own bridges and checks send",
}

// Texts from outside are read by functions that a fuzzer tries, in the package of the function. `make fuzz` runs them all.
func TestParsersHaveFuzzTargets(t *testing.T) {
	parsers, fuzzed := map[string]string{}, map[string]bool{}
	for _, s := range sources(t) {
		file := must.Get(parser.ParseFile(token.NewFileSet(), s.Name, read(t, s.Name), parser.SkipObjectResolution))(t)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			switch {
			case !ok:
			case s.Test:
				fuzzed[s.Package] = fuzzed[s.Package] || f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz")
			case parserName.MatchString(f.Name.Name) && takesText(f):
				parsers[s.Package] = path.Base(s.Name) + " " + f.Name.Name
			}
		}
	}
	if len(parsers) < 20 {
		t.Fatalf("only %d packages have parsers: this proves nothing", len(parsers))
	}
	for pkg, name := range parsers {
		if _, excepted := unfuzzed[pkg]; fuzzed[pkg] == excepted {
			t.Errorf("%s (%s): a fuzz target: %t, listed in unfuzzed: %t; write a target, or list the package with the reason", pkg, name, fuzzed[pkg], excepted)
		}
	}
	for pkg := range unfuzzed {
		if parsers[pkg] == "" {
			t.Errorf("%s has no parser: remove it from unfuzzed", pkg)
		}
	}
}

// takesText reports whether a parameter is bytes, or a text that is no path of a file.
func takesText(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		switch of := p.Type.(type) {
		case *ast.ArrayType:
			element, ok := of.Elt.(*ast.Ident)
			return ok && element.Name == "byte" && of.Len == nil
		case *ast.Ident:
			return of.Name == "string" && !slices.ContainsFunc(p.Names, func(n *ast.Ident) bool {
				return slices.Contains([]string{"path", "file", "dir", "name"}, n.Name)
			})
		}
		return false
	})
}
