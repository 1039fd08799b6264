package selftest

import "sync"

// table is what a broken bridge remembers between requests.
type table[V any] struct {
	mu   sync.Mutex
	rows map[string]V
}

func newTable[V any]() *table[V] { return &table[V]{rows: map[string]V{}} }

func (t *table[V]) get(key string) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.rows[key]
	return v, ok
}

func (t *table[V]) put(key string, v V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[key] = v
}

// keep puts a value in unless there is one, and gives the one that is there then.
func (t *table[V]) keep(key string, v V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.rows[key]; ok {
		return old
	}
	t.rows[key] = v
	return v
}

func (t *table[V]) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.rows)
}

// set is a table of names seen.
type set struct{ table[bool] }

func newSet() *set { return &set{table[bool]{rows: map[string]bool{}}} }

// add tells whether the name is new.
func (s *set) add(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.rows[name]
	s.rows[name] = true
	return !seen
}
