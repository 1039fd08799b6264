// Package discovery finds which tools a caller has. It asks the site as the caller, caches the response for the shorter of
// the two TTLs, and lets callers with the same response share one catalog. It never mixes callers: a response to one
// credential is used for that credential only, except where one account discovers for all callers (broad.go). A discovery
// that fails changes nothing.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/recent"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
)

// Options says how long responses hold.
type Options struct {
	Source     Source
	Account    *caller.ServiceAccount // whose tools all callers are shown; nil: each caller's own
	Rules      Rules
	Targets    *Targets          // nil: references take any value
	TTL        time.Duration     // how long the site's tools are taken to be the same
	Permission time.Duration     // how long a caller's permissions are
	Refused    time.Duration     // how long a 401 or 403 is remembered, no longer than Permission
	MaxStale   time.Duration     // how old a response may be that stands in for a site that fails
	StaleAfter time.Duration     // how long a caller waits for the site while there is an older response (machine's time)
	Background time.Duration     // callers seen within this time are kept fresh unasked; 0: only those who subscribed
	Unasked    int               // how many callers are kept fresh at one time, at least 1
	AtOnce     int               // how many discoveries run at one time, at least 1
	MaxCallers int               // how many callers are remembered
	Attempts   *throttle.Limiter // of credentials that the site may refuse; nil: any number
	Now        func() time.Time
	Logger     *slog.Logger
	Changed    func(caller caller.Identity, now catalog.Version) // receives each change of a caller's tools; nil: nobody
	Observe    func(outcome string)                              // receives each look-up: hit, miss, stale, refused or throttled; nil: nobody
}

// Engine caches the tools of each caller. It is safe for concurrent use.
type Engine struct {
	o          Options
	ttl        time.Duration
	builder    *builder
	callers    *recent.Cache[caller.Identity, *entry]
	strangers  *recent.Cache[caller.Identity, *entry] // to whom the site has shown no tools yet: they displace no caller
	spoken     spoken
	kept       *kept        // apart: what ends with a set must not hold the engine, which holds sets
	generation atomic.Int64 // goes up when the whole cache becomes doubtful
	doubts     atomic.Int64 // goes up when the site contradicts a caller's tools

	places  chan struct{}   // taken by each discovery, but for those of the account
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	flights sync.WaitGroup
	poller  poller
}

// entry is one caller.
type entry struct {
	who     caller.Caller // without a trace: many requests use the entry
	account bool          // the account that discovers for all
	known   atomic.Pointer[knowledge]
	seen    atomic.Int64 // by the clock, nanoseconds since began
	failed  atomic.Int64 // when it could not be discovered last, by the machine's clock, nanoseconds since began; 0: never
	listing catalog.Listing

	mu      sync.Mutex
	flight  *flight
	doubted time.Time // for what the site refused
	heard   time.Time // and for what another replica said, which takes the place of no refusal
}

// knowledge is what the site returned to a caller, and when. Exactly one of set and refusal is there.
type knowledge struct {
	set        *set
	rights     rights
	refusal    *fault.Error
	etag       string
	at         time.Time // of the oldest response in it
	until      time.Time // it need not be asked for again before
	generation int64     // -1: doubtful
}

// flight is a discovery in progress, shared by all that wait for it.
type flight struct {
	done    chan struct{}
	err     error // set before done is closed
	waiting int   // callers without a cached list
	cancel  context.CancelFunc
}

// maxStrangers is how many callers are remembered to whom the site has shown no tools, most of them because it refused them.
const maxStrangers = 4096

// New makes an engine. It asks the site nothing before the first caller comes.
func New(o Options) (*Engine, error) {
	b, err := newBuilder(o.Rules, o.Account != nil, o.Logger)
	if err != nil {
		return nil, err
	}
	const usual = 4 << 10 // bytes of a caller; one with a longer credential counts for several
	if o.MaxCallers < 1 {
		return nil, fmt.Errorf("discovery: the number of remembered callers must be at least 1, got %d", o.MaxCallers)
	}
	remember := func(callers int) *recent.Cache[caller.Identity, *entry] {
		return recent.New[caller.Identity](callers*usual, func(en *entry) int { return max(usual, en.who.Size()) })
	}
	e := &Engine{
		o: o, ttl: min(o.TTL, o.Permission), builder: b, spoken: newSpoken(o.MaxCallers), kept: &kept{},
		callers: remember(o.MaxCallers), strangers: remember(min(o.MaxCallers, maxStrangers)),
	}
	e.poller.places = make(chan struct{}, max(1, o.Unasked))
	e.places = make(chan struct{}, max(1, o.AtOnce))
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

// View says what the caller may see. Faults: AuthRequired and AccessDenied as the site refused the caller, and
// UpstreamError or UpstreamUnavailable when the site fails and nothing recent enough is known.
func (e *Engine) View(ctx context.Context, who caller.Caller) (View, error) {
	en := e.entry(who)
	en.seen.Store(e.now())
	k := en.known.Load()
	if e.fresh(k) {
		e.observe("hit")
		return e.view(en, k, false)
	}
	err := e.refresh(ctx, en, who.Trace, e.usable(k))
	if k = en.known.Load(); err == nil && !e.current(k) { // made doubtful before the site responded
		err = e.refresh(ctx, en, who.Trace, e.usable(k))
		k = en.known.Load()
	}
	switch {
	case err == nil && e.current(k): // just refreshed, even if the site took longer than the TTL
		e.observe("miss")
		return e.view(en, k, false)
	case e.usable(k):
		e.observe("stale")
		return e.view(en, k, true)
	case err == nil:
		err = changing()
	}
	return View{}, err
}

func changing() *fault.Error {
	return fault.New(fault.UpstreamUnavailable, "The site's tools change at this moment; come again.")
}

func (e *Engine) entry(who caller.Caller) *entry {
	if en, ok := e.callers.Get(who.Identity); ok {
		return en
	}
	who = e.spoken.limit(who)
	if en, ok := e.callers.Get(who.Identity); ok {
		return en
	}
	who.Trace = caller.Trace{}
	return e.strangers.GetOrMake(who.Identity, func() *entry { return &entry{who: who} })
}

func (e *Engine) view(en *entry, k *knowledge, stale bool) (View, error) {
	if k.refusal != nil {
		return View{}, k.refusal
	}
	v := View{MayDiscover: k.rights.discover, Administers: k.rights.administer, who: e.asker(en.who), set: k.set, listing: &en.listing}
	if stale {
		v.Stale, v.Age = true, max(e.o.Now().Sub(k.at), time.Second)
	}
	return v, nil
}

// began is what moments are measured from: the wall clock may jump.
var began = time.Now()

// now is the time by the clock, in nanoseconds since began.
func (e *Engine) now() int64 { return int64(e.o.Now().Sub(began)) }

// fresh reports whether knowledge holds without asking again.
func (e *Engine) fresh(k *knowledge) bool { return e.current(k) && e.o.Now().Before(k.until) }

// current reports whether the list has not been doubted since it was fetched.
func (e *Engine) current(k *knowledge) bool { return k != nil && k.generation == e.generation.Load() }

// usable reports whether the list may be served while the site fails.
func (e *Engine) usable(k *knowledge) bool {
	return k != nil && k.set != nil && e.o.Now().Before(k.until.Add(e.o.MaxStale))
}

// errAccountRefused says that the site refuses the bridge's own account, which the caller is told.
var errAccountRefused = errors.New("the site refuses the bridge's own account")

// errStillAsking says that the site takes its time while there is something to fall back on.
var errStillAsking = errors.New("the site has not responded yet")

// refresh asks the site, once for all requests of the same caller at this time. With something to fall back on,
// it waits no longer than StaleAfter; the discovery then goes on without it. trace is that of the request which asks.
func (e *Engine) refresh(ctx context.Context, en *entry, trace caller.Trace, fallback bool) error {
	en.mu.Lock()
	if e.fresh(en.known.Load()) {
		en.mu.Unlock()
		return nil
	}
	f := en.flight
	if f == nil {
		f = e.launch(en, trace)
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
		f.cancel() // no request waits for it any more
		if en.flight == f {
			en.flight = nil // a new request must not wait for a discovery that was given up
		}
	}
	return fault.New(fault.UpstreamTimeout, "The caller went away before the site had responded.").Because(ctx.Err())
}

// launch starts a discovery; the entry is locked.
func (e *Engine) launch(en *entry, trace caller.Trace) *flight {
	ctx, cancel := context.WithCancel(e.ctx)
	f := &flight{done: make(chan struct{}), cancel: cancel}
	en.flight = f
	generation := e.generation.Load()
	who := en.who
	who.Trace = trace
	e.flights.Go(func() {
		defer cancel()
		err := e.discover(ctx, en, who, generation)
		en.mu.Lock()
		if f.err = err; en.flight == f {
			en.flight = nil
		}
		en.mu.Unlock()
		close(f.done)
	})
	return f
}

// discover asks the site as who, the caller of the entry, and stores the outcome.
func (e *Engine) discover(ctx context.Context, en *entry, who caller.Caller, generation int64) (err error) {
	defer func() {
		if p := recover(); p != nil { // a panic of a library on the site's data must not end the bridge
			e.o.Logger.Error("discovery panicked", "caller", en.who, "panic", p, "stack", string(debug.Stack()))
			err = e.failed(en, fmt.Errorf("panic: %v", p))
		}
	}()
	before := en.known.Load()
	now := &knowledge{at: e.o.Now(), generation: generation}
	a, leave, err := e.ask(ctx, en, who, e.newsSince(en, before))
	defer leave()
	defer a.done()
	switch {
	case fault.Is(err, fault.AuthRequired, fault.AccessDenied):
		now.refusal, now.until = fault.From(err), now.at.Add(min(e.o.Refused, e.ttl))
		e.observe("refused")
	case err != nil:
		return e.failed(en, err)
	default:
		if err := e.learn(ctx, en, who, before, now, &a); err != nil {
			return e.failed(en, err)
		}
	}
	en.known.Store(now)
	if now.set != nil {
		e.callers.GetOrMake(en.who.Identity, func() *entry { return en })
		e.strangers.Remove(en.who.Identity)
		e.keep(now.set)
	}
	e.changed(en, before, now)
	return nil
}

// ask has the site asked when there is a place for it, unless the caller's credential is held back. leave gives the place
// back when all that the response needs is done.
func (e *Engine) ask(ctx context.Context, en *entry, who caller.Caller, since string) (a Response, leave func(), err error) {
	leave = func() {}
	var trial *throttle.Trial
	if e.o.Attempts != nil && !who.Anonymous() {
		if trial, err = e.o.Attempts.Try(ctx, who.Attempt()); err != nil {
			return a, leave, err
		}
		end := trial.Abandoned
		defer func() { end() }()
		defer func() {
			switch {
			case err == nil:
				end = trial.Accepted
			case fault.Is(err, fault.AuthRequired, fault.AccessDenied):
				end = func() { trial.Refused(fault.From(err)) }
			}
		}()
	}
	if !en.account { // for which others wait in their places
		select {
		case e.places <- struct{}{}:
			leave = func() { <-e.places }
		case <-ctx.Done():
			return a, leave, fault.New(fault.Overloaded, "The caller went away while the site was asked for others.").Because(ctx.Err())
		}
	}
	a, err = e.o.Source.Fetch(ctx, who, since)
	return a, leave, err
}

// newsSince is the tag by which the site is asked for news only; "" where the whole response is needed.
func (e *Engine) newsSince(en *entry, before *knowledge) string {
	if before == nil || before.set == nil || e.o.Rules.Lazy != nil || e.forAll(en) {
		return ""
	}
	return before.etag
}

// learn fills in what a response of the site comes to.
func (e *Engine) learn(ctx context.Context, en *entry, who caller.Caller, before, now *knowledge, a *Response) (err error) {
	now.until = now.at.Add(e.ttl)
	if en.account {
		now.until = now.at.Add(e.o.TTL)
	}
	switch {
	case e.forAll(en):
		return e.learnBroad(ctx, who, now, a)
	case a.Unchanged:
		now.set, now.rights, now.etag = before.set, before.rights, before.etag
		return nil
	}
	var targets map[string][]string
	if !en.account { // a look-up is a call, and the account makes no caller's calls
		targets = e.o.Targets.of(ctx, who, e.o.Source, e.o.Rules.Translator, *a, nil)
	}
	if now.set, err = e.builder.build(e.ctx, e.o.Source, *a, targets, e.epoch()); err != nil {
		return unreadable(err)
	}
	now.rights, now.etag = now.set.rights, a.ETag
	return nil
}

// epoch names the time within which one response of the site means the same. Without lazy schemas it always does: the
// response has the schemas in it.
func (e *Engine) epoch() string {
	if e.o.Rules.Lazy == nil {
		return ""
	}
	return fmt.Sprint(e.now()/int64(e.o.TTL), e.generation.Load(), e.doubts.Load())
}

// failed words a failure for callers: whatever happened, the list cannot be served.
func (e *Engine) failed(en *entry, err error) error {
	en.failed.Store(int64(time.Since(began)))
	f := fault.From(err)
	if errors.Is(err, throttle.ErrThrottled) {
		e.observe("throttled")
		return f
	}
	e.o.Logger.Warn("discovery failed", "caller", en.who, "error", err)
	if errors.Is(err, errAccountRefused) {
		return f
	}
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

// Invalidate expires all cached lists: the next request makes the bridge ask the site. A cached list
// is still served if the site fails.
func (e *Engine) Invalidate() { e.generation.Add(1) }

// doubtAgain is how often one caller's failed calls may send the bridge to the site.
const doubtAgain = 5 * time.Second

// Subject is what the site has contradicted.
type Subject int

// The subjects: what a caller may do, and what the tools are.
const (
	Rights Subject = iota + 1
	Tools
)

// Doubt has the caller's tools refetched since the site refused what its own description allows: at once, and not more often
// than helps.
func (e *Engine) Doubt(ctx context.Context, who caller.Caller, about Subject) {
	en := e.entry(who)
	if !e.doubt(en, &en.doubted) {
		return
	}
	if about == Tools && e.o.Account != nil {
		account := e.accountEntry(who)
		e.doubt(account, &account.doubted)
	}
	_ = e.refresh(ctx, en, who.Trace, true) // the refusal is the response; the next call finds out what the tools are
}

// doubt makes an entry's knowledge doubtful, unless that was done a moment ago for the same reason.
func (e *Engine) doubt(en *entry, last *time.Time) bool {
	now := e.o.Now()
	en.mu.Lock()
	defer en.mu.Unlock()
	if !last.IsZero() && now.Sub(*last) < min(doubtAgain, e.ttl) {
		return false
	}
	*last = now
	e.doubts.Add(1)
	if k := en.known.Load(); k != nil {
		doubtful := *k
		doubtful.generation = -1
		en.known.Store(&doubtful)
	}
	return true
}

// Scopes are those that tools ask for, of all tools that anybody sees at present, in alphabetical order.
func (e *Engine) Scopes() []string {
	found := map[string]bool{}
	for _, s := range e.builder.sets.all() {
		for _, t := range s.catalog.Tools() {
			for _, scope := range t.Scopes() {
				found[scope] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Heard reports that another replica found other tools for a caller than the ones before: if those that are remembered here
// differ, they are refetched as Doubt does it, without waiting.
func (e *Engine) Heard(caller caller.Identity, now catalog.Version) {
	en, ok := e.callers.Get(caller)
	if !ok {
		return
	}
	if k := en.known.Load(); k != nil && k.set != nil && k.set.catalog.Version != now {
		e.doubt(en, &en.heard)
	}
}

// Diagnostics returns what was repaired or left out, over all sets that callers hold.
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

// Callers is the number of callers that are remembered and have seen tools.
func (e *Engine) Callers() int { return e.callers.Len() }

func (e *Engine) observe(outcome string) {
	if e.o.Observe != nil {
		e.o.Observe(outcome)
	}
}
