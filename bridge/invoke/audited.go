package invoke

import (
	"context"
	"encoding/json"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// Run is Invoke with an entry in the audit log.
func (in *Invoker) Run(ctx context.Context, who upstream.Caller, view discovery.View, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if in.Audit == nil {
		return in.Invoke(ctx, who, view, name, arguments)
	}
	start := time.Now()
	result, err := in.Invoke(ctx, who, view, name, arguments)
	in.Audit.Record(who, name, time.Since(start), err)
	return result, err
}
