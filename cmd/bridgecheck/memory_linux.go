package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// freeMemory is how many bytes this process may still take by its limit of address space (ulimit -v) and by that of its
// container; 0: there is no limit.
func freeMemory() (free int64) {
	less := func(most, taken int64) {
		if left := max(most-taken, 1); free == 0 || left < free {
			free = left
		}
	}
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < 1<<62 {
		less(int64(space.Cur), figureIn("/proc/self/statm")*int64(os.Getpagesize()))
	}
	if most := figureIn("/sys/fs/cgroup/memory.max"); most > 0 {
		less(most, figureIn("/sys/fs/cgroup/memory.current"))
	}
	return free
}

// figureIn is the first figure of a file; 0 where there is none.
func figureIn(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	n, _ := strconv.ParseInt(string(first), 10, 64)
	return n
}
