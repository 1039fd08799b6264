package patience

import (
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/redact"
)

// Only a late turn while the check ran exempts it: one that ended before it began does not.
func TestLatenessExemptsTheCheckThatMetIt(t *testing.T) {
	run := &Run{Settings: Settings{Secrets: &redact.Redactor{}}}
	began := time.Now()
	check := &Scope{run: run, began: began}
	run.lateness.turns = []lateTurn{{began.Add(-2 * time.Second), time.Second}}
	check.ExemptIfLate()
	if why, _ := check.Exemption(); why != "" {
		t.Errorf("exempt for a late turn before the check: %s", why)
	}
	run.lateness.turns = append(run.lateness.turns, lateTurn{began.Add(-100 * time.Millisecond), 300 * time.Millisecond}, lateTurn{began.Add(time.Second), 250 * time.Millisecond})
	check.ExemptIfLate()
	if why, site := check.Exemption(); site || !strings.Contains(why, "the machine is overloaded: this process got its turn 300ms late") {
		t.Errorf("got %q, by the site: %v", why, site)
	}
}
