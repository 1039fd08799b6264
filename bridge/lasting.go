package bridge

import (
	"fmt"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/keys"
	"github.com/bridgecheck/bridgecheck/bridge/mcp"
	"github.com/bridgecheck/bridgecheck/bridge/shared"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
)

// lasting is what a reload of the options keeps.
type lasting struct {
	attempts *throttle.Limiter
	sessions *mcp.Sessions
	store    *shared.Store                    // nil: replicas share nothing
	engine   atomic.Pointer[discovery.Engine] // that is in force
	draining atomic.Bool                      // the bridge is about to end
}

// rings are the keys of a bridge, by what they are for.
func (o Options) rings() (session, store *keys.Ring, err error) {
	if session, err = keys.New(o.SessionKeys, "mcp session"); err != nil {
		return nil, nil, fmt.Errorf("session_keys: %w", err)
	}
	store, err = keys.New(o.SessionKeys, "shared store")
	return session, store, err
}

// make makes what is not there yet.
func (k *lasting) make(o Options) error {
	_, ring, err := o.rings()
	if err != nil || k.attempts != nil {
		return err
	}
	if o.Shared != "" {
		k.store, err = shared.New(shared.Options{Address: o.Shared, Site: o.Drupal, Keys: ring, Logger: o.Logger, Handler: k})
		if err != nil {
			return fmt.Errorf("shared: %w", err)
		}
	}
	k.sessions = mcp.NewSessions()
	k.attempts = throttle.New(o.limits(), o.MaxCallers, o.Now)
	if k.store != nil {
		k.sessions.Share(k.store)
		k.attempts.Share(k.store)
	}
	return nil
}

// adopt puts new options, and the engine made with them, in force.
func (k *lasting) adopt(o Options, engine *discovery.Engine) {
	k.attempts.SetLimits(o.limits())
	session, store, _ := o.rings() // make has checked them
	k.sessions.Seal(session, o.SessionLife)
	if k.store != nil && !store.Empty() {
		k.store.SetKeys(store)
	}
	k.engine.Store(engine)
}

// start connects to the store.
func (k *lasting) start() {
	if k.store != nil {
		k.store.Start()
	}
}

func (k *lasting) close() {
	if k.store != nil {
		k.store.Close()
	}
}

// invalidated notifies the other replicas, which refetch all lists.
func (k *lasting) invalidated() {
	if k.store != nil {
		k.store.Publish(shared.Event{Kind: shared.Invalidated}) //nolint:errcheck // counted; their caches run out
	}
}

// changed notifies the other replicas that a caller has other tools.
func (k *lasting) changed(who caller.Identity, now catalog.Version) {
	if k.store != nil {
		k.store.Publish(shared.Event{Kind: shared.Changed, Subject: who[:], Version: string(now)}) //nolint:errcheck // counted; their caches run out
	}
}

// Heard does what an event of another replica asks for.
func (k *lasting) Heard(e shared.Event) {
	switch e.Kind {
	case shared.Invalidated:
		k.engine.Load().Invalidate()
	case shared.Changed:
		if len(e.Subject) == len(caller.Identity{}) {
			k.engine.Load().Heard(caller.Identity(e.Subject), catalog.Version(e.Version))
		}
	case shared.Ended:
		k.sessions.Ended(string(e.Subject), e.Until)
	}
}

// Reconnected refetches all lists: events may have been missed.
func (k *lasting) Reconnected() {
	k.engine.Load().Invalidate()
	go k.sessions.Recheck()
}

// limits are those of refused credentials.
func (o Options) limits() throttle.Limits {
	limits := throttle.Limits{Account: o.AccountFailures, Address: o.AddressFailures, Total: o.TotalFailures}
	if o.ForwardAddress {
		limits.Total = 0 // then the site counts by the clients' addresses
	}
	return limits
}
