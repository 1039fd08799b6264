package attacks

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

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
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
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
