package mockdrupal

import (
	"sync"
	"sync/atomic"
	"time"
)

// Drupal's flood limits for signing in: so many failures of one account in the window lock it.
const (
	floodLimit  = 5
	floodWindow = 6 * time.Hour
)

// flood counts failed Basic logins by account. It is off unless switched on.
type flood struct {
	on       atomic.Bool
	mu       sync.Mutex
	failures map[string][]time.Time
}

// SetFlood switches flood control on or off; either way it forgets all failures.
func (d *Drupal) SetFlood(on bool) {
	d.flood.mu.Lock()
	defer d.flood.mu.Unlock()
	d.flood.failures = nil
	d.flood.on.Store(on)
}

// locked tells whether the account is locked now: then even the right password is refused.
func (f *flood) locked(account string, now time.Time) bool {
	if !f.on.Load() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	recent := 0
	for _, at := range f.failures[account] {
		if now.Sub(at) < floodWindow {
			recent++
		}
	}
	return recent >= floodLimit
}

func (f *flood) failed(account string, now time.Time) {
	if !f.on.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == nil {
		f.failures = map[string][]time.Time{}
	}
	if list := f.failures[account]; len(list) < floodLimit {
		f.failures[account] = append(list, now)
	} else {
		f.failures[account] = append(list[1:], now)
	}
}

func (f *flood) succeeded(account string) {
	if !f.on.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failures, account)
}
