// Package recent remembers what was used last, within a limit: what was used the longest ago is forgotten first.
package recent

import (
	"container/list"
	"sync"
)

// Cache remembers values by keys. It is safe for use by many at once.
type Cache[K comparable, V any] struct {
	mu     sync.Mutex
	order  *list.List // of item[K, V], the one that was used last in front
	byKey  map[K]*list.Element
	weigh  func(V) int
	most   int
	weight int // of all values
}

type item[K comparable, V any] struct {
	key   K
	value V
}

// New makes a cache of values that weigh so much together at most. weigh is nil where each weighs 1, and says the same of
// a value whenever it is asked.
func New[K comparable, V any](most int, weigh func(V) int) *Cache[K, V] {
	if weigh == nil {
		weigh = func(V) int { return 1 }
	}
	return &Cache[K, V]{order: list.New(), byKey: map[K]*list.Element{}, weigh: weigh, most: most}
}

// Get returns the value of a key, which counts as used now.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(key)
}

func (c *Cache[K, V]) get(key K) (value V, ok bool) {
	e := c.byKey[key]
	if e == nil {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(item[K, V]).value, true
}

// GetOrMake returns the value of a key, which is made where there was none.
func (c *Cache[K, V]) GetOrMake(key K, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.get(key)
	if !ok {
		v = make()
		c.add(key, v)
	}
	return v
}

// Set gives a key a value. One that weighs more than the limit is not remembered.
func (c *Cache[K, V]) Set(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[key])
	c.add(key, v)
}

// Remove forgets a key.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[key])
}

// Values returns all values, the one used last first.
func (c *Cache[K, V]) Values() []V {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make([]V, 0, c.order.Len())
	for e := c.order.Front(); e != nil; e = e.Next() {
		values = append(values, e.Value.(item[K, V]).value)
	}
	return values
}

// Len is the number of keys.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// add adds a key that is not there.
func (c *Cache[K, V]) add(key K, v V) {
	c.byKey[key] = c.order.PushFront(item[K, V]{key, v})
	for c.weight += c.weigh(v); c.weight > c.most; {
		c.remove(c.order.Back())
	}
}

func (c *Cache[K, V]) remove(e *list.Element) {
	if e == nil {
		return
	}
	i := c.order.Remove(e).(item[K, V])
	delete(c.byKey, i.key)
	c.weight -= c.weigh(i.value)
}
