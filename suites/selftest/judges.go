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
	"syscall"
	"time"
)

// Judges are processes that judge mutants, one at a time each, for Ginkgo runs one tree at a time in a process.
type Judges struct {
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

// NewJudges makes n of them, each started by a command of its own, whose process does JudgeAsAsked. They live until
// Close or the end of ctx.
func NewJudges(ctx context.Context, n int, command func(ctx context.Context) *exec.Cmd) *Judges {
	j := &Judges{make(chan *judge, n), func() (*judge, error) { return startJudge(command(ctx)) }}
	for range n {
		j.idle <- nil
	}
	return j
}

// Judge has an idle process judge a mutant. One that failed is not used again.
func (j *Judges) Judge(_ context.Context, m Mutant) (row Row, err error) {
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

// Close ends the processes and waits for them.
func (j *Judges) Close() {
	for range cap(j.idle) {
		if one := <-j.idle; one != nil {
			one.stdin.Close()
			_ = one.cmd.Wait() // it was told to end, and has said all that it had to say
		}
	}
}

func startJudge(cmd *exec.Cmd) (*judge, error) {
	j := &judge{cmd: cmd}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "GOGC=800", "GOMEMLIMIT=512MiB", "GOMAXPROCS=1") // memory is cheaper than collecting it, and there are processes enough
	cmd.Stderr = &j.stderr
	var err error
	if j.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.stdout = bufio.NewReader(stdout)
	return j, cmd.Start()
}

func (j *judge) ask(name string) ([]byte, error) {
	if _, err := fmt.Fprintln(j.stdin, name); err != nil {
		return nil, err
	}
	return j.stdout.ReadBytes('\n')
}

// JudgeAsAsked is the other side: it judges what is named on in until that ends, and writes a line of JSON on each.
func JudgeAsAsked(in io.Reader, out io.Writer, judge func(Mutant) Row) error {
	names, rows := bufio.NewScanner(in), json.NewEncoder(out)
	for names.Scan() {
		m, ok := Find(names.Text())
		if !ok {
			return fmt.Errorf("there is no mutant %q", names.Text())
		}
		if err := rows.Encode(judge(m)); err != nil {
			return err
		}
	}
	return names.Err()
}
