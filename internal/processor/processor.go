// Package processor measures how much of a processor this process gets.
package processor

import (
	"crypto/sha256"
	"math"
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
