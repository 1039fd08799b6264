package patience

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
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
		sent, waited := s.Cost()
		must.Expect(t, sent == 3 && waited == 3*time.Second, "%d requests and %s, want 3 and 3s", sent, waited)
	})
}
