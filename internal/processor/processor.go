// Package processor measures how much of a processor this process gets.
package processor

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"time"
)

// Share is the part of a processor that this process gets while it computes, from 0 to 1: near 1 where one is free. It
// computes for some milliseconds for every ten rounds.
func Share(rounds int) float64 {
	block := make([]byte, 1<<20)
	return share(rounds, func() time.Duration {
		began := time.Now()
		sha256.Sum256(block)
		return time.Since(began)
	})
}

// Granted is Share as the system sees it, where it tells: how much of the time in which this thread wanted to compute it did. What
// else this process computes does not count as others do. Where the system does not tell, it is Share.
func Granted(rounds int) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ranBefore, waitedBefore, _ := schedule()
	seen := Share(rounds)
	ran, waited, ok := schedule()
	if ran -= ranBefore; !ok || ran <= 0 {
		return seen
	}
	return ran / (ran + waited - waitedBefore)
}

// Wanting is for how long, since the system began, somebody who wanted to compute had to wait for a processor; false where the system
// does not tell.
func Wanting() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/pressure/cpu") // of Linux
	if err != nil {
		return 0, false
	}
	_, total, _ := strings.Cut(string(text), "total=")
	var us int64
	_, err = fmt.Sscan(total, &us)
	return time.Duration(us) * time.Microsecond, err == nil
}

// schedule is how long this thread has computed, and how long it has waited to, in nanoseconds; false where nobody tells.
func schedule() (ran, waited float64, ok bool) {
	text, err := os.ReadFile("/proc/thread-self/schedstat") // of Linux
	if err != nil {
		return 0, 0, false
	}
	n, err := fmt.Sscan(string(text), &ran, &waited)
	return ran, waited, err == nil && n == 2
}

// share is the least time of a piece of work to the mean of many.
func share(rounds int, work func() time.Duration) float64 {
	var all time.Duration
	least := time.Duration(math.MaxInt64)
	for range rounds {
		took := work()
		all, least = all+took, min(least, took)
	}
	return float64(least) * float64(rounds) / float64(all)
}
