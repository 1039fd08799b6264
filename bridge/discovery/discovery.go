// Package discovery answers which tools a caller has. It asks the site as the caller, remembers the answer for the
// shorter of the two TTLs, and lets callers who are told the same share one catalog. It never mixes callers: what one
// credential was told is given to that credential only. A discovery that fails changes nothing.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"bridgecheck/bridge/catalog"
	"bridgecheck/bridge/fault"
	"bridgecheck/bridge/translate"
	"bridgecheck/bridge/upstream"
)

// Options says how long answers hold.
type Options struct {
	Source     Source
	Rules      Rules
	Targets    *Targets      // nil: references take any value
	TTL        time.Duration // how long the site's tools are taken to be the same
	Permission time.Duration // how long a caller's permissions are
	Refused    time.Duration // how long a 401 or 403 is remembered, no longer than Permission
	MaxStale   time.Duration // how old an answer may be that stands in for a site that fails
	StaleAfter time.Duration // how long a caller waits for the site while there is an older answer (machine's time)
	Background time.Duration // callers seen within this time are kept fresh unasked; 0: only those who subscribed
	MaxCallers int           // how many callers are remembered
	Now        func() time.Time
	Logger     *slog.Logger
	Observe    func(outcome string) // told of each look-up: hit, miss, stale, refused; nil: nobody
}

// Engine remembers what each caller was told. It is safe for use by many at once.
type Engine struct {
	o          Options
	ttl        time.Duration
	builder    *builder
	callers    *otter.Cache[upstream.Identity, *entry]
	generation atomic.Int64 // goes up when all that is remembered becomes doubtful
	doubts     atomic.Int64 // goes up when the site contradicts a caller's tools

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	flights sync.WaitGroup
	poller  poller
}

// entry is one caller.
type entry struct {
	who     upstream.Caller
	known   atomic.Pointer[knowledge]
	seen    atomic.Int64 // by the clock, Unix nanoseconds
	listing catalog.Listing

	mu      sync.Mutex
	flight  *flight
	doubted time.Time
}

// knowledge is what a caller was told, and when. Exactly one of set and refusal is there.
type knowledge struct {
	set        *set
	refusal    *fault.Error
	etag       string
	at         time.Time
	generation int64 // -1: doubtful
}

// flight is a discovery under way, for all who wait for it.
type flight struct {
	done    chan struct{}
	err     error // set before done is closed
	waiting int   // callers who have nothing else to go by
	cancel  context.CancelFunc
}

// New makes an engine. It asks the site nothing before the first caller comes.
func New(o Options) (*Engine, error) {
	b, err := newBuilder(o.Rules, o.Logger)
	if err != nil {
		return nil, err
	}
	callers, err := otter.New(&otter.Options[upstream.Identity, *entry]{MaximumSize: o.MaxCallers})
	if err != nil {
		return nil, errors.New("discovery: the number of remembered callers must be positive")
	}
	e := &Engine{o: o, ttl: min(o.TTL, o.Permission), builder: b, callers: callers}
	e.ctx, e.stop = context.WithCancel(context.Background())
	if o.Background > 0 {
		e.poller.start(e)
	}
	return e, nil
}

// Close ends all that is under way.
func (e *Engine) Close() {
	e.stop()
	e.poller.wait()
	e.flights.Wait()
}

// View tells what the caller may see. Faults: AuthRequired and AccessDenied as the site refused the caller, and
// UpstreamError or UpstreamUnavailable when the site fails and nothing recent enough is known.
func (e *Engine) View(ctx context.Context, who upstream.Caller) (View, error) {
	en := e.entry(who)
	en.seen.Store(e.o.Now().UnixNano())
	k := en.known.Load()
	if e.fresh(k) {
		e.observe("hit")
		return e.view(en, k, false)
	}
	err := e.refresh(ctx, en, e.usable(k))
	if k = en.known.Load(); err == nil && !e.current(k) { // made doubtful while the site answered
		err = e.refresh(ctx, en, e.usable(k))
		k = en.known.Load()
	}
	switch {
	case err == nil && e.current(k): // just answered, even if the site took longer than the TTL
		e.observe("miss")
		return e.view(en, k, false)
	case e.usable(k):
		e.observe("stale")
		return e.view(en, k, true)
	case err == nil:
		err = fault.New(fault.UpstreamUnavailable, "The site's tools change at this moment; come again.")
	}
	return View{}, err
}

func (e *Engine) entry(who upstream.Caller) *entry {
	if en, ok := e.callers.GetIfPresent(who.Identity); ok {
		return en
	}
	en, _ := e.callers.SetIfAbsent(who.Identity, &entry{who: who})
	return en
}

func (e *Engine) view(en *entry, k *knowledge, stale bool) (View, error) {
	if k.refusal != nil {
		return View{}, k.refusal
	}
	s := k.set
	v := View{MayDiscover: s.mayDiscover, Administers: s.administers, who: en.who, set: s, listing: &en.listing}
	if stale {
		v.Stale, v.Age = true, max(e.o.Now().Sub(k.at), time.Second)
	}
	return v, nil
}

// fresh tells whether knowledge holds without asking again.
func (e *Engine) fresh(k *knowledge) bool {
	if !e.current(k) {
		return false
	}
	ttl := e.ttl
	if k.refusal != nil {
		ttl = min(e.o.Refused, ttl)
	}
	return e.o.Now().Sub(k.at) < ttl
}

// current tells whether nobody has doubted knowledge since it came.
func (e *Engine) current(k *knowledge) bool { return k != nil && k.generation == e.generation.Load() }

// usable tells whether knowledge may stand in while the site fails.
func (e *Engine) usable(k *knowledge) bool {
	return k != nil && k.set != nil && e.o.Now().Sub(k.at) < e.ttl+e.o.MaxStale
}

// errStillAsking says that the site takes its time while there is something to fall back on.
var errStillAsking = errors.New("the site has not answered yet")

// refresh asks the site, together with whoever asks for the same caller at this time. With something to fall back on,
// it waits no longer than StaleAfter; the discovery then goes on without it.
func (e *Engine) refresh(ctx context.Context, en *entry, fallback bool) error {
	en.mu.Lock()
	if e.fresh(en.known.Load()) {
		en.mu.Unlock()
		return nil
	}
	f := en.flight
	if f == nil {
		f = e.launch(en)
	}
	f.waiting++
	en.mu.Unlock()

	var patience <-chan time.Time
	if fallback {
		timer := time.NewTimer(e.o.StaleAfter)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-f.done:
		return f.err
	case <-patience:
		return errStillAsking
	case <-ctx.Done():
	}
	en.mu.Lock()
	defer en.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel() // nobody wants it any more
		if en.flight == f {
			en.flight = nil // whoever comes now must not wait for what is given up
		}
	}
	return fault.New(fault.UpstreamTimeout, "The caller went away before the site had answered.").Because(ctx.Err())
}

// launch starts a discovery; the entry is locked.
func (e *Engine) launch(en *entry) *flight {
	ctx, cancel := context.WithCancel(e.ctx)
	f := &flight{done: make(chan struct{}), cancel: cancel}
	en.flight = f
	generation := e.generation.Load()
	e.flights.Go(func() {
		defer cancel()
		err := e.discover(ctx, en, generation)
		en.mu.Lock()
		if f.err = err; en.flight == f {
			en.flight = nil
		}
		en.mu.Unlock()
		close(f.done)
	})
	return f
}

// discover asks the site and stores what came of it.
func (e *Engine) discover(ctx context.Context, en *entry, generation int64) error {
	before := en.known.Load()
	etag := ""
	if before != nil && before.set != nil && e.o.Rules.Lazy == nil {
		etag = before.etag
	}
	now := &knowledge{at: e.o.Now(), generation: generation}
	a, err := e.o.Source.Fetch(ctx, en.who, etag)
	switch {
	case fault.Is(err, fault.AuthRequired, fault.AccessDenied):
		now.refusal = fault.From(err)
		e.observe("refused")
	case err != nil:
		return e.failed(en, err)
	case a.Unchanged:
		now.set, now.etag = before.set, before.etag
	default:
		targets := e.o.Targets.of(ctx, en.who, e.o.Source, e.o.Rules.Translator, a)
		if now.set, err = e.builder.build(e.o.Source, a, targets, e.epoch()); err != nil {
			return e.failed(en, unreadable(err))
		}
		now.etag = a.ETag
	}
	en.known.Store(now)
	e.changed(en, before, now)
	return nil
}

// epoch names the time within which one answer of the site means the same. Without lazy schemas it always does: the
// answer has the schemas in it.
func (e *Engine) epoch() string {
	if e.o.Rules.Lazy == nil {
		return ""
	}
	return fmt.Sprint(e.o.Now().UnixNano()/int64(e.o.TTL), e.generation.Load(), e.doubts.Load())
}

// failed words a failure for callers: whatever happened, what they asked for cannot be had.
func (e *Engine) failed(en *entry, err error) error {
	e.o.Logger.Warn("discovery failed", "caller", en.who, "error", err)
	f := fault.From(err)
	switch f.Code {
	case fault.UpstreamUnavailable, fault.Overloaded:
		return f
	case fault.RateLimited:
		limited := fault.New(fault.UpstreamUnavailable, "The site limits how often it may be asked for its methods.").Because(err)
		limited.RetryAfter = f.RetryAfter
		return limited
	case fault.UpstreamTimeout:
		return fault.New(fault.UpstreamError, "The site did not list its methods in time.").Because(err)
	}
	return unreadable(err)
}

func unreadable(err error) *fault.Error {
	return fault.New(fault.UpstreamError, "The site did not list its methods in a usable form.").Because(err)
}

// Invalidate makes all that is remembered doubtful: whoever asks next makes the bridge ask the site. What is known
// still stands in if the site fails.
func (e *Engine) Invalidate() { e.generation.Add(1) }

// doubtAgain is how often one caller's failed calls may send the bridge to the site.
const doubtAgain = 5 * time.Second

// Doubt is told when the site refused what its own description allows: the caller's tools are asked for anew, at once
// and not more often than helps. It reports whether they were.
func (e *Engine) Doubt(ctx context.Context, who upstream.Caller) bool {
	en := e.entry(who)
	now := e.o.Now()
	en.mu.Lock()
	if !en.doubted.IsZero() && now.Sub(en.doubted) < min(doubtAgain, e.ttl) {
		en.mu.Unlock()
		return false
	}
	en.doubted = now
	e.doubts.Add(1)
	if k := en.known.Load(); k != nil {
		doubtful := *k
		doubtful.generation = -1
		en.known.Store(&doubtful)
	}
	en.mu.Unlock()
	return e.refresh(ctx, en, true) == nil
}

// Diagnostics gives what was mended or left out, over all sets that callers hold.
func (e *Engine) Diagnostics() []translate.Diagnostic {
	seen := map[translate.Diagnostic]bool{}
	var all []translate.Diagnostic
	for _, s := range e.builder.sets.all() {
		for _, d := range slices.Concat(s.diagnostics, s.shelf.diagnostics()) {
			if !seen[d] {
				seen[d] = true
				all = append(all, d)
			}
		}
	}
	return all
}

// Callers is the number of callers that are remembered.
func (e *Engine) Callers() int { return e.callers.EstimatedSize() }

func (e *Engine) observe(outcome string) {
	if e.o.Observe != nil {
		e.o.Observe(outcome)
	}
}
