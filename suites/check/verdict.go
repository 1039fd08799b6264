package check

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Ending says why a check ended without a verdict of its own.
type Ending struct {
	Kind     EndingKind
	Why      Finding
	Culprits []string // of BlockedByBridge: the clauses that the bridge breaks so that this one cannot be tested; nil: not known
}

// EndingKind names the kind of an ending.
type EndingKind string

// The kinds of endings.
const (
	Inapplicable    EndingKind = "not applicable"
	Missing         EndingKind = "not testable" // what the check needs is not there, and the bridge is not to blame
	BlockedByBridge EndingKind = "blocked"      // the bridge did not do what the check builds on
	CutShort        EndingKind = "cut short"    // the whole run ended
)

// NotTestable ends the running check without a verdict: what it needs is not there, and the bridge is not to blame. The
// reason says what is missing, or what would make the clause testable.
func NotTestable(reason string) { End(Ending{Kind: Missing, Why: Finding{Subject: reason}}) }

// TooSlow is NotTestable for want of time; where others compute, too, the reason is the machine.
func (t *T) TooSlow(reason string) {
	t.ExemptIfCrowded()
	NotTestable(reason)
}

// BlockedBy ends the running check because the bridge did not do what the check builds on. The clauses are those that
// test exactly that. Where none of them fails in this run, the running check's clause fails itself, with the finding.
func BlockedBy(why Finding, clauses ...string) { End(blockedBy(why, clauses)) }

func blockedBy(why Finding, clauses []string) Ending {
	if len(clauses) > 0 {
		tested := strings.Join(clauses, " and ") + " tests that"
		if len(clauses) > 1 {
			tested = strings.Join(clauses, " and ") + " test that"
		}
		why = why.About(tested)
	}
	return Ending{Kind: BlockedByBridge, Why: why, Culprits: clauses}
}

// End ends the running check without a verdict. It unwinds the goroutine of the check by a panic that Environment.Test
// recovers.
func End(e Ending) { panic(e) }

// runEnded reports whether the whole run has ended: what the check then finds comes of that, but where the check itself met a bridge
// that is gone, by which the run ended.
func (t *T) runEnded() bool { return t.Context.Err() != nil && !t.metGone.Load() }

// isCutShort reports whether what ended a check, or one of its goroutines, is the end of the run.
func isCutShort(ended any) bool {
	e, is := ended.(Ending)
	return is && e.Kind == CutShort
}

// cutShort ends the running check because the whole run has ended.
func (t *T) cutShort() {
	if t.inCheck {
		End(Ending{Kind: CutShort, Why: Finding{Subject: "the run ended before this was tested"}})
	}
}

// failed is what a failed expectation outside of any part of a check panics with. The finding is in T.failed.
type failed struct{}

// broke is a panic that no check makes on purpose.
type broke struct {
	value any
	where string // file and line
}

// Cleanup undoes something when the check has ended, the last one first.
func (t *T) Cleanup(undo func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, undo)
}

// Recover is deferred by every goroutine of a check, so that what ends the check there ends it as a whole.
func (t *T) Recover() {
	if r := recover(); r != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.aside == nil || isCutShort(t.aside) {
			t.aside = noted(r)
		}
	}
}

// AtOnce runs n calls at the same time and waits for all. What ends the check in one of them ends it here.
func AtOnce(n int, call func(i int)) {
	var all sync.WaitGroup
	ended := make([]any, n)
	for i := range n {
		all.Go(func() { ended[i] = protect(func() { call(i) }) })
	}
	all.Wait()
	for _, e := range ended {
		if e != nil {
			panic(e)
		}
	}
}

// noted is what ended a check by what was recovered there: an Ending, failed, stopped or broke, with the place of a panic that
// nobody makes on purpose.
func noted(r any) any {
	switch r := r.(type) {
	case Ending, failed, stopped, broke:
		return r
	case site.NotTestable:
		return Ending{Kind: Missing, Why: Finding{Subject: string(r)}}
	case client.Unmet:
		why := Mismatch(r.Response.Subject(), "a success", r.Response.Outcome())
		if r.Want != nil {
			why = r.Want.(Finder).Finding(r.Response, false)
		}
		why.Response = r.Response
		return blockedBy(why.About("the positive control"), r.Clauses)
	}
	return broke{r, panickedAt()}
}

// panickedAt is the file and the line of the panic that is being recovered.
func panickedAt() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "runtime.") {
			panicking = panicking || frame.Function == "runtime.gopanic"
		} else if panicking {
			return fmt.Sprintf("%s:%d", path.Base(frame.File), frame.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}

// protect calls f and returns what ended it: nil, an Ending, failed, stopped or broke.
func protect(f func()) (ended any) {
	defer func() {
		if r := recover(); r != nil {
			ended = noted(r)
		}
	}()
	f()
	return nil
}

// How long a check may go on after the run has ended, and how long each of its clean-ups may take.
const (
	gracePeriod = time.Second
	cleanupTime = time.Minute
)

// run runs the check and its clean-ups, and returns what ended it. A check that ignores the end of its context for longer
// than the grace period is left behind.
func (t *T) run(ctx context.Context, test func(context.Context)) any {
	done := make(chan any, 1)
	go func() {
		ended := protect(func() { test(ctx) })
		t.mu.Lock()
		if _, unexpected := ended.(broke); t.aside != nil && (ended == nil || unexpected || isCutShort(ended)) {
			ended = t.aside // the check may have broken for what the other goroutine did not return
		}
		t.recording = false // what is sent to clean up shows nothing of the clause
		t.mu.Unlock()
		for {
			t.mu.Lock()
			n := len(t.cleanups)
			if n == 0 {
				t.mu.Unlock()
				break
			}
			undo := t.cleanups[n-1]
			t.cleanups = t.cleanups[:n-1]
			t.mu.Unlock()
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime+t.ChangeLimit()) // which may wait for the site's state to show
			if e := protect(func() { undo(cleanup) }); ended == nil {
				ended = e
			}
			cancel()
		}
		done <- ended
	}()
	select {
	case ended := <-done:
		return ended
	case <-ctx.Done():
	}
	select {
	case ended := <-done:
		return ended
	case <-time.After(gracePeriod):
		return Ending{Kind: CutShort, Why: Finding{Subject: "the run ended while this was tested"}}
	}
}
