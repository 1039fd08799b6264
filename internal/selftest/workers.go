package selftest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
)

// Workers are processes that test one mutant at a time each.
type Workers struct {
	idle  chan *worker // nil: one that has not started yet
	start func() (*worker, error)
}

// worker is one process. It reads names of mutants on stdin and writes rows on stdout.
type worker struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// NewWorkers returns n workers, each started by a command of its own, whose process calls Serve. They live until Close or
// the end of ctx.
func NewWorkers(ctx context.Context, n int, command func(ctx context.Context) *exec.Cmd) *Workers {
	w := &Workers{make(chan *worker, n), func() (*worker, error) { return startWorker(command(ctx)) }}
	for range n {
		w.idle <- nil
	}
	return w
}

// Test tests a mutant with an idle worker, without the clauses to skip. A worker that fails is replaced by a new one.
func (w *Workers) Test(m mutants.Mutant, skip ...string) (row Row, err error) {
	one := <-w.idle
	defer func() { w.idle <- one }()
	if one == nil {
		if one, err = w.start(); err != nil {
			return row, err
		}
	}
	line, err := one.ask(m.Name, skip)
	if err == nil {
		err = json.Unmarshal(line, &row)
	}
	if err != nil {
		one.stdin.Close()
		_ = one.cmd.Wait() // the reason is in what it wrote to stderr
		err = fmt.Errorf("read the row: %w: %s", err, bytes.TrimSpace(one.stderr.Bytes()))
		one = nil
	}
	return row, err
}

// Whole is a Worker: it tests a mutant by all the clauses that a worker tests.
func (w *Workers) Whole(_ context.Context, m mutants.Mutant) (Row, error) { return w.Test(m) }

// Close ends the processes and waits for them.
func (w *Workers) Close() {
	for range cap(w.idle) {
		if one := <-w.idle; one != nil {
			one.stdin.Close()
			_ = one.cmd.Wait() // all its rows were read
		}
	}
}

func startWorker(cmd *exec.Cmd) (*worker, error) {
	w := &worker{cmd: cmd}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "GOGC=800", "GOMEMLIMIT=512MiB", "GOMAXPROCS=1") // memory is cheaper than collecting it, and there are processes enough
	cmd.Stderr = &w.stderr
	var err error
	if w.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.stdout = bufio.NewReader(stdout)
	return w, cmd.Start()
}

// ask sends the name of a mutant, with the clauses to skip, and returns the line with its row.
func (w *worker) ask(name string, skip []string) ([]byte, error) {
	if _, err := fmt.Fprintln(w.stdin, name, strings.Join(skip, " ")); err != nil {
		return nil, err
	}
	return w.stdout.ReadBytes('\n')
}

// Serve is the worker's side: it tests the mutants that are named on in, one a line and with the clauses to skip, and writes
// the row of each as a line of JSON, until in ends.
func Serve(in io.Reader, out io.Writer, test func(m mutants.Mutant, skip []string) (Row, error)) error {
	lines, rows := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		name, skip, _ := strings.Cut(lines.Text(), " ")
		m, ok := mutants.Find(name)
		if !ok {
			return fmt.Errorf("there is no mutant %q", name)
		}
		row, err := test(m, strings.Fields(skip))
		if err != nil {
			return err
		}
		if err := rows.Encode(row); err != nil {
			return err
		}
	}
	return lines.Err()
}
