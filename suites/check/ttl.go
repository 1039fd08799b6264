package check

import (
	"context"
	"fmt"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// soon is how late a change may show that a check waits for where it can do without.
const soon = 5 * time.Second

// TTL is how long the bridge may show a changed site's old state; 0: unknown. Where that is measured this waits for the result.
func (t *T) TTL() time.Duration {
	m := t.measures
	if m == nil {
		return t.DiscoveryTTL
	}
	for !m.over && !m.hidden() {
		m.wait(t.Context)
	}
	return m.used(t.DiscoveryTTL)
}

// longest is how long a change is waited for: for what is being measured, as long as that may take.
func (m *measures) longest(given time.Duration) time.Duration {
	if m.over {
		return m.used(given)
	}
	return max(Measuring, given)
}

const unknownTTL = "the check changes the site, and how long the bridge may cache its tools is unknown: give --discovery-ttl"

// MustKnowTTL ends a check that waits for changes of the site where it is not known how long, or the run has no time for it.
func (t *T) MustKnowTTL() {
	m := t.measures
	if m == nil && t.DiscoveryTTL == 0 || m != nil && m.over && m.used(t.DiscoveryTTL) == 0 {
		NotTestable(unknownTTL)
	}
	if m == nil {
		return
	}
	limit := m.longest(t.DiscoveryTTL)
	if end, bounded := t.Context.Deadline(); limit > soon && bounded && time.Until(end) < changesOfACheck*limit {
		NotTestable(fmt.Sprintf("a change of the site may take %s to show, the check waits for several, and the run ends before: let the bridge cache for 1s while it is tested, or give the run more time (--run-timeout)", patience.Rounded(limit)))
	}
}

// changesOfACheck is how many changes of the site a check may wait for, with that back to the site as it was.
const changesOfACheck = 3

// mustHaveMeasured ends a check that saw no change in a time that is none of the bridge's TTL.
func (t *T) mustHaveMeasured() {
	t.mu.Lock()
	recording := t.recording
	t.mu.Unlock()
	if m := t.measures; m != nil && recording && m.used(t.DiscoveryTTL) == 0 {
		NotTestable(unknownTTL)
	}
}

// MustShowSoon ends a check that is not worth a long wait.
func (t *T) MustShowSoon() {
	if t.measures != nil && !t.ShowsSoon() {
		NotTestable(fmt.Sprintf("the check waits for a change of the site, which takes the bridge longer than %v: let the bridge cache for 1s while it is tested", soon))
	}
}

// used is the TTL that the checks go by: a change was seen a little less than a TTL after the bridge's fetch, and the TTL of the
// next one may differ. What was given counts unless that contradicts it: the run may have looked late, and a bridge may show a
// change early, as replicas do that tell each other.
func (m *measures) used(given time.Duration) time.Duration {
	switch {
	case len(m.waiting) == 0 && (given == 0 || given < m.least || m.early(given)):
		return m.ttl + m.ttl/10
	case len(m.waiting) == 0 || given > m.looked:
		return given
	}
	return 0
}

// early reports whether the bridge showed the change so early that the TTL which was given is a wrong guess.
func (m *measures) early(given time.Duration) bool { return given > 2*m.ttl+slackOf(given) }

// KeepsFor is how long the bridge keeps what a caller sees at least: the shorter of its TTLs; 0: unknown.
func (t *T) KeepsFor() time.Duration {
	switch m := t.measures; {
	case m != nil && m.unseen == 0 && m.waiting[m.lister] != "": // no list has come whole: it may keep nothing
		return 1
	case m != nil && m.unseen == 0 && t.DiscoveryTTL > 0: // the first look came late
		return min(t.DiscoveryTTL, m.ttl)
	case m != nil && m.unseen == 0:
		return m.ttl
	case m != nil:
		return m.unseen
	case t.PermissionTTL > 0:
		return min(t.PermissionTTL, t.DiscoveryTTL)
	}
	return t.DiscoveryTTL
}

// ShowsSoon reports whether a change shows so soon that a check waits for it where it can do without.
func (t *T) ShowsSoon() bool {
	m := t.measures
	if m == nil {
		return t.DiscoveryTTL > 0
	}
	for !m.over && !m.hidden() && m.looked < soon {
		m.wait(t.Context)
	}
	ttl := m.used(0)
	return ttl > 0 && ttl <= soon
}

// Changeable reports whether a check may change the site whose callers are new to the bridge.
func (t *T) Changeable() bool { return t.measures != nil && t.measures.currentForNew || t.TTL() > 0 }

// ChangeLimit is how long a change may take to show: the TTL, and slack for a busy machine, which is a share of the TTL, so that
// a TTL three times as long as the one that was configured does not fit in.
func (t *T) ChangeLimit() time.Duration {
	if t.Advance != nil {
		return 2 * time.Second
	}
	limit := t.DiscoveryTTL
	if m := t.measures; m != nil {
		limit = m.longest(t.DiscoveryTTL)
	}
	return limit + min(3*time.Second, max(1500*time.Millisecond, limit*3/2))
}

// awaitTTL waits until every process has noticed what changed at a time; where the TTL is not known, it does not wait.
func (t *T) awaitTTL(ctx context.Context, changed time.Time) {
	select {
	case <-time.After(time.Until(changed.Add(t.TTL()))):
	case <-ctx.Done():
	}
}

// ExpireCaches lets everything cached run out where the run has a clock to move.
func (t *T) ExpireCaches() {
	if t.Advance != nil {
		t.Advance(t.DiscoveryTTL + time.Millisecond)
	}
}

// OutlastTTL lets half as much again as the bridge's TTL pass, in which the check sends nothing. It reports whether it did: not where
// the TTL is unknown, or longer than what may be waited for by the wall's clock.
func (t *T) OutlastTTL(ctx context.Context, longest time.Duration) bool {
	ttl := t.TTL()
	if ttl == 0 || t.Advance == nil && ttl > longest {
		return false
	}
	t.AdvanceClock(ctx, ttl*3/2)
	return true
}
