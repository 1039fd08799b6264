// Package workers shares the checks of a run among goroutines. Each worker has a bridge and a site of its own, or shares a
// bridge that others may use; it asks for every check whether it may test it, and gives what it found as an engine.Part for
// each bundle.
//
// It starts no bridge and decides no verdict. Its invariant: each check of a pass is given to one worker at most.
package workers

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/reports"
)

// endTime is what workers have to give what they found once the run has ended. What comes later is lost: a run that was
// interrupted or is out of time has to end.
const endTime = 5 * time.Second

// Observer receives what the workers do, one call at a time.
type Observer struct {
	Started  func(clause string)
	Finished func(reports.Result) (end string) // a reason ends the run
}

// Again are bundles to be tested again where nothing else runs, what was found in each, and why the first of them is.
type Again struct {
	Bundles []Bundle
	Found   []*engine.Part
	Why     string
}

// Staff is how many workers a run has: First at the beginning, and one more, up to Most, whenever Spare said twice in succession that
// there is a processor for it. It is asked every quarter of a second, and after each no, which cost the processor time that there is not
// enough of, half as often as before.
type Staff struct {
	First, Most int
	Spare       func() bool
}

// Staff.Spare is asked this often at first, and at least this often.
const (
	askSpare  = 250 * time.Millisecond
	askSeldom = 16 * askSpare
)

// Run shares the checks of the queue among workers, each a goroutine that calls work with its number, and returns the parts of
// each pass. Those of a bundle in which what a check found may depend on more than the bundle are left out, and it is to be
// tested again. When ctx ends, the parts say that they were cut short, and none is left out. The error is the first of work;
// then the parts are worth nothing.
func Run(ctx context.Context, staff Staff, work func(ctx context.Context, number int, w *Worker) error, q *Queue, o Observer) ([][]*engine.Part, Again, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := &run{ctx: ctx, end: end, queue: q, observer: o, parts: make([][]*engine.Part, q.passes)}
	ended := make(chan error, staff.Most)
	started, at := 0, 0
	start := func() {
		started, at = started+1, at+1
		w, number := &Worker{run: r, at: none}, started
		go func() {
			err := work(ctx, number, w)
			w.leave()
			if ctx.Err() != nil {
				err = nil
			}
			if err != nil {
				end(err)
			}
			ended <- err
		}()
	}
	for range staff.First {
		start()
	}
	pause := askSpare
	ask := time.NewTimer(pause)
	defer ask.Stop()
	var late <-chan time.Time
	over := ctx.Done()
	var failed error
	for spare := 0; at > 0; {
		select {
		case err := <-ended:
			failed, at = cmp.Or(failed, err), at-1
		case <-over:
			over, late = nil, time.After(endTime)
		case <-late:
			at = 0
		case <-ask.C:
			if started == staff.Most || ctx.Err() != nil {
				continue
			}
			switch spare++; {
			case !q.waits():
				spare = 0
			case !staff.Spare():
				spare, pause = 0, min(2*pause, askSeldom)
			default:
				if pause = askSpare; spare > 1 {
					start()
				}
			}
			ask.Reset(pause)
		}
	}
	return r.found(failed)
}

type run struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	queue *Queue

	mu       sync.Mutex
	observer Observer
	parts    [][]*engine.Part // by pass
	again    Again
}

// found is what Run returns. A worker that is late changes nothing of it.
func (r *run) found(failed error) ([][]*engine.Part, Again, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts, again := r.parts, r.again
	r.parts, r.observer = make([][]*engine.Part, len(parts)), Observer{Started: func(string) {}, Finished: func(reports.Result) string { return "" }}
	if r.ctx.Err() == nil {
		return parts, again, failed
	}
	for i, b := range again.Bundles {
		parts[b.Pass] = append(parts[b.Pass], again.Found[i])
	}
	return parts, Again{}, failed
}

// Worker takes checks from the queue of a run. It is for one goroutine.
type Worker struct {
	run *run
	at  int // the bundle that it tests
}

// Next is the pass to work on next; false: none is left.
func (w *Worker) Next() (pass int, ok bool) {
	w.leave()
	if w.run.ctx.Err() != nil {
		return 0, false
	}
	w.at, pass = w.run.queue.next()
	return pass, w.at != none
}

func (w *Worker) leave() {
	w.run.queue.left(w.at)
	w.at = none
}

// Take asks for a check of the pass: false where it belongs to another worker.
func (w *Worker) Take(clause string) bool {
	r := w.run
	if r.ctx.Err() != nil || !r.queue.take(w.at, clause) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.observer.Started(clause)
	return true
}

// Finished gives the verdict on a clause, for those who watch the run.
func (w *Worker) Finished(result reports.Result) {
	r := w.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason := r.observer.Finished(result); reason != "" {
		r.end(errors.New(reason))
	}
}

// Done returns what the worker found in the bundle. The error says why nobody can go on with a bundle that workers share.
func (w *Worker) Done(part *engine.Part) error {
	r, b := w.run, w.run.queue.bundles[w.at].Bundle
	if b.Shared && part.Carried != "" {
		return errors.New(part.Carried)
	}
	r.queue.drop(w.at)
	r.mu.Lock()
	defer r.mu.Unlock()
	if part.Carried == "" {
		r.parts[b.Pass] = append(r.parts[b.Pass], part)
		return nil
	}
	r.again.Bundles, r.again.Found = append(r.again.Bundles, b), append(r.again.Found, part)
	r.again.Why = cmp.Or(r.again.Why, part.Carried)
	return nil
}
