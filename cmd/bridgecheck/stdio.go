package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/processtree"
)

// speak gives a way to start the command of --mcp-stdio: a bridge that speaks MCP on stdin and stdout. What it writes to
// stderr goes to the log of the bridge.
func speak(command string, group *processtree.Group, log *bridgeLog, env []string) (func(context.Context) (io.ReadWriteCloser, error), error) {
	words, err := splitCommand(command)
	if err != nil || len(words) == 0 {
		return nil, usagef("--mcp-stdio %q has no command that can be split into words", command)
	}
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = env
		cmd.WaitDelay = drainTime
		c := &conversation{cmd: cmd, log: log.writer()}
		cmd.Stderr = c.log
		var err error
		if c.WriteCloser, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if c.Reader, err = cmd.StdoutPipe(); err != nil {
			return nil, err
		}
		if c.tree, err = group.Start(cmd); err != nil {
			return nil, fmt.Errorf("start %q: %w", command, err)
		}
		c.forget = context.AfterFunc(ctx, c.tree.Kill)
		return c, nil
	}, nil
}

// conversation is a process on its stdin and stdout.
type conversation struct {
	io.Reader
	io.WriteCloser
	cmd    *exec.Cmd
	tree   *processtree.Tree
	log    io.WriteCloser
	forget func() bool // that the end of the context kills the process
}

// Close ends stdin, after which the process should end, and kills it with all that it started where it does not.
func (c *conversation) Close() error {
	defer c.log.Close()
	defer c.forget()
	c.WriteCloser.Close()
	kill := time.AfterFunc(stopGrace, c.tree.Kill)
	defer kill.Stop()
	err := c.cmd.Wait()
	c.tree.Stop(interruptGrace) // what it leaves behind
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	return nil
}
