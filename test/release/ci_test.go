package release

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// step is one of a job, or of the action.
type step struct {
	ID, Name, Uses, Run, Shell, If string
	With                           map[string]string
	Env                            map[string]string
	ContinueOnError                bool `yaml:"continue-on-error"`
}

// situation is what a CI job meets, and the colour that the guide promises.
type situation struct {
	name   string
	bridge string            // the script ./my-bridge
	with   map[string]string // of the run, in place of the recipe's
	lost   string            // a shard whose report never arrives
	limit  time.Duration     // after which the system ends what runs
	halted bool              // the processes get a fifth of the time: the machine is overloaded
	green  bool
	either bool   // the colour may be both, but nothing may fail
	says   string // in the job's output
}

const correct = "#!/bin/sh\nexec \"$BC\" bridge\n"

func situations(t *testing.T) []situation {
	gone := httptest.NewServer(nil)
	gone.Close()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // a bridge whose site does not respond
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, `{"error": {"code": "upstream_unavailable", "message": "The site does not respond."}}`)
	}))
	t.Cleanup(up.Close)
	stale := filepath.Join(t.TempDir(), "known.yaml")
	write(t, stale, "known:\n  - clause: describe/missing-name\n    reason: was wrong once\n")
	return []situation{
		{name: "green", bridge: correct, green: true, says: "partial: filters left clauses out"},
		{name: "red", bridge: "#!/bin/sh\nexec \"$BC\" bridge --page-size 7\n", with: map[string]string{"only": "list/page*"}, says: "not conformant"},
		{name: "a shard is missing", bridge: correct, lost: "2", says: "shard-2"},
		{name: "time-out", bridge: correct, with: map[string]string{"only": ""}, limit: 1500 * time.Millisecond, says: "the run was cut short"},
		{name: "overloaded", bridge: correct, with: map[string]string{"run-timeout": "20s"}, halted: true, either: true},
		{name: "stale baseline", bridge: correct, with: map[string]string{"baseline": stale}, says: "describe/missing-name"},
		{name: "bridge dead", bridge: "#!/bin/sh\necho no licence >&2\nexit 7\n", says: "no licence"},
		{name: "site dead", bridge: correct, with: map[string]string{"env": "", "exec": "", "url": up.URL, "drupal": gone.URL}, says: "the bridge responds, its site does not"},
	}
}

// runner runs the recipes of a CI system with the real program, as the system would.
type runner struct {
	t         *testing.T
	s         situation
	program   string
	workspace string
	artifacts string
	output    strings.Builder
}

// shell runs a script as a step, and reports whether it ended with 0.
func (r *runner) shell(script string, env ...string) bool {
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir = r.workspace
	cmd.Env = append([]string{"PATH=" + filepath.Dir(r.program) + ":" + os.Getenv("PATH"), "HOME=" + r.workspace, "BC=" + r.program, "CI_PIPELINE_ID=7"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = &r.output, &r.output
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	signal := func(s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
	var limit <-chan time.Time
	if r.s.limit > 0 {
		limit = time.After(r.s.limit)
	}
	halt := time.NewTicker(100 * time.Millisecond)
	defer halt.Stop()
	for {
		select {
		case err := <-ended:
			return err == nil
		case <-limit:
			signal(syscall.SIGTERM)
		case <-halt.C:
			if r.s.halted {
				signal(syscall.SIGSTOP)
				time.Sleep(400 * time.Millisecond)
				signal(syscall.SIGCONT)
			}
		}
	}
}

// run is a recipe's call of bridgecheck, with what the situation changes.
func (r *runner) run(script string) string {
	extra := ""
	for name, value := range r.given() {
		extra += fmt.Sprintf(" --%s='%s'", name, value)
	}
	if r.s.with["url"] != "" {
		script = strings.Replace(script, "--exec ./my-bridge", "", 1)
	}
	if merge := "bridgecheck report merge"; r.s.with["baseline"] != "" {
		script = strings.Replace(script, merge, merge+" --baseline '"+r.s.with["baseline"]+"'", 1)
	}
	return strings.Replace(script, "bridgecheck run", "bridgecheck run"+extra, 1)
}

// given are the settings of the run beside the recipe's: few clauses, unless the situation says otherwise.
func (r *runner) given() map[string]string {
	all := map[string]string{"only": "describe/*", "env": "BC"}
	for name, value := range r.s.with {
		all[name] = value
		if value == "" {
			delete(all, name)
		}
	}
	return all
}

// github runs a workflow of the guide, and reports whether it is green.
func (r *runner) github(text string) bool {
	var flow struct {
		Jobs yaml.Node
	}
	must(r.t, yaml.Unmarshal([]byte(text), &flow))
	green := true
	for i := 0; i < len(flow.Jobs.Content); i += 2 { // in the order of the file, which is that of needs
		var job struct {
			Strategy struct{ Matrix struct{ Shard []string } }
			Steps    []step
		}
		must(r.t, flow.Jobs.Content[i+1].Decode(&job))
		shards := job.Strategy.Matrix.Shard
		if len(shards) == 0 {
			shards = []string{""}
		}
		for _, shard := range shards {
			must(r.t, os.RemoveAll(filepath.Join(r.workspace, "report")))
			failed := false
			for _, s := range job.Steps {
				if failed && s.If != "always()" {
					continue
				}
				with := map[string]string{}
				for name, value := range s.With {
					with[name] = strings.ReplaceAll(value, "${{ matrix.shard }}", shard)
				}
				s.With = with
				if !r.step(s, shard) && !s.ContinueOnError {
					failed = true
				}
			}
			green = green && !failed
		}
	}
	return green
}

// step runs a step of a workflow.
func (r *runner) step(s step, shard string) bool {
	name, _, _ := strings.Cut(s.Uses, "@")
	switch name {
	case "actions/checkout":
		return true
	case "actions/upload-artifact":
		return shard != "" && shard == r.s.lost || r.shell(`mkdir -p "$(dirname "$TO")" && cp -r "$FROM" "$TO"`, "FROM="+s.With["path"], "TO="+filepath.Join(r.artifacts, s.With["name"]))
	case "actions/download-artifact":
		return r.shell(`cp -r "$FROM"/`+s.With["pattern"]+` .`, "FROM="+r.artifacts)
	case "github/codeql-action/upload-sarif":
		return r.shell(`test -s "$FILE"`, "FILE="+s.With["sarif_file"])
	case "OWNER/bridgecheck":
		return r.action(s.With)
	}
	r.t.Fatalf("the stand-in knows no step %q", s.Uses)
	return false
}

var input = regexp.MustCompile(`\$\{\{ inputs\.([a-z-]+) \}\}`)

// action runs the step of action.yml that calls the program.
func (r *runner) action(with map[string]string) bool {
	a := actionFile(r.t)
	inputs := map[string]string{}
	for name, i := range a.Inputs {
		inputs[name] = i.Default
	}
	for name, value := range with {
		inputs[name] = value
	}
	if inputs["merge"] == "" {
		for name, value := range r.given() {
			inputs[name] = value
		}
		if r.s.with["url"] != "" {
			inputs["exec"] = ""
		}
	}
	inputs["baseline"] = r.s.with["baseline"]
	for _, s := range a.Runs.Steps {
		if s.ID != "run" {
			continue
		}
		env := []string{"RUNNER_TEMP=" + filepath.Dir(r.program), "GITHUB_ACTIONS=true", "GITHUB_RUN_ID=7", "GITHUB_OUTPUT=" + filepath.Join(r.workspace, "output"),
			"GITHUB_STEP_SUMMARY=" + filepath.Join(r.workspace, "summary")}
		for name, value := range s.Env {
			env = append(env, name+"="+input.ReplaceAllStringFunc(value, func(e string) string { return inputs[input.FindStringSubmatch(e)[1]] }))
		}
		return r.shell(s.Run, env...)
	}
	r.t.Fatal("action.yml has no step run")
	return false
}

// gitlab runs the jobs of the example for GitLab.
func (r *runner) gitlab(text string) bool {
	type job struct {
		Stage        string
		Parallel     int
		Script       []string
		AllowFailure bool `yaml:"allow_failure"`
	}
	var jobs struct {
		Stages         []string
		Shard, Verdict job
	}
	must(r.t, yaml.Unmarshal([]byte(text), &jobs))
	green := true
	for _, stage := range jobs.Stages {
		for _, j := range []job{jobs.Shard, jobs.Verdict} {
			for i := 1; j.Stage == stage && i <= max(1, j.Parallel); i++ {
				ok := r.shell(r.run(strings.Join(j.Script, "\n")), fmt.Sprintf("CI_NODE_INDEX=%d", i), fmt.Sprintf("CI_NODE_TOTAL=%d", j.Parallel))
				green = green && (ok || j.AllowFailure)
				if fmt.Sprint(i) == r.s.lost && j.Parallel > 0 {
					must(r.t, os.RemoveAll(filepath.Join(r.workspace, "shard-"+r.s.lost)))
				}
			}
		}
	}
	return green
}

// jenkins runs the steps of the example for Jenkins.
func (r *runner) jenkins(text string) bool {
	green := true
	for _, m := range regexp.MustCompile(`sh '([^']+)'`).FindAllStringSubmatch(text, -1) {
		green = green && r.shell(r.run(m[1]))
	}
	return green
}

// The recipes for CI systems give the colours that the guide promises.
func TestRecipesForCI(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the recipes for CI are not run")
	}
	program := filepath.Join(t.TempDir(), "bridgecheck")
	build := exec.Command("go", "build", "-o", program, "./cmd/bridgecheck")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	workflows := regexp.MustCompile("(?s)```yaml\n# \\.github/workflows/[^\n]*\n(.*?)```").FindAllStringSubmatch(string(read(t, "docs/gate-a-release.md")), -1)
	recipes := map[string]func(*runner) bool{
		"GitLab":  func(r *runner) bool { return r.gitlab(string(read(t, "examples/ci/.gitlab-ci.yml"))) },
		"Jenkins": func(r *runner) bool { return r.jenkins(string(read(t, "examples/ci/Jenkinsfile"))) },
	}
	for _, w := range workflows {
		name := "GitHub, one job"
		if strings.Contains(w[1], "matrix") {
			name = "GitHub, shards"
		}
		recipes[name] = func(r *runner) bool { return r.github(w[1]) }
	}
	if len(recipes) != 4 {
		t.Fatalf("%d recipes, expected 4", len(recipes))
	}
	all := situations(t)
	for system, recipe := range recipes {
		for _, s := range all {
			if s.lost != "" && (system == "Jenkins" || system == "GitHub, one job") {
				continue // it has no shards
			}
			if s.halted && system != "Jenkins" {
				continue // the run is the same, and takes five times as long
			}
			t.Run(system+"/"+s.name, func(t *testing.T) {
				r := &runner{t: t, s: s, program: program, workspace: t.TempDir(), artifacts: filepath.Join(t.TempDir(), "artifacts")}
				write(t, filepath.Join(r.workspace, "my-bridge"), s.bridge)
				green := recipe(r)
				if green != s.green && !s.either || !strings.Contains(r.output.String(), s.says) {
					t.Errorf("green: %t, expected %t, and %q in the output:\n%s", green, s.green, s.says, r.output.String())
				}
				for _, dir := range []string{"report", "shard-1"} {
					data, err := os.ReadFile(filepath.Join(r.workspace, dir, "report.json"))
					var report struct {
						Summary struct{ Fail int }
					}
					switch {
					case err == nil:
						must(t, json.Unmarshal(data, &report))
					case s.halted && dir == "report":
						t.Errorf("the overloaded run left no report: %v\n%s", err, r.output.String())
					}
					if report.Summary.Fail > 0 && s.name != "red" {
						t.Errorf("%d clauses fail in %s:\n%s", report.Summary.Fail, dir, r.output.String())
					}
				}
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o755))
}
