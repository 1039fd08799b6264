package patience

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// How long a run waits for a site that says that it is busy.
const (
	maxRetries  = 4                      // of one request
	firstWait   = 250 * time.Millisecond // each is twice as long as the one before
	maxFutile   = 3                      // requests of a run that are sent again without effect
	longestWait = 30 * time.Second       // each; a site that asks for more is not waited for
	manyRefused = 20                     // credentials that were refused; a bridge that then refuses callers for longer protects its site
)

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
		if siteFails(a) && run.futileRetries.Load() < maxFutile {
			busy, failed = true, fmt.Sprintf("the site behind the bridge fails now and then: %s got %s", a.Subject(), a.Outcome())
		}
		pause = max(pause, firstWait<<n)
		unsafe := a.Status != http.StatusTooManyRequests && (!run.Responded || s.mayRun())
		if !busy || pause > longestWait || unsafe || !s.request.Rewind() {
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
// the request again. The site's journal shows that it was the bridge. After three requests that are refused however long they
// wait, the run waits no more. A bridge that refuses for longer, after the many wrong credentials of a run, is not to blame.
func (s *sending) waitForPlace() {
	run, a := s.run, s.response
	if a.Status == http.StatusUnauthorized && !s.Creds.Empty() {
		run.refusedCredentials.Add(1)
	}
	for n := 0; s.Policy.WaitForPlace && a.Throttled() && s.siteRefusedNone(); n++ {
		pause, _ := a.Busy()
		refused := run.refusedCredentials.Load()
		switch {
		case pause <= longestWait:
		case refused < manyRefused && run.Spares:
			s.Exempt(fmt.Sprintf("the bridge refuses %s for %s, most likely after wrong credentials of earlier runs from this address: test again then, or raise that limit of the bridge",
				s.Who, Rounded(pause)))
		case refused >= manyRefused:
			s.Exempt(fmt.Sprintf("the bridge refuses %s for %s, after %d wrong credentials of this run: raise that limit of the bridge while it is tested (a bridge of --exec reads BRIDGE_AUTH_ADDRESS_FAILURES and BRIDGE_AUTH_TOTAL_FAILURES)",
				s.Who, Rounded(pause), refused))
		}
		if run.futileWaits.Load() >= maxFutile {
			return
		}
		if n == maxRetries || pause > longestWait || !s.request.Rewind() {
			run.futileWaits.Add(1)
			return
		}
		if !s.retryAfter(pause) {
			return
		}
	}
}

// siteRefusedNone reports whether a known site has refused no request for its number since this one was sent.
func (s *sending) siteRefusedNone() bool {
	return s.run.Known && !slices.ContainsFunc(s.run.Observed.Entries(s.since), func(e journal.Entry) bool { return e.Status == http.StatusTooManyRequests })
}

// WrongCredentials are those of nobody.
var WrongCredentials = client.Credentials{User: "bridgecheck-nobody", Password: "no-such-password"}

// endIfNobodyIsServed asks for the agent's list, which the bridge gave when the run began, on a connection of its own, and as a
// caller with wrong credentials, where the bridge has to ask the site. Where one of them fails in the same way it ends the run.
func (s *sending) endIfNobodyIsServed() {
	agent := s.agent()
	control := s.control(agent)
	if control.Status != 0 && !unserved(control) && s.run.Strangers {
		control = s.control(client.Client{Target: agent.Target, Who: "nobody", Creds: WrongCredentials})
	}
	if control.Status != 0 && !unserved(control) || s.run.Context.Err() != nil || s.ctx.Err() != nil {
		return
	}
	since, secrets := s.response.At.UTC().Format(time.TimeOnly+" UTC"), s.run.Secrets
	if control.Status == 0 {
		s.run.End(fmt.Errorf("the bridge responds no more since %s: %s", since, secrets.Text(control.Outcome())))
		return
	}
	asks := ""
	if after := control.Header.Get("Retry-After"); after != "" {
		asks = ", Retry-After " + after
	}
	s.run.End(fmt.Errorf("the site responds to everything with %d since %s%s: %s", control.Status, since, asks,
		exact.Cut(client.OneLine(secrets.Text(string(control.Body))), 120)))
}

// SecondTries is how often a list without a response is asked for again before the target counts as dead.
const SecondTries = 2

// control sends a control request.
func (s *sending) control(as client.Client) *client.Response {
	a := s.probe(s.ctx, as, s.run.Timeout)
	for try := 0; try < SecondTries && a.Status == 0 && !errors.Is(a.Err, client.ErrTimeout); try++ {
		a = s.probe(s.ctx, as, s.run.Timeout)
	}
	return a
}

// unserved reports whether the response is that nobody is served now.
func unserved(a *client.Response) bool {
	_, busy := a.Busy()
	return busy || client.Failing(a.Status)
}
