package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bridgecheck/suites"
	"bridgecheck/suites/mutants"
)

// judges are processes that judge mutants, one at a time each, for Ginkgo runs one tree at a time in a process.
type judges struct {
	idle  chan *judge // nil: one that is yet to start
	start func() (*judge, error)
}

// judge is one of them.
type judge struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// newJudges makes n of them, which live until close or the end of ctx.
func newJudges(ctx context.Context, n int) *judges {
	j := &judges{make(chan *judge, n), func() (*judge, error) { return startJudge(ctx) }}
	for range n {
		j.idle <- nil
	}
	return j
}

// judge has an idle process judge a mutant. One that failed is not used again.
func (j *judges) judge(_ context.Context, m mutants.Mutant) (row mutants.Row, err error) {
	one := <-j.idle
	defer func() { j.idle <- one }()
	if one == nil {
		if one, err = j.start(); err != nil {
			return row, err
		}
	}
	line, err := one.ask(m.Name)
	if err == nil {
		err = json.Unmarshal(line, &row)
	}
	if err != nil {
		one.stdin.Close()
		_ = one.cmd.Wait() // the reason is in what it wrote to stderr
		err = fmt.Errorf("read the verdict: %w: %s", err, bytes.TrimSpace(one.stderr.Bytes()))
		one = nil
	}
	return row, err
}

// close ends the processes and waits for them.
func (j *judges) close() {
	for range cap(j.idle) {
		if one := <-j.idle; one != nil {
			one.stdin.Close()
			_ = one.cmd.Wait() // it was told to end, and has said all that it had to say
		}
	}
}

func startJudge(ctx context.Context) (*judge, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	j := &judge{cmd: exec.CommandContext(ctx, self, "selftest", "--judge")}
	j.cmd.Cancel = func() error { return j.cmd.Process.Signal(syscall.SIGTERM) }
	j.cmd.WaitDelay = 2 * time.Second
	j.cmd.Env = append(os.Environ(), "GOGC=400", "GOMAXPROCS=1") // memory is cheaper than collecting it, and there are processes enough
	j.cmd.Stderr = &j.stderr
	if j.stdin, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.stdout = bufio.NewReader(stdout)
	return j, j.cmd.Start()
}

func (j *judge) ask(name string) ([]byte, error) {
	if _, err := fmt.Fprintln(j.stdin, name); err != nil {
		return nil, err
	}
	return j.stdout.ReadBytes('\n')
}

// judgeAsAsked is the other side: it judges what is named on stdin until that ends.
func judgeAsAsked(cmd *cobra.Command) error {
	names, rows := bufio.NewScanner(cmd.InOrStdin()), json.NewEncoder(cmd.OutOrStdout())
	for names.Scan() {
		m, ok := mutants.Find(names.Text())
		if !ok {
			return usagef("there is no mutant %q", names.Text())
		}
		if err := rows.Encode(mutants.JudgeRow(cmd.Context(), m, suites.Options{Tool: thisTool()})); err != nil {
			return err
		}
	}
	return names.Err()
}
