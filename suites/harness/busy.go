package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// How long a run waits for a site that says that it is busy.
const (
	mostWaits    = 4                      // for one request
	shortestWait = 250 * time.Millisecond // the first; each is twice as long as the one before
	longestWait  = 30 * time.Second       // each; a site that asks for more is not waited for
)

// waitOut waits while the response is that the site is busy (429, or 503 with Retry-After), and sends the request again as
// often as that may help. Where the site then serves nobody, or is gone, the run ends: what comes now says nothing of the
// bridge.
func (c Client) waitOut(ctx context.Context, r Request, a *Response) {
	t := c.T
	for n := range mostWaits {
		pause, busy := a.Busy()
		pause = max(pause, shortestWait<<n)
		if !busy || pause > longestWait || a.Status != http.StatusTooManyRequests && (!t.Responded || c.mayRun(r)) || !rewound(r) {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		case <-t.Context.Done():
			return
		}
		a.At = time.Now()
		c.exchange(ctx, r, a, t.Policy.Timeout)
		a.Took = time.Since(a.At)
	}
	if !t.Responded {
		return
	}
	if _, busy := a.Busy(); busy || a.Status == http.StatusServiceUnavailable || a.Status == 0 && t.Context.Err() == nil && ctx.Err() == nil {
		c.askAfter(ctx, a)
	}
}

// longestPause bounds what a Retry-After is read as, in seconds, so that no number of a bridge's overflows.
const longestPause = 1 << 30

// Busy reports whether the response is that the site cannot serve now, and how long it asks to wait.
func (a *Response) Busy() (pause time.Duration, busy bool) {
	after := a.Header.Get("Retry-After")
	if a.Status != http.StatusTooManyRequests && (a.Status != http.StatusServiceUnavailable || after == "") {
		return 0, false
	}
	pause = time.Second
	if seconds, err := strconv.Atoi(after); err == nil {
		pause = time.Duration(min(seconds, longestPause)) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		pause = time.Until(at)
	}
	return max(pause, 0), true
}

// rewound makes a body start again; false where it cannot.
func rewound(r Request) bool {
	if r.Body == nil {
		return true
	}
	seeker, ok := r.Body.(io.Seeker)
	if !ok {
		return false
	}
	_, err := seeker.Seek(0, io.SeekStart)
	return err == nil
}

// askAfter asks for the agent's list, which the bridge gave when the run began, on a connection of its own. Where that
// fails in the same way it ends the run.
func (c Client) askAfter(ctx context.Context, a *Response) {
	t := c.T
	control := &Response{Who: Agent, Method: http.MethodGet, Path: ListPath, T: t}
	for try := 0; try <= SecondTries && control.Status == 0 && control.Err != ErrTimeout; try++ {
		control.Err = nil
		t.As(Agent).exchange(ctx, Request{Method: http.MethodGet, Path: ListPath, Fresh: true}, control, t.Policy.Timeout)
	}
	_, busy := control.Busy()
	if !busy && control.Status != http.StatusServiceUnavailable && control.Status != 0 || t.Context.Err() != nil || ctx.Err() != nil {
		return
	}
	if control.Status == 0 {
		t.End(fmt.Errorf("the bridge responds no more since %s: %s", a.At.UTC().Format(time.TimeOnly+" UTC"), t.Redact.Text(control.Outcome())))
		return
	}
	asks := ""
	if after := control.Header.Get("Retry-After"); after != "" {
		asks = ", Retry-After " + after
	}
	t.End(fmt.Errorf("the site responds to everything with %d since %s%s: %s", control.Status, a.At.UTC().Format(time.TimeOnly+" UTC"), asks,
		exact.Cut(OneLine(t.Redact.Text(string(control.Body))), 120)))
}

// SecondTries is how often a list without a response is asked for again before the target counts as dead.
const SecondTries = 2
