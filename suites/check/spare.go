package check

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/fixtures"

	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// MostWrong is how many requests with wrong credentials a run sends at most to a bridge that it has not started. Drupal
// locks an address after 50 failures in an hour and an account after 5 in six hours, and a bridge locks before its site
// does. Nearly all of them are the same in every run: a bridge that remembers what was refused counts them once.
const MostWrong = 15

// spend takes a request out of the budget of wrong credentials, if it has some, and makes the site forget those before it where it can.
// When the budget is used up, the running check ends: what it needs would lock callers out.
func (c Client) spend(r Request) {
	t := c.T
	budgeted, forgets := t.Wrong != nil && t.Spares(), t.Drupal != nil && t.Drupal.Forgets()
	if !budgeted && !forgets || !c.wrong(r) {
		return
	}
	if forgets {
		t.Drupal.ForgetFailures()
	}
	if budgeted && t.Wrong.Add(1) > MostWrong && t.inCheck {
		NotTestable(fmt.Sprintf("the run has sent all %d requests with wrong credentials that a bridge gets which it has not started: test this clause alone (--only)", MostWrong))
	}
}

// wrong reports whether the request has a password that is none of a caller of the run: those are what a site counts.
func (c Client) wrong(r Request) bool {
	sent := http.Header{}
	c.Creds.Apply(sent)
	maps.Copy(sent, r.Header)
	authorization := sent.Get("Authorization")
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return false
	}
	for _, right := range c.T.Credentials {
		own := http.Header{}
		if right.Apply(own); own.Get("Authorization") == authorization {
			return false
		}
	}
	if c.T.Drupal == nil {
		return true
	}
	return !slices.ContainsFunc(c.T.Drupal.Site().Users, func(u fixtures.User) bool {
		return strings.TrimSpace(secret) == client.Basic(u.Name, u.Password)
	})
}

// Spares reports whether the run sends few wrong credentials: the limits of the bridge and of its site are not the run's.
func (c *Config) Spares() bool { return !c.Owned && c.Advance == nil }

// Refusable is an account with the agent's permissions whose right credentials the site may be made to refuse: a bridge
// counts such a refusal as a wrong password. Where the run spares the bridge it is one of the run's own, the same for all
// checks, so that the agent is not locked; else it is the agent.
func (t *T) Refusable() Identity {
	if !t.Spares() || t.Drupal == nil {
		return Agent
	}
	t.refusals.refusable.Do(func() {
		t.refusals.name = t.Drupal.NewUser(t.Permissions(Agent)...)
		t.Drupal.Share(t.refusals.name)
	})
	if _, there := t.Drupal.Site().User(string(t.refusals.name)); !there { // another site was put in place meanwhile
		return t.Drupal.NewUser(t.Permissions(Agent)...)
	}
	return t.refusals.name
}

// refusals remembers how the bridge refuses the credentials of nobody, which many checks look at: each request is sent once.
type refusals struct {
	mu   sync.Mutex
	seen map[string]*Response

	refusable sync.Once
	name      Identity // of the account that may be refused
}

// remembered is the response to a request with the credentials of nobody that the run has sent before; nil: it has to be
// sent. Keep keeps its response.
func (c Client) remembered(r Request) (a *Response, keep func(*Response)) {
	t, sent := c.T, http.Header{}
	c.Creds.Apply(sent)
	maps.Copy(sent, r.Header)
	if !t.Spares() || t.Upstream.Faulty() || sent.Get("Authorization") != nobody || len(sent) > 1 || r.Body != nil && r.Show == "" {
		return nil, func(*Response) {}
	}
	key := r.Method + " " + cmp.Or(c.Base, c.URL) + r.Path + "?" + r.Raw + r.Query.Encode() + " " + r.Show
	t.refusals.mu.Lock()
	defer t.refusals.mu.Unlock()
	if last := t.refusals.seen[key]; last != nil {
		again := *last
		again.Who = c.Who
		t.record(&again, t.Upstream.Last())
		return &again, nil
	}
	return nil, func(a *Response) {
		if a.Status == 0 || a.Status >= http.StatusInternalServerError {
			return
		}
		t.refusals.mu.Lock()
		defer t.refusals.mu.Unlock()
		if t.refusals.seen == nil {
			t.refusals.seen = map[string]*Response{}
		}
		t.refusals.seen[key] = a
	}
}

// nobody is the Authorization of WrongCredentials.
var nobody = "Basic " + client.Basic(patience.WrongCredentials.User, patience.WrongCredentials.Password)
