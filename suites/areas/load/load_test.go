package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// A bridge that takes long to fill its cache may do that in the first requests, one after the other.
func TestFastestLooksBehindAnExpiredCache(t *testing.T) {
	for name, test := range map[string]struct {
		slow int // requests that fill the cache
		want time.Duration
	}{
		"at once": {0, time.Millisecond}, "after one": {1, time.Millisecond}, "after three": {3, time.Millisecond}, "never": {100, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				got := fastest(50, 2*time.Millisecond, func() *check.Response {
					took := 5 * time.Second
					if asked >= test.slow {
						took = time.Millisecond
					}
					asked++
					time.Sleep(took)
					return &check.Response{Took: took}
				}, func(int, time.Time) bool { return false })
				must.Expect(t, got == test.want, "%v after %d requests, want %v", got, asked, test.want)
				must.Expect(t, asked <= mayRefresh, "%d requests to a bridge that is slow, want %d at most", asked, mayRefresh)
			})
		})
	}
}

// A machine that holds nobody up needs no four seconds to show that a bridge is slow, and one that does gets them.
func TestFastestEndsEarlyOnACalmMachine(t *testing.T) {
	for name, test := range map[string]struct {
		calm bool
		most time.Duration
	}{"calm": {true, time.Second}, "busy": {false, enoughNoise + time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				fastest(500, 10*time.Millisecond, func() *check.Response {
					time.Sleep(50 * time.Millisecond)
					return &check.Response{Took: 50 * time.Millisecond}
				}, func(_ int, since time.Time) bool { return test.calm && time.Since(since) > aWhile })
				took := time.Since(began)
				must.Expect(t, took <= test.most && (test.calm || took >= enoughNoise), "it took %v", took)
			})
		})
	}
}
