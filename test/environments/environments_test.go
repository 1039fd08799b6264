//go:build unix

// Package environments runs the program on machines as people have them: other languages, full disks, few files, little memory,
// no network. The machine's fault is never the bridge's.
package environments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/reports"
)

const longest = 9 * time.Minute // of one situation

func TestSituations(t *testing.T) {
	bc := program.Build(t)
	for i, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			must.Need(t, !s.long || !testing.Short(), "SKIPPED: it tests all clauses")
			must.Need(t, i%3 == 0 || !testing.Short(), "SKIPPED: -short tests every third")
			limits := &limits{}
			for _, need := range s.needs {
				why := limits.have(t, need)
				must.Need(t, why == "", "SKIPPED: %s: %s", need, why)
			}
			dir, bc := t.TempDir(), bc
			if s.jumps {
				bc = withJumpingClock(t)
			}
			said, code := runScript(t, dir, limits.enter()+s.set, bc)
			ok := code == s.exit || s.exit == either && (code == 0 || code == 4)
			must.Expect(t, ok, "exit code %d, expected %d", code, s.exit)
			for _, want := range s.says {
				must.Expect(t, strings.Contains(said, want), "it does not say %q", want)
			}
			for _, never := range append(s.never, "goroutine 1", "panic:") {
				must.Expect(t, !strings.Contains(said, never), "it says %q", never)
			}
			blamesNobody(t, dir)
			if t.Failed() {
				t.Logf("it said:\n%s", said)
			}
		})
	}
}

// withJumpingClock is the program with a wall clock that jumps every one and a half seconds, by hours and in all processes at once. The
// system's own clock is everybody's, and Go asks no library that could be put before it.
func withJumpingClock(t *testing.T) string {
	t.Helper()
	file := filepath.Join(strings.TrimSpace(string(must.Get(exec.Command("go", "env", "GOROOT").Output())(t))), "src", "time", "time.go")
	source := string(must.Get(os.ReadFile(file))(t))
	const read = "sec, nsec, mono := runtimeNow()\n"
	must.Need(t, strings.Contains(source, read), "SKIPPED: this version of Go reads the clock in another way")
	dir := t.TempDir()
	clock, overlay, bc := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "bridgecheck")
	source = strings.ReplaceAll(source, read, read+"\tsec += [3]int64{0, 5 * 3600, -3600}[mono/1500000000%3]\n")
	must.Do(t, os.WriteFile(clock, []byte(source), 0o644))
	must.Do(t, os.WriteFile(overlay, must.Get(json.Marshal(map[string]any{"Replace": map[string]string{file: clock}}))(t), 0o644))
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", bc, "github.com/bridgecheck/bridgecheck/cmd/bridgecheck").CombinedOutput()
	must.Assert(t, err == nil, "%v\n%s", err, out)
	return bc
}

// runScript runs a script of sh in a directory, and ends what it leaves.
func runScript(t *testing.T, dir, script, bc string) (said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	group := processtree.NewGroup()
	defer group.Close(time.Second)
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	for _, variable := range os.Environ() { // nothing of the machine of the test
		name, _, _ := strings.Cut(variable, "=")
		if name == "PATH" || name == "TMPDIR" || name == "HOME" {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	must.Do(t, os.Chmod(filepath.Dir(dir), 0o755)) // for another user
	bridge := filepath.Join(t.TempDir(), "bridge") // a word without blanks
	must.Do(t, os.WriteFile(bridge, []byte("#!/bin/sh\nexec '"+bc+"' bridge\n"), 0o755))
	cmd.Env = append(cmd.Env, "BC="+bc, "ONE=--only describe/unknown-404", "EXEC=--exec "+bridge)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	tree := must.Get(group.Start(cmd))(t)
	defer context.AfterFunc(ctx, tree.Kill)()
	_ = cmd.Wait() // its exit code is what counts
	return out.String(), cmd.ProcessState.ExitCode()
}

// blamesNobody reports a report below a directory that has a failure.
func blamesNobody(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "report.json" {
			return err
		}
		report, err := reports.ReadFile(path)
		if err != nil {
			return err
		}
		for _, r := range report.With(reports.Fail, reports.Warn, reports.Error) {
			t.Errorf("the reference bridge is blamed: %s: %s", r.ID, r.Message)
		}
		return nil
	})
	must.Expect(t, err == nil || errors.Is(err, fs.ErrNotExist), "%v", err)
}

// limits are the control groups that a situation runs in.
type limits struct{ groups []string }

// enter is the beginning of a script that puts it into the groups.
func (l *limits) enter() string {
	script := ""
	for _, dir := range l.groups {
		script += "echo $$ >" + dir + "/cgroup.procs || exit 99\n"
	}
	return script
}

// have says why something that a situation needs is not there; "": it is.
func (l *limits) have(t *testing.T, need string) string {
	kind, value, _ := strings.Cut(need, " ")
	switch kind {
	case "root":
		if os.Getuid() != 0 {
			return "the test does not run as root"
		}
	case "linux":
		if runtime.GOOS != "linux" {
			return "this is no Linux"
		}
	case "unshare":
		if out, err := exec.Command("unshare", "-n", "-m", "true").CombinedOutput(); err != nil {
			return fmt.Sprintf("%v %s", err, out)
		}
	case "memory":
		return l.group(t, "memory", "memory.max", value+"M", "memory.limit_in_bytes", value+"M")
	case "processor":
		return l.group(t, "cpu", "cpu.max", value+"000 1000000", "cpu.cfs_quota_us", value+"000", "cpu.cfs_period_us", "1000000")
	default:
		if _, err := exec.LookPath(kind); err != nil {
			return err.Error()
		}
	}
	return ""
}

// group makes a control group with a limit: of the second version, or of the first, where a file for each setting comes in
// the order in which the system takes them.
func (l *limits) group(t *testing.T, controller, file2, value2 string, first ...string) string {
	root, settings := "/sys/fs/cgroup", []string{file2, value2}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root, settings = filepath.Join(root, controller), first
	}
	dir, err := os.MkdirTemp(root, "bridgecheck-test-")
	if err != nil {
		return err.Error()
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // which the system does once its processes are gone
	for i := len(settings) - 2; i >= 0; i -= 2 {
		if err := os.WriteFile(filepath.Join(dir, settings[i]), []byte(settings[i+1]), 0o600); err != nil {
			return err.Error()
		}
	}
	l.groups = append(l.groups, dir)
	return ""
}
