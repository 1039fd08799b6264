package attacks

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// before runs a command before a bridge that sends an attack; URL stands for the address.
func (a answer) before(t *testing.T, args ...string) (code int, took time.Duration, said string) {
	const most = 300 // MiB
	var n atomic.Int64
	server := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { a.send(w, n.Add(1)) }))
	defer server.CloseClientConnections()
	args[slices.Index(args, "URL")] = server.URL
	cmd := exec.Command(binary, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true")
	began := time.Now()
	forgetPeak(t)
	cmd.Run()
	code, took, said = cmd.ProcessState.ExitCode(), time.Since(began), output.String()
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	t.Logf("exit code %d after %s, with %d requests; the program held %d MiB of %d", code, took, n.Load(), peak, most)
	must.Expect(t, peak <= most && !strings.Contains(said, "goroutine "), "the program held %d MiB, want %d: %.2000s", peak, most, said)
	harmless(t, "output", said)
	return code, took, said
}

// A bridge sends what it likes to the run that tests it: the run ends in its time, with a report, and holds little.
func TestBridges(t *testing.T) {
	const (
		limit   = 20 * time.Second
		atMost  = 2 * limit // on a machine that is busy with others
		reports = 16 << 20  // bytes of all files
	)
	limitMemory(t)
	for _, attack := range answers {
		t.Run(attack.name, func(t *testing.T) {
			dir := t.TempDir()
			code, took, said := attack.before(t, "run", "--url", "URL", "--run-timeout", limit.String(), "--report-dir", dir)
			must.Expect(t, (code == 1 || code == 3 || code == 4) && took <= atMost, "exit code %d after %s: %.2000s", code, took, said)
			size := 0
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			for _, file := range files {
				text, _ := os.ReadFile(file)
				size += len(text)
				harmless(t, filepath.Base(file), string(text))
			}
			must.Expect(t, size <= reports, "the report has %d bytes, want %d at most", size, reports)
		})
	}
}

// What is no list of tools is never locked as one without tools.
func TestListsOfBridges(t *testing.T) {
	limitMemory(t)
	for _, attack := range answers {
		t.Run(attack.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tools.lock.json")
			code, _, said := attack.before(t, "tools", "lock", "--url", "URL", "-o", file)
			if _, err := os.Stat(file); (err == nil) != attack.list || (code == 0) != attack.list || code < 0 || code > 4 {
				t.Errorf("exit code %d, file %v: %.2000s", code, err, said)
			}
		})
	}
}

// harmless asserts that a text does nothing to a terminal, and nothing to CI but by the program's own commands.
func harmless(t *testing.T, name, text string) {
	t.Helper()
	for _, harm := range []string{"\x1b]", "\x07", "\u202e", "\n::error::x", "\n##vso[task.x]", "\n::error::title"} {
		at := strings.Index(text, harm)
		must.Expect(t, at < 0, "%s has %q: %q", name, harm, text[max(at-50, 0):min(at+50, len(text))])
	}
}

// foreign are reports that no run wrote, by what they do to one that a run did.
var foreign = map[string]func(report string) string{
	"depth":         func(string) string { return `{"schema":` + strings.Repeat("[", 20<<20) },
	"depth beside":  func(r string) string { return member(r, strings.Repeat("[", 5<<20)+strings.Repeat("]", 5<<20)) },
	"small values":  func(r string) string { return member(r, `[`+strings.Repeat("{},", 8<<20)+`{}]`) },
	"empty results": func(string) string { return `{"schema":"1.0","results":[` + strings.Repeat("{},", 8<<20) + `{}]}` },
	"a long text": func(r string) string {
		return strings.Replace(r, `"message": "`, `"message": "`+strings.Repeat("x", 25<<20), 1)
	},
	"a long text, more": func(r string) string {
		return strings.Replace(r, `"message": "`, `"message": "`+strings.Repeat("x", 80<<20), 1)
	},
	"an escaped text": func(r string) string {
		return strings.Replace(r, `"message": "`, `"message": "`+strings.Repeat(`\u001b`, 4<<20), 1)
	},
	"a thousand results": func(r string) string {
		return strings.Replace(r, `"results": [`, `"results": [`+strings.Repeat("null,", 1000), 1)
	},
	"a directory": nil,
}

// member puts a member before the others of an object.
func member(object, value string) string {
	return `{"x":` + value + "," + strings.TrimPrefix(strings.TrimSpace(object), "{")
}

// A report may come from anybody: each command that reads one ends soon, holds little and says what is wrong.
func TestReports(t *testing.T) {
	const (
		most = 300 // MiB
		soon = time.Minute
	)
	server := must.Serve(t, http.NotFoundHandler())
	own := t.TempDir()
	said, err := exec.Command(binary, "run", "--url", server.URL, "--only", "list/*", "--report-dir", own).CombinedOutput()
	must.Assert(t, err != nil && len(said) > 0, "a run before nothing: %v %s", err, said)
	written := must.Get(os.ReadFile(filepath.Join(own, "report.json")))(t)
	limitMemory(t)
	for name, change := range foreign {
		dir := t.TempDir()
		file := filepath.Join(dir, "report.json")
		if change == nil {
			must.Do(t, os.Mkdir(file, 0o700))
		} else if err := os.WriteFile(file, []byte(change(string(written))), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{
			{"report", "convert", file}, {"report", "convert", own, "--previous", file}, {"report", "diff", own, file}, {"report", "verify", dir},
			{"report", "merge", dir, own, "--report-dir", t.TempDir()}, {"replay", file, "list/answers-json"},
			{"run", "--url", "http://127.0.0.1:1", "--rerun-failed", file, "--report-dir", t.TempDir()},
			{"run", "--url", "http://127.0.0.1:1", "--baseline", file, "--report-dir", t.TempDir()},
			{"run", "--config", file}, {"bridge", "--config", file}, {"mock", "--site", file},
		} {
			t.Run(name+"/"+strings.Join(command[:2], " "), func(t *testing.T) {
				cmd := exec.Command(binary, command...)
				var said bytes.Buffer
				cmd.Stdout, cmd.Stderr = &said, &said
				began := time.Now()
				kill := time.AfterFunc(soon, func() { cmd.Process.Kill() })
				forgetPeak(t)
				cmd.Run()
				kill.Stop()
				peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
				if text := said.String(); cmd.ProcessState.ExitCode() < 0 || len(text) == 0 || strings.Contains(text, "goroutine ") || strings.ContainsAny(text, "\x1b") || peak > most {
					t.Errorf("exit code %d after %s, held %d MiB: %.500s", cmd.ProcessState.ExitCode(), time.Since(began), peak, text)
				}
			})
		}
	}
}
