//go:build unix

package processtree

import (
	"io"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

// watcher is a shell that kills a process group when its input ends without a line: when this process is killed, and can
// end nothing itself any more. It is in a group of its own, so that Ctrl-C does not end it.
type watcher struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// watch starts a watcher; nil where there is no shell.
func watch(group int) *watcher {
	w := &watcher{cmd: exec.Command("/bin/sh", "-c", `read -r line || kill -KILL "-$0"`, strconv.Itoa(group))}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.cmd.Env, w.cmd.Dir = []string{}, "/"
	var err error
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		return nil
	}
	if err := w.cmd.Start(); err != nil {
		return nil
	}
	return w
}

// dismiss ends the watcher, which leaves the group alone then.
func (w *watcher) dismiss() {
	if w == nil {
		return
	}
	_, _ = io.WriteString(w.input, "\n") // it may have been killed
	_ = w.input.Close()
	_ = w.cmd.Wait()
}

// systemTree watches over the program's process group.
type systemTree struct {
	watcher  *watcher
	released sync.Once
}

func (t *Tree) start() error {
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := t.cmd.Start(); err != nil {
		return err
	}
	t.watcher = watch(t.cmd.Process.Pid)
	return nil
}

func (t *systemTree) release() { t.released.Do(t.watcher.dismiss) }
