package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
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
	faulty := c.T.Upstream.Faulty()
	kind := kindOf(a)
	if last := p.patience.exhausted(kind); last != nil && !faulty {
		return c.unsent(last)
	}
	c.T.WaitForRate()
	since := c.T.Upstream.Last()
	a.At = time.Now()
	if c.T.Drupal == nil && c.mayRun(r) {
		r.Fresh = true // it is never sent twice, so nothing but the bridge may be to blame when no response comes
	}
	limit := p.Timeout
	if !faulty {
		limit = p.patience.limit(p.Timeout)
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
	c.T.Record(a, since)
	if !faulty {
		p.patience.note(kind, a)
	}
	if c.T.Context.Err() != nil && (a.Err != nil || a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable) {
		c.T.cutShort()
	}
	if errors.Is(a.Err, syscall.ECONNREFUSED) && !p.WaitOut {
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

// How much patience a run has with a bridge that does not respond.
const (
	maxSilent    = 3               // time-outs in a row of one kind of request; further ones are not sent
	maxPatient   = 2               // time-outs of a run that last as long as they may
	shortTimeout = 2 * time.Second // of the requests after them, or longer where the bridge is slow
)

// patience bounds what requests without a response cost a run.
type patience struct {
	mu      sync.Mutex
	silent  map[string]int       // time-outs in a row, by kind
	last    map[string]*Response // that timed out, by kind
	total   int                  // time-outs
	slowest time.Duration        // of the responses
}

// exhausted is the last response of a kind that is no longer sent; nil as long as it is.
func (p *patience) exhausted(kind string) *Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent[kind] < maxSilent {
		return nil
	}
	return p.last[kind]
}

// limit is the time that the next request has.
func (p *patience) limit(usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total < maxPatient {
		return usual
	}
	return min(usual, max(shortTimeout, 4*p.slowest))
}

func (p *patience) note(kind string, a *Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(a.Err, ErrTimeout) {
		delete(p.silent, kind)
		if a.Err == nil {
			p.slowest = max(p.slowest, a.Took)
		}
		return
	}
	if p.silent == nil {
		p.silent, p.last = map[string]int{}, map[string]*Response{}
	}
	p.silent[kind]++
	p.last[kind] = a
	p.total++
}

var rpcMethod = regexp.MustCompile(`"method":\s*"([^"]*)"`)

// kindOf names the kind of a request: what a bridge treats alike.
func kindOf(a *Response) string {
	kind := a.Method + " " + a.Path
	if method := rpcMethod.FindStringSubmatch(a.Shown); method != nil && a.Path == MCPPath {
		kind += " " + method[1]
	}
	return kind
}

// unsent is the response to a request that is not sent, because so many of its kind timed out: the last of those.
func (c Client) unsent(last *Response) *Response {
	a := *last
	a.T = c.T
	a.Err = fmt.Errorf("%w, as %d in a row before it: no more of this kind are sent", ErrTimeout, maxSilent)
	c.T.Record(&a, c.T.Upstream.Last())
	return &a
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
