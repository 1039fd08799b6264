package mcp

import (
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// A session that had to make room is over: a stream that is open in it must not go on for a client who is told that
// there is no such session.
func TestASessionThatMadeRoomHasEnded(t *testing.T) {
	s, err := New(Options{Now: time.Now, SessionIdle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var opened []*session
	for range maxSessions + 500 {
		opened = append(opened, s.open(November2025, upstream.Identity{}))
	}
	odd, left := 0, 0
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		odd, left = 0, 0
		for _, sess := range opened {
			if _, there := s.sessions.GetIfPresent(sess.id); there {
				left++
			} else if sess.ctx.Err() == nil {
				odd++
			}
		}
		if odd == 0 && left <= maxSessions || time.Now().After(deadline) {
			break
		}
	}
	if odd > 0 || left == 0 || left > maxSessions {
		t.Errorf("%d sessions are left of %d; %d that nobody finds any more have not ended", left, len(opened), odd)
	}
}
