package processtree

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2), which package syscall does not have.
const prSetChildSubreaper = 36

// systemGroup knows which children of this process are not orphans.
type systemGroup struct {
	before   map[int]bool // children from before, and watchers: not to be ended
	programs map[int]bool // started by Start: their cmd.Wait collects them
}

// process is what /proc says of one process.
type process struct {
	parent, group int
	zombie        bool
}

func (g *Group) prepare() {
	// Without it (a kernel before 3.4) descendants that have lost their parent are not found; nothing else changes.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	g.system.before, g.system.programs = map[int]bool{}, map[int]bool{}
	for pid, p := range processes() {
		if p.parent == os.Getpid() {
			g.system.before[pid] = true
		}
	}
}

func (g *Group) started(t *Tree) {
	pid := t.cmd.Process.Pid
	g.system.programs[pid] = true
	delete(g.system.before, pid) // the number may be that of a watcher that has ended
	if t.watcher != nil {
		g.system.before[t.watcher.cmd.Process.Pid] = true
	}
}

// members are the processes of the tree that run. They all descend from this process, so that a number that the system
// uses again is not mistaken for one of them.
func (t *Tree) members() map[int]process {
	me, root := os.Getpid(), t.cmd.Process.Pid
	return running(processes(), func(pid int, p process) bool { return p.parent == me && (pid == root || p.group == root) })
}

// members are the processes of all programs of the group, with those that have lost their parent, so that this process
// became it. Any other child of this process is in its process group.
func (g *Group) members() map[int]process {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := processes()
	me, own := os.Getpid(), syscall.Getpgrp()
	ours := func(pid int, p process) bool {
		return p.parent == me && !g.system.before[pid] && (g.system.programs[pid] || p.group != own)
	}
	for pid, p := range all {
		if p.zombie && ours(pid, p) && !g.system.programs[pid] {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // nobody else collects it
		}
	}
	return running(all, ours)
}

// running lists the processes for which starts holds, and their descendants, without those that have ended.
func running(all map[int]process, starts func(int, process) bool) map[int]process {
	chosen := map[int]bool{}
	for pid, p := range all {
		if starts(pid, p) {
			chosen[pid] = true
		}
	}
	for grew := true; grew; {
		grew = false
		for pid, p := range all {
			if !chosen[pid] && chosen[p.parent] {
				chosen[pid], grew = true, true
			}
		}
	}
	members := map[int]process{}
	for pid := range chosen {
		if !all[pid].zombie {
			members[pid] = all[pid]
		}
	}
	return members
}

// processes reads the table of processes. One that ends meanwhile is left out.
func processes() map[int]process {
	all := map[int]process{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return all
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		if p, ok := parseStat(stat); ok {
			all[pid] = p
		}
	}
	return all
}

// parseStat reads `PID (NAME) STATE PPID PGRP …` of proc_pid_stat(5). The name may hold any byte but NUL.
func parseStat(stat []byte) (p process, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return process{}, false
	}
	var err1, err2 error
	p.parent, err1 = strconv.Atoi(string(fields[1]))
	p.group, err2 = strconv.Atoi(string(fields[2]))
	p.zombie = fields[0][0] == 'Z' || fields[0][0] == 'X'
	return p, err1 == nil && err2 == nil
}

// signal sends a signal to processes: to a whole process group at once, so that none is missed that one of them forks
// meanwhile.
func signal(members map[int]process, s syscall.Signal) {
	sent, own := map[int]bool{}, syscall.Getpgrp()
	for pid, p := range members {
		to := -p.group
		if p.group == own { // it holds this process
			to = pid
		}
		if !sent[to] {
			sent[to] = true
			_ = syscall.Kill(to, s) // it may have ended meanwhile
		}
	}
}

// Alive reports whether any process of the tree runs.
func (t *Tree) Alive() bool { return len(t.members()) > 0 }

func (t *Tree) interrupt() { signal(t.members(), syscall.SIGTERM) }

// Kill ends every process of the tree at once.
func (t *Tree) Kill() { signal(t.members(), syscall.SIGKILL) }

func (g *Group) alive() bool { return len(g.members()) > 0 }
func (g *Group) interrupt()  { signal(g.members(), syscall.SIGTERM) }
func (g *Group) kill()       { signal(g.members(), syscall.SIGKILL) }
