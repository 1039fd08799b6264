//go:build unix

package machine

import (
	"math"
	"syscall"
)

// OpenFiles is how many files this process, and a program that it starts, may open.
func OpenFiles() uint64 { return limit(syscall.RLIMIT_NOFILE) }

// addressSpace is how much address space a process may have, in bytes.
func addressSpace() uint64 { return limit(syscall.RLIMIT_AS) }

// processorTime is for how many seconds a process may compute.
func processorTime() uint64 { return limit(syscall.RLIMIT_CPU) }

func limit(resource int) uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(resource, &l); err != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur)
}
