//go:build unix

package processor

import (
	"syscall"
	"time"
)

// Used is how much of the processor this process has taken, and those that it started and that have ended.
func Used() (own, ended time.Duration) {
	return used(syscall.RUSAGE_SELF), used(syscall.RUSAGE_CHILDREN)
}

func used(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
