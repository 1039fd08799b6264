package processtree_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
)

// part is the environment variable that makes the test binary a program of a test.
const part = "PROCESSTREE_TEST_PART"

func TestMain(m *testing.M) {
	switch os.Getenv(part) {
	case "":
		os.Exit(m.Run())
	case "child":
		time.Sleep(time.Minute)
	case "parent": // starts a child and waits for it
		cmd := playing("child")
		mustStart(cmd.Start())
		fmt.Println(cmd.Process.Pid)
		_ = cmd.Wait()
	case "parent that ends":
		cmd := playing("child")
		mustStart(cmd.Start())
		fmt.Println(cmd.Process.Pid)
	case "owner": // has a group of its own
		cmd := playing("parent")
		cmd.Stdout = os.Stdout
		_, err := processtree.NewGroup().Start(cmd)
		mustStart(err)
		time.Sleep(time.Minute)
	}
}

func playing(what string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), part+"="+what)
	return cmd
}

func mustStart(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// started starts cmd by start and gives a handle of the process whose number cmd prints.
func started(t *testing.T, cmd *exec.Cmd, start func() error) windows.Handle {
	t.Helper()
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, start())
	var pid uint32
	line, _ := bufio.NewReader(out).ReadString('\n')
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("expected the number of a process, got %q", line)
	}
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, pid)
	must.Assert(t, err == nil, "process %d has ended already: this proves nothing (%v)", pid, err)
	t.Cleanup(func() {
		_ = windows.TerminateProcess(handle, 1)
		_ = windows.CloseHandle(handle)
	})
	must.Assert(t, !ended(handle, 0), "process %d has ended already: this proves nothing", pid)
	return handle
}

// ended reports whether a process ends within a time.
func ended(process windows.Handle, within time.Duration) bool {
	event, err := windows.WaitForSingleObject(process, uint32(within.Milliseconds()))
	return err == nil && event == windows.WAIT_OBJECT_0
}

func TestCloseEndsEveryProcessOfTheJob(t *testing.T) {
	for _, program := range []string{"parent", "parent that ends"} {
		t.Run(program, func(t *testing.T) {
			g := processtree.NewGroup()
			cmd := playing(program)
			child := started(t, cmd, func() error { _, err := g.Start(cmd); return err })
			waited := make(chan error, 1)
			go func() { waited <- cmd.Wait() }()
			g.Close(50 * time.Millisecond)
			must.Expect(t, ended(child, time.Second), "the child still runs")
			select {
			case <-waited:
			case <-time.After(10 * time.Second):
				t.Error("cmd.Wait does not return")
			}
		})
	}
}

func TestStopEndsOneJobOnly(t *testing.T) {
	g := processtree.NewGroup()
	one, two := playing("parent"), playing("parent")
	var tree *processtree.Tree
	first := started(t, one, func() (err error) { tree, err = g.Start(one); return err })
	second := started(t, two, func() error { _, err := g.Start(two); return err })
	tree.Stop(50 * time.Millisecond)
	_ = one.Wait() // it was ended
	must.Expect(t, ended(first, time.Second) && !ended(second, 0), "after Stop of the first tree: expected that only the second runs")
	g.Close(50 * time.Millisecond)
	_ = two.Wait() // it was ended
	must.Expect(t, ended(second, time.Second), "after Close the second tree still runs")
}

// A process that is killed cannot call Close; the system closes its job then.
func TestTheJobEndsWithItsOwner(t *testing.T) {
	owner := playing("owner")
	child := started(t, owner, owner.Start)
	must.Do(t, owner.Process.Kill())
	_ = owner.Wait() // it was killed
	must.Expect(t, ended(child, 10*time.Second), "the child outlives the killed owner of its group")
}
