package throttle

import (
	"crypto/sha256"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/recent"
)

// SharedRates counts calls over all replicas of a bridge. An error: this replica counts alone.
type SharedRates interface {
	Take(bucket []byte, perSecond float64, burst int) (wait time.Duration, err error)
}

// Rates bounds how often one caller may do one thing, such as call a tool.
type Rates struct {
	Shared SharedRates // nil: this replica counts alone

	perSecond rate.Limit
	burst     int
	now       func() time.Time
	buckets   *recent.Cache[[sha256.Size]byte, *rate.Limiter] // by the digest of a caller's digest and a tool
}

// maxBuckets bounds the memory; the bucket that was used the longest ago goes first.
const maxBuckets = 100_000

// NewRates allows each caller perSecond calls of each tool, and burst at once; nil when perSecond is not positive.
func NewRates(perSecond float64, burst int, now func() time.Time) *Rates {
	if perSecond <= 0 {
		return nil
	}
	buckets := recent.New[[sha256.Size]byte, *rate.Limiter](maxBuckets, nil)
	return &Rates{perSecond: rate.Limit(perSecond), burst: max(burst, 1), now: now, buckets: buckets}
}

// Allow takes one call out of the caller's bucket, or gives a RateLimited fault with the time to wait.
func (l *Rates) Allow(caller [32]byte, tool string) error {
	wait, err := time.Duration(0), errAlone
	bucket := append(caller[:], tool...)
	if l.Shared != nil {
		wait, err = l.Shared.Take(bucket, float64(l.perSecond), l.burst)
	}
	if err != nil {
		wait = l.take(sha256.Sum256(bucket))
	}
	if wait == 0 {
		return nil
	}
	e := fault.New(fault.RateLimited, "This caller has called %s too often; retry in %d s.", tool, seconds(wait))
	e.RetryAfter = wait
	return e
}

var errAlone = errors.New("nothing is shared")

// take takes one call out of a bucket of this replica, or returns the time to wait.
func (l *Rates) take(key [sha256.Size]byte) time.Duration {
	bucket := l.buckets.GetOrMake(key, func() *rate.Limiter { return rate.NewLimiter(l.perSecond, l.burst) })
	now := l.now()
	r := bucket.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
