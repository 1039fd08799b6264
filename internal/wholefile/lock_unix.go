//go:build unix && !solaris && !aix

package wholefile

import (
	"os"
	"syscall"
	"time"
)

// waitsLock is longer than anybody writes; a process that is stopped holds nobody up for longer.
const waitsLock = 5 * time.Second

// Lock keeps other processes that ask for it from a directory until unlock is called. Where the file system has no locks, or another
// process keeps one too long, nothing is locked.
func Lock(dir string) (unlock func()) {
	d, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	for deadline := time.Now().Add(waitsLock); ; time.Sleep(5 * time.Millisecond) {
		if err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK && err != syscall.EINTR || time.Now().After(deadline) {
			return func() { d.Close() }
		}
	}
}
