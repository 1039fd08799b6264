package patience

import (
	"context"
	"time"
)

// attempt sends the request once.
func (s *sending) attempt(limit time.Duration) (dropped bool) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(s.run.Context, cancel)()
	exchange := s.Exchange
	if exchange == nil {
		exchange = s.Client.Client.Exchange
	}
	received := s.traffic.send()
	dropped = exchange(ctx, s.request, s.response, limit)
	received()
	s.response.Took = time.Since(s.response.At)
	return dropped
}
