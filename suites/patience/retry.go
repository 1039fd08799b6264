package patience

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// How long a run waits for a site that says that it is busy.
const (
	maxRetries  = 4                      // of one request
	firstWait   = 250 * time.Millisecond // each is twice as long as the one before
	maxFutile   = 3                      // requests of a run that are sent again without effect
	longestWait = 30 * time.Second       // each; a site that asks for more is not waited for
	ofACheck    = 100 * time.Second      // for a bridge that limits how often its caller calls: 400 calls at 5 in a second fit in
	manyRefused = 20                     // credentials that were refused; a bridge that then refuses callers for longer protects its site
)

// resendIfDropped sends the request again, on a connection of its own, where the bridge dropped the connection and the
// request cannot run twice.
func (s *sending) resendIfDropped(dropped bool) {
	if !dropped || !s.Policy.Resend || !s.request.Repeatable() || s.mayRun() && !s.unseenBySite() {
		return
	}
	s.response.Err, s.request.Fresh = nil, true
	s.run.WaitForRate()
	s.attempt(s.limit)
}

// mayRun reports whether the request may run a tool, by whatever verb. Where the site is not known only a tool that the
// configuration allows is ever named where it would run.
func (s *sending) mayRun() bool {
	r := s.request
	switch {
	case r.Path == client.ListPath || r.Path == client.DescribePath:
		return false
	case s.run.Known || r.Body != nil && r.Show == "":
		return true
	}
	query := r.Query.Encode() + r.Raw
	if plain, err := url.QueryUnescape(query); err == nil {
		query = plain
	}
	return slices.ContainsFunc(s.run.Allowed, func(tool string) bool {
		return strings.Contains(r.Show, tool) || strings.Contains(query, tool) || strings.Contains(r.Path, url.PathEscape(tool))
	})
}

// lateCall is how long a call that a bridge still makes may take to reach the mock after the bridge has closed the
// caller's connection.
const lateCall = 30 * time.Millisecond

// unseenBySite reports whether it is known that no call has reached the site since the request was sent.
func (s *sending) unseenBySite() bool {
	if !s.run.Known {
		return false
	}
	time.Sleep(lateCall)
	for _, entry := range s.run.Observed.Entries(s.since) {
		if entry.Route == "jsonrpc" {
			return false
		}
	}
	return true
}

// waitWhileBusy waits while the response is that the site is busy (429, or 503 with Retry-After) or fails (502, 503 or 504 in the
// contract's words), and sends the request again as often as that may help. Where the site then serves nobody, or is gone,
// the run ends: what comes now says nothing of the bridge. A site that fails and comes back has failed by itself.
func (s *sending) waitWhileBusy() {
	if !s.run.WaitOut || !s.Policy.WaitWhileBusy {
		return
	}
	run, a := s.run, s.response
	failed := ""
	for n := range maxRetries {
		pause, busy := a.Busy()
		asked := busy // to wait: so it is waited for before the first clause, too
		if siteFails(a) && run.futileRetries.Load() < maxFutile {
			busy, failed = true, fmt.Sprintf("the site behind the bridge fails now and then: %s got %s", a.Subject(), a.Outcome())
		}
		pause = max(pause, firstWait<<n)
		unsafe := a.Status != http.StatusTooManyRequests && (!run.Responded && !asked || s.mayRun())
		if !busy || pause > longestWait || unsafe || !s.request.Repeatable() {
			break
		}
		if !s.retryAfter(pause) {
			return
		}
	}
	switch {
	case failed == "":
	case !siteFails(a):
		run.siteRecovered.Store(true)
		s.exemptBySite(failed)
	case run.siteRecovered.Load():
		s.exemptBySite(failed)
	default:
		run.futileRetries.Add(1)
	}
	if !run.Responded {
		return
	}
	if _, busy := a.Busy(); busy || client.Failing(a.Status) || a.Status == 0 && run.Context.Err() == nil && s.ctx.Err() == nil {
		s.endIfNobodyIsServed()
	}
}

// siteFails reports whether the bridge says, in the contract's words, that its site does not serve.
func siteFails(a *client.Response) bool { return client.Failing(a.Status) && a.Code() != "" }

// retryAfter sends the request once more after a pause, and reports whether the run goes on so long.
func (s *sending) retryAfter(pause time.Duration) bool {
	select {
	case <-time.After(pause):
	case <-s.ctx.Done():
		return false
	case <-s.run.Context.Done():
		return false
	}
	s.response.At = time.Now()
	s.attempt(s.run.Timeout)
	return true
}

// waitForPlace waits while a bridge in front of a known site limits how often its caller calls, as any bridge may, and sends
// the request again. The site's journal shows that it was the bridge. After three requests in succession that are refused however
// long they wait, the run waits no more. A bridge that refuses for longer, after the many wrong credentials of a run, is not to
// blame, and neither is one that limits how often a tool is called, where a check calls it so often that the waits take too long.
func (s *sending) waitForPlace() {
	run, a := s.run, s.response
	if a.Status == http.StatusUnauthorized && !s.Creds.Empty() {
		run.refusedCredentials.Add(1)
	}
	if !s.Policy.WaitForPlace || !a.Throttled() && !run.limits.Load() {
		return
	}
	tool, _ := a.Invoked()
	place := fmt.Sprint(s.Who, " ", s.kind, " ", tool)
	for n := 0; a.Throttled() && s.siteRefusedNone(); n++ {
		if a.Status == http.StatusTooManyRequests {
			run.limits.Store(true)
		} else if !s.unseenBySite() {
			return // the words are the site's
		}
		served, _ := run.places.LoadOrStore(place, false)
		pause, _ := a.Busy()
		refused := run.refusedCredentials.Load()
		switch {
		case pause <= longestWait:
		case refused < manyRefused && run.Spares:
			s.Exempt(fmt.Sprintf("the bridge refuses %s for %s, most likely since its site has refused others from this address, of this run or of earlier ones: test again then, or raise that limit of the bridge",
				s.Who, Rounded(pause)))
		case refused >= manyRefused:
			s.Exempt(fmt.Sprintf("the bridge refuses %s for %s, after %d wrong credentials of this run: raise that limit of the bridge while it is tested (a bridge of --exec reads BRIDGE_AUTH_ADDRESS_FAILURES and BRIDGE_AUTH_TOTAL_FAILURES)",
				s.Who, Rounded(pause), refused))
		}
		if run.futileWaits.Load() >= maxFutile {
			return
		}
		if n >= maxRetries && served == false || s.waited() > ofACheck || pause > longestWait || !s.request.Repeatable() {
			if served == true && pause <= longestWait {
				s.Exempt(fmt.Sprintf("the bridge limits how often %s may call %s, and the check calls more often: raise that limit of the bridge while it is tested", s.Who, cmp.Or(tool, s.kind)))
				return
			}
			run.futileWaits.Add(1)
			return
		}
		s.waits(pause)
		if !s.retryAfter(pause) {
			return
		}
	}
	if _, refused := run.places.Load(place); refused && !a.Throttled() && a.Err == nil {
		run.places.Store(place, true)
		run.futileWaits.Store(0)
	}
}

// waits notes that the check waits for a place; several that wait at the same time wait once.
func (s *Scope) waits(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if end := now.Add(pause); end.After(s.waitsUntil) {
		if s.waitsUntil.After(now) {
			now = s.waitsUntil
		}
		s.waitedFor += end.Sub(now)
		s.waitsUntil = end
	}
}

// waited is how long the check has waited for places.
func (s *Scope) waited() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitedFor
}

// LimitsCalls reports whether the bridge has refused a request because of how many came before it.
func (r *Run) LimitsCalls() bool { return r.limits.Load() }

// ExemptIfLimited exempts the check, which found calls one after the other, where it had to wait for a bridge that limits how often
// its caller calls.
func (s *Scope) ExemptIfLimited() {
	if s.waited() > 0 {
		s.Exempt("the bridge limits how often a caller may call, and the check calls many times at once: raise that limit of the bridge while it is tested")
	}
}

// siteRefusedNone reports whether a known site has refused no request for its number since this one was sent.
func (s *sending) siteRefusedNone() bool {
	return s.run.Known && !slices.ContainsFunc(s.run.Observed.Entries(s.since), func(e journal.Entry) bool { return e.Status == http.StatusTooManyRequests })
}
