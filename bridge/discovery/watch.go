package discovery

import (
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
)

// pollEvery is how often the poller looks whether anything has run out, by the machine's clock: a given clock may jump.
const pollEvery = 250 * time.Millisecond

// retryEvery is how long the poller leaves a caller alone whose discovery failed, by the machine's clock.
const retryEvery = time.Second

// poller keeps the tools of watched callers fresh. It starts with the first caller to keep fresh.
type poller struct {
	places chan struct{} // taken by each discovery that it starts

	mu       sync.Mutex
	running  bool
	finished sync.WaitGroup
	watchers map[*watcher]struct{}
}

type watcher struct {
	entry  *entry
	notify func(catalog.Changes, *catalog.Catalog)
}

// Subscribe calls notify after each change of the caller's tools, from now until cancel is called. While anybody is
// subscribed the bridge asks the site again whenever the TTL is over. notify must not block.
func (e *Engine) Subscribe(who caller.Caller, notify func(catalog.Changes, *catalog.Catalog)) (cancel func()) {
	w := &watcher{e.entry(who), notify}
	p := &e.poller
	p.mu.Lock()
	if p.watchers == nil {
		p.watchers = map[*watcher]struct{}{}
	}
	p.watchers[w] = struct{}{}
	p.mu.Unlock()
	p.start(e)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, w)
	}
}

// changed notifies the subscribers of the entry when its tools differ from those before. A first discovery, and one after a
// refusal, has nothing to compare with.
func (e *Engine) changed(en *entry, before, now *knowledge) {
	if before == nil || before.set == nil || now.set == nil || before.set.catalog.Version == now.set.catalog.Version {
		return
	}
	if e.o.Changed != nil {
		e.o.Changed(en.who.Identity, now.set.catalog.Version)
	}
	e.poller.mu.Lock()
	var watching []*watcher
	for w := range e.poller.watchers {
		if w.entry.who.Identity == en.who.Identity {
			watching = append(watching, w)
		}
	}
	e.poller.mu.Unlock()
	if len(watching) == 0 {
		return
	}
	changes := catalog.Diff(before.set.catalog, now.set.catalog)
	for _, w := range watching {
		w.notify(changes, now.set.catalog)
	}
}

func (p *poller) start(e *Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running || e.ctx.Err() != nil {
		return
	}
	p.running = true
	p.finished.Go(func() {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-e.ctx.Done():
				return
			case <-tick.C:
				e.poll()
			}
		}
	})
}

func (p *poller) wait() { p.finished.Wait() }

// poll starts a discovery for each caller to be kept fresh whose list has expired. It waits while as many are in progress
// as it may start: requests come first.
func (e *Engine) poll() {
	due := map[*entry]bool{}
	e.poller.mu.Lock()
	for w := range e.poller.watchers {
		due[w.entry] = true
	}
	e.poller.mu.Unlock()
	if e.o.Background > 0 {
		since := e.now() - int64(e.o.Background)
		for _, en := range e.callers.Values() {
			if en.seen.Load() >= since {
				due[en] = true
			}
		}
	}
	for en := range due {
		failed := en.failed.Load()
		if e.fresh(en.known.Load()) || failed != 0 && time.Since(began)-time.Duration(failed) < retryEvery {
			continue
		}
		select {
		case e.poller.places <- struct{}{}:
			e.keepFresh(en)
		case <-e.ctx.Done():
			return
		}
	}
}

// keepFresh starts a discovery, unless one is under way, and gives the place back when it ends.
func (e *Engine) keepFresh(en *entry) {
	en.mu.Lock()
	defer en.mu.Unlock()
	f := en.flight
	switch {
	case f == nil && e.fresh(en.known.Load()): // somebody asked meanwhile
		<-e.poller.places
		return
	case f == nil:
		f = e.launch(en, caller.Trace{})
	}
	e.flights.Go(func() {
		<-f.done
		<-e.poller.places
	})
}
