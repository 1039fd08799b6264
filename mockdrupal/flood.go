package mockdrupal

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// floodEvent is what Drupal counts failed logins by: so many in the window, of one account from one address or of one address
// for any accounts, and the next is refused unseen. Basic and /user/login count separately.
type floodEvent struct {
	limit  int
	window time.Duration
}

// The limits of Drupal's configuration user.flood.
var (
	basicUser    = &floodEvent{5, 6 * time.Hour}
	basicAddress = &floodEvent{50, time.Hour}
	loginUser    = &floodEvent{5, 6 * time.Hour}
	loginAddress = &floodEvent{50, time.Hour}
)

// flood counts failed logins. It is off unless switched on.
type flood struct {
	on       atomic.Bool
	mu       sync.Mutex
	failures map[attempt][]time.Time
}

// attempt is what failures are counted for; account is "" where the address alone counts.
type attempt struct {
	event            *floodEvent
	account, address string
}

// maxAttempts bounds what is kept; beyond it all is forgotten.
const maxAttempts = 100_000

// SetFlood switches flood control on or off; either way all failures are forgotten.
func (d *Drupal) SetFlood(on bool) {
	d.flood.mu.Lock()
	defer d.flood.mu.Unlock()
	d.flood.failures = nil
	d.flood.on.Store(on)
}

// locked reports whether there were as many failures as are allowed: then even the right password is refused.
func (f *flood) locked(a attempt, now time.Time) bool {
	if !f.on.Load() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	recent := 0
	for _, at := range f.failures[a] {
		if now.Sub(at) < a.event.window {
			recent++
		}
	}
	return recent >= a.event.limit
}

func (f *flood) failed(a attempt, now time.Time) {
	if !f.on.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == nil || len(f.failures) >= maxAttempts {
		f.failures = map[attempt][]time.Time{}
	}
	list := append(f.failures[a], now)
	f.failures[a] = list[max(0, len(list)-a.event.limit):]
}

// succeeded forgets the failures of an account from an address. Those of the address alone stay.
func (f *flood) succeeded(a attempt) {
	if !f.on.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failures, a)
}

// clientAddress is the address that a request comes from, as far as the site can see.
func clientAddress(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
