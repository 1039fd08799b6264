package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A run must not depend on the selftest: other commands use the names of the mutants at most.
func TestOnlyTheSelftestCommandImportsSelftest(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := false
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue // tests may use what they test against
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly))(t)
		for _, imported := range file.Imports {
			if filepath.Base(imported.Path.Value) != `selftest"` {
				continue
			}
			if found = true; name != "selftest.go" {
				t.Errorf("%s imports %s", name, imported.Path.Value)
			}
		}
	}
	if !found {
		t.Error("no file imports selftest")
	}
}
