package invoke

import (
	"context"
	"encoding/json"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
)

// Run is Invoke with an entry in the audit log.
func (in *Invoker) Run(ctx context.Context, who caller.Caller, view discovery.View, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if in.Audit == nil {
		return in.Invoke(ctx, who, view, name, arguments)
	}
	start := time.Now()
	result, err := in.Invoke(ctx, who, view, name, arguments)
	in.Audit.Record(who, name, time.Since(start), err)
	return result, err
}
