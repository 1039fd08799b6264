//go:build unix

package processtree_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
)

// run starts a shell script in the group and reads as many numbers of processes from it as the test expects.
func run(t *testing.T, g *processtree.Group, script string, numbers int) (tree *processtree.Tree, cmd *exec.Cmd, pids []int) {
	t.Helper()
	cmd = exec.Command("sh", "-c", script)
	out := must.Get(cmd.StdoutPipe())(t)
	tree = must.Get(g.Start(cmd))(t)
	lines := bufio.NewReader(out)
	for range numbers {
		var pid int
		line, err := lines.ReadString('\n')
		_, scanned := fmt.Sscan(line, &pid)
		must.Assert(t, err == nil && scanned == nil, "%q: expected the number of a process, got %q (%v)", script, line, err)
		pids = append(pids, pid)
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
	return tree, cmd, pids
}

// runs reports whether a process has not ended. A zombie whose parent is another process has ended for us.
func runs(pid int) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func TestCloseEndsEveryDescendant(t *testing.T) {
	for _, c := range []struct {
		name, script string
		processes    int
		linuxOnly    bool
	}{
		{name: "the program alone", script: `echo $$; exec sleep 100`, processes: 1},
		{name: "a child", script: `sleep 100 & echo $!; wait`, processes: 1},
		{name: "a program and a child that ignore SIGTERM", script: `trap "" TERM; echo $$; sh -c 'echo $$; sleep 100; sleep 100'; sleep 100`, processes: 2},
		{name: "a child whose parent has ended", script: `sh -c 'sleep 100 & echo $!'; sleep 100`, processes: 1},
		{name: "a child in a session of its own", script: `setsid sh -c 'echo $$; exec sleep 100' & sleep 100`, processes: 1, linuxOnly: true},
		{name: "a daemon", script: `(setsid sh -c 'sleep 100 & echo $!' &); sleep 100`, processes: 1, linuxOnly: true},
		{name: "a daemon with no environment that ignores SIGTERM", script: `(env -i setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' &); exit`, processes: 1, linuxOnly: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Need(t, !c.linuxOnly || runtime.GOOS == "linux", "SKIPPED: only Linux shows whose descendant a process is")
			g := processtree.NewGroup()
			_, cmd, pids := run(t, g, c.script, c.processes)
			for _, pid := range pids {
				must.Assert(t, runs(pid), "process %d has ended already: this proves nothing", pid)
			}
			waited := make(chan error, 1)
			go func() { waited <- cmd.Wait() }()
			g.Close(50 * time.Millisecond)
			for _, pid := range pids {
				must.Expect(t, !runs(pid), "process %d still runs", pid)
			}
			select {
			case <-waited:
			case <-time.After(10 * time.Second):
				t.Error("cmd.Wait does not return")
			}
		})
	}
}

func TestCloseGivesTimeToEnd(t *testing.T) {
	g := processtree.NewGroup()
	_, cmd, _ := run(t, g, `trap 'exit 7' TERM; echo $$; while :; do sleep 0.01; done`, 1)
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	g.Close(10 * time.Second)
	<-waited
	must.Equal(t, cmd.ProcessState.ExitCode(), 7, "exit code of the program")
}

// What forks while it is asked to end leaves none behind that was not asked.
func TestCloseAsksWhatIsForkedMeanwhile(t *testing.T) {
	g := processtree.NewGroup()
	run(t, g, `echo $$; while :; do sleep 100 & done`, 1)
	time.Sleep(50 * time.Millisecond) // some hundred processes, which it takes a while to look at
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		g.Close(time.Minute)
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		g.Close(0)
		t.Error("a process was not asked to end")
	}
}

func TestStopEndsOneTreeOnly(t *testing.T) {
	g := processtree.NewGroup()
	one, oneCmd, first := run(t, g, `sleep 100 & echo $!; wait`, 1)
	_, twoCmd, second := run(t, g, `sleep 100 & echo $!; wait`, 1)
	one.Stop(time.Second)
	_ = oneCmd.Wait() // it was ended
	must.Expect(t, !runs(first[0]) && runs(second[0]),
		"after Stop of the first tree: the first runs: %t, the second runs: %t; expected only the second", runs(first[0]), runs(second[0]))
	g.Close(time.Second)
	_ = twoCmd.Wait() // it was ended
	must.Expect(t, !runs(second[0]), "after Close the second tree still runs")
}

// What the group did not start is not its to end: a child from before, and one that was started beside it.
func TestCloseLeavesOtherChildrenAlone(t *testing.T) {
	start := func(setsid bool) *exec.Cmd {
		cmd := exec.Command("sleep", "100")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
		must.Do(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	before := start(true)
	g := processtree.NewGroup()
	beside := start(false)
	_, cmd, pids := run(t, g, `sleep 100 & echo $!; wait`, 1)
	g.Close(time.Second)
	_ = cmd.Wait() // it was ended
	must.Expect(t, !runs(pids[0]) && runs(before.Process.Pid) && runs(beside.Process.Pid),
		"runs: %t in the group, %t from before, %t beside; expected the last two", runs(pids[0]), runs(before.Process.Pid), runs(beside.Process.Pid))
}
