package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const moved = "example.org/x/y"

func TestReplaced(t *testing.T) {
	for text, want := range map[string]string{
		`"a.b/c/d"`:        `"` + moved + `"`,
		`"a.b/c/d/suites"`: `"` + moved + `/suites"`,
		"module a.b/c/d\n": "module " + moved + "\n",
		"see a.b/c/d.":     "see " + moved + ".",
		"a.b/c/d":          moved,
		"a.b/c/dd a.b/c/d-x a.b/c/d.git a.b/c/d_e a.b/c": "a.b/c/dd a.b/c/d-x a.b/c/d.git a.b/c/d_e a.b/c",
	} {
		if got := string(replaced([]byte(text), "a.b/c/d", moved)); got != want {
			t.Errorf("%q becomes %q, expected %q", text, got, want)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for _, path := range []string{moved, "github.com/you/bridgecheck", "example.org"} {
		if err := checkPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"", "bridgecheck", "https://example.org/x", "example.org/x/", "example.org//x", "example.org/x y", "example.org/$x"} {
		if checkPath(path) == nil {
			t.Errorf("%q was taken for a path of a module", path)
		}
	}
}

// A copy of the repository is moved, and another module runs the program of the README's "From Go" with it.
func TestAMovedCopyServesAnotherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the module is not moved and used from another module")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Skipf("SKIPPED: this is no repository of git, so that nothing is moved: %v", err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(copied, name), data)
	}

	command(t, copied, "make", "--no-print-directory", "module", "MODULE="+moved)
	if out := command(t, copied, "go", "list", "-m"); strings.TrimSpace(out) != moved {
		t.Errorf("the module is %s, expected %s", out, moved)
	}
	old := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(read(t, filepath.Join(root, "go.mod")))[1]
	for _, name := range []string{"go.mod", "cmd/bridgecheck/main.go", "cmd/bridgecheck/run.go", "suites/run.go", "test/release/go.mod", "testcontainers/go.mod", "testcontainers/mockdrupal/mockdrupal_test.go"} {
		if bytes.Contains(read(t, filepath.Join(copied, name)), old) {
			t.Errorf("%s still holds %s", name, old)
		}
	}
	// A move changes imports alone: that each is found, in tests as well, says of all packages what a build would, in a
	// hundredth of the time. The other module builds more than half of them.
	command(t, copied, "go", "list", "-test", "-deps", "./...")

	consumer := filepath.Join(t.TempDir(), "consumer")
	mod := bytes.Replace(read(t, filepath.Join(copied, "go.mod")), []byte("module "+moved), []byte("module example.org/consumer"), 1)
	write(t, filepath.Join(consumer, "go.mod"), append(mod, "\nrequire "+moved+" v0.0.0\n\nreplace "+moved+" => "+copied+"\n"...))
	write(t, filepath.Join(consumer, "go.sum"), read(t, filepath.Join(copied, "go.sum")))
	program := string(read(t, filepath.Join(copied, "suites", "example_test.go")))
	program = strings.NewReplacer("package suites_test", "package consumer_test", "func ExampleRun(", "func Example(").Replace(program)
	write(t, filepath.Join(consumer, "example_test.go"), []byte(program))
	if out := command(t, consumer, "go", "test", "-trimpath", "-vet=off", "-mod=mod", "-run", "^Example$", "-v", "./..."); !strings.Contains(out, "--- PASS: Example") {
		t.Errorf("the program of another module did not run:\n%s", out)
	}
}

func command(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
