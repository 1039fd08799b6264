package discovery

import (
	"container/list"
	"runtime"
	"sync"
	"weak"
)

const (
	maxKept    = 64 << 20 // bytes of all sets that callers have
	timesBytes = 3        // what a set takes is so many times what the site sent: descriptions, tools, encoded pages
)

// kept bounds the sets of all callers together. Callers who see the same share one; a site that shows each another list takes
// no more than the budget: the sets that were not fetched for the longest time go first.
type kept struct {
	mu    sync.Mutex
	order list.List // of *keptSet, the one that was fetched last in front
	bytes int
}

type keptSet struct {
	set   weak.Pointer[set] // nobody pays for a set that no caller has
	bytes int
	there bool
}

// add counts a set that was fetched, and returns those that are too much beside it.
func (k *kept) add(s *set) (tooMuch []*set) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.place != nil {
		k.order.MoveToFront(s.place)
		return nil
	}
	s.place = k.order.PushFront(&keptSet{weak.Make(s), s.bytes, true})
	k.bytes += s.bytes
	runtime.AddCleanup(s, k.forget, s.place)
	for k.bytes > maxKept && k.order.Len() > 1 {
		last := k.order.Back()
		k.take(last)
		if old := last.Value.(*keptSet).set.Value(); old != nil {
			old.place = nil
			tooMuch = append(tooMuch, old)
		}
	}
	return tooMuch
}

func (k *kept) forget(place *list.Element) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.take(place)
}

func (k *kept) take(place *list.Element) {
	if one := place.Value.(*keptSet); one.there {
		one.there = false
		k.bytes -= one.bytes
		k.order.Remove(place)
	}
}

// keep counts a set. Callers who have one that is too much beside it are forgotten, as those beyond MaxCallers are.
func (e *Engine) keep(s *set) {
	tooMuch := e.kept.add(s)
	if len(tooMuch) == 0 {
		return
	}
	gone := map[*set]bool{}
	for _, old := range tooMuch {
		gone[old] = true
	}
	for _, en := range e.callers.Values() {
		if k := en.known.Load(); k != nil && gone[k.set] {
			e.callers.Remove(en.who.Identity)
		}
	}
}
