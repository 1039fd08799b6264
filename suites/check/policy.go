package check

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// Policy is what a run does around sending a request. A check sees none of it: it gets one response to one request.
type Policy struct {
	Rate    *rate.Limiter // of the run's own requests; nil: no limit
	WaitOut bool          // wait while the response is 429, or 503 with Retry-After, and end the run where nobody is served any more
	Timeout time.Duration // of one request

	patience patience
}

// send sends a request under the policy. A failure of the transport is kept in the response.
func (p *Policy) send(ctx context.Context, c Client, r Request) *Response {
	a := c.ResponseTo(&r)
	if c.T.Context.Err() != nil {
		c.T.cutShort()
	}
	before, keep := c.remembered(r)
	if before != nil {
		return before
	}
	defer func() { keep(a) }()
	a = c.Patiently(a, func(limit time.Duration, since int64) {
		if c.T.Drupal == nil && c.mayRun(r) {
			r.Fresh = true // it is never sent twice, so nothing but the bridge may be to blame when no response comes
		}
		if c.exchange(ctx, r, a, limit) && c.mayRepeat(r, since) {
			a.Err, r.Fresh = nil, true
			c.T.WaitForRate()
			c.exchange(ctx, r, a, limit)
		}
		a.Took = time.Since(a.At)
		if p.WaitOut {
			c.waitOut(ctx, r, a)
		}
		c.waitForPlace(ctx, r, a, since)
		c.T.Record(a, since)
	})
	if c.T.Context.Err() != nil && (a.Err != nil || a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable) {
		c.T.cutShort()
	}
	if errors.Is(a.Err, syscall.ECONNREFUSED) && !p.WaitOut && c.Replica == 0 {
		c.endIfGone(ctx, a)
	}
	return a
}

// WaitForRate waits until the run may send its next request.
func (t *T) WaitForRate() {
	if t.Rate != nil {
		_ = t.Rate.Wait(t.Context) // who sends notices that the run has ended
	}
}

// How long a bridge that refuses connections may take to come back.
const (
	restartTime  = 2 * time.Second
	restartProbe = 100 * time.Millisecond
)

// endIfGone ends the run, with the running check failed, where the bridge accepts no connections any more.
func (c Client) endIfGone(ctx context.Context, a *Response) {
	back := Within(ctx, restartTime, func() bool {
		probe := &Response{Who: c.Who, Method: http.MethodGet, Path: ListPath, T: c.T}
		c.exchange(ctx, Request{Method: http.MethodGet, Path: ListPath, Fresh: true}, probe, restartProbe)
		return !errors.Is(probe.Err, syscall.ECONNREFUSED)
	})
	if back || ctx.Err() != nil || c.T.Context.Err() != nil {
		return
	}
	why := Mismatch(a.Subject(), "a response", "none: the bridge accepts no connections any more, as if it had ended")
	c.T.End(errors.New("the bridge accepts no connections since " + a.At.UTC().Format(time.TimeOnly+" UTC")))
	if c.T.inCheck {
		c.T.Fail(why)
	}
}
