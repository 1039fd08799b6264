package site

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
)

// Remote is a site in another process as its control plane shows it: a real Drupal with the fixture module, or a mock. It
// sends no JSON-RPC, and it keeps no journal: that is the recording proxy's before the site. What Site returns is what the
// control plane accepted last, and Restore puts the site back also where it is not known whether a change was made. It is
// safe for use by many goroutines.
type Remote struct {
	client *control.Client
	first  *fixtures.Site // as it was found
	mu     sync.Mutex
	now    *fixtures.Site
	dirty  bool // the site may not be as it was found
}

// OpenRemote reads the site. It fails when the control plane cannot be reached or refuses the token.
func OpenRemote(ctx context.Context, client *control.Client) (*Remote, error) {
	site, err := client.Site(ctx)
	if err != nil {
		return nil, err
	}
	return &Remote{client: client, first: site, now: site}, nil
}

// Accepts reports whether the site accepts an account's password.
func (s *Remote) Accepts(name, password string) bool {
	for _, u := range s.Site().Users {
		if u.Name == name {
			return u.Password == password && !u.Blocked
		}
	}
	return false
}

// changeTime is how long a change of the site may take.
const changeTime = time.Minute

// Site returns the site as it is now: read only.
func (s *Remote) Site() *fixtures.Site {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// SetSite puts another site in place of the present one. Where the control plane cannot, the running check is not testable.
func (s *Remote) SetSite(site *fixtures.Site) {
	if err := s.set(context.Background(), site); err != nil {
		panic(NotTestable(reason(err)))
	}
}

func (s *Remote) set(ctx context.Context, site *fixtures.Site) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	s.dirty = true // also where the response is lost
	if err := s.client.SetSite(ctx, site); err != nil {
		return err
	}
	s.now, s.dirty = site, site != s.first
	return nil
}

func reason(err error) string {
	if refused, ok := errors.AsType[*control.Error](err); ok {
		return "it changes the site, and its control plane refuses that: " + refused.Message
	}
	return fmt.Sprintf("it changes the site, and its control plane (--control) failed: %v", err)
}

// OpenSession ends the running check: the control plane opens no sessions.
func (*Remote) OpenSession(string) (cookie string) {
	panic(NotTestable("it needs a session of an account, and the control plane of a real site opens none"))
}

// EndSessions does nothing: there are none of OpenSession, and a site ends those of an account whose password changes.
func (*Remote) EndSessions(string) {}

// SetQuirk switches a peculiarity of the site on or off. It fails where the site has none to switch, as a Drupal.
func (s *Remote) SetQuirk(name string, on bool) error {
	return s.client.SetQuirk(context.Background(), name, on)
}

// Restore puts the site back as it was found.
func (s *Remote) Restore(ctx context.Context) error {
	s.mu.Lock()
	dirty := s.dirty
	s.mu.Unlock()
	if !dirty {
		return nil
	}
	return s.set(ctx, s.first)
}
