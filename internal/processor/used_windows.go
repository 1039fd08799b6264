package processor

import (
	"syscall"
	"time"
)

// Used is how much of the processor this process has taken. Windows does not tell what those have taken that it started.
func Used() (own, ended time.Duration) {
	var created, exited, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0, 0
	}
	return ticks(kernel) + ticks(user), 0
}

// ticks is a duration, which Windows gives in units of 100 ns.
func ticks(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32+int64(t.LowDateTime)) * 100
}
