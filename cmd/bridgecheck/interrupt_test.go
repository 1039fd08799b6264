package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
)

// stubborn is a bridge that ignores every polite signal, has a child that does so too, and hangs as soon as it is
// ready. Each of the two keeps a request to $WITNESS open for as long as it lives.
func stubborn() {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	witness := os.Getenv("WITNESS")
	if os.Getenv("IS_CHILD") == "" {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "IS_CHILD=1")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		var requests atomic.Int64
		go http.ListenAndServe(os.Getenv("BRIDGE_LISTEN"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch requests.Add(1) {
			case 1:
				http.NotFound(w, r)
				return
			case 2:
				http.Get(witness + "/asked")
			}
			<-r.Context().Done()
		}))
	}
	http.Get(witness + "/alive")
}

// stubbornRun is a run of a stubborn bridge that has begun. gone receives a value for each of the bridge and its child as it
// ends.
type stubbornRun struct {
	*exec.Cmd
	dir            string
	stdout, stderr strings.Builder
	gone           chan bool
}

func startStubbornRun(t *testing.T, jobs int) *stubbornRun {
	t.Helper()
	asked, alive, gone := make(chan bool, jobs), make(chan bool, 2*jobs), make(chan bool, 2*jobs)
	witness := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/asked" {
			asked <- true
			return
		}
		alive <- true
		<-r.Context().Done()
		gone <- true
	}))
	t.Cleanup(func() {
		witness.CloseClientConnections() // which ends those that are left
		witness.Close()
	})
	dir := t.TempDir()
	run := &stubbornRun{Cmd: exec.Command("bridgecheck", "run", "--exec", "stubborn", "--env", "WITNESS", "--jobs", strconv.Itoa(jobs), "--report-dir", dir), dir: dir, gone: gone}
	run.Env = append(os.Environ(), "WITNESS="+witness.URL)
	run.Stdout, run.Stderr = &run.stdout, &run.stderr
	must.Do(t, run.Start())
	for range jobs {
		for _, event := range []chan bool{alive, alive, asked} {
			await(t, event, "the bridge to be up and asked")
		}
	}
	return run
}

// What a run started ends with it, also where it is killed and can end nothing itself.
func TestAKilledRunLeavesNoBridge(t *testing.T) {
	must.Need(t, runtime.GOOS != "windows", "SKIPPED: the run is ended by a signal")
	for _, jobs := range []int{1, 3} {
		t.Run(fmt.Sprintf("jobs %d", jobs), func(t *testing.T) {
			run := startStubbornRun(t, jobs)
			must.Do(t, run.Process.Kill())
			run.Wait() // it was killed
			for range 2 * jobs {
				await(t, run.gone, "each bridge and its child to be gone")
			}
		})
	}
}

func TestInterruptEndsEverythingWithinTwoSeconds(t *testing.T) {
	for _, jobs := range []int{1, 3} {
		t.Run(fmt.Sprintf("jobs %d", jobs), func(t *testing.T) { interruptEndsEverything(t, jobs) })
	}
}

// lateTurns measures how long this process waits for its turns: so much later does all end on an overloaded machine.
func lateTurns(t *testing.T) (late func() time.Duration) {
	var sum atomic.Int64
	go func() {
		for t.Context().Err() == nil {
			slept := time.Now()
			time.Sleep(time.Millisecond)
			sum.Add(int64(max(0, time.Since(slept)-2*time.Millisecond)))
		}
	}()
	return func() time.Duration { return time.Duration(sum.Load()) }
}

func interruptEndsEverything(t *testing.T, jobs int) {
	run := startStubbornRun(t, jobs)
	interrupted, late := time.Now(), lateTurns(t)
	must.Do(t, run.Process.Signal(os.Interrupt))
	run.Wait() // its exit code is checked below
	if took, late := time.Since(interrupted), late(); took-late > 2*time.Second {
		t.Errorf("the run ended %s after the interrupt, %s of which this process waited for its turns: expected at most 2s", took, late)
	}
	for range 2 * jobs {
		await(t, run.gone, "each bridge and its child to be gone")
	}
	must.Equal(t, run.ProcessState.ExitCode(), exitNoVerdict, "exit code, with %s", run.stderr.String())
	report := must.Get(reports.ReadFile(filepath.Join(run.dir, "report.json")))(t)
	must.Expect(t, strings.Contains(report.CutShort, "interrupt") && len(report.Results) > 0,
		"expected a report of all clauses that says it was interrupted, got %d clauses and %q", len(report.Results), report.CutShort)
	must.Expect(t, strings.Contains(run.stdout.String(), "the run was cut short (interrupt"),
		"expected the summary to say that the run was cut short, got %s", run.stdout.String())
}

func await(t *testing.T, event <-chan bool, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(20 * time.Second):
		t.Fatalf("waited 20s for %s", what)
	}
}

// interrupted runs a command line and interrupts it when that has begun.
func interrupted(t *testing.T, begun <-chan bool, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		<-begun
		interrupt()
	}()
	var out, errs strings.Builder
	code = execute(ctx, args, &out, &errs)
	return out.String(), errs.String(), code
}

// When the user gives up waiting for a login without a response, that is no mistake of the configuration.
func TestAnInterruptDuringLoginLeavesAReport(t *testing.T) {
	begun := make(chan bool, 1)
	site := must.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then nobody notices that the caller has gone
		select {
		case begun <- true:
		default:
		}
		<-r.Context().Done()
	}))
	dir := t.TempDir()
	file := filepath.Join(dir, "run.yaml")
	t.Setenv("AGENT_PASSWORD", "agent-pass")
	must.Do(t, os.WriteFile(file, []byte("url: "+site.URL+"\nidentities: {agent: {login: {user: agent, password: {env: AGENT_PASSWORD}}}}\n"), 0o600))
	stdout, stderr, code := interrupted(t, begun, "run", "--config", file, "--report-dir", dir)
	must.Expect(t, code == exitNoVerdict && strings.Contains(stdout, "the run was cut short"),
		"exit code %d, %s%s; want 4 and a summary that says so", code, stdout, stderr)
	_, err := reports.ReadFile(filepath.Join(dir, "report.json"))
	must.Expect(t, err == nil, "%v", err)
}

func TestAnInterruptIsNoFilter(t *testing.T) {
	begun := make(chan bool, 1)
	begun <- true
	stdout, _, code := interrupted(t, begun, "run", "--quiet", "--report-dir", t.TempDir())
	must.Expect(t, code == exitNoVerdict && strings.Contains(stdout, "the run was cut short") && !strings.Contains(stdout, "filters"),
		"exit code %d, %q; want 4, and nothing of filters", code, stdout)
}

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
