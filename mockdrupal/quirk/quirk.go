// Package quirk names what the mock does only when asked, as opposed to a fault that a test arms: what the recorded site does
// wrong, a peculiarity of one release, and what a real site does not do but a bridge must bear. The code that a quirk
// changes stands with the site's; this package only knows names and switches.
//
// Its invariant: only quirks of the list All can be switched on.
package quirk

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Quirk is a peculiarity of a site.
type Quirk struct {
	Name string
	Text string // what the site does
}

// Names of quirks.
const (
	StickyGet     = "sticky-get-cache"
	LenientOutput = "lenient-output"
)

// All lists all quirks.
func All() []Quirk {
	return []Quirk{
		{StickyGet, "GET /jsonrpc?query= (and the module's describe) responds from the page cache of the caller's permissions: with another user's response, and after a 400 or 204 with that response to every later query, until the site changes; GET /jsonrpc/methods ignores which scopes a token has."},
		{LenientOutput, "A result is sent whether it conforms to the method's output or not; without the quirk, as on a real site, the call fails with 500 and -32603."},
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
