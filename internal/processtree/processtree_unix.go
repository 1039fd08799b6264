//go:build unix && !linux

package processtree

import "syscall"

func (t *Tree) signal(s syscall.Signal) error { return syscall.Kill(-t.cmd.Process.Pid, s) }

// Alive reports whether any process of the tree runs.
func (t *Tree) Alive() bool { return t.signal(0) == nil }

func (t *Tree) interrupt() { _ = t.signal(syscall.SIGTERM) } // it may have ended meanwhile

// Kill ends every process of the tree at once.
func (t *Tree) Kill() { _ = t.signal(syscall.SIGKILL) } // it may have ended meanwhile
