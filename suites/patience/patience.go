// Package patience is the one layer around a client: it paces requests, sends one again where the connection was dropped,
// waits while the site or the bridge is busy, bounds what a bridge without a response costs, and finds out who is to blame.
// It compares nothing with the contract.
//
// Client.Send is the only way through, in steps that are read from top to bottom (send.go); a Policy says which of them a
// client takes. A Run is what all requests of a run share, a Scope what those of one check do. The invariant: whatever the
// policy, a caller gets one response to one request, and a request that may run a tool is never sent twice unless the first
// did not reach the site.
package patience

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Policy is what a client does around sending a request.
type Policy struct {
	Resend        bool // once more, where the connection was dropped
	WaitWhileBusy bool // while the site is busy or fails, in a run that does so (Settings.WaitOut)
	WaitForPlace  bool // while the bridge limits how often its caller calls
	Record        bool // as evidence of the running check
}

// The policies that clients have.
var (
	Wait   = Policy{Resend: true, WaitWhileBusy: true, WaitForPlace: true, Record: true} // of the callers of a run
	NoWait = Policy{Resend: true, WaitWhileBusy: true, Record: true}                     // the bridge's 429 is the response
	Once   = Policy{Record: true}                                                        // of exchanges by a check's own means
	Stream = Policy{}                                                                    // of a stream that is opened, without a response yet
)

// Settings are what a run was given for its requests.
type Settings struct {
	Timeout   time.Duration      // of one request
	Rate      *rate.Limiter      // of the run's own requests; nil: no limit
	Spares    bool               // the bridge's limits for wrong credentials are not the run's
	WaitOut   bool               // wait while the site is busy or fails, and end the run where nobody is served any more
	SiteLimit time.Duration      // how long the bridge waits for the site; 0: unknown
	Observed  *site.Upstream     // what reaches the site; nil: it is not seen
	Issuer    *authserver.Server // that a check may make hang; nil: there is none
	Known     bool               // the site's data are known: most often it is the mock
	Allowed   []string           // the tools that a run without a known site may run
	Secrets   *redact.Redactor   // of messages
	Brief     bool               // the run ends where the bridge does not respond: somebody tests again what it has tested
	Spent     *Timeouts          // of runs before this one; nil: there are none
}

// Run is what the requests of a run share: how they are sent, and what the run has learned from the responses.
type Run struct {
	Settings
	Context   context.Context // of the whole run
	End       func(why error) // ends the whole run
	Responded bool            // the bridge has responded as one
	Strangers bool            // the bridge has responded to wrong credentials, not with a failure of its site

	timeouts           Timeouts     // unless Settings.Spent has them
	siteRecovered      atomic.Bool  // the site has failed and come back
	futileRetries      atomic.Int32 // requests that were sent again for a site that then failed still
	futileWaits        atomic.Int32 // requests in succession that the bridge refused for their number however long they waited
	limits             atomic.Bool  // it has refused one for their number
	places             sync.Map     // caller, kind and tool of those that it has refused → whether it has served one since
	refusedCredentials atomic.Int32 // with 401
	lateness           lateness
}

// faulty reports whether a fault of the site is armed, or the issuer hangs: then a bridge that fails, or does not respond, may be
// correct.
func (r *Run) faulty() bool { return r.Observed.Faulty() || r.Issuer.Hanging() }

// spent is what requests without a response have cost.
func (r *Run) spent() *Timeouts {
	if r.Spent != nil {
		return r.Spent
	}
	return &r.timeouts
}

// Carried says why what a check found may depend on the checks that were tested before it; "": it does not, as far as the
// harness knows.
func (r *Run) Carried() string {
	if why := r.spent().carried(); why != "" {
		return why
	}
	if r.siteRecovered.Load() || r.futileRetries.Load() > 0 {
		return "the site fails now and then"
	}
	return ""
}

// WaitForRate waits until the run may send its next request.
func (r *Run) WaitForRate() {
	if r.Rate != nil {
		_ = r.Rate.Wait(r.Context) // who sends notices that the run has ended
	}
}

// Scope is what the requests of one check have in common: what became of them, and what exempts the bridge from blame.
type Scope struct {
	During string // the clause that is tested; "": none

	run    *Run
	began  time.Time
	record func(a *client.Response, since int64) // as evidence
	agent  func() client.Client

	mu         sync.Mutex
	waitedFor  time.Duration // a bridge that limits how often its caller calls
	waitsUntil time.Time     // end of the last of these waits
	exemption  exemption
	unsent     atomic.Int64 // requests that the run had no patience for
	unserved   atomic.Bool  // the bridge did not serve a request
	traffic    traffic
}

// Begin starts the scope of a check: record keeps an exchange as evidence, from a position of the site's journal; agent is
// the caller of control requests.
func (s *Scope) Begin(run *Run, record func(a *client.Response, since int64), agent func() client.Client) {
	s.run, s.began, s.record, s.agent = run, time.Now(), record, agent
}

// Began is when the check began.
func (s *Scope) Began() time.Time { return s.began }

// Unsent counts the requests that the run had no patience for.
func (s *Scope) Unsent() int64 { return s.unsent.Load() }

// Unserved reports whether the bridge did not serve a request of the check: it gave no response, 429 or 500 and more.
func (s *Scope) Unserved() bool { return s.unserved.Load() }

// Client sends the requests of one caller under a policy.
type Client struct {
	client.Client
	*Scope
	Policy   Policy
	Exchange Exchange // nil: that of client.Client
}

// Exchange sends a request once, within a limit, and fills in its response. Dropped reports that a connection that had served
// before was closed in place of a response.
type Exchange func(ctx context.Context, r client.Request, a *client.Response, limit time.Duration) (dropped bool)

// Why a run cannot go on, as Send returns it.
var (
	ErrRunEnded = errors.New("the run has ended")
	ErrGone     = errors.New("the bridge accepts no connections any more, as if it had ended")
)

// Within asks until done, at most for the time given: ever less often, so that what has taken long is noticed a sixth of that late,
// and a cache of a second is not asked fifty times.
func Within(ctx context.Context, limit time.Duration, done func() bool) bool {
	began, often := time.Now(), min(20*time.Millisecond, max(limit/100, time.Millisecond))
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		if done() {
			return true
		}
		select {
		case <-time.After(max(often, time.Since(began)/6)):
		case <-deadline.C:
			return done()
		case <-ctx.Done():
			return false
		}
	}
}
