//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// memory is the peak of a process that has ended, in KiB; of it and those that it started, that of the largest.
func memory(p *os.ProcessState) int64 {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // in bytes there
		return int64(u.Maxrss) / 1024
	}
	return int64(u.Maxrss)
}
