package workers

import (
	"sync"

	"github.com/bridgecheck/bridgecheck/suites"
)

// Queue holds the checks of each pass that no worker has taken. It is safe for concurrent use.
type Queue struct {
	mu     sync.Mutex
	passes []*pass
}

type pass struct {
	open   map[string]int // clause → weight in milliseconds
	weight int            // of those that are open
	at     int            // workers that are at it
	ends   bool           // a worker tests its last area alone
}

// work is what a worker is at: a pass, -1 for none, or the last area of it alone. A tree has that area last, and with it what
// waits longest: a worker that begins with it needs a bridge of its own, for nothing else may follow.
type work struct {
	pass int
	end  bool
}

// worthJoining is what has to be left of a pass that another worker is at, in milliseconds for each of them: a pass has to
// start a bridge.
const worthJoining = 400

// NewQueue makes a queue of the checks of each pass, by clause with its weight in milliseconds.
func NewQueue(passes ...map[string]int) *Queue {
	q := &Queue{}
	for _, checks := range passes {
		p := &pass{open: map[string]int{}}
		for clause, weight := range checks {
			p.open[clause] = weight
			p.weight += weight
		}
		q.passes = append(q.passes, p)
	}
	return q
}

// next is the pass with the most left to do for each worker at it, where one is worth it. The second worker at a pass tests
// its last area.
func (q *Queue) next() work {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, most := work{pass: -1}, 0
	for i, p := range q.passes {
		if len(p.open) == 0 || p.at > 0 && p.weight < worthJoining*(p.at+1) {
			continue
		}
		if share := p.weight / (p.at + 1); w.pass < 0 || share > most {
			w.pass, most = i, share
		}
	}
	if w.pass < 0 {
		return w
	}
	p := q.passes[w.pass]
	last := 0
	for clause, weight := range p.open {
		if suites.IsLast(clause) {
			last += weight
		}
	}
	if p.at > 0 && !p.ends && last >= worthJoining {
		w.end, p.ends = true, true
	}
	p.at++
	return w
}

// left notes that a worker is done.
func (q *Queue) left(w work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.pass >= 0 {
		q.passes[w.pass].at--
	}
}

// take gives a check to the worker that asks first.
func (q *Queue) take(w work, clause string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.pass < 0 || w.end && !suites.IsLast(clause) {
		return false
	}
	p := q.passes[w.pass]
	weight, open := p.open[clause]
	if open {
		delete(p.open, clause)
		p.weight -= weight
	}
	return open
}
