package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/google/shlex"
)

// speak gives a way to start the command of --mcp-stdio: a bridge that speaks MCP on stdin and stdout. What it writes to
// stderr goes to the log of the bridge.
func speak(command string, log bridgeLog, env []string) (func(context.Context) (io.ReadWriteCloser, error), error) {
	words, err := shlex.Split(command)
	if err != nil || len(words) == 0 {
		return nil, usagef("--mcp-stdio %q holds no command that can be split into words", command)
	}
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		out, err := log.open()
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Env = append(os.Environ(), env...)
		cmd.Stderr = out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		c := &conversation{cmd: cmd, log: out}
		if c.WriteCloser, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if c.Reader, err = cmd.StdoutPipe(); err != nil {
			return nil, err
		}
		return c, cmd.Start()
	}, nil
}

// conversation is a process on its stdin and stdout.
type conversation struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
	log io.Closer
}

// Close ends stdin, after which the process should end, and kills its group where it does not.
func (c *conversation) Close() error {
	defer c.log.Close()
	c.WriteCloser.Close()
	kill := time.AfterFunc(stopGrace, func() { c.cmd.Cancel() }) //nolint:errcheck // it has ended by then, or ends now
	defer kill.Stop()
	var failed *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &failed) {
		return err
	}
	return nil
}
