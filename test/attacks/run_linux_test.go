package attacks

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A bridge sends what it likes to the run that tests it: the run ends in its time, with a report, and holds little.
func TestBridges(t *testing.T) {
	const (
		most    = 300 // MiB
		limit   = 20 * time.Second
		atMost  = 2 * limit // on a machine that is busy with others
		reports = 16 << 20  // bytes of all files
	)
	limitMemory(t)
	for _, attack := range answers {
		t.Run(attack.name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { attack.send(w, n.Add(1)) }))
			defer server.Close()
			defer server.CloseClientConnections()
			dir := t.TempDir()
			cmd := exec.Command(binary, "run", "--url", server.URL, "--run-timeout", limit.String(), "--report-dir", dir)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true")
			began := time.Now()
			forgetPeak(t)
			cmd.Run()
			took := time.Since(began)
			peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
			t.Logf("exit code %d after %s, with %d requests; the run held %d MiB of %d", cmd.ProcessState.ExitCode(), took, n.Load(), peak, most)
			if code := cmd.ProcessState.ExitCode(); code != 1 && code != 3 && code != 4 || strings.Contains(said.String(), "goroutine ") {
				t.Errorf("exit code %d: %.2000s", code, said.String())
			}
			if took > atMost || peak > most {
				t.Errorf("the run took %s, want %s at most, and held %d MiB, want %d", took, atMost, peak, most)
			}
			size := 0
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			for _, file := range files {
				text, _ := os.ReadFile(file)
				size += len(text)
				harmless(t, filepath.Base(file), string(text))
			}
			harmless(t, "output", said.String())
			if size > reports {
				t.Errorf("the report has %d bytes, want %d at most", size, reports)
			}
		})
	}
}

// harmless asserts that a text does nothing to a terminal, and nothing to CI but by the program's own commands.
func harmless(t *testing.T, name, text string) {
	t.Helper()
	for _, harm := range []string{"\x1b]", "\x07", "\u202e", "\n::error::x", "\n##vso[task.x]", "\n::error::title"} {
		if at := strings.Index(text, harm); at >= 0 {
			t.Errorf("%s has %q: %q", name, harm, text[max(at-50, 0):min(at+50, len(text))])
		}
	}
}
