// Package machine is the one place that decides whether an error of the operating system is the machine's fault, and that
// looks at what the machine is short of. It tests nothing; of this process it sets how much memory it takes.
//
// Its invariant: what it says begins with "the machine", names what is short and says what helps, so that a report that
// repeats it blames no bridge.
package machine

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"syscall"
)

// faults are the errors of the operating system that are the machine's, whoever met them on our side.
var faults = []struct {
	errors []error
	why    func() string
}{
	{[]error{syscall.EMFILE}, func() string { return shortOfFiles(OpenFiles()) }},
	{[]error{syscall.ENFILE}, func() string { return "the machine has no more open files for any process: end others" }},
	{[]error{syscall.EADDRNOTAVAIL}, func() string { return NoPort }},
	{[]error{syscall.ENETUNREACH, syscall.ENETDOWN}, func() string { return noNetwork }},
	{[]error{syscall.ENOBUFS, syscall.ENOMEM}, func() string { return "the machine is out of memory: give it more, or test with --jobs 1" }},
	{[]error{syscall.ENOSPC, syscall.EDQUOT}, func() string {
		return "the machine's disk is full: free some of it, or name another directory by --report-dir or TMPDIR"
	}},
	{[]error{syscall.EAGAIN}, func() string { return "the machine starts no more processes: raise the limit (ulimit -u)" }},
}

// NoPort is the fault where a port that the system chooses cannot be had; Linux calls it an address in use, too.
const NoPort = "the machine has no free port or no such address: let more ports be used (sysctl net.ipv4.ip_local_port_range), and see that the loopback interface is up (ip link set lo up)"

const noNetwork = "the machine has no network to that address: where it is 127.0.0.1, the loopback interface is down (ip link set lo up)"

// Fault says what of the machine is to blame for an error; "": nothing, or it is no error of the operating system.
func Fault(err error) string {
	for _, f := range faults {
		for _, errno := range f.errors {
			if errors.Is(err, errno) {
				return f.why()
			}
		}
	}
	return ""
}

// What a run needs, rounded up from what test/environments met.
const (
	filesOfBurst  = 512       // open files of a process that sends the largest burst of a run, and serves it
	filesOfWorker = 64        // of a further worker
	memoryOfRun   = 128 << 20 // of a run with one worker, and a small bridge
	memoryWorker  = 48 << 20  // of a further worker, with its bridge
	diskOfRun     = 16 << 20  // of the report, the log of a bridge, and what workers hand on
	portsOfRun    = 1024      // of the largest burst, whose connections are closed and keep their ports for a minute
	threadsOfRun  = 64        // of this process and a small bridge
	fewestThreads = 20        // below which the Go runtime ends in the middle
	secondsOfRun  = 120       // of a processor
)

// FewFiles says that a process may open fewer files than the largest burst of a run needs; "": it may open enough.
func FewFiles() string {
	if n := OpenFiles(); n < filesOfBurst {
		return shortOfFiles(n)
	}
	return ""
}

// FewPorts says that there are fewer ports for connections than the largest burst of a run needs; "": there are enough.
func FewPorts() string {
	if n := ports(); n < portsOfRun {
		return fmt.Sprintf("the machine has only %d ports for connections: let more be used (sysctl net.ipv4.ip_local_port_range)", n)
	}
	return ""
}

func shortOfFiles(limit uint64) string {
	return fmt.Sprintf("the machine lets a process open only %d files: raise the limit (ulimit -n %d)", limit, 2*filesOfBurst)
}

// Workers is how many of the wanted workers the machine has files and memory for, at least one, and why it has no more; "":
// it has.
func Workers(wanted int) (n int, why string) {
	n = wanted
	fewer := func(most uint64, reason string) {
		if most := max(1, int(min(most, math.MaxInt32))); most < n {
			n, why = most, reason
		}
	}
	if limit := OpenFiles(); limit < filesOfBurst+uint64(wanted-1)*filesOfWorker {
		fewer(limit/filesOfWorker/2, shortOfFiles(limit))
	}
	if limit := Memory(); limit < memoryOfRun+uint64(wanted-1)*memoryWorker {
		more := uint64(0)
		if limit > memoryOfRun {
			more = (limit - memoryOfRun) / memoryWorker
		}
		fewer(1+more, fmt.Sprintf("the machine gives this process %d MiB of memory", limit>>20))
	}
	return n, why
}

// BoundMemory collects garbage before three quarters of the memory are taken that the machine gives this process, where it limits
// that and the environment says nothing else.
func BoundMemory() {
	free := Memory()
	if space := addressSpace(); space < 1<<62 {
		free = min(free, space-min(space, reserved()))
	}
	if free < 1<<62 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(free / 4 * 3))
	}
}

// CollectLess takes up to so many bytes, which are cheaper than collecting them, and less where the machine has less, unless
// the environment says otherwise, until stop is called. What lives may take more: a limit of the runtime would then collect all
// the time.
func CollectLess(most uint64) (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	most = min(most, Memory()/3) // a bridge beside it needs some, and so does a burst
	before := debug.SetGCPercent(mostGarbage)
	var stopped atomic.Bool
	afterCollection(func() bool {
		if stopped.Load() {
			return false
		}
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetGCPercent(garbage(live[0].Value.Uint64(), most))
		return true
	})
	return func() {
		stopped.Store(true)
		debug.SetGCPercent(before)
	}
}

// afterCollection calls f whenever garbage was collected, until it returns false: a timer comes too late for a burst.
func afterCollection(f func() bool) {
	runtime.SetFinalizer(&struct{ _ *byte }{}, func(any) {
		if f() {
			afterCollection(f)
		}
	})
}

// How much garbage there may be, in percent of what lives: with 50 a run in this process, where a hundred megabytes live, takes a quarter
// more of the processor.
const (
	leastGarbage = 100
	mostGarbage  = 400
)

// garbage is as much as leaves the heap within a number of bytes, in steps of ten.
func garbage(live, most uint64) int {
	if live >= most {
		return leastGarbage
	}
	return int(min(max((most-live)*10/max(live, 1)*10, leastGarbage), mostGarbage))
}

// Lacks lists what the machine is short of for a run that writes below the directories. Two of them are given by themselves, too: fatal
// is one without which nothing works, noLoopback that the machine has no way from a process to another.
func Lacks(written ...string) (all []string, fatal, noLoopback string) {
	if why := FewFiles(); why != "" {
		all = append(all, why)
	}
	if why := FewPorts(); why != "" {
		all = append(all, why)
	}
	if n := threads(); n < threadsOfRun {
		why := fmt.Sprintf("the machine lets this user have only %d processes and threads: raise the limit (ulimit -u %d, or that of the container)",
			n, 4*threadsOfRun)
		if all = append(all, why); n < fewestThreads {
			fatal = why
		}
	}
	if n := processorTime(); n < secondsOfRun {
		all = append(all, fmt.Sprintf("the machine ends a process that has computed for %d s: raise the limit (ulimit -t %d)", n, 5*secondsOfRun))
	}
	for _, dir := range written {
		if free := free(dir); free < diskOfRun {
			all = append(all, fmt.Sprintf("the machine's disk has only %d KiB free for %s: free some of it, or name another directory by --report-dir or TMPDIR", free>>10, dir))
		}
	}
	if limit := addressSpace(); limit < needOfSpace {
		all = append(all, fmt.Sprintf("the machine gives a process %d MiB of addresses: raise the limit (ulimit -v unlimited)", limit>>20))
	}
	if err := connect(); err != nil {
		if noLoopback = Fault(err); noLoopback == "" {
			noLoopback = "the machine makes no connection to 127.0.0.1: " + err.Error()
		}
		all = append(all, noLoopback)
	}
	return all, fatal, noLoopback
}

// connect makes a connection as a run makes many.
func connect() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// needOfSpace is the address space that the Go runtime and its threads take, of which most is never used.
const needOfSpace = 1 << 30
