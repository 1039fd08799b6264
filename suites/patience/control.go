package patience

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

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

// probe asks for the list on a connection of its own, outside of the check.
func (s *Scope) probe(ctx context.Context, as client.Client, limit time.Duration) *client.Response {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.run.Context, cancel)()
	r := client.Request{Path: client.ListPath, Fresh: true}
	a := as.NewResponse(&r)
	defer s.traffic.send()()
	as.Exchange(ctx, r, a, limit)
	return a
}
