// Package workers shares the checks of a run among processes. Each worker has a bridge, a site and a Ginkgo tree of its
// own; it asks for every check whether it may test it, and gives what it found as a engine.Part for each pass. The
// messages are lines of JSON on the worker's stdin and stdout, so that nothing of a run is on a command line.
//
// It starts no bridge and decides no verdict. Its invariant: each check of a pass is given to one worker at most.
package workers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// How a run ends its workers.
const (
	endTime   = 1200 * time.Millisecond // in which a worker that should end gives what it has
	killGrace = 100 * time.Millisecond  // then
)

// maxErrors bounds what is kept of a worker's stderr, in bytes.
const maxErrors = 8 << 10

// Job is the first message to every worker.
type Job struct {
	Args    []string `json:"args"`    // of the command that is the run
	Dir     string   `json:"dir"`     // for the worker's files
	Sharers int      `json:"sharers"` // workers that test the same bridge; 0: it has one of its own
}

// toWorker is a message to a worker: one member is set.
type toWorker struct {
	Job  *Job    `json:"job,omitempty"`
	Pass *int    `json:"pass,omitempty"` // in response to Next; -1: none is left
	Take *bool   `json:"take,omitempty"` // in response to Take
	End  *string `json:"end,omitempty"`  // why the run ends
}

// fromWorker is a message of a worker: one member is set, or Tested beside Result.
type fromWorker struct {
	Next   bool            `json:"next,omitempty"`
	Take   string          `json:"take,omitempty"`
	Result *reports.Result `json:"result,omitempty"` // without evidence
	Tested []reports.Part  `json:"tested,omitempty"` // of Result
	Part   *engine.Part    `json:"part,omitempty"`
	Failed *FailedError    `json:"failed,omitempty"`
}

// FailedError is why a worker gave up.
type FailedError struct {
	Kind string `json:"kind,omitempty"` // for who starts the workers
	Text string `json:"text"`
}

func (e *FailedError) Error() string { return e.Text }

// Observer receives what the workers do, one call at a time.
type Observer struct {
	Started  func(clause string)
	Finished func(reports.Result) (end string) // a reason ends the run
}

// Again are bundles to be tested again where nothing else runs, and why the first of them is.
type Again struct {
	Bundles []Bundle
	Why     string
}

// Staff is how many workers a run has: First at the beginning, and one more, up to Most, whenever Spare, asked every quarter of a second,
// said twice in succession that there is a processor for it.
type Staff struct {
	First, Most int
	Spare       func() bool
}

// askSpare is how often Staff.Spare is asked.
const askSpare = 250 * time.Millisecond

// Run shares the checks of the queue among processes that command starts, and returns the parts of each pass. Those of a
// bundle in which what a check found may depend on more than the bundle are left out, and it is to be tested again. When ctx
// ends, the parts say that they were cut short, and none is left out. The error says what kept a worker from its work; then the
// parts are worth nothing.
func Run(ctx context.Context, staff Staff, command func() *exec.Cmd, job func(worker int) Job, q *Queue, o Observer) ([][]*engine.Part, Again, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := &run{ctx: ctx, end: end, queue: q, observer: o, parts: make([][]*engine.Part, q.passes)}
	group := processtree.NewGroup()
	defer group.Close(killGrace)
	ended := make(chan error)
	started, at := 0, 0
	start := func() {
		cmd, job := command(), job(started)
		started, at = started+1, at+1
		go func() {
			err := r.work(group, cmd, job)
			if err != nil {
				end(err)
			}
			ended <- err
		}()
	}
	for range staff.First {
		start()
	}
	ask := time.NewTicker(askSpare)
	defer ask.Stop()
	var errs []error
	for spare := 0; at > 0; {
		select {
		case err := <-ended:
			errs, at = append(errs, err), at-1
		case <-ask.C:
			if started == staff.Most || ctx.Err() != nil || !q.waits() {
				continue
			}
			if spare++; !staff.Spare() {
				spare = 0
			} else if spare > 1 {
				start()
			}
		}
	}
	if ctx.Err() == nil {
		return r.parts, r.again, errors.Join(errs...)
	}
	for i, b := range r.again.Bundles {
		r.parts[b.Pass] = append(r.parts[b.Pass], r.carried[i])
	}
	return r.parts, Again{}, errors.Join(errs...)
}

type run struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	queue *Queue

	mu       sync.Mutex
	observer Observer
	parts    [][]*engine.Part // by pass
	again    Again
	carried  []*engine.Part // what was found in its bundles
}

// work starts a worker and serves it until it has ended.
func (r *run) work(group *processtree.Group, cmd *exec.Cmd, job Job) error {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	said := &tail{}
	cmd.Stderr = said
	tree, err := group.Start(cmd)
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	w := &lines{out: stdin}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-done:
			return
		case <-r.ctx.Done():
		}
		reason := context.Cause(r.ctx).Error()
		if errors.Is(context.Cause(r.ctx), context.Canceled) {
			reason = ""
		}
		_ = w.write(toWorker{End: &reason}) // a worker that is gone needs none
		select {
		case <-done:
		case <-time.After(endTime):
			tree.Kill()
		}
	})
	err = w.write(toWorker{Job: &job})
	if err == nil {
		err = r.serve(stdout, w)
	}
	if err != nil {
		tree.Kill()
	}
	ended := cmd.Wait()
	close(done)
	watch.Wait()
	switch {
	case r.ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case ended != nil:
		return fmt.Errorf("a worker ended by itself: %w%s", ended, said)
	}
	return nil
}

// serve responds to a worker until its output ends.
func (r *run) serve(stdout io.Reader, w *lines) error {
	in := json.NewDecoder(stdout)
	at, pass := none, none
	defer func() { r.queue.left(at) }()
	for {
		var m fromWorker
		if err := in.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read from a worker: %w", err)
		}
		switch {
		case m.Failed != nil:
			return m.Failed
		case m.Next:
			r.queue.left(at)
			at, pass = r.queue.next()
			if err := w.write(toWorker{Pass: &pass}); err != nil {
				return err
			}
		case m.Take != "":
			take := r.ctx.Err() == nil && r.queue.take(at, m.Take)
			if take {
				r.observe(func(o Observer) { o.Started(m.Take) })
			}
			if err := w.write(toWorker{Take: &take}); err != nil {
				return err
			}
		case m.Result != nil:
			m.Result.Tested = m.Tested
			r.observe(func(o Observer) {
				if reason := o.Finished(*m.Result); reason != "" {
					r.end(errors.New(reason))
				}
			})
		case m.Part != nil:
			b := r.queue.bundles[at].Bundle
			if b.Shared && m.Part.Carried != "" {
				return errors.New(m.Part.Carried)
			}
			r.queue.drop(at)
			r.observe(func(Observer) { r.found(b, m.Part) })
		}
	}
}

// found keeps what was found in a bundle.
func (r *run) found(b Bundle, part *engine.Part) {
	if part.Carried == "" {
		r.parts[b.Pass] = append(r.parts[b.Pass], part)
		return
	}
	r.again.Bundles, r.carried = append(r.again.Bundles, b), append(r.carried, part)
	r.again.Why = cmp.Or(r.again.Why, part.Carried)
}

func (r *run) observe(call func(Observer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call(r.observer)
}

// lines writes messages. It is safe for concurrent use.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) write(message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.out.Write(append(data, '\n'))
	return err
}

// tail keeps the end of what is written.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-maxErrors):]
	return len(p), nil
}

func (t *tail) String() string {
	if len(bytes.TrimSpace(t.kept)) == 0 {
		return ""
	}
	return ": " + terminal.Line(string(t.kept), 500)
}

// Worker is the other end: what a worker process does with the run that started it.
type Worker struct {
	out     *lines
	replies chan toWorker // to Next and Take
}

// Serve does the job that comes on stdin: it calls do, whose context ends when the run wants it to, or is gone itself.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer, do func(context.Context, Job, *Worker) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	in := json.NewDecoder(bufio.NewReader(stdin))
	var first toWorker
	if err := in.Decode(&first); err != nil || first.Job == nil {
		return fmt.Errorf("a worker is started by a run, with its job on stdin: %w", err)
	}
	w := &Worker{out: &lines{out: stdout}, replies: make(chan toWorker)}
	go func() { // it ends with the process
		for {
			var m toWorker
			switch err := in.Decode(&m); {
			case err != nil:
				end(context.Canceled)
				return
			case m.End != nil && *m.End != "":
				end(errors.New(*m.End))
			case m.End != nil:
				end(context.Canceled)
			default:
				w.replies <- m
			}
		}
	}()
	if err := do(ctx, *first.Job, w); err != nil {
		failed := &FailedError{Text: err.Error()}
		errors.As(err, &failed)
		return w.out.write(fromWorker{Failed: failed})
	}
	return nil
}

// Next is the pass to work on next; false: none is left.
func (w *Worker) Next(ctx context.Context) (pass int, ok bool) {
	m := w.ask(ctx, fromWorker{Next: true})
	if m.Pass == nil || *m.Pass < 0 {
		return 0, false
	}
	return *m.Pass, true
}

// Take asks for a check of the pass. Without a response it belongs to another.
func (w *Worker) Take(ctx context.Context, clause string) bool {
	m := w.ask(ctx, fromWorker{Take: clause})
	return m.Take != nil && *m.Take
}

func (w *Worker) ask(ctx context.Context, m fromWorker) toWorker {
	if ctx.Err() != nil || w.out.write(m) != nil {
		return toWorker{}
	}
	select {
	case reply := <-w.replies:
		return reply
	case <-ctx.Done():
		return toWorker{}
	}
}

// Finished gives the verdict on a clause, for those who watch the run.
func (w *Worker) Finished(r reports.Result) {
	tested := r.Tested
	r.Evidence = nil
	_ = w.out.write(fromWorker{Result: &r, Tested: tested}) // the part that comes later has it
}

// Done gives what the worker found in the pass.
func (w *Worker) Done(part *engine.Part) error { return w.out.write(fromWorker{Part: part}) }
