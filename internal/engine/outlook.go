package engine

import (
	"fmt"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// runTimeout is how long a run may take unless Options say otherwise.
const runTimeout = 10 * time.Minute

// maxExempt is how many checks meet a site that fails before the run ends: what comes then says nothing of the
// bridge.
const maxExempt = 3

// outlook is what a run may still find out in the time that it has, with the site that it has.
type outlook struct {
	run        *check.Environment
	started    time.Time
	limit      time.Duration // of the run
	left       int           // checks that are selected and not done
	since      time.Time     // when the run began, or last gave up a kind of request
	done       int           // checks since then
	siteFailed int           // checks that met a site that fails
}

func newOutlook(checks int, r *check.Environment, started time.Time, limit time.Duration) outlook {
	return outlook{run: r, started: started, since: started, limit: limit, left: checks}
}

// reasonToStop returns the reason to end the run after a check, which may have an exemption; "": it goes on, without the kind of
// request for which it would not end in its time.
func (o *outlook) reasonToStop(exemption string, bySite bool) string {
	o.done++
	o.left--
	if bySite {
		o.siteFailed++
	}
	if o.siteFailed >= maxExempt {
		return fmt.Sprintf("%s; %d checks met that, so the bridge cannot be tested", exemption, o.siteFailed)
	}
	elapsed := time.Since(o.since)
	rest := o.limit - time.Since(o.started)
	if elapsed < o.limit/10 || elapsed*time.Duration(o.left)/time.Duration(o.done) < 2*rest {
		return ""
	}
	worst, why := o.slow(elapsed)
	switch {
	case why == "":
		return ""
	case worst.Kind == "":
		return fmt.Sprintf("the run would not end within %v: %s", o.limit, why)
	}
	o.run.GiveUp(worst.Kind, why)
	o.since, o.done = time.Now(), 0
	return ""
}

// afterRunTimeout says what the run waited for until its time-out passed.
func (o *outlook) afterRunTimeout() string {
	if _, why := o.slow(time.Since(o.since)); why != "" {
		return ": " + why
	}
	return ""
}

// enough is a time-out that would do for the whole run, were the checks that are left as slow as those before them.
func (o *outlook) enough() time.Duration {
	elapsed := time.Since(o.started)
	whole := elapsed + elapsed*time.Duration(o.left)/time.Duration(max(1, o.done))
	return max(2*o.limit, whole*3/2).Truncate(5*time.Minute) + 5*time.Minute
}

// slow says what the run waits for, and what helps; "" where it has not waited for half of the time. A slowness has a kind
// where that kind of request alone is slow, and not for the site.
func (o *outlook) slow(elapsed time.Duration) (patience.Slowness, string) {
	worst, all := o.run.Slowness()
	if all < elapsed/2 {
		return worst, ""
	}
	who, bySite := "the bridge, or its site, is slow", o.run.Upstream != nil && worst.AtSite > worst.Waited/2
	if bySite {
		who = "the site behind the bridge is slow"
	} else if o.run.Upstream != nil {
		who = "the bridge is slow, not its site"
	}
	if machine := o.run.Overloaded(); machine != "" {
		who = machine + ", or " + who
	}
	during := ""
	if worst.During != "" { // which may have asked for as much as a list of 10,000 tools
		during = fmt.Sprintf(" (while %s was tested)", worst.During)
	}
	why := fmt.Sprintf("%s: %s %s took %s%s; give a shorter --timeout to count that as a failure, --run-timeout %.0fm, or --sample 10 to test less", who,
		worst.Slowest.Method, worst.Slowest.Path, patience.Rounded(worst.Slowest.Took), during, o.enough().Minutes())
	if worst.Waited < all*4/5 || bySite {
		worst.Kind = ""
	}
	return worst, why
}
