package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module writes a module with a package of fuzz targets and goes there.
func module(t *testing.T, tests string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                "module example.org/x\n\ngo 1.24\n",
		"part/part.go":          "package part\n",
		"part/part_test.go":     "package part\n\nimport \"testing\"\n\n" + tests,
		"part/other_test.go":    "//go:build plan9\n\npackage part\n\nimport \"testing\"\n\nfunc FuzzElsewhere(f *testing.F) {}\n",
		"part/outside_test.go":  "package part_test\n\nimport \"testing\"\n\nfunc FuzzOutside(f *testing.F) { f.Fuzz(func(*testing.T, []byte) {}) }\n",
		"part/testdata/x/x.txt": "",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestTargetsAreRunAndCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: no fuzz target is built")
	}
	module(t, "func FuzzInside(f *testing.F) { f.Fuzz(func(*testing.T, []byte) {}) }\n")
	var out strings.Builder
	if err := run(t.Context(), []string{"-time", "50x"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`(?m)^ +5\d inputs  \./part FuzzInside$`, `(?m)^ +5\d inputs  \./part FuzzOutside$`, `(?m)^ +1\d\d inputs in all, to 2 targets in `} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is missing in\n%s", want, &out)
		}
	}
}

func TestAFailureSaysHowToRunItAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: no fuzz target is built")
	}
	module(t, "func FuzzInside(f *testing.F) { f.Add(7); f.Fuzz(func(t *testing.T, n int) { if n != 7 { t.Error(\"seven\") } }) }\n")
	var out strings.Builder
	err := run(t.Context(), []string{"-time", "10000x"}, &out)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 targets failed") || !strings.Contains(err.Error(), "go test -run '^FuzzInside$' ./part") {
		t.Errorf("error %v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "seven") || !strings.Contains(out.String(), "inputs in all, to 2 targets") {
		t.Errorf("printed\n%s", &out)
	}
	if kept, _ := filepath.Glob("part/testdata/fuzz/FuzzInside/*"); len(kept) != 1 {
		t.Errorf("%d inputs are kept", len(kept))
	}
}

// All of this repository's targets are found, with those of the files for this system.
func TestTheRepositorysTargetsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: no fuzz target is built")
	}
	t.Chdir("../../..")
	var out strings.Builder
	if err := run(t.Context(), []string{"-list"}, &out); err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, want := range []string{"./bridge/jsondoc FuzzParse", "./mockdrupal FuzzRequest"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %q", want, names)
		}
	}
	if err := run(t.Context(), []string{"-only", "no such"}, &out); err == nil {
		t.Error("no target is no error")
	}
}

func TestATimeThatIsUpIsNoFailure(t *testing.T) {
	const ended = "fuzz: elapsed: 20s, execs: 4096 (204/sec), new interesting: 3 (total: 9)\n--- FAIL: FuzzX (20.01s)\n    context deadline exceeded\nFAIL\n"
	for text, want := range map[string]bool{
		ended: true,
		ended + "    Failing input written to testdata/fuzz/FuzzX/1\n":            false,
		ended + "panic: index out of range\n":                                     false,
		"--- FAIL: FuzzX (20.01s)\n    context deadline exceeded\nFAIL\n":         false, // it got no input
		"fuzz: elapsed: 1s, execs: 4 (4/sec)\n--- FAIL: FuzzX\n    got 1\nFAIL\n": false,
	} {
		if got := onlyEnded(text); got != want {
			t.Errorf("%v of\n%s", got, text)
		}
	}
}
