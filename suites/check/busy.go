package check

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/processor"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
)

// How long a run waits for a site that says that it is busy.
const (
	mostWaits    = 4                      // for one request
	shortestWait = 250 * time.Millisecond // the first; each is twice as long as the one before
	mostVain     = 3                      // requests of a run that are sent again for a site that fails, and go on failing
	longestWait  = 30 * time.Second       // each; a site that asks for more is not waited for
	manyWrong    = 20                     // credentials that were refused; a bridge that then refuses callers for longer protects its site
)

// waitOut waits while the response is that the site is busy (429, or 503 with Retry-After) or fails (502, 503 or 504 in the
// contract's words), and sends the request again as often as that may help. Where the site then serves nobody, or is gone,
// the run ends: what comes now says nothing of the bridge. A site that fails and comes back has failed by itself.
func (c Client) waitOut(ctx context.Context, r Request, a *Response) {
	t := c.T
	failed := ""
	for n := range mostWaits {
		pause, busy := a.Busy()
		if a.siteFails() && t.vain.Load() < mostVain {
			busy, failed = true, fmt.Sprintf("the site behind the bridge fails now and then: %s got %s", a.Subject(), a.Outcome())
		}
		pause = max(pause, shortestWait<<n)
		if !busy || pause > longestWait || a.Status != http.StatusTooManyRequests && (!t.Responded || c.mayRun(r)) || !rewound(r) {
			break
		}
		if !c.again(ctx, r, a, pause) {
			return
		}
	}
	switch {
	case failed == "":
	case !a.siteFails():
		t.flaps.Store(true)
		t.excuseBySite(failed)
	case t.flaps.Load():
		t.excuseBySite(failed)
	default:
		t.vain.Add(1)
	}
	if !t.Responded {
		return
	}
	if _, busy := a.Busy(); busy || Failing(a.Status) || a.Status == 0 && t.Context.Err() == nil && ctx.Err() == nil {
		c.askAfter(ctx, a)
	}
}

// again sends a request once more after a pause, and reports whether the run goes on so long.
func (c Client) again(ctx context.Context, r Request, a *Response, pause time.Duration) bool {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return false
	case <-c.T.Context.Done():
		return false
	}
	a.At = time.Now()
	c.exchange(ctx, r, a, c.T.Policy.Timeout)
	a.Took = time.Since(a.At)
	return true
}

// waitForPlace waits while a bridge in front of a mock limits how often its caller calls, as any bridge may, and sends the
// request again. The mock knows that it was the bridge. After three requests that are refused however long they wait, the
// run waits no more. A bridge that refuses for longer, after the many wrong credentials of a run, is not to blame.
func (c Client) waitForPlace(ctx context.Context, r Request, a *Response, since int64) {
	t := c.T
	if a.Status == http.StatusUnauthorized && !c.Creds.Empty() {
		t.unauthorized.Add(1)
	}
	for n := 0; c.waits && a.Throttled() && t.siteRefusedNone(since); n++ {
		pause, _ := a.Busy()
		if wrong := t.unauthorized.Load(); pause > longestWait && wrong >= manyWrong {
			t.Excuse(fmt.Sprintf("the bridge refuses %s for %s, after %d wrong credentials of this run: raise that limit of the bridge while it is tested (a bridge of --exec reads BRIDGE_AUTH_ADDRESS_FAILURES and BRIDGE_AUTH_TOTAL_FAILURES)",
				c.Who, Rounded(pause), wrong))
		}
		if t.limited.Load() >= mostVain {
			return
		}
		if n == mostWaits || pause > longestWait || !rewound(r) {
			t.limited.Add(1)
			return
		}
		if !c.again(ctx, r, a, pause) {
			return
		}
	}
}

// siteRefusedNone reports whether the mock has refused no request for its number since then.
func (t *T) siteRefusedNone(since int64) bool {
	return t.Drupal != nil && !slices.ContainsFunc(t.Upstream.Recorder.Journal().Entries(since), func(e journal.Entry) bool { return e.Status == http.StatusTooManyRequests })
}

// longestPause bounds what a Retry-After is read as, in seconds, so that no number of a bridge's overflows.
const longestPause = 1 << 30

// siteFails reports whether the bridge says, in the contract's words, that its site does not serve.
func (a *Response) siteFails() bool { return Failing(a.Status) && a.Code() != "" }

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

// askAfter asks for the agent's list, which the bridge gave when the run began, on a connection of its own, and as a caller
// with wrong credentials, where the bridge has to ask the site. Where one of them fails in the same way it ends the run.
func (c Client) askAfter(ctx context.Context, a *Response) {
	t := c.T
	control := t.As(Agent).probe(ctx)
	if control.Status != 0 && !control.unserved() && t.Strangers {
		control = t.With("nobody", WrongCredentials).probe(ctx)
	}
	if control.Status != 0 && !control.unserved() || t.Context.Err() != nil || ctx.Err() != nil {
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

// WrongCredentials are those of nobody.
var WrongCredentials = Credentials{User: "bridgecheck-nobody", Password: "no-such-password"}

// probe asks for the list on a connection of its own, outside of the check.
func (c Client) probe(ctx context.Context) *Response {
	r := &Response{Who: c.Who, Method: http.MethodGet, Path: ListPath, T: c.T}
	for try := 0; try <= SecondTries && r.Status == 0 && r.Err != ErrTimeout; try++ {
		r.Err = nil
		c.exchange(ctx, Request{Method: http.MethodGet, Path: ListPath, Fresh: true}, r, c.T.Policy.Timeout)
	}
	return r
}

// unserved reports whether the response is that nobody is served now.
func (a *Response) unserved() bool {
	_, busy := a.Busy()
	return busy || Failing(a.Status)
}

// SecondTries is how often a list without a response is asked for again before the target counts as dead.
const SecondTries = 2

// lag is how late this process gets its turn. On an overloaded machine it is late, as the bridge and the mock are.
type lag struct {
	mu   sync.Mutex
	late []lateTurn
}

type lateTurn struct {
	at time.Time
	by time.Duration
}

// How lag is measured.
const (
	lagEvery   = 20 * time.Millisecond
	overloaded = 200 * time.Millisecond // a turn that is so late: an idle machine is not late by a tenth of it
)

// WatchLag measures how late this process gets its turn until ctx ends.
func (e *Environment) WatchLag(ctx context.Context) {
	for ctx.Err() == nil {
		slept := time.Now()
		time.Sleep(lagEvery)
		if by := time.Since(slept) - lagEvery; by >= overloaded {
			e.lag.mu.Lock()
			e.lag.late = append(e.lag.late, lateTurn{slept, by})
			e.lag.mu.Unlock()
		}
	}
}

// lagSince is how late this process got its turn at most since a time, as far as it counts.
func (e *Environment) lagSince(since time.Time) time.Duration {
	e.lag.mu.Lock()
	defer e.lag.mu.Unlock()
	var most time.Duration
	for i := len(e.lag.late) - 1; i >= 0 && !e.lag.late[i].at.Add(e.lag.late[i].by).Before(since); i-- {
		most = max(most, e.lag.late[i].by)
	}
	return most
}

// ExcuseLag excuses the check, which found something to be late, where the machine was overloaded while it ran.
func (t *T) ExcuseLag() {
	if by := t.lagSince(t.began); by > 0 {
		t.excuseOverload(fmt.Sprintf("this process got its turn %s late", Rounded(by)))
	}
}

// ExcuseCrowd excuses the check, in which the bridge had not the time for what it computes, where others compute, too.
func (t *T) ExcuseCrowd() {
	share := processor.Share(100)
	if share < crowded {
		t.excuseOverload(fmt.Sprintf("this process gets %.0f %% of a processor", 100*share))
	}
}

// crowded is the share of a processor below which a bridge may compute too long.
const crowded = 0.7

func (t *T) excuseOverload(seen string) {
	t.Excuse("the machine is overloaded: " + seen + "; run it again with free cores")
}
