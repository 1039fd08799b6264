package suites

import (
	"fmt"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/harness"
)

// runTimeout is how long a run may take unless Options say otherwise.
const runTimeout = 10 * time.Minute

// maxExcused is how many checks meet a site that fails before the run ends: what comes then says nothing of the
// bridge.
const maxExcused = 3

// outlook is what a run may still find out in the time that it has, with the site that it has.
type outlook struct {
	run     *harness.Environment
	started time.Time
	limit   time.Duration // of the run
	checks  int           // that are selected
	done    int
	excused int // that met a site that fails
}

func newOutlook(r *harness.Environment, started time.Time, limit time.Duration) outlook {
	o := outlook{run: r, started: started, limit: limit}
	for _, clause := range checked(r) {
		if r.Selected(clause.ID) {
			o.checks++
		}
	}
	return o
}

// hopeless says why the run had better end after a check, which may have an excuse; "": it goes on.
func (c *collector) hopeless(excuse string) string {
	o := &c.outlook
	o.done++
	if excuse != "" {
		o.excused++
	}
	if o.excused >= maxExcused {
		return fmt.Sprintf("%s; %d checks met that, so the bridge cannot be tested", excuse, o.excused)
	}
	elapsed := time.Since(o.started)
	if elapsed < o.limit/10 || elapsed*time.Duration(o.checks)/time.Duration(o.done) < 2*o.limit {
		return ""
	}
	if why := o.slow(elapsed); why != "" {
		return fmt.Sprintf("the run would not end within %v (--run-timeout): %s", o.limit, why)
	}
	return ""
}

// afterRunTimeout says what the run waited for until its time-out passed.
func (o *outlook) afterRunTimeout() string {
	if why := o.slow(o.limit); why != "" {
		return ": " + why
	}
	return ""
}

// slow says what the run waits for, and what helps; "" where it has not waited for half of the time.
func (o *outlook) slow(elapsed time.Duration) string {
	s := o.run.Slowness()
	if s.Waited < elapsed/2 {
		return ""
	}
	what := fmt.Sprintf("%s %s took %s", s.Slowest.Method, s.Slowest.Path, harness.Rounded(s.Slowest.Took))
	switch {
	case o.run.Upstream == nil:
		what = "the bridge, or its site, is slow: " + what
	case s.AtSite > s.Waited/2:
		what = "the site behind the bridge is slow: " + what + ", most of it at the site"
	default:
		what = "the bridge is slow: " + what + ", little of it at the site"
	}
	return what + "; a shorter --timeout makes slow responses failures, a longer --run-timeout waits for them"
}
