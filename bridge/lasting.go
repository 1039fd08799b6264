package bridge

import (
	"fmt"

	"github.com/bridgecheck/bridgecheck/bridge/mcp"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
)

// lasting is what a reload of the options keeps.
type lasting struct {
	attempts *throttle.Limiter
	sessions *mcp.Sessions
}

// make makes what is not there yet.
func (k *lasting) make(o Options) error {
	if _, err := mcp.NewKeys(o.SessionKeys); err != nil {
		return fmt.Errorf("session_keys: %w", err)
	}
	if k.attempts != nil {
		return nil
	}
	k.sessions = mcp.NewSessions()
	var err error
	k.attempts, err = throttle.New(o.limits(), o.MaxCallers, o.Now)
	return err
}

// adopt puts new options in force.
func (k *lasting) adopt(o Options) {
	k.attempts.SetLimits(o.limits())
	keys, _ := mcp.NewKeys(o.SessionKeys) // make has checked them
	k.sessions.Seal(keys, o.SessionLife)
}

// limits are those of refused credentials.
func (o Options) limits() throttle.Limits {
	limits := throttle.Limits{Account: o.AccountFailures, Address: o.AddressFailures, Total: o.TotalFailures}
	if o.ForwardAddress {
		limits.Total = 0 // then the site counts by the clients' addresses
	}
	return limits
}
