// Package site is what stands behind the bridge, as the run sees it: a mock, a real site that the checks change through its
// control plane (Remote), a real site that is only read (Real), or one of which nothing is known. Upstream is the way between
// bridge and site: its journal, and faults on it. It sends nothing to the bridge.
//
// Its invariant: what a check arms is disarmed when the check ends, and what cannot be seen or done ends the running check by
// a panic with a NotTestable.
package site

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// NotTestable is what this package panics with where the running check needs what the site cannot show or do: the reason.
type NotTestable string

// Recorder keeps a journal of what reaches a site, and makes the site misbehave: the mock is one itself, and so is a
// recording proxy before a real one.
type Recorder interface {
	Journal() *mockdrupal.Journal
	Arm(mockdrupal.Fault) (disarm func(), err error)
}

// Upstream is what the run sees between bridge and site. A nil *Upstream stands for a run that does not see the site, and
// reports no requests.
type Upstream struct {
	Recorder Recorder
	Proxy    bool               // Recorder stands before a real site
	since    int64              // journal position at which the running check began
	caused   []mockdrupal.Entry // in place of the journal: what one exchange caused that the check looks at; nil: it looks at none
	armed    atomic.Int32
	used     atomic.Bool                      // the running check looked at the site or changed it
	cleanup  func(undo func(context.Context)) // of the running check
	check    int64                            // the number of the running check
	accounts sync.Map                         // name of an account of NewUsers → the number of the check that alone uses it, or ofAllChecks
}

// ofAllChecks stands for the number of a check where all use an account.
const ofAllChecks = int64(-1)

// Begin starts the view of a check, whose faults are disarmed by its clean-up.
func (u *Upstream) Begin(cleanup func(undo func(context.Context))) {
	if u != nil {
		u.Mark()
		u.cleanup = cleanup
		u.check++
		u.used.Store(false)
	}
}

// Use notes that the running check looks at the site or changes it.
func (u *Upstream) Use() { u.used.Store(true) }

// Used reports whether the running check has looked at the site or changed it.
func (u *Upstream) Used() bool { return u != nil && u.used.Load() }

// Show makes Journal, Calls and Runs read what one exchange caused, until the next Mark; nil: the journal.
func (u *Upstream) Show(caused []mockdrupal.Entry) {
	if u != nil {
		u.caused = caused
	}
}

// Faulty reports whether a fault of the site is armed: then a bridge without a response may be correct.
func (u *Upstream) Faulty() bool { return u != nil && u.armed.Load() > 0 }

// Mark sets the position from which Journal, Calls and Runs read the journal to its end.
func (u *Upstream) Mark() {
	if u != nil {
		u.since, u.caused = u.Last(), nil
	}
}

// Journal lists the requests that reached the site since the check began or since the last Mark. If the journal has dropped
// some of them, the running check is not testable. What arrives late of an earlier check, which no longer waited for it, is left out:
// it is known by its account.
func (u *Upstream) Journal() []mockdrupal.Entry {
	u.Use()
	if u.caused != nil {
		return u.caused
	}
	journal := u.Recorder.Journal()
	if lost := journal.Lost(u.since); lost > 0 {
		panic(NotTestable(fmt.Sprintf("the site's journal has dropped %d requests of this check", lost)))
	}
	return slices.DeleteFunc(journal.Entries(u.since), func(e mockdrupal.Entry) bool {
		by, made := u.accounts.Load(e.User)
		return made && by != u.check && by != ofAllChecks
	})
}

// Calls lists the JSON-RPC calls in the journal, of the given methods or of all.
func (u *Upstream) Calls(methods ...string) []mockdrupal.Call {
	var calls []mockdrupal.Call
	for _, entry := range u.Journal() {
		for _, call := range entry.Calls {
			if len(methods) == 0 || slices.Contains(methods, call.Method) {
				calls = append(calls, call)
			}
		}
	}
	return calls
}

// Runs lists the calls whose method ran.
func (u *Upstream) Runs(methods ...string) []mockdrupal.Call {
	return slices.DeleteFunc(u.Calls(methods...), func(c mockdrupal.Call) bool { return !c.Ran })
}

// Arm makes the site misbehave for the rest of the running check, or until disarm is called.
func (u *Upstream) Arm(fault mockdrupal.Fault) (disarm func()) {
	disarm, err := u.TryArm(fault)
	if err != nil && u.Proxy {
		panic(NotTestable(fmt.Sprintf("the recording proxy has no such fault of the site: %v", err)))
	}
	if err != nil {
		panic(fmt.Sprintf("a check arms an impossible fault: %v", err))
	}
	return disarm
}

// TryArm is Arm for faults that not every machine supports; the error says why this one does not.
func (u *Upstream) TryArm(fault mockdrupal.Fault) (disarm func(), err error) {
	u.Use()
	lift, err := u.Recorder.Arm(fault)
	if err != nil {
		return nil, err
	}
	u.armed.Add(1)
	disarm = sync.OnceFunc(func() {
		lift()
		u.armed.Add(-1)
	})
	u.cleanup(func(context.Context) { disarm() })
	return disarm, nil
}

// Last is the journal's position now.
func (u *Upstream) Last() int64 {
	if u == nil {
		return 0
	}
	return u.Recorder.Journal().Last()
}

// Entries are the requests that reached the site after a position of the journal.
func (u *Upstream) Entries(since int64) []mockdrupal.Entry {
	if u == nil {
		return nil
	}
	return u.Recorder.Journal().Entries(since)
}

// Worked is how long the site worked since a position of its journal; requests at the same time count once.
func (u *Upstream) Worked(since int64) time.Duration {
	var worked time.Duration
	var until time.Time
	entries := u.Entries(since)
	slices.SortFunc(entries, func(x, y mockdrupal.Entry) int { return x.Start.Compare(y.Start) })
	for _, e := range entries {
		start := e.Start
		if start.Before(until) {
			start = until
		}
		if e.End.After(start) {
			worked += e.End.Sub(start)
			until = e.End
		}
	}
	return worked
}
