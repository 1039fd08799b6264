package mutants

import "sync"

// memory is what a mutant stores between requests. It is safe for concurrent use.
type memory[V any] struct{ rows sync.Map }

func newMemory[V any]() *memory[V] { return &memory[V]{} }

func (t *memory[V]) get(key string) (v V, ok bool) {
	row, ok := t.rows.Load(key)
	if ok {
		v = row.(V)
	}
	return v, ok
}

func (t *memory[V]) put(key string, v V) { t.rows.Store(key, v) }

// keep stores a value unless there is one, and returns the stored one.
func (t *memory[V]) keep(key string, v V) V {
	row, _ := t.rows.LoadOrStore(key, v)
	return row.(V)
}

func (t *memory[V]) clear() { t.rows.Clear() }

// set is a memory of names.
type set struct{ memory[bool] }

func newSet() *set { return &set{} }

func (s *set) has(name string) bool {
	_, ok := s.get(name)
	return ok
}

// add adds a name and reports whether it is new.
func (s *set) add(name string) bool {
	_, seen := s.rows.LoadOrStore(name, true)
	return !seen
}
