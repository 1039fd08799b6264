package load

import (
	"testing"
	"testing/synctest"
	"time"

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
				})
				if got != test.want {
					t.Errorf("%v after %d requests, want %v", got, asked, test.want)
				}
				if asked > mayRefresh {
					t.Errorf("%d requests to a bridge that is slow, want %d at most", asked, mayRefresh)
				}
			})
		})
	}
}
