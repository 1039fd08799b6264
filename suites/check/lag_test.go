package check

import (
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/redact"
)

// Only a late turn while the check ran excuses it: one that ended before it began does not.
func TestLagExcusesTheCheckThatMetIt(t *testing.T) {
	began := time.Now()
	check := &T{Environment: &Environment{Config: Config{Redact: &redact.Redactor{}}}, began: began}
	check.lag.late = []lateTurn{{began.Add(-2 * time.Second), time.Second}}
	check.ExcuseLag()
	if why, _ := check.Excused(); why != "" {
		t.Errorf("excused for a late turn before the check: %s", why)
	}
	check.lag.late = append(check.lag.late, lateTurn{began.Add(-100 * time.Millisecond), 300 * time.Millisecond}, lateTurn{began.Add(time.Second), 250 * time.Millisecond})
	check.ExcuseLag()
	if why, site := check.Excused(); site || !strings.Contains(why, "the machine is overloaded: this process got its turn 300ms late") {
		t.Errorf("got %q, by the site: %v", why, site)
	}
}
