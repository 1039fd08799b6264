package patience

import (
	"sync"
	"time"
)

// traffic is what a check sends, and how long it waits for responses: those that are awaited at the same time count once. The zero
// value is ready.
type traffic struct {
	mu      sync.Mutex
	sent    int
	awaited int       // responses, now
	since   time.Time // when the first of them began to be
	waited  time.Duration
}

// send notes a request that is sent; the caller calls received when its response is there, or will not come.
func (t *traffic) send() (received func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sent++; t.awaited == 0 {
		t.since = time.Now()
	}
	t.awaited++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.awaited--; t.awaited == 0 {
			t.waited += time.Since(t.since)
		}
	}
}

// Cost is how many requests the check has sent, with those that were sent again and those that looked for who is to blame, and how
// long it has waited for their responses.
func (s *Scope) Cost() (requests int, waited time.Duration) {
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	return s.traffic.sent, s.traffic.waited
}
