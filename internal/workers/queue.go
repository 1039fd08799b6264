package workers

import (
	"maps"
	"slices"
	"sync"

	"github.com/bridgecheck/bridgecheck/internal/engine"
)

// Bundle are checks of a pass that one worker tests with a bridge of its own, whatever the number of workers: what a bridge
// remembers of one check shows in the same others then.
type Bundle struct {
	Pass   int
	Checks map[string]int // clause → weight in milliseconds
	Shared bool           // workers share the bridge, and so the bundle
}

// Bundles are those of a pass, each of about so many milliseconds. A site that fails is tested in others than the rest, where
// that takes long: a tree has its area last, and what waits longest should begin first. Checks that share requests are in one.
func Bundles(pass int, checks map[string]int, each int) []Bundle {
	rest := map[string]int{}
	for clause, ms := range checks {
		rest[leader(checks, clause)] += ms
	}
	last := maps.Clone(rest)
	maps.DeleteFunc(last, func(clause string, _ int) bool { return !engine.IsLast(clause) })
	if total(last) >= each/2 {
		maps.DeleteFunc(rest, func(clause string, _ int) bool { return engine.IsLast(clause) })
	} else {
		last = nil
	}
	var all []Bundle
	for _, group := range []map[string]int{rest, last} {
		if len(group) == 0 {
			continue
		}
		n := max(1, (total(group)+each/2)/each)
		for i := range n {
			share := engine.Share(group, i+1, n)
			b := Bundle{Pass: pass, Checks: maps.Clone(checks)}
			maps.DeleteFunc(b.Checks, func(clause string, _ int) bool { return !share[leader(checks, clause)] })
			all = append(all, b)
		}
	}
	return all
}

// leader is the clause with which a clause shares requests, where it is among the checks.
func leader(checks map[string]int, clause string) string {
	if _, there := checks[engine.Leads(clause)]; there {
		return engine.Leads(clause)
	}
	return clause
}

// Weight is that of its checks, in milliseconds.
func (b Bundle) Weight() int { return total(b.Checks) }

func total(checks map[string]int) (weight int) {
	for _, ms := range checks {
		weight += ms
	}
	return weight
}

// Queue holds the checks of the bundles that no worker has taken. It is safe for concurrent use.
type Queue struct {
	passes  int
	mu      sync.Mutex
	bundles []*bundle
}

type bundle struct {
	Bundle
	open   map[string]int
	weight int // of those that are open
	at     int // workers that are at it
}

// none is what a worker is at that is at no bundle.
const none = -1

// worthJoining is what has to be left of a shared bundle that another worker is at, in milliseconds for each of them.
const worthJoining = 400

// NewQueue makes a queue of the bundles of so many passes.
func NewQueue(passes int, bundles ...Bundle) *Queue {
	q := &Queue{passes: passes}
	for _, b := range bundles {
		q.bundles = append(q.bundles, &bundle{Bundle: b, open: maps.Clone(b.Checks), weight: b.Weight()})
	}
	return q
}

// next is the bundle with the most left to do for each worker at it, among those that wait or may be joined, and its pass.
func (q *Queue) next() (at, pass int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, pass = none, none
	most := 0
	for i, b := range q.bundles {
		if len(b.open) == 0 || b.at > 0 && (!b.Shared || b.weight < worthJoining*(b.at+1)) {
			continue
		}
		if share := b.weight / (b.at + 1); at == none || share > most {
			at, pass, most = i, b.Pass, share
		}
	}
	if at != none {
		q.bundles[at].at++
	}
	return at, pass
}

// waits reports whether there is something to do for one worker more.
func (q *Queue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.bundles, func(b *bundle) bool { return b.at == 0 && len(b.open) > 0 })
}

// left notes that a worker is done with a bundle.
func (q *Queue) left(at int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at != none {
		q.bundles[at].at--
	}
}

// drop takes what is left of a bundle away, which is for one worker, when that has found what it has.
func (q *Queue) drop(at int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.bundles[at]; !b.Shared {
		b.open, b.weight = nil, 0
	}
}

// take hands a check to the worker that asks first.
func (q *Queue) take(at int, clause string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at == none {
		return false
	}
	b := q.bundles[at]
	weight, open := b.open[clause]
	if open {
		delete(b.open, clause)
		b.weight -= weight
	}
	return open
}
