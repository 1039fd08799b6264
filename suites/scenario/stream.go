package scenario

import (
	"context"
	"net/http"
	"sync"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// ListChanged is the notification that the tools changed.
const ListChanged = "notifications/tools/list_changed"

// Stream is an open stream of events, with what came of them so far.
type Stream struct {
	mu  sync.Mutex
	all []byte
}

// OpenStream opens a stream, which ends with the check. Where none opens it says what came.
func OpenStream(ctx context.Context, c check.Client, r check.Request) (s *Stream, fault string) {
	ctx, cancel := context.WithCancel(ctx)
	c.T.Cleanup(func(context.Context) { cancel() })
	resp, err := c.OpenStream(ctx, r)
	if err != nil {
		return nil, "no response: " + err.Error()
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, resp.Status
	}
	s = &Stream{}
	go func() {
		defer resp.Body.Close()
		for chunk := make([]byte, 8<<10); err == nil; {
			var n int
			n, err = resp.Body.Read(chunk)
			s.mu.Lock()
			s.all = append(s.all, chunk[:n]...)
			s.mu.Unlock()
		}
	}()
	return s, ""
}

// Messages are those received so far.
func (s *Stream) Messages() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return client.Events(s.all)
}

// Changes counts the notifications of a changed list so far.
func (s *Stream) Changes() (n int) {
	for _, m := range s.Messages() {
		if m["method"] == ListChanged {
			n++
		}
	}
	return n
}
