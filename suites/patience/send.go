package patience

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/client"
)

// sending is one request on its way.
type sending struct {
	Client
	ctx      context.Context
	request  client.Request
	response *client.Response
	kind     string        // what a bridge treats alike
	faulty   bool          // as in Run.faulty, when it was sent
	limit    time.Duration // of the first attempt
	since    int64         // journal position before it
}

// Send sends a request under the client's policy and reads its response. A failure of the transport is kept in the response.
// The error is ErrRunEnded or ErrGone: then the response says nothing of the bridge.
func (c Client) Send(ctx context.Context, r client.Request) (*client.Response, error) {
	s := &sending{Client: c, ctx: ctx, request: r}
	s.response = c.NewResponse(&s.request)
	s.kind, s.faulty = kindOf(s.response), c.run.faulty()
	if s.run.Context.Err() != nil {
		s.response.Err = ErrRunEnded
		return s.response, ErrRunEnded
	}
	if s.givenUp() {
		return s.response, nil
	}
	s.pace()
	dropped := s.attempt(s.limit)
	s.resendIfDropped(dropped)
	s.waitWhileBusy()
	s.waitForPlace()
	s.keepEvidence()
	s.learn()
	s.exemptIfSiteFailed()
	return s.response, s.ended()
}

// givenUp reports whether the run sends no more requests of the kind: the response then says why. It is the last one of the
// kind that timed out, or none.
func (s *sending) givenUp() bool {
	if last := s.run.spent().exhausted(s.kind); last != nil {
		a := *last
		if why := s.run.spent().excuse(s.kind); why != "" {
			s.Exempt(why)
		}
		a.Err = fmt.Errorf("%w, as %d in a row before it: no more of this kind are sent", client.ErrTimeout, maxInARow)
		s.response, s.since = &a, s.run.Observed.Last()
		s.unsent.Add(1)
		if s.Policy.Record {
			s.record(&a, s.since)
		}
		return true
	}
	if why := s.run.spent().tooSlow(s.kind); why != "" {
		s.unsent.Add(1)
		s.Exempt(why)
		s.response.Err = errors.New("not sent: " + why)
		return true
	}
	return false
}

// pace waits until the run may send, and decides how long the request may take.
func (s *sending) pace() {
	s.limit = s.run.Timeout
	if !s.faulty { // else the bridge may wait for the site
		s.limit = s.run.spent().limit(s.kind, s.limit)
	}
	s.run.WaitForRate()
	s.since = s.run.Observed.Last()
	s.response.At = time.Now()
	if !s.run.Known && s.mayRun() {
		s.request.Fresh = true // it is never sent twice, so nothing but the bridge may be to blame when no response comes
	}
}

// keepEvidence records the exchange, unless the policy does not.
func (s *sending) keepEvidence() {
	if s.Policy.Record {
		s.record(s.response, s.since)
	}
}

// learn notes how long the response took, and whether the bridge served the request.
func (s *sending) learn() {
	a := s.response
	s.NoteFront(a)
	if a.Err != nil || a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError {
		s.unserved.Store(true)
	}
	if s.faulty {
		return
	}
	slow, atSite := s.run.Timeout/10, time.Duration(0)
	if a.Took >= slow {
		atSite = s.run.Observed.Worked(s.since)
	}
	s.run.spent().note(s.kind, s.During, a, slow, atSite)
	if s.run.Brief && errors.Is(a.Err, client.ErrTimeout) {
		s.run.End(errors.New(s.run.Carried()))
	}
}

// ended says why the response shows nothing of the bridge: the run has ended meanwhile, or the bridge is gone, which ends it.
func (s *sending) ended() error {
	a := s.response
	if s.run.Context.Err() != nil && (a.Err != nil || a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable) {
		return ErrRunEnded
	}
	if errors.Is(a.Err, syscall.ECONNREFUSED) && !s.run.WaitOut && s.Base == "" && !s.restarts() {
		s.run.End(errors.New("the bridge accepts no connections since " + a.At.UTC().Format(time.TimeOnly+" UTC")))
		return ErrGone
	}
	return nil
}

// How long a bridge that refuses connections may take to come back.
const (
	restartTime  = 2 * time.Second
	restartProbe = 100 * time.Millisecond
)

// restarts reports whether the bridge accepts connections again soon, or the run ends meanwhile.
func (s *sending) restarts() bool {
	back := Within(s.ctx, restartTime, func() bool {
		return !errors.Is(s.probe(s.ctx, s.Client.Client, restartProbe).Err, syscall.ECONNREFUSED)
	})
	return back || s.ctx.Err() != nil || s.run.Context.Err() != nil
}
