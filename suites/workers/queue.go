package workers

import "sync"

// Queue holds the checks of each pass that no worker has taken. It is safe for concurrent use.
type Queue struct {
	mu     sync.Mutex
	passes []*pass
}

type pass struct {
	open   map[string]int // clause → weight in milliseconds
	weight int            // of those that are open
	at     int            // workers that are at it
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

// next is the pass with the most left to do for each worker at it; -1: none is worth it.
func (q *Queue) next() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	best, most := -1, 0
	for i, p := range q.passes {
		if len(p.open) == 0 || p.at > 0 && p.weight < worthJoining*(p.at+1) {
			continue
		}
		if share := p.weight / (p.at + 1); best < 0 || share > most {
			best, most = i, share
		}
	}
	if best >= 0 {
		q.passes[best].at++
	}
	return best
}

// left notes that a worker is done with a pass.
func (q *Queue) left(pass int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if pass >= 0 {
		q.passes[pass].at--
	}
}

// take gives a check to the worker that asks first.
func (q *Queue) take(pass int, clause string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if pass < 0 {
		return false
	}
	p := q.passes[pass]
	weight, open := p.open[clause]
	if open {
		delete(p.open, clause)
		p.weight -= weight
	}
	return open
}
