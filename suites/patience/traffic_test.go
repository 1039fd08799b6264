package patience

import (
	"testing"
	"testing/synctest"
	"time"
)

// Two requests side by side are waited for once, and the time between two requests is no waiting.
func TestWaitsSideBySideCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Scope
		first := s.traffic.send()
		time.Sleep(time.Second)
		second := s.traffic.send()
		time.Sleep(time.Second)
		first()
		time.Sleep(time.Second)
		second()
		time.Sleep(time.Minute)
		s.traffic.send()()
		if sent, waited := s.Cost(); sent != 3 || waited != 3*time.Second {
			t.Errorf("%d requests and %s, want 3 and 3s", sent, waited)
		}
	})
}
