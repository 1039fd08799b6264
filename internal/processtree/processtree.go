// Package processtree starts programs and ends them together with every process that they started themselves. It is for
// programs that may ignore signals, fork, or detach their children; it does not confine them in any other way.
//
// Its invariant: after Group.Close nothing runs that descends from a program of the group, as far as the system lets us
// see that. Linux: every descendant, also one in a session of its own. Windows: every process of the program's job. Other
// systems: every process of the program's process group. Where the calling process is killed and cannot call Close, what
// runs in the process group, or the job, ends at once.
package processtree

import (
	"os/exec"
	"slices"
	"sync"
	"time"
)

const (
	poll        = 10 * time.Millisecond // between two looks at what is left
	killTimeout = 2 * time.Second       // in which a killed process must have disappeared
)

// Group is a set of programs that end together.
type Group struct {
	system systemGroup

	mu    sync.Mutex
	trees []*Tree
}

// Tree is a program of a group with all that descends from it.
type Tree struct {
	systemTree
	group *Group
	cmd   *exec.Cmd
}

// NewGroup makes an empty group. On Linux the calling process becomes the parent of every descendant whose own parent
// has ended, for as long as it lives.
func NewGroup() *Group {
	g := &Group{}
	g.prepare()
	return g
}

// Start starts cmd as part of the group; it sets cmd.SysProcAttr. The caller calls cmd.Wait, as after cmd.Start.
func (g *Group) Start(cmd *exec.Cmd) (*Tree, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &Tree{group: g, cmd: cmd}
	if err := t.start(); err != nil {
		return nil, err
	}
	g.trees = append(g.trees, t)
	g.started(t)
	return t, nil
}

// Stop asks every process of the tree to end and kills those that are left after the grace. On Linux a descendant that
// has left the program's process group and lost its parent is left to Group.Close: whose it is is unknown.
func (t *Tree) Stop(grace time.Duration) {
	stop(grace, t.Alive, t.interrupt, t.Kill)
	t.release()
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	t.group.trees = slices.DeleteFunc(t.group.trees, func(other *Tree) bool { return other == t })
}

// Close ends every tree of the group, as Stop does, and on Linux every descendant that has lost its parent.
func (g *Group) Close(grace time.Duration) {
	stop(grace, g.alive, g.interrupt, g.kill)
	for _, t := range g.running() {
		t.release()
	}
}

func (g *Group) running() []*Tree {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.trees)
}

func stop(grace time.Duration, alive func() bool, interrupt, kill func()) {
	interrupt()
	if waitUntilGone(grace, alive) {
		return
	}
	for end := time.Now().Add(killTimeout); time.Now().Before(end); {
		kill() // again and again: a process may fork while we look
		if waitUntilGone(poll, alive) {
			return
		}
	}
}

func waitUntilGone(timeout time.Duration, alive func() bool) bool {
	for end := time.Now().Add(timeout); alive(); time.Sleep(poll) {
		if !time.Now().Before(end) {
			return false
		}
	}
	return true
}
