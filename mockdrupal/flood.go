package mockdrupal

import (
	"sync"
	"sync/atomic"
	"time"
)

// Ways to authenticate whose failures Drupal counts separately.
const (
	floodBasic = "basic_auth.failed_login_user"
	floodLogin = "user.http_login"
)

// Drupal's flood limits for authentication: so many failures of one account in the window lock it.
const (
	floodLimit  = 5
	floodWindow = 6 * time.Hour
)

// flood counts failed logins by way and account. It is off unless switched on.
type flood struct {
	on       atomic.Bool
	mu       sync.Mutex
	failures map[attempt][]time.Time
}

type attempt struct{ way, account string }

// SetFlood switches flood control on or off; either way all failures are forgotten.
func (d *Drupal) SetFlood(on bool) {
	d.flood.mu.Lock()
	defer d.flood.mu.Unlock()
	d.flood.failures = nil
	d.flood.on.Store(on)
}

// locked reports whether the account is locked now: then even the right password is refused.
func (f *flood) locked(way, account string, now time.Time) bool {
	if !f.on.Load() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	recent := 0
	for _, at := range f.failures[attempt{way, account}] {
		if now.Sub(at) < floodWindow {
			recent++
		}
	}
	return recent >= floodLimit
}

func (f *flood) failed(way, account string, now time.Time) {
	if !f.on.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == nil {
		f.failures = map[attempt][]time.Time{}
	}
	list := append(f.failures[attempt{way, account}], now)
	f.failures[attempt{way, account}] = list[max(0, len(list)-floodLimit):]
}

func (f *flood) succeeded(way, account string) {
	if !f.on.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failures, attempt{way, account})
}
