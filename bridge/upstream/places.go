package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// enter takes one of the places at the site for a caller, who has to wait where others have less; leave gives it back.
func (c *Client) enter(ctx context.Context, who fair.Key) error {
	err := c.gate.Enter(ctx, who)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fair.ErrFull):
		e := fault.New(fault.Overloaded, crowded).Because(err)
		e.RetryAfter = time.Second
		return e
	}
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		e := fault.New(fault.Overloaded, crowded).Because(err)
		e.RetryAfter = time.Second
		return e
	}
	return fault.New(fault.Overloaded, "The caller went away while the call waited for the site.").Because(err)
}

func (c *Client) leave(who fair.Key) { c.gate.Leave(who) }
