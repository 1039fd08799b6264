// Package release holds what ships bridgecheck against the rules of what reads it: the Dockerfile against BuildKit's
// parser, the GitHub Action against actionlint and against hostile inputs. It is a module of its own, so that nobody who
// builds bridgecheck downloads BuildKit.
package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// action is the part of action.yml that the checks go by.
type action struct {
	Inputs map[string]struct {
		Description string
		Default     string
	}
	Outputs map[string]struct{ Value string }
	Runs    struct{ Steps []step }
}

func actionFile(t *testing.T) action {
	t.Helper()
	var a action
	if err := yaml.Unmarshal(read(t, "action.yml"), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// What a workflow passes in must never become text of a script, by whichever expression.
func TestActionPassesInputsByEnvironmentOnly(t *testing.T) {
	a := actionFile(t)
	passed := map[string]bool{}
	use := regexp.MustCompile(`\binputs\.([A-Za-z0-9_-]+)`)
	for _, step := range a.Runs.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("the script of %q holds an expression: pass it by env", step.Name)
		}
		if step.Run != "" && step.Shell == "" {
			t.Errorf("the step %q names no shell, which a composite action needs", step.Name)
		}
		for variable, value := range step.Env {
			for _, m := range use.FindAllStringSubmatch(value, -1) {
				passed[m[1]] = true
				if _, ok := a.Inputs[m[1]]; !ok {
					t.Errorf("%s takes the input %s, which is not declared", variable, m[1])
				}
			}
			if !strings.Contains(step.Run, "$"+variable) {
				t.Errorf("the script of %q does not use %s", step.Name, variable)
			}
		}
	}
	for name, input := range a.Inputs {
		if !passed[name] {
			t.Errorf("the input %s goes nowhere", name)
		}
		if input.Description == "" {
			t.Errorf("the input %s has no description", name)
		}
	}
}

// TestActionScript runs the action's script with a stand-in for bridgecheck, as a runner does.
func TestActionScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	a := actionFile(t)
	run := a.Runs.Steps[slices.IndexFunc(a.Runs.Steps, func(s step) bool { return s.ID == "run" })]
	const hostile = `x"; touch pwned; $(touch pwned) '` + "`touch pwned`" + ` --list`
	for _, c := range []struct {
		name   string
		inputs map[string]string
		want   []string
	}{
		{"defaults", nil, []string{"run", "--report-dir=bridgecheck-report"}},
		{"a bridge that is up", map[string]string{"url": "http://127.0.0.1:8081", "mock-listen": "127.0.0.1:8080", "strict": "true", "discovery-ttl": "2s"},
			[]string{"run", "--url=http://127.0.0.1:8081", "--mock-listen=127.0.0.1:8080", "--discovery-ttl=2s", "--strict", "--report-dir=bridgecheck-report"}},
		{"a command", map[string]string{"exec": "node bridge.js --port 1", "capabilities": "-discovery-permission", "report-dir": "out put"},
			[]string{"run", "--exec=node bridge.js --port 1", "--capabilities=-discovery-permission", "--report-dir=out put"}},
		{"a part of the clauses", map[string]string{"exec": "node bridge.js", "mcp-stdio": "node stdio.js", "only": "list/* mcp/*", "skip": "load", "contract": "1.0"},
			[]string{"run", "--exec=node bridge.js", "--mcp-stdio=node stdio.js", "--only=list/*", "--only=mcp/*", "--skip=load", "--contract=1.0", "--report-dir=bridgecheck-report"}},
		{"hostile text", map[string]string{"url": hostile, "implementation": hostile},
			[]string{"run", "--url=" + hostile, "--report-dir=bridgecheck-report", "--implementation=" + hostile}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			stub := "#!/bin/sh\nprintf '%s\\n' \"$@\" > arguments\nexit 1\n"
			if err := os.WriteFile(filepath.Join(dir, "bridgecheck"), []byte(stub), 0o755); err != nil {
				t.Fatal(err)
			}
			env := []string{"PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + dir, "GITHUB_OUTPUT=" + filepath.Join(dir, "output")}
			for variable, value := range run.Env {
				name := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
				given, ok := c.inputs[name]
				if !ok {
					given = a.Inputs[name].Default
				}
				env = append(env, variable+"="+given)
			}
			cmd := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", run.Run) // as GitHub starts `shell: bash`
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("the step ends with %v, not with bridgecheck's exit code 1:\n%s", err, out)
			}
			arguments, err := os.ReadFile(filepath.Join(dir, "arguments"))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := strings.Split(strings.TrimSuffix(string(arguments), "\n"), "\n"); !slices.Equal(got, c.want) {
				t.Errorf("bridgecheck is given %q, want %q", got, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
				t.Error("an input was run")
			}
		})
	}
}

// TestActionTakesAReleaseByItsChecksum runs the action's first script against a stand-in for the pages of releases.
func TestActionTakesAReleaseByItsChecksum(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	const name = "bridgecheck_1.2.3_linux_amd64"
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	files := tar.NewWriter(packed)
	if err := files.WriteHeader(&tar.Header{Name: name + "/bridgecheck", Mode: 0o755, Size: 7}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{func() error { _, err := files.Write([]byte("program")); return err }, files.Close, packed.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	for title, c := range map[string]struct {
		version, sums string
		found, fails  bool
	}{
		"a release":                {"v1.2.3", sum + "  " + name + ".tar.gz\n", true, false},
		"another checksum":         {"v1.2.3", strings.Repeat("0", 64) + "  " + name + ".tar.gz\n", false, true},
		"no checksum":              {"v1.2.3", sum + "  other.tar.gz\n", false, true},
		"a tag without a release":  {"v9.9.9", "", false, false},
		"a branch, to be compiled": {"main", "", false, false},
	} {
		t.Run(title, func(t *testing.T) {
			pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/owner/bridgecheck/releases/download/v1.2.3/checksums.txt":
					io.WriteString(w, c.sums) //nolint:errcheck // the script complains
				case "/owner/bridgecheck/releases/download/v1.2.3/" + name + ".tar.gz":
					w.Write(archive.Bytes()) //nolint:errcheck // the script complains
				default:
					http.NotFound(w, r)
				}
			}))
			defer pages.Close()
			dir := t.TempDir()
			cmd := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", actionFile(t).Runs.Steps[0].Run)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + dir, "GITHUB_OUTPUT=" + filepath.Join(dir, "output"), "RUNNER_OS=Linux", "RUNNER_ARCH=X64",
				"SERVER=" + pages.URL, "REPOSITORY=owner/bridgecheck", "VERSION=" + c.version}
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("the step ends with %v:\n%s", err, out)
			}
			output, _ := os.ReadFile(filepath.Join(dir, "output"))
			program, _ := os.ReadFile(filepath.Join(dir, "bridgecheck"))
			if found := string(output) == "found=true\n" && string(program) == "program"; found != c.found {
				t.Errorf("output %q and program %q, expected it to be found: %t\n%s", output, program, c.found, out)
			}
		})
	}
}

// TestWorkflowOfTheGuide lints the workflow that docs/gate-a-release.md shows, with action.yml as the action it uses.
func TestWorkflowOfTheGuide(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n# \\.github/workflows/[^\n]*\n(.*?)```").FindAllStringSubmatch(string(read(t, "docs/gate-a-release.md")), -1)
	if len(blocks) == 0 {
		t.Fatal("the guide shows no workflow")
	}
	dir := t.TempDir() // a project, as actionlint wants it: the action at its root
	if err := os.MkdirAll(filepath.Join(dir, ".github", "workflows"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "action.yml"), read(t, "action.yml"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		workflow := regexp.MustCompile(`uses: OWNER/bridgecheck@\S+`).ReplaceAllString(block[1], "uses: ./")
		if workflow == block[1] {
			t.Error("the workflow does not use the action")
		}
		project, err := actionlint.NewProject(dir)
		if err != nil {
			t.Fatal(err)
		}
		linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		problems, err := linter.Lint(filepath.Join(dir, ".github", "workflows", "conformance.yml"), []byte(workflow), project)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("line %d: %s (%s)", p.Line, p.Message, p.Kind)
		}
	}
}
