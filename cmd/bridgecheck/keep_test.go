package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestKeepEndsWithCtrlCAfterStdinHasEnded(t *testing.T) {
	run := exec.Command("bridgecheck", "run", "--only", "describe/missing-name", "--quiet", "--keep", "--report-dir", t.TempDir())
	stderr := must.Get(run.StderrPipe())(t)
	must.Do(t, run.Start()) // its stdin is empty
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Enter ") {
	}
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, stderr)
		ended <- run.Wait()
	}()
	select {
	case err := <-ended:
		t.Fatalf("it ended by itself: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	must.Do(t, run.Process.Signal(os.Interrupt))
	select {
	case err := <-ended:
		must.Expect(t, err == nil, "after Ctrl-C: %v, expected the exit code of the report, 0", err)
	case <-time.After(20 * time.Second):
		t.Error("it did not end 20 s after Ctrl-C")
	}
}
