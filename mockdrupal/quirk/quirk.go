// Package quirk names what the recorded site does wrong and the mock does only when asked: a peculiarity of one release, as
// opposed to a fault that a test arms. What a quirk changes is written where the site does it; this package only knows
// names and switches.
//
// Its invariant: only quirks of the list All can be switched on.
package quirk

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Quirk is a peculiarity of the recorded site.
type Quirk struct {
	Name string
	Text string // what the site does
}

// StickyGet is the name of the page cache that ignores the query.
const StickyGet = "sticky-get-cache"

// All lists all quirks.
func All() []Quirk {
	return []Quirk{
		{StickyGet, "GET /jsonrpc?query= (and the module's describe) responds from the page cache of the caller's permissions: with another user's response, and after a 400 or 204 with that response to every later query, until the site changes; GET /jsonrpc/methods ignores which scopes a token has."},
	}
}

// Set is the quirks that a site has. The zero value has none. It is safe for use by many goroutines.
type Set struct {
	mu sync.RWMutex
	on []string
}

// Has reports whether a quirk is on.
func (s *Set) Has(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Contains(s.on, name)
}

// Active returns the names of the quirks that are on.
func (s *Set) Active() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.on)
}

// Switch switches a quirk on or off. It fails when there is none of this name.
func (s *Set) Switch(name string, on bool) error {
	var names []string
	for _, q := range All() {
		names = append(names, q.Name)
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("there is no quirk %q: the mock knows %s", name, strings.Join(names, ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = slices.DeleteFunc(slices.Clone(s.on), func(have string) bool { return have == name })
	if on {
		s.on = append(s.on, name)
	}
	return nil
}
